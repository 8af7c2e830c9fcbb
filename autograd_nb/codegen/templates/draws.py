"""The loop template of random numbers: Philox4x32-10, vectorised, one counter per block of four words.

The words of element i depend only on (seed, call, i): the counter is (block number, number of the call), the key is the
seed. So the same numbers come out however the work is cut, and a mask need not be kept: it can be drawn again.

A tile is `BLOCK` counters. Its elements are laid out lane by lane (first all first words, then all second words, …), so that
every store is contiguous: element ``lane·BLOCK + b`` of a tile comes from its counter b.

Source: Salmon et al., Parallel random numbers: as easy as 1, 2, 3 (SC11)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..formula.namespace import m
from ..formula.symbols import Sym, Trace, numpy_name, primitive, where
from .loops import HEADER, Input, _indent, loaded, storage, stored

BLOCK = 64  #: counters in a tile
PART = 16  #: of these in the inner loop

_MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
_WEYL = (0x9E3779B9, 0xBB67AE85)


# A loop, not its ten rounds written out: LLVM unrolls it, and Numba has a tenth to read.
PHILOX = f"""\
w0, w1, w2, w3 = np.uint32(first + np.uint32(i)), c1, c2, c3
a, b = k0, k1
for _ in range(10):
    p = np.uint64(w0) * np.uint64({_MULTIPLIERS[0]})
    q = np.uint64(w2) * np.uint64({_MULTIPLIERS[1]})
    w0, w1, w2, w3 = np.uint32(np.uint32(q >> np.uint64(32)) ^ w1 ^ a), np.uint32(q), np.uint32(np.uint32(p >> np.uint64(32)) ^ w3 ^ b), np.uint32(p)
    a, b = np.uint32(a + np.uint32({_WEYL[0]})), np.uint32(b + np.uint32({_WEYL[1]}))
""".splitlines()


# ------------------------------------------------------------------------------------------- from words to draws


def _unit(words: Sequence[Sym], d: str) -> Sym:
    """Return a number that is uniform on [0, 1): 24 bits for float32, 53 for float64."""
    if d == "float32":  # by way of int32: there is a vector instruction for that conversion
        return (words[0] >> 8).cast("int32").cast("float32") * 2.0**-24
    high, low = (words[0] >> 5).cast("int32").cast("float64"), (words[1] >> 6).cast("int32").cast("float64")
    return (high * 2.0**26 + low) * 2.0**-53


def _open(words: Sequence[Sym], d: str) -> Sym:
    """Return a number that is uniform on (0, 1], fine near 0: 31 and 53 bits, so that logarithms of it reach far tails."""
    if d == "float32":
        return (words[0] >> 1).cast("int32").cast("float32") * 2.0**-31 + 2.0**-32
    return _unit(words, d) + 2.0**-54


# sine and cosine of half a quarter turn and less
_SIN = {
    "float32": (-0.16666655242443085, 0.008332191035151482, -0.00019518598855938762),
    "float64": (-0.16666666666666632, 0.00833333333332237, -0.0001984126982977138, 2.7557313678731877e-06,
                -2.5050755970367276e-08, 1.5896666948688288e-10),
}  # fmt: skip
_COS = {
    "float32": (0.041666653007268906, -0.0013887617969885468, 2.446319194859825e-05),
    "float64": (0.0416666666666666, -0.0013888888888874064, 2.480158728944348e-05, -2.7557314340654267e-07,
                2.087572162147219e-09, -1.1359559245589404e-11),
}  # fmt: skip


def _circle(words: Sequence[Sym], d: str) -> tuple[Sym, Sym]:
    """Return a uniform point of the unit circle: two bits choose the quadrant, the rest the angle from its middle."""
    w = words[0]
    fraction = (w << 2).cast("int32").cast(d) * (1.5707963267948966 * 2.0**-32)
    if d == "float64":
        fraction = fraction + (words[1] >> 1).cast("int32").cast(d) * (1.5707963267948966 * 2.0**-61)
    z = fraction * fraction

    def horner(coefficients: Sequence[float]) -> Sym:
        p: Any = coefficients[-1]
        for c in reversed(coefficients[:-1]):
            p = p * z + c
        return p

    sine = fraction + fraction * z * horner(_SIN[d])
    cosine = 1.0 - 0.5 * z + z * z * horner(_COS[d])
    swap, flip, mirror = (w >> 30) & 1, w >> 31, ((w >> 30) & 1) ^ (w >> 31)
    a, b = where(swap == 0, cosine, sine), where(swap == 0, sine, cosine)
    return where(mirror == 0, a, -a), where(flip == 0, b, -b)


def uniform(words: Sequence[Sym], d: str) -> list[Sym]:
    """Return four float32 or two float64 that are uniform on [0, 1)."""
    return [_unit([w], d) for w in words] if d == "float32" else [_unit(words[:2], d), _unit(words[2:], d)]


def positive(words: Sequence[Sym], d: str) -> list[Sym]:
    """Return four float32 or two float64 that are uniform on (0, 1], fine near 0."""
    return [_open([w], d) for w in words] if d == "float32" else [_open(words[:2], d), _open(words[2:], d)]


def normal(words: Sequence[Sym], d: str) -> list[Sym]:
    """Return four or two standard normal numbers by Box and Muller: a radius and a point of the circle make two."""
    pairs = [(words[:1], words[1:2]), (words[2:3], words[3:])] if d == "float32" else [(words[:2], words[2:])]
    out = []
    for a, b in pairs:
        radius = primitive("sqrt", -2.0 * m.log(_open(a, d)))
        x, y = _circle(b, d)
        out += [radius * x, radius * y]
    return out


def ratio(words: Sequence[Sym], d: str) -> list[Sym]:
    """Return numbers with the standard Cauchy distribution: each is the ratio of a uniform point's coordinates."""
    pairs = [[w] for w in words] if d == "float32" else [words[:2], words[2:]]
    return [x / y for x, y in (_circle(p, d) for p in pairs)]


def bits(words: Sequence[Sym], d: str) -> list[Sym]:
    """Return the four words themselves."""
    return list(words)


def wide_bits(words: Sequence[Sym], d: str) -> list[Sym]:
    """Return the words as two uint64."""
    return [words[k].cast("uint64") | (words[k + 1].cast("uint64") << 32) for k in (0, 2)]


# --------------------------------------------------------------------------------------------------- the template


def _drawn(
    draw: Callable[[Sequence[Sym], str], list[Sym]], finish: Callable[..., Sym], inputs: Sequence[Input], compute: str, out: str
) -> tuple[str, list[str], list[str], list[Sym]]:
    """Return (constants, loads, lines, results of the lanes) of `random_map`'s inner loop."""
    trace = Trace(compute)
    draws = draw([trace.input(f"w{k}", "uint32") for k in range(4)], compute)
    results, loads = [], []
    for lane, value in enumerate(draws):
        operands = []
        for j, s in enumerate(inputs):
            if s.scalar:
                x = trace.input(f"x{j}", s.dtype)
                operands.append(x.cast(compute) if s.dtype == "float64" else x)
                continue
            x = trace.input(f"x{j}l{lane}", storage(s.dtype))
            loads.append(f"x{j}l{lane} = {f'a{j}r'}[np.uintp(i + {lane * BLOCK})]")
            operands.append(loaded(x, s.dtype).cast(compute))
        results.append(stored(finish(value, *operands), out))
    before, lines = trace.lines(results)
    return before, loads, lines, results


def random_map(
    draw: Callable[[Sequence[Sym], str], list[Sym]],
    finish: Callable[..., Sym],
    inputs: Sequence[Input],
    compute: str,
    out: str,
) -> str:
    """Return the text of ``kernel(seed, call, skipped, x0, …, o)``: o[i] = finish(draw of element skipped + i, x0[i] or the scalar x0, …).

    ``skipped`` is a multiple of 4 `BLOCK`.
    ``compute`` is the dtype of the draws and of the inputs (a scalar of another kind keeps its own if it is an integer).
    """
    before, loads, lines, results = _drawn(draw, finish, inputs, compute, out)
    lanes = len(results)
    arrays = [j for j, s in enumerate(inputs) if not s.scalar]
    stores = [f"target[np.uintp(i + {lane * BLOCK})] = {r.name}" for lane, r in enumerate(results)]
    size = BLOCK * lanes
    args = ["seed", "call", "skipped", *(f"a{j}" if not s.scalar else f"x{j}" for j, s in enumerate(inputs)), "o"]
    rows = [f"a{j}r = row(a{j}, base, {size}, 1)" for j in arrays]
    # (element by element: Numba compiles a function that words an error with each assignment of an array to a slice)
    copied = "for i in range(n - base):\n    "
    scratch = [
        f"a{j}r = scratch({size}, np.{numpy_name(storage(inputs[j].dtype))})\n{copied}a{j}r[i] = a{j}[np.uintp(base + i)]"
        for j in arrays
    ]
    text = HEADER + "from autograd_nb.codegen.runtime import row, scratch\n" + before + f"def kernel({', '.join(args)}):\n"
    setup = ["k0 = np.uint32(seed)", "k1 = np.uint32(seed >> 32)", "c2 = np.uint32(call)", "c3 = np.uint32(call >> 32)"]
    setup.append(f"spare = scratch({size}, np.{numpy_name(storage(out))})")
    text += _indent([*setup, "n = o.size", f"for tile in range((n + {size - 1}) // {size}):"], 1)
    text += _indent([f"base = tile * {size}", f"counter = (skipped // {size} + tile) * {BLOCK}"], 2)
    text += _indent(["first = np.uint32(counter)", "c1 = np.uint32(counter >> 32)"], 2)
    text += _indent([f"if base + {size} <= n:"], 2)
    text += _indent([f"target = row(o, base, {size}, 1)", *rows], 3)
    text += _indent(["else:"], 2)  # the last tile goes through memory of a whole tile's size
    text += _indent(["target = spare", *"\n".join(scratch).splitlines()], 3)
    # a number of turns that is known: a few whole vectors, and no other loop for the rest
    text += _indent([f"for part in range(0, min({BLOCK}, n - base), {PART}):", f"    for i in range(part, part + {PART}):"], 2)
    text += _indent([*PHILOX, *loads, *lines, *stores], 4)
    text += _indent([f"if base + {size} > n:"], 2)
    text += _indent(f"{copied}o[np.uintp(base + i)] = spare[i]".splitlines(), 3)
    return text
