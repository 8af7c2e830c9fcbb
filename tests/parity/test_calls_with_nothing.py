"""Every function called with nothing, and with a name that no function has: a TypeError where PyTorch raises one, no other answer."""

from __future__ import annotations

import inspect
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
