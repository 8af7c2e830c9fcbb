"""Draw programs. PyTorch runs along, so shapes, dtypes and what is allowed are known from it; a few statements that it refuses stay."""

from __future__ import annotations

import ast
import random
import re
from typing import Any

import numpy as np
import torch

from .functions import AFTER, BETWEEN, BODY, EAGER, FORMS, MORE, PASSES, SETUP, THIRD
from .indices import index
from .program import Call, Calls, Program, is_tensor, names_of, new_space, run, unheard
from .statements import COMPILED, COMPLEX, FAMILIES

SHAPES = [
    "(3, 4)",
    "(3, 4)",
    "(3, 4)",
    "(4,)",
    "(3, 1)",
    "(1, 4)",
    "(2, 3, 4)",
    "(4, 3)",
    "()",
    "(3,)",
    "(4, 4)",
    "(0, 4)",
    "(1,)",
    "(2, 0, 3)",
    "(2, 1, 3, 4)",
    "(5, 5)",
    "(2, 3, 3, 3)",
]
NUMBERS = ["0.5", "2.0", "-1.5", "0.25", "3", "-1", "0"]
LARGEST = 1e3  #: values beyond it make rounding visible
ELEMENTS = 400
REFUSED = 0.12  #: of the draws that PyTorch refuses so many stay


#: dtypes of leaves where dtypes are mixed
MIXED = ["int64", "int32", "bool", "complex128", "float32", "float32", "float64", "uint8", "int16", "complex64"]
OTHERS = {"o": torch.optim.Optimizer, "f": torch.nn.Module, "x": np.ndarray}


class Void(Exception):
    """Nothing fits a hole."""


class Draw:
    """A program under way: its statements, and PyTorch's namespace after them."""

    def __init__(self, seed: str, families: dict[str, tuple[int, list[Any]]] | None = None, refused: float = REFUSED):
        self.refused = refused
        self.rng = random.Random(seed)
        self.families = families or FAMILIES
        self.float32 = self.rng.random() < 0.3
        self.mixed = families is None and self.rng.random() < 0.3
        self.extreme = families is None and self.rng.random() < 0.1  # whether infinities and nan take part
        dwelt = seed.rpartition("+")[0]  # how the names of families begin that this program is mostly drawn from
        # whether complex numbers, and views of their conjugates, are drawn where others are
        self.complex = self.rng.random() < 0.15 or dwelt in ("complex", "conjugate")
        self.statements: list[str] = []
        self.count = 0
        self.space = new_space(torch)
        #: programs that dwell on something find more than those that do of all a little
        self.weights = {k: w * self.rng.choice([0, 0.3, 1, 1, 3]) for k, (w, _) in self.families.items()}
        if self.extreme:
            self.weights["extreme"] = self.rng.choice([3, 6, 12])
        if dwelt:
            self.weights |= {k: w * 6 for k, (w, _) in self.families.items() if k.startswith(dwelt)}
        if self.complex:
            self.weights = {k: w * (0.1 if k not in COMPLEX else 3 if k.startswith("conjugate") else 1) for k, w in self.weights.items()}

    # ---------------------------------------------------------------------------------------- holes

    def tensors(self, fits: Any = lambda t: True) -> list[str]:
        return [n for n in names_of(self.space) if is_tensor(self.space[n]) and fits(self.space[n])]

    def numbers(self, t: torch.Tensor) -> bool:
        """Whether a tensor is one of those that floating holes are filled with."""
        return t.is_floating_point() or (self.complex and t.is_complex())

    def pick(self, names: list[str]) -> str:
        if not names:
            raise Void
        k = len(names)  # the latest more often
        return names[min(k - 1, int(k * self.rng.random() ** 0.6))]

    def tensor(self, letter: str, first: str | None) -> str:
        """A tensor for a hole: of the kind that its letter says, seldom another one where dtypes are mixed."""
        floating = self.tensors(torch.is_complex if letter in "zw" else self.numbers)
        if self.mixed and letter in "abc" and self.rng.random() < 0.15:
            floating = self.tensors()
        if letter in "bcw":
            shape = self.space[first].shape if first else torch.Size()
            fitting = [n for n in floating if _broadcast(self.space[n].shape, shape)]
            return self.pick(fitting if fitting and self.rng.random() < 0.9 else floating)
        if letter in "az":
            return self.pick(floating)
        if letter in "pq":
            leaves = [n for n in floating if self.space[n].requires_grad and _leaf(self.space[n])]
            return self.rng.choice(leaves) if leaves else self.pick([n for n in floating if self.space[n].requires_grad])
        if letter == "r":
            return self.pick([n for n in floating if self.space[n].requires_grad])
        kinds = {"i": lambda t: t.dtype is torch.int64, "m": lambda t: t.dtype is torch.bool, "t": lambda t: True}
        return self.pick(self.tensors(kinds[letter]))

    def operand(self, shape: tuple[int, ...], letter: str = "a") -> str:
        """A tensor of a shape: one of the program that has it or is fitted to it, or a new one."""
        rng = self.rng
        if rng.random() < 0.04:
            shape = _altered(shape, rng)
        fits = torch.is_complex if letter in "zw" else self.numbers
        fitting = self.tensors(lambda t: fits(t) and tuple(t.shape) == shape)
        if fitting and rng.random() < 0.7:
            return self.pick(fitting)
        if rng.random() < 0.2:
            dtype = "'complex128'" if letter in "zw" else "{dtype}"
            return self.fill(f"make({{s}}, {shape}, {dtype})")
        return f"fit({self.tensor('z' if letter in 'zw' else 'a', None)}, {shape})"

    def dtype(self) -> str:
        if self.mixed and self.rng.random() < 0.3:
            return repr(self.rng.choice(MIXED))
        if self.complex and self.rng.random() < 0.75:
            return '"complex64"' if self.rng.random() < 0.2 else '"complex128"'
        return '"float32"' if (self.float32 and self.rng.random() < 0.8) or self.rng.random() < 0.05 else '"float64"'

    def fill(self, template: str) -> str:
        chosen: dict[str, str] = {}
        first: str | None = None
        rng = self.rng
        plain = {
            "dtype": self.dtype, "shape": lambda: rng.choice(SHAPES), "v": lambda: rng.choice(NUMBERS),
            "n": lambda: str(rng.randint(2, 4)), "s": lambda: str(rng.randint(0, 99)),
        }  # fmt: skip

        def value(letter: str) -> str:
            if letter in ("new", "new2"):
                self.count += 1
                return f"v{self.count}"
            if letter in ("d", "e"):
                dims = self.space[first].dim() if first else 1
                return str(rng.randrange(-dims, dims) if dims else 0)
            if letter == "idx":
                return index(rng, tuple(self.space[first].shape))
            if letter in OTHERS:
                return self.pick([n for n in names_of(self.space) if isinstance(self.space[n], OTHERS[letter])])
            if letter == "u":
                return self.pick([n for n in names_of(self.space) if _holds_tensors(self.space[n])])
            return self.tensor(letter, first)

        def hole(match: re.Match) -> str:
            nonlocal first
            letter = match[1]
            if match[2]:
                return self.operand(ast.literal_eval(match[2][1:]), letter)
            if letter in plain:
                return plain[letter]()
            if letter in chosen:
                return chosen[letter]
            name = value(letter)
            if letter not in ("i", "m", "t", "idx"):
                chosen[letter] = name
            if letter in ("a", "r", "p", "q", "i", "m", "t", "z") and first is None:
                first = name
            return name

        return re.sub(r"\{(\w+)(:\([^}]*\))?\}", hole, template)

    # ---------------------------------------------------------------------------------------- statements

    def candidate(self) -> str:
        name = self.rng.choices(list(self.weights), [w + 1e-6 for w in self.weights.values()])[0]
        template = self.rng.choice(self.families[name][1])
        text = self.fill(template if isinstance(template, str) else self.rng.choice(template))
        if name in ("in place", "index", "hook", "conjugate in place") and any(_overlaps(self.space.get(n)) for n in re.findall(r"v\d+", text)):
            raise Void  # what PyTorch writes depends on the width of its vectors
        if "register_" in text and any(unheard(self.space.get(n)) for n in re.findall(r"v\d+", text)):
            raise Void  # PyTorch crashes
        chance = self.rng.random()
        reshapes = re.search(r"\.(t|unsqueeze|squeeze|transpose|detach|requires_grad)_\(", text)  # by which a graph is lost
        if name in ("unary", "binary", "view", "in place", "shuffle") and chance < 0.06 and not reshapes:
            context = self.rng.choice(["no_grad", "no_grad", "no_grad", "enable_grad", "inference_mode"])
            text = f"with torch.{context}():\n    {text}"
        return text

    def tame(self) -> bool:
        """Whether rounding decides nothing: values of moderate size."""
        for n in names_of(self.space):
            t = self.space[n]
            if isinstance(t, torch.nn.Module):
                if not all(_tame(p, self.extreme) for p in t.parameters()):
                    return False
            elif is_tensor(t) and not (_tame(t, self.extreme) and _tame_gradient(t, self.extreme)):
                return False
        return True

    def replay(self) -> None:
        self.space = new_space(torch)
        for s in self.statements:
            run(s, self.space)

    def add(self, text: str, always: bool = False) -> bool:
        """Run a statement; whether it stays."""
        error = run(text, self.space)
        if error is None:
            if always or self.tame():
                self.statements.append(text)
                return True
            self.replay()
            return False
        crude = isinstance(error, (NameError, SyntaxError, AttributeError, ZeroDivisionError, AssertionError))
        if not crude and self.rng.random() < self.refused:
            self.statements.append(text)
            return True
        if "backward(" in text or "grad(" in text or "_" in text:  # it may have done a part
            self.replay()
        return False

    def grow(self, length: int) -> None:
        for _ in range(length * 12):
            if len(self.statements) >= length:
                return
            try:
                self.add(self.candidate())
            except Void:
                continue


def _broadcast(a: torch.Size, b: torch.Size) -> bool:
    return all(m == n or 1 in (m, n) for m, n in zip(reversed(a), reversed(b)))


def _altered(shape: tuple[int, ...], rng: random.Random) -> tuple[int, ...]:
    """A shape with a dim more, less, or of another size."""
    k = rng.randint(0, len(shape))
    size = rng.choice([0, 1, 1, 2])
    return rng.choice([(*shape[:k], size, *shape[k:]), (*shape[:k], *shape[k + 1 :]), (*shape[:k], size, *shape[k + 1 :])])


def _overlaps(t: Any) -> bool:
    """Whether elements share memory other than by being expanded, as windows do."""
    if not is_tensor(t) or t.numel() < 2:
        return False
    pairs = sorted((s, n) for s, n in zip(t.stride(), t.shape) if n > 1 and s > 0)
    reach = 0
    for s, n in pairs:
        if s <= reach:
            return True
        reach += s * (n - 1)
    return False


def _holds_tensors(value: Any) -> bool:
    return isinstance(value, (tuple, list)) and len(value) > 0 and all(is_tensor(v) for v in value)


def _tame(t: torch.Tensor, extreme: bool) -> bool:
    try:
        t = t.detach()
        if t.numel() > ELEMENTS or t.dim() > 5:
            return False
        if not (t.is_floating_point() or t.is_complex()) or t.numel() == 0:
            return True
        return bool(((t.abs() < LARGEST) | (~t.isfinite() if extreme else False)).all())
    except RuntimeError:  # a batch that a hook has let out of its vmap, or what shows an inference tensor that was changed
        return False


def program(seed: str, length: int | None = None) -> Program:
    """A program of so many statements, the same one for a seed."""
    draw = Draw(seed)
    draw.add(draw.fill("{new} = make({s}, (3, 4), {dtype}).requires_grad_()"), True)
    draw.add(draw.fill("{new} = make({s}, {shape}, {dtype}).requires_grad_()"), True)
    draw.add(draw.fill("{new} = make({s}, (3, 4), {dtype})"), True)
    draw.grow(length or draw.rng.randint(6, 24))
    return Program(tuple(draw.statements))


def _readable(t: torch.Tensor) -> bool:
    """False for one of several views whose base has been changed (see `program.look`)."""
    try:
        return t.is_leaf or True
    except RuntimeError:
        return False


def _leaf(t: torch.Tensor) -> bool:
    return _readable(t) and t.is_leaf


def _tame_gradient(t: torch.Tensor, extreme: bool) -> bool:
    return not _leaf(t) or t.grad is None or _tame(t.grad, extreme)


# ------------------------------------------------------------------------------------------------ functions called a few times

def _of_functions(templates: list[Any], skipped: re.Pattern[str]) -> list[Any]:
    """Templates without those that ``skipped`` finds, also among the spellings of one op, and without those that draw numbers."""
    skipped = re.compile(f"{skipped.pattern}|spectral_norm")
    kept = [[t for t in found if not skipped.search(t)] if isinstance(found, list) else found for found in templates]
    return [t for t in kept if t and not (isinstance(t, str) and skipped.search(t))]


def _moved(body: tuple[str, ...], setup: list[str]) -> tuple[str, ...]:
    """A body without the numbers, modules and optimizers that it makes, which the ``setup`` makes instead: so they are what calls have in common."""
    kept = []
    for statement in body:
        first, _, rest = statement.partition("; ")
        made = re.match(r"v\d+ = (make|fill|torch\.(nn|optim)\.[A-Z]\w*|torch\.nn\.utils\.\w+\.\w+)\(", first)
        free = not re.search(r"\bv\d+\b|\b[xyz]\b", first.partition(" = ")[2]) and first.count("(") == first.count(")")
        if made and free and "\n" not in statement:
            setup.append(first)
            statement = rest
        if statement:
            kept.append(statement)

    def constant(match: re.Match) -> str:
        setup.append(f"c{len(setup)} = {match[0]}")
        return f"c{len(setup) - 1}"

    drawn = re.compile(r"\b(?:make|extreme)\(\d+, \([^()]*\), ['\"]\w+['\"]\)")
    return tuple(drawn.sub(constant, statement) for statement in kept)


def calls(seed: str) -> Calls:
    """A function with what it reaches, and a few calls of it."""
    rng = random.Random(f"{seed} third")
    values, uses = rng.choice(THIRD)
    skipped = EAGER if rng.random() < 0.85 else re.compile("$^")
    families = COMPILED if rng.random() < 0.4 else FAMILIES
    body = {k: (FAMILIES[k][0], _of_functions(FAMILIES[k][1], skipped)) for k in families}
    draw = Draw(seed, body | {"body": (8, BODY), "third": (3, uses)}, refused=0.02)
    rng = draw.rng
    dtype = '"float32"' if rng.random() < 0.5 else '"float64"'
    shape = rng.choice(["(3, 4)", "(3, 4)", "(2, 4)", "(4,)", "(3, 1)"])

    def text(template: str) -> str:
        while "{make}" in template:
            template = template.replace("{make}", f"make({{s}}, (3, 4), {dtype}){rng.choice(['', '.requires_grad_()', ' * 2'])}", 1)
        while "{s}" in template:
            template = template.replace("{s}", str(rng.randint(0, 99)), 1)
        return template.replace("{dtype}", dtype)

    setup = [text(s) for s in SETUP] + [text(s) for s in rng.sample(MORE, rng.randint(0, 3))]
    plain = [
        f"make({{s}}, {shape}, {dtype})", f"make({{s}}, {shape}, {dtype}).requires_grad_()", f"make({{s}}, {shape}, {dtype}).requires_grad_() * 1.5",
        f"make({{s}}, {shape[:-1] if shape.endswith(',)') else shape[:-1] + ','} 2), {dtype})[..., 0]",
    ]  # fmt: skip
    odd = [
        f"make({{s}}, {shape}, {dtype}).T", f"torch.nn.Parameter(make({{s}}, {shape}, {dtype}))", f"make({{s}}, {shape}, 'int64')",
        f"make({{s}}, {shape}, 'float64' if {dtype} == 'float32' else 'float32')", "buf", "w", "buf[1:]", "w.detach()", "w * 1",
        "make({s}, (3, 4), 'complex128')",
        f"torch.from_numpy(np.ones({shape}, {dtype}))", f"torch.empty(0, 4, dtype=torch.{dtype[1:-1]})", f"make({{s}}, {shape}, {dtype}).expand(2, *{shape})",
    ]  # fmt: skip
    kinds = rng.choice(plain), rng.choice(plain[:3]), values[0]
    first = tuple(text(kind) for kind in kinds)
    for s in setup:
        run(s, draw.space)
    start = len(setup)
    draw.statements = [*setup, "\n".join(f"{n} = {g}" for n, g in zip("xyz", first, strict=True))]
    run(draw.statements[-1], draw.space)
    draw.grow(len(draw.statements) + rng.randint(2, 9))
    inner = tuple(s for s in draw.statements[start + 1 :])
    if rng.random() < 0.8:
        inner = _moved(inner, setup)
    made = [n for n in draw.tensors() if n.startswith("v")]
    if rng.random() < 0.8:
        made = [n for n in made if draw.space[n].requires_grad] or made
    results = tuple(rng.sample(made, min(len(made), rng.randint(1, 3)))) if made else ("x",)
    all_calls = [Call((), first, (rng.choice(PASSES),))]
    for _ in range(rng.randint(3, 5)):
        before = tuple(text(s) for s in rng.sample(BETWEEN, rng.choice([0, 0, 1, 1, 2])))
        chance = rng.random()
        given = [text(kind) for kind in (kinds[:2] if chance < 0.7 else (rng.choice(plain + odd), rng.choice(plain + odd)))]
        if chance > 0.95:
            given[1] = "x"  # of the call before
        elif chance > 0.9:
            given = [g.replace(shape, "(5, 4)") for g in given]
        given.append(text(kinds[2] if rng.random() < 0.7 else rng.choice(values)))
        after = tuple(text(s) for s in rng.sample(AFTER, rng.choice([0, 0, 0, 1, 1, 2])))
        all_calls.append(Call(before, tuple(given), (*after, *rng.sample(PASSES, rng.choice([0, 1, 1, 1, 2])))))
    return Calls(tuple(setup), inner, results, tuple(all_calls), rng.choice(FORMS))
