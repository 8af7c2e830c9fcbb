"""`func` and forward mode against PyTorch: small programs, and the first samples of many ops of the database.

``python -m tests.parity.test_func [name…]`` tries ops (all without names) and prints what fails.
"""

from __future__ import annotations

import contextlib
import sys
import warnings
from typing import Any

import numpy as np
import pytest
import torch
from torch.testing._internal.common_methods_invocations import op_db

import autograd_nb as ag
import autograd_nb.autograd.forward_ad as dual_ag

from ..functions import overwritten
from .opdb import RANDOM, Unsupported, compare, find, leaves, ours, outside

# ------------------------------------------------------------------------------------------------- the database


def _sample(op: Any) -> Any:
    """The first sample with a tensor of some size."""
    for s in op.sample_inputs("cpu", torch.float32, requires_grad=False):
        if any(t.numel() for t in leaves((s.input, s.args, s.kwargs))):
            return s
    raise Unsupported("no sample")


def _replace(tree: Any, tensors: list) -> Any:
    """The tree with its tensors taken from a list."""
    if isinstance(tree, (torch.Tensor, ag.Tensor)):
        return tensors.pop(0)
    if isinstance(tree, (list, tuple)):
        return type(tree)([_replace(v, tensors) for v in tree])
    if isinstance(tree, dict):
        return {k: _replace(v, tensors) for k, v in tree.items()}
    return tree


def _function(call: Any, sample: Any) -> tuple[Any, list]:
    """(a function of the sample's tensors, they)."""
    tree = (sample.input, sample.args, sample.kwargs)
    tensors = list(leaves(tree))

    def function(*values: Any) -> Any:
        x, args, kwargs = _replace(tree, list(values))
        return call(x, *args, **kwargs)

    return function, tensors


def _flat(out: Any) -> tuple:
    return tuple(leaves(out))


def _op(name: str) -> Any:
    return next(op for op in op_db if name in (op.name, f"{op.name}.{op.variant_test_name}"))


def _pair(op: Any) -> tuple[Any, Any, list]:
    """(PyTorch's function, this library's, PyTorch's tensors)."""
    mine = find(op)
    if mine is None:
        raise Unsupported("missing")
    sample = _sample(op)
    theirs, tensors = _function(op.op, sample)
    tree = ours((sample.input, tuple(sample.args), dict(sample.kwargs)))

    def function(*values: Any) -> Any:
        x, args, kwargs = _replace(tree, list(values))
        return mine(x, *args, **kwargs)

    return theirs, function, tensors


def check_vmap(op: Any) -> None:
    """vmap of this library's function is PyTorch's function on one slice after the other; all inputs mapped, and the first."""
    theirs, mine, tensors = _pair(op)
    rng = np.random.default_rng(0)
    batches = []
    for t in tensors:
        if t.dtype.is_floating_point and not op.name.startswith(("linalg", "cholesky", "logdet")):
            factors = torch.tensor([1.0, *rng.uniform(0.8, 1.0, 2)]).to(t.dtype).reshape(3, *[1] * t.ndim)
            batches.append(t * factors)
        else:
            batches.append(torch.stack([t] * 3))
    for dims in ([0] * len(tensors), [0] + [None] * (len(tensors) - 1)):
        slices = [_flat(theirs(*[b[i] if d == 0 else t for b, t, d in zip(batches, tensors, dims)])) for i in range(3)]
        expected = [torch.stack(parts) for parts in zip(*slices)]
        given = [ours(b if d == 0 else t) for b, t, d in zip(batches, tensors, dims)]
        got = ag.vmap(lambda *v: _flat(mine(*v)), in_dims=tuple(dims))(*given)
        compare(got, expected, f"vmap{dims}")


def check_forward(op: Any) -> None:
    """Tangents from make_dual and from func.jvp."""
    theirs, mine, tensors = _pair(op)
    floats = [i for i, t in enumerate(tensors) if t.dtype.is_floating_point]
    rng = np.random.default_rng(1)
    moves = [torch.tensor(rng.standard_normal(tuple(tensors[i].shape)), dtype=tensors[i].dtype) for i in floats]

    def primal(function: Any, lib: Any, values: list) -> Any:
        def of_floats(*xs: Any) -> tuple:
            full = list(values)
            for i, x in zip(floats, xs):
                full[i] = x
            return tuple(o for o in _flat(function(*full)) if o.dtype.is_floating_point or o.dtype.is_complex)

        return of_floats

    mine_values = [ours(t) for t in tensors]
    expected = torch.func.jvp(primal(theirs, torch, tensors), tuple(tensors[i] for i in floats), tuple(moves))
    f = primal(mine, ag, mine_values)
    values, tangents = tuple(mine_values[i] for i in floats), tuple(ours(m) for m in moves)
    compare(ag.func.jvp(f, values, tangents), expected, "func.jvp")
    with dual_ag.dual_level():
        found = [dual_ag.unpack_dual(o) for o in f(*[dual_ag.make_dual(p, t) for p, t in zip(values, tangents)])]
        tangent = [ag.zeros_like(p) if t is None else t for p, t in found]
    compare(([p for p, _ in found], tangent), expected, "make_dual")


#: pointwise, reductions, shapes, products, indices, norms, losses, pooling, linear algebra
NAMES = """
    abs acos acosh add addcdiv addcmul addmm addmv addr all amax amin any argmax argmin asin asinh atan atan2 atanh baddbmm bmm
    broadcast_to cat ceil chunk clamp clone cos cosh cross cummax cumprod cumsum deg2rad diag diag_embed diagonal div dot einsum eq
    erf erfc exp exp2 expand expm1 flatten flip floor fmax fmin frac gather ge gt hypot index_add index_copy index_fill index_select
    inner kron le lerp lgamma linalg.det linalg.inv linalg.solve linalg.vector_norm log log10 log1p log2
    log_softmax logaddexp logical_and logit logsumexp lt masked_fill matmul max.reduction_with_dim maximum mean median min.binary
    minimum mm movedim mul mv mvlgamma.mvlgamma_p_1 nan_to_num narrow ne neg nn.functional.adaptive_avg_pool2d
    nn.functional.avg_pool2d nn.functional.bilinear nn.functional.binary_cross_entropy
    nn.functional.celu nn.functional.conv1d nn.functional.conv2d nn.functional.conv_transpose2d nn.functional.cosine_similarity
    nn.functional.cross_entropy nn.functional.elu nn.functional.embedding nn.functional.gelu nn.functional.glu
    nn.functional.group_norm nn.functional.hardtanh nn.functional.huber_loss nn.functional.interpolate nn.functional.kl_div
    nn.functional.l1_loss nn.functional.layer_norm nn.functional.leaky_relu nn.functional.linear nn.functional.logsigmoid
    nn.functional.max_pool2d nn.functional.mse_loss nn.functional.nll_loss nn.functional.normalize nn.functional.pad
    nn.functional.pixel_shuffle nn.functional.prelu nn.functional.relu nn.functional.scaled_dot_product_attention
    nn.functional.silu nn.functional.smooth_l1_loss nn.functional.softplus nn.functional.softsign nn.functional.unfold norm outer
    permute pow prod reciprocal remainder repeat reshape roll rot90 round rsqrt scatter scatter_add select sigmoid sign sin sinc
    sinh softmax sort split sqrt square squeeze stack std sub sum t take take_along_dim tan tanh tile topk trace transpose
    trapezoid tril triu true_divide trunc unbind unflatten unsqueeze var view view_as vstack where xlogy
""".split()  # noqa: SIM905


@pytest.mark.parametrize("name", NAMES)
def test_vmap_of(name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check_vmap(_op(name))


@pytest.mark.parametrize("name", [n for n in NAMES if _op(n).supports_forward_ad])
def test_forward_mode_of(name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check_forward(_op(name))


# ----------------------------------------------------------------------------------------------- small programs


def _numbers(*shape: int) -> np.ndarray:
    return np.sin(np.arange(1, 1 + int(np.prod(shape)), dtype=np.float32) * 0.7).reshape(shape)


_VIEWS = [
    lambda a: a.squeeze_(0), lambda a: a.unsqueeze_(1), lambda a: a.transpose_(0, 1), lambda a: a.t_(), lambda a: a.swapaxes_(0, 1),
    lambda a: a.swapdims_(0, 1),
    lambda a: a.transpose_(0, 1).add_(1).squeeze_(1).mul_(2),
]  # fmt: skip


def _seen_otherwise(lib: Any, x: Any, view: Any) -> Any:
    """A result, and the tensor that was mapped, which has become a view of what it was."""
    x = x.clone()
    return lib.vmap(view)(x), x, x * 1


def _changed_then_counted(lib: Any, x: Any) -> Any:
    """What a change in place gives, and its gradient, where the function then calls what runs sample by sample."""
    x = x.clone().requires_grad_()
    y = x * 1
    y_mapped = lib.vmap(lambda a: (a.mul_(3), lib.histc(a.detach(), 4))[0])(y)
    y.sum().backward()
    return y_mapped.detach(), y.detach(), x.grad


def _half_recorded(lib: Any) -> Any:
    """A function that computes a part under no_grad, which does not hold for tangents."""

    def f(x: Any) -> Any:
        with lib.no_grad():
            y = x * x
        return y * x + y

    return f


def _with_tangents_of_its_own(lib: Any) -> Any:
    """A Function whose jvp is another than its backward pass."""

    class Own(lib.autograd.Function):
        generate_vmap_rule = True

        @staticmethod
        def forward(x: Any) -> Any:
            return x.exp()

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            ctx.save_for_backward(output)
            ctx.save_for_forward(output)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * ctx.saved_tensors[0]

        @staticmethod
        def jvp(ctx: Any, t: Any) -> Any:
            return t * ctx.saved_tensors[0] * 3

    return Own.apply


def _part_apart(lib: Any, x: Any) -> Any:
    with lib.no_grad():
        y = x * x
    return (x**3).sum() + y.sum()


def _exp_sum(x: Any) -> Any:
    return x.exp() * x.sum()


def _scalar(x: Any) -> Any:
    return _exp_sum(x).sum()


def _pinn(lib: Any, w: Any, x: Any) -> Any:
    def u(w, x):
        return lib.tanh(w * x).sum()

    first = lib.func.grad(u, argnums=1)
    second = lib.func.grad(first, argnums=1)
    return lib.vmap(first, (None, 0))(w, x), lib.func.grad(lambda w: lib.vmap(second, (None, 0))(w, x).pow(2).mean())(w)


def _maml(lib: Any, w: Any, x: Any) -> Any:
    def loss(w, x):
        return lib.nn.functional.mse_loss(lib.tanh(x @ w), x.sum(-1))

    def adapted(w, x):
        return loss(w - 0.1 * lib.func.grad(loss)(w, x), x + 1)

    return lib.func.grad(lambda w: lib.vmap(adapted, (None, 0))(w, x).mean())(w)


def _per_sample(lib: Any, w: Any, b: Any, x: Any) -> Any:
    def loss(w, b, x):
        y = lib.nn.functional.linear(x.unsqueeze(0), w, b)
        return lib.nn.functional.cross_entropy(lib.nn.functional.layer_norm(y, (2,)), lib.tensor([1]))

    return lib.vmap(lib.func.grad_and_value(loss, argnums=(0, 1)), (None, None, 0))(w, b, x)


def _in_place(lib: Any, x: Any) -> Any:
    return lib.vmap(overwritten)(x), lib.vmap(lib.func.jacrev(overwritten))(x)


def _kernel(lib: Any, x: Any) -> Any:
    def k(a, b):
        return lib.exp(-((a - b) ** 2).sum() / 2)

    def pairs(f):
        return lib.vmap(lib.vmap(f, (None, 0)), (0, None))

    return pairs(k)(x, x), pairs(lib.func.grad(k))(x, x)


def _rule(lib: Any, x: Any, y: Any) -> Any:
    class Mul(lib.autograd.Function):
        @staticmethod
        def forward(a, b):
            return a * b

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(*inputs)

        @staticmethod
        def backward(ctx, g):
            a, b = ctx.saved_tensors
            return g * b, g * a

        @staticmethod
        def vmap(info, in_dims, a, b):
            a, b = (t if d is None else t.movedim(d, 0) for t, d in zip((a, b), in_dims))
            return Mul.apply(a, b), 0

    return lib.vmap(Mul.apply, (0, None))(x, y), lib.func.grad(lambda a: Mul.apply(a, y).sum())(y * 2)


def _network(lib: Any, x: Any) -> Any:
    nn = lib.nn
    model = nn.Sequential(
        nn.Conv2d(2, 4, 3), nn.GroupNorm(2, 4), nn.SiLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 3)
    )
    p = {k: lib.tensor(_numbers(*v.shape)) for k, v in model.named_parameters()}

    def loss(p, a):
        return lib.func.functional_call(model, p, (a.unsqueeze(0),)).pow(2).sum()

    return lib.vmap(lib.func.grad(loss), (None, 0))(p, x), lib.vmap(lib.func.jacrev(loss, argnums=1), (None, 0))(p, x)


def _algebra(lib: Any, a: Any, b: Any) -> Any:
    a = a + 3 * lib.eye(a.shape[-1])
    return (
        lib.vmap(lib.linalg.solve)(a, b), lib.vmap(lib.linalg.solve, (0, None))(a, b[0]), lib.vmap(lib.linalg.inv)(a),
        lib.vmap(lib.func.grad(lambda m: lib.linalg.slogdet(m)[1]))(a),
    )  # fmt: skip


PROGRAMS = {
    "kernel matrices": (_kernel, (4, 3)),
    "a Function's own rule": (_rule, (3, 4), 4),
    "network": (_network, (3, 2, 6, 6)),
    "linear algebra": (_algebra, (3, 4, 4), (3, 4)),
    "trees of parameters": (
        lambda lib, w, b: (lib.func.jacrev(lambda p: p["w"] @ p["b"])({"w": w, "b": b}), lib.func.hessian(_scalar)(b)),
        (2, 3),
        3,
    ),
    "gradients of gradients": (lambda lib, x: lib.func.grad(lib.func.grad(lambda t: t**4))(x[0]), 3),
    "confusion": (lambda lib, x: lib.func.grad(lambda a: a * lib.func.grad(lambda b: a * b)(lib.tensor(1.0)))(x[0]), 3),
    "tree": (lambda lib, x: lib.func.grad(lambda p: (p["a"] * p["b"][0]).sum())({"a": x, "b": [x * 2]})["b"], 3),
    "vjp": (lambda lib, x, y: lib.func.vjp(lambda a, b: (a * b, a.sum()), x, y)[1]((y, x[0])), 3, 3),
    "jvp": (lambda lib, x, y: lib.func.jvp(lambda a: (_exp_sum(a), a.sum()), (x,), (y,)), 3, 3),
    "jacobians": (lambda lib, x: [t(_exp_sum)(x) for t in (lib.func.jacrev, lib.func.jacfwd)], 3),
    "jacobians of two": (lambda lib, x, y: lib.func.jacrev(lambda a, b: (a * b, b.sum()), argnums=(0, 1))(x, y), 3, 3),
    "hessians": (
        lambda lib, x: [
            s(t(_scalar))(x) for s in (lib.func.jacrev, lib.func.jacfwd) for t in (lib.func.jacrev, lib.func.jacfwd)
        ],
        3,
    ),
    "hessian-vector": (lambda lib, x, y: lib.func.jvp(lib.func.grad(_scalar), (x,), (y,))[1], 3, 3),
    "linearize without recording": (lambda lib, x, y: lib.func.linearize(_half_recorded(lib), x)[1](y), 3, 3),
    "linearize": (lambda lib, x, y: lib.func.linearize(_exp_sum, x)[1](y), 3, 3),
    "maps of maps": (lambda lib, x: lib.vmap(lib.vmap(lambda a, b: a @ b, (None, 0)), (0, None))(x, x), (4, 3)),
    "dims": (lambda lib, x: lib.vmap(lambda a, b: (a * b, a.sum()), (1, None), (1, 0))(x, x[:, 0]), (4, 3)),
    "map of hessian": (lambda lib, x: lib.vmap(lib.func.hessian(_scalar))(x), (4, 3)),
    "map of jvp": (lambda lib, x: lib.vmap(lambda a, b: lib.func.jvp(_scalar, (a,), (b,)))(x, x), (4, 3)),
    "jacobian of map": (lambda lib, x: lib.func.jacrev(lib.vmap(_scalar))(x), (4, 3)),
    "per-sample gradients": (_per_sample, (2, 3), 2, (5, 3)),
    "second derivatives": (_pinn, 3, 5),
    "inner steps": (_maml, 3, (4, 2, 3)),
    "in place": (_in_place, (4, 3)),
    "histograms after a change": (lambda lib, x: (lib.vmap(lambda a: (a.add_(1), a.mul_(a), lib.histc(a, 4))[2])(x), x), (2, 3)),
    "histograms after a change of a part": (lambda lib, x: (lib.vmap(lambda a: (a[1:].add_(a[0]), lib.histc(a, 4))[1])(x), x), (2, 3)),
    "histograms after a change of shape": (
        lambda lib, x: (lib.vmap(lambda a: (a.unsqueeze_(0), a.add_(1), lib.histc(a, 4))[2])(x), x.sum()), (2, 3)),
    "histograms of maps": (lambda lib, x: (lib.vmap(lib.vmap(lambda a: (a.add_(1), lib.histc(a, 4))[1]))(x), x), (2, 2, 3)),
    "histograms after a recorded change": (lambda lib, x: _changed_then_counted(lib, x), (2, 3)),
    "views in place": (lambda lib, x: [_seen_otherwise(lib, x, view) for view in _VIEWS], (2, 1, 3)),
    "as many places as asked": (lambda lib, x: lib.vmap(lambda a: lib.nonzero_static(a.clamp(min=0), size=2))(x - 0.5), (3, 4)),
    "tangents of norms of zeros": (lambda lib, x: [
        lib.func.jvp(lambda a, p=p: lib.linalg.vector_norm(a * 0, p), (x,), (x.cos(),)) for p in (0.5, 1, 1.5, 2, 3, 3.5, 4)], (3,)),
    "tangents of norms of nothing": (lambda lib, x: [
        lib.func.jvp(lambda a, p=p: lib.linalg.vector_norm(a[:0], p), (x,), (x.cos(),)) for p in (0.5, 1, 1.5, 2, 3, 3.5, 4)], (3,)),
    "tangents of deviations of equal numbers": (
        lambda lib, x: [lib.func.jvp(lambda a, u=u: a.std(unbiased=u), (x * 0,), (x.cos(),)) for u in (True, False)], (3,)),
    "tangents of a small cosine": (
        lambda lib, x: [lib.func.jvp(lambda a, e=e: lib.nn.functional.cosine_similarity(a, 2 * a.sin(), 0, e), (x,), (x.cos(),)) for e in (0.1, 1.2, 9)], (3,)),
    "second derivatives of a function with a part that is not recorded": (
        lambda lib, x: [way(lambda a: _part_apart(lib, a))(x) for way in (lib.func.hessian, lambda f: lib.func.jacrev(lib.func.jacrev(f)))], (3,)),
    "second derivatives of a cosine": (lambda lib, x: lib.func.hessian(lambda a: lib.nn.functional.cosine_similarity(a, x.cos(), 0))(x), (3,)),
    "tangents by a rule of its own": (lambda lib, x: [
        lib.func.jvp(lambda a: _with_tangents_of_its_own(lib)(a).sin(), (x,), (x.cos(),)), lib.func.jacfwd(_with_tangents_of_its_own(lib))(x)], (3,)),
    "sums of products in place": (lambda lib, x: lib.vmap(lambda a: a.addbmm_(x.reshape(2, 2, 3), x.reshape(2, 3, 2)))(x.reshape(3, 2, 2) * 1), (4, 3)),
    "chunks": (lambda lib, x: lib.vmap(_exp_sum, chunk_size=3)(x), (4, 3)),
}


def _detached(tree: Any) -> list:
    assert not any(t.requires_grad for t in leaves(tree))
    return list(leaves(tree))


@pytest.mark.parametrize("name", PROGRAMS)
def test_program(name: str) -> None:
    program, *shapes = PROGRAMS[name]
    arrays = [_numbers(*(s if isinstance(s, tuple) else (s,))) for s in shapes]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = program(torch, *[torch.tensor(a) for a in arrays])
    compare(_detached(program(ag, *[ag.tensor(a) for a in arrays])), _detached(expected), name)


def test_a_mapped_tensor_cannot_grow() -> None:
    x = ag.ones(2, 3)
    with pytest.raises(RuntimeError, match="doesn't match the broadcast shape"):
        ag.vmap(lambda a: a.addbmm_(ag.ones(2, 3, 3), ag.ones(2, 3, 3)))(x)
    assert x.tolist() == [[1.0] * 3] * 2


@pytest.mark.parametrize("way", ["jvp", "vjp", "jacfwd", "jacrev"])
@pytest.mark.parametrize("made", [lambda x: (), lambda x: [], lambda x: None, lambda x: x.unbind(0)])
def test_functions_of_no_outputs_are_refused(way: str, made: Any) -> None:
    for lib in (torch, ag):
        x, transform = lib.zeros(0, 2), getattr(lib.func, way)
        with warnings.catch_warnings(), pytest.raises(RuntimeError, match="non-empty output"):
            warnings.simplefilter("ignore")
            transform(made, *(((x,), (x,)) if way == "jvp" else (x,))) if "jac" not in way else transform(made)(x)


def main(names: list[str]) -> None:
    counts = {"vmap": [0, 0], "forward": [0, 0]}
    for op in op_db:
        title = op.name if not op.variant_test_name else f"{op.name}.{op.variant_test_name}"
        if names and op.name not in names and title not in names:
            continue
        if outside(op.name) or any(r in op.name for r in RANDOM) or torch.float32 not in op.supported_dtypes("cpu"):
            continue
        for kind, check in (("vmap", check_vmap), ("forward", check_forward)):
            if kind == "forward" and not op.supports_forward_ad:
                continue
            try:
                with warnings.catch_warnings(), contextlib.redirect_stderr(None):
                    warnings.simplefilter("ignore")
                    check(op)
            except Unsupported:
                continue
            except (KeyboardInterrupt, SystemExit):
                raise
            except BaseException as error:
                counts[kind][1] += 1
                text = " ".join(str(error).split())[:200]
                print(f"{kind:8}{title}: {type(error).__name__}: {text}", flush=True)
                if names:
                    import traceback

                    traceback.print_exc()
                continue
            counts[kind][0] += 1
    print({k: f"{a} of {a + b}" for k, (a, b) in counts.items()})


if __name__ == "__main__":
    main(sys.argv[1:])


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("name", ["l.weight", "extra", "l.extra", "held", "none", "absent", "buffer", "number", "l", "forward", "", "foo.bar", "l.weight.x"])
def test_functional_call_takes_the_names_that_pytorch_takes(name, strict):
    """Also those of attributes that are no parameters, and of none yet; the module is as it was afterwards."""

    def seen(lib):
        class Model(lib.nn.Module):
            def __init__(self):
                super().__init__()
                self.l = lib.nn.Linear(2, 2, bias=False)
                self.number, self.held, self.none = 3, lib.ones(2), None
                self.register_parameter("absent", None)
                self.register_buffer("buffer", None)

            def forward(self, x):
                for k in ("extra", "held", "none", "absent", "buffer"):
                    x = x + (0 if getattr(self, k, None) is None else getattr(self, k))
                return x + (self.l.extra if hasattr(self.l, "extra") else 0)

        model = Model()
        before = [*vars(model), *vars(model.l)]
        try:
            found = lib.func.functional_call(model, {name: lib.full((2,), 5.0)}, (lib.zeros(2),), strict=strict).tolist()
        except (KeyError, TypeError, AttributeError, RuntimeError) as error:
            found = type(error)
        assert [*vars(model), *vars(model.l)] == before and model.held.tolist() == [1.0, 1.0] and model.none is None and model.absent is None
        return found

    mine, theirs = seen(ag), seen(torch)
    assert mine == theirs or (name == "l.weight.x" and not strict and issubclass(mine, AttributeError))


@pytest.mark.parametrize("function", [lambda z: z.sin(), lambda z: z * z, lambda z: (z * z).sum() * z, lambda z: z @ z * z])
def test_a_linearized_function_stays_when_its_primal_changes(function):
    found = []
    for library in (torch, ag):
        primal, leaf = library.tensor([0.5, 2.0]), library.ones(2, requires_grad=True)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of what PyTorch writes programs with
            linear = library.func.linearize(function, primal)[1]
        later = linear(leaf * 1)
        primal.mul_(3)
        later.sum().backward()
        found.append([leaf.grad.tolist(), linear(library.ones(2)).tolist()])
    assert found[0] == [pytest.approx(g) for g in found[1]]
