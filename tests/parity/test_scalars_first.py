"""Every form with factors in front that PyTorch still takes gives what it gives there: values, dtypes, gradients, errors."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import autograd_nb  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore:This overload of")
#: function -> shapes of its operands
SHAPES = {
    "add": ((2, 3), (3,)), "sub": ((2, 3), (3,)), "addcmul": ((2, 3),) * 3, "addcdiv": ((2, 3),) * 3,
    "addmm": ((2, 2), (2, 3), (3, 2)), "addmv": ((2,), (2, 3), (3,)), "addr": ((2, 3), (2,), (3,)),
    "addbmm": ((2, 2), (4, 2, 3), (4, 3, 2)), "baddbmm": ((4, 2, 2), (4, 2, 3), (4, 3, 2)),
}  # fmt: skip
FACTORS = (2, -0.5, True, 2j, 0)


def forms():
    """Every call: (name, kind, how many factors, the factor, dtype)."""
    for name, kind, factor, dtype in itertools.product(SHAPES, ("function", "out", "method", "in place"), FACTORS, ("float64", "int64", "complex128")):
        for count in (1, 2) if len(SHAPES[name]) == 3 and not name.startswith("addc") else (1,):
            yield name, kind, count, factor, dtype


def called(lib, name, kind, count, factor, dtype):
    """The result of the call and the gradients of its operands, or the class of the error."""
    tensors = []
    for k, shape in enumerate(SHAPES[name]):
        t = (lib.arange(float(lib.zeros(shape).numel())).reshape(shape) + k + 1).to(getattr(lib, dtype))
        tensors.append(t.requires_grad_(dtype != "int64" and kind != "out"))
    first, *rest = tensors
    factors = [factor, 3][:count]
    try:
        if kind in ("function", "out"):
            options = {"out": lib.zeros((), dtype=first.dtype).new_empty(0)} if kind == "out" else {}
            pairs = [factors[0], first, *factors[1:]] if len(rest) == 2 and not name.startswith("addc") else [first, *factors]
            y = getattr(lib, name)(*pairs, *rest, **options)
        else:
            y = getattr(first.clone() if kind == "in place" else first, name + "_" * (kind == "in place"))(*factors, *rest)
    except (RuntimeError, TypeError, NotImplementedError) as error:
        return type(error)
    if y.requires_grad:
        y.backward(lib.ones_like(y))
    return [str(y.dtype).partition(".")[2], *(None if t is None else t.numpy() for t in [y.detach(), *(t.grad for t in tensors)])]


def same(mine, theirs):
    if isinstance(mine, type) or isinstance(theirs, type):
        return isinstance(mine, type) and isinstance(theirs, type) and issubclass(mine, theirs)
    arrays = zip(mine[1:], theirs[1:], strict=True)
    return mine[0] == theirs[0] and all(a is b or np.allclose(a, b, rtol=1e-14, atol=0) for a, b in arrays)


@pytest.mark.parametrize("name", SHAPES)
def test_every_form(name):
    answers = {form: [called(lib, *form) for lib in (autograd_nb, torch)] for form in forms() if form[0] == name}
    differing = {form: found for form, found in answers.items() if not same(*found)}
    assert answers and not differing, differing


@pytest.mark.parametrize("place", ["", "_"])
@pytest.mark.parametrize("name", SHAPES)
def test_the_warning_names_the_function(name, place):
    tensors = [autograd_nb.ones(shape) for shape in SHAPES[name]]
    autograd_nb.set_warn_always(True)
    try:
        with pytest.warns(UserWarning, match=f"This overload of {name}{place} is deprecated"):
            getattr(tensors[0], name + place)(2, *tensors[1:])
    finally:
        autograd_nb.set_warn_always(False)
