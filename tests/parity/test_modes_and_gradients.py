"""Inference mode beside grad modes, gradients that were left by a leaf of another shape, and tensors that exchange what they are."""

from __future__ import annotations

import itertools

import pytest

pytest.importorskip("torch")

from .snippets import check

X = "x = t.ones(2, requires_grad=True)"


@pytest.mark.parity
def test_nothing_is_recorded_in_inference_mode_whatever_grad_mode_is_asked_for():
    """But for the library's own derivatives; `is_grad_enabled` answers what was asked for."""
    ways = {
        "a context": "with t.inference_mode(), t.enable_grad():\n    {}",
        "a call": "with t.inference_mode():\n    t.set_grad_enabled(True)\n    {}",
        "a block": "with t.inference_mode(), t.set_grad_enabled(True):\n    {}",
        "the mode ended": "with t.inference_mode(), t.inference_mode(False):\n    {}",
        "no mode at all": "with t.inference_mode(False), t.no_grad():\n    {}",
    }
    lines = {
        "result": "y = x * 2; r = y, y.is_inference(), y.grad_fn is None, t.is_grad_enabled(), t.is_inference_mode_enabled()",
        "matrix": "y = x @ x; r = y, y.is_inference()",
        "module": "y = nn.Linear(2, 2, bias=False)(x); r = y.requires_grad, y.is_inference()",
        "recurrent": "y = nn.LSTM(2, 2)(x[None])[0]; r = y.requires_grad, y.is_inference()",
        "view": "y = x[:1]; r = y, y.is_leaf, y.is_inference()",
        "leaf made there": "y = t.ones(2, requires_grad=True); z = y * 2; r = y, z, z.is_inference()",
        "changed in place": "y = t.ones(2); y.add_(x.detach()); r = y, y.is_inference()",
        "gradient": "r = t.func.grad(lambda z: (z * z).sum())(x)",
        "gradient without": "r = t.func.grad(lambda z: (z * t.no_grad()(t.square)(z)).sum())(x)",
        "hessian": "r = t.func.hessian(lambda z: (z ** 3).sum())(x)",
        "recorded gradient": "g, = t.autograd.grad(before, x, create_graph=True); r = g, g.is_inference()",
        "modes inside": "r = [t.is_grad_enabled()]\n    with t.no_grad(): r.append(t.is_grad_enabled())\n    r.append(t.is_grad_enabled())",
    }
    after = "\nr = r, t.is_grad_enabled(), t.is_inference_mode_enabled(), x * 2"
    check({f"{a}, {b}": way.format(line) + after for (a, way), (b, line) in itertools.product(ways.items(), lines.items())},
          f"{X}; before = (x ** 3).sum()")  # fmt: skip


#: what makes tensors, those that share what they are made of among them
MADE = (
    "t.from_numpy(a)", "t.from_numpy(a.T)", "t.tensor(a)", "t.as_tensor(a)", "t.as_tensor([1.0])", "t.asarray(a)", "t.frombuffer(bytearray(8), dtype=t.int32)",
    "t.from_dlpack(a)", "t.load(file)", "pickle.loads(pickled)", "copy.copy(x)", "copy.deepcopy(x)", "copy.deepcopy(nn.Parameter(x))", "x.detach()",
    "x.data", "nn.Parameter(x)", "nn.Linear(2, 2).weight", "nn.BatchNorm1d(2).running_mean", "x.view(-1)", "x.clone()", "t.Tensor([1.0])", "t.Tensor(2)",
    "t.FloatTensor(2)", "x.new(2)", "x.new_tensor([1.0])", "x.new_zeros(2)", "t.randn(2)", "t.randperm(3)", "t.arange(3)", "t.eye(2)",
    "t.empty_strided((2,), (1,))", "t.complex(x, x)", "t.ones(2, dtype=t.complex64).conj()", "x._neg_view()", "t.scalar_tensor(1.0)", "t.polar(x, x)",
    "t.as_tensor(x)", "t.asarray(x)",
    "x.nonzero()", "t.where(x > 0)[0]", "x.unique()", "t.meshgrid(x[0], x[0], indexing='ij')[0]", "t.cartesian_prod(x[0], x[0])", "t.combinations(x[0])",
    "t.tril_indices(2, 2)", "t.stack([x])", "x.split(1)[0]", "t.func.vmap(lambda u: u * 2)(x)", "t.histc(x)", "t.histogram(x, 2)[0]", "t.bernoulli(x)",
    "t.multinomial(x[0], 1)", "t.multinomial(x, 1)", "F.dropout(x)", "x.sort()[1]", "x.topk(1)[1]", "x.mode()[0]", "t.bincount(t.tensor([1]))",
    "t.searchsorted(x[0], x[0])", "t.linalg.lu_factor(x)[1]", "x.tolist() and x.cumsum(0)", "t.nn.utils.parameters_to_vector([x])",
)  # fmt: skip


@pytest.mark.parity
def test_what_is_made_in_inference_mode_are_inference_tensors():
    setup = ("import copy, io, pickle; a = np.ones((2, 2)); x = t.ones(2, 2, dtype=t.float64); file = io.BytesIO(); t.save(x, file); file.seek(0); "
             "pickled = pickle.dumps(x)")  # fmt: skip
    check({line: f"with t.inference_mode():\n    r = ({line}).is_inference()" for line in MADE}, setup)


@pytest.mark.parity
def test_hooks_of_a_pass_in_inference_mode_are_told_whether_it_is_recorded():
    modes = ("t.inference_mode()", "t.inference_mode(), t.enable_grad()", "t.no_grad()", "t.enable_grad()")
    check({
        f"{mode} {record}": f"r = []; y = x * 1; y.register_hook(lambda g: r.append((t.is_grad_enabled(), t.is_inference_mode_enabled())))\n"
        f"z = y.square().sum()\nwith {mode}:\n    z.backward(create_graph={record}); r.append(t.is_grad_enabled())"
        for mode in modes for record in (False, True)
    }, X)  # fmt: skip


@pytest.mark.parity
def test_functions_of_users_in_inference_mode_are_recorded_where_grad_mode_is_asked_for():
    """Unlike ops: what they return is an inference tensor with a history."""
    ways = {"nothing": "return x * 2", "operand": "ctx.save_for_backward(x); return x * 2", "view": "return x.view(-1)", "two": "return x * 2, x + 1",
            "result": "y = x * 2; ctx.save_for_backward(y); return y"}  # fmt: skip
    modes = ("t.inference_mode(), t.enable_grad()", "t.inference_mode()", "t.inference_mode(), t.no_grad()", "t.inference_mode(False), t.no_grad()")
    cls = "class S(t.autograd.Function):\n    @staticmethod\n    def forward(ctx, x): {}\n    @staticmethod\n    def backward(ctx, g, *more): return g * 2\n"
    look = "y = y[0] if isinstance(y, tuple) else y; r = y, y.requires_grad, y.is_leaf, y.is_inference()"
    check({
        f"{way} {mode} {then}": f"{cls.format(body)}with {mode}:\n    y = S.apply(x)\n{look}{then}"
        for way, body in ways.items() for mode in modes for then in ("", "; (y * 3).sum().backward(); r = r, x.grad")
    }, X)  # fmt: skip


@pytest.mark.parity
def test_a_gradient_of_a_shape_that_the_leaf_had_before():
    """Accumulating is refused where the new gradient is larger, and broadcasts otherwise; recorded passes broadcast either way."""
    shapes = ("(4,)", "(2, 4)", "(1, 4)", "()", "(3,)", "(0,)", "(2, 1)")
    ways = ("x.data = t.ones({})", "with t.no_grad(): x.resize_({}).fill_(1)")
    check({
        f"{a} {b} {way} {record}": f"x = t.ones({a}, requires_grad=True); (x * 2).sum().backward()\n{way.format(b)}\n"
        f"(x * x).sum().backward(create_graph={record}); r = x.grad"
        for a, b in itertools.permutations(shapes, 2) for way in ways for record in (False, True)
    })  # fmt: skip


@pytest.mark.parity
def test_accumulating_into_a_gradient_whose_elements_share_memory():
    """An expanded one is refused, and replaced by recorded passes; other overlaps are the user's affair."""
    grads = ("t.ones(3).expand(2, 3)", "t.ones(2, 1).expand(2, 3)", "t.ones(3, 1).expand(3, 2).T", "t.ones(9).as_strided((2, 3), (0, 1))",
             "t.ones(2, 6)[:, ::2]", "t.ones(1, 3).expand(1, 3)[[0, 0]]")  # fmt: skip
    passes = ("y.backward({})", "t.autograd.backward(y, inputs=[x], {})", "z = x * 1; (z * z).sum().backward({})")
    check({
        f"{g} {p} {record}": f"x.grad = {g}; y = (x * x).sum(); old = x.grad\n{p.format(f'create_graph={record}')}\nr = x.grad, x.grad.stride(), old"
        for g in grads for p in passes for record in (False, True)
    }, "x = t.arange(6.).reshape(2, 3).requires_grad_()")  # fmt: skip


@pytest.mark.parity
def test_gradients_of_a_recorded_pass_that_depend_on_nothing_can_be_written_to():
    jumps = ["x.floor()", "x.round()", "x.trunc()", "x.sign()", "x.ceil()", "x.round(decimals=1)", "x // 1", "x.fmod(x.detach())",
             "x.clamp(5, 6)", "x.heaviside(x.detach())", "x.T.floor().T", "x.eq_(1)", "x.masked_fill(x < 9, 0)", "x.where(x > 9, x.detach())"]  # fmt: skip
    code = "p = t.ones(3, 4, requires_grad=True); x = p * 1; y = {}; g, = t.autograd.grad((y * y).sum(), {}, create_graph=True); g.sub_(0.5); r = g"
    check({f"{jump} by {by}": code.format(jump, by) for jump in jumps for by in ("p", "x") if jump != "x.eq_(1)" or by == "p"})


@pytest.mark.parity
def test_a_target_that_is_asked_for_twice_has_one_gradient():
    same = "r = [a is b for a in g for b in g], g"
    check({
        "leaf": f"g = t.autograd.grad((x * x).sum(), [x, x]); {same}",
        "result": f"y = x * 2; g = t.autograd.grad((y * y).sum(), [y, x, y]); {same}",
        "output of several": f"a, b = x.unbind(); g = t.autograd.grad(a * b, [a, b, a]); {same}",
        "recorded": f"y = x * 2; g = t.autograd.grad((y ** 3).sum(), [y, x, y], create_graph=True); {same}",
        "unused": f"g = t.autograd.grad((x * x).sum(), [x, t.ones(1, requires_grad=True), x], allow_unused=True); {same}",
    }, X)  # fmt: skip


@pytest.mark.parity
def test_cosine_similarity_divides_each_operand_in_its_own_dtype():
    kinds = ("float16", "float32", "float64", "int64", "bool")
    check({
        f"{a} {b}": f"r = F.cosine_similarity(t.tensor([[.1, .7, .3], [9, 4, 3.3]]).to(t.{a}), t.tensor([[.11, -.7, .37], [.19, .41, 7.33]]).to(t.{b}))"
        for a in kinds for b in kinds
    }, tolerance=1e-6)  # fmt: skip


@pytest.mark.parity
def test_swapped_tensors():
    look = "t.utils.swap_tensors(a, b); r = i == (id(a), id(b)), a, b, type(a).__name__, type(b).__name__, a.grad, b.grad, a.__dict__ == b.__dict__"
    pairs = {
        "tensors": "a, b = t.ones(2), t.zeros(3, requires_grad=True)",
        "a parameter": "a, b = nn.Parameter(t.ones(2)), t.zeros(3)",
        "gradients and attributes": "a, b = t.ones(2, requires_grad=True), t.zeros(2); a.grad = t.ones(2); b.note = 1",
        "dtypes": "a, b = t.ones(2, dtype=t.int64), t.zeros(2, 1, dtype=t.complex64)",
        "itself": "a = b = t.ones(2)",
        "a subclass": "class S(t.Tensor): pass\na, b = t.ones(2).as_subclass(S), t.zeros(1)",
        "what has a history": "a, b = t.ones(2, requires_grad=True) * 2, t.zeros(1)",
        "weak references": "import weakref; a, b = t.ones(2), t.zeros(2); w = weakref.ref(b)",
        "a base": "a, b = t.ones(2), t.zeros(2); v = b[:1]",
    }
    trained = "p, q = nn.Parameter(t.ones(2)), nn.Parameter(3 * t.ones(2)); (p * p).sum().backward(); before = p.grad; t.utils.swap_tensors(p, q); "
    trained += "(q * q).sum().backward(); (p * p).sum().backward(); r = p.grad, q.grad, q.grad is before"
    check({**{k: f"{v}\ni = id(a), id(b)\n{look}" for k, v in pairs.items()},
           "trained": trained})  # fmt: skip


@pytest.mark.parity
def test_inference_tensors_in_transforms():
    """What a transform alone differentiates may keep them; what autograd differentiates too may not."""
    functions = {"product": "(z * y).sum()", "sum": "(z + y).sum()", "sine": "z.sum() + y.sin().sum()", "matrix product": "(z @ y.mT).sum()",
                 "power": "(z ** y).sum()", "copy": "(z * y.clone()).sum()", "detached": "(z * y.detach()).sum()", "kron": "t.kron(z, y).sum()",
                 "layer": "F.layer_norm(z, (3,), y[0]).sum()", "loss": "F.mse_loss(z, y)", "three": "t.addcmul(z, z, y).prod()",
                 "turned": "(z * y.mT.mT).sum()", "einsum": "t.einsum('ij,kj->', z, y)"}  # fmt: skip
    calls = ("grad(f)(z, y)", "grad(f, argnums=1)(z, y)", "grad(f, argnums=(0, 1))(z, y)", "grad(f)(y, z)", "vjp(f, z, y)[1](t.tensor(1.))",
             "jvp(f, (z, y), (y, z.detach()))[0]", "jacrev(f, argnums=1)(z, y)", "jacfwd(f, argnums=1)(z, y).detach()", "hessian(f)(z, y).detach()",
             "grad(lambda v: f(v, y))(z)", "grad(lambda v: t.func.grad(f, argnums=1)(z, v).sum())(y).detach()",
             "grad(lambda v: t.func.grad(f)(v, y).sum())(z).detach()")  # fmt: skip
    make = "with t.inference_mode(): y = t.arange(1., 7.).reshape(2, 3)\nz = t.arange(6.).reshape(2, 3) / 3 + 0.5\n"
    check({
        f"{name} {call} {asked}": f"{make}z.requires_grad_({asked})\nf = lambda z, y: {body}\nr = t.func.{call}"
        for name, body in functions.items() for call in calls for asked in (False, True)
    }, tolerance=1e-3)  # fmt: skip
    within = "with t.inference_mode(): r = t.func.grad(f, argnums=(0, 1))(z, y)"
    check({name: f"{make}f = lambda z, y: {body}\n{within}" for name, body in functions.items()}, tolerance=1e-3)
    changed = ("jvp(f, (y, z), (z, z))", "jacfwd(f)(y, z)", "vmap(f)(y, z)")
    check({call: f"{make}f = lambda z, y: z.mul_(2) * y; r = t.func.{call}; r = r, y" for call in changed})


#: what derivatives are looked at; those that are infinite or nan in PyTorch alone, or by choice (docs/design.md), are not among them
ALONG = ("sum", "mean", "std", "var", "nansum", "nanmean", "cumsum", "cummax", "cummin", "logcumsumexp", "softmax", "median", "nanmedian", "sort", "max", "min")
EACH = ("abs", "exp", "log", "log1p", "expm1", "sqrt", "rsqrt", "reciprocal", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh",
        "acosh", "atanh", "sigmoid", "erf", "erfc", "erfinv", "lgamma", "exp2", "log2", "log10", "square", "sign", "floor", "frac", "neg",
        "nan_to_num", "relu", "i0", "special.entr", "special.i0e", "special.ndtr", "special.ndtri", "selu", "celu")  # fmt: skip
ACTIVATIONS = ("relu6", "elu", "gelu", "silu", "mish", "softplus", "hardswish", "hardsigmoid", "hardtanh", "leaky_relu", "logsigmoid", "tanhshrink")
PAIRS = ("mul", "div", "atan2", "hypot", "logaddexp", "logaddexp2", "maximum", "minimum", "fmax", "fmin", "fmod", "xlogy", "copysign", "sub", "dot", "dist")


@pytest.mark.parity
def test_derivatives_at_infinities_and_zeros():
    rows = ("1., inf, -1.", "-inf, 2., 1.", "1., 2., nan", "inf, 0.5, inf", "inf, -inf, 1.", "-inf, -inf, -inf", "0., 0., 1.", "0., inf, 0.5", "-0., 0., -1.")
    tiny = "1e-310, -1e-310, 0."
    calls = {name: f"t.{name}(x, -1)" for name in ALONG} | {name: f"t.{name}(x)" for name in EACH} | {name: f"F.{name}(x)" for name in ACTIVATIONS}
    calls |= {name: f"t.{name}(x, x.flip(0) * 0.5)" for name in PAIRS} | {"glu": "F.glu(t.cat([x, x]), 0)"}
    check({
        f"{name} at {row}": f"x = t.tensor([{row}], dtype=t.float64, requires_grad=True); y = {call}; y = y[0] if isinstance(y, tuple) else y\n"
        "r, = t.autograd.grad((y * t.arange(1., y.numel() + 1).reshape(y.shape)).sum(), x)"
        for name, call in calls.items() for row in rows + (tiny,) * (name in ("atan2", "glu", "logcumsumexp", "softmax"))
    }, "from math import inf, nan")  # fmt: skip
    check({
        f"{call} twice": f"x = t.tensor([0., -0., 1., -1.], dtype=t.float64, requires_grad=True); y = {call}\n"
        "g, = t.autograd.grad(y.sum(), x, create_graph=True); r, = t.autograd.grad((g * g).sum(), x)"
        for call in ("F.elu(x)", "F.elu(x, 0.5)", "F.celu(x)", "F.celu(x, 2.)", "F.selu(x)", "F.silu(x)", "F.mish(x)", "F.leaky_relu(x).exp()", "F.softplus(x)")
    })  # fmt: skip


@pytest.mark.parity
def test_what_second_derivatives_and_padded_sequences_are_made_of():
    picks = ("x.take(i)", "x.index_select(0, i)", "x.gather(0, i)", "x[i]", "x[:2] * 1", "x.masked_select(x > 3)", "x[2:4] * 1")
    check({
        f"{call} {changed}": f"i = t.tensor([0, 1]); x = t.arange(6.).requires_grad_(); y = {call}; w = t.ones(2, requires_grad=True) * 1\n"
        f"g, = t.autograd.grad(y, x, w, create_graph=True); {changed}; r = t.autograd.grad(g.sum(), w)"
        for call in picks for changed in ("w.copy_(t.ones(2) * 3)", "w.mul_(1)", "w.detach().zero_()", "y.mul_(2)")
    })  # fmt: skip
    check({
        f"{first} {lengths}": f"x = t.arange(12.).reshape(2, 3, 2).requires_grad_(); p = nn.utils.rnn.pack_padded_sequence(x * 1, {lengths}, True, False)\n"
        f"y = nn.utils.rnn.pad_packed_sequence(p, {first})[0]; v = y._is_view(); y.mul_(2); y[0].add_(1); (y * y).sum().backward(); r = v, y, x.grad"
        for first in (False, True) for lengths in ([2, 3], [3, 2])
    })  # fmt: skip
    leaves = "x = t.ones(3, requires_grad=True); w = t.ones(3, requires_grad=True)"
    toggled = "y = t.utils.checkpoint.checkpoint(lambda z, y: z * y.tanh(), x, {}, use_reentrant=True)\n{}\ny.sum().backward(); r = x.grad, w.grad"
    check({f"{other} {change}": toggled.format(other, change) for other in ("x", "w") for change in ("x.requires_grad = False", "pass")}, leaves)
    check({f"max_norm {i} {n}": f"F.embedding(t.tensor({i}), t.ones({n}, 4), max_norm=1.); r = 0" for i in ([0], [2, 1]) for n in (0, 1, 2)}, kinds=True)


@pytest.mark.parity
def test_views_of_inference_tensors_have_no_history_even_where_the_tensor_requires_grad():
    views = (
        "c.view(-1)", "c[0]", "c.squeeze(0)", "c.detach()", "c.view_as(c)", "c.reshape(6)", "c.chunk(2, 1)[0]", "c.unbind(0)[0]", "c.T",
        "c.expand(4, 2, 3)",
    )  # fmt: skip
    made, look = "with t.inference_mode():\n    c = t.ones(1, 2, 3, requires_grad=True)\n", "y, y.requires_grad, y.is_leaf, y.is_inference(), y._is_view()"
    changed = f"\nwith t.inference_mode(): c.add_(1)\nr = r, {look}"
    check({
        f"{view} {place} {bool(then)}": f"{made}{start}y = {view}\nr = {look}{then}"
        for view in views for place, start in {"inside": "    ", "outside": ""}.items() for then in ("", changed)
    })  # fmt: skip
    resized = "with t.inference_mode():\n    c = t.ones(1, 2, requires_grad=True); c.resize_(2); r = c"
    check({"resized": resized, "resized outside": f"{X}; x.resize_(1); r = x"})


@pytest.mark.parity
def test_a_gradient_that_does_not_fit_is_refused_before_other_nodes_run():
    ways = (
        "with t.no_grad(): y.unsqueeze_(1)", "with t.no_grad(): y.t_()", "y.data = t.ones(3, 1, 4)", "y.data = t.ones(6)",
        "with t.no_grad(): y.transpose_(0, 1)", "with t.no_grad(): y.squeeze_(0)",
    )  # fmt: skip
    uses = ("y * v", "v * y", "v + y", "(v.t() @ y.reshape(4, -1)).sum() + v.sum()", "t.cat([v.reshape(-1), y.reshape(-1)])", "v.sum() + (y + 1).sum()")
    passes = ("z.sum().backward()", "z.sum().backward(inputs=[x, w])", "z.sum().backward(retain_graph=True)", "g = t.autograd.grad(z.sum(), [w, x])")
    leaves = "x = t.arange(12.).view(3, 4).requires_grad_(); w = t.ones(4, requires_grad=True)"
    tried = "try: {}\nexcept RuntimeError: r = w.grad, x.grad"
    check({
        f"{way}; {use}; {run}": f"y = x * 2; {way}\nv = (w * 1).view(1, 4); r = None; z = {use}\n" + tried.format(run)
        for way in ways for use in uses for run in passes
    }, leaves)  # fmt: skip


@pytest.mark.parity
def test_second_computations_of_checkpoints_are_compared_as_far_as_they_are_needed():
    parts = {"more": ("x.exp() + 1", "x.exp().sin() + 1"), "less": ("x.exp().sin() + 1", "x.exp() + 1"), "alike": ("x.exp().sin()",) * 2}
    said = ["", "early_stop=True", "early_stop=False"]
    around = ["if True", "with c.set_checkpoint_early_stop(True)", "with c.set_checkpoint_early_stop(False)"]
    check({
        f"{name}, {how}, {where}": f"c, x, n = t.utils.checkpoint, t.ones(2, requires_grad=True), []\ndef f(x):\n    n.append(1)\n"
        f"    return ({first}) if len(n) == 1 else ({second})\n{where}: y = c.checkpoint(f, x, use_reentrant=False, {how})\n"
        "y.sum().backward(); r = x.grad"
        for name, (first, second) in parts.items() for how in said for where in around
    }, kinds=True)  # fmt: skip


@pytest.mark.parity
def test_views_without_a_clear_history_are_constants_where_nothing_is_recorded():
    """Outside of the function: what it makes itself, and changes without recording, is refused in it as elsewhere."""
    calls = ("func.grad(f)(x)", "func.jvp(f, (x,), (x,))", "func.jacrev(f)(x)", "func.jacfwd(f)(x)", "func.vmap(t.func.grad(f))(x.expand(2, 3))")
    functions = (
        "(v * z).sum()", "v.sum() * z.prod()", "t.func.grad(lambda y: (v * y * z).sum())(z).sum()", "own(z).sum()",
        "t.func.grad(lambda y: own(y).sum())(z).sum()", "t.func.grad(lambda y: (own(z) * y).sum())(z).sum()",
    )
    before = """
w, x = t.arange(6.).reshape(2, 3).clone().requires_grad_(), t.tensor([1., 2., 3.])
with t.no_grad(): v = w[1]; v.mul_(2)
def own(z):
    y = z * 1
    with t.no_grad(): v = y[:2]; v.mul_(2)
    return v * 2
"""
    check({f"{mode} {call} {f}": f"f = lambda z: {f}\nwith t.{mode}(): r = t.{call}"
           for mode in ("no_grad", "enable_grad") for call in calls for f in functions
           if f != "own(z).sum()" or call not in calls[1:4:2]}, before, kinds=True)  # fmt: skip
