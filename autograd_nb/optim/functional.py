"""Updates of optimizers as functions of lists of tensors: parameters, gradients and states, all changed in place.

They are the kernels of the classes, with the states handed in: what programs write their own optimizers with, or step in parts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..graph.modes import no_grad
from ..tensor import Tensor
from .adam import Adam, Adamax, AdamW, NAdam, RAdam
from .adaptive import ASGD, Adadelta, Adagrad, RMSprop, Rprop
from .fused import Fused
from .optimizer import zeros_of
from .sgd import SGD

#: function -> its class, and what PyTorch calls the lists after the gradients, each with the state that it has
_ADAM = "exp_avgs exp_avg exp_avg_sqs exp_avg_sq max_exp_avg_sqs max_exp_avg_sq state_steps step"
_FORMS: dict[str, tuple[type[Fused], str]] = {
    "adam": (Adam, _ADAM), "adamw": (AdamW, _ADAM), "adamax": (Adamax, "exp_avgs exp_avg exp_infs exp_inf state_steps step"),
    "nadam": (NAdam, "exp_avgs exp_avg exp_avg_sqs exp_avg_sq mu_products mu_product state_steps step"),
    "radam": (RAdam, "exp_avgs exp_avg exp_avg_sqs exp_avg_sq state_steps step"), "adagrad": (Adagrad, "state_sums sum state_steps step"),
    "adadelta": (Adadelta, "square_avgs square_avg acc_deltas acc_delta state_steps step"),
    "rmsprop": (RMSprop, "square_avgs square_avg grad_avgs grad_avg momentum_buffer_list momentum_buffer state_steps step"),
    "rprop": (Rprop, "prevs prev step_sizes step_size state_steps step"), "asgd": (ASGD, "axs ax mus mu etas eta state_steps step"),
}  # fmt: skip
#: options of a class that are pairs -> the functions' two numbers
_PAIRS = {"betas": ("beta1", "beta2"), "etas": ("etaminus", "etaplus"), "step_sizes": ("step_size_min", "step_size_max")}
#: what says how the update is carried out, and not what it is
_HOW = frozenset(["foreach", "fused", "capturable", "differentiable", "has_complex", "has_sparse_grad", "grad_scale", "found_inf"])


def _group(name: str, cls: type[Fused], given: dict[str, Any]) -> dict[str, Any]:
    """Return the options of a class from those of its function. TypeError for others, NotImplementedError for what is not here."""
    group = dict(cls.options)
    for option in [n for n in _HOW & given.keys() if n not in ("foreach", "fused", "has_complex", "differentiable")]:
        if given[option]:
            raise NotImplementedError(f"{name}({option}={given[option]!r}) is not supported: leave {option!r} out")
    given = {n: value for n, value in given.items() if n not in _HOW or n == "differentiable"}
    for pair, parts in _PAIRS.items():
        if pair in group:
            group[pair] = tuple(given.pop(n, default) for n, default in zip(parts, group[pair], strict=True))
    unknown = sorted(given.keys() - group.keys() - {"decoupled_weight_decay"})
    if unknown:
        raise TypeError(f"{name}() got an unexpected keyword argument {unknown[0]!r} (options: {', '.join(sorted(group))})")
    return {**group, **given, **({"decoupled_weight_decay": True} if cls is AdamW else {})}


def _checked(name: str, params: Sequence[Tensor], states: dict[str, Any]) -> None:
    """Refuse counters that are no tensors, and lists of another length than the parameters'."""
    steps = states.get("step", ())
    if any(not isinstance(t, Tensor) for t in steps):
        raise RuntimeError("API has changed, `state_steps` argument must contain a list of singleton tensors")
    for state, values in states.items():
        if len(values) not in (0, len(params)):
            raise RuntimeError(f"{name}(): {len(params)} parameters, but {len(values)} tensors of {state!r} (params, states: lists of one length)")


def _functional(name: str, cls: type[Fused], words: str) -> Callable[..., None]:
    lists, states = words.split()[::2], words.split()[1::2]

    def step(params: Sequence[Tensor], grads: Sequence[Tensor], *args: Any, **options: Any) -> None:
        given = dict(zip(lists, args, strict=False)) | {n: options.pop(n) for n in lists if n in options}
        missing = [n for n in lists if n not in given]
        if missing or len(args) > len(lists):
            raise TypeError(f"{name}() takes the lists params, grads, {', '.join(lists)} by position" + (f", without {missing[0]!r}" if missing else ""))
        tensors = {state: given[n] for n, state in zip(lists, states, strict=True)}
        _checked(name, params, tensors)
        group, form = _group(name, cls, options), object.__new__(cls)
        kernel = form._kernel(group)
        form._run(kernel, group, [list(grads), list(params), *(list(tensors[n]) for n in kernel.names)])

    step.__name__ = step.__qualname__ = name
    step.__doc__ = f"""Update ``params`` in place as `{cls.__name__}` does, from ``grads`` and the lists {', '.join(lists)}, which are changed too.

    Options are those of the class, given by name: ``lr``, …; pairs as two numbers. Errors: RuntimeError for lists of unequal lengths, TypeError for unknown
    options. Source: https://docs.pytorch.org/docs/stable/generated/torch.optim.{cls.__name__}.html
    """
    return step


def sgd(
    params: Sequence[Tensor], d_p_list: Sequence[Tensor], momentum_buffer_list: list[Tensor | None], has_sparse_grad: bool = False,
    foreach: bool | None = None, fused: bool | None = None, grad_scale: Tensor | None = None, found_inf: Tensor | None = None, *,
    weight_decay: float, momentum: float, lr: float | Tensor, dampening: float, nesterov: bool, maximize: bool = False,
) -> None:  # fmt: skip
    """Update ``params`` in place as `SGD` does, from the gradients; ``momentum_buffer_list`` gets the averages where it has None.

    >>> p = torch.ones(1)
    >>> torch.optim.sgd.sgd([p], [torch.ones(1)], [None], weight_decay=0, momentum=0, lr=0.1, dampening=0, nesterov=False, maximize=False)
    >>> p
    tensor([0.9000])
    """
    given = {"lr": lr, "momentum": momentum, "dampening": dampening, "weight_decay": weight_decay, "nesterov": nesterov, "maximize": maximize}
    how = {"has_sparse_grad": has_sparse_grad, "foreach": foreach, "fused": fused, "grad_scale": grad_scale, "found_inf": found_inf}
    form, group = object.__new__(SGD), _group("sgd", SGD, {**given, **how})
    if not momentum:
        form.descend(group, list(params), list(d_p_list), None)
        return
    with no_grad():
        begun = [b is not None for b in momentum_buffer_list]
        buffers = [zeros_of(p) if b is None else b for p, b in zip(params, momentum_buffer_list, strict=True)]
    for first in (True, False):
        rows = [row for row, has in zip(zip(params, d_p_list, buffers, strict=True), begun, strict=True) if has is not first]
        if rows:
            ps, grads, kept = map(list, zip(*rows, strict=True))
            form.descend(group, ps, grads, kept, first=first)
    momentum_buffer_list[:] = buffers


for _name, (_class, _words) in _FORMS.items():
    globals()[_name] = _functional(_name, _class, _words)
__all__ = ["sgd", *_FORMS]
