"""PyTorch's ``torch.utils._pytree``: `autograd_nb.autograd.pytree`, with paths to leaves and the names that packages take besides."""

from __future__ import annotations

from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ..autograd.pytree import *  # noqa: F403
from ..autograd.pytree import (
    LEAF,
    SUPPORTED_NODES,
    NodeDef,
    TreeSpec,
    _children,
    _test,
    is_namedtuple_class,
    register_pytree_node,
    tree_all,
    tree_any,
    tree_flatten,
    tree_leaves,
    tree_map,
    tree_unflatten,
)
from ..autograd.pytree import __all__ as _of_trees

__all__ = [
    *_of_trees, "Context", "FlattenFunc", "GetAttrKey", "KeyEntry", "KeyPath", "LeafSpec", "MappingKey", "PyTree", "SequenceKey", "UnflattenFunc",
    "arg_tree_leaves", "keystr", "map_only", "register_constant", "register_dataclass", "tree_all_only", "tree_any_only", "tree_flatten_with_path",
    "tree_is_leaf", "tree_iter", "tree_leaves_with_path", "tree_map_", "tree_map_only_", "tree_map_with_path",
]  # fmt: skip

PyTree = Context = Any
FlattenFunc = Callable[[Any], tuple[list[Any], Any]]
UnflattenFunc = Callable[[Any, Any], Any]
KeyEntry = Any
KeyPath = tuple[Any, ...]
_IsLeaf = Callable[[Any], bool] | None


def LeafSpec() -> TreeSpec:
    """Return the spec of a leaf."""
    return LEAF


@dataclass(frozen=True)
class SequenceKey:
    """The place of a child in a list or tuple."""

    idx: int

    def __str__(self) -> str:
        return f"[{self.idx!r}]"

    def get(self, sequence: Any) -> Any:
        """Return the child that this key leads to."""
        return sequence[self.idx]


@dataclass(frozen=True)
class MappingKey:
    """The place of a child in a dict."""

    key: Any

    def __str__(self) -> str:
        return f"[{self.key!r}]"

    def get(self, mapping: Any) -> Any:
        """Return the child that this key leads to."""
        return mapping[self.key]


@dataclass(frozen=True)
class GetAttrKey:
    """The place of a child that is an attribute, as in named tuples."""

    name: str

    def __str__(self) -> str:
        return f".{self.name}"

    def get(self, node: Any) -> Any:
        """Return the child that this key leads to."""
        return getattr(node, self.name)


def keystr(path: KeyPath) -> str:
    """Return a path as text: ``keystr((MappingKey("a"), SequenceKey(0)))`` is "['a'][0]"."""
    return "".join(map(str, path))


def _keyed(tree: Any) -> list[tuple[Any, Any]]:
    definition = SUPPORTED_NODES.get(type(tree))
    if definition is not None and definition.flatten_with_keys_fn is not None:
        return list(definition.flatten_with_keys_fn(tree)[0])
    if isinstance(tree, Mapping):
        return [(MappingKey(key), tree[key]) for key in tree]
    if is_namedtuple_class(type(tree)):
        return [(GetAttrKey(name), getattr(tree, name)) for name in tree._fields]
    found = _children(tree)
    return [(SequenceKey(k), child) for k, child in enumerate(found[2] if found else ())]


def _paths(tree: Any, path: KeyPath, is_leaf: _IsLeaf) -> Iterator[tuple[KeyPath, Any]]:
    if tree_is_leaf(tree, is_leaf):
        yield path, tree
        return
    for key, child in _keyed(tree):
        yield from _paths(child, (*path, key), is_leaf)


def tree_is_leaf(tree: Any, is_leaf: _IsLeaf = None) -> bool:
    """Return whether a tree is a single leaf."""
    return bool(is_leaf is not None and is_leaf(tree)) or not (type(tree) in SUPPORTED_NODES or is_namedtuple_class(type(tree)))


def tree_iter(tree: Any, is_leaf: _IsLeaf = None) -> Iterator[Any]:
    """Return an iterator over the leaves."""
    return iter(tree_leaves(tree, is_leaf))


def tree_leaves_with_path(tree: Any, is_leaf: _IsLeaf = None) -> list[tuple[KeyPath, Any]]:
    """Return pairs of path and leaf."""
    return list(_paths(tree, (), is_leaf))


def tree_flatten_with_path(tree: Any, is_leaf: _IsLeaf = None) -> tuple[list[tuple[KeyPath, Any]], TreeSpec]:
    """Return pairs of path and leaf, and the spec."""
    return tree_leaves_with_path(tree, is_leaf), tree_flatten(tree, is_leaf)[1]


def tree_map_with_path(func: Callable[..., Any], tree: Any, *rests: Any, is_leaf: _IsLeaf = None) -> Any:
    """Return the tree of ``func(path, leaf, leaves of the other trees)``."""
    pairs, spec = tree_flatten_with_path(tree, is_leaf)
    others = [tree_leaves(rest, is_leaf) for rest in rests]
    return tree_unflatten([func(*pair, *more) for pair, *more in zip(pairs, *others, strict=True)], spec)


def tree_map_(func: Callable[..., Any], tree: Any, *rests: Any, is_leaf: _IsLeaf = None) -> Any:
    """Call ``func`` with the leaves, for what it does to them, and return the tree."""
    tree_map(func, tree, *rests, is_leaf=is_leaf)
    return tree


def map_only(kind: Any, /) -> Callable[[Callable[[Any], Any]], Callable[[Any], Any]]:
    """Return a decorator that makes a function pass over what is not of the type."""
    wanted = _test(kind)
    return lambda func: lambda x: func(x) if wanted(x) else x


def tree_map_only_(kind: Any, func: Callable[[Any], Any], tree: Any, is_leaf: _IsLeaf = None) -> Any:
    """Call ``func`` with the leaves of a type, for what it does to them, and return the tree."""
    return tree_map_(map_only(kind)(func), tree, is_leaf=is_leaf)


def tree_all_only(kind: Any, predicate: Callable[[Any], bool], tree: Any, is_leaf: _IsLeaf = None) -> bool:
    """Return whether the predicate holds for all leaves of a type."""
    return tree_all(lambda x: not _test(kind)(x) or predicate(x), tree_leaves(tree, is_leaf))


def tree_any_only(kind: Any, predicate: Callable[[Any], bool], tree: Any, is_leaf: _IsLeaf = None) -> bool:
    """Return whether the predicate holds for any leaf of a type."""
    return tree_any(lambda x: _test(kind)(x) and predicate(x), tree_leaves(tree, is_leaf))


def arg_tree_leaves(*args: Any, **kwargs: Any) -> list[Any]:
    """Return the leaves of all arguments."""
    return tree_leaves([*args, *kwargs.values()])


def register_constant(cls: type) -> None:
    """Make instances of ``cls`` nodes without children, compared as a whole."""
    register_pytree_node(cls, lambda x: ([], x), lambda _, x: x)


def register_dataclass(cls: type, *, field_names: list[str] | None = None, drop_field_names: list[str] | None = None, **files: Any) -> None:
    """Make instances of a dataclass nodes of its fields, or of those named."""
    names = [n for n in (field_names or [f.name for f in vars(cls)["__dataclass_fields__"].values()]) if n not in (drop_field_names or ())]
    register_pytree_node(
        cls, lambda x: ([getattr(x, n) for n in names], None), lambda children, _: cls(**dict(zip(names, children, strict=True))),
        flatten_with_keys_fn=lambda x: ([(GetAttrKey(n), getattr(x, n)) for n in names], None),
    )  # fmt: skip


def _dict_flatten(tree: Any) -> tuple[list[Any], Any]:
    return list(tree.values()), list(tree)


def _dict_unflatten(values: Any, context: Any) -> Any:
    return dict(zip(context, values, strict=True))


def _dict_flatten_with_keys(tree: Any) -> tuple[list[tuple[MappingKey, Any]], Any]:
    """Return pairs of key and value of a dict, and its keys."""
    return [(MappingKey(key), value) for key, value in tree.items()], list(tree)


def _tuple_flatten(tree: Any) -> tuple[list[Any], Any]:
    return list(tree), None


def _tuple_unflatten(values: Any, context: Any) -> Any:
    return tuple(values)


def _tuple_flatten_with_keys(tree: Any) -> tuple[list[tuple[SequenceKey, Any]], Any]:
    """Return pairs of place and element of a tuple."""
    return [(SequenceKey(k), value) for k, value in enumerate(tree)], None


def _namedtuple_flatten(tree: Any) -> tuple[list[Any], Any]:
    return list(tree), type(tree)


def _namedtuple_unflatten(values: Any, context: Any) -> Any:
    return context(*values)


def _namedtuple_flatten_with_keys(tree: Any) -> tuple[list[tuple[GetAttrKey, Any]], Any]:
    """Return pairs of field and value of a named tuple, and its class."""
    return [(GetAttrKey(name), getattr(tree, name)) for name in tree._fields], type(tree)


def _ordereddict_unflatten(values: Any, context: Any) -> Any:
    return OrderedDict(zip(context, values, strict=True))


def _defaultdict_flatten(tree: Any) -> tuple[list[Any], Any]:
    return list(tree.values()), [tree.default_factory, list(tree)]


def _defaultdict_unflatten(values: Any, context: Any) -> Any:
    factory, keys = context
    return defaultdict(factory, zip(keys, values, strict=True))


def _defaultdict_flatten_with_keys(tree: Any) -> tuple[list[tuple[MappingKey, Any]], Any]:
    """Return pairs of key and value of a defaultdict, and what makes its values with its keys."""
    return _dict_flatten_with_keys(tree)[0], _defaultdict_flatten(tree)[1]


def _deque_flatten(tree: Any) -> tuple[list[Any], Any]:
    return list(tree), tree.maxlen


def _deque_unflatten(values: Any, context: Any) -> Any:
    return deque(values, maxlen=context)


def _deque_flatten_with_keys(tree: Any) -> tuple[list[tuple[SequenceKey, Any]], Any]:
    """Return pairs of place and element of a deque, and how long it may be."""
    return _tuple_flatten_with_keys(tree)[0], tree.maxlen


def _deregister_pytree_node(cls: type) -> None:
    del SUPPORTED_NODES[cls]


def _get_node_type(tree: Any) -> Any:
    return type(tree)


def _is_leaf(tree: Any, is_leaf: _IsLeaf = None) -> bool:
    return tree_is_leaf(tree, is_leaf)


def _broadcast_to_and_flatten(tree: Any, spec: TreeSpec, is_leaf: _IsLeaf = None) -> list[Any] | None:
    """Return the leaves of ``tree`` spread over a spec, a leaf standing for whole branches; None where they do not fit."""
    if tree_is_leaf(tree, is_leaf):
        return [tree] * spec.num_leaves
    kind, context, children = _children(tree)  # type: ignore[misc]
    if spec.is_leaf() or kind is not spec.type or context != spec.context or len(children) != spec.num_children:
        return None
    parts = [_broadcast_to_and_flatten(child, part, is_leaf) for child, part in zip(children, spec.children_specs, strict=True)]
    return None if any(part is None for part in parts) else [leaf for part in parts for leaf in part or ()]


_register_pytree_node = _private_register_pytree_node = register_pytree_node
_ordereddict_flatten, _ordereddict_flatten_with_keys = _dict_flatten, _dict_flatten_with_keys
_odict_flatten, _odict_unflatten = _ordereddict_flatten, _ordereddict_unflatten
_nodes: dict[type, NodeDef] = SUPPORTED_NODES
