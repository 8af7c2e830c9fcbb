"""Optimizers whose update of all parameters of a group is one kernel over lists of arrays.

An option is spelled once, in the signature of ``__init__``, which hands them all on: ``super().__init__(params, locals())``. Kernels name
their arguments: what is called as an option is that option of the group, what is called as a state is that tensor of a parameter's
state (see `Update`). So a class says which kernel serves a group, and how states begin that are not 0.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any, overload

import numpy as np

from .. import dtypes, launch, strides
from ..codegen import threads
from ..codegen.build import compilation
from ..graph.modes import enable_grad, no_grad
from ..launch import Kernel
from ..ops.core import foreseen
from ..ops.core.foreign import asked
from ..ops.core.memo import Memo
from ..ops.core.numbers import scalar_tensor
from ..ops.core.registry import OPS
from ..ops.creation.cast import dense, relaid
from ..overriding import whole
from ..shapes import Layout, layout_of
from ..tensor import Tensor
from .optimizer import Optimizer, R, check_flags, check_options, number, zeros_of
from .sparse import update_sparse


class Update(Kernel):
    """A kernel of `autograd_nb.kernels.optim` made by `updates.update`, whose arguments are found by their names.

    ``numbers``: the options that it takes; ``derived`` says those that are made of others, from the group. Of weight_decay and maximize an
    optimizer need not have the option. ``states``: what it changes of each parameter's state, ``counters``: the numbers among that.
    """

    __slots__ = ("counters", "derived", "names", "numbers", "states")
    derived: dict[str, Callable[[dict[str, Any]], Any]]
    counters: Any
    names: Any
    numbers: Any
    states: Any

    def __init__(self, name: str, **derived: Callable[[dict[str, Any]], Any]):
        super().__init__("optim", name)
        self.derived = derived

    def __getattr__(self, name: str) -> Any:
        if name not in Update.__slots__:
            raise AttributeError(name)
        kernel = compilation.written(self.module, self.name)  # the kernels are loaded with the first step
        self.numbers, self.states, self.counters = kernel.numbers, kernel.states, kernel.counters
        self.names = self.states + self.counters
        self.outputs = 1 + len(self.names)
        return getattr(self, name)

    def reader(self, options: Mapping[str, Any], number: Callable[[Any], Any] = number) -> Callable[..., tuple[Any, ...]]:
        """Return the function ``(group, …given)`` that finds the numbers in a group; ``options``: of the optimizer, with their defaults.

        ``number``: makes a number of an option.
        """
        given, found = [], []
        for n in self.numbers:
            if n in self.derived:
                found.append(f"derived[{n!r}](group)")
            elif n in ("beta1", "beta2"):
                found.append(f"number(group['betas'][{int(n[-1]) - 1}])")
            elif n in options:
                found.append(f"bool(group[{n!r}])" if isinstance(options[n], bool) else f"number(group[{n!r}])")
            elif n in ("weight_decay", "maximize"):
                found.append("0.0" if n == "weight_decay" else "False")
            else:  # which is known in a step only
                given.append(n)
                found.append(n)
        names = {"number": number, "derived": self.derived}
        return eval(f"lambda {', '.join(['group', *given])}: ({', '.join(found)},)", names)


class Stepping(Optimizer):
    """An optimizer that updates the parameters of one group after the other.

    ``options``: the names of the options and their defaults, as ``__init__`` has them. ``order``: the names in the order that a group has them
    in, as in PyTorch, where that is another one.
    """

    options: dict[str, Any] = {}
    order: tuple[str, ...] = ()

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        own = cls.__dict__.get("__init__")
        if own is not None:
            given = list(inspect.signature(own).parameters.values())[2:]
            cls.options = {**cls.options, **{p.name: p.default for p in given if p.default is not p.empty}}

    def __init__(self, params: Any, given: dict[str, Any]) -> None:
        """Keep ``given``: the options, or the ``locals()`` of a subclass's ``__init__``."""
        options = {name: value for name, value in given.items() if name not in ("self", "params", "__class__")}
        check_flags(options)
        self._check(options)
        super().__init__(params, {name: options[name] for name in (*self.order, *options) if name in options})
        if type(self).__module__.startswith(__package__ + "."):  # nobody else's class is looked up
            groups = [{**group, "params": group["params"][: launch.MOST]} for group in self.param_groups]
            foreseen.note("optimizer", type(self).__module__, type(self).__name__, groups)

    def _check(self, options: dict[str, Any]) -> None:
        check_options(options)

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        for group in self.param_groups:  # as older checkpoints have them
            for name, default in self.options.items():
                if name in self.defaults:
                    group.setdefault(name, default)
        for s in self.state.values():
            if s and "step" in s and not isinstance(s["step"], Tensor):
                s["step"] = scalar_tensor(float(s["step"]), dtypes.float32)

    @overload
    def step(self, closure: None = None) -> None: ...
    @overload
    def step(self, closure: Callable[[], R]) -> R: ...
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update every parameter that has a gradient.

        closure: computes the loss again and returns it, with recording on. Returns what it returned, else None.
        """
        loss = None
        if closure is not None:
            with enable_grad():
                loss = closure()
        launch.looked()
        for group in self.param_groups:
            params = [p for p in group["params"] if p._grad is not None]
            if params and group.get("capturable"):
                raise AssertionError(
                    f"If capturable=True, params and state_steps must be on supported devices, of which there are none here: make "
                    f"{type(self).__name__} with capturable=False"
                )
            if asked.sparse:
                params = update_sparse(self, group, params)
            if params:
                self._update(group, params)
        return loss

    def _update(self, group: dict[str, Any], params: list[Any]) -> None:
        """Update parameters of a group, which have gradients."""
        raise NotImplementedError


class Fused(Stepping):
    """An optimizer whose update is one kernel.

    A subclass says which one serves a group (`_kernel`), which states do not begin with 0 (`_first`), and which lie in memory as the gradient does.
    """

    like_gradients: tuple[str, ...] = ()

    def _kernel(self, group: dict[str, Any]) -> Update:
        raise NotImplementedError

    def _first(self, group: dict[str, Any]) -> dict[str, float]:
        """Return state -> the number that it is filled with at first."""
        return {}

    def _begin(self, p: Tensor, state: dict[str, Any], group: dict[str, Any]) -> None:
        """Give a parameter the state of its first update."""
        kernel, first = self._kernel(group), self._first(group)
        with no_grad():
            for name in sorted(kernel.counters, key=lambda name: name != "step"):
                state[name] = scalar_tensor(first.get(name, 0.0), dtypes.float32)
            for name in kernel.states:
                state[name] = zeros_of(p, first.get(name, 0.0), p._grad if name in self.like_gradients else None)

    def _update(self, group: dict[str, Any], params: list[Any]) -> None:
        kernel = self._kernel(group)
        states = [self.state[p] for p in params]
        for p, state in zip(params, states, strict=True):
            if kernel.states[0] not in state:
                self._begin(p, state, group)
        columns = [[s[name] for s in states] for name in kernel.names]
        self._run(kernel, group, [[p._grad for p in params], params, *columns])

    def _run(self, kernel: Update, group: dict[str, Any], columns: list[list[Any]], **given: Any) -> None:
        """Run an update; ``given``: the numbers that are known in the step only."""
        if group.get("differentiable"):
            from . import differentiable

            differentiable.update(kernel, self.options, group, given, columns)
        else:
            update(kernel, self._numbers(kernel)(group, **given), columns)

    def _numbers(self, kernel: Update) -> Callable[..., tuple[Any, ...]]:
        """Return the kernel's `Update.reader` for this class of optimizers."""
        key = (self.__class__, kernel)
        found = _readers.get(key)
        if found is None:
            found = _readers[key] = kernel.reader(self.options)
        return found


_readers: dict[tuple[type, Update], Callable[..., tuple[Any, ...]]] = {}


# ------------------------------------------------------------------------------------------- rows and columns
#
# A *row* is what one parameter's update works on: gradient, parameter, states and counters, in the kernel's order. A *column* is one
# of these of many parameters.

_PLAIN = (dtypes.float32, dtypes.float64)


def is_plain(row: Sequence[Layout], in_order: bool = False) -> bool:
    """Return whether a kernel can work on the memory of a row itself; the gradient may be laid out in another way.

    ``in_order``: one that asks which element stands where, and so reads the memory in C order.
    """
    p = row[1]
    if p.contiguous or in_order:
        return p.dtype in _PLAIN and all(layout.contiguous for layout in row[1:])
    return p.dtype in _PLAIN and strides.packed(p) and all(not layout.ndim or strides.obeys(layout, p) for layout in row[2:])


@whole
def through_copies(row: list[Tensor], work: Callable[[list[Tensor]], None]) -> None:
    """Do ``work(row)`` for parameters in other layouts, of half precision, and for complex ones."""
    p = row[1]
    if p.dtype.is_complex:  # both parts are parameters of their own
        with no_grad():
            parts = [OPS["view_as_real"].call(t.detach()) if t.dtype.is_complex else t for t in row]
        if is_plain([t._layout for t in parts]):
            work(parts)
        else:
            through_copies(parts, work)
        return
    with no_grad():
        d = dtypes.float32 if p.dtype.is_half else p.dtype
        copies = [t.detach().to(d if t.dtype.is_half else t.dtype).contiguous().clone() for t in row]
        work(copies)
        for target, value in zip(row[1:], copies[1:], strict=True):
            target.copy_(value)


class _Plan:
    """All that the layouts of a row's tensors say, for all rows of an update.

    ``launches``: (key of the kernel, rows, sizes of their parameters, which of the rows have a gradient laid out in another way than
    the parameter, work). ``odd``: rows that go through copies.
    """

    __slots__ = ("launches", "odd")

    def __init__(self, rows: list[tuple[Layout, ...]], counters: int):
        for g, p, *states in rows:  # the parameter's memory may have been replaced
            check_fit(g, p, [(layout, p.sizes) for layout in states[: len(states) - counters]])
        self.odd: list[int] = []
        alike: dict[tuple[Any, ...], list[int]] = {}
        for i, row in enumerate(rows):
            same = alike.setdefault(tuple([layout.dtype for layout in row]), []) if is_plain(row) else self.odd
            same.append(i)
        self.launches = []
        for key, everyone in alike.items():
            for k in range(0, len(everyone), launch.MOST):
                chosen = everyone[k : k + launch.MOST]
                sizes = [rows[i][1].size for i in chosen]
                scattered = [k for k, i in enumerate(chosen) if rows[i][0] is not rows[i][1]]
                self.launches.append((key, chosen, sizes, scattered, 4 * sum(sizes)))


def check_fit(g: Layout, p: Layout, states: Sequence[tuple[Layout, tuple[int, ...]]]) -> None:
    """Raise RuntimeError where a parameter has not the shape of its gradient, or one that this can be broadcast to, or states not theirs."""
    wrong = [layout for layout, shape in states if layout.sizes != shape]
    if wrong or len(g.sizes) > len(p.sizes) or any(n not in (1, m) for n, m in zip(g.sizes[::-1], p.sizes[::-1], strict=False)):
        what, sizes = ("state", wrong[0].sizes) if wrong else ("gradient", g.sizes)
        raise RuntimeError(
            f"The shape of a parameter, {tuple(p.sizes)}, must match that of its {what}, {tuple(sizes)}: give .data the shape that it had, or "
            "zero_grad() and make the optimizer anew"
        )


def spread(g: Tensor, p: Tensor) -> np.ndarray:
    """Return the memory of a gradient laid out as the parameter is, which has no gaps, and broadcast where it is smaller."""
    g = g.detach()
    g = g if g._layout.sizes == p._layout.sizes else g.expand(p._layout.shape)
    return dense(g) if p._layout.contiguous else relaid(g, layout_of(g.shape, p._layout.strides, g.dtype))._data


_plans = Memo()


@whole
def update(kernel: Update, numbers: tuple[Any, ...], columns: list[list[Tensor]]) -> None:
    """Run an update in the parameters' own memory. ``columns``: gradients, parameters, and what the kernel's names stand for."""
    layouts = (kernel, *[t._layout for column in columns for t in column])
    plan = _plans.plans.get(layouts)
    if plan is None:
        rows = list(zip(*[[t._layout for t in column] for column in columns], strict=True))
        plan = _plans.keep(layouts, _Plan(rows, len(kernel.counters)), 1 + len(layouts) // 8)
    for i in plan.odd:
        through_copies([column[i] for column in columns], lambda row: update(kernel, numbers, [[t] for t in row]))
    for key, rows, sizes, scattered, work in plan.launches:
        arrays = [[column[i]._data for i in rows] for column in columns]
        for k in scattered:
            arrays[0][k] = spread(columns[0][rows[k]], columns[1][rows[k]])
        if [a.size for a in arrays[1]] != sizes:  # other arrays may go on behind what the kernel asks of them
            arrays[1] = [a[:n] for a, n in zip(arrays[1], sizes, strict=True)]
        if threads.alone(work) or not _apart(arrays):
            kernel(key, *numbers, True, *arrays)
        else:
            counters = len(arrays) - len(kernel.counters)
            kernel.split(key, (*numbers, False, *arrays), _Cut(len(numbers), counters))
            if kernel.counters:  # once all pieces have read them
                none = [[a[:0] for a in column] for column in arrays[:counters]]
                kernel(key, *numbers, True, *none, *arrays[counters:])
        for i in rows:
            columns[1][i]._version_[0] += 1


def _apart(columns: list[list[np.ndarray]]) -> bool:
    """Return whether no parameter's memory is a part of another's, or another's gradient: else they are updated one after the other."""
    seen = sorted((launch.memory.address(a), a.nbytes) for column in columns[:2] for a in column)
    return all(at + n <= after for (at, n), (after, _) in pairwise(seen)) and all(
        len({*map(id, c)}) == len(c) for c in columns[2:]
    )


class _Cut:
    """The pieces of an update's arguments for several threads, none of which counts: nearly equal shares of all elements."""

    __slots__ = ("begin", "end")

    def __init__(self, begin: int, end: int):
        self.begin, self.end = begin, begin + 1 + end  # of the columns, behind numbers and ``counts``; counters are not cut

    def __call__(self, args: tuple[Any, ...]) -> list[tuple[Any, ...]]:
        begin, end = self.begin, self.end
        sizes = [a.size for a in args[begin + 2]]
        rooms = [-(-n // threads.ALIGN) * threads.ALIGN for n in sizes]
        found = []
        for first, last in threads.pieces(sum(rooms), sum(rooms) * (end - begin - 1), threads.ALIGN):
            at = 0
            chosen = []
            for k, (size, room) in enumerate(zip(sizes, rooms, strict=True)):
                low, high = max(first - at, 0), min(last - at, size)
                if low < high:
                    chosen.append((k, low, high))
                at += room
            cut = [[column[k][low:high] for k, low, high in chosen] for column in args[begin + 1 : end]]
            found.append((*args[: begin + 1], *cut, *[[column[k] for k, _, _ in chosen] for column in args[end:]]))
        return found
