"""A declaration leaves no question open: what is known about an op is said where it stands, and everywhere the same.

What each answer is worth is tested elsewhere, generated from the same tables: values, derivatives, dtypes and layouts of pointwise ops in
`test_pointwise_table`, of reductions in `test_reduction_table`, of structured ops in `test_samples` (where also stands that each of them is run
by a sample), batches and forward mode in `tests/autograd`, all of them beside PyTorch in `tests/parity`.
"""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import numpy as np
import pytest

import autograd_nb as torch
from autograd_nb.ops.core import pointwise, reduction
from autograd_nb.ops.core.registry import OPS

from .samples import ours, structured_ops
from .table import sample

NAMESPACES = {
    "torch": torch, "nn.functional": torch.nn.functional, "linalg": torch.linalg, "fft": torch.fft, "special": torch.special,
    "signal.windows": torch.signal.windows,
}  # fmt: skip
KINDS = {"pointwise", "reduction", "composite", "inplace", "cast", "internal"}


STRUCTURED = structured_ops()
POINTWISE = [op for op in pointwise.EVERY if ours(op.formula)]
REDUCTIONS = [op for op in reduction.EVERY if ours(op.formula)]
OWN = {name: op for name, op in OPS.items() if name == op.name}  # without aliases


def test_every_public_op_says_what_it_computes():
    """In a docstring, the first paragraph of which ends as a sentence or in an example."""
    silent = [n for n, o in OWN.items() if o.kind != "internal" and not (o.call.__doc__ or "").strip()]
    assert not silent
    first = {n: inspect.cleandoc(o.call.__doc__).split("\n\n")[0] for n, o in OWN.items() if o.call.__doc__}
    assert not [n for n, text in first.items() if text[-1] not in ".:…"]


def test_names_are_where_they_are_said_to_be():
    assert {o.kind for o in OPS.values()} <= KINDS
    elsewhere = {
        (namespace, name)
        for name, op in OPS.items()
        for namespace in op.namespaces
        if getattr(NAMESPACES[namespace], name.removeprefix(namespace + "."), None) is not op.call
    }
    assert elsewhere <= {("torch", "trace")}  # the sum of a diagonal shares its name with the tracer
    assert {n for n, op in OPS.items() if op.method and not hasattr(torch.Tensor, n)} <= {"spmm"}  # an alias of the function only


def test_in_place_forms_belong_to_an_op():
    """Or change memory in a way that has no other form: they fill it, or are about the memory itself."""
    alone = {
        "zero_", "copy_", "uniform_", "log_normal_", "exponential_", "cauchy_", "geometric_", "random_", "fill_diagonal_",
        "apply_", "map_", "map2_", "resize_", "resize_as_", "set_", "share_memory_",
    }  # fmt: skip
    forms = {n for n in OPS if n.endswith("_") and not n.endswith("__")}
    assert {n for n in forms if n.removesuffix("_") not in OPS} == alone


def test_every_structured_op_says_whether_it_is_linear_and_what_a_batch_makes_of_it():
    """One that left a question open would be differentiated twice, or run sample by sample, without a word."""
    assert len(STRUCTURED) > 125
    assert not {op.name for op in STRUCTURED if None in (op.linear, op.batch)}


def test_every_structured_ops_rules_name_what_there_is():
    known = {"g", "needs", "out"}
    for op in STRUCTURED:
        shapes = {p + of for p in op.params for of in ("_shape", "_edge")}
        for names in [n for _, n in op.rules.values()] + ([op.every[1]] if op.every else []):
            rest = set(names) - known - set(op.params) - shapes
            assert all(re.fullmatch(r"out\d", n) for n in rest), (op.name, rest)


def test_every_operand_of_a_pointwise_op_has_a_derivative_or_says_that_it_has_none():
    silent = {op.name for op in POINTWISE if op.result != "bool" and len(op.given) != len(op.params)}
    assert not silent, "say None for an operand that has no derivative"


def test_every_reduction_says_how_it_is_tested():
    for op in REDUCTIONS:
        assert op.fold is not None or not hasattr(op, "public") or OPS[op.name].reference is not None, op.name
        assert op.result in reduction.RESULTS


HALF = [n for n, o in OWN.items() if o.kind == "pointwise" and hasattr(o.rule, "params") and "half" in o.dtypes]


@pytest.mark.slow  # a kernel each
@pytest.mark.parametrize("name", HALF)
def test_half_precision(name):
    """Every pointwise op takes float16, computes in float32, and gives float16 unless it says another dtype."""
    op = OWN[name]
    arrays = [sample(name, i, (3, 4), "float32").astype("float16") for i in range(min(len(op.rule.params), 3))]
    found = op.call(*[torch.from_numpy(a) for a in arrays])
    exact = op.call(*[torch.from_numpy(a.astype("float32")) for a in arrays])
    assert found.dtype is (torch.float16 if exact.dtype is torch.float32 else exact.dtype)
    tolerance = 0 if found.dtype is torch.bool else 2e-3
    np.testing.assert_allclose(found.double().numpy(), exact.double().numpy(), rtol=tolerance, atol=tolerance)


def test_pointwise_ops_refuse_the_dtypes_that_they_do_not_name():
    """As what a declaration says of dtypes is which of them the other tests leave out."""
    narrow = {n: o for n, o in OWN.items() if o.kind == "pointwise" and "float" not in o.dtypes.split()}
    assert narrow
    for op in narrow.values():
        for kind, dtype in (("half", torch.float16), ("float", torch.float32), ("complex", torch.complex64), ("bool", torch.bool)):
            if kind not in op.dtypes.split():
                with pytest.raises(NotImplementedError, match="not implemented for"):
                    op.call(*[torch.ones(2, dtype=dtype)] * len(op.rule.params))


def test_no_table_names_ops_by_file_and_function():
    """Rules stand at the op: a table keyed "file.function" would be wrong when a file is renamed, without a word."""
    files = {p.stem for p in Path(torch.__file__).parent.joinpath("ops").rglob("*.py")}
    functions = {op.forward.__name__ for op in STRUCTURED}
    key = re.compile(r"""["'](\w+)\.(\w+)["']""")
    found = [
        (path.name, text[0])
        for path in Path(torch.__file__).parent.rglob("*.py")
        for text in key.finditer(path.read_text())
        if text[1] in files - {"special", "linalg", "fft", "random", "signal", "masked"} and text[2] in functions
    ]
    assert not found
