"""Graphs from files: read with mistrust.

A file says which kernels run on which parts of which buffers, and what the numbers are; it may have been written by anybody. So
everything that is read is checked here: kinds, sizes and offsets against the buffers, types against the kernels' arguments. What
cannot be checked by looking, where a kernel's loops will go, is checked while they run: kernels of a file are compiled with a test of
every index and a count of every loop (see `autograd_nb.checked`), and a text must be one that the generator can write (`source`).
"""

from __future__ import annotations

import functools
import json
import math
import os
import re
import types
import zipfile
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import numpy as np

from ... import launch
from ...checked.counting import counted
from ...codegen.build import compilation
from ...codegen.build.files import reading
from ...dtypes import ALL, BY_NAME
from ...shapes import layout_of
from ..ir import Buffer, Step, Use, grouped
from ..passes.simplify import compute_constants
from .graph import Graph, GraphError, Value, check_memory
from .source import SourceError, check_source, checked_source

#: buffers of half precision that came from NumPy keep its name of their elements
_DTYPES = {e.str: d.carrier for d in ALL for e in (d.np, d.carrier)} | {np.dtype(n).str: np.dtype(n) for n in ("uint32", "uint64", "uint16")}
_NAMES = "|".join(sorted({"bool" if d == np.bool_ else d.name for d in _DTYPES.values()}))
_ARGTYPE = re.compile(rf"(?:{_NAMES})(?:\[:\])?|\[(?:{_NAMES})\]|\([1-9]?[0-9]\)")
_HEAD = 1 << 27  #: bytes of graph.json
_FAR = 1 << 40  #: what no size, stride or position of a hand-written kernel reaches
_WORD = 1 << 63
_DIMS = 64

#: what the modules of kernels were called when they stood in one folder, as older files name them
_ROOMS = {
    name: f"{room}.{name}"
    for room, names in {
        "linalg": "batched jacobi lapack ldl least_squares matrix_exp",
        "products": "distance matmul tiled",
        "nn": "attention conv ctc depthwise fold grid interpolate norm pool recurrent",
        "indexing": "bags index select sort",
        "reduce": "histogram scan",
    }.items()
    for name in names.split()
} | {"reduce": "indexing.along"}


def load_graph(path: Any, *, trusted: bool = False) -> Graph:
    """Return the graph in a file that `Graph.save` wrote.

    No code of the file is executed: kernels of the library are called by name, and the text of generated ones is accepted only
    if it is what the generator can write (loops, arithmetic, its own functions). Kernels are compiled with a test of every index and a
    count of their steps, so that a file which was changed ends in an error; element by element that is slower than the graph that was saved, by a factor of up
    to twelve (softmax), while products of matrices keep their speed. ``trusted=True`` goes without these tests: only for files that you wrote.

    Errors: GraphError for a file that is not such a graph, also when it is run.

    >>> import os, tempfile
    >>> name = os.path.join(tempfile.mkdtemp(), "graph")
    >>> torch.trace(lambda x: x * 2, torch.ones(2)).save(name)
    >>> torch.load_graph(name).run(x=torch.ones(2))
    [tensor([2., 2.])]
    """
    try:
        given = reading(path) if isinstance(path, (str, os.PathLike)) else nullcontext(path)
        with given as file, zipfile.ZipFile(file) as z:
            return _Reader(z, trusted).graph()
    except (GraphError, FileNotFoundError, PermissionError, IsADirectoryError):
        raise
    except _Damaged as error:
        raise GraphError(f"{path}: {error}") from None
    except Exception as error:  # of whatever a file that was changed makes of reading and checking it
        raise GraphError(f"{path} is not a graph that Graph.save wrote ({type(error).__name__}: {error})") from None


class _Damaged(Exception):
    """The error that says what is wrong with a file."""


def _number(value: Any, what: str, least: int = 0, most: int = _WORD - 1) -> int:
    """Return an int that must lie between two others."""
    if type(value) is not int or not least <= value <= most:
        raise _Damaged(f"{what} is {value!r:.40}")
    return value


def _text(value: Any, what: str) -> str:
    if type(value) is not str:
        raise _Damaged(f"{what} is {value!r:.40}")
    return value


def _list(value: Any, what: str) -> list[Any]:
    if type(value) is not list:
        raise _Damaged(f"{what} is no list")
    return value


def _dtype(value: Any) -> np.dtype:
    found = _DTYPES.get(_text(value, "a type of elements"))
    if found is None:
        raise _Damaged(f"elements of type {value!r:.40}")
    return found


def _fits(operands: list[Any]) -> None:
    """Refuse numbers beyond what the arrays have elements, for a kernel that is Python: nothing counts its loops."""
    most = max([64, *(o.size for o in operands if isinstance(o, Use))])
    for o in operands:
        for n in o if isinstance(o, tuple) else () if isinstance(o, (Use, float)) else (o,):
            _number(int(n), "a size", -1, most)


def _reaches_lapack(function: types.FunctionType, seen: set[Any]) -> bool:
    """Return whether a kernel, or what it calls, hands memory to a library: BLAS's product aside, which is given what was looked at."""
    if function in seen:
        return False
    seen.add(function)
    for name in function.__code__.co_names:
        value = function.__globals__.get(name)
        if getattr(value, "symbol", "numba_xxgemm") != "numba_xxgemm":
            return True
        called = getattr(value, "py_func", value)
        if isinstance(called, types.FunctionType) and _reaches_lapack(called, seen):
            return True
    return False


_counted = functools.cache(counted)


class _Reader:
    """A reader takes one file apart and checks every part of it."""

    def __init__(self, z: zipfile.ZipFile, trusted: bool):
        self.zip, self.trusted = z, trusted
        self.buffers: dict[int, Buffer] = {}

    def graph(self) -> Graph:
        """Return the graph that the file holds."""
        head = json.loads(self._entry("graph.json", _HEAD))
        if type(head) is not dict or head["format"] != 1:
            raise _Damaged(f"format {head['format'] if type(head) is dict else None!r:.40} is not known")
        self._read_buffers(_list(head["buffers"], "buffers"))
        steps = [self._step(s) for s in _list(head["steps"], "steps")]
        graph = Graph(_text(head["name"], "name"), steps, [])
        graph.checked = not self.trusted
        for v in _list(head["values"], "values"):
            value = self._value(v, len(steps))
            graph.values[value.name] = value
        graph.inputs, graph.outputs = ([_text(n, "a name") for n in _list(head[k], k)] for k in ("inputs", "outputs"))
        for n in (*graph.inputs, *graph.outputs):
            if n not in graph.values:
                raise _Damaged(f"there is no value {n!r:.40}")
        compute_constants(steps)
        return graph

    # ---- memory
    def _entry(self, name: str, most: int) -> bytes:
        """Return what stands under a name in the archive, if it has at most so many bytes."""
        info = self.zip.getinfo(name)
        if info.file_size > most or info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise _Damaged(f"{name} has {info.file_size} bytes")
        with self.zip.open(info) as file:
            data = file.read(most + 1)
        if len(data) > most:
            raise _Damaged(f"{name} is longer than it says")
        return data

    def _read_buffers(self, given: list[Any]) -> None:
        found = []
        for number, kind, where, size, dtype in given:
            d = _dtype(dtype)
            _number(number, "a buffer's number", most=1 << 31)
            _number(size, f"the size of buffer {number}", most=_WORD // 64)
            if kind not in ("state", "constant", "temporary", "argument") or number in self.buffers:
                raise _Damaged(f"buffer {number} is damaged")
            self.buffers[number] = None  # type: ignore[assignment]  # until all sizes are known to be sound
            found.append((number, kind, _text(where, "a path"), size, d))
        check_memory("its buffers", sum(size * d.itemsize for _, _, _, size, d in found))
        for number, kind, where, size, d in found:
            if kind in ("state", "constant"):
                data = self._entry(f"memory/{number}", size * d.itemsize)
                if len(data) != size * d.itemsize:
                    raise _Damaged(f"buffer {number} has {len(data)} bytes instead of {size * d.itemsize}")
                array = launch.empty(size, d)
                array[:] = np.frombuffer(data, d)
            else:
                array = launch.empty(size, d)
            self.buffers[number] = Buffer(number, array, kind, where)

    def _buffer(self, number: Any) -> Buffer:
        return self.buffers[_number(number, "a buffer's number")]

    def _value(self, given: list[Any], steps: int) -> Value:
        name, number, offset, shape, strides, dtype, step = given
        b = self._buffer(number)
        _number(offset, f"the offset of {name!r:.40}")
        _number(step, f"the step of {name!r:.40}", -1, steps - 1)
        for n in (*_list(shape, "a shape"), *_list(strides, "strides")):
            _number(n, f"the shape of {name!r:.40}")
        if len(shape) != len(strides) or len(shape) > _DIMS:
            raise _Damaged(f"the shape of {name!r:.40}")
        d = BY_NAME[_text(dtype, "a dtype")]
        extent = 0 if 0 in shape else 1 + sum((n - 1) * s for n, s in zip(shape, strides, strict=True))
        if (offset + extent) * d.itemsize > b.nbytes or math.prod(shape) > max(1 << 40, b.nbytes):
            raise _Damaged(f"the value {name!r:.40} lies outside its memory")
        return Value(_text(name, "a name"), b, offset, layout_of(tuple(shape), tuple(strides), d), step)

    # ---- steps
    def _step(self, s: dict[Any, Any]) -> Step:
        kind, *rest = _list(s["origin"], "an origin")
        argtypes = tuple(_text(t, "a type") for t in _list(rest[-1], "types"))
        if not all(_ARGTYPE.fullmatch(t) for t in argtypes):
            raise _Damaged(f"a kernel of types {argtypes!r:.80}")
        if kind == "source":
            text, _ = rest
            entry = self._generated(text, argtypes)
        elif kind == "kernel":
            module, name = _text(rest[0], "a module"), _text(rest[1], "a name")
            rest[0] = _ROOMS.get(module, module)
            entry = self._written(rest[0], name, argtypes)
        else:
            raise _Damaged(f"a step of unknown kind {kind!r:.40}")
        limit = _WORD if kind == "source" else _FAR
        operands: list[Any] = []
        for given, t in zip(grouped(_list(s["operands"], "operands"), argtypes), argtypes, strict=True):
            operands += [self._operand(o, t, limit) for o in (given if t.startswith("[") else [given])]
        if getattr(entry, "foreign", False) and not self.trusted:
            _fits(operands)
        call = launch.described(entry, _text(s["name"], "a name"), _number(s["outputs"], "outputs", most=len(argtypes)))
        call.over = None if s["over"] is None else _number(s["over"], "over", most=len(argtypes) - 1)
        call.origin = (kind, *rest[:-1], argtypes)
        writes = tuple(_number(w, "a written operand", most=len(operands) - 1) for w in _list(s["writes"], "writes"))
        if not all(isinstance(operands[w], Use) for w in writes):
            raise _Damaged(f"the step {call.name!r:.40} writes a number")
        return Step(call, operands, writes, (None, 0))

    def _generated(self, text: Any, argtypes: tuple[str, ...]) -> Callable[..., Any]:
        try:
            if self.trusted:
                check_source(text)
                return compilation.build(text, "kernel", argtypes)
            return compilation.build(checked_source(text, argtypes), "kernel", argtypes, checked=True)
        except SourceError as error:
            raise _Damaged(str(error)) from None

    def _written(self, module: str, name: str, argtypes: tuple[str, ...]) -> Callable[..., Any]:
        if not all(part.isidentifier() and not part.startswith("_") for part in (*module.split("."), name)):
            raise _Damaged(f"{module!r:.40}.{name!r:.40} is not a kernel")
        package = "autograd_nb.kernels" if self.trusted else "autograd_nb.checked.kernels"
        try:
            function = compilation.written(module, name, package)
        except (ImportError, AttributeError):
            raise _Damaged(f"{module}.{name} is not a kernel") from None
        if not isinstance(function, types.FunctionType) or function.__module__ != f"{package}.{module}":
            raise _Damaged(f"{module}.{name} is not a kernel")
        if getattr(function, "foreign", False):
            return function
        if not self.trusted and _reaches_lapack(function, set()):
            raise _Damaged(f"{module}.{name} calls LAPACK, which looks at no bounds: load_graph(..., trusted=True) if you wrote the file")
        return compilation.build_function(function if self.trusted else _counted(function, argtypes), argtypes, checked=not self.trusted)

    def _operand(self, o: Any, t: str, limit: int) -> Any:
        if t.endswith("]"):
            return self._use(o, t)
        if t.startswith("("):
            if len(_list(o, "a tuple")) != int(t[1:-1]):
                raise _Damaged(f"a tuple of {len(o)} numbers for {t}")
            return tuple(_number(v, "a number", -limit, limit - 1) for v in o)
        if t == "bool":
            if type(o) is not bool:
                raise _Damaged(f"a truth value is {o!r:.40}")
            return o
        if t.startswith(("int", "uint")):
            width = np.iinfo(t)
            return _number(o, "a number", max(int(width.min), -limit), min(int(width.max), limit - 1))
        if t in ("float32", "float64") and type(o) in (int, float):
            return float(o)
        raise _Damaged(f"a number of type {t} is {o!r:.40}")

    def _use(self, o: Any, t: str) -> Use:
        if type(o) is not dict:
            raise _Damaged(f"an array is {o!r:.40}")
        b, d = self._buffer(o["buffer"]), _dtype(o["dtype"])
        offset, size = _number(o["offset"], "an offset"), _number(o["size"], "a size")
        if ("bool" if d == np.bool_ else d.name) != (t[1:-1] if t.startswith("[") else t[:-3]):
            raise _Damaged(f"an array of {d.name} for {t}")
        if offset + size * d.itemsize > b.nbytes or offset % d.itemsize:
            raise _Damaged("a step reads outside its memory")
        return Use(b, offset, size, d)
