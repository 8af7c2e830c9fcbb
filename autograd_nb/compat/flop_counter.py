"""Counts of floating point operations, as ``torch.utils.flop_counter`` gives them: of products of matrices and of convolutions, forward and backward.

Each product counts two operations a term; what else an op does counts nothing, as in PyTorch. Counted are the ops that the graph is
made of: `linear` with a bias is one ``aten.addmm``, `matmul` one ``aten.mm`` or ``aten.bmm``. As PyTorch's kernel of the CPU for
`scaled_dot_product_attention` of four dims does, ours counts nothing. Layers of `RNN`, `GRU` and `LSTM` are one kernel here, and
count nothing either; programs of `compile` do not run as ops, and are not counted.

Source: https://github.com/pytorch/pytorch/blob/main/torch/utils/flop_counter.py (the names)
"""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from math import prod
from typing import Any

from .. import launch
from ..errors import warn_user
from ..ops.core.structured import Structured
from ..ops.nn.conv import _conv, _conv_by_input, _conv_by_weight
from ..ops.nn.recurrent import _recurrent
from ..overriding import Overrides
from ..tensor import Tensor
from ..utils.module_tracker import ModuleTracker
from .operators import OpOverloadPacket, namespace

__all__ = ["FlopCounterMode", "flop_registry", "register_flop_formula"]

Shape = Sequence[int]
_OVERRIDES = Overrides()
_local = threading.local()
_aten = namespace("aten")


def mm_flop(a_shape: Shape, b_shape: Shape, *args: Any, out_shape: Any = None, **kwargs: Any) -> int:
    """Return the operations of the product of two matrices."""
    return int(a_shape[0] * b_shape[1] * 2 * a_shape[1])


def addmm_flop(self_shape: Shape, a_shape: Shape, b_shape: Shape, out_shape: Any = None, **kwargs: Any) -> int:
    """Return the operations of a product of two matrices that is added to something."""
    return mm_flop(a_shape, b_shape)


def bmm_flop(a_shape: Shape, b_shape: Shape, out_shape: Any = None, **kwargs: Any) -> int:
    """Return the operations of products of matrices."""
    return int(a_shape[0]) * mm_flop(a_shape[1:], b_shape[1:])


def conv_flop_count(x_shape: Shape, w_shape: Shape, out_shape: Shape, transposed: bool = False) -> int:
    """Return the operations of a convolution: the filter meets every place of the output, or of the input where it is transposed."""
    return prod((x_shape if transposed else out_shape)[2:]) * prod(w_shape) * x_shape[0] * 2


def conv_flop(
    x_shape: Shape, w_shape: Shape, _bias: Any, _stride: Any, _padding: Any, _dilation: Any, transposed: bool, *args: Any, out_shape: Any = None,
    **kwargs: Any,
) -> int:  # fmt: skip
    """Return the operations of a convolution."""
    return conv_flop_count(x_shape, w_shape, out_shape, transposed)


def _turned(shape: Shape) -> Shape:
    return [shape[1], shape[0], *shape[2:]]


def conv_backward_flop(
    grad_out_shape: Shape, x_shape: Shape, w_shape: Shape, _bias: Any, _stride: Any, _padding: Any, _dilation: Any, transposed: bool,
    _output_padding: Any, _groups: Any, output_mask: Sequence[bool], out_shape: Any, **kwargs: Any,
) -> int:  # fmt: skip
    """Return the operations of a convolution's gradients, of the input and of the weight as ``output_mask`` says."""
    count = 0
    if output_mask[0]:
        count += conv_flop_count(grad_out_shape, w_shape, out_shape[0], not transposed)
    if output_mask[1]:
        x, filters = (grad_out_shape, x_shape) if transposed else (x_shape, grad_out_shape)
        count += conv_flop_count(_turned(x), _turned(filters), _turned(out_shape[1]))
    return count


#: op -> its formula, of the operands' shapes
flop_registry: dict[Any, Callable[..., int]] = {
    _aten.mm: mm_flop, _aten.addmm: addmm_flop, _aten.bmm: bmm_flop, _aten.convolution: conv_flop, _aten.convolution_backward: conv_backward_flop,
}  # fmt: skip


def register_flop_formula(targets: Any, get_raw: bool = False) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a decorator, as PyTorch's; here it raises: RuntimeError for what is counted already (`FlopCounterMode` takes a
    ``custom_mapping``), NotImplementedError for other ops, whose calls are not seen.
    """

    def register(formula: Callable[..., Any]) -> Callable[..., Any]:
        for target in targets if isinstance(targets, (list, tuple)) else [targets]:
            if not isinstance(target, OpOverloadPacket):
                raise ValueError(f"register_flop_formula(targets): expected each target to be OpOverloadPacket, got {target} of type {type(target)}")
            if target in flop_registry:
                raise RuntimeError(f"duplicate registrations for {target}")
            raise NotImplementedError(f"register_flop_formula(): {target} is not counted here; mm, addmm, bmm and convolution are")
        return formula

    return register


def _products(a: Tensor, b: Tensor, out: Tensor) -> tuple[Shape, Shape]:
    """Return the shapes of the factors of a product (of matrices or of batches of them) as they are multiplied, which of one kind lie turned."""
    *batch, m, n = out.shape
    of_all = prod(batch)
    k = (a.numel() // (m * of_all) if m * of_all else b.numel() // (n * of_all)) if (m or n) and of_all else 0
    return [*batch, m, k], [*batch, k, n]


class _Launching:
    """An observer that only lets kernels run: calls whose like was seen come as ops while launches are observed."""

    gives_way = True

    def __call__(self, call: Any, args: tuple[Any, ...]) -> None:
        call.entry(*args)


class _Counting:
    """The counters of one thread that are open, and the gradients of convolutions that are being computed."""

    def __init__(self) -> None:
        self.open: list[FlopCounterMode] = []
        self.gradients: list[dict[str, Any]] = []

    def count(self, op: Any, args: tuple[Any, ...], out: Any) -> None:
        for counter in self.open:
            counter._count(op, args, out)


def _counting() -> _Counting | None:
    found: _Counting | None = getattr(_local, "counting", None)
    return found if found is not None and found.open else None


_MATRICES = {"MmBackward0": _aten.mm, "BmmBackward0": _aten.bmm, "AddmmBackward0": _aten.addmm}
_CONVOLUTIONS = (_conv, _conv_by_input, _conv_by_weight)


@_OVERRIDES.at(Structured, "__call__")
def _called(inner: Callable[..., Any]) -> Callable[..., Any]:
    def call(self: Structured, *args: Any) -> Any:
        out = inner(self, *args)
        counting = _counting()
        if counting is None:
            return out
        if self.node_name in _MATRICES:
            a, b = _products(args[0], args[1], out)
            bias = (args[2].shape,) if self.node_name == "AddmmBackward0" else ()
            counting.count(_MATRICES[self.node_name], (*bias, a, b), out)
        elif self in _CONVOLUTIONS:
            if counting.gradients:
                counting.gradients[-1][self.name] = (args[0].shape, args[1].shape, out)
            else:
                counting.count(_aten.convolution, (args[0].shape, args[1].shape, None, 1, 0, 1, self is _conv_by_input), out)
        return out

    return call


@_OVERRIDES.at(Structured, "gradients")
def _differentiated(inner: Callable[..., Any]) -> Callable[..., Any]:
    def gradients(self: Structured, node: Any, g: Any) -> Any:
        counting = _counting()
        if counting is None or self not in (_conv, _conv_by_input, _recurrent):
            return inner(self, node, g)
        if self is _recurrent:
            counting.open, opened = [], counting.open
            try:
                return inner(self, node, g)
            finally:
                counting.open = opened
        found: dict[str, Any] = {}
        counting.gradients.append(found)
        try:
            made = inner(self, node, g)
        finally:
            counting.gradients.pop()
        transposed = self is _conv_by_input
        by_weight = found.get(_conv_by_weight.name)
        by_input = found.get((_conv if transposed else _conv_by_input).name)
        if by_weight is not None:
            x, w = by_weight[0 if transposed else 1], by_weight[2].shape
        elif by_input is not None:
            x, w = by_input[2].shape, by_input[1]
        else:  # of the bias alone
            return made
        mask = (by_input is not None, by_weight is not None, False)
        counting.count(_aten.convolution_backward, (g.shape, x, w, None, 1, 0, 1, transposed, 0, 1, mask), (x, w, None))
        return made

    return gradients


class FlopCounterMode:
    """A context that counts floating point operations, those of each module and of all.

    Args:
        mods: not needed. depth: of the table that is printed at the end if ``display``, None for all modules. custom_mapping: op
            (``torch.ops.aten.mm``) -> a function of its operands' shapes and ``out_shape`` that counts in the place of ours.

    >>> from autograd_nb.utils.flop_counter import FlopCounterMode
    >>> with FlopCounterMode(display=False) as counter:
    ...     loss = torch.nn.Linear(4, 5)(torch.ones(3, 4)).sum()
    >>> counter.get_total_flops()
    120
    """

    flop_counts: dict[str, dict[Any, int]]

    def __init__(self, mods: Any = None, depth: int | None = 2, display: bool = True, custom_mapping: dict[Any, Any] | None = None) -> None:
        if mods is not None:
            warn_user("mods argument is not needed anymore, you can stop passing it")
        self.flop_counts = defaultdict(lambda: defaultdict(int))
        self.depth: int | None = depth
        self.display: bool = display
        self.flop_registry: dict[Any, Callable[..., int]] = {**flop_registry, **(custom_mapping or {})}
        self.mod_tracker: ModuleTracker = ModuleTracker()

    def get_total_flops(self) -> int:
        """Return the operations of all modules together."""
        return sum(self.flop_counts["Global"].values())

    def get_flop_counts(self) -> dict[str, dict[Any, int]]:
        """Return module's name -> op -> operations; "Global" is all."""
        return {name: dict(counts) for name, counts in self.flop_counts.items()}

    def get_table(self, depth: int | None = None) -> str:
        """Return a table of modules down to ``depth``."""
        depth = self.depth if depth is None else depth
        total, rows, whole = self.get_total_flops(), [], False
        scale = max(0, min(len(_SUFFIXES) - 1, (len(str(total)) - 2) // 3))

        def row(text: str, count: int) -> tuple[str, str, str]:
            return text, f"{count / 1000**scale:.3f}{_SUFFIXES[scale]}" if scale else str(count), f"{count / total:.2%}" if total else "0%"

        def of_module(name: str, level: int) -> list[tuple[str, str, str]]:
            counts = self.flop_counts[name]
            pad = " " * level
            return [row(pad + name, sum(counts.values())), *(row(f"{pad} - {op}", count) for op, count in counts.items())]

        for name in sorted(self.flop_counts.keys() - {"Global"}):
            level = name.count(".") + 1
            if depth is None or level <= depth:
                whole = whole or sum(self.flop_counts[name].values()) >= total
                rows += of_module(name, level - 1)
        if "Global" in self.flop_counts and not whole:
            rows = [*of_module("Global", 0), *((" " + text, count, share) for text, count, share in rows)]
        return _table([("Module", "FLOP", "% Total"), *(rows or [("Global", "0", "0%")])])

    def _count(self, op: Any, args: tuple[Any, ...], out: Any) -> None:
        formula = self.flop_registry.get(op)
        if formula is not None:
            count = formula(*args, out_shape=out.shape if isinstance(out, Tensor) else out)
            for name in self.mod_tracker.parents:
                self.flop_counts[name][op] += count

    def __enter__(self) -> FlopCounterMode:
        self.flop_counts.clear()
        if not hasattr(_local, "counting"):
            _local.counting = _Counting()
        self._contexts = ExitStack()
        self._contexts.enter_context(_OVERRIDES.active())
        if launch.observer() is None:
            self._contexts.enter_context(launch.observe(_Launching()))
        self._contexts.enter_context(self.mod_tracker)
        _local.counting.open.append(self)
        return self

    def __exit__(self, *error: Any) -> None:
        _local.counting.open.remove(self)
        self._contexts.close()
        if self.display:
            print(self.get_table(self.depth))


_SUFFIXES = ("", "K", "M", "B", "T")


def _table(rows: Sequence[Any]) -> str:
    """Return rows of three columns, the first to the left, with a rule below the head."""
    widths = [max(len(r[i]) for r in rows) for i in range(3)]
    lines = ["  ".join((r[0].ljust(widths[0]), r[1].rjust(widths[1]), r[2].rjust(widths[2]))) for r in rows]
    return "\n".join([lines[0], "  ".join("-" * w for w in widths), *lines[1:]])
