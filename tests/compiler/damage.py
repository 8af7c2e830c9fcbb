"""Graph files with something wrong in them, loaded and run one after the other: ``python damage.py FOLDER FIRST LAST [all]``.

Every array that a loaded graph works on ends where a page begins that may not be touched, so a kernel that leaves its memory ends the
process. What a file is refused with must be a GraphError, what is run may only raise that too, and all of it takes a bounded time.
"""

from __future__ import annotations

import copy
import ctypes
import io
import json
import mmap
import random
import re
import sys
import time
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import autograd_nb as torch
from autograd_nb import launch
from autograd_nb.compiler.trace.graph import GraphError

F = torch.nn.functional
NUMBERS = [0, 1, -1, 2, 3, 7, 64, 1000, 1 << 20, (1 << 31) - 1, 1 << 31, 1 << 32, 1 << 40, (1 << 62) + 3, (1 << 63) - 1, -(1 << 63), 1 << 64]
OTHERS = [None, True, "x", "", [], {}, 1.5, float("nan"), float("inf"), -0.0, [1], [[]], "|O", "<f8", "float64[:]", 10**400]
PAGE = mmap.PAGESIZE
WEIGHTS = torch.tensor([0.5, -1.0, 2.0])


def program(x: Any, y: Any) -> dict:
    """Generated kernels of every shape of loop, and kernels written by hand, on little memory."""
    found = {"h": torch.tanh(x.t() * WEIGHTS.unsqueeze(1)).sum(0), "rows": F.softmax(x, 1), "product": (x @ y).cumsum(0)}
    if "all" in sys.argv:
        found |= {
            "norm": F.layer_norm(x, [3]), "std": x.std(0), "joined": torch.cat([x, x * 2], 1).amax(0), "log": F.log_softmax(x.double(), 0),
            "sorted": x.sort(1).values, "image": F.conv2d(x.reshape(1, 1, 2, 3), torch.ones(2, 1, 2, 2)),
        }  # fmt: skip
    return found


def guarded(size: int, d: np.dtype) -> np.ndarray:
    """A flat array whose end is the end of the memory that may be touched."""
    n = size * d.itemsize
    if n > 1 << 26:
        return np.empty(size, d)
    room = -(-max(n, 1) // PAGE) * PAGE
    memory = mmap.mmap(-1, room + 2 * PAGE)
    whole = np.frombuffer(memory, np.uint8)
    begin = whole.ctypes.data
    protect = ctypes.CDLL(None).mprotect
    for page in (begin, begin + PAGE + room):
        if protect(ctypes.c_void_p(page), ctypes.c_size_t(PAGE), 0):
            raise OSError("the page cannot be closed")
    return whole[PAGE + room - n : PAGE + room].view(d)


def parts_of(data: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(data)) as z:
        return {n: z.read(n) for n in z.namelist()}


def zipped(parts: dict[str, bytes]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as z:
        for n, part in parts.items():
            z.writestr(n, part)
    return out.getvalue()


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    """(container, key) of all that stands in a JSON value."""
    for key in list(value) if isinstance(value, dict) else range(len(value)):
        yield value, key
        if isinstance(value[key], (dict, list)):
            yield from places(value[key])


def any_number(head: dict, rng: random.Random) -> None:
    spots = [(c, k) for c, k in places(head) if type(c[k]) is int]
    container, key = rng.choice(spots)
    container[key] = rng.choice([*NUMBERS, container[key] + rng.choice([-1, 1, 8])])


def operand(head: dict, rng: random.Random) -> None:
    spots = [(c, k) for s in head["steps"] for c, k in places(s["operands"]) if type(c[k]) is int]
    container, key = rng.choice(spots)
    container[key] = rng.choice([*NUMBERS, container[key] + rng.choice([-1, 1, 4])])


def anything(head: dict, rng: random.Random) -> None:
    container, key = rng.choice(list(places(head)))
    container[key] = copy.deepcopy(rng.choice(OTHERS))


def drop(head: dict, rng: random.Random) -> None:
    container, key = rng.choice(list(places(head)))
    del container[key]


def text(head: dict, rng: random.Random) -> None:
    """Another number, name or call in the text of a kernel."""
    step = rng.choice([s for s in head["steps"] if s["origin"][0] == "source"])
    lines = step["origin"][1].splitlines()
    begin = next(i for i, line in enumerate(lines) if line.startswith("def "))
    spots = [i for i in range(begin + 1, len(lines)) if re.search(r"range\(|\[|row\(|pack\(|scratch\(|start\(|position\(|advance|entry|steps", lines[i])]
    i = rng.choice(spots)
    number = str(rng.choice(NUMBERS))
    kind = rng.randrange(4)
    if kind == 0 and "range(" in lines[i]:
        lines[i] = re.sub(r"range\(.*\):", f"range({number}):", lines[i])
    elif kind == 1 and "[" in lines[i]:
        lines[i] = re.sub(r"\[(\w+)\]", lambda m: f"[{m[1]} + {number}]", lines[i])
    elif kind == 2:
        found = list(re.finditer(r"\b\d+\b", lines[i]))
        if found:
            m = rng.choice(found)
            lines[i] = lines[i][: m.start()] + number + lines[i][m.end() :]
    else:
        names = sorted(set(re.findall(r"\b[a-z]\w*\b", step["origin"][1])))
        found = list(re.finditer(r"\b[a-z]\w*\b", lines[i]))
        m = rng.choice(found)
        lines[i] = lines[i][: m.start()] + rng.choice(names) + lines[i][m.end() :]
    step["origin"][1] = "\n".join(lines) + "\n"


def swap(head: dict, rng: random.Random) -> None:
    """The kernels, or the operands, of two steps exchanged."""
    a, b = rng.sample(head["steps"], 2)
    key = rng.choice(["origin", "operands", "writes"])
    a[key], b[key] = b[key], a[key]


def other_kernel(head: dict, rng: random.Random) -> None:
    step = rng.choice([s for s in head["steps"] if s["origin"][0] == "kernel"])
    step["origin"][1], step["origin"][2] = rng.choice([
        ("products.tiled", "matmul"), ("products.matmul", "matmul"), ("indexing.sort", "argsort"), ("reduce.scan", "cumsum"),
        ("products.blas", "limit_threads"), ("products.tiled", "strip"), ("linalg.lapack", "svd"), ("fft", "c2c"), ("os", "system"),
        ("indexing.index", "gather"), ("__init__", "x"), ("linalg.__init__", "x"), ("random", "uniform"), ("products.matmul", "gemm"),
        ("indexing.sort", "__builtins__"), ("nn.conv", "correlate"), ("linalg", "lapack"), ("matmul", "matmul"),
    ])  # fmt: skip


def types(head: dict, rng: random.Random) -> None:
    step = rng.choice(head["steps"])
    kinds = step["origin"][-1]
    kinds[rng.randrange(len(kinds))] = rng.choice(["int8[:]", "float64[:]", "int64", "(3)", "[float32]", "bool", "object", "(99)", "complex128", "x"])


def sizes(parts: dict[str, bytes], head: dict, rng: random.Random) -> None:
    """Other values in a table of sizes and strides."""
    tables = [b for b in head["buffers"] if b[4] == "<i8" and f"memory/{b[0]}" in parts]
    number = rng.choice(tables)[0]
    array = np.frombuffer(parts[f"memory/{number}"], np.int64).copy()
    for _ in range(rng.choice([1, 1, 3])):
        array[rng.randrange(array.size)] = rng.choice([n for n in NUMBERS if -(1 << 63) <= n < 1 << 63])
    parts[f"memory/{number}"] = array.tobytes()


CHANGES: list[Callable] = [any_number, operand, operand, anything, drop, text, text, swap, other_kernel, types]


def damaged(data: bytes, rng: random.Random) -> bytes:
    """A file with one or a few things changed."""
    kind = rng.randrange(12)
    if kind == 0:  # bits
        changed = bytearray(data)
        for _ in range(rng.choice([1, 1, 8, 100])):
            changed[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        return bytes(changed)
    if kind == 1:
        return data[: rng.randrange(len(data))]
    parts = parts_of(data)
    head = json.loads(parts["graph.json"])
    if kind == 2:  # memory of another length
        name = rng.choice([n for n in parts if n.startswith("memory/")])
        parts[name] = rng.choice([b"", parts[name][:-1], parts[name] * 2, bytes(1 << 20)])
    elif kind in (3, 4):
        sizes(parts, head, rng)
    else:
        for _ in range(rng.choice([1, 1, 1, 2, 4])):
            try:
                rng.choice(CHANGES)(head, rng)
            except (LookupError, TypeError, AttributeError, ValueError):
                break  # an earlier change has taken away what this one is for
    try:
        parts["graph.json"] = json.dumps(head).encode()
    except ValueError:
        return data[:-1]
    return zipped(parts)


def main(folder: Path, first: int, last: int) -> None:
    x, y = torch.randn(2, 3), torch.randn(3, 2)
    graph = torch.trace(program, x, y)
    graph.save(folder / "graph.zip")
    data = (folder / "graph.zip").read_bytes()
    expected = graph.run(x=x, y=y)
    launch.empty = guarded
    bad = folder / "bad.zip"
    same = 0
    for seed in range(first, last):
        rng = random.Random(seed)
        bad.write_bytes(data if seed == first else damaged(data, rng))
        begin = time.monotonic()
        said = "ran"
        try:
            loaded = torch.load_graph(bad)
            for name in [None, *rng.sample(list(loaded.values), min(3, len(loaded.values)))]:
                try:
                    found = loaded.run(name, {n: {"x": x, "y": y}[n] for n in loaded.inputs})
                    if name is None:
                        same += len(found) == len(expected) and all(map(torch.equal, found, expected))
                    str(found)
                except (KeyError, TypeError, RuntimeError) as error:  # of feeding: GraphError is a RuntimeError
                    said = f"not run: {error}"
        except GraphError as error:
            said = f"refused: {error}"
        took = time.monotonic() - begin
        print(seed, f"{took:.1f}", said[:200].replace("\n", " "), flush=True)
    print("done", same, flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
