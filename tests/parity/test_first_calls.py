"""Subclasses of Tensor are asked at an op's first call as at later ones, over PyTorch's op database."""

from __future__ import annotations

import contextlib
import gc
import types
import warnings
from collections.abc import Iterator
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


def calls_of(op: Any) -> Iterator[tuple[Any, Any, Any]]:
    """The arguments of an op's first sample, PyTorch's and ours, where we have such tensors."""
    for sample in (samples_of(op, torch.float32, False) or samples_of(op, torch.int64, False))[:1]:
        args, kwargs = (sample.input, *sample.args), sample.kwargs
        with contextlib.suppress(Unsupported, RuntimeError):
            yield args, kwargs, ours((args, kwargs))


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
    for args, kwargs, mine in calls_of(op):
        first, later = asked(ag, find(op), *mine), asked(ag, find(op), *mine)
        assert first == later
        assert bool(first) == bool(asked(torch, op.op, args, kwargs))


def is_repeated(function: Any) -> bool:
    """Whether a public function is one of those around which something stands that asks; quick ones do once such a class was met."""
    return getattr(getattr(function, "__wrapped__", None), "public", None) is function


def standing(library: Any, args: Any, last: bool) -> Any:
    """The arguments with an object of a class of its own, which is no tensor and answers 7, in the place of the first or last tensor."""

    class Duck:
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return 7

    placed: list[int] = []

    def put(value: Any) -> Any:
        if isinstance(value, library.Tensor) and not placed:
            placed.append(1)
            return Duck()
        if type(value) in (list, tuple):
            return type(value)([put(v) for v in (reversed(value) if last else value)][:: -1 if last else 1])
        return value

    return put(args)


def answer(function: Any, args: Any, kwargs: Any) -> str:
    """What comes of a call in which one operand is such an object."""
    try:
        return "asked" if function(*args, **kwargs) == 7 else "computed"
    except Exception as error:
        return type(error).__name__


#: functions with a text of their own in which calls that no plan knows ask: views, and what makes tensors
ASKING = ("view_as_real", "diagonal", "permute", "reshape", "flatten", "empty_like", "zeros_like", "ones_like", "movedim", "transpose", "t", "logspace")


@pytest.mark.parametrize("name", [name for name, op in OPS.items() if (is_repeated(find(op)) and name != "nn.functional.max_unpool1d") or name in ASKING])
def test_a_class_that_is_no_tensor_is_asked_at_the_first_call(name):
    op = OPS[name]
    for args, kwargs, mine in calls_of(op):
        for last in (False, True):
            gc.collect()  # of classes that were met before nothing is left
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                theirs = answer(op.op, standing(torch, args, last), kwargs)
                here = answer(find(op), standing(ag, mine[0], last), mine[1])
            assert (here == "asked") == (theirs == "asked"), (last, here, theirs)
