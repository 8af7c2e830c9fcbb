"""Fresh results keep the order in which their operands' dims lie in memory (`tests/parity/strides.py` compares with PyTorch)."""

from __future__ import annotations

import numpy as np
import pytest

import autograd_nb as torch
from autograd_nb import strides
from autograd_nb.dtypes import float32
from autograd_nb.shapes import layout_of


def transposed(*shape: int) -> torch.Tensor:
    """A tensor of this shape whose dims lie in memory in the opposite order."""
    n = int(np.prod(shape))
    return torch.arange(float(n)).reshape(shape[::-1]).permute(*range(len(shape))[::-1])


def laid(shape, steps):
    return layout_of(shape, steps, float32)


def test_what_is_reshaped_of_a_transposed_result_is_a_copy():
    c = torch.arange(6.0).reshape(2, 3).t()
    n = -c
    r = n.reshape(-1)
    n.add_(100)
    assert n.stride() == (1, 3) and not n.is_contiguous()
    assert r.tolist() == [0, -3, -1, -4, -2, -5]


@pytest.mark.parametrize(
    ("shape", "operands", "wanted"),
    [
        ((4, 3), [(1, 4)], (1, 4)),  # one dense operand: its strides
        ((4, 3), [(1, 4), (1, 4)], (1, 4)),
        ((4, 3), [(1, 4), (3, 1)], (1, 4)),  # mixed: the first that tells
        ((4, 3), [(3, 1), (1, 4)], (3, 1)),
        ((4, 3), [(2, 8)], (1, 4)),  # gaps are closed, the order stays
        ((4, 3), [(0, 1), (1, 4)], (1, 4)),  # an expanded operand tells nothing
        ((4, 3), [(0, 0)], (3, 1)),
        ((2, 3, 4), [(1, 2, 6), (0, 0, 1)], (1, 2, 6)),
        ((2, 3, 4, 5), [(60, 1, 15, 3), (60, 1, 15, 3)], (60, 1, 15, 3)),
    ],
)
def test_the_rule_of_pointwise_results(shape, operands, wanted):
    assert strides.combined(shape, [laid(shape, s) for s in operands], float32).strides == wanted


def test_broadcast_operands_are_left_out():
    row, whole = laid((3,), (1,)), laid((4, 3), (1, 4))
    assert strides.combined((4, 3), [row, whole], float32).strides == (1, 4)
    assert strides.combined((4, 3), [row, laid((4, 1), (1, 1))], float32).strides == (3, 1)


POINTWISE = {
    "neg": lambda x: -x,
    "add a number": lambda x: x + 1,
    "add": lambda x: x + x,
    "mixed": lambda x: x + x.contiguous(),
    "a row": lambda x: torch.ones(x.shape[-1]) * x,
    "compare": lambda x: x > 1,
    "where": lambda x: torch.where(x > 1, x, 0.0),
    "clamp": lambda x: x.clamp(0, 3),
    "lerp": lambda x: torch.lerp(x, x, 0.5),
    "addcmul": lambda x: torch.addcmul(x, x, x),
    "promoted": lambda x: x.double() + x,
    "integers": lambda x: x.long() // 2,
    "complex": lambda x: torch.complex(x, x).abs(),
    "nan_to_num": lambda x: x.nan_to_num(),
    "gelu": lambda x: torch.nn.functional.gelu(x),
    "clone": lambda x: x.clone(),
    "cast": lambda x: x.half(),
    "zeros_like": lambda x: torch.zeros_like(x),
    "full_like": lambda x: torch.full_like(x, 2.0),
    "empty_like": lambda x: torch.empty_like(x, dtype=torch.int32),
    "rand_like": lambda x: torch.rand_like(x),
    "dropout": lambda x: torch.nn.functional.dropout(x, 0.5),
    "sort": lambda x: x.sort(1).values,
    "argsort": lambda x: x.argsort(0),
    "flip": lambda x: x.flip(1),
    "index_put": lambda x: x.index_put((torch.tensor([0]),), torch.tensor(1.0)),
    "select_scatter": lambda x: x.select_scatter(x[0], 0, 0),
}


@pytest.mark.parametrize("name", POINTWISE)
def test_results_of_a_transposed_tensor(name):
    x = transposed(3, 4, 2)
    y = POINTWISE[name](x)
    assert y.stride() == x.stride() and y.storage_offset() == 0
    if name not in ("empty_like", "rand_like", "dropout"):
        expected = POINTWISE[name](x.contiguous())
        assert expected.is_contiguous() and (y == expected).all()


def test_what_is_not_indexed_keeps_its_order():
    x, i = torch.arange(24.0).reshape(2, 4, 3).permute(2, 1, 0), torch.tensor([0, 1])
    for index, wanted in (((slice(None), slice(None), i), (2, 6, 1)), ((i,), (8, 1, 4)), ((slice(None), i), (1, 3, 6))):
        assert x[index].stride() == wanted and torch.equal(x[index], x.contiguous()[index])
    assert x.index_select(0, i).is_contiguous() and x.nonzero().stride() == (1, 23)


def test_gaps_are_closed_in_the_order_of_the_dims():
    x = torch.arange(48.0).reshape(6, 8)[:, ::2].t()
    for y in (x.clone(), -x, x.double(), torch.zeros_like(x)):
        assert y.stride() == (1, 4)
    assert torch.equal(x.clone(), x.contiguous())


def test_memory_formats():
    x = torch.arange(120.0).reshape(2, 3, 4, 5)
    y = x.to(memory_format=torch.channels_last)
    assert y.stride() == (60, 1, 15, 3) and torch.equal(x, y)
    assert y.is_contiguous(memory_format=torch.channels_last) and not y.is_contiguous()
    assert not x.is_contiguous(memory_format=torch.channels_last)
    assert y.contiguous(memory_format=torch.channels_last) is y
    assert y.to(memory_format=torch.channels_last) is y and y.to(memory_format=torch.preserve_format) is y
    assert y.contiguous().is_contiguous() and y.clone(memory_format=torch.contiguous_format).is_contiguous()
    assert torch.zeros_like(y, memory_format=torch.contiguous_format).is_contiguous()
    assert torch.empty(2, 3, 4, 5, memory_format=torch.channels_last).stride() == y.stride()
    assert torch.zeros(1, 2, 3, 4, 5).to(memory_format=torch.channels_last_3d).stride() == (120, 1, 40, 10, 2)
    with pytest.raises(RuntimeError, match="required rank 4 tensor to use channels_last format"):
        torch.zeros(2, 3).to(memory_format=torch.channels_last)
    with pytest.raises(RuntimeError, match="preserve memory format is unsupported by the contiguous operator"):
        x.contiguous(memory_format=torch.preserve_format)
    with pytest.raises(TypeError, match="memory_format"):
        x.clone(memory_format="channels_last")


def test_a_module_in_channels_last():
    m = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 2), torch.nn.BatchNorm2d(4)).to(memory_format=torch.channels_last)
    assert m[0].weight.is_contiguous(memory_format=torch.channels_last)
    x = torch.ones(2, 3, 5, 5).to(memory_format=torch.channels_last)
    assert m(x).is_contiguous(memory_format=torch.channels_last)


def test_arrays_keep_their_order():
    a = np.arange(12.0).reshape(3, 4).T
    for t in (torch.tensor(a), torch.from_numpy(a), torch.as_tensor(a, dtype=torch.float32)):
        assert t.stride() == (1, 4) and np.array_equal(t.numpy(), a)
    t = torch.tensor(a)
    t[0, 0] = 99
    assert a[0, 0] == 0


def test_channels_last_parts_joined():
    x = torch.arange(120.0).reshape(2, 3, 4, 5).to(memory_format=torch.channels_last)
    for dim in range(4):
        y = torch.cat([x, x], dim)
        assert y.is_contiguous(memory_format=torch.channels_last)
        assert torch.equal(y, torch.cat([x.contiguous()] * 2, dim))
    assert torch.cat([x, x.contiguous()]).is_contiguous()
    for dim in range(5):
        assert torch.equal(torch.stack([x, x], dim), torch.stack([x.contiguous()] * 2, dim))


@pytest.mark.filterwarnings("ignore:Using backward")
@pytest.mark.parametrize("create_graph", [False, True])
def test_a_leaf_keeps_gradients_as_it_lies_itself(create_graph):
    x = transposed(3, 4).clone().requires_grad_()
    (x * torch.arange(12.0).reshape(3, 4)).sum().backward(create_graph=create_graph)
    assert x.grad.stride() == (1, 3) and x.grad.tolist() == torch.arange(12.0).reshape(3, 4).tolist()
    gaps = torch.ones(3, 8)[:, ::2].requires_grad_()
    (gaps.t() * 2.0).sum().backward(create_graph=create_graph)
    assert gaps.grad.is_contiguous()


def test_dropout_drops_the_same_in_the_backward_pass():
    x = transposed(4, 5).clone().requires_grad_()
    y = torch.nn.functional.dropout(x + 1, 0.5)
    y.backward(torch.ones(4, 5))
    assert ((x.grad == 0) == (y == 0)).all()


def test_in_place_and_saved_values_of_transposed_results():
    x = transposed(3, 4).clone().requires_grad_()
    y = (x * 1).exp_() * 1
    y.mul_(2).sum().backward()
    assert torch.allclose(x.grad, 2 * x.detach().exp())


@torch.compile
def step(x, y):
    z = -x * y
    r = z.reshape(-1)
    z.add_(100)
    return z, r, (z + y.contiguous()).relu()


def test_compiled_results_lie_as_eager_ones_do():
    x, y = transposed(3, 4), transposed(3, 4) + 1
    expected = step.__wrapped__(x, y) if hasattr(step, "__wrapped__") else None
    for _ in range(3):
        z, r, s = step(x, y)
        assert z.stride() == (1, 3) and s.stride() == (1, 3)
        assert r.tolist() == (-x * y).reshape(-1).tolist()
        if expected is not None:
            assert torch.equal(s, expected[2])
