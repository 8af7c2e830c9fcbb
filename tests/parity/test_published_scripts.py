"""The runner of published scripts (`tests.packages.programs`) sees the same losses in both libraries, and says where they differ."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")

from ..packages.programs import compared

SCRIPT = """
import sys
import torch
from torch import nn
data = torch.utils.data.TensorDataset(torch.randn(24, 5), torch.randint(0, 3, (24,)))
net = nn.Sequential(nn.Linear(5, 8), nn.Dropout(0.3), nn.ReLU(), nn.Linear(8, 3))
nn.init.kaiming_normal_(net[0].weight)
best = torch.optim.Adam(net.parameters(), lr=0.1)
for x, y in torch.utils.data.DataLoader(data, batch_size=4, shuffle=True):
    best.zero_grad()
    (nn.functional.cross_entropy(net(x), y) * float(sys.argv[1] if "autograd_nb" in sys.modules else 1)).backward()
    best.step()
"""


@pytest.mark.parity
@pytest.mark.parametrize("factor, said", [("1", "the same, 5 steps"), ("1.1", "other losses")])
def test_a_script(tmp_path, factor, said):
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    assert compared(str(script), [factor], 5).startswith(said)
