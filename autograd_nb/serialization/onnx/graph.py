"""A graph of ONNX that is being written: nodes, constants, names of tensors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ... import dtypes
from ...errors import guess
from ...tensor import Tensor
from .recording import Call, Record, tensors

OPSET = 17

#: the name of a function -> what writes its nodes, given the graph and the call
OPS: dict[str, Callable[[Graph, Call], Any]] = {}


class ExportError(RuntimeError):
    """A module or function cannot be written as an ONNX file (PyTorch's ``onnx.OnnxExporterError``)."""


def op(*names: str) -> Callable[[Callable[[Graph, Call], Any]], Callable[[Graph, Call], Any]]:
    """Return a decorator of what writes the nodes of these functions: given (graph, call), it returns the names of the results."""

    def enter(function: Callable[[Graph, Call], Any]) -> Callable[[Graph, Call], Any]:
        OPS.update(dict.fromkeys(names, function))
        return function

    return enter


class Graph:
    """The nodes of one export. ``other`` is a second run with other values, and other sizes where axes are dynamic: what differs there is not fixed."""

    def __init__(self, onnx: Any, record: Record, other: Record):
        self.onnx: Any = onnx
        self.record: Record = record
        self.other: Record = other
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self.names: dict[int, str] = {}
        self.keys: dict[tuple[Any, ...], str] = {}  # constants that there are already
        self.known: dict[int, str] = {}  # parameters and buffers
        self._twin: dict[int, Tensor] = {}
        self._kept: list[Tensor] = []
        self._count = 0

    # ---- the second run
    def pair(self, mine: Tensor, other: Tensor) -> None:
        """Note that a tensor of the second run has the part of one of the first."""
        self._twin[id(mine)] = other
        self._kept += [mine, other]

    def twin(self, t: Tensor) -> Tensor:
        """Return the tensor of the second run that has the part of this one."""
        return self._twin.get(id(t), t)

    # ---- names
    def fresh(self, base: str) -> str:
        """Return a name that nothing has yet."""
        self._count += 1
        return f"{base}_{self._count}"

    def constant(self, value: Any, dtype: Any = None) -> str:
        """Return the name of a constant array; of a dtype of this library, else of what NumPy takes it for."""
        array = np.asarray(value, dtype=_numpy(dtype) if dtype is not None else None)
        key = (array.dtype.str, array.shape, array.tobytes()) if array.size < 64 else None
        if key is not None and key in self.keys:
            return self.keys[key]
        name = self.fresh("constant")
        self.constants.append(self.onnx.numpy_helper.from_array(np.ascontiguousarray(array).reshape(array.shape), name))
        if key is not None:
            self.keys[key] = name
        return name

    def ints(self, values: Sequence[int]) -> str:
        """Return the name of a constant list of integers."""
        return self.constant(np.array(list(values), np.int64))

    def of(self, value: Any, dtype: Any = None) -> str:
        """Return the name of an operand: a tensor, converted where it has another dtype, or a number."""
        if not isinstance(value, Tensor):
            return self.constant(value, dtype)
        name = self.names.get(id(value)) or self._found(value)
        if dtype is not None and value.dtype is not dtype:
            name = self.cast(name, dtype)
        return name

    def _found(self, t: Tensor) -> str:
        """Return the name of a tensor that no recorded call made: a parameter, or a constant, which must be the same in both runs."""
        other = self.twin(t)
        array = t.detach().numpy()
        if other is not t and (t.shape != other.shape or not np.array_equal(array, other.detach().numpy(), equal_nan=array.dtype.kind == "f")):
            raise ExportError(
                f"onnx.export(): a tensor of shape {list(t.shape)} that is taken for a constant changes with the inputs: it is made of sizes that are "
                "dynamic, or by functions that the export does not see"
            )
        name = self.known.get(id(t)) or self.fresh("constant")
        self.constants.append(self.onnx.numpy_helper.from_array(np.ascontiguousarray(array).reshape(array.shape), name))
        self.names[id(t)] = name
        self._kept.append(t)
        return name

    # ---- nodes
    def node(self, kind: str, *inputs: Any, outputs: int = 0, **attributes: Any) -> Any:
        """Add a node and return the name of its result, or a list of names where ``outputs`` says how many."""
        given = [i if isinstance(i, str) else self.of(i) for i in inputs]
        made = [self.fresh(kind.lower()) for _ in range(outputs or 1)]
        self.nodes.append(self.onnx.helper.make_node(kind, given, made, **attributes))
        return made if outputs else made[0]

    def cast(self, name: str, dtype: Any) -> str:
        """Return a value as another dtype."""
        return self.node("Cast", name, to=self.kind(dtype))

    def kind(self, dtype: Any) -> int:
        """Return ONNX's number of a dtype."""
        return int(self.onnx.helper.np_dtype_to_tensor_dtype(np.dtype(_numpy(dtype))))

    def reshape(self, name: str, before: Tensor, after: Tensor) -> str:
        """Return a value with the shape of ``after``: sizes that change are taken from ``before``, or one of them is found out."""
        old, new = before.shape, after.shape
        old2, new2 = self.twin(before).shape, self.twin(after).shape
        sizes = []
        for i, (n, m) in enumerate(zip(new, new2, strict=True)):
            if n == m:
                sizes.append(n)
            elif i < len(old) and old[i] == n and old2[i] == m:
                sizes.append(0)
            else:
                sizes.append(-1)
        if sizes.count(-1) > 1:
            raise ExportError(f"onnx.export(): the shape {list(old)} becomes {list(new)}, where more than one size is dynamic")
        return str(self.node("Reshape", name, self.ints(sizes)))

    # ---- calls
    def write(self, call: Call, other: Call) -> None:
        """Add the nodes of a call."""
        if call.name != other.name:
            raise ExportError(f"onnx.export(): the module takes another way for other inputs: {call.name}() here, {other.name}() there")
        for mine, theirs in zip(call.results(), other.results(), strict=True):
            self.pair(mine, theirs)
        for a, b in zip(tensors(call.arguments), tensors(other.arguments), strict=True):
            if id(a) not in self._twin:
                self.pair(a, b)
        if call.module is None and not any(self._made(v) for v in call.arguments.values()):
            return  # a constant, as far as both runs agree
        if call.name not in OPS:
            near = guess(call.name, OPS)
            raise ExportError(
                f"onnx.export(): {call.name}() cannot be written as ONNX nodes.{near} Write it with other functions, or add it: "
                'from autograd_nb.serialization.onnx.graph import op, then @op("name")'
            )
        names = OPS[call.name](self, call)
        found = [names] if isinstance(names, str) else list(names)
        for t, name in zip(call.results(), found, strict=False):
            self.names[id(t)] = name
            self._kept.append(t)

    def _made(self, value: Any) -> bool:
        """Return whether there is a tensor in a value that inputs have a part in."""
        if isinstance(value, Tensor):
            return id(value) in self.names and self.names[id(value)] not in {c.name for c in self.constants}
        return isinstance(value, (list, tuple)) and any(map(self._made, value))


def _numpy(dtype: Any) -> Any:
    return dtype.carrier if isinstance(dtype, dtypes.dtype) else dtype
