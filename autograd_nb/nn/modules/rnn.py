"""Recurrent layers and cells.

Source: https://docs.pytorch.org/docs/stable/nn.html#recurrent-layers
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Self, TypeVar
from weakref import ref

from ...errors import warn_user
from ...graph import casting
from ...ops.core.foreign import alike
from ...ops.core.registry import OPS
from ...ops.creation.create import new_full
from ...ops.nn import recurrent
from ...tensor import Tensor
from .. import init
from ..parameter import Parameter
from ..utils.rnn import PackedSequence
from .module import Module
from .options import parameter

Steps = TypeVar("Steps", Tensor, PackedSequence)  #: a call's outputs come as its inputs do
_GATES = {"LSTM": 4, "GRU": 3, "RNN_TANH": 1, "RNN_RELU": 1}


class RNNBase(Module):
    """The base of recurrent layers: parameters per layer and direction, and the checks of what they are called with.

    Parameters of layer k: weight_ih_lk (gates · hidden, input), weight_hh_lk (gates · hidden, hidden), bias_ih_lk and bias_hh_lk
    (gates · hidden), weight_hr_lk (proj, hidden) with a projection; ``_reverse`` is appended for the second direction. All start
    uniform within ±1/√hidden_size.
    """

    mode: str
    input_size: int
    hidden_size: int
    num_layers: int
    bias: bool
    batch_first: bool
    dropout: float
    bidirectional: bool
    proj_size: int

    def __init__(
        self, mode: str, input_size: int, hidden_size: int, num_layers: int = 1, bias: bool = True, batch_first: bool = False,
        dropout: float = 0.0, bidirectional: bool = False, proj_size: int = 0, device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        if isinstance(dropout, bool) or not isinstance(dropout, numbers.Real) or not 0 <= dropout <= 1:
            raise ValueError(
                f"dropout should be a number in range [0, 1] representing the probability of an element being zeroed (got {dropout!r})"
            )
        if dropout > 0 and num_layers == 1:
            warn_user(
                "dropout option adds dropout after all but last recurrent layer, so non-zero dropout expects num_layers greater than "
                f"1, but got dropout={dropout} and num_layers={num_layers}",
            )
        for name, value, kind in (
            ("bias", bias, bool), ("batch_first", batch_first, bool), ("input_size", input_size, int), ("hidden_size", hidden_size, int),
        ):  # fmt: skip
            if not isinstance(value, kind):
                raise TypeError(f"{name} should be of type {kind.__name__}, got: {type(value).__name__}")
        for name, value in (("input_size", input_size), ("hidden_size", hidden_size), ("num_layers", num_layers)):
            if value <= 0:
                raise ValueError(f"{name} must be greater than zero (got {value})")
        if proj_size < 0:
            raise ValueError(f"proj_size should be a positive integer or zero to disable projections (got {proj_size})")
        if proj_size >= hidden_size:
            raise ValueError(f"proj_size has to be smaller than hidden_size (got {proj_size} and {hidden_size})")
        if mode not in _GATES:
            raise ValueError(f"Unrecognized RNN mode: {mode}")
        self.mode, self.input_size, self.hidden_size, self.num_layers = mode, input_size, hidden_size, num_layers
        self.bias, self.batch_first, self.dropout = bias, batch_first, float(dropout)
        self.bidirectional, self.proj_size = bidirectional, proj_size
        self._flat_weights_names: list[str] = []
        self._all_weights: list[list[str]] = []
        gates, state = _GATES[mode] * hidden_size, proj_size or hidden_size
        for layer in range(num_layers):
            for suffix in ("", "_reverse")[: 1 + bool(bidirectional)]:
                width = state * (1 + bool(bidirectional)) if layer else input_size
                shapes = {"weight_ih": (gates, width), "weight_hh": (gates, state)}
                if bias:
                    shapes |= {"bias_ih": (gates,), "bias_hh": (gates,)}
                if proj_size:
                    shapes["weight_hr"] = (proj_size, hidden_size)
                names = {name: f"{name}_l{layer}{suffix}" for name in shapes}
                for name, shape in shapes.items():
                    setattr(self, names[name], parameter(shape, dtype, device))
                self._flat_weights_names.extend(names.values())
                self._all_weights.append(list(names.values()))
        self._init_flat_weights()
        self.reset_parameters()

    # ---- what it computes with: a list of its own, as programs that exchange weights know it from PyTorch
    def _init_flat_weights(self) -> None:
        """Take the weights that there are by their names, None for those that are not."""
        self._flat_weights = [getattr(self, name, None) for name in self._flat_weights_names]
        self._flat_weight_refs = [None if w is None else ref(w) for w in self._flat_weights]
        self.flatten_parameters()

    def _weights_have_changed(self) -> bool:
        """Return whether a weight is another tensor than when they were taken; one that was deleted is kept."""
        found = ((taken, getattr(self, name, None)) for taken, name in zip(self._flat_weight_refs, self._flat_weights_names, strict=True))
        return any(w is not None and taken is not None and taken() is not w for taken, w in found)

    def _update_flat_weights(self) -> None:
        if self._weights_have_changed():
            self._init_flat_weights()

    def __setattr__(self, name: str, value: Any) -> None:
        """Set an attribute; a weight is computed with from then on."""
        names = self.__dict__.get("_flat_weights_names", ())
        if name in names and "_flat_weights" in self.__dict__:
            self._flat_weights[names.index(name)] = value
        super().__setattr__(name, value)

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        found = super()._apply(fn, recurse)
        self._init_flat_weights()
        return found

    def __getstate__(self) -> dict[Any, Any]:
        self._update_flat_weights()
        state = super().__getstate__()
        del state["_flat_weight_refs"]
        return state

    def __setstate__(self, state: dict[Any, Any]) -> None:
        super().__setstate__(state)
        self.__dict__.setdefault("_flat_weights_names", [name for names in self._all_weights for name in names])
        if "_flat_weights" not in state:  # of a version that had no list of its own
            self._flat_weights = [getattr(self, name, None) for name in self._flat_weights_names]
        self._flat_weight_refs = [None if w is None else ref(w) for w in self._flat_weights]

    @property
    def all_weights(self) -> list[list[Tensor]]:
        """Return the parameters by layer and direction."""
        return [[getattr(self, name) for name in names] for names in self._all_weights]

    def flatten_parameters(self) -> None:
        """Do nothing: on the CPU the parameters stay where they are."""

    def reset_parameters(self) -> None:
        """Draw all parameters anew."""
        bound = 1.0 / math.sqrt(self.hidden_size)
        for weight in self.parameters():
            init.uniform_(weight, -bound, bound)

    # ---- what it is called with
    def check_input(self, input: Tensor, batch_sizes: Tensor | None) -> None:
        """Raise ValueError or RuntimeError unless the input fits."""
        own: Any = self._flat_weights[0]
        if input.dtype is not own.dtype and not casting.state.enabled:
            raise ValueError(
                f"RNN input dtype ({input.dtype}) does not match weight dtype ({own.dtype}). Convert input: input.to({own.dtype}), or "
                f"convert model: model.to({input.dtype})"
            )
        dims = 3 if batch_sizes is None else 2
        if input.ndim != dims:
            raise RuntimeError(f"input must have {dims} dimensions, got {input.ndim}")
        if input.shape[-1] != self.input_size:
            raise RuntimeError(f"input.size(-1) must be equal to input_size. Expected {self.input_size}, got {input.shape[-1]}")

    def _state_size(self, input: Tensor, batch_sizes: Tensor | None, width: int) -> tuple[int, int, int]:
        batch = int(batch_sizes[0]) if batch_sizes is not None else input.shape[0 if self.batch_first else 1]
        return self.num_layers * (2 if self.bidirectional else 1), batch, width

    def get_expected_hidden_size(self, input: Tensor, batch_sizes: Tensor | None) -> tuple[int, int, int]:
        """Return the shape of a hidden state for this input."""
        return self._state_size(input, batch_sizes, self.proj_size or self.hidden_size)

    def check_hidden_size(self, hx: Tensor, expected_hidden_size: tuple[Any, ...], msg: str = "Expected hidden size {}, got {}") -> None:
        """Raise RuntimeError unless ``hx`` has the expected shape."""
        if tuple(hx.shape) != tuple(expected_hidden_size):
            raise RuntimeError(msg.format(expected_hidden_size, list(hx.shape)))

    def check_forward_args(self, input: Tensor, hidden: Any, batch_sizes: Tensor | None) -> None:
        """Raise the errors of `check_input` and `check_hidden_size`."""
        self.check_input(input, batch_sizes)
        self.check_hidden_size(hidden, self.get_expected_hidden_size(input, batch_sizes))

    def permute_hidden(self, hx: Any, permutation: Tensor | None) -> Any:
        """Return the state of the sequences in another order."""
        if permutation is None:
            return hx
        if isinstance(hx, tuple):
            return tuple(t.index_select(1, permutation) for t in hx)
        return hx.index_select(1, permutation)

    def forward(self, input: Any, hx: Any = None) -> tuple[Any, ...]:
        """Return (outputs, last state): (steps, batch, directions · hidden) and (layers · directions, batch, hidden)."""
        self._update_flat_weights()
        lstm = self.mode == "LSTM"
        kind = self.mode.lower()
        sizes = order = unorder = None
        batched = True
        packed = isinstance(input, PackedSequence)
        if packed:
            input, sizes, order, unorder = input
        else:
            if input.ndim not in (2, 3):
                raise ValueError(f"{self._get_name()}: Expected input to be 2D or 3D, got {input.ndim}D instead")
            batched = input.ndim == 3
            if not batched:
                input = input.unsqueeze(0 if self.batch_first else 1)
        if lstm and hx is not None and (isinstance(hx, Tensor) or len(hx) != 2):
            raise RuntimeError(
                f"LSTM expects two hidden states: hx must be a tuple (h_0, c_0), got {'a Tensor' if isinstance(hx, Tensor) else len(hx)}"
            )
        if hx is not None and not packed:
            hx = self._batched_state(hx, batched)
        self.check_input(input, sizes)
        if hx is None:
            zeros = [
                new_full(self._state_size(input, sizes, width), 0, input.dtype)
                for width in (self.proj_size or self.hidden_size, self.hidden_size)[: 1 + lstm]
            ]
            hx = tuple(zeros) if lstm else zeros[0]
        else:
            self.check_forward_args(input, hx, sizes)
            hx = self.permute_hidden(tuple(hx) if lstm else hx, order)
        weights = self._flat_weights
        for k, w in enumerate(weights):
            if not isinstance(w, Tensor):
                raise TypeError(f"expected Tensor as element {k} in argument 2, but got {type(w).__name__} (the weights of {self._get_name()})")
        y, h, c = alike(
            recurrent.stacked, input, kind, kind, hx if lstm else (hx,), weights, self.bias, self.num_layers, self.dropout, self.training,
            self.bidirectional, self.batch_first, sizes,
        )  # fmt: skip
        state = h if c is None else (h, c)
        if packed:
            return PackedSequence(y, sizes, order, unorder), self.permute_hidden(state, unorder)
        if not batched:
            y = y.squeeze(0 if self.batch_first else 1)
            state = tuple(t.squeeze(1) for t in state) if lstm else h.squeeze(1)
        return y, state

    def _batched_state(self, hx: Any, batched: bool) -> Any:
        """Return the state that came with a batch or a single sequence, as that of a batch."""
        lstm = self.mode == "LSTM"
        states = hx if lstm else (hx,)
        dims = 3 if batched else 2
        if any(t.ndim != dims for t in states):
            what = f"For {'batched' if batched else 'unbatched'} {dims}-D input, "
            got = ", ".join(f"{t.ndim}-D" for t in states)
            if lstm:
                raise RuntimeError(what + f"hx and cx should also be {dims}-D but got ({got}) tensors")
            raise RuntimeError(what + f"hx should also be {dims}-D but got {got} tensor")
        if batched:
            return hx
        return tuple(t.unsqueeze(1) for t in states) if lstm else hx.unsqueeze(1)

    def extra_repr(self) -> str:
        shown = [str(self.input_size), str(self.hidden_size)]
        for name, usual in (
            ("proj_size", 0), ("num_layers", 1), ("bias", True), ("batch_first", False), ("dropout", 0.0), ("bidirectional", False),
        ):  # fmt: skip
            if getattr(self, name) != usual:
                shown.append(f"{name}={getattr(self, name)}")
        return ", ".join(shown)


class RNN(RNNBase):
    """h' = tanh(W x + b + U h + c) (or relu), in layers and directions.

    RNN(input_size, hidden_size, num_layers=1, nonlinearity="tanh", bias=True, batch_first=False, dropout=0.0, bidirectional=False)

    Shapes: input (steps, batch, input_size), (batch, steps, …) if ``batch_first``, (steps, input_size) unbatched, or a
    `PackedSequence`; state (layers · directions, batch, hidden_size). Dropout lies between layers.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.RNN.html

    >>> output, h = torch.nn.RNN(3, 4)(torch.ones(5, 1, 3))
    >>> output.shape, h.shape
    (torch.Size([5, 1, 4]), torch.Size([1, 1, 4]))
    """

    if TYPE_CHECKING:

        def __init__(
            self, input_size: int, hidden_size: int, num_layers: int = 1, nonlinearity: str = "tanh", bias: bool = True, batch_first: bool = False,
            dropout: float = 0.0, bidirectional: bool = False, device: Any = None, dtype: Any = None,
        ) -> None: ...  # fmt: skip

        def forward(self, input: Steps, hx: Tensor | None = None) -> tuple[Steps, Tensor]: ...
        def __call__(self, input: Steps, hx: Tensor | None = None) -> tuple[Steps, Tensor]: ...  # type: ignore[override]
    else:

        def __init__(self, *args: Any, **kwargs: Any) -> None:
            if "proj_size" in kwargs:
                raise ValueError("proj_size argument is only supported for LSTM, not RNN or GRU")
            if len(args) > 3:
                nonlinearity, args = args[3], (*args[:3], *args[4:])
            else:
                nonlinearity = kwargs.pop("nonlinearity", "tanh")
            if nonlinearity not in ("tanh", "relu"):
                raise ValueError(f"Unknown nonlinearity '{nonlinearity}'. Select from 'tanh' or 'relu'.")
            super().__init__(f"RNN_{nonlinearity.upper()}", *args, **kwargs)
            self.nonlinearity = nonlinearity


class LSTM(RNNBase):
    """Long short-term memory (Hochreiter and Schmidhuber, 1997), in layers and directions.

    LSTM(input_size, hidden_size, num_layers=1, bias=True, batch_first=False, dropout=0.0, bidirectional=False, proj_size=0)

    Shapes as of `RNN`; the state is the pair (h, c); h and the outputs have ``proj_size`` features if that is given.

    Example:
        >>> y, (h, c) = torch.nn.LSTM(3, 4)(torch.zeros(5, 2, 3))
        >>> y.shape, h.shape
        (torch.Size([5, 2, 4]), torch.Size([1, 2, 4]))

    Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.LSTM.html
    """

    if TYPE_CHECKING:

        def __init__(
            self, input_size: int, hidden_size: int, num_layers: int = 1, bias: bool = True, batch_first: bool = False,
            dropout: float = 0.0, bidirectional: bool = False, proj_size: int = 0, device: Any = None, dtype: Any = None,
        ) -> None: ...  # fmt: skip

        def forward(self, input: Steps, hx: tuple[Tensor, Tensor] | None = None) -> tuple[Steps, tuple[Tensor, Tensor]]: ...
        def __call__(self, input: Steps, hx: tuple[Tensor, Tensor] | None = None) -> tuple[Steps, tuple[Tensor, Tensor]]: ...  # type: ignore[override]
    else:

        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__("LSTM", *args, **kwargs)

    def get_expected_cell_size(self, input: Tensor, batch_sizes: Tensor | None) -> tuple[int, int, int]:
        """Return the shape of a cell state for this input."""
        return self._state_size(input, batch_sizes, self.hidden_size)

    def check_forward_args(self, input: Tensor, hidden: Any, batch_sizes: Tensor | None) -> None:
        """Raise the errors of `check_input` and `check_hidden_size`, for h and c."""
        self.check_input(input, batch_sizes)
        self.check_hidden_size(
            hidden[0], self.get_expected_hidden_size(input, batch_sizes), "Expected hidden[0] size {}, got {}"
        )
        self.check_hidden_size(hidden[1], self.get_expected_cell_size(input, batch_sizes), "Expected hidden[1] size {}, got {}")


class GRU(RNNBase):
    """Gated recurrent units (Cho et al., 2014), in layers and directions; the reset gate is applied to U h + c.

    GRU(input_size, hidden_size, num_layers=1, bias=True, batch_first=False, dropout=0.0, bidirectional=False); shapes as of `RNN`.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.GRU.html

    >>> output, h = torch.nn.GRU(3, 4)(torch.ones(5, 1, 3))
    >>> output.shape, h.shape
    (torch.Size([5, 1, 4]), torch.Size([1, 1, 4]))
    """

    if TYPE_CHECKING:

        def __init__(
            self, input_size: int, hidden_size: int, num_layers: int = 1, bias: bool = True, batch_first: bool = False,
            dropout: float = 0.0, bidirectional: bool = False, device: Any = None, dtype: Any = None,
        ) -> None: ...  # fmt: skip

        def forward(self, input: Steps, hx: Tensor | None = None) -> tuple[Steps, Tensor]: ...
        def __call__(self, input: Steps, hx: Tensor | None = None) -> tuple[Steps, Tensor]: ...  # type: ignore[override]
    else:

        def __init__(self, *args: Any, **kwargs: Any) -> None:
            if "proj_size" in kwargs:
                raise ValueError("proj_size argument is only supported for LSTM, not RNN or GRU")
            super().__init__("GRU", *args, **kwargs)


class RNNCellBase(Module):
    """The base of cells: weight_ih, weight_hh, bias_ih, bias_hh, uniform within ±1/√hidden_size."""

    weight_ih: Parameter
    weight_hh: Parameter
    input_size: int
    hidden_size: int
    bias: bool

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool, num_chunks: int, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__()
        self.input_size, self.hidden_size, self.bias = input_size, hidden_size, bias
        rows = num_chunks * hidden_size
        self.weight_ih = parameter((rows, input_size), dtype, device)
        self.weight_hh = parameter((rows, hidden_size), dtype, device)
        for name in ("bias_ih", "bias_hh"):
            self.register_parameter(name, parameter((rows,), dtype, device) if bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw all parameters anew."""
        bound = 1.0 / math.sqrt(self.hidden_size) if self.hidden_size > 0 else 0
        for weight in self.parameters():
            init.uniform_(weight, -bound, bound)

    def _step(self, kind: str, input: Tensor, hx: Any) -> Any:
        name, lstm = self._get_name(), kind == "lstm"
        if input.ndim not in (1, 2):
            raise ValueError(f"{name}: Expected input to be 1D or 2D, got {input.ndim}D instead")
        states = () if hx is None else tuple(hx) if lstm else (hx,)
        for i, t in enumerate(states):
            if t.ndim not in (1, 2):
                what = f"hx[{i}]" if lstm else "hidden"
                raise ValueError(f"{name}: Expected {what} to be 1D or 2D, got {t.ndim}D instead")
        batched = input.ndim == 2
        if not batched:
            input = input.unsqueeze(0)
            states = tuple(t.unsqueeze(0) for t in states)
        if not states:
            zeros = new_full((input.shape[0], self.hidden_size), 0, input.dtype)
            states = (zeros, zeros) if lstm else (zeros,)
        out = OPS[f"{kind}_cell"].call(
            input, states if lstm else states[0], self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh
        )
        if batched:
            return out
        return tuple(t.squeeze(0) for t in out) if lstm else out.squeeze(0)

    def extra_repr(self) -> str:
        text = f"{self.input_size}, {self.hidden_size}"
        if self.bias is not True:
            text += f", bias={self.bias}"
        nonlinearity = getattr(self, "nonlinearity", "tanh")
        return text if nonlinearity == "tanh" else text + f", nonlinearity={nonlinearity}"


class RNNCell(RNNCellBase):
    """One step of `RNN`: (batch, input_size), (batch, hidden_size) → (batch, hidden_size)."""

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, nonlinearity: str = "tanh", device: Any = None,
        dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(input_size, hidden_size, bias, 1, device, dtype)
        self.nonlinearity = nonlinearity

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        if self.nonlinearity not in ("tanh", "relu"):
            raise RuntimeError(f"Unknown nonlinearity: {self.nonlinearity}")
        return self._step(f"rnn_{self.nonlinearity}", input, hx)


class LSTMCell(RNNCellBase):
    """One step of `LSTM`: (batch, input_size), (h, c) → (h', c'), each (batch, hidden_size)."""

    def __init__(self, input_size: int, hidden_size: int, bias: bool = True, device: Any = None, dtype: Any = None) -> None:
        super().__init__(input_size, hidden_size, bias, 4, device, dtype)

    def forward(self, input: Tensor, hx: tuple[Tensor, Tensor] | None = None) -> tuple[Tensor, Tensor]:
        return self._step("lstm", input, hx)


class GRUCell(RNNCellBase):
    """One step of `GRU`: (batch, input_size), (batch, hidden_size) → (batch, hidden_size)."""

    def __init__(self, input_size: int, hidden_size: int, bias: bool = True, device: Any = None, dtype: Any = None) -> None:
        super().__init__(input_size, hidden_size, bias, 3, device, dtype)

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        return self._step("gru", input, hx)
