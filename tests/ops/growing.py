"""What a new shape leaves behind: run by `test_growth` in a process without compiled kernels, as nothing here depends on them.

Each op is called with a few sizes, then with others of the same kind: these must trace no formula and write no kernel's text (that
is what costs), and leave nothing to the collector of cycles. Prints a line for each op that does, and the numbers of ops.
"""

from __future__ import annotations

import gc
import sys
import warnings

import autograd_nb as torch
import autograd_nb.nn.functional as F
from autograd_nb.codegen.templates import draws, loops
from autograd_nb.ops.core import row_kernel
from autograd_nb.ops.core.registry import OPS

from .table import dtype_of, sample

FIRST, LATER = (12, 13, 14), (15, 17, 19)
COLUMNS = 7
made: list[str] = []


def counted(module, name: str) -> None:
    function = getattr(module, name)

    def call(*args, **options):
        made.append(name)
        return function(*args, **options)

    setattr(module, name, call)


for module, name in (
    (loops, "trace_body"), (loops, "pointwise_flat"), (loops, "pointwise_strided"), (loops, "reduction"), (row_kernel, "row_kernel"),
    (draws, "random_map"),
):  # fmt: skip
    counted(module, name)


def numbers(n: int, seed: int, needs: bool = True):
    return (torch.linspace(0.1 + 0.01 * seed, 0.9, n * COLUMNS, dtype=torch.float64)).reshape(n, COLUMNS).requires_grad_(needs)


def backward(y) -> None:
    y = y[0] if isinstance(y, tuple) else y
    if y.requires_grad:
        y.backward(torch.ones_like(y))


def pointwise(name: str):
    dtype = dtype_of(name)
    count = min(len(OPS[name].rule.params), 3)

    def step(n: int) -> None:
        args = [torch.from_numpy(sample(name, i, (n, COLUMNS), dtype)) for i in range(count)]
        backward(OPS[name].call(*[a.requires_grad_(dtype == "float64") for a in args]))

    return step


def in_place(name: str):
    of = OPS[name.removesuffix("_")]
    dtype = dtype_of(of.name)
    count = min(len(of.rule.params), 3)

    def step(n: int) -> None:
        x, *rest = [torch.from_numpy(sample(of.name, i, (n, COLUMNS), dtype)) for i in range(count)]
        OPS[name].call(x.clone(), *rest)
        if dtype == "float64":
            backward(OPS[name].call(x.requires_grad_() * 1, *rest))

    return step


def of(function):
    """A step on two operands of n rows, the first of which requires grad."""
    return lambda n: backward(function(numbers(n, 0), numbers(n, 1, False), n))


def labels(n: int):
    return torch.zeros(n, dtype=torch.int64)


long = torch.arange(32).remainder(5)
weight, row, image = (torch.linspace(0.1, 1, k, dtype=torch.float64) for k in (21, 7, 18))
weight, image = weight.reshape(3, 7).requires_grad_(), image.reshape(2, 1, 3, 3).requires_grad_()
optimizer = torch.optim.Adam([weight])


def train(n: int) -> None:
    optimizer.zero_grad()
    F.cross_entropy(F.linear(numbers(n, 0, False), weight).relu(), labels(n)).backward()
    optimizer.step()


OTHERS = {
    "sum": of(lambda a, b, n: a.sum()),
    "sum(0)": of(lambda a, b, n: a.sum(0)),
    "mean(1)": of(lambda a, b, n: a.mean(1, True)),
    "amax": of(lambda a, b, n: a.amax(1)),
    "prod": of(lambda a, b, n: a.prod(1)),
    "std": of(lambda a, b, n: a.std(-1)),
    "norm": of(lambda a, b, n: a.norm()),
    "logsumexp": of(lambda a, b, n: a.logsumexp(0)),
    "argmax": of(lambda a, b, n: a.argmax(1)),
    "max": of(lambda a, b, n: a.max(1)),
    "cumsum": of(lambda a, b, n: a.cumsum(0)),
    "sort": of(lambda a, b, n: a.sort(0)),
    "topk": of(lambda a, b, n: a.topk(2)),
    "stretched": of(lambda a, b, n: a * row),
    "stretched column": of(lambda a, b, n: a[:, :1] * b),
    "turned": of(lambda a, b, n: a.t() + b.t().contiguous()),
    "strided": of(lambda a, b, n: a[:, ::2].exp()),
    "number": of(lambda a, b, n: 2 - a / 3),
    "where": of(lambda a, b, n: torch.where(a > b, a, b)),
    "clamp": of(lambda a, b, n: a.clamp(0.2, 0.5)),
    "lerp": of(lambda a, b, n: a.lerp(b, 0.3)),
    "double": of(lambda a, b, n: a.float()),
    "clone": of(lambda a, b, n: a.t().clone()),
    "ones": of(lambda a, b, n: torch.ones(n, 3)),
    "full": of(lambda a, b, n: torch.full((n, 3), 2.5)),
    "arange": of(lambda a, b, n: torch.arange(n)),
    "rand": of(lambda a, b, n: torch.rand(n, 3)),
    "randn": of(lambda a, b, n: torch.randn(n, 3)),
    "dropout": of(lambda a, b, n: F.dropout(a, 0.5)),
    "cat": of(lambda a, b, n: torch.cat([a, b])),
    "stack": of(lambda a, b, n: torch.stack([a, b, a], 1)),
    "split": of(lambda a, b, n: a.split(5)[1]),
    "pad": of(lambda a, b, n: F.pad(a, (1, 2))),
    "flip": of(lambda a, b, n: a.flip(0)),
    "roll": of(lambda a, b, n: a.roll(1, 0)),
    "x[2:]": of(lambda a, b, n: a[2:] * 2),
    "x[1]": of(lambda a, b, n: a[1]),
    "x[index]": of(lambda a, b, n: a[long[:n]]),
    "x[mask]": of(lambda a, b, n: a[a > 0.5]),
    "x[2:] = y": of(lambda a, b, n: (a * 1).index_fill(0, long[:3], 2.0)),
    "gather": of(lambda a, b, n: a.gather(0, long[: 2 * 7].reshape(2, 7))),
    "embedding": of(lambda a, b, n: F.embedding(long[:n], weight.t())),
    "masked_fill": of(lambda a, b, n: a.masked_fill(b > 0.5, 2)),
    "permute": of(lambda a, b, n: a.reshape(n, 7, 1).permute(2, 1, 0).contiguous()),
    "expand": of(lambda a, b, n: a.unsqueeze(0).expand(2, n, 7).sum(0)),
    "matmul": of(lambda a, b, n: a @ b.t()),
    "linear": of(lambda a, b, n: F.linear(a, weight, weight[:, 0])),
    "bmm": of(lambda a, b, n: a.expand(2, n, 7) @ b.t()),
    "einsum": of(lambda a, b, n: torch.einsum("ij,kj->ik", a, b)),
    "softmax": of(lambda a, b, n: a.softmax(-1)),
    "log_softmax": of(lambda a, b, n: a.log_softmax(0)),
    "layer_norm": of(lambda a, b, n: F.layer_norm(a, (7,), row, row)),
    "batch_norm": of(lambda a, b, n: F.batch_norm(a, None, None, row, row, training=True)),
    "group_norm": of(lambda a, b, n: F.group_norm(a.reshape(1, 7, n), 1)),
    "cross_entropy": of(lambda a, b, n: F.cross_entropy(a, labels(n))),
    "mse_loss": of(lambda a, b, n: F.mse_loss(a, b)),
    "smooth_l1_loss": of(lambda a, b, n: F.smooth_l1_loss(a, b)),
    "nll_loss": of(lambda a, b, n: F.nll_loss(a, labels(n))),
    "conv2d": of(lambda a, b, n: F.conv2d(a.reshape(1, 1, n, 7), image, padding=1)),
    "conv1d": of(lambda a, b, n: F.conv1d(a.t().reshape(1, 7, n), weight[None, :, :].permute(1, 2, 0))),
    "max_pool2d": of(lambda a, b, n: F.max_pool2d(a.reshape(1, 1, n, 7), 2)),
    "avg_pool2d": of(lambda a, b, n: F.avg_pool2d(a.reshape(1, 1, n, 7), 2)),
    "interpolate": of(lambda a, b, n: F.interpolate(a.reshape(1, 1, n, 7), scale_factor=2)),
    "unfold": of(lambda a, b, n: a.unfold(0, 2, 1)),
    "attention": of(lambda a, b, n: F.scaled_dot_product_attention(a[None], b[None], b[None])),
    "train": train,
}

#: as `OTHERS`, of a and b with n rows of 7; what calls LAPACK is left out, as NumPy's ctypes leaves cycles where it is not compiled
MORE = """
torch.linalg.inv(b.t() @ b / n + torch.eye(7, dtype=torch.float64))
a @ row
torch.outer(a[:, 0], row)
torch.tensordot(a, b, ([0], [0]))
torch.addmm(row, a, torch.eye(7, dtype=torch.float64))
torch.linalg.matrix_power(a.t() @ b, 2)
torch.linalg.multi_dot([a, b.t(), a])
torch.kron(a, b[:2])
torch.fft.rfft(a).real
torch.complex(a, b).mul(2j).real
torch.cdist(a, b)
a.quantile(0.5)
a.median(0)
a.detach().histc(5)
b.unique()
(b > 0.5).nonzero()
long[:n].bincount()
long[:n].sum()
torch.searchsorted(b[:, 0].contiguous(), row)
a.scatter_add(0, torch.zeros(2, 7, dtype=torch.int64), b)
a.index_add(0, long[:n].remainder(3), b)
(a * 1).index_put((long[:3],), row)
a.select_scatter(row, 0, 1)
a.take(long[:3])
a.take_along_dim(torch.zeros(2, 7, dtype=torch.int64), 0)
a.masked_select(b > 0.5)
a.kthvalue(2, 0)
a.cummax(0)
a.logcumsumexp(0)
a.diff(dim=0)
a.tril()
torch.diag(a[:, 0])
a.diagonal()
a.repeat(2, 1)
a.repeat_interleave(2, 0)
a.tile(2)
a.roll((1, 1), (0, 1))
a.rot90()
a.chunk(2, 1)[0]
a.unbind(0)[1]
a.narrow(0, 1, 3)
a.transpose(0, 1).contiguous()
a[None].movedim(0, 1)
torch.meshgrid(a[:, 0], row, indexing="ij")
torch.linspace(0, 1, n)
torch.eye(n)
torch.empty(n, 7).copy_(b)
torch.empty(n, 7).fill_(2)
torch.empty(n, 7).zero_()
a.var(0)
a.amin((0, 1))
(b > 0).any(0)
(b > 0).all()
a.nansum(0)
a.nanmean()
b.count_nonzero()
torch.linalg.vector_norm(a, 3, dim=1)
a.half() * 2
(a > b) & (b > 0)
F.normalize(a)
F.cosine_similarity(a, b)
F.pairwise_distance(a, b)
F.binary_cross_entropy(a, b)
F.binary_cross_entropy_with_logits(a, b)
F.kl_div(a, b)
F.huber_loss(a, b)
F.multi_margin_loss(a, labels(n))
F.triplet_margin_loss(a, b, b * 2)
F.poisson_nll_loss(a, b)
F.gaussian_nll_loss(a, b, b)
F.ctc_loss(a.log_softmax(1)[:, None], torch.tensor([[1, 2]]), torch.tensor([n]), torch.tensor([2]))
F.prelu(a, row[:1])
F.glu(a[:, :6])
F.softmin(a, 1)
F.instance_norm(a.reshape(1, 7, n))
F.rms_norm(a, (7,))
F.local_response_norm(a.reshape(1, 7, n), 3)
F.adaptive_avg_pool1d(a.reshape(1, 7, n), 3)
F.max_pool1d(a.reshape(1, 7, n), 2)
F.lp_pool1d(a.reshape(1, 7, n), 2, 2)
F.conv_transpose1d(a.reshape(1, 1, n * 7), row[:3].reshape(1, 1, 3))
F.conv1d(a.t().reshape(1, 7, n), row.reshape(7, 1, 1), groups=7)
F.conv1d(a.t().reshape(1, 7, n), weight.detach().reshape(1, 7, 3), stride=2)
F.unfold(a.reshape(1, 1, n, 7), 3)
F.grid_sample(a.reshape(1, 1, n, 7), b[:, :6].reshape(1, 3, n, 2)[:, :2], align_corners=False)
F.pad(a[None], (1, 1), mode="reflect")
F.interpolate(a.reshape(1, 1, n, 7), size=(5, 5), mode="bilinear")
F.embedding_bag(long[:n].reshape(1, n), weight.t())
F.one_hot(long[:n], 5)
"""


def offence(step) -> str | None:
    """What is wrong with an op's later sizes; None where nothing is."""
    for n in FIRST:
        step(n)
    gc.collect()
    gc.freeze()  # so that the next looks at what is new only
    made.clear()
    for n in LATER:
        step(n)
    texts = list(made)
    garbage = gc.collect()
    if garbage or texts:
        return f"{garbage} objects in cycles, made again: {sorted(set(texts))} ({len(texts)} times)"
    return None


def main() -> None:
    warnings.simplefilter("ignore")
    gc.disable()
    names = [n for n, o in OPS.items() if n == o.name and o.kind == "pointwise" and hasattr(o.rule, "params")]
    steps = {n: pointwise(n) for n in sorted(names)}
    steps |= {n + "_": in_place(n + "_") for n in sorted(names) if n + "_" in OPS and OPS[n + "_"].kind == "inplace"}
    steps |= {f"[{n}]": step for n, step in OTHERS.items()}
    steps |= {f"[{line}]": of(eval(f"lambda a, b, n: {line}")) for line in MORE.strip().splitlines()}
    done = failed = 0
    for name, step in steps.items():
        if len(sys.argv) > 1 and not any(part in name for part in sys.argv[1:]):
            continue
        try:
            found = offence(step)
        except Exception as error:
            failed += 1
            print(f"failed {name}: {type(error).__name__}: {str(error)[:120]}")
            continue
        done += 1
        if found:
            print(f"wrong {name}: {found}")
    print(f"{done} done, {failed} failed")


if __name__ == "__main__":
    main()
