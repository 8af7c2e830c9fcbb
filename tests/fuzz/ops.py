"""Templates for every op of PyTorch's op database, taken from its samples: ``python -m tests.fuzz.ops`` writes ``ops.txt`` anew.

A sample's floating operands become holes, ``{a:(5, 5)}``: a tensor of the program, fitted to that shape where it has another. Integer
and boolean operands, dims and options stay what they are. An op of which a program can draw nothing (`UNDRAWN`) says why.
"""

from __future__ import annotations

import itertools
import re
import types
from pathlib import Path
from typing import Any

TABLE = Path(__file__).with_name("ops.txt")
MOST = 7  #: templates of an entry of the database
ELEMENTS = 64, 400  #: of an operand; so many of ops that have no smaller samples

#: entries that are not drawn: parts of names, and why
UNDRAWN = {
    "values that are drawn by chance": (
        "rand", "bernoulli", "multinomial", "normal", "dropout", "exponential", "uniform", "poisson", "geometric", "cauchy", "rrelu",
        "fractional", "lowrank", "scaled_dot_product_attention", "multi_head_attention",
    ),
    "memory that nothing was written to": ("empty", "resize"),
    "signs or order that are free": (
        "linalg.eig", "linalg.svd", "svd", "linalg.qr", "geqrf", "ormqr", "qr", "unique", "linalg.lstsq",
    ),
    "outside of dense real tensors": ("sparse", "jiterator", "nested", "jagged", "bfloat16", "chalf", "coalesce", "torch.ops", "ops.aten"),
    "PyTorch writes past its memory where sizes do not fit": ("lu_unpack",),
    "internal": ("_batch_norm_with_update", "native_", "_backward", "torch._", "aten."),
}  # fmt: skip
#: operands that an op accepts only if they are made so
FITTING = {
    "cholesky": "spd({0})", "linalg.cholesky": "spd({0})", "linalg.cholesky_ex": "spd({0})", "logdet": "spd({0})",
    "cholesky_inverse": "spd({0}).tril()", "acosh": "({0}.abs() + 1.5)", "log": "({0}.abs() + 0.5)", "log2": "({0}.abs() + 0.5)",
    "log10": "({0}.abs() + 0.5)", "log1p": "({0}.abs() + 0.5)", "sqrt": "({0}.abs() + 0.5)", "rsqrt": "({0}.abs() + 0.5)",
    "lgamma": "({0}.abs() + 0.5)", "digamma": "({0}.abs() + 0.5)", "acos": "{0}.tanh()", "asin": "{0}.tanh()", "atanh": "({0}.tanh() * 0.9)",
    "erfinv": "({0}.tanh() * 0.9)", "special.ndtri": "({0}.sigmoid() * 0.9 + 0.05)", "special.log_ndtr": "{0}", "logit": "({0}.sigmoid() * 0.9 + 0.05)",
    "nn.functional.binary_cross_entropy": "({0}.sigmoid() * 0.9 + 0.05)", "mvlgamma": "({0}.abs() + 3)", "special.i0e": "{0}",
    "linalg.inv": "spd({0})", "inverse": "spd({0})", "linalg.inv_ex": "spd({0})", "special.entr": "({0}.abs() + 0.5)", "special.xlog1py": "({0}.abs() + 0.5)",
    "xlogy": "({0}.abs() + 0.5)", "reciprocal": "({0}.abs() + 0.5)",
}  # fmt: skip


def left_out(name: str) -> str:
    """Why an entry is not drawn; empty for one that is."""
    for why, parts in UNDRAWN.items():
        if any(part in name for part in parts):
            return why
    return ""


class Unwritten(Exception):
    """A sample that has no text."""


def text(value: Any, most: int = ELEMENTS[0]) -> str:
    """A sample's argument as Python, its floating tensors as holes."""
    import torch

    if isinstance(value, torch.Tensor):
        shape = tuple(value.shape)
        if value.layout is not torch.strided or value.numel() > most or value.is_conj() or value.is_neg():
            raise Unwritten
        if value.is_floating_point():
            return f"{{a:{shape}}}"
        if value.dtype is torch.bool and value.numel() > 4:
            return f"make({{s}}, {shape}, 'bool')"
        if value.is_complex() or value.numel() > 30:
            raise Unwritten
        return f"torch.tensor({value.tolist()}, dtype={value.dtype})" if value.numel() else f"torch.zeros({shape}, dtype={value.dtype})"
    if isinstance(value, (bool, int, str, type(None), type(Ellipsis), torch.dtype)):
        return "..." if value is ... else repr(value)
    if isinstance(value, torch.Size):
        return repr(tuple(value))
    if isinstance(value, float):
        return f"float('{value}')" if value != value or abs(value) == float("inf") else repr(value)
    if isinstance(value, slice):
        return f"slice({value.start}, {value.stop}, {value.step})"
    if isinstance(value, (list, tuple)):
        inner = ", ".join(text(v, most) for v in value)
        return f"[{inner}]" if isinstance(value, list) else f"({inner}{',' * (len(value) == 1)})"
    raise Unwritten


def calls_of(op: Any, sample: Any, most: int) -> list[str]:
    """A sample as a function's, a method's and an in-place method's call."""
    import torch

    found = text(sample.input, most)
    args = [text(v, most) for v in sample.args]
    options = [f"{k}={text(v, most)}" for k, v in sample.kwargs.items()]
    if op.name in FITTING:
        found = FITTING[op.name].format(found)
    if op.name == "bucketize":
        args[0] += ".sort()[0]"
    last, given = op.name.split(".")[-1], ", ".join([*args, *options])
    written, space = [], torch
    for part in op.name.split("."):
        space = getattr(space, part, None)
    if callable(space):
        taken = [*args, found] if last == "polygamma" else [found, *args]  # (its method takes the tensor first)
        written.append(f"torch.{op.name}({', '.join([*taken, *options])})")
    if isinstance(sample.input, torch.Tensor):
        if hasattr(torch.Tensor, last) and isinstance(op.method_variant, (types.MethodDescriptorType, types.FunctionType, types.WrapperDescriptorType)):
            written.append(f"{found}.{last}({given})")
        if hasattr(torch.Tensor, f"{last}_") and op.inplace_variant is not None:
            written.append(f"{found}.{last}_({given})")
    return written


def entry(op: Any) -> list[str]:
    return next((found for most in ELEMENTS if (found := _entry(op, most))), [])


def _entry(op: Any, most: int) -> list[str]:
    """Templates of one entry: of different samples, each as one of its calls, so that all kinds of calls appear."""
    import torch

    torch.manual_seed(0)
    dtype = torch.float64 if torch.float64 in op.dtypes else torch.int64
    found: list[str] = []
    samples = list(itertools.islice(op.sample_inputs("cpu", dtype), 40))
    samples = samples[:2] + samples[2 :: max(1, (len(samples) - 2) // MOST)]
    for k, sample in enumerate(samples):
        try:
            calls = calls_of(op, sample, most)
        except Unwritten:
            continue
        written = calls[k % len(calls)] if calls else ""
        if written and written not in found and len(written) < 400:
            found.append(written)
    return found[:MOST]


def write() -> None:
    from torch.testing._internal.common_methods_invocations import op_db

    lines: dict[str, None] = {}
    for op in op_db:
        if not left_out(op.name) and not op.name.startswith("_"):
            try:
                lines |= {f"{op.name}: {template}": None for template in entry(op)}
            except Exception as error:
                print(f"{op.name}: {type(error).__name__} {str(error)[:80]}")
    TABLE.write_text("\n".join(lines) + "\n")
    print(f"{len(lines)} templates of {len({line.split(':')[0] for line in lines})} ops")


def templates() -> list[tuple[str, list[str]]]:
    """(op, its templates) for all ops of the table."""
    found: dict[str, list[str]] = {}
    for line in TABLE.read_text().splitlines():
        name, _, template = line.partition(": ")
        found.setdefault(name, []).append(template)
    return list(found.items())


def named(text: str) -> set[str]:
    """The last parts of the names that a program calls."""
    return set(re.findall(r"[.\s(](\w+?)_?\(", text)) | set(re.findall(r"\.(\w+)\b", text))


#: what operators and brackets call
OPERATORS = {
    "add": "+", "sub": "-", "mul": "*", "div": "/", "pow": "**", "matmul": "@", "neg": "= -", "floor_divide": "//", "gt": ">", "lt": "<",
    "eq": "==", "bitwise_not": "~", "bitwise_and": "&",
}  # fmt: skip


def share(texts: list[str]) -> tuple[int, int, list[str]]:
    """How many ops of this library's table programs have called, of how many that can be drawn, and those they have not."""
    from autograd_nb.ops.core.registry import OPS

    every = {name for name, op in OPS.items() if op.kind not in ("inplace", "internal") and not left_out(name) and not name.startswith("_")}
    whole = "\n".join(texts)
    called = named(whole)
    missing = sorted(n for n in every if n.split(".")[-1] not in called and OPERATORS.get(n, "\0") not in whole)
    return len(every) - len(missing), len(every), missing


if __name__ == "__main__":
    write()
