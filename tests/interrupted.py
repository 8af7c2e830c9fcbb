"""A signal at every moment of what users call: afterwards everything is as before the call or as after it, and the next call works.

``python -m tests.interrupted [word…] [--most 60]`` runs each scenario (with one of the words in its name) again and again, and lets a
signal, whose handler raises, come at the first, second, … instruction of the library's at which Python asks for signals. Then calls run
out of stack, one after the other, and requests for memory fail. It prints what was wrong, and how many interruptions there were. Compiled
scenarios want kernels: NUMBA_DISABLE_JIT leaves them out.
"""

from __future__ import annotations

import _thread
import argparse
import ctypes
import dis
import functools
import gc
import os
import shutil
import signal
import sys
import tempfile
import threading
import time
import traceback
import weakref
from collections.abc import Callable, Iterator
from typing import Any

from numba import config

import autograd_nb as torch
from autograd_nb import distributed, launch, overriding
from autograd_nb.codegen.build import apart
from autograd_nb.graph import ownership
from autograd_nb.graph.modes import state
from autograd_nb.launch import memory
from autograd_nb.serialization.safetensors import load_safetensors, save_safetensors

NUMBER = signal.SIGUSR1
MOST = 60  #: moments of a scenario
TIMES = 30  #: that one instruction counts in a call
PACKAGE = os.path.dirname(torch.__file__) + os.sep
KERNELS = PACKAGE + "kernels"


class Stop(BaseException):
    pass


def handler(number: int, frame: Any) -> None:
    raise Stop


#: the opcodes after which, or in which, Python asks for signals
_ASKING = {dis.opmap[name] for name in ("RESUME", "CALL", "CALL_KW", "CALL_FUNCTION_EX", "JUMP_BACKWARD") if name in dis.opmap}
#: the interrupt comes from code that counts as the library's, so that what is below it is what was interrupted
_TRACE = """
def tracer(at, count, interrupt, package, kernels, asking, entries, times):
    last, seen = {}, {}
    def around(code, offset):
        return [e.target for e in entries(code) if e.start <= offset < e.end]
    def trace(frame, event, arg):
        file = frame.f_code.co_filename
        if not file.startswith(package) or file.startswith(kernels):
            return None
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        if event == "opcode":
            before, now = last.get(frame), frame.f_lasti
            last[frame] = now
            # an exception comes one instruction too late here: where that would be outside of a ``try``, it is left out
            if before is not None and frame.f_code.co_code[before] in asking and around(frame.f_code, before) == around(frame.f_code, now):
                place = frame.f_code, now
                seen[place] = often = seen.get(place, 0) + 1
                count[0] += often <= times
                if count[0] == at and often <= times:
                    interrupt()
        elif event == "return":
            last.pop(frame, None)
        return trace
    return trace
"""


_entries = functools.cache(dis._parse_exception_table)  # type: ignore[attr-defined]
_names: dict[str, Any] = {}
exec(compile(_TRACE, "<autograd_nb: tests>", "exec"), _names)


def interrupt_at(k: int, step: Callable[[], Any]) -> tuple[int, bool]:
    """Run ``step`` with a signal at the k-th opportunity; (how many there were, whether it was broken off)."""
    count = [0]
    trace = _names["tracer"](k, count, functools.partial(_thread.interrupt_main, NUMBER), PACKAGE, KERNELS, _ASKING, _entries, TIMES)
    broken = False
    before = signal.signal(NUMBER, handler)
    try:
        sys._getframe().f_trace_opcodes = True  # Python 3.12 looks whether a frame wants them as tracing begins
        sys.settrace(trace)
        try:
            step()
        finally:
            sys.settrace(None)
        for _ in range(100):  # what still waits
            if not 0 < k <= count[0]:
                break
            time.sleep(2e-4)
    except Stop:
        broken = True
    finally:
        sys.settrace(None)
        signal.signal(NUMBER, before)
    return count[0], broken


def standing() -> list[str]:
    """What a broken call has left behind."""
    wrong = []
    if not torch.is_grad_enabled() or torch.is_inference_mode_enabled() or state.blocks or state.passes:
        wrong.append(f"modes: {state.__dict__}")
    if launch.observer() is not None or launch._observing:
        wrong.append("an observer")
    if any(o.count for o in overriding._every):
        wrong.append("overrides")
    held: list[str] = []

    def try_locks() -> None:
        locks = {"plans": launch._plans, "memory": memory._lock, "overrides": overriding._lock, "turn": apart._turn, "leaves": ownership.leaves}
        for name, lock in locks.items():
            if lock.acquire(timeout=1):
                lock.release()
            else:
                held.append(name)

    thread = threading.Thread(target=try_locks)
    thread.start()
    thread.join()
    return wrong + [f"lock {name}" for name in held]


Scenario = Callable[[], tuple[Callable[[], Any], Callable[[bool], Iterator[str]]]]
SCENARIOS: dict[str, Scenario] = {}


def scenario(make: Scenario) -> Scenario:
    SCENARIOS[make.__name__] = make
    return make


def near(a: Any, b: Any) -> bool:
    return bool(torch.allclose(a, b, equal_nan=True))


@scenario
def backward():
    a, b = (torch.linspace(0.1, 1, 4).reshape(2, 2).requires_grad_() for _ in range(2))
    (a * b).sum().backward()
    before = [p.grad.clone() for p in (a, b)]
    wanted = torch.autograd.grad(((a * b).tanh() @ b).cumsum(0).sum(), [a, b])
    loss = ((a * b).tanh() @ b).cumsum(0).sum()

    def verify(broken: bool) -> Iterator[str]:
        added = [near(p.grad, g + w) for p, g, w in zip((a, b), before, wanted, strict=True)]
        same = [near(p.grad, g) for p, g in zip((a, b), before, strict=True)]
        if not (all(added) or (broken and all(same))):
            yield f"gradients: {added} {same}"
        again = torch.autograd.grad(((a * b).tanh() @ b).cumsum(0).sum(), [a, b])
        if not all(map(near, again, wanted)):
            yield "the next pass"

    return loss.backward, verify


def _steps(maker: Callable) -> Scenario:
    def make():
        ps = [torch.full((3,), 1.0 + k).requires_grad_() for k in range(2)]
        optimizer = maker(ps)

        def gradients() -> None:
            for p in ps:
                p.grad = p.detach() * 0.1

        gradients()
        optimizer.step()
        gradients()
        old = [(p.detach().clone(), p._version) for p in ps]

        def verify(broken: bool) -> Iterator[str]:
            for p, (value, version) in zip(ps, old, strict=True):
                if near(p.detach(), value) is not (p._version == version):
                    yield f"version {version} -> {p._version}, changed {not near(p.detach(), value)}"
                if not broken and p._version == version:
                    yield "no step"
            values = [p.detach().clone() for p in ps]
            optimizer.step()
            if any(near(p.detach(), v) or not p.isfinite().all() for p, v in zip(ps, values, strict=True)):
                yield "the next step"

        return optimizer.step, verify

    return make


SCENARIOS["SGD"] = _steps(lambda ps: torch.optim.SGD(ps, lr=0.1, momentum=0.9))
SCENARIOS["Adam"] = _steps(lambda ps: torch.optim.Adam(ps, lr=0.1))


@scenario
def load_state_dict():
    model, other = torch.nn.Linear(2, 2), torch.nn.Linear(2, 2)
    old = {k: v.clone() for k, v in model.state_dict().items()}
    new = other.state_dict()

    def verify(broken: bool) -> Iterator[str]:
        for k, v in model.state_dict().items():
            if not (near(v, new[k]) or (broken and near(v, old[k]))):
                yield f"{k}: {v}"
        model.load_state_dict(new)
        if not all(near(v, new[k]) for k, v in model.state_dict().items()):
            yield "the next call"

    return lambda: model.load_state_dict(new), verify


@scenario
def clip():
    p = torch.ones(3, requires_grad=True)
    p.grad = torch.full((3,), 2.0)
    old, version = p.grad.clone(), p.grad._version

    def verify(broken: bool) -> Iterator[str]:
        if near(p.grad, old) is not (p.grad._version == version):
            yield "version"

    return lambda: torch.nn.utils.clip_grad_norm_([p], 1.0), verify


def _in_place(change: Callable, wanted: Callable) -> Scenario:
    def make():
        x = torch.linspace(0.2, 0.8, 6).reshape(2, 3).requires_grad_()
        y = x * 1
        z = y * y  # which keeps y
        old, version = y.detach().clone(), y._version
        new = wanted(old)

        def verify(broken: bool) -> Iterator[str]:
            changed = not near(y.detach(), old)
            if changed and not near(y.detach(), new.detach()):
                yield f"half written: {y}"
            if changed and y._version == version:
                yield "changed, at the same version"
            if not changed and not broken and not near(old, new):
                yield "nothing was done"
            leaf = x.detach().requires_grad_()
            expected = torch.autograd.grad((wanted(leaf * 1) if changed else leaf * 1).sum(), leaf)[0]
            got = torch.autograd.grad(y.sum(), x, retain_graph=True)[0]
            if not near(got, expected):
                yield f"gradient {got} instead of {expected}, changed {changed}"
            if changed:
                try:
                    z.sum().backward()
                    yield "what had kept the old values was not told"
                except RuntimeError:
                    pass
            y.add_(1)
            if not near(y.detach(), (new if changed else old) + 1):
                yield "the next call"

        return lambda: change(y), verify

    return make


def _set(y: Any) -> None:
    y[:, 1:] = 0.5


_OTHER, _MASK, _ROWS = torch.full((2, 3), 3.0), torch.tensor([[True, False, True], [False, True, False]]), torch.tensor([1])
for _name, _change, _wanted in (
    ("exp_", lambda y: y.exp_(), lambda y: y.exp()),
    ("add_", lambda y: y.add_(_OTHER), lambda y: y + _OTHER),
    ("mul_", lambda y: y.mul_(2), lambda y: y * 2),
    ("zero_", lambda y: y.zero_(), lambda y: y * 0),
    ("copy_", lambda y: y.copy_(_OTHER), lambda y: y * 0 + _OTHER),
    ("clamp_", lambda y: y.clamp_(0.3, 0.5), lambda y: y.clamp(0.3, 0.5)),
    ("set part", _set, lambda y: y * torch.tensor([1.0, 0, 0]) + torch.tensor([0, 0.5, 0.5])),
    ("masked_fill_", lambda y: y.masked_fill_(_MASK, 0.0), lambda y: y.masked_fill(_MASK, 0.0)),
    ("index_fill_", lambda y: y.index_fill_(0, _ROWS, 0.0), lambda y: y.index_fill(0, _ROWS, 0.0)),
    ("cumsum_", lambda y: y.cumsum_(0), lambda y: y.cumsum(0)),
    ("view, mul_", lambda y: y[0].mul_(2), lambda y: y * torch.tensor([[2.0], [1.0]])),
):
    SCENARIOS[_name] = _in_place(_change, _wanted)


def _context(work: Callable[[], Any]) -> Scenario:
    def make():
        def verify(broken: bool) -> Iterator[str]:
            x = torch.ones(2, requires_grad=True)
            if not near(torch.autograd.grad((x * x).sum(), x)[0], torch.full((2,), 2.0)):
                yield "the next pass"

        return work, verify

    return make


def _nested() -> None:
    x = torch.ones(2, requires_grad=True)
    with torch.no_grad():
        with torch.enable_grad():
            x * 2
        with torch.set_grad_enabled(False):
            x * 2
        with torch.inference_mode():
            x * 2


SCENARIOS["modes"] = _context(_nested)
SCENARIOS["decorated"] = _context(torch.no_grad()(lambda: torch.ones(2) * 2))
SCENARIOS["own no_grad"] = _context(lambda: torch.quantile(torch.ones(3, requires_grad=True), 0.5))
SCENARIOS["vmap"] = _context(lambda: torch.vmap(lambda v: v * v)(torch.ones(2, 3)))
SCENARIOS["jvp"] = _context(lambda: torch.func.jvp(lambda v: v * v, (torch.ones(2),), (torch.ones(2),)))


def _hooked() -> None:
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t):
        x = torch.ones(2, requires_grad=True)
        (x * x).sum().backward()


SCENARIOS["saved_tensors_hooks"] = _context(_hooked)


def _compiled(warm: int) -> Scenario:
    """A training step after so many calls: while it is captured, checked, or run as a program."""

    def make():
        w, p = (torch.linspace(0.5, 1, 4).reshape(2, 2).requires_grad_() for _ in range(2))
        x = torch.linspace(-1, 1, 6).reshape(3, 2)
        optimizer = torch.optim.SGD([p], lr=0.1, momentum=0.9)

        def step() -> Any:
            loss = ((x @ w).tanh() * (x @ p)).sum()
            optimizer.zero_grad()
            w.grad = None
            loss.backward()
            optimizer.step()
            return loss

        for _ in range(2):
            step()
        f = torch.compile(step)
        for _ in range(warm):
            f()

        def standing() -> list:
            return [t.detach().clone() for t in (w, p, optimizer.state[p]["momentum_buffer"])]

        before, version = standing(), p._version

        def verify(broken: bool) -> Iterator[str]:
            now = standing()
            if near(now[1], before[1]) is not (p._version == version):
                yield f"version {version} -> {p._version}, changed {not near(now[1], before[1])}"
            if near(now[1], before[1]) is not near(now[2], before[2]):
                yield "half a step"
            if not broken and near(now[1], before[1]):
                yield "no step"
            for k in range(3):  # the program, another capture, and the function itself, from the same place
                found = []
                for function in (step, f):
                    with torch.no_grad():
                        for t, value in zip((w, p, optimizer.state[p]["momentum_buffer"]), now, strict=True):
                            t.copy_(value)
                    loss = function()
                    found.append([loss, w.grad.clone(), p.grad.clone(), *standing()])
                if not all(map(near, *found)):
                    yield f"call {k + 1}: {found}"

        return f, verify

    return make


SCENARIOS |= {f"a compiled step, {n} calls": _compiled(n) for n in (0, 1, 4)}


def _differentiated(warm: int, inside: bool) -> Scenario:
    """A call, or a backward pass, of a compiled function whose result requires grad; it changes an argument and a buffer."""

    def make():
        scale, count = torch.full((3,), 1.5).requires_grad_(), torch.zeros(3)

        def f(x: Any, out: Any) -> Any:
            count.add_(1)
            out.copy_(x.detach() * 2)
            return (x * scale).exp().cumsum(0)

        compiled = torch.compile(f)
        x = torch.linspace(0.1, 0.3, 3).requires_grad_()
        for _ in range(warm):
            compiled(x, torch.zeros(3)).sum().backward()
        x.grad, scale.grad = torch.ones(3), torch.ones(3)
        wanted = torch.autograd.grad(f(x, torch.zeros(3)).sum(), [x, scale])
        counted, out = count.clone(), torch.zeros(3)
        y = compiled(x, out) if inside else None
        kept = count.clone()

        def call() -> None:
            if inside:
                y.sum().backward()
            else:
                compiled(x, out)

        def verify(broken: bool) -> Iterator[str]:
            added = [near(t.grad, 1 + w) for t, w in zip((x, scale), wanted, strict=True)]
            same = [near(t.grad, torch.ones(3)) for t in (x, scale)]
            if not (all(same if not inside or broken else added) or (inside and all(added))):
                yield f"gradients: {added} {same}"
            if inside and not near(count, kept):
                yield "the function has run in its backward pass"
            if not inside and not near(count, counted + 1) and not (broken and near(count, counted)):
                yield f"count: {count}"
            if not near(out, x.detach() * 2) and not (broken and near(out, torch.zeros(3))):
                yield f"half written: {out}"
            for _ in range(3):
                result = torch.zeros(3)
                again = torch.autograd.grad(compiled(x, result).sum(), [x, scale])
                if not all(map(near, again, wanted)) or not near(result, x.detach() * 2):
                    yield f"the next call: {again}"

        return call, verify

    return make


for _n in (0, 1, 4):
    SCENARIOS[f"a compiled call, {_n} before"] = _differentiated(_n, False)
    SCENARIOS[f"backward of a compiled call, {_n} before"] = _differentiated(_n, True)


def _files(write: Callable[[dict, str], Any], read: Callable[[str], dict], writes: bool) -> Scenario:
    """A file that is written, over an older one, or read."""

    def make():
        old, new = ({"x": torch.full((3,), value), "y": torch.arange(4)} for value in (1.0, 2.0))
        folder = tempfile.mkdtemp()
        path = os.path.join(folder, "file")
        for tensors in (new, old):
            write(tensors, path)
        before = sorted(os.listdir(folder))

        def verify(broken: bool) -> Iterator[str]:
            if sorted(os.listdir(folder)) != before:
                yield f"files: {os.listdir(folder)}"
            found = read(path)["x"]
            if not (near(found, new["x"] if writes else old["x"]) or (broken and near(found, old["x"]))):
                yield f"what is read afterwards: {found}"
            write(new, path)
            if not near(read(path)["x"], new["x"]):
                yield "the next file"

        call = functools.partial(write, new, path) if writes else functools.partial(read, path)
        weakref.finalize(call, shutil.rmtree, folder)
        return call, verify

    return make


def _stored(tensors: dict, path: str) -> None:
    graph = tensors.get("graph") or torch.trace(lambda x, scale=tensors["x"].detach().clone(): x * scale, torch.ones(3))
    tensors["graph"] = graph  # traced once: it is the writing that is interrupted
    graph.save(path)


def _checkpointed(tensors: dict, path: str) -> None:
    distributed.checkpoint.save(tensors, checkpoint_id=path)


def _restored(path: str) -> dict:
    found = {"x": torch.zeros(3), "y": torch.zeros(4, dtype=torch.int64)}
    distributed.checkpoint.load(found, checkpoint_id=path)
    return found


for _name, _write, _read in (
    ("torch.save", torch.save, torch.load),
    ("safetensors", save_safetensors, load_safetensors),
    ("a graph's file", _stored, lambda path: {"x": torch.load_graph(path).run(["output"], {"x": torch.ones(3)})[0]}),
    ("a checkpoint", _checkpointed, _restored),
):
    SCENARIOS[_name] = _files(_write, _read, True)
    SCENARIOS[f"reading of {_name}"] = _files(_write, _read, False)


def walk(name: str, most: int) -> tuple[int, list[str]]:
    """(interruptions, what was wrong) of a scenario, at so many moments that are evenly spread."""
    make = SCENARIOS[name]
    gc.freeze()  # a capture looks at every object that there is, and each look would be traced
    for _ in range(2):  # kernels and plans
        step, verify = make()
        step()
        assert not list(verify(False)), (name, list(verify(False)))
    count = interrupt_at(0, make()[0])[0]
    broken_off, wrong = 0, []
    for k in range(1, count + 1, -(-count // most)):
        step, verify = make()
        broken = interrupt_at(k, step)[1]
        broken_off += broken
        found = standing()
        state.grad, state.inference, state.blocks = True, False, ()
        found += list(verify(broken))
        wrong += [f"{name}, moment {k} of {count}{'' if broken else ' (not broken off)'}: {text}" for text in found]
        if len(wrong) > 5:
            break
    return broken_off, wrong


def shallow(name: str) -> tuple[int, list[str]]:
    """As `walk`, with so little room on Python's stack that each call in turn is the one too many."""
    make, depth, wrong, old = SCENARIOS[name], len(traceback.extract_stack()), [], sys.getrecursionlimit()
    for count, limit in enumerate(range(depth + 3, depth + 100)):
        step, verify = make()
        try:
            sys.setrecursionlimit(limit)
            step()
            break
        except (RuntimeError, ctypes.ArgumentError) as error:  # what ctypes, and `load_state_dict`, make of it
            text = str(error).lower()
            if "recursion" not in text and "is not a checkpoint" not in text:  # (whose data may nest too deeply)
                raise
        finally:
            sys.setrecursionlimit(old)
        found = standing()
        state.grad, state.inference, state.blocks = True, False, ()
        wrong += [f"{name}, room for {limit - depth} calls: {text}" for text in (*found, *verify(True))]
    return count, wrong


_ROOM = {"_empty", "_allocate", "empty", "empty_like", "zeros", "_zeros", "full"}  #: names of what asks for memory


@functools.cache
def _wants_room(code: Any) -> frozenset[int]:
    return frozenset(i.offset for i in dis.get_instructions(code) if i.opname.startswith("LOAD_") and i.argval in _ROOM)


def starved(name: str, most: int) -> tuple[int, list[str]]:
    """As `walk`, where there is no memory: each time that some is asked for is once the one that fails."""
    make, wrong = SCENARIOS[name], []

    def trace(frame: Any, event: str, arg: Any) -> Any:
        file = frame.f_code.co_filename
        wanted = _wants_room(frame.f_code) if file.startswith(PACKAGE) and not file.startswith(KERNELS) else ()
        frame.f_trace_opcodes, frame.f_trace_lines = bool(wanted), False
        if event == "opcode" and frame.f_lasti in wanted and next(left, 0) == 1:
            raise MemoryError("no room")
        return trace if wanted else None

    for k in range(1, most + 1):
        left, (step, verify) = iter(range(k, 0, -1)), make()
        try:
            sys.settrace(trace)
            step()
            return k - 1, wrong
        except (MemoryError, RuntimeError) as error:
            if "no room" not in str(error):  # (a file that cannot be read tells why)
                raise
        finally:
            sys.settrace(None)
        found = standing()
        state.grad, state.inference, state.blocks = True, False, ()
        wrong += [f"{name}, without memory at request {k}: {text}" for text in (*found, *verify(True))]
    return most, wrong


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.interrupted", description=__doc__)
    parser.add_argument("words", nargs="*", help="of the names of scenarios")
    parser.add_argument("--most", type=int, default=MOST, help="moments of a scenario, evenly spread")
    options = parser.parse_args()
    names = [n for n in SCENARIOS if any(word in n for word in options.words or [""])]
    if config.DISABLE_JIT:
        names = [n for n in names if "compiled" not in n]
    total, failed = 0, False
    for name in names:
        count, wrong = walk(name, options.most)
        more, deeper = shallow(name)
        hungry, missed = starved(name, options.most)
        wrong += deeper + missed
        total += count + more + hungry
        failed = failed or bool(wrong)
        for text in wrong:
            print(text)
        if options.words:
            print(f"{name}: {count}")
    print(f"{total} interruptions of {len(names)} scenarios")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
