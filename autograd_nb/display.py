"""How tensors print: PyTorch's format, to the character.

The elements that will be shown decide the format of all: integers in floats as ``1.``, else four decimals, or scientific where
the range is wide. Big tensors show the edges of each dim.

Source: https://docs.pytorch.org/docs/stable/generated/torch.set_printoptions.html
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from . import dtypes
from .errors import AutogradError
from .graph import markup
from .graph.node import line_of, place
from .ops.core.numbers import MOST_DIMS, numbers_of
from .ops.core.registry import public
from .tensor import Tensor


@dataclass
class PrintOptions:
    """The choices of `set_printoptions`."""

    precision: int = 4
    threshold: float = 1000
    edgeitems: int = 3
    linewidth: int = 80
    sci_mode: bool | None = None


options: PrintOptions = PrintOptions()
_PROFILES = {
    "default": {"precision": 4, "threshold": 1000, "edgeitems": 3, "linewidth": 80},
    "short": {"precision": 2, "threshold": 1000, "edgeitems": 2, "linewidth": 80},
    "full": {"precision": 4, "threshold": math.inf, "edgeitems": 3, "linewidth": 80},
}


@public(method=False)
def set_printoptions(
    precision: int | None = None, threshold: float | None = None, edgeitems: int | None = None, linewidth: int | None = None,
    profile: str | None = None, sci_mode: bool | None = None,
) -> None:  # fmt: skip
    """Set how tensors print.

    precision: decimals (4). threshold: elements from which only the edges show (1000). edgeitems: how many at each edge (3).
    linewidth: characters in a line (80). profile: "default", "short" or "full". sci_mode: True or False for scientific
    notation, None to decide by the values.

    Errors: ValueError for an unknown profile. Source: https://docs.pytorch.org/docs/stable/generated/torch.set_printoptions.html

    >>> torch.set_printoptions(precision=2)
    >>> torch.tensor([1 / 3])
    tensor([0.33])
    >>> torch.set_printoptions(profile="default")
    """
    if profile is not None:
        if profile not in _PROFILES:
            raise ValueError(f"profile (={profile!r}) must be one of {', '.join(map(repr, _PROFILES))}")
        settings: Any = _PROFILES[profile]
        for name, value in settings.items():
            setattr(options, name, value)
    for name, value in {"precision": precision, "threshold": threshold, "edgeitems": edgeitems, "linewidth": linewidth}.items():
        if value is not None:
            setattr(options, name, value)
    options.sci_mode = sci_mode


def get_printoptions() -> dict[str, Any]:
    """Return the current options by name."""
    return asdict(options)


@contextmanager
def printoptions(**kwargs: Any) -> Iterator[None]:
    """Do `set_printoptions` for the length of a ``with`` block."""
    old = get_printoptions()
    set_printoptions(**kwargs)
    try:
        yield
    finally:
        set_printoptions(**old)


class _Format:
    """The format that fits all shown values: how one prints, and how wide."""

    def __init__(self, values: np.ndarray):
        self.floating = values.dtype.kind == "f"
        self.integral = True
        self.scientific = False
        self.width = 1
        flat = values.reshape(-1)
        if not self.floating:
            self.width = max([1, *(len(str(v)) for v in flat.tolist())])
            return
        wide = flat.astype(np.float64)
        shown = wide[np.isfinite(wide) & (wide != 0)]
        if not shown.size:
            return
        self.integral = bool((shown == np.ceil(shown)).all())
        size = np.abs(shown)
        low, high = float(size.min()), float(size.max())
        with np.errstate(over="ignore"):
            spread = high / low
        self.scientific = spread > 1000.0 or high > 1.0e8 or (not self.integral and low < 1.0e-4)
        if options.sci_mode is not None:
            self.scientific = options.sci_mode
        p = options.precision
        if self.scientific:
            self.width = max(len(f"{v:.{p}e}") for v in shown.tolist())
        elif self.integral:
            self.width = max(len(f"{v:.0f}") + 1 for v in shown.tolist())
        else:
            self.width = max(len(f"{v:.{p}f}") for v in shown.tolist())

    def __call__(self, value: Any) -> str:
        if not self.floating:
            text = str(value)
        elif self.scientific:
            text = f"{value:{self.width}.{options.precision}e}"
        elif self.integral:
            text = f"{value:.0f}"
            if math.isfinite(value):
                text += "."
        else:
            text = f"{value:.{options.precision}f}"
        return text.rjust(self.width)


class _ComplexFormat:
    """Real and imaginary parts, each in a format of its own."""

    def __init__(self, values: np.ndarray):
        self.real, self.imag = _Format(values.real), _Format(values.imag)
        self.width = self.real.width + self.imag.width + 1

    def __call__(self, value: Any) -> str:
        imag = self.imag(value.imag).lstrip() + "j"
        sign = "" if imag[0] in "+-" else "+"
        return self.real(value.real) + sign + imag


def _edges(a: np.ndarray) -> np.ndarray:
    """Return the elements that a summary shows."""
    e = options.edgeitems
    for axis, n in enumerate(a.shape):
        if n > 2 * e:
            a = np.take(a, [*range(e), *range(n - e, n)], axis=axis)
    return a


def _vector(a: np.ndarray, indent: int, summarize: bool, fmt: Any) -> str:
    per_line = max(1, (options.linewidth - indent) // (fmt.width + 2))
    e = options.edgeitems
    if summarize and not e:
        texts = ["..."]
    elif summarize and a.shape[0] > 2 * e:
        texts = [*map(fmt, a[:e].tolist()), " ...", *map(fmt, a[-e:].tolist())]
    else:
        texts = [*map(fmt, a.tolist())]
    lines = [", ".join(texts[i : i + per_line]) for i in range(0, len(texts), per_line)]
    return "[" + (",\n" + " " * (indent + 1)).join(lines) + "]"


def _nested(a: np.ndarray, indent: int, summarize: bool, fmt: Any) -> str:
    if a.ndim == 0:
        return fmt(a.item())
    if a.ndim == 1:
        return _vector(a, indent, summarize, fmt)
    e = options.edgeitems
    n = a.shape[0]
    if summarize and n > 2 * e:
        parts = [_nested(a[i], indent + 1, summarize, fmt) for i in range(e)]
        parts += ["..."] + [_nested(a[i], indent + 1, summarize, fmt) for i in range(n - e, n)]
    else:
        parts = [_nested(a[i], indent + 1, summarize, fmt) for i in range(n)]
    return "[" + ("," + "\n" * (a.ndim - 1) + " " * (indent + 1)).join(parts) + "]"


def contents(a: np.ndarray, indent: int) -> str:
    """Return the elements of an array, as they are printed behind `indent` characters."""
    if not a.size:
        return "[]"
    if a.dtype == np.float16:
        a = a.astype(np.float32)
    summarize = a.size > options.threshold
    shown = _edges(a) if summarize else a
    return _nested(a, indent, summarize, _ComplexFormat(shown) if a.dtype.kind == "c" else _Format(shown))


def _numbers(t: Tensor, indent: int) -> str:
    """Return `contents` of a tensor, which may have more dims than an array can."""
    if t.ndim <= MOST_DIMS or not t._layout.size:
        return contents(numbers_of(t if t._layout.size else t.flatten()), indent)
    return "[" + ("," + "\n" * (t.ndim - 1) + " " * (indent + 1)).join([_numbers(part, indent + 1) for part in t]) + "]"


def _joined(text: str, suffixes: list[str], indent: int) -> str:
    """Return the suffixes behind the contents, on new lines where they do not fit."""
    length = len(text) - text.rfind("\n") + 1
    for s in suffixes:
        if length + len(s) + 2 > options.linewidth:
            text += ",\n" + " " * indent + s
            length = indent + len(s)
        else:
            text += ", " + s
            length += len(s) + 2
    return text + ")"


def tensor_text(self: Tensor, *, tensor_contents: str | None = None) -> str:
    """Return ``tensor([…], dtype=…, grad_fn=<…>)``."""
    plain = type(self).__name__ in ("Tensor", "Parameter", "Marked")
    prefix = "tensor(" if plain else f"{type(self).__name__}("
    indent = len(prefix)
    d = self.dtype
    default = dtypes.get_default_dtype()
    suffixes = []
    if self._layout.size == 0:
        if self.ndim != 1:
            suffixes.append(f"size={tuple(self.shape)}")
        show_dtype = d is not default
    else:
        show_dtype = d not in (default, default.to_complex(), dtypes.int64, dtypes.bool_)
    if show_dtype:
        suffixes.append(f"dtype={d!r}")
    shown = _numbers(self.detach() if self.ndim > MOST_DIMS else self, indent) if tensor_contents is None else tensor_contents
    try:
        node = self.grad_fn
        name = node and type(node).__name__
    except AutogradError:  # a view of which nobody can say what its history is
        name = "Invalid"
    if name:
        suffixes.append(f"grad_fn=<{name}>")
    elif self.requires_grad:
        suffixes.append("requires_grad=True")
    text = _joined(prefix + shown, suffixes, indent)
    learned = not plain and ("_is_param" in self.__dict__ or any(c.__name__ == "Parameter" for c in type(self).__mro__))
    return f"Parameter({text})" if learned else text


def _format(self: Tensor, spec: str) -> str:
    if self.ndim == 0 and (spec or not hasattr(type(self), "of_program")):
        return format(numbers_of(self).item(), spec)
    if spec:
        raise TypeError(
            f"unsupported format string passed to {type(self).__name__}.__format__ (format {spec!r}, tensor of shape "
            f"{list(self.shape)}; only 0-d tensors take one: use .item() or format the elements)"
        )
    return str(self)


def _spread(values: np.ndarray, bins: int = 40) -> str:
    """Return how the finite values are spread, as a line of bars, and how many are not finite."""
    wide = values.astype(np.float64).reshape(-1)
    finite = wide[np.isfinite(wide)]
    text = ""
    if finite.size:
        counts, edges = np.histogram(finite, bins=bins)
        text = markup.histogram(counts.tolist(), float(edges[0]), float(edges[-1]))
        text += f'<div class="dim">mean {finite.mean():.4g}, standard deviation {finite.std():.4g}</div>'
    lost = wide.size - finite.size
    return text + (f"<div>{lost:,} value{'s are' if lost > 1 else ' is'} nan or infinite</div>" if lost else "")


def _line_linked(code: Any, lasti: int) -> str:
    """Return " at" a line of the user's program, as a link to it where it lies in a file."""
    if code is None:
        return ""
    path, text = os.path.abspath(code.co_filename), markup.escape(place(code, lasti))
    if not os.path.isfile(path):  # a cell of a notebook, or a program that was typed
        return f" at {text}"
    return f' at <a href="{markup.escape(Path(path).as_uri())}#L{line_of(code, lasti)}">{text}</a>'


def tensor_html(self: Tensor) -> str:
    """Return what notebooks show of a tensor: shape, dtype, device, how it was made and where, a table of values, how many of each there are.

    What has no dense memory, as sparse tensors and parameters without a shape, is shown as it is printed.
    """
    try:
        return _page_of(self)
    except (RuntimeError, ValueError):
        return markup.page(f"<pre>{markup.escape(repr(self))}</pre>")


def _page_of(self: Tensor) -> str:
    """Return the page of a tensor with dense memory."""
    made = ""
    facts = [f"{type(self).__name__} {list(self.shape)}", repr(self.dtype).partition(".")[2] or repr(self.dtype), str(self.device)]
    try:
        node = self.grad_fn
        if node is not None:
            facts.append(f"made by {node.name()}")
            made = _line_linked(getattr(node, "code", None), getattr(node, "lasti", 0))
        elif self.requires_grad:
            facts.append("a leaf that requires grad")
    except AutogradError as error:
        facts.append(f"history: {error}")
    values = numbers_of(self)
    parts = ["<div>" + " · ".join(f"<span>{markup.escape(f)}</span>" for f in facts) + made + "</div>"]
    if values.size and values.ndim <= 2:
        parts.append(_rows(values.reshape(1, -1) if values.ndim < 2 else values))
    elif values.size:
        parts.append(f"<pre>{markup.escape(str(self.detach()))}</pre>")
    if values.size > 64 and values.dtype.kind in "fiu":
        parts.append(_spread(values))
    return markup.page(*parts)


def _rows(values: np.ndarray, most: int = 8) -> str:
    """Return a table of a matrix: of a large one its edges, with dots in between."""
    half = most // 2

    def ends(n: int) -> list[int | None]:
        return [*range(n)] if n <= most else [*range(half), None, *range(n - half, n)]

    across = ends(values.shape[1])
    shown = values[np.ix_([i for i in ends(values.shape[0]) if i is not None], [j for j in across if j is not None])]
    fmt: Any = _ComplexFormat(shown) if shown.dtype.kind == "c" else _Format(shown.astype(np.float32) if shown.dtype == np.float16 else shown)
    rows = [[("…" if i is None or j is None else fmt(values[i, j].item()).strip()) for j in across] for i in ends(values.shape[0])]
    return markup.table(["…" if j is None else str(j) for j in across] if values.shape[1] > 1 else (), rows)


Tensor._repr_html_ = tensor_html  # type: ignore[method-assign,assignment]
Tensor.__repr__ = tensor_text  # type: ignore[method-assign,assignment]
Tensor.__format__ = _format  # type: ignore[method-assign,assignment]
