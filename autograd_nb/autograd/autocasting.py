"""Autocast: which functions compute in a lower precision, which in float32, and which in the widest that they are given, while it is on.

As ``__torch_function__`` does (see `torch_function`), it stands in the place of these functions only while some thread has switched it on, and for
some calls after, so that all others, and programs without it, pay nothing. What the library computes for itself is not cast. So what PyTorch
composes, and whose products are cast there while the rest is not, has a rule of its own here, as have layers that are one kernel.

Source: https://docs.pytorch.org/docs/stable/amp.html#autocast-op-reference and PyTorch's registrations for the key AutocastCPU;
`tests/parity/test_autocast.py` compares every op of PyTorch's database.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from .. import dtypes, launch
from ..graph import casting, modes
from ..graph.casting import state
from ..ops.core.registry import OPS
from ..ops.creation.cast import cast
from ..ops.nn import recurrent
from ..ops.products.einsum import contract, read
from ..overriding import whole
from ..tensor import Tensor
from .torch_function import INTERCEPTION, redefines

__all__ = ["clear_cache", "switch"]

#: a rule of a function: of its own code, its arguments by place and by name, and the dtype of products, the result
Rule = Callable[[Callable[..., Any], tuple[Any, ...], dict[str, Any], dtypes.dtype], Any]

_LOWER = """
    mm bmm matmul linalg.matmul __matmul__ __rmatmul__ addmm addbmm baddbmm linalg.vecdot linear prelu scaled_dot_product_attention
    conv1d conv2d conv3d conv_tbc conv_transpose1d conv_transpose2d conv_transpose3d
    chain_matmul linalg.multi_dot rnn_tanh_cell rnn_relu_cell
"""
_FLOAT32 = """
    avg_pool3d adaptive_avg_pool3d adaptive_max_pool3d adaptive_max_pool3d_with_indices
    fractional_max_pool2d fractional_max_pool2d_with_indices fractional_max_pool3d fractional_max_pool3d_with_indices
    max_unpool1d max_unpool2d max_unpool3d grid_sample grid_sampler grid_sampler_2d grid_sampler_3d
    binary_cross_entropy binary_cross_entropy_with_logits cosine_embedding_loss cross_entropy ctc_loss hinge_embedding_loss huber_loss kl_div l1_loss
    margin_ranking_loss mse_loss multi_margin_loss multilabel_margin_loss nll_loss poisson_nll_loss smooth_l1_loss soft_margin_loss triplet_margin_loss
    fft.fft fft.ifft fft.fft2 fft.ifft2 fft.fftn fft.ifftn fft.rfft fft.irfft fft.rfft2 fft.irfft2 fft.rfftn fft.irfftn fft.hfft fft.ihfft stft
    cdist polar view_as_complex prod trace quantile nanquantile
    cholesky cholesky_inverse cholesky_solve geqrf inverse lu lu_solve orgqr ormqr pinverse qr svd triangular_solve
    linalg.cholesky linalg.cholesky_ex linalg.cond linalg.eig linalg.eigh linalg.eigvals linalg.eigvalsh linalg.householder_product linalg.inv
    linalg.inv_ex linalg.lstsq linalg.matrix_rank linalg.qr linalg.solve linalg.svd linalg.svdvals linalg.tensorinv linalg.tensorsolve
"""
_WIDEST = "cat concat concatenate stack hstack vstack dstack row_stack column_stack index_copy"
_ROUNDED = "cov corrcoef linalg.pinv"


# ------------------------------------------------------------------------------------------------------ casts


def _eligible(value: Any) -> bool:
    return isinstance(value, Tensor) and value.dtype.category == 2 and value.dtype is not dtypes.float64


def _cast(t: Tensor, to: dtypes.dtype, keep: bool = True) -> Tensor:
    """Return a tensor in another dtype. ``keep``: whether the cast of a parameter is kept, as PyTorch does not where it takes a view first."""
    if t.dtype is to:
        return t
    if redefines(type(t)):
        return t.to(to)  # type: ignore[no-any-return]
    if (
        keep and t._rg and t._edge is None and t._view is None and t.dtype is dtypes.float32 and to is state.to and state.cache and modes.state.grad
        and launch.observer() is None
    ):  # fmt: skip
        return _kept(t, to)
    return cast(t, to)


def _kept(t: Tensor, to: dtypes.dtype) -> Tensor:
    """Return what a parameter was cast to before, while it has the same values and no backward pass has gone through the cast."""
    kept = state.kept
    if kept is None:
        kept = state.kept = {}
    source, version, made = kept.get(id(t), (None, 0, None))
    if source is t and version == t._version_[0] and made.dtype is to and made._edge.consumed is None:
        return made  # type: ignore[no-any-return]
    made = cast(t, to)
    if made._rg:
        kept[id(t)] = t, t._version_[0], made
    return made


def _all(value: Any, to: dtypes.dtype) -> Any:
    """Return an argument with its floats in a dtype; each place is cast by itself, so that gradients of one tensor in several are added in its own."""
    if isinstance(value, Tensor):
        return _cast(value, to) if _eligible(value) else value
    if value.__class__ is list or value.__class__ is tuple:
        return value.__class__([_all(v, to) for v in value])
    return value


def _in(to: dtypes.dtype, call: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return call(*[_all(a, to) for a in args], **{name: _all(a, to) for name, a in kwargs.items()})


def _tensors(values: Any) -> list[Tensor]:
    found: list[Tensor] = []
    for v in values:
        found += [v] if isinstance(v, Tensor) else _tensors(v) if v.__class__ is list or v.__class__ is tuple else []
    return found


# ------------------------------------------------------------------------------------------------------ rules


def _lower(call: Any, args: Any, kwargs: Any, to: Any) -> Any:
    return _in(to, call, args, kwargs)


def _float32(call: Any, args: Any, kwargs: Any, to: Any) -> Any:
    return _in(dtypes.float32, call, args, kwargs)


def _widest(call: Any, args: Any, kwargs: Any, to: Any) -> Any:
    """Compute in float32 where one of the operands is, else in the lower precision. RuntimeError for the other of both lower ones."""
    current = to
    for t in filter(_eligible, _tensors([*args, *kwargs.values()])):
        if dtypes.float32 in (current, t.dtype):
            current = dtypes.float32
        elif t.dtype is not current:
            raise RuntimeError(f"Unexpected floating ScalarType in at::autocast::prioritize: {t.dtype} where autocast computes in {to}")
    return _in(current, call, args, kwargs)


def _rounded(call: Any, args: Any, kwargs: Any, to: Any) -> Any:
    """Compute in float32 what ends with a product, and give the result the product's precision."""
    return _all(call(*args, **kwargs), to)


def _einsum(call: Any, args: Any, kwargs: Any, to: Any) -> Any:
    """Compute products of matrices of cast operands, and let those of others promote."""
    if len(_tensors(args)) < 2 or kwargs:
        return call(*args, **kwargs)
    return contract(*read(args), lambda t: _cast(t, to, False) if _eligible(t) else t)


def _as_it_is(call: Any, args: Any, kwargs: Any, to: Any) -> Any:
    return call(*args, **kwargs)


def _contracted(call: Any, args: Any, kwargs: Any, to: Any) -> Any:
    """Compute a product of matrices of cast operands, and that of two vectors of what is given."""
    if min(t.ndim for t in _tensors([*args, *kwargs.values()])) == 0:
        return call(*args, **kwargs)
    made = _in(to, call, args, kwargs)
    return made if made.numel() > 1 else call(*args, **kwargs)


def _unless_indices(call: Any, args: Any, kwargs: Any, to: Any) -> Any:
    """Compute in float32 where only the values are wanted."""
    indices = kwargs.get("return_indices", args[6] if len(args) > 6 else False)
    return (_as_it_is if indices else _float32)(call, args, kwargs, to)


def _power(call: Any, args: Any, kwargs: Any, to: Any) -> Any:
    """Round powers, which are products, but for those that are none, and those of inverses."""
    n = kwargs["n"] if "n" in kwargs else args[1] if len(args) > 1 else 0
    made = _in(dtypes.float32, call, args, kwargs) if n < 0 else call(*args, **kwargs)
    return made if n in (-1, 0, 1) else _all(made, to)


def _pad(call: Any, args: Any, kwargs: Any, to: Any) -> Any:
    given = dict(zip(("input", "pad", "mode"), args, strict=False)) | kwargs
    mode, dims = given.get("mode", "constant"), len(given.get("pad", ())) // 2
    cast_there = mode == "replicate" or (mode == "reflect" and dims < 3)
    return (_float32 if cast_there else _as_it_is)(call, args, kwargs, to)


def _low_rank(call: Any, args: Any, kwargs: Any, to: Any) -> Any:
    """Round the one of the factors that is a product."""
    made = list(_in(dtypes.float32, call, args, kwargs))
    rows, columns = _tensors([*args, *kwargs.values()])[0].shape[-2:]
    k = 2 if rows < columns else 0
    made[k] = _all(made[k], to)
    return tuple(made)


def _losses_of_products(call: Any, args: Any, kwargs: Any, to: Any) -> Any:
    return _all(_in(to, call, args, kwargs), dtypes.float32)


def _layers(call: Any, args: Any, kwargs: Any, to: Any) -> Any:
    """Compute layers of an RNN (see `recurrent.stacked`) of cast operands; a GRU's state keeps its own precision where that is float32."""
    input, op, kind, hx, *rest = args
    if kind != "gru" or hx[0].dtype is not dtypes.float32:
        return _in(to, call, args, kwargs)
    return call(_all(input, to), op, "gru_mixed", hx, *[_all(a, to) for a in rest])


def _attention(call: Any, args: Any, kwargs: Any, to: Any) -> Any:
    """Compute in the lower precision; query, key and value that are one tensor stay one, as they are projected together."""
    made = {id(t): _all(t, to) for t in _tensors([*args, *kwargs.values()])}
    return call(*[made.get(id(a), a) for a in args], **{name: made.get(id(a), a) for name, a in kwargs.items()})


def _lstm_cell(call: Any, args: Any, kwargs: Any, to: Any) -> Any:
    def with_state(input: Any, hx: Any, *rest: Any, **options: Any) -> Any:
        return _in(to, lambda input, h, *r, **o: call(input, (h, hx[1]), *r, **o), (input, hx[0], *rest), options)

    return with_state(*args, **kwargs)


def _gru_cell(call: Any, args: Any, kwargs: Any, to: Any) -> Any:
    def with_state(input: Any, hx: Any, *rest: Any, **options: Any) -> Any:
        if hx.dtype is not dtypes.float32:
            return _in(to, call, args, kwargs)
        return _in(to, lambda input, *r, **o: recurrent.mixed_gru_cell(input, hx, *r, **o), (input, *rest), options)

    return with_state(*args, **kwargs)


_OWN: dict[str, Rule] = {
    "einsum": _einsum, "inner": _contracted, "tensordot": _contracted, "max_pool3d": _unless_indices,
    "matrix_power": _power, "linalg.matrix_power": _power, "pad": _pad, "svd_lowrank": _low_rank,
    "pca_lowrank": _low_rank, "linear_cross_entropy": _losses_of_products, "lstm_cell": _lstm_cell, "gru_cell": _gru_cell,
    "multi_head_attention_forward": _attention,
}  # fmt: skip


# ------------------------------------------------------------------------------------------------------ switches


@cache
def rules() -> dict[Any, Rule]:
    """Return the functions that autocast concerns -> their rules."""
    found: dict[Any, Rule] = {recurrent.stacked: _layers}
    named = {name: rule for names, rule in ((_LOWER, _lower), (_FLOAT32, _float32), (_WIDEST, _widest), (_ROUNDED, _rounded)) for name in names.split()}
    for name, rule in (named | _OWN).items():
        functions = [OPS[n].call for n in (name, f"nn.functional.{name}") if n in OPS]
        if name in vars(Tensor):
            functions.append(vars(Tensor)[name])
        found.update(dict.fromkeys(functions, rule))
    return found


def compute(rule: Rule, call: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Return the result of a function by its rule; what it does within is not cast again. What is to be written to ``out`` is not cast."""
    if kwargs.get("out") is not None:
        return call(*args, **kwargs)
    to = state.to

    def suspended(*args: Any, **kwargs: Any) -> Any:
        state.to = None
        try:
            return call(*args, **kwargs)
        finally:
            state.to = to

    assert to is not None
    return rule(suspended, args, kwargs, to)


@whole
def switch(device: str, enabled: bool, lower: Any = None) -> None:
    """Switch autocast on or off for a device in this thread, with the dtype ``lower`` from now on if one is given."""
    if lower is not None:
        state.lower = {**state.lower, device: lower}
    if not enabled and device not in state.enabled:
        return
    state.enabled = state.enabled | {device} if enabled else state.enabled - {device}
    if device == "cpu":
        before, now = state.to, state.lower["cpu"] if enabled else None
        if before is None and now is not None:
            casting.begun()
            INTERCEPTION.begin_casts(rules(), compute)
        state.to = now
        if before is not None and now is None:
            INTERCEPTION.end_casts()


def clear_cache() -> None:
    """Forget what parameters were cast to."""
    state.kept = None


casting.switched = switch
