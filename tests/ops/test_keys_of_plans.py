"""What plans are found by never changes: a key that holds a tensor, a list or another thing with state would find a plan of before it changed."""

from __future__ import annotations

import types

import numpy as np
import pytest

import autograd_nb as torch
from autograd_nb import launch
from autograd_nb.dtypes import dtype
from autograd_nb.nn import functional as F
from autograd_nb.ops.core.registry import OPS
from autograd_nb.ops.core.row_kernel import RowKernel
from autograd_nb.ops.random.draws import Law
from autograd_nb.ops.reduce.fused_reduction import Reduced
from autograd_nb.shapes import Layout

from .walk import cases

#: what is the same for ever, and is compared by what it is; laws, kernels and reductions are declared once, with the modules
PLAIN = (
    int, float, complex, str, bytes, bool, type(None), type(...), type, dtype, np.dtype, np.generic, types.FunctionType, types.BuiltinFunctionType,
    Law, Reduced, RowKernel,
)  # fmt: skip
ONE = torch.tensor(1)


class Number:
    """What stands for a number, and may stand for another later."""

    value = 1

    def __index__(self):
        return self.value

    def __float__(self):
        return float(self.value)


SETTING = ("set_", "use_", "seed", "manual_", "save", "load", "from_", "_")  # functions that are about other things than tensors
BOUNDS = {
    "a tensor": ONE, "an array": np.array(1), "a number of NumPy": np.int64(1), "a list": [1], "a list of tensors": [ONE], "an array of one": np.array([1]),
    "a size": torch.Size([1]), "a tuple of tensors": (ONE,), "a bool": True, "a float": 1.0, "a tensor of two": torch.tensor([0, 1]),
    "a number of the program's": Number(), "a tuple of such": (Number(),),
}  # fmt: skip


def changing(part):
    """The parts of a key that may change."""
    if isinstance(part, Layout):
        return [] if type(part) is Layout else [part]
    if isinstance(part, (tuple, frozenset)):
        return [found for p in part for found in changing(p)]
    if isinstance(part, slice):
        return changing((part.start, part.stop, part.step))
    return [] if isinstance(part, PLAIN) else [part]


def calls():
    """Calls in which each of the things above stands where a number, a dim, a size or an index may."""
    x, y = torch.arange(24.0).reshape(2, 3, 4), torch.arange(24.0).reshape(2, 3, 4)
    for what, v in BOUNDS.items():
        yield from ((f"{what}: {name}", call) for name, call in {
            "slice": lambda v=v: x[v:], "slice in the midst": lambda v=v: x[:, v:3], "index": lambda v=v: x[v], "indices": lambda v=v: x[:, v, v],
            "assigned": lambda v=v: y.__setitem__(v, 1.0), "assigned slice": lambda v=v: y.__setitem__(slice(v, None), 2.0),
            "value": lambda v=v: y.__setitem__(0, v), "value of a slice": lambda v=v: y.__setitem__(slice(0, 1), v), "add": lambda v=v: x + v,
            "add to": lambda v=v: y.add_(v), "where": lambda v=v: torch.where(x > 0, x, v), "fill": lambda v=v: y.fill_(v),
            "clamp": lambda v=v: x.clamp(v, v), "pow": lambda v=v: x**v, "addcmul": lambda v=v: torch.addcmul(x, x, x, value=v),
            "full": lambda v=v: torch.full((2,), v), "full of size": lambda v=v: torch.full(v, 2), "zeros": lambda v=v: torch.zeros(v),
            "arange": lambda v=v: torch.arange(v, 5), "linspace": lambda v=v: torch.linspace(v, 5, 3), "expand": lambda v=v: x[:1].expand(v, 3, 4),
            "reshape": lambda v=v: x.reshape(v, -1), "narrow": lambda v=v: x.narrow(1, v, v), "roll": lambda v=v: x.roll(v, 0), "tile": lambda v=v: x.tile(v),
            "pad": lambda v=v: F.pad(x, (v, 1)), "dropout": lambda v=v: F.dropout(x, v), "softmax": lambda v=v: F.softmax(x, v),
            "conv": lambda v=v: F.conv1d(x, torch.ones(2, 3, 2), stride=v, padding=v), "pool": lambda v=v: F.max_pool1d(x, 2, v),
            "resized": lambda v=v: F.interpolate(x, scale_factor=v), "norm": lambda v=v: torch.linalg.vector_norm(x, v),
            "as_strided": lambda v=v: x.as_strided((2,), (1,), v), "masked": lambda v=v: x.masked_fill(x > 3, v), "lerp": lambda v=v: x.lerp(x, v),
            "random": lambda v=v: torch.randint(v, 9, (2,)), "normal": lambda v=v: torch.normal(v, 1.0, (2,)), "quantile": lambda v=v: x.quantile(v),
        }.items())  # fmt: skip
        for name, op in OPS.items():
            if op.kind in ("reduction", "composite", "view", "structured") and name[0] != "_" and not name.endswith("_") and not name.startswith(SETTING):
                yield f"{what}: {name}", lambda op=op, v=v: op.call(x, v)


@pytest.fixture
def keys(monkeypatch):
    """The keys of all plans that are kept meanwhile: other tables than before hold them, so that none is forgotten."""
    launch.forget()
    monkeypatch.setattr(launch, "KEPT", 10**9)
    return lambda: [key for _, key, _ in list(launch._order)]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_keys_hold_nothing_that_changes(keys):
    for _, function, arrays in cases():
        for _ in range(2):
            function(*[torch.from_numpy(a.copy()).requires_grad_(a.dtype.kind == "f") for a in arrays])
    wrong, tried, before = {}, 0, 0
    for name, call in calls():
        for _ in range(2):
            try:
                call()
            except Exception:  # what is refused may have left a plan all the same
                break
        found = keys()
        wrong |= {name: parts for key in found[before:] if (parts := changing(key))}
        tried, before = tried + len(found) - before, len(found)
    wrong |= {f"of modules and functions, {k}": parts for k, key in enumerate(keys()) if (parts := changing(key))}
    assert len(keys()) > 500 and tried > 200
    assert {name: [f"{type(p).__module__}.{type(p).__name__}" for p in parts] for name, parts in wrong.items()} == {}


def test_a_dim_that_is_a_tensor_is_asked_each_time():
    x, d = torch.arange(6.0).reshape(2, 3), torch.tensor(0)
    for name in ("sum", "amax", "cumsum", "mean", "all"):
        call = OPS[name].call
        d.fill_(0)
        for _ in range(3):
            first = call(x, d).tolist()
        d.fill_(1)
        assert (first, call(x, d).tolist()) == (call(x, 0).tolist(), call(x, 1).tolist()), name
