"""LSTM, GRU and plain RNN: a whole layer in one direction is one op, forward one kernel and backward one.

Source: https://docs.pytorch.org/docs/stable/nn.html#recurrent-layers
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from ... import dtypes, launch
from ...errors import refuse_keywords
from ...graph import engine
from ...graph.modes import recorded, state, unrecorded
from ...tensor import Tensor, edge
from ..core.recording import fresh, guarded, mark_inference
from ..core.registry import OPS, public
from ..core.repeated import repeated
from ..core.structured import structured, tensor_argument
from ..creation.cast import cast, clone, dense
from ..creation.create import new_empty, new_full

_LSTM = launch.Kernel("nn.recurrent", "lstm", outputs=5)
_LSTM_BACKWARD = launch.Kernel("nn.recurrent", "lstm_backward", outputs=6)
_GRU = launch.Kernel("nn.recurrent", "gru", outputs=4)
_GRU_BACKWARD = launch.Kernel("nn.recurrent", "gru_backward", outputs=4)
_RNN = launch.Kernel("nn.recurrent", "rnn", outputs=2)
_RNN_BACKWARD = launch.Kernel("nn.recurrent", "rnn_backward", outputs=3)

_GATES = {"lstm": 4, "gru": 3, "rnn_tanh": 1, "rnn_relu": 1, "gru_mixed": 3}  #: (mixed: under autocast, a state in float32 among products in less)


# --------------------------------------------------------------------------------------------------- one layer


def _flat(t: Tensor | None, like: Any) -> np.ndarray:
    """Return the elements of an operand; none for one that is not given."""
    return np.empty(0, like) if t is None else dense(t)


def _forward(kind, sizes, reverse, x, h, c, w_ih, w_hh, b_ih, b_hh, w_hr):
    """Return (outputs of all rows, last h, last c, gates, and cell states of the LSTM or what the GRU's reset gate is applied to)."""
    d, rows = x.dtype, x.shape[0]
    (batch, p), n = h.shape, w_hh.shape[0] // _GATES[kind]
    y, hn, cn = new_empty((rows, p), d), new_empty((batch, p), d), None
    gates = cells = None
    weights = [_flat(t, d.carrier) for t in (w_ih, w_hh, b_ih, b_hh)]
    biased = b_ih is not None
    if kind in ("lstm", "gru"):
        gates, cells = new_empty((rows, _GATES[kind] * n), d), new_empty((rows, n), d)
    if kind == "lstm":
        cn = new_empty((batch, n), d)
        _LSTM(
            d, x.shape[1], n, p, reverse, biased, sizes, dense(x), *weights, _flat(w_hr, d.carrier), dense(h), dense(c),
            gates._data, cells._data, y._data, hn._data, cn._data,
        )  # fmt: skip
    elif kind == "gru":
        _GRU(
            d, x.shape[1], n, reverse, biased, sizes, dense(x), *weights, dense(h), gates._data, cells._data, y._data, hn._data
        )
    else:
        _RNN(d, x.shape[1], n, reverse, biased, kind == "rnn_relu", sizes, dense(x), *weights, dense(h), y._data, hn._data)
    return y, hn, cn, gates, cells


def _unrolled(kind, x, h, c, w_ih, w_hh, b_ih, b_hh, w_hr, sizes, reverse):
    """Return the same written with ops: (outputs of all rows, last h, last c)."""
    linear, cat = OPS["nn.functional.linear"].call, OPS["cat"].call
    gates = linear(x.to(w_ih.dtype), w_ih, b_ih)
    starts = np.cumsum(sizes) - sizes
    out = []
    for t in reversed(range(len(sizes))) if reverse else range(len(sizes)):
        count = int(sizes[t])
        last, g = h[:count], gates[int(starts[t]) : int(starts[t]) + count]
        share = linear(last.to(w_hh.dtype), w_hh, b_hh)
        if kind == "lstm":
            i, f, new, o = (g + share).chunk(4, 1)
            cell = f.sigmoid() * c[:count] + i.sigmoid() * new.tanh()
            now = o.sigmoid() * cell.tanh()
            if w_hr is not None:
                now = linear(now, w_hr)
            c = cat([cell, c[count:]])
        elif kind == "gru":
            (r, z, new), (r_h, z_h, new_h) = g.chunk(3, 1), share.chunk(3, 1)
            new = (new + (r + r_h).sigmoid() * new_h).tanh()
            now = new + (z + z_h).sigmoid() * (last - new)
        else:
            now = (g + share).relu() if kind == "rnn_relu" else (g + share).tanh()
        h = cat([now, h[count:]])
        out.append(now)
    return cat(out[::-1] if reverse else out), h, c


def _recorded_gradients(kind, g, operands, sizes, reverse, needs):
    """Return the gradients as tensors with a history: the layer is recorded anew with ops, and differentiated."""
    with recorded():
        # other names for the operands: one may depend on another, and what is wanted are the partial derivatives
        copies = {p: None if t is None else t.view(t.shape) for p, t in operands.items()}
        outputs = _unrolled(kind, *copies.values(), sizes, reverse)
    pairs = [(y, gy) for y, gy in zip(outputs, g, strict=False) if gy is not None and y is not None and y.requires_grad]
    wanted = [p for p in operands if p in needs]
    found = engine.run(
        [edge(y) for y, _ in pairs], [gy for _, gy in pairs], targets=[edge(copies[p]) for p in wanted], accumulate=False,
        retain_graph=True, create_graph=True,
    )  # fmt: skip
    return dict(zip(wanted, found, strict=True))


def _gradients(
    g, kind, x, h, c, w_ih, w_hh, b_ih, b_hh, w_hr, kept, gates, cells, sizes, reverse, needs
):  # fmt: skip
    operands = {"x": x, "h": h, "c": c, "w_ih": w_ih, "w_hh": w_hh, "b_ih": b_ih, "b_hh": b_hh, "w_hr": w_hr}
    if state.grad:
        return _recorded_gradients(kind, g, operands, sizes, reverse, needs)
    d, rows = x.dtype, x.shape[0]
    (batch, p), n = h.shape, w_hh.shape[0] // _GATES[kind]
    g = (*g, None)[:3]  # only the LSTM has three outputs
    gy, gh, gc = (_flat(t, d.carrier) for t in g)
    given = [t is not None for t in g]
    dgates, before, dh = new_empty((rows, _GATES[kind] * n), d), new_empty((rows, p), d), new_empty((batch, p), d)
    first, weight, y = dense(h), dense(w_hh), _flat(kept, d.carrier)
    dshare, grads = dgates, {"h": dh}
    if kind == "lstm":
        hidden, dout = (new_empty((rows if w_hr is not None else 0, k), d) for k in (n, p))
        grads["c"] = dc = new_empty((batch, n), d)
        _LSTM_BACKWARD(
            d, n, p, reverse, *given, sizes, weight, _flat(w_hr, d.carrier), first, dense(c), gates._data, cells._data, y, gy, gh, gc,
            dgates._data, before._data, hidden._data, dout._data, dh._data, dc._data,
        )  # fmt: skip
        if "w_hr" in needs:
            grads["w_hr"] = dout.t() @ hidden
    elif kind == "gru":
        dshare = new_empty(dgates.shape, d)
        _GRU_BACKWARD(
            d, n, reverse, *given[:2], sizes, weight, first, gates._data, cells._data, y, gy, gh,
            dgates._data, dshare._data, before._data, dh._data,
        )  # fmt: skip
    else:
        _RNN_BACKWARD(
            d, n, reverse, kind == "rnn_relu", *given[:2], sizes, weight, first, y, gy, gh, dgates._data, before._data, dh._data
        )
    if "x" in needs:
        grads["x"] = dgates @ w_ih
    if "w_ih" in needs:
        grads["w_ih"] = dgates.t() @ x
    if "w_hh" in needs:
        grads["w_hh"] = dshare.t() @ before
    if "b_ih" in needs:
        grads["b_ih"] = dgates.sum(0)
    if "b_hh" in needs:
        grads["b_hh"] = dshare.sum(0)
    return grads


@structured(
    _gradients, linear="no", batch="samples",
    dtypes="half float", samples="torch.lstm_cell(x(2, 3), (x(2, 4), x(2, 4)), x(16, 3), x(16, 4))",
)
def _recurrent(kind, x, h, c, w_ih, w_hh, b_ih, b_hh, w_hr, y, hn, cn, kept, gates, cells, sizes, reverse):
    """Give what the kernel computed (y, hn, cn) its history."""
    return (y, hn) if cn is None else (y, hn, cn)


def _layer(kind: str, x: Tensor, sizes: np.ndarray, h: Tensor, c: Tensor | None, weights: Any, reverse: bool) -> tuple[Any, ...]:
    """Return one direction of one layer over packed rows: (outputs, last h, last c or None)."""
    if kind == "gru_mixed":
        w_ih, w_hh, b_ih, b_hh, w_hr = weights
        return _unrolled("gru", x, h, c, w_ih, w_hh, b_ih, b_hh, w_hr, sizes, reverse)  # type: ignore[no-any-return]
    if x.dtype.is_half:
        wide: list[Any] = [None if t is None else cast(t, dtypes.float32) for t in (h, c, *weights)]
        y = _layer(kind, cast(x, dtypes.float32), sizes, wide[0], wide[1], wide[2:], reverse)
        return tuple(None if t is None else cast(t, x.dtype) for t in y)
    with unrecorded():
        y, hn, cn, gates, cells = _forward(kind, sizes, reverse, x, h, c, *weights)
    if not state.grad:
        if state.inference:
            mark_inference(y)
        return y, hn, cn
    if not kind.startswith("rnn") and len(sizes) == 1:
        kept = None  # the outputs are the last states, and nothing reads them again
    else:  # as PyTorch puts the outputs together only afterwards, they may be changed before the backward pass
        with unrecorded():
            kept = clone(y)
    w_ih, w_hh, b_ih, b_hh, w_hr = weights
    if b_ih is not None:  # which PyTorch does not keep
        b_ih, b_hh = b_ih.clone(), b_hh.clone()
    out = _recurrent(kind, x, h, c, w_ih, w_hh, b_ih, b_hh, w_hr, y, hn, cn, kept, gates, cells, sizes, reverse)
    return (*out, None) if cn is None else out


# ---------------------------------------------------------------------------------------------------- arguments


def _fit(op: str, kind: str, x: Tensor, h: Tensor, c: Tensor | None, weights: Sequence[Any]) -> list[Any]:
    """Return (w_ih, w_hh, b_ih, b_hh, w_hr) of a layer, None where missing. RuntimeError where shapes or dtypes do not fit."""
    w_ih, w_hh, b_ih, b_hh, w_hr = weights
    p, g = h.shape[-1], _GATES[kind]
    n = p if c is None else c.shape[-1]
    for name, t, shape in (
        ("w_ih", w_ih, (g * n, x.shape[-1])), ("w_hh", w_hh, (g * n, p)), ("b_ih", b_ih, (g * n,)), ("b_hh", b_hh, (g * n,)),
        ("w_hr", w_hr, (p, n)), ("c0", c, (*h.shape[:-1], n)), ("h0", h, h.shape),
    ):  # fmt: skip
        if t is None:
            continue
        tensor_argument(t, op, name)
        if tuple(t.shape) != tuple(shape):
            raise RuntimeError(
                f"{op}(): {name} has shape {list(t.shape)}, but expected {list(shape)} for an input of {x.shape[-1]} features and a "
                f"hidden state of {p}"
            )
        if t.dtype is not x.dtype and kind != "gru_mixed":
            raise RuntimeError(
                f"{op}(): expected m1 and m2 to have the same dtype, but got: input {x.dtype} and {name} {t.dtype}; cast one with .to()"
            )
    if (b_ih is None) != (b_hh is None):
        zeros = new_full((g * n,), 0, x.dtype)
        b_ih, b_hh = (zeros if b is None else b for b in (b_ih, b_hh))
    if x.dtype.category != 2:
        raise RuntimeError(f"{op}(): expected a floating point input, but got {x.dtype}; cast it with .to(torch.float32)")
    return [w_ih, w_hh, b_ih, b_hh, w_hr]


def _sizes(op: str, batch_sizes: Any, rows: int) -> np.ndarray:
    """Return the batch sizes of a packed sequence as an array. RuntimeError unless they fall and add up."""
    sizes = tensor_argument(batch_sizes, op, "batch_sizes").tolist()
    if not sizes:
        raise RuntimeError(f"{op}(): Expected sequence length to be larger than 0 in RNN (batch_sizes is empty)")
    if sum(sizes) != rows or min(sizes) <= 0 or any(a < b for a, b in pairwise(sizes)):
        raise RuntimeError(
            f"{op}(): batch_sizes must be positive, not increase, and add up to the {rows} rows of data; got a sum of {sum(sizes)}"
        )
    return np.array(sizes, np.int64)


@repeated
def stacked(
    input: Tensor, op: str, kind: str, hx: Sequence[Any], params: Sequence[Any], has_biases: bool, num_layers: int, dropout: float, train: bool,
    bidirectional: bool, batch_first: bool, batch_sizes: Any,
) -> tuple[Any, ...]:  # fmt: skip
    """Return all layers in all directions: (outputs, last h, last c or None)."""
    x = tensor_argument(input, op)
    for t in hx:
        tensor_argument(t, op, "hx")
    directions = 2 if bidirectional else 1
    if x.ndim != (3 if batch_sizes is None else 2):
        raise RuntimeError(f"{op}(): input must have {3 if batch_sizes is None else 2} dimensions, got {x.ndim}")
    if batch_sizes is not None:
        sizes = _sizes(op, batch_sizes, x.shape[0])
        batch, steps = int(sizes[0]), 0
    else:
        if batch_first:
            x = x.transpose(0, 1)
        steps, batch = x.shape[:2]
        if not steps:
            raise RuntimeError(
                f"{op}(): Expected sequence length to be larger than 0 in RNN (input has shape {list(input.shape)})"
            )
        sizes = np.full(steps, batch, np.int64)
        x = x.reshape(steps * batch, x.shape[2])
    launch.constant(sizes)
    h, c = hx[0], hx[1] if len(hx) > 1 else None
    for t in hx:
        if t.ndim != 3 or tuple(t.shape[:2]) != (num_layers * directions, batch):
            raise RuntimeError(
                f"{op}(): Expected hidden size ({num_layers * directions}, {batch}, hidden_size), got {list(t.shape)} (hx)"
            )
    projected = c is not None and h.shape[2] != c.shape[2]
    per = 2 + 2 * bool(has_biases) + projected
    if len(params) != per * num_layers * directions:
        raise RuntimeError(f"{op}(): expected {per * num_layers * directions} parameters (params), but got {len(params)}")
    cat, stack = OPS["cat"].call, OPS["stack"].call
    last: list[tuple[Any, ...]] = []
    for level in range(num_layers):
        out = []
        for side in range(directions):
            k = level * directions + side
            w = list(params[k * per : k * per + per])
            weights = [*w[:2], *(w[2:4] if has_biases else (None, None)), w[-1] if projected else None]
            h_k, c_k = h[k], None if c is None else c[k]
            y, hn, cn = _layer(kind, x, sizes, h_k, c_k, _fit(op, kind, x, h_k, c_k, weights), side == 1)
            out.append(y)
            last.append((hn, cn))
        x = out[0] if len(out) == 1 else cat(out, 1)
        if dropout and train and level < num_layers - 1:
            x = OPS["dropout"].call(x, dropout, True)
    if batch_sizes is None:
        x = fresh(x.view(steps, batch, x.shape[1]))
        if batch_first:
            x = x.transpose(0, 1) if c is not None else fresh(x.transpose(0, 1))  # (in place in PyTorch, but for an LSTM)
    return x, stack([s[0] for s in last]), None if c is None else stack([s[1] for s in last])


_OPTIONS = ("params", "has_biases", "num_layers", "dropout", "train", "bidirectional")


def _declare(kind: str, formula: str) -> None:
    states, gates = 2 if kind == "lstm" else 1, {"lstm": 4, "gru": 3}.get(kind, 1)

    def call(*args, **kwargs):
        names = ["input", "hx", *_OPTIONS, "batch_first"]
        # what comes second: the batch sizes of a packed sequence, or the state (a pair; else followed by the parameters)
        packed = "batch_sizes" in kwargs or (len(args) > 2 and isinstance(args[1 if states == 2 else 2], Tensor))
        if packed:
            names = ["data", "batch_sizes", "hx", *_OPTIONS]
        if len(args) > len(names):
            raise TypeError(f"{kind}() takes {len(names)} arguments, but got {len(args)}")
        given = {**dict(zip(names, args, strict=False)), **kwargs}
        refuse_keywords(kind, given, names)
        for name in names:
            if name not in given:
                raise TypeError(f"{kind}() missing required argument '{name}'")
        hx = given["hx"] if states == 2 else [given["hx"]]
        if not isinstance(hx, (tuple, list)) or len(hx) != states:
            raise RuntimeError(f"{kind}() expects two hidden states (hx must be a tuple of 2 Tensors)")
        y, h, c = stacked(
            given[names[0]],
            kind,
            kind,
            hx,
            *(given[o] for o in _OPTIONS),
            given.get("batch_first", False),
            given.get("batch_sizes"),
        )
        return (y, h) if c is None else (y, h, c)

    def cell(input, hx, w_ih, w_hh, b_ih=None, b_hh=None):
        return _cell(kind, input, hx, w_ih, w_hh, b_ih, b_hh)

    call.__name__ = call.__qualname__ = kind
    call.__doc__ = (
        f"Run layers of {formula}\n\n    ({kind}(input, hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first), or "
        "packed: (data, batch_sizes, hx, …). input (steps, batch, features), hx (layers · directions, batch, hidden). "
        "The gradient goes back through all steps.\n\n"
        f"    >>> h, weights = torch.zeros(1, 1, 1), [torch.zeros({gates}, 1)] * 2\n"
        f"    >>> torch.{kind}(torch.ones(2, 1, 1), {'(h, h)' if states == 2 else 'h'}, weights, False, 1, 0.0, False, False, False)[0].flatten()\n"
        "    tensor([0., 0.])"
    )
    cell.__name__ = cell.__qualname__ = f"{kind}_cell"
    cell.__doc__ = (
        f"Run one step of {formula}\n\n    input (batch, features), hx (batch, hidden), weights (gates · hidden, features or hidden). "
        "The gradient reaches all of them.\n\n"
        f"    >>> h, w = torch.zeros(1, 1), torch.zeros({gates}, 1)\n"
        f"    >>> torch.{kind}_cell(torch.ones(1, 1), {'(h, h), w, w)[0]' if states == 2 else 'h, w, w)'}\n    tensor([[0.]])"
    )
    public(method=False)(call)
    public(method=False)(cell)


def _cell(kind: str, input: Tensor, hx: Any, w_ih: Tensor, w_hh: Tensor, b_ih: Any, b_hh: Any) -> Any:
    op = f"{kind.removesuffix('_mixed')}_cell"
    x = tensor_argument(input, op)
    if kind == "lstm" and (not isinstance(hx, (tuple, list)) or len(hx) != 2):
        raise RuntimeError(f"{op} expects two hidden states (hx must be a tuple of 2 Tensors)")
    h, c = hx if kind == "lstm" else (hx, None)
    n = tensor_argument(w_hh, op, "w_hh").shape[-1]
    tensor_argument(w_ih, op, "w_ih")
    if x.ndim != 2 or x.shape[1] != w_ih.shape[-1]:
        raise RuntimeError(
            f"{op}(): input has inconsistent input_size: got {list(x.shape)}, expected (batch, {w_ih.shape[-1]})"
        )
    for i, t in enumerate((h,) if c is None else (h, c)):
        if tensor_argument(t, op, "hx").ndim not in (1, 2) or t.shape[0] != x.shape[0]:
            raise RuntimeError(
                f"{op}(): Input batch size {x.shape[0]} doesn't match hidden{i} batch size (hx of shape {list(t.shape)})"
            )
        if t.ndim == 1:
            raise IndexError(f"{op}(): Dimension out of range (expected to be in range of [-1, 0], but got 1) in hidden{i} of shape {list(t.shape)}")
        if t.shape[1] != n:
            raise RuntimeError(f"{op}(): hidden{i} has inconsistent hidden_size: got {t.shape[1]}, expected {n}")
    sizes = launch.constant(np.array([x.shape[0]], np.int64))
    weights = _fit(op, kind, x, h, c if c is None else c.detach().to(x.dtype), (w_ih, w_hh, b_ih, b_hh, None))
    if c is not None and c.dtype is not x.dtype:
        return _promoting_cell(x, h, c, weights)
    _, h, c = _layer(kind, x, sizes, h, c, weights, False)
    if kind.startswith("rnn"):
        guarded(h, h)
    return h if c is None else (h, c)


def mixed_gru_cell(input: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Any = None, b_hh: Any = None) -> Tensor:
    """Return h' of a GRU whose products are computed in the input's precision, and whose state has its own: what autocast makes of it."""
    return _cell("gru_mixed", input, hx, w_ih, w_hh, b_ih, b_hh)  # type: ignore[no-any-return]


def _promoting_cell(x: Tensor, h: Tensor, c: Tensor, weights: Sequence[Any]) -> tuple[Tensor, Tensor]:
    """Return (h', c') of an LSTM whose c has another dtype: PyTorch does not look at it, and promotes where it meets the gates."""
    w_ih, w_hh, b_ih, b_hh, _ = weights
    linear, sigmoid, tanh = (OPS[name].call for name in ("nn.functional.linear", "sigmoid", "tanh"))
    i, f, g, o = (linear(x, w_ih, b_ih) + linear(h, w_hh, b_hh)).chunk(4, 1)
    c = sigmoid(f) * c + sigmoid(i) * tanh(g)
    return sigmoid(o) * tanh(c), c


_declare("lstm", "LSTM: i, f, o = σ(W x + U h + b), g = tanh(…), c' = f·c + i·g, h' = o·tanh(c').")
_declare("gru", "GRU: r, z = σ(W x + U h + b), n = tanh(W x + b + r·(U h + b)), h' = (1 − z)·n + z·h.")
_declare("rnn_tanh", "RNN: h' = tanh(W x + U h + b).")
_declare("rnn_relu", "RNN: h' = relu(W x + U h + b).")
