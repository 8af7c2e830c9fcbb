"""`Function`: a user's own op, with its own derivative.

Source: https://docs.pytorch.org/docs/stable/generated/torch.autograd.Function.html
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..errors import AutogradError, warn_user
from ..graph.detached import is_noted
from ..graph.modes import is_grad_enabled, no_grad, state
from ..graph.nested import users
from ..graph.node import Node, Output, consumed_error, finish, modified_error, set_edges
from ..graph.ownership import handed
from ..ops.core.foreign import asked
from ..ops.core.history import attach, check_inplace, rewrite_history, share_view
from ..ops.core.marked import MARKED, look_again, returned
from ..ops.core.pointwise_backward import raw_saved
from ..ops.core.recording import refuse_inference, tensor_type
from ..ops.creation.create import new_full
from ..overriding import overridable
from ..tensor import Tensor, edge, make
from .subclasses import machinery


class FunctionNode(Node):
    """The node of a `Function`, and the ``ctx`` that its forward and backward see."""

    code: Any
    lasti: int
    hooks: Any
    saved: Any
    versions: Any
    stamp: int

    # what users set on ctx lives in its __dict__

    def __init__(self) -> None:
        self.code, self.lasti = None, 0
        self.consumed = self.hooks = self.saved = None
        self.versions, self.stamp = (), 0
        self.several = True
        self._to_save: tuple[Any, ...] = ()
        self._for_forward: tuple[Any, ...] = ()
        self._materialize = True
        self._dirty: tuple[Any, ...] = ()
        self._constant: tuple[Any, ...] = ()
        self._layouts: list[Any] = []
        self._leaves_input: list[Any] = []
        self.needs_input_grad: tuple[Any, ...] = ()

    several: bool = True
    takes_detached = True
    of_none = True  # its rule may make a gradient of nothing, and gets zeros by default
    function: Any = None

    @property
    def outputs(self) -> int:  # type: ignore[override]
        return len(self._layouts)

    # ---- what forward calls
    def save_for_backward(self, *tensors: Tensor | None) -> None:
        """Keep tensors (or None) for backward, as ``ctx.saved_tensors``; inputs and outputs only by this way."""
        for i, t in enumerate(tensors):
            if t is not None and not isinstance(t, Tensor):
                raise TypeError(f"save_for_backward can only save variables, but argument {i} is of type {type(t).__name__}")
        self._to_save = tensors

    def save_for_forward(self, *tensors: Tensor | None) -> None:
        """Keep tensors for ``jvp``, which reads them as ``ctx.saved_tensors``."""
        self._for_forward = tensors

    def mark_dirty(self, *tensors: Tensor) -> None:
        """Say which inputs forward changed in place; it must return them."""
        self._dirty = tensors

    def mark_non_differentiable(self, *tensors: Tensor) -> None:
        """Say which outputs have no gradient."""
        self._constant = tensors

    def set_materialize_grads(self, value: bool) -> None:
        """Set whether backward gets zeros (True, the default) or None for outputs that got no gradient."""
        self._materialize = bool(value)

    # ---- what backward reads
    @property
    def saved_tensors(self) -> tuple[Tensor, ...]:
        """Return what `save_for_backward` kept, with its place in the graph; RuntimeError once the graph is consumed."""
        if self.saved is None:
            if self.consumed is not None:
                raise consumed_error(self)
            return self._to_save
        total = sum(v[0] for v in self.counters())
        if total != self.stamp:
            raise modified_error(self)
        out = []
        for item in self.saved:
            if item is None:
                out.append(None)
                continue
            data, layout, version, target, leaf = item
            if leaf is not None:
                out.append(leaf)
                continue
            t = make(data, layout, version)
            if target.__class__ is int:  # an output of this node
                attach(t, self._output_edge(target))
            elif target is not None and not is_noted(target):
                attach(t, target)
            out.append(t)
        return tuple(out)

    @property
    def _raw_saved_tensors(self) -> tuple[Any, ...]:
        if self.saved is None and self.consumed is not None:
            raise consumed_error(self)
        return tuple([raw_saved[0](self, k) for k in range(len(self.saved or ()))])

    @property
    def saved_variables(self) -> tuple[Any, ...]:
        """Return `saved_tensors`, with a warning: the old name."""
        warn_user("'saved_variables' is deprecated; use 'saved_tensors'", DeprecationWarning)
        return self.saved_tensors

    def saved_arrays(self) -> list[tuple[Any, ...]]:
        items = [s for s in self.saved or () if s is not None]
        return [(layout.shape, tensor_type(layout.dtype), self if e.__class__ is int else e) for _, layout, _, e, _ in items]

    def _output_edge(self, index: int) -> Output:
        return Output(self, index)

    # ---- what the engine calls
    @users
    def run(self, g: list[Any]) -> tuple[Any, ...]:
        function = self.function
        rule = _rule(function)
        grads = []
        for (layout, _), value in zip(self._layouts, g, strict=True):
            if value is not None:
                value = handed(value, state.grad)
            elif self._materialize and layout is not None:
                value = new_full(layout.shape, 0, layout.dtype)
            grads.append(value)
        result = rule(self, *grads)
        results = result if isinstance(result, tuple) else (result,)
        n = len(self.needs_input_grad)
        if len(results) > n and all(r is None for r in results[n:]):
            results = results[:n]
        if len(results) != n:
            raise RuntimeError(
                f"function {self.name()} returned an incorrect number of gradients (expected {n}, got {len(results)})"
            )
        out: list[Tensor | None] = []
        for i, (value, shape) in enumerate(zip(results, self._input_layouts, strict=True)):
            if shape is None:
                if value is not None:
                    raise RuntimeError(
                        f"function {self.name()} returned a gradient different from None at position {i + 1}, but the corresponding "
                        "forward input was not a Variable"
                    )
                continue
            if value is None:
                out.append(None)
                continue
            if not isinstance(value, Tensor):
                raise RuntimeError(f"expected Variable or None (got {type(value).__name__}) as gradient {i} of {self.name()}")
            if not self.needs_input_grad[i]:
                out.append(None)
                continue
            if value.shape != shape.shape:
                try:
                    value = value.sum_to_size(shape.shape)
                except RuntimeError:
                    raise RuntimeError(
                        f"Function {self.name()} returned an invalid gradient at index {i} - got {list(value.shape)} but expected shape "
                        f"compatible with {list(shape.shape)}"
                    ) from None
            out.append(value if value.dtype is shape.dtype else value.to(shape.dtype))
        return tuple(out)

    run_graph = run


FunctionCtx = FunctionNode  # PyTorch's name, for annotations


def _rule(function: Any) -> Callable[..., Any]:
    backward, vjp = function.backward, function.vjp
    if backward is not Function.backward and vjp is not Function.vjp:
        raise RuntimeError(
            "Implementing both 'backward' and 'vjp' for a custom Function is not allowed. You should only implement one of them."
        )
    rule = vjp if vjp is not Function.vjp else backward
    if rule is Function.backward:
        raise NotImplementedError(
            "You must implement either the backward or vjp method for your custom autograd.Function to use it with backward mode AD."
        )
    return rule


class Function:
    """Base of user-defined ops: static ``forward(ctx, *args)`` and ``backward(ctx, *grad_outputs)``; call ``apply``.

    With a static ``setup_context(ctx, inputs, output)``, forward takes no ctx. backward returns one gradient per input (None for
    those without). Written with this library's ops it can be differentiated again.

    Example:
        >>> class Cube(torch.autograd.Function):
        ...     @staticmethod
        ...     def forward(ctx, x):
        ...         ctx.save_for_backward(x)
        ...         return x ** 3
        ...     @staticmethod
        ...     def backward(ctx, g):
        ...         (x,) = ctx.saved_tensors
        ...         return g * 3 * x ** 2
        >>> x = torch.tensor(2.0, requires_grad=True)
        >>> Cube.apply(x).backward()
        >>> x.grad
        tensor(12.)

    Errors: RuntimeError for a wrong number or shape of gradients and for instances (the old style); NotImplementedError
    without a backward.
    """

    generate_vmap_rule = False  #: `vmap` computes what has no rule anyway

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        warn_user(
            f"{type(self).__name__} should not be instantiated. Methods on autograd functions are all static, so you should invoke them on the "
            "class itself. Instantiating an autograd function will raise an error in a future version of PyTorch.",
            DeprecationWarning,
        )

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Raise RuntimeError: functions are called by the class's `apply`."""
        raise RuntimeError(
            "Legacy autograd function with non-static forward method is deprecated. Please use new-style autograd function with "
            f"static forward method: call {type(self).__name__}.apply(...)"
        )

    if TYPE_CHECKING:  # (a subclass names its own parameters)
        forward: Callable[..., Any]
        setup_context: Callable[..., Any]
        backward: Callable[..., Any]
        vjp: Callable[..., Any]
        jvp: Callable[..., Any]
    else:

        @staticmethod
        def forward(*args: Any, **kwargs: Any) -> Any:
            """Compute the output; override."""
            raise NotImplementedError("You must implement the forward function for custom autograd.Function.")

        @staticmethod
        def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> Any:
            """Fill ctx after forward; override to write forward without ctx."""
            raise NotImplementedError("setup_context is not implemented.")

        @staticmethod
        def backward(ctx: Any, *grad_outputs: Any) -> Any:
            """Return the gradients of the inputs; to be overridden."""
            raise NotImplementedError(
                "You must implement either the backward or vjp method for your custom autograd.Function to use it with backward mode AD."
            )

        @staticmethod
        def vjp(ctx: Any, *grad_outputs: Any) -> Any:
            """Do what `backward` does, of which it is another name."""
            raise NotImplementedError(
                "You must implement either the backward or vjp method for your custom autograd.Function to use it with backward mode AD."
            )

        @staticmethod
        def jvp(ctx: Any, *grad_inputs: Any) -> Any:
            """Return the tangents of the outputs in forward mode; to be overridden for its use."""
            raise NotImplementedError("You must implement the jvp function for custom autograd.Function to use it with forward mode AD.")

    _node_class: type[FunctionNode]
    _backward_cls: type[FunctionNode]  #: the same, by PyTorch's name

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls._node_class = cls._backward_cls = type(f"{cls.__name__}Backward", (FunctionNode,), {"function": cls})

    @classmethod
    def apply(cls, *args: Any, **kwargs: Any) -> Any:
        """Run forward and record it."""
        # programs keep ``apply`` by itself; what transforms exchange is looked up at each call
        return cls._applied(*args, **kwargs) if asked.whole is None else asked.whole(cls._applied, *args, **kwargs)

    @classmethod
    @overridable
    def _applied(cls, *args: Any, **kwargs: Any) -> Any:
        if not isinstance(inspect.getattr_static(cls, "forward"), (staticmethod, classmethod)):
            raise RuntimeError(
                "Legacy autograd function with non-static forward method is deprecated. Please use new-style autograd function with "
                f"static forward method. (make {cls.__name__}.forward a @staticmethod)"
            )
        separate = cls.setup_context is not Function.setup_context
        if kwargs or separate:  # (setup_context sees what forward was called with, defaults too)
            of_context = () if separate else (None,)
            bound = inspect.signature(cls.forward).bind(*of_context, *args, **kwargs)
            bound.apply_defaults()
            args = bound.args[len(of_context) :]
        node = cls._node_class()
        edges = [edge(a) if isinstance(a, Tensor) else None for a in args]
        previous = is_grad_enabled()
        wanted = tuple([isinstance(a, Tensor) and a._rg for a in args])  # also of loose views, whose gradients are lost
        recording = previous and any(wanted)
        node.needs_input_grad = wanted
        switched = state.switched
        with no_grad():
            if separate:
                output = cls.forward(*args)
                cls.setup_context(node, args, output)
            else:
                output = cls.forward(node, *args)
        # the function has a derivative, whatever its forward does; one with a jvp of its own is run by that in forward mode
        state.switched = switched + (cls.jvp is not Function.jvp)
        single = not isinstance(output, tuple)
        outs = [output] if single else list(output)
        for t in node._dirty:
            if not any(t is o for o in outs):
                raise RuntimeError("Some elements marked as dirty during the forward method were not returned as output.")
            if not any(t is a for a in args):
                warn_user("ctx.mark_dirty() received a tensor that was not an input: only what forward was given and changed is dirty")
        node._dirty = tuple(t for t in node._dirty if any(t is a for a in args))
        node._input_layouts = [a._layout if isinstance(a, Tensor) else None for a in args]  # type: ignore[attr-defined]
        if separate:
            _refuse_kept_inputs(node, args, outs)
        for t in node._dirty if previous else ():
            if t._view is None and t._rg and t._edge is None:
                raise AutogradError("a leaf Variable that requires grad has been used in an in-place operation.")
            check_inplace(t)
        _refuse_changed_views(node, outs, recording)
        if not recording:
            results = [_unrecorded(node, o, args) for o in outs]
            return results[0] if single else tuple(results)
        finish(node)
        set_edges(node, tuple(e for a, e in zip(args, edges, strict=True) if isinstance(a, Tensor)))
        several = sum(isinstance(o, Tensor) and _has_gradient(node, o) for o in outs) > 1
        kind = f"multi:{cls.__name__}Backward" if several else "function"
        results = [_recorded(node, k, o, args, kind) for k, o in enumerate(outs)]
        _save(node, args, outs, results)
        return results[0] if single else tuple(results)


def _mark_view(out: Tensor, kind: str) -> Tensor:
    """Let what a function returned be known as such, where it is a view: changes in place would pass its backward function by."""
    shown = _shown(out)
    if shown._view is not None:
        shown._view_kind = kind
    return out


def _shown(t: Tensor) -> Tensor:
    """Return the view of memory below one that shows conjugates or negatives of it; any other tensor is its own."""
    while t.__class__ in MARKED:
        t = t.of  # type: ignore[attr-defined]
    return t


def _refuse_kept_inputs(node: FunctionNode, args: tuple[Any, ...], outs: list[Any]) -> None:
    for t in node._to_save:
        if any(t is o for o in outs) and any(t is a for a in args) and not any(t is d for d in node._dirty):
            raise RuntimeError(
                "A input that has been returned as-is as output is being saved for backward. This is not supported if you override "
                "setup_context. You should return and save a view of the input instead, e.g. with x.view_as(x) or setup ctx inside the "
                "forward function itself."
            )


def _refuse_changed_views(node: FunctionNode, outs: list[Any], recording: bool) -> None:
    if recording and len(outs) > 1 and any(t._view is not None and _has_gradient(node, t) for t in node._dirty):
        raise AutogradError(
            "If your Function modifies inplace an input that is a view of another Tensor, your Function cannot return more than one Tensor. "
            "Give it a clone() of the view, or let it return only one Tensor (another Function may do the rest)."
        )


def _has_gradient(node: FunctionNode, out: Tensor) -> bool:
    return out.dtype.category >= 2 and not any(out is t for t in node._constant)


@users
def _view_of_itself(t: Tensor) -> Tensor:
    """Return what stands for an input that forward returned as it is; a subclass's `__torch_function__` is asked for it."""
    if t.__class__ in MARKED:
        return look_again(t)
    if not hasattr(type(t), "of_program"):
        return share_view(t, make(t._data, t._layout, t._version_))
    with no_grad():
        return machinery().called(Tensor.view_as, (t, t), {})  # type: ignore[no-any-return]


def _unrecorded(node: FunctionNode, out: Any, args: tuple[Any, ...]) -> Any:
    """Return an output without a gradient as its caller gets it: inputs that were returned stay as they are."""
    if not isinstance(out, Tensor):
        return out
    changed, given = any(out is t for t in node._dirty), any(out is a for a in args)
    if changed:
        out._version_[0] += 1
    if out._rg:
        if given:
            return out.detach()
        if _shown(out)._view is None:
            out._edge, out._rg = None, False
    elif given and not changed:
        out = _view_of_itself(out)
    return out if changed else _mark_view(out, "function")


def _recorded(node: FunctionNode, k: int, out: Any, args: tuple[Any, ...], kind: str) -> Any:
    """Return output ``k`` of a function as its caller gets it, with its place in the graph."""
    if not isinstance(out, Tensor):
        node._layouts.append((None, None))
        return out
    node._layouts.append((out._layout, _shown(out)._data))
    if not _has_gradient(node, out):
        return _unrecorded(node, out, args)
    if any(out is t for t in node._dirty):
        out._version_[0] += 1
        rewrite_history(out, Output(node, k))
        return out
    if out.__class__ in MARKED:
        return returned(out, Output(node, k), kind)
    earlier = out._edge
    if earlier.__class__ is Output and earlier.node is node:  # returned twice: one tensor, the gradient of the last
        out._edge = Output(node, k)
        return out
    o = out
    if any(out is a for a in args):  # an input returned as it is: the output is a view of it
        o = _view_of_itself(out)
    elif out._rg or out._edge is not None:
        o = out.detach()
    o._edge, o._rg = Output(node, k), True
    if o._view is not None:
        o._seen = o._version_[0]  # what was changed in place in the forward belongs to this history
    return _mark_view(o, kind)


@overridable
def _save(node: FunctionNode, args: tuple[Any, ...], outs: list[Any], results: list[Any]) -> None:
    """Keep what `save_for_backward` named: arrays and edges, not tensors, so that no cycle arises."""
    saved: list[Any] = []
    versions, stamps = [], []
    for t in node._to_save:
        if t is None:
            saved.append(None)
            continue
        if t._version_[0] < 0:
            refuse_inference(node.edges)
        k = next((k for k, o in enumerate(outs) if o is t), None)
        mine = t if k is None else results[k]
        if k is not None and not any(t is a for a in args):
            saved.append((mine._data, mine._layout, mine._version_, k, None))
        else:
            e = edge(t)
            if t.is_sparse or t.is_sparse_csr:  # it has no memory of its own to be kept
                saved.append((None, t._layout, t._version_, None, t))
                versions.append(mine._version_)
                stamps.append(mine._version_[0])
                continue
            leaf = t if e is t else None
            saved.append((t._data, t._layout, t._version_, e if leaf is None else None, leaf))
        versions.append(mine._version_)
        stamps.append(mine._version_[0])
    node._to_save = node._for_forward = ()  # (in forward mode a context of its own is read)
    node.saved, node.versions, node.stamp = saved, tuple(versions), sum(stamps)


def once_differentiable(function: Callable[..., Any]) -> Callable[..., Any]:
    """Decorate a backward that cannot be differentiated again: doing so is a RuntimeError."""

    @functools.wraps(function)
    def wrapper(ctx: Any, *args: Any) -> Any:
        with no_grad():
            outputs = function(ctx, *args)
        if not state.grad or not any(isinstance(a, Tensor) and a._rg for a in args):
            return outputs
        results = outputs if isinstance(outputs, tuple) else (outputs,)
        marked = tuple(_Refuse.apply(o) if isinstance(o, Tensor) else o for o in (r.detach().requires_grad_() if isinstance(r, Tensor) else r for r in results))
        return marked if isinstance(outputs, tuple) else marked[0]

    return wrapper


class InplaceFunction(Function):
    """The old name of a Function that may change what it is given; every `Function` may."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace


class _Refuse(Function):
    """Passes a gradient on, and refuses to be differentiated."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x.clone()

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        raise RuntimeError("trying to differentiate twice a function that was marked with @once_differentiable")
