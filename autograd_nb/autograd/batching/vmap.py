"""vmap: a function of one sample, run on a whole batch at once.

The function is called once, on tensors that look like one sample and hold them all (`batched`). Ops have rules for batches, by
family; an op without one runs on one sample after the other. Where something looks at the memory of a batch itself, or draws
random numbers, the whole function is run for one sample after the other: slower, with the same result.

Source: https://docs.pytorch.org/docs/stable/generated/torch.func.vmap.html
"""

from __future__ import annotations

import functools
from collections import defaultdict
from collections.abc import Callable
from contextlib import contextmanager
from typing import Any

from ...graph.modes import PerThread
from ...graph.transformed import transformed
from ...ops.core.registry import OPS
from ...ops.random.generator import Generator, default_generator
from ...overriding import whole
from ...tensor import Tensor
from ..interpreters import OVERRIDES, active, depth
from ..pytree import tree_flatten, tree_unflatten
from . import overrides as batch_overrides  # noqa: F401  (it exchanges functions of the ops)
from .batched import Batched, Level, Unbatched, batch, levels, with_zeros

__all__ = ["vmap"]

_MODES = ("error", "different", "same")


def _random_error() -> RuntimeError:
    return RuntimeError(
        "vmap: called random operation while in randomness error mode. Please either use the 'same' or 'different' randomness flags on "
        "vmap or perform the randomness operation out of vmap"
    )


class _Drawn(PerThread):
    """The generators that have drawn, and where they stood before, for each vmap that draws the same numbers for all samples."""

    def __init__(self) -> None:
        self.noted: list[dict[Generator, Any]] = []


_drawn = _Drawn()


@contextmanager
@whole
def _noting() -> Any:
    """Give the generators that draw within the block, and where they stood before they did."""
    places: dict[Generator, Any] = {}
    _drawn.noted.append(places)
    try:
        with active():
            yield places
    finally:
        _drawn.noted.pop()


@OVERRIDES.at(Generator, "_next")
def _next(inner: Callable[..., Any]) -> Callable[..., Any]:
    """Refuse random numbers inside a vmap, or have them drawn sample by sample."""

    def draw(self: Generator) -> tuple[int, int]:
        for level in reversed(levels.stack):
            if level.randomness == "error":
                raise _random_error()
            raise Unbatched(level.number)
        for places in _drawn.noted:
            places.setdefault(self, self._place)
        return inner(self)

    return draw


@contextmanager
@whole
def entered(size: int, randomness: str, mapped: list[Tensor]) -> Any:
    """Open a further level of vmap; what was written into the tensors that it maps is put back where it comes to nothing."""
    depth.now += 1
    level = Level(depth.now, size, randomness, mapped)
    levels.stack.append(level)
    try:
        with active():
            try:
                yield level
            except Unbatched as unbatched:
                if unbatched.level == level.number:
                    level.put_back()
                raise
    finally:
        levels.stack.pop()
        depth.now -= 1


def _name(func: Callable[..., Any]) -> str:
    return getattr(func, "__name__", None) or repr(func)


# ----------------------------------------------------------------------------------------- dims and structures


def _is_dims(value: Any) -> bool:
    return value is None or isinstance(value, int)


def _flatten(tree: Any) -> tuple[list[Any], Any]:
    return tree_flatten(tree)


def _spread(dims: Any, spec: Any) -> list[Any] | None:
    """Return ``dims``, given for subtrees, for each leaf; None where the structures do not fit."""
    if spec.type is None:
        return [dims] if _is_dims(dims) else None if isinstance(dims, (tuple, list, dict)) else [dims]
    if _is_dims(dims):
        return [dims] * spec.num_leaves
    children: list[Any]
    if isinstance(dims, dict):
        if not issubclass(spec.type, dict):
            return None
        keys = spec.context[1] if issubclass(spec.type, defaultdict) else spec.context
        if set(keys) != set(dims):
            return None
        children = [dims[k] for k in keys]
    elif isinstance(dims, (tuple, list)) and not issubclass(spec.type, dict):
        children = list(dims)
    else:
        return None
    if len(children) != len(spec.children_specs):
        return None
    out: list[Any] = []
    for d, child in zip(children, spec.children_specs, strict=True):
        found = _spread(d, child)
        if found is None:
            return None
        out.extend(found)
    return out


def _inputs(func: Callable[..., Any], in_dims: Any, args: tuple[Any, ...]) -> tuple[int, list[Any], list[Any], Any]:
    """Return (batch size, dims of the leaves, leaves, spec), all checked."""
    def name() -> str:
        return f"vmap({_name(func)}, in_dims={in_dims}, ...)(<inputs>)"

    if not isinstance(in_dims, (int, tuple)):
        raise ValueError(
            f"{name()}: expected `in_dims` to be int or a (potentially nested) tuple matching the structure of inputs, got: "
            f"{type(in_dims)}."
        )
    if not args:
        raise ValueError(
            f"vmap({_name(func)})(<inputs>): got no inputs. Maybe you forgot to add inputs, or you are trying to vmap over a "
            "function with no inputs. The latter is unsupported."
        )
    leaves, spec = _flatten(args)
    dims = _spread(in_dims, spec)
    if dims is None:
        raise ValueError(
            f"{name()}: in_dims is not compatible with the structure of `inputs`. in_dims has structure {_flatten(in_dims)[1]} but "
            f"inputs has structure {spec}."
        )
    sizes = []
    for i, (leaf, d) in enumerate(zip(leaves, dims, strict=True)):
        if not _is_dims(d):
            raise ValueError(f"{name()}: Got in_dim={d} for an input but in_dim must be either an integer dimension or None.")
        if d is None:
            continue
        if not isinstance(leaf, Tensor):
            raise ValueError(
                f"{name()}: Got in_dim={d} for an input but the input is of type {type(leaf)}. We cannot vmap over non-Tensor "
                "arguments, please use None as the respective in_dim"
            )
        if not -leaf.ndim <= d < leaf.ndim:
            raise ValueError(
                f"{name()}: Got in_dim={d} for some input, but that input is a Tensor of dimensionality {leaf.ndim} so expected "
                f"in_dim to satisfy -{leaf.ndim} <= in_dim < {leaf.ndim}."
            )
        dims[i] = d % leaf.ndim
        sizes.append(leaf.shape[dims[i]])
    if not sizes:
        raise ValueError("vmap: Expected at least one Tensor to vmap over")
    if len(set(sizes)) > 1:
        raise ValueError(
            f"vmap: Expected all tensors to have the same size in the mapped dimension, got sizes {sizes} for the mapped dimension"
        )
    return sizes[0], dims, leaves, spec


def _output_dims(func: Callable[..., Any], out_dims: Any, spec: Any) -> list[Any]:
    leaves = _flatten(out_dims)[0]
    if not all(_is_dims(d) for d in leaves):
        raise ValueError(
            f"vmap({_name(func)}, ..., out_dims={out_dims}): `out_dims` must be an int, None or a python collection of ints "
            "representing where in the outputs the vmapped dimension should appear."
        )
    dims = _spread(out_dims, spec)
    if dims is None and spec.type is None and isinstance(out_dims, (tuple, list)) and len(out_dims) == 1:
        dims = [out_dims[0]]
    if dims is None:
        raise ValueError(
            f"vmap({_name(func)}, ..., out_dims={out_dims})(<inputs>): out_dims is not compatible with the structure of `outputs`. "
            f"out_dims has structure {_flatten(out_dims)[1]} but outputs has structure {spec}."
        )
    return dims


def _check_output(func: Callable[..., Any], value: Any, d: int | None) -> None:
    if d is not None and not isinstance(value, Tensor):
        raise ValueError(
            f"vmap({_name(func)}, ...): `{_name(func)}` must only return Tensors, got type {type(value)}. "
            "Did you mean to set out_dims= to None for output?"
        )


# ------------------------------------------------------------------------------------------------ two ways to run


def _at_once(
    func: Callable[..., Any], size: int, dims: list[Any], leaves: list[Any], spec: Any, out_dims: Any, randomness: str, kwargs: dict[Any, Any]
) -> Any:
    with entered(size, randomness, [leaf for leaf, d in zip(leaves, dims, strict=True) if d is not None]) as level:
        samples = [
            leaf if d is None else batch(leaf.movedim(d, 0) if d else leaf, level.number, d)
            for leaf, d in zip(leaves, dims, strict=True)
        ]
        with transformed():
            out = func(*tree_unflatten(samples, spec), **kwargs)
        values, out_spec = _flatten(out)
        found = []
        for value, d in zip(values, _output_dims(func, out_dims, out_spec), strict=True):
            _check_output(func, value, d)
            mine = isinstance(value, Batched) and value.level == level.number
            if d is None:
                if mine:
                    raise ValueError(
                        f"vmap({_name(func)}, ...): `{_name(func)}` can not return a BatchedTensor when out_dim is None"
                    )
                found.append(value)
                continue
            t = value.value if mine else value.unsqueeze(0).expand(size, *value.shape)
            found.append(_moved(t, d))
    return tree_unflatten(found, out_spec)


def _moved(t: Tensor, d: int) -> Tensor:
    if not -t.ndim <= d < t.ndim:
        raise IndexError(f"Dimension out of range (expected to be in range of [{-t.ndim}, {t.ndim - 1}], but got {d})")
    return t.movedim(0, d) if d else t


def _one_by_one(
    func: Callable[..., Any], size: int, dims: list[Any], leaves: list[Any], spec: Any, out_dims: Any, randomness: str, kwargs: dict[Any, Any]
) -> Any:
    state, place = default_generator.get_state(), default_generator._place
    columns: list[list[Any]] = []
    out_spec: Any = None
    for i in range(size):
        samples = [leaf if d is None else leaf.select(d, i) for leaf, d in zip(leaves, dims, strict=True)]
        if randomness == "same":
            with _noting() as places, transformed():
                values, out_spec = _flatten(func(*tree_unflatten(samples, spec), **kwargs))
            if i < size - 1:
                for generator, before in places.items():
                    generator._place = before
        else:
            with transformed():
                values, out_spec = _flatten(func(*tree_unflatten(samples, spec), **kwargs))
        if randomness == "error" and default_generator._place != place:
            default_generator.set_state(state)
            raise _random_error()
        columns.append(values)
    found = []
    for k, d in enumerate(_output_dims(func, out_dims, out_spec)):
        _check_output(func, columns[0][k], d)
        found.append(columns[0][k] if d is None else _moved(OPS["stack"].call([c[k] for c in columns]), d))
    return tree_unflatten(found, out_spec)


def _without_samples(
    func: Callable[..., Any], dims: list[Any], leaves: list[Any], spec: Any, out_dims: Any, randomness: str, kwargs: dict[Any, Any]
) -> Any:
    """Return results for no samples: their shapes are those for a sample of zeros."""
    padded = [leaf if d is None else with_zeros(leaf, d) for leaf, d in zip(leaves, dims, strict=True)]
    found, out_spec = _flatten(_one_by_one(func, 1, dims, padded, spec, out_dims, randomness, kwargs))
    each = zip(found, _output_dims(func, out_dims, out_spec), strict=True)
    return tree_unflatten([t if d is None else t.narrow(d, 0, 0) for t, d in each], out_spec)


def _run(func: Callable[..., Any], size: int, dims: list[Any], leaves: list[Any], spec: Any, out_dims: Any, randomness: str, kwargs: dict[Any, Any]) -> Any:
    state = default_generator._place
    outer = depth.now
    try:
        return _at_once(func, size, dims, leaves, spec, out_dims, randomness, kwargs)
    except Unbatched as unbatched:
        if unbatched.level != outer + 1:
            raise
    default_generator._place = state
    if not size:
        return _without_samples(func, dims, leaves, spec, out_dims, randomness, kwargs)
    return _one_by_one(func, size, dims, leaves, spec, out_dims, randomness, kwargs)


def vmap(
    func: Callable[..., Any], in_dims: Any = 0, out_dims: Any = 0, randomness: str = "error", *, chunk_size: int | None = None
) -> Callable[..., Any]:
    """Return a function that maps ``func``, written for one sample, over a dim of its inputs, as one computation.

    in_dims: which dim of each input (an int for all, or a tuple nested as the inputs; None: not mapped). out_dims: where the
    results have it. randomness: "error" refuses random ops, "same" draws the same numbers for all samples, "different" others
    for each. chunk_size: at most so many samples at once.

    Example:
        >>> torch.vmap(torch.dot)(torch.ones(2, 3), torch.ones(2, 3))
        tensor([3., 3.])

    Errors: ValueError for dims that do not fit; RuntimeError for ``.item()`` and ``if`` on a mapped tensor.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.func.vmap.html
    """
    if randomness not in _MODES:
        raise RuntimeError(f"Only allowed values for randomness are 'error', 'different', or 'same'. Got {randomness}")
    if not (chunk_size is None or chunk_size > 0):
        raise ValueError(f"vmap: chunk_size should be None or greater than 0. (got {chunk_size})")

    @functools.wraps(func)
    def mapped(*args: Any, **kwargs: Any) -> Any:
        size, dims, leaves, spec = _inputs(func, in_dims, args)
        if chunk_size is None or chunk_size >= size:
            return _run(func, size, dims, leaves, spec, out_dims, randomness, kwargs)
        return _in_chunks(func, size, dims, leaves, spec, out_dims, randomness, kwargs, chunk_size)

    return mapped


def _in_chunks(
    func: Callable[..., Any], size: int, dims: list[Any], leaves: list[Any], spec: Any, out_dims: Any, randomness: str, kwargs: dict[Any, Any], chunk: int
) -> Any:
    state = default_generator._place
    columns: list[list[Any]] = []
    out_spec: Any = None
    for start in range(0, size, chunk):
        if randomness == "same":  # (of other generators each chunk has its own numbers, as in PyTorch)
            default_generator._place = state
        n = min(chunk, size - start)
        part = [leaf if d is None else leaf.narrow(d, start, n) for leaf, d in zip(leaves, dims, strict=True)]
        values, out_spec = _flatten(_run(func, n, dims, part, spec, out_dims, randomness, kwargs))
        columns.append(values)
    found = [
        columns[0][k] if d is None else OPS["cat"].call([c[k] for c in columns], d)
        for k, d in enumerate(_output_dims(func, out_dims, out_spec))
    ]
    return tree_unflatten(found, out_spec)
