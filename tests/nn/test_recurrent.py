"""Recurrent layers against their formulas written step by step; packed sequences; what is refused."""

from __future__ import annotations

import copy

import numpy as np
import pytest

import autograd_nb as torch
from autograd_nb import nn
from autograd_nb.nn.utils.rnn import (
    PackedSequence,
    invert_permutation,
    pack_padded_sequence,
    pack_sequence,
    pad_packed_sequence,
    pad_sequence,
    unpack_sequence,
    unpad_sequence,
)

pytestmark = pytest.mark.slow  # many kernels

KINDS = ("RNN", "GRU", "LSTM")


def by_hand(layer, x, h, c=None):
    """One direction of one layer, as the formulas say."""
    w, u, b, d = layer.weight_ih_l0, layer.weight_hh_l0, layer.bias_ih_l0, layer.bias_hh_l0
    out = []
    for t in range(x.shape[0]):
        p, q = x[t] @ w.T + b, h @ u.T + d
        if c is not None:
            i, f, g, o = (p + q).chunk(4, 1)
            c = f.sigmoid() * c + i.sigmoid() * g.tanh()
            h = o.sigmoid() * c.tanh()
        elif layer.mode == "GRU":
            (r, z, n), (r_h, z_h, n_h) = p.chunk(3, 1), q.chunk(3, 1)
            z = (z + z_h).sigmoid()
            h = (1 - z) * (n + (r + r_h).sigmoid() * n_h).tanh() + z * h
        else:
            h = (p + q).relu() if layer.mode == "RNN_RELU" else (p + q).tanh()
        out.append(h)
    return torch.stack(out), h, c


def close(a, b, tolerance=1e-10):
    np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("kind", [*KINDS, "relu"])
def test_values_and_gradients_are_those_of_the_formula(kind):
    torch.manual_seed(0)
    layer = nn.RNN(3, 4, nonlinearity="relu") if kind == "relu" else getattr(nn, kind)(3, 4)
    layer = layer.double()
    x = torch.randn(5, 2, 3, dtype=torch.float64, requires_grad=True)
    states = [torch.randn(1, 2, 4, dtype=torch.float64, requires_grad=True) for _ in range(2 if kind == "LSTM" else 1)]
    y, last = layer(x, tuple(states) if kind == "LSTM" else states[0])
    z, h, c = by_hand(layer, x, *(s[0] for s in states))
    close(y, z)
    close((last[0] if kind == "LSTM" else last)[0], h)
    if c is not None:
        close(last[1][0], c)
    inputs = [x, *states, *layer.parameters()]
    weight = torch.randn(5, 2, 4, dtype=torch.float64)
    for a, b in zip(
        torch.autograd.grad((y * weight).sum(), inputs, allow_unused=True, retain_graph=True),
        torch.autograd.grad((z * weight).sum(), inputs, allow_unused=True),
        strict=True,
    ):
        close(a, b)


@pytest.mark.parametrize("kind", KINDS)
def test_second_derivatives(kind):
    torch.manual_seed(1)
    layer = getattr(nn, kind)(2, 3, 2, bidirectional=True).double()
    x = torch.randn(3, 2, 2, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x: layer(x)[0], (x,))
    assert torch.autograd.gradgradcheck(lambda x: layer(x)[0], (x,))


def test_partial_derivatives_where_one_operand_depends_on_another():
    torch.manual_seed(2)
    cell = nn.GRUCell(2, 2).double()
    x = torch.randn(1, 2, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradgradcheck(lambda x: cell(x, cell(x, x.sin())), (x,))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("bidirectional", [False, True])
def test_packed_sequences_are_sequences_by_themselves(kind, bidirectional):
    torch.manual_seed(3)
    layer = getattr(nn, kind)(3, 4, 2, bidirectional=bidirectional)
    sequences = [torch.randn(n, 3) for n in (2, 4, 1)]
    y, last = layer(pack_sequence(sequences, enforce_sorted=False))
    assert isinstance(y, PackedSequence)
    for k, (s, out) in enumerate(zip(sequences, unpack_sequence(y), strict=True)):
        alone, state = layer(s)
        close(out, alone, 1e-5)
        for a, b in zip(last, state, strict=True) if kind == "LSTM" else [(last, state)]:
            close(a[:, k], b, 1e-5)


def test_what_was_padded_may_be_changed_before_the_pass():
    """As in PyTorch nothing is kept of the sequences, and their gradients are ones wherever they stand."""
    x = torch.ones(3, 2, 4, dtype=torch.float64, requires_grad=True)
    packed = pack_padded_sequence(x * 1, torch.tensor([3, 1]))
    padded, _ = pad_packed_sequence(packed)
    packed.data[0] = 0
    padded.sum().backward()
    assert x.grad[:, 0].eq(1).all() and x.grad[0, 1].eq(1).all() and x.grad[1:, 1].eq(0).all()


def test_gradients_of_packed_sequences():
    torch.manual_seed(4)
    layer = nn.LSTM(2, 3, bidirectional=True, proj_size=2).double()
    x = torch.randn(3, 2, 2, dtype=torch.float64, requires_grad=True)

    def run(x):
        y, (h, c) = layer(pack_padded_sequence(x, [3, 1]))
        return pad_packed_sequence(y)[0], h, c

    assert torch.autograd.gradcheck(run, (x,))
    assert torch.autograd.gradgradcheck(run, (x,))


def test_shapes_names_and_printing():
    layer = nn.LSTM(3, 5, num_layers=2, bidirectional=True, batch_first=True, proj_size=2)
    assert list(layer.state_dict())[:5] == ["weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0", "weight_hr_l0"]
    assert layer.weight_ih_l1_reverse.shape == (20, 4)
    y, (h, c) = layer(torch.zeros(7, 4, 3))
    assert (y.shape, h.shape, c.shape) == ((7, 4, 4), (4, 7, 2), (4, 7, 5))
    y, (h, c) = layer(torch.zeros(4, 3))
    assert (y.shape, h.shape, c.shape) == ((4, 4), (4, 2), (4, 5))
    assert repr(layer) == "LSTM(3, 5, proj_size=2, num_layers=2, batch_first=True, bidirectional=True)"
    assert repr(nn.RNNCell(3, 4, bias=False, nonlinearity="relu")) == "RNNCell(3, 4, bias=False, nonlinearity=relu)"
    assert layer.flatten_parameters() is None
    assert [len(w) for w in layer.all_weights] == [5, 5, 5, 5]
    assert copy.deepcopy(layer).double()(torch.zeros(2, 4, 3, dtype=torch.float64))[0].dtype is torch.float64


def test_dropout_lies_between_layers():
    with pytest.warns(UserWarning, match="expects num_layers greater than 1"):
        nn.LSTM(2, 2, dropout=0.5)
    layer = nn.GRU(2, 8, 2, dropout=0.999999)
    x = torch.ones(3, 2, 2)
    plain = layer.eval()(x)[0]
    dropped = layer.train()(x)[0]
    assert not torch.allclose(plain, dropped)
    layer.dropout = 0.0
    assert torch.allclose(layer(x)[0], plain)


def test_half_precision():
    layer = nn.LSTM(3, 4)
    x = torch.randn(2, 2, 3)
    y, _ = copy.deepcopy(layer).half()(x.half())
    assert y.dtype is torch.float16
    assert torch.allclose(y.float(), layer(x)[0], atol=2e-3)


def test_functional_forms():
    layer = nn.LSTM(3, 4, bidirectional=True)
    x, h = torch.randn(5, 2, 3), torch.zeros(2, 2, 4)
    y, _, _ = torch.lstm(x, (h, h), list(layer.parameters()), True, 1, 0.0, False, True, False)
    close(y, layer(x)[0])
    p = pack_sequence([x[:, 0]])
    y, _, _ = torch.lstm(p.data, p.batch_sizes, (h[:, :1], h[:, :1]), list(layer.parameters()), True, 1, 0.0, False, True)
    close(y, layer(x[:, 0])[0], 1e-6)
    cell = nn.GRUCell(3, 4)
    close(torch.gru_cell(x[0], h[0], *cell.parameters()), cell(x[0]))


def test_last_state_may_be_changed_in_place():
    layer = nn.LSTMCell(2, 2)
    h, c = layer(torch.ones(1, 2))
    loss = h.sum() + c.sum()
    h.zero_()
    loss.backward()
    assert layer.weight_ih.grad is not None


@pytest.mark.parametrize(
    ("make", "error", "text"),
    [
        (lambda: nn.LSTM(3, 4)(torch.zeros(2, 2, 5)), RuntimeError, "Expected 3, got 5"),
        (lambda: nn.LSTM(3, 4)(torch.zeros(2)), ValueError, "Expected input to be 2D or 3D, got 1D"),
        (lambda: nn.GRU(3, 4)(torch.zeros(2, 2, 3), torch.zeros(1, 3, 4)), RuntimeError, "Expected hidden size"),
        (lambda: nn.GRU(3, 4)(torch.zeros(2, 2, 3), torch.zeros(1, 4)), RuntimeError, "hx should also be 3-D"),
        (lambda: nn.GRU(3, 4)(torch.zeros(2, 2, 3, dtype=torch.float64)), ValueError, "does not match weight dtype"),
        (lambda: nn.GRU(3, 4)(torch.zeros(0, 2, 3)), RuntimeError, "sequence length to be larger than 0"),
        (lambda: nn.GRU(3, 4, proj_size=2), ValueError, "only supported for LSTM"),
        (lambda: nn.LSTM(3, 4, proj_size=4), ValueError, "smaller than hidden_size"),
        (lambda: nn.LSTM(0, 4), ValueError, "must be greater than zero"),
        (lambda: nn.LSTM(3.0, 4), TypeError, "should be of type int"),
        (lambda: nn.RNN(3, 4, nonlinearity="gelu"), ValueError, "Unknown nonlinearity"),
        (lambda: nn.LSTMCell(3, 4)(torch.zeros(2, 5)), RuntimeError, "inconsistent input_size"),
        (lambda: nn.LSTMCell(3, 4)(torch.zeros(2, 3), (torch.zeros(3, 4),) * 2), RuntimeError, "Input batch size 2 doesn't match"),
        (lambda: nn.RNNCell(3, 4)(torch.zeros(2, 3), torch.zeros(2, 5)), RuntimeError, "inconsistent hidden_size"),
        (lambda: torch.gru_cell(torch.zeros(2, 3), torch.zeros(2, 4), torch.zeros(9, 3), torch.zeros(12, 4)), RuntimeError, "w_ih"),
        (lambda: pack_padded_sequence(torch.zeros(4, 2, 3), [1, 2]), RuntimeError, "sorted in decreasing order"),
        (lambda: pack_padded_sequence(torch.zeros(4, 2, 3), [1]), RuntimeError, "equal to batch_size"),
        (lambda: pack_padded_sequence(torch.zeros(4, 2, 3), [1, 0]), RuntimeError, "greater than 0"),
        (lambda: pad_sequence([]), RuntimeError, "empty list"),
    ],
)  # fmt: skip
def test_refused(make, error, text):
    with pytest.raises(error, match=text):
        make()


def test_padding_and_its_inverse():
    a = [torch.arange(1.0, n + 1) for n in (2, 3, 1)]
    padded = pad_sequence(a, batch_first=True, padding_value=-1)
    assert padded.tolist() == [[1, 2, -1], [1, 2, 3], [1, -1, -1]]
    assert pad_sequence(a, True, 0, "left").tolist() == [[0, 1, 2], [1, 2, 3], [0, 0, 1]]
    assert [t.tolist() for t in unpad_sequence(padded, torch.tensor([2, 3, 1]), batch_first=True)] == [t.tolist() for t in a]
    packed = pack_padded_sequence(padded, [2, 3, 1], batch_first=True, enforce_sorted=False)
    assert packed.data.tolist() == [1, 1, 1, 2, 2, 3]
    assert packed.batch_sizes.tolist() == [3, 2, 1]
    assert packed.sorted_indices.tolist() == [1, 0, 2]
    back, lengths = pad_packed_sequence(packed, batch_first=True, padding_value=-1, total_length=4)
    assert back.tolist() == [[1, 2, -1, -1], [1, 2, 3, -1], [1, -1, -1, -1]]
    assert lengths.tolist() == [2, 3, 1]
    assert invert_permutation(torch.tensor([2, 0, 1])).tolist() == [1, 2, 0]
    assert packed.double().data.dtype is torch.float64
    assert packed.to(torch.float32) is packed
