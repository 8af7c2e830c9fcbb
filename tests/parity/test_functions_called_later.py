"""What transforms give back to be called later: gradients of it outside of a `no_grad` in which it was made, and rules of `vmap` of users' Functions."""

from __future__ import annotations

import warnings
from typing import Any

import pytest
import torch

import autograd_nb as ag

LIBRARIES = (torch, ag)


def _square(x: Any) -> Any:
    return x**2


def _by_argument(lib: Any, x: Any, way: str) -> tuple[Any, Any]:
    """(output, what is linear in a number) of x."""
    output, f = getattr(lib.func, way)(_square, x)
    return output, lambda v: f(v)[0] if way == "vjp" else f(v)


def _by_closure(lib: Any, x: Any, way: str) -> tuple[Any, Any]:
    """The same of a function that has x from around it."""
    output, f = getattr(lib.func, way)(lambda a: a * x, lib.tensor(2.0))
    return output, lambda v: f(v)[0] if way == "vjp" else f(v)


@pytest.mark.parity
@pytest.mark.parametrize("called_in", [False, True])
@pytest.mark.parametrize("made_in", [False, True])
@pytest.mark.parametrize("made", [_by_argument, _by_closure])
@pytest.mark.parametrize("way", ["vjp", "linearize"])
def test_what_is_made_without_grad_has_gradients_where_it_is_called(way: str, made: Any, made_in: bool, called_in: bool) -> None:
    found = []
    for lib in LIBRARIES:
        x = lib.tensor(3.0, requires_grad=True)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of what PyTorch writes programs with
            with lib.set_grad_enabled(not made_in):
                output, f = made(lib, x, way)
            with lib.set_grad_enabled(not called_in):
                y = f(lib.tensor(2.0))
        found.append([output.requires_grad, output.item(), y.requires_grad, y.item()])
        if y.requires_grad and (lib is ag or way == "vjp"):  # (what PyTorch linearizes has lost the way to x, though it says that it requires grad)
            assert lib.autograd.grad(y, x)[0].item() == (4 if made is _by_argument else 2)
    assert found[0] == found[1]


@pytest.mark.parity
def test_what_is_made_without_grad_has_gradients_within_other_transforms() -> None:
    def f(lib: Any, x: Any) -> Any:
        with lib.no_grad():
            output, back = lib.func.vjp(_square, x)
        return back(lib.tensor(1.0))[0] + output

    for outer in ("grad", "jacrev", "hessian"):
        values = [getattr(lib.func, outer)(lambda x, lib=lib: f(lib, x))(lib.tensor(3.0)).item() for lib in LIBRARIES]
        assert values[0] == values[1], outer
    mapped = [lib.vmap(lib.func.grad(lambda x, lib=lib: f(lib, x)))(lib.arange(3.0)).tolist() for lib in LIBRARIES]
    assert mapped[0] == mapped[1]


@pytest.mark.parity
@pytest.mark.parametrize("constant", [(), (0,), (1,), (0, 1)])
def test_a_strict_product_refuses_each_output_that_is_constant(constant: tuple[int, ...]) -> None:
    for lib in LIBRARIES:

        def f(x: Any, lib: Any = lib) -> Any:
            return tuple(lib.ones(2) if k in constant else x * 2 for k in range(2))

        if not constant:
            assert lib.func.jvp(f, (lib.ones(2),), (lib.ones(2),), strict=True)[1][0].tolist() == [2, 2]
            continue
        with pytest.raises(RuntimeError, match="independent of the inputs"):
            lib.func.jvp(f, (lib.ones(2),), (lib.ones(2),), strict=True)


def _function(lib: Any, seen: list[Any], rule: Any = None) -> Any:
    class Scaled(lib.autograd.Function):
        @staticmethod
        def forward(x, others):
            return x * others[0] + others[1]

        @staticmethod
        def setup_context(ctx, inputs, output):
            pass

        @staticmethod
        def vmap(info, in_dims, x, others):
            seen.append((in_dims, tuple(x.shape)))
            if rule is not None:
                return rule(x)
            x = x.movedim(in_dims[0], 0)
            others = [y if d is None else y.movedim(d, 0) for y, d in zip(others, in_dims[1])]
            return x * others[0] + others[1], 0

    return Scaled


@pytest.mark.parity
def test_rules_see_the_dims_of_what_is_in_lists_and_where_they_were() -> None:
    """A batch in a list was handed to the rule as it was, with None for its dim."""
    found = []
    for lib in LIBRARIES:
        seen: list[Any] = []
        scaled = _function(lib, seen)
        x, y, one = lib.arange(6.0).reshape(3, 2), lib.arange(6.0).reshape(2, 3), lib.ones(())
        assert not scaled.generate_vmap_rule
        results = [
            lib.vmap(lambda x, y: scaled.apply(x, [y, lib.ones(3)]), in_dims=(1, 0))(x, y),
            lib.vmap(lib.vmap(lambda x, y: scaled.apply(x, (y, one))), in_dims=(1, 0))(x, y),
        ]
        found.append((seen, [r.tolist() for r in results]))
    assert found[0] == found[1]


@pytest.mark.parity
@pytest.mark.parametrize("rule", [lambda x: x, lambda x: (x, x, 0), lambda x: (x, (None,)), lambda x: ((x, x), (0,))])
def test_what_a_rule_returns_is_looked_at(rule: Any) -> None:
    for lib in LIBRARIES:
        scaled = _function(lib, [], rule)
        with pytest.raises(RuntimeError, match=r"to have two returns|returned an incompatible"):
            lib.vmap(lambda x: scaled.apply(x, (x, x)))(lib.ones(2, 3))
