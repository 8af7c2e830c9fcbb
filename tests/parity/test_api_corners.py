"""Less travelled arguments and answers of PyTorch's API that its own tests ask for."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

import autograd_nb as ag

torch = pytest.importorskip("torch")

from .snippets import check  # noqa: E402

DTYPES = ["uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64", "bool"]


@pytest.mark.parity
def test_bounds_of_random_integers():
    bounds = ["5, None", "-5, None", "0, None", "1, None", "7", "3, 4", "3, 3", "None, 5", "None", "None, None", "1 << 40, None", "-(1 << 63), None",
              "2, to=5", "to=4", "**{'from': 3}", "**{'from': 3, 'to': 9}", "**{'from': 250, 'to': None}", "x=3", ""]  # fmt: skip
    narrow = ("uint8", "int8", "bool")  # of which 3000 draws have all numbers
    check({
        f"{d} {b}": f"x = t.zeros(3000, dtype=t.{d}).random_({b}).double(); "
        f"r = (x.max() > 126).item(), (x.min() < -100).item(), {'x.min().item()' if d in narrow else 'None'}"
        for d in DTYPES for b in bounds
    }, kinds=True)  # fmt: skip


@pytest.mark.parity
def test_switch_of_repeated_warnings():
    check({
        "set": "a = t.is_warn_always_enabled(); t.set_warn_always(True); b = t.is_warn_always_enabled(); t.set_warn_always(False); r = a, b",
        "an int": "t.set_warn_always(1)",
        "each time": "import warnings\nt.set_warn_always(True)\nwith warnings.catch_warnings(record=True) as seen:\n    warnings.simplefilter('always')\n"
        "    x = t.ones(1, requires_grad=True); float(x); float(x)\nt.set_warn_always(False); r = len(seen)",
    }, kinds=True)  # fmt: skip


@pytest.mark.parity
def test_arguments_refused():
    check({
        "flip of no dims": "t.ones(2).flip()",
        "diff, prepend": "t.diff(t.ones(2, 2), prepend=t.ones(2))",
        "diff, append": "t.diff(t.ones(2), append=t.ones(2, 1))",
        "numpy": "t.ones(2, requires_grad=True).numpy()",
        "numpy, no_grad": "x = t.ones(2, requires_grad=True)\nwith t.no_grad():\n    r = x.numpy().tolist(), x[0:1].numpy().tolist()",
    }, kinds=True)  # fmt: skip




@pytest.mark.parity
def test_tensors_whose_dual_level_has_ended():
    level = "fw = t.autograd.forward_ad\nwith fw.dual_level():\n    d = fw.make_dual(x, t.tensor([3.0, 4.0])); e = d * d\n"
    level = "x = t.tensor([1.0, 2.0], requires_grad=True) * 1\n" + level
    uses = [
        "d", "d * 2", "fw.unpack_dual(d)", "d.sum()", "d.numpy(force=True).tolist()", "d[0]", "d.reshape(2, 1)", "t.stack([d, e])",
        "d.add_(1)", "e", "d + e", "t.autograd.grad(e.sum(), d)", "type(e) is t.Tensor", "repr(d.detach())",
    ]  # fmt: skip
    check({use: f"{level}r = {use}" for use in uses})
    check({use: f"{level}with fw.dual_level():\n    r = fw.unpack_dual({use})" for use in ("d", "e * 2", "fw.make_dual(e, d)", "e.sum()")})
    check({use: f"import gc\n{level}del d\nr = {use}" for use in ("e", "e.sum()")})


RETURNED_TWICE = """
class Twice(t.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        y = x * 2
        ctx.save_for_backward(y)
        return {returned}
    @staticmethod
    def backward(ctx, *gs):
        seen.extend(gs)
        return sum((k + 3) * g for k, g in enumerate(gs)) + ctx.saved_tensors[0]
seen = []
x = t.ones(2, requires_grad=True)
outs = Twice.apply(x)
"""


@pytest.mark.parity
def test_functions_that_return_a_tensor_twice():
    check({
        f"{returned}, {use}": RETURNED_TWICE.format(returned=returned)
        + f"g, = t.autograd.grad({use}, x); r = g, seen, outs[0] is outs[1], [o.output_nr for o in outs]"
        for returned in ("y, y", "y, x + 1, y", "x, x", "y, y.view(2)") for use in ("outs[0].sum()", "outs[-1].sum()", "(outs[0] + 2 * outs[1]).sum()")
    })  # fmt: skip


SAVING = """
class F(t.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        {save}
        return x.clone()
    @staticmethod
    def jvp(ctx, v):
        seen.append(len(ctx.saved_tensors))
        return v
    @staticmethod
    def vjp(ctx, g):
        seen.append(len(ctx.saved_tensors))
        return g
seen, fw, x = [], t.autograd.forward_ad, t.ones(2, requires_grad=True)
with fw.dual_level():
    y = F.apply(fw.make_dual(x, t.ones(2)))
    y.sum().backward()
    r = seen, fw.unpack_dual(y).tangent
"""


@pytest.mark.parity
def test_jvp_reads_what_was_saved_for_it():
    saves = ["ctx.save_for_backward(x)", "ctx.save_for_forward(x)", "ctx.save_for_backward(x); ctx.save_for_forward(x, x)", "pass"]
    check({save: SAVING.format(save=save) for save in saves})


HOOKED = """
x = t.tensor(1.0, requires_grad=True)
y, seen = x.clone(), []
y.grad_fn.register_prehook(lambda g: (seen.append(2), tuple(2 * v for v in g))[1])
y.register_hook(lambda g: (seen.append(3), 3 * g)[1])
z = y.sum()
"""


@pytest.mark.parity
def test_prehooks_of_a_node_that_is_the_end_of_a_pass():
    check({
        "accumulated": HOOKED + "z.backward(inputs=(y,)); r = seen, y.grad",
        "returned": HOOKED + "r = seen, t.autograd.grad(z, y)",
        "with another": HOOKED + "z.backward(inputs=(y, x)); r = seen, y.grad, x.grad",
    })  # fmt: skip


SCALED = """
w = t.tensor([1.0, -2.0], requires_grad=True)
o = t.optim.SGD([w], lr=0.1)
s = t.amp.GradScaler("cpu", init_scale={scale}, growth_interval=2)
seen = []
def step(f, clip=False):
    o.zero_grad(); s.scale((w * w * f).sum()).backward()
    if clip:
        s.unscale_(o); nn.utils.clip_grad_norm_([w], 0.5)
    s.step(o); s.update()
    seen.extend([w.detach().clone(), s.get_scale(), s._get_growth_tracker()])
"""


@pytest.mark.parity
def test_scaled_losses():
    uses = {
        "steps": "step(1); step(2); step(1)\nr = seen",
        "overflow": "step(1); step(float('inf')); step(1)\nr = seen",
        "clipped": "step(1, True); step(float('nan'), True); step(3, True)\nr = seen",
        "state": "step(1); d = s.state_dict(); s = t.amp.GradScaler('cpu'); s.load_state_dict(d); r = list(d.items()), list(s.state_dict().items())",
        "loaded while used": "step(1); s.load_state_dict(t.amp.GradScaler('cpu').state_dict()); r = s.get_scale(), s._get_growth_tracker()",
        "set": "step(1); s.scale(w); s.step(o); s.update(3.0); a = s.get_scale(); s.update(t.tensor(5.0)); r = a, s.get_scale()",
        "options": "s.set_growth_factor(3.0); s.set_backoff_factor(0.1); s.set_growth_interval(7); r = list(s.state_dict().items())",
        "getters": "r = s.get_growth_factor(), s.get_backoff_factor(), s.get_growth_interval(), s.is_enabled(), s.get_scale()",
        "iterables": "r = s.scale([w, (w, w[0])])",
        "a number": "s.scale(3)",
        "step before scale": "s.step(o)",
        "update before scale": "s.update()",
        "two steps": "s.scale(w.sum()).backward(); s.step(o); s.step(o)",
        "unscaled twice": "s.scale(w.sum()).backward(); s.unscale_(o); s.unscale_(o)",
        "unscaled after step": "s.scale(w.sum()).backward(); s.step(o); s.unscale_(o)",
        "closure": "s.scale(w.sum()).backward(); s.step(o, closure=lambda: 1)",
        "half": "w = t.ones(2, dtype=t.float16, requires_grad=True); o = t.optim.SGD([w]); s.scale(w.sum()).backward(); s.unscale_(o)",
        "growth": "t.amp.GradScaler('cpu', growth_factor=1.0)",
        "backoff": "t.amp.GradScaler('cpu', backoff_factor=1.0)",
        "empty state": "s.load_state_dict({})",
        "disabled": "s = t.amp.GradScaler('cpu', enabled=False); step(1); r = seen, list(s.state_dict()), s.is_enabled()",
        "cuda": "s = t.cuda.amp.GradScaler(); step(1); r = seen, list(s.state_dict()), s.is_enabled()",
        "no gradients": "w.grad = None; s.scale(w); s.step(o)",
    }
    check({f"{name}, {scale}": SCALED.format(scale=scale) + use for name, use in uses.items() for scale in ("4.0", "3e38")})


@pytest.mark.parity
def test_tensors_over_the_memory_of_objects():
    before = "import array; a = np.arange(4.0, dtype=np.float32); x = t.arange(4.0, requires_grad=True); y = x * 2; b = bytearray(range(8))\n"
    objects = ["a", "x", "y", "b", "bytes(8)", "memoryview(a)", "array.array('i', [1, 2])", "array.array('b', [1, 2, 3])", "t.to_dlpack(t.ones(2))",
               "t.utils.dlpack.to_dlpack(t.ones(2, dtype=t.int16))", "[1, 2]", "3", "np.float64(3)", "[1.0, 2]", "'abc'", "t.tensor([1, 2])", "bytearray()",
               "memoryview(a.astype(np.complex64))", "memoryview(a.astype(np.float16))"]  # fmt: skip
    options = ["", "dtype=t.int16", "dtype=t.float64", "copy=False", "copy=True", "dtype=t.float64, copy=False", "requires_grad=True",
               "requires_grad=False", "copy=True, requires_grad=True"]  # fmt: skip
    check({f"{o}, {k}": f"{before}r = t.asarray({o}, {k})" for o in objects for k in options}, kinds=True)
    check({
        "shares a buffer": f"{before}r = t.asarray(b, dtype=t.uint8); b[0] = 77",
        "shares an array": f"{before}r = t.asarray(a, copy=False); a[0] = 77",
        "shares a capsule": "z = t.zeros(2); r = t.from_dlpack(t.to_dlpack(z)); z[0] = 77",
        "writes into a capsule": "r = t.zeros(2); z = t.from_dlpack(t.to_dlpack(r)); z[0] = z[1] + 7; z.numpy()[1] = 8",
        **{f"stream {s}": f"r = t.ones(2).__dlpack__(stream={s}) is None" for s in ("object()", "1", "0", "-1", "True", "'a'", "None")},
        "shares a tensor": f"{before}r = t.asarray(x) is x, t.asarray(x, requires_grad=True) is x",
        "copies": f"{before}r = t.asarray(a, copy=True), t.asarray(b, dtype=t.uint8, copy=True); a[0] = b[0] = 77",
    }, kinds=True)  # fmt: skip


@pytest.mark.parity
def test_more_of_the_same():
    double = "x = t.linspace(0.5, 1, 3, dtype=t.float64).requires_grad_()\n"
    check({
        "gradcheck, batched tangents": f"{double}r = t.autograd.gradcheck(lambda x: x.sin() * x, x, check_forward_ad=True, check_batched_forward_grad=True)",
        "gradcheck, batched tangents alone": f"{double}t.autograd.gradcheck(lambda x: x.sin(), x, check_batched_forward_grad=True)",
        "gradcheck, nothing": f"{double}t.autograd.gradcheck(lambda x: x.sin(), x, check_forward_ad=False, check_backward_ad=False)",
        **{f"logspace({ends})": f"r = t.logspace({ends}, 5)" for ends in ("1j, 2j", "0.0, 2j", "1j, 2", "1, 2")},
        "set_": "x = t.ones(2, requires_grad=True); x.set_(t.zeros(3))",
        "set_, no_grad": "x = t.ones(2, requires_grad=True)\nwith t.no_grad():\n    x.set_(t.zeros(3))\n(x * 2).sum().backward(); r = x, x.grad",
    }, kinds=True)  # fmt: skip


@pytest.mark.parity
def test_repeats_that_are_one_number():
    x = "t.arange(6.).reshape(2, 3)"
    check({
        **{f"{n} along {d}": f"r = {x}.repeat_interleave({n}, {d})" for n in (0, 1, 3) for d in (0, 1, -1, None)},
        "strided": f"r = {x}.t().repeat_interleave(2, 1); r = r, r.stride()",
        "gradient": f"x = {x}.requires_grad_(); y = x.repeat_interleave(3, 1); y.backward(t.arange(18.).reshape(2, 9)); r = x.grad, y.grad_fn.name()",
        "a number": "r = t.tensor(3.).repeat_interleave(2)",
        "too few": f"{x}.repeat_interleave(-1, 0)",
        "a size": f"r = {x}.repeat_interleave(2, 1, output_size=6)",
        "another size": f"{x}.repeat_interleave(2, 1, output_size=5)",
    }, kinds=True)  # fmt: skip

def test_shapes_are_made_of_integers():
    made = ["[t.tensor(3), 2]", "(t.tensor(3),)", "[t.tensor([3])]", "t.tensor([3, 2])", "[True]", "x for x in (1, 2)", "", "[3.0]", "['a']", "[None]",
            "[[3]]", "[t.tensor(3.0)]", "[t.ones(2)]", "3"]  # fmt: skip
    check({f"Size({a})": f"r = t.Size({a}), [type(n) is int for n in t.Size({a})]" for a in made}, kinds=True)
    check({e: f"s = t.Size([3]); r = {e}" for e in ("s + [2]", "s + (2,)", "(2,) + s", "type(s + (2,)) is t.Size", "s + s")}, kinds=True)
    apart = "W = type('W', (), {'__add__': lambda s, o: 42, '__radd__': lambda s, o: 42})\n"
    apart += "D = type('D', (), {'__getitem__': lambda s, i: i, '__len__': lambda s: 1})\n"
    sums = ("s + W()", "W() + s", "s + D()", "D() + s", "[2] + s", "s + np.ones(1)", "np.ones(1) + s")
    check({e: f"s = t.Size([3]); import numpy as np; r = {e}" for e in sums}, apart, kinds=True)


#: elements of nested data, in pairs of which the second has to fit the first
ELEMENTS = ["1", "1.0", "True", "1j", "t.tensor(2)", "t.tensor(2.0)", "t.tensor([2.0])", "np.float64(3)", "np.float32(3)", "np.int64(3)", "np.array([3.0])",
            "t.tensor(2, dtype=t.int8)", "[1]", "(1,)", "t.tensor([[1]])", "t.ones(2)", "np.ones(2)", "np.ones(2, dtype='float32')", "range(2)", "[1, 2]", "[]",
            "np.array([])", "None", "[t.tensor(2)]", "[np.ones(1)]", "'a'"]  # fmt: skip


@pytest.mark.parity
@pytest.mark.parametrize("made", ["t.tensor([{}, {}])", "t.as_tensor([[{}], [{}]])", "t.FloatTensor([{}, {}])", "t.tensor([{}, {}], dtype=t.float64)"])
def test_nested_data(made):
    text = "'a'" if "loat" in made else ""  # (as data of a given dtype a text has PyTorch's length of it)
    check({f"{a}, {b}": "r = " + made.format(a, b) for a in ELEMENTS for b in ELEMENTS if text not in (a, b)}, kinds=True)


@pytest.mark.parity
@pytest.mark.parametrize("kind", ["float", "int", "bool", "complex", "'float'", "None"])
def test_types_of_python_for_dtypes(kind):
    calls = ["t.zeros(2, dtype=D)", "t.arange(3, dtype=D)", "t.full((2,), 1, dtype=D)", "t.ones(2).to(D)", "t.ones(2).sum(dtype=D)", "t.ones(2).type(D)",
             "nn.Linear(2, 2).to(D).weight.dtype", "t.frombuffer(bytearray(16), dtype=D)", "t.ones(4).view(D)", "t.promote_types(D, t.int8)",
             "t.promote_types(D, D)",
             "t.can_cast(D, t.int8)", "t.can_cast(t.int8, D)", "t.finfo(D).bits", "t.iinfo(D).bits", "t.zeros_like(t.ones(2), dtype=D)",
             "t.empty(2, dtype=D).dtype"]  # fmt: skip
    known = {"t.ones(2).to(D)", "nn.Linear(2, 2).to(D).weight.dtype"} if kind == "'float'" else set()
    known |= {"t.finfo(D).bits", "t.iinfo(D).bits", "t.ones(2).type(D)", "t.ones(2).to(D)"} if kind == "None" else set()
    check({call: f"D = {kind}; r = {call}" for call in calls if call not in known}, kinds=True)


@pytest.mark.parity
def test_numbers_given_as_tensors():
    calls = ["a.normal_(P, 1)", "a.uniform_(0, P)", "a.exponential_(P)", "a.cauchy_(P)", "a.log_normal_(P)", "F.rrelu(a, P, P)",
        "t.allclose(a, a, P)", "t.norm(a, P)",
             "a.dist(a, P)", "a.add(a, alpha=P)", "a.addcmul(a, a, value=P)", "t.full((2,), P)", "F.leaky_relu(a, P)", "F.elu(a, P)"]  # fmt: skip
    values = ["t.tensor(2.0, requires_grad=True)", "t.tensor([2.0], requires_grad=True)", "t.tensor(2.0)", "t.tensor(2)", "t.tensor([2.0])",
        "t.tensor([2.0, 2.0])"]
    check({
        f"{call}, {value}": f"a = t.ones(2, 2); r = {call.replace('P', value)}\nif '_(' in {call!r}:\n    r = r.dtype, r.requires_grad"
        for call in calls for value in values
    }, kinds=True)  # fmt: skip


@pytest.mark.parity
def test_what_random_numbers_overwrite_has_the_gradient_0():
    draws = ["normal_()", "uniform_()", "random_()", "bernoulli_()", "exponential_()", "cauchy_()", "geometric_(0.5)", "log_normal_()"]
    check({d: f"x = t.ones(2, requires_grad=True); y = x.clone(); y.{d}; n = y._version; y.sum().backward(); r = x.grad, n" for d in draws})
    check({
        f"{d}, a part": f"x = t.ones(3, requires_grad=True); y = x * 2; y[1:].{d}; n = y._version; y.sum().backward(); r = x.grad, n" for d in draws
    })  # fmt: skip
    check({"a leaf": "kept.normal_()"}, before="kept = t.ones(2, requires_grad=True)")
    check({"no_grad": "x = t.ones(2, requires_grad=True)\nwith t.no_grad():\n    x.normal_()\nr = x.is_leaf"})


@pytest.mark.parity
def test_arguments_that_pytorch_refuses():
    check({
        "to(None, True)": "t.ones(2).to(None, True)", "Module.to(None, True)": "nn.Linear(2, 2).to(None, True)",
        "Module.to(None)": "m = nn.Linear(2, 2); r = m.to(None) is m",
        "full": "t.full(2, 1)", "permute": "t.ones(()).permute()", "repeat": "t.ones(2).repeat()", "~": "~t.ones(2)", "device": "t.device('cpu', -2)",
        "register_hook": "t.ones(2).register_hook(1)", "seed": "t.manual_seed('a')", "a seed": "r = t.manual_seed('7').initial_seed()",
        "threads": "t.set_num_threads('a')",
        "dtypes": "t.promote_types(1, 2)", "casts": "t.can_cast(1, 2)", "None": "t.tensor(None)", "a dict": "t.tensor({})",
        "an object": "t.as_tensor(object())",
        "sorted into itself": "x = t.arange(6.0); t.sort(x[:5], 0, out=(x[1:], t.empty(5, dtype=t.long)))",
        "out=, requires_grad": "o = t.ones(2); r = t.zeros(2, out=o, requires_grad=True)",
        "permuted numbers": "o = t.empty(3, 2).t(); t.randperm(6, out=o); r = o.sort()[0]",
    }, kinds=True)  # fmt: skip


@pytest.mark.parity
def test_old_types_convert_modules():
    types = ["t.FloatTensor", "'torch.DoubleTensor'", "t.float64", "t.LongTensor", "float", "'float'", "3"]
    check({f"Module.type({d})": f"m = nn.Linear(2, 2).requires_grad_(False); m.type({d}); r = m.weight.dtype, type(m.weight).__name__" for d in types},
          kinds=True)
    check({f"Tensor.type({d})": f"r = t.ones(2).type({d})" for d in types}, kinds=True)


@pytest.mark.parity
def test_tolerances_of_assert_allclose():
    pairs = [("float16", 2e-3), ("float16", 4e-3), ("float32", 1e-4), ("float32", 2e-4), ("float64", 1e-6), ("float64", 3e-5), ("float64", 1e-8)]
    check({f"{d}, {e}": f"x = t.ones(2, dtype=t.{d}); t.testing.assert_allclose(x, x * (1 + {e})); r = 1" for d, e in pairs})
    check({
        "mixed": "x = t.ones(2); t.testing.assert_allclose(x, (x * (1 + 5e-5)).double()); r = 1",
        "integers": "t.testing.assert_allclose(t.ones(2), t.ones(2).long()); r = 1",
        "lists": "t.testing.assert_allclose([1.0, 2.0], [1.0, 2.00005]); r = 1",
        "given": "x = t.ones(2); t.testing.assert_allclose(x, x + 1e-4, rtol=1e-3, atol=0); r = 1",
        "a number": "t.testing.assert_allclose(t.ones(()), 1.0); r = 1", "nan": "x = t.tensor([float('nan')]); t.testing.assert_allclose(x, x); r = 1",
    })  # fmt: skip


@pytest.mark.parity
def test_lbfgs_of_a_loss_without_slope():
    for search in ("None", "'strong_wolfe'"):
        for loss in ("(p * 0).sum()", "p.sum() * float('nan')", "(p * 1e-30).sum()"):
            check({loss: f"p = nn.Parameter(t.ones(2)); o = t.optim.LBFGS([p], tolerance_grad=-1, tolerance_change=-1, line_search_fn={search})\n"
                   f"def c():\n    o.zero_grad(); l = {loss}; l.backward(); return l\nr = o.step(c), p.detach(), o.state[p]['func_evals']"})  # fmt: skip


GRAPHS = {
    "Linear": "nn.Linear(2, 4)", "without a bias": "nn.Linear(2, 4, bias=False)", "frozen": "nn.Linear(2, 4).requires_grad_(False)", "Sigmoid": "nn.Sigmoid()",
    "two layers": "nn.Sequential(nn.Linear(2, 4), nn.Tanh())",
}  # fmt: skip


@pytest.mark.parity
@pytest.mark.parametrize("grad", ["True", "False"])
def test_graphs_of_layers_as_they_are_shown(grad):
    walk = "def seen(n):\n    return [type(n).__name__, [None if f is None else seen(f) for f, _ in n.next_functions]]\n"
    check({k: f"{walk}x = t.ones(3, 2, requires_grad={grad}); y = ({m})(x); r = seen(y.grad_fn) if y.requires_grad else None" for k, m in GRAPHS.items()})
    run = "import warnings\nwith warnings.catch_warnings(record=True) as seen:\n    warnings.simplefilter('always')\n    "
    hook = "lambda m, gi, go: got.append(([g if g is None else tuple(g.shape) for g in gi], [tuple(g.shape) for g in go]))"
    check({k: f"{run}m = {m}; got = []; x = t.ones(3, 2, requires_grad={grad}); m.register_backward_hook({hook}); y = m(x)\n    if y.requires_grad:\n"
           "        y.sum().backward()\nr = got, [(w.category.__name__, str(w.message)) for w in seen]" for k, m in GRAPHS.items()})  # fmt: skip
    change = "lambda m, gi, go: tuple([None if g is None else g * (i + 2) for i, g in enumerate(gi)])"
    check({k: f"m = {m}; nn.init.ones_(m.weight); x = t.ones(3, 2, requires_grad={grad}); m.register_backward_hook({change}); m(x).sum().backward()\n"
           "r = x.grad, [p.grad for p in m.parameters()]" for k, m in list(GRAPHS.items())[:2]})  # fmt: skip


@pytest.mark.parity
def test_nodes_of_layers_are_called_as_they_are_shown():
    check({k: f"m = {m}; nn.init.ones_(m.weight); y = m(t.ones(3, 2, requires_grad=True)); g = t.ones(3, 4)\nwith t.no_grad():\n    r = y.grad_fn(g)[-2:]"
           for k, m in list(GRAPHS.items())[:2]})


@pytest.mark.parity
def test_old_hooks_of_modules_that_they_do_not_fit():
    run = "import warnings\nwith warnings.catch_warnings(record=True) as seen:\n    warnings.simplefilter('always')\n    "
    run += "x = t.ones(2, requires_grad=True); y = x * 2\n    "
    results = ["x * y + x, x - y", "[x * y]", "{'a': x * y}", "x * y", "(x * y, x.detach())", "(x.sin(),)"]
    check({text: f"{run}class M(nn.Module):\n        def forward(self, x, y, z=None): return {text}\n"
           f"    m = M(); m.register_backward_hook(lambda *_: None); m(y, y, {more})\n"
           "r = [(w.category.__name__, str(w.message)) for w in seen]" for text in results for more in ("", "3")})  # fmt: skip


@pytest.mark.parity
def test_functions_and_modules_of_one_name():
    check({
        name: f"import importlib, sys\ni = importlib.import_module\nmodule, _, own = (t.__name__ + {name!r}).rpartition('.')\ni(module + '.' + own)\n"
        "r = callable(getattr(i(module), own))" for name in (".autograd.gradcheck", ".nn.parallel.data_parallel")
    })  # fmt: skip


LISTS = "a = [t.tensor([0.25, 0.5]), t.tensor([[0.75]])]; b = [t.tensor([2.0, 3.0]), t.tensor([[4.0]])]; c = [x * 2 for x in b]\n"


@pytest.mark.parity
def test_functions_of_lists():
    unary = ["abs", "acos", "ceil", "cos", "erf", "exp", "floor", "frac", "log", "log1p", "neg", "reciprocal", "round", "rsqrt", "sigmoid", "sign",
        "sqrt", "tanh", "zero_"]
    check({op: f"{LISTS}r = t._foreach_{op}(a), a" for op in unary}, kinds=True)
    check({op + "_": f"{LISTS}r = t._foreach_{op}_(a), a" for op in unary if op != "zero_"}, kinds=True)
    binary = ["add", "sub", "mul", "div", "pow", "maximum", "minimum", "clamp_max", "clamp_min"]
    for end in ("", "_"):
        check({f"{op}{end}, {other}": f"{LISTS}r = t._foreach_{op}{end}(a, {other}), a" for op in binary for other in ("b", "2.0", "[2.0, 3.0]",
        "[b[0]]")}, kinds=True)
        check({f"lerp{end}": f"{LISTS}r = t._foreach_lerp{end}(a, b, 0.5), a", f"of lists {end}": f"{LISTS}r = t._foreach_lerp{end}(a, b, c), a",
               f"alpha {end}": f"{LISTS}r = t._foreach_add{end}(a, b, alpha=3), a", f"value {end}": f"{LISTS}r = t._foreach_addcmul{end}(a, b, c, value=3), a",
               f"values {end}": f"{LISTS}r = t._foreach_addcdiv{end}(a, b, c, [2.0, 3.0]), a",
               f"position {end}": f"{LISTS}r = t._foreach_addcdiv{end}(a, b, c, 3.0), a",
               f"no tensors {end}": f"t._foreach_add{end}([], 1)"}, kinds=True)  # fmt: skip
    check({f"{op} of a leaf": f"a = [t.ones(2), t.ones(2) * 2]; b = [t.ones(2), t.ones(2).requires_grad_()]\ntry: t._foreach_{op}(b, a)\n"
           "except RuntimeError: r = b" for op in ("add_", "mul_", "copy_", "maximum_")}, kinds=True)  # fmt: skip
    check({"norm": f"{LISTS}r = t._foreach_norm(a), t._foreach_norm(a, 1)", "max": f"{LISTS}r = t._foreach_max(a)",
        "copy_": f"{LISTS}t._foreach_copy_(a, b); r = a", "clone": f"{LISTS}r = t._foreach_clone(a), [x is y for x, y in zip(a, t._foreach_clone(a))]",
        "mm": "a = [t.ones(2, 3), t.ones(1, 3)]; r = t._foreach_mm(a, [x.t() * 2 for x in a])",
        "powsum": f"{LISTS}r = t._foreach_powsum(a, 3), t._foreach_powsum(a, 1), t._foreach_powsum(a, 2.5)"})
    check({"groups": "from importlib import import_module as i\nf = i(t.__name__ + '.utils._foreach_utils')._group_tensors_by_device_and_dtype\n"
           "x = [t.ones(1), t.ones(2).double(), t.ones(3)]\n"
           "r = sorted((str(k[1]), [len(l) for l in v[0]], v[1]) for k, v in f([x, x], True).items())"})  # fmt: skip


@pytest.mark.parity
def test_arguments_of_functions_of_lists():
    """Arguments have PyTorch's names, and what lists do not take is refused as PyTorch refuses it."""
    ints = "[t.ones(2).long(), t.ones(1, 1).long()]"
    calls = [
        *(f"{op}(a, {n})" for op in ("add", "mul", "div", "maximum", "clamp_min") for n in ("scalar=2", "scalars=[2, 3]", "other=b")),
        "sub(a, t.tensor([1.]))", "add(a, t.tensor([1., 2.]))", "add(a, tensor=t.tensor(1.))", "add(a, 1, alpha=2)", "add(a)", "add(a, b, c)",
        "add(self=a, other=b)", "addcmul(a, b, c, scalars=[1, 2])", "addcdiv(a, b, c, scalars=t.tensor([1., 2.]))",
        "addcmul(a, b, c, t.tensor([1., 2.]))", "addcmul(a, b, c, scalars=t.tensor([1., 2., 3.]))", "addcmul(a, b, c, scalars=t.tensor(1.))",
        "addcmul(a, tensor1=b, tensor2=c)", "addcmul(a, b, [c[0]])", "lerp(a, b, weights=c)", "lerp(a, b, weight=[0.5, 1])",
        "lerp(a, b, scalars=[0.5, 1])", "pow(2, a)", "pow(t.tensor(2.), a)", "pow(2, exponent=a)", "pow(2, [1])", "pow_(2, a)", "norm(self=a)",
        "norm(a, 1, t.float64)", "norm(a, dtype=t.float64)", f"norm({ints})", f"norm({ints}, dtype=t.float64)", "powsum(a, ord=3, dtype=t.float64)",
        f"powsum({ints}, 3)", "max([t.ones(0)])", "neg(a[0])", "neg([1])", "neg(x for x in a)", "neg([])", "round(a, decimals=1)",
        "copy_(a, b, True)", "copy_(self=a, src=b, non_blocking=True)", "add(a, [1])",
    ]  # fmt: skip
    check({call: f"{LISTS}r = t._foreach_{call}, a" for call in calls}, kinds=True)


@pytest.mark.parity
def test_gradients_of_convolutions_as_functions():
    for n in (1, 2, 3):
        start = f"t.manual_seed(0); from importlib import import_module as i\nG = i(t.__name__ + '.nn.grad'); n = {n}\n"
        start += "x = t.arange(2.0 * 5**n).reshape(1, 2, *[5] * n).sin(); "
        start += "w = t.arange(3.0 * 2 * 2**n).reshape(3, 2, *[2] * n).cos(); g = F.__dict__[f'conv{n}d'](x, w, None, 2, 1).cos()\n"
        check({f"{n}": f"{start}r = G.conv{n}d_input(x.shape, w, g, 2, 1), G.conv{n}d_weight(x, w.shape, g, stride=2, padding=1)"}, tolerance=1e-4)


@pytest.mark.parity
def test_sobol_sequences():
    draws = ["e.draw(7)", "e.draw(3), e.draw(2)", "e.draw_base2(3)", "e.fast_forward(5).draw(2)", "e.reset().draw(2)", "e.draw(2, dtype=t.float64)",
        "repr(e)", "e.draw(3), e.reset().draw(3)",
             "e.draw(3), e.draw_base2(2)", "e.draw(2, out=t.empty(0))", "e.draw(5), e.num_generated"]  # fmt: skip
    check({f"{d} {n}": f"from importlib import import_module as i\ne = i(t.__name__ + '.quasirandom').SobolEngine({n}); r = {d}"
           for d in draws for n in (1, 3, 20)}, kinds=True)  # fmt: skip
    check({"scrambled": "from importlib import import_module as i\nE = i(t.__name__ + '.quasirandom').SobolEngine\n"
           "x = E(2, True, seed=3).draw(64); y = E(2, True, seed=3).draw(64)\n"
           "r = bool((x == y).all()), bool(((x >= 0) & (x < 1)).all()), bool((x.mean(0) - 0.5).abs().max() < 0.05)"})  # fmt: skip
    check({n: f"from importlib import import_module as i\ni(t.__name__ + '.quasirandom').SobolEngine({n})" for n in ("0", "21202")}, kinds=True)


@pytest.mark.parity
def test_small_names_that_packages_take():
    start = "from importlib import import_module\ni = lambda name: import_module(t.__name__ + '.' + name)\n"
    check({e: f"{start}r = {e}" for e in [
        "t._assert(True, 'x')", "t._assert(False, 'x')", "t._assert_async(t.tensor(1))", "t._assert_async(t.tensor(0))", "t._check(True)",
        "t._check(False)", "t._check(1)",
        "t._check(False, lambda: 'mine')", "t._check_index(False)", "t._check_value(False)", "t._check_type(False)", "t._check_is_size(-1)",
        "t._check_is_size(2)",
        "t._check_tensor_all(t.tensor([True, False]))", "t._check_tensor_all(t.tensor([True, True]))", "t.sym_max(1, 2.0)", "t.sym_min(1, 2)",
        "t.sym_int(2.7)", "t.sym_not(True)",
        "isinstance(3, t.SymInt)", "t._weight_norm(t.ones(2, 3), t.ones(2, 1), 0)", "t._shape_as_tensor(t.ones(2, 3))",
        "i('_utils')._flatten_dense_tensors([t.ones(2), t.zeros(1, 2)])",
        "i('_utils')._unflatten_dense_tensors(t.arange(4), [t.ones(2), t.zeros(1, 2)])",
        "[len(g) for g in i('_utils')._take_tensors([t.ones(2), t.ones(3), t.ones(2)], 20)]",
        "i('torch_version').TorchVersion('2.13.0') >= '2.9'", "i('torch_version').TorchVersion('2.0.1') < (2, 1)",
        "i('torch_version').TorchVersion('2.0') == '2.0.0'",
        "str(i('_C._nn')._parse_to('cpu', t.float64, True)[1:3])", "i('overrides').is_tensor_like(t.ones(1))",
        "i('overrides').has_torch_function((t.ones(1), 2))",
    ]}, kinds=True)  # fmt: skip
    futures = "f = i('futures').Future(); g = f.then(lambda f: f.wait() + 1); r0 = f.done(); f.set_result(1)\n"
    futures += "r = r0, g.wait(), f.value(), [x.value() for x in i('futures').collect_all([f, g]).wait()]"
    check({"futures": start + futures, "twice": f"{start}f = i('futures').Future(); f.set_result(1); f.set_result(2)",
        "early": f"{start}i('futures').Future().value()",
           "an error": f"{start}f = i('futures').Future(); f.set_exception(KeyError(1)); f.wait()"})  # fmt: skip
    like = "class A:\n    @classmethod\n    def __torch_function__(cls, f, types, args=(), kwargs=None): return f.__name__, len(types), args[1:]\n"
    like += "O = i('overrides'); a = A()\n"
    check({"handled": f"{start}{like}"
           "r = O.handle_torch_function(t.add, (a,), a, 3), O.has_torch_function((a,)), O.is_tensor_like(a), O.has_torch_function_unary(a)"})
    check({"weak keys": f"{start}d = i('utils.weak').WeakTensorKeyDictionary()\n"
           "x = t.ones(2); d[x] = 1; r0 = len(d), x in d, t.ones(2) in d, d[x]; del x; r = r0, len(d)"})


NAMED = list(ag.dtypes.ABSENT)


@pytest.mark.parametrize("name", NAMED)
def test_dtypes_that_no_tensor_has(name):
    """They have PyTorch's properties and limits, survive copies, and are refused before anything is made of them."""
    mine, theirs = getattr(ag, name), getattr(torch, name)
    assert repr(mine) == repr(theirs) and pickle.loads(pickle.dumps(mine)) is mine is copy.deepcopy(mine)
    for what in ("itemsize", "is_floating_point", "is_complex", *(() if name.startswith(("q", "bits")) else ("is_signed",))):
        assert getattr(mine, what) == getattr(theirs, what), what
    limits = {"float8_e4m3fn": "finfo", "float8_e5m2": "finfo", "uint16": "iinfo", "uint32": "iinfo", "uint64": "iinfo"}
    if name in limits:
        a, b = getattr(ag, limits[name])(mine), getattr(torch, limits[name])(theirs)
        for what in ("bits", "max", "min", "dtype", *(("eps", "tiny", "smallest_normal", "resolution") if limits[name] == "finfo" else ())):
            assert getattr(a, what) == getattr(b, what), what
    x = ag.ones(2)
    for use in (lambda: ag.ones(2, dtype=mine), lambda: x.to(mine), lambda: ag.promote_types(mine, ag.float32), lambda: x.type(mine)):
        with pytest.raises(NotImplementedError, match=f"there are no {mine.name} tensors here; use "):
            use()


@pytest.mark.parametrize(
    "text",
    ["a + t", "a * t", "a - t", "a ** t", "a // t", "a % t", "a < t", "t < a", "t >= a", "a & t", "a @ t", "t + a", "t * a", "t - a", "t / a", "a / t",
     "t ** a", "t == a", "a == t", "t == np.array(['a', 'b'])", "np.add(a, t)", "np.exp(t)", "np.multiply(2, t)", "np.float64(2) * t", "a * p", "np.exp(p)",
     "np.array(2.0) * t", "a * t.sum()", "torch.add(t, a)"],
)  # fmt: skip
@pytest.mark.filterwarnings("ignore:__array_wrap__ must accept")
def test_arrays_beside_tensors(text):
    """NumPy's arrays are operands on the right alone; tensors that require grad, which PyTorch refuses there, are differentiated."""

    def found(t):
        names = {"np": np, "torch": t, "a": np.array([1.5, 2.0]), "t": t.tensor([2.0, 3.0]), "p": t.tensor([2.0, 3.0], requires_grad=True)}
        try:
            value = eval(text, names)
        except (TypeError, RuntimeError) as error:
            return type(error).__name__
        return value if value is False else (str(value.dtype).rpartition(".")[2], value.tolist())

    assert found(ag) == found(torch)


@pytest.mark.parity
def test_gradients_that_are_asked_for_together():
    """Norms of gradients that are no floats, hooks on several tensors of which some require no grad, and indices of nothing."""
    check({
        "norm of integers": "t.nn.utils.get_total_norm([t.ones(2, dtype=t.int64)])",
        "norm beside floats": "t.nn.utils.get_total_norm([t.ones(2), t.ones(2, dtype=t.int32)])",
        "norm of bools": "t.nn.utils.get_total_norm([t.ones(2, dtype=t.bool)], 1.0)",
        "clipped integers": "x = t.ones(2, dtype=t.int64); x.grad = t.ones_like(x); t.nn.utils.clip_grad_norm_([x], 0.5)",
        **{f"hook {mode} on {named}": f"x, y = t.ones(2, requires_grad=True), t.ones(2); seen = []\n"
                                      f"try:\n    t.autograd.graph.register_multi_grad_hook([{named}], lambda g: seen.append(g), mode={mode!r})\n"
                                      "finally:\n    (x * x).sum().backward(); r = len(seen)\n"
           for mode in ("all", "any") for named in ("x", "y", "x, y", "y, x", "x, x")},
        "hook that stays": "x, y = t.ones(2, requires_grad=True), t.ones(2); seen = []\n"
                           "try:\n    t.autograd.graph.register_multi_grad_hook([x, y], lambda g: seen.append(g))\nexcept AssertionError:\n    pass\n"
                           "(x * x).sum().backward(); r = len(seen)",
        "memory of no places": "r = [(p.untyped_storage().nbytes(), p.stride()) for s in ((), (0,), (3,), (2, 3)) for v in (0.0, 1.0) "
                               "for p in [t.nonzero(t.full(s, v))]]",
    }, kinds=True)  # fmt: skip


@pytest.mark.parity
def test_names_that_dir_gives_are_there():
    check({
        name: f"x = {made}\nr = [k for k in dir(x) if k != 'imag' and not hasattr(x, k)], 'shape' in dir(x)"
        for name, made in {
            "made": "t.ones(2, 2)", "computed": "t.ones(2, requires_grad=True) * 2", "view": "t.ones(3)[1:]", "of a module": "nn.Linear(2, 1).weight",
        }.items()
    })  # fmt: skip
