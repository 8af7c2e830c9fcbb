"""What a capture puts in the place of builtins and methods is nowhere when it has ended, whoever looked there meanwhile."""

import builtins
import subprocess
import sys
import warnings

import pytest

import autograd_nb as torch
from autograd_nb.compiler.capture import effects

#: what finds functions in the midst of a first capture: a module's import, a class that takes over public functions, sparse gradients
BODIES = {
    "imports": "import taker; y = x * 2",
    "imports from": "from taker import look; y = x * 2",
    "subclass": "torch.Tensor._make_subclass(Own, x.detach()); y = x * 2",
    "sparse": "nn.Embedding(4, 2, sparse=True)(torch.tensor([1])).sum().backward(); y = x * 2",
}

PROGRAM = """
import gc
import warnings
import autograd_nb as torch
from autograd_nb import nn
from autograd_nb.compiler.capture import effects

warnings.simplefilter("ignore")

class Own(torch.Tensor): ...

def f(x):
    {body}
    return y

compiled = torch.compile(f)
for _ in range(3):
    compiled(torch.ones(2))
del compiled
gc.collect()
kept = [o for o in gc.get_objects() if isinstance(o, effects._Watch)]
assert not kept, kept
"""


@pytest.mark.parametrize("body", BODIES)
def test_nobody_keeps_what_stood_there_for_a_time(tmp_path, body):
    (tmp_path / "taker.py").write_text("from warnings import warn\nlook, ask, say = getattr, hasattr, print\n")
    (tmp_path / "program.py").write_text(PROGRAM.format(body=BODIES[body]))
    done = subprocess.run([sys.executable, "program.py"], cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
    assert not done.returncode, done.stderr


def test_imports_within_are_as_outside():
    before = builtins.getattr, builtins.__import__, warnings.warn

    @torch.compile
    def f(x):
        import json.decoder
        from os import path

        return x * len(path.join("a", "b")) + json.decoder.NaN * 0

    for _ in range(3):
        assert torch.isnan(f(torch.ones(2))).all()
    assert (builtins.getattr, builtins.__import__, warnings.warn) == before
    assert effects._standing.pair is None
