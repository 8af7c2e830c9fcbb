"""Programs drawn at random from the table of ops: compiled calls do what eager ones do.

``DRAWN_PROGRAMS=2000 pytest tests/compiler/test_drawn_programs.py`` looks at many more than `make test` does.
"""

from __future__ import annotations

import copy
import os
import warnings

import pytest

import autograd_nb as torch
import autograd_nb.nn.functional as F
from autograd_nb.ops.core.registry import OPS

pytestmark = pytest.mark.slow  # many kernels

hypothesis = pytest.importorskip("hypothesis")
st = hypothesis.strategies

MANY = int(os.environ.get("DRAWN_PROGRAMS", "0"))
CALLS = 4

#: not functions of values alone, with jumps where rounding decides, or that read values (then calls stay eager)
LEFT_OUT = {
    "floor", "ceil", "round", "trunc", "frac", "sign", "sgn", "fmod", "remainder", "floor_divide", "heaviside", "nextafter", "frexp", "special.round",
    "isclose", "eq", "ne", "signbit", "copysign", "empty_like", "bernoulli", "float_power", "pow", "igamma", "igammac", "polygamma", "ldexp", "zeta",
}  # fmt: skip
FEW = (  # noqa: SIM905
    "add sub mul div exp tanh sigmoid sin cos relu abs neg square sqrt rsqrt maximum minimum where clamp log1p lt gt logical_not gelu softplus "
       "silu atan2 lerp addcmul bitwise_and").split()  # fmt: skip
EVERY = sorted(
    n for n, op in OPS.items() if op.kind == "pointwise" and n not in LEFT_OUT and not n.startswith("_") and not n.endswith("_")
)
POINTWISE = EVERY if MANY else [n for n in FEW if n in OPS]
REDUCTIONS = [n for n in ("sum", "mean", "amax", "amin", "prod", "logsumexp", "var", "norm", "std", "any", "all") if n in OPS]
VIEWS = [
    lambda a: a.t() if a.ndim < 3 else a.mT, lambda a: a.reshape(-1), lambda a: a.unsqueeze(0), lambda a: a[0], lambda a: a[..., 1:], lambda a: a[..., ::2],
    lambda a: a.flip(0), lambda a: a.expand(2, *a.shape), lambda a: a.squeeze(), lambda a: a.narrow(0, 1, 2), lambda a: a.chunk(2, -1)[0],
    lambda a: a.diagonal(), lambda a: a.contiguous(), lambda a: a.clone(), lambda a: a.transpose(0, -1), lambda a: a.roll(1, 0), lambda a: a.unbind(0)[-1],
]  # fmt: skip
PAIRS = [
    lambda a, b: a @ b, lambda a, b: a @ b.mT, lambda a, b: F.linear(a, b), lambda a, b: torch.cat([a, b], -1), lambda a, b: torch.stack([a, b]),
    lambda a, b: F.mse_loss(a, b), lambda a, b: torch.outer(a.reshape(-1), b.reshape(-1)), lambda a, b: torch.where(b > 0, a, b),
    lambda a, b: a.index_select(0, (b.reshape(-1)[:2] * 0).long()), lambda a, b: a.masked_fill(b > 0, 0.5), lambda a, b: a.addmm(b, b.mT @ a),
]  # fmt: skip
SINGLE = [
    lambda a: a.softmax(-1), lambda a: a.log_softmax(0), lambda a: F.layer_norm(a, a.shape[-1:]), lambda a: a.cumsum(0), lambda a: a.sort(-1)[0],
    lambda a: a.topk(2)[0], lambda a: F.dropout(a, 0.5), lambda a: a + torch.randn(a.shape), lambda a: torch.rand_like(a) * a, lambda a: a.detach(),
    lambda a: a.double(), lambda a: a.float(), lambda a: a.long(), lambda a: a > 0, lambda a: a.argmax(-1), lambda a: a.tril(), lambda a: a * 2 + 1,
    lambda a: torch.zeros_like(a).scatter_add(0, torch.zeros(a.shape, dtype=torch.int64), a), lambda a: F.embedding(torch.tensor([0, 2, 0]), a),
    lambda a: torch.ones(3, 1) * a, lambda a: a.gather(-1, a.argsort(-1)), lambda a: F.cross_entropy(a, torch.zeros(a.shape[0], dtype=torch.int64)),
    lambda a: F.pad(a, (1, 1)), lambda a: a.repeat(2, 1), lambda a: (a * (0.5 + 1j)).imag, lambda a: torch.full_like(a, 0.5) * a.std(),
    lambda a: (a - a.mean(-1, keepdim=True)) * (a.var(-1, keepdim=True) + 0.1).rsqrt(),
]  # fmt: skip
CHANGES = [
    lambda a, b: a.mul_(0.5), lambda a, b: a.add_(b), lambda a, b: a.copy_(b), lambda a, b: a.zero_(), lambda a, b: a[0].fill_(2.0), lambda a, b: a.tanh_(),
    lambda a, b: a[..., 0].add_(1), lambda a, b: a.__setitem__(0, b[0]), lambda a, b: a.t().mul_(b.t()), lambda a, b: a.clamp_(-1, 1),
    lambda a, b: a.lerp_(b, 0.1), lambda a, b: a.index_add_(0, torch.tensor([0, 0]), b[:2]),
]  # fmt: skip


class State:
    """What a program keeps between calls."""

    def __init__(self):
        g = torch.Generator().manual_seed(3)
        self.w = torch.randn(3, 4, generator=g).requires_grad_()
        self.v = torch.randn(4, generator=g).requires_grad_()
        self.d = torch.randn(3, 4, generator=g, dtype=torch.float64).requires_grad_()
        self.b = torch.randn(3, 4, generator=g)
        self.k = torch.arange(12).reshape(3, 4)
        self.leaves = [self.w, self.v, self.d]
        self.optimizers = [
            torch.optim.SGD(self.leaves, 0.01, momentum=0.9, weight_decay=0.1), torch.optim.AdamW(self.leaves, 0.01), torch.optim.RMSprop(self.leaves, 0.01),
        ]  # fmt: skip


def tame(t):
    """Whether values are such that rounding does not decide what comes of them."""
    if not t.dtype.is_floating_point:
        return True
    t = t.detach()
    return t.numel() <= 200 and (t.numel() == 0 or bool((t.abs() < 1e3).all()))


def perform(instruction, values, state):
    """Carry one instruction out; whether it made a value. ValueError for one that makes no sense."""
    kind, which, i, j, option = instruction
    a, b = values[i % len(values)], values[j % len(values)]
    if kind == "pointwise":
        call = OPS[POINTWISE[which % len(POINTWISE)]].call
        values.append(
            call(a)
            if option == 0
            else call(a, b)
            if option == 1
            else call(a, 0.5)
            if option == 2
            else call(b > 0, a, b)
            if option == 3
            else call(a, b, b)
        )
    elif kind == "reduction":
        call = OPS[REDUCTIONS[which % len(REDUCTIONS)]].call
        values.append(call(a) if option == 0 else call(a, dim=0) if option == 1 else call(a, dim=-1, keepdim=True))
    elif kind == "view":
        values.append(VIEWS[which % len(VIEWS)](a))
    elif kind == "pair":
        values.append(PAIRS[which % len(PAIRS)](a, b))
    elif kind == "single":
        values.append(SINGLE[which % len(SINGLE)](a))
    elif kind == "quiet":
        with torch.no_grad():
            values.append(SINGLE[which % len(SINGLE)](a) * 2)
    elif kind == "change":
        target = state.b if option == 0 else a.clone()
        if option == 1 and not a.requires_grad:
            target = a
        if option == 2:
            with torch.no_grad():
                CHANGES[which % len(CHANGES)](state.leaves[i % 3], b)
            return
        CHANGES[which % len(CHANGES)](target, b)
        values.append(target)
    elif kind == "backward":
        if not (a.requires_grad and a.dtype.is_floating_point):
            raise ValueError
        a.sum().backward(retain_graph=True)
    elif kind == "step":
        state.optimizers[which % 3].step()
    elif kind == "zero":
        state.optimizers[0].zero_grad(set_to_none=option > 0)
    elif kind == "grad":
        found = torch.autograd.grad(a.square().sum(), state.leaves[i % 3], create_graph=option == 0, retain_graph=True)
        values.append(found[0])


KINDS = ["pointwise"] * 5 + [
    "reduction",
    "view",
    "view",
    "pair",
    "pair",
    "single",
    "single",
    "single",
    "quiet",
    "change",
    "change",
    "backward",
    "step",
    "zero",
    "grad",
]
INSTRUCTION = st.tuples(st.sampled_from(KINDS), st.integers(0, 400), st.integers(0, 30), st.integers(0, 30), st.integers(0, 4))
# x requires grad, x is transposed, y has a graph of its own, only the last values are results: the others need not be stored
ARGUMENTS = st.tuples(st.booleans(), st.booleans(), st.booleans(), st.booleans())


def inputs(call, how):
    g = torch.Generator().manual_seed(100 + call)
    x = torch.randn(3, 4, generator=g)
    if how[1]:
        x = torch.randn(4, 3, generator=g).t()
    if how[0]:
        x = x.detach().requires_grad_()
    y = torch.randn(3, 1, generator=g)
    if how[2]:
        y = y.requires_grad_() * 1.5
    return [x, y, torch.randint(0, 3, (3, 4), generator=g), torch.randn(3, 4, generator=g) > 0]


def runnable(instructions, how):
    """The instructions that work, tried out one by one; and which value each result is."""
    state = State()
    kept = []
    for instruction in instructions:
        kept.append(instruction)
        trial = State()
        try:
            for call in range(2):
                values = [*inputs(call, how), trial.w, trial.v, trial.d, trial.b, trial.k]
                for k in kept:
                    perform(k, values, trial)
                if not all(isinstance(v, torch.Tensor) and tame(v) for v in values):
                    raise ValueError
                if not all(tame(t) and (t.grad is None or tame(t.grad)) for t in trial.leaves):
                    raise ValueError
        except Exception:
            kept.pop()
    del state
    return kept


def check(instructions, how):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        kept = tuple(runnable(instructions, how))
        plain = any(k[0] in ("backward", "step", "grad", "zero") for k in kept)

        def make(state):
            def run(x, y, n, m):
                values = [x, y, n, m, state.w, state.v, state.d, state.b, state.k]
                for instruction in kept:
                    perform(instruction, values, state)
                found = values[9:][-2 if how[3] else 0 :]
                return [v.detach() if plain else v for v in found]

            return run

        mine, theirs = State(), State()
        compiled, eager = torch.compile(make(mine)), make(theirs)
        for call in range(CALLS):
            ours, others = inputs(call, how), inputs(call, how)
            for k, t in enumerate(ours):
                if k == 1 and how[2]:
                    ours[1], others[1] = ours[1], others[1]
            torch.manual_seed(call)
            a = compiled(*ours)
            torch.manual_seed(call)
            b = eager(*others)
            torch.manual_seed(call)
            compare(a, b, "a result")
            if not plain:
                for outs in (a, b):
                    wanted = [o for o in outs if o.requires_grad and o.dtype.is_floating_point]
                    if wanted:
                        sum(o.double().square().sum() for o in wanted[-2:]).backward()
            compare(ours, others, "an argument")
            compare([t.grad for t in ours if t.is_leaf], [t.grad for t in others if t.is_leaf], "the gradient of an argument")
            compare([*mine.leaves, mine.b, mine.k], [*theirs.leaves, theirs.b, theirs.k], "the state")
            compare([t.grad for t in mine.leaves], [t.grad for t in theirs.leaves], "a gradient")
            if call == 2:
                for state in (mine, theirs):
                    for t in state.leaves:
                        t.grad = None
        return compiled


def compare(mine, theirs, what):
    assert len(mine) == len(theirs)
    for k, (a, b) in enumerate(zip(mine, theirs, strict=True)):
        if a is None or b is None:
            assert a is b, f"{what} {k} is None in one case only"
            continue
        assert a.dtype is b.dtype and a.shape == b.shape and a.requires_grad == b.requires_grad, (
            f"{what} {k}: {a.dtype} {a.shape} {b.dtype} {b.shape}"
        )
        assert "gradient" in what or a._version == b._version, f"{what} {k} is at version {a._version}, eager at {b._version}"
        scale = max(1.0, float(b.detach().to(torch.complex128 if b.is_complex() else torch.float64).abs().max())) if b.numel() else 1.0
        torch.testing.assert_close(
            a.detach(), b.detach(), rtol=1e-3, atol=1e-4 * scale, equal_nan=True, msg=lambda m: f"{what} {k}: {m}"
        )


SETTINGS = hypothesis.settings(
    max_examples=MANY or 12, deadline=None, derandomize=not MANY, database=None, suppress_health_check=list(hypothesis.HealthCheck),
    phases=None if False else (hypothesis.Phase.explicit, hypothesis.Phase.generate, *([hypothesis.Phase.shrink] if MANY else [])),
)  # fmt: skip


@SETTINGS
@hypothesis.given(st.lists(INSTRUCTION, min_size=3, max_size=30 if MANY else 10), ARGUMENTS)
def test_drawn_programs(instructions, how):
    check(copy.copy(instructions), how)
