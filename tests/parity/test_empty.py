"""Tensors without elements: the shape, the error or the gradient that PyTorch gives."""

from __future__ import annotations

import inspect

import pytest

torch = pytest.importorskip("torch")

from autograd_nb.ops.core.registry import OPS  # noqa: E402

from .snippets import check, outcome  # noqa: E402

#: (batch, channels, size, outputs, kernel, groups, padding, stride)
CONVOLUTIONS = [
    (0, 2, 4, 3, 2, 1, 0, 1), (2, 0, 4, 3, 2, 1, 0, 1), (2, 2, 0, 3, 2, 1, 0, 1), (2, 2, 0, 3, 2, 1, 1, 1), (2, 2, 4, 0, 2, 1, 0, 1),
    (0, 2, 4, 4, 2, 2, 1, 2), (2, 2, 4, 3, 0, 1, 0, 1), (0, 0, 4, 3, 2, 1, 0, 1), (0, 2, 1, 3, 2, 1, 0, 1), (0, 4, 0, 4, 1, 4, 0, 1),
    (2, 2, 0, 4, 1, 2, 0, 1), (0, 2, 1, 3, 3, 1, 0, 1),
]  # fmt: skip


@pytest.mark.parity
@pytest.mark.parametrize("n", (1, 2, 3))
@pytest.mark.parametrize("transpose", (False, True))
def test_convolutions(n, transpose):
    codes = {}
    for batch, channels, size, outputs, kernel, groups, padding, stride in CONVOLUTIONS:
        k = f"{kernel}," * n
        weight = f"{channels}, {outputs} // {groups}, {k}" if transpose else f"{outputs}, {channels} // {groups}, {k}"
        for bias in ("None", f"t.ones({outputs}).requires_grad_()"):
            codes[f"N {batch}, C {channels}, L {size}, O {outputs}, K {kernel}, groups {groups}, padding {padding}, {bias}"] = (
                f"x = t.ones({batch}, {channels}, {f'{size},' * n}).requires_grad_(); w = t.ones({weight}).requires_grad_(); b = {bias}\n"
                f"y = F.conv{'_transpose' * transpose}{n}d(x, w, b, stride={stride}, padding={padding}, groups={groups})\n"
                "y.sum().backward(); r = y, x.grad, w.grad, None if b is None else b.grad"
            )
    codes["no batch"] = (
        f"x = t.ones(2, {'0,' * n}).requires_grad_(); w = t.ones(2, 2, {'1,' * n}); y = F.conv{'_transpose' * transpose}{n}d(x, w); r = y"
    )
    check(codes)


@pytest.mark.parity
@pytest.mark.parametrize("n", (1, 2, 3))
def test_pools_and_padding(n):
    codes = {}
    for sizes in ("0, 2, 4", "2, 0, 4", "2, 2, 0", "2, 2, 1", "0, 2, 1"):
        batch, channels, size = sizes.split(", ")
        x = f"x = t.ones({batch}, {channels}, {f'{size},' * n}).requires_grad_(); "
        calls = [f"max_pool{n}d(x, 2)", f"avg_pool{n}d(x, 2)", f"adaptive_max_pool{n}d(x, 2)", "pad(x, (1, 1))", "interpolate(x, scale_factor=2)"]
        if channels != "0":  # (there PyTorch's average pools fail in their backward pass only)
            calls.append(f"adaptive_avg_pool{n}d(x, 2)")
        calls += [f"pad(x, (1, 1) * {n}, mode='{mode}')" for mode in ("reflect", "replicate")]
        codes |= {f"{call} of {sizes}": f"{x}y = F.{call}; y.sum().backward(); r = y, x.grad" for call in calls}
    check(codes)


@pytest.mark.parity
def test_joining():
    """Old-style empty tensors of shape (0,) join anything, and the result requires grad if they do."""
    codes = {}
    for name in ("cat", "hstack", "vstack", "dstack", "concat", "column_stack", "stack", "row_stack", "concatenate"):
        for empty in ("(0,)", "(0, 3)", "(2, 0)"):
            for other in ("(3,)", "(2, 3)", "(0,)"):
                for order in ("[e, x]", "[x, e]", "[e, e]"):
                    codes[f"{name}({order}) of {empty} and {other}"] = (
                        f"e = t.zeros({empty}).requires_grad_(); x = t.ones({other}); y = t.{name}({order})\n"
                        "r = y, t.autograd.grad(y.sum(), e, allow_unused=True) if y.requires_grad else None"
                    )
                    codes[f"{name}({order}) of {empty} as float64 and {other}"] = (
                        f"e = t.zeros({empty}, dtype=t.float64); x = t.ones({other}); r = t.{name}({order})"
                    )
    check(codes)


CALLS = """
F.layer_norm(x, x.shape[-1:])   F.rms_norm(x, x.shape[-1:])   F.linear(x, t.ones(3, x.shape[-1]))   x.matmul(t.ones(x.shape[-1], 2))
F.linear(x, t.ones(3, x.shape[-1]), t.ones(3))   F.linear(x, t.ones(0, x.shape[-1]))   x @ x.mT   x.mT @ x   F.softmax(x, -1)   F.softmax(x, 0)
x.sum()   x.sum(0)   x.sum(-1)   x.mean()   x.mean(0)   x.mean(-1)   x.prod()   x.prod(0)   x.max()   x.amax()   x.amax(0)   x.amax(-1)
x.max(0)   x.max(-1)   x.argmax()   x.argmax(0)   x.argmax(-1)   x.median()   x.median(0)   x.median(-1)   x.mode(0)   x.kthvalue(1, 0)
x.topk(0, 0)   x.topk(1, -1)   x.sort(0)   x.sort(-1)   x.argsort(0)   x.cumsum(0)   x.cumprod(0)   x.logsumexp(0)   x.logsumexp(-1)
x.std()   x.std(0)   x.var(-1)   x.norm()   x.norm(dim=0)   x.norm(1, 0)   x.any()   x.all()   x.any(0)   x.all(-1)   x.flip(0)   x.roll(1, 0)
x.repeat(2, 1, 1)   x.tile(2)   x.unfold(0, 0, 1)   x.chunk(2, 0)   x.chunk(3, -1)   x.split(1, 0)   t.tensor_split(x, 2)   x.unbind(0)
x.nonzero()   x[x > 0]   x.masked_select(x > 0)   x.index_select(0, t.tensor([], dtype=t.int64))   x.gather(0, t.zeros(0, *x.shape[1:], dtype=t.int64))
x.new_zeros(x.shape).scatter_add(0, t.zeros(x.shape, dtype=t.int64), x)   x.new_zeros(x.shape).scatter(0, t.zeros(x.shape, dtype=t.int64), x)
t.cdist(x, x)   F.mse_loss(x, x)   F.l1_loss(x, x, reduction='sum')   F.huber_loss(x, x)   t.einsum('...ij->...ji', x)   t.outer(x.flatten(), x.flatten())
x.view(-1)   x.reshape(-1, x.shape[-1])   x.flatten()   t.stack([x, x])   x.squeeze()   t.diff(x)   t.bmm(x, x.mT)   t.tensordot(x, x, 3)
F.normalize(x)   x.renorm(2, 0, 1)   x.clamp(0, 1)   x.where(x > 0, x)   t.aminmax(x)   t.quantile(x, 0.5)   x.item()   t.count_nonzero(x, 0)
"""


@pytest.mark.parity
@pytest.mark.parametrize("shape", ("0, 3, 4", "2, 0, 4", "2, 3, 0", "0,", "0, 0", "3, 0"))
def test_other_ops(shape):
    after = """
f = [q for q in (y if isinstance(y, (tuple, list)) else [y]) if isinstance(q, t.Tensor)]; d = [q for q in f if q.requires_grad]
r = f, t.autograd.grad(sum(q.sum() for q in d), x, allow_unused=True) if d else None
"""
    calls = [call.strip() for line in CALLS.splitlines() for call in line.split("   ") if call]
    check({call: f"x = t.zeros({shape}).requires_grad_()\ny = {call}{after}" for call in calls})


@pytest.mark.parity
def test_norms_of_matrices():
    """The greatest of no sums or singular values is 0; there is no least of none."""
    codes = {}
    for shape in ("(5, 0)", "(0, 5)", "(0, 0)", "(2, 0, 3)", "(0, 2, 3)", "(2, 3, 0)"):
        for order in ("1", "-1", "float('inf')", "-float('inf')", "2", "-2", "'fro'", "'nuc'"):
            for dims in ("(-2, -1)", "(1, 0)"):
                call = f"linalg.matrix_norm(x, {order}, {dims}, {dims == '(1, 0)'})"
                codes[f"{call} of {shape}"] = f"x = t.ones{shape}.requires_grad_(); y = t.{call}; y.sum().backward(); r = y, x.grad"
    check(codes)


def test_blocks_of_nothing_keep_their_gradients():
    """An operand without columns takes part: the result requires grad by it, and its gradient is there."""
    shapes = [("0", "0", "0"), ("0, 5", "0"), ("0", "0, 5"), ("2, 3", "0"), ("0", "2, 3"), ("0, 0", "1"), ("1", "3, 0")]
    check({str(found): "; ".join((
        *(f"v{k} = t.ones({s}).requires_grad_()" for k, s in enumerate(found)), f"v = [{', '.join(f'v{k}' for k in range(len(found)))}]",
        "y = t.block_diag(*v)", "z = t.block_diag(v[0], v[1].detach())",
        "r = y.detach(), z.requires_grad, [g is None for g in t.autograd.grad(y.sum(), v, allow_unused=True)]")) for found in shapes})


@pytest.mark.parity
@pytest.mark.parametrize("shape", ("()", "(1,)", "(0,)", "(2, 0)", "(2, 1)", "(3,)"))
def test_running_sums_of_truth_values(shape):
    """They are refused where there is something to add."""
    ends = ("_(0)", "_(-1)", "(0)", "(0, dtype=t.bool)", "_(0, dtype=t.bool)", "_(0, dtype=t.int64)")
    calls = [f"x.{name}{end}" for name in ("cumsum", "cumprod") for end in ends]
    check({f"{call} of {values}": f"x = t.{values}({shape}, dtype=t.bool); r = {call}, x" for call in calls for values in ("ones", "zeros")})


@pytest.mark.parity
@pytest.mark.parametrize("name", ["cumsum", "cumprod", "logcumsumexp", "prod", "sum", "logsumexp", "softmax", "log_softmax", "norm", "var", "flip", "diff"])
def test_second_derivatives_along_no_elements(name):
    codes = {}
    for shape in ("(2, 0, 3)", "(0,)", "(0, 2)"):
        for dim in (0, -1, 1):
            line = f"x = t.ones({shape}, dtype=t.float64, requires_grad=True); y = t.{name}(x, dim={dim})"
            codes[f"{shape}, {dim}"] = f"{line}\ng, = t.autograd.grad((y * y).sum(), x, create_graph=True); (g * g).sum().backward(); r = g.detach(), x.grad"
    check(codes)


@pytest.mark.parity
def test_assigning_to_nothing_is_no_write():
    view = "x = t.ones(3, 4, requires_grad=True)\nwith t.no_grad(): v = x.movedim(0, -2)\nv = v, v.is_leaf\nv = v[0]\n"
    check({f"{i}": f"{view}v[{i}] = x * 2; r = v.requires_grad, v._version" for i in ("False", "t.tensor(False)", "True", "0:0")})


@pytest.mark.parity
def test_integers_of_empty_tensors_may_be_divided_by_zero():
    calls = ("x % y", "x // y", "t.fmod(x, y)", "t.div(x, y, rounding_mode='trunc')", "t.div(x, y, rounding_mode='floor')", "t.floor_divide(x, y)")
    calls += ("x.clone().remainder_(y)", "x.clone().fmod_(y)", "x.clone().floor_divide_(y)", "x.clone().div_(y, rounding_mode='floor')")
    shapes = ("0", "2, 0", "2")
    zeros = ("0", "t.tensor(0)", "t.zeros(1, dtype=t.int64)", "t.zeros(0, dtype=t.int32)", "t.tensor([1, 0])")
    check(
        {f"{call}; {shape}; {zero}": f"x, y = t.ones({shape}, dtype=t.int32), {zero}\nr = {call}" for call in calls for shape in shapes for zero in zeros}
    )


@pytest.mark.parity
def test_numbers_that_an_op_does_not_take_are_refused_of_nothing_too():
    calls = ("x.kthvalue(1, {})", "x.median({})", "x.nanmedian({})", "x.mode({})", "x.sort({})", "x.topk(0, {})", "x.argmax({})", "x.argmin({})")
    made = "x = t.zeros({}, dtype=t.{}); r = {}"
    check({
        f"{call} {shape} {dtype} {dim}": made.format(shape, dtype, call.format(dim))
        for call in calls for shape in ((0, 4), (4, 0), (2, 3), ()) for dtype in ("complex64", "bool", "float16", "int64") for dim in (0, -1)
    })  # fmt: skip
    loss = "x = t.zeros({}, dtype=t.{}); r = F.{}(x, t.zeros({}, dtype=t.int64))"
    check({
        f"{name} {shape} {dtype} {n}": loss.format(shape, dtype, name, n)
        for name in ("nll_loss", "cross_entropy") for shape in ((0, 3), (2, 3), (3,)) for dtype in ("complex64", "bool", "int64", "float32") for n in (0, 2)
    }, kinds="subclasses")  # fmt: skip


def _calls_with_a_dim():
    """Every function that takes one or two tensors and a dim, as a call of `x`."""
    places = {"torch": "t", "nn.functional": "F", "linalg": "t.linalg", "special": "t.special"}
    for name, op in OPS.items():
        place = next((p for s, p in places.items() if s in op.namespaces), None)
        if place is None or "norm_except_dim" in name:  # (which PyTorch refuses where the dim itself is empty)
            continue
        if "dim" not in inspect.signature(op.call).parameters:
            continue
        calls = [f"{place}.{name.rpartition('.')[2]}({'x, ' * n}dim={{}})" for n in (1, 2)]
        yield from [call for call in calls if outcome(f"x = t.ones(3, 3, 3); r = {call.format(0)}", torch)[0] == "result"][:1]


@pytest.mark.parity
def test_functions_along_a_dim_of_tensors_that_are_empty_along_any():
    gradient = "r = r if isinstance(r, t.Tensor) else r[0]; r.sum().backward(); r = x.grad"
    calls = list(_calls_with_a_dim())
    assert len(calls) > 50
    check({
        f"{call} {shape} {dim} {recorded}": f"x = t.ones({shape}, requires_grad={recorded}); r = {call.format(dim)}; {gradient if recorded else ''}"
        for call in calls for shape in ("0, 3, 3", "3, 0, 3", "3, 3, 0") for dim in range(3) for recorded in (False, True)
    })  # fmt: skip


@pytest.mark.parity
@pytest.mark.parametrize("n", (2, 3))
def test_pools_at_random_places_of_no_outputs(n):
    sizes = "6, " * n
    pool = "F.fractional_max_pool{}d(x, 2, output_size={}, return_indices=True)"
    code = "x = t.ones({}, {}requires_grad=True); y, i = " + pool + "; y.sum().backward(); r = y, i, x.grad"
    outputs = (0, -1, (0,) + (1,) * (n - 1), (1,) * (n - 1) + (0,), (9,) * (n - 1) + (0,), (0,) + (9,) * (n - 1))
    check({f"{lead} {output}": code.format(lead, sizes, n, output) for lead in ("2, 3", "3", "0, 3") for output in outputs})


#: calls of two operands of which one may be without elements, and the other not
UNEQUAL = (
    *(f"t.cdist(x, y, {p})" for p in ("0.", "1.", "2.", "3.", "t.inf")), "x @ y.mT", "t.cat([x, y])", "t.vstack([x, y])", "t.tensordot(x, y, ([1], [1]))",
    "t.einsum('ik,jk->ij', x, y)", "x.unsqueeze(1) - y", "x.unsqueeze(1) * y", "t.kron(x, y)", "F.linear(x, y)", "F.linear(x, y, y.sum(1))",
    "t.block_diag(x, y)", "F.conv1d(x.mT[None], y[:, :, None])",
    "F.cosine_similarity(x.unsqueeze(1), y, dim=-1)", "t.linalg.multi_dot([x, y.mT, x])", "t.addmm(x @ y.mT, x, y.mT)",
    "F.bilinear(x, x, y[:, :, None] * y[:, None])",
    "F.pairwise_distance(x.unsqueeze(1), y)", "t.cross(x.unsqueeze(1)[..., :3], y[..., :3], dim=-1)", "t.where(x.unsqueeze(1) > 1, x.unsqueeze(1), y)",
)  # fmt: skip


@pytest.mark.parity
@pytest.mark.parametrize("call", UNEQUAL)
def test_one_of_two_operands(call):
    shapes = ("0, 4", "3, 4", "1, 4", "40, 4", "3, 0", "0, 0")
    check({
        f"{a}; {b}; {d}": f"x = t.ones({a}, dtype=t.{d}).requires_grad_(); y = (t.ones({b}, dtype=t.{d}) * 2).requires_grad_(); z = {call}\n"
        "z.sum().backward(); r = z, x.grad, y.grad"
        for a in shapes for b in shapes for d in ("float32", "float64")
    })  # fmt: skip
