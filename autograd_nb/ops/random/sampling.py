"""Samples whose law other tensors give: `bernoulli`, `normal`, `multinomial`, `poisson`, `binomial`, gamma."""

from __future__ import annotations

import numpy as np

from ... import dtypes, launch
from ...codegen.formula.namespace import m
from ...codegen.templates import draws
from ...graph.modes import state, unrecorded
from ...launch import Kernel
from ...shapes import as_int, as_shape, broadcast_shapes, check_sizes
from ...tensor import Tensor
from ..core.recording import check_output, fresh, made_here, made_in, not_for_barebone, store
from ..core.registry import public
from ..core.structured import Structured, structured, tensor_argument
from ..creation.cast import cast, dense, placed
from ..creation.create import _finish, new_empty
from .draws import (
    _BERNOULLI,
    _BERNOULLI_32,
    _NORMAL,
    _UNIT,
    Law,
    _check_std,
    _fill,
    _float_dtype,
    _floats,
    _found,
    _kind,
    _new,
    _number,
)
from .generator import stream

_outside = Kernel("random", "outside_unit")


def _check_probabilities(p: Tensor) -> None:
    flat = dense(cast(p, dtypes.float64))
    bad = np.empty(1, np.int64)
    _outside(0, flat, bad)

    def inside(bad):
        if bad[0]:
            raise RuntimeError(
                "Expected p_in >= 0 && p_in <= 1 to be true, but got false. (bernoulli() needs probabilities in [0, 1])"
            )

    launch.check(inside, bad, passes=((0, 0, 0, 0),))


def _history(node: str, sample: str) -> Structured:
    """Return an op that gives a sample its history: its values do not follow the tensors of its law, whose gradients are zeros."""

    @structured(
        a=lambda g, a_shape: g.new_zeros(a_shape), b=lambda g, b_shape: g.new_zeros(b_shape), node=node,
        linear="no", batch="samples", dtypes="half float", samples=sample,
    )
    def drawn(sample, a, b):
        return sample

    return drawn


_of_bernoulli = _history("BernoulliBackward0", "torch.bernoulli(x(3, 4).clamp(0, 1))")
_of_poisson = _history("PoissonBackward0", "torch.poisson(pos(3, 4))")
_of_normal = {
    (True, False): _history("NormalBackward1", "torch.normal(x(3, 4), 0.5)"),
    (False, True): _history("NormalBackward2", "torch.normal(0.5, pos(3, 4))"),
    (True, True): _history("NormalBackward3", "torch.normal(x(3, 4), pos(3, 4))"),
}


@public(kind="inplace", namespaces=())
def bernoulli_(self, p: Tensor | float = 0.5, *, generator=None):
    """Fill with 1 with probability ``p`` (a number, or a tensor that broadcasts), else 0."""
    x = tensor_argument(self, "bernoulli_", "self")
    not_for_barebone("bernoulli_scalar_cpu_", x.dtype)
    if isinstance(p, Tensor) and p.ndim:
        _check_probabilities(p)
        q = dense(cast(p.detach().expand(x.shape), dtypes.float64))
        return _fill("bernoulli_", x, _BERNOULLI, generator, (q, dtypes.float64))
    p = p.item() if isinstance(p, Tensor) else _number("bernoulli_", "p", p)
    if not 0 <= p <= 1:
        raise RuntimeError(f"bernoulli_ expects p to be in [0, 1], but got p={_found(p)}")
    return _fill("bernoulli_", x, _BERNOULLI, generator, p)


@public()
def bernoulli(input, p: Tensor | float | None = None, *, generator=None, out=None):
    """Return 1 with the probability that the element of ``input`` gives (or ``p`` for all), else 0. Its gradient is 0.

    Errors: RuntimeError for probabilities outside [0, 1].
    Source: https://docs.pytorch.org/docs/stable/generated/torch.bernoulli.html

    >>> torch.bernoulli(torch.tensor([0.0, 1.0]))
    tensor([0., 1.])
    """
    x = tensor_argument(input, "bernoulli").detach()
    t = new_empty(x.shape, x.dtype)
    if p is not None:
        bernoulli_(t, p, generator=generator)
    else:
        _floats("bernoulli", x, "bernoulli_tensor_cpu_self_")
        _check_probabilities(x)
        _BERNOULLI_32(stream(generator), t._data, x.dtype, (dense(x), x.dtype))
    t._version_[0] = 0
    t = _of_bernoulli(_finish(t, False), input, None)
    if out is None:
        return t
    return store(out, cast(t, out.dtype) if isinstance(out, Tensor) else t, "bernoulli", (), (input,), quiet=True)


@public(method=False)
@placed
def normal(
    mean: Tensor | float = 0.0, std: Tensor | float = 1.0, size=None, *, generator=None, out=None, dtype=None, layout=None,
    device=None, requires_grad=False, pin_memory=False,
):  # fmt: skip
    """Return normal numbers whose mean and standard deviation are tensors (broadcast), or numbers with a ``size``.

    Derivative: 0 for both operands: the numbers are drawn anew.
    Errors: RuntimeError for a negative standard deviation.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.normal.html

    >>> torch.normal(torch.tensor([1., 2.]), torch.tensor([0., 0.]))
    tensor([1., 2.])
    """
    if size is not None:  # tensors without dims are numbers there
        mean, std = (x.item() if isinstance(x, Tensor) and not x.ndim and not x.requires_grad else x for x in (mean, std))
    if not isinstance(mean, Tensor) and not isinstance(std, Tensor):
        if size is None:
            raise TypeError("normal() needs a size when mean and std are numbers, as in normal(0.0, 1.0, (3,))")
        shape = as_shape((size,))
        check_sizes(shape)
        d = _float_dtype(made_in(out, dtype), "normal_kernel_cpu")
        values = _number("normal", "mean", mean), _check_std(_number("normal", "std", std))
        return _new(shape, d, _NORMAL, generator, out, requires_grad, "normal", *values)
    if size is not None:
        raise TypeError("normal() received an invalid combination of arguments: it takes a size only when mean and std are numbers")
    n, drawn = ("mean", mean) if isinstance(mean, Tensor) else ("std", std)
    if isinstance(out, Tensor) and drawn.dtype.category < 2:
        n, drawn = "out", out  # (PyTorch draws in the output)
    _floats(f"normal ({n})", drawn, "normal_kernel_cpu")
    d = drawn.dtype
    if isinstance(std, Tensor) and std.dtype.is_complex:
        raise RuntimeError(f"normal expects standard deviation to be non-complex, but got std of {std.dtype}")
    if isinstance(std, Tensor):
        if std._layout.size:
            low = np.empty(1, np.float64)
            _least(0, dense(cast(std.detach(), dtypes.float64)), low)

            def positive(low):
                if not low[0] >= 0:
                    raise RuntimeError(f"normal expects all elements of std >= 0.0, but found std {_found(float(low[0]))}")

            launch.check(positive, low)
    else:
        _check_std(_number("normal", "std", std))
    shape = broadcast_shapes(*[x.shape for x in (mean, std) if isinstance(x, Tensor)])
    operands = [
        (dense(cast(x.detach().expand(shape), d)), d) if isinstance(x, Tensor) else _number("normal", n, x)
        for n, x in (("mean", mean), ("std", std))
    ]
    t = _new(shape, d, _NORMAL, generator, None, requires_grad, "normal", *operands)
    if isinstance(out, Tensor) and t._layout.size:
        check_output(out, "normal", state.grad and any(isinstance(x, Tensor) and x.requires_grad for x in (mean, std)))
        _float_dtype(out.dtype, "normal_kernel_cpu")
    laws = [cast(x, d) if isinstance(x, Tensor) else x for x in (mean, std)]
    t = _of_normal[isinstance(mean, Tensor), isinstance(std, Tensor)](t, *laws)
    return store(out, t, "normal", (), tuple([x for x in (mean, std) if x is not out])) if out is not None else t


_least = Kernel("random", "least")
_choose = Kernel("random", "choose_with_replacement", outputs=2)
_race = Kernel("random", "race", outputs=2)
_poisson = Kernel("random", "poisson")
_binomial = Kernel("random", "binomial")
_POSITIVE = Law("exponential", draws.positive, lambda u: -m.log(u))


@public()
def multinomial(input, num_samples, replacement=False, *, generator=None, out=None):
    """Return indices drawn with the probabilities (or weights) of each row of ``input``; int64, (num_samples,) or (rows, num_samples).

    Errors: RuntimeError for weights that are negative, not finite or all 0, and for more samples than there are weights.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.multinomial.html

    >>> torch.multinomial(torch.tensor([0., 1.]), 2, replacement=True)
    tensor([1, 1])
    """
    x = tensor_argument(input, "multinomial").detach()
    n = as_int(num_samples, "num_samples")
    if not 1 <= x.ndim <= 2:
        raise RuntimeError(f"prob_dist must be 1 or 2 dim (input.shape={list(x.shape)})")
    if not x.dtype.is_floating_point:
        raise RuntimeError(f"multinomial only supports floating-point dtypes for input, got: {_kind(x.dtype)}")
    if n <= 0:
        raise RuntimeError(f"cannot sample n_sample <= 0 samples (num_samples={n})")
    if isinstance(out, Tensor) and out.dtype is not dtypes.int64:
        raise RuntimeError(f"multinomial expects Long tensor out, got: {_kind(out.dtype)}")
    k = x.shape[-1]
    if not replacement and n > k:
        raise RuntimeError(
            f"cannot sample n_sample > prob_dist.size(-1) samples without replacement (num_samples={n}, {k} weights)"
        )
    if k > 1 << 24:
        raise RuntimeError(f"number of categories cannot exceed 2^24 ({k} weights)")
    rows = x.shape[0] if x.ndim == 2 else 1
    flat = dense(cast(x, dtypes.float64))
    status = launch.empty(1, np.dtype(np.int64))
    t = new_empty((rows, n), dtypes.int64)
    size = rows * n if replacement else rows * k
    random = launch.empty(size, dtypes.float64.np)
    (_UNIT if replacement else _POSITIVE)(stream(generator), random, dtypes.float64)
    (_choose if replacement else _race)(0, k, n, flat, random, t._data, status)

    def drawn(status):
        if status[0] == 1:
            raise RuntimeError("probability tensor contains either `inf`, `nan` or element < 0")
        if status[0]:
            raise RuntimeError("invalid multinomial distribution (sum of probabilities <= 0)")

    launch.check(drawn, status, passes=((0, 0, 0, 0),))
    t = made_here(t if x.ndim == 2 else fresh(t.reshape(n)))
    return store(out, t, "multinomial", quiet=True) if out is not None else t


@public(method=False)
def poisson(input, generator=None):
    """Return Poisson numbers with the rates given by ``input``, of its dtype. RuntimeError for negative rates.

    Derivative: 0: the numbers are drawn anew.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.poisson.html

    >>> torch.poisson(torch.tensor([0.]))
    tensor([0.])
    """
    x = tensor_argument(input, "poisson").detach()
    _floats("poisson", x, "poisson_cpu")
    rates = dense(cast(x, dtypes.float64))
    if rates.size:
        low = np.empty(1, np.float64)
        _least(0, rates, low)

        def positive(low):
            if not low[0] >= 0:
                raise RuntimeError(f"invalid Poisson rate, expected rate to be non-negative (found {_found(float(low[0]))})")

        launch.check(positive, low)
    t = new_empty(x.shape, dtypes.float64)
    _poisson(0, *stream(generator), rates, t._data)
    return _of_poisson(cast(t, x.dtype), input, None)


@public(method=False)
def binomial(count, prob, generator=None):
    """Return binomial numbers: successes in ``count`` trials of probability ``prob`` (tensors that broadcast), of count's dtype.

    Errors: RuntimeError for other dtypes than floating ones, or two different ones.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.binomial.html

    >>> torch.binomial(torch.tensor([3.]), torch.tensor([1.]))
    tensor([3.])
    """
    n, p = tensor_argument(count, "binomial", "count").detach(), tensor_argument(prob, "binomial", "prob").detach()
    _floats("binomial", n, "binomial_cpu")
    if n.dtype is not p.dtype:
        raise RuntimeError(f"binomial only supports tensors of one dtype, got count of {n.dtype} and prob of {p.dtype}")
    shape = broadcast_shapes(n.shape, p.shape)
    t = new_empty(shape, dtypes.float64)
    trials, chances = (dense(cast(x.expand(shape), dtypes.float64)) for x in (n, p))
    _binomial(0, *stream(generator), trials, chances, t._data)
    return cast(t, n.dtype)


_gamma = Kernel("random", "gamma")
_gamma_slope = Kernel("random", "gamma_slope")


def _slope(shape: Tensor, sample: Tensor) -> Tensor:
    with unrecorded():
        t = new_empty(shape.shape, dtypes.float64)
        _gamma_slope(0, dense(cast(shape.detach(), dtypes.float64)), dense(cast(sample.detach(), dtypes.float64)), t._data)
        return cast(t, shape.dtype)


@structured(
    shape=lambda g, shape, out: g * _slope(shape, out), node="StandardGammaBackward0", linear="no", batch="samples",
    dtypes="half float", samples="torch._standard_gamma(pos(3, 4))",
)
def _standard_gamma_op(shape, seed, call):
    t = new_empty(shape.shape, dtypes.float64)
    _gamma(0, seed, call, dtypes.finfo(shape.dtype).tiny, dense(cast(shape, dtypes.float64)), t._data)
    return cast(t, shape.dtype)


@public(method=False)
def _standard_gamma(input, generator=None):
    """Return Gamma numbers of the shapes ``input`` and scale 1; the gradient is that of the sample at a fixed place (implicit)."""
    x = tensor_argument(input, "_standard_gamma")
    _floats("_standard_gamma", x, "gamma")
    return _standard_gamma_op(x, *stream(generator))


_onto_simplex = Kernel("random", "onto_simplex")
_dirichlet_slope = Kernel("random", "dirichlet_slope")


@structured(
    alpha=lambda g, alpha, out: _dirichlet_grad(out, alpha, alpha.sum(-1, True).expand_as(alpha)) * (g - (out * g).sum(-1, True)),
    node="SampleDirichletBackward0", linear="no", batch="samples", dtypes="half float", samples="torch._sample_dirichlet(pos(3, 4))",
)
def _sample_dirichlet_op(alpha, seed, call):
    t, out = new_empty(alpha.shape, dtypes.float64), new_empty(alpha.shape, dtypes.float64)
    _gamma(0, seed, call, dtypes.finfo(dtypes.float64).tiny, dense(cast(alpha, dtypes.float64)), t._data)
    if out._layout.size:
        info = dtypes.finfo(alpha.dtype)  # (a 1 has no density: the greatest number is the one below it)
        _onto_simplex(0, alpha.shape[-1], info.tiny, 1 - info.eps / 2, t._data, out._data)
    return cast(out, alpha.dtype)


@public(method=False)
def _sample_dirichlet(input, generator=None):
    """Return points of the simplex from Dirichlet's distributions, whose concentrations are along the last dim of ``input``; implicit gradient."""
    x = tensor_argument(input, "_sample_dirichlet")
    _floats("_sample_dirichlet", x, "dirichlet")
    return _sample_dirichlet_op(x, *stream(generator))


@public(method=False)
def _dirichlet_grad(x, alpha, total: Tensor):
    """Return how fast x of a beta distribution with the parameters alpha and total − alpha moves with alpha, divided by 1 − x."""
    point, a = tensor_argument(x, "_dirichlet_grad", "x").detach(), tensor_argument(alpha, "_dirichlet_grad", "alpha").detach()
    whole = tensor_argument(total, "_dirichlet_grad", "total").detach()
    _floats("_dirichlet_grad", point, "_dirichlet_grad_cpu")
    with unrecorded():
        t = new_empty(point.shape, dtypes.float64)
        _dirichlet_slope(0, *[dense(cast(v, dtypes.float64)) for v in (point, a, whole)], t._data)
        return cast(t, point.dtype)
