"""Products with Jacobians and Hessians of Python functions, and the matrices themselves.

A function of tensors is called once on leaves made of its inputs; what is asked for are backward passes over what it recorded.
A product from the right (forward mode) comes from two of them: v ↦ vᵀJ is linear in v, and its own derivative is u ↦ Ju.

Source: https://docs.pytorch.org/docs/stable/autograd.html#functional-higher-level-api
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..graph.modes import recorded
from ..ops.core.registry import OPS
from ..ops.creation.create import new_full
from ..tensor import Tensor
from .api import grad
from .functional_parts import (  # noqa: F401  (packages take them from here)
    _as_tuple,
    _as_tuple_nocheck,
    _autograd_grad,
    _construct_standard_basis_for,
    _fill_in_zeros,
    _grad_postprocess,
    _grad_preprocess,
    _tuple_postprocess,
    _validate_v,
)  # fmt: skip

__all__ = ["hessian", "hvp", "jacobian", "jvp", "vhp", "vjp"]


def _tuple(value: Any, name: str, function: str) -> tuple[bool, tuple[Tensor, ...]]:
    """Return (whether it was a tuple, the tensors); TypeError for anything but tensors."""
    several = isinstance(value, (tuple, list))
    values = tuple(value) if several else (value,)
    for i, t in enumerate(values):
        if not isinstance(t, Tensor):
            which = f"value at index {i} has" if several else f"given {name} has"
            raise TypeError(
                f"The {name} given to {function} must be either a Tensor or a tuple of Tensors but the {which} type {type(t)}."
            )
    return several, values


def _leaves(inputs: tuple[Tensor, ...], create_graph: bool) -> tuple[Tensor, ...]:
    """Return what the function is called on: with ``create_graph`` still connected to the inputs, else leaves of the same memory."""
    return tuple(OPS["view_as"].call(t, t) if create_graph and t.requires_grad else t.detach().requires_grad_() for t in inputs)


def _call(func: Callable[..., Any], inputs: Any, name: str, create_graph: bool) -> tuple[bool, tuple[Any, ...], bool, tuple[Any, ...]]:
    """Return (inputs were a tuple, the leaves, outputs were a tuple, the outputs)."""
    several_in, given = _tuple(inputs, "inputs", name)
    leaves = _leaves(given, create_graph)
    several_out, outputs = _tuple(func(*leaves), "outputs of the user-provided function", name)
    return several_in, leaves, several_out, outputs


def _vector(v: Any, like: tuple[Tensor, ...], several: bool, name: str, missing: str) -> tuple[Tensor, ...]:
    """Return ``v`` checked against what it multiplies; ones for a single number."""
    if v is None:
        if len(like) != 1 or like[0]._layout.size != 1:
            raise RuntimeError(f"The vector v can only be None if {missing} a single Tensor with a single element.")
        return (new_full(like[0].shape, 1, like[0].dtype),)
    _, vectors = _tuple(v, "v", name)
    if len(vectors) != len(like):
        if several:
            raise RuntimeError(f"v is a tuple of invalid length: should be {len(like)} but got {len(vectors)}.")
        raise RuntimeError("The given v should contain a single Tensor.")
    for i, (a, b) in enumerate(zip(vectors, like, strict=True)):
        if a.shape != b.shape:
            which = f"Entry {i} in " if several else ""
            raise RuntimeError(f"{which}v has invalid size: should be {b.shape} but got {a.shape}.")
    return vectors


def _independent(what: str, i: int, of: str = "input") -> RuntimeError:
    return RuntimeError(f"{what} is independent of {of} {i}. This is not allowed in strict mode.")


_OUTPUT = "The output of the user-provided function"


def _check_jacobian(grads: tuple[Tensor | None, ...], strict: bool) -> None:
    """Refuse first derivatives that are missing or do not depend on the inputs, in strict mode."""
    for i, g in enumerate(grads if strict else ()):
        if g is None:
            raise _independent(_OUTPUT, i)
        if not g.requires_grad:
            raise RuntimeError(
                "While computing the hessian, found that the jacobian of the user-provided function with respect to "
                f"input {i} is independent of the input. This is not allowed in strict mode. You should ensure that your "
                "function is twice differentiable and that the jacobian depends on the inputs."
            )


def _check_outputs(outputs: tuple[Tensor, ...], strict: bool) -> None:
    """Refuse outputs that are not computed from the inputs, in strict mode."""
    if not strict:
        return
    for i, t in enumerate(outputs):
        if t.requires_grad:
            continue
        raise RuntimeError(
            f"Output {i} of the user-provided function does not require gradients. The outputs must be computed in a "
            "differentiable manner from the input when running in strict mode."
        )


def _grads(
    outputs: tuple[Tensor, ...], inputs: tuple[Tensor, ...], vectors: tuple[Tensor, ...], create_graph: bool,
    retain: bool = True,
) -> tuple[Tensor | None, ...]:  # fmt: skip
    """Return Σ vᵀ d(output)/d(input), None for what does not depend on it."""
    kept = [(o, v) for o, v in zip(outputs, vectors, strict=True) if o.requires_grad]
    if not kept:
        return (None,) * len(inputs)
    found = grad(
        [o for o, _ in kept], inputs, [v for _, v in kept], create_graph=create_graph, retain_graph=retain, allow_unused=True
    )
    return tuple(found)


def _filled(
    grads: tuple[Tensor | None, ...], like: tuple[Tensor, ...], strict: bool, create_graph: bool, what: str = _OUTPUT,
    of: str = "input",
) -> tuple[Tensor, ...]:  # fmt: skip
    """Return zeros for what is missing; in strict mode raise an error."""
    out = []
    for i, (g, t) in enumerate(zip(grads, like, strict=True)):
        if g is None:
            if strict:
                raise _independent(what, i, of)
            g = new_full(t.shape, 0, t.dtype)
        elif strict and create_graph and not g.requires_grad:
            raise RuntimeError(
                f"The jacobian of the user-provided function is independent of input {i}. This is not allowed in strict mode "
                "when create_graph=True."
            )
        out.append(g)
    return tuple(out)


def _result(values: tuple[Tensor, ...], several: bool, create_graph: bool) -> Any:
    out = values if create_graph else tuple(t.detach() for t in values)
    return out if several else out[0]


def vjp(func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> Any:
    """Return (func(*inputs), vᵀJ): the product of a vector and the Jacobian, one backward pass.

    inputs: a tensor or a tuple. v: shaped as the output; may be left out for a single number. create_graph: the results can be
    differentiated further. strict: RuntimeError where an output does not depend on an input, instead of zeros.

    Example:
        >>> torch.autograd.functional.vjp(lambda x: x ** 2, torch.tensor([1., 3.]), torch.ones(2))[1]
        tensor([2., 6.])

    Source: https://docs.pytorch.org/docs/stable/generated/torch.autograd.functional.vjp.html
    """
    with recorded():
        several_in, leaves, several_out, outputs = _call(func, inputs, "vjp", create_graph)
        _check_outputs(outputs, strict)
        vectors = _vector(v, outputs, several_out, "vjp", "the user-provided function returns")
        if v is None:
            _only_real(outputs[0])
        found = _grads(outputs, leaves, vectors, create_graph)
        product = _filled(found, leaves, strict, create_graph)
    return _result(outputs, several_out, create_graph), _result(product, several_in, create_graph)


def _pushed(
    outputs: tuple[Tensor, ...], leaves: tuple[Tensor, ...], vectors: tuple[Tensor, ...], create_graph: bool, strict: bool
) -> tuple[Tensor, ...]:
    """Return J · v: the derivative of u ↦ uᵀJ, at any u."""
    dummies = tuple(new_full(o.shape, 1, o.dtype).requires_grad_() for o in outputs)
    pulled = _filled(_grads(outputs, leaves, dummies, True), leaves, strict, False)
    found = _grads(pulled, dummies, vectors, create_graph)
    return _filled(
        found, outputs, strict, create_graph, "The gradient with respect to the input",
        "entry in the grad_outputs when using the double backward trick to compute forward mode gradients:",
    )  # fmt: skip


def jvp(func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> Any:
    """Return (func(*inputs), Jv): the product of the Jacobian and a vector shaped as the inputs.

    Source: https://docs.pytorch.org/docs/stable/generated/torch.autograd.functional.jvp.html

    >>> torch.autograd.functional.jvp(lambda x: x * x, torch.tensor([1., 2.]), torch.ones(2))
    (tensor([1., 4.]), tensor([2., 4.]))
    """
    with recorded():
        several_in, given = _tuple(inputs, "inputs", "jvp")
        vectors = _vector(v, given, several_in, "jvp", "the input to the user-provided function is")
        _, leaves, several_out, outputs = _call(func, inputs, "jvp", create_graph)
        _check_outputs(outputs, strict)
        product = _pushed(outputs, leaves, vectors, create_graph, strict)
    return _result(outputs, several_out, create_graph), _result(product, several_out, create_graph)


def _basis(t: Tensor) -> list[Tensor]:
    """Return the unit vectors of t's shape."""
    n = t._layout.size
    return list(OPS["eye"].call(n, dtype=t.dtype).reshape([n, *t.shape]).unbind(0)) if n else []


def jacobian(
    func: Callable[..., Any], inputs: Any, create_graph: bool = False, strict: bool = False, vectorize: bool = False,
    strategy: str = "reverse-mode",
) -> Any:  # fmt: skip
    """Return J[i][j] = d(output i)/d(input j), of shape output.shape + input.shape; nested tuples where func takes or returns several.

    strategy: "reverse-mode" (row by row) or "forward-mode" (column by column; needs ``vectorize=True``). vectorize: all in one
    batched pass.

    Example:
        >>> torch.autograd.functional.jacobian(lambda x: x * x, torch.tensor([1., 2.]))
        tensor([[2., 0.],
                [0., 4.]])

    Source: https://docs.pytorch.org/docs/stable/generated/torch.autograd.functional.jacobian.html
    """
    if strategy not in ("forward-mode", "reverse-mode"):
        raise AssertionError(
            'Expected strategy to be either "forward-mode" or "reverse-mode". Hint: If your function has more outputs than inputs, '
            '"forward-mode" tends to be more performant. Otherwise, prefer to use "reverse-mode".'
        )
    if strategy == "forward-mode":
        if create_graph:
            raise NotImplementedError(
                'torch.autograd.functional.jacobian: `create_graph=True` and `strategy="forward-mode"` are not supported together '
                '(yet). Please either set `create_graph=False` or `strategy="reverse-mode"`.'
            )
        if strict:
            raise RuntimeError(
                'torch.autograd.functional.jacobian: `strict=True` and `strategy="forward-mode"` are not supported together (yet). '
                'Please either set `strict=False` or `strategy="reverse-mode"`.'
            )
        if not vectorize:
            raise NotImplementedError(
                "Computing Jacobian using forward-AD or forward-over-reverse Hessian is only implemented for `vectorize=True`."
            )
    if vectorize and strict:
        raise RuntimeError(
            "torch.autograd.functional.jacobian: `strict=True` and `vectorized=True` are not supported together. Please either set "
            "`strict=False` or `vectorize=False`."
        )
    with recorded():
        several_in, leaves, several_out, outputs = _call(func, inputs, "jacobian", create_graph)
        _check_outputs(outputs, strict)
        columns = strategy == "forward-mode"
        rows = (
            _columns(outputs, leaves)
            if columns
            else [_rows(i, o, leaves, create_graph, strict, vectorize) for i, o in enumerate(outputs)]
        )
    out = tuple(_result(tuple(row), several_in, create_graph) for row in rows)
    return out if several_out else out[0]


def _only_real(output: Tensor) -> None:
    """Raise RuntimeError for a complex output, by which only a given vector says how to differentiate."""
    if output.dtype.is_complex and output.requires_grad:
        raise RuntimeError(f"grad can be implicitly created only for real scalar outputs but got {output.dtype}")


def _rows(i: int, output: Tensor, leaves: tuple[Tensor, ...], create_graph: bool, strict: bool, at_once: bool) -> list[Tensor]:
    """Return d(output)/d(leaf) of each leaf: a backward pass per element, or one for a batch of all."""
    whole = [[*output.shape, *t.shape] for t in leaves]
    if at_once and output.requires_grad and output._layout.size:
        return [g.reshape(n) for g, n in zip(_batched((output,), leaves, output, create_graph), whole, strict=True)]
    found: list[list[Tensor]] = [[] for _ in leaves]
    if output._layout.size:
        _only_real(output)
    for v in _basis(output):
        grads = _grads((output,), leaves, (v,), create_graph)
        for j, (g, t) in enumerate(zip(grads, leaves, strict=True)):
            if g is None:
                if strict:
                    raise RuntimeError(
                        f"Output {i} of the user-provided function is independent of input {j}. This is not allowed in strict mode."
                    )
                g = new_full(t.shape, 0, t.dtype)
            elif strict and create_graph and not g.requires_grad:
                raise RuntimeError(
                    "The jacobian of the user-provided function is independent of "
                    f"input {j}. This is not allowed in strict mode when create_graph=True."
                )
            found[j].append(g)
    return [
        OPS["stack"].call(rows).reshape(n) if rows else new_full(n, 0, t.dtype)
        for rows, n, t in zip(found, whole, leaves, strict=True)
    ]


def _batched(outputs: tuple[Tensor, ...], inputs: tuple[Tensor, ...], along: Tensor, create_graph: bool) -> tuple[Tensor, ...]:
    """Return the gradients for all unit vectors of ``along``, the one output: their number is the first dim."""
    basis = OPS["stack"].call(_basis(along))
    return tuple(
        grad(
            outputs,
            inputs,
            (basis,),
            retain_graph=True,
            create_graph=create_graph,
            is_grads_batched=True,
            materialize_grads=True,
        )
    )


def _columns(outputs: tuple[Tensor, ...], leaves: tuple[Tensor, ...]) -> list[list[Tensor]]:
    """Return the same as `_rows` from products with the unit vectors of the inputs."""
    dummies = tuple(new_full(o.shape, 1, o.dtype).requires_grad_() for o in outputs)
    pulled = _filled(_grads(outputs, leaves, dummies, True), leaves, False, False)
    table: list[list[Tensor]] = [[] for _ in outputs]
    for t, p in zip(leaves, pulled, strict=True):
        some = p.requires_grad and t._layout.size
        columns = _batched((p,), dummies, p, False) if some else [None] * len(outputs)
        for row, c, o in zip(table, columns, outputs, strict=True):
            whole = [*o.shape, *t.shape]
            row.append(new_full(whole, 0, o.dtype) if c is None else OPS["movedim"].call(c, 0, -1).reshape(whole))
    return table


def _single(outputs: tuple[Tensor, ...], several: bool, name: str) -> None:
    if several:
        raise RuntimeError(f"The function given to {name} should return a single Tensor")
    if outputs[0]._layout.size != 1:
        raise RuntimeError(f"The Tensor returned by the function given to {name} should contain a single element")
    _only_real(outputs[0])


def hessian(
    func: Callable[..., Any], inputs: Any, create_graph: bool = False, strict: bool = False, vectorize: bool = False,
    outer_jacobian_strategy: str = "reverse-mode",
) -> Any:  # fmt: skip
    """Return H[i][j] = d²(output)/d(input i)d(input j) of a function that returns one number: the Jacobian of its gradient.

    Source: https://docs.pytorch.org/docs/stable/generated/torch.autograd.functional.hessian.html

    >>> torch.autograd.functional.hessian(lambda x: (x ** 3).sum(), torch.tensor([1., 2.]))
    tensor([[ 6.,  0.],
            [ 0., 12.]])
    """
    several, _ = _tuple(inputs, "inputs", "hessian")
    if outer_jacobian_strategy not in ("forward-mode", "reverse-mode"):
        raise AssertionError('Expected strategy to be either "forward-mode" or "reverse-mode".')

    def gradient(*args: Tensor) -> Any:
        outputs_several, outputs = _tuple(func(*args), "outputs of the user-provided function", "hessian")
        _single(outputs, outputs_several, "hessian")
        _check_outputs(outputs, strict)
        found = _grads(outputs, args, (new_full(outputs[0].shape, 1, outputs[0].dtype),), True)
        product = _filled(found, args, False, False)
        _check_jacobian(product, strict)
        return product

    found = jacobian(
        gradient, tuple(inputs) if several else (inputs,), create_graph, strict, vectorize, outer_jacobian_strategy
    )
    return found if several else found[0][0]


def vhp(func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> Any:
    """Return (func(*inputs), vᵀH) of a function that returns one number: the derivative of the gradient's product with v.

    Source: https://docs.pytorch.org/docs/stable/generated/torch.autograd.functional.vhp.html

    >>> torch.autograd.functional.vhp(lambda x: (x ** 3).sum(), torch.tensor([1., 2.]), torch.ones(2))[1]
    tensor([ 6., 12.])
    """
    return _hessian_product(func, inputs, v, create_graph, strict, "vhp")


def hvp(func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> Any:
    """Return (func(*inputs), Hv) of a function that returns one number; H is symmetric, so this costs what `vhp` costs.

    Source: https://docs.pytorch.org/docs/stable/generated/torch.autograd.functional.hvp.html

    >>> torch.autograd.functional.hvp(lambda x: (x ** 3).sum(), torch.tensor([1., 2.]), torch.ones(2))[1]
    tensor([ 6., 12.])
    """
    return _hessian_product(func, inputs, v, create_graph, strict, "hvp")


def _hessian_product(func: Callable[..., Any], inputs: Any, v: Any, create_graph: bool, strict: bool, name: str) -> Any:
    with recorded():
        several_in, given = _tuple(inputs, "inputs", name)
        vectors = _vector(v, given, several_in, name, "the input to the user-provided function is")
        _, leaves, several_out, outputs = _call(func, inputs, name, create_graph)
        _single(outputs, several_out, name)
        _check_outputs(outputs, strict)
        found = _grads(outputs, leaves, (new_full(outputs[0].shape, 1, outputs[0].dtype),), True)
        _check_jacobian(found, strict)
        gradient = _filled(found, leaves, False, False)
        found = _grads(gradient, leaves, vectors, create_graph)
        product = _filled(found, leaves, strict, create_graph, "The hessian of the user-provided function")
    return _result(outputs, several_out, create_graph), _result(product, several_in, create_graph)
