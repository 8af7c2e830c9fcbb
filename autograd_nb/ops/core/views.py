"""Views by recipe: what a view of a layout looks like is worked out once for each combination of arguments, and then looked up.

A recipe is (layout, slice of the memory or (its dtype, slice) or None, node's class, recording, values): the geometry of a view, and what its node is
given where it is recorded. Structured view ops keep theirs by their arguments in normal form; around them `memoized_view` keeps them by
the arguments as users write them, so that a repeated ``x.view(2, -1)`` is one lookup and a new Tensor.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from inspect import Signature, signature
from typing import Any

import numpy as np

from ... import launch
from ...graph import modes
from ...graph.modes import state
from ...graph.node import Output
from ...shapes import Layout, layout_of
from ...tensor import Tensor, blank, make, offset_in, refresh
from .call_path import shortcut, write_node, written_lines
from .foreign import asked, foreign_among
from .memo import Memo
from .recording import has_no_history
from .registry import numpy_names, own_names


def look(x: Tensor, recipe: tuple[Any, ...]) -> Any:
    """Return the view of ``x`` that a recipe for its layout tells of; the user's frame is two above, or further up."""
    layout, cut, node_class, recording, values = recipe
    if layout.__class__ is tuple:
        return _look_at_several(x, recipe)
    t = blank()
    t._data = x._data if cut is None else x._data[cut] if cut.__class__ is slice else x._data[cut[1]].view(cut[0])
    t._layout = layout
    t._version_ = version = x._version_
    t._rg = False
    t._edge = t._grad = t._leaf_hook_set = None
    base = x._view
    if state.grad:
        if base is None:
            t._view, t._view_kind = x, ""
        else:
            t._view, t._view_kind = base, x._view_kind
            refresh(x)
        t._seen = version[0]
        if x._rg and recording is not None and (version[0] >= 0 or not has_no_history(x)):
            t._edge = write_node(x, node_class, recording, values, layout, 3)
            t._rg = True
    else:
        untracked = "inference" if modes.inference_used and state.inference else "no_grad"
        if base is None:
            t._view, t._view_kind = x, untracked
        else:
            t._view, t._view_kind = base, x._view_kind or untracked
        t._seen = version[0]
    return t


#: the recipe of calls that return their operand
_ITSELF: tuple[Any, ...] = ((), None, None, None, None)


def _look_at_several(x: Tensor, recipe: tuple[Any, ...]) -> Any:
    lays, cuts, node_class, recording, values = recipe
    if cuts is None:  # each has a recipe of its own
        return tuple([look(x, one) for one in lays]) if lays else x
    node = None
    if x._view is not None:
        refresh(x)
    if x._rg and recording is not None and state.grad and not has_no_history(x):
        node = write_node(x, node_class, recording, values, lays, 4)
    base = x if x._view is None else x._view
    data, version = x._data, x._version_
    kind = f"multi:{node_class.__name__}" if state.grad else "inference" if state.inference else "no_grad"
    seen = version[0]
    out, new = [], object.__new__
    for layout, cut in zip(lays, cuts):  # noqa: B905  (strict costs time)
        t = blank()
        t._data = data if cut is None else data[cut]
        t._layout = layout
        t._version_ = version
        t._grad = t._leaf_hook_set = None
        t._view, t._view_kind, t._seen = base, kind, seen
        if node is None:
            t._rg, t._edge = False, None
        else:
            t._rg = True
            t._edge = edge = new(Output)
            edge.node, edge.index = node, len(out)
        out.append(t)
    return tuple(out)


def geometry(function: Callable[..., tuple[Any, ...]]) -> Callable[..., Tensor]:
    """Decorator: the forward function of a view op whose shape, strides and offset ``function(layout, \\*args)`` tells.

    Such an op runs nothing for a layout that it has not seen: what it says is all that its recipe takes (see `recipe_from`).
    """

    def forward(x: Any, *args: Any) -> Tensor:
        layout = x._layout
        shape, strides, offset = function(layout, *args)
        return make(x._data[offset:] if offset else x._data, layout_of(shape, strides, layout.dtype), x._version_)

    forward.__name__ = function.__name__
    first, *rest = signature(function).parameters.values()
    forward.__signature__ = Signature([first.replace(name="x"), *rest])  # type: ignore[attr-defined]
    forward.geometry = function  # type: ignore[attr-defined]
    return forward


def recipe_from(op: Any, layout: Layout, args: Sequence[Any]) -> tuple[Any, ...]:
    """Return how the view op looks at an operand of this layout, by its geometry."""
    shape, strides, offset = op.geometry(layout, *args)
    recording = op.recording(1, 1)
    values = recording.constants(layout, args)
    return (layout_of(shape, strides, layout.dtype), slice(offset, None) if offset else None, op.node, recording, values)


def recipe_of(op: Any, args: tuple[Any, ...], out: Any) -> tuple[Any, ...] | None:
    """Return how ``op(*args)`` made the view ``out`` (or several), or None where the layout alone does not tell."""
    x = args[0]
    several = isinstance(out, (tuple, list))
    views = tuple(out) if several else (out,)
    layout = x._layout
    if not layout.size or (several and any(v._layout.dtype is not layout.dtype for v in views)):
        return None
    recording, values = None, {}
    if op.rules:
        recording = op.recording(1, 1)
        if recording.out or op.every or any(i == 0 for _, i, _ in recording.saved) or any(i for _, i in recording.shapes):
            return None
        values = {p: args[i] for p, i, _ in recording.saved}
        values.update((name, layout.shape) for name, _ in recording.shapes)
    offsets = [offset_in(v, x) for v in views]
    if min(offsets, default=0) < 0:  # it begins before x in the storage
        return None
    if several:
        cuts = tuple([slice(n, None) if n else None for n in offsets])
        return (tuple([v._layout for v in views]), cuts, op.several_node, recording, values)
    cut: Any = slice(offsets[0], None) if offsets[0] else None
    if out._data.dtype != x._data.dtype:
        if offsets[0] or layout.extent * x._data.itemsize % out._data.itemsize:
            return None
        cut = out._data.dtype, slice(layout.extent)  # (what lies behind may not be a whole number of elements)
    return (out._layout, cut, op.node, recording, values)


#: asks whether ``x`` is seen through anything but all of its memory
_WHOLE_LINES = [
    "if x._layout.__class__ is not _Layout or (",
    "    (_b := x._data.base) is not None and (_b.__class__ is not _ndarray or _b.base is not None or _b.nbytes != x._data.nbytes)",
    "):",
]

_ABSENT: Any = object()  #: stands for an operand that is not given, or by its name


def memoized_view(function: Callable[..., Any], whole: bool = False) -> Callable[..., Any]:
    """Decorator of a public function that reads its arguments and returns the (view op, \\*arguments) to call on the first, or a list of such.

    It may return a result too. Recipes are forgotten while launches are observed, when ops are to be seen being called.

    whole: it looks at the operand's memory besides its layout; recipes hold for what begins where its memory does, which it has for itself.
    """
    slow, first = numpy_names(function, name=function.__name__), function.__code__.co_varnames[0]
    memo = Memo()

    def miss(key: Any, x: Any, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
        if options:
            args = args[: len(args) - len(options)]  # (the text has put them behind)
        try:
            found = slow(**own_names(function, options)) if x is _ABSENT else slow(x, *args, **options)
        except (TypeError, AttributeError):
            given = args if x is _ABSENT else (x, *args)
            if not foreign_among((*given, *options.values())):
                raise
            return asked.redefined(call, given, options)
        if x is _ABSENT:
            x = own_names(function, options).get(first)
        if not isinstance(x, Tensor):  # it was asked
            return found
        if found.__class__ is tuple and found and not isinstance(found[0], Tensor):
            out, recipe = view_of(x, *found)
        elif found.__class__ is list:
            out, recipes = zip(*[view_of(x, *one) for one in found], strict=True)
            recipe = None if None in recipes else (recipes, None, None, None, None)
        else:
            out, recipe = found, _ITSELF if found is x else None
        if key is not None and recipe is not None and not launch._observing:
            memo.keep((key, x._layout, len(x._data)) if whole else (key, x._layout), recipe)
        return out

    owns = [*_WHOLE_LINES, "    raise TypeError"] if whole else []
    before = ["if options:", "    args = (*args, *options.values())", *written_lines("args"), "if options:", "    key = (key, *options)", *owns]
    call = shortcut(
        "x=_absent, /, *args, **options", "key, x._layout, len(x._data)" if whole else "key, x._layout", ["return _look(x, plan)"],
        ["return _miss(key, x, args, options)"], memo=memo, before=before, function=function,
        _look=look, _miss=miss, _absent=_ABSENT, _Layout=Layout, _ndarray=np.ndarray,
    )  # fmt: skip
    if slow is not function:
        slow.public = call  # type: ignore[attr-defined]
    return call


def view_of(x: Tensor, op: Any, *arguments: Any) -> tuple[Any, tuple[Any, ...] | None]:
    """Return the view that the op makes, and the recipe for layouts like this one, or None where it has none."""
    if op.geometry is not None and x._layout.__class__ is Layout and not launch._observing:
        recipe = recipe_from(op, x._layout, arguments)
        return look(x, recipe), recipe
    out = op(x, *arguments)
    return tuple(out) if out.__class__ is list else out, known(op, x._layout, arguments)


def known(op: Any, layout: Layout, arguments: Iterable[Any]) -> tuple[Any, ...] | None:
    """Return the recipe by which ``op`` looks at such a layout, if it has one."""
    try:
        return op.recipes.plans.get((layout, *arguments))  # type: ignore[no-any-return]
    except TypeError:
        return None
