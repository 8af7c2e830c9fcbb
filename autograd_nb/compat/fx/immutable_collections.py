"""Lists and dicts that nodes keep as arguments: a change would pass by the graph's record of who uses what."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn


def _refuse(self: Any, *args: Any, **kwargs: Any) -> NoReturn:
    raise TypeError(
        f"'{type(self).__name__}' object does not support mutation. If you are attempting to modify the kwargs or args of a torch.fx.Node object, "
        "instead create a new copy of it and assign the copy to the node: new_args = ... ; node.args = new_args"
    )


class immutable_list(list[Any]):
    """A list that cannot be changed."""

    append: Callable[..., NoReturn] = _refuse  # type: ignore[assignment]
    extend: Callable[..., NoReturn] = _refuse  # type: ignore[assignment]
    insert: Callable[..., NoReturn] = _refuse  # type: ignore[assignment]
    pop: Callable[..., NoReturn] = _refuse  # type: ignore[assignment]
    remove: Callable[..., NoReturn] = _refuse  # type: ignore[assignment]
    clear: Callable[..., NoReturn] = _refuse  # type: ignore[assignment]
    sort: Callable[..., NoReturn] = _refuse  # type: ignore[assignment]
    reverse: Callable[..., NoReturn] = _refuse  # type: ignore[assignment]
    __setitem__: Callable[..., NoReturn] = _refuse  # type: ignore[assignment]
    __delitem__: Callable[..., NoReturn] = _refuse  # type: ignore[assignment]
    __iadd__: Callable[..., NoReturn] = _refuse  # type: ignore[assignment]
    __imul__: Callable[..., NoReturn] = _refuse  # type: ignore[assignment]

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(tuple(self))

    def __reduce__(self) -> Any:
        return (immutable_list, (tuple(self),))


class immutable_dict(dict[Any, Any]):
    """A dict that cannot be changed."""

    clear: Callable[..., NoReturn] = _refuse  # type: ignore[assignment]
    pop: Callable[..., NoReturn] = _refuse  # type: ignore[assignment]
    popitem: Callable[..., NoReturn] = _refuse  # type: ignore[assignment]
    setdefault: Callable[..., NoReturn] = _refuse  # type: ignore[assignment]
    update: Callable[..., NoReturn] = _refuse  # type: ignore[assignment]
    __setitem__: Callable[..., NoReturn] = _refuse  # type: ignore[assignment]
    __delitem__: Callable[..., NoReturn] = _refuse  # type: ignore[assignment]
    __ior__: Callable[..., NoReturn] = _refuse  # type: ignore[assignment]

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(frozenset(self.items()))

    def __reduce__(self) -> Any:
        return (immutable_dict, (tuple(self.items()),))
