"""Memory of other libraries beside PyTorch's: what is said where it may only be read."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

torch = pytest.importorskip("torch")
import autograd_nb as ours  # noqa: E402

READ_ONLY = {
    "from_numpy": "t.from_numpy(read)", "frombuffer": "t.frombuffer(b'abcd', dtype=t.uint8)", "as_tensor": "t.as_tensor(read)", "asarray": "t.asarray(read)",
    "copied": "t.tensor(read)", "written": "t.from_numpy(read.copy())", "a buffer": "t.frombuffer(bytearray(b'abcd'), dtype=t.uint8)",
}  # fmt: skip


@pytest.mark.parametrize("code", READ_ONLY)
def test_memory_that_may_only_be_read_is_warned_of(code):
    def told(lib):
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            lib.set_warn_always(True)
            try:
                eval(READ_ONLY[code], {"t": lib, "read": np.broadcast_to(np.ones(1), (3,))})
            finally:
                lib.set_warn_always(False)
        return [str(w.message).partition(" tensors")[0] for w in seen]

    assert told(ours) == told(torch)


ARRAYS = {
    "float32": np.arange(1, 5, dtype=np.float32).reshape(2, 2), "float64": np.arange(1, 5, dtype=np.float64).reshape(2, 2),
    "int64": np.arange(1, 5).reshape(2, 2), "uint8": np.arange(1, 5, dtype=np.uint8).reshape(2, 2), "row": np.arange(1, 3, dtype=np.float32),
}  # fmt: skip
OPERATORS = ("@", "+", "-", "*", "/", "**", "//", "%", "==", "<", ">=")  # (!= of a tensor and an array is True in PyTorch)


@pytest.mark.parametrize("kind", ["float32", "float64", "int64", "int32"])
@pytest.mark.parametrize("array", ARRAYS)
def test_operators_of_tensors_and_arrays(kind, array):
    found = {torch: [], ours: []}
    for library, results in found.items():
        t = library.tensor([[1, 2], [3, 4]], dtype=getattr(library, kind))
        for sign in OPERATORS:
            for text in (f"t {sign} a", f"a {sign} t"):
                try:
                    with warnings.catch_warnings():
                        warnings.simplefilter("ignore")
                        result = eval(text, {"t": t, "a": ARRAYS[array]})
                except Exception:
                    results.append((text, "an error"))
                else:
                    results.append((text, type(result).__name__, str(getattr(result, "dtype", "")), np.asarray(result).astype(float).round(3).tolist()))
    for mine, theirs in zip(found[ours], found[torch], strict=True):
        assert mine == theirs


def test_products_with_what_has_an_operator_of_its_own():
    class Right:
        def __rmatmul__(self, other):
            return type(other).__name__

    assert ours.ones(2, 2) @ Right() == torch.ones(2, 2) @ Right() == "Tensor"
    with pytest.raises(NotImplementedError, match='"bitwise_and_cpu" not implemented'):
        ours.ones(2) & np.float32(2)


def test_numbers_of_pytorchs_tensors_are_taken_while_a_class_takes_over_calls():
    """What makes tensors of anything asks no class, as in PyTorch: its tensors had been refused once a program had such a class."""

    class Mine:
        @classmethod
        def __torch_function__(cls, function, types, args=(), kwargs=None):
            return "mine"

    for lib in (torch, ours):
        assert lib.add(Mine(), 1) == "mine"
    theirs = torch.arange(3.0)
    for make in (ours.from_dlpack, ours.utils.dlpack.from_dlpack, ours.tensor, ours.as_tensor, ours.asarray):
        assert make(theirs).tolist() == [0, 1, 2]


OPERATORS = [
    f"__{kind}{op}__" for kind in ("", "r", "i")
    for op in ("add", "sub", "mul", "matmul", "truediv", "floordiv", "mod", "pow", "and", "or", "xor", "lshift", "rshift")
] + ["__lt__", "__le__", "__gt__", "__ge__", "__eq__", "__ne__"]  # fmt: skip


@pytest.mark.parametrize("name", [n for n in OPERATORS if hasattr(torch.Tensor, n)])
def test_what_operators_leave_to_others(name):
    """An operand of an unknown class has its own operator asked, and Python names both where it has none."""

    class Unknown:
        pass

    for other in (Unknown(), "a", {}, slice(2)):
        found = []
        for lib in (torch, ours):
            try:
                found.append(getattr(lib.ones(2, 2, dtype=lib.int64), name)(other) is NotImplemented)
            except TypeError:
                found.append("refused")
        assert found[1] == found[0] or found == ["refused", True]
