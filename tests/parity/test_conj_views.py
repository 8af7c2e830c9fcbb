"""Views that show conjugates or negatives, against PyTorch's: every op of its database on them, by function, method and in place: values, what lies
in the memory that they look at, gradients."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import autograd_nb as ag  # noqa: E402
from autograd_nb.codegen.build import compilation  # noqa: E402
from autograd_nb.ops.core.structured import Structured  # noqa: E402
from autograd_nb.overriding import Overrides, _every  # noqa: E402

from .opdb import (  # noqa: E402
    ERRORS,
    RANDOM,
    Unsupported,
    both,
    compare,
    compare_gradients,
    find,
    grad,
    leaves,
    op_db,
    ours,
    samples_of,
    spellings,
)
from .snippets import check, difference, outcome  # noqa: E402

MOST = 3  #: samples of an op
#: what does not agree, and why
KNOWN = {
    "addbmm": "a view of one element, which PyTorch gives the shape of the result, is refused",
    "resize_": "is refused",
    "to_sparse": "PyTorch does not differentiate it for complex numbers",
    "geqrf": "PyTorch does not differentiate it",
    "as_strided_scatter": "PyTorch passes gradients to what was overwritten, of other tensors too",
    "chalf": "NumPy has no such numbers",
    "linalg.eigh": "signs are free",
    "linalg.eig": "signs are free",
    "nn.functional.max_pool1d": "PyTorch reads memory as it lies",
    "nn.functional.scaled_dot_product_attention": "PyTorch reads memory as it lies",
    "nn.functional.multi_head_attention_forward": "PyTorch reads memory as it lies",
    "torch.ops.aten._safe_softmax.default": "is no public function",
    "native_batch_norm": "PyTorch loses what it writes to running statistics",
    "nn.functional.batch_norm": "PyTorch loses what it writes to running statistics",
}


def seen(value: Any, library: Any, bases: list, needs: bool) -> Any:
    """An argument whose complex tensors are conjugate views of ``bases``, and whose others negative ones."""
    if isinstance(value, torch.Tensor):
        if not (value.is_complex() or value.is_floating_point()):
            return value.detach().clone() if library is torch else ours(value.detach().clone())
        base = value.detach().clone().conj_physical() if value.is_complex() else -value.detach()
        base = base if library is torch else ours(base)
        bases.append(base.requires_grad_(needs and value.requires_grad))
        return base.conj() if value.is_complex() else base._neg_view()
    if type(value) in (list, tuple):
        return type(value)(seen(v, library, bases, needs) for v in value)
    if type(value) is dict:
        return {k: seen(v, library, bases, needs) for k, v in value.items()}
    return value if library is torch else ours(value)


def called(function: Any, sample: Any, library: Any, needs: bool, again: int) -> tuple[Any, list]:
    """What the function makes of a sample, or the error, and the memory that was looked at; it is called ``again`` so often."""
    bases: list = []
    args, kwargs = seen(((sample.input, *sample.args), sample.kwargs), library, bases, needs)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            out = function(*args, **kwargs)
            for _ in range(again):
                args[0].fill_(0.5)
                function(*args, **kwargs)
            return out, bases
    except ERRORS as error:
        return error, bases


def settled(tree: Any) -> list:
    return [t.detach().resolve_conj().resolve_neg() for t in leaves(tree) if repr(t.layout) == "torch.strided"]


def differ(mine: Any, theirs: Any, my_bases: list, bases: list, what: str) -> None:
    if isinstance(mine, Exception) or isinstance(theirs, Exception):
        assert isinstance(mine, Exception) == isinstance(theirs, Exception), f"{what}: {mine!r:.200} instead of {theirs!r:.200}"
    else:
        compare(settled(mine), settled(theirs), what)
        marks = [[(t.is_conj(), t.is_neg()) for t in leaves(tree)] for tree in (mine, theirs)]
        views = [any(t._base is b or t is b for b in bases) for t in leaves(theirs)]
        marks = [[m for m, v in zip(some, views, strict=True) if v] for some in marks]
        assert marks[0] == marks[1], f"{what}: {marks[0]} instead of {marks[1]}"
    compare(settled(my_bases), settled(bases), f"{what}, memory")


def derivatives(mine: Any, theirs: Any, my_bases: list, bases: list, what: str) -> None:
    my_outs, outs = ([t for t in leaves(tree) if t.requires_grad] for tree in (mine, theirs))
    assert len(my_outs) == len(outs), f"{what}: {len(my_outs)} outputs require grad instead of {len(outs)}"
    if not outs:
        return
    w, t_w = both(outs, np.random.default_rng(0))
    needed = [[b for b in some if b.requires_grad] for some in (my_bases, bases)]
    try:
        theirs_g = grad(outs, needed[1], t_w, False)
    except (NotImplementedError, RuntimeError):
        return
    compare_gradients([g if g is None else g.resolve_conj().resolve_neg() for g in grad(my_outs, needed[0], w, False)],
                      [g if g is None else g.resolve_conj().resolve_neg() for g in theirs_g], f"{what}, gradient")  # fmt: skip


def differences(op: Any, dtype: Any) -> list[str]:
    found = []
    ways = [("function", op.op, find(op)), *[w for w in spellings(op) if w[2] is not None]]
    for k, sample in enumerate([s for s in samples_of(op, dtype, True) if isinstance(s.input, torch.Tensor) or s.input][:MOST]):
        for way, theirs, mine in ways:
            if isinstance(sample.input, (list, tuple)) and way != "function":
                continue
            for needs in (False, True) if way == "function" else (False,):
                what = f"{way} {k}{' with gradients' if needs else ''}"
                again = 2 if way.startswith("in") else 0  # what is kept of a call serves the next ones
                try:
                    got, my_bases = called(mine, sample, ag, needs, again)
                    expected, bases = called(theirs, sample, torch, needs, again)
                    differ(got, expected, my_bases, bases, what)
                    if needs and not isinstance(expected, Exception):
                        derivatives(got, expected, my_bases, bases, what)
                except Unsupported:
                    continue
                except Exception as error:
                    found.append(f"{what}: {type(error).__name__} {str(error)[:300]}")
    return found


def names(dtype: Any) -> dict[str, Any]:
    found = {
        f"{op.name}{op.variant_test_name and '.' + op.variant_test_name}": op
        for op in op_db
        if dtype in op.dtypes and find(op) is not None
    }
    return {
        n: op
        for n, op in found.items()
        if n not in KNOWN and not n.startswith(("sparse.", "_")) and "bessel" not in n and not any(r in n for r in RANDOM)
    }


COMPLEX, REAL = names(torch.complex128), names(torch.float64)


@pytest.mark.slow
@pytest.mark.parametrize("name", COMPLEX)
def test_conjugates(name):
    assert not differences(COMPLEX[name], torch.complex128)


@pytest.mark.slow
@pytest.mark.parametrize("name", REAL)
def test_negatives(name):
    assert not differences(REAL[name], torch.float64)


X = "x = t.tensor([[1 + 2j, 3 - 1j], [0.5j, 2]], requires_grad={})"
#: programs of which ``r`` and what x is afterwards agree
PROGRAMS = {
    "written into": "c = x.conj(); c.mul_(2); x.mH[0] = 1; x.conj()[1:].zero_(); x.H[1, 1] = 5j; t.adjoint(x).add_(1j); r = (x, c)",
    "the base is written into": "c = x.conj(); i = c.imag; x[0, 0] = 5 + 5j; x.mul_(2j); r = (c, i, c.is_conj(), i.is_neg(), c.real, c[0].is_conj())",
    "twice": "c = x.conj().conj(); c.zero_(); r = (x, c.is_conj(), x.conj()._base is x, x.conj()._is_view())",
    "parts": "c = x.conj(); c.imag[0] = 5; c.real = t.ones(2, 2); c.imag.add_(t.arange(2)); c.imag.mul_(c.imag); r = x",
    "assignments, again and again": "c = x.conj()\nfor k in range(4): c[0] = k + 1j; c[1, 0] = 2j * k; c[:, 1] = t.tensor([1j, k]); "
    "c[t.tensor([1])] = t.tensor([[1j * k, k]]); c[t.tensor([True, False])] = k\nr = x",
    "operators in place": "c = x.conj(); c += 1j; c *= 2; c -= x; c /= 2; r = x",
    "indexed writes": "x.conj().scatter_(0, t.tensor([[1, 0]]), t.tensor([[5j, 6]])); x.conj().index_add_(0, t.tensor([0]), x[:1].clone()); "
    "x.conj().masked_fill_(t.tensor([True, False]), 1j); x.conj().index_fill_(1, t.tensor([0]), 2j); x.conj().fill_diagonal_(3j); r = x",
    "rows scaled down": "i = t.tensor([[1, 1]]); c = x.conj(); n = c.imag; r = F.embedding(i, c[:1:].T, max_norm=1.), F.embedding_bag(i, n, max_norm=1.), "
    "F.embedding(i, n.T, max_norm=.5, norm_type=1.), t.embedding_renorm_(c, i, .25, 2.), c._version",
    "out=": "t.mul(x.clone(), 2j, out=x.conj()); r = x, t.sum(x.clone(), 0, out=x.conj()[0])",
    "draws": "c = x.conj(); c.imag.uniform_(1, 1); i = c.real; i.fill_(7); i = c.imag; i.normal_(2, 0); i.normal_(3, 0); c.T.uniform_(1, 1); r = x",
    "turned in place": "c = x.conj(); c.transpose_(0, 1); c.unsqueeze_(0); c[0, 0] = 7j; r = (c, x)",
    "shapes": "c = x.conj().reshape(4); c[0] = 0; r = (x, c.is_conj(), x.conj().T.reshape(4).is_conj(), x.conj().flatten().is_conj())",
    "iterated": "r = ([complex(v) for row in x.conj() for v in row], x.conj().tolist(), x.conj()[0, 1].item(), bool(x.conj()[0, 0] == 1 - 2j))",
    "copies": "c = x.conj(); r = (c.contiguous() is c, c.clone().is_conj(), c.cdouble().is_conj(), c.to(t.complex64) is c, t.tensor(c), "
    "c.numpy(force=True).tolist())",
    "memory": "c = x.conj()[1]; r = (c.data_ptr() == x[1].data_ptr(), c.storage_offset(), c.stride(), x.mH.is_contiguous())",
    "strided": "c = x.reshape(4).conj()[1:]; d = c.as_strided((2,), (1,), 0); d.mul_(3); r = (d, c.as_strided((2,), (1,)), "
    "c.as_strided_scatter(t.tensor([9j, 8j]), (2,), (1,)), d.is_conj())",
    "no NumPy array": "r = x.conj().numpy()",
    "no NumPy array of parts": "r = np.asarray(x.conj().imag)",
    "no capsule": "r = t.from_dlpack(x.conj())",
    "no real numbers": "r = t.view_as_real(x.conj())",
    "no other dtype": "r = x.conj().view(t.float32)",
    "negatives": "v = x._neg_view(); v.add_(1); w = v.conj(); r = (x, v, w.is_neg(), w.is_conj(), w.real.is_neg(), w.imag.is_neg(), w.imag)",
    "versions": "c = x.conj(); a = x._version; c.mul_(2); r = (a, x._version, c._version)",
    "deepcopy": "import copy\na = copy.deepcopy(x.conj()); a.add_(1); b = copy.copy(x.conj()); b.mul_(3); r = (a, a.is_conj(), b, x)",
    "pickle": "import pickle\nr = pickle.loads(pickle.dumps(x.conj()))",
    "buffers": "m = nn.Module(); m.register_buffer('b', x.conj()); d = m.state_dict(); m.load_state_dict({'b': t.ones(2, 2) * 1j}); r = (m.b, d['b'], x)",
    "texts": "r = (repr(x.conj()), str(x.conj().imag), f'{x.conj()[0, 0]}')",
    "vmap": "r = (t.vmap(lambda a: (a.conj() * a).sum())(x), t.vmap(lambda a: a.conj())(x.conj()))",
    "forward mode": "r = t.func.jvp(lambda x: x.conj() * x, (x,), (x.conj(),))",
    "forward mode of a conjugate": """
r = []
class F(t.autograd.Function):
    generate_vmap_rule = True
    @staticmethod
    def forward(x):
        return x.exp()
    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(output); ctx.save_for_forward(output)
    @staticmethod
    def backward(ctx, g):
        return g * ctx.saved_tensors[0].conj()
    @staticmethod
    def jvp(ctx, u):
        return u * ctx.saved_tensors[0]
for f in (lambda u: u * u, lambda u: u.exp(), lambda u: F.apply(u), lambda u: (u * 1).mul_(2j)):
    c = x.conj(); r += [t.func.jvp(f, (c,), (c.cos(),)), t.func.jvp(f, (x.clone(),), (c,)), t.vmap(lambda v: t.func.jvp(f, (v,), (v,))[1])(c[None])]""",
    "vjp": "y, f = t.func.vjp(lambda x: x.conj() * x, x.conj()); r = y, f(x.conj())",
    "without grad": "x.requires_grad_()\nwith t.no_grad(): x.conj().mul_(2j)\nr = x",
    "of a leaf": "x.requires_grad_(); r = x.conj().mul_(2)",
    "leaf of its own": "c = x.conj().requires_grad_(); (c * c[0].conj() * 1j).sum().abs().backward(); r = (c.grad, c.is_leaf, x.requires_grad)",
    "backward": "x.requires_grad_(); y = x * x; c = y.conj(); c.mul_(x); g, = t.autograd.grad(y.abs().square().sum(), x, create_graph=True); "
    "r = g, t.autograd.grad(g.abs().pow(2).sum(), x)",
    "backward, the base is written into": "x.requires_grad_(); y = x * x; c = y.conj(); y.mul_(x); "
    "r = t.autograd.grad(c.abs().pow(2).sum() + (c * 3j).sum().abs(), x)",
    "backward of views": "x.requires_grad_(); y = x * x; v = y[0].conj(); w = v[1:]; w.mul_(3j); v.add_(1); "
    "r = (t.autograd.grad((y * y).sum().abs(), x), y, v, w)",
    "retained": "x.requires_grad_(); c = x.conj(); c.retain_grad(); l = []; c.register_hook(l.append); (c * c[0]).sum().abs().backward(); "
    "r = (c.grad, x.grad, l)",
    "changed since it was saved": "x.requires_grad_(); y = x * 1; c = y.conj(); z = y * y; c.mul_(2); z.sum().abs().backward(); r = x.grad",
    "a gradient given": "x.requires_grad_(); x.backward(t.ones(2, 2).mul(1j).conj()); r = x.grad",
    "a gradient given to a view": "x.requires_grad_(); z = t.view_as_complex(t.view_as_real(x) * 2); z.backward(x.detach().conj()); r = x.grad * 1; "
    "x.requires_grad_(False)",
    "a gradient set": "x.requires_grad_(); x.grad = (t.ones(2, 2) * 1j).conj(); (x * x).sum().abs().backward(); r = x.grad",
    "hooks": "x.requires_grad_(); x.register_hook(lambda g: g.conj()); (x * (1 + 1j)).sum().abs().backward(); x.grad.mul_(2); r = x.grad",
    "functions": """
class F(t.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.conj()
    @staticmethod
    def backward(ctx, g):
        return (g * ctx.saved_tensors[0]).conj()
x.requires_grad_()
(F.apply(x * x) * F.apply(x.conj()) * (1 + 2j)).sum().abs().backward()
r = x.grad""",
    "vmap, written into": """
def f(a):
    c = a.conj(); c.mul_(2j); c[0] = a[1] * 2; c.masked_fill_(t.tensor([False, True]), 3j)
    c.scatter_(0, t.tensor([0]), a[1:].clone()); c.index_add_(0, t.tensor([1]), a[:1].clone())
    return a, c, c.clone(), c.abs(), c @ a, t.stack([c, a])
y = t.vmap(f)(x), t.vmap(f, in_dims=1, out_dims=1)(x), t.vmap(f)(x.conj())
r = y, t.vmap(lambda a: t.vmap(lambda b: b.conj().add_(1j))(a))(x), y[0][1].is_conj(), y[2][1].is_conj()""",
    "vmap, the base is written into": "def f(a):\n    c = a.conj(); a[0] = 7j; a.mul_(2j); return c, c[0], c.resolve_conj()\nr = t.vmap(f)(x)",
    "vmap, sample by sample": "def f(a):\n    c = a.conj(); c.mul_(3j); return c, t.linalg.eigvals(t.diag(c)).abs().sum()\nr = t.vmap(f)(x)",
    "vmap, gradients": "x.requires_grad_(); z = x * x\ndef f(a):\n    c = a.conj(); c.mul_(2j); return (a * c * a).abs().sum()\n"
    "r = t.autograd.grad(t.vmap(f)(z).sum(), x)",
    "forward mode, written into": """
def f(a):
    a = a * 1; b = a.conj(); b.mul_(2j); b[0] = a[1] * a[0]; b.imag.mul_(b.real); b.real.add_(b.imag)
    return a, b, b.imag * b.imag, b.mH @ a
r = t.func.jvp(f, (x,), (x * 1j,))
r = r, [(p.is_conj(), p.is_neg()) for p in r[0]]""",
    "forward mode, the base is written into": "def f(a):\n    a = a * 1; c = a.conj(); a.mul_(2j); a[0] = 3j; return c, c.imag\n"
    "r = t.func.jvp(f, (x,), (x * 1j,))",
    "duals": """
fw = t.autograd.forward_ad
with fw.dual_level():
    d = fw.make_dual(x, x * 1j); c = d.conj(); c.mul_(d.clone()); e = fw.make_dual(x.conj(), (x * 2).conj()); e.mul_(2j); e[0] = e[1] * e[1]
    r = [tuple(fw.unpack_dual(q)) for q in (d, c, c.imag, c.T, e, e.conj(), e.imag)]
c.add_(1); e.mul_(2)
r = r, c, e, c.is_conj(), e.is_conj()""",
    "tangents gained": """
fw = t.autograd.forward_ad
z = x * 1; c = z.conj(); w = x * 2; v = w.conj()
with fw.dual_level():
    z.copy_(fw.make_dual(x, x * 1j)); v.copy_(z)
    r = [tuple(fw.unpack_dual(q)) for q in (z, z.conj() * z, c * 2, c.clone(), c, c[0], c.imag, w, v)]
c.add_(1); v.add_(1)
r = r, z, c, w, v, c._base is z""",
    "functions, views": """
class F(t.autograd.Function):
    @staticmethod
    def forward(ctx, x): return x.conj(), x.conj().imag, x * 2
    @staticmethod
    def backward(ctx, g, h, i): return g.conj() + h * 1j + i
y = F.apply(x); y[0].mul_(2j); marks = [(p.is_conj(), p.is_neg(), p.requires_grad) for p in y]
z = x.clone().requires_grad_()
a, b, c = F.apply(z * 1); a.retain_grad(); l = []; a.register_hook(l.append)
((a * a).abs().sum() + (b * b).sum() + c.abs().sum()).backward()
r = y, marks, a, b, c, a.is_conj(), b.is_neg(), a[0].is_conj(), z.grad, a.grad, l""",
    "functions, inputs as they are": """
class F(t.autograd.Function):
    @staticmethod
    def forward(ctx, x): return x
    @staticmethod
    def backward(ctx, g): return g * 3
c = x.conj(); y = F.apply(c); y.mul_(2j); z = x.clone().requires_grad_(); d = (z * 1).conj(); e = F.apply(d)
r = y.is_conj(), y is c, c, e.is_conj(), t.autograd.grad((e * e).abs().sum(), z)""",
    "functions, changed inputs": """
class F(t.autograd.Function):
    @staticmethod
    def forward(ctx, x): x.mul_(2j); ctx.mark_dirty(x); return x
    @staticmethod
    def backward(ctx, g): return g * -2j
y = F.apply(x.conj()); z = x.clone().requires_grad_(); w = z * 1; c = w.conj(); d = F.apply(c)
r = y, d is c, w, d, t.autograd.grad((w * w).abs().sum() + (c * 1j).abs().sum(), z)""",
    "functions, a view is written into": """
class F(t.autograd.Function):
    @staticmethod
    def forward(ctx, x): return x.conj()
    @staticmethod
    def backward(ctx, g): return g.conj()
r = F.apply(x.requires_grad_() * 1).mul_(2)""",
    "classes of programs": """
class S(t.Tensor): pass
class T(S): pass
x = x.as_subclass(S); c = x.conj(); c.mul_(2j); c[0] = 1j; c.imag = t.ones(2, 2); d = x.as_subclass(t.Tensor).conj().as_subclass(T); d.add_(1)
r = [(type(q).__name__, isinstance(q, S), q.is_conj(), q.is_neg(), q.as_subclass(t.Tensor)) for q in (
    c, d, c * 2, c[0], c.imag, c.real, c.conj(), c.mH, c.T.reshape(4), c.detach(), c.data, c.clone(), c.resolve_conj(), t.stack([c, x]), c * d, d * c)]
r = r, c._base is x, [q for q in c][0].is_conj(), c.tolist(), t.vmap(lambda a: a.conj().mul_(2))(x).as_subclass(t.Tensor)
x = x.as_subclass(t.Tensor)""",
    "classes that take over": """
log = []
class S(t.Tensor):
    @classmethod
    def __torch_function__(cls, f, types, args=(), kwargs=None):
        log.append((f.__name__, cls is S, all(k is S for k in types)))
        return super().__torch_function__(f, types, args, kwargs or {})
c = x.as_subclass(S).conj(); c.mul_(2); d = c * x; c[0]; c.shape; t.add(c, 1)
r = log, d.as_subclass(t.Tensor)""",
    "both marks": "c = x._neg_view().conj().requires_grad_(); (c * c[0]).sum().abs().backward(); z = x.clone().requires_grad_(); w = z * 1; "
    "d = w._neg_view().conj(); d.mul_(2j); d[0] = w[1]; r = c.grad, c.is_neg(), c.is_conj(), w, d, t.autograd.grad((w * w).abs().sum() + d.imag.sum(), z)",
    "functions of the user's": """
class F(t.autograd.Function):
    @staticmethod
    def forward(ctx, x, how):
        if how == 2:
            ctx.mark_dirty(x)
        return (x.view_as(x), x, x.mul_(2j))[how]
    @staticmethod
    def backward(ctx, g):
        return g * 2, None
r = []
for how in (0, 1, 2):
    y = x.clone(); c = y.conj(); z = F.apply(c, how); z.mul_(1j); r += [y, z, z is c, z.is_conj(), z._base is y]
    for loss in (lambda y, z: (y * z).imag, lambda y, z: (y * y).imag, lambda y, z: (z * z).imag):
        w = x.clone().requires_grad_(); y = w * 1; z = F.apply(y.conj(), how); loss(y, z).sum().backward(); r += [w.grad, y, z]
try:
    F.apply((w * 1).conj(), 0).conj().mul_(2)
except RuntimeError as error:
    r.append('custom Function' in str(error))""",
    "gradients of what views are made of": """
views = (lambda v: v.conj(), lambda v: v.imag, lambda v: v.real, lambda v: v[0], lambda v: v.mH, lambda v: v._neg_view(), lambda v: v.T.conj().imag[1],
         lambda v: v.conj()._neg_view().conj(), lambda v: v.reshape(4), lambda v: v.unbind(0)[1], lambda v: v.diagonal(), lambda v: v.detach() * v)
made = (lambda x: (x * 1j).conj(), lambda x: x.conj(), lambda x: (x * 1j).conj()._neg_view(), lambda x: x.detach().conj().requires_grad_(),
        lambda x: x.conj().detach().requires_grad_(), lambda x: x.detach().conj()._neg_view().detach().requires_grad_())
r = []
for make in made:
    for view in views:
        y = x.clone().requires_grad_(); c = make(y)
        r.append(t.autograd.grad((view(c) * (1 + 2j)).abs().sum(), [c, y], allow_unused=True, retain_graph=True))
        r.append(t.func.vjp(lambda u: view(u) * (1 + 2j), c)[1](view(c).detach() * 1j))
        l = []; c.register_hook(l.append); view(c).sum().abs().backward(retain_graph=True); r.append((l, c.is_leaf, y.grad))""",
    "leaves whose memory changes": """
r = []
for make in (lambda x: x.conj(), lambda x: x.conj().detach(), lambda x: x.conj()._neg_view().detach(), lambda x: x.imag._neg_view()):
    y = x.clone(); c = make(y).requires_grad_(); u = c[:1]
    y.mul_(2)
    with t.no_grad(): c.add_(1); w = c[:1]
    r += [c.is_leaf, c.requires_grad, c.grad_fn, w.requires_grad, c._is_view(), c, y]
    (c * c).sum().abs().backward(); r.append(c.grad)
    for change in (lambda: c.mul_(2), lambda: c.conj().mul_(2), lambda: c[0].add_(1), lambda: c.t_(), lambda: c.real.zero_()):
        try:
            change(); r.append('changed')
        except RuntimeError:
            r.append('refused')
    r.append(c.requires_grad_(False).conj().requires_grad)""",
    "views of another dtype": """
r = []
for view in (lambda x: x.conj(), lambda x: x._neg_view(), lambda x: x.conj().imag):
    for dtype in (t.float64, t.int32, t.complex64, t.float32, t.int64, t.uint8, t.complex128):
        try:
            r.append(view(x).view(dtype))
        except RuntimeError as e:
            r.append(str(e)[:80])""",
    "reads of views that were made under no_grad, before a change": """
r = []
views = (lambda x: x.conj(), lambda x: x._neg_view(), lambda x: x.conj().imag, lambda x: x.conj()[:1], lambda x: x.conj()._neg_view(), lambda x: x.real)
reads = (lambda c: c.tolist(), lambda c: c.resolve_conj(), lambda c: c.resolve_neg(), lambda c: c.clone(), lambda c: c[0].tolist(), lambda c: c.sum(),
         lambda c: c.to(t.complex128), lambda c: c.detach(), lambda c: c.data.tolist(), lambda c: c.contiguous(), lambda c: list(c.unbind()),
         lambda c: c._version, lambda c: c.resolve_conj().resolve_neg().detach().numpy().tolist(), lambda c: t.stack([c]),
         lambda c: c == c, lambda c: str(c)[:0], lambda c: c[0].item())
for view in views:
    for of in (lambda y: y, lambda y: y * 1):
        for change in (lambda y, c: y.sub_(c), lambda y, c: y.mul_(2), lambda y, c: c.add_(1)):
            for read in reads:
                for reading in (t.no_grad, t.enable_grad):
                    y = of(x.clone().requires_grad_())
                    with t.no_grad(): c = view(y); change(y, c)
                    try:
                        with reading(): r.append(read(c))
                    except RuntimeError:
                        r.append('refused')""",
    "modes": """
r = []
for mode in (t.no_grad, t.inference_mode):
    y = x.clone().requires_grad_()
    with mode(): c = y.conj(); i = c.imag
    r += [(v.is_leaf, v.requires_grad, v.grad_fn, v.is_inference()) for v in (c, i)]
    with mode(): y.sub_(c)
    r.append(-1 in c)
    try:
        c.backward(x)
    except RuntimeError:
        r.append('refused')
    try:
        c * 2; r.append('computed')
    except RuntimeError:
        r.append('refused')
with t.inference_mode(): c = (x * 1).conj()
w = x.clone().requires_grad_()
for f in (lambda: w * c[0], lambda: w + c, lambda: c * 2, lambda: c.resolve_conj() * w, lambda: c.clone() * w, lambda: w @ c):
    try:
        y = f(); r.append((y.is_inference(), y.requires_grad, y))
    except RuntimeError:
        r.append('refused')
c, i = x.conj(), x.conj().imag; x.requires_grad_(); r += [(v.is_leaf, v.requires_grad, v.grad_fn) for v in (c, i)]; x.requires_grad_(False)""",
    "kept gradients": "x.requires_grad_(); y = x * 1; c = y.conj(); c.retain_grad(); c.abs().sum().backward(retain_graph=True); g = c.grad * 1; "
    "y.conj().imag.mul_(2); a = c.retains_grad; (c * c).imag.sum().backward(); r = g, a, c.grad, x.grad; x.requires_grad_(False)",
    "copied into": "x.requires_grad_(); r = []\nfor s in (x.detach().conj(), x.conj()): y = x * x; y.copy_(s); z = x * x; z[0] = s[0]; w = (x * x).conj(); "
    "w.copy_(s); r += [v.requires_grad for v in (y, z, w)]; (y * z * w).sum().abs().backward(); r.append(x.grad)\nx.requires_grad_(False)",
    "kept marks": "import copy, pickle\nr = [(v.is_conj(), v.is_neg(), v.stride(), v.requires_grad, v._is_view(), v) for c in (x.mH, "
    "x.conj().requires_grad_(), x.imag._neg_view(), x.conj()._neg_view()) for v in (pickle.loads(pickle.dumps(c)), copy.copy(c), c.detach(), c.data)]",
    "several operands of one memory": "x.conj().scatter_(0, t.zeros(2, 2, dtype=t.int64), x.conj()._neg_view()); r = x",
    "asked to require grad": """
class Pass(t.autograd.Function):
    @staticmethod
    def forward(ctx, x): return x.view_as(x)
    @staticmethod
    def backward(ctx, g): return g
def ask(v, how, value):
    try:
        v.requires_grad_(value) if how else setattr(v, 'requires_grad', value)
        return 'asked'
    except RuntimeError as e:
        return str(e)[:35]
r = []
for view in (lambda v: v.conj(), lambda v: v.conj().imag, lambda v: v[:1], lambda v: v.conj()[:1]):
    for of in (Pass.apply, t.no_grad(), lambda v: v, lambda v: v.unbind(0)[0]):
        for change in (lambda y: y.zero_(), lambda y: y.mul_(2)):
            for how, value, first in ((h, v, f) for h in (True, False) for v in (True, False) for f in (True, False)):
                y = x.clone().requires_grad_() * 1
                if isinstance(of, t.no_grad):
                    with of: v = view(y)
                else:
                    v = of(view(y))
                change(y)
                if first:
                    try: v.grad_fn
                    except RuntimeError: r.append('refused')
                r.append(ask(v, how, value))""",
    "hooks that return conjugates": "x.requires_grad_(); r = []\nfor f in (lambda y: setattr(y, 'real', y.imag), lambda y: y.imag.mul_(2), lambda y: y[0]"
    ".conj().real.zero_(), lambda y: t.view_as_real(y)[..., 0].exp_()): y = x * 1; f(y); y.register_hook(lambda g: g.conj()); y.abs().sum().backward(); "
    "r.append(x.grad); x.grad = None\nx.requires_grad_(False)",
    "checked": "r = [f(g, (x.cdouble().requires_grad_(),)) for f in (t.autograd.gradcheck, t.autograd.gradgradcheck) "
    "for g in (lambda x: x.conj() * x.mH, lambda x: x.conj(), lambda x: (x * x).mH, lambda x: (x * x).conj().imag, lambda x: (x.conj(), x * x))]",
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name):
    assert not difference(PROGRAMS[name] + "\nr = (r, x)", X.format(False))


def test_what_is_not_written_through_is_refused():
    with pytest.raises(ValueError, match="resolve_conj"):
        ag.optim.SGD([(ag.ones(2) * 1j).conj().requires_grad_()], 0.1)
    for work in ("c.resize_(8)", "c.set_(ag.ones(2) * 1j)", "c.__setattr__('data', ag.ones(2) * 1j)"):
        with pytest.raises(RuntimeError, match="resolve_conj"):
            eval(work, {"c": (ag.ones(2) * 1j).conj(), "ag": ag})


@pytest.mark.skipif(compilation.disabled(), reason="nothing is compiled")
@pytest.mark.filterwarnings("ignore:compile")
def test_compiled():
    def new(library: Any) -> Any:
        return library.tensor([[1 + 2j, 3 - 1j], [0.5j, 2]])

    def within(x: Any) -> Any:
        x.conj().mul_(2j)
        return (x.mH @ x).imag + x.conj().real

    compiled, out, given = ag.compile(within), ag.compile(lambda x: x.conj()), ag.compile(lambda x: x * 2)
    for _ in range(3):
        x, y = new(ag), new(torch)
        compare([compiled(x), x], [within(y), y], "within")
        out(x).add_(1j)
        compare(x, y - 1j, "given out")
        compare([given(x.conj()), given(x)], [(y - 1j).conj_physical() * 2, (y - 1j) * 2], "given in")
    assert len(compiled.programs) == 1 and "conjugates" in repr(out) and "conjugates" in repr(given)


def test_what_is_exchanged_can_be_exchanged_again():
    assert (ag.ones(2) * 1j).conj().is_conj()  # the functions are exchanged from here on
    kind = Overrides()
    try:
        kind.at(Structured, "__call__")(lambda inner: inner)
        assert "autograd_nb.ops.core.structured" in kind._originals[Structured, "__call__"][0].__module__
    finally:
        _every.remove(kind)


@pytest.mark.parity
def test_what_is_no_view_is_the_base_of_its_views():
    """Of a tensor that shows conjugates and is no view: it itself, whoever else has the memory, and also when nobody has held it since."""
    made = {
        "detached": "x.conj().detach()", "data": "x.conj().data", "from a file": "load(save(x.detach().conj()))", "copied": "copy.copy(x.conj())",
        "negatives": "x.conj().imag.detach()", "negatives of conjugates": "x.conj()._neg_view().detach()",
    }  # fmt: skip
    views = ("v.conj()", "v[:1]", "v.view(-1)", "v.real", "v.imag", "v.conj()[0]", "v.conj().real", "v._neg_view()", "v.t()")
    before = "import copy, pickle\nsave, load = pickle.dumps, pickle.loads\nx = t.complex(t.ones(2, 2), t.ones(2, 2)).requires_grad_()\n"
    codes = {f"{name} {view}": f"{before}v = {v}\nw = {view}\nr = w._base is v, v._base is None, v._is_view(), w._is_view()"
             for name, v in made.items() for view in views if "neg" not in name or "imag" not in view}  # fmt: skip
    again = "s = v.is_conj(), v.is_neg()\ndel v\nr = s, w._base.is_conj(), w._base.is_neg(), w._base.shape"
    codes |= {f"{name}, let go": f"{before}v = {v}\nw = v[0]\n{again}" for name, v in made.items()}
    assert all(outcome(code, ag)[0] == "result" for code in codes.values())
    check(codes)
