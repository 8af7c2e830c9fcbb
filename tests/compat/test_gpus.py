"""Programs that insist on GPUs, run with the CPU in their place: ``python -m autograd_nb run --as-gpus N program.py``."""

from __future__ import annotations

import subprocess
import sys

import pytest

PROGRAM = """
import torch
assert torch.cuda.is_available() and torch.accelerator.is_available(), "needs a GPU"
assert torch.cuda.device_count() == torch.accelerator.device_count() == 2
torch.cuda.set_device(1)
assert torch.cuda.current_device() == torch.accelerator.current_device_index() == 1
where = torch.device(f"{torch.accelerator.current_accelerator()}:1")
assert where == torch.device("cuda:1") and torch.cuda.get_device_name(where)
model = torch.nn.Linear(2, 2).to(1).cuda().to(where)
x = torch.ones(3, 2, device="cuda").to("cuda:1").cuda(0)
with torch.amp.autocast(device_type="cuda", enabled=False), torch.device("cuda"):
    model(x).sum().backward()
torch.cuda.synchronize()
torch.save(model.state_dict(), "w.pt")
model.load_state_dict(torch.load("w.pt", map_location="cuda:1"))
for wrong in (lambda: x.to(2), lambda: x.to("cuda:2"), lambda: torch.cuda.set_device(2), lambda: x.to("mps")):
    try:
        wrong()
    except RuntimeError as error:
        assert "not available" in str(error), error
    else:
        raise SystemExit("a device that there is not was accepted")
print("through", x.device)
"""


def run(tmp_path, *words, program=PROGRAM):
    (tmp_path / "program.py").write_text(program)
    return subprocess.run(
        [sys.executable, "-m", "autograd_nb", "run", *words, "program.py"], cwd=tmp_path, capture_output=True, text=True, check=False
    )


def test_a_program_that_insists_on_gpus_runs(tmp_path):
    ended = run(tmp_path, "--as-gpus", "2")
    assert (ended.returncode, ended.stdout) == (0, "through cpu\n"), ended.stderr


def test_nothing_stands_in_unasked(tmp_path):
    ended = run(tmp_path)
    assert ended.returncode == 1
    assert "needs a GPU" in ended.stderr


@pytest.mark.parametrize("count", ["0", "-1", "two"])
def test_numbers_of_gpus_that_are_none_are_refused(tmp_path, count):
    ended = run(tmp_path, "--as-gpus", count)
    assert ended.returncode == 2
    assert count in ended.stderr
