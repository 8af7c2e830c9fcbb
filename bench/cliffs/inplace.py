"""Look for cliffs among calls that write into what they are given: ``python -m bench.cliffs.inplace [op …]`` times them beside PyTorch.

Of each op of PyTorch's database the samples whose operands lie differently run in place, and with ``out=``; nothing requires grad, so nothing
is recorded. `ASSIGNMENTS` are what a database of functions does not have. Each call finds what the last has left, in both libraries.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch.testing._internal.common_methods_invocations import op_db

import autograd_nb as ours
from bench.cliffs.beside import Case, Step, main
from bench.cliffs.database import given, mapped
from tests.parity import opdb

#: calls of few elements in the words of programs; x is 4×4, v has four elements, i and j index them, m and M say where, c is complex
ASSIGNMENTS = """
x[i] = 1.; x[i] = v; x[i[:, None], j] = 1.; x[i, j] = v[:2]; x[:, i] = 1.; x[:, i] = x[:, j]; x[[0, 1]] = 1.; x[[0, 1], 2] = 1.; x[m] = 1.; x[M] = 0.
x[M] = v[0]; x[0] = 1.; x[0, 1] = 1; x[:, 1] = v; x[1:3, ::2] = 0.; x[..., None] = 1.; x[None] = 1.; x[-1] = v; c[0] = 1j; c[1:] = 1; c[i] = 1j; i[0] = 1
i[:] = j; x += 1; x -= x; x *= v; x /= 2; x @= x; x **= 2; M &= M; M |= M; i //= 2; i %= 3; x.zero_(); x.fill_(2.); x.copy_(y); x.copy_(v); x.copy_(i[0])
x.t().copy_(y); x[0].zero_(); x.view(-1).add_(1); x.masked_fill_(M, 1.); x.masked_fill_(m, v[0]); x.masked_scatter_(M, y); x.index_fill_(0, i, 1.)
x.index_add_(0, i, y[:2]); x.index_add_(1, i, y[:, :2], alpha=2); x.index_copy_(0, i, y[:2]); x.scatter_(0, I, 1.); x.scatter_(1, I, y)
x.scatter_(0, I, y, reduce="add"); x.scatter_add_(0, I, y); x.scatter_reduce_(0, I, y, "amax"); x.index_reduce_(0, i, y[:2], "prod"); x.put_(i, v[:2])
x.index_put_((i,), v); x.index_put_((i, j), v[:2], accumulate=True); x.triu_(); x.tril_(1); x.cumsum_(0); x.cumprod_(1); x.clamp_(0, 1); x.clamp_(min=0)
x.fill_diagonal_(1.); x.addmm_(y, y); x.addmm_(y, y, beta=.5, alpha=2); v.addmv_(y, w); x.addr_(v, w); x.addcmul_(y, y, value=.5); x.lerp_(y, .1)
x.random_(); x.random_(5); x.random_(-2, 5); x.normal_(); x.uniform_(0, 1); x.bernoulli_(.5); x.exponential_(); x.cauchy_(); x.log_normal_(); x.geometric_(.5)
x.renorm_(2, 0, 1.); x.nan_to_num_(); x.pow_(2); x.sigmoid_(); x.relu_(); x.sub_(y, alpha=2); x.eq_(y); x.logical_and_(y); M.logical_not_()
x.round_(decimals=1); x.copysign_(y); x.atan2_(y); x.fmod_(2); x.remainder_(2); x.div_(2, rounding_mode="floor"); x.neg_(); x.squeeze_(); x.t_()
T.add(x, y, out=z); T.mul(x, 2, out=z); T.mm(x, y, out=z); T.matmul(x, y, out=z); T.cat([x, y], out=Z); T.stack([v, w], out=Z2); T.sum(x, 0, out=v)
T.exp(x, out=z); T.where(M, x, y, out=z); T.clamp(x, 0, 1, out=z); T.index_select(x, 0, j, out=z2); T.gather(x, 0, I, out=z); T.cumsum(x, 0, out=z)
T.max(x, 0, out=(v, J)); T.sort(x, out=(z, I2)); T.addmm(x, x, y, out=z); T.mv(x, v, out=w); T.dot(v, w, out=s); T.outer(v, w, out=z); T.arange(4, out=v)
T.ones(4, 4, out=z); T.eye(4, out=z); T.randn(4, 4, out=z); T.linspace(0, 1, 4, out=v); T.bmm(x[None], y[None], out=B); T.mean(x, 1, out=v)
"""

_OPERANDS = """
x = (T.arange(16.0) / 8 - 1).reshape(4, 4)
y, z, Z, Z2, z2, B, s = x + .5, T.zeros(4, 4), T.zeros(8, 4), T.zeros(2, 4), T.zeros(2, 4), T.zeros(1, 4, 4), T.zeros(())
v, w, c = T.ones(4), T.ones(4), T.ones(4, dtype=T.complex64)
i, j, J, I, I2 = T.tensor([0, 2]), T.tensor([1, 3]), T.zeros(4, dtype=T.int64), T.zeros(4, 4, dtype=T.int64), T.zeros(4, 4, dtype=T.int64)
m, M = T.tensor([True, False, True, True]), x > 0
"""


def written(text: str, library: Any) -> Step:
    """Return a step that runs a statement again and again on the same tensors."""
    space: dict[str, Any] = {"T": library}
    exec(_OPERANDS, space)
    exec(f"def step():\n    global x, M, i\n    {text}", space)
    return space["step"]  # type: ignore[no-any-return]


def layouts(sample: Any) -> tuple[Any, ...]:
    """Return what samples that are measured once have in common: layouts and keywords."""
    found: list[Any] = []
    mapped([sample.input, *sample.args], lambda a: found.append((a.shape, a.stride()) if isinstance(a, torch.Tensor) else a.__class__))
    return (*found, *sample.kwargs)


def in_place(op: Any, sample: Any) -> list[Step]:
    """Return the steps that write an op's result over its first operand."""
    theirs = op.inplace_variant
    steps = []
    for library, function in ((ours, getattr(ours.Tensor, theirs.__name__)), (torch, theirs)):
        args, options = given([sample.input, *sample.args], False, library), given(sample.kwargs, False, library)
        steps.append(lambda function=function, args=args, options=options: function(*args, **options))
        steps[-1]()
    return steps


def with_out(op: Any, sample: Any) -> list[Step]:
    """Return the steps that write an op's results into what an earlier call has given."""
    steps = []
    for library, function in ((ours, opdb.find(op)), (torch, op.op)):
        args, options = given([sample.input, *sample.args], False, library), given(sample.kwargs, False, library)
        out = function(*args, **options)
        out = out if isinstance(out, library.Tensor) else tuple(out)
        steps.append(lambda function=function, args=args, options=options, out=out: function(*args, **options, out=out))
        steps[-1]()
    return steps


def cases(names: list[str]) -> Iterator[Case]:
    """Yield the name, the kind and the steps of each case that both libraries know; ``names``: ops, or parts of assignments."""
    for text in (one.strip() for line in ASSIGNMENTS.strip().split("\n") for one in line.split(";")):
        if not names or any(name in text for name in names):
            yield text, "written", [written(text, library) for library in (ours, torch)]
    for op in op_db:
        if (names and op.name not in names) or opdb.outside(opdb.title(op)) or torch.float32 not in op.dtypes:
            continue
        samples = {layouts(s): s for s in op.sample_inputs("cpu", torch.float32)}
        spelled = [theirs for what, theirs, mine in opdb.spellings(op) if what == "in place" and mine is not None]
        for number, sample in enumerate(samples.values()):
            for kind, make in ([("in place", in_place)] if spelled else []) + ([("out=", with_out)] if op.supports_out and opdb.find(op) else []):
                try:
                    yield f"{opdb.title(op)}, sample {number}", kind, make(op, sample)
                except (*opdb.ERRORS, opdb.Unsupported, AttributeError):  # not of this shape, or not here
                    continue


if __name__ == "__main__":
    main(__doc__, cases, opdb.ERRORS)
