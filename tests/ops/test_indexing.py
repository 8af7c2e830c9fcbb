"""Reading and writing by index, gather and scatter, against NumPy."""

import operator

import numpy as np
import pytest

import autograd_nb as torch
from autograd_nb.ops.indexing import by_mask

A = np.arange(24.0).reshape(2, 3, 4)
READS = [
    0, -1, slice(None), slice(1, None), slice(0, 3, 2), None, Ellipsis, (0, 1), (0, 1, 2), (slice(None), 1), (Ellipsis, 0),
    (None, 0, None), (slice(None), slice(0, 2), 3), [0, 1, 1], ([0, 1], [1, 2]), (slice(None), [2, 0]),
    ([1, 0], slice(None), [3, 0]), np.array([[0, 1], [1, 0]]), A > 7, (A > 7)[:, :, 0],
    (slice(None), np.array([True, False, True])), (0, np.array([True, False, True])),
    (Ellipsis, np.array([[1, 2], [3, -1]])), (slice(None), slice(1, 2), [0, 0]), [], np.zeros((2, 3), bool), np.int64(1),
]  # fmt: skip


def ours(index):
    if isinstance(index, tuple):
        return tuple(ours(i) for i in index)
    if isinstance(index, np.ndarray):
        return torch.tensor(index)
    return index


def expected(index):
    return A[np.array(index, int) if isinstance(index, list) else index]


@pytest.mark.parametrize("index", READS, ids=str)
def test_read(index):
    x = torch.tensor(A)
    np.testing.assert_array_equal(x[ours(index)].numpy(), expected(index))


@pytest.mark.parametrize("index", READS, ids=str)
def test_write(index):
    want = A.copy()
    want[np.array(index, int) if isinstance(index, list) else index] = -1.0
    x = torch.tensor(A)
    x[ours(index)] = -1
    np.testing.assert_array_equal(x.numpy(), want)
    y = torch.zeros(2, 3, 4, dtype=torch.float64)
    y[ours(index)] = torch.tensor(A)[ours(index)]
    z = np.zeros_like(A)
    k = np.array(index, int) if isinstance(index, list) else index
    z[k] = A[k]
    np.testing.assert_array_equal(y.numpy(), z)


def test_basic_indexing_makes_views():
    x = torch.zeros(3, 4)
    x[1, 1:3][0] = 5
    assert x.tolist()[1] == [0, 5, 0, 0]
    assert x[1]._base is x
    assert x[[1]]._base is None
    assert x._version == 1


def test_a_write_stays_inside_its_view():
    x = torch.zeros(4)
    x[:2].fill_(1)
    x[1:1].fill_(7)
    assert x.tolist() == [1, 1, 0, 0]


def test_duplicates_add_up_in_the_gradient():
    x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
    x[[0, 0, 2]].sum().backward()
    assert x.grad.tolist() == [2, 0, 1]


def test_writing_is_differentiable():
    base = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
    value = torch.tensor(10.0, requires_grad=True)
    y = base * 1
    y[1] = value * 2
    (y * y).sum().backward()
    assert base.grad.tolist() == [2, 0, 6]
    assert value.grad.item() == 80


def test_a_leaf_refuses_to_be_written():
    x = torch.zeros(3, requires_grad=True)
    for index in (0, [0], x > 1):
        with pytest.raises(RuntimeError, match="leaf Variable that requires grad"):
            x[index] = 1.0
    assert x.tolist() == [0, 0, 0] and x._version == 0


#: name -> (index into a 3×4 matrix, error, its text)
REFUSED = {
    "a row that is not there": (5, IndexError, "index 5 is out of bounds for dimension 0 with size 3"),
    "a column that is not there": ((0, [9]), IndexError, "index 9 is out of bounds for dimension"),
    "more indices than dims": ((0, 0, 0), IndexError, "too many indices for tensor of dimension 2"),
    "steps back": (slice(None, None, -1), ValueError, "step must be greater than zero"),
    "a float": (1.5, IndexError, "only integers, slices"),
    "a slice to a float": (([0, 1], slice(0, 1.5)), TypeError, "slice indices must be integers"),
    "lists of two lengths": (
        ([0, 1], [0, 1, 2]), IndexError, "shape mismatch: indexing tensors could not be broadcast together with shapes",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_wrong_indices_are_refused_for_reading_and_writing(case):
    index, error, text = REFUSED[case]
    x = torch.zeros(3, 4)
    with pytest.raises(error, match=text):
        x[index]
    with pytest.raises(error, match=text):
        x[index] = 1.0
    assert x._version == 0


def test_wrong_masks_values_and_indices_of_ops_are_refused():
    x = torch.zeros(3, 4)
    with pytest.raises(IndexError, match=r"The shape of the mask \[2\] at index 0 does not match"):
        x[torch.tensor([True, False])]
    with pytest.raises(IndexError, match="tensors used as indices must be long, int, byte or bool tensors"):
        x[torch.tensor([1.0])]
    with pytest.raises(RuntimeError, match=r"shape mismatch: value tensor of shape \[7\] cannot be broadcast"):
        x[[0, 1]] = torch.zeros(7)
    with pytest.raises(TypeError, match="can't assign a list"):
        x[0] = [1, 2]
    with pytest.raises(RuntimeError, match="index 9 is out of bounds for dimension 0 with size 3"):
        x.gather(0, torch.full((1, 4), 9))
    with pytest.raises(IndexError, match="index out of range in self"):
        x.index_select(0, torch.tensor([4]))
    with pytest.raises(RuntimeError, match=r"INDICES element is out of DATA bounds.*index 4 is out of bounds for dimension 1 with size 4"):
        x.index_select(1, torch.tensor([4]))
    assert x._version == 0


def test_gather_and_scatter_are_inverse():
    r = np.random.default_rng(0)
    x = torch.tensor(r.standard_normal((5, 6)), requires_grad=True)
    index = torch.tensor(np.argsort(r.random((5, 6)), 1))
    y = torch.zeros(5, 6, dtype=torch.float64).scatter(1, index, x.gather(1, index))
    np.testing.assert_array_equal(y.detach().numpy(), x.detach().numpy())
    (g,) = torch.autograd.grad((y**3).sum(), x)
    np.testing.assert_allclose(g.numpy(), 3 * x.detach().numpy() ** 2)


def test_masks():
    x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
    mask = torch.tensor([True, False, True])
    assert x.masked_fill(mask, 0).tolist() == [0, 2, 0]
    assert x.masked_select(mask).tolist() == [1, 3]
    assert torch.masked_scatter(x, mask, torch.tensor([8.0, 9.0])).tolist() == [8, 2, 9]
    assert [t.tolist() for t in mask.nonzero(as_tuple=True)] == [[0, 2]]


def test_half_precision_adds_in_float32():
    x = torch.zeros(2, dtype=torch.float16)
    x.index_add_(0, torch.zeros(3000, dtype=torch.int64), torch.ones(3000, dtype=torch.float16))
    assert x.tolist() == [3000, 0]


def test_a_number_at_indices_is_written_whole_or_not_at_all():
    x = torch.zeros(4, 3)
    before = x._version
    x[torch.tensor([[0, -1], [0, 2]])] = 2.5
    assert x.tolist() == [[2.5] * 3, [0.0] * 3, [2.5] * 3, [2.5] * 3]
    assert x._version == before + 1
    for bad in ([1, 4], [1, -5]):
        with pytest.raises(IndexError, match=rf"index {bad[1]} is out of bounds for dimension 0 with size 4"):
            x[torch.tensor(bad)] = 9
    assert not (x == 9).any() and x._version == before + 1
    x.t()[torch.tensor([1])] = 7  # a view: columns
    assert x[:, 1].tolist() == [7.0] * 4
    n = torch.arange(3)
    n[n[:1] + 1] = 7
    assert n.tolist() == [0, 7, 2]
    with pytest.raises(RuntimeError, match="refer to a single memory location"):
        n[n[:1]] = 2  # the index is part of what is written
    assert n.tolist() == [0, 7, 2]
    n[torch.tensor([2])] = 3.9
    assert n.tolist() == [0, 7, 3]


def test_rows_at_indices_of_either_sign():
    w = torch.arange(6.0).reshape(3, 2).requires_grad_()
    for index in ([2, 0, 2], [-1, 0, -1]):
        w.grad = None
        y = w[torch.tensor(index)]
        y.sum().backward()
        assert y.tolist() == [[4.0, 5.0], [0.0, 1.0], [4.0, 5.0]]
        assert w.grad.tolist() == [[1.0, 1.0], [0.0, 0.0], [2.0, 2.0]]


def test_a_mask_that_changes_after_its_true_elements_were_counted_is_refused(monkeypatch):
    """As many are written as there is room for; such a change comes of another thread."""

    class Count:
        """Counts one less than there are."""

        def __call__(self, device, mask, found):
            found[0] = np.count_nonzero(mask) - 1

        def entry(self, device, *kinds):
            return lambda mask, found: self(device, mask, found)

    monkeypatch.setattr(by_mask, "_count_true", Count())
    monkeypatch.setattr(by_mask._masks, "plans", {})
    mask = torch.tensor([True, False, True, True, True, True, False, True, True])
    for x in (torch.arange(9.0), torch.zeros(9), torch.ones(9)):
        for work in (lambda: x[mask], mask.nonzero, lambda: x.masked_select(mask)):
            with pytest.raises(RuntimeError, match="changed by another thread"):
                work()


#: the operators that write into a part and then assign it to where it stands
CHANGES = {
    "+=": lambda x, at, y: operator.setitem(x, at, operator.iadd(x[at], y)),
    "*=": lambda x, at, y: operator.setitem(x, at, operator.imul(x[at], y)),
    "-=": lambda x, at, y: operator.setitem(x, at, operator.isub(x[at], y)),
    "/=": lambda x, at, y: operator.setitem(x, at, operator.itruediv(x[at], y)),
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("at", [1, slice(1, None), (slice(None), 2), (slice(0, 2), slice(1, 3))], ids=str)
def test_a_part_that_is_changed_in_place(change, at):
    """`x[at] += y` again and again: values, counts of changes and gradients are those of the change alone, and the assignment is a change too."""
    for _ in range(4):  # plans are found from the second time on
        x, y = torch.arange(1.0, 13).view(3, 4), torch.tensor(3.0)
        wanted = x.clone()
        getattr(wanted[at], {"+=": "add_", "*=": "mul_", "-=": "sub_", "/=": "div_"}[change])(y)
        CHANGES[change](x, at, y)
        assert torch.equal(x, wanted) and x._version == 2
        leaf, z = torch.arange(1.0, 13).view(3, 4).requires_grad_(), torch.tensor(3.0, requires_grad=True)
        out = leaf * 1
        CHANGES[change](out, at, z)
        assert out._version == 2 and torch.equal(out, wanted) and type(out.grad_fn).__name__ == "CopySlices"
        out.square().sum().backward()
        other, w = leaf.detach().requires_grad_(), torch.tensor(3.0, requires_grad=True)
        parts = torch.zeros(3, 4, dtype=torch.bool)
        parts[at] = True
        changed = {"+=": other + w, "*=": other * w, "-=": other - w, "/=": other / w}[change]
        torch.where(parts, changed, other).square().sum().backward()
        assert torch.allclose(leaf.grad, other.grad) and torch.allclose(z.grad, w.grad)


def test_hooks_of_a_part_that_is_assigned_to_where_it_stands():
    for _ in range(4):
        x, seen = torch.ones(3, requires_grad=True) * 1, []
        part = x[1:]
        part += 1
        part.register_hook(seen.append)
        x[1:] = part
        (x * 3).sum().backward()
        assert [g.tolist() for g in seen] == [[3.0, 3.0]]


def test_a_part_that_is_assigned_to_another_place():
    for _ in range(4):
        x = torch.arange(8.0)
        x[4:7] = x[0:3]
        assert x.tolist() == [0, 1, 2, 3, 0, 1, 2, 7] and x._version == 1
        with pytest.raises(RuntimeError, match="single memory location"):
            x[2:5] = x[0:3]
        x[1:4] = x[1:4].clone()
        assert x._version == 2


def test_a_saved_result_that_is_assigned_to_where_it_stands_has_changed():
    for _ in range(4):
        x = torch.ones(4, requires_grad=True) * 1
        x[1:] = x[1:].exp_()
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            x.sum().backward()
