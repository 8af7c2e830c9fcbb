"""Less travelled arguments and answers of PyTorch's API that its own tests ask for."""

from __future__ import annotations

import pytest

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
