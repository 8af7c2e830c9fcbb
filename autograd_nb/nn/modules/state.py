"""The state_dict of a module: saving it, loading it, and the hooks around both."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple
from weakref import ref

from ...errors import warn_user
from ...graph.hooks import check_callable
from ...graph.modes import no_grad
from ...tensor import Tensor
from ..parameter import Parameter, is_lazy
from .hooks import Handle, add_hook

_EXTRA = "_extra_state"


def _in_parts(p: Tensor, value: Tensor) -> Tensor:
    """Return what a file holds for a parameter in parts as one in parts too: a whole tensor, or this rank's rows."""
    own = p.__dict__["_sharding"]
    if "_sharding" in value.__dict__ or value.shape not in (own.whole, p._layout.shape):
        return value
    return own.mark((value if value.shape == p._layout.shape else own.part(value)).detach())  # type: ignore[no-any-return]


class _IncompatibleKeys(NamedTuple):
    """The result of `Module.load_state_dict`: the keys that were missing and those that were not expected."""

    missing_keys: list[str]
    unexpected_keys: list[str]

    def __repr__(self) -> str:
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        return f"_IncompatibleKeys(missing_keys={self.missing_keys!r}, unexpected_keys={self.unexpected_keys!r})"

    def __str__(self) -> str:
        return repr(self)


class StateDict:
    """The part of `Module` that deals with its state_dict."""

    _version = 1
    _parameters: dict[Any, Any]
    _buffers: dict[Any, Any]
    _modules: dict[Any, Any]
    _non_persistent_buffers_set: set[Any]
    _state_dict_hooks: OrderedDict[Any, Any]
    _state_dict_pre_hooks: OrderedDict[Any, Any]
    _load_state_dict_pre_hooks: OrderedDict[Any, Any]
    _load_state_dict_post_hooks: OrderedDict[Any, Any]

    # ---- hooks
    def _register_state_dict_hook(self, hook: Callable[..., Any]) -> Handle:
        """Call ``hook(module, state_dict, prefix, local_metadata)`` after collecting; it may return another dict."""
        if getattr(hook, "_from_public_api", False):
            raise RuntimeError(
                "Cannot register the same function as the state dict post hook that was previously registered via "
                "register_state_dict_post_hook"
            )
        return add_hook(self._state_dict_hooks, hook)

    def register_state_dict_post_hook(self, hook: Callable[..., Any]) -> Handle:
        """Call ``hook(module, state_dict, prefix, local_metadata)`` after collecting; it may change the dict in place."""
        check_callable(hook)._from_public_api = True  # type: ignore[attr-defined]
        return add_hook(self._state_dict_hooks, hook)

    def register_state_dict_pre_hook(self, hook: Callable[..., Any]) -> Handle:
        """Call ``hook(module, prefix, keep_vars)`` before collecting."""
        return add_hook(self._state_dict_pre_hooks, hook)

    def _register_load_state_dict_pre_hook(self, hook: Callable[..., Any], with_module: bool = False) -> Handle:
        return add_hook(self._load_state_dict_pre_hooks, _WithModule(check_callable(hook), self) if with_module else hook)

    def register_load_state_dict_pre_hook(self, hook: Callable[..., Any]) -> Handle:
        """Call ``hook(module, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)``
        before loading."""
        return self._register_load_state_dict_pre_hook(hook, with_module=True)

    def register_load_state_dict_post_hook(self, hook: Callable[..., Any]) -> Handle:
        """Call ``hook(module, incompatible_keys)`` after loading; it may change the lists in place."""
        return add_hook(self._load_state_dict_post_hooks, hook)

    # ---- saving
    def get_extra_state(self) -> Any:
        """Return what else to keep in the state_dict; a module that defines it defines `set_extra_state` too."""
        raise RuntimeError(f"{type(self).__name__} has no extra state: define get_extra_state() and set_extra_state() in it")

    def set_extra_state(self, state: Any) -> None:
        """Take back what `get_extra_state` gave."""
        raise RuntimeError(f"{type(self).__name__} has no extra state: define get_extra_state() and set_extra_state() in it")

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        for name, p in self._parameters.items():
            if p is not None:
                destination[prefix + name] = p if keep_vars else p.detach()
        for name, b in self._buffers.items():
            if b is not None and name not in self._non_persistent_buffers_set:
                destination[prefix + name] = b if keep_vars else b.detach()
        if type(self).get_extra_state is not StateDict.get_extra_state:
            destination[prefix + _EXTRA] = self.get_extra_state()

    def state_dict(self, *args: Any, destination: Any = None, prefix: str = "", keep_vars: bool = False) -> dict[str, Any]:
        """Return name -> tensor of every parameter and persistent buffer, here and below; the tensors share the module's memory.

        keep_vars: the parameters themselves instead of detached tensors.
        Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html#torch.nn.Module.state_dict
        """
        if args:  # PyTorch's old positional form
            destination = args[0] if destination is None else destination
            prefix = args[1] if len(args) > 1 and prefix == "" else prefix
            keep_vars = args[2] if len(args) > 2 and keep_vars is False else keep_vars
        if destination is None:
            destination = OrderedDict()
            destination._metadata = OrderedDict()
        local_metadata = {"version": self._version}
        if hasattr(destination, "_metadata"):
            destination._metadata[prefix[:-1]] = local_metadata
        for hook in self._state_dict_pre_hooks.values():
            hook(self, prefix, keep_vars)
        self._save_to_state_dict(destination, prefix, keep_vars)
        for name, module in self._modules.items():
            if module is not None:
                module.state_dict(destination=destination, prefix=prefix + name + ".", keep_vars=keep_vars)
        for hook in self._state_dict_hooks.values():
            out = hook(self, destination, prefix, local_metadata)
            if out is not None:
                if getattr(hook, "_from_public_api", False):
                    raise RuntimeError("state_dict post-hook must return None")
                destination = out
        return destination

    # ---- loading
    def _load_from_state_dict(
        self, state_dict: Any, prefix: str, local_metadata: dict[str, Any], strict: bool, missing_keys: list[str],
        unexpected_keys: list[str], error_msgs: list[str],
    ) -> None:
        for hook in self._load_state_dict_pre_hooks.values():
            hook(state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)
        own = {k: v for k, v in self._parameters.items() if v is not None}
        own.update({k: v for k, v in self._buffers.items() if v is not None and k not in self._non_persistent_buffers_set})
        assign = local_metadata.get("assign_to_params_buffers", False)
        for name, p in own.items():
            key = prefix + name
            if key in state_dict:
                self._load_one(name, key, p, state_dict[key], assign, error_msgs)
            elif strict:
                missing_keys.append(key)
        extra = prefix + _EXTRA
        if type(self).set_extra_state is not StateDict.set_extra_state:
            if extra in state_dict:
                self.set_extra_state(state_dict[extra])
            elif strict:
                missing_keys.append(extra)
        elif strict and extra in state_dict:
            unexpected_keys.append(extra)
        if strict:
            for key in state_dict:
                if key.startswith(prefix) and key != extra:
                    first, *rest = key[len(prefix) :].split(".", 1)
                    if first not in (self._modules if rest else own):
                        unexpected_keys.append(key)

    def _load_one(self, name: str, key: str, p: Any, value: Any, assign: bool, error_msgs: list[Any]) -> None:
        if not isinstance(value, Tensor):
            error_msgs.append(
                f'While copying the parameter named "{key}", expected torch.Tensor or Tensor-like object from checkpoint but '
                f"received {type(value)}"
            )
            return
        if is_lazy(p) and is_lazy(value):
            return
        if "_sharding" in p.__dict__:
            value = _in_parts(p, value)
        if p.ndim == 0 and tuple(value.shape) == (1,):
            value = value[0]
        if value.shape != p.shape:
            error_msgs.append(
                f"size mismatch for {key}: copying a param with shape {value.shape} from checkpoint, the shape in current model "
                f"is {p.shape}."
            )
            return
        try:
            with no_grad():
                if not assign:
                    if p.is_meta and not value.is_meta:
                        warn_user(
                            f"for {key}: copying from a non-meta parameter in the checkpoint to a meta parameter in the current model, which is a "
                            "no-op. (Did you mean to pass `assign=True` to assign items in the state dictionary to their corresponding key in the "
                            "module instead of copying them in place?)")  # fmt: skip
                    p.copy_(value)
                    return
                if isinstance(p, Parameter):
                    value = value.requires_grad_(p.requires_grad) if isinstance(value, Parameter) else Parameter(value, p.requires_grad)
                setattr(self, name, value)
        except Exception as error:
            error_msgs.append(
                f'While copying the parameter named "{key}", whose dimensions in the model are {p.shape} and whose dimensions in '
                f"the checkpoint are {value.shape}, an exception occurred : {error.args}."
            )

    def load_state_dict(self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False) -> _IncompatibleKeys:
        """Copy the tensors of ``state_dict`` into the parameters and buffers of the same names.

        strict: refuse missing and unexpected keys. assign: put the given tensors in place of the module's own, keeping their
        dtype. Returns what keys did not match.

        Errors: TypeError unless it is a mapping; RuntimeError that lists every key that does not fit.
        Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html#torch.nn.Module.load_state_dict
        """
        if not isinstance(state_dict, Mapping):
            raise TypeError(f"Expected state_dict to be dict-like, got {type(state_dict)}.")
        missing: list[str] = []
        unexpected: list[str] = []
        errors: list[str] = []
        metadata = getattr(state_dict, "_metadata", None)
        copied: Any = OrderedDict(state_dict)
        if metadata is not None:
            copied._metadata = metadata
        _load(self, copied, "", metadata, assign, missing, unexpected, errors)
        if strict:
            for title, keys in (("Unexpected", unexpected), ("Missing", missing)):
                if keys:
                    names = ", ".join(f'"{k}"' for k in keys)
                    errors.insert(0, f"{title} key(s) in state_dict: {names}. ")
            if unexpected and all(key.startswith("module.") for key in unexpected):  # the file of a model that DataParallel held
                errors.append(
                    "(The file's names begin with 'module.', which nn.modules.utils.consume_prefix_in_state_dict_if_present(state_dict, 'module.') takes away.)"
                )
        if errors:
            raise RuntimeError("Error(s) in loading state_dict for {}:\n\t{}".format(type(self).__name__, "\n\t".join(errors)))
        return _IncompatibleKeys(missing, unexpected)


def _load(module: Any, given: dict[Any, Any], prefix: str, metadata: Any, assign: bool, missing: list[Any], unexpected: list[Any], errors: list[Any]) -> None:
    local = {} if metadata is None else metadata.get(prefix[:-1], {})
    if assign:
        local["assign_to_params_buffers"] = True
    module._load_from_state_dict(given, prefix, local, True, missing, unexpected, errors)
    for name, child in module._modules.items():
        if child is not None:
            inner = prefix + name + "."
            _load(child, {k: v for k, v in given.items() if k.startswith(inner)}, inner, metadata, assign, missing, unexpected, errors)
    keys = _IncompatibleKeys(missing, unexpected)
    for hook in module._load_state_dict_post_hooks.values():
        if hook(module, keys) is not None:
            raise AssertionError(
                "Hooks registered with ``register_load_state_dict_post_hook`` are not expected to return new values, if "
                "incompatible_keys need to be modified, it should be done inplace."
            )


class _WithModule:
    """A hook that gets its module as first argument. The module keeps it, so it does not keep the module."""

    def __init__(self, hook: Callable[..., Any], module: Any):
        self.hook, self.module = hook, ref(module)

    def __call__(self, *args: Any) -> Any:
        return self.hook(self.module(), *args)

    def __reduce__(self) -> Any:
        return type(self), (self.hook, self.module())
