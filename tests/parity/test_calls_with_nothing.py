"""Every function called with nothing, and with a name that no function has: a TypeError where PyTorch raises one, no other answer."""

from __future__ import annotations

import inspect
import re
import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch

import autograd_nb as ag
from autograd_nb.errors import DeviceError

#: functions that change the process, and those whose answer does not depend on their arguments here: questions about what is not there
APART = {"seed", "initial_seed", "compile", "set_num_threads", "set_num_interop_threads", "classproperty", "is_distributed", "fork"}
STARTS = (
    "autocast_", "get_autocast", "is_autocast", "set_autocast", "sym_", "profiler_", "init_", "prepare_", "thread_", "clear_autocast", "compiled_",
    "cudnn_is",
)  # fmt: skip

NAMESPACES = ("", "nn.functional", "linalg", "fft", "special")


def members(namespace: str) -> tuple[Any, Any]:
    theirs, mine = torch, ag
    for part in filter(None, namespace.split(".")):
        theirs, mine = getattr(theirs, part), getattr(mine, part)
    return theirs, mine


def outcome(function: Any, **kwargs: Any) -> str:
    """What a call ends in: a result, the kind of its error, or that such work is not here."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            function(**kwargs)
    except (NotImplementedError, DeviceError):
        return "refused"
    except RuntimeError as error:
        return "refused" if "removed" in str(error) or "deprecated" in str(error) else "RuntimeError"
    except Exception as error:
        return "TypeError" if isinstance(error, TypeError) else "other"
    return "result"


def differing(fresh: Callable[[], tuple[Any, Any]], names: list[str]) -> list[str]:
    found = []
    for name in names:
        if name.startswith(("_", *STARTS)) or name in APART:
            continue
        for kwargs in ({}, {"no_such_name": 1}):
            p, o = (getattr(owner, name, None) for owner in fresh())
            if not callable(p) or o is None or inspect.isclass(p):
                continue
            expected, got = outcome(p, **kwargs), outcome(o, **kwargs)
            if got not in (expected, "refused") and "TypeError" in (expected, got):
                found.append(f"{name}({', '.join(kwargs)}): {expected}, here {got}")
    return found


@pytest.mark.parametrize("namespace", NAMESPACES)
def test_functions(namespace):
    both = members(namespace)
    assert differing(lambda: both, sorted(dir(both[0]))) == []


def test_methods():
    names = [n for n in dir(torch.Tensor) if n not in ("imag", "real", "data", "grad", "H", "mH", "repeat_interleave")]
    assert differing(lambda: (torch.ones(2, 2), ag.ones(2, 2)), [n for n in names if callable(getattr(torch.Tensor, n, None))]) == []


@pytest.mark.parametrize(
    "call",
    [
        "t.frombuffer([1, 2], dtype=t.float32)", "t.frombuffer(bytearray(8), dtype=t.float32, count=0)", "t.frombuffer(b'', dtype=t.float32)",
        "t.complex(t.tensor([1]), t.tensor([2]))", "t.polar(t.tensor([True]), t.tensor([True]))", "t.eye(-1)", "t.eye(2, -1)", "t.meshgrid([])",
        "t.empty_strided((2,), ())", "t.ones(1).new_empty_strided((2,), ())", "t.nonzero(t.ones(2), out=t.empty(0))",
        "t.nonzero(t.ones(2), out=t.empty(0, dtype=t.int64), as_tuple=True)", "t.zeros(4, 3, dtype=t.bool)[:, 1:].view(t.int16)", "t.empty(0, 4, 2**61)",
        "t.device('cuda:')", "t.zeros(2, 4, dtype=t.bool).as_strided((2, 4), (1, 1)).view(t.int16)",
    ],
)  # fmt: skip
def test_words(call):
    """Errors of what makes tensors have PyTorch's words, up to the first number or name of a dtype."""

    def said(library: Any) -> tuple[type, str]:
        with pytest.raises(Exception) as caught, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            eval(call, {"t": library})
        return caught.type, str(caught.value)

    (theirs, text), (mine, ours) = said(torch), said(ag)
    key = re.split(r"to view|,| but|:|\.|\d", text.removeprefix("nonzero: "))[0]
    assert theirs is mine, (text, ours)
    assert key.lower() in ours.lower(), (text, ours)
