"""Nested lists, tuples, dicts and named tuples, taken apart into leaves and put together again.

Source: the functions programs use of PyTorch's ``torch.utils._pytree``.
"""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

__all__ = [
    "LEAF",
    "TreeSpec",
    "tree_all",
    "tree_any",
    "tree_flatten",
    "tree_leaves",
    "tree_map",
    "tree_map_only",
    "tree_structure",
    "tree_unflatten",
]


@dataclass(frozen=True)
class TreeSpec:
    """The shape of a tree: what a node is (None for a leaf), its keys, and the shapes of its children."""

    type: Any
    context: Any
    children_specs: tuple[TreeSpec, ...]

    @property
    def num_leaves(self) -> int:
        """Return how many leaves it has."""
        return 1 if self.type is None else sum(c.num_leaves for c in self.children_specs)

    def is_leaf(self) -> bool:
        """Return whether it is a leaf."""
        return self.type is None


LEAF = TreeSpec(None, None, ())


def _children(tree: Any) -> tuple[Any, Any, list[Any]] | None:
    """Return (type, context, children) of a node; None of a leaf."""
    if isinstance(tree, dict) and type(tree) in (dict, OrderedDict, defaultdict):
        extra = tree.default_factory if isinstance(tree, defaultdict) else None
        return type(tree), (tuple(tree), extra), list(tree.values())
    if isinstance(tree, tuple) and hasattr(tree, "_fields"):
        return type(tree), None, list(tree)
    if type(tree) in (list, tuple):
        return type(tree), None, list(tree)
    return None


def tree_flatten(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> tuple[list[Any], TreeSpec]:
    """Return the leaves of a tree, and its spec.

    Example:
        >>> tree_flatten({"a": 1, "b": (2, 3)})[0]
        [1, 2, 3]
    """
    found = None if is_leaf is not None and is_leaf(tree) else _children(tree)
    if found is None:
        return [tree], LEAF
    kind, context, children = found
    leaves: list[Any] = []
    specs = []
    for child in children:
        more, spec = tree_flatten(child, is_leaf)
        leaves.extend(more)
        specs.append(spec)
    return leaves, TreeSpec(kind, context, tuple(specs))


def tree_unflatten(leaves: Any, treespec: TreeSpec) -> Any:
    """Return the tree of these leaves. ValueError when their number does not fit."""
    leaves = list(leaves)
    if len(leaves) != treespec.num_leaves:
        raise ValueError(f"tree_unflatten: {len(leaves)} leaves for a spec of {treespec.num_leaves}")
    return _build(iter(leaves), treespec)


def _build(leaves: Iterator[Any], spec: TreeSpec) -> Any:
    if spec.type is None:
        return next(leaves)
    children = [_build(leaves, c) for c in spec.children_specs]
    if issubclass(spec.type, dict):
        keys, factory = spec.context
        pairs = zip(keys, children, strict=True)
        return defaultdict(factory, pairs) if spec.type is defaultdict else spec.type(pairs)
    return spec.type(*children) if hasattr(spec.type, "_fields") else spec.type(children)


def tree_leaves(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> list[Any]:
    """Return the leaves of a tree."""
    return tree_flatten(tree, is_leaf)[0]


def tree_structure(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> TreeSpec:
    """Return the spec of a tree."""
    return tree_flatten(tree, is_leaf)[1]


def tree_map(func: Callable[..., Any], tree: Any, *rests: Any, is_leaf: Callable[[Any], bool] | None = None) -> Any:
    """Return the tree of ``func(leaf, leaves of the other trees at the same place)``."""
    leaves, spec = tree_flatten(tree, is_leaf)
    others = [tree_flatten(r, is_leaf)[0] for r in rests]
    return tree_unflatten([func(*v) for v in zip(leaves, *others, strict=True)], spec)


def tree_map_only(kind: Any, func: Callable[..., Any], tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> Any:
    """Return `tree_map` over the leaves of a type; the others stay."""
    return tree_map(lambda leaf: func(leaf) if isinstance(leaf, kind) else leaf, tree, is_leaf=is_leaf)


def tree_any(predicate: Callable[[Any], bool], tree: Any) -> bool:
    """Return whether the predicate holds for any leaf."""
    return any(predicate(leaf) for leaf in tree_leaves(tree))


def tree_all(predicate: Callable[[Any], bool], tree: Any) -> bool:
    """Return whether the predicate holds for all leaves."""
    return all(predicate(leaf) for leaf in tree_leaves(tree))
