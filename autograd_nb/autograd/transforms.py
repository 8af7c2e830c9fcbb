"""grad, vjp, jvp and the matrices made of them, of functions of tensors and of trees of tensors.

All are backward passes over what the function records. Under `vmap` the tensors that are differentiated by are first made
different for each sample, and the pass runs on the tensors that the batches hold: it then gives each sample its own gradient.
A product from the right comes from two passes: v ↦ vᵀJ is linear in v, and its own derivative is u ↦ Ju.

Source: https://docs.pytorch.org/docs/stable/func.api.html
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from ..dtypes import promote_types
from ..errors import ModifiedError
from ..graph.modes import recorded, state
from ..ops.core.history import check_inplace
from ..ops.core.registry import OPS
from ..ops.creation.create import new_full
from ..tensor import Tensor
from .batching.vmap import vmap
from .carried import Carrier, carrying, detached, ordinary
from .pytree import tree_flatten, tree_map, tree_unflatten
from .tangents import lying_as, need_like
from .traced import Trace, wrap

__all__ = ["grad", "grad_and_value", "hessian", "jacfwd", "jacrev", "jvp", "linearize", "vjp"]


# --------------------------------------------------------------------------------------------------- argnums


def _chosen(argnums: Any, args: tuple[Any, ...]) -> tuple[int, ...]:
    if not isinstance(argnums, (int, tuple)) or isinstance(argnums, bool):
        raise RuntimeError(f"argnums must be int or Tuple[int, ...], got: {type(argnums)}")
    numbers = (argnums,) if isinstance(argnums, int) else argnums
    if not numbers:
        raise RuntimeError("argnums must be non-empty")
    out = []
    for k in numbers:
        if not isinstance(k, int):
            raise RuntimeError(f"argnum must be int, got: {type(k)}")
        if not -len(args) <= k < len(args):
            raise RuntimeError(f"Got argnum={k}, but only {len(args)} positional inputs")
        out.append(k % len(args))
    if len(set(out)) != len(out):
        raise RuntimeError(f"argnums elements must be unique, got {argnums}")
    return tuple(out)


def _of_chosen(func: Callable[..., Any], numbers: tuple[int, ...], args: tuple[Any, ...], kwargs: dict[Any, Any]) -> tuple[Callable[..., Any], list[Any]]:
    """Return (a function of the chosen arguments, those arguments)."""

    def partial(*chosen: Any) -> Any:
        full = list(args)
        for k, value in zip(numbers, chosen, strict=True):
            full[k] = value
        return func(*full, **kwargs)

    return partial, [args[k] for k in numbers]


def _single(found: Any, argnums: Any) -> Any:
    return found[0] if isinstance(argnums, int) else tuple(found)


#: forward mode: (function of primals, primals, tangents) -> tangents of its outputs (handed in by `forward_ad`)
by_duals: list[Callable[..., list[Tensor]]] = []


# ---------------------------------------------------------------------------------------------------- grads


def grad_and_value(func: Callable[..., Any], argnums: Any = 0, has_aux: bool = False) -> Callable[..., Any]:
    """Return a function that gives (gradient, value) of ``func``, which returns one number; with ``has_aux`` (gradient, (value, aux)).

    Source: https://docs.pytorch.org/docs/stable/generated/torch.func.grad_and_value.html

    >>> torch.func.grad_and_value(lambda x: x ** 2)(torch.tensor(3.0))
    (tensor(6.), tensor(9.))
    """

    @functools.wraps(func)
    @ordinary
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        numbers = _chosen(argnums, args)
        trace = Trace(*_of_chosen(func, numbers, args, kwargs), has_aux, "grad_and_value(f)(*args)")
        value = trace.result
        if not isinstance(value, Tensor):
            raise RuntimeError(f"grad_and_value(f)(*args): Expected f(*args) to return a Tensor, got {type(value)}")
        if value.ndim:
            raise RuntimeError(
                "grad_and_value(f)(*args): Expected f(*args) to return a scalar Tensor, got tensor with "
                f"{value.ndim} dims. Maybe you wanted to use the vjp or jacrev APIs instead?"
            )
        if value.dtype.is_complex:
            raise RuntimeError(f"grad can be implicitly created only for real scalar outputs but got {value.dtype} (grad_and_value(f)(*args))")
        one = wrap(new_full(trace.outputs[0].shape, 1, value.dtype), trace.base)
        found = _single(trace.gradients([one], retain=False), argnums)
        value = trace.value()
        return (found, (value, trace.released(trace.aux))) if has_aux else (found, value)

    return wrapper


def grad(func: Callable[..., Any], argnums: Any = 0, has_aux: bool = False) -> Callable[..., Any]:
    """Return a function that gives the gradient of ``func``, which returns one number, by its arguments ``argnums``.

    The arguments may be trees of tensors (dicts of parameters); the gradient is nested alike. May be nested for higher
    derivatives, and mapped over samples with `vmap`.

    Example:
        >>> torch.func.grad(torch.func.grad(torch.sin))(torch.tensor(0.0))
        tensor(-0.)

    Source: https://docs.pytorch.org/docs/stable/generated/torch.func.grad.html
    """
    inner = grad_and_value(func, argnums, has_aux)

    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        found, value = inner(*args, **kwargs)
        return (found, value[1]) if has_aux else found

    return wrapper


@ordinary
def vjp(func: Callable[..., Any], *primals: Any, has_aux: bool = False) -> tuple[Any, ...]:
    """Return (func(*primals), a function of cotangents shaped as the output that gives vᵀJ for each primal).

    With ``has_aux`` func returns (output, aux), and the result is (output, vjp function, aux).
    Source: https://docs.pytorch.org/docs/stable/generated/torch.func.vjp.html

    >>> torch.func.vjp(lambda x: x * x, torch.tensor([1., 2.]))[1](torch.ones(2))
    (tensor([2., 4.]),)
    """
    trace = Trace(func, primals, has_aux, "vjp(f, *primals)")
    for t in trace.like:
        if t.dtype.category < 2:
            raise RuntimeError(
                f"vjp(f, ...): All outputs of f must be floating-point or complex Tensors, got Tensor with dtype {t.dtype}"
            )

    @ordinary
    def pullback(*cotangents: Any, retain_graph: bool = True, create_graph: bool | None = None) -> Any:
        tree = cotangents[0] if len(cotangents) == 1 else cotangents
        flat, spec = tree_flatten(tree)
        if spec != trace.out_spec and len(flat) == len(trace.outputs) == 1 and isinstance(cotangents[0], Tensor):
            spec = trace.out_spec
        if spec != trace.out_spec:
            raise RuntimeError(
                "Expected pytree structure of cotangents to be the same as pytree structure of outputs to the function. "
                f"cotangents: {spec}, primal output: {trace.out_spec}"
            )
        found = trace.gradients(flat)
        return tuple(found if state.grad else [t.detach() if t.__class__ is Tensor else t for t in found])

    value = trace.value()
    return (value, pullback, trace.released(trace.aux)) if has_aux else (value, pullback)


def _jvp_inputs(primals: Any, tangents: Any) -> tuple[list[Any], Any]:
    name = "jvp(f, primals, tangents)"
    if not isinstance(primals, tuple):
        raise RuntimeError(f"{name}: Expected primals to be a tuple. E.g. it should be valid to call f(*primals).")
    flat, spec = tree_flatten(primals)
    moved, other = tree_flatten(tangents)
    if spec != other:
        raise RuntimeError(
            f"{name}: Expected primals and tangents to have the same python structure. For example, if primals is a tuple of 3 "
            f"tensors, tangents also must be. Got primals with structure {spec} and tangents with structure {other}"
        )
    if not flat:
        raise RuntimeError(f"{name}: Expected primals to be a non-empty tuple of Tensors.")
    for what, values in (("primals", flat), ("tangents", moved)):
        for t in values:
            if not isinstance(t, Tensor):
                raise RuntimeError(f"{name}: Expected {what} to only contain Tensors, got {type(t)}")
    return moved, spec


@carrying
def jvp(func: Callable[..., Any], primals: Any, tangents: Any, *, strict: bool = False, has_aux: bool = False) -> tuple[Any, ...]:
    """Return (func(*primals), J · tangents), and with ``has_aux`` also aux: the derivative in one direction.

    Source: https://docs.pytorch.org/docs/stable/generated/torch.func.jvp.html

    >>> torch.func.jvp(lambda x: x * x, (torch.tensor([1., 2.]),), (torch.ones(2),))
    (tensor([1., 4.]), tensor([2., 4.]))
    """
    flat, _ = _jvp_inputs(primals, tangents)
    for p, t in zip(tree_flatten(primals)[0], flat, strict=True):
        for x, what in ((p, "primal"), (t, "tangent")):
            if x.dtype.category < 2:
                raise ValueError(f"Expected {what} to be floating point or complex, but got: {x.dtype} (jvp(f, primals, tangents))")
        if p.shape != t.shape:
            raise RuntimeError(
                "Trying to set a forward gradient that has a different size than that of the original Tensor, this is not supported. "
                f"Tensor is of size {list(p.shape)} while the given forward gradient is of size {list(t.shape)}."
            )
    tangents = [lying_as(p, t) for p, t in zip(tree_flatten(primals)[0], flat, strict=True)]
    return pushed(func, primals, tangents, strict, has_aux, flat)


def pushed(
    func: Callable[..., Any], primals: Any, tangents: list[Any], strict: bool = False, has_aux: bool = False, own: Sequence[Any] = ()
) -> Any:
    """Return what `jvp` does, for tangents that are in order; those that are the caller's ``own`` change where the primals do."""
    trace = Trace(func, primals, has_aux, "jvp(f, primals, tangents)")
    if strict and not all(o.requires_grad for o in trace.outputs):
        raise RuntimeError(
            "jvp(f, primals, tangents, strict=True): The output of f is independent of the inputs. This is not allowed with strict=True."
        )
    changed = [k for k in trace.changed() if own and tangents[k] is own[k] and not trace.base]
    for k in changed:
        check_inplace(own[k])
    # what is recorded keeps the tangents as they were
    tangents = [OPS["clone"].call(t) if k in changed else t for k, t in enumerate(tangents)]
    count = len(trace.outputs)
    trace.outputs += [trace.given[k] for k in changed]
    found = _moved(trace, tangents, func, primals, has_aux)
    for k, t in zip(changed, found[count:], strict=True):
        own[k].copy_(t)
    out = tree_unflatten(found[:count], trace.out_spec)
    value = trace.value()
    return (value, out, trace.released(trace.aux)) if has_aux else (value, out)


def _pusher(trace: Trace, func: Callable[..., Any], primals: Any, has_aux: bool) -> Callable[[Sequence[Tensor]], list[Tensor]]:
    """Return tangents -> J · tangents: by backward passes, or in forward mode, from ``func`` called again, where these lack what was changed
    in place, or computed under `no_grad`, which does not hold for tangents."""
    try:
        if not trace.cut or trace.changed() or not by_duals:
            return trace.pusher()
    except ModifiedError:
        if trace.changed() or not by_duals:
            raise

    def outputs(*primals: Any) -> list[Tensor]:
        result = func(*tree_unflatten(list(primals), trace.spec))
        return tree_flatten(result[0] if has_aux else result)[0]

    return functools.partial(by_duals[0], outputs, tree_flatten(list(primals))[0])


def _moved(trace: Trace, tangents: list[Tensor], func: Callable[..., Any], primals: Any, has_aux: bool) -> list[Tensor]:
    """Return J · tangents, of whose dtypes each may be wider than its primal's: so are the results then."""
    push, leaves = _pusher(trace, func, primals, has_aux), trace.leaves
    if all(t.dtype is p.dtype for t, p in zip(tangents, leaves, strict=True)):
        return push(tangents)
    tangents = [t.real if t.dtype.is_complex and not p.dtype.is_complex else t for t, p in zip(tangents, leaves, strict=True)]
    wide = functools.reduce(promote_types, [t.dtype for t in tangents])
    return [t.to(promote_types(t.dtype, wide)) for t in push([t.to(p.dtype) for t, p in zip(tangents, leaves, strict=True)])]


def linearize(func: Callable[..., Any], *primals: Any) -> tuple[Any, Callable[..., Any]]:
    """Return (func(*primals), the linear function of tangents that gives J · tangents); it calls func again only where that uses `no_grad`.

    Source: https://docs.pytorch.org/docs/stable/generated/torch.func.linearize.html

    >>> output, tangent = torch.func.linearize(lambda x: x * x, torch.tensor([1., 2.]))
    >>> tangent(torch.ones(2))
    tensor([2., 4.])
    """
    with recorded():
        primals = tree_map(lambda t: t.clone() if isinstance(t, Tensor) else t, tuple(primals))  # whoever changes one later does not change what is linear
    primals_flat, structure = tree_flatten(primals)
    if Carrier.level(primals_flat) is not None:
        raise RuntimeError("Nested forward mode AD is not supported at the moment (linearize(f, *primals) of a primal with a tangent: use jvp)")
    trace = Trace(func, primals, False, "linearize(f, *primals)")
    push = _pusher(trace, func, primals, False)

    @carrying
    def linear(*tangents: Any) -> Any:
        flat, spec = tree_flatten(tangents)
        if spec != structure:
            raise RuntimeError(f"Expected the tangents {spec} to have the same argspec as the primals {structure}")
        need_like(primals_flat, flat)
        found = push(flat)
        return tree_unflatten(found if state.grad else [detached(t) for t in found], trace.out_spec)

    return trace.value(), linear


# ------------------------------------------------------------------------------------------------- matrices


def _basis(t: Tensor) -> Tensor:
    n = t._layout.size
    return OPS["eye"].call(n, dtype=t.dtype).reshape(n, *t.shape)


def _only_real(values: Any, name: str, role: str) -> None:
    """Raise RuntimeError for a complex tensor among inputs or outputs."""
    for k, t in enumerate(tree_flatten(values)[0]):
        if isinstance(t, Tensor) and t.dtype.is_complex:
            raise RuntimeError(f"{name}: Expected all {role} to be real but received complex tensor at flattened input idx: {k}")


def jacrev(
    func: Callable[..., Any], argnums: Any = 0, *, has_aux: bool = False, chunk_size: int | None = None,
    _preallocate_and_copy: bool = False,
) -> Callable[..., Any]:  # fmt: skip
    """Return a function that gives the Jacobian of ``func`` by its arguments ``argnums``: output.shape + input.shape, row by row.

    All rows come from one batched backward pass, or ``chunk_size`` at a time.

    Example:
        >>> torch.func.jacrev(lambda x: x ** 2)(torch.tensor([1., 2.]))
        tensor([[2., 0.],
                [0., 4.]])

    Source: https://docs.pytorch.org/docs/stable/generated/torch.func.jacrev.html
    """
    if not (chunk_size is None or chunk_size > 0):
        raise ValueError("jacrev: `chunk_size` should be greater than 0.")

    @functools.wraps(func)
    @ordinary
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        numbers = _chosen(argnums, args)
        _only_real(args, "jacrev", "inputs")
        trace = Trace(*_of_chosen(func, numbers, args, kwargs), has_aux, "jacrev(f, *args)")
        _only_real(trace.like, "jacrev", "outputs")
        leaves = tree_flatten(_of_chosen(func, numbers, args, kwargs)[1])[0]
        zeros = [new_full(o.shape, 0, o.dtype) for o in trace.like]
        blocks = []
        for k, output in enumerate(trace.like):

            def rows(v: Tensor, k: int = k) -> Any:
                return tuple(tree_flatten(trace.gradients([v if i == k else z for i, z in enumerate(zeros)]))[0])

            if output._layout.size:
                found = vmap(rows, chunk_size=chunk_size)(_basis(output))
            else:  # no rows, with the history that one would have
                found = [g.unsqueeze(0)[:0] for g in rows(zeros[k])]
            rows_of = [g.reshape((*output.shape, *t.shape)) for g, t in zip(found, leaves, strict=True)]
            blocks.append(_single(tree_unflatten(rows_of, trace.spec), argnums))
        out = tree_unflatten(blocks, trace.out_spec)
        return (out, trace.released(trace.aux)) if has_aux else out

    return wrapper


def jacfwd(
    func: Callable[..., Any], argnums: Any = 0, has_aux: bool = False, *, chunk_size: int | None = None, randomness: str = "error"
) -> Callable[..., Any]:
    """Return a function that gives the Jacobian of ``func`` by its arguments ``argnums``, column by column: good for few inputs.

    Source: https://docs.pytorch.org/docs/stable/generated/torch.func.jacfwd.html

    >>> torch.func.jacfwd(lambda x: x * x)(torch.tensor([1., 2.]))
    tensor([[2., 0.],
            [0., 4.]])
    """
    if not (chunk_size is None or chunk_size > 0):
        raise ValueError("jacfwd: `chunk_size` should be greater than 0.")

    @functools.wraps(func)
    @carrying
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        _only_real(args, "jacfwd", "inputs")
        numbers = _chosen(argnums, args)
        partial, chosen = _of_chosen(func, numbers, args, kwargs)
        trace = Trace(partial, chosen, has_aux, "jacfwd(f, *args)")
        _only_real(trace.like, "jacfwd", "outputs")
        push = _pusher(trace, partial, chosen, has_aux)
        leaves = tree_flatten(chosen)[0]
        zeros = [new_full(t.shape, 0, t.dtype) for t in leaves]
        table: list[list[Any]] = [[] for _ in trace.like]
        for k, t in enumerate(leaves):

            def columns(v: Tensor, k: int = k) -> Any:
                return tuple(push([v if i == k else z for i, z in enumerate(zeros)]))

            found = vmap(columns, out_dims=-1, chunk_size=chunk_size, randomness=randomness)(_basis(t))
            for row, c, o in zip(table, found, trace.like, strict=True):
                row.append(c.reshape((*o.shape, *t.shape)))
        blocks = [_single(tree_unflatten(row, trace.spec), argnums) for row in table]
        out = tree_unflatten(blocks, trace.out_spec)
        return (out, trace.released(trace.aux)) if has_aux else out

    return wrapper


def hessian(func: Callable[..., Any], argnums: Any = 0) -> Callable[..., Any]:
    """Return a function that gives the matrix of second derivatives: ``jacfwd(jacrev(func))``.

    Source: https://docs.pytorch.org/docs/stable/generated/torch.func.hessian.html

    >>> torch.func.hessian(lambda x: (x ** 3).sum())(torch.tensor([1., 2.]))
    tensor([[ 6.,  0.],
            [ 0., 12.]])
    """
    return jacfwd(jacrev(func, argnums), argnums)
