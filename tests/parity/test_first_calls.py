"""Subclasses of Tensor are asked at an op's first call as at later ones, over PyTorch's op database."""

from __future__ import annotations

import contextlib
import types
import warnings
from typing import Any

import pytest
import torch

import autograd_nb as ag

from .opdb import Unsupported, find, op_db, ours, samples_of


def noting(library: Any) -> Any:
    """A subclass of Tensor that notes in ``log`` what it is asked."""

    class Noting(library.Tensor):
        log: list[str] = []

        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            cls.log.append(getattr(func, "__name__", str(func)))
            return super().__torch_function__(func, types, args, kwargs)

    return Noting


CLASSES = {torch: noting(torch), ag: noting(ag)}
OPS = {op.name: op for op in op_db if isinstance(find(op), types.FunctionType)}


def asked(library: Any, function: Any, args: Any, kwargs: Any) -> list[str]:
    """What the class is asked in one call; its error, if there is one, is not the question."""
    cls = CLASSES[library]

    def of_class(value: Any) -> Any:
        if isinstance(value, library.Tensor):
            return value.as_subclass(cls)
        return type(value)(map(of_class, value)) if type(value) in (list, tuple) else value

    args = of_class(args)
    cls.log.clear()
    with contextlib.suppress(Exception), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        function(*args, **kwargs)
    return list(cls.log)


@pytest.mark.parametrize("name", OPS)
def test_first_call(name):
    op = OPS[name]
    for sample in (samples_of(op, torch.float32, False) or samples_of(op, torch.int64, False))[:1]:
        args, kwargs = (sample.input, *sample.args), sample.kwargs
        try:
            mine = ours((args, kwargs))
        except (Unsupported, RuntimeError):
            continue
        first, later = asked(ag, find(op), *mine), asked(ag, find(op), *mine)
        assert first == later
        assert bool(first) == bool(asked(torch, op.op, args, kwargs))
