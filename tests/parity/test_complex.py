"""Complex tensors against PyTorch: its op database in complex dtypes, promotion, printing, and what is refused.

``python -m tests.parity.test_complex [name…]`` runs the database (all of it that supports complex numbers, or the named ops)
and prints which entries pass and why the others do not.
"""

from __future__ import annotations

import sys
import warnings
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch.testing._internal.common_methods_invocations import op_db  # noqa: E402

import autograd_nb as ag  # noqa: E402

from .opdb import RANDOM, find, leaves, with_gradients  # noqa: E402

TOLERANCE = {
    torch.complex128: (1e-7, 1e-9),
    torch.float64: (1e-7, 1e-9),
    torch.complex64: (3e-4, 5e-5),
    torch.float32: (3e-4, 5e-5),
}


class Unsupported(Exception):
    """A sample that is not about dense CPU tensors."""


def plain(value: Any) -> np.ndarray:
    value = value.detach()
    if isinstance(value, torch.Tensor):
        value = value.resolve_conj().resolve_neg()
    return value.numpy(force=True)


def ours(value: Any) -> Any:
    """A PyTorch argument as one of this library's."""
    if isinstance(value, torch.Tensor):
        if value.layout is not torch.strided or value.is_quantized or value.dtype in (torch.complex32, torch.bfloat16):
            raise Unsupported(str(value.dtype))
        return ag.from_numpy(plain(value).copy()).requires_grad_(value.requires_grad)
    if isinstance(value, torch.dtype):
        name = str(value).removeprefix("torch.")
        if not hasattr(ag, name):
            raise Unsupported(name)
        return getattr(ag, name)
    if isinstance(value, (torch.layout, torch.memory_format, torch.Generator)):
        raise Unsupported(str(value))
    if isinstance(value, torch.device):
        return "cpu"
    if isinstance(value, torch.Size):
        return ag.Size(value)
    if isinstance(value, (list, tuple)):
        return type(value)(ours(v) for v in value) if not hasattr(value, "_fields") else tuple(ours(v) for v in value)
    if isinstance(value, dict):
        return {k: ours(v) for k, v in value.items()}
    if isinstance(value, slice):
        return slice(*(ours(v) for v in (value.start, value.stop, value.step)))
    return value


def same(mine: Any, theirs: Any, what: str, second: bool = False) -> None:
    a, b = list(leaves(mine)), list(leaves(theirs))
    if not a and not b:
        assert mine == theirs or np.isclose(mine, theirs, equal_nan=True), f"{what}: {mine} instead of {theirs}"
        return
    assert len(a) == len(b), f"{what}: {len(a)} tensors instead of {len(b)}"
    for x, y in zip(a, b, strict=True):
        assert tuple(x.shape) == tuple(y.shape), f"{what}: shape {list(x.shape)} instead of {list(y.shape)}"
        assert repr(x.dtype) == repr(y.dtype), f"{what}: {x.dtype} instead of {y.dtype}"
        rtol, atol = TOLERANCE.get(y.dtype, (0, 0))
        p, q = plain(x), plain(y)
        scale = max(1.0, float(np.max(np.abs(np.where(np.isfinite(q), q, 0)), initial=0.0))) if rtol else 1.0
        if q.dtype.kind == "c":  # infinities of complex numbers have many faces: it is one if any part is
            bad = ~np.isfinite(q)
            assert not np.any(bad & np.isfinite(p)), f"{what}: {p} instead of {q}"
            p, q = np.where(bad, 0, p), np.where(bad, 0, q)
        np.testing.assert_allclose(p, q, rtol=rtol, atol=atol * scale, err_msg=what)


def seeds(rng: Any, tensors: list, library: Any) -> list:
    out = []
    for t in tensors:
        w = rng.uniform(0.5, 1.5, tuple(t.shape))
        if t.dtype.is_complex:
            w = w + 1j * rng.uniform(0.5, 1.5, tuple(t.shape))
        out.append(library.from_numpy(np.asarray(w)).to(t.dtype))
    return out


def run_sample(op: Any, sample: Any, second: bool) -> None:
    """Values, dtypes, gradients and second derivatives of one sample agree."""
    args, kwargs = ours((sample.input, *sample.args)), ours(sample.kwargs)
    theirs = op(sample.input, *sample.args, **sample.kwargs)
    mine = find(op)(*args, **kwargs)
    if isinstance(theirs, torch.Tensor) and theirs.layout is not torch.strided:
        raise Unsupported("sparse")
    same(mine, theirs, "value")
    t_in, m_in, t_out, m_out = with_gradients(sample, (args, kwargs), theirs, mine)
    if not t_out:
        return
    graph = second and op.supports_gradgrad
    t_w, m_w = (seeds(np.random.default_rng(0), o, lib) for o, lib in ((t_out, torch), (m_out, ag)))
    t_g = torch.autograd.grad(t_out, t_in, t_w, create_graph=graph, allow_unused=True)
    m_g = ag.autograd.grad(m_out, m_in, m_w, create_graph=graph, allow_unused=True)
    pairs = [(x, y) for x, y in zip(m_g, t_g, strict=True) if x is not None and y is not None]
    for x, y in pairs:
        same(x, y, "gradient")
    live = [(x, y) for x, y in pairs if y.requires_grad and x.requires_grad]
    if not graph or not live:
        return
    t_w, m_w = (
        seeds(np.random.default_rng(1), o, lib) for o, lib in (([y for _, y in live], torch), ([x for x, _ in live], ag))
    )
    t_h = torch.autograd.grad([y for _, y in live], t_in, t_w, allow_unused=True)
    m_h = ag.autograd.grad([x for x, _ in live], m_in, m_w, allow_unused=True)
    for x, y in zip(m_h, t_h, strict=True):
        if x is None or y is None:
            assert all(z is None or not np.any(plain(z)) for z in (x, y)), "second derivative: none"
        else:
            same(x, y, "second derivative")


def check(op: Any, dtypes: tuple, most: int | None = None) -> tuple[int, int, list[str]]:
    """(samples, passed, reasons) of an entry of the database."""
    samples = passed = 0
    reasons: list[str] = []
    for dtype in dtypes:
        if dtype not in op.supported_dtypes("cpu"):
            continue
        torch.manual_seed(0)
        differentiable = (op.supports_autograd and dtype.is_complex) or dtype.is_floating_point
        for sample in list(op.sample_inputs("cpu", dtype, requires_grad=differentiable))[:most]:
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                try:
                    run_sample(op, sample, dtype in (torch.complex128, torch.float64))
                    passed += 1
                except Unsupported:
                    continue
                except Exception as error:
                    if len(reasons) < 3:
                        reasons.append(f"{dtype} {type(error).__name__}: {' '.join(str(error).split())[:250]}")
            samples += 1
    return samples, passed, reasons


def title(op: Any) -> str:
    return f"{op.name} ({op.variant_test_name})" if op.variant_test_name else op.name


#: a sample of the entries that pass; the program runs all
NAMES = """
abs acosh add addcdiv addcmul addmm angle asin atan atanh bmm cat complex conj cov cumprod cumsum diff div dot exp expm1
eq fft.fft fft.fftn fft.fftshift fft.hfft fft.hfftn fft.ifft2 fft.ihfft fft.irfft fft.irfftn fft.rfft fft.rfftn gather
imag index_add index_put isclose istft lerp linspace log log1p logaddexp logsumexp masked_fill matmul mean mul
nn.functional.conv2d nn.functional.linear norm polar pow prod real reciprocal rsqrt scatter sgn sigmoid sinh sqrt std
stft sub sum tan tanh tril var vdot view_as_complex view_as_real where
"""


@pytest.mark.parity
@pytest.mark.parametrize("op", [op for op in op_db if op.name in NAMES.split() and not op.variant_test_name], ids=title)
def test_op(op):
    samples, passed, reasons = check(
        op, (torch.complex128, torch.float64) if op.name.startswith("fft.") else (torch.complex128,), 4
    )
    assert samples == passed, "\n".join(reasons)


TENSORS = [
    "t.tensor([[1 + 2j, 3 - 1j], [0.5j, -2]])", "t.tensor([1 + 2j], dtype=t.complex128)", "t.tensor([1e10 + 1j, 1e-5])",
    "t.tensor([complex('nan'), complex('inf'), -1j])", "t.zeros(0, dtype=t.complex64)", "t.arange(2000) * 1j", "t.tensor(1 + 1j)",
    "t.tensor([1e-8 + 1e8j, 3.0])", "t.tensor([[1.5 + 2j] * 7] * 2)", "t.tensor([1j], requires_grad=True) * 2",
    "t.tensor([1.0, 2.0]) * (1 + 1j)", "t.ones(2, dtype=t.float64) + 1j", "t.tensor([1, 2]) / (1 + 1j)", "2 ** t.tensor([1j, 1])",
    "t.ones(2, dtype=t.float32) * t.tensor(1j, dtype=t.complex128)", "t.tensor([1 + 2j]).real", "t.tensor([1j, 2]).abs()",
    "t.fft.rfft(t.tensor([1, 2, 3]))", "t.tensor([1j, 2]).to(t.complex128).sum()", "t.tensor([1j]).type()", "t.tensor([1j]).isreal()",
]  # fmt: skip


@pytest.mark.parity
@pytest.mark.parametrize("text", TENSORS)
def test_printed(text):
    mine, theirs = (repr(eval(text, {"t": t})) for t in (ag, torch))
    assert mine == theirs


PROGRAMS = {
    "real part in place": lambda t, z: (lambda y: (y.real.mul_(3), (y * y).sum().abs())[1])(z * 1),
    "view_as_real in place": lambda t, z: (lambda y: (t.view_as_real(y)[..., 0].mul_(3), y.abs().pow(2).sum())[1])(z * 2),
    "indexed assignment": lambda t, z: (lambda y: (y.__setitem__((slice(None), 1), y[:, 0] * 1j), y.abs().sum())[1])(z.clone()),
    "real times complex": lambda t, z: (z.real * z + z / z.imag.add(3)).abs().sum(),
    "spectrum": lambda t, z: (t.fft.fft2(z) * t.fft.ifft(z.real)).abs().pow(2).sum(),
    "products": lambda t, z: (z @ z.mH + t.vdot(z[0], z[1]) * z.conj().t()).angle().sum(),
    "cast": lambda t, z: z.to(t.complex64).mul(2).abs().sum(),
}


@pytest.mark.parity
@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name):
    grads = []
    for t in (ag, torch):
        z = t.tensor([[1 + 2j, 3 - 1j], [0.5j, -2 + 0.3j]], dtype=t.complex128, requires_grad=True)
        PROGRAMS[name](t, z).backward()
        grads.append(z.grad)
    same(*grads, name)


PARTS = (0.0, -0.0, 0.5, -0.5, 1.0, -1.0, 2.5, -2.5, 30.0, -30.0, np.inf, -np.inf, np.nan)
FUNCTIONS = (
    "exp", "expm1", "log", "log1p", "sqrt", "sin", "cos", "tan", "sinh", "cosh", "tanh", "asin", "acos", "atan", "asinh", "acosh", "atanh",
)  # fmt: skip
#: functions at whose infinities PyTorch differs from C -> its results there
NOT_AS_IN_C = {"log1p": "nan where the logarithm of an infinite number is infinite"}


def _same_part(mine, theirs, beside, tolerance):
    """Whether a part agrees; the sign of a zero or an infinity beside nan is free."""
    if np.isnan(theirs) or np.isnan(mine):
        return np.isnan(theirs) and np.isnan(mine)
    if np.isinf(theirs) or np.isinf(mine):
        return mine == theirs or (np.isnan(beside) and abs(mine) == abs(theirs))
    return abs(mine - theirs) <= tolerance * max(1.0, abs(theirs))


@pytest.mark.parity
@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_infinities_zeros_and_nan(name, dtype):
    """Functions of complex numbers take the values at the ends that C's standard (Annex G) gives them, one number at a time as PyTorch."""
    z = np.empty(len(PARTS) ** 2, dtype)
    z.real, z.imag = (part.ravel() for part in np.meshgrid(np.array(PARTS), np.array(PARTS)))
    with np.errstate(all="ignore"):
        mine = getattr(ag, name)(ag.from_numpy(z)).numpy()
        theirs = np.concatenate([getattr(torch, name)(torch.from_numpy(z[i : i + 1])).numpy() for i in range(z.size)])
        tolerance = 1e-4 if dtype == "complex64" else 1e-10
        wrong = [
            f"{name}({a}) is {x}, not {y}"
            for a, x, y in zip(z, mine, theirs, strict=True)
            if not (_same_part(x.real, y.real, y.imag, tolerance) and _same_part(x.imag, y.imag, y.real, tolerance))
            and not (name in NOT_AS_IN_C and not np.isfinite(a) and np.isnan(y))
        ]
    assert not wrong, "\n".join(wrong)


#: functions of two tensors, whose recorded derivatives keep the conjugates of operands
KEPT = (
    "x**2", "x.square()", "x * y", "x / y", "x.exp()", "x.sin()", "x.log()", "x.sqrt()", "x.tanh()", "x.abs()", "x.reciprocal()", "x**3", "x**y", "2**x",
    "x.sgn()", "x.mT @ y", "x.prod(0)", "x.sigmoid()", "t.addcmul(x, x, y)", "t.addcdiv(x, x, y)", "t.lerp(x, y, 0.3)", "x.cumprod(0)", "x.rsqrt()",
    "x.cosh()", "x.asin()", "x.atanh()", "t.linalg.vector_norm(x)", "x.tan()", "x.log1p()", "x.exp2()", "x.mean(0)", "t.mv(x, y[0])",
    "t.einsum('ij,ij->i', x, y)", "t.outer(x[0], y[0])", "t.vdot(x[0], y[0])", "t.bmm(x[None], y[None].mT)", "t.polar(x.real, y.imag)", "(x - y).abs()",
    "x * x.conj()", "t.linalg.inv(x[:, :3])", "x.logcumsumexp(0)",
)  # fmt: skip


def second_pass(lib: Any, text: str, changed: str, asked: bool) -> str:
    """Whether a pass through a recorded derivative is refused after an operand was changed. ``asked``: of a gradient that requires grad."""
    values = lib.arange(1.0, 13.0, dtype=lib.float64).reshape(3, 4)
    a, b = (values * 0.1 * (1 + 0.5j)).requires_grad_(), ((values + 1) * 0.1 * (1 - 0.7j)).requires_grad_()
    x, y = a * 1, b * 1
    z = eval(text, {"t": lib, "x": x, "y": y})
    w = lib.ones_like(z).requires_grad_(asked)
    (g, *_) = [h for h in lib.autograd.grad(z, [x, y], w, create_graph=True, allow_unused=True) if h is not None]
    {"x": x, "y": y}[changed].add_(1)
    try:
        lib.autograd.grad(g, [a, b, *[w] * asked], lib.ones_like(g), allow_unused=True)
    except RuntimeError as error:
        return "refused" if "modified by an inplace operation" in str(error) else "without history"
    return "runs"


@pytest.mark.parity
@pytest.mark.parametrize("text", KEPT)
def test_recorded_derivatives_keep_conjugates_as_views(text):
    """So that a change of the operand is refused, though the conjugates that a node has kept are a copy here."""
    for changed in ("x", "y"):
        for asked in (False, True):
            assert second_pass(ag, text, changed, asked) == second_pass(torch, text, changed, asked), (changed, asked)


def main(names: list[str]) -> None:
    count = {"passed": 0, "failed": 0, "missing": 0}
    for op in op_db:
        fft = op.name.startswith("fft.")
        if (
            (names and op.name not in names)
            or any(r in op.name for r in RANDOM)
            or not (torch.complex64 in op.supported_dtypes("cpu") or fft)
        ):
            continue
        if find(op) is None:
            count["missing"] += 1
            print("missing", title(op))
            continue
        dtypes = (torch.complex64, torch.complex128) + ((torch.float32, torch.float64, torch.int64) if fft else ())
        samples, passed, reasons = check(op, dtypes)
        state = "passed" if samples == passed else "failed"
        count[state] += 1
        print(f"{state} {title(op)}: {passed}/{samples}", flush=True)
        for r in reasons:
            print("        ", r)
    print(count)


if __name__ == "__main__":
    main(sys.argv[1:])
