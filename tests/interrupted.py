"""A signal at every moment of what users call: afterwards everything is as before the call or as after it, and the next call works.

``python -m tests.interrupted [name…]`` runs each scenario again and again, and lets a signal, whose handler raises, come at the first,
second, … instruction of the library's at which Python asks for signals. It prints what was wrong, and how many interruptions there were.
"""

from __future__ import annotations

import _thread
import dis
import functools
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import autograd_nb as torch
from autograd_nb import launch, overriding
from autograd_nb.codegen.build import apart
from autograd_nb.graph.modes import state

NUMBER = signal.SIGUSR1
MOST = 60  #: moments of a scenario, unless it is named: then all
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
def tracer(at, count, interrupt, package, kernels, asking, entries):
    last = {}
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
                count[0] += 1
                if count[0] == at:
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
    trace = _names["tracer"](k, count, functools.partial(_thread.interrupt_main, NUMBER), PACKAGE, KERNELS, _ASKING, _entries)
    broken = False
    before = signal.signal(NUMBER, handler)
    try:
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
        for name, lock in (("plans", launch._plans), ("memory", launch._lock), ("overrides", overriding._lock), ("turn", apart._turn)):
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


def walk(name: str, most: int = MOST) -> tuple[int, list[str]]:
    """(interruptions, what was wrong) of a scenario, at so many moments that are evenly spread."""
    make = SCENARIOS[name]
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


def main(names: list[str]) -> int:
    total, failed = 0, False
    for name in names or SCENARIOS:
        count, wrong = walk(name, 10**9 if names else MOST)
        total += count
        failed = failed or bool(wrong)
        for text in wrong:
            print(text)
        if names:
            print(f"{name}: {count}")
    print(f"{total} interruptions of {len(names or SCENARIOS)} scenarios")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
