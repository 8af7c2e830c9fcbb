"""Derivatives of pointwise ops as pointwise ops: what a recorded backward pass computes is one kernel and one node.

Under ``create_graph`` the formula of a derivative could be run on tensors, an op for each of its operations. Where it is longer
than that, it is declared an op of its own instead, with derivatives that `derive` makes of the formula; so ``g · (1 − y²)`` is
one launch, and its backward pass one or two.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...codegen.formula.symbols import Sym
from ...codegen.templates import loops
from ...codegen.templates.loops import Input
from .calls import binary_call
from .derive import Pair, derivative
from .pointwise import Pointwise
from .pointwise_backward import above

#: instructions of a derivative from which it is an op, and up to which: derivatives of derivatives grow
LEAST, MOST = 2, 250
_FREE = {"input", "constant", "cast"}
#: ops whose derivatives are ops in PyTorch too; the node of any other is called after its last operation, as the user would see
_NAMED = {"sigmoid", "tanh", "softplus", "elu", "leaky_relu", "gelu", "threshold", "log_sigmoid", "softshrink", "hardshrink"}
#: derivatives that depend on the operand by jumps only: they are recorded all the same, so that asking for theirs gives zeros
_JUMPS = {"relu", "leaky_relu", "hardtanh", "relu6"}
#: derivatives that PyTorch makes of the operand's first power: theirs are refused once the operand was changed, though they are constant
_FROM_POWERS = {"square"}
_OPERATIONS = {"mul": "Mul", "div": "Div", "add": "Add", "sub": "Sub", "neg": "Neg"}
_known: dict[tuple[Pointwise, int], tuple[Callable[..., Any], tuple[Any, ...]] | None] = {}


def gradient_op(op: Pointwise, index: int) -> tuple[Callable[..., Any], tuple[Any, ...]] | None:
    """Return (function, which values it takes after the gradient) for the derivative by operand ``index``; None where ops do as well.

    The values are operands' indices or "out".
    """
    key = (op, index)
    if key not in _known:
        try:
            _known[key] = _declare(op, index)
        except (
            NotImplementedError,
            TypeError,
            AttributeError,
        ):  # the formula, or that of a part, has no derivative that is known
            _known[key] = None
    return _known[key]


above.gradient_op = gradient_op


def _declare(op: Pointwise, index: int) -> tuple[Callable[..., Any], tuple[Any, ...]] | None:
    rule = op.rules[index]
    assert rule is not None
    names = [n for n in rule.names if n != "g"]
    which = tuple([op.params.index(n) if n in op.params else "out" for n in names])

    def whole(grad: Any, *values: Any) -> Any:
        return rule.whole(grad, dict(zip(which, values, strict=True)), op.params)

    first = "grad"
    while first in names:  # the op is itself a derivative
        first += "_"
    params = (first, *names)
    if not LEAST <= _length(whole, len(params)) <= MOST:
        return None
    namespace: dict[str, Any] = {"whole": whole}
    exec(f"def named({', '.join(params)}): return whole({', '.join(params)})", namespace)
    formula = namespace["named"]
    rules: list[Callable[..., Any] | None] = []
    for k in range(len(params)):
        by = derivative(formula, params, k) if op.name in _JUMPS or _depends(formula, len(params), k) else None
        if by is not None and _length(by, len(params) + 1) > MOST:
            return None
        rules.append(by and (_renamed if op.name in _FROM_POWERS else _narrowed)(by, params))
    last = [s.op for s in _traced(formula, len(params)).trace.instructions if s.op not in _FREE][-1]
    kind = "ThresholdBackward" if op.name == "relu" else op.node.__name__.removesuffix("0")
    node = kind if op.name in _NAMED | _JUMPS or last not in _OPERATIONS else _OPERATIONS[last]
    gradient = Pointwise(formula, rules, f"{op.name}_backward", f"{node}Backward0", holomorphic=False, exact=op.exact)
    return (binary_call(gradient) if len(params) == 2 else lambda *args: gradient.run(args)), which


def _traced(formula: Callable[..., Any], count: int) -> loops.Body:
    return loops.trace_body(lambda *x: (formula(*x),), [Input("float64")] * count, "float64", [None])


def _narrowed(rule: Callable[..., Any], params: tuple[str, ...]) -> Callable[..., Any]:
    """Return a derivative's rule with those parameters alone that its result depends on, as what it names is kept for it."""
    body = _traced(rule, 1 + len(params))
    pending, reached = [s for s, _ in body.results], set()
    while pending:
        symbol = pending.pop()
        if id(symbol) not in reached:
            reached.add(id(symbol))
            pending.extend(s for s in symbol.args if isinstance(s, Sym))
    return _renamed(rule, params, [n for n, s in zip(params, body.symbols[1:], strict=True) if id(s) in reached])


def _renamed(rule: Callable[..., Any], params: tuple[str, ...], names: Sequence[str] | None = None) -> Callable[..., Any]:
    """Return a derivative's rule with the parameters ``names`` alone, all by default."""
    names = params if names is None else names
    namespace: dict[str, Any] = {"rule": rule}
    values = ", ".join([n if n in names else "g" for n in params])
    exec(f"def named({', '.join(['g', *names])}): return rule(g, {values})", namespace)
    return namespace["named"]  # type: ignore[no-any-return]


def _length(formula: Callable[..., Any], count: int) -> int:
    return sum(s.op not in _FREE for s in _traced(formula, count).trace.instructions)


def _depends(formula: Callable[..., Any], count: int, index: int) -> bool:
    """Return whether the derivative by an operand is anything but 0."""
    found = []

    def run(*symbols):
        out = formula(*[Pair(x, x if k == index else None) for k, x in enumerate(symbols)])
        found.append(isinstance(out, Pair) and out.tangent is not None)
        return symbols[0]

    _traced(run, count)
    return found[0]
