"""bfloat16 beside PyTorch's: conversions bit by bit, every op (of float16 too), module and optimizer of PyTorch's databases, files, texts, refusals.

A sample of the databases is walked over; BFLOAT16_EVERY=1 walks over all. Values agree to bfloat16's own resolution, or are as near as PyTorch's
to what float64 gives.
"""

from __future__ import annotations

import io
import os
from unittest import mock

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch.testing._internal.common_methods_invocations import op_db  # noqa: E402
from torch.testing._internal.common_modules import module_db  # noqa: E402

import autograd_nb as ag  # noqa: E402

from . import moduledb, opdb  # noqa: E402
from .snippets import check  # noqa: E402

EVERY = int(os.environ.get("BFLOAT16_EVERY", "50"))
HALVES = (torch.bfloat16, torch.float16)
OPS = [(op, d) for op in op_db if not opdb.outside(opdb.title(op)) for d in HALVES if d in op.supported_dtypes("cpu")]
#: what does not agree, and why
KNOWN: dict[str, str] = {
    "Embedding": "gradients of rows that are taken often add up in float32 here; PyTorch's sums stop growing",
    "ldexp": "the gradient of an exponent for many numbers adds up what was rounded",
    "matrix_exp of torch.float16": "PyTorch's own is wrong: exp(1) = -20896",
}


def bits(t):
    """The bits of a bfloat16 tensor of either library."""
    return t.contiguous().view(torch.int16 if isinstance(t, torch.Tensor) else ag.int16).numpy().view(np.uint16)


@pytest.mark.parity
def test_every_number_is_read_and_rounded_as_there():
    every = np.arange(1 << 16, dtype=np.uint16).view(np.int16)
    mine, theirs = ag.from_numpy(every).view(ag.bfloat16), torch.from_numpy(every).view(torch.bfloat16)
    np.testing.assert_array_equal(mine.float().numpy(), theirs.float().numpy())
    np.testing.assert_array_equal(np.array(mine.tolist()), np.array(theirs.tolist()))
    real = ~np.isnan(theirs.float().numpy())
    np.testing.assert_array_equal(bits(mine.float().bfloat16())[real], bits(theirs)[real])
    near = np.concatenate([(every.view(np.uint16).astype(np.uint32) << 16) + n for n in (1, 0x7FFF, 0x8000, 0x8001, 0xFFFF)]).view(np.float32)
    real = ~np.isnan(near)
    with np.errstate(all="ignore"):
        expected = bits(torch.from_numpy(near).bfloat16())
    np.testing.assert_array_equal(bits(ag.from_numpy(near).bfloat16())[real], expected[real])
    np.testing.assert_array_equal(bits(ag.tensor(near[:70000].copy(), dtype=ag.bfloat16))[real[:70000]], expected[:70000][real[:70000]])
    assert ag.from_numpy(near).bfloat16().isnan().numpy()[~real].all()


@pytest.mark.parity
@pytest.mark.parametrize("op, dtype", OPS[::EVERY], ids=lambda value: opdb.title(value) if hasattr(value, "name") else str(value)[6:])
def test_op(op, dtype):
    outcome = opdb.check(op, 2, (dtype,), False)
    known = KNOWN.get(f"{opdb.title(op)} of {dtype}", KNOWN.get(opdb.title(op)))
    if known:
        pytest.xfail(known)
    assert outcome.state == "passed", "\n".join(outcome.reasons)


@pytest.mark.parity
@pytest.mark.parametrize("dtype", HALVES, ids=str)
@pytest.mark.parametrize("causal", [False, True])
def test_gradients_of_attention_are_as_near_as_there(dtype, causal):
    """Those of queries and keys are differences of products with the weights: weights of half precision would lose them."""
    generator = torch.Generator().manual_seed(0)
    given = [(torch.randn(2, 3, 8, 16, generator=generator) * 3).to(dtype) for _ in range(4)]

    def gradients(library, tensors):
        leaves = [t.requires_grad_() for t in tensors[:3]]
        y = library.nn.functional.scaled_dot_product_attention(*leaves, is_causal=causal)
        return [t.double().numpy() for t in library.autograd.grad(y, leaves, tensors[3])]

    exact = gradients(torch, [t.double() for t in given])
    mine, theirs = gradients(ag, [opdb.taken(t) for t in given]), gradients(torch, [t.clone() for t in given])
    for name, want, got, there in zip("qkv", exact, mine, theirs, strict=True):
        errors = [np.sqrt(np.square(found - want).mean()) for found in (got, there)]
        assert errors[0] <= 1.01 * errors[1], name


@pytest.mark.parity
@pytest.mark.parametrize("info", module_db[:: max(EVERY // 3, 1)], ids=lambda info: info.module_cls.__name__)
def test_module(info):
    """Whole layers round many times, each library elsewhere: they agree to some units in the last place."""
    with mock.patch.dict(opdb.TOLERANCE, {torch.bfloat16: (6e-2, 6e-2)}):
        outcome = moduledb.check(info, 2, (torch.bfloat16,))
    there = [r for r in outcome.reasons if ("not implemented for 'BFloat16'" in r and "functional.py" in r) or "pooling.py" in r]  # PyTorch has no kernel
    if info.module_cls.__name__ in KNOWN:
        pytest.xfail(KNOWN[info.module_cls.__name__])
    assert outcome.passed == outcome.samples - len(there), "\n".join(outcome.reasons)


OPTIMIZERS = [
    "SGD(p, 0.1, momentum=0.9, nesterov=True, weight_decay=0.1)", "Adam(p, 0.1)", "AdamW(p, 0.1, amsgrad=True)", "RMSprop(p, 0.1)", "Adagrad(p, 0.1)",
    "Adadelta(p)", "Adamax(p, 0.1)", "NAdam(p, 0.1)", "RAdam(p, 0.1)", "Rprop(p, 0.1)", "ASGD(p, 0.1)", "Adafactor(p, 0.1)",
]  # fmt: skip


@pytest.mark.parity
@pytest.mark.parametrize("text", OPTIMIZERS[:: max(EVERY // 8, 1)], ids=lambda text: text.split("(")[0])
def test_optimizer(text):
    """Parameters and states are of bfloat16, as there, and nearer to those of float32 than PyTorch's, or as near."""

    def run(library, dtype):
        p = [library.nn.Parameter(library.arange(1.0, 7).reshape(2, 3).div(4).to(dtype))]
        optimizer = eval(f"optim.{text}", {"optim": library.optim, "p": p})
        for k in range(4):
            p[0].grad = (library.arange(6.0).reshape(2, 3).sub(2.5) * (k + 1) / 4).to(dtype)
            optimizer.step()
        return p[0].detach(), {k: v for k, v in optimizer.state[p[0]].items() if hasattr(v, "dtype")}

    (mine, state), (theirs, their_state) = run(ag, ag.bfloat16), run(torch, torch.bfloat16)
    exact = run(torch, torch.float32)[0].numpy()
    assert {k: repr(v.dtype) for k, v in state.items()} == {k: repr(v.dtype) for k, v in their_state.items()}
    wrong, allowed = (np.abs(t.float().numpy() - exact).max() for t in (mine, theirs))
    assert wrong <= max(allowed, 2.0**-7 * np.abs(exact).max())


@pytest.mark.parity
def test_files(tmp_path):
    for first, second in ((ag, torch), (torch, ag)):
        x = first.arange(6.0).reshape(2, 3).div(3).to(first.bfloat16).t()
        file = io.BytesIO()
        first.save({"x": x, "layer": first.nn.Linear(2, 2).bfloat16().state_dict()}, file)
        file.seek(0)
        found = second.load(file)
        assert repr(found["x"].dtype) == "torch.bfloat16" and found["x"].stride() == x.stride() and found["layer"]["bias"].dtype is second.bfloat16
        np.testing.assert_array_equal(bits(found["x"]), bits(x))


SNIPPETS = {
    "texts": "x = t.tensor([1.0, 2.5, -0.0, float('inf')], dtype=t.bfloat16); r = [str(x), repr(x[1]), f'{x[1]:.3f}', str(x * 1e10), str(x.reshape(2, 2))]",
    "numbers": "x = t.tensor([[1.2, 2.7]], dtype=t.bfloat16); r = [x.tolist(), x[0, 1].item(), float(x[0, 0]), int(x[0, 1]), bool(x[0, 0])]",
    "numpy": "t.ones(2, dtype=t.bfloat16).numpy()",
    "limits": "i = t.finfo(t.bfloat16); r = [i.eps, i.max, i.min, i.tiny, i.smallest_normal, i.resolution, i.bits, i.dtype]",
    "names": "x = t.ones(2, dtype=t.bfloat16); r = [x.type(), x.element_size(), x.is_floating_point(), str(x.dtype), x.storage().nbytes()]",
    "promotion": "r = [str(t.promote_types(t.bfloat16, d)) for d in (t.bool, t.uint8, t.int64, t.float16, t.float32, t.float64, t.complex64, t.complex128)]",
    "results": "x = t.ones(2, dtype=t.bfloat16); r = [str((x + y).dtype) for y in (1, 2.5, 1j, t.ones(2), t.tensor(1.0), t.ones(2).half(), t.ones(2).int())]",
    "products of other dtypes": "t.ones(2, 2, dtype=t.bfloat16) @ t.ones(2, 2)",
    "layers of other dtypes": "nn.Linear(2, 2).bfloat16()(t.ones(1, 2))",
    "fft": "t.fft.fft(t.ones(2, dtype=t.bfloat16))",
    "solve": "t.linalg.solve(t.eye(2, dtype=t.bfloat16), t.ones(2, dtype=t.bfloat16))",
    "cdist": "t.cdist(t.ones(2, 2, dtype=t.bfloat16), t.ones(2, 2, dtype=t.bfloat16))",
    "randperm": "t.randperm(258, dtype=t.bfloat16)",
    "overflow": "r = t.full((2,), 3.4e38, dtype=t.bfloat16).float(), t.tensor([3.39e38, 1e-45], dtype=t.bfloat16).float()",
    "full of too much": "t.full((2,), 1e39, dtype=t.bfloat16)",
    "in place": "x = t.ones(2, 3, dtype=t.bfloat16); x[0] += 0.1; x[:, 1] = 3.3; x.t()[2].mul_(1.7); x.clamp_(max=2.9); r = x.float(), x._version",
    "bits": "x = t.tensor([1.5, -2.0], dtype=t.bfloat16); r = x.view(t.int16), x.view(t.uint8), t.tensor([16256], dtype=t.int16).view(t.bfloat16).float()",
    "sorting": "x = t.tensor([3.0, float('nan'), -1.0, -0.0, float('-inf')], dtype=t.bfloat16); v, i = x.sort(); "
    "r = v.float(), i, x.argmax(), x.topk(2)[1], x.unique().float()",
    "gradients": "x = t.tensor([1.1, 2.2], dtype=t.bfloat16, requires_grad=True); (x * x.float()).sum().backward(); r = x.grad.float(), str(x.grad.dtype)",
    "the default": "t.set_default_dtype(t.bfloat16); "
    "r = [str(v.dtype) for v in (t.ones(2), t.tensor(1.5), t.rand(2), nn.Linear(2, 2).weight)]; t.set_default_dtype(t.float32)",
    "one and half an ulp": "x = t.tensor([1.0, 1.0078125], dtype=t.bfloat16); "
    "r = (x + 2.0**-8).float(), (x + 2.0**-8 * 1.01).float(), (x * x).float(), (x - 2.0**-9).float()",
    "sums": "r = t.full((4096,), 0.1, dtype=t.bfloat16).sum().float(), t.full((300,), 1.0, dtype=t.bfloat16).cumsum(0)[-1].float()",
    "copies": "x = t.ones(2, dtype=t.bfloat16); "
    "r = x.to(t.float64), x.long(), x.bool(), x.half(), t.tensor([1e30]).bfloat16().half(), t.tensor([2.7]).bfloat16().int()",
}


@pytest.mark.parity
def test_snippets():
    try:
        check(SNIPPETS, "", 1e-6)
    finally:
        for library in (ag, torch):
            library.set_default_dtype(library.float32)


@pytest.mark.parity
def test_compiled_functions_give_the_same_bits():
    def step(x, w):
        y = (x @ w).tanh().softmax(-1)
        return (y * y + y.exp()).sum() * 2.5

    x, w = ag.linspace(-1, 1, 12).reshape(3, 4).bfloat16(), ag.linspace(-2, 2, 16).reshape(4, 4).bfloat16().requires_grad_()
    compiled, found = ag.compile(step), []
    for call in (step, compiled, compiled, compiled):
        w.grad = None
        y = call(x, w)
        y.backward()
        found.append((y.item(), bits(w.grad).tolist()))
    assert found[1:] == found[:1] * 3


@pytest.mark.parity
def test_kernels_of_the_two_halves_and_of_their_bits_are_not_mixed_up():
    """All three lie in memory as the same 16 bits."""
    for shape in ((5,), (2, 3)):
        numbers = ag.arange(float(np.prod(shape))).reshape(shape)
        for op in (lambda x: x + x, lambda x: x * 2, lambda x: x.sum(), lambda x: x.max(), lambda x: x.cumsum(0), lambda x: x.sort(0)[0], lambda x: x.flip(0)):
            one, other, whole = (op(numbers.to(d)) for d in (ag.float16, ag.bfloat16, ag.int16))
            assert one.float().tolist() == other.float().tolist() == whole.float().tolist()


@pytest.mark.parity
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_quotients_by_numbers_are_rounded_down_as_they_are(dtype):
    """The number is not rounded to half precision first, as with other arithmetic."""
    calls = (
        "t.div(x, {b}, rounding_mode='floor')", "t.div(x, {b}, rounding_mode='trunc')", "t.floor_divide(x, {b})", "x // {b}", "{b} // x",
        "x.clone().floor_divide_({b})", "x.clone().div_({b}, rounding_mode='trunc')", "x.clone().div_({b}, rounding_mode='floor')",
    )  # fmt: skip
    numbers = ("0.1", "0.3", "70000.0", "t.tensor(0.1)", "t.tensor(0.1, dtype=t.float64)")
    before = f"x = t.tensor([60000.0, 1.0, 2.5, 0.001, -3.0, 0.7, 0.3] * 5, dtype=t.{dtype})"
    check({code: f"r = {code}" for call in calls for b in numbers if (code := call.format(b=b))}, before, kinds=True)
