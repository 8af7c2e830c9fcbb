"""The table of ops: the single source for Tensor methods, public functions, docs and generated tests."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial, wraps
from inspect import CO_VARARGS, CO_VARKEYWORDS, Parameter, Signature, signature, unwrap
from types import FunctionType
from typing import Any
from weakref import WeakSet

from ...errors import with_guess
from ...tensor import Tensor
from .foreign import asked, foreign_among
from .numbers import bool_argument
from .repeated import repeatable, repeated

#: kinds of numbers; "half" is float16, "integer" any that is no bool
DTYPES = "half float complex integer bool"


@dataclass
class OpInfo:
    """An op as users see it.

    ``call``: the public function. ``kind``: "pointwise", "reduction", "structured", "view", "composite". ``namespace``: where
    the function is offered ("torch", "nn.functional", "linalg", …). The rest is for tests: ``samples``, the range of the operands'
    values, one for all or one each; ``dtypes``, the kinds of numbers that they are, of `DTYPES`; ``reference``, a function of
    arrays that gives the same values.
    """

    name: str
    call: Callable[..., Any]
    kind: str
    differentiable: bool = True
    namespaces: tuple[str, ...] = ("torch",)
    method: bool = True
    samples: Any = (-2, 2)
    dtypes: str = DTYPES
    reference: Callable[..., Any] | None = None
    rule: Any = None


OPS: dict[str, OpInfo] = {}
#: ops that users declared, which are public functions as well
USERS: WeakSet[Callable[..., Any]] = WeakSet()
_PACKAGE = __name__.partition(".")[0]


def parameters_of(function: Callable[..., Any]) -> tuple[str, ...]:
    """Return the names of a function's parameters.

    `inspect.signature` makes objects of them, which for the thousand formulas of an import costs a hundred times as much.
    """
    if function.__class__ is FunctionType and not function.__dict__:  # which would say what the function wraps, or another signature
        code = function.__code__
        if not code.co_flags & (CO_VARARGS | CO_VARKEYWORDS):
            return code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    return tuple(signature(function).parameters)


#: PyTorch's keywords -> the names that NumPy gives them, which PyTorch takes too
_NUMPY_NAMES = {"dim": ("axis",), "keepdim": ("keepdims",), "input": ("x", "a", "x1"), "other": ("x2",)}
_FIRST = ("input", *_NUMPY_NAMES["input"])
#: functions, or whole namespaces, whose operands have other names in PyTorch's documentation, which are theirs here, than PyTorch's functions take
_CALLED: dict[str, dict[str, tuple[str, ...]]] = {
    "linalg": {"A": _FIRST, "B": ("other", "x2")}, "linalg.vector_norm": {"x": ("input", "a", "x1")}, "matrix_exp": {"A": _FIRST}, "inverse": {"A": _FIRST},
    "cholesky_inverse": {"L": _FIRST}, "cholesky_solve": {"B": _FIRST, "L": ("input2",)}, "lu_solve": {"b": _FIRST},
    "triangular_solve": {"b": _FIRST}, "ormqr": {"tau": ("input2",), "other": ("input3",)},
    "orgqr": {"tau": ("input2",)}, "linalg.det": {"input": ("A", "x", "a", "x1")},
    **{name: {"indices_or_sections": ("sections", "indices")} for name in ("hsplit", "vsplit", "dsplit")},
}  # fmt: skip
#: namespaces all of whose functions take NumPy's names; elsewhere those do that are called through another function anyway, so that no call pays
_AS_IN_NUMPY = ("fft.", "linalg.")


#: flags that PyTorch's functions read as Python does, so that anything may stand for one
_ANY_TRUTH = {
    "antialias", "average_attn_weights", "center", "copy", "cudnn_enable", "cudnn_enabled", "force", "get_infos", "hard", "inplace",
    "is_causal_hint", "need_weights", "non_blocking", "pin_memory", "requires_grad", "return_indices", "sym", "use_separate_proj_weight",
}  # fmt: skip
#: functions all of whose flags are such
_PYTHONS = {"nn.functional.gaussian_nll_loss", "nn.functional.triplet_margin_with_distance_loss", "multi_head_attention_forward"}


def flags_of(function: Callable[..., Any]) -> dict[str, int]:
    """Return the flags of a function that have to be bools -> their places among its arguments."""
    code = getattr(function, "__code__", None)
    if code is None:
        return {}
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    defaults = function.__defaults__ or ()
    if bool not in map(type, (*defaults, *(function.__kwdefaults__ or {}).values())):
        return {}
    given = dict(zip(names[code.co_argcount - len(defaults) : code.co_argcount], defaults, strict=True)) | (function.__kwdefaults__ or {})
    beyond = sys.maxsize  # the place of what is given by name only
    places = {n: i if i < code.co_argcount else beyond for i, n in enumerate(names) if n not in _ANY_TRUTH}
    return {n: place for n, place in places.items() if given.get(n).__class__ is bool}


def _aliases(name: str, parameters: Sequence[str]) -> dict[str, str]:
    """Return the other names of a function's parameters -> its own."""
    space = name.rpartition(".")[0]
    names = {**_NUMPY_NAMES, **_CALLED.get(space, {}), **_CALLED.get(name, {})}
    return {alias: own for own in parameters for alias in names.get(own, ()) if alias not in parameters}


class _Signature(Signature):
    """A function's signature, with the array API's keywords for its dims at the end, as whoever inspects it expects; read when somebody asks."""

    __slots__ = ("function",)

    def __init__(self, function: Callable[..., Any]):
        self.function = function

    @property
    def parameters(self) -> Mapping[str, Parameter]:  # type: ignore[override]
        own = signature(self.function)
        named = {name for name, p in own.parameters.items() if p.kind in (Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY)}
        more = [n for name in ("dim", "keepdim") if name in named for n in _NUMPY_NAMES[name] if n not in named]
        given = [*own.parameters.values(), *[Parameter(n, Parameter.KEYWORD_ONLY, default=None) for n in more]]
        return own.replace(parameters=sorted(given, key=lambda p: p.kind)).parameters

    @property
    def return_annotation(self) -> Any:  # type: ignore[override]
        return signature(self.function).return_annotation

    def __reduce__(self) -> Any:
        return Signature, (list(self.parameters.values()),)

    def replace(self, **changes: Any) -> Signature:  # type: ignore[override]
        return Signature(list(self.parameters.values()), return_annotation=self.return_annotation).replace(**changes)


def own_names(function: Callable[..., Any], options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the keywords of a call with the names that the function's own text has for them."""
    code = getattr(unwrap(function), "__code__", None)
    renamed = _aliases("", code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]) if code else {}
    return {renamed.get(name, name): value for name, value in options.items()}


def _in_own_words(name: str, function: Callable[..., Any], options: dict[str, Any]) -> dict[str, Any] | None:
    """Return the keywords of a call, NumPy's exchanged for the function's own; None where there are none of NumPy's."""
    renamed = _aliases(name, parameters_of(function))
    if renamed.keys().isdisjoint(options):
        return None
    return {renamed.get(key, key): value for key, value in options.items()}


def _as_dim(t: Tensor, name: str) -> int:
    """Return the dim that a tensor stands for. TypeError where it stands for none."""
    if t.ndim or t.dtype.category != 1:
        raise TypeError(f"{name}() received an invalid combination of arguments - got (Tensor, dim=Tensor): a dim is a whole number, not {t}")
    return int(t)


def numpy_names(call: Callable[..., Any], flags: Mapping[str, int] | None = None, name: str = "", everywhere: bool = False) -> Callable[..., Any]:
    """Return the function, taking NumPy's names of its arguments (``axis`` for ``dim``), and refusing ``flags`` that are none.

    Where it has neither dims nor flags it stays as it is, unless PyTorch's operands have ``name``'s own names, or it is asked for ``everywhere``.
    """
    code = getattr(call, "__code__", None)
    if code is None or hasattr(call, "__wrapped__"):
        return call
    parameters = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    flags = flags_of(call) if flags is None else flags
    if not (flags or everywhere or "dim" in parameters or "keepdim" in parameters or name in _CALLED or name.startswith(_AS_IN_NUMPY)):
        return call
    renamed = _aliases(name, parameters)
    if not renamed and not flags:
        return call
    extreme = name in ("max", "min")
    named, first, names = call.__name__.removeprefix("_f_"), min(flags.values(), default=sys.maxsize), frozenset(renamed)

    @wraps(call)
    def renaming(*args: Any, **options: Any) -> Any:
        if options:
            if not names.isdisjoint(options):
                for alias in names.intersection(options):
                    if renamed[alias] not in options:
                        options[renamed[alias]] = options.pop(alias)
            if extreme and isinstance(options.get("dim"), Tensor):  # (by place it is another operand)
                options["dim"] = _as_dim(options["dim"], named)
            for flag in flags.keys() & options.keys():
                bool_argument(options[flag], named, flag)
        if len(args) > first:
            for flag, place in flags.items():
                if place < len(args):
                    bool_argument(args[place], named, flag)
        try:
            return call(*args, **options)
        except (TypeError, AttributeError) as error:
            if not foreign_among((*args, *options.values())):
                if options and isinstance(error, TypeError):
                    with_guess(error, call, renamed)
                raise
        return asked.redefined(getattr(renaming, "public", renaming), args, options)

    return renaming


def node_name(op: str) -> str:
    """Return the name of the ``grad_fn`` of an op: AddBackward0."""
    return "".join(w[:1].upper() + w[1:] for w in op.split("_")) + "Backward0"


def _give_home(call: Callable[..., Any], name: str, namespaces: tuple[str, ...], method: bool) -> None:
    """Tell a function where users find it, which is how `pickle` names it: the namespace that offers it, or Tensor."""
    if call.__class__ is not FunctionType or not (namespaces or method):
        return
    space = namespaces[0] if namespaces else ""
    call.__module__ = _PACKAGE if space in ("", "torch") else f"{_PACKAGE}.{space}"
    call.__qualname__ = name.removeprefix(space + ".") if space else f"Tensor.{name}"
    call.__name__ = call.__qualname__.rpartition(".")[2]


_NESTED = re.compile(r"\[[^\]]*\[")


def _tensors(text: str, made: str) -> str:
    """Return the text with what stands in outermost brackets put into ``made(…)``."""
    if not _NESTED.search(text):
        return text.replace("[", f"{made}([").replace("]", "])")
    whole, depth = text.split("]"), 0
    for k, part in enumerate(whole[:-1]):
        inside = depth > 0
        depth += part.count("[") - 1
        opened = part if inside else part.replace("[", f"{made}([", 1)
        whole[k] = opened + ("]" if depth else "])")
    return "".join(whole)


_NUMBER = re.compile(r"-?\d[\d.e-]*|nan").fullmatch


def with_example(doc: str | None, name: str, namespaces: tuple[str, ...]) -> str | None:
    """Return a docstring whose first line ends with an equation of values, with a doctest of it.

    "y = eˣ; exp([0., 1.]) = [1.0000, 2.7183]." gives ">>> torch.exp(torch.tensor([0., 1.]))" and what that prints; a method's example is
    written "[1, 2].tolist() = …".
    """
    first, _, rest = (doc or "").partition("\n")
    text, found, example = first.rpartition("; ")
    given, equals, result = example.removesuffix(".").partition(" = ")
    space = namespaces[0] if namespaces else ""
    short = name.removeprefix(space + ".")
    if not found or not equals or not (given.startswith(short + "(") or (given[0] == "[" and f"].{short}(" in given)):
        return doc
    home = "" if given[0] == "[" else "torch." if space in ("", "torch") else f"torch.{space}."
    if home and _NUMBER(result):
        result = f"tensor({result})"
    elif not result.startswith("torch."):
        result = _tensors(result, "tensor")
    indent = "    " if rest.startswith("\n    ") else ""
    return f"{text}.\n{rest.rstrip()}\n\n{indent}>>> {home}{_tensors(given, 'torch.tensor')}\n{indent}{result}\n{indent}"


def show_examples(things: Mapping[str, Any], namespace: str) -> None:
    """Write out the examples of functions and classes that are no ops, as `with_example` does."""
    for name, thing in things.items():
        if isinstance(thing, (type, FunctionType)) and "; " in (thing.__doc__ or ""):
            doc = with_example(thing.__doc__, name, (namespace,))
            if doc != thing.__doc__:
                thing.__doc__ = doc


def register(
    name: str, call: Callable[..., Any], kind: str = "composite", *, method: bool | str = True,
    namespaces: tuple[str, ...] = ("torch",), aliases: tuple[str, ...] = (), methods: tuple[str, ...] = (), **info: Any,
) -> Callable[..., Any]:  # fmt: skip
    """Enter an op into the table, and attach it to Tensor as a method of its name and aliases.

    ``methods``: those of the names that are methods only, and offered in no namespace.
    """
    if name in methods:
        namespaces = ()
    own, inner = name.rpartition(".")[2], unwrap(call) if hasattr(call, "__wrapped__") else call
    if own[0] != "_" and inner.__class__ is FunctionType and inner.__qualname__[0] == "_":
        inner.__qualname__ = own  # type: ignore[attr-defined]  # so that Python's messages say what the user has called
    call = numpy_names(call, {} if name in _PYTHONS else None, name)
    if (kind == "inplace" or (kind in ("composite", "reduction") and name[-1] != "_")) and repeatable(name, call, inner.__module__):
        function, call = call, repeated(call, partial(_in_own_words, name, inner))
        function.public = call  # type: ignore[attr-defined]
    if call.__class__ is FunctionType is inner.__class__ and not {"dim", "keepdim"}.isdisjoint(inner.__code__.co_varnames):
        call.__signature__ = _Signature(inner)  # type: ignore[attr-defined]
    if "; " in (call.__doc__ or ""):
        call.__doc__ = with_example(call.__doc__, name, namespaces)
    _give_home(call, name, namespaces, bool(method))
    entry = OpInfo(name, call, kind, method=bool(method), namespaces=namespaces, **info)
    OPS[name] = entry
    for alias in aliases:
        OPS[alias] = replace(entry, namespaces=()) if alias in methods else entry
    if method:
        for n in (name, *aliases):
            setattr(Tensor, n, call)
    return call


def public(
    *aliases: str, method: bool = True, namespaces: tuple[str, ...] = ("torch",), kind: str = "composite", name: str = "", **info: Any
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Decorator: register a function under its own name (a trailing underscore of reserved words dropped) and aliases."""

    def enter(function: Callable[..., Any]) -> Callable[..., Any]:
        own = name or function.__name__
        register(own, function, kind, method=method, namespaces=namespaces, aliases=aliases, **info)
        return function

    return enter


def functions(namespace: str) -> dict[str, Callable[..., Any]]:
    """Return name -> function of everything offered in a namespace."""
    # where namespaces differ in a function's signature, it is entered as "<namespace>.<name>"
    return {name.removeprefix(namespace + "."): op.call for name, op in OPS.items() if namespace in op.namespaces}


show_examples(vars(Tensor), "Tensor")  # of its own methods; those that are ops follow as they are registered
