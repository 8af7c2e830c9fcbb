"""``torch.cond`` and its like: control flow as functions of functions, which PyTorch's compiler keeps in its graphs. Here Python runs them.

Source: https://docs.pytorch.org/docs/stable/cond.html
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..autograd.batching.vmap import vmap
from ..ops.core.registry import OPS
from ..tensor import Tensor
from ..utils._pytree import tree_flatten, tree_unflatten


def cond(pred: Any, true_fn: Callable[..., Any], false_fn: Callable[..., Any], operands: Sequence[Any] = ()) -> Any:
    """Return ``true_fn(*operands)`` where ``pred`` holds, else ``false_fn(*operands)``.

    Errors: RuntimeError for a ``pred`` that is neither a bool nor a tensor of one element, or ``operands`` that are no tuple or list.

    >>> torch.cond(torch.tensor(True), lambda x: x + 1, lambda x: x - 1, (torch.ones(1),))
    tensor([2.])
    """
    if not isinstance(pred, (bool, Tensor)) or (isinstance(pred, Tensor) and pred.numel() != 1):
        raise RuntimeError(f"Expected pred to be bool or single-element tensor, but got {pred}.")
    if not isinstance(operands, (tuple, list)):
        raise RuntimeError(f"Expect operands to be a tuple of possibly nested dict/list/tuple that only consists of tensor leaves, but got {operands}.")
    return (true_fn if bool(pred) else false_fn)(*operands)


def while_loop(cond_fn: Callable[..., Any], body_fn: Callable[..., Any], carried_inputs: Sequence[Any]) -> Any:
    """Return what is carried when ``cond_fn(*carried)`` no longer holds; ``body_fn(*carried)`` says what is carried next.

    >>> torch.while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, x * 2), (torch.tensor(0), torch.ones(1)))
    (tensor(3), tensor([8.]))
    """
    carried = tuple(carried_inputs)
    while bool(cond_fn(*carried)):
        following = body_fn(*carried)
        following = tuple(following) if isinstance(following, (tuple, list)) else (following,)
        if len(following) != len(carried):
            raise RuntimeError(f"body_fn should return as many elements as carried_inputs ({len(carried)}), but got {len(following)}")
        carried = following
    return carried


def _vmap(func: Callable[..., Any], in_dims: Any = 0, out_dims: Any = 0, allow_none_pass_through: bool = False) -> Callable[..., Any]:
    """Return what `torch.func.vmap` does, which lets results of None pass in any case."""
    return vmap(func, in_dims, out_dims)


def map(f: Callable[..., Any], xs: Any, *args: Any) -> Any:
    """Return ``f(x, *args)`` for every ``x`` along dim 0 of the tensors of ``xs``, stacked."""
    leaves, tree = tree_flatten(xs)
    made = [f(tree_unflatten([leaf[i] for leaf in leaves], tree), *args) for i in range(leaves[0].shape[0])]
    return _stacked(made, 0)


def _stacked(made: list[Any], dim: int) -> Any:
    parts = [tree_flatten(m) for m in made]
    columns = zip(*(leaves for leaves, _ in parts), strict=True)
    return tree_unflatten([OPS["stack"].call(list(column), dim) for column in columns], parts[0][1])


def scan(combine_fn: Callable[[Any, Any], Any], init: Any, xs: Any, *, dim: int = 0, reverse: bool = False) -> Any:
    """Return (the last carry, all outputs): ``carry, y = combine_fn(carry, x)`` for every ``x`` along ``dim`` of the tensors of ``xs``.

    The outputs are stacked along dim 0. ``reverse``: from the last ``x`` to the first. RuntimeError where ``xs`` has no tensors.
    """
    leaves, tree = tree_flatten(xs)
    if not leaves:
        raise RuntimeError("scan() operator requires xs leaves: expected at least 1 xs leaf")
    n, carry, made = leaves[0].shape[dim], init, []
    for i in reversed(range(n)) if reverse else range(n):
        carry, y = combine_fn(carry, tree_unflatten([leaf.select(dim, i) for leaf in leaves], tree))
        made.append(y)
    return carry, _stacked(made[::-1] if reverse else made, 0)


def associative_scan(combine_fn: Callable[[Any, Any], Any], xs: Any, dim: int, reverse: bool = False, combine_mode: str = "pointwise") -> Any:
    """Return all prefixes of ``xs`` along ``dim``, combined: element i is what ``combine_fn`` makes of elements 0 … i, in any order of pairs.

    ``combine_fn`` gets two trees like ``xs`` with any number of elements along ``dim``. ``reverse``: element i is made of elements i … n-1.
    Errors: ValueError for ``combine_mode`` other than "pointwise" and "generic", or where ``xs`` has no tensors.
    Source: https://github.com/pytorch/pytorch/blob/main/torch/_higher_order_ops/associative_scan.py

    >>> from autograd_nb.compat.control_flow import associative_scan
    >>> associative_scan(lambda a, b: a * b, torch.tensor([1., 2., 3.]), 0)
    tensor([1., 2., 6.])
    """
    if combine_mode not in ("pointwise", "generic"):
        raise ValueError(f"Combine_mode must either 'pointwise' or 'generic', but got {combine_mode}")
    leaves, tree = tree_flatten(xs)
    if not leaves:
        raise ValueError("Expected at least 1 xs leaf")
    sizes = {leaf.shape[dim] for leaf in leaves}
    if len(sizes) > 1:
        raise ValueError(f"All xs leaves must have the same size along dim {dim}, but got {sorted(sizes)}")
    if reverse:
        leaves = [leaf.flip([dim]) for leaf in leaves]

    def combined(a: list[Tensor], b: list[Tensor]) -> list[Tensor]:
        return tree_flatten(combine_fn(tree_unflatten(a, tree), tree_unflatten(b, tree)))[0]

    result = _prefixes(combined, leaves, dim % max(leaves[0].ndim, 1))
    return tree_unflatten([leaf.flip([dim]) for leaf in result] if reverse else result, tree)


def _prefixes(combined: Callable[[list[Tensor], list[Tensor]], list[Tensor]], xs: list[Tensor], dim: int) -> list[Tensor]:
    """Return all prefixes: those of pairs of neighbours give every second one, and one step more the others."""
    n = xs[0].shape[dim]
    if n < 2:
        return xs

    def part(x: Tensor, begin: int, end: int, step: int = 1) -> Any:
        return x[(slice(None),) * dim + (slice(begin, end, step),)]  # type: ignore[index]

    odd = _prefixes(combined, combined([part(x, 0, n - 1, 2) for x in xs], [part(x, 1, n, 2) for x in xs]), dim)
    later = [part(x, 2, n, 2) for x in xs]
    even = combined([part(y, 0, later[0].shape[dim]) for y in odd], later) if later[0].shape[dim] else later
    result = []
    for x, some, others in zip(xs, even, odd, strict=True):
        some = OPS["cat"].call([part(x, 0, 1), some], dim)
        last = [part(some, others.shape[dim], some.shape[dim])] if n % 2 else []
        pairs = OPS["stack"].call([part(some, 0, others.shape[dim]), others], dim + 1).flatten(dim, dim + 1)
        result.append(OPS["cat"].call([pairs, *last], dim) if last else pairs)
    return result
