"""Functions in which a difference was found once, as they were shrunk."""

from __future__ import annotations

from .program import Call, Calls

W = 'w = make(65, (3, 4), "float64").requires_grad_()'
B = 'b = make(25, (4,), "float64").requires_grad_()'
X = 'make(3, (3, 4), "float64")'
SECOND = "gs = torch.autograd.grad(squares(found), [w], create_graph=True, allow_unused=True)\nsquares(gs).backward()"


def same_calls(count: int, *after: str, given: tuple[str, ...] = (X, X, "0.5")) -> tuple[Call, ...]:
    return tuple(Call((), given, after) for _ in range(count))


SHRUNK = {
    "a gradient that a recorded pass has added to": Calls(
        (B,), ("torch.autograd.backward([b.sum(), b.mean()], retain_graph=True)", "b.mean().backward(create_graph=True)"), (), same_calls(5)
    ),
    "a gradient that is read and replaced": Calls(
        (W, "w.grad = torch.ones_like(w)"), ("v1 = w.grad", "w.grad = None", "(x * w).sum().backward()", "w.grad.add_(v1.flip(0))"), (),
        same_calls(5),
    ),
    "second derivatives of a batch norm": Calls(
        (W, "mod = torch.nn.BatchNorm1d(4).double()"), ("v1 = mod(x * w).tanh()",), ("v1",), same_calls(4, SECOND)
    ),
    "second derivatives of what reads its last result": Calls(
        (W, 'box = {"t": make(1, (3, 4), "float64")}'), ("v1 = (x * w + box['t']).sin()", "box['t'] = v1.detach()"), ("v1",),
        same_calls(5, SECOND),
    ),
    "branches that are consumed apart": Calls(
        (W, 'b = make(5, (3, 4), "float64").requires_grad_()'), ("v1 = (x * w).exp()", "v2 = (x * b).exp()"), ("v1 * v2", "v1 + v2"),
        same_calls(
            3, "gs = torch.autograd.grad(parts(found)[0].sum(), [w])", "kept = torch.autograd.grad(parts(found)[1].sum(), [b])",
            "held = torch.autograd.grad(parts(found)[1].sum(), [w])",
        ),
    ),
    "data of another shape": Calls(
        ("buf = make(36, (3, 4), 'float64')",), ("x.data = buf",), ("x",),
        same_calls(3, "squares(found).backward()", given=("make(15, (5, 4), 'float64').requires_grad_() * 1.5", X, "0.5")),
    ),
    "averages of all batches": Calls(
        ("bn = fill(torch.nn.BatchNorm1d(4, momentum=None), 14).double()",), ("v1 = bn(x)", "bn(x).sum().backward()", "bn.reset_running_stats()"), ("v1",),
        same_calls(3),
    ),
    "an empty batch among all batches": Calls(
        (W, "bn = fill(torch.nn.BatchNorm1d(4, momentum=None), 26).double()"),
        ("v1 = bn(fit(x, (3, 0, 4)))", "bn(w).sum().backward()", "v2 = bn.running_mean * 1", "bn.reset_running_stats()"), ("v1", "v2"),
        same_calls(3, "squares(found).backward()"),
    ),
    "a leaf that has a history by now": Calls(
        (W, B), ("(w * 2).square().sum().backward()",), ("w",),
        (*same_calls(3, "w.grad = None")[:2], *same_calls(1, "w.detach_()", "w.mul_(b.sum())"), *same_calls(1)),
    ),
    "a view of an argument that has other memory": Calls(
        (W, B), ("v2 = y.reshape(-1)", "torch.nn.utils.vector_to_parameters(v2 + v2, [v2])"), ("v2",),
        same_calls(3, "parts(found)[-1].mul_(b.sum())", given=(X, f"{X}.requires_grad_()", "0.5")),
    ),
    "a gradient that a result is given": Calls((W,), ("v1 = x * w", "v1.grad = v1.detach()"), ("v1",), same_calls(3)),
    "gradients that are clipped twice": Calls(
        (W,), ("(x * w).sum().backward()", "torch.nn.utils.clip_grad_norm_([w, w], 0.5)"), ("x * 2",), same_calls(3, "w.grad = None")
    ),
    "hooks of independent results": Calls(
        (W, "log = []"), ("v1 = x * w", "v2 = w.exp()", "v3 = w.sin()"), ("v2", "v1", "v3"),
        same_calls(
            3, "for _k, _r in enumerate(found):\n    _r.register_hook(lambda g, k=_k: log.append(k))",
            "torch.autograd.backward([_r.sum() for _r in found])",
        ),
    ),
}  # fmt: skip
