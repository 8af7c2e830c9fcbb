"""Loop templates: a traced loop body and a memory layout in, the source of one kernel out.

Every array operand is the flat C array of its storage, beginning at the tensor's first element; shapes and strides come
in ``dims``, one int64 array, so that the types of a kernel never depend on rank or layout. Two shapes of loop:

- pointwise: ``flat`` (all operands contiguous and of one shape: one loop), or ``strided`` (six nested loops, the innermost
  specialised per operand: ``u`` unit stride, ``0`` the same element all along, ``s`` any stride);
- reduction: four kept and reduced outer loops around an inner loop that is itself kept or reduced.

``float16`` arrays are passed as ``uint16`` and converted in the body.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from .maths import m
from .symbols import FLOATS, Sym, Trace, literal

RANK = 6  #: nested loops of the strided template; the innermost is the last

HEADER = "import math\nimport numpy as np\n"


@dataclass(frozen=True)
class Input:
    """An operand of a loop body: an array's element or a scalar argument, of a storage dtype."""

    dtype: str
    scalar: bool = False


@dataclass
class Body:
    """A traced loop body: what to load, the instructions, and what to store where."""

    trace: Trace
    inputs: list[Input]
    symbols: list[Sym]
    results: list[tuple[Sym, str]]  # (value, storage dtype)

    def used(self) -> set[str]:
        return {s.name for s in self.trace.instructions}


def storage(dtype: str) -> str:
    """The dtype of the NumPy array that carries ``dtype`` into a kernel."""
    return "uint16" if dtype == "float16" else dtype


def trace_body(
    formula: Callable[..., Sequence], inputs: Sequence[Input], compute: str | Sequence[str], outputs: Sequence[str | None]
) -> Body:
    """Run ``formula(*symbols)`` (it returns one value per output) on inputs cast to the compute dtype.

    ``compute`` is one dtype for all inputs, or one for each (a condition stays "bool").
    """
    per_input = [compute] * len(inputs) if isinstance(compute, str) else list(compute)
    base = compute if isinstance(compute, str) else next((c for c in per_input if c != "bool"), "float32")
    trace = Trace(base)
    loaded = []
    symbols = []
    for j, (spec, dtype) in enumerate(zip(inputs, per_input, strict=True)):
        x = trace.input(f"x{j}", storage(spec.dtype))
        loaded.append(x)
        if spec.dtype == "float16" and not spec.scalar:
            x = m.half_to_float(x)
        symbols.append(x.cast(dtype))
    values = formula(*symbols)
    results = []
    for value, dtype in zip(values, outputs, strict=True):
        value = trace.as_sym(value)
        target = dtype or value.dtype
        value = m.float_to_half(value.cast("float32")) if target == "float16" else value.cast(target)
        results.append((value, target))
    return Body(trace, list(inputs), loaded, results)


def _tables(trace: Trace) -> str:
    return "".join(
        f"{name} = np.array([{', '.join(literal(v, dtype) for v in values)}], dtype=np.{dtype})\n"
        for name, (values, dtype) in trace.tables.items()
    )


def _indent(lines: Sequence[str], level: int) -> str:
    return "".join("    " * level + line + "\n" for line in lines)


def pointwise_flat(body: Body, name: str = "kernel", over: int | None = None) -> str:
    """``name(x0, x1, …, o0, …)``: one loop over contiguous operands of one size (scalars stand among the inputs).

    ``over``: the input array that the first result overwrites; there is no ``o0`` then. (Passing one array twice would do,
    but LLVM, seeing that they overlap, would take its unvectorised loop.)
    """
    before, lines = body.trace.lines([v for v, _ in body.results])
    live = _live(body)
    args = [f"a{j}" if not s.scalar else f"x{j}" for j, s in enumerate(body.inputs)]
    loads = [f"x{j} = a{j}[i]" for j, s in enumerate(body.inputs) if not s.scalar and j in live]
    outs = [f"o{k}" for k in range(len(body.results))]
    stores = [f"o{k}[i] = {v.name}" for k, (v, _) in enumerate(body.results)]
    first = "o0"
    if over is not None:
        first = f"a{over}"
        stores[0] = f"{first}[i] = {body.results[0][0].name}"
        outs = outs[1:]
    return (
        HEADER
        + _tables(body.trace)
        + f"def {name}({', '.join(args + outs)}):\n"
        + _indent(before, 1)
        + f"    for i in range({first}.size):\n"
        + _indent(loads + lines + stores, 2)
    )


def pointwise_strided(body: Body, kinds: str, name: str = "kernel") -> str:
    """``name(dims, x0, …, o0, …)``: six nested loops; ``kinds`` has one letter per array operand, outputs last.

    ``dims``: the six sizes, then six element strides for each array operand, outputs last.
    """
    before, lines = body.trace.lines([v for v, _ in body.results])
    live = _live(body)
    arrays = [f"a{j}" for j, s in enumerate(body.inputs) if not s.scalar]
    numbers = [j for j, s in enumerate(body.inputs) if not s.scalar]
    outs = [f"o{k}" for k in range(len(body.results))]
    everyone = arrays + outs
    keep = [f"a{j}" for j in numbers if j in live] + outs
    args = ["dims"] + [f"a{j}" if not s.scalar else f"x{j}" for j, s in enumerate(body.inputs)] + outs
    kind = dict(zip(everyone, kinds, strict=True))
    setup = [f"n{d} = dims[{d}]" for d in range(RANK)]
    setup += ["if " + " or ".join(f"n{d} == 0" for d in range(RANK)) + ":", "    return"]
    for p, a in enumerate(everyone):
        if a in keep:
            setup += [f"{a}s{d} = dims[{RANK * (p + 1) + d}]" for d in range(RANK)]
    text = HEADER + _tables(body.trace) + f"def {name}({', '.join(args)}):\n" + _indent(before + setup, 1)
    inner = RANK - 1
    for d in range(inner):
        text += "    " * (d + 1) + f"for i{d} in range(n{d}):\n"
        text += _indent([f"{a}p{d} = {f'{a}p{d - 1} + ' if d else ''}i{d} * {a}s{d}" for a in keep], d + 2)
    rows, loads, stores = [], [], []
    for a in keep:
        start = f"{a}p{inner - 1}"
        x = "x" + a[1:] if a[0] == "a" else None
        value = None if x else body.results[int(a[1:])][0].name
        if kind[a] == "u":
            rows.append(f"{a}r = {a}[{start}:{start} + n{inner}]")
            place = f"{a}r[i]"
        elif kind[a] == "0" and x:
            rows.append(f"{x} = {a}[{start}]")
            continue
        else:  # an unsigned index needs no wraparound check
            place = f"{a}[np.uintp({start} + i * {a}s{inner})]"
        if x:
            loads.append(f"{x} = {place}")
        else:
            stores.append(f"{place} = {value}")
    text += _indent(rows, inner + 1)
    # the bound is the size of a unit-stride row where there is one: it lets LLVM drop the index checks
    unit = next((a for a in keep if kind[a] == "u"), None)
    text += "    " * (inner + 1) + f"for i in range({f'{unit}r.size' if unit else f'n{inner}'}):\n"
    return text + _indent(loads + lines + stores, inner + 2)


def _live(body: Body) -> set[int]:
    """Which inputs the results depend on."""
    needed: set[str] = set()
    stack = [v for v, _ in body.results]
    while stack:
        s = stack.pop()
        if s.name not in needed:
            needed.add(s.name)
            stack.extend(a for a in s.args if isinstance(a, Sym))
    return {j for j in range(len(body.inputs)) if f"x{j}" in needed}




# ------------------------------------------------------------------------------------------------- reductions

#: the chunk of a summation: within it lanes add up in vector registers, chunks are added in order
CHUNK = 1024


@dataclass(frozen=True)
class Fold:
    """How a reduction combines: the accumulator's dtype, where it starts, and the combination of two values."""

    name: str
    accumulator: Callable[[str], str]  # compute dtype -> accumulator dtype
    start: Callable[[str], str]  # accumulator dtype -> literal
    combine: str  # text over {a} (accumulator) and {x}


def _wide(dtype: str) -> str:
    return "float64" if dtype in FLOATS else "int64"


SUM = Fold("sum", _wide, lambda t: literal(0, t), "radd({a}, {x})")
PROD = Fold("prod", _wide, lambda t: literal(1, t), "rmul({a}, {x})")
MAX = Fold("max", lambda t: t, lambda t: f"np.{t}(np.iinfo(np.{t}).min)" if t != "bool" else "False", "{x} if {x} > {a} else {a}")
MIN = Fold("min", lambda t: t, lambda t: f"np.{t}(np.iinfo(np.{t}).max)" if t != "bool" else "True", "{x} if {x} < {a} else {a}")
ANY = Fold("any", lambda t: "bool", lambda t: "False", "{a} | {x}")
ALL = Fold("all", lambda t: "bool", lambda t: "True", "{a} & {x}")
FOLDS = {f.name: f for f in (SUM, PROD, MAX, MIN, ANY, ALL)}

# reassociation only where it is wanted: on the additions of the fold, never inside the formula that feeds it
_REDUCE_HEADER = HEADER + "from autograd_nb.codegen.runtime import radd, rmul\n"

KEPT = 3  #: outer loops over kept dims
REDUCED = 2  #: outer loops over reduced dims


def reduction(body: Body, fold: Fold, inner: str, kinds: str, finish: Callable[..., Sym] | None, out: str, name: str = "kernel") -> str:
    """``name(dims, x0, …, o0)``: fold the body's one result over the reduced loops.

    ``dims``: three kept sizes, two reduced sizes, the inner size; then the same six strides for each array operand and for
    the output (0 along reduced loops). ``inner``: "reduced" or "kept". ``kinds``: inner stride of each array operand.
    ``finish``: formula from the accumulated value (and the scalar arguments) to the stored one.
    """
    (value, _), = body.results
    before, lines = body.trace.lines([value])
    live = _live(body)
    arrays = [f"a{j}" for j, s in enumerate(body.inputs) if not s.scalar]
    keep = [f"a{j}" for j, s in enumerate(body.inputs) if not s.scalar and j in live]
    kind = dict(zip(arrays, kinds, strict=True))
    args = ["dims"] + [f"a{j}" if not s.scalar else f"x{j}" for j, s in enumerate(body.inputs)] + ["o0"]
    acc = fold.accumulator(value.dtype)
    start = fold.start(acc)
    done_trace = Trace(acc)
    done = done_trace.input("total", acc)
    if finish is not None:
        scalars = [done_trace.input(f"x{j}", s.dtype).cast(acc) for j, s in enumerate(body.inputs) if s.scalar]
        done = finish(done, *scalars)
    done = m.float_to_half(done.cast("float32")) if out == "float16" else done.cast(out)
    done_before, done_lines = done_trace.lines([done])

    # the loads of one row, whose first element of operand a is at {a}q
    def row(size: str) -> tuple[list[str], list[str], str]:
        rows, loads = [], []
        unit = None
        for a in keep:
            x = "x" + a[1:]
            if kind[a] == "u":
                rows.append(f"{a}r = {a}[{a}q:{a}q + {size}]")
                loads.append(f"{x} = {a}r[i]")
                unit = unit or f"{a}r.size"
            elif kind[a] == "0":
                rows.append(f"{x} = {a}[{a}q]")
            else:
                loads.append(f"{x} = {a}[np.uintp({a}q + i * {a}s5)]")
        return rows, loads, unit or size

    cast = f"np.{acc if acc != 'bool' else 'bool_'}({value.name})" if value.dtype != acc else value.name
    text = _REDUCE_HEADER + _tables(body.trace) + f"def {name}({', '.join(args)}):\n"
    setup = [f"n{d} = dims[{d}]" for d in range(RANK)]
    setup += [f"if n0 == 0 or n1 == 0 or n2 == 0{' or n5 == 0' if inner == 'kept' else ''}:", "    return"]
    for p, a in enumerate([*arrays, "o0"]):
        if a in keep or a == "o0":
            setup += [f"{a}s{d} = dims[{RANK * (p + 1) + d}]" for d in range(RANK)]
    text += _indent(before + done_before + setup, 1)
    if inner == "kept":
        text += _indent([f"block = np.empty({CHUNK}, dtype=np.{acc if acc != 'bool' else 'bool_'})"], 1)
        if fold is SUM:
            text += _indent([f"upper = np.empty({CHUNK}, dtype=np.{acc})"], 1)
    every = [*keep, "o0"]
    for d in range(KEPT):
        text += "    " * (d + 1) + f"for i{d} in range(n{d}):\n"
        text += _indent([f"{a}p{d} = {f'{a}p{d - 1} + ' if d else ''}i{d} * {a}s{d}" for a in every], d + 2)
    at = KEPT + 1
    combine = fold.combine.format(a="acc", x=cast if not fold.combine.count("{x}") > 1 else "v")
    if inner == "reduced":
        text += _indent([f"total = {start}"], at)
        text += _indent(["for i3 in range(n3):"], at)
        text += _indent(["for i4 in range(n4):"], at + 1)
        text += _indent([f"{a}b = {a}p2 + i3 * {a}s3 + i4 * {a}s4" for a in keep], at + 2)
        text += _indent([f"for c in range(0, n5, {CHUNK}):"], at + 2)
        size = f"min({CHUNK}, n5 - c)"
        text += _indent([f"size = {size}"] + [f"{a}q = {a}b + c * {a}s5" for a in keep], at + 3)
        rows, loads, bound = row("size")
        text += _indent([f"acc = {start}", *rows, f"for i in range({bound}):"], at + 3)
        text += _indent([*loads, *lines, f"v = {cast}", f"acc = {fold.combine.format(a='acc', x='v')}"], at + 4)
        text += _indent([f"total = {_ordered(fold).format(a='total', x='acc')}"], at + 3)
        text += _indent([*done_lines, f"o0[o0p2] = {done.name}"], at)
        return text
    # inner kept: a block of columns at a time, rows folded into a buffer; every 64 rows of a sum go up one level
    text += _indent([f"for c in range(0, n5, {CHUNK}):"], at)
    body_at = at + 1
    lo = "upper" if fold is SUM else "block"
    text += _indent([f"size = min({CHUNK}, n5 - c)", "acc_row = block[:size]", f"acc_row[:] = {start}"], body_at)
    if fold is SUM:
        text += _indent(["sum_row = upper[:size]", f"sum_row[:] = {start}", "count = 0"], body_at)
    text += _indent(["for i3 in range(n3):"], body_at)
    text += _indent(["for i4 in range(n4):"], body_at + 1)
    text += _indent([f"{a}q = {a}p2 + i3 * {a}s3 + i4 * {a}s4 + c * {a}s5" for a in keep], body_at + 2)
    rows, loads, bound = row("size")
    text += _indent([*rows, f"for i in range({'acc_row.size'}):"], body_at + 2)
    text += _indent([*loads, *lines, f"v = {cast}", "acc = acc_row[i]", f"acc_row[i] = {_ordered(fold).format(a='acc', x='v')}"], body_at + 3)
    if fold is SUM:
        text += _indent(["count += 1", "if count == 64:"], body_at + 2)
        text += _indent(["for i in range(sum_row.size):", "    sum_row[i] += acc_row[i]", f"    acc_row[i] = {start}", "count = 0"], body_at + 3)
        text += _indent(["for i in range(sum_row.size):", "    sum_row[i] += acc_row[i]"], body_at)
    final = "sum_row" if lo == "upper" else "acc_row"
    text += _indent([f"for i in range({final}.size):"], body_at)
    text += _indent([f"total = {final}[i]", *done_lines, f"o0[np.uintp(o0p2 + (c + i) * o0s5)] = {done.name}"], body_at + 1)
    return text


def _ordered(fold: Fold) -> str:
    """The combination without leave to reassociate: between chunks the order is fixed."""
    return {"sum": "{a} + {x}", "prod": "{a} * {x}"}.get(fold.name, fold.combine)
