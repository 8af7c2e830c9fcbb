"""What every kind of op needs when it records and when it writes into given memory."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import repeat
from typing import Any

from ... import dtypes, launch, strides
from ...codegen.formula.namespace import m
from ...codegen.formula.symbols import ComplexError
from ...dtypes import as_dtype, dtype
from ...errors import shorten, warn_user
from ...graph.modes import PerThread, state, unrecorded
from ...graph.node import LEAVES, NODES, OUTPUTS, Node, Output
from ...graph.versions import FIXED, INFERENCE, check_grows, same_storage
from ...shapes import Layout, is_expanded, layout_of
from ...tensor import Tensor, _storage, edge, fill_node, refresh


def mark_inference(t: Tensor) -> None:
    """Make a new tensor an inference tensor."""
    if t._version_[0] >= 0:
        t._version_ = [INFERENCE, FIXED if t._version_[1] >= FIXED else 0]


def made_here(t: Tensor) -> Tensor:
    """Return a new tensor, which inference mode makes an inference tensor."""
    if state.inference:
        mark_inference(t)
    return t


def refuse_inference(edges: Sequence[Any] | None = None) -> None:
    """Refuse an op with these edges that an inference tensor is saved for it, unless only `torch.func` differentiates it, which may.

    Without edges it is refused in any case.
    """
    if edges is not None and (state.lifted or not reaches(edges)):
        return
    raise RuntimeError(
        "Inference tensors cannot be saved for backward. Please do not use Tensors created in inference mode in computation "
        "tracked by autograd. To work around this, you can make a clone to get a normal tensor and use it in autograd, or use "
        "`torch.no_grad()` instead of `torch.inference_mode()`."
    )


def has_no_history(x: Tensor) -> bool:
    """Return whether views of ``x`` have none, as it is an inference tensor that is not `torch.func`'s to differentiate by."""
    return x._version_[0] < 0 and not state.lifted and reaches((edge(x),))


def reaches(edges: Iterable[Any], own: Container[Any] | None = None) -> bool:
    """Return whether a graph ends in leaves other than ``own`` that someone may still differentiate by.

    Those that a finished call of `torch.func` made for itself are nobody's any more; without ``own`` those of running calls are left out too.
    """
    seen: set[Any] = set()
    stack = [e for e in edges if e is not None]
    while stack:
        e = stack.pop()
        if e.is_leaf_edge:
            call = e.__dict__.get("_call")
            if call is None if own is None else e not in own and (call is None or call.running):
                return True
            continue
        node = e.node if e.__class__ is Output else e
        if node in seen:
            continue
        seen.add(node)
        stack.extend([f for f in node.edges if f is not None])
    return False


def guarded(out: Any, *kept: Any) -> Any:
    """Return ``out``, whose node refuses to run after one of the tensors ``kept`` was changed in place.

    For what PyTorch's node saves and ours can do without: only the counts are kept, not the memory.
    """
    if state.grad and out._rg and out._edge is not None:
        node = out._edge
        if node.__class__ is Output:
            node = node.node
        versions, stamp = node.versions, node.stamp
        if versions.__class__ is list:
            versions = (versions,)
        for t in kept:  # (a comprehension would be a call)
            if isinstance(t, Tensor):
                v = t._version_
                if v[0] < 0:
                    refuse_inference(node.edges)
                stamp += v[0]
                versions = (*versions, v)
        node.versions, node.stamp = versions, stamp
    return out


def conjugated(x: Any) -> Any:
    """Return the conjugates of what a rule reads. Nodes that keep them refuse to run after a change of the operand, whose view they are in PyTorch."""
    y = m.conj(x)
    if y.__class__ is not x.__class__ or not isinstance(x, Tensor) or not state.grad:
        return y
    y._version_ = x._version_
    return y


def as_kept(y: Tensor, name: str = "", slope: float = 0.0) -> Tensor:
    """Return ``y``, written in place, which may not be changed before the backward pass, as PyTorch's derivative reads the result there.

    The result does not tell the sign of what it was made of where the ``slope`` is negative: backward passes raise RuntimeError then.
    """
    guarded(y if y._view is None else y._view, y)
    if slope < 0 and y.grad_fn is not None:

        def refuse(gradients: Any) -> None:
            what = f"In-place {name} backward calculation is triggered with a negative slope which is not supported"
            raise RuntimeError(f"{what}, please call out-of-place version instead (slope={slope}; {name}() leaves its input as it is)")

        y.grad_fn.register_prehook(refuse)
    return y


def fresh(out: Tensor) -> Tensor:
    """Return ``out``, the last view of what nobody else has, as a result of an op's own: it is no view, and changing it changes no base.

    What guards its history is at its node, which is not made anew as that of a view is.
    """
    if out._view is not None:
        out._view = None
    elif held := getattr(out, "holds", ""):  # of a batch, or of a tensor with a tangent
        fresh(getattr(out, held))
    return out


def gather(operands: Iterable[Any], rules: Iterable[Any] = repeat(True)) -> tuple[int, int, tuple[Any, ...]]:
    """Return (which of the operands require grad, as bits; ``edge_kind``; where their gradients flow) for a node, see `graph.node.Node`.

    What is no tensor, or has None among the ``rules``, stands as None.
    """
    mask, bit, kind = 0, 1, NODES
    edges: list[Any] = []
    for a, rule in zip(operands, rules):  # noqa: B905 (there may be rules without end)
        e = None
        if rule is not None and a.__class__ is not float and isinstance(a, Tensor):
            if a._view is not None:
                refresh(a)
            if a._rg:
                mask |= bit
                e = a._edge
                if e is None:
                    e = a
                    if kind != OUTPUTS:
                        kind = LEAVES
                elif e.__class__ is Output:
                    kind = OUTPUTS
        edges.append(e)
        bit += bit
    return mask, kind, tuple(edges)


class NotImplemented(Node):  # noqa: A001 (its name is what users see of the node)
    """Where a gradient would go through what has no derivative: the results say that they require grad, and a pass is refused."""

    __slots__ = ("op",)

    def run(self, g: Any) -> tuple[Any, ...]:
        raise NotImplementedError(f"derivative for {self.op} is not implemented")

    run_graph = run


def underived(name: str, results: Sequence[Tensor], *operands: Any) -> None:
    """Let results of an op for which PyTorch has no derivative require grad where an operand does."""
    sources = [t for t in operands if isinstance(t, Tensor) and t.requires_grad] if state.grad else []
    if sources:
        edges = tuple(t._edge if t._edge is not None else t for t in sources)
        for y in results:
            node = NotImplemented()
            node.op = name
            y._edge, y._rg = fill_node(node, edges, 3), True


def tensor_type(d: dtype) -> str:
    return {
        "float32": "FloatTensor", "float64": "DoubleTensor", "float16": "HalfTensor", "bfloat16": "BFloat16Tensor", "int64": "LongTensor", "int32": "IntTensor",
        "int16": "ShortTensor", "int8": "CharTensor", "uint8": "ByteTensor", "bool": "BoolTensor",
        "uint16": "UInt16Tensor", "uint32": "UInt32Tensor", "uint64": "UInt64Tensor",
        "complex32": "ComplexHalfTensor", "complex64": "ComplexFloatTensor", "complex128": "ComplexDoubleTensor",
    }.get(d.name, "Tensor")  # fmt: skip


def typename(value: Any) -> str:
    """Return how PyTorch names what ``value`` is: a tensor's type, what a class or function is called, the class of anything else."""
    if isinstance(value, Tensor):
        return "torch." + tensor_type(value.dtype)
    home, name = getattr(value, "__module__", None), getattr(value, "__qualname__", None) or getattr(value, "__name__", None)
    if not isinstance(name, str):
        home, name = type(value).__module__, type(value).__qualname__
    return name if not home or home == "builtins" else f"{home}.{name}"


def scalar_type(d: dtype) -> str:
    """Return a dtype's name in the texts of PyTorch's errors."""
    return tensor_type(d).removesuffix("Tensor")


def kind_among(operands: Iterable[Any]) -> dtype:
    """Return the dtype that the result of a pointwise op on tensors (or layouts) and numbers (or their types) has."""
    return dtypes.result_of([
        (a.dtype, 2 if a.ndim else 1) if isinstance(a, (Tensor, Layout))
        else (dtypes.of_scalar(a if isinstance(a, type) else type(a.item() if hasattr(a, "item") else a)), 0)
        for a in operands
    ])  # fmt: skip


def need_floats(name: str, operands: Iterable[Any]) -> None:
    """Raise NotImplementedError unless the result of a pointwise op on these would be of a floating or complex dtype."""
    kind = kind_among(operands)
    if kind.category < 2:
        raise NotImplementedError(f"\"{name}\" not implemented for '{scalar_type(kind)}': it takes floating point tensors")


def need_numbers(name: str, operands: Iterable[Any]) -> None:
    """Raise NotImplementedError if the result of a pointwise op on these would be boolean."""
    if kind_among(operands) is dtypes.bool_:
        raise NotImplementedError(f"\"{name}\" not implemented for 'Bool'")


class _Pushed(PerThread):
    only: Any = None  #: tells whether a tensor requires grad for the sake of a derivative in one direction alone (`func.jvp` sets it)


pushed: Any = _Pushed()


def constant(name: str, argument: str, t: Any) -> Any:
    """Return an argument by which PyTorch has no derivative: refused if it requires grad, and one that does not change in forward mode."""
    if isinstance(t, Tensor) and state.grad and t.requires_grad:
        if pushed.only is not None and pushed.only(t):
            return t.detach()
        raise RuntimeError(
            f"The function '{name}' is not differentiable with respect to argument '{argument}'. This input cannot have requires_grad "
            f"True. (give {argument}.detach())"
        )
    return t


def can_cast(source: dtype, target: dtype) -> bool:
    return source.category <= target.category


def check_result(name: str, target: Layout, result: Layout, repeats: bool = False) -> None:
    """Refuse an in-place result that does not fit its target's shape or dtype, or an expanded target.

    ``repeats``: one value is written everywhere, which an expanded target may be given too.
    """
    if result.shape != target.shape:
        raise RuntimeError(
            f"{name}(): output with shape {list(target.shape)} doesn't match the broadcast shape {list(result.shape)}"
        )
    if not can_cast(result.dtype, target.dtype):
        raise RuntimeError(
            f"{name}(): result type {scalar_type(result.dtype)} can't be cast to the desired output type {scalar_type(target.dtype)}"
        )
    if is_expanded(target) and not repeats:
        raise RuntimeError(
            "unsupported operation: more than one element of the written-to tensor refers to a single memory location. "
            "Please clone() the tensor before performing the operation."
        )


def check_written(out: Tensor, reads: tuple[Any, ...] = ()) -> None:
    """Raise RuntimeError for an expanded ``out``, or memory that is read."""
    if is_expanded(out._layout):
        raise RuntimeError(
            "unsupported operation: more than one element of the written-to tensor refers to a single memory location. "
            "Please clone() the tensor before performing the operation."
        )
    refuse_overlap(out, reads, True)


def refuse_overlap(target: Tensor, reads: Iterable[Any], same: bool = False) -> None:
    """Raise RuntimeError where a tensor that is read lies in part where ``target`` is written to; with ``same`` also if it is the target.

    As in PyTorch, whose kernels read and write in one go: what has gaps or overlaps itself is not looked at.
    """
    for x in reads:
        if not isinstance(x, Tensor) or not same_storage(x._version_, target._version_):
            continue
        if any(hasattr(t, "mark") for t in (x, target) if t._layout.__class__ is not Layout):
            continue  # of what shows conjugates a copy is read
        if (same or x is not target) and _overlap(x, target, same):
            raise RuntimeError(
                "unsupported operation: some elements of the input tensor and the written-to tensor refer to a single memory "
                "location. Please clone() the tensor before performing the operation."
            )


def _overlap(a: Tensor, b: Tensor, same: bool) -> bool:
    """Return whether the memory of two tensors without gaps meets; ``same``: also where it is the same and in the same order."""
    x, y = a._layout, b._layout
    if not (x.size and y.size and strides.packed(x) and strides.packed(y)):
        return False
    first, other = [launch.memory.address(t._data) for t in (a, b)]
    end, other_end = first + x.size * a._data.itemsize, other + y.size * b._data.itemsize
    if (first, end) == (other, other_end):
        return same or x.ndim != y.ndim or any(s != t for n, s, t in zip(x.shape, x.strides, y.strides, strict=True) if n > 1)
    return first < other_end and other < end


@contextmanager
def real_only(name: str) -> Iterator[None]:
    """Let formulas that complex numbers have no part in refuse them in the op's name, while a kernel is made."""
    try:
        yield
    except ComplexError:
        raise not_for_complex(name) from None


def not_for_complex(name: str) -> NotImplementedError:
    return NotImplementedError(f'"{name}" not implemented for complex tensors (ComplexFloat, ComplexDouble)')


def not_for_lost(name: str, x: Tensor, src: Tensor) -> None:
    """Refuse to put values that require grad into a copy of integers or truth values, by which their gradient would be lost."""
    if state.grad and src.requires_grad and x.dtype.category < 2:
        raise RuntimeError(f"Autograd not support dtype: {scalar_type(x.dtype)} ({name} of src={src.dtype} that requires grad): detach() src, or convert input")


def no_complex_derivative(name: str, *operands: Tensor) -> None:
    """Raise RuntimeError for complex operands of which one requires grad, where PyTorch has derivatives of real ones only.

    Forward mode is let through, as there.
    """
    if operands[0].dtype.is_complex and state.grad and any(t.requires_grad and not (pushed.only and pushed.only(t)) for t in operands):
        raise RuntimeError(f"{name} does not support automatic differentiation for outputs with complex dtype.")


def real_operands(message: str) -> Callable[[Sequence[Any]], None]:
    """Return a pointwise op's ``check`` that refuses complex operands."""

    def check(avals: Sequence[Any]) -> None:
        if any(k is complex or (isinstance(k, Layout) and k.dtype.is_complex) for k in avals):
            raise NotImplementedError(message)

    return check


def too_large(name: str, value: Any) -> RuntimeError:
    return RuntimeError(f"{name}(): value cannot be converted to type int64_t without overflow: {shorten(value)}")


def fitting(name: str, args: Sequence[Any]) -> list[Any]:
    """Return a call's operands with integers beyond int64 as PyTorch takes them: up to 64 bits they wrap among integers, else are floats.

    Errors: RuntimeError where there is no such one among them, that is for larger ones.
    """
    tensors = [a for a in args if isinstance(a, Tensor)]
    whole = not any(a.dtype.category >= 2 if isinstance(a, Tensor) else isinstance(a, float) for a in args)
    if whole and (name.startswith("pow") or all(t.dtype.category == 0 for t in tensors)):
        raise too_large(name, args[-1])
    found = [(a - (1 << 64) if whole else float(a)) if a.__class__ is int and 1 << 63 <= a < 1 << 64 else a for a in args]
    if all(a is b for a, b in zip(found, args, strict=True)):
        raise too_large(name, next((a for a in args if a.__class__ is int and not -(1 << 63) <= a < 1 << 63), args[-1]))
    return found


#: ops whose ``out=`` has the result's dtype; the others convert what they can (a test asks PyTorch which is which)
EXACT_OUT = frozenset(
    """
    abs addbmm addmm addmv all amax amin aminmax any argmax argmin avg_pool1d avg_pool2d avg_pool3d baddbmm bitwise_not bmm bucketize ceil
    chain_matmul complex conj_physical cross cummax cummin diag dot fft.ifft fft.ihfft float_power floor frac frexp gather
    gelu hardshrink heaviside histc histogram index_add index_copy index_reduce index_select inner isin isneginf isposinf kthvalue linear
    linalg.cholesky linalg.cholesky_ex linalg.cross linalg.det linalg.eigh linalg.eigvalsh linalg.inv linalg.inv_ex linalg.ldl_factor
    linalg.ldl_factor_ex linalg.ldl_solve linalg.lu linalg.lu_factor linalg.lu_factor_ex linalg.lu_solve linalg.matrix_norm
    linalg.multi_dot linalg.norm linalg.qr linalg.slogdet linalg.solve linalg.solve_ex linalg.solve_triangular linalg.svd linalg.svdvals
    linalg.vecdot linalg.vector_norm log_softmax logcumsumexp logsigmoid lu_solve lu_unpack masked_select matmul max.dim median min.dim mm mode
    msort multinomial mv nan_to_num nanmedian nanquantile native_batch_norm neg nonzero norm ormqr polar qr quantile renorm round scatter
    scatter_add scatter_reduce searchsorted sgn sign signbit softmax softplus softshrink sort svd take take_along_dim tensordot topk
    triangular_solve tril triu trunc vdot where
    """.split()  # noqa: SIM905
)


#: C++'s names of dtypes, which PyTorch says of outputs
_CPP = {
    "uint8": "unsigned char", "int8": "signed char", "int16": "short int", "int32": "int", "int64": "long int", "float16": "c10::Half",
    "bfloat16": "c10::BFloat16", "float32": "float", "float64": "double", "complex32": "c10::complex<c10::Half>",
    "complex64": "c10::complex<float>", "complex128": "c10::complex<double>",
}  # fmt: skip
#: what PyTorch says of an output of another dtype; {have} and {want} are scalar types
_EXACT_TEXTS = {
    "Found dtype {have} but expected {want}": "abs ceil floor frac hardshrink conj_physical neg round sgn sign trunc softshrink",
    "expected scalar_type {want} but found {have}": "cummax cummin diff logcumsumexp",
    "{name} does not support non-boolean outputs.": "isposinf isneginf signbit",
    "{name} only supports bool tensor for result, got: {have}": "all any",
    "Expected the dtype for input and out to match, but got {want} for input's dtype and {have} for out's dtype.": "amax amin",
    "Expected out tensor to have scalar type {want} but got scalar type {have}": "nonzero",
    "output values must be of same type as input": "kthvalue",
    "expected scalar type '{want}' but got '{have}' for values output": "mode",
    "dtype of out: {have} should be same as input: {want}": "nan_to_num",
    "quantile() out tensor must be same dtype as the input tensor": "quantile nanquantile",
    "Expected the output tensor to have dtype {want}, but got an output tensor with dtype {have}": "inner tensordot",
}
_EXACT_TEXT_OF = {name: text for text, names in _EXACT_TEXTS.items() for name in names.split()}


def exact_text(name: str, have: dtype, want: dtype) -> str:
    """Return what the op ``name`` says of an ``out=`` of dtype ``have`` whose result has the dtype ``want``."""
    text = _EXACT_TEXT_OF.get(name)
    if text is None:
        words = [_CPP.get(d.name, d.name) for d in (want, have)]
        return f"{name}(): Expected out tensor to have dtype {words[0]}, but got {words[1]} instead (out.dtype={have!r}, the result's is {want!r})"
    return f"{name}(): {text.format(name=name, have=scalar_type(have), want=scalar_type(want))} (make out of dtype {want!r})"


#: pointwise ops that compute in the barebone dtypes, uint16, uint32 and uint64: in PyTorch few do
BAREBONE_POINTWISE: frozenset[str] = frozenset({
    "mul", "bitwise_and", "bitwise_or", "bitwise_xor", "eq", "ne", "where", "clone", "copy", "fill", "zero", "floor", "ceil", "trunc", "rint", "conj",
    "conj_physical", "nan_to_num", "isfinite", "isinf", "isnan", "isneginf", "isposinf", "isreal", "signbit",
})  # fmt: skip
#: ops with kernels of their own that move elements of them, or sum them as int64
BAREBONE_STRUCTURED: frozenset[str] = frozenset({
    "sum", "nansum", "prod", "any", "all", "cat", "stack", "copied_view", "write_view", "write_strided", "relaid", "pad", "flip", "roll", "roll_flat",
    "sort", "read", "gather", "pick", "picked", "fill", "nothing_of", "unsafe_split", "diagonal_backward", "mvlgamma", "nonzero_static",
    "take_along", "count_nonzero",
})  # fmt: skip


#: the same of complex32
CHALF_POINTWISE: frozenset[str] = frozenset({
    "abs", "add", "sub", "rsub", "mul", "addcmul", "neg", "conj", "conj_physical", "resolve_conj", "real", "imag", "complex", "sgn", "eq", "ne", "isclose",
    "where", "clone", "copy", "fill", "zero", "isfinite", "isinf", "isnan", "isreal", "masked_fill", "abs_backward",
})  # fmt: skip
CHALF_STRUCTURED: frozenset[str] = frozenset({
    "all", "any", "cat", "stack", "copied_view", "write_view", "write_strided", "relaid", "pad", "roll", "roll_flat", "read", "pick", "picked", "fill",
    "nothing_of", "unsafe_split", "nonzero", "nonzero_static", "count_nonzero", "tri", "diagonal_backward", "flip", "norm", "dist", "embedding",
    "index_put_op",
})  # fmt: skip


def not_for_barebone(name: str, kind: dtype) -> None:
    """Raise NotImplementedError for a barebone dtype (uint16, uint32, uint64), in which most ops do not compute, as in PyTorch."""
    if kind.is_barebone:
        raise NotImplementedError(f"\"{name}\" not implemented for '{scalar_type(kind)}': it takes few ops; convert it with to(int64) first")


def not_for_limited(name: str, kind: dtype) -> None:
    """Raise NotImplementedError for a dtype in which most ops do not compute: barebone ones, and complex32."""
    not_for_barebone(name, kind)
    if kind.is_limited:
        raise NotImplementedError(f"\"{name}\" not implemented for 'ComplexHalf': it takes few ops; convert it with cfloat() first")


def refuse_limited(name: str, kind: dtype, barebone: Container[str], chalf: Container[str]) -> None:
    """Raise NotImplementedError for such a dtype unless the op is among those that compute in it."""
    if name not in (barebone if kind.is_barebone else chalf):
        not_for_limited(name, kind)


def not_for_bool(name: str, kind: dtype, x: Tensor) -> None:
    """Refuse truth values as the dtype of a running sum or product of x, as PyTorch does where there is something to add."""
    if kind.name == "bool" and x._layout.ndim and x._layout.size:
        raise NotImplementedError(f'"{name}_out_cpu" not implemented for \'Bool\': give another dtype')


def check_kind(out: Tensor, value: Tensor, name: str, operands: tuple[Any, ...] = ()) -> None:
    """Refuse an ``out=`` of another dtype than PyTorch takes for this result of the op ``name``."""
    have, want = out._layout.dtype, value._layout.dtype
    if name == "abs" and operands and operands[0].is_complex():  # any kind of floats will do, and the numbers' own
        if have is operands[0]._layout.dtype:
            return
        name = name if have.is_complex else "abs of complex numbers"
    if have is want or (have.name in ("uint8", "bool") and name in ("all", "any")):
        return
    if name in EXACT_OUT or name.endswith("_copy"):
        raise RuntimeError(exact_text(name, have, want))
    if not can_cast(want, have):
        said = "result type {want} can't be cast to the desired output type {have}"
        if name.startswith(("linalg.", "cholesky", "geqrf")):
            said = "Expected {what} to be safely castable from {want} dtype, but got {what} with dtype {have}"
        what = "eigenvalues" if ".eig" in name else "result"
        raise RuntimeError(f"{name}(): {said.format(what=what, want=scalar_type(want), have=scalar_type(have))}")


def computed_in(out: Any, dtype: Any) -> Any:
    """Return the dtype that an op with ``dtype=`` and ``out=`` computes in: that of ``out``. RuntimeError where another one is asked for."""
    if not isinstance(out, Tensor):
        return dtype
    if dtype is not None and as_dtype(dtype) is not out.dtype:
        raise RuntimeError(f"Expected out tensor to have dtype {as_dtype(dtype).name}, but got {out.dtype.name} instead")
    return out.dtype


def made_in(out: Any, dtype: Any) -> Any:
    """Return the dtype that a new tensor has: that of ``out``. RuntimeError where another one is asked for; None where none is."""
    d = None if dtype is None else as_dtype(dtype)
    if not isinstance(out, Tensor):
        return d
    if d is not None and d is not out.dtype:
        raise RuntimeError(f"dtype {scalar_type(d)} does not match dtype of out parameter ({scalar_type(out.dtype)})")
    return out.dtype


def store(
    out: Tensor, value: Tensor, name: str, reads: tuple[Any, ...] = (), operands: tuple[Any, ...] = (), unseen: bool = False, quiet: bool = False
) -> Tensor:
    """Put a result into ``out=``: resized if its shape differs, RuntimeError if its dtype cannot hold it or grad is needed.

    ``reads``: tensors that PyTorch refuses to share memory with ``out``; ``operands``: those that may be ``out`` itself, but not meet
    it in part. ``unseen``: the op has no derivative at all, so that autograd does not see it, and ``out`` may require grad. ``quiet``:
    nothing is said of elements that get another shape.
    """
    if unseen and state.grad:
        with unrecorded():
            return store(out, value, name, reads, operands, quiet=quiet)
    check_output(out, name, value._rg)
    check_kind(out, value, name, operands)
    check_written(out, reads)
    if out.shape == value.shape:
        refuse_overlap(out, operands)
    else:
        if any(x is out for x in operands):  # which is read as it is
            whole, own = list(value.shape), list(out.shape)
            raise RuntimeError(f"{name}(): output with shape {own} doesn't match the broadcast shape {whole} (out= is an operand: clone it, or leave out=)")
        counted = out._version_
        fit_output(out, value.shape, strides.like(value._layout, out.dtype), quiet)
        out._version_[0] -= out._version_ is not counted  # getting memory and being written to is one change
    return out.copy_(value)


def store_new(out: Tensor, value: Tensor, name: str, requires_grad: Any = False) -> Tensor:
    """Put a tensor that is made of nothing but numbers into ``out``, which requires grad from then on where that is asked for."""
    found = store(out, value, name, quiet=True)
    return found.requires_grad_() if requires_grad else found


def store_each(outs: Any, values: Sequence[Tensor], name: str, reads: tuple[Any, ...] = (), into: bool = False) -> list[Tensor]:
    """Return `store` for an op of several results: nothing is written where one of them is refused.

    ``into``: what is read may itself be among ``outs``.
    """
    if not isinstance(outs, (tuple, list)) or len(outs) != len(values):
        raise TypeError(f"{name}(): argument 'out' must be tuple of {len(values)} Tensors")
    unshared, operands = ((), reads) if into else (reads, ())
    for out, value in zip(outs, values, strict=True):
        check_output(out, name, value._rg)
        check_kind(out, value, name)
        check_written(out, unshared)
        refuse_overlap(out, operands)
    return [store(out, value, name, unshared, operands) for out, value in zip(outs, values, strict=True)]


def check_output(out: Any, name: str, graph: bool = False) -> None:
    """Refuse an ``out=`` that is no tensor, and one that would have to be recorded. ``graph``: the result has a history."""
    if not isinstance(out, Tensor):
        raise TypeError(f"{name}(): argument 'out' must be a Tensor, not {type(out).__name__}")
    if out._rg and out._view is None and not out.requires_grad:  # (it says so for the sake of its ops)
        raise NotImplementedError(f"Trying to use forward AD with {name}_out that does not support it because it is an out= function")
    if graph or (out.requires_grad and state.grad):
        raise RuntimeError(
            f"{name}(): functions with out=... arguments don't support automatic differentiation, but one of the arguments "
            "requires grad. Call it without out=, or inside torch.no_grad()."
        )


def warn_of_expanded(x: Tensor, name: str) -> None:
    """Warn where ``x`` is stretched along dims: elements stand for several, and the last value that is written stays."""
    if is_expanded(x._layout):
        warn_user(
            f"Use of {name} on expanded tensors is deprecated. Please clone() the tensor before performing this operation. "
            "This also applies to advanced indexing e.g. tensor[indices] = tensor, tensor[mask] = scalar"
        )


def fit_output(out: Tensor, shape: Sequence[int], layout: Layout | None = None, quiet: bool = False) -> None:
    """Give ``out`` the shape of a result: in its own memory as far as that goes, else in memory of its own.

    ``layout``: the result's layout, if not C order. ``quiet``: as PyTorch's functions that make tensors do it, without a warning.
    """
    if out._layout.size and not quiet:
        warn_user(
            f"An output with one or more elements was resized since it had shape {list(out.shape)}, which does not match the required "
            f"output shape {list(shape)}. This behavior is deprecated, and in a future PyTorch release outputs will not "
            "be resized unless they have zero elements. Give an out= of the right shape, or of no elements (out.resize_(0)).",
        )
    new = layout or layout_of(shape, None, out.dtype)
    memory, offset = _storage(out)
    if memory.size - offset < new.size:
        check_grows(out._version_)
        out._data = launch.empty(new.size, out.dtype.carrier)
        out._view, out._version_ = None, [out._version_[0] + 1, 0]
    else:
        launch.escapes("an out= that is resized in its own memory")
        out._data = memory[offset:] if offset else memory
    out._layout = new
