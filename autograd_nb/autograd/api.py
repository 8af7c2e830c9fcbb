"""backward and grad: arguments checked in full before the engine runs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, overload

from .. import launch
from ..config import settings
from ..errors import AutogradError, warn_user
from ..graph import engine
from ..graph.modes import state
from ..graph.node import AccumulateGrad, Nowhere, Output
from ..graph.transformed import refuse_transformed, transformed
from ..ops.core.foreign import asked
from ..ops.core.registry import OPS
from ..ops.creation.create import new_full, seed
from ..tensor import Tensor, above, edge

_TensorOrTensors = Any


class _Edge(NamedTuple):
    node: Any
    output_nr: int
    ownership_token: Any = None


class GradientEdge(_Edge):
    """A place in the graph to start from or to differentiate by: a node and its output's index.

    >>> x = torch.ones(1, requires_grad=True)
    >>> torch.autograd.graph.get_gradient_edge(x * 2).output_nr
    0
    """

    _known: Any = None  #: the layout of the tensor that it was asked of

    @property
    def _edge(self) -> Any:
        if isinstance(self.node, AccumulateGrad):
            return self.node.variable
        return Output(self.node, self.output_nr) if self.node.several else self.node

    @property
    def _layout(self) -> Any:
        return self.node.variable._layout if isinstance(self.node, AccumulateGrad) else self._known


def set_graph_reuse(mode: str) -> str:
    """Say whether nodes that saved nothing may be run by a second backward pass: "strict" (no) or "torch" (yes); the mode before.

    By default every node is run once, unless the graph is retained. Where PyTorch's programs run (`as_torch`, ``python -m autograd_nb run``)
    the mode is "torch", as some of them convert or reshape a leaf once and differentiate through that in every step. A node that saved
    values is run once in both modes. Errors: ValueError for another mode.

    >>> x = torch.ones(2, requires_grad=True)
    >>> y = x.double()
    >>> before = torch.autograd.set_graph_reuse("torch")
    >>> for _ in range(2): (y * 2).sum().backward()
    ...
    >>> torch.autograd.set_graph_reuse(before), x.grad
    ('torch', tensor([4., 4.]))
    """
    if mode not in ("strict", "torch"):
        raise ValueError(f"set_graph_reuse(): mode must be 'strict' or 'torch', not {mode!r}")
    before, settings.reuse = settings.reuse, mode == "torch"
    return "torch" if before else "strict"


def get_gradient_edge(tensor: Tensor) -> GradientEdge:
    """Return the `GradientEdge` of a tensor that requires grad."""
    target = edge(tensor)
    if target is None:
        raise RuntimeError("It is not possible to get the gradient edge for a Tensor that does not require gradients")
    node = target.node if target.__class__ is Output else tensor._accumulator if target.is_leaf_edge else target
    found = GradientEdge(node, tensor.output_nr)
    found._known = tensor._layout
    return found


def _tensors(value: Any, name: str, function: str) -> tuple[Any, ...]:
    if isinstance(value, (Tensor, GradientEdge)):
        return (value,)
    if value.__class__ is not tuple and not isinstance(value, (Sequence, dict)) and not hasattr(value, "__iter__"):
        raise TypeError(
            f"{function}(): argument '{name}' must be a Tensor or a sequence of Tensors, not {type(value).__name__}"
        )
    out = tuple(value)
    for i, t in enumerate(out):
        if t is not None and not isinstance(t, (Tensor, GradientEdge)):
            raise TypeError(f"{function}(): element {i} of '{name}' must be a Tensor, not {type(t).__name__}")
    return out


def _roots(outputs: tuple[Any, ...], gradients: Any, create_graph: bool, function: str) -> tuple[list[Any], list[Any]]:
    """Return (edges, gradients) to start from, with 1 for scalar outputs."""
    given = (None,) * len(outputs) if gradients is None else _tensors(gradients, "grad_tensors", function)
    if len(given) != len(outputs):
        raise RuntimeError(f"got {len(outputs)} tensors and {len(given)} gradients")
    if asked.roots is not None:
        given = asked.roots(outputs, given)
    edges, grads = [], []
    for i, (out, g) in enumerate(zip(outputs, given, strict=True)):
        if getattr(out, "batched", False):
            raise RuntimeError(
                f"{function}(): output {i} is a tensor inside of vmap, which stands for a whole batch. Use func.grad or func.vjp there."
            )
        target = out._edge
        if out.__class__ is not GradientEdge and (target is None or target.__class__ is Nowhere or out._view is not None):
            target = edge(out) if out.requires_grad else None  # (what has a tangent is recorded, and may require none)
        if target is None:
            raise AutogradError(
                f"element {i} of tensors does not require grad and does not have a grad_fn. Make what it is computed from with "
                "requires_grad=True, and compute it outside no_grad()."
            )
        layout = out._layout
        if layout is None:  # an edge that the user has made of a node
            if g is None:
                raise AutogradError(f"grad can be implicitly created only for scalar outputs, and output {i} is a GradientEdge: give its gradient")
            layout = g._layout
        if g is None:
            if layout.size != 1:
                raise AutogradError(
                    f"grad can be implicitly created only for scalar outputs, and output {i} has shape {list(layout.shape)}. Reduce it "
                    "(.sum(), .mean()), or pass gradient= of that shape."
                )
            if not layout.dtype.is_floating_point:
                raise AutogradError(f"grad can be implicitly created only for real scalar outputs but got {layout.dtype}")
            g = seed(layout)
            if create_graph:
                g._version_[1] = 0
        else:
            if g.shape != layout.shape:
                raise RuntimeError(
                    f"Mismatch in shape: grad_output[{i}] has a shape of {g.shape} and output[{i}] has a shape of {layout.shape}."
                )
            if g.dtype.is_complex is not layout.dtype.is_complex:
                raise RuntimeError(
                    "For complex Tensors, both grad_output and output are required to have the same dtype. Mismatch in dtype: "
                    f"grad_output[{i}] has a dtype of {g.dtype} and output[{i}] has a dtype of {layout.dtype}."
                )
            if g.dtype is not layout.dtype:
                g = g.to(layout.dtype)
            if hasattr(g, "mark"):  # it shows conjugates, which rules do not know of
                g = above.plain(g)
        edges.append(target)
        grads.append(g)
    return edges, grads


def backward(
    tensors: _TensorOrTensors, grad_tensors: _TensorOrTensors | None = None, retain_graph: bool | None = None,
    create_graph: bool = False, grad_variables: Any = None, inputs: _TensorOrTensors | None = None, _depth: int = 1,
) -> None:  # fmt: skip
    """Accumulate into the leaves' ``.grad`` the sum of d(tensors)/d(leaf) · grad_tensors, and consume the graph.

    tensors: the roots. grad_tensors: for each root a tensor of its shape, or None for one-element roots (1).
    retain_graph: keep the graph for another pass; default ``create_graph``. inputs: accumulate only into these.

    Errors: RuntimeError as in `Tensor.backward`; a failing call changes nothing.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.autograd.backward.html

    >>> x = torch.tensor(3.0, requires_grad=True)
    >>> torch.autograd.backward([x * x])
    >>> x.grad
    tensor(6.)
    """
    refuse_transformed("backward()")
    if grad_variables is not None:
        warn_user("`grad_variables` is deprecated. Use `grad_tensors` instead.", FutureWarning)
        grad_tensors = grad_variables if grad_tensors is None else grad_tensors
    _backward(_tensors(tensors, "tensors", "backward"), grad_tensors, retain_graph, create_graph, inputs, _depth + 2)


def _backward(
    roots: tuple[Any, ...], grad_tensors: Any, retain_graph: bool | None, create_graph: bool, inputs: Any, depth: int
) -> None:
    """Run `backward` of tensors; the user's line is ``depth`` frames above."""
    targets: tuple[Any, ...] | None = None
    if inputs is not None:
        targets = _tensors(list(inputs.values()) if isinstance(inputs, dict) else inputs, "inputs", "backward")
        if not targets:
            raise RuntimeError("`inputs` argument to `backward()` cannot be empty.")
    edges, grads = _roots(roots, grad_tensors, create_graph, "backward")
    retain = create_graph if retain_graph is None else bool(retain_graph)
    if create_graph:
        warn_user(
            "Using backward() with create_graph=True will create a reference cycle between the parameter and its gradient which can "
            "cause a memory leak. We recommend using autograd.grad when creating the graph to avoid this. If you have to use this "
            "function, make sure to reset the .grad fields of your parameters to None after use to break the cycle and avoid the "
            "leak.",
        )
    if targets is None:
        engine.run(edges, grads, retain_graph=retain, create_graph=create_graph, depth=depth)
        return
    wanted = _target_edges(targets, "backward")
    for t, e in zip(targets, wanted, strict=True):
        if not e.is_leaf_edge and isinstance(t, Tensor):
            t.retain_grad()  # from now on
    engine.run(edges, grads, targets=wanted, accumulate=True, retain_graph=retain, create_graph=create_graph, depth=depth)


def _target_edges(targets: tuple[Any, ...], function: str) -> list[Any]:
    launch.derived()
    wanted = []
    for i, t in enumerate(targets):
        e = t._edge if isinstance(t, GradientEdge) else edge(t)
        if e is None and t.requires_grad:
            e = Nowhere()  # no gradient comes to it
        if e is None:
            raise RuntimeError(
                f"One of the differentiated Tensors does not require grad (input {i} of {function}()). Make it with "
                "requires_grad=True before computing the output."
            )
        wanted.append(e)
    return wanted


@overload
def grad(
    outputs: _TensorOrTensors, inputs: dict[Any, Tensor],
    grad_outputs: _TensorOrTensors | None = ..., retain_graph: bool | None = ..., create_graph: bool = ..., only_inputs: bool = ...,
    allow_unused: bool | None = ..., is_grads_batched: bool = ..., materialize_grads: bool = ...,
) -> dict[Any, Tensor]: ...  # fmt: skip
@overload
def grad(
    outputs: _TensorOrTensors, inputs: Tensor | GradientEdge | Iterable[Tensor | GradientEdge],
    grad_outputs: _TensorOrTensors | None = ..., retain_graph: bool | None = ..., create_graph: bool = ..., only_inputs: bool = ...,
    allow_unused: bool | None = ..., is_grads_batched: bool = ..., materialize_grads: bool = ...,
) -> tuple[Tensor, ...]: ...  # fmt: skip
def grad(
    outputs: _TensorOrTensors, inputs: _TensorOrTensors, grad_outputs: _TensorOrTensors | None = None,
    retain_graph: bool | None = None, create_graph: bool = False, only_inputs: bool = True, allow_unused: bool | None = None,
    is_grads_batched: bool = False, materialize_grads: bool = False,
) -> Any:  # fmt: skip
    """Return the gradients Σ d(outputs)/d(input) · grad_outputs of each input; no ``.grad`` is touched.

    Only the nodes between outputs and inputs run and are consumed. allow_unused: None for inputs that the outputs do not
    depend on, instead of an error. materialize_grads: zeros for them. is_grads_batched: grad_outputs have one more dim in front,
    and so have the results: a gradient for each of their rows.

    Example:
        >>> x = torch.tensor(3.0, requires_grad=True)
        >>> y = x ** 3
        >>> (g,) = torch.autograd.grad(y, x, create_graph=True)
        >>> torch.autograd.grad(g, x)
        (tensor(18.),)

    Errors: RuntimeError as in `Tensor.backward`, and for unused inputs; ValueError for options that contradict.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.autograd.grad.html
    """
    if materialize_grads and allow_unused is False:
        raise ValueError(
            "Expected allow_unused to be True or not passed when materialize_grads=True, but got: allow_unused=False."
        )
    if is_grads_batched:
        options = {"allow_unused": allow_unused, "materialize_grads": materialize_grads}
        return _grad_of_rows(outputs, inputs, grad_outputs, retain_graph, create_graph, options)
    allow = materialize_grads if allow_unused is None else allow_unused
    names = None
    if isinstance(inputs, dict):
        names, inputs = list(inputs), tuple(inputs.values())
    roots = _tensors(outputs, "outputs", "grad")
    targets = _tensors(inputs, "inputs", "grad")
    if not targets:
        raise RuntimeError("`inputs` argument to `grad()` cannot be empty.")
    grad_outputs, attach = (grad_outputs, None) if asked.moving is None else asked.moving(roots, targets, grad_outputs)
    edges, grads = _roots(roots, grad_outputs, create_graph, "grad")
    wanted = _target_edges(targets, "grad")
    retain = create_graph if retain_graph is None else bool(retain_graph)
    found = engine.run(
        edges, grads, targets=wanted, accumulate=False, retain_graph=retain, create_graph=create_graph, depth=2,
        check=(lambda: None) if allow else (lambda: _check_used(edges, wanted)),
    )  # fmt: skip
    for i, g in enumerate(found):
        if g is None:
            if not allow:
                raise _unused(i)
            if materialize_grads:
                if isinstance(targets[i], GradientEdge):
                    raise RuntimeError("materialize_grads cannot be used when the given input is a GradientEdge")
                found[i] = new_full(targets[i]._layout.shape, 0, targets[i]._layout.dtype).requires_grad_(create_graph)
    if attach is not None:
        found = attach(found)
    if asked.gradients is not None:
        asked.gradients(targets, found)
    return tuple(found) if names is None else dict(zip(names, found, strict=True))


def _grad_of_rows(
    outputs: Any, inputs: Any, grad_outputs: Any, retain_graph: bool | None, create_graph: bool, options: dict[str, Any]
) -> Any:
    """Return `grad` for each of the rows of ``grad_outputs``, of which no tensor retains any; None for inputs that they do not reach."""
    given = () if grad_outputs is None else _tensors(grad_outputs, "grad_outputs", "grad")
    roots = _tensors(outputs, "outputs", "grad")
    for i, (out, g) in enumerate(zip(roots, given, strict=False)):
        if isinstance(out, Tensor) and g is not None and g.shape[1:] != out.shape:
            raise RuntimeError(
                "If `is_grads_batched=True`, we interpret the first dimension of each grad_output as the batch dimension. The sizes of the remaining "
                f"dimensions are expected to match the shape of corresponding output, but a mismatch was detected: grad_output[{i}] has a shape of "
                f"{g.shape} and output[{i}] has a shape of {out.shape}."
            )
    before, state.batched = state.batched, True
    try:
        return _rows(outputs, inputs, (*roots, *given), given, True if retain_graph is None else retain_graph, create_graph, options)
    finally:
        state.batched = before


def _rows(outputs: Any, inputs: Any, tensors: Any, given: Any, retain: bool, create_graph: bool, options: dict[str, Any]) -> Any:
    """Return `grad` for each of the rows of what is ``given``, by a map over them."""
    from .batching.vmap import vmap

    if asked.moving is not None and asked.moving_among(tensors) is not None:  # tangents of gradients are found one by one
        each_row = zip(*[g.unbind(0) for g in given], strict=True)
        found = [grad(outputs, inputs, row, retain, create_graph, **options) for row in each_row]
        return tuple([None if gs[0] is None else OPS["stack"].call(gs) for gs in zip(*found, strict=True)])
    reached: list[bool] = []

    def rows(*vectors: Tensor) -> Any:
        with transformed(-1):
            found = grad(outputs, inputs, vectors, retain, create_graph, **options)
        reached[:] = [g is not None for g in found]
        return tuple([g for g in found if g is not None])

    each = iter(vmap(rows)(*given))
    return tuple([next(each) if there else None for there in reached])


def _unused(i: int) -> AutogradError:
    return AutogradError(
        f"The differentiated Tensor at index {i} appears to not have been used in the graph. Set allow_unused=True if this is the "
        "desired behavior."
    )


def _check_used(roots: list[Any], wanted: list[Any]) -> None:
    """Refuse unused inputs before anything runs."""
    missing = {_place(e) for e in wanted}
    seen: set[Any] = set()
    stack = list(roots)
    while stack:
        e = stack.pop()
        if (place := _place(e)) in missing:
            missing.discard(place)
            if not missing:
                return
        if e is None or e.is_leaf_edge:
            continue
        node = e.node if e.__class__ is Output else e
        if node not in seen:
            seen.add(node)
            stack.extend(node.edges)
    raise _unused(next(i for i, e in enumerate(wanted) if _place(e) in missing))


def _place(e: Any) -> Any:
    """Return an edge as a key: each tensor, and each `GradientEdge` of the user's, has an `Output` of its own."""
    return (e.node, e.index) if e.__class__ is Output else e


def _method(
    self: Tensor, gradient: Tensor | None = None, retain_graph: bool | None = None, create_graph: bool = False,
    inputs: Tensor | Sequence[Tensor] | None = None,
) -> None:  # fmt: skip
    """Accumulate d(self)/d(leaf) into the ``.grad`` of the leaves, and consume the graph.

    gradient: what to start from, of this tensor's shape; may be left out for a one-element tensor (1).
    retain_graph: keep the graph for another pass (default: ``create_graph``).
    create_graph: record the pass itself, for higher derivatives.
    inputs: accumulate into these tensors only.

    Example:
        >>> x = torch.tensor([1.0, 2.0], requires_grad=True)
        >>> (x * x).sum().backward()
        >>> x.grad
        tensor([2., 4.])

    Errors: RuntimeError where the graph was consumed before, a saved array was changed in place, the tensor is not
    scalar and no gradient is given, or nothing requires grad; then nothing has been changed.

    Source: https://docs.pytorch.org/docs/stable/generated/torch.Tensor.backward.html
    """
    if state.transformed or state.batched:  # (a call less in each pass)
        refuse_transformed("backward()")
    _backward((self,), None if gradient is None else (gradient,), retain_graph, create_graph, inputs, 3)


_method.__name__ = "backward"
Tensor.backward = _method  # type: ignore[assignment]
