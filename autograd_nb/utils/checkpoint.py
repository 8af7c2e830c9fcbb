"""Checkpointing: keep the graph of a part of the model without its arrays, and compute them again when backward needs them.

Source: https://docs.pytorch.org/docs/stable/checkpoint.html
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any
from weakref import WeakKeyDictionary

from .. import launch, locks
from ..autograd.function import Function
from ..autograd.pytree import tree_flatten
from ..autograd.saved import Packed, arrays_of, unhooked
from ..errors import keywords_of, unexpected, warn_user
from ..graph import casting
from ..graph.engine import innermost_pass
from ..graph.modes import enable_grad, no_grad, state
from ..graph.node import Node, Output, sequence
from ..ops.core.recording import refuse_inference
from ..ops.random.generator import default_generator
from ..tensor import Tensor, edge

__all__ = [
    "CheckpointError",
    "checkpoint",
    "checkpoint_sequential",
    "set_checkpoint_debug_enabled",
    "set_checkpoint_early_stop",
]


class CheckpointError(RuntimeError):
    """The second computation did not do what the first one did."""


def _nodes(result: Any, after: int) -> list[Node]:
    """Return the nodes behind the tensors of ``result`` that were recorded after a moment, oldest first."""
    seen: set[Any] = set()
    stack = [edge(t) for t in tree_flatten(result)[0] if isinstance(t, Tensor)]
    while stack:
        e = stack.pop()
        if e is None or e.is_leaf_edge:
            continue
        node = e.node if e.__class__ is Output else e
        if node in seen or node.seq <= after:
            continue
        seen.add(node)
        stack.extend(node.edges)
    return sorted(seen)


def _that_saved(nodes: list[Node]) -> list[Node]:
    """Return those that have saved something; of others some are made when they are asked for, as those of views are, in one of two computations."""
    return [node for node in nodes if node.saved]


def _described(node: Any) -> tuple[Any, ...]:
    saved = node.saved
    if isinstance(saved, (Packed, _Dropped)):  # reading them would bring them back
        return node.name(), (len(saved),)
    return node.name(), tuple((tuple(a[0]), a[1]) for a in node.saved_arrays()) if saved else ()


class _Block:
    """One checkpointed call: how to run it again, and what its nodes had saved, for as long as they wait for it."""

    def __init__(self, run: Callable[[], Any], check: str, debug: bool, early: bool, required: dict[Any, bool] | None):
        self.run, self.check, self.debug = run, check, debug
        self.early = early  #: whether what the second computation does beyond what is wanted of it is not compared
        self.required = required  #: leaves, with whether they required grad the first time, which is looked at again where it is None
        self.expected: list[tuple[Any, ...]] = []
        self.arrays: WeakKeyDictionary[Any, dict[int, Any]] = WeakKeyDictionary()  #: by what reads them (see `_reader`)
        self.lock = locks.lock()

    def drop(self, nodes: list[Node], given: list[list[int]], stamp: int) -> None:
        """Forget what the nodes saved. They wait for the arguments instead, whose version counters are ``given``, with this sum: of others
        the function could not be run again."""
        if self.required is not None:
            self.required.update((e, True) for node in nodes for e in node.edges if e is not None and e.is_leaf_edge)
        nodes = _that_saved(nodes)
        self.expected = [_described(n) for n in nodes]
        for k, node in enumerate(nodes):
            saved = node.saved
            if saved:
                if isinstance(saved, Packed):
                    continue  # hooks of the user's take care of it
                if not any(arrays_of(node)):
                    continue  # numbers alone, for which nothing has to be computed again
                # of other tensors the second computation reads what they hold by then
                node.versions = (*[[0, 0] for _ in saved], *given)
                node.stamp = stamp
                node.saved = _Dropped(self, k, len(saved))

    def saved(self, k: int, reader: Any) -> Any:
        """Return what the k-th node had saved, handed out once to each reader."""
        if reader is None:
            return self._again()[k]
        with self.lock:
            arrays = self.arrays.get(reader)
            if arrays is None or k not in arrays:
                arrays = self.arrays[reader] = self._again()
            return arrays.pop(k)

    def _again(self) -> dict[int, Any]:
        after = sequence()
        if self.required and not any(t.requires_grad for t in self.required):
            raise RuntimeError(
                "none of output has requires_grad=True, this checkpoint() is not necessary (no argument requires grad any more, of which one did)"
            )
        with unhooked(), _requiring(self.required or {}):  # (hooks of where the pass runs are not meant for it)
            nodes = _that_saved(_nodes(self.run(), after))
        if self.early:  # behind the last node that waits for something
            wanted = max((k for k, (_, saved) in enumerate(self.expected, 1) if saved), default=0)
            self.expected, nodes = self.expected[:wanted], nodes[:wanted]
        found = [_described(n) for n in nodes]
        count, expected = sum(len(f[1]) for f in found), sum(len(f[1]) for f in self.expected)
        if count != expected or len(found) != len(self.expected):
            raise CheckpointError(
                "torch.utils.checkpoint: A different number of tensors was saved during the original forward and recomputation.\n"
                f"Number of tensors saved during forward: {expected}\nNumber of tensors saved during recomputation: {count}.\n"
                "The function must do the same each time: no counters, no branches on what changes between the two calls."
            )
        for k, (a, b) in enumerate(zip(self.expected, found, strict=True)):
            if a[0] != b[0] or (self.check == "default" and a != b):
                raise CheckpointError(
                    "torch.utils.checkpoint: Recomputed values for the following tensors have different metadata than during the "
                    f"forward pass.\nnode {k}:\nsaved metadata: {a}\nrecomputed metadata: {b}"
                )
        return {k: node.saved for k, node in enumerate(nodes) if node.saved}


def _reader() -> Any:
    """Return what reads the items that a node has saved: a pass, or what observes a node that is run by itself; None where it is nothing of the sort."""
    return innermost_pass() or launch.observer()


class _Dropped(Sequence):
    """Stands for a node's saved items, which each pass that reads them computes again, from what tensors hold by then, and lets go at its end."""

    __slots__ = ("block", "items", "k", "n")

    def __init__(self, block: _Block, k: int, n: int):
        self.block, self.k, self.n = block, k, n
        self.items: WeakKeyDictionary[Any, Any] | None = None  #: by what reads them

    def __len__(self) -> int:
        return self.n

    def __getitem__(self, i: Any) -> Any:
        return self._found()[i]

    def __iter__(self) -> Iterator[Any]:
        return iter(self._found())

    def _found(self) -> Any:
        reader = _reader()
        if reader is None:
            return self.block.saved(self.k, None)
        if self.items is None:
            self.items = WeakKeyDictionary()
        found = self.items.get(reader)
        if found is None:
            found = self.items[reader] = self.block.saved(self.k, reader)
        return found


@contextmanager
def _requiring(required: dict[Any, bool]) -> Iterator[None]:
    """Let leaves require grad or not as they did once."""
    changed = [t for t, before in required.items() if t._edge is None and t.requires_grad is not before]
    for t in changed:
        t.requires_grad_(not t.requires_grad)
    try:
        yield
    finally:
        for t in changed:
            t.requires_grad_(not t.requires_grad)


@contextmanager
def _generator_at(place: tuple[int, int] | None) -> Iterator[None]:
    """Set the default generator to where it stood at ``place``, and afterwards to where it stands now."""
    if place is None:
        yield
        return
    now = default_generator._place
    default_generator._place = place
    try:
        yield
    finally:
        default_generator._place = now


def _no_contexts() -> tuple[Any, Any]:
    return nullcontext(), nullcontext()


_debug: list[bool | None] = [None]


@contextmanager
def set_checkpoint_debug_enabled(enabled: bool | None) -> Iterator[None]:
    """Accepted for PyTorch's sake: errors name the op and its metadata without it."""
    before, _debug[0] = _debug[0], enabled
    try:
        yield
    finally:
        _debug[0] = before


_early: list[bool | None] = [None]


@contextmanager
def set_checkpoint_early_stop(enable: bool) -> Iterator[None]:
    """Let checkpoints made within compare second computations to their end (False), or as far as they are needed; over what ``early_stop`` says.

    Unlike PyTorch's, they always run to their end.

    >>> with torch.utils.checkpoint.set_checkpoint_early_stop(False):
    ...     y = torch.utils.checkpoint.checkpoint(torch.exp, torch.zeros(1, requires_grad=True), use_reentrant=False)
    >>> y.detach()
    tensor([1.])
    """
    before, _early[0] = _early[0], enable
    try:
        yield
    finally:
        _early[0] = before


def _reentrant(name: str, given: bool | None) -> bool:
    """Return what was said of ``use_reentrant``, or PyTorch's old default with a warning."""
    if given is None:
        text = f"{name}: the use_reentrant parameter should be passed explicitly. use_reentrant=False is recommended."
        warn_user(text, UserWarning)
    return given is None or given


def checkpoint(
    function: Callable[..., Any], *args: Any, use_reentrant: bool | None = None,
    context_fn: Callable[[], tuple[Any, Any]] = _no_contexts, determinism_check: str = "default", debug: bool = False,
    early_stop: bool = True, **kwargs: Any,
) -> Any:  # fmt: skip
    """Return ``function(*args, **kwargs)``, whose intermediate arrays are not kept but computed again during backward.

    preserve_rng_state (default True): the second computation draws the same random numbers. context_fn: gives two contexts, for
    the first and for the second computation. determinism_check: "default" compares the shapes and dtypes of the two, "none" does
    not. early_stop: what the second one does behind what is wanted of it is not compared. use_reentrant: True gives no gradients
    unless an argument requires them, as PyTorch's older form; what was frozen or thawed since is then taken as it was.

    Errors: CheckpointError where the second computation differs; ValueError for unknown arguments with ``use_reentrant=True``.
    Source: https://docs.pytorch.org/docs/stable/checkpoint.html#torch.utils.checkpoint.checkpoint

    >>> x = torch.tensor(2.0, requires_grad=True)
    >>> torch.utils.checkpoint.checkpoint(lambda x: x * x, x, use_reentrant=False).backward()
    >>> x.grad
    tensor(4.)
    """
    use_reentrant = _reentrant("torch.utils.checkpoint", use_reentrant)
    preserve = kwargs.pop("preserve_rng_state", True)
    if use_reentrant:
        if kwargs:
            raise ValueError(unexpected(kwargs, (*keywords_of(checkpoint), "preserve_rng_state")))
        if context_fn is not _no_contexts or debug is not False:
            raise ValueError("Passing `context_fn` or `debug` is only supported when use_reentrant=False.")
    if determinism_check not in ("default", "none"):
        raise ValueError(f"determinism_check should be one of ['default', 'none'], but got {determinism_check}")
    if not state.grad:
        return function(*args, **kwargs)
    if use_reentrant and not any(isinstance(a, Tensor) and a.requires_grad for a in args):
        warn_user("None of the inputs have requires_grad=True. Gradients will be None", UserWarning)
        with no_grad():
            return function(*args, **kwargs)
    first, second = context_fn()
    place = default_generator._place if preserve else None
    given = [a._version_ for a in args if isinstance(a, Tensor)]
    if any(v[0] < 0 for v in given):
        refuse_inference()  # (PyTorch keeps what it is given beside a tensor that requires grad)
    stamp = sum(v[0] for v in given)

    observed, cast = launch.observer() is not None, casting.surroundings()

    def run() -> Any:
        alike = launch.observe(launch.Alike()) if observed and launch.observer() is None else nullcontext()
        with _generator_at(place), enable_grad(), casting.as_it_was(cast), second, alike:
            return function(*args, **kwargs)

    after = sequence()
    with first, casting.afresh():
        result = function(*args, **kwargs)
    required: dict[Any, bool] | None = None
    if use_reentrant:  # which keeps its arguments once the function is done with them, and compares nothing
        stamp = sum(v[0] for v in given)
        required = {a: a.requires_grad for a in args if isinstance(a, Tensor)}
    early = not use_reentrant and (early_stop if _early[0] is None else _early[0])
    _Block(run, determinism_check, debug, early, required).drop(_nodes(result, after), given, stamp)
    return _of_nothing(result, args) if use_reentrant else result


class _Unneeded(Function):
    """Passes on what a reentrant checkpoint returned without a gradient, and says so when a backward pass comes to it."""

    @staticmethod
    def forward(ctx: Any, result: Tensor, argument: Tensor) -> Tensor:
        return result.detach()

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        raise RuntimeError("none of output has requires_grad=True, this checkpoint() is not necessary")


def _of_nothing(result: Any, args: tuple[Any, ...]) -> Any:
    """Return what a reentrant checkpoint returned; where none of it requires grad a backward pass is refused, as in PyTorch."""
    outputs = result if isinstance(result, tuple) else (result,)
    if any(isinstance(t, Tensor) and t.requires_grad for t in outputs):
        return result
    argument = next(a for a in args if isinstance(a, Tensor) and a.requires_grad)
    refusing = tuple(_Unneeded.apply(t, argument) if isinstance(t, Tensor) and t.is_floating_point() else t for t in outputs)
    return refusing if isinstance(result, tuple) else refusing[0]


def checkpoint_sequential(functions: Any, segments: int, input: Any, use_reentrant: bool | None = None, **kwargs: Any) -> Any:
    """Run a Sequential (or a list of functions) in ``segments`` parts, all but the last of them checkpointed.

    Source: https://docs.pytorch.org/docs/stable/checkpoint.html#torch.utils.checkpoint.checkpoint_sequential

    >>> layers = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.ReLU())
    >>> torch.utils.checkpoint.checkpoint_sequential(layers, 2, torch.ones(1, 2), use_reentrant=False).shape
    torch.Size([1, 3])
    """
    use_reentrant = _reentrant("torch.utils.checkpoint.checkpoint_sequential", use_reentrant)
    preserve = kwargs.pop("preserve_rng_state", True)
    if kwargs:
        raise ValueError(unexpected(kwargs, (*keywords_of(checkpoint_sequential), "preserve_rng_state")))
    steps = list(functions.children()) if hasattr(functions, "children") else list(functions)

    def part(start: int, end: int) -> Callable[..., Any]:
        def forward(x: Any) -> Any:
            for step in steps[start : end + 1]:
                x = step(x)
            return x

        return forward

    size = len(steps) // segments
    end = -1
    for start in range(0, size * (segments - 1), size):
        end = start + size - 1
        input = checkpoint(part(start, end), input, use_reentrant=use_reentrant, preserve_rng_state=preserve)
    return part(end + 1, len(steps) - 1)(input)
