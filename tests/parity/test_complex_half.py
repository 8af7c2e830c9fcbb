"""complex32 against PyTorch: over its op database, what computes in it gives PyTorch's numbers, and what refuses it refuses it here."""

from __future__ import annotations

import io
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import autograd_nb as ag  # noqa: E402

from .opdb import ERRORS, RANDOM, Unsupported, find, op_db  # noqa: E402
from .opdb import ours as taken_over  # noqa: E402

HALF = torch.complex32
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    torch.zeros(1, dtype=HALF)  # PyTorch warns once
#: what does not agree, and why
KNOWN = {
    "to_sparse": "PyTorch does not add such values, which to_dense() does",
    "flip": "PyTorch flips along some dims only",
    "equal": "PyTorch refuses what it can answer",
    "index_reduce.prod": "PyTorch multiplies along the first of two dims only",
    "masked.prod": "PyTorch multiplies where there is nothing to multiply",
    "randint_like": "PyTorch refuses it for all complex numbers",
    "nn.functional.batch_norm": "PyTorch stops at an assertion of its own",
    "nn.functional.batch_norm.without_cudnn": "PyTorch stops at an assertion of its own",
    "normal": "there are no normal numbers of a complex mean here",
    "normal.number_mean": "there are no normal numbers of a complex mean here",
}


def halved(value: Any) -> Any:
    """An argument whose complex tensors are of half precision."""
    if isinstance(value, torch.Tensor):
        return value.detach().to(HALF) if value.is_complex() else value.detach()
    if type(value) in (list, tuple):
        return type(value)(map(halved, value))
    return value


def ours(value: Any) -> Any:
    if isinstance(value, torch.Tensor) and value.dtype is HALF:
        return taken_over(value.cfloat()).chalf()
    if type(value) in (list, tuple):
        return type(value)(map(ours, value))
    return getattr(ag, "complex32") if value is HALF else taken_over(value)


def calls_of(op: Any) -> Iterator[tuple[Any, Any]]:
    """The arguments of the op's first samples with complex operands of half precision."""
    try:
        samples = list(op.sample_inputs("cpu", torch.complex64, requires_grad=False))[:8]
    except (*ERRORS, AssertionError):
        return
    for sample in samples:
        args = halved((sample.input, *sample.args))
        if any(isinstance(a, torch.Tensor) and a.dtype is HALF for a in (args[0] if type(args[0]) in (list, tuple) else args)):
            yield args, {k: halved(v) for k, v in sample.kwargs.items()}


def outcome(function: Any, args: Any, kwargs: Any) -> Any:
    """What a call returns, or the error."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return function(*args, **kwargs)
    except ERRORS as error:
        return error


def leaves(value: Any) -> list[Any]:
    if hasattr(value, "requires_grad"):
        return [value]
    return [t for v in value for t in leaves(v)] if isinstance(value, (list, tuple)) else []


def same(mine: Any, theirs: Any, what: str) -> None:
    assert len(leaves(mine)) == len(leaves(theirs)), what
    for x, y in zip(leaves(mine), leaves(theirs), strict=True):
        assert (repr(x.dtype), tuple(x.shape)) == (repr(y.dtype), tuple(y.shape)), what
        wide = {"torch.complex32": "cfloat", "torch.bfloat16": "float"}.get(repr(y.dtype), "clone")
        p, q = (t.detach() if repr(t.layout) == "torch.strided" else t.detach().to_dense() for t in (x, y))
        p, q = (getattr(t, wide)().resolve_conj().numpy() for t in (p, q))
        finite = np.isfinite(q)
        bound = 4e-3 * max(1, np.abs(q[finite]).max(initial=0))
        np.testing.assert_array_equal(np.isfinite(p), finite, what)
        np.testing.assert_allclose(np.where(finite, p, 0), np.where(finite, q, 0), rtol=4e-3, atol=bound, err_msg=what)


def trivial(operands: Any, results: Any) -> bool:
    """Whether an operand or the result has nothing that had to be computed: there PyTorch does not ask what the dtype is."""
    return any(t.numel() <= 1 for t in leaves(operands)) or all(t.numel() <= 1 for t in leaves(results))


def differences(op: Any) -> list[str]:
    """What is not as in PyTorch, a line for each sample."""
    found = []
    for args, kwargs in calls_of(op):
        what = f"{[tuple(a.shape) if isinstance(a, torch.Tensor) else a for a in args]} {kwargs}"
        try:
            mine_args, mine_kwargs = ours(args), {k: ours(v) for k, v in kwargs.items()}
        except Unsupported:
            continue
        theirs, mine = outcome(op.op, args, kwargs), outcome(find(op), mine_args, mine_kwargs)
        if isinstance(theirs, Exception) or isinstance(mine, Exception):
            if isinstance(theirs, Exception) != isinstance(mine, Exception) and not trivial(args, theirs):
                found.append(f"{what}: {mine!r:.150} instead of {theirs!r:.150}")
        elif not any(word in op.name for word in RANDOM):
            try:
                same(mine, theirs, what)
            except AssertionError as error:
                found.append(str(error)[:400])
    return found


NAMES = {f"{op.name}{op.variant_test_name and '.' + op.variant_test_name}": op for op in op_db if find(op) is not None}
NAMES = {name: op for name, op in NAMES.items() if name not in KNOWN and not name.startswith("sparse.")}


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_ops(name):
    assert not differences(NAMES[name])


def test_promotion():
    for name in ("bool", "uint8", "int64", "float16", "bfloat16", "float32", "float64", "complex64", "complex128", "complex32"):
        d, t = getattr(ag, name), getattr(torch, name)
        assert repr(ag.promote_types(ag.complex32, d)) == repr(ag.promote_types(d, ag.complex32)) == repr(torch.promote_types(HALF, t))
        if name not in ("bool", "uint8", "int64"):
            assert repr(d.to_complex()) == repr(t.to_complex())
            assert repr((ag.ones(2, dtype=d) * 1j).dtype) == repr((torch.ones(2, dtype=t) * 1j).dtype)


def test_memory_texts_and_files():
    numbers = [1 + 2j, 3.33333 - 1j, 1e5, complex("nan"), 2**-24 * 1j]
    x, y = ag.tensor(numbers, dtype=ag.complex32), torch.tensor(numbers, dtype=HALF)
    assert repr(x) == repr(y) and repr(x.tolist()) == repr(y.tolist()) and x.type() == y.type()
    assert (x.element_size(), x.untyped_storage().nbytes()) == (y.element_size(), y.untyped_storage().nbytes())
    assert bytes(x.view(ag.uint8).tolist()) == bytes(y.view(torch.uint8).tolist())
    assert ag.view_as_complex(ag.view_as_real(x))[0] == x[0] and ag.view_as_real(x).dtype is ag.float16
    assert ag.from_dlpack(x).dtype is ag.complex32
    with pytest.raises(TypeError, match="ComplexHalf"):
        x.numpy()
    with pytest.raises(NotImplementedError, match="'ComplexHalf'"):
        x.exp()
    file = io.BytesIO()
    torch.save({"x": y}, file)
    file.seek(0)
    assert repr(ag.load(file)["x"]) == repr(y)
    file = io.BytesIO()
    ag.save({"x": x}, file)
    file.seek(0)
    assert repr(torch.load(file)["x"]) == repr(y)


def test_gradients():
    numbers = (1 + 2j, 3 - 1j)
    expected = [2 * z.conjugate() * (z * z + 2) / abs(z * z + 2) for z in numbers]
    for library in (ag, torch):
        x = library.tensor(numbers, dtype=library.complex32, requires_grad=True)
        (x * x + 2).abs().backward(library.ones(2, dtype=library.float16))
        assert x.grad.dtype is library.complex32
        np.testing.assert_allclose(x.grad.cfloat().resolve_conj().numpy(), expected, rtol=5e-3)
