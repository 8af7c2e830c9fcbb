"""Where the processor time of a process goes: by stage, and by kernel that is compiled.

`watch` is called before the library is imported. It puts clocks around what compiling consists of, as soon as the modules are there
in which that is; a stage is charged for what it does itself, not for stages within it. What a clock costs is a microsecond.
"""

from __future__ import annotations

import functools
import importlib._bootstrap as bootstrap  # type: ignore[import-not-found]
import sys
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

#: in the order of their turn. Program: what `compile` does after the run that it watched. Front end: bytecode to Numba's IR, SSA,
#: lifetimes. IR text: LLVM's IR printed, parsed and checked. LLVM: optimising and machine code. Entry points: the code by which Python
#: calls kernels. Loading: keys, files of the cache, addresses
STAGES = (
    "interpreter", "importing", "Python", "program", "front end", "type inference", "lowering", "IR text", "LLVM", "entry points", "loading", "saving",
)  # fmt: skip

#: module -> (what is timed in it, its stage)
PLACES: dict[str, tuple[tuple[str, str], ...]] = {
    "autograd_nb.compiler.session": (("Session.variant", "program"),),
    "autograd_nb.codegen.translate.inference": (("Inference.__init__", "type inference"),),
    "autograd_nb.codegen.frontend": (("Passes._runPass", "front end"),),
    "numba.core.typed_passes": (("BaseTypeInference.run_pass", "type inference"), ("NativeLowering.run_pass", "lowering")),
    "numba.core.codegen": (
        ("CPUCodeLibrary.__init__", "IR text"), ("CPUCodeLibrary.add_ir_module", "IR text"), ("CPUCodeLibrary.add_llvm_module", "LLVM"),
        ("CPUCodeLibrary.finalize", "LLVM"),
    ),
    "autograd_nb.codegen.build.entry_point": (("shared", "entry points"),),
    "autograd_nb.codegen.build.machine_code": (("save", "saving"),),
    "autograd_nb.codegen.build.compilation": (
        ("_entry", "Python"), ("_known", "loading"), ("_made", "loading"), ("_entry_of", "loading"), ("_compile", "front end"),
    ),
}  # fmt: skip


class Watch:
    """Seconds by stage, and what is known of each kernel that was compiled."""

    def __init__(self) -> None:
        self.spent: Counter[str] = Counter(interpreter=time.process_time())
        self.stack = ["Python"]
        self.last = time.process_time()
        self.calls: Counter[str] = Counter()
        self.kernels: list[dict[str, Any]] = []
        self.sizes: dict[int, tuple[Any, int, int]] = {}  # of code libraries by id: (itself, instructions, blocks)
        self.wanted = ""  # the op that the kernel under way is for

    def turn(self) -> None:
        """Charge the stage on top for the time until now."""
        now = time.process_time()
        self.spent[self.stack[-1]] += now - self.last
        self.last = now

    def timed(self, function: Callable[..., Any], stage: str) -> Callable[..., Any]:
        """Return the function with a clock around it."""

        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            self.turn()
            self.stack.append(stage)
            self.calls[function.__name__] += 1
            try:
                return function(*args, **kwargs)
            finally:
                self.turn()
                self.stack.pop()

        return call

    def kernel(self, compile_: Callable[..., Any]) -> Callable[..., Any]:
        """Return `_compile` that enters each kernel: seconds of it and of its stages, sizes of what LLVM was given."""

        def call(function: Any, types: tuple[str, ...], *args: Any) -> Any:
            before = Counter(self.spent)
            result = compile_(function, types, *args)
            took = self.spent - before
            del took["importing"]  # what the first one happens to need
            libraries = self.linked(result.library)
            self.kernels.append({
                "name": self.wanted if function.__name__ == "kernel" else name_of(function), "types": list(types),
                "seconds": took.total(), "stages": dict(took),
                "instructions": sum(n for _, n, _ in libraries), "blocks": sum(n for _, _, n in libraries),
            })  # fmt: skip
            return result

        return call

    def asked(self, entry: Callable[..., Any]) -> Callable[..., Any]:
        """Return `_entry` that remembers which op wants the kernel: generated ones have no name of their own."""

        def call(*args: Any) -> Any:
            self.wanted = op_of(sys._getframe(1))
            return entry(*args)

        return call

    def sized(self, add: Callable[..., Any]) -> Callable[..., Any]:
        """Return ``add_ir_module`` that counts what is added to a code library."""

        def call(library: Any, module: Any) -> Any:
            _, instructions, blocks = self.sizes.get(id(library), (library, 0, 0))
            found = [b for f in module.functions for b in f.blocks]
            self.sizes[id(library)] = (library, instructions + sum(len(b.instructions) for b in found), blocks + len(found))
            return add(library, module)

        return call

    def linked(self, library: Any) -> list[tuple[Any, int, int]]:
        """Return the sizes of a code library and of all that are linked into it."""
        seen: dict[int, Any] = {}
        rest = [library]
        while rest:
            one = rest.pop()
            if id(one) not in seen:
                seen[id(one)] = one
                rest += getattr(one, "_linking_libraries", ())
        return [self.sizes[i] for i in seen if i in self.sizes]

    def arrived(self, name: str) -> None:
        """Put clocks into a module that was imported just now."""
        module = sys.modules[name]
        for path, stage in PLACES[name]:
            holder: Any = module
            *outer, last = path.split(".")
            for part in outer:
                holder = getattr(holder, part)
            function = getattr(holder, last, None)
            if function is None:  # another version of Numba
                continue
            if last == "add_ir_module":
                function = self.sized(function)
            around = {"_compile": self.kernel, "_entry": self.asked}.get(last, lambda function: function)
            if hasattr(function, "exchange"):  # what takes its place stands before the clock
                function.__wrapped__ = around(self.timed(function.__wrapped__, stage))
                function.exchange(function.__wrapped__)
            else:
                setattr(holder, last, around(self.timed(function, stage)))

    def report(self) -> dict[str, Any]:
        """Return {"stages": seconds, "kernels": …, those that took longest first, "loaded": number of those that were on disk}."""
        self.turn()
        made = sorted(self.kernels, key=lambda k: -k["seconds"])
        return {"stages": dict(self.spent), "kernels": made, "loaded": self.calls["_entry_of"] - len(made)}


def name_of(function: Any) -> str:
    """Return the name of a kernel with the last part of its module's."""
    return f"{function.__module__.rpartition('.')[2]}.{function.__name__}"


def op_of(frame: Any) -> str:
    """Return the name of the op among the callers of a frame, or of the function of `ops` that was called."""
    suffix, function = "", ""
    while frame is not None:
        path = frame.f_code.co_filename
        if "/compiler/passes/" in path:
            return "fused"
        if path.endswith(("/pointwise_backward.py", "/backward_plans.py")):
            suffix = " backward"
        for holder in ("self", "op", "spec"):
            one = frame.f_locals.get(holder)
            name = getattr(one, "name", None)
            if isinstance(name, str) and name and type(one).__module__.startswith("autograd_nb."):
                return name + suffix
        if not function and "/ops/" in path and "/ops/core/" not in path:
            function = frame.f_code.co_name
        frame = frame.f_back
    return (function or "kernel") + suffix


def watch() -> Watch:
    """Begin, before the library is imported."""
    found = Watch()
    load = found.timed(bootstrap._find_and_load, "importing")
    waiting = set(PLACES)

    def find_and_load(name: str, import_: Any) -> Any:
        module = load(name, import_)
        if name in waiting:
            waiting.discard(name)
            found.arrived(name)
        return module

    bootstrap._find_and_load = find_and_load
    return found
