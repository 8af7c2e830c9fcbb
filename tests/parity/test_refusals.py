"""What is refused where PyTorch refuses it, with an exception that the same handler catches."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

import autograd_nb  # noqa: E402

from .snippets import check, outcome  # noqa: E402


@pytest.mark.parity
@pytest.mark.parametrize("dtype", ["bool", "uint8", "int32", "int64"])
def test_convolutions_of_integers(dtype):
    def code(n, name, more):
        return f"r = F.{name}(t.ones(1, 2, {', '.join(['4'] * n)}).to(t.{dtype}), t.ones(2, 2, {', '.join(['2'] * n)}).to(t.{dtype}){more})"

    names = [(n, f"conv{kind}{n}d") for n in (1, 2, 3) for kind in ("", "_transpose")]
    check({f"{name}{more}": code(n, name, more) for n, name in names for more in ("", ", dilation=2", ", stride=2")}, kinds="subclasses")


@pytest.mark.parity
def test_convolutions_of_complex_numbers_with_a_real_bias():
    make = "a = t.ones(1, 2, {0}, dtype=t.complex64); w = t.ones(2, 2, {1}, dtype=t.complex64)"
    check({
        f"conv{kind}{n}d, {bias}": f"{make.format(', '.join(['3'] * n), ', '.join(['2'] * n))}; r = F.conv{kind}{n}d(a, w, t.ones(2{bias}))"
        for n in (1, 2, 3) for kind in ("", "_transpose") for bias in ("", ", dtype=t.complex128", ", dtype=t.int64")
    }, kinds="subclasses")  # fmt: skip


@pytest.mark.parity
@pytest.mark.parametrize("dtype", ["complex64", "int64", "bool"])
def test_attention_of_what_has_no_softmax(dtype):
    before = f"x = t.ones(3, 2, 4).to(t.{dtype}); w = t.ones(12, 4).to(t.{dtype}); b = t.ones(12).to(t.{dtype})"
    attention = "F.multi_head_attention_forward(x, x, x, 4, 2, w, b, None, None, False, 0.0, w[:4], b[:4], need_weights={})"
    check({
        **{f"weights: {needed}": f"r = {attention.format(needed)}" for needed in (True, False)},
        "one head": "r = F.scaled_dot_product_attention(x, x, x)",
    }, before, kinds="subclasses")  # fmt: skip


@pytest.mark.parity
def test_bilinear_keeps_the_dtype_of_integers():
    check({
        f"{d}{bias}": f"o = dict(dtype=t.{d}); r = F.bilinear(t.ones(2, 3, **o), t.ones(2, 4, **o), t.ones(5, 3, 4, **o){bias})"
        for d in ("int32", "int64") for bias in ("", ", t.ones(5, **o)")
    })  # fmt: skip


MUTABLE = "w = t.ones(3, requires_grad=True); y = t.ones(3)\nm = t.autograd.graph.allow_mutation_on_saved_tensors\n"


@pytest.mark.parity
def test_allow_mutation_on_saved_tensors():
    check({
        "inside": f"{MUTABLE}with m():\n    z = (w * y).sum(); y.zero_(); z.backward(); r = w.grad, y",
        "outside": f"{MUTABLE}with m(): z = (w * y).sum()\nz.backward()",
        "in another": f"{MUTABLE}with m(): z = (w * y).sum()\nwith m(): z.backward()",
        "cleared": f"{MUTABLE}with m() as c: z = (w * y).sum(); c.clear(); z.backward()",
        "nested": f"{MUTABLE}with m():\n    with m(): r = 1",
        "after a nested one": f"{MUTABLE}with m():\n    try:\n        with m(): pass\n    except RuntimeError: pass\n"
        "with m(): (w * y).sum().backward()\nr = w.grad",
        "recorded before": f"{MUTABLE}z = (w * w).sum()\nwith m(): z.backward(); r = w.grad",
        "nothing saved": f"{MUTABLE}with m(): z = (w + 1).sum()\nz.backward(); r = w.grad",
        "a result": f"{MUTABLE}with m(): b = w.exp(); z = b.sin(); b.mul_(2); z.sum().backward(); r = w.grad",
    }, kinds="subclasses")  # fmt: skip


@pytest.mark.parity
@pytest.mark.parametrize("mode", ["no_grad", "inference_mode"])
@pytest.mark.parametrize("base", ["t.ones(3)", "t.ones(3, requires_grad=True)", "t.ones(3, requires_grad=True).clone()"])
def test_views_made_without_recording(mode, base):
    made = f"x = {base}\nwith t.{mode}(): v = x[1:]; w = x.view(3, 1); d = x.detach(); a, b = x.split([1, 2])\n"
    check({
        "flags, again": f"{made}{made}r = [(q.requires_grad, q.is_leaf) for q in (v, w, d, a, b)]",
        "flags": f"{made}r = [(q.is_inference(), q.requires_grad, q.is_leaf) for q in (v, w, d, a, b)]",
        "changed": f"{made}v.add_(1); r = x, v",
        "a part of several changed": f"{made}a.add_(1); r = x, v",
        "a view of it changed": f"{made}w.view(3).add_(1); r = x",
        "detached, changed": f"{made}d.add_(1); r = x.detach()",
        "used after its base has changed": f"{made}x.mul_(2) if not x.is_leaf or not x.requires_grad else None; r = v * 2 if not x.requires_grad else 1",
        "changed inside": f"x = {base}\nwith t.{mode}(): x[1:].add_(1); x.split([1, 2])[0].mul_(3)\nr = x",
    }, kinds="subclasses")  # fmt: skip


@pytest.mark.parity
def test_inference_tensors_are_not_changed_outside():
    made = "with t.inference_mode(): y = t.ones(3)\n"
    changes = ["y.add_(1)", "y.resize_(2)", "y.resize_as_(t.ones(2))", "y.set_(t.ones(2))", "y[0] = 1", "y.requires_grad_()", "t.add(t.ones(3), 1, out=y)",
               "y[1:].add_(1)", "y.zero_()", "y.data.add_(1)", "y.grad = t.ones(3)", "y.set_()"]  # fmt: skip
    check({change: f"{change}; r = y" for change in changes}, made, kinds="subclasses")
    for change in changes:  # PyTorch refuses some after they are done
        kind, _, kept = outcome(change, autograd_nb, f"{made}kept = y")
        assert kind == "result" or kept is None


@pytest.mark.parity
def test_hooks_of_the_node_that_accumulates():
    made = "x = t.ones(3, requires_grad=True); w = t.ones(3, requires_grad=True); n = []\nnode = x.expand_as(x).grad_fn.next_functions[0][0]\n"
    made += "node.register_prehook(lambda g: (n.append(1), (g[0] * 3,))[1]); node.register_hook(lambda a, b: n.append(2))\n"
    check({
        "captured": f"{made}r = t.autograd.grad((x * w).sum(), [w, x]), n",
        "captured after a tensor's hook": f"{made}x.register_hook(lambda g: g * 5); r = t.autograd.grad((x * 2).sum(), x), n",
        "accumulated": f"{made}(x * w).sum().backward(); r = x.grad, n",
        "one accumulated": f"{made}(x * w).sum().backward(inputs=[x]); r = x.grad, w.grad is None, n",
    })  # fmt: skip


@pytest.mark.parity
@pytest.mark.parametrize("name", ["index_copy", "index_add", "index_reduce"])
def test_slices_of_nothing(name):
    """An index that names what is not there writes nowhere."""
    check({
        f"{shape}{place}": f"x = t.zeros{shape}; s = t.ones{source}.requires_grad_({name != 'index_reduce'})\n"
        f"r = x.{name}{place}({d}, t.tensor({index}, dtype=t.int64), s{', ' + repr('amax') if name == 'index_reduce' else ''})"
        for shape, index, source, d in (("(0,)", [0], "(1,)", 0), ("(5, 0)", [0, 1], "(5, 2)", 1), ("(0, 3)", [7], "(0, 1)", 1), ("(0,)", [], "(0,)", 0))
        for place in ("", "_")
    }, kinds="subclasses")  # fmt: skip


SHAPES = ("()", "(1,)", "(0,)", "(0, 3)", "(3, 0)", "(1, 3)", "(2, 3)", "(1, 0)", "(0, 3, 2)", "(2, 0, 3)", "(1, 3, 2)")


@pytest.mark.parity
@pytest.mark.parametrize("name", ["index_copy", "index_add"])
def test_slices_into_nothing_of_several_dims(name):
    """Of an index and a source that both do not fit it is the same one that is named."""
    codes = {
        f"{shape} {d} {index} {source}": f"r = t.zeros({shape}).{name}({d}, t.tensor({index}, dtype=t.int64), t.ones({source}))"
        for shape in SHAPES[2:5] + SHAPES[8:10]
        for d in range(3)
        for index in ("[]", "[0]", "[0, 1]")
        for source in SHAPES
    }
    check(codes, kinds="subclasses")


@pytest.mark.parity
def test_float_power_in_place_keeps_its_dtype():
    kinds = ("float16", "float32", "int64", "bool", "complex64", "float64", "complex128")
    check({f"{d} {e}": f"x = t.ones(3, dtype=t.{d}).float_power_({e}); r = x" for d in kinds for e in ("2", "2.5", "2j", "t.ones(3)", "t.tensor(2j)")},
          kinds="subclasses")  # fmt: skip


@pytest.mark.parity
def test_sizes_that_are_looked_at_first():
    pool = "t.nn.functional.max_unpool{n}d(t.ones(1, 2{s}), t.zeros(1, 2{i}, dtype=t.int64), 2, output_size={o})"
    calls = [pool.format(n=n, s=", 2" * n, i=", 3" * n, o=(1, 2) + (9,) * n) for n in (1, 2, 3)]
    calls += [f"x.{f}(0, i{more})" for f, more in (("index_select", ""), ("index_fill", ", 2."), ("index_add", ", x"), ("index_copy", ", x"))]
    calls += ["x.index_fill(0, i.float()[0], 2.)", "x.index_fill_(0, i[0] > 1, 2.)"]
    calls += ["t.fft.fftshift(x, 0)", "t.fft.ifftshift(x, (0,))", "t.linalg.lu_solve(m, t.tensor(1, dtype=t.int32), m)"]
    calls += ["t.linalg.householder_product(m, x)", "t.ormqr(m, x, m)", "F.bilinear(t.ones(2, 3), t.ones(2, 4), m)"]
    calls += [f"F.dropout3d(t.ones({s}), {p}, {train}).shape" for s in ("()", "(3,)", "(2, 3, 4)") for p in (0.0, 0.5, 1.0) for train in (True, False)]
    check({call: f"r = {call}" for call in calls}, "x = t.ones(()); i = t.zeros(2, 1, dtype=t.int64); m = t.ones(3, 3)", kinds="subclasses")


@pytest.mark.parity
def test_numbers_that_integer_arguments_do_not_hold():
    calls = ["x.diff({})", "x.diff(0, {})", "t.cov(x, correction={})", "y.diagonal({})", "t.diag(x, {})", "y.chunk({})"]
    check({c.format(v): f"r = {c.format(v)}" for c in calls for v in ("2**63", "1.5", "True", "None") if (c, v) != (calls[0], "None")},
          "x = t.ones(3); y = t.ones(3, 3)", kinds="subclasses")  # fmt: skip


@pytest.mark.parity
@pytest.mark.parametrize("dtype", ["int64", "float32", "bool"])
def test_factors_of_products_that_the_dtype_does_not_hold(dtype):
    calls = ["t.addr(v, v, v, {})"] + (["t.addmm(m, m, m, {})", "t.addmv(v, m, v, {})"] if dtype != "bool" else [])
    values = ["alpha=2**63", "beta=2**64", "alpha=1e40", "beta=2.5", "alpha=True", "beta=1j", "alpha=float('nan')"]
    before = f"v = t.ones(2).to(t.{dtype}); m = t.ones(2, 2).to(t.{dtype})"
    check({c.format(v): f"r = {c.format(v)}" for c in calls for v in values}, before, kinds="subclasses")


@pytest.mark.parity
def test_sizes_of_added_and_joined_operands():
    check({call: f"r = {call}" for call in (
        "t.addr(t.ones(1, 1, 1), t.ones(1), t.ones(1), beta=0)", "t.addr(t.ones(0, 1), t.ones(1), t.ones(1), beta=0)",
        "F.linear(t.ones(2, 3), t.ones(1, 3), t.ones(4))", "F.linear(t.ones(2, 3), t.ones(3), t.ones(2))", "F.linear(t.ones(3), t.ones(4, 3), t.ones(1, 4))",
        "F.linear(t.ones(2, 2, 3), t.ones(4, 3), t.ones(2, 2, 4))", "F.linear(t.ones(2, 2, 3), t.ones(4, 3), t.ones(2, 4))",
        "t.trapezoid(t.ones(2), t.ones(2, 3))", "t.trapezoid(t.ones(3), t.ones(2, 3))", "t.trapezoid(t.ones(2, 3), t.ones(1, 2, 3))",
        "t.trapezoid(t.ones(2, 0), t.ones(2, 3))", "t.cumulative_trapezoid(t.ones(2), t.ones(2, 3))", "t.tensor(1.).flatten(1)",
        "t.histogram(t.ones(3), t.ones(1))", "F.pixel_unshuffle(t.ones(0, 1, 6, 6), 3)", "t.linalg.vecdot(t.ones(0), t.ones(1))",
        "t.linspace(t.ones(1), 2, 3)", "t.logspace(0, t.ones(1), 3)", "t.linspace(1j, 2, 3, dtype=t.float32)",
    )}, kinds="subclasses")  # fmt: skip


@pytest.mark.parity
def test_outer_products_of_several_dtypes():
    check({
        f"{a}, {b}, {c}": f"r = t.addr(t.full((2, 2), 3).to(t.{a}), t.tensor([1, 2]).to(t.{b}), t.tensor([1, 2]).to(t.{c}){more}"
        for a, b, c, more in (("int64", "float32", "float32", ", beta=.5)"), ("float64", "float32", "int64", ", alpha=.5)"), ("float32", "int64", "int64", ")"))
    })  # fmt: skip


@pytest.mark.parity
@pytest.mark.parametrize("dtype", ["bool", "int64", "float16"])
def test_kernels_that_take_no_integers(dtype):
    """What PyTorch has kernels for decides, in functions that look at nothing before."""
    before = f"x = t.ones(1, 4, 4).to(t.{dtype}); o = x[:, :, :0]; z = x * 0"
    check({
        call: f"{before}; r = {call}"
        for call in (
            "x.clamp(x, x)", "x.clone().clamp_(x, x)", "x.clamp(0, 1)", "x.div(z, rounding_mode='floor')", "x.div(False, rounding_mode='trunc')",
            "x.clone().div_(z, rounding_mode='trunc')", "x.floor_divide(z)", "x.clone().floor_divide_(z)", "x.fmod(z)", "x.clone().fmod_(z)", "x.fmod(False)",
            "x.remainder(z)", "x.clone().remainder_(z)", "F.softsign(x)", "F.threshold(x, 1, 0)", "F.prelu(x, x[0, 0, :1])", "F.prelu(x, x[0, 0])", "F.glu(x)",
            *[f"F.pad({a}, {p}, mode='{m}')" for a, p in (("x", (1, 1)), ("x", (1, 1, 1, 1))) for m in ("reflect", "replicate", "circular")],
            "t.stft(x[0, 0], 4, return_complex=True)", "t.stft(x[0, 0], 4, return_complex=True, center=False)", "F.max_pool1d(x, 2)",
            "F.max_pool1d(x, 2, return_indices=True)", "F.max_pool2d(x, 2)", "F.adaptive_avg_pool1d(x, 1)", "x.round(decimals=2)", "x.round(decimals=-2)",
            "x.round()", "x.triu().cholesky()", "t.cholesky_inverse(x)", "t.cholesky_solve(x, x)", "t.triangular_solve(x, x)",
            "t.linalg.solve_triangular(x, x, upper=True)", "t.addmm(x[0], o[0], o[0].mT, alpha=0.6, beta=0.2)",
            "t.addbmm(x[0], o, o.mT, alpha=0.6, beta=0.2)", "t.baddbmm(x, o, o.mT, alpha=0.6, beta=0.2)", "t.addmv(x[0, 0], x[0], x[0, 0], beta=0.2)",
        )
    }, kinds="subclasses")  # fmt: skip


@pytest.mark.parity
def test_what_has_no_dims_or_does_not_fit():
    check({
        "addmv": "r = t.ones(()).addmv(t.ones(0, 10), t.ones(0))", "cross": "r = t.cross(t.ones(()), t.ones(()), dim=-1)",
        "linalg.cross": "r = t.linalg.cross(t.ones(()), t.ones(()))", "diff": "r = t.diff(t.ones(2, 5, 5), prepend=t.ones(2, 1, 5))",
        "diff, none": "r = t.diff(t.ones(2, 5, 5), 0, 0, t.ones(2, 1, 5))", "diff of fewer dims": "r = t.diff(t.ones(5), prepend=t.ones(1, 1))",
        "diff, none, of no such dim": "r = t.diff(t.ones(5), 0, 1)", "diff of no such dim": "r = t.diff(t.ones(5), 1, 1)",
        "diff, empty": "r = t.diff(t.ones(2, 5), append=t.ones(0))",
    }, kinds="subclasses")  # fmt: skip


@pytest.mark.parity
@pytest.mark.parametrize("shape", [(), (0,), (2, 0), (1,), (2,)])
def test_complex_numbers_of_which_there_are_few(shape):
    """Functions of real numbers that look at nothing where there is nothing to compare."""
    check({
        f"{call}, {grad}": f"x = t.ones({shape}, dtype=t.complex128, requires_grad={grad}); r = x.{call}"
        for grad in (False, True) for call in ("softmax(0)", "log_softmax(0)", "kthvalue(1)", "mode(0)", "cummax(0)", "cummin(0)")
    }, kinds="subclasses")  # fmt: skip


@pytest.mark.parity
@pytest.mark.parametrize("shape", [(), (0,), (2,), (3,)])
def test_activations_of_complex_numbers(shape):
    """Most have no kernel of them, which is said before that there is no derivative."""
    x = f"t.ones({shape}, dtype=t.complex128, requires_grad={{}})"
    plain = ("celu", "elu", "selu", "gelu", "glu", "hardshrink", "hardsigmoid", "hardswish", "hardtanh", "leaky_relu", "logsigmoid", "mish",
             "relu", "relu6", "rrelu", "silu", "softplus", "softshrink", "softsign", "tanhshrink", "sigmoid", "tanh")  # fmt: skip
    inplace = ("celu", "elu", "selu", "hardsigmoid", "hardswish", "hardtanh", "leaky_relu", "mish", "relu", "relu6", "rrelu")
    check({
        f"{name}, {grad}{more}": f"x = {x.format(grad)}; r = F.{name}(x * 1{more})" for grad in (False, True)
        for names, more in ((plain, ""), (inplace, ", inplace=True")) for name in names
    }, kinds="subclasses")  # fmt: skip


@pytest.mark.parity
def test_one_part_is_a_mean_also_of_complex_numbers():
    before = "x = t.arange(16.).reshape(1, 4, 4).to(t.complex128)"
    check({
        f"{n} {size}": f"{before}; r = F.adaptive_avg_pool{n}d(x{more}, {size})" for n, more in ((1, ""), (2, ""), (3, "[None]")) for size in (1, 2)
    }, kinds="subclasses")  # fmt: skip


@pytest.mark.parity
@pytest.mark.parametrize("shape", [(), (2,)])
def test_comparisons_in_place_have_a_history(shape):
    """And gradients of zeros, for both operands."""
    make = f"p = t.ones({shape}, requires_grad={{}}); q = t.ones({shape}, requires_grad={{}}); x = p * 2; x.{{}}_({{}})"
    after = "r = [x, *t.autograd.grad(x.sum(), [s for s in (p, q) if s.requires_grad], allow_unused=True)]"
    names = ("eq", "ne", "not_equal", "lt", "less", "le", "gt", "ge", "greater_equal")
    check({
        f"{name} {p} {q} {b}": f"{make.format(p, q, name, b)}; {after}"
        for name in names for p, q, b in ((True, False, "q"), (True, True, "q"), (False, True, "q"), (True, False, "1"), (False, True, "q.double()"))
    })  # fmt: skip


@pytest.mark.parity
@pytest.mark.parametrize("name", ["logical_not", "logical_and", "logical_or", "logical_xor"])
def test_logic_in_place_is_not_seen_by_autograd(name):
    """Histories stay, leaves are written; what a node has saved may not be changed all the same."""
    call = f"x.{name}_({'' if name == 'logical_not' else 'o'})"
    given = "t.ones(3)" + ", o" * (name != "logical_not")
    before = "p = t.tensor([0., 1., 2.], requires_grad=True); o = t.tensor([0., 3., 0.], requires_grad=True)\n"
    states = "x.is_leaf, x._version, x.grad_fn is not None"
    check({
        **{f"{x} {after}": f"{before}x = {x}; {call}; r = [x, {states}]\n{after}"
           for x in ("p", "p * 2", "(p * 2)[1:]" if name == "logical_not" else "(p * 2)[:]", "t.ones(3)", "p.exp()")
           for after in ("", "x.sum().backward(); r += [p.grad, o.grad]", "(x * x).sum().backward(); r += [p.grad, o.grad]")},
        "what was saved": f"{before}x = p * 2; y = x * x; {call}; y.sum().backward(); r = p.grad",
        "an inference tensor": f"{before}with t.inference_mode(): x = t.ones(3)\n{call}",
        "out= that is a leaf": f"{before}t.{name}({given}, out=p); r = p",
        "out= with a history": f"{before}x = p * 2; t.{name}({given}, out=x); r = [x, {states}]",
        "a comparison's out=": f"{before}t.eq(t.ones(3), o, out=p); r = p",
    }, kinds="subclasses")  # fmt: skip


@pytest.mark.parity
@pytest.mark.parametrize("dtype", ["float32", "int64", "complex64"])
@pytest.mark.parametrize("name", ["index_select", "index_add", "index_copy", "index_fill", "index_add_", "index_copy_", "index_fill_"])
def test_indices_of_slices(name, dtype):
    """From the end or out of range, also where there is nothing: written beside the memory of a tensor without elements they once were."""
    rest = {"index_select": "", "index_fill": ", 2"}.get(name.rstrip("_"), ", t.ones({}, dtype=x.dtype)")
    check({
        f"{shape} {dim} {count} {at}": f"x = t.zeros({shape}, dtype=t.{dtype}); i = t.tensor([{at}] * {count}, dtype=t.int64); "
        f"r = x.{name}({dim}, i{rest.format([count if k == dim else n for k, n in enumerate(shape)])})"
        for shape in ((3, 4), (3, 4, 2), (2, 3, 4, 2), (0,), (0, 4), (4, 0), (2, 0, 3), (0, 0)) for dim in range(len(shape))
        for count in (0, 1, 2) for at in (0, 9, -1, -2, 1)
    }, kinds="subclasses")  # fmt: skip


@pytest.mark.parity
def test_bounds_of_one_kind():
    bounds = ("0", "t.zeros(3)", "t.tensor(0.)", "t.tensor(0., requires_grad=True)", "None", "t.zeros(1)")
    calls = ("t.clamp(x, {}, {})", "x.clone().clamp_({}, {})", "t.clip(x, {}, {})", "x.clamp(max={1}, min={0})")
    check({c.format(a, b): f"x = t.arange(3.) - 1; r = {c.format(a, b)}" for c in calls for a in bounds for b in bounds}, kinds="subclasses")


@pytest.mark.parity
def test_dropout_of_all_kinds():
    """Of what has no kernel, where all falls or none, and of other ranks."""
    names = ("dropout", "alpha_dropout", "dropout1d", "dropout2d", "dropout3d", "feature_alpha_dropout")
    check({
        f"{name} {dtype} {p} {train} {inplace} {shape}": f"y = F.{name}(t.ones({shape}, dtype=t.{dtype}), {p}, {train}, {inplace}); "
        f"r = y.dtype, y.shape, None if {p} == 0.5 else y"
        for name in names for dtype in ("complex64", "int64", "bool", "float32") for p in (0.0, 0.5, 1.0)
        for train in (True, False) for inplace in (True, False) for shape in ((3, 3, 3), (0, 3, 3))
    }, kinds="subclasses")  # fmt: skip


@pytest.mark.parity
def test_numbers_in_place_of_what_has_dims():
    """Errors of the right type, with a text that names what is wrong."""
    transformer = "t.nn.Transformer(4, 2, 1, 1, 4"
    calls = (
        *[f"{transformer}{first})({a}, {b})" for first in ("", ", batch_first=True") for a in ("n", "t.ones(4)", "t.ones(3, 4)") for b in ("n", "t.ones(4)")],
        "t.nn.TransformerEncoder(t.nn.TransformerEncoderLayer(4, 2, 4), 1)(n)", "t.nn.TransformerDecoder(t.nn.TransformerDecoderLayer(4, 2, 4), 1)(n, n)",
        *[f"t.fft.{f}({x}{d})" for f in ("fftshift", "ifftshift") for x in ("n", "t.ones(3)") for d in ("", ", 0", ", -1", ", 1", ", ()", ", (0,)")],
        *[f"F.embedding(t.tensor([0]), {w}{p})" for w in ("n", "g", "t.ones(3)", "t.ones(2, 2)", "t.ones(0, 2)")
          for p in ("", ", padding_idx=0", ", padding_idx=1", ", padding_idx=-1", ", padding_idx=9")],
        *[f"F.embedding(t.zeros(0, dtype=t.int64), t.ones(0, 2), padding_idx={p})" for p in (0, 1, -1)],
    )  # fmt: skip
    check({c: f"n = t.tensor(1.); g = t.tensor(1., requires_grad=True); r = {c}" for c in calls}, kinds="subclasses")


@pytest.mark.parity
@pytest.mark.parametrize("n", (1, 2, 3))
def test_what_cannot_be_unpooled(n):
    """Of other ranks, of nothing, with other indices, to other sizes; sizes are looked at first."""
    shapes = ((), (2,), (2, 3), (1, 2, 3), (1, 1, 2, 3), (1, 1, 2, 2, 3), (1, 1, 1, 2, 2, 3), (1, 0, 2, 2), (1, 2, 0))
    sizes = (None, (4,) * n, (1, 1) + (4,) * n, (4,) * (n + 1), (99,) * n, (0,) * n, (-1,) * n)
    check({
        f"{shape} {other} {size} {kernel} {padding} {dtype}": f"r = F.max_unpool{n}d(t.zeros({shape}, dtype=t.{dtype}), t.zeros({other}, "
        f"dtype=t.int64), {kernel}, None, {padding}, {size}).shape"
        for shape in shapes for other in (shape, (1,)) for size in sizes for kernel, padding in ((2, 0), (1, 0), (1, 2), (2, 1))
        for dtype in ("float32", "int64") if (n, padding) != (3, 1)  # (into no memory PyTorch's max_unpool3d puts whatever there is)
    }, kinds="subclasses")  # fmt: skip


@pytest.mark.parity
def test_outer_products_added_in_place():
    """Of one element, which a vector may be itself; otherwise memory that meets is refused."""
    check({
        f"{x} {a} {b}": f"x = t.arange(6.).reshape(2, 3)[{x}]; x.addr_({a}, {b}, beta=0.5); r = x"
        for x in (":, :1", ":1", "...") for a in ("x[:, 0]", "x[0]", "t.ones(x.shape[0])", "t.ones(1, 1)", "t.ones(5)", "2.")
        for b in ("x[0]", "t.ones(x.shape[1])") if (x, a) != ("...", "x[:, 0]")  # (PyTorch reads there what it has written)
    } | {f"one element, {a} {b}": f"x = t.ones(1, 1) * 3; x.addr_({a}, {b}, beta=0.5); r = x" for a in ("x[0]", "t.ones(1)") for b in ("x[0]", "t.ones(1)")},
    kinds="subclasses")  # fmt: skip


@pytest.mark.parity
def test_writing_at_indices_of_nothing():
    """Where a dim has no elements the index is refused before the value is looked at."""
    check({
        f"{index} {value}": f"x = t.ones(2, 0, 3); x[{index}] = {value}; r = x"
        for index in ("i, None, i", "i, i", ":, i", "i", "..., i", "i, :, i", "e, e", ":, e", "i[:1, None], e")
        for value in ("x.clone()", "t.ones(5)", "1.", "t.ones(0, 3).double()")
    }, "i = t.tensor([0, 0, -1]); e = t.zeros(0, dtype=t.int64)", kinds="subclasses")  # fmt: skip


@pytest.mark.parity
def test_checkpoints_keep_no_inference_tensors():
    check({
        f"{f} {args} {reentrant} {mode}": f"x = t.ones(3, requires_grad=True)\nwith t.inference_mode(): i = t.ones(3)\n"
        f"with t.{mode}(): r = checkpoint({f}, {args}, use_reentrant={reentrant}).detach()"
        for f in ("lambda a, b: a * b", "lambda a, b: a + b") for args in ("x, i", "i, x", "i, i", "x, x") for reentrant in (True, False)
        for mode in ("enable_grad", "no_grad", "inference_mode")
    }, "from importlib import import_module\ncheckpoint = import_module(f'{t.__name__}.utils.checkpoint').checkpoint", kinds="subclasses")  # fmt: skip


@pytest.mark.parity
@pytest.mark.parametrize("dtype", ["bool", "complex64", "int64"])
def test_index_reduce_of_what_has_no_kernel(dtype):
    """One kernel serves vectors, and others the slices of matrices."""
    check({
        f"{shape} {reduce} {whole} {grad}": f"x = t.ones({shape}).to(t.{dtype}){'.requires_grad_()' * grad}; i = t.zeros(1, dtype=t.int64); "
        f"r = x.index_reduce(0, i, x[:1], '{reduce}', include_self={whole})"
        for shape in ((2,), (2, 2)) for reduce in ("prod", "mean", "amax", "amin") for whole in (True, False)
        for grad in (False, True) if not grad or dtype == "complex64"
    }, kinds="subclasses")  # fmt: skip


@pytest.mark.parity
@pytest.mark.parametrize("shape", [(0,), (2, 0), (0, 2), (), (0, 0), (2, 3)])
@pytest.mark.parametrize("dim", [0, 1, 2, -1, -3])
def test_dims_and_indices_out_of_range(shape, dim):
    before = f"x = t.ones({shape}); i = t.zeros(1, dtype=t.int64); j = t.tensor([4, 0, 2, 1, 3])"
    check({
        call: f"{before}; r = {call}"
        for call in (
            *[f"x.{name}({dim}, {at}{rest})" for at in "ij" for name, rest in (
                ("index_select", ""), ("index_add", ", x"), ("index_copy", ", x"), ("index_fill", ", 1"), ("index_reduce", ", x, 'prod'"),
            )],
            f"x.roll(1, {dim})", f"x.roll((1, 1), ({dim}, {dim}))", f"x.unflatten({dim}, (1, 1))", f"x.narrow_copy({dim}, 0, 1)", f"x.narrow({dim}, 0, 1)",
            f"t.tensordot(x, x, ([{dim}], [{dim}]))", f"t.tensordot(x, t.ones(3), ([{dim}], [0]))", f"t.tensordot(t.ones(3), x, ([0], [{dim}]))",
        )
    }, kinds="subclasses")  # fmt: skip


@pytest.mark.parity
@pytest.mark.parametrize("loss", ["cross_entropy", "nll_loss"])
@pytest.mark.parametrize("shape", [(2, 3, 4), (3,), (2, 3)])
def test_classes_that_do_not_fit(loss, shape):
    targets = [(), (4, 3), (4,), (2,), (2, 4), (1,), (0,), (2, 5), (2, 1, 4)]
    check({f"{t}": f"r = F.{loss}(t.ones({shape}), t.zeros({t}, dtype=t.int64))" for t in targets}, kinds="subclasses")


@pytest.mark.parity
def test_bilinear_of_other_shapes():
    shapes = [((), (5,)), ((5,), ()), ((), ()), ((1, 2), (2,)), ((5,), (2,))]
    check({f"{a} {b} {w}": f"r = F.bilinear(t.ones({a}), t.ones({b}), t.ones({w}))" for a, b in shapes for w in ((3, 5, 5), (3,), ())}, kinds="subclasses")


@pytest.mark.parity
def test_orders_of_polygamma():
    calls = ("t.polygamma(x, 1)", "t.special.polygamma(x, 2)", "t.polygamma(1, x)", "x.polygamma(2)", "x.polygamma(x)", "t.polygamma(n=1, input=x)")
    check({call: f"x = t.ones(2); r = {call}" for call in calls}, kinds="subclasses")


@pytest.mark.parity
def test_which_fault_is_named():
    """Where PyTorch looks at one thing before another, or at a thing never."""
    before = "w = t.ones(3, 2); i = t.tensor([[5]]); c = t.ones(4, 4, dtype=t.complex64) * (1 + 2j); b = c.real > 0; g = t.ones(3, requires_grad=True)"
    calls = (
        "F.embedding(w, w.long(), padding_idx=7)", "F.embedding(i - 5, w.long(), max_norm=1.0)",
        "F.embedding(i - 5, g.sum(), max_norm=1.0)", "F.embedding(i - 5, g.sum())",
        "F.embedding_bag(b, i)", "F.embedding_bag(c, i)", "F.embedding_bag(i, w)", "F.embedding_bag(i, w, mode='max')", "F.embedding_bag(-i, w)",
        "F.embedding_bag(i - 5, w[:0])", "F.embedding_bag(i, w, max_norm=1.0)",
        "F.nll_loss(t.ones(3), t.zeros(2, dtype=t.int64), weight=g)",
        "t.tensordot(b[:2, :2, None] > 0, b[:2, None, :2] > 0, dims=([0, 1], [2, 0]))", "t.tensordot(b[:1, :1, None], b[:2, None, :2], ([0, 1], [2, 0]))",
        *(f"t.tensordot(w, {other}, {dims})" for other in ("w", "w.t()", "w[0]", "w.double()") for dims in (
            "([0, 5], [0, 0])", "([0, 5], [1, 0])", "([5, 0], [0, 0])", "([0, 0], [0, 1])", "([1, 1], [1, 1])", "([0], [0, 1])", "([5], [0, 1])", "([], [])")),
        "F.nll_loss(w, t.tensor(0), weight=g)", "F.nll_loss(t.ones(2, 3), t.zeros(2, dtype=t.int64), weight=g)",
        "F.cross_entropy(t.ones(2, 3), t.zeros(4, dtype=t.int64), weight=g)", "t.linalg.vecdot(g, g, dim=4)", "t.linalg.vecdot(w, w, dim=4)",
        "t.linalg.householder_product(b, b[0])", "t.linalg.ldl_solve(t.eye(4), t.ones(4, dtype=t.int32), t.ones(4))", "b.trace()",
        "F.smooth_l1_loss(c, c * 2, beta=0)", "F.smooth_l1_loss(c, c * 2)", "c.scatter_reduce(0, i - 5, c, 'amax')", "t.masked.median(c, 1)",
        "c.requires_grad_().scatter_reduce(0, i - 5, c, 'amax')", "c.requires_grad_().scatter_reduce(0, i - 5, c, 'prod')", "t.masked.softmin(b, 0)",
    )  # fmt: skip
    check({call: f"{before}; r = {call}" for call in calls}, kinds="subclasses")


@pytest.mark.parity
def test_flags_and_numbers_of_functions():
    """Arguments of another type than PyTorch's functions declare."""
    values = ("1", "2.5", "None", "'x'", "[]", "1j", "True", "2**63", "t.ones(2)", "t.tensor(1.)")
    flags = ("F.avg_pool2d(x, 2, ceil_mode={})", "F.avg_pool1d(y, 2, count_include_pad={})", "F.max_pool2d(x, 2, ceil_mode={})",
             "F.kl_div(y, y, log_target={})", "F.poisson_nll_loss(y, y, full={})", "F.embedding(i, y[0], sparse={})", "F.gelu(y, approximate={})")  # fmt: skip
    numbers = ("F.layer_norm(y, (4,), eps={})", "F.batch_norm(y, None, None, training=True, eps={})", "F.group_norm(y, {})", "F.softplus(y, {})",
               "F.cross_entropy(y[0], i, ignore_index={})", "F.nll_loss(y[0], i, ignore_index={})", "F.huber_loss(y, y, delta={})",
               "F.softshrink(y, {})", "F.hinge_embedding_loss(y, y, {})")  # fmt: skip
    # (a tensor is taken for what PyTorch's conversion makes of it, which it says in other words)
    left = {(numbers[1], "t.ones(2)"), (numbers[2], "t.ones(2)")}
    check({c.format(v): f"r = {c.format(v)}" for c in (*flags, *numbers) for v in values if (c, v) not in left},
          "x = t.ones(1, 1, 4, 4); y = t.ones(2, 2, 4); i = t.tensor([1, 0])", kinds="subclasses")  # fmt: skip


@pytest.mark.parity
def test_sizes_that_are_no_ints():
    calls = ("t.empty(2, {}).shape", "t.nn.Linear({}, 2).weight.shape", "t.nn.Linear(2, {}).weight.shape", "t.nn.Conv2d(2, 2, {}).weight.shape",
             "F.pad(x, (1, {})).shape", "F.conv2d(x, x, stride=(1, {})).shape", "t.nn.ZeroPad2d({})(x).shape", "x.flip((0, {}))", "x.sum({})")  # fmt: skip
    values = ("True", "2.5", "None", "'x'", "2**63", "-2**63-1", "[]", "t.tensor(1)")
    left = {(calls[1], "True"), (calls[2], "True")}  # as PyTorch's, which depends on what stands before
    check({c.format(v): f"r = {c.format(v)}" for c in calls for v in values if (c, v) not in left}, "x = t.ones(1, 1, 4, 4)", kinds="subclasses")


@pytest.mark.parity
def test_a_layout_has_ints_whatever_made_it():
    check({"a module of True outputs": "t.nn.Linear(5, True); y = t.ones(1, 5) * 2; r = y.reshape(5, 1).numpy().tolist(), [type(n) is int for n in y.shape]"})


@pytest.mark.parity
def test_operands_of_several_dtypes_in_triangular_equations_and_draws():
    before = "a = t.tensor([[2., 1.], [0., 4.]]); b = t.tensor([[1.], [2.]])\n"
    check({
        **{f"solve {p}, {q}": f"{before}r = t.linalg.solve_triangular(a.to(t.{p}), b.to(t.{q}), upper=True)"
           for p, q in (("float64", "float32"), ("float32", "float64"), ("float32", "int64"), ("float64", "bool"))},
        **{f"normal {p}, {q}": f"r = t.normal(t.ones(3, dtype=t.{p}), t.ones(3, dtype=t.{q})).dtype"
           for p, q in (("float16", "float32"), ("float32", "float64"), ("float32", "int64"), ("int64", "float32"), ("float32", "complex64"))},
        "no dims": "r = t.tensordot(t.tensor(1.), t.ones(2), ([0], [0]))",
        "Lp pooling of the largest": "r = F.lp_pool2d(t.arange(16.).reshape(1, 1, 4, 4) - 8, float('inf'), 2)",
        "Lp pooling of the least": "r = F.lp_pool1d(t.arange(8.).reshape(1, 8) - 4, -float('inf'), 2)",
        "an infinite margin": "r = F.multi_margin_loss(t.tensor([[1., 2.]]), t.tensor([0]), margin=float('inf'))",
    }, kinds="subclasses")  # fmt: skip


@pytest.mark.parity
def test_arguments_that_equal_others():
    """1.0 and 1 are True in a table of what was seen: they are refused after a call with the bool, or the int, as they are before it."""
    before = "x = t.arange(6.).reshape(2, 3)"
    calls = ("x.sum({}, keepdim={})", "x.amax({}, keepdim={})", "x.logsumexp({}, keepdim={})", "x.sort({}, descending={})", "x.var({}, keepdim={})",
             "x.median({}, keepdim={})", "x.topk(1, {}, largest={})", "x.unique(dim={}, return_counts={})", "F.batch_norm(x, x[0], x[0], training={1})",
             "x.round(decimals={})", "t.tensordot(x, x.t(), {})", "x.sum(({},))", "x.movedim({}, 0)", "t.fft.fftn(x, dim=({},))", "t.rot90(x, 1, ({}, 0))",
             "t.searchsorted(x[0], x[0], right={1})", "F.max_pool1d(x, 1, ceil_mode={1})", "t.fft.fft(x, norm={1})",
             "t.linalg.vecdot(x, x, dim={})")  # fmt: skip
    check({
        f"{call} {dim} {flag}": f"try:\n    {call.format(1, True)}\nexcept Exception:\n    pass\nr = {call.format(dim, flag)}"
        for call in calls for dim, flag in ((1, True), (1, 1), (1, 1.0), (1.0, True), ("'a'", True), (1, "'a'"), (1, None), ("t.tensor(1)", True))
    }, before, kinds="subclasses")  # fmt: skip


@pytest.mark.parity
def test_functions_of_one_operand_take_no_numbers():
    from autograd_nb.ops.core.registry import OPS

    names = [n for n, o in OPS.items() if o.kind == "pointwise" and len(getattr(o.rule, "params", ())) == 1 and hasattr(torch, n)]
    assert len(names) > 50
    check({f"{name}({value})": f"r = t.{name}({value})" for name in names for value in ("2.0", "[1.0]", "None")}, kinds="subclasses")


@pytest.mark.parity
def test_bounds_and_margins_that_are_nan_none_or_reached():
    x = "x = t.tensor([[1.0, 0.0, 2.0], [-2.0, 0.5, 1.5]], requires_grad=True)"
    losses = ("hinge_embedding_loss(x, x.sign().detach(), margin={})", "margin_ranking_loss(x, x * 2, x.sign().detach(), margin={})",
              "multi_margin_loss(x, t.tensor([0, 1]), margin={})", "multi_margin_loss(x, t.tensor([0, 1]), p=2, margin={})")  # fmt: skip
    check({
        **{f"hardtanh {low}, {high}": f"y = F.hardtanh(x, {low}, {high}); y.sum().backward(); r = y, x.grad"
           for low in ("-1.0", "float('nan')", "2.0") for high in ("1.0", "float('nan')")},
        **{loss.format(v): f"y = F.{loss.format(v)}; y.backward(); r = y, x.grad"
           for loss in losses for v in ("1.0", "float('nan')", "1e40", "None", "'x'") if v != "float('nan')" or "multi" in loss},
        **{f"{name} {v}": f"r = t.nn.{name}(margin={v})(x.detach()[:, 0], x.detach()[:, 1], t.ones(2))"
           for name in ("MarginRankingLoss",) for v in ("None", "0.5")},
        "a number for a target": "r = F.gaussian_nll_loss(x, 0.5, t.ones(2, 3)), F.multilabel_soft_margin_loss(x, 0.5)",
        "value of a border": "r = F.pad(x, (1, 1), value=-2**63 - 1), F.pad(t.ones(2, dtype=t.int64), (1, 1), value=2**53 + 1)",
        "complex border": "r = F.pad(x, (1, 1), value=1j)",
        "any number": "r = t.constant_pad_nd(x * 1j, (1, 1), 1j), t.constant_pad_nd(t.ones(2, dtype=t.int64), (1, 1), 2**53 + 1)",
    }, x, kinds="subclasses")  # fmt: skip


@pytest.mark.parity
def test_pools_and_convolutions_of_every_dtype():
    """What PyTorch computes of it, or that it refuses. (Three-dimensional pools of half precision are more than it has.)"""
    kinds = ("uint8", "int8", "int16", "int32", "int64", "bool", "float32", "float64")
    calls = {1: "x(1, 2, 4)", 2: "x(1, 2, 4, 4)", 3: "x(1, 2, 4, 4, 4)"}
    check({
        f"{name.format(n)} {kind}": f"r = F.{name.format(n)}(t.ones{shape[1:]}.to(t.{kind}), {more.format(shape=shape[1:], kind=kind)})"
        for n, shape in calls.items() for kind in kinds
        for name, more in (("avg_pool{}d", "2"), ("adaptive_avg_pool{}d", "2"), ("max_pool{}d", "2"), ("lp_pool{}d", "2, 2"),
                           ("conv{}d", "t.ones{shape}.to(t.{kind})")) if name != "lp_pool{}d" or n < 3
    }, kinds="subclasses")  # fmt: skip


TARGETS = {
    "a leaf": "x = t.ones(4).requires_grad_()",
    "a matrix": "x = t.ones(4, 4).requires_grad_()",
    "a part of a leaf": "x = t.ones(2, 4).requires_grad_()[0]",
    "one of several": "x = (t.ones(2, 4).requires_grad_() * 1).unbind()[0]",
    "one of several, without a history": "x = t.ones(2, 4).unbind()[0]; w.requires_grad_()",
    "made under no_grad": "with t.no_grad(): x = t.ones(2, 4).unbind()[0]\nw.requires_grad_()",
}
WRITES = """
index_copy_(0,i,w) index_copy_(7,i,w) index_copy_(0,i+9,w) index_copy_(0,i,w.double()) index_add_(0,i,w) index_add_(7,i,w) index_add_(0,i+9,w)
index_reduce_(0,i,w,'mean') index_reduce_(7,i,w,'mean') index_put_((i,),w) index_put_((i,i,i,i),w) index_put_((i,),w.double()) put_(i,w)
put_(i+99,w[:1]) put_(i,w[:1].double()) scatter_(0,i,w) scatter_(7,i,w) scatter_add_(0,i,w) scatter_add_(7,i,w) scatter_reduce_(7,i,w,'sum')
masked_scatter_(w>0,w) masked_scatter_(i,w) addbmm_(w,w) baddbmm_(w,w) addmm_(w,w) addmv_(w,w) addr_(w,w) add_(w) copy_(w) lerp_(w,0.5)
"""


@pytest.mark.parity
@pytest.mark.parametrize("target", TARGETS)
def test_what_may_not_be_changed_is_said_before_what_else_is_wrong(target):
    before = f"i = t.tensor([0]); w = t.ones(5)\n{TARGETS[target]}"
    check({write: f"r = x.{write}" for write in WRITES.split()}, before, kinds="subclasses")


@pytest.mark.parity
def test_too_many_indices_come_before_the_dtype():
    check({
        f"{shape}, {dtype}": f"r = t.ones({shape}).index_put_((t.tensor([0, 0]),), t.ones(2).to(t.{dtype}))"
        for shape in ("()", "0", "0, 3", "3", "3, 0") for dtype in ("float64", "float32")
    }, kinds="subclasses")  # fmt: skip


@pytest.mark.parity
@pytest.mark.parametrize("input", ["bool", "uint8", "int32", "complex64", "float32"])
def test_several_dtypes_of_convolutions_and_grids(input):
    check({
        f"{call}, {other}": f"r = F.{call.format(input, other)}"
        for other in ("bool", "int32", "float64", "complex128")
        for call in (
            "conv1d(t.ones(1, 1, 4).to(t.{}), t.ones(1, 1, 2).to(t.{}))", "conv_transpose1d(t.ones(1, 1, 4).to(t.{}), t.ones(1, 1, 2).to(t.{}))",
            "conv_transpose3d(t.ones(1, 1, 4, 4, 4).to(t.{}), t.ones(1, 1, 2, 2, 2).to(t.{}))",
            "grid_sample(t.ones(1, 1, 3, 3).to(t.{}), t.zeros(1, 2, 2, 2).to(t.{}))",
        )
    }, kinds="subclasses")  # fmt: skip


@pytest.mark.parity
def test_embedding_bags_look_at_sizes_before_dtypes():
    shapes, offsets = ("2, 2, 4", "2, 3", "3", "()"), ("None", "t.tensor([0, 2])", "t.tensor([0.])", "t.tensor([[0]])")
    check({f"{s}, {o}": f"r = F.embedding_bag(t.ones({s}), t.ones(5, 3), {o})" for s in shapes for o in offsets}, kinds="subclasses")


@pytest.mark.parity
def test_jvp_of_integers_looks_at_each_pair_in_turn():
    check({
        f"{primal}, {tangent}": f"r = t.func.jvp(lambda z: z.exp(), (t.ones(3).to(t.{primal}),), (t.ones({tangent}),))[0]"
        for primal in ("int32", "float32") for tangent in ("3", "1", "3).to(t.int32", "1).to(t.int32")
    }, kinds="subclasses")  # fmt: skip


@pytest.mark.parity
@pytest.mark.parametrize("dtype", ["uint8", "int8", "int32"])
def test_bounds_of_hardtanh_are_made_integers_first(dtype):
    bounds = ("-0.5, 1", "-0.9, 7.9", "-1.0, 2", "float('nan'), 2", "0, float('inf')", "-0.0, 3", "0.7, 0.8", "-3, -2", "0, 300", "-0.3, -0.2")
    check({b: f"r = F.hardtanh(t.tensor([0, 1, 2, 100]).to(t.{dtype}), {b})" for b in bounds}, kinds="subclasses")


@pytest.mark.parity
@pytest.mark.parametrize("name", ["special.zeta", "igamma", "igammac"])
def test_a_missing_derivative_is_missed_only_where_it_is_asked_for(name):
    before = "q = t.ones(3, requires_grad=True); s = t.full((3,), 2., requires_grad=True)"
    check({
        "by the other": f"y = t.{name}(s, q); r = t.autograd.grad(y.sum(), q), y.grad_fn.name()",
        "both": f"r = t.autograd.grad(t.{name}(s, q).sum(), (s, q))",
        "backward": f"t.{name}(s, q).sum().backward(inputs=[q]); r = q.grad, s.grad",
        "in place": "y = s * 1; y.igamma_(q); r = t.autograd.grad(y.sum(), q), y.grad_fn.name()",
        "only that": f"y = t.{name}(s, q.detach()); r = y.requires_grad",
    }, before, kinds=True)  # fmt: skip


@pytest.mark.parity
def test_indices_of_take_along_dim_count_modulo_the_size():
    shapes = (("(5, 1)", "(5, 5)"), ("(5, 1)", "(1, 5)"), ("(5, 5)", "(5, 1)"), ("(1, 5)", "(5, 2)"), ("(3, 0)", "(3, 2)"), ("(3, 2)", "(3, 0)"))
    taken = "x = t.arange(25.).resize_({}).requires_grad_(); r = [t.take_along_dim(x, t.full({}, {}), 1)]; r[0].sum().backward(); r += [x.grad]"
    check({
        f"{a}, {b}, {k}": taken.format(a, b, k)
        for a, b in shapes for k in (-6, -1, 1, 5)
    } | {"flat": "r = t.take_along_dim(t.ones(3, 4), t.tensor([0, -1, 13]))"}, kinds="subclasses")  # fmt: skip


@pytest.mark.parity
def test_negative_tolerances_of_pseudo_inverses_count_as_none():
    before = "a = t.tensor([[0., 0, 0], [1, 0, 0], [2, 3, 0]], dtype=t.float64)"
    tolerances = ("rtol=-0.5", "rtol=t.tensor(-0.5)", "rtol=t.tensor(0.)", "rtol=1e-9", "rtol=-0.5, atol=1e-9", "atol=-1.0", "rtol=0.5")
    check({f"{f}, {how}": f"r = t.linalg.{f}(a, {how})" for f in ("pinv", "matrix_rank") for how in tolerances}, before)


@pytest.mark.parity
@pytest.mark.parametrize("name", ["asarray", "as_tensor", "from_numpy", "tensor"])
def test_which_arrays_without_dims_are_shared(name):
    arrays = ("np.array(0.25)", "np.array([0.25])", "np.array([[1., 2]])[:, 0]", "np.array(3)")
    check({a: f"a = {a}; r = t.{name}(a); a.reshape(-1)[0] = -1" for a in arrays})


@pytest.mark.parity
@pytest.mark.parametrize("call", ["x.index_put", "x.index_put_"])
def test_one_element_that_fills_a_mask_may_have_another_dtype(call):
    values = ("t.tensor(2.5)", "t.tensor([2.5], dtype=t.float64)", "t.tensor(1j)", "t.tensor([[True]])", "t.tensor(2.5, requires_grad=True)")
    check({
        f"{d}, {v}": f"x = t.zeros(3).to(t.{d}); r = {call}((t.tensor([True, False, True]),), {v})"
        for d in ("float64", "int64", "bool", "float32") for v in values[: 4 + (d[0] == "f")]
    }, kinds="subclasses")  # fmt: skip


@pytest.mark.parity
@pytest.mark.parametrize("call", ["v.mean()", "v.mean(0)", "v.mean(-1, keepdim=True)", "v.sum()"])
def test_recorded_gradients_of_means_may_be_written_to(call):
    check({
        str(recorded): f"v = t.ones(4, requires_grad=True); g, = t.autograd.grad(({call} ** 3).sum(), v, create_graph={recorded}); "
        "r = g.is_contiguous(), g.stride(), g.detach().add_(1)"
        for recorded in ([True, False] if "mean" in call else [True])
    }, kinds="subclasses")  # fmt: skip


@pytest.mark.parity
@pytest.mark.parametrize("shape", ["0, 4", "3, 4", "3, 0"])
def test_an_index_that_selects_is_looked_at_before_the_leaf(shape):
    indices = ("t.tensor(0)", "0", "t.tensor([0])", "slice(0, 1)", "t.tensor(9)", "9", "(slice(None), 9)", "t.tensor([9])", "(0, 0, 0)")
    check({i: f"x[{i}] = 0.5; r = x" for i in indices}, f"x = t.ones({shape}).requires_grad_()", kinds="subclasses")


@pytest.mark.parity
def test_tiles_of_no_dims():
    check({x: f"r = t.tile({x}, ()), {x}.tile(()), {x}.repeat(())" for x in ("t.tensor(2.)", "t.ones(())")})


@pytest.mark.parametrize("dtype", ("complex64", "int64", "bool", "float32"))
def test_which_fault_of_a_cross_entropy_is_told(dtype):
    """A dtype is refused before a size, and targets that would be probabilities before both."""
    shapes = (((2, 3), (2,)), ((2, 3, 3), (2,)), ((2, 3), (3,)), ((3,), ()), ((2, 3), (2, 3)), ((2, 3, 3), (2, 3, 3)), ((), ()), ((3,), (2,)),
              ((2, 3, 3), (1, 3)), ((2, 3, 3), ()))  # fmt: skip
    for x, t in shapes:
        found = []
        for lib in (torch, autograd_nb):
            try:
                lib.nn.functional.cross_entropy(lib.ones(x).to(getattr(lib, dtype)), lib.zeros(t, dtype=lib.int64))
                found.append("taken")
            except Exception as error:
                found.append(next(c.__name__ for c in type(error).__mro__ if c.__module__ == "builtins"))
        assert found[0] == found[1], (x, t, found)


@pytest.mark.parity
def test_grids_that_do_not_fit_are_told_in_the_same_order():
    inputs = (1, 1, 2, 2), (1, 2, 2), (2, 1, 2, 2), (1, 1, 2, 2, 2), (2, 2), (0, 1, 2, 2), (1, 1, 0, 2)
    grids = (1, 2, 2, 2), (1, 1, 1, 1, 2), (1, 2, 1), (1, 1, 1, 1, 3), (1, 1, 3), (2, 2, 2, 2), (1, 2, 2)
    for size in inputs:
        for places in grids:
            mine, theirs = (
                outcome_text(
                    lambda lib=lib: lib.nn.functional.grid_sample(lib.zeros(size), lib.zeros(places), align_corners=False)
                )
                for lib in (autograd_nb, torch)
            )
            assert mine == theirs, (size, places)


def outcome_text(call):
    """The shape of a result, or the beginning of what an exception says."""
    try:
        return tuple(call().shape)
    except RuntimeError as error:
        return str(error)[:50]
