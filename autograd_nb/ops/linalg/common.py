"""What the files of this package share: arguments, batches, results of several tensors, and reports of failure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ... import dtypes, launch, strides
from ...codegen.formula.namespace import m
from ...errors import LinAlgError
from ...overriding import overridable
from ...shapes import Layout, Size, broadcast_shapes, layout_of, numel
from ...tensor import Tensor, make
from ..core.recording import store, store_each
from ..core.structured import tensor_argument
from ..creation.cast import relaid
from ..creation.create import new_full
from ..creation.ranges import eye

SCALAR_NAMES = {
    "float16": "Half", "bfloat16": "BFloat16", "float32": "Float", "float64": "Double",
    "complex32": "ComplexHalf", "complex64": "ComplexFloat", "complex128": "ComplexDouble",
    "int64": "Long", "int32": "Int", "int16": "Short", "int8": "Char", "uint8": "Byte", "bool": "Bool",
}  # fmt: skip


def scalar_name(x: Tensor) -> str:
    return SCALAR_NAMES.get(x.dtype.name, x.dtype.name)


# ------------------------------------------------------------------------------------------------- arguments


#: of ops that do not look at the precision before: the kernels by which PyTorch refuses halves
_KERNELS = {
    kernel: names.split() for kernel, names in {
        "lu_cpu": "linalg.det linalg.solve linalg.solve_ex", "cholesky_cpu": "linalg.cholesky linalg.cholesky_ex",
        "geqrf_cpu": "geqrf linalg.qr qr svd_lowrank pca_lowrank", "linalg_svd_cpu": "linalg.svd linalg.svdvals linalg.cond",
        "linalg_eigh_cpu": "linalg.eigh linalg.eigvalsh", "linalg_eig_out_cpu": "linalg.eig linalg.eigvals",
        "ldl_factor_kernel_cpu": "torch.linalg.ldl_factor_ex", "ldl_solve_kernel_cpu": "torch.linalg.ldl_solve",
        "linalg.lu_solve_cpu": "linalg.lu_solve", "ormqr_cpu": "torch.ormqr",
    }.items()
}  # fmt: skip
HALVES = {name: kernel for kernel, names in _KERNELS.items() for name in names}


def floating(x: Tensor, name: str, kernel: str = "") -> Tensor:
    """Refuse other dtypes; ``kernel``: the name by which PyTorch's own refuses them, where it does not look before."""
    narrow = x.dtype.carrier is not x.dtype.np  # no kernel knows half precision
    if kernel and (x.dtype.category < 2 or narrow):
        raise NotImplementedError(f"\"{kernel}\" not implemented for '{scalar_name(x)}' ({name}: cast it with .to(), e.g. x.float())")
    if x.dtype.category < 2:
        raise RuntimeError(
            f"{name}: Expected a floating point or complex tensor as input. Got {scalar_name(x)} (cast it with .to(), e.g. x.float())"
        )
    if narrow and name in HALVES:
        raise NotImplementedError(f"\"{HALVES[name]}\" not implemented for '{scalar_name(x)}' ({name}: cast it with x.float())")
    if narrow:
        raise RuntimeError(f"{name}: Low precision dtypes not supported. Got {scalar_name(x)} (cast it with x.float())")
    return x


def matrix(value: Any, name: str, argument: str = "A", kernel: str = "") -> Tensor:
    """Return a floating tensor of at least two dims."""
    x = tensor_argument(value, name, argument)
    if x.ndim < 2:
        raise RuntimeError(
            f"{name}: The input tensor {argument} must have at least 2 dimensions (its shape is {list(x.shape)})."
        )
    return floating(x, name, kernel)


def square_shape(x: Tensor, name: str) -> Tensor:
    if x.shape[-1] != x.shape[-2]:
        raise RuntimeError(
            f"{name}: A must be batches of square matrices, but they are {x.shape[-2]} by {x.shape[-1]} matrices"
        )
    return x


def square(value: Any, name: str, argument: str = "A", kernel: str = "") -> Tensor:
    """Return a floating tensor of square matrices."""
    return square_shape(matrix(value, name, argument, kernel), name)


def same_dtype(a: Tensor, b: Tensor, name: str, first: str = "A", second: str = "B") -> None:
    if a.dtype is not b.dtype:
        raise RuntimeError(
            f"{name}: Expected {first} and {second} to have the same dtype, but found {first} of type {scalar_name(a)} and {second} "
            f"of type {scalar_name(b)} instead"
        )


def expected_kind(a: Tensor, b: Tensor) -> None:
    """Raise RuntimeError for operands of different dtypes, in the words of PyTorch's kernels."""
    if a.dtype is not b.dtype:
        raise RuntimeError(f"expected scalar type {scalar_name(a)} but found {scalar_name(b)} (cast one with .to())")


def check_equation(a: Tensor, b: Tensor, left: bool, name: str) -> None:
    """That A·X = B (X·A = B) has shapes that fit."""
    if a.shape[-1] != b.shape[-2 if left else -1]:
        equation = "AX = B" if left else "XA = B"
        raise RuntimeError(
            f"{name}: Incompatible shapes of A and B for the equation {equation} ({a.shape[-2]}x{a.shape[-1]} and "
            f"{b.shape[-2]}x{b.shape[-1]})"
        )


# --------------------------------------------------------------------------------------------------- batches

_ONE = Size()


def batch_of(x: Tensor) -> Size:
    return x.shape[:-2] if x.ndim > 2 else _ONE


def count(x: Tensor) -> int:
    """Return how many matrices ``x`` holds."""
    return numel(x.shape[:-2]) if x.ndim > 2 else 1


def broadcast(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    """Return the same batch for both; a single matrix ``a`` stays one, as solvers read it again for every b."""
    batch = broadcast_shapes(a.shape[:-2], b.shape[:-2])
    b = b if b.shape[:-2] == batch else b.expand(*batch, *b.shape[-2:])
    if a.shape[:-2] == batch:
        return a, b
    if count(a) == 1:
        return a.reshape(a.shape[-2:]), b
    return a.expand(*batch, *a.shape[-2:]), b


def stride(x: Tensor, size: int) -> int:
    """Return how many elements lie from one matrix (or vector) of ``size`` elements to the next: none where there is only one for the whole batch."""
    return 0 if x._layout.size == size else size


def summed(g: Tensor, shape: Sequence[int]) -> Tensor:
    return g if tuple(g.shape) == tuple(shape) else g.sum_to_size(shape)


def adjoint(x: Tensor) -> Tensor:
    """Conjugate transposes of the matrices."""
    return m.conj(x.mT) if x.dtype.is_complex else x.mT


def identity(n: int, d: dtypes.dtype) -> Tensor:
    return eye(n, dtype=d)


# --------------------------------------------------------------------------------------------------- results


def given(y: Tensor, out: Tensor | None, name: str, operands: tuple[Any, ...] = ()) -> Tensor:
    return y if out is None else store(out, y, name, (), operands)


def solved_into(out: Tensor | None, x: Tensor, b: Any, name: str, left: bool = True) -> Tensor:
    """Return the solution of a system in ``out``; refused, as in PyTorch, where ``b``, which that copies first, lies there otherwise.

    It copies into an ``out`` that lies as LAPACK writes: by columns, by rows for a system of transposes (not ``left``).
    """
    return given(x, out, name, reads_first(out, x, b, left))


def reads_first(out: Any, x: Tensor, b: Any, left: bool) -> tuple[Any, ...]:
    """Return what a solver copies into ``out``, before it solves there; see `solved_into`."""
    if not isinstance(out, Tensor) or out.shape != x.shape:
        return ()
    direct = out._layout.strides == columns(x.shape, x.dtype).strides if left else out._layout.contiguous
    return (b,) if direct else ()


def several(maker: Callable[..., Any], values: Sequence[Tensor], out: Any, name: str) -> Any:
    """Return a named tuple of results, put into the tensors of ``out`` if given."""
    if out is None:
        return maker(*values)
    return maker(*store_each(out, values, name))


SMALL = 8  #: rows of a matrix up to which many are factorised together, one in each lane of a vector


def many_small(a: Tensor, b: Tensor | None = None, least: int = 4) -> bool:
    """Return whether kernels of a matrix in each lane serve for matrices like ``a``, as many as ``b`` has (or ``a``)."""
    return a.dtype.category == 2 and max(a.shape[-2:]) <= SMALL and count(a if b is None else b) >= least


def new_info(a: Tensor) -> np.ndarray:
    """Return memory for what a kernel reports of each of the matrices ``a``: zeros, which a kernel writes where there are no elements to look at."""
    return np.zeros(count(a), np.int32) if a._layout.size else new_full((count(a),), 0, dtypes.int32)._data


def by_columns(shape: Sequence[int], d: dtypes.dtype) -> Tensor:
    """Return memory for matrices whose columns stand one after the other, as LAPACK and PyTorch leave results."""
    layout = columns(shape, d)
    return make(launch.empty(layout.size, d.carrier), layout, [0, 0])


def columns(shape: Sequence[int], d: dtypes.dtype) -> Layout:
    """Return the layout of `by_columns`."""
    return strides.ordered(shape, (*range(len(shape) - 2), len(shape) - 1, len(shape) - 2), d)


def turned(x: Tensor) -> Tensor:
    """Return ``x``, or where it is not by columns a copy that is."""
    layout = columns(x.shape, x.dtype)
    return x if x._layout.strides == layout.strides else relaid(x, layout)


def info_tensor(info: np.ndarray, batch: Sequence[int]) -> Tensor:
    return make(info, layout_of(batch, None, dtypes.int32), [0, 0])


def failed(info: Tensor | np.ndarray) -> tuple[int, int] | None:
    """Return (batch element, what was reported) of the first failure."""
    codes = info._data[: info._layout.size] if isinstance(info, Tensor) else info
    if codes[0] == 0 if codes.size == 1 else not codes.any():
        return None
    k = int(codes.nonzero()[0][0])
    return k, int(codes[k])


def place(name: str, k: int, batched: bool) -> str:
    return f"{name}: (Batch element {k}): " if batched else f"{name}: "


FEW = 8  #: matrices of which compiled programs ask one by one whether all went well


@overridable
def check(info: Tensor, name: str, text: Callable[[int], str], kind: type[Exception] = LinAlgError) -> None:
    """Raise for the first matrix of which ``info`` reports a failure."""
    batched = info.ndim > 0

    def succeeded(codes: np.ndarray) -> None:
        found = failed(codes)
        if found is not None:
            raise kind(place(name, found[0], batched) + text(found[1]))

    n = info._layout.size
    if n:
        launch.check(succeeded, info._data[:n], passes=tuple([(0, k, 0, 0) for k in range(n)]) if n <= FEW else ())
