"""Nested lists, tuples, dicts and named tuples, taken apart into leaves and put together again.

Source: the functions programs use of PyTorch's ``torch.utils._pytree``.
"""

from __future__ import annotations

from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

__all__ = [
    "LEAF",
    "NodeDef",
    "SUPPORTED_NODES",
    "TreeSpec",
    "register_pytree_node",
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
    def num_nodes(self) -> int:
        """Return how many nodes and leaves it has."""
        return 1 + sum(c.num_nodes for c in self.children_specs)

    @property
    def num_children(self) -> int:
        """Return how many children its root has."""
        return len(self.children_specs)

    def children(self) -> list[TreeSpec]:
        """Return the specs of its root's children."""
        return list(self.children_specs)

    def child(self, index: int) -> TreeSpec:
        """Return the spec of one child."""
        return self.children_specs[index]

    def unflatten(self, leaves: Any) -> Any:
        """Return the tree of these leaves."""
        return tree_unflatten(leaves, self)

    @property
    def num_leaves(self) -> int:
        """Return how many leaves it has."""
        return 1 if self.type is None else sum(c.num_leaves for c in self.children_specs)

    def is_leaf(self) -> bool:
        """Return whether it is a leaf."""
        return self.type is None


LEAF = TreeSpec(None, None, ())


class NodeDef(NamedTuple):
    """Tells how instances of a class are taken apart, into children and what else there is to know, and made again."""

    type: type
    flatten_fn: Callable[[Any], tuple[Any, Any]]
    unflatten_fn: Callable[[Any, Any], Any]
    flatten_with_keys_fn: Callable[[Any], tuple[Any, Any]] | None = None


#: class -> how its instances are taken apart; named tuples are nodes without an entry
SUPPORTED_NODES: dict[type, NodeDef] = {}


def register_pytree_node(
    cls: type, flatten_fn: Callable[[Any], Any], unflatten_fn: Callable[[Any, Any], Any], *, serialized_type_name: str | None = None,
    to_dumpable_context: Any = None, from_dumpable_context: Any = None, flatten_with_keys_fn: Callable[[Any], Any] | None = None,
) -> None:  # fmt: skip
    """Make instances of ``cls`` nodes: ``flatten_fn(node)`` gives (children, context), ``unflatten_fn(children, context)`` the node.

    ``flatten_with_keys_fn`` gives pairs (key, child) in place of children. The other arguments tell of files, and are accepted. Errors: ValueError
    when the class is a node already.

    Example:
        >>> class Pair:
        ...     def __init__(self, a, b): self.a, self.b = a, b
        >>> register_pytree_node(Pair, lambda p: ([p.a, p.b], None), lambda children, _: Pair(*children))
        >>> tree_leaves(Pair(1, [2, 3]))
        [1, 2, 3]
    """
    if cls in SUPPORTED_NODES:
        raise ValueError(f"{cls} is already registered as pytree node")
    SUPPORTED_NODES[cls] = NodeDef(cls, flatten_fn, unflatten_fn, flatten_with_keys_fn)


def _of_mapping(kind: type) -> Callable[[Any, Any], Any]:
    return lambda children, keys: kind(zip(keys, children, strict=True))


def _register_builtins() -> None:
    register_pytree_node(list, lambda x: (list(x), None), lambda children, _: list(children))
    register_pytree_node(tuple, lambda x: (list(x), None), lambda children, _: tuple(children))
    for kind in (dict, OrderedDict):
        register_pytree_node(kind, lambda d: (list(d.values()), list(d)), _of_mapping(kind))
    register_pytree_node(
        defaultdict, lambda d: (list(d.values()), [d.default_factory, list(d)]),
        lambda children, context: defaultdict(context[0], zip(context[1], children, strict=True)),
    )  # fmt: skip
    register_pytree_node(deque, lambda d: (list(d), d.maxlen), lambda children, size: deque(children, maxlen=size))


_register_builtins()


def is_namedtuple_class(cls: type) -> bool:
    """Return whether a class is one of named tuples."""
    return issubclass(cls, tuple) and hasattr(cls, "_fields")


def _children(tree: Any) -> tuple[Any, Any, list[Any]] | None:
    """Return (type, context, children) of a node; None of a leaf."""
    kind = type(tree)
    definition = SUPPORTED_NODES.get(kind)
    if definition is not None:
        children, context = definition.flatten_fn(tree)
        return kind, context, list(children)
    return (kind, None, list(tree)) if is_namedtuple_class(kind) else None


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
        if is_leaf is None and (own := type(child)) not in SUPPORTED_NODES and not issubclass(own, tuple):
            leaves.append(child)
            specs.append(LEAF)
            continue
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
    definition = SUPPORTED_NODES.get(spec.type)
    return spec.type(*children) if definition is None else definition.unflatten_fn(children, spec.context)


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


def _test(kind: Any) -> Callable[[Any], bool]:
    return (lambda leaf: isinstance(leaf, kind)) if isinstance(kind, (type, tuple)) or not callable(kind) else kind


def tree_map_only(kind: Any, func: Callable[..., Any], tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> Any:
    """Return `tree_map` over the leaves of a type (or types, or for which a function holds); the others stay."""
    wanted = _test(kind)
    return tree_map(lambda leaf: func(leaf) if wanted(leaf) else leaf, tree, is_leaf=is_leaf)


def tree_any(predicate: Callable[[Any], bool], tree: Any) -> bool:
    """Return whether the predicate holds for any leaf."""
    return any(predicate(leaf) for leaf in tree_leaves(tree))


def tree_all(predicate: Callable[[Any], bool], tree: Any) -> bool:
    """Return whether the predicate holds for all leaves."""
    return all(predicate(leaf) for leaf in tree_leaves(tree))
