"""How gradients of `DistributedDataParallel` are reduced: as they are, in half precision, or by a program's own function.

A hook is a function of (state, bucket) that returns the future of the reduced bucket.
Source: https://docs.pytorch.org/docs/stable/ddp_comm_hooks.html
"""

from __future__ import annotations

import enum
import importlib
import sys
from collections.abc import Callable, Sequence
from typing import Any

from ..tensor import Tensor
from .collectives import all_reduce
from .futures import Future
from .group import ProcessGroup, default_group
from .reduce_op import ReduceOp

__path__: list[str] = []  # PyTorch has its hooks in modules below this one: see compat/import_aliases.py
default_hooks: Any = sys.modules[__name__]
debugging_hooks: Any = default_hooks


def __getattr__(name: str) -> Any:
    """Import PyTorch's module of PowerSGD when it is asked for."""
    if name == "powerSGD_hook":
        return importlib.import_module(f"{__package__}.power_sgd")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


class GradBucket:
    """Gradients that travel together, as a hook sees them: one flat tensor, and its parts in the shapes of their parameters.

    >>> def halved(state, bucket):
    ...     work = dist.all_reduce(bucket.buffer() / 4, async_op=True)
    ...     return work.get_future().then(lambda f: f.value()[0])
    >>> model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(1, 1))
    >>> model.register_comm_hook(None, halved)
    >>> model(torch.ones(1, 1)).backward()
    >>> model.module.bias.grad
    tensor([0.5000])
    """

    def __init__(self, index: int, buffer: Tensor, gradients: Sequence[Tensor], parameters: Sequence[Tensor], last: bool):
        self._index, self._buffer, self._gradients, self._parameters, self._last = index, buffer, list(gradients), list(parameters), last

    def index(self) -> int:
        """Return its place among the buckets, of which 0 is sent first."""
        return self._index

    def buffer(self) -> Tensor:
        """Return the flat tensor."""
        return self._buffer

    def gradients(self) -> list[Tensor]:
        """Return the parts, which are views of the flat tensor."""
        return self._gradients

    def parameters(self) -> list[Tensor]:
        """Return the parameters, one for each part."""
        return self._parameters

    def is_last(self) -> bool:
        """Return whether it is the last that is sent in a pass."""
        return self._last

    def set_buffer(self, tensor: Tensor) -> None:
        """Put another flat tensor in its place."""
        self._buffer = tensor


class BuiltinCommHookType(enum.Enum):
    """The hooks that `DistributedDataParallel._register_builtin_comm_hook` knows.

    >>> model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(1, 1))
    >>> model._register_builtin_comm_hook(dist.BuiltinCommHookType.FP16_COMPRESS)
    """

    ALLREDUCE = 0
    FP16_COMPRESS = 1


Hook = Callable[[Any, GradBucket], Future]


def _group(state: Any) -> ProcessGroup:
    return state if state is not None else default_group()


def _begun(work: Any) -> Future:
    found: Future = work.get_future()
    return found


def allreduce_hook(process_group: Any, bucket: GradBucket) -> Future:
    """Return the future of the mean over all ranks."""
    work = all_reduce(bucket.buffer(), ReduceOp.AVG, _group(process_group), async_op=True)
    return _begun(work).then(lambda f: f.value()[0])


def noop_hook(_: Any, bucket: GradBucket) -> Future:
    """Return the future of the rank's own gradients: nothing is sent, which shows what communication costs."""
    future = Future()
    future.set_result(bucket.buffer())
    return future


def _compressed(tensor: Tensor, group: ProcessGroup) -> Tensor:
    half: Tensor = tensor.half()  # type: ignore[attr-defined]
    return half.div_(group.size())  # type: ignore[attr-defined,no-any-return]


def fp16_compress_hook(process_group: Any, bucket: GradBucket) -> Future:
    """Return the future of the mean over all ranks, of gradients that are rounded to float16 before."""
    group = _group(process_group)
    buffer = bucket.buffer()
    work = all_reduce(_compressed(buffer, group), group=group, async_op=True)
    return _begun(work).then(lambda f: buffer.copy_(f.value()[0]))  # type: ignore[attr-defined]


def bf16_compress_hook(process_group: Any, bucket: GradBucket) -> Future:
    """Return the future of the mean over all ranks, of gradients that are rounded to bfloat16 before."""
    group = _group(process_group)
    buffer = bucket.buffer()
    rounded = buffer.bfloat16().div_(group.size())  # type: ignore[attr-defined]
    work = all_reduce(rounded, group=group, async_op=True)
    return _begun(work).then(lambda f: buffer.copy_(f.value()[0]))  # type: ignore[attr-defined]


def bf16_compress_wrapper(hook: Hook) -> Hook:
    """Return a hook that hands ``hook`` gradients in bfloat16, and turns what comes of it back."""
    return _wrapper(hook, "bfloat16")


def fp16_compress_wrapper(hook: Hook) -> Hook:
    """Return a hook that hands ``hook`` gradients in float16, and turns what comes of it back."""
    return _wrapper(hook, "half")


def _wrapper(hook: Hook, to: str) -> Hook:
    def compress_wrapper_hook(hook_state: Any, bucket: GradBucket) -> Future:
        buffer = bucket.buffer()
        bucket.set_buffer(getattr(buffer, to)())

        def back(future: Future) -> Tensor:
            value = future.value()
            return buffer.copy_(value[0] if isinstance(value, (list, tuple)) else value)  # type: ignore[attr-defined,no-any-return]

        return hook(hook_state, bucket).then(back)

    return compress_wrapper_hook
