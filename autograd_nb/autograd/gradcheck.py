"""Gradient checks for users: analytic derivatives against central differences.

Source: https://docs.pytorch.org/docs/stable/generated/torch.autograd.gradcheck.gradcheck.html
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..dtypes import complex128, float64
from ..errors import GradcheckError, warn_user
from ..graph.modes import recorded
from ..ops.core.marked import MARKED
from ..ops.creation.create import new_full
from ..ops.creation.data import from_numpy
from ..ops.elementwise.complex import resolve_conj, view_as_complex, view_as_real
from ..shapes import is_expanded
from ..tensor import Tensor, ndarray
from .api import grad
from .function import Function
from .interpreters import Wrapped

__all__ = ["GradcheckError", "gradcheck", "gradgradcheck"]


def _inputs(inputs: Any) -> tuple[Any, ...]:
    return (inputs,) if isinstance(inputs, Tensor) else tuple(inputs)


def _outputs(value: Any) -> list[Tensor]:
    """Return the differentiable outputs; complex ones as pairs of real numbers."""
    values = value if isinstance(value, (tuple, list)) else (value,)
    found = [v for v in values if isinstance(v, Tensor) and (v.dtype.is_floating_point or v.dtype.is_complex)]
    return [view_as_real(resolve_conj(v)) if v.dtype.is_complex else v for v in found]


def _of_reals(func: Callable[..., Any], args: tuple[Any, ...], wanted: list[int]) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """Return the same function of the parts of its complex inputs: PyTorch's gradient is that by the real part + i · by the other."""
    whole = {i for i in wanted if args[i].dtype.is_complex}
    if not whole:
        return func, args

    def of_reals(*values: Any) -> Any:
        return func(*[view_as_complex(v) if i in whole else v for i, v in enumerate(values)])

    return of_reals, tuple(view_as_real(a.detach().clone()).requires_grad_() if i in whole else a for i, a in enumerate(args))


def gradcheck(
    func: Callable[..., Any], inputs: Tensor | Sequence[Any], *, eps: float = 1e-6, atol: float = 1e-5, rtol: float = 1e-3,
    raise_exception: bool = True, nondet_tol: float = 0.0, check_undefined_grad: bool = True, check_grad_dtypes: bool = False,
    check_batched_grad: bool = False, check_batched_forward_grad: bool = False, check_forward_ad: bool = False,
    check_backward_ad: bool = True, fast_mode: bool = False, masked: bool | None = None, check_sparse_nnz: bool | None = None,
) -> bool:  # fmt: skip
    """Return whether the derivatives of ``func`` at ``inputs`` agree with central differences (f(x + eps) − f(x − eps)) / 2·eps.

    inputs: tensors (those that require grad are checked; use float64) and other arguments. atol, rtol: |analytic − numeric| ≤
    atol + rtol·|numeric|. nondet_tol: how far two backward passes may differ. fast_mode: compare along one random direction
    instead of every element.

    Returns True, or raises GradcheckError naming output, input, index and both values (False with raise_exception=False).
    Errors: ValueError when no input requires grad.

    Example:
        >>> x = torch.rand(3, dtype=torch.float64, requires_grad=True)
        >>> torch.autograd.gradcheck(lambda x: x.exp().sum(), (x,))
        True
    """
    args = _inputs(inputs)
    wanted = [i for i, a in enumerate(args) if isinstance(a, Tensor) and a.requires_grad]
    _check_modes(check_batched_forward_grad, check_forward_ad, check_backward_ad, check_batched_grad)
    if not wanted:
        raise ValueError(
            "gradcheck expects at least one input tensor to require gradient, but none of them have requires_grad=True."
        )
    _look_at(args, wanted)
    try:
        real, parts = _of_reals(func, args, wanted)
        if check_backward_ad:
            _check(real, parts, wanted, eps, atol, rtol, nondet_tol, check_undefined_grad, fast_mode)
        if check_forward_ad:
            _check_forward(real, parts, wanted, eps, atol, rtol)
        if check_batched_forward_grad:
            _check_forward_batched(real, parts, wanted)
        if check_batched_grad:
            _check_batched(real, parts, wanted)
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


def _look_at(args: tuple[Any, ...], wanted: list[int]) -> None:
    for i in wanted:
        if any(st == 0 and size > 1 for st, size in zip(args[i].stride(), args[i].shape, strict=True)):
            raise RuntimeError(
                f"The {i}th input has a dimension with stride 0. gradcheck only supports inputs that are non-overlapping to be able to compute "
                "the numerical gradients correctly. You should call .contiguous on the input before passing it to gradcheck."
            )
        if args[i].dtype not in (float64, complex128):
            warn_user(
                f"Input #{i} requires gradient and is not a double precision floating point. This check will likely fail if all the "
                "inputs are not of double precision floating point. ",
                UserWarning,
            )


def _check_modes(batched_forward: bool, forward: bool, backward: bool, batched: bool) -> None:
    if batched_forward and not forward:
        raise AssertionError("Setting check_batched_forward_grad=True requires check_forward_ad to be True")
    if not (forward or backward):
        raise AssertionError("Expected at least one of check_forward_ad or check_backward_ad to be True")
    if batched and not backward:
        raise AssertionError("Setting check_batched_grad=True requires check_backward_ad to be True")


def _check(
    func: Any, args: tuple[Any, ...], wanted: list[int], eps: float, atol: float, rtol: float, nondet: float, undefined: bool, fast: bool
) -> None:
    outputs = _outputs(func(*args))
    rng = np.random.default_rng(0)
    for k, i in itertools.product(range(len(outputs)), wanted) if not any(out.requires_grad for out in outputs) else ():
        if np.abs(_numeric(func, args, i, k, eps)).max(initial=0.0) > atol:
            raise GradcheckError(
                f"Numerical gradient for function expected to be zero: output {k} does not require grad but depends on input {i}."
            )
    differentiable = [(k, out) for k, out in enumerate(outputs) if out.requires_grad]
    for k, out in differentiable:
        if fast:
            _fast(func, args, wanted, k, out, eps, atol, rtol, rng)
            _reentrant(out, args, wanted, from_numpy(rng.standard_normal(tuple(out.shape))).to(out.dtype), nondet)
        else:
            for i, analytic in _analytic(out, args, wanted, nondet).items():
                _compare(analytic.T, _numeric(func, args, i, k, eps), k, i, atol, rtol)
    for _, out in differentiable:
        zero = from_numpy(np.zeros(tuple(out.shape))).to(out.dtype)
        for i in wanted:
            (g,) = grad(out, args[i], zero, retain_graph=True, allow_unused=True)
            if g is not None and np.any(ndarray(g.detach()) != 0):
                raise GradcheckError(f"backward not multiplied by grad_output: that of a zero gradient is not zero for input {i}.")
    if undefined and differentiable:
        _check_undefined(func, args, wanted)


class _Undefined(Function):
    """Passes a value on, and no gradient."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return x.clone()

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> None:
        return None


def _check_undefined(func: Any, args: tuple[Any, ...], wanted: list[int]) -> None:
    """Refuse a backward that fails, or makes gradients of nothing, where no gradient of the outputs, or of one of them, arrives."""

    def outputs() -> list[Tensor]:
        with recorded():
            return [out for out in _outputs(func(*args)) if out.requires_grad]

    n = len(outputs())
    for missing in ([*range(n)], *([k] for k in range(n if n > 1 else 0))):
        outs = [_Undefined.apply(out) if k in missing else out for k, out in enumerate(outputs())]
        try:
            found = grad(outs, [args[i] for i in wanted], [new_full(o.shape, 0, o.dtype) for o in outs], allow_unused=True)
        except RuntimeError as error:
            warn_user(_NEW_CHECK, UserWarning)
            raise GradcheckError(
                "Expected backward function to handle undefined output grads: it fails where the gradient of "
                f"{'all outputs' if len(missing) == n else f'output {missing[0]}'} is None."
            ) from error
        if any(g is not None and np.any(ndarray(g.detach()) != 0) for g in found):
            warn_user(_NEW_CHECK, UserWarning)
            raise GradcheckError("Expected all input grads to be undefined or zero when all output grads are undefined or zero.")


_NEW_CHECK = (
    "Backwards compatibility: New undefined gradient support checking feature is enabled by default, but it may break existing callers of this "
    'function. If this is true for you, you can call this function with "check_undefined_grad=False" to disable the feature'
)


def _reentrant(out: Tensor, args: tuple[Any, ...], wanted: list[int], g: Tensor, nondet: float) -> None:
    """Refuse a backward pass that gives other gradients the second time."""
    first, second = ([grad(out, args[i], g, retain_graph=True, allow_unused=True)[0] for i in wanted] for _ in range(2))
    for i, a, b in zip(wanted, first, second, strict=True):
        if a is not None:
            _same_twice(i, ndarray(a.detach()), b, nondet)


def _same_twice(i: int, first: np.ndarray, second: Tensor, nondet: float) -> None:
    if np.abs(first - ndarray(second.detach())).max(initial=0.0) > nondet:
        raise GradcheckError(
            "Backward is not reentrant, i.e., running backward with same input and grad_output multiple times gives different values, although "
            f"analytical gradient matches numerical gradient. (input {i}; the tolerance for nondeterminism was {nondet}.)"
        )


def _analytic(out: Tensor, args: tuple[Any, ...], wanted: list[int], nondet: float) -> dict[int, np.ndarray]:
    """Return for each input the Jacobian (outputs × inputs), a backward pass for each row; two passes must agree within ``nondet``."""
    found = {i: np.zeros((out._layout.size, args[i]._layout.size)) for i in wanted}
    for row in range(out._layout.size):
        seed = np.zeros(out._layout.size)
        seed[row] = 1
        g = from_numpy(seed.reshape(tuple(out.shape))).to(out.dtype)
        grads = [grad(out, args[i], g, retain_graph=True, allow_unused=True)[0] for i in wanted]
        again = [grad(out, args[i], g, retain_graph=True, allow_unused=True)[0] for i in wanted] if row == 0 else grads
        for i, a, b in zip(wanted, grads, again, strict=True):
            if a is None:
                continue
            if a.shape != args[i].shape or a.dtype is not args[i].dtype:
                raise GradcheckError(
                    f"gradient of input {i} has shape {list(a.shape)} and dtype {a.dtype} instead of {list(args[i].shape)} and {args[i].dtype}"
                )
            x = ndarray(a.detach())
            _same_twice(i, x, b, nondet)
            found[i][row] = x.reshape(-1)
    return found


def _shifted(func: Any, args: tuple[Any, ...], i: int, k: int, change: np.ndarray, like: Tensor) -> np.ndarray:
    """Return output k, which is ``like`` this one, where input i is moved.

    It is moved where it lies, as in PyTorch: a function may read it elsewhere than in its arguments.
    """
    x = args[i]
    values = ndarray(x.detach())
    before = values.copy()
    if not values.flags.writeable or is_expanded(x._layout):
        x = from_numpy(before.copy()).requires_grad_()
        values = ndarray(x.detach())

    def put(numbers: np.ndarray) -> None:
        if x.__class__ in MARKED:  # whose values are made of the memory's
            x.data.copy_(from_numpy(numbers))
        else:
            values[...] = numbers

    put(before.astype(np.float64) + change)
    try:
        with recorded():  # (the function may register hooks)
            out = _outputs(func(*args[:i], x, *args[i + 1 :]))[k].detach()
            for what, mine, first in (("shape", list(out.shape), list(like.shape)), ("dtype", out.dtype, like.dtype)):
                if mine != first:
                    raise AssertionError(
                        f"Expected `func` to return outputs with the same {what} when inputs are perturbed, but got: {what}s {first} and {mine}."
                    )
            return ndarray(out).astype(np.float64).reshape(-1).copy()
    finally:
        put(before)


def _numeric(func: Any, args: tuple[Any, ...], i: int, k: int, eps: float) -> np.ndarray:
    """Return the Jacobian (inputs × outputs) by central differences."""
    shape, n = tuple(args[i].shape), args[i]._layout.size
    rows = []
    like = _outputs(func(*args))[k]
    for j in range(n):
        change = np.zeros(n)
        change[j] = eps
        change = change.reshape(shape)
        rows.append((_shifted(func, args, i, k, change, like) - _shifted(func, args, i, k, -change, like)) / (2 * eps))
    return np.array(rows) if rows else np.zeros((0, 0))


def _compare(analytic: np.ndarray, numeric: np.ndarray, k: int, i: int, atol: float, rtol: float, how: str = "") -> None:
    if not numeric.size:
        return
    close = np.isclose(analytic, numeric, rtol=rtol, atol=atol, equal_nan=True)
    if not close.all():
        a, b = np.argwhere(~close)[0]
        raise GradcheckError(
            f"Jacobian {how}mismatch for output {k} with respect to input {i}, at element {a} of the input and {b} of the output: analytical "
            f"{analytic[a, b]:.10g}, numerical {numeric[a, b]:.10g} ({(~close).sum()} of {close.size} differ).\n"
            f"numerical:{numeric}\nanalytical:{analytic}\n"
        )


def _check_forward(func: Any, args: tuple[Any, ...], wanted: list[int], eps: float, atol: float, rtol: float) -> None:
    """Check the tangents along every element of every input."""
    from .forward_ad import dual_level, make_dual, unpack_dual

    for i in wanted:
        x = args[i].detach()
        columns: list[list[np.ndarray]] = []
        for j in range(x._layout.size):
            unit = np.zeros(x._layout.size)
            unit[j] = 1
            t = from_numpy(unit.reshape(tuple(x.shape))).to(x.dtype)
            with dual_level():
                duals = [make_dual(a.detach(), t if k == i else new_full(a.shape, 0, a.dtype)) if k in wanted else a for k, a in enumerate(args)]
                found = [unpack_dual(o) for o in _outputs(func(*duals))]
            columns.append(
                [np.zeros(p._layout.size) if v is None else ndarray(v.detach().contiguous()).reshape(-1) for p, v in found]
            )
        for k in range(len(columns[0]) if columns else 0):
            _compare(np.array([c[k] for c in columns]), _numeric(func, args, i, k, eps), k, i, atol, rtol, "computed with forward mode ")


def _check_forward_batched(func: Any, args: tuple[Any, ...], wanted: list[int]) -> None:
    """Check tangents of a batch against those of its rows."""
    from .batching.vmap import vmap
    from .forward_ad import dual_level, make_dual, unpack_dual

    rng = np.random.default_rng(1)
    for i in wanted:
        x, plain = args[i].detach(), [a.detach() if k in wanted else a for k, a in enumerate(args)]
        batch = from_numpy(rng.standard_normal((2, *x.shape))).to(x.dtype)

        def tangents(t: Tensor, i: int = i, x: Tensor = x, plain: list[Any] = plain) -> tuple[Tensor, ...]:
            with dual_level():
                found = [unpack_dual(o) for o in _outputs(func(*plain[:i], make_dual(x, t), *plain[i + 1 :]))]
                return tuple(p * 0 if v is None else v for p, v in found)

        whole, rows = vmap(tangents)(batch), [tangents(t) for t in batch]
        for k, got in enumerate(whole):
            for n, row in enumerate(rows):
                if not np.allclose(ndarray(got[n].detach().contiguous()), ndarray(row[k].detach().contiguous())):
                    raise GradcheckError(f"Tangents of a batch differ from those of its rows, for input {i} and output {k}.")


def _check_batched(func: Any, args: tuple[Any, ...], wanted: list[int]) -> None:
    """Check the gradients of a batch against those of its rows."""
    rng = np.random.default_rng(1)
    for out in _outputs(func(*args)):
        if not out.requires_grad:
            continue
        batch = from_numpy(rng.standard_normal((2, *out.shape))).to(out.dtype)
        for i in wanted:
            (whole,) = grad(
                out, args[i], batch, retain_graph=True, allow_unused=True, is_grads_batched=True, materialize_grads=True
            )
            for v, g in zip(batch, whole, strict=True):
                (one,) = grad(out, args[i], v, retain_graph=True, materialize_grads=True)
                if not np.allclose(ndarray(g.detach().contiguous()), ndarray(one.detach().contiguous())):
                    raise GradcheckError(f"Gradients of a batch differ from those of its rows, for input {i}.")


def _fast(
    func: Any, args: tuple[Any, ...], wanted: list[int], k: int, out: Tensor, eps: float, atol: float, rtol: float, rng: Any
) -> None:
    """Check along one random direction for each input, for one random combination of the outputs."""
    v = rng.standard_normal(tuple(out.shape))
    g = from_numpy(np.asarray(v)).to(out.dtype)
    for i in wanted:
        u = rng.standard_normal(tuple(args[i].shape))
        u /= max(float(np.linalg.norm(u)), 1e-12)
        numeric = float(
            ((_shifted(func, args, i, k, u * eps, out) - _shifted(func, args, i, k, -u * eps, out)) / (2 * eps)) @ v.reshape(-1)
        )
        (a,) = grad(out, args[i], g, retain_graph=True, allow_unused=True)
        analytic = 0.0 if a is None else float((ndarray(a.detach()) * u).sum())
        if not np.isclose(analytic, numeric, rtol=rtol, atol=atol * max(1.0, float(np.abs(v).sum()))):
            raise GradcheckError(
                f"Jacobian mismatch for output {k} with respect to input {i}, along a random direction: analytical {analytic:.10g}, "
                f"numerical {numeric:.10g}"
            )


def gradgradcheck(
    func: Callable[..., Any], inputs: Tensor | Sequence[Any], grad_outputs: Any = None, *, eps: float = 1e-6,
    atol: float = 1e-5, rtol: float = 1e-3, gen_non_contig_grad_outputs: bool = False, raise_exception: bool = True,
    nondet_tol: float = 0.0, check_undefined_grad: bool = True, check_grad_dtypes: bool = False,
    check_batched_grad: bool = False, check_fwd_over_rev: bool = False, check_rev_over_rev: bool = True,
    fast_mode: bool = False, masked: bool = False,
) -> bool:  # fmt: skip
    """Return `gradcheck` of the gradient itself: whether second derivatives agree with differences of the first.

    grad_outputs: what the first backward pass starts from (random by default).

    >>> torch.autograd.gradgradcheck(lambda x: x ** 3, (torch.ones(2, dtype=torch.float64, requires_grad=True),))
    True
    """
    if not (check_fwd_over_rev or check_rev_over_rev):
        raise AssertionError("Expected at least one of check_fwd_over_rev or check_rev_over_rev to be True")
    for name, asked in (("check_undefined_grad", check_undefined_grad), ("check_batched_grad", check_batched_grad)):
        if asked and not check_rev_over_rev:
            raise AssertionError(f"Setting {name}=True requires check_rev_over_rev to be True")
    args = _inputs(inputs)
    outputs = [o for o in _outputs(func(*args)) if o.requires_grad]
    if grad_outputs is None:
        rng = np.random.default_rng(0)
        seeds = [from_numpy(np.asarray(rng.standard_normal(tuple(o.shape)))).to(o.dtype).requires_grad_() for o in outputs]
    else:
        seeds = list(_inputs(grad_outputs))
    n = len(args)
    wanted = [i for i, a in enumerate(args) if isinstance(a, Tensor) and a.requires_grad]

    def first(*everything: Any) -> tuple[Any, ...]:
        values = list(everything[:n])
        for i in wanted:  # differences are taken at tensors that do not require grad
            if not values[i].requires_grad:
                values[i] = (values[i] if isinstance(values[i], Wrapped) else values[i].detach()).requires_grad_()
        with recorded():
            results = [o for o in _outputs(func(*values)) if o.requires_grad]
            found = grad(results, [values[i] for i in wanted], list(everything[n:]), create_graph=True, allow_unused=True)
            return tuple(values[i] * 0 if g is None else g for i, g in zip(wanted, found, strict=True))

    return gradcheck(
        first, (*args, *seeds), eps=eps, atol=atol, rtol=rtol, raise_exception=raise_exception, nondet_tol=nondet_tol,
        check_undefined_grad=check_undefined_grad, fast_mode=fast_mode, check_batched_grad=check_batched_grad,
        check_forward_ad=check_fwd_over_rev, check_backward_ad=check_rev_over_rev,
    )  # fmt: skip
