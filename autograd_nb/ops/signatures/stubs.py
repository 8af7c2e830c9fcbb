"""Stubs from the table of ops, so that editors and type checkers know what is attached when the ops are imported.

A stub a namespace, and one class, `TensorMethods`, which a type checker takes for the base of `Tensor`. A parameter's type is what is
annotated at the function, else what its name says (`parameters`); a result is a Tensor unless the function is annotated otherwise.
"""

from __future__ import annotations

import inspect
import re
import textwrap
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from ... import return_types
from ...dtypes import complex64
from ...tensor import Tensor
from ..core.registry import OPS, OpInfo
from .parameters import BOOL, FLOAT, INT, NUMBER, OPERAND, SIZES, STARRED, STR, TENSOR, TYPES

#: namespace -> the stub's name
NAMESPACES = {
    "torch": "torch", "nn.functional": "functional", "linalg": "linalg", "fft": "fft", "special": "special", "signal.windows": "windows",
}  # fmt: skip

HERE = Path(__file__).parent
WIDTH = 128

HEAD = '''"""{about} Written by `make stubs` from the table of ops: change the op, not this file."""

from collections.abc import Callable, Iterator, Sequence
from types import ModuleType
from typing import Any, Literal, Self, overload

from autograd_nb.dtypes import dtype as _dtype
from autograd_nb.ops.creation.device import device as _device
from autograd_nb.ops.creation.device import layout as _layout
from autograd_nb.ops.creation.device import memory_format as _memory_format
from autograd_nb.ops.creation.storages import TypedStorage, UntypedStorage
from autograd_nb.ops.random.generator import Generator
from autograd_nb.ops.signatures import return_types as _return_types
from autograd_nb.shapes import Size
from autograd_nb.tensor import Tensor
from autograd_nb.types import Device, Number, _Array, _bool, _complex, _float, _Holds, _int, _size, _str
'''

#: views of parts, whose declarations only say which op makes them
SEVERAL = ("split", "chunk", "tensor_split", "unbind")

_EMPTY = inspect.Parameter.empty
_STARS: dict[Any, str] = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}

#: names of Python's types that ops or methods of Tensor hide, and what the modules of ops call our own -> the stub's names
_NAMES = {
    "bool": "_bool", "int": "_int", "float": "_float", "complex": "_complex", "str": "_str", "dtypes.dtype": "_dtype", "dtype": "_dtype",
    "layout": "_layout", "memory_format": "_memory_format", "device": "_device", "return_types": "_return_types",
}  # fmt: skip

#: `np.dtype` takes a Decimal, which compares itself with a `numbers.Rational`, whose bases have no annotations in Python's own stubs: so
#: whatever names NumPy's array is partly unknown to `pyright --verifytypes`, Tensor by one such method, and every op by Tensor. A
#: variable that stands for the array has no such gap, and checkers find the same array for it.
ARRAY, HOLDS = "_Array", "_Holds[_Array]"


def _as_text(annotation: Any) -> str:
    """Return an annotation as the stubs write it; "" where there is none."""
    if annotation is _EMPTY:
        return ""
    text = annotation if isinstance(annotation, str) else annotation.__name__
    if text == "np.ndarray":
        return ARRAY
    return re.sub(r"(?<![\w.\"'])(dtypes\.dtype|\w+)(?![\w\"'])", lambda found: _NAMES.get(found[1], found[1]), text)


#: (what a name says, the type of its default) that go together
COMPATIBLE = {(OPERAND, BOOL), (OPERAND, FLOAT), (NUMBER, FLOAT), ("Any", BOOL), ("Any", FLOAT), ("Any", STR)}


def _parameter_type(p: inspect.Parameter, siblings: Any) -> str:
    given = _as_text(p.annotation)
    if given:
        return given
    if p.kind in _STARS:
        return STARRED.get(p.name, "Any")
    text = TYPES.get(p.name, "Any")
    if isinstance(p.default, (bool, float, str, tuple)) or (isinstance(p.default, int) and text in (TENSOR, BOOL)):
        plain = _NAMES.get(type(p.default).__name__, "Sequence[_float]")
        text = text if plain in text or "_size" in text or "Sequence[" in text or (text, plain) in COMPATIBLE else plain
    if p.name == "dim" and ("keepdim" in siblings or p.default is None or isinstance(p.default, tuple)):
        text = SIZES
    text = _NAMES.get(text, text) if text in ("layout", "memory_format") else text
    if p.default is None and text not in ("Any", "Device") and not text.endswith("None"):
        text += " | None"
    return text


def _default(value: Any) -> str:
    plain = isinstance(value, (bool, int, float, str, type(None), tuple))
    return repr(value) if plain and not (isinstance(value, float) and value - value != 0) else "..."


def _written(parameters: list[inspect.Parameter], method: bool) -> str:
    names = {p.name for p in parameters}
    parts, starred = [], False
    for i, p in enumerate(parameters):
        if p.kind is p.KEYWORD_ONLY and not starred:
            parts.append("*")
        starred = starred or p.kind in (p.KEYWORD_ONLY, p.VAR_POSITIONAL)
        if i == 0 and method:
            parts.append("self" if p.annotation is _EMPTY else f"self: {p.annotation}")
            continue
        text = f"{_STARS.get(p.kind, '')}{p.name}: {_parameter_type(p, names)}"
        parts.append(text if p.default is _EMPTY else f"{text} = {_default(p.default)}")
        if p.kind is p.POSITIONAL_ONLY and (i + 1 == len(parameters) or parameters[i + 1].kind is not p.POSITIONAL_ONLY):
            parts.append("/")
    return ", ".join(parts)


def _signature(name: str, call: Callable[..., Any]) -> inspect.Signature:
    """Return a function's own signature; that of a form made from another op is the other op's."""
    own = inspect.signature(inspect.unwrap(call))
    hidden = {"legacy"}  # for old programs, which have no types
    if name in OPS and OPS[name].kind in ("pointwise", "inplace") and getattr(OPS[name].rule, "scaled", True) is None:
        hidden.add("alpha")  # which the function, whose text those of all formulas of two operands share, refuses
    own = own.replace(parameters=[p for p in own.parameters.values() if p.name not in hidden])
    base = OPS.get(name.removesuffix("_")) if name.endswith("_") else None
    if base is not None and any(p.kind is p.VAR_KEYWORD for p in own.parameters.values()):
        kept = [p for p in inspect.signature(inspect.unwrap(base.call)).parameters.values() if p.name not in ("out", "legacy")]
        return inspect.Signature(kept)
    return own


def _result(name: str, signature: inspect.Signature) -> str:
    given = _as_text(signature.return_annotation)
    if given:
        return given
    if name in SEVERAL:
        return "tuple[Tensor, ...]"
    tuple_name = name.replace(".", "_")
    return f"_return_types.{tuple_name}" if tuple_name in return_types.__all__ else TENSOR


def _several(count: int) -> str:
    """Return the type of so many tensors."""
    return f"tuple[{', '.join([TENSOR] * count)}]"


def _flagged(first: str, second: str) -> list[tuple[tuple[str, ...], dict[str, str], str]]:
    """Return the forms of an op that returns one more tensor for either flag that is set; the last is for flags that are not literals."""
    no, yes = "Literal[False]", "Literal[True]"
    return [
        ((), {first: no, second: no}, TENSOR),
        ((), {first + "!": yes, second: no}, _several(2)),
        ((), {first: no, second + "!": yes}, _several(2)),
        ((), {first + "!": yes, second + "!": yes}, _several(3)),
        ((), {first: BOOL, second: BOOL}, "Tensor | tuple[Tensor, ...]"),
    ]


#: op -> its forms beyond the declaration's: (parameters that are left out, changed types, result)
OVERLOADS: dict[str, list[tuple[tuple[str, ...], dict[str, str], str]]] = {
    **{
        name: [(("other",), {"dim": "None"}, TENSOR), (("other",), {"dim!": INT}, f"_return_types.{name}"),
               (("dim", "keepdim"), {"other!": TENSOR}, TENSOR)]
        for name in ("max", "min")
    },
    **{name: [((), {"dim": "None"}, TENSOR), ((), {"dim!": INT}, f"_return_types.{name}")] for name in ("median", "nanmedian")},
    "nonzero": [((), {"as_tuple": "Literal[False]"}, TENSOR), (("out",), {"as_tuple!": "Literal[True]"}, "tuple[Tensor, ...]")],
    "size": [((), {"dim": "None"}, "Size"), ((), {"dim!": INT}, INT)],
    "stride": [((), {"dim": "None"}, "tuple[_int, ...]"), ((), {"dim!": INT}, INT)],
    "type": [(("dtype", "non_blocking"), {}, "_str"), ((), {"dtype!": "_dtype | _str"}, TENSOR)],
    "where": [(("input", "other", "out"), {}, "tuple[Tensor, ...]"), ((), {"input!": OPERAND, "other!": OPERAND}, TENSOR)],
    **dict.fromkeys(("unique", "unique_consecutive"), _flagged("return_inverse", "return_counts")),
    "lu": [((), {"get_infos": "Literal[False]"}, _several(2)), ((), {"get_infos!": "Literal[True]"}, _several(3))],
}  # fmt: skip


#: ops that sort out their arguments themselves, written as they are to be called
WRITTEN: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(
        ("atleast_1d", "atleast_2d", "atleast_3d"),
        ("(tensor: Tensor, /) -> Tensor", "(tensors: Sequence[Tensor], /) -> tuple[Tensor, ...]",
         "(tensor: Tensor, other: Tensor, /, *tensors: Tensor) -> tuple[Tensor, ...]"),
    ),
    **dict.fromkeys(("polygamma", "special.polygamma"), ("(n: _int, input: Tensor, *, out: Tensor | None = None) -> Tensor",)),
    **dict.fromkeys(("split_copy", "split_with_sizes_copy"), ("(input: Tensor, split_size: _size | _int, dim: _int = 0) -> tuple[Tensor, ...]",)),
    "unbind_copy": ("(input: Tensor, dim: _int = 0) -> tuple[Tensor, ...]",),
    "lstm": ("(input: Tensor, hx: Sequence[Tensor], *args: Any, **kwargs: Any) -> tuple[Tensor, Tensor, Tensor]",),
    **dict.fromkeys(("gru", "rnn_tanh", "rnn_relu"), ("(input: Tensor, hx: Tensor, *args: Any, **kwargs: Any) -> tuple[Tensor, Tensor]",)),
    "lstm_cell": ("(input: Tensor, hx: Sequence[Tensor], w_ih: Tensor, w_hh: Tensor, *biases: Tensor) -> tuple[Tensor, Tensor]",),
}  # fmt: skip


def _forms(name: str, signature: inspect.Signature) -> list[tuple[list[inspect.Parameter], str]]:
    """Return (parameters, result) of every form in which the op can be called."""
    parameters = list(signature.parameters.values())
    forms = OVERLOADS.get(name)
    if forms is None and "return_indices" in signature.parameters:
        default = bool(signature.parameters["return_indices"].default)
        pair = "tuple[Tensor, Tensor]"
        forms = [((), {"return_indices": f"Literal[{default}]"}, pair if default else TENSOR),
                 ((), {"return_indices!": f"Literal[{not default}]"}, TENSOR if default else pair)]  # fmt: skip
    if forms is None:
        return [(parameters, _result(name, signature))]
    found = []
    for left_out, types, result in forms:
        changed, keywords = [], False
        for p in parameters:
            if p.name in left_out:
                continue
            required = p.name + "!" in types
            text = types.get(p.name + "!") or types.get(p.name)
            if text:
                p = p.replace(annotation=text, default=_EMPTY if required else p.default)
            # what has no default cannot follow what has one, so it and all after it are named
            if required and p.name == "other" and p.kind is p.KEYWORD_ONLY:  # it stands where ``dim`` does in the other forms
                p = p.replace(kind=p.POSITIONAL_OR_KEYWORD)
            before = [q for q in changed if q.kind is q.POSITIONAL_OR_KEYWORD and q.default is not _EMPTY]
            keywords = keywords or (required and bool(before))
            changed.append(p.replace(kind=p.KEYWORD_ONLY) if keywords and p.kind is p.POSITIONAL_OR_KEYWORD else p)
        found.append((changed, result))
    return found


#: object's comparisons take anything and give a bool; ``**=`` takes no number as its first operand
IGNORED = {"__eq__": "  # type: ignore[override]", "__ne__": "  # type: ignore[override]", "__ipow__": "  # type: ignore[misc]"}


def _first_line(call: Any) -> str:
    line = (call.__doc__ or "").strip().split("\n")[0].replace("\\", "\\\\").replace('"', "'")
    return line + ("" if not line or line.endswith((".", ":", "…")) else " …")


def function_text(name: str, short: str, call: Callable[..., Any], indent: str = "") -> str:
    """Return the stub of one function or, with an indent, method."""
    if name in WRITTEN:
        head = f"{indent}@overload\n" if len(WRITTEN[name]) > 1 else ""
        texts = [text.replace("n: _int, input: Tensor", "self, n: _int") if indent else text for text in WRITTEN[name]]
        return "".join(f"{head}{indent}def {short}{text}:\n{indent}    \"\"\"{_first_line(call)}\"\"\"\n" for text in texts)
    signature = _signature(name, call)
    forms = _forms(name, signature)
    lines = []
    for parameters, result in forms:
        if indent and parameters:
            if parameters[0].kind is inspect.Parameter.VAR_POSITIONAL:
                parameters = [inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD), *parameters]
            else:
                parameters = [parameters[0].replace(name="self", annotation=_EMPTY, default=_EMPTY), *parameters[1:]]
        if result == ARRAY:
            parameters = [parameters[0].replace(annotation=HOLDS), *parameters[1:]]
        if short == "__dlpack__":  # a protocol, which has options
            pass
        elif short.startswith("__") and len(parameters) > 1:  # operators have no options
            parameters = [p for p in parameters if p.kind is not p.KEYWORD_ONLY and p.name not in ("f",)]
        elif indent and short.startswith("__"):
            parameters = parameters[:1]
        if len(forms) > 1:
            lines.append(f"{indent}@overload")
        doc = _first_line(call)
        end = f") -> {result}:" + ("" if doc else " ...")
        end += IGNORED.get(short, "")
        line = f"{indent}def {short}({_written(parameters, bool(indent))}{end}"
        if len(line) > WIDTH:
            inner = textwrap.fill(_written(parameters, bool(indent)), WIDTH, initial_indent=indent + "    ", subsequent_indent=indent + "    ")
            line = f"{indent}def {short}(\n{inner}\n{indent}{end}"
        lines.append(line)
        if doc:
            lines.append(f'{indent}    """{doc}"""')
    return "\n".join(lines) + "\n"


def _namespace(namespace: str) -> Iterator[str]:
    yield HEAD.format(about=f"The ops that are offered under ``{namespace}``.")
    for name, op in sorted(OPS.items(), key=lambda entry: entry[0].rpartition(".")[2]):
        short = name.removeprefix(namespace + ".")
        if namespace in op.namespaces and short.isidentifier():
            yield function_text(name, short, op.call)


def _property_text(name: str, value: property) -> str:
    """Return the stub of a property: its type is that of the value that a small tensor gives."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # some are old, and say so
        found = value.__get__(OPS["zeros"].call(2, 2, dtype=complex64), Tensor)
    result = "Tensor" if isinstance(found, Tensor) else "None" if found is None else _NAMES.get(type(found).__name__, type(found).__name__)
    text = f'    @property\n    def {name}(self) -> {result}:\n        """{_first_line(value) or name}"""\n'
    if value.fset:
        text += f"    @{name}.setter\n    def {name}(self, value: {result}) -> None: ...\n"
    return text


def _methods() -> Iterator[str]:
    yield HEAD.format(about="What the ops attach to Tensor.")
    yield 'class TensorMethods:\n    """The methods and attributes that the ops give Tensor."""\n'
    yield "    def __new__(cls, *args: Any, **kwargs: Any) -> Self: ...\n"
    named = {id(op.call): name for name, op in OPS.items()}
    for name, value in sorted(vars(Tensor).items()):
        if isinstance(value, property):
            if getattr(value.fget, "__module__", "") != Tensor.__module__:
                yield _property_text(name, value)
        elif inspect.isfunction(value):
            if inspect.unwrap(value).__module__ != Tensor.__module__:
                yield function_text(name if name in OPS else named.get(id(value), name), name, value, "    ")


def _tuples() -> Iterator[str]:
    yield '"""The named tuples of results. Written by `make stubs` from return_types: change that, not this file."""\n'
    yield "from typing import NamedTuple\n\nfrom autograd_nb.tensor import Tensor\n"
    yield "__all__ = [\n" + "".join(f'    "{name}",\n' for name in return_types.__all__) + "]\n"
    for name in return_types.__all__:
        fields = getattr(return_types, name)._fields
        several = (name, "bin_edges") == ("histogramdd", fields[-1])
        kinds = {field: "tuple[Tensor, ...]" if several and field == "bin_edges" else TENSOR for field in fields}
        lines = [f'    """What `{name}` returns."""', *(f"    {field}: {kind}" for field, kind in kinds.items())]
        yield f"class {name}(NamedTuple):\n" + "\n".join(lines) + "\n"


def texts() -> dict[str, str]:
    """Return the stubs: file name -> text."""
    files = {f"{stub}.pyi": "\n".join(_namespace(namespace)) for namespace, stub in NAMESPACES.items()}
    files["tensor.pyi"] = "\n".join(_methods())
    files["return_types.pyi"] = "\n".join(_tuples())
    return files


def outdated() -> list[str]:
    """Return the names of the stubs whose text is not what the table of ops gives now."""
    def standing(name: str) -> str:
        path = HERE / name
        return path.read_text(encoding="utf-8") if path.exists() else ""

    return [name for name, text in texts().items() if standing(name) != text]


def write() -> None:
    """Write all stubs beside this file."""
    for name, text in texts().items():
        (HERE / name).write_text(text, encoding="utf-8")


__all__ = ["NAMESPACES", "OVERLOADS", "OpInfo", "outdated", "texts", "write"]
