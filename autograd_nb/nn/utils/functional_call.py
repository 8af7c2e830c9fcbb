"""Modules as functions of their parameters.

Source: https://docs.pytorch.org/docs/stable/func.api.html#utilities-for-working-with-torch-nn-modules
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from contextlib import contextmanager
from typing import Any

from ...ops.core.registry import OPS
from ...tensor import Tensor
from ..modules.module import Module
from ..parameter import Parameter

__all__ = ["functional_call", "replace_all_batch_norm_modules_", "stack_module_state"]


def functional_call(
    module: Module, parameter_and_buffer_dicts: Any, args: Any = None, kwargs: dict[Any, Any] | None = None, *,
    tie_weights: bool = True, strict: bool = False,
) -> Any:  # fmt: skip
    """Return ``module(*args, **kwargs)`` with other tensors in the place of its parameters and buffers, which stay as they are.

    parameter_and_buffer_dicts: a dict by name as in ``named_parameters()``, or several of them with different names.
    tie_weights: a replaced parameter is replaced wherever the module shares it. strict: every name must be given, and known.

    Example:
        >>> m = torch.nn.Linear(2, 1, bias=False)
        >>> torch.func.functional_call(m, {"weight": torch.tensor([[1., 2.]])}, torch.ones(2))
        tensor([3.])

    Names of other attributes, and of none yet, stand for attributes during the call. What the module puts in the place of a tensor during the
    call (``self.count = self.count + 1``) is in the dict afterwards, where one dict was given. Errors: ValueError for a name given twice, RuntimeError
    in strict mode for missing or unexpected names, TypeError for what is no tensor.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.func.functional_call.html
    """
    if isinstance(parameter_and_buffer_dicts, dict):
        tensors = parameter_and_buffer_dicts
    elif isinstance(parameter_and_buffer_dicts, Sequence):
        if not all(isinstance(d, dict) for d in parameter_and_buffer_dicts):
            raise ValueError("Expected all elements of parameter_and_buffer_dicts to be dictionaries")
        times = Counter(name for d in parameter_and_buffer_dicts for name in d)
        repeated = [name for name, count in times.items() if count > 1]
        if repeated:
            raise ValueError(f"{repeated} appeared in multiple dictionaries; behavior of functional call is ambiguous")
        tensors = {name: t for d in parameter_and_buffer_dicts for name, t in d.items()}
    else:
        raise ValueError(
            "Expected parameter_and_buffer_dicts to be a dict, or a list/tuple of dicts, but got "
            f"{type(parameter_and_buffer_dicts)}"
        )
    call = () if args is None else args if isinstance(args, tuple) else (args,)
    with _replaced(module, tensors, tie_weights, strict):
        return module(*call, **(kwargs or {}))


_GONE = object()


def _table(module: Module, name: str, t: Any) -> tuple[dict[str, Any], str]:
    """Return the dict in which ``t`` stands for a name of a module, and the name there: as if it was assigned where the name is none yet."""
    path, _, last = name.rpartition(".")
    if not last:
        raise KeyError('tensor name can\'t be empty string ""')
    if t is not None and not isinstance(t, Tensor):
        raise TypeError(f"{t} is not an instance of torch.Tensor (functional_call got it for {name!r})")
    owner = module.get_submodule(path)
    for table in (owner._parameters, owner._buffers):
        if last in table:
            return table, last  # type: ignore[return-value]
    there = getattr(owner, last, None)
    if there is not None and not isinstance(there, Tensor):
        raise TypeError(f"attribute `{last}`: {there} is not an instance of torch.Tensor (functional_call got {name!r})")
    return owner._parameters if isinstance(t, Parameter) else owner.__dict__, last  # type: ignore[return-value]


@contextmanager
def _replaced(module: Module, tensors: dict[str, Any], tie_weights: bool, strict: bool) -> Any:
    """Put the tensors into the module until the context ends, and what stands there by then into ``tensors``."""
    known: dict[str, Tensor] = {}
    if tie_weights or strict:
        known.update(module.named_parameters(remove_duplicate=False))
        known.update(module.named_buffers(remove_duplicate=False))
    shared: dict[int, list[str]] = {}
    for name, t in known.items():
        shared.setdefault(id(t), []).append(name)
    wanted = dict(tensors)
    if tie_weights:
        for name, t in tensors.items():
            for twin in shared.get(id(known.get(name)), ()):
                if tensors.get(twin, t) is not t:
                    raise ValueError(
                        f"functional_call got multiple values for keys {sorted((name, twin))}, which are tied. Consider using "
                        "tie_weights=False"
                    )
                wanted[twin] = t
    if strict:
        missing, unexpected = sorted(set(known) - set(wanted)), sorted(set(wanted) - set(known))
        texts = []
        if unexpected:
            texts.append("Unexpected key(s): " + ", ".join(map(repr, unexpected)) + ".")
        if missing:
            texts.append("Missing key(s): " + ", ".join(map(repr, missing)) + ".")
        if texts:
            raise RuntimeError(f"Error(s) in reparametrizing for {type(module).__name__}:\n\t" + "\n\t".join(texts))
    saved = []
    try:
        for name, t in wanted.items():
            table, last = _table(module, name, t)
            saved.append((name, table, last, table.get(last, _GONE)))
            table[last] = t
        yield
    finally:
        for name, table, last, before in reversed(saved):
            now = table.get(last, _GONE)
            if now is not _GONE and now is not wanted[name] and name in tensors:
                tensors[name] = now
            if before is _GONE:
                table.pop(last, None)
            else:
                table[last] = before


def stack_module_state(models: Sequence[Module]) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """Return (parameters, buffers) of several modules of one kind, each stacked in a new dim 0: for `vmap` over an ensemble.

    Errors: RuntimeError for modules of different kinds or modes, or none, and for a parameter that requires grad in some of them.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.func.stack_module_state.html

    >>> parameters, _ = torch.func.stack_module_state([torch.nn.Linear(2, 3) for _ in range(4)])
    >>> parameters["weight"].shape
    torch.Size([4, 3, 2])
    """
    if not models:
        raise RuntimeError("stack_module_state: Expected at least one model, got 0.")
    if not (all(m.training for m in models) or not any(m.training for m in models)):
        raise RuntimeError("stack_module_state: Expected all models to have the same training/eval mode.")
    if any(type(m) is not type(models[0]) for m in models):
        raise RuntimeError("stack_module_state: Expected all models to be of the same class.")

    def stacked(tables: list[dict[str, Tensor]], leaf: bool) -> dict[str, Tensor]:
        out = {}
        for name in tables[0]:
            each = [t[name] for t in tables]
            if leaf and len({t.requires_grad for t in each}) > 1:
                raise RuntimeError(f"Expected {name} from each model to have the same .requires_grad (stack_module_state: freeze it in all or none)")
            whole = OPS["stack"].call([t.detach() for t in each] if leaf else each)
            out[name] = whole.requires_grad_(each[0].requires_grad) if leaf else whole
        return out

    parameters = stacked([dict(m.named_parameters()) for m in models], True)
    return parameters, stacked([dict(m.named_buffers()) for m in models], False)


def replace_all_batch_norm_modules_(root: Module) -> Module:
    """Let every batch norm in ``root`` use the statistics of its batch only, in place; the module.

    Source: https://docs.pytorch.org/docs/stable/generated/torch.func.replace_all_batch_norm_modules_.html

    >>> torch.func.replace_all_batch_norm_modules_(torch.nn.BatchNorm1d(2)).running_mean is None
    True
    """
    for module in root.modules():
        if "BatchNorm" in type(module).__name__:
            module.track_running_stats = False
            module.running_mean = module.running_var = module.num_batches_tracked = None
    return root
