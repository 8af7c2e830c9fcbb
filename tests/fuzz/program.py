"""Programs as lists of statements, their text, and how each library runs them.

A `Program` runs statement by statement (`trace`): after each one everything that has a name is looked at. A `Calls` program is a
function that is called a few times, between which something changes (`call`); it is looked at after every call, as what is
compiled cannot be watched inside.
"""

from __future__ import annotations

import ast
import contextlib
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .further import FUNCTIONS

HEADER = """\
import numpy as np
F = torch.nn.functional
JITTER = 0.0


def make(seed, shape, dtype="float64"):
    rng = np.random.default_rng(seed)
    if dtype == "bool":
        return torch.from_numpy(rng.random(shape) > 0.5)
    if dtype in ("int64", "int32", "int16", "uint8"):
        return torch.from_numpy(rng.integers(0, 3, shape).astype(dtype))
    values = np.round(rng.standard_normal(shape), 3) * (1 + JITTER * rng.standard_normal(shape) * (1 if dtype == "float64" else 1e5))
    if "complex" in dtype:
        values = values + 1j * np.round(rng.standard_normal(shape), 3)
    return torch.from_numpy(np.asarray(values, dtype=dtype))


def extreme(seed, shape, dtype="float64"):
    kind = "complex128" if "complex" in dtype else "float64" if dtype not in ("float32", "float16") else dtype
    rng = np.random.default_rng(seed)
    values = rng.choice([0.0, -0.0, 1.0, -1.0, 0.5, -2.0, 3.25, np.inf, -np.inf, np.nan], shape)
    return torch.from_numpy(np.asarray(values if rng.random() < 0.7 else np.where(np.isnan(values), -0.25, values), dtype=kind))


def fit(t, shape):
    # t in another shape: its values again and again, where they are too few a little moved so that none are equal
    n = int(np.prod(shape))
    t = t.reshape(-1)
    if t.numel() == 0:
        t = torch.ones(1, dtype=t.dtype)
    if t.numel() < n:
        t = t.repeat(-(-n // t.numel()))[:n]
        moved = torch.linspace(0, 0.37, n, dtype=torch.float64)
        moved = moved + (moved * 1e4).sin() * 1e3 * JITTER * (1 if t.dtype == torch.float64 else 1e5)
        t = t + moved.to(t.dtype) if t.is_floating_point() or t.is_complex() else t
    return t[:n].reshape(shape)


def spd(t):
    return t @ t.mH + 2 * torch.eye(t.shape[-1], dtype=t.dtype)


def fill(module, seed):
    with torch.no_grad():
        for k, p in enumerate(module.parameters()):
            p.copy_(make(seed + k, tuple(p.shape), "float32"))
    return module


def parts(value):
    # the tensors in a result
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    return [t for v in value for t in parts(v)] if isinstance(value, (list, tuple)) else []


def squares(value):
    return sum((t * t).sum() for t in parts(value) if t.requires_grad)


class Pass(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.view_as(x)

    @staticmethod
    def backward(ctx, g):
        return g


class Twice(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, y):
        ctx.save_for_backward(x, y)
        return x * y, x + y

    @staticmethod
    def backward(ctx, g, h):
        x, y = ctx.saved_tensors
        return g * y + h, (g * x + h).sum_to_size(y.shape)


class Parts(torch.autograd.Function):
    # three outputs: one that is an input changed in place, one that is not differentiable, one that nothing may need
    @staticmethod
    def forward(ctx, x, y):
        ctx.mark_dirty(x)
        x.add_(1)
        sign = (x > 0).double()
        ctx.mark_non_differentiable(sign)
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(y)
        return x, sign, y * 2

    @staticmethod
    def backward(ctx, g, _, h):
        (y,) = ctx.saved_tensors
        return g, None if h is None else h * 2 + 0 * y


class Dirty(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.mark_dirty(x)
        return x.mul_(2)

    @staticmethod
    def backward(ctx, g):
        return g * 2


# ---
"""
HEADER = HEADER.replace("# ---\n", f"{FUNCTIONS.strip()}\n\n\n# ---\n")


@dataclass(frozen=True)
class Program:
    """Statements, each a line or a block of Python that stands alone."""

    statements: tuple[str, ...]

    def text(self, library: str) -> str:
        """A program that runs; what raises is told and passed over."""
        lines = [f"import {library}" if library == "torch" else f"import {library} as torch", HEADER]
        return "\n".join([*lines, *self.statements, ""])


@dataclass(frozen=True)
class Call:
    """One call: statements before it, what is given, and statements after it."""

    before: tuple[str, ...]
    given: tuple[str, ...]
    after: tuple[str, ...]


def _assigned(statements: tuple[str, ...]) -> set[str]:
    """The names that statements give to something, other than attributes and parts."""
    return {node.id for s in statements for node in ast.walk(ast.parse(s)) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}


@dataclass(frozen=True)
class Calls:
    """``setup`` at the top, the ``body`` of a function of x, y and z with ``results`` in a container (``form``), and its ``calls``."""

    setup: tuple[str, ...]
    body: tuple[str, ...]
    results: tuple[str, ...]
    calls: tuple[Call, ...]
    form: str = "({},)"

    def function(self) -> str:
        body = [line for statement in self.body for line in statement.splitlines()]
        given = f"return {self.form.format(', '.join(self.results))}" if self.results else "return ()"
        shared = sorted(_assigned(self.setup) & _assigned(self.body))  # which would be the function's own
        return "def step(x, y, z):\n" + "\n".join(f"    {line}" for line in [*[f"global {n}" for n in shared], *body, given])

    def text(self, library: str) -> str:
        lines = [f"import {library}" if library == "torch" else f"import {library} as torch", HEADER, *self.setup, ""]
        lines += [self.function(), "" if library == "torch" else "step = torch.compile(step)"]
        for c in self.calls:
            lines += [*c.before, f"x, y, z = {', '.join(c.given)}", "found = step(x, y, z)", "print(found)", *c.after]
        return "\n".join([*lines, ""])


# ------------------------------------------------------------------------------------------------ what is looked at


@dataclass
class Seen:
    """A tensor as it was after a statement."""

    values: np.ndarray
    dtype: str
    shape: tuple
    strides: tuple
    requires_grad: bool
    leaf: bool
    history: bool
    grad: Seen | None = None
    version: int = 0
    marks: tuple = ()  #: whether it shows conjugates, and whether negatives; of a view also whether those of its base


UNREADABLE = "a view of what has been changed since, of which autograd knows no history"


def is_tensor(value: Any) -> bool:
    return hasattr(value, "requires_grad_") and hasattr(value, "storage_offset")


def array_of(t: Any) -> np.ndarray:
    """A copy of a tensor's values, in a wider dtype where NumPy has not the tensor's."""
    wider = {"complex32": "cfloat", "bfloat16": "float"}.get(str(t.dtype).rsplit(".", 1)[-1])
    return np.array((getattr(t.detach(), wider)() if wider else t.detach()).numpy(force=True))


def look(t: Any, deep: bool = True) -> Any:
    """What a program can see of a value; None for what is no tensor or number."""
    if not is_tensor(t):
        return t if isinstance(t, (bool, int, float, str, tuple, type(None))) and not _tensors(t) else None
    try:
        grad = t.grad if deep else None  # (also what was assigned to one that is no leaf)
        data = array_of(t)
        leaf, history = t.is_leaf, t.grad_fn is not None
    except RuntimeError:  # one of several views whose base has been changed, or a batch that left its vmap by a hook
        return UNREADABLE
    return Seen(
        data, str(t.dtype).rsplit(".", 1)[-1], tuple(t.shape), tuple(t.stride()), t.requires_grad,
        leaf, history, look(grad, False) if grad is not None else None, _version(t),
        _marks(t),
    )  # fmt: skip


def _marks(t: Any) -> tuple:
    own, base = (t.is_conj(), t.is_neg()), t._base
    return own if base is None else (*own, t.is_conj() is not base.is_conj(), t.is_neg() is not base.is_neg())


def _version(t: Any) -> int:
    try:
        return t._version
    except RuntimeError:  # inference tensors, and views of them that are none
        return -1


def _tensors(value: Any) -> bool:
    return isinstance(value, tuple) and any(is_tensor(v) for v in value)


def looked(space: dict[str, Any], names: list[str]) -> dict[str, Any]:
    """All that is named, by name; parameters of modules by module and place, items of lists, tuples and dicts by place, however deep."""
    found: dict[str, Any] = {}

    def see(name: str, value: Any) -> None:
        if is_tensor(value):
            found[name] = look(value)
        elif hasattr(value, "named_parameters"):
            found.update({f"{name}.{k}": look(p) for k, p in [*value.named_parameters(), *value.named_buffers()]})
        elif isinstance(value, (list, tuple)):
            found[f"len({name})"] = len(value)
            for k, v in enumerate(value):
                see(f"{name}[{k}]", v)
        elif isinstance(value, dict):
            for k, v in value.items():
                see(f"{name}[{k!r}]", v)
        elif isinstance(value, np.ndarray):
            found[name] = Seen(value.copy(), value.dtype.name, value.shape, (), False, True, False)
        else:
            found[name] = look(value)

    for name in names:
        see(name, space.get(name))
    return found


@dataclass
class Step:
    """What came of a statement or call: the error, and all that could be seen after it."""

    error: BaseException | None
    state: dict[str, Any] = field(default_factory=dict)
    shared: tuple[str, ...] = ()  #: pairs of names that have memory in common
    loose: bool = False  #: whether there is a view as `loose` describes, or has been
    text: str = ""  #: what stands between the calls of a function


def names_of(space: dict[str, Any]) -> list[str]:
    return sorted(k for k in space if k not in space["__own__"] and not k.startswith("_"))


_spaces: dict[str, dict[str, Any]] = {}  #: by library and jitter


def new_space(torch: Any, jitter: float = 0.0) -> dict[str, Any]:
    """A namespace with what `HEADER` defines, which is executed once for a library; what it makes may be a little off.

    Grad mode is on again, which a program may have left off.
    """
    torch.set_grad_enabled(True)
    name = f"{torch.__name__} {jitter}"
    if name not in _spaces:
        space: dict[str, Any] = {"torch": torch, "__name__": "program"}
        exec(HEADER, space)
        space["JITTER"] = jitter
        space["__own__"] = {*space, "__own__"}
        _spaces[name] = space
    return dict(_spaces[name])


def run(statement: str, space: dict[str, Any]) -> BaseException | None:
    """Execute; the error if there was one."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            exec(_code(statement), space)
        except Exception as error:
            return error
    return None


_codes: dict[str, Any] = {}


def _code(text: str) -> Any:
    if text not in _codes:
        if len(_codes) > 20000:
            _codes.clear()
        _codes[text] = compile(text, "<program>", "exec")
    return _codes[text]


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def trace(program: Program, torch: Any, jitter: float = 0.0) -> list[Step]:
    """Run statement by statement, and look after each."""
    space = new_space(torch, jitter)
    steps = []
    for statement in program.statements:
        error = run(statement, space)
        with quiet():
            steps.append(Step(error, looked(space, names_of(space))))
    return steps


def sharing(space: dict[str, Any]) -> tuple[str, ...]:
    """Which of the named tensors, results, their gradients and gradients of modules have memory in common."""
    memory: dict[str, Any] = {}

    def plain(t: Any) -> np.ndarray:
        """Its memory, as numbers of a width that NumPy has."""
        t = t.conj() if t.is_conj() else t
        t = t._neg_view() if t.is_neg() else t
        alike = {"bfloat16": "int16", "complex32": "int32"}.get(str(t.dtype).rsplit(".", 1)[-1])
        return (t.detach().view(getattr(space["torch"], alike)) if alike else t.detach()).numpy()

    def note(name: str, t: Any) -> None:
        try:
            memory[name] = plain(t)
            grad = t.grad if t.is_leaf or t.retains_grad else None
        except RuntimeError:
            return
        if grad is not None:
            memory[f"{name}.grad"] = plain(grad)

    for name in names_of(space):
        value = space[name]
        if is_tensor(value):
            note(name, value)
        elif hasattr(value, "named_parameters"):
            for k, p in (*value.named_parameters(), *value.named_buffers()):
                note(f"{name}.{k}", p)
        else:
            for k, t in enumerate(space["parts"](value)):
                note(f"{name}[{k}]", t)
    names = [n for n in memory if memory[n].size]
    return tuple(
        f"{a} and {b}" for i, a in enumerate(names) for b in names[i + 1 :] if np.may_share_memory(memory[a], memory[b])
    )


def unheard(t: Any) -> bool:
    """Whether this is such a view as `loose` finds."""
    try:
        return is_tensor(t) and t._is_view() and t.grad_fn is None and t._base.requires_grad
    except RuntimeError:  # one of several views whose base has been changed (see `look`)
        return False


def loose(space: dict[str, Any]) -> bool:
    """Whether there is a view without a history of what requires grad: it says that it does too, but nothing passes through."""
    return any(unheard(t) for n in names_of(space) for t in space["parts"](space[n]))


def call(program: Calls, torch: Any, compiled: bool, jitter: float = 0.0) -> list[Step]:
    """Run the function call by call, and look after each at arguments, results and all else."""
    space = new_space(torch, jitter)
    steps: list[Step] = []

    def after(error: BaseException | None, statement: str = "") -> bool:
        with quiet(), torch.enable_grad():
            state = looked(space, [n for n in names_of(space) if n != "step"])  # (first, as PyTorch refuses to say of some views more than once)
            loosely = loose(space) or bool(steps and steps[-1].loose)
            steps.append(Step(error, state, sharing(space), loosely, statement))
        return error is None

    torch.manual_seed(0)  # of modules as they are made
    for statement in program.setup:
        run(statement, space)
    exec(_code(program.function()), space)
    if compiled:
        space["step"] = torch.compile(space["step"])
    try:
        for c in program.calls:
            for statement in c.before:
                run(statement, space)
            space["found"] = ()
            if after(run("\n".join([*(f"{n} = {g}" for n, g in zip("xyz", c.given)), "found = step(x, y, z)"]), space)):
                for statement in c.after:
                    after(run(statement, space), statement)
    finally:
        torch.set_grad_enabled(True)
    if compiled:
        CAPTURED[0] += bool(getattr(space["step"], "programs", ()))
    return steps


CAPTURED = [0]  #: of how many functions programs were made
