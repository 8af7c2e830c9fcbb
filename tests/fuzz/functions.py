"""What functions that are compiled, and what stands around their calls, are drawn from (see `statements` for the holes)."""

from __future__ import annotations

import re

SETUP = [
    "w = make({s}, (3, 4), {dtype}).requires_grad_()",
    "b = make({s}, (4,), {dtype}).requires_grad_()",
    "buf = make({s}, (3, 4), {dtype})",
    "k = make({s}, (3, 4), 'int64')",
]
MORE = [
    "opt = torch.optim.SGD([w, b], lr=0.1, momentum=0.9)", "opt = torch.optim.Adam([w, b], lr=0.05)",
    "opt = torch.optim.SGD([w], lr=0.1)", "opt = torch.optim.RMSprop([w, b], lr=0.05)", "mod = fill(torch.nn.Linear(4, 3), {s})",
    "mod = fill(torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU(inplace=True)), {s})",
    "mod = fill(torch.nn.BatchNorm1d(4), {s})", "mod = fill(torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.BatchNorm1d(4)), {s})",
    "mod = fill(torch.nn.LayerNorm(4), {s}); opt = torch.optim.SGD(mod.parameters(), lr=0.1)",
    "n = buf.numpy()", "tied = w[0]", "tied = buf.t()", "tied = buf[1:]", "scale = 0.5", "box = {'t': make({s}, (4,), {dtype}), 'n': 2.0}",
    "w.register_hook(lambda g: g * 2)", "log = []; b.register_hook(log.append)",
    "log = []; w.register_post_accumulate_grad_hook(lambda p: [p.data.mul_(0.5)] and None)",
    "total = [0.0]; mean = [buf * 0]", "class Slotted:\n    __slots__ = ('k', 't')\nslotted = Slotted()",
    """\
factor = [2.0]
class Rule(torch.autograd.Function):
    @staticmethod
    def forward(ctx, t):
        return t * 2
    @staticmethod
    def backward(ctx, g):
        return g * factor[0]""",
]  # fmt: skip
BODY = [
    "opt.step()", "opt.zero_grad()", "opt.zero_grad(set_to_none=False)", "{new} = mod({a}.float())", "{new} = mod({a})",
    "{new} = mod({a}); {new}.sum().backward(); opt.step()",
    "w.grad = None", "buf.copy_({a})", "buf.mul_(0.9).add_({b}, alpha=0.1)", "{new} = {a}.sum(); {new}.backward()",
    "{new} = ({a} * w).sum(); {new}.backward(retain_graph=True)", "with torch.no_grad():\n    w.sub_({a}, alpha=0.1)",
    "with torch.no_grad():\n    {new} = {a} * 2", "{new} = w.grad", "{new} = x.detach() * 2", "x.mul_(2)", "x.add_({b})",
    "{new} = {a}.detach()", "{new} = {a}.clone()", "{new} = {a}.detach().clone().requires_grad_()",
    "{new} = torch.zeros(3, 4)", "{new} = buf", "{new} = w", "{new} = x", "tied.mul_(2)", "{new} = {a} * scale", "{new} = {a} + box['t']",
    "box['t'] = {a}.detach()", "box['t'].add_(1)", "box['n'] = {a}.sum().detach()", "{new} = {a}.T; {new}.mul_(2)",
    "{new} = x.view(-1)", "{new} = x[0]", "x.data.mul_(2)", "{new} = {a} if x.dim() > 1 else {b}", "mod.training and x.mul_(2)",
    "{new} = torch.func.vmap(lambda q: q * 2)({a})", "{new}, = torch.autograd.grad({a}.square().sum(), [w], create_graph=True)",
    "{new} = {a}.clone(); {new}.register_hook(lambda g: g * 3); {new2} = {new} * 2",
    "{new} = torch.utils.checkpoint.checkpoint(lambda q: q.sin() * w, {a}, use_reentrant=False)",
    "{new} = {a}.chunk(2)[0]", "{new} = {a}.unbind(0)[0]",
    "with torch.no_grad():\n    {new} = {a}.view(-1)", "{new} = ({a} + w).exp()", "torch.nn.utils.clip_grad_norm_([w, b], 1.0)",
    "total[0] += {a}.sum()", "total[0] = total[0] + {a}.sum().detach()", "mean[0] = mean[0] * 0.5 + {a}", "mean[0].mul_(0.5).add_({a})",
    "{new} = mean[0] * 2", "{new} = Rule.apply({a})", "{new} = Rule.apply({a}) * w", "{new} = {a} * (slotted.k if hasattr(slotted, 'k') else 3.0)",
    "slotted.t = {a}.detach()", "{new} = x if x._base is None else x._base", "{new} = x.view(torch.int32)", "{new} = torch.view_as_real(x + 0j)",
    "{new} = torch.view_as_real(x) if x.is_complex() else x[1:]", "{new} = x.real", "{new} = x.imag if x.is_complex() else x * 2",
    "try:\n    {new} = torch.linalg.cholesky({a} @ {a}.mT)\nexcept RuntimeError:\n    {new} = {a} * 0",
    "torch._foreach_mul_([buf, x], 0.5)", "w.data = w.data * 0.9", "{new} = torch.func.functional_call(mod, {'bias': b[:3] * 2}, ({a},))",
    "w.retain_grad()", "{new} = torch.is_grad_enabled()", "{new} = {a}.new_ones(2)",
]  # fmt: skip
#: what z is given, and statements with it
THIRD: list[tuple[list[str], list[str]]] = [
    (["0.5", "0.5", "2.0", "-1.5"], ["{new} = {a} * z", "{a}.mul_(z)", "{new} = {a} + z if z > 0 else {a} - z", "{new} = {a} ** z"]),
    (["2", "2", "3", "0"], ["{new} = {a} * z", "{new} = {a}.sum(min(z, 1))", "{new} = {a}[:z]", "{new} = {a} / (z + 1)"]),
    (
        ["True", "False", "None"],
        ["{new} = {a} * 2 if z else {a}", "z and {a}.mul_(2)", "{new} = {a}.detach() if z is None else {a} * 1"],
    ),
    (
        ["[{make}, 2.0]", "[{make}, 2.0]", "[{make}, 3.0]", "[x, 2.0]"],
        ["{new} = {a} * z[0]", "z[0].mul_(2)", "{new} = {a} * z[1]", "{new} = z[0]", "{new} = z"],
    ),
    (
        ["{'q': {make}, 'k': 2}", "{'q': {make}, 'k': 2}", "{'q': x, 'k': 3}"],
        ["{new} = {a} * z['q']", "z['q'].add_(1)", "{new} = {a} + z['k']", "{new} = z['q'].sum()"],
    ),
    (
        ["({make}, {make})", "({make}, {make})", "(w, {make})", "(buf, buf)"],
        ["{new} = {a} * z[0] + z[1]", "z[1].mul_(0.5)", "{new} = torch.stack([t.sum() for t in z])"],
    ),
    (
        ["{make}", "{make}", "w", "buf", "torch.from_numpy(np.ones((3, 4)))", "w[:, :2].repeat(1, 2)", "buf.t().t()"],
        ["{new} = {a} * z", "z.mul_(2)", "{new} = z[:1]", "{new} = z.sum()"],
    ),
]
BETWEEN = [
    "w.grad = None", "b.grad = None", "w.requires_grad_(False)", "w.requires_grad_(True)", "buf.zero_()",
    "buf = buf.clone()", "n[0] = 0.5", "mod.eval()", "mod.train()", "opt.zero_grad()", "opt.param_groups[0]['lr'] = 0.01",
    "kept = found", "kept = w.grad", "w.grad = torch.ones_like(w)", "w.grad.zero_()", "w.data = w.data * 2",
    "w.data.mul_(0.5)", "parts(found)[0].detach().zero_()", "kept = w.grad\nif w.grad is not None:\n    w.grad.mul_(2)",
    "torch.set_grad_enabled(True)", "torch.set_grad_enabled(False)", "torch.set_grad_enabled(True)", "scale = 2.0", "scale = scale * 0.5",
    "box['t'] = make({s}, (4,), {dtype})", "box['t'].mul_(2)", "box['n'] = 3.0", "mod.zero_grad()", "mod.double()", "mod.float()",
    "mod.requires_grad_(False)", "mod.requires_grad_(True)", "mod.bias = torch.nn.Parameter(mod.bias.detach() * 2)",
    "mod.load_state_dict({k: v * 0.5 for k, v in mod.state_dict().items()})", "opt.load_state_dict(opt.state_dict())",
    "opt = torch.optim.SGD([w], lr=0.2)", "w = torch.nn.Parameter(w.detach() * 0.5)", "w.register_hook(lambda g: g + 1)", "tied = tied * 1",
    "total[0] = 0.0", "mean[0] = buf * 0", "mean = [mean[0].detach()]", "slotted.k = 2.0", "slotted.k = 4.0", "del slotted.k", "factor[0] = 3.0",
    "buf.requires_grad_(True)", "buf = buf.detach().t().contiguous().t()", "opt.step()", "w.detach().add_(0.5)", "x.detach().zero_()",
]  # fmt: skip
AFTER = [
    "x.detach().add_(1)", "w.detach().mul_(2)", "parts(found)[0].detach().add_(1)", "parts(found)[0].mul_(2)", "parts(found)[0].retain_grad()",
    "parts(found)[0].register_hook(lambda g: g * 3)", "buf.add_(1)", "w.grad = None", "held = parts(found)[-1].detach()", "x.grad = None",
    "parts(found)[0].requires_grad_()", "with torch.no_grad():\n    w.sub_(0.1)", "opt.step()", "parts(found)[-1].detach_()",
    "b.data.add_(0.5)", "w.data.mul_(2)", "y.detach().mul_(2)", "parts(found)[-1].mul_(b.sum())", "parts(found)[-1].requires_grad_()",
    "factor[0] = 5.0", "factor = [7.0]", "slotted.k = 3.0", "total[0] = 0.0", "mean[0].detach().mul_(2)",
]  # fmt: skip
#: backward passes through what a call has given
PASSES = [
    "for _r in parts(found):\n    if _r.requires_grad:\n        (_r * _r).sum().backward(retain_graph=True)",
    "for _r in parts(found):\n    if _r.requires_grad:\n        (_r * _r).sum().backward(retain_graph=True)",
    "for _r in parts(found):\n    if _r.requires_grad:\n        (_r * _r).sum().backward()",
    "squares(found).backward()",
    "parts(found)[0].sum().backward()",
    "gs = torch.autograd.grad([(_r * _r).sum() for _r in parts(found) if _r.requires_grad], [w, b], allow_unused=True)",
    "gs = [*torch.autograd.grad(squares(found), [w], allow_unused=True), *torch.autograd.grad(squares(found), [b], allow_unused=True)]",
    "_r = parts(found)[0]\ngs = [torch.autograd.grad(_r, [_p], _r.detach(), allow_unused=True) for _p in (w, b)]",
    "_r = parts(found)[0]\ngs = torch.autograd.grad(_r, [w, b], torch.ones(_r.shape[::-1], dtype=_r.dtype).T, allow_unused=True)",
    "gs = torch.autograd.grad(squares(found), [x], allow_unused=True, retain_graph=True)",
    "gs = torch.autograd.grad(squares(found), [w, b], create_graph=True, allow_unused=True)\nsquares(gs).backward()",
    """\
squares(found).backward(create_graph=True)
_h = w.grad
w.grad = None
(_h * _h).sum().backward()
for _p in (w, b, x, y):
    if _p.grad is not None:
        _p.grad = _p.grad.detach()""",
]
FORMS = ["({},)", "({},)", "({},)", "[{}]", "{{'r': [{}]}}", "({}, 1.5)"]


#: what makes a function stay eager, which few of them should
EAGER = re.compile(
    r"tolist|float\(\{a\}|is_set_to|storage_offset|\{p\}\.register|\{[rp]\}\.retain_grad|\{r\}\.register|numpy|\[\{a\} > 0\]|\[\{m\}\]"
    r"|masked_select"
)
