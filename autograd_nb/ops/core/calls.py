"""The functions that users call for pointwise ops, and the methods that work in place.

What an op does again and again is written out in line here, so that a call seen before costs a lookup, an allocation and a kernel.
"""

from __future__ import annotations

from collections.abc import Callable
from sys import _getframe
from typing import TYPE_CHECKING, Any

import numpy as np

from ... import launch
from ...errors import shorten
from ...graph.modes import state
from ...graph.node import MANY, Output, _internal, sequence, spare, user_frame
from ...tensor import Tensor, blank, refresh, rewrite_history
from .numbers import number_argument
from .recording import mark_inference, refuse_inference, store, too_large

if TYPE_CHECKING:
    from .pointwise import Pointwise


def unary_call(op: Pointwise) -> Callable:
    plans = op.plans
    recordable = op.rules[0] is not None
    empty, allocate, new = np.empty, launch.empty, blank  # locals are found faster

    def call(input, *, out=None):
        if out is not None:
            return store(out, call(input), op.name)
        try:
            plan = plans[input._layout]
        except (KeyError, AttributeError):
            return op.slow((input,))
        data = allocate(plan.size, plan.carrier) if plan.big else empty(plan.size, plan.carrier)
        if plan.dims is None:
            plan.entry(input._data, data)
        else:
            plan.entry(plan.dims, input._data, data)
        t = new()  # `make`, written out: this is the hottest place of all
        t._data = data
        t._layout = plan.out
        t._version_ = version = [0, 0]
        t._rg = False
        t._edge = t._grad = t._view = t._leaf_hook_set = None
        if not state.grad:
            if state.inference:
                mark_inference(t)
            return t
        if recordable:
            if input._view is not None:
                refresh(input)
            if input._rg and plan.recorded:
                spec = plan.specs[1] or plan.spec(1)
                node = spec.node()
                node.spec = spec
                e = input._edge
                if e is None:
                    node.edge = input
                    node.plain = 1
                else:
                    node.edge = e
                    node.plain = 0 if e.__class__ is Output else 3
                save = spec.save
                if save == 4:
                    node.saved = (data,)
                    node.versions = version
                    node.stamp = 0
                elif save == 1:
                    v = input._version_
                    if v[0] < 0:
                        refuse_inference()
                    node.saved = (input._data,)
                    node.versions = v
                    node.stamp = v[0]
                elif save == 5:
                    v = input._version_
                    if v[0] < 0:
                        refuse_inference()
                    node.saved = (input._data, data)
                    node.versions = (v, version)
                    node.stamp = v[0]
                else:
                    node.saved = node.versions = ()
                    node.stamp = 0
                node.consumed = node.hooks = None
                node.seq = seq = sequence()
                if not seq & MANY:
                    spare(node)
                f = _getframe(1)
                if internal.get(f.f_code.co_filename, True):
                    f = user_frame(f)
                node.code = f.f_code
                node.lasti = f.f_lasti
                t._edge = node
                t._rg = True
        return t

    internal = _internal
    call.__name__ = call.__qualname__ = op.name
    return call


def binary_call(op: Pointwise, operator: bool = False, scaled: Callable | None = None) -> Callable:
    """The op of two operands; as an ``operator`` it leaves operands that are not ours to Python; ``scaled`` takes ``alpha``."""
    plans = op.plans
    recordable = op.differentiable
    empty, allocate, new = np.empty, launch.empty, blank

    def call(input, other, *, alpha=None, out=None):
        if alpha is not None and not (alpha.__class__ is int and alpha == 1):
            if scaled is None:
                raise TypeError(f"{op.name}() got an unexpected keyword argument 'alpha'")
            return scaled(input, other, number_argument(alpha, op.name, "alpha"), out=out)
        if out is not None:
            return store(out, call(input, other), op.name)
        kind = other.__class__
        number = kind is float or kind is int
        try:
            if number:
                plan = plans[input._layout, kind]
                b = other
            else:
                plan = plans[input._layout, other._layout]
                b = other._data
        except (KeyError, AttributeError):
            if operator and not acceptable(other):
                return NotImplemented
            only_tensors(op.name, input, other, "second" if operator else op.numbers)
            return op.slow((input, other))
        data = allocate(plan.size, plan.carrier) if plan.big else empty(plan.size, plan.carrier)
        try:
            if plan.dims is None:
                plan.entry(input._data, b, data)
            else:
                plan.entry(plan.dims, input._data, b, data)
        except OverflowError:
            raise too_large(op.name, other) from None
        t = new()  # `make`, written out: this is the hottest place of all
        t._data = data
        t._layout = plan.out
        t._version_ = [0, 0]
        t._rg = False
        t._edge = t._grad = t._view = t._leaf_hook_set = None
        if not state.grad:
            if state.inference:
                mark_inference(t)
            return t
        if recordable and plan.recorded:
            if input._view is not None:
                refresh(input)
            if number:
                mask = 1 if input._rg else 0
            else:
                if other._view is not None:
                    refresh(other)
                mask = (1 if input._rg else 0) | (2 if other._rg else 0)
            mask &= rules_mask
            if mask:
                spec = plan.specs[mask] or plan.spec(mask)
                node = spec.node()
                node.spec = spec
                plain = 2
                if mask & 1:
                    e = input._edge
                    if e is None:
                        e = input
                        plain = 1
                    elif e.__class__ is Output:
                        plain = 0
                else:
                    e = None
                if mask & 2:
                    e2 = other._edge
                    if e2 is None:
                        e2 = other
                        if plain:
                            plain = 1
                    elif e2.__class__ is Output:
                        plain = 0
                else:
                    e2 = None
                node.edges = (e, e2)
                node.plain = plain
                save = spec.save
                if save == 3:
                    v, w = input._version_, other._version_
                    if v[0] < 0 or w[0] < 0:
                        refuse_inference()
                    node.saved = (input._data, b)
                    node.versions = (v, w)
                    node.stamp = v[0] + w[0]
                elif save == 1:
                    v = input._version_
                    if v[0] < 0:
                        refuse_inference()
                    node.saved = (input._data, b) if spec.scalar_names else (input._data,)
                    node.versions = v
                    node.stamp = v[0]
                elif save == 2:
                    v = other._version_
                    if v[0] < 0:
                        refuse_inference()
                    node.saved = (b,)
                    node.versions = v
                    node.stamp = v[0]
                elif save == 0:
                    node.saved = (b,) if spec.scalar_names else ()
                    node.versions = ()
                    node.stamp = 0
                else:
                    op.save(node, (input, other), t)
                node.consumed = node.hooks = None
                node.seq = seq = sequence()
                if not seq & MANY:
                    spare(node)
                f = _getframe(1)
                if internal.get(f.f_code.co_filename, True):
                    f = user_frame(f)
                node.code = f.f_code
                node.lasti = f.f_lasti
                t._edge = node
                t._rg = True
        return t

    internal = _internal
    rules_mask = sum(1 << i for i, r in enumerate(op.rules) if r is not None)
    call.__name__ = call.__qualname__ = op.name
    return call


def only_tensors(name: str, input: Any, other: Any, numbers: str = "none", second: str = "other") -> None:
    """TypeError for a number where PyTorch takes a tensor.

    ``numbers``: which operands may be one: "none", "second", "either" (but one is a tensor) or "both".
    """
    first = isinstance(input, Tensor)
    if numbers == "both" or (first and (numbers != "none" or isinstance(other, Tensor))):
        return
    if not first and numbers == "either" and isinstance(other, Tensor):
        return
    which, value = (second, other) if first else ("input", input)
    raise TypeError(
        f"{name}(): argument '{which}' must be Tensor, not {type(value).__name__} (got {shorten(value)}; use tensor({shorten(value)}))"
    )


def acceptable(other: Any) -> bool:
    """Whether a binary operator takes this operand, or leaves it to the operand's own method."""
    if isinstance(other, (Tensor, int, float, complex)):
        return True
    return hasattr(other, "__array__") and not isinstance(other, np.ndarray)  # NumPy comes back with a tensor made of it


def operator_of(call: Callable) -> Callable:
    """A two-operand op's function as an operator method."""
    method = binary_call(call.op, operator=True)  # type: ignore[attr-defined]
    method.op = call.op  # type: ignore[attr-defined]
    return method


def call_of_many(op: Pointwise) -> Callable:
    def call(*args, out=None):
        if len(args) != len(op.params):
            raise TypeError(f"{op.name}() takes {len(op.params)} arguments ({', '.join(op.params)}) but got {len(args)}")
        t = op.slow(args)
        return t if out is None else store(out, t, op.name)

    call.__name__ = call.__qualname__ = op.name
    return call


def inplace_call(op: Pointwise, scaled: Callable | None = None) -> Callable:
    """``<name>_``; ``scaled`` takes ``alpha``."""
    n = len(op.params)
    call = (
        _inplace_unary(op)
        if n == 1
        else _inplace_binary(op, scaled)
        if n == 2
        else _inplace_ternary(op)
        if n == 3
        else _inplace_many(op)
    )
    call.__name__ = call.__qualname__ = op.name + "_"
    call.__doc__ = f"In-place version of `{op.name}`."
    return call


def _inplace_unary(op: Pointwise) -> Callable:
    plans = op.inplace_plans

    def call(input):
        try:
            plan = plans[input._layout]
        except (KeyError, AttributeError):
            return op.inplace([input])
        version = input._version_
        if version[0] < 0:
            return op.inplace([input])
        node: Any = False
        if (input._rg or input._view is not None) and state.grad and (input._rg or input._view._rg):
            if input._edge is None or input._view is not None:
                return op.inplace([input])
            node = op.record_in_place(plan, (input,))
        data = input._data
        if len(data) == plan.size:
            plan.entry(data)
        else:
            plan.write(data)
        version[0] += 1
        if node is not False:
            rewrite_history(input, node)
        return input

    return call


def _inplace_binary(op: Pointwise, scaled: Callable | None) -> Callable:
    plans = op.inplace_plans
    reads = op.reads

    def call(input, other, *, alpha=None):
        if alpha is not None and not (alpha.__class__ is int and alpha == 1):
            if scaled is None:
                raise TypeError(f"{op.name}_() got an unexpected keyword argument 'alpha'")
            return scaled.inplace(input, other, number_argument(alpha, op.name + "_", "alpha"))  # type: ignore[attr-defined]
        kind = other.__class__
        number = kind is float or kind is int
        try:
            if number:
                plan = plans[input._layout, kind]
                b = other
            else:
                plan = plans[input._layout, other._layout]
                b = other._data
        except (KeyError, AttributeError):
            if op.numbers == "none":
                only_tensors(op.name + "_", input, other)
            return op.inplace([input, other])
        version = input._version_
        if version[0] < 0 or (not number and other._version_ is version):
            return op.inplace([input, other])
        node: Any = False
        if (
            (input._rg or input._view is not None or (not number and (other._rg or other._view is not None)))
            and state.grad
            and (input._rg or (input._view is not None and input._view._rg) or (not number and other.requires_grad))
        ):
            if input._view is not None or (input._rg and input._edge is None):
                return op.inplace([input, other])
            node = op.record_in_place(plan, (input, other))
        data = input._data
        try:
            if len(data) != plan.size:
                plan.write(data, b)
            elif reads:
                plan.entry(data, b)
            else:
                plan.entry(b, data)
        except OverflowError:
            raise too_large(op.name + "_", other) from None
        version[0] += 1
        if node is not False:
            rewrite_history(input, node)
        return input

    return call


def _inplace_ternary(op: Pointwise) -> Callable:
    plans = op.inplace_plans

    def call(input, b, c):
        kind = b.__class__
        first = kind is float or kind is int
        kind = c.__class__
        second = kind is float or kind is int
        try:
            plan = plans[input._layout, b.__class__ if first else b._layout, kind if second else c._layout]
        except (KeyError, AttributeError):
            return op.inplace([input, b, c])
        version = input._version_
        if version[0] < 0 or (not first and b._version_ is version) or (not second and c._version_ is version):
            return op.inplace([input, b, c])
        node: Any = False
        if state.grad and (input.requires_grad or not (first or not b.requires_grad) or not (second or not c.requires_grad)):
            if input._view is not None or (input._rg and input._edge is None):
                return op.inplace([input, b, c])
            node = op.record_in_place(plan, (input, b, c))
        try:
            plan.write(input._data, b if first else b._data, c if second else c._data)
        except OverflowError:
            raise too_large(op.name + "_", c) from None
        version[0] += 1
        if node is not False:
            rewrite_history(input, node)
        return input

    return call


def _inplace_many(op: Pointwise) -> Callable:
    def call(*args):
        if len(args) != len(op.params):
            raise TypeError(f"{op.name}_() takes {len(op.params)} arguments ({', '.join(op.params)}) but got {len(args)}")
        return op.inplace(args)

    return call
