"""The samples that structured ops are declared with (`ops.core.structured`), as calls on given operands.

A sample is a text, "x(3, 4).cumsum(1)", whose ``x(…)`` stand for operands. `Sample` runs it in autograd_nb or in PyTorch, with operands of
any dtype or with those that a test hands in, so that a new op needs no line in tests/.
"""

from __future__ import annotations

import ast
import inspect
import math
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

import numpy as np

import autograd_nb
from autograd_nb.ops.core.structured import SeveralNode, Structured, StructuredNode

#: the dtype that stands for each kind of numbers
KINDS = {"half": "float16", "float": "float32", "complex": "complex64", "integer": "int64", "bool": "bool"}


def numbers(place: int, shape: Sequence[int], low: float, high: float, dtype: str) -> np.ndarray:
    """Values between low and high, away from each other and from 0, so that ties and kinks are not hit by chance."""
    rng = np.random.default_rng([place, *shape])
    n = math.prod(shape)
    values = low + (high - low) * (rng.permutation(n) + rng.uniform(0.3, 0.7, n)) / max(n, 1)
    if np.dtype(dtype).kind in "iub":
        values = np.round(values * 5)
    elif np.dtype(dtype).kind == "c":
        values = values + 1j * rng.permutation(values)
    return values.reshape(shape).astype(dtype)


class Operands(ast.NodeTransformer):
    """Puts parameters in the place of ``x(…)``, ``pos(…)`` and ``spd(n)``, and keeps their shapes and ranges."""

    def __init__(self) -> None:
        self.made: list[tuple[tuple[int, ...], float, float]] = []

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        if name not in ("x", "pos", "spd"):
            return node
        shape = tuple(ast.literal_eval(n) for n in node.args)
        self.made.append((shape * 2 if name == "spd" else shape, *((0.3, 2.0) if name == "pos" else (-1.0, 1.0))))
        operand = ast.Name(f"operand{len(self.made)}", ast.Load())
        return ast.Call(node.func, [operand], []) if name == "spd" else operand


class Sample:
    """One call of an op, from its text."""

    def __init__(self, text: str):
        reader = Operands()
        self.body = reader.visit(ast.parse(text, mode="eval")).body
        self.made = reader.made

    def function(self, torch: ModuleType, body: ast.expr | None = None, **names: Any) -> Callable[..., Any]:
        """The call as a function of its operands, of a library."""
        names |= {
            "torch": torch, "F": torch.nn.functional, "spd": lambda a: a @ a.mH + torch.eye(len(a), dtype=a.dtype),
            "index": lambda n, *shape: torch.arange(math.prod(shape)).mul(2).remainder(n).reshape(shape),
            "mask": lambda *shape: torch.arange(math.prod(shape)).remainder(3).eq(0).reshape(shape),
        }  # fmt: skip
        parameters = ", ".join(f"operand{k + 1}" for k in range(len(self.made)))
        return eval(f"lambda {parameters}: {ast.unparse(body or self.body)}", names)

    def operands(self, dtype: str = "float64") -> list[np.ndarray]:
        """The operands' values."""
        return [numbers(k, *made, dtype) for k, made in enumerate(self.made)]

    def __call__(self, *operands: Any, torch: ModuleType = autograd_nb) -> Any:
        """The result for these operands, with numbers drawn from the seed 0."""
        torch.manual_seed(0)
        return self.function(torch)(*operands)

    @property
    def call(self) -> ast.expr:
        """The outermost call, of whose tuple the sample may take one: ``.values``."""
        return self.body.value if isinstance(self.body, ast.Attribute) else self.body

    def whole(self, torch: ModuleType) -> Callable[..., Any]:
        """The outermost call as a function of the operands."""
        return self.function(torch, self.call)

    def with_out(self) -> Callable[..., Any] | None:
        """A function ``(outs, *operands)``: the outermost call with ``out=outs``. None where what it calls does not take that."""
        call = self.call
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
            return None
        owner, name = ast.unparse(call.func.value), call.func.attr
        method = owner not in ("torch", "F", "torch.linalg", "torch.fft")
        space = autograd_nb if method else eval(owner, {"torch": autograd_nb, "F": autograd_nb.nn.functional})
        function = getattr(space, name, None)
        if function is None or "out" not in inspect.signature(function).parameters:
            return None
        given = [call.func.value, *call.args] if method else call.args
        return lambda outs, *operands: self.function(
            autograd_nb, ast.Call(ast.Name("function"), given, [*call.keywords, ast.keyword("out", ast.Name("outs"))]), function=function, outs=outs
        )(*operands)


def tensors(result: Any) -> list[Any]:
    """The tensors of a result: one, or those of a tuple or list."""
    return [t for t in (result if isinstance(result, (tuple, list)) else (result,)) if hasattr(t, "requires_grad")]


def ours(function: Callable) -> bool:
    """Whether a declaration is the library's: tests declare ops of their own."""
    return (function.__module__ or "").startswith("autograd_nb.")


def structured_ops() -> list[Structured]:
    """Every structured op of the library, variants among them."""
    nodes = [n for base in (StructuredNode, SeveralNode) for n in base.__subclasses__() if n is not SeveralNode]
    return list({id(n.op): n.op for n in nodes if ours(n.op.forward)}.values())


#: (op, sample) by the sample's text
SAMPLES: dict[str, tuple[Structured, Sample]] = {text: (op, Sample(text)) for op in structured_ops() for text in op.samples}
