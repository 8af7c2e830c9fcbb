"""Memory and how it is made and read: `resize_`, `set_`, storages, strides of `expand`, sizes that no memory has; indices that are no plain
tensors, tensors of lists that hold some."""

from __future__ import annotations

import warnings

import pytest

torch = pytest.importorskip("torch")

import autograd_nb as ag  # noqa: E402

from .snippets import difference  # noqa: E402

ROWS = "x = t.arange(120.); y = t.arange(120.).reshape(2, 3, 4, 5); cl = y.contiguous(memory_format=t.channels_last); kept = y"
GEOMETRY = "; r = tuple(z.shape), z.stride(), z.storage_offset(), z"

RESIZED = [
    "x.resize_((2, 3, 4, 5), memory_format=t.channels_last)", "x.resize_((2, 3, 4, 5), memory_format=t.contiguous_format)",
    "x.resize_((2, 3, 4, 5), memory_format=t.preserve_format)", "x.resize_((2, 60), memory_format=t.channels_last)",
    "x.resize_((2, 3, 2, 2, 5), memory_format=t.channels_last_3d)", "y.clone().resize_((2, 3, 4, 5), memory_format=t.channels_last)",
    "cl.clone().resize_((2, 3, 4, 5))", "cl.clone().resize_((2, 3, 4, 5), memory_format=t.contiguous_format)",
    "x.resize_as_(cl)", "x.resize_as_(cl, memory_format=t.preserve_format)", "x.resize_as_(y.transpose(1, 2))",
    "x.resize_as_(y.permute(0, 3, 1, 2), memory_format=t.preserve_format)", "x.resize_as_(y, memory_format=t.channels_last)",
    "x.set_(y.storage(), 3, (2, 2), (1, 4))", "x.set_(y.untyped_storage(), 3, (2, 2), (1, 4))", "x.set_(y.storage())",
    "x.set_(y[1].untyped_storage())", "x.set_(y.long().storage())", "x.set_(y)", "x.set_()", "x.set_(y.storage(), 0, (200,))",
]  # fmt: skip


@pytest.mark.parity
def test_given_memory():
    found = [difference(f"z = {code}{GEOMETRY}", ROWS, kinds=True) for code in RESIZED]
    assert not any(found), "\n".join(filter(None, found))


@pytest.mark.parity
@pytest.mark.parametrize("source", ["y", "y.storage()", "y.untyped_storage()", "y[1:]"])
def test_set_shares_memory(source):
    assert not difference(f"x.set_({source}); x[0] = -1; r = y, x", "x = t.ones(3); y = t.zeros(4)")


CHANGED = ["x", "y", "v", "w"]  #: two tensors and a view of each, of which x gets other memory


@pytest.mark.parity
@pytest.mark.parametrize("source", ["y", "", "y.untyped_storage(), 0, (2,), (1,)", "t.ones(4)", "x"])
@pytest.mark.parametrize("saved", CHANGED)
@pytest.mark.parametrize("after", ["", *CHANGED])
def test_set_is_a_change_of_the_tensor(source, saved, after):
    """It is counted, and refuses the pass of what has kept the tensor or a view of it; changes after it are of the one tensor alone."""
    changed = f"{after}.add_(1)" if after else "pass"
    program = f"z = (p * {saved}).sum(); x.set_({source}); r = [x._version, y._version]; {changed}; z.backward(); r.append(p.grad)"
    assert not difference(program, "p = t.ones(1, requires_grad=True); x = t.ones(3); y = t.ones(4); v = x[:2]; w = y[:2]; y.add_(1)")


@pytest.mark.parity
@pytest.mark.parametrize("have", ["()", "(0,)", "(1,)", "(5,)", "(5, 1)", "(1, 1, 2)", "(3, 0)", "(10, 1)[:5]"])
def test_strides_of_expand(have):
    shape, _, part = have.partition("[")
    for more in ((), (1,), (4,), (1, 1), (1, 4), (4, 1), (2, 1, 3)):
        code = f"x = t.zeros({shape}){'[' + part if part else ''}; z = x.expand({more} + tuple(x.shape)); r = tuple(z.shape), z.stride()"
        assert not difference(code, kinds=True)


SIZES = ["(2**40, 2**40)", "(2**31, 2**31)", "(2, 4, 2**29, 2**29)", "(8, 8, 2**29, 2**29)"]


@pytest.mark.parity
@pytest.mark.parametrize("size", SIZES)
def test_sizes_beyond_all_memory(size):
    for code in ("t.empty({})", "t.zeros({})", "t.ones({}, dtype=t.int64)", "t.empty(1).resize_({})", "t.empty(1).new_empty({})", "t.rand({})"):
        assert not difference("r = " + code.format(size), kinds=True)


INDICES = [
    *[f"r = x[t.tensor({v}).to(t.{d})]" for d in ("int8", "int16", "int32", "uint8", "bool") for v in ("1", "[1, 0]", "-1")],
    *[f"x[t.tensor(1).to(t.{d})] = 7.0; r = x" for d in ("int8", "int16", "int32")],
    "del x[0]", "b[b > 1] = t.tensor([1.0, 2, 3]); r = b", "b[b > 1] = t.tensor([1.0, 2]); r = b", "b[t.tensor([1, 0])] = t.tensor([]); r = b",
    "b[t.tensor([1, 9])] = t.tensor([1, 2, 3]); r = b", "b[t.tensor([1, 9])] = t.tensor([1.0, 2]); r = b",
    "x[t.tensor([1, 9]), t.tensor([1, 2])] = t.tensor([1, 2, 3]); r = x", "x[b < 3, t.tensor([0, 1, 2])] = t.ones(2); r = x",
    "r = t.unravel_index(t.tensor([5]), 2.0)", "r = t.unravel_index(t.tensor([5]), (3, 2.0))", "r = t.unravel_index(t.tensor([5]), t.tensor(2))",
    "r = t.zeros(3, 0)[:, t.tensor([0])]", "r = t.zeros(3, 0)[t.tensor([0, 1]), t.tensor([0, 0])]", "r = t.zeros(0)[t.tensor([0])]",
]  # fmt: skip


@pytest.mark.parity
def test_indices():
    before = "x = t.arange(12.0).reshape(4, 3); b = t.arange(4)"
    found = [difference(code, before, kinds=True) for code in INDICES]
    assert not any(found), "\n".join(filter(None, found))


SEQUENCES = [
    "[[0, 1], [1, 2]]", "[[0, 1], [0, 1, 2]]", "[[1, 1, 3], [0]]", "[[0, 1]]", "[[[0, 1]]]", "[(0, 1), (1, 2)]", "[range(2), range(2)]",
    "[np.array([0, 1]), [1, 2]]", "[t.tensor([0, 1]), [1, 2]]", "[t.tensor(0), t.tensor(1)]", "[t.tensor([0, 1])]", "[0, 1]", "[[]]", "[[], []]",
    "[0, None]", "[0, slice(2)]", "[..., 0]", "[True, False, True, False]", "[[0, 1]] * 32", "np.array([[0, 1], [1, 2]])", "range(2)",
    "([[0, 1], [1, 2]],)", "([[0, 1]], 0)", "[np.int64(0), np.int64(1)]", "[[True, False, True, False], [True, False, True]]", "'ab'",
]  # fmt: skip


@pytest.mark.parity
@pytest.mark.parametrize("index", SEQUENCES)
def test_sequences_as_indices(index):
    for code in ("r = x[{}]", "x[{}] = -1.0; r = x", "x[{0}] = x[{0}] * 2; r = x"):
        assert not difference(code.format(index), "x = t.arange(12.0).reshape(4, 3)", kinds=True)


LISTS = [
    "[d, d]", "[d, 2]", "[2, d]", "[2.5, d]", "[[d], [d]]", "[b, b]", "[b, 2]", "[b, 2.5]", "[b, True]", "[h, 2.5]", "[h, 3]", "[h, t.tensor(3)]",
    "[t.tensor([1.0])] * 2", "[t.tensor([[1.0]]), 2]", "[t.tensor([1.0, 2.0])] * 2", "[d, 1j]", "[np.float64(1), 2.0]", "[np.int8(1), 2]",
    "[np.array([1.0, 2]), np.array([3.0, 4])]", "[np.array([1, 2], dtype=np.int8), [3, 4]]", "[[1, 2], [d, 3]]", "[]", "[[], []]", "[True, d]",
    "[1, 2.5]", "[True, 2]", "(d, (1))", "[d, 'a']",
]  # fmt: skip


@pytest.mark.parity
@pytest.mark.parametrize("data", LISTS)
def test_tensors_of_lists(data):
    before = "d = t.tensor(1.1, dtype=t.float64); b = t.tensor(1, dtype=t.int8); h = t.tensor(1.5, dtype=t.float16)"
    for code in ("r = t.tensor({})", "r = t.as_tensor({})", "r = t.tensor({}, dtype=t.float32)", "r = t.zeros(2).new_tensor({})"):
        assert not difference(code.format(data), before, kinds=True)


@pytest.mark.parity
@pytest.mark.parametrize("mode", ["constant", "reflect", "replicate", "circular"])
def test_pad_gives_memory_of_its_own(mode):
    for padding in ((0, 0, 0, 0), (0, 0, -1, -1), (-1, 0, 0, 0), (0, 1, 0, -1)):
        code = f"y = F.pad(x, {padding}, mode='{mode}'); y.fill_(4); r = x, y"
        assert not difference(code, "x = t.zeros(1, 3, 4, 4)")


@pytest.mark.parity
def test_bernoulli_is_stored_in_any_dtype():
    for name in ("bool", "uint8", "int64", "float64"):
        assert not difference(f"y = t.zeros(3, dtype=t.{name}); r = t.bernoulli(t.ones(3), out=y), y", kinds=True)


@pytest.mark.parity
def test_gradients_of_nothing_are_refused():
    assert not difference("x = t.ones(2, requires_grad=True); t.autograd.grad((x * 2).sum(), [])", kinds=True)


@pytest.mark.parity
def test_byte_masks_are_deprecated():
    def said(library):
        x, mask = library.ones(3), library.tensor([1, 0, 1], dtype=library.uint8)
        with warnings.catch_warnings(record=True) as heard:
            warnings.simplefilter("always")
            x[mask], x[mask]
            x[mask] = library.zeros(2)
        return [str(w.message) for w in heard if "dtype torch.uint8 is now deprecated, please use a dtype torch.bool" in str(w.message)]

    assert len(said(ag)) == len(said(torch)) == 3


@pytest.mark.parity
def test_bfloat16_is_copied_as_a_name():
    code = "r = [copy.deepcopy({'d': t.bfloat16})['d'] is t.bfloat16, pickle.loads(pickle.dumps(t.bfloat16)) is t.bfloat16]"
    assert not difference(code, "import copy, pickle")


@pytest.mark.parity
def test_parts_of_made_complex_tensors_are_views_of_them():
    code = "x = t.testing.make_tensor((4, 3), dtype=t.complex64, device='cpu'); r = [x._is_view(), all(p._base is x for p in x.tensor_split(3))]"
    assert not difference(code, "import torch.testing")


UNWRITTEN = (
    "t.empty(3, dtype=d)", "t.empty_like(t.ones(2, dtype=d))", "t.empty_like(t.ones(2, 3, dtype=d).t())", "t.ones(1, dtype=d).new_empty(2)",
    "t.ones(2, dtype=d).resize_(4)", "t.empty(3, out=t.zeros(0, dtype=d))",
    "t.empty_strided((2, 2), (1, 3), dtype=d)", "t.empty_permuted((2, 2), (1, 0), dtype=d)",
)  # fmt: skip


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "complex64", "int32", "uint8", "bool"])
def test_memory_that_is_not_written_is_filled_where_algorithms_are_to_be_deterministic(dtype):
    calls = ", ".join(UNWRITTEN)
    switched = "d = t.{}\n{}\nt.use_deterministic_algorithms(True)\ntry: r = {}, {}\nfinally: t.use_deterministic_algorithms(False)"
    assert not difference(switched.format(dtype, calls, calls, calls))
