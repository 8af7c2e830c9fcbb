"""Kernels translated in two walks do what Numba's own front end makes of the same text."""

from __future__ import annotations

import linecache

import numpy as np
import pytest

from autograd_nb.codegen.build import compilation
from autograd_nb.codegen.translate import front
from autograd_nb.codegen.translate.text import Untranslatable, tree_of

pytestmark = pytest.mark.skipif(bool(compilation.numba().config.DISABLE_JIT), reason="nothing is compiled")

HEAD = """
import math
import numpy as np
from autograd_nb.codegen.jit import helper
from autograd_nb.codegen.runtime import row, scratch
LANES = 4
TABLE = (3, 5, 7)
"""

#: texts of kernels f(n, x, a, o, w): an int64, a float64, arrays of float32, float64 and int64
TEXTS = {
    "numbers of all kinds": """
    t = np.float32(x)
    u = np.uint32(n) ^ np.uint32(0xFFFF)
    o[0] = a[0] * t + a[1] / t - a[2] ** 2
    o[1] = u >> np.uint32(3)
    o[2] = n // 3 + n % 3 - (-n) // 3 + (-n) % 3
    o[3] = -x if not n > 2 else +x
    w[0] = ~n | (n << 2) & 12
    w[1] = np.int64(np.int32(np.float32(2.5).view(np.int32)) >> 3)
    w[2] = int(x) + int(True) + abs(-n)
    w[3] = np.int64(np.uint64(n) * np.uint64(4000000000) >> np.uint64(7))
    o[4] = math.sqrt(x) + math.floor(x) + max(x, 1.0) + min(n, 3, 2)
    o[5] = n / 4 + True
""",
    "loops": """
    total = 0
    for i in range(n):
        for j in range(i, -2, -1):
            if j == 3:
                continue
            if i + j > 11:
                break
            total += i * j
    for k in range(2, 20, n):
        total += k
    for k in range(20, 2, -n):
        total -= k
    while total > 40 and total % 7:
        total -= 3
    w[0] = total
    i = 0
    while True:
        i += 1
        if i > n:
            break
    w[1] = i
    for i in range(n):
        i = i * 2
        w[2] = i
""",
    "conditions": """
    w[0] = 1 if 0 < n <= 7 and x > 0 or n == 100 else 2
    w[1] = 1 if (n and w[0]) or not (n or x) else 2
    b = n > 3 and x < 2.0
    if b or n == 1:
        w[2] = 5
    elif LANES == 4:
        w[2] = 6
    else:
        w[2] = nothing_of_this_name
    o[0] = x if b else n
    w[3] = n != 3 != n
    if n > 2:
        return
    w[4] = 9
""",
    "arrays": """
    b = a[1:n]
    c = a[-3:]
    d = a[n:2]
    w[0] = b.size + 10 * c.size + 100 * d.size
    o[0] = b[-1] + c[0] + a[-n]
    o[1:3] = 7
    o[3:] = x
    e = np.empty(n, a.dtype)
    h = np.empty(n, dtype=np.float64)
    h[0] = 2.5
    o[5] = h[0] + h.size
    for i in range(e.size):
        e[i] = a[np.uintp(i)] + a.dtype.type(1)
        o[i] += e[i]
    e[0] *= 2
    o[0] -= e[0]
    r = row(a, 1, 3, 1)
    s = scratch(8, np.float32)
    for i in range(3):
        s[i] = r[i]
    o[4] = s[2]
    first = last = 3
    w[1] = first + last + TABLE[1]
""",
    "calls": """
    q, r = parts(n, 4)
    w[0] = q * 10 + r
    w[1] = early(n) + early(-n)
    o[0] = total_of(a[: n + 0])
    z = kept(a, n)
    o[1] = z[0] + z.size
    p, t = (r, q), n
    w[2] = p[0] - p[1] + t
    big, small = n, -n
    big, small = small, big
    w[3] = big - small
    own = np.empty(2, a.dtype)
    own[0] = 1
    own[1] = 2
    for i in range(3):
        own = doubled(own)
    o[2] = own[0] + own[1]
""",
}
TEXTS["whole arrays"] = """
    b = a + a * np.float32(2)
    c = -b
    o[0] = b[1] + c[2]
    for i in range(doubled(b).size - 2):
        o[1] += doubled(c)[i]
    k = 0
    while k < doubled(c).size - n and k < 3:
        k += 1
    w[0] = k
"""
HELPERS = '''
@helper
def parts(n, k):
    """Both."""
    assert LANES
    return n // k, n % k
@helper
def early(n):
    if n < 0:
        return -1
    else:
        return n + 1
@helper
def total_of(a):
    total = a.dtype.type(0)
    for i in range(a.size):
        total += a[i]
    return total
@helper
def kept(a, n):
    b = a[n - 1 :]
    if n > 100:
        b = a[n:]
    return b
@helper
def doubled(a):
    b = np.empty(a.size, a.dtype)
    for i in range(a.size):
        b[i] = 2 * a[i]
    return b
'''
TYPES = ("int64", "float64", "float32[:]", "float64[:]", "int64[:]")


@pytest.fixture(autouse=True)
def nothing_is_kept(monkeypatch):
    monkeypatch.setattr(compilation, "_by_key", {})
    monkeypatch.setattr(compilation.machine_code, "load", lambda key: None)
    monkeypatch.setattr(compilation.machine_code, "save", lambda *args: None)
    front.missed.clear()


def function_of(body: str, name: str):
    text = HEAD + HELPERS + "def f(n, x, a, o, w):\n" + body
    filename = f"<test:{name}>"
    linecache.cache[filename] = (len(text), None, text.splitlines(keepends=True), filename)
    space: dict = {"__name__": "translated"}
    exec(compile(text, filename, "exec"), space)
    return space["f"]


def results(body: str, name: str, n: int) -> list[np.ndarray]:
    entry = compilation.build_function(function_of(body, name), TYPES)
    a, o, w = np.arange(1, 7, dtype=np.float32) / 3, np.zeros(6), np.zeros(5, np.int64)
    entry(n, 1.7, a, o, w)
    return [a, o, w]


@pytest.mark.parametrize("name", TEXTS)
def test_the_same_values_as_numbas_front_end(name, monkeypatch):
    mine = [results(TEXTS[name], name, n) for n in (1, 2, 3, 5)]
    assert not front.missed or name == "whole arrays"  # whose `while` makes an array each time

    def refused(state, function):
        raise Untranslatable("anything")

    monkeypatch.setattr(front, "translated", refused)
    compilation._by_key.clear()
    theirs = [results(TEXTS[name], name, n) for n in (1, 2, 3, 5)]
    assert front.missed
    for one, other in zip(mine, theirs, strict=True):
        for got, wanted in zip(one, other, strict=True):
            np.testing.assert_array_equal(got, wanted)


@pytest.mark.parametrize(
    "body, said",
    [
        ("    t = n\n    t = x\n    o[0] = t\n", "t: int64 and float64"),
        ("    if n > 9:\n        raise IndexError\n    o[0] = 1\n", "Raise"),
        ("    for i in (1, 2):\n        o[i] = 1\n", "for"),
        ("    o[0] = a[::2][0]\n", "slice"),
        ("    a += np.float32(1)\n", "augmented assignment"),
        ("    print(n)\n", "print"),
    ],
)
def test_the_rest_is_left_to_numba(body, said):
    results(body, said, 1)
    assert said in front.missed["translated.f"]


def test_a_text_that_changed_since_is_not_translated():
    function = function_of("    o[0] = 1\n", "changed")
    assert tree_of(function).name == "f"
    text = "".join(linecache.cache["<test:changed>"][2]).replace("o[0] = 1", "o[0] = n")
    linecache.cache["<test:changed>"] = (len(text), None, text.splitlines(keepends=True), "<test:changed>")
    with pytest.raises(Untranslatable):
        tree_of(function)


def test_what_kernels_allocate_is_let_go():
    from numba.core.runtime import _nrt_python as memory

    entry = compilation.build_function(function_of(TEXTS["calls"], "let go"), TYPES)
    a, o, w = np.ones(6, np.float32), np.zeros(6), np.zeros(5, np.int64)
    memory.memsys_enable_stats()
    second = compilation.build_function(function_of(TEXTS["whole arrays"].replace("doubled(c).size - n", "4 - n"), "let go too"), TYPES)
    try:
        made, freed = memory.memsys_get_stats_mi_alloc(), memory.memsys_get_stats_mi_free()
        for _ in range(10):
            entry(3, 1.7, a, o, w)
        assert memory.memsys_get_stats_mi_alloc() - made == memory.memsys_get_stats_mi_free() - freed == 40
        made, freed = memory.memsys_get_stats_mi_alloc(), memory.memsys_get_stats_mi_free()
        second(3, 1.7, a, o, w)
        assert memory.memsys_get_stats_mi_alloc() - made == memory.memsys_get_stats_mi_free() - freed > 5
    finally:
        memory.memsys_disable_stats()


def test_no_array_of_a_wrong_size():
    entry = compilation.build_function(function_of("    b = np.empty(n, a.dtype)\n    w[0] = b.size\n", "sizes"), TYPES)
    a, o, w = np.ones(6, np.float32), np.zeros(6), np.zeros(5, np.int64)
    for n in (-1, -(1 << 60), (1 << 62) + 1, 1 << 61):
        with pytest.raises(ValueError, match="negative size, or one that is too big"):
            entry(n, 1.7, a, o, w)
    assert w[0] == 0
    entry(3, 1.7, a, o, w)
    assert w[0] == 3


def test_indices_are_looked_at_where_that_is_asked_for():
    function = function_of("    o[n] = a[n] + w[-n]\n    b = np.empty(3)\n    b[n] += np.uint8(n)\n", "bounds")
    entry = compilation.build_function(function, TYPES, checked=True)
    assert not front.missed
    a, o, w = np.ones(6, np.float32), np.zeros(6), np.zeros(5, np.int64)
    for n in (6, 5, 3, -4, -6, -1 << 62):
        with pytest.raises(IndexError, match="out of bounds"):
            entry(n, 1.7, a, o, w)
    for n in (0, 2, -2):
        entry(n, 1.7, a, o, w)
        assert o[n] == 1


def test_a_text_that_has_changed_is_not_read():
    """The code is the same but for a constant: a file was written anew after it was imported."""
    function = function_of("    o[0] = 1\n", "changed")
    function_of("    o[0] = 2\n", "changed")
    entry = compilation.build_function(function, TYPES)
    assert "its text" in "".join(front.missed.values())
    a, o, w = np.ones(6, np.float32), np.zeros(6), np.zeros(5, np.int64)
    entry(0, 1.7, a, o, w)
    assert o[0] == 1
