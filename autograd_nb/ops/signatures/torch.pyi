"""The ops that are offered under ``torch``. Written by `make stubs` from the table of ops: change the op, not this file."""

from collections.abc import Callable, Iterator, Sequence
from types import ModuleType
from typing import Any, Literal, Self, overload

from autograd_nb.dtypes import dtype as _dtype
from autograd_nb.ops.creation.device import device as _device
from autograd_nb.ops.creation.device import layout as _layout
from autograd_nb.ops.creation.device import memory_format as _memory_format
from autograd_nb.ops.creation.storages import TypedStorage, UntypedStorage
from autograd_nb.ops.random.generator import Generator
from autograd_nb.ops.signatures import return_types as _return_types
from autograd_nb.shapes import Size
from autograd_nb.tensor import Tensor
from autograd_nb.types import Device, Number, _Array, _bool, _complex, _float, _Holds, _int, _size, _str

def __matmul__(input: Tensor, other: Tensor | Number | _complex) -> Tensor:
    """Return the product of vectors, matrices and batches of them; batch dims broadcast."""

def __pos__(input: Tensor) -> Tensor:
    """Return the tensor itself. RuntimeError for booleans."""

def _dirichlet_grad(x: Tensor, alpha: _float, total: Tensor) -> Tensor:
    """Return how fast x of a beta distribution with the parameters alpha and total − alpha moves with alpha, divided by 1 − x."""

def _sample_dirichlet(input: Tensor, generator: Generator | None = None) -> Tensor:
    """Return points of the simplex from Dirichlet's distributions, whose concentrations are along the last dim of ``input``; implicit gradient."""

def _segment_reduce(
    data: Tensor, reduce: _str, *, lengths: Tensor | None = None, indices: Tensor | None = None, offsets: Tensor | None = None,
    axis: _int = 0, unsafe: _bool = False, initial: _float | None = None
) -> Tensor:
    """Reduce runs of ``lengths`` (or between ``offsets``) along ``axis``: 'sum', 'mean', 'prod', 'max', 'min'."""

def _standard_gamma(input: Tensor, generator: Generator | None = None) -> Tensor:
    """Return Gamma numbers of the shapes ``input`` and scale 1; the gradient is that of the sample at a fixed place (implicit)."""

def abs(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """y = |x|, dy/dx = sgn x (0 at 0); complex numbers give real ones."""

def abs_(input: Tensor) -> Tensor:
    """Compute `abs` in place and return the tensor."""

def absolute(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """y = |x|, dy/dx = sgn x (0 at 0); complex numbers give real ones."""

def acos(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """y = arccos x, dy/dx = −1/√(1 − x²)."""

def acos_(input: Tensor) -> Tensor:
    """Compute `acos` in place and return the tensor."""

def acosh(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """y = arcosh x, dy/dx = 1/√(x² − 1)."""

def acosh_(input: Tensor) -> Tensor:
    """Compute `acosh` in place and return the tensor."""

def adaptive_avg_pool1d(input: Tensor, output_size: _int | Sequence[_int]) -> Tensor:
    """Return the mean of each of ``output_size`` nearly equal parts, which shares the gradient evenly."""

@overload
def adaptive_max_pool1d(input: Tensor, output_size: _int | Sequence[_int], return_indices: Literal[False] = False) -> Tensor:
    """Return the largest element of each of ``output_size`` nearly equal parts, to which the gradient goes."""
@overload
def adaptive_max_pool1d(
    input: Tensor, output_size: _int | Sequence[_int], return_indices: Literal[True]
) -> tuple[Tensor, Tensor]:
    """Return the largest element of each of ``output_size`` nearly equal parts, to which the gradient goes."""

def add(input: Tensor, other: Tensor | Number | _complex, *, alpha: _float | None = None, out: Tensor | None = None) -> Tensor:
    """Sum: y = a + alpha·b, dy/da = 1, dy/db = alpha."""

def addbmm(
    input: Tensor, batch1: Tensor, batch2: Tensor, *, beta: _float = 1, alpha: _float = 1, out: Tensor | None = None
) -> Tensor:
    """y = beta·input + alpha·Σᵢ A[i]·B[i]."""

def addcdiv(
    input: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: Number | _complex = 1, out: Tensor | None = None
) -> Tensor:
    """Return x + value·(tensor1 / tensor2), ``value`` a number."""

def addcmul(
    input: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: Number | _complex = 1, out: Tensor | None = None
) -> Tensor:
    """Return x + value·(tensor1 · tensor2), ``value`` a number."""

def addmm(
    input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: _float = 1, alpha: _float = 1, out: Tensor | None = None
) -> Tensor:
    """y = beta·input + alpha·A·B."""

def addmv(input: Tensor, mat: Tensor, vec: Tensor, *, beta: _float = 1, alpha: _float = 1, out: Tensor | None = None) -> Tensor:
    """y = beta·input + alpha·A·v."""

def addr(
    input: Tensor, vec1: Tensor, vec2: Tensor, *, beta: _float = 1, alpha: _float = 1, out: Tensor | None = None
) -> Tensor:
    """y = beta·input + alpha·a⊗b; of booleans with 'or' for the sum and 'and' for products."""

def adjoint(input: Tensor) -> Tensor:
    """Return the conjugate transpose of the last two dims, a view. RuntimeError for 1-D tensors."""

def affine_grid_generator(theta: Tensor, size: _int | _size, align_corners: _bool) -> Tensor:
    """Return `nn.functional.affine_grid` without its checks."""

def alias_copy(input: Tensor, *args: Any, out: Tensor | None = None, **kw: Any) -> Tensor:
    """Return what `alias` does in memory of its own, in C order: what is written to the result leaves the input as it is. Its derivative is that of `alias`."""

def all(
    input: Tensor, dim: _int | Sequence[_int] | None = None, keepdim: _bool = False, *, out: Tensor | None = None
) -> Tensor:
    """Return whether every element is not 0, over ``dim`` or all."""

def allclose(
    input: Tensor, other: Tensor | Number | _complex, rtol: _float = 1e-05, atol: _float = 1e-08, equal_nan: _bool = False
) -> _bool:
    """Return whether `isclose` holds everywhere."""

def alpha_dropout(input: Tensor, p: _float, train: _bool) -> Tensor:
    """Do dropout that keeps mean 0 and variance 1 of SELU networks."""

def alpha_dropout_(input: Tensor, p: _float, train: _bool) -> Tensor:
    """Do dropout that keeps mean 0 and variance 1 of SELU networks."""

def amax(input: Tensor, dim: _int | Sequence[_int] = (), keepdim: _bool = False, *, out: Tensor | None = None) -> Tensor:
    """Return the maximum over ``dim`` (an int or several); ties share the gradient; nan wins."""

def amin(input: Tensor, dim: _int | Sequence[_int] = (), keepdim: _bool = False, *, out: Tensor | None = None) -> Tensor:
    """Return the minimum over ``dim`` (an int or several); ties share the gradient; nan wins."""

def aminmax(
    input: Tensor, *, dim: _int | Sequence[_int] | None = None, keepdim: _bool = False, out: Tensor | None = None
) -> _return_types.aminmax:
    """Return (min, max) over a dim, or over everything."""

def angle(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Return the angle in radians, within [−π, π]; of real numbers 0 or π. The gradient is i·x·g/|x|², 0 at 0."""

def any(
    input: Tensor, dim: _int | Sequence[_int] | None = None, keepdim: _bool = False, *, out: Tensor | None = None
) -> Tensor:
    """Return whether any element is not 0, over ``dim`` or all."""

def arange(
    start: _float | None = None, end: _float | None = None, step: _float = 1, *, out: Tensor | None = None, dtype: _dtype | None
    = None, layout: _layout | None = None, device: Device = None, requires_grad: _bool = False, pin_memory: _bool = False
) -> Tensor:
    """Return start, start + step, … below ``end``; int64 when all numbers are ints. RuntimeError for step 0 or the wrong sign."""

def arccos(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """y = arccos x, dy/dx = −1/√(1 − x²)."""

def arccos_(input: Tensor) -> Tensor:
    """Compute `acos` in place and return the tensor."""

def arccosh(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """y = arcosh x, dy/dx = 1/√(x² − 1)."""

def arccosh_(input: Tensor) -> Tensor:
    """Compute `acosh` in place and return the tensor."""

def arcsin(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """y = arcsin x, dy/dx = 1/√(1 − x²)."""

def arcsin_(input: Tensor) -> Tensor:
    """Compute `asin` in place and return the tensor."""

def arcsinh(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """y = arsinh x, dy/dx = 1/√(x² + 1)."""

def arcsinh_(input: Tensor) -> Tensor:
    """Compute `asinh` in place and return the tensor."""

def arctan(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """y = arctan x, dy/dx = 1/(1 + x²)."""

def arctan2(input: Tensor, other: Tensor | Number | _complex, *, out: Tensor | None = None) -> Tensor:
    """Return the angle of the point (b, a): dy/da = b/(a² + b²), dy/db = −a/(a² + b²)."""

def arctan_(input: Tensor) -> Tensor:
    """Compute `atan` in place and return the tensor."""

def arctanh(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """y = artanh x, dy/dx = 1/(1 − x²)."""

def arctanh_(input: Tensor) -> Tensor:
    """Compute `atanh` in place and return the tensor."""

def argmax(input: Tensor, dim: _int | None = None, keepdim: _bool = False, *, out: Tensor | None = None) -> Tensor:
    """Return the index of the maximum along ``dim`` (the first of several; nan wins), or in the flattened tensor."""

def argmin(input: Tensor, dim: _int | None = None, keepdim: _bool = False, *, out: Tensor | None = None) -> Tensor:
    """Return the index of the minimum along ``dim`` (the first of several; nan wins), or in the flattened tensor."""

def argsort(input: Tensor, dim: _int = -1, descending: _bool = False, *, stable: _bool = False) -> Tensor:
    """Return the indices that sort along ``dim``."""

def argwhere(input: Tensor) -> Tensor:
    """Return `nonzero`, one row per element that is not zero."""

def as_strided(input: Tensor, size: _int | _size, stride: _int | Sequence[_int], storage_offset: _int | None = None) -> Tensor:
    """Return the tensor's memory under any shape and strides (in elements), a view; elements seen twice collect both gradients."""

def as_strided_copy(input: Tensor, *args: Any, out: Tensor | None = None, **kw: Any) -> Tensor:
    """Return what `as_strided` does in memory of its own, in C order: what is written to the result leaves the input as it is. Its derivative is that of `as_strided`."""

def as_strided_scatter(
    input: Tensor, src: Tensor, size: _int | _size, stride: _int | Sequence[_int], storage_offset: _int | None = None
) -> Tensor:
    """Return a copy of ``input`` with ``src`` in place of ``as_strided(size, stride, storage_offset)``; it keeps the strides."""

def as_tensor(
    data: Any, dtype: _dtype | None = None, device: Device = None, *, copy: _bool | None = None, requires_grad: _bool = False
) -> Tensor:
    """Return ``data`` as a tensor, sharing memory where it can (Tensors and arrays of the wanted dtype)."""

def asarray(
    obj: Any, *, dtype: _dtype | None = None, device: Device = None, copy: _bool | None = None, requires_grad: _bool | None =
    None
) -> Tensor:
    """Return a tensor that shares the memory of ``obj`` where it can: a tensor, an array, a capsule, an object with Python's buffer protocol."""

def asin(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """y = arcsin x, dy/dx = 1/√(1 − x²)."""

def asin_(input: Tensor) -> Tensor:
    """Compute `asin` in place and return the tensor."""

def asinh(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """y = arsinh x, dy/dx = 1/√(x² + 1)."""

def asinh_(input: Tensor) -> Tensor:
    """Compute `asinh` in place and return the tensor."""

def atan(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """y = arctan x, dy/dx = 1/(1 + x²)."""

def atan2(input: Tensor, other: Tensor | Number | _complex, *, out: Tensor | None = None) -> Tensor:
    """Return the angle of the point (b, a): dy/da = b/(a² + b²), dy/db = −a/(a² + b²)."""

def atan_(input: Tensor) -> Tensor:
    """Compute `atan` in place and return the tensor."""

def atanh(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """y = artanh x, dy/dx = 1/(1 − x²)."""

def atanh_(input: Tensor) -> Tensor:
    """Compute `atanh` in place and return the tensor."""

@overload
def atleast_1d(tensor: Tensor, /) -> Tensor:
    """Return views with at least 1 dim; of several tensors a tuple."""
@overload
def atleast_1d(tensors: Sequence[Tensor], /) -> tuple[Tensor, ...]:
    """Return views with at least 1 dim; of several tensors a tuple."""
@overload
def atleast_1d(tensor: Tensor, other: Tensor, /, *tensors: Tensor) -> tuple[Tensor, ...]:
    """Return views with at least 1 dim; of several tensors a tuple."""

@overload
def atleast_2d(tensor: Tensor, /) -> Tensor:
    """Return views with at least 2 dims; of several tensors a tuple."""
@overload
def atleast_2d(tensors: Sequence[Tensor], /) -> tuple[Tensor, ...]:
    """Return views with at least 2 dims; of several tensors a tuple."""
@overload
def atleast_2d(tensor: Tensor, other: Tensor, /, *tensors: Tensor) -> tuple[Tensor, ...]:
    """Return views with at least 2 dims; of several tensors a tuple."""

@overload
def atleast_3d(tensor: Tensor, /) -> Tensor:
    """Return views with at least 3 dims; of several tensors a tuple."""
@overload
def atleast_3d(tensors: Sequence[Tensor], /) -> tuple[Tensor, ...]:
    """Return views with at least 3 dims; of several tensors a tuple."""
@overload
def atleast_3d(tensor: Tensor, other: Tensor, /, *tensors: Tensor) -> tuple[Tensor, ...]:
    """Return views with at least 3 dims; of several tensors a tuple."""

def avg_pool1d(
    input: Tensor, kernel_size: _int | Sequence[_int], stride: _int | Sequence[_int] | None = None, padding: _int |
    Sequence[_int] = 0, ceil_mode: _bool = False, count_include_pad: _bool = True
) -> Tensor:
    """Return the mean of each window, which shares the gradient evenly."""

def baddbmm(
    input: Tensor, batch1: Tensor, batch2: Tensor, *, beta: _float = 1, alpha: _float = 1, out: Tensor | None = None
) -> Tensor:
    """y[i] = beta·input[i] + alpha·A[i]·B[i]."""

def bartlett_window(
    window_length: _int, periodic: _bool = True, *, dtype: _dtype | None = None, layout: _layout | None = None, device: Device =
    None, requires_grad: _bool = False, pin_memory: _bool = False
) -> Tensor:
    """Return a triangle from 0 up to 1 and down."""

def batch_norm(
    input: Tensor, running_mean: Tensor | None, running_var: Tensor | None, weight: Tensor | None = None, bias: Tensor | None =
    None, training: _bool = False, momentum: _float = 0.1, eps: _float = 1e-05, cudnn_enabled: _bool = True
) -> Tensor:
    """Return (x − mean)/√(var + eps)·weight + bias per channel (dim 1)."""

def bernoulli(
    input: Tensor, p: Tensor | _float | None = None, *, generator: Generator | None = None, out: Tensor | None = None
) -> Tensor:
    """Return 1 with the probability that the element of ``input`` gives (or ``p`` for all), else 0. Its gradient is 0."""

def bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """y[…, o] = x₁ᵀ·W[o]·x₂ + b[o] over the last dims."""

def bincount(input: Tensor, weights: Tensor | None = None, minlength: _int = 0) -> Tensor:
    """Return how often each non-negative integer of a 1-d tensor occurs, or the sum of ``weights`` there; no gradient. RuntimeError otherwise."""

def binomial(count: _int, prob: Tensor, generator: Generator | None = None) -> Tensor:
    """Return binomial numbers: successes in ``count`` trials of probability ``prob`` (tensors that broadcast), of count's dtype."""

def bitwise_and(input: Tensor, other: Tensor | Number | _complex, *, out: Tensor | None = None) -> Tensor:
    """Return the bitwise and of integers and booleans. NotImplementedError for others."""

def bitwise_left_shift(input: Tensor, other: Tensor | Number | _complex, *, out: Tensor | None = None) -> Tensor:
    """Return a·2ᵇ of integers, 0 where b is not a place of their bits. NotImplementedError for others."""

def bitwise_not(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Return every bit inverted; ``not`` for booleans. NotImplementedError for floats."""

def bitwise_or(input: Tensor, other: Tensor | Number | _complex, *, out: Tensor | None = None) -> Tensor:
    """Return the bitwise or of integers and booleans. NotImplementedError for others."""

def bitwise_right_shift(input: Tensor, other: Tensor | Number | _complex, *, out: Tensor | None = None) -> Tensor:
    """Return ⌊a/2ᵇ⌋ of integers, the sign where b is no place of theirs. NotImplementedError for others."""

def bitwise_xor(input: Tensor, other: Tensor | Number | _complex, *, out: Tensor | None = None) -> Tensor:
    """Return the bitwise exclusive or of integers and booleans. NotImplementedError for others."""

def blackman_window(
    window_length: _int, periodic: _bool = True, *, dtype: _dtype | None = None, layout: _layout | None = None, device: Device =
    None, requires_grad: _bool = False, pin_memory: _bool = False
) -> Tensor:
    """Return 0.42 − 0.5·cos(2πi/n) + 0.08·cos(4πi/n)."""

def block_diag(*tensors: Tensor) -> Tensor:
    """Return a matrix with the given ones (at most 2-d) on its diagonal and zeros elsewhere."""

def bmm(input: Tensor, mat2: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Products of two batches of matrices: y[i] = A[i]·B[i]."""

def broadcast_shapes(*shapes: _int | Sequence[_int]) -> Size:
    """Return the shape that these shapes broadcast to. RuntimeError where they do not."""

def broadcast_tensors(*tensors: Tensor) -> tuple[Tensor, ...]:
    """Return the tensors expanded to their common shape."""

def broadcast_to(input: Tensor, size: _int | _size) -> Tensor:
    """Return ``expand`` under its NumPy name."""

def bucketize(
    input: Tensor | _float, boundaries: Tensor, *, out_int32: _bool = False, right: _bool = False, out: Tensor | None = None
) -> Tensor:
    """Return the bucket of each value between sorted 1-d ``boundaries``."""

def can_cast(from_: _dtype, to: _dtype) -> _bool:
    """Return whether a result of one dtype may be written into a tensor of the other: kinds only go up (bool, integer, float, complex)."""

def cartesian_prod(*tensors: Tensor) -> Tensor:
    """Return all combinations of the elements of 1-d tensors as rows. Gradients add up."""

def cat(tensors: Sequence[Tensor], dim: _int = 0, *, axis: _int | None = None, out: Tensor | None = None) -> Tensor:
    """Join tensors along ``dim``; other sizes must be equal. dtypes are promoted."""

def cdist(x1: Tensor, x2: Tensor, p: _float = 2.0, compute_mode: _str = 'use_mm_for_euclid_dist_if_necessary') -> Tensor:
    """Return the distances ‖x1[…, i, :] − x2[…, j, :]‖ₚ of all pairs of rows: (…, P, M), (…, R, M) → (…, P, R); batch dims broadcast."""

def ceil(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Return the smallest integer ≥ x; the gradient is 0."""

def ceil_(input: Tensor) -> Tensor:
    """Compute `ceil` in place and return the tensor."""

def celu(input: Tensor, alpha: _float = 1.0, inplace: _bool = False) -> Tensor:
    """Return max(0, x) + min(0, alpha·(e^(x/alpha) − 1)); dy/dx = 1 for x > 0, else e^(x/alpha)."""

def celu_(input: Tensor, alpha: _float = 1.0) -> Tensor:
    """Compute `celu` in place and return the tensor."""

def chain_matmul(*matrices: Tensor, out: Tensor | None = None) -> Tensor:
    """Return the product of matrices in the order of fewest multiplications: the older form of `linalg.multi_dot`."""

def channel_shuffle(input: Tensor, groups: _int) -> Tensor:
    """Return the channels (dim 1) of ``groups`` groups, taken in turn; the gradient is put back. RuntimeError unless they divide by it."""

def cholesky(input: Tensor, upper: _bool = False, *, out: Tensor | None = None) -> Tensor:
    """Return `linalg.cholesky`, its older name."""

def cholesky_inverse(L: Tensor, upper: _bool = False, *, out: Tensor | None = None) -> Tensor:
    """Return A⁻¹, given the Cholesky factor of A (…, n, n)."""

def cholesky_solve(B: Tensor, L: Tensor, upper: _bool = False, *, out: Tensor | None = None) -> Tensor:
    """X with A·X = B, given the Cholesky factor of A: B (…, n, k), L (…, n, n), batches broadcast."""

def chunk(input: Tensor, chunks: _int, dim: _int = 0) -> tuple[Tensor, ...]:
    """Return at most ``chunks`` views of equal size (the last may be smaller) along ``dim``."""

def clamp(
    input: Tensor, min: Tensor | Number | _complex | None = None, max: Tensor | Number | _complex | None = None, *, out: Tensor
    | None = None
) -> Tensor:
    """Return x kept within [min, max] (numbers or tensors); dy/dx = 1 inside and at the edges, else 0."""

def clamp_(
    input: Tensor, min: Tensor | Number | _complex | None = None, max: Tensor | Number | _complex | None = None
) -> Tensor:
    """Compute `clamp` in place and return the tensor."""

def clamp_max(input: Tensor, max: Tensor | Number | _complex, *, out: Tensor | None = None) -> Tensor:
    """Return x kept at or below ``max``; dy/dx = 1 for x ≤ max, else 0."""

def clamp_max_(input: Tensor, max: Tensor | Number | _complex) -> Tensor:
    """Compute `clamp_max` in place and return the tensor."""

def clamp_min(input: Tensor, min: Tensor | Number | _complex, *, out: Tensor | None = None) -> Tensor:
    """Return x kept at or above ``min``."""

def clamp_min_(input: Tensor, min: Tensor | Number | _complex) -> Tensor:
    """Compute `clamp_min` in place and return the tensor."""

def clip(
    input: Tensor, min: Tensor | Number | _complex | None = None, max: Tensor | Number | _complex | None = None, *, out: Tensor
    | None = None
) -> Tensor:
    """Return x kept within [min, max] (numbers or tensors); dy/dx = 1 inside and at the edges, else 0."""

def clip_(
    input: Tensor, min: Tensor | Number | _complex | None = None, max: Tensor | Number | _complex | None = None
) -> Tensor:
    """Compute `clamp` in place and return the tensor."""

def clone(input: Tensor, *, memory_format: _memory_format | None = None) -> Tensor:
    """Return a copy in memory of its own, with the same order of dims unless ``memory_format`` says another; dy/dx = 1."""

def column_stack(tensors: Sequence[Tensor], *, out: Tensor | None = None) -> Tensor:
    """Join as columns, 1-d tensors as one each."""

def combinations(input: Tensor, r: _int = 2, with_replacement: _bool = False) -> Tensor:
    """Return all ways to choose ``r`` elements of a 1-d tensor, one a row, in order. Gradients add up."""

def complex(real: Tensor, imag: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Return the complex tensor real + i·imag; the operands broadcast and have one dtype."""

def concat(tensors: Sequence[Tensor], dim: _int = 0, *, axis: _int | None = None, out: Tensor | None = None) -> Tensor:
    """Join tensors along ``dim``; other sizes must be equal. dtypes are promoted."""

def concatenate(tensors: Sequence[Tensor], dim: _int = 0, *, axis: _int | None = None, out: Tensor | None = None) -> Tensor:
    """Join tensors along ``dim``; other sizes must be equal. dtypes are promoted."""

def conj(input: Tensor) -> Tensor:
    """Return the complex conjugate, a view; a real tensor is its own. The gradient is conj(g)."""

def conj_physical(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Return the complex conjugate in memory of its own; a real tensor is its own; dx = conj(g)."""

def conj_physical_(input: Tensor) -> Tensor:
    """Compute `conj_physical` in place and return the tensor."""

def constant_pad_nd(input: Tensor, pad: Sequence[_int], value: Number | _complex = 0) -> Tensor:
    """Return `nn.functional.pad` with a constant."""

def conv1d(
    input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: _int | Sequence[_int] = 1, padding: _int | Sequence[_int]
    = 0, dilation: _int | Sequence[_int] = 1, groups: _int = 1
) -> Tensor:
    """y[n, o] = b[o] + Σ w[o, c, …]·x[n, c, …] over the 1-D window, per group."""

def conv2d(
    input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: _int | Sequence[_int] = 1, padding: _int | Sequence[_int]
    = 0, dilation: _int | Sequence[_int] = 1, groups: _int = 1
) -> Tensor:
    """y[n, o] = b[o] + Σ w[o, c, …]·x[n, c, …] over the 2-D window, per group."""

def conv3d(
    input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: _int | Sequence[_int] = 1, padding: _int | Sequence[_int]
    = 0, dilation: _int | Sequence[_int] = 1, groups: _int = 1
) -> Tensor:
    """y[n, o] = b[o] + Σ w[o, c, …]·x[n, c, …] over the 3-D window, per group."""

def conv_tbc(input: Tensor, weight: Tensor, bias: Tensor, pad: _int = 0) -> Tensor:
    """Return conv1d of (time, batch, channels) by ``weight`` (width, inputs, outputs) and ``bias`` (outputs): (time, batch, outputs)."""

def conv_transpose1d(
    input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: _int | Sequence[_int] = 1, padding: _int | Sequence[_int]
    = 0, output_padding: _int | Sequence[_int] = 0, groups: _int = 1, dilation: _int | Sequence[_int] = 1
) -> Tensor:
    """Return the transpose of conv1d: what is its gradient by the input, with a bias."""

def conv_transpose2d(
    input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: _int | Sequence[_int] = 1, padding: _int | Sequence[_int]
    = 0, output_padding: _int | Sequence[_int] = 0, groups: _int = 1, dilation: _int | Sequence[_int] = 1
) -> Tensor:
    """Return the transpose of conv2d: what is its gradient by the input, with a bias."""

def conv_transpose3d(
    input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: _int | Sequence[_int] = 1, padding: _int | Sequence[_int]
    = 0, output_padding: _int | Sequence[_int] = 0, groups: _int = 1, dilation: _int | Sequence[_int] = 1
) -> Tensor:
    """Return the transpose of conv3d: what is its gradient by the input, with a bias."""

def copysign(input: Tensor, other: Tensor | Number | _complex, *, out: Tensor | None = None) -> Tensor:
    """Return |a| with the sign of b."""

def corrcoef(input: Tensor) -> Tensor:
    """Return the matrix of Pearson's correlation coefficients of the rows, kept within [−1, 1]."""

def cos(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """y = cos x, dy/dx = −sin x."""

def cos_(input: Tensor) -> Tensor:
    """Compute `cos` in place and return the tensor."""

def cosh(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """y = cosh x, dy/dx = sinh x."""

def cosh_(input: Tensor) -> Tensor:
    """Compute `cosh` in place and return the tensor."""

def cosine_embedding_loss(
    input1: Tensor, input2: Tensor, target: Tensor, margin: _float = 0.0, size_average: _bool | None = None, reduce: _str | None
    = None, reduction: _str = 'mean'
) -> Tensor:
    """Return 1 − cos(x₁, x₂) where the target is 1, max(0, cos(x₁, x₂) − margin) where it is −1."""

def cosine_similarity(x1: Tensor, x2: Tensor, dim: _int = 1, eps: _float = 1e-08) -> Tensor:
    """Return x₁·x₂/(max(‖x₁‖, eps)·max(‖x₂‖, eps)) along ``dim`` of the broadcast inputs."""

def count_nonzero(input: Tensor, dim: _int | Sequence[_int] | None = None) -> Tensor:
    """Return how many elements are not 0, over ``dim`` or all."""

def cov(input: Tensor, *, correction: _int = 1, fweights: Tensor | None = None, aweights: Tensor | None = None) -> Tensor:
    """Return the covariance matrix of the rows (variables) over the columns (observations)."""

def cross(input: Tensor, other: Tensor | Number | _complex, dim: _int | None = None, *, out: Tensor | None = None) -> Tensor:
    """Return `linalg.cross` along ``dim``, the first dim of size 3 if not given."""

def ctc_loss(
    log_probs: Tensor, targets: Tensor, input_lengths: Tensor | Sequence[_int], target_lengths: Tensor | Sequence[_int], blank:
    _int = 0, reduction: _int = 1, zero_infinity: _bool = False
) -> Tensor:
    """Return `nn.functional.ctc_loss` with reductions as numbers: 0 none, 1 mean, 2 sum."""

def cummax(input: Tensor, dim: _int, *, out: Tensor | None = None) -> _return_types.cummax:
    """Return (values, indices) of the maximum so far along ``dim``; the last index of several; nan wins."""

def cummin(input: Tensor, dim: _int, *, out: Tensor | None = None) -> _return_types.cummin:
    """Return (values, indices) of the minimum so far along ``dim``; the last index of several; nan wins."""

def cumprod(input: Tensor, dim: _int, *, dtype: _dtype | None = None, out: Tensor | None = None) -> Tensor:
    """yₖ = x₀ · … · xₖ along ``dim``; integers give int64. The gradient is right where elements are 0."""

def cumsum(input: Tensor, dim: _int, *, dtype: _dtype | None = None, out: Tensor | None = None) -> Tensor:
    """yₖ = x₀ + … + xₖ along ``dim``; integers give int64; dL/dx is the running sum of g from the end."""

def cumulative_trapezoid(y: Tensor, x: Tensor | None = None, *, dx: _float = 1, dim: _int = -1) -> Tensor:
    """Return the running area under ``y`` along ``dim`` by trapezoids."""

def deg2rad(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """y = x·π/180."""

def deg2rad_(input: Tensor) -> Tensor:
    """Compute `deg2rad` in place and return the tensor."""

def det(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Return the determinants of square matrices (…, n, n) → (…); dA = g·det(A)·A⁻ᴴ, the matrix of cofactors where A is singular."""

def detach(input: Tensor) -> Tensor:
    """Return the same memory without a history."""

def detach_copy(input: Tensor, *args: Any, out: Tensor | None = None, **kw: Any) -> Tensor:
    """Return what `detach` does in memory of its own, in C order: what is written to the result leaves the input as it is. Its derivative is that of `detach`."""

def diag(input: Tensor, diagonal: _int = 0, *, out: Tensor | None = None) -> Tensor:
    """Return a matrix with a 1-d tensor on its diagonal, or the diagonal of a matrix. RuntimeError for other ranks."""

def diag_embed(input: Tensor, offset: _int = 0, dim1: _int = -2, dim2: _int = -1) -> Tensor:
    """Return matrices with the last dim on diagonal ``offset`` and zeros elsewhere."""

def diagflat(input: Tensor, offset: _int = 0) -> Tensor:
    """Return a matrix with all elements on its diagonal."""

def diagonal(input: Tensor, offset: _int = 0, dim1: _int = 0, dim2: _int = 1) -> Tensor:
    """Return the diagonal of each matrix in dims ``dim1``, ``dim2`` as a view, in a new last dim."""

def diagonal_copy(input: Tensor, *args: Any, out: Tensor | None = None, **kw: Any) -> Tensor:
    """Return what `diagonal` does in memory of its own, in C order: what is written to the result leaves the input as it is. Its derivative is that of `diagonal`."""

def diagonal_scatter(input: Tensor, src: Tensor, offset: _int = 0, dim1: _int = 0, dim2: _int = 1) -> Tensor:
    """Return a copy of ``input`` with ``src`` in place of ``diagonal(offset, dim1, dim2)``."""

def diff(
    input: Tensor, n: _int = 1, dim: _int = -1, prepend: Tensor | None = None, append: Tensor | None = None, *, out: Tensor |
    None = None
) -> Tensor:
    """Return the n-th difference along ``dim``: yₖ = xₖ₊₁ − xₖ, with ``prepend`` and ``append`` joined on first."""

def digamma(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """y = ψ(x) = Γ'(x)/Γ(x); dy/dx = the trigamma function. nan at negative integers, ∓∞ at ±0."""

def dist(input: Tensor, other: Tensor | Number | _complex, p: _float = 2) -> Tensor:
    """Return the p-norm of input − other."""

def div(
    input: Tensor, other: Tensor | Number | _complex, *, rounding_mode: _str | None = None, out: Tensor | None = None
) -> Tensor:
    """Quotient: y = a/b, dy/da = 1/b, dy/db = −a/b²; integers give floats. ``rounding_mode`` 'trunc' or 'floor' rounds."""

def divide(
    input: Tensor, other: Tensor | Number | _complex, *, rounding_mode: _str | None = None, out: Tensor | None = None
) -> Tensor:
    """Quotient: y = a/b, dy/da = 1/b, dy/db = −a/b²; integers give floats. ``rounding_mode`` 'trunc' or 'floor' rounds."""

def dot(input: Tensor, tensor: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Inner product of two vectors: y = Σ aᵢbᵢ."""

def dropout(input: Tensor, p: _float, train: _bool) -> Tensor:
    """Zero elements with probability ``p`` while training, and divide the others by 1 - p."""

def dropout_(input: Tensor, p: _float, train: _bool) -> Tensor:
    """Zero elements with probability ``p`` while training, and divide the others by 1 - p."""

def dsplit(input: Tensor, indices_or_sections: _int | Sequence[_int] | Tensor) -> tuple[Tensor, ...]:
    """Return the `tensor_split` along dim 2 into equal parts or at indices. RuntimeError if uneven."""

def dstack(tensors: Sequence[Tensor], *, out: Tensor | None = None) -> Tensor:
    """Join along dim 2."""

def einsum(*args: Any) -> Tensor:
    """Sums of products named by subscripts: ``einsum('bij,bjk->bik', a, b)`` is y[b, i, k] = Σⱼ a[b, i, j]·b[b, j, k]."""

def embedding(
    weight: Tensor, indices: Tensor, padding_idx: _int = -1, scale_grad_by_freq: _bool = False, sparse: _bool = False
) -> Tensor:
    """Return `nn.functional.embedding` with the table first; a ``padding_idx`` of −1 is none."""

def empty(
    *args: Any, size: _int | _size | None = None, out: Tensor | None = None, dtype: _dtype | None = None, layout: _layout | None
    = None, device: Device = None, requires_grad: _bool = False, pin_memory: _bool = False, memory_format: _memory_format | None
    = None
) -> Tensor:
    """Return a tensor of ``size`` filled with whatever was in memory, of the default dtype or ``dtype``."""

def empty_like(
    input: Tensor, *, dtype: _dtype | None = None, device: Device = None, requires_grad: _bool = False, layout: _layout | None =
    None, memory_format: _memory_format | None = None, pin_memory: _bool = False
) -> Tensor:
    """Return what `empty` does with the shape and dtype of another tensor."""

def empty_permuted(
    size: _int | _size, physical_layout: _int | _size, *, dtype: _dtype | None = None, layout: _layout | None = None, device:
    Device = None, requires_grad: _bool = False, pin_memory: _bool = False
) -> Tensor:
    """Return uninitialised memory of shape ``size`` whose dims lie in memory in the order ``physical_layout``, outermost first."""

def empty_strided(
    size: _int | _size, stride: _int | Sequence[_int], *, dtype: _dtype | None = None, layout: _layout | None = None, device:
    Device = None, requires_grad: _bool = False, pin_memory: _bool = False
) -> Tensor:
    """Return uninitialised memory under given strides. RuntimeError for negative ones, and where there is not one for each size."""

def eq(input: Tensor, other: Tensor | Number | _complex, *, out: Tensor | None = None) -> Tensor:
    """Return whether a = b, element by element."""

def equal(input: Tensor, other: Tensor | Number | _complex) -> _bool:
    """Return whether two tensors have the same shape and elements."""

def erf(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """y = 2/√π ∫₀ˣ e^(−t²) dt, dy/dx = 2/√π · e^(−x²)."""

def erf_(input: Tensor) -> Tensor:
    """Compute `erf` in place and return the tensor."""

def erfc(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """y = 1 − erf x, without the loss of digits for large x."""

def erfc_(input: Tensor) -> Tensor:
    """Compute `erfc` in place and return the tensor."""

def erfinv(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Return the inverse of `erf` on [−1, 1]; dy/dx = √π/2 · e^(y²), with y found again, so that it may be changed in between."""

def exp(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """y = eˣ, dy/dx = y."""

def exp2(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """y = 2ˣ, dy/dx = y·ln 2."""

def exp2_(input: Tensor) -> Tensor:
    """Compute `exp2` in place and return the tensor."""

def exp_(input: Tensor) -> Tensor:
    """Compute `exp` in place and return the tensor."""

def expand_copy(input: Tensor, *args: Any, out: Tensor | None = None, **kw: Any) -> Tensor:
    """Return what `expand` does in memory of its own, in C order: what is written to the result leaves the input as it is. Its derivative is that of `expand`."""

def expm1(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """y = eˣ − 1, without the loss of digits near 0; dy/dx = y + 1."""

def expm1_(input: Tensor) -> Tensor:
    """Compute `expm1` in place and return the tensor."""

def eye(
    n: _int, m: _int | None = None, *, out: Tensor | None = None, dtype: _dtype | None = None, layout: _layout | None = None,
    device: Device = None, requires_grad: _bool = False, pin_memory: _bool = False
) -> Tensor:
    """Return an n × m matrix with ones on the diagonal."""

def feature_alpha_dropout(input: Tensor, p: _float, train: _bool) -> Tensor:
    """Do alpha dropout of whole channels."""

def feature_alpha_dropout_(input: Tensor, p: _float, train: _bool) -> Tensor:
    """Do alpha dropout of whole channels."""

def feature_dropout(input: Tensor, p: _float, train: _bool) -> Tensor:
    """Do dropout of whole channels."""

def feature_dropout_(input: Tensor, p: _float, train: _bool) -> Tensor:
    """Do dropout of whole channels."""

def fill(input: Tensor, value: Tensor | _float) -> Tensor:
    """Return a tensor like the input, every element ``value`` (a number or a 0-d tensor, which gets the sum of the gradients)."""

def fill_(input: Tensor, value: Tensor | _float) -> Tensor:
    """Overwrite every element with ``value``, a number or a 0-d tensor."""

def fix(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Return x without its fraction; the gradient is 0."""

def fix_(input: Tensor) -> Tensor:
    """Compute `trunc` in place and return the tensor."""

def flatten(input: Tensor, start_dim: _int = 0, end_dim: _int = -1) -> Tensor:
    """Merge the dims from ``start_dim`` to ``end_dim`` into one."""

def flip(input: Tensor, *axes: _int | Sequence[_int], dims: _int | Sequence[_int] | None = None) -> Tensor:
    """Return the elements in reverse order along each of ``dims``, copied. RuntimeError for a dim named twice."""

def fliplr(input: Tensor) -> Tensor:
    """Return `flip` of dim 1. RuntimeError for fewer than 2 dims."""

def flipud(input: Tensor) -> Tensor:
    """Return `flip` of dim 0. RuntimeError for 0-d tensors."""

def float_power(input: Tensor | _float, exponent: Tensor | Number | _complex, *, out: Tensor | None = None) -> Tensor:
    """Return `pow` in float64, or complex128 where an operand is complex."""

def floor(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Return the largest integer ≤ x; the gradient is 0."""

def floor_(input: Tensor) -> Tensor:
    """Compute `floor` in place and return the tensor."""

def floor_divide(input: Tensor, other: Tensor | Number | _complex, *, out: Tensor | None = None) -> Tensor:
    """y = ⌊a/b⌋; no gradient. RuntimeError for integers by zero."""

def fmax(input: Tensor, other: Tensor | Number | _complex, *, out: Tensor | None = None) -> Tensor:
    """Return max(a, b), the other one where one is nan."""

def fmin(input: Tensor, other: Tensor | Number | _complex, *, out: Tensor | None = None) -> Tensor:
    """Return min(a, b), the other one where one is nan."""

def fmod(input: Tensor, other: Tensor | Number | _complex, *, out: Tensor | None = None) -> Tensor:
    """Remainder with the sign of the dividend: y = a − b·trunc(a/b)."""

def frac(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Return the fraction of x, with its sign: y = x − trunc x, dy/dx = 1."""

def frac_(input: Tensor) -> Tensor:
    """Compute `frac` in place and return the tensor."""

def frexp(input: Tensor, *, out: Tensor | None = None) -> _return_types.frexp:
    """Return (mantissa, exponent) with x = mantissa·2^exponent, ½ ≤ |mantissa| < 1, the exponent an int32; 0, ±∞ and nan have exponent 0."""

def from_dlpack(ext_tensor: Any, *, device: Device = None, copy: _bool | None = None) -> Tensor:
    """Return a tensor that shares the memory of any object with ``__dlpack__``, or that of a capsule."""

def from_numpy(ndarray: _Array) -> Tensor:
    """Return a tensor that shares the memory of a NumPy array."""

def frombuffer(buffer: Any, *, dtype: _dtype, count: _int = -1, offset: _int = 0, requires_grad: _bool = False) -> Tensor:
    """Return a 1-D tensor reading the memory of an object with Python's buffer protocol. ValueError when it does not fit."""

def full(
    size: _int | _size, fill_value: Number | _complex, *, out: Tensor | None = None, dtype: _dtype | None = None, layout:
    _layout | None = None, device: Device = None, requires_grad: _bool = False, pin_memory: _bool = False
) -> Tensor:
    """Return a tensor of ``size`` filled with one number; its dtype follows the number."""

def full_like(
    input: Tensor, fill_value: Number | _complex, *, dtype: _dtype | None = None, layout: _layout | None = None, device: Device
    = None, requires_grad: _bool = False, memory_format: _memory_format | None = None, pin_memory: _bool = False
) -> Tensor:
    """Return `full` with the shape, dtype and order of dims of another tensor."""

def gather(input: Tensor, dim: _int, index: Tensor, *, sparse_grad: _bool = False, out: Tensor | None = None) -> Tensor:
    """y[i, j, k] = x[index[i, j, k], j, k] (for dim 0): one element for each index; the gradient is scattered back and added."""

def gcd(input: Tensor, other: Tensor | Number | _complex, *, out: Tensor | None = None) -> Tensor:
    """Return the greatest common divisor of integers. NotImplementedError for others."""

def gcd_(input: Tensor, other: Tensor | Number | _complex) -> Tensor:
    """Compute `gcd` in place and return the tensor."""

def ge(input: Tensor, other: Tensor | Number | _complex, *, out: Tensor | None = None) -> Tensor:
    """Return whether a ≥ b, element by element."""

def geqrf(input: Tensor, *, out: Tensor | None = None) -> _return_types.geqrf:
    """Return (a, tau): R in the upper triangle of a, and below it the vectors of the reflections whose product is Q; see `linalg.qr`."""

def ger(input: Tensor, vec2: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Outer product of two vectors: y[i, j] = aᵢ·bⱼ."""

def get_default_device() -> _device:
    """Return where tensors are made if no device is named."""

def get_device(input: Tensor) -> _int:
    """Return −1, which stands for the CPU."""

def get_device_module(device_name: _str | None = None) -> Any:
    """Raise RuntimeError for anything but the CPU, which has no module of its own."""

def get_rng_state() -> Tensor:
    """Return the state of the default generator, as a uint8 tensor."""

def gradient(
    input: Tensor, *, spacing: _float | Sequence[_float | Tensor] | None = None, dim: _int | Sequence[_int] | None = None,
    edge_order: _int = 1
) -> tuple[Tensor, ...]:
    """Return the derivative of sampled values along each of ``dim`` (default all): a tuple of tensors shaped as the input."""

def greater(input: Tensor, other: Tensor | Number | _complex, *, out: Tensor | None = None) -> Tensor:
    """Return whether a > b, element by element."""

def greater_equal(input: Tensor, other: Tensor | Number | _complex, *, out: Tensor | None = None) -> Tensor:
    """Return whether a ≥ b, element by element."""

def grid_sampler(input: Tensor, grid: Tensor, interpolation_mode: _str, padding_mode: _str, align_corners: _bool) -> Tensor:
    """Return `nn.functional.grid_sample` with modes as numbers, in the order in which it lists them."""

def grid_sampler_2d(input: Tensor, grid: Tensor, interpolation_mode: _str, padding_mode: _str, align_corners: _bool) -> Tensor:
    """Return `nn.functional.grid_sample` with modes as numbers, in the order in which it lists them."""

def grid_sampler_3d(input: Tensor, grid: Tensor, interpolation_mode: _str, padding_mode: _str, align_corners: _bool) -> Tensor:
    """Return `nn.functional.grid_sample` with modes as numbers, in the order in which it lists them."""

def group_norm(
    input: Tensor, num_groups: _int, weight: Tensor | None = None, bias: Tensor | None = None, eps: _float = 1e-05,
    cudnn_enabled: _bool = True
) -> Tensor:
    """Return (x − mean)/√(var + eps)·weight + bias, the statistics over each of ``num_groups`` groups of channels of a sample."""

def gru(input: Tensor, hx: Tensor, *args: Any, **kwargs: Any) -> tuple[Tensor, Tensor]:
    """Run layers of GRU: r, z = σ(W x + U h + b), n = tanh(W x + b + r·(U h + b)), h' = (1 − z)·n + z·h."""

def gru_cell(
    input: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None = None, b_hh: Tensor | None = None
) -> Tensor:
    """Run one step of GRU: r, z = σ(W x + U h + b), n = tanh(W x + b + r·(U h + b)), h' = (1 − z)·n + z·h."""

def gt(input: Tensor, other: Tensor | Number | _complex, *, out: Tensor | None = None) -> Tensor:
    """Return whether a > b, element by element."""

def hamming_window(
    window_length: _int, periodic: _bool = True, alpha: _float = 0.54, beta: _float = 0.46, *, dtype: _dtype | None = None,
    layout: _layout | None = None, device: Device = None, requires_grad: _bool = False, pin_memory: _bool = False
) -> Tensor:
    """Return alpha − beta·cos(2πi/n). ``periodic``: the first n of n + 1 symmetric points, as spectra want them."""

def hann_window(
    window_length: _int, periodic: _bool = True, *, dtype: _dtype | None = None, layout: _layout | None = None, device: Device =
    None, requires_grad: _bool = False, pin_memory: _bool = False
) -> Tensor:
    """Return sin²(πi/n)."""

def hardshrink(input: Tensor, lambd: _float = 0.5, *, out: Tensor | None = None) -> Tensor:
    """Return x where |x| > lambd, else 0; dy/dx = 1 there, else 0."""

def hash_tensor(
    input: Tensor, dim: _int | Sequence[_int] = (), *, keepdim: _bool = False, mode: _int = 0, out: Tensor | None = None
) -> Tensor:
    """Return the exclusive or of the bits of all elements, or of those along ``dim``, each as float64 or int64, in uint64."""

def heaviside(input: Tensor, values: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Return 0 for x < 0, ``values`` at 0, 1 for x > 0; no gradient. RuntimeError when the dtypes differ."""

def hinge_embedding_loss(
    input: Tensor, target: Tensor, margin: _float = 1.0, size_average: _bool | None = None, reduce: _str | None = None,
    reduction: _str = 'mean'
) -> Tensor:
    """Return x where the target is 1 (dL/dx = 1), max(0, margin − x) where it is −1 (dL/dx = −1, or 0)."""

def histc(input: Tensor, bins: _int = 100, min: _float = 0, max: _float = 0, *, out: Tensor | None = None) -> Tensor:
    """Return how many elements fall into each of ``bins`` equal bins from min to max (from the data where both are 0)."""

def histogram(
    input: Tensor, bins: _int | Sequence[_int] | Tensor | Sequence[Tensor] = 100, *, range: Sequence[_float] | None = None,
    weight: Tensor | None = None, density: _bool = False, out: Tensor | None = None
) -> _return_types.histogram:
    """Return (hist, bin_edges): how many elements (or how much ``weight``) fall into each bin; ``density``: so that the integral is 1."""

def histogramdd(
    input: Tensor, bins: _int | Sequence[_int] | Tensor | Sequence[Tensor], *, range: Sequence[_float] | None = None, weight:
    Tensor | None = None, density: _bool = False
) -> _return_types.histogramdd:
    """Return (hist, bin_edges) of rows of D numbers: a D-dimensional `histogram`, and the tuple of the edges along each dim."""

def hsplit(input: Tensor, indices_or_sections: _int | Sequence[_int] | Tensor) -> tuple[Tensor, ...]:
    """Return the `tensor_split` along dim 1 into equal parts or at indices. RuntimeError if uneven."""

def hstack(tensors: Sequence[Tensor], *, out: Tensor | None = None) -> Tensor:
    """Join along dim 1 (1-d tensors along dim 0)."""

def hypot(input: Tensor, other: Tensor | Number | _complex, *, out: Tensor | None = None) -> Tensor:
    """y = √(a² + b²) without overflow in between; dy/da = a/y, dy/db = b/y."""

def i0(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Return the modified Bessel function of the first kind I₀; dI₀/dx = I₁."""

def i0_(input: Tensor) -> Tensor:
    """Compute `i0` in place and return the tensor."""

def igamma(input: Tensor, other: Tensor | Number | _complex, *, out: Tensor | None = None) -> Tensor:
    """The regularised lower incomplete gamma function P(a, x) = 1/Γ(a) ∫₀ˣ tᵃ⁻¹e⁻ᵗ dt, a = ``input``, x = ``other``, both floating point tensors."""

def igammac(input: Tensor, other: Tensor | Number | _complex, *, out: Tensor | None = None) -> Tensor:
    """The regularised upper incomplete gamma function Q(a, x) = 1/Γ(a) ∫ₓ^∞ tᵃ⁻¹e⁻ᵗ dt, a = ``input``, x = ``other``, both floating point tensors."""

def imag(input: Tensor) -> Tensor:
    """Return the imaginary parts, a view; the gradient is i·g. RuntimeError for real tensors."""

def index_add(
    input: Tensor, dim: _int, index: Tensor, source: Tensor, *, alpha: _float = 1, out: Tensor | None = None
) -> Tensor:
    """y = x with alpha·source[i] added to the slice y[index[i]] along ``dim``; duplicates add up; dsource = alpha·g[index]."""

def index_copy(input: Tensor, dim: _int, index: Tensor, source: Tensor, *, out: Tensor | None = None) -> Tensor:
    """y = x with the slices y[index[i]] along ``dim`` replaced by source[i]."""

def index_fill(input: Tensor, dim: _int, index: Tensor, value: Tensor | _float) -> Tensor:
    """y = x with the slices y[index] along ``dim`` filled with a number or 0-d tensor."""

def index_put(input: Tensor, indices: Sequence[Tensor | None], values: Tensor, accumulate: _bool = False) -> Tensor:
    """Out-of-place version of `index_put_`: y = x with y[indices] = values; d/dvalues gathers, d/dx is 0 where overwritten."""

def index_put_(input: Tensor, indices: Sequence[Tensor | None], values: Tensor, accumulate: _bool = False) -> Tensor:
    """Do ``input[indices] = values`` for a tuple of index tensors; with ``accumulate`` they are added, duplicates too."""

def index_reduce(
    input: Tensor, dim: _int, index: Tensor, source: Tensor, reduce: _str, *, include_self: _bool = True, out: Tensor | None =
    None
) -> Tensor:
    """Return `index_add` with another way to combine: 'prod', 'mean', 'amax' or 'amin'."""

def index_select(input: Tensor, dim: _int, index: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Return the slices of ``input`` along ``dim`` at the 1-d ``index``, copied; the gradient is added back slice by slice."""

def initial_seed() -> _int:
    """Return the seed of the default generator."""

def inner(input: Tensor, other: Tensor | Number | _complex, *, out: Tensor | None = None) -> Tensor:
    """Inner products over the last dims: y[…, …] = Σ a[…, k]·b[…, k]."""

def instance_norm(
    input: Tensor, running_mean: Tensor | None = None, running_var: Tensor | None = None, weight: Tensor | None = None, bias:
    Tensor | None = None, use_input_stats: _bool = True, momentum: _float = 0.1, eps: _float = 1e-05, cudnn_enabled: _bool =
    True
) -> Tensor:
    """Return `batch_norm` with statistics of every sample by itself. ValueError for one spatial element when they are used."""

def inverse(A: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Return A⁻¹ of square matrices (…, n, n); dA = −A⁻ᴴ·g·A⁻ᴴ."""

def is_complex(input: Tensor) -> _bool:
    """Return whether the dtype is complex."""

def is_conj(input: Tensor) -> _bool:
    """Return whether it is a view that shows conjugates: see `conj`."""

def is_floating_point(input: Tensor) -> _bool:
    """Return whether the dtype is a float."""

def is_inference(input: Tensor) -> _bool:
    """Return whether the tensor was made in inference mode."""

def is_neg(input: Tensor) -> _bool:
    """Return whether it is a view that shows negatives, as ``x.conj().imag`` is."""

def is_nonzero(input: Tensor) -> _bool:
    """Return whether the one element is not 0."""

def is_same_size(input: Tensor, other: Tensor | Number | _complex) -> _bool:
    """Return whether the shapes are equal."""

def is_signed(input: Tensor) -> _bool:
    """Return whether the dtype is signed."""

def is_storage(obj: Any) -> _bool:
    """Return whether ``obj`` is a storage."""

def is_tensor(obj: Any) -> _bool:
    """Return whether ``obj`` is a Tensor."""

def isclose(
    input: Tensor, other: Tensor | Number | _complex, rtol: _float = 1e-05, atol: _float = 1e-08, equal_nan: _bool = False
) -> Tensor:
    """Return whether |a − b| ≤ atol + rtol·|b|, element by element."""

def isfinite(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Return whether x is neither infinite nor nan."""

def isin(
    elements: Tensor | _float, test_elements: Tensor | _float, *, assume_unique: _bool = False, invert: _bool = False, out:
    Tensor | None = None
) -> Tensor:
    """Return whether each element is among ``test_elements``."""

def isinf(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Return whether x is infinite."""

def isnan(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Return whether x is nan."""

def isneginf(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Return whether x is −∞."""

def isposinf(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Return whether x is ∞."""

def isreal(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Return whether the imaginary part is 0."""

def istft(
    input: Tensor, n_fft: _int, hop_length: _int | None = None, win_length: _int | None = None, window: Tensor | None = None,
    center: _bool = True, normalized: _bool = False, onesided: _bool | None = None, length: _int | None = None, return_complex:
    _bool = False
) -> Tensor:
    """Return the signal whose `stft` is given, with the same arguments: the least-squares one where none has it."""

def kaiser_window(
    window_length: _int, periodic: _bool = True, beta: _float = 12.0, *, dtype: _dtype | None = None, layout: _layout | None =
    None, device: Device = None, requires_grad: _bool = False, pin_memory: _bool = False
) -> Tensor:
    """Return I₀(beta·√(1 − x²))/I₀(beta) for x from −1 to 1. ``periodic``: the first n of n + 1 symmetric points."""

def kron(input: Tensor, other: Tensor | Number | _complex, *, out: Tensor | None = None) -> Tensor:
    """Kronecker product: y[i·n + k, …] = a[i, …]·b[k, …], each dim of size (a's · b's); missing dims in front count as 1."""

def kthvalue(
    input: Tensor, k: _int, dim: _int = -1, keepdim: _bool = False, *, out: Tensor | None = None
) -> _return_types.kthvalue:
    """Return (values, indices) of the k-th smallest element (from 1) along ``dim``. RuntimeError when ``k`` does not fit."""

def layer_norm(
    input: Tensor, normalized_shape: _int | _size, weight: Tensor | None = None, bias: Tensor | None = None, eps: _float =
    1e-05, cudnn_enable: _bool = True
) -> Tensor:
    """Return (x − mean)/√(var + eps)·weight + bias, the statistics over the last dims, of sizes ``normalized_shape``."""

def lcm(input: Tensor, other: Tensor | Number | _complex, *, out: Tensor | None = None) -> Tensor:
    """Return the least common multiple of integers. NotImplementedError for others."""

def lcm_(input: Tensor, other: Tensor | Number | _complex) -> Tensor:
    """Compute `lcm` in place and return the tensor."""

def ldexp(input: Tensor, other: Tensor | Number | _complex, *, out: Tensor | None = None) -> Tensor:
    """x·2ᵉ, dy/dx = 2ᵉ."""

def ldexp_(input: Tensor, other: Tensor | Number | _complex) -> Tensor:
    """Compute `ldexp` in place and return the tensor."""

def le(input: Tensor, other: Tensor | Number | _complex, *, out: Tensor | None = None) -> Tensor:
    """Return whether a ≤ b, element by element."""

def lerp(input: Tensor, end: Tensor, weight: Tensor | _float, *, out: Tensor | None = None) -> Tensor:
    """Return a + w·(b − a), w a number or a tensor."""

def less(input: Tensor, other: Tensor | Number | _complex, *, out: Tensor | None = None) -> Tensor:
    """Return whether a < b, element by element."""

def less_equal(input: Tensor, other: Tensor | Number | _complex, *, out: Tensor | None = None) -> Tensor:
    """Return whether a ≤ b, element by element."""

def lgamma(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """y = ln|Γ(x)|, dy/dx = ψ(x), the `digamma` function."""

def linspace(
    start: _float | Tensor, end: _float | Tensor, steps: _int | None = None, *, out: Tensor | None = None, dtype: _dtype | None
    = None, layout: _layout | None = None, device: Device = None, requires_grad: _bool = False, pin_memory: _bool = False
) -> Tensor:
    """Return ``steps`` evenly spaced values from ``start`` to ``end``, both included."""

def log(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """y = ln x, dy/dx = 1/x."""

def log10(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """y = log₁₀ x, dy/dx = 1/(x·ln 10)."""

def log10_(input: Tensor) -> Tensor:
    """Compute `log10` in place and return the tensor."""

def log1p(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """y = ln(1 + x), without the loss of digits near 0; dy/dx = 1/(1 + x)."""

def log1p_(input: Tensor) -> Tensor:
    """Compute `log1p` in place and return the tensor."""

def log2(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """y = log₂ x, dy/dx = 1/(x·ln 2)."""

def log2_(input: Tensor) -> Tensor:
    """Compute `log2` in place and return the tensor."""

def log_(input: Tensor) -> Tensor:
    """Compute `log` in place and return the tensor."""

def log_softmax(
    input: Tensor, dim: _int | None = None, dtype: _dtype | None = None, *, axis: _int | None = None, out: Tensor | None = None
) -> Tensor:
    """yᵢ = xᵢ − ln Σⱼ e^xⱼ along ``dim``; dL/dx = g − e^y·Σ g. ``dtype`` casts first."""

def logaddexp(input: Tensor, other: Tensor | Number | _complex, *, out: Tensor | None = None) -> Tensor:
    """y = ln(eᵃ + eᵇ) without overflow."""

def logaddexp2(input: Tensor, other: Tensor | Number | _complex, *, out: Tensor | None = None) -> Tensor:
    """y = log₂(2ᵃ + 2ᵇ) without overflow."""

def logcumsumexp(input: Tensor, dim: _int, *, out: Tensor | None = None) -> Tensor:
    """yₖ = ln(e^x₀ + … + e^xₖ) along ``dim``, without overflow."""

def logdet(input: Tensor) -> Tensor:
    """Return log det(A) of square matrices (…, n, n); nan for a negative determinant, −∞ for a singular matrix. dA = g·A⁻ᴴ."""

def logical_and(input: Tensor, other: Tensor | Number | _complex, *, out: Tensor | None = None) -> Tensor:
    """Return whether a ≠ 0 and b ≠ 0."""

def logical_not(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """x = 0."""

def logical_or(input: Tensor, other: Tensor | Number | _complex, *, out: Tensor | None = None) -> Tensor:
    """Return whether a ≠ 0 or b ≠ 0."""

def logical_xor(input: Tensor, other: Tensor | Number | _complex, *, out: Tensor | None = None) -> Tensor:
    """Return whether exactly one of a ≠ 0, b ≠ 0 holds."""

def logit(input: Tensor, eps: _float | None = None, *, out: Tensor | None = None) -> Tensor:
    """y = ln(x/(1 − x)), x kept within [eps, 1 − eps] when ``eps`` is given; dy/dx = 1/(x(1 − x)), 0 where x was clamped."""

def logit_(input: Tensor, eps: _float | None = None) -> Tensor:
    """Compute `logit` in place and return the tensor."""

def logspace(
    start: _float | Tensor, end: _float | Tensor, steps: _int, base: _float = 10.0, *, out: Tensor | None = None, dtype: _dtype
    | None = None, layout: _layout | None = None, device: Device = None, requires_grad: _bool = False, pin_memory: _bool = False
) -> Tensor:
    """Return base ** linspace(start, end, steps); an integer dtype truncates the ends, then the powers."""

def logsumexp(input: Tensor, dim: _int | Sequence[_int], keepdim: _bool = False, *, out: Tensor | None = None) -> Tensor:
    """Return ln Σ eˣ over ``dim`` (an int or several), without overflow; dL/dx = g·e^(x − y)."""

def lstm(input: Tensor, hx: Sequence[Tensor], *args: Any, **kwargs: Any) -> tuple[Tensor, Tensor, Tensor]:
    """Run layers of LSTM: i, f, o = σ(W x + U h + b), g = tanh(…), c' = f·c + i·g, h' = o·tanh(c')."""

def lstm_cell(input: Tensor, hx: Sequence[Tensor], w_ih: Tensor, w_hh: Tensor, *biases: Tensor) -> tuple[Tensor, Tensor]:
    """Run one step of LSTM: i, f, o = σ(W x + U h + b), g = tanh(…), c' = f·c + i·g, h' = o·tanh(c')."""

def lt(input: Tensor, other: Tensor | Number | _complex, *, out: Tensor | None = None) -> Tensor:
    """Return whether a < b, element by element."""

@overload
def lu(
    self: Tensor, pivot: _bool = True, get_infos: Literal[False] = False, out: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """Return (LU, pivots), and info if ``get_infos``: the older form of `linalg.lu_factor_ex`."""
@overload
def lu(
    self: Tensor, pivot: _bool = True, *, get_infos: Literal[True], out: Tensor | None = None
) -> tuple[Tensor, Tensor, Tensor]:
    """Return (LU, pivots), and info if ``get_infos``: the older form of `linalg.lu_factor_ex`."""

def lu_solve(b: Tensor, LU_data: Tensor, LU_pivots: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Return `linalg.lu_solve`, its older form: b first."""

def lu_unpack(
    LU_data: Tensor, LU_pivots: Tensor, unpack_data: _bool = True, unpack_pivots: _bool = True, *, out: Tensor | None = None
) -> _return_types.lu_unpack:
    """Return (P, L, U) from the results of `linalg.lu_factor`; what is not unpacked is an empty tensor."""

def manual_seed(seed: _int) -> Generator:
    """Seed the default generator, from which all random functions draw that are given no other; the generator."""

def margin_ranking_loss(
    input1: Tensor, input2: Tensor, target: Tensor, margin: _float = 0.0, size_average: _bool | None = None, reduce: _str | None
    = None, reduction: _str = 'mean'
) -> Tensor:
    """Return max(0, −t·(a − b) + margin); dL/da = −t and dL/db = t where that is positive."""

def masked_fill(input: Tensor, mask: Tensor, value: Tensor | _float) -> Tensor:
    """y = value where the mask holds, x elsewhere; ``value`` a number or 0-d tensor, ``mask`` broadcasts."""

def masked_scatter(input: Tensor, mask: Tensor, source: Tensor) -> Tensor:
    """y = x with the elements where the mask holds replaced by those of ``source``, in order."""

def masked_select(input: Tensor, mask: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Return the elements where the mask holds, in one dim; input and mask broadcast. RuntimeError unless the mask is boolean."""

def matmul(input: Tensor, other: Tensor | Number | _complex, *, out: Tensor | None = None) -> Tensor:
    """Return the product of vectors, matrices and batches of them; batch dims broadcast."""

def matrix_exp(A: Tensor) -> Tensor:
    """Return Σ Aᵏ/k! of square matrices (…, n, n), by scaling and squaring of Taylor's series."""

def matrix_power(input: Tensor, n: _int, *, out: Tensor | None = None) -> Tensor:
    """Return `linalg.matrix_power`, its older name."""

@overload
def max(input: Tensor, dim: None = None, keepdim: _bool = False, *, out: Tensor | None = None) -> Tensor:
    """Return the maximum: of all elements, ``max(x)`` (ties share the gradient); (values, indices) along a dim, ``max(x, dim, keepdim)``, the first index where several attain it (it alone gets the gradient); of two tensors, ``max(x, other)``: `maximum`. nan wins."""
@overload
def max(input: Tensor, dim: _int, keepdim: _bool = False, *, out: Tensor | None = None) -> _return_types.max:
    """Return the maximum: of all elements, ``max(x)`` (ties share the gradient); (values, indices) along a dim, ``max(x, dim, keepdim)``, the first index where several attain it (it alone gets the gradient); of two tensors, ``max(x, other)``: `maximum`. nan wins."""
@overload
def max(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Return the maximum: of all elements, ``max(x)`` (ties share the gradient); (values, indices) along a dim, ``max(x, dim, keepdim)``, the first index where several attain it (it alone gets the gradient); of two tensors, ``max(x, other)``: `maximum`. nan wins."""

@overload
def max_pool1d(
    input: Tensor, kernel_size: _int | Sequence[_int], stride: _int | Sequence[_int] | None = None, padding: _int |
    Sequence[_int] = 0, dilation: _int | Sequence[_int] = 1, ceil_mode: _bool = False, return_indices: Literal[False] = False
) -> Tensor:
    """Return the largest element of each window (nan wins), to which the gradient goes."""
@overload
def max_pool1d(
    input: Tensor, kernel_size: _int | Sequence[_int], stride: _int | Sequence[_int] | None = None, padding: _int |
    Sequence[_int] = 0, dilation: _int | Sequence[_int] = 1, ceil_mode: _bool = False, *, return_indices: Literal[True]
) -> tuple[Tensor, Tensor]:
    """Return the largest element of each window (nan wins), to which the gradient goes."""

@overload
def max_pool2d(
    input: Tensor, kernel_size: _int | Sequence[_int], stride: _int | Sequence[_int] | None = None, padding: _int |
    Sequence[_int] = 0, dilation: _int | Sequence[_int] = 1, ceil_mode: _bool = False, return_indices: Literal[False] = False
) -> Tensor:
    """Return the largest element of each window (nan wins), to which the gradient goes."""
@overload
def max_pool2d(
    input: Tensor, kernel_size: _int | Sequence[_int], stride: _int | Sequence[_int] | None = None, padding: _int |
    Sequence[_int] = 0, dilation: _int | Sequence[_int] = 1, ceil_mode: _bool = False, *, return_indices: Literal[True]
) -> tuple[Tensor, Tensor]:
    """Return the largest element of each window (nan wins), to which the gradient goes."""

@overload
def max_pool3d(
    input: Tensor, kernel_size: _int | Sequence[_int], stride: _int | Sequence[_int] | None = None, padding: _int |
    Sequence[_int] = 0, dilation: _int | Sequence[_int] = 1, ceil_mode: _bool = False, return_indices: Literal[False] = False
) -> Tensor:
    """Return the largest element of each window (nan wins), to which the gradient goes."""
@overload
def max_pool3d(
    input: Tensor, kernel_size: _int | Sequence[_int], stride: _int | Sequence[_int] | None = None, padding: _int |
    Sequence[_int] = 0, dilation: _int | Sequence[_int] = 1, ceil_mode: _bool = False, *, return_indices: Literal[True]
) -> tuple[Tensor, Tensor]:
    """Return the largest element of each window (nan wins), to which the gradient goes."""

def maximum(input: Tensor, other: Tensor | Number | _complex, *, out: Tensor | None = None) -> Tensor:
    """y = max(a, b); nan wins; ties share the gradient."""

def mean(
    input: Tensor, dim: _int | Sequence[_int] | None = None, keepdim: _bool = False, *, dtype: _dtype | None = None, out: Tensor
    | None = None
) -> Tensor:
    """Mean over ``dim``: y = Σ x / n, dy/dx = 1/n."""

@overload
def median(input: Tensor, dim: None = None, keepdim: _bool = False, *, out: Tensor | None = None) -> Tensor:
    """Return the median (the lower one of an even count): of all elements, or (values, indices) along ``dim``. The gradient goes to the element chosen, over all elements evenly to the equal ones."""
@overload
def median(input: Tensor, dim: _int, keepdim: _bool = False, *, out: Tensor | None = None) -> _return_types.median:
    """Return the median (the lower one of an even count): of all elements, or (values, indices) along ``dim``. The gradient goes to the element chosen, over all elements evenly to the equal ones."""

def meshgrid(*tensors: Tensor, indexing: _str | None = None) -> tuple[Tensor, ...]:
    """Return for 1-d tensors the coordinates of their grid, views; ``indexing`` 'ij' (matrix) or 'xy' (first two dims swapped)."""

@overload
def min(input: Tensor, dim: None = None, keepdim: _bool = False, *, out: Tensor | None = None) -> Tensor:
    """Return the minimum: of all elements, ``min(x)`` (ties share the gradient); (values, indices) along a dim, ``min(x, dim, keepdim)``, the first index where several attain it (it alone gets the gradient); of two tensors, ``min(x, other)``: `minimum`. nan wins."""
@overload
def min(input: Tensor, dim: _int, keepdim: _bool = False, *, out: Tensor | None = None) -> _return_types.min:
    """Return the minimum: of all elements, ``min(x)`` (ties share the gradient); (values, indices) along a dim, ``min(x, dim, keepdim)``, the first index where several attain it (it alone gets the gradient); of two tensors, ``min(x, other)``: `minimum`. nan wins."""
@overload
def min(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Return the minimum: of all elements, ``min(x)`` (ties share the gradient); (values, indices) along a dim, ``min(x, dim, keepdim)``, the first index where several attain it (it alone gets the gradient); of two tensors, ``min(x, other)``: `minimum`. nan wins."""

def minimum(input: Tensor, other: Tensor | Number | _complex, *, out: Tensor | None = None) -> Tensor:
    """y = min(a, b); nan wins; ties share the gradient."""

def mm(input: Tensor, mat2: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Product of two matrices: y = A·B (n × k by k × m), dA = g·Bᵀ, dB = Aᵀ·g."""

def mode(input: Tensor, dim: _int = -1, keepdim: _bool = False, *, out: Tensor | None = None) -> _return_types.mode:
    """Return (values, indices) of the most frequent value along ``dim``, the smallest of several; the index is that of its last place."""

def moveaxis(input: Tensor, source: _int | Sequence[_int], destination: _int | Sequence[_int]) -> Tensor:
    """Move dims to other places, the rest keeping their order."""

def movedim(input: Tensor, source: _int | Sequence[_int], destination: _int | Sequence[_int]) -> Tensor:
    """Move dims to other places, the rest keeping their order."""

def msort(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Return the values sorted along the first dim."""

def mul(input: Tensor, other: Tensor | Number | _complex, *, out: Tensor | None = None) -> Tensor:
    """Product: y = a·b, dy/da = b, dy/db = a."""

def multinomial(
    input: Tensor, num_samples: _int, replacement: _bool = False, *, generator: Generator | None = None, out: Tensor | None =
    None
) -> Tensor:
    """Return indices drawn with the probabilities (or weights) of each row of ``input``; int64, (num_samples,) or (rows, num_samples)."""

def multiply(input: Tensor, other: Tensor | Number | _complex, *, out: Tensor | None = None) -> Tensor:
    """Product: y = a·b, dy/da = b, dy/db = a."""

def mv(input: Tensor, vec: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Matrix times vector: y = A·v."""

def mvlgamma(input: Tensor, p: _int, *, out: Tensor | None = None) -> Tensor:
    """Return the multivariate log-gamma function of order ``p``: p(p−1)/4·ln π + Σₖ ln Γ(x − k/2), k = 0 … p−1."""

def nan_to_num(
    input: Tensor, nan: _float | None = None, posinf: _float | None = None, neginf: _float | None = None, *, out: Tensor | None
    = None
) -> Tensor:
    """Return nan, ∞ and −∞ replaced by ``nan`` (0), ``posinf`` (the largest number) and ``neginf``; there the gradient is 0."""

def nan_to_num_(input: Tensor, nan: _float | None = None, posinf: _float | None = None, neginf: _float | None = None) -> Tensor:
    """Compute `nan_to_num` in place and return the tensor."""

def nanmean(
    input: Tensor, dim: _int | Sequence[_int] | None = None, keepdim: _bool = False, *, dtype: _dtype | None = None, out: Tensor
    | None = None
) -> Tensor:
    """Return the mean of the elements that are not nan. RuntimeError for integers."""

@overload
def nanmedian(input: Tensor, dim: None = None, keepdim: _bool = False, *, out: Tensor | None = None) -> Tensor:
    """Return the median of what is not nan (the lower one of an even count): of all elements, or (values, indices) along ``dim``. The gradient goes to the element chosen, over all elements evenly to the equal ones."""
@overload
def nanmedian(input: Tensor, dim: _int, keepdim: _bool = False, *, out: Tensor | None = None) -> _return_types.nanmedian:
    """Return the median of what is not nan (the lower one of an even count): of all elements, or (values, indices) along ``dim``. The gradient goes to the element chosen, over all elements evenly to the equal ones."""

def nanquantile(
    input: Tensor, q: Tensor | _float, dim: _int | None = None, keepdim: _bool = False, *, interpolation: _str = 'linear', out:
    Tensor | None = None
) -> Tensor:
    """Return `quantile` of what is not nan; nan where a row has nothing else."""

def nansum(
    input: Tensor, dim: _int | Sequence[_int] | None = None, keepdim: _bool = False, *, dtype: _dtype | None = None, out: Tensor
    | None = None
) -> Tensor:
    """Return the sum of the elements that are not nan."""

def narrow(input: Tensor, dim: _int, start: _int | Tensor, length: _int) -> Tensor:
    """Return the view of ``length`` elements from ``start`` along ``dim``. RuntimeError when it does not fit."""

def narrow_copy(input: Tensor, *args: Any, out: Tensor | None = None, **kw: Any) -> Tensor:
    """Return what `narrow` does in memory of its own, in C order: what is written to the result leaves the input as it is. Its derivative is that of `narrow`."""

def native_batch_norm(
    input: Tensor, weight: Tensor, bias: Tensor, running_mean: Tensor | None, running_var: Tensor | None, training: _bool,
    momentum: _float, eps: _float
) -> tuple[Tensor, Tensor, Tensor]:
    """Return (`nn.functional.batch_norm`, the means, the reciprocal deviations; these are empty unless ``training``)."""

def native_channel_shuffle(input: Tensor, groups: _int) -> Tensor:
    """Return the channels (dim 1) of ``groups`` groups, taken in turn; the gradient is put back. RuntimeError unless they divide by it."""

def native_group_norm(
    input: Tensor, weight: Tensor, bias: Tensor, N: _int, C: _int, HxW: _int, group: _int, eps: _float
) -> tuple[Tensor, Tensor, Tensor]:
    """Return (`nn.functional.group_norm`, the means, the reciprocal deviations, each N × group)."""

def native_layer_norm(
    input: Tensor, normalized_shape: _int | _size, weight: Tensor, bias: Tensor, eps: _float
) -> tuple[Tensor, Tensor, Tensor]:
    """Return (`nn.functional.layer_norm`, the means, the reciprocal deviations)."""

def ne(input: Tensor, other: Tensor | Number | _complex, *, out: Tensor | None = None) -> Tensor:
    """Return whether a ≠ b, element by element."""

def neg(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """y = −x, dy/dx = −1."""

def neg_(input: Tensor) -> Tensor:
    """Compute `neg` in place and return the tensor."""

def negative(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """y = −x, dy/dx = −1."""

def negative_(input: Tensor) -> Tensor:
    """Compute `neg` in place and return the tensor."""

def nextafter(input: Tensor, other: Tensor | Number | _complex, *, out: Tensor | None = None) -> Tensor:
    """Return the next number after a towards b; dy/da = 1 where they differ, dy/db = 0."""

@overload
def nonzero(input: Tensor, *, out: Tensor | None = None, as_tuple: Literal[False] = False) -> Tensor:
    """Return the indices of the elements that are not zero: one row each, or with ``as_tuple`` one 1-d tensor per dim."""
@overload
def nonzero(input: Tensor, *, as_tuple: Literal[True]) -> tuple[Tensor, ...]:
    """Return the indices of the elements that are not zero: one row each, or with ``as_tuple`` one 1-d tensor per dim."""

def nonzero_static(input: Tensor, *, size: _int | _size, fill_value: Number | _complex = -1) -> Tensor:
    """Return `nonzero` with ``size`` rows: further ones are cut off, missing ones are ``fill_value``."""

def norm(
    input: Tensor, p: _float | _str | None = 'fro', dim: _int | Sequence[_int] | None = None, keepdim: _bool = False, out:
    Tensor | None = None, dtype: _dtype | None = None
) -> Tensor:
    """Return (Σ |x|ᵖ)^(1/p) over ``dim`` (default all); 'fro' is p = 2. 'nuc' is the sum of the singular values of a matrix."""

def norm_except_dim(v: Tensor, pow: _int = 2, dim: _int = 0) -> Tensor:
    """Return the norm over all dims but ``dim``, which are kept with size 1; with ``dim=-1`` over all; the gradient is that of `linalg.vector_norm`."""

def normal(
    mean: Tensor | _float = 0.0, std: Tensor | _float = 1.0, size: _int | _size | None = None, *, generator: Generator | None =
    None, out: Tensor | None = None, dtype: _dtype | None = None, layout: _layout | None = None, device: Device = None,
    requires_grad: _bool = False, pin_memory: _bool = False
) -> Tensor:
    """Return normal numbers whose mean and standard deviation are tensors (broadcast), or numbers with a ``size``."""

def not_equal(input: Tensor, other: Tensor | Number | _complex, *, out: Tensor | None = None) -> Tensor:
    """Return whether a ≠ b, element by element."""

def numel(input: Tensor) -> _int:
    """Return the number of elements."""

def ones(
    *args: Any, size: _int | _size | None = None, out: Tensor | None = None, dtype: _dtype | None = None, layout: _layout | None
    = None, device: Device = None, requires_grad: _bool = False, pin_memory: _bool = False, memory_format: _memory_format | None
    = None
) -> Tensor:
    """Return a tensor of ``size`` filled with 1, of the default dtype or ``dtype``."""

def ones_like(
    input: Tensor, *, dtype: _dtype | None = None, device: Device = None, requires_grad: _bool = False, layout: _layout | None =
    None, memory_format: _memory_format | None = None, pin_memory: _bool = False
) -> Tensor:
    """Return what `ones` does with the shape and dtype of another tensor."""

def orgqr(input: Tensor, tau: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Return the first n columns of H₁·H₂·…·Hₖ, Hᵢ = I − τᵢ·vᵢ·vᵢᴴ, for vectors vᵢ packed below the diagonal of input (…, m, n) by `geqrf`."""

def ormqr(
    input: Tensor, tau: Tensor, other: Tensor | Number | _complex, left: _bool = True, transpose: _bool = False, *, out: Tensor
    | None = None
) -> Tensor:
    """Return Q·other, or other·Q if not ``left``, with Qᴴ for Q if ``transpose``: Q is the whole product of `geqrf`'s reflections."""

def outer(input: Tensor, vec2: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Outer product of two vectors: y[i, j] = aᵢ·bⱼ."""

def pairwise_distance(x1: Tensor, x2: Tensor, p: _float = 2.0, eps: _float = 1e-06, keepdim: _bool = False) -> Tensor:
    """Return ‖x₁ − x₂ + eps‖ₚ along the last dim: (…, n) → (…), or (…, 1) if ``keepdim``."""

def pca_lowrank(A: Tensor, q: _int | None = None, center: _bool = True, niter: _int = 2) -> tuple[Tensor, Tensor, Tensor]:
    """Return (U, S, V): about the ``q`` first principal components (columns of V) of the rows of A (…, m, n), by `svd_lowrank`."""

def pdist(input: Tensor, p: _float = 2.0) -> Tensor:
    """Return the distances ‖x[i] − x[j]‖ₚ of all pairs i < j of the rows of a matrix, in order: N rows give N(N−1)/2 numbers."""

def permute(input: Tensor, *axes: _int | Sequence[_int], dims: _int | Sequence[_int] | None = None) -> Tensor:
    """Return the dims in another order, a view. RuntimeError unless ``dims`` names each dim once."""

def permute_copy(input: Tensor, *args: Any, out: Tensor | None = None, **kw: Any) -> Tensor:
    """Return what `permute` does in memory of its own, in C order: what is written to the result leaves the input as it is. Its derivative is that of `permute`."""

def pinverse(input: Tensor, rcond: _float = 1e-15) -> Tensor:
    """Return `linalg.pinv` with a relative cutoff of ``rcond``."""

def pixel_shuffle(input: Tensor, upscale_factor: _int) -> Tensor:
    """Return (…, C r², H, W) → (…, C, H r, W r). RuntimeError unless the channels divide by r²."""

def pixel_unshuffle(input: Tensor, downscale_factor: _int) -> Tensor:
    """Return (…, C, H r, W r) → (…, C r², H, W). RuntimeError unless height and width divide by r."""

def poisson(input: Tensor, generator: Generator | None = None) -> Tensor:
    """Return Poisson numbers with the rates given by ``input``, of its dtype. RuntimeError for negative rates."""

def poisson_nll_loss(
    input: Tensor, target: Tensor, log_input: _bool = True, full: _bool = False, size_average: _bool | None = None, eps: _float
    = 1e-08, reduce: _str | None = None, reduction: _str = 'mean'
) -> Tensor:
    """Return eˣ − t·x (``log_input``; dL/dx = eˣ − t) or x − t·ln(x + eps); ``full`` adds Stirling's approximation of ln t! where t > 1."""

def polar(abs: Tensor, angle: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Return the complex tensor abs·e^(i·angle); the operands broadcast and have one dtype."""

def polygamma(n: _int, input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Return the n-th derivative of `digamma`: ``polygamma(n, x)`` or ``x.polygamma(n)``; its own derivative is that of order n + 1."""

def positive(input: Tensor) -> Tensor:
    """Return the tensor itself. RuntimeError for booleans."""

def pow(input: Tensor | _float, exponent: Tensor | Number | _complex, *, out: Tensor | None = None) -> Tensor:
    """Power: y = aᵇ, dy/da = b·aᵇ⁻¹, dy/db = y·ln a (0 where a is 0 and b ≥ 0)."""

def prelu(input: Tensor, weight: Tensor) -> Tensor:
    """Return x for x > 0, else weight·x; ``weight`` has one element, or one a channel (dim 1)."""

def prod(
    input: Tensor, dim: _int | None = None, keepdim: _bool = False, *, dtype: _dtype | None = None, out: Tensor | None = None
) -> Tensor:
    """Return the product of all elements, or over ``dim``; integers give int64. dy/dxᵢ = Π of the others, also of zeros."""

def put(input: Tensor, index: Tensor, source: Tensor, accumulate: _bool = False) -> Tensor:
    """y = x with the elements at flat indices replaced by (or with ``accumulate`` added to) ``source``."""

def qr(input: Tensor, some: _bool = True, *, out: Tensor | None = None) -> _return_types.qr:
    """Return (Q, R): the older form of `linalg.qr`, reduced if ``some``, else complete."""

def quantile(
    input: Tensor, q: Tensor | _float, dim: _int | None = None, keepdim: _bool = False, *, interpolation: _str = 'linear', out:
    Tensor | None = None
) -> Tensor:
    """Return the q-quantiles along ``dim`` (of all elements by default); ``q`` a number or 1-d tensor, whose dim then comes first."""

def rad2deg(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """y = x·180/π."""

def rad2deg_(input: Tensor) -> Tensor:
    """Compute `rad2deg` in place and return the tensor."""

def rand(
    *size: _int | Sequence[_int], generator: Generator | None = None, names: Any = None, out: Tensor | None = None, dtype:
    _dtype | None = None, layout: _layout | None = None, device: Device = None, requires_grad: _bool = False, pin_memory: _bool
    = False, **kw: Any
) -> Tensor:
    """Return a tensor of ``size`` filled with numbers uniform on [0, 1)."""

def rand_like(
    input: Tensor, *, generator: Generator | None = None, dtype: _dtype | None = None, layout: _layout | None = None, device:
    Device = None, requires_grad: _bool = False, memory_format: _memory_format | None = None, pin_memory: _bool = False
) -> Tensor:
    """Return `rand` with the shape, dtype and order of dims of another tensor."""

def randint(
    *args: Any, low: _int | None = None, high: _int | None = None, size: _int | _size | None = None, generator: Generator | None
    = None, out: Tensor | None = None, dtype: _dtype | None = None, layout: _layout | None = None, device: Device = None,
    requires_grad: _bool = False, pin_memory: _bool = False
) -> Tensor:
    """Return integers uniform on [low, high): ``randint(high, size)`` or ``randint(low, high, size)``; int64 unless ``dtype``."""

def randint_like(
    input: Tensor, *args: Any, low: _int | None = None, high: _int | None = None, generator: Generator | None = None, dtype:
    _dtype | None = None, layout: _layout | None = None, device: Device = None, requires_grad: _bool = False, memory_format:
    _memory_format | None = None, pin_memory: _bool = False
) -> Tensor:
    """Return `randint` with the shape, dtype and order of dims of another tensor: ``randint_like(x, high)`` or ``randint_like(x, low, high)``."""

def randn(
    *size: _int | Sequence[_int], generator: Generator | None = None, names: Any = None, out: Tensor | None = None, dtype:
    _dtype | None = None, layout: _layout | None = None, device: Device = None, requires_grad: _bool = False, pin_memory: _bool
    = False, **kw: Any
) -> Tensor:
    """Return a tensor of ``size`` filled with standard normal numbers."""

def randn_like(
    input: Tensor, *, generator: Generator | None = None, dtype: _dtype | None = None, layout: _layout | None = None, device:
    Device = None, requires_grad: _bool = False, memory_format: _memory_format | None = None, pin_memory: _bool = False
) -> Tensor:
    """Return `randn` with the shape, dtype and order of dims of another tensor."""

def randperm(
    n: _int, *, generator: Generator | None = None, out: Tensor | None = None, dtype: _dtype | None = None, layout: _layout |
    None = None, device: Device = None, requires_grad: _bool = False, pin_memory: _bool = False
) -> Tensor:
    """Return a random order of the integers 0 … n-1; int64 unless ``dtype``."""

def range(
    start: _float, end: _float | None = None, step: _float = 1, *, out: Tensor | None = None, dtype: _dtype | None = None,
    layout: _layout | None = None, device: Device = None, requires_grad: _bool = False
) -> Tensor:
    """Return `arange` of floats with the end included; PyTorch has deprecated it."""

def ravel(input: Tensor) -> Tensor:
    """Return all elements in one dim, in C order: a view of a contiguous tensor, else a copy."""

def real(input: Tensor) -> Tensor:
    """Return the real parts, a view; a real tensor is its own. The gradient is g, as a complex number."""

def reciprocal(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """y = 1/x, dy/dx = −y²."""

def reciprocal_(input: Tensor) -> Tensor:
    """Compute `reciprocal` in place and return the tensor."""

def relu(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """y = max(x, 0), dy/dx = 1 for x > 0, else 0."""

def relu_(input: Tensor) -> Tensor:
    """Compute `relu` in place and return the tensor."""

def remainder(input: Tensor, other: Tensor | Number | _complex, *, out: Tensor | None = None) -> Tensor:
    """Remainder with the sign of the divisor: y = a − b·⌊a/b⌋."""

def renorm(input: Tensor, p: _float, dim: _int, maxnorm: _float, *, out: Tensor | None = None) -> Tensor:
    """Return the slices along ``dim`` whose p-norm exceeds ``maxnorm`` scaled down to it."""

def repeat_interleave(
    input: Tensor, repeats: _int | Tensor | None = None, dim: _int | None = None, *, output_size: _int | None = None
) -> Tensor:
    """Return each element (or slice along ``dim``) repeated; ``repeats`` is one number or one for each."""

def reshape(input: Tensor, *sizes: _int | Sequence[_int], shape: _int | _size | None = None) -> Tensor:
    """Return the elements in C order under another shape (one size may be -1): a view where possible, else a copy; dy/dx = 1."""

def resize_as_(input: Tensor, the_template: Tensor, *, memory_format: _memory_format | None = None) -> Tensor:
    """Return `resize_` to the shape of another tensor; with ``memory_format=torch.preserve_format`` in the order that it looks to be in."""

def resolve_conj(input: Tensor) -> Tensor:
    """Return the tensor itself, or a copy of a view that shows conjugates."""

def resolve_neg(input: Tensor) -> Tensor:
    """Return the tensor itself, or a copy of a view that shows negatives."""

def result_type(tensor1: Tensor | _float, tensor2: Tensor | _float) -> _dtype:
    """Return the dtype of an arithmetic result of two tensors or numbers."""

def rms_norm(input: Tensor, normalized_shape: _int | _size, weight: Tensor | None = None, eps: _float | None = None) -> Tensor:
    """Return x/√(mean x² + eps)·weight over the last dims; ``eps`` None is the dtype's machine epsilon."""

def rnn_relu(input: Tensor, hx: Tensor, *args: Any, **kwargs: Any) -> tuple[Tensor, Tensor]:
    """Run layers of RNN: h' = relu(W x + U h + b)."""

def rnn_relu_cell(
    input: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None = None, b_hh: Tensor | None = None
) -> Tensor:
    """Run one step of RNN: h' = relu(W x + U h + b)."""

def rnn_tanh(input: Tensor, hx: Tensor, *args: Any, **kwargs: Any) -> tuple[Tensor, Tensor]:
    """Run layers of RNN: h' = tanh(W x + U h + b)."""

def rnn_tanh_cell(
    input: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None = None, b_hh: Tensor | None = None
) -> Tensor:
    """Run one step of RNN: h' = tanh(W x + U h + b)."""

def roll(input: Tensor, shifts: _int | Sequence[_int], dims: _int | Sequence[_int] | None = None) -> Tensor:
    """Return the elements moved by ``shifts`` along ``dims``, those pushed out at the end coming in at the front."""

def rot90(input: Tensor, k: _int = 1, dims: _int | _size = (0, 1)) -> Tensor:
    """Return the tensor turned ``k`` times by 90° in the plane of two dims, from the first towards the second."""

def round(input: Tensor, *, decimals: _int = 0, out: Tensor | None = None) -> Tensor:
    """Return x rounded to ``decimals`` places, halves to even; the gradient is 0."""

def round_(input: Tensor, *, decimals: _int = 0) -> Tensor:
    """Compute `round` in place and return the tensor."""

def row_stack(tensors: Sequence[Tensor], *, out: Tensor | None = None) -> Tensor:
    """Join as rows, along dim 0."""

def rrelu(
    input: Tensor, lower: _float = 0.125, upper: _float = 0.3333333333333333, training: _bool = False, inplace: _bool = False
) -> Tensor:
    """Return x for x > 0, else a·x, where a is drawn from [lower, upper] in training and their mean otherwise."""

def rrelu_(input: Tensor, lower: _float = 0.125, upper: _float = 0.3333333333333333, training: _bool = False) -> Tensor:
    """Compute `rrelu` in place and return the tensor."""

def rsqrt(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """y = 1/√x, dy/dx = −y³/2."""

def rsqrt_(input: Tensor) -> Tensor:
    """Compute `rsqrt` in place and return the tensor."""

def rsub(input: Tensor, other: Tensor | Number | _complex, *, alpha: _float = 1) -> Tensor:
    """y = b − alpha·a."""

def scalar_tensor(
    s: _int | _size, *, dtype: _dtype | None = None, layout: _layout | None = None, device: Device = None, requires_grad: _bool
    = False, pin_memory: _bool = False
) -> Tensor:
    """Return a 0-d tensor of a number, of the default dtype unless ``dtype`` says otherwise."""

def scatter(
    input: Tensor, dim: _int, index: Tensor, src: Tensor | _float | None = None, *, value: Number | _complex | None = None,
    reduce: _str | None = None, out: Tensor | None = None
) -> Tensor:
    """y = x with y[index[i, j, k], j, k] = src[i, j, k] (for dim 0), ``src`` a tensor or a number; dsrc gathers, dx is 0 there."""

def scatter_add(input: Tensor, dim: _int, index: Tensor, src: Tensor, *, out: Tensor | None = None) -> Tensor:
    """y = x with src[i, j, k] added to y[index[i, j, k], j, k] (for dim 0); duplicates add up; dsrc gathers."""

def scatter_reduce(
    input: Tensor, dim: _int, index: Tensor, src: Tensor, reduce: _str, *, include_self: _bool = True, out: Tensor | None = None
) -> Tensor:
    """Return `scatter_add` with another way to combine: 'sum', 'prod', 'mean', 'amax' or 'amin', whose ties share the gradient."""

def searchsorted(
    sorted_sequence: Tensor, input: Tensor | _float, *, out_int32: _bool = False, right: _bool = False, side: _str | None =
    None, sorter: Tensor | None = None, out: Tensor | None = None
) -> Tensor:
    """Return where each value would be inserted in the sorted last dim: the first place with sequence ≥ value (``right``: > value)."""

def seed() -> _int:
    """Seed the default generator with a number that nobody can foretell; that number."""

def segment_reduce(
    data: Tensor, reduce: _str, *, lengths: Tensor | None = None, indices: Tensor | None = None, offsets: Tensor | None = None,
    axis: _int = 0, unsafe: _bool = False, initial: _float | None = None
) -> Tensor:
    """Reduce runs of ``lengths`` (or between ``offsets``) along ``axis``: 'sum', 'mean', 'prod', 'max', 'min'."""

def select(input: Tensor, dim: _int, index: _int) -> Tensor:
    """Return the slice at ``index`` of ``dim``, a view with that dim removed. IndexError when out of range."""

def select_copy(input: Tensor, *args: Any, out: Tensor | None = None, **kw: Any) -> Tensor:
    """Return what `select` does in memory of its own, in C order: what is written to the result leaves the input as it is. Its derivative is that of `select`."""

def select_scatter(input: Tensor, src: Tensor, dim: _int, index: _int) -> Tensor:
    """Return a copy of ``input`` with ``src`` in place of ``select(dim, index)``."""

def selu(input: Tensor, inplace: _bool = False) -> Tensor:
    """Return s·(max(0, x) + min(0, α·(eˣ − 1))), s ≈ 1.0507 and α ≈ 1.6733; dy/dx = s for x > 0, else s·α·eˣ."""

def selu_(input: Tensor) -> Tensor:
    """Compute `selu` in place and return the tensor."""

def set_default_tensor_type(t: Any) -> None:
    """Set the default dtype by a type or its name (floating types only)."""

def set_printoptions(
    precision: _int | None = None, threshold: _float | None = None, edgeitems: _int | None = None, linewidth: _int | None =
    None, profile: _str | None = None, sci_mode: _bool | None = None
) -> None:
    """Set how tensors print."""

def set_rng_state(new_state: Tensor) -> None:
    """Set the state of the default generator to one that `get_rng_state` gave."""

def sgn(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Return x/|x|, 0 at 0; the `sign` of real numbers. Its gradient is that of the direction alone: (g − ḡ·y²)/2|x|."""

def sigmoid(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """y = 1/(1 + e⁻ˣ), dy/dx = y·(1 − y)."""

def sigmoid_(input: Tensor) -> Tensor:
    """Compute `sigmoid` in place and return the tensor."""

def sign(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Return −1, 0 or 1; the gradient is 0. RuntimeError for complex numbers (see `sgn`)."""

def signbit(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Return whether the sign bit is set (true for −0.0)."""

def sin(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """y = sin x, dy/dx = cos x."""

def sin_(input: Tensor) -> Tensor:
    """Compute `sin` in place and return the tensor."""

def sinc(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """y = sin(πx)/(πx), 1 at 0."""

def sinc_(input: Tensor) -> Tensor:
    """Compute `sinc` in place and return the tensor."""

def sinh(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """y = sinh x, dy/dx = cosh x."""

def sinh_(input: Tensor) -> Tensor:
    """Compute `sinh` in place and return the tensor."""

def slice_copy(input: Tensor, *args: Any, out: Tensor | None = None, **kw: Any) -> Tensor:
    """Return what `slice` does in memory of its own, in C order: what is written to the result leaves the input as it is. Its derivative is that of `slice`."""

def slice_scatter(
    input: Tensor, src: Tensor, dim: _int = 0, start: _int | None = None, end: _int | None = None, step: _int = 1, *, out:
    Tensor | None = None
) -> Tensor:
    """Return a copy of ``input`` with ``src`` in place of the slice start:end:step of ``dim``."""

def slogdet(input: Tensor, *, out: Tensor | None = None) -> _return_types.slogdet:
    """Return `linalg.slogdet`, its older name."""

def softmax(
    input: Tensor, dim: _int | None = None, dtype: _dtype | None = None, *, axis: _int | None = None, out: Tensor | None = None
) -> Tensor:
    """yᵢ = e^xᵢ / Σⱼ e^xⱼ along ``dim``; dL/dx = y·(g − Σ g·y). ``dtype`` casts first."""

def sort(
    input: Tensor, dim: _int = -1, descending: _bool = False, *, stable: _bool | None = None, out: Tensor | None = None
) -> _return_types.sort:
    """Return (values, indices) sorted along ``dim``; equal elements keep their order, NaN is greatest. dvalues scatters back."""

def split(
    tensor: Tensor, split_size_or_sections: _int | Sequence[_int] | None = None, dim: _int = 0, **kw: Any
) -> tuple[Tensor, ...]:
    """Return views of parts along ``dim``: of one size (the last may be smaller), or of the listed sizes."""

def split_copy(input: Tensor, split_size: _size | _int, dim: _int = 0) -> tuple[Tensor, ...]:
    """Return what `split` does in memory of its own, in C order: what is written to the result leaves the input as it is. Its derivative is that of `split`."""

def split_with_sizes(input: Tensor, split_sizes: _int | _size, dim: _int = 0) -> tuple[Tensor, ...]:
    """Return `split` by a list of sizes."""

def split_with_sizes_copy(input: Tensor, split_size: _size | _int, dim: _int = 0) -> tuple[Tensor, ...]:
    """Return what `split_with_sizes` does in memory of its own, in C order: what is written to the result leaves the input as it is. Its derivative is that of `split_with_sizes`."""

def spmm(input: Tensor, mat2: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Product of two matrices: y = A·B (n × k by k × m), dA = g·Bᵀ, dB = Aᵀ·g."""

def sqrt(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """y = √x, dy/dx = 1/(2y)."""

def sqrt_(input: Tensor) -> Tensor:
    """Compute `sqrt` in place and return the tensor."""

def square(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """y = x², dy/dx = 2x."""

def square_(input: Tensor) -> Tensor:
    """Compute `square` in place and return the tensor."""

def squeeze(input: Tensor, dim: _int | Sequence[_int] | None = None) -> Tensor:
    """Drop the dims of size 1 (all, or those in ``dim``), a view."""

def squeeze_copy(input: Tensor, *args: Any, out: Tensor | None = None, **kw: Any) -> Tensor:
    """Return what `squeeze` does in memory of its own, in C order: what is written to the result leaves the input as it is. Its derivative is that of `squeeze`."""

def stack(tensors: Sequence[Tensor], dim: _int = 0, *, axis: _int | None = None, out: Tensor | None = None) -> Tensor:
    """Join tensors of one shape along a new dim. RuntimeError when shapes differ."""

def std(
    input: Tensor, dim: _int | Sequence[_int] | None = None, unbiased: _bool | None = None, keepdim: _bool = False, *,
    correction: _float | None = None, out: Tensor | None = None
) -> Tensor:
    """Return the standard deviation over ``dim``: √`var`; the gradient is 0 where it is 0."""

def std_mean(
    input: Tensor, dim: _int | Sequence[_int] | None = None, unbiased: _bool | None = None, keepdim: _bool = False, *,
    correction: _float | None = None, out: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """Return (standard deviation, mean) over ``dim``; see `std`."""

def stft(
    input: Tensor, n_fft: _int, hop_length: _int | None = None, win_length: _int | None = None, window: Tensor | None = None,
    center: _bool = True, pad_mode: _str = 'reflect', normalized: _bool = False, onesided: _bool | None = None, return_complex:
    _bool | None = None, align_to_window: _bool | None = None
) -> Tensor:
    """Return spectra of pieces of a signal, […, time] → […, frequency, piece]: Σₖ window[k]·x[m·hop + k]·e^(−2πi·ωk/n_fft)."""

def sub(input: Tensor, other: Tensor | Number | _complex, *, alpha: _float | None = None, out: Tensor | None = None) -> Tensor:
    """Difference: y = a − alpha·b, dy/da = 1, dy/db = −alpha. RuntimeError for booleans."""

def subtract(
    input: Tensor, other: Tensor | Number | _complex, *, alpha: _float | None = None, out: Tensor | None = None
) -> Tensor:
    """Difference: y = a − alpha·b, dy/da = 1, dy/db = −alpha. RuntimeError for booleans."""

def sum(
    input: Tensor, dim: _int | Sequence[_int] | None = None, keepdim: _bool = False, *, dtype: _dtype | None = None, out: Tensor
    | None = None
) -> Tensor:
    """Sum over ``dim`` (an int, a tuple, or None for all): y = Σ x, dy/dx = 1."""

def svd(input: Tensor, some: _bool = True, compute_uv: _bool = True, *, out: Tensor | None = None) -> _return_types.svd:
    """Return (U, S, V) with A = U·diag(S)·Vᴴ: the older form of `linalg.svd`; without ``compute_uv`` U and V are zeros."""

def svd_lowrank(A: Tensor, q: _int = 6, niter: _int = 2, M: Tensor | None = None) -> tuple[Tensor, Tensor, Tensor]:
    """Return (U, S, V), about the ``q`` greatest singular values of A (− M) and their vectors, by random projection."""

def swapaxes(input: Tensor, axis0: _int, axis1: _int) -> Tensor:
    """Swap two axes, a view, as `transpose` does."""

def swapdims(input: Tensor, dim0: _int, dim1: _int) -> Tensor:
    """Swap two dims, a view."""

def t(input: Tensor) -> Tensor:
    """Return the transpose of a matrix (tensors of fewer dims as they are). RuntimeError for more than 2 dims."""

def t_copy(input: Tensor, *args: Any, out: Tensor | None = None, **kw: Any) -> Tensor:
    """Return what `t` does in memory of its own, in C order: what is written to the result leaves the input as it is. Its derivative is that of `t`."""

def take(input: Tensor, index: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Return the elements at flat (C order) indices; y has the shape of ``index``. IndexError when out of range."""

def take_along_dim(input: Tensor, indices: Tensor, dim: _int | None = None, *, out: Tensor | None = None) -> Tensor:
    """Return `gather` that broadcasts input and indices over the other dims; without ``dim``, on the flattened tensors."""

def tan(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """y = tan x, dy/dx = 1 + y²."""

def tan_(input: Tensor) -> Tensor:
    """Compute `tan` in place and return the tensor."""

def tanh(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """y = tanh x, dy/dx = 1 − y²."""

def tanh_(input: Tensor) -> Tensor:
    """Compute `tanh` in place and return the tensor."""

def tensor(
    data: Any, *, dtype: _dtype | None = None, device: Device = None, requires_grad: _bool = False, pin_memory: _bool = False
) -> Tensor:
    """Return a new leaf with a copy of ``data``: a number, nested lists, a NumPy array or a Tensor."""

def tensor_split(
    input: Tensor, indices_or_sections: _int | Sequence[_int] | Tensor | None = None, dim: _int = 0, *, indices: Sequence[_int]
    | None = None, sections: _int | None = None, tensor_indices_or_sections: Tensor | None = None
) -> tuple[Tensor, ...]:
    """Return views of nearly equal parts, or of the parts between given indices."""

def tensordot(a: Tensor, b: Tensor, dims: _int | Sequence[Sequence[_int]] = 2, out: Tensor | None = None) -> Tensor:
    """Contract the last ``dims`` dims of a with the first of b, or the two lists of dims given."""

def threshold(input: Tensor, threshold: _float, value: _float, inplace: _bool = False) -> Tensor:
    """Return x where x > threshold, else ``value``; dy/dx = 1 there, else 0."""

def threshold_(input: Tensor, threshold: _float, value: _float) -> Tensor:
    """Compute `threshold` in place and return the tensor."""

def tile(input: Tensor, *counts: _int | Sequence[_int], dims: _int | Sequence[_int] | None = None) -> Tensor:
    """Repeat the tensor ``dims`` times along each dim (missing dims count as 1)."""

def to_dlpack(tensor: Tensor) -> Tensor:
    """Return a capsule with the tensor's memory, for `from_dlpack` of any library, which may take it once. Derivative: none; the tensor is detached."""

def topk(
    input: Tensor, k: _int, dim: _int = -1, largest: _bool = True, sorted: _bool = True, *, out: Tensor | None = None
) -> _return_types.topk:
    """Return (values, indices) of the ``k`` largest (or smallest) along ``dim``, in order; NaN is greatest."""

def trace(input: Tensor) -> Tensor:
    """Return the sum of the diagonal of a matrix. RuntimeError unless 2-d."""

def transpose(input: Tensor, dim0: _int, dim1: _int) -> Tensor:
    """Swap two dims, a view."""

def transpose_copy(input: Tensor, *args: Any, out: Tensor | None = None, **kw: Any) -> Tensor:
    """Return what `transpose` does in memory of its own, in C order: what is written to the result leaves the input as it is. Its derivative is that of `transpose`."""

def trapezoid(y: Tensor, x: Tensor | None = None, *, dx: _float = 1, dim: _int = -1) -> Tensor:
    """Return the area under ``y`` along ``dim`` by trapezoids, over places ``x`` or of width ``dx``."""

def trapz(y: Tensor, x: Tensor | None = None, *, dx: _float = 1, dim: _int = -1) -> Tensor:
    """Return the area under ``y`` along ``dim`` by trapezoids, over places ``x`` or of width ``dx``."""

def triangular_solve(
    b: Tensor, A: Tensor, upper: _bool = True, transpose: _bool = False, unitriangular: _bool = False, *, out: Tensor | None =
    None
) -> _return_types.triangular_solve:
    """Return (solution, cloned_coefficient): the older form of `linalg.solve_triangular`, b before A."""

def tril(input: Tensor, diagonal: _int = 0, *, out: Tensor | None = None) -> Tensor:
    """Return the matrices with zeros above the diagonal number ``diagonal``; the gradient too."""

def tril_indices(
    row: _int, col: _int, offset: _int = 0, *, dtype: _dtype = ..., layout: _layout | None = None, device: Device = None,
    requires_grad: _bool = False, pin_memory: _bool = False
) -> Tensor:
    """Return rows and columns of the lower triangle of a ``row`` × ``col`` matrix, [2, n]."""

def triplet_margin_loss(
    anchor: Tensor, positive: Tensor, negative: Tensor, margin: _float = 1.0, p: _float = 2, eps: _float = 1e-06, swap: _bool =
    False, size_average: _bool | None = None, reduce: _str | None = None, reduction: _str = 'mean'
) -> Tensor:
    """Return max(0, d(anchor, positive) − d(anchor, negative) + margin), d the `pairwise_distance`: (N, n) → (N), reduced."""

def triu(input: Tensor, diagonal: _int = 0, *, out: Tensor | None = None) -> Tensor:
    """Return the matrices with zeros below the diagonal number ``diagonal``; the gradient too."""

def triu_indices(
    row: _int, col: _int, offset: _int = 0, *, dtype: _dtype = ..., layout: _layout | None = None, device: Device = None,
    requires_grad: _bool = False, pin_memory: _bool = False
) -> Tensor:
    """Return rows and columns of the upper triangle of a ``row`` × ``col`` matrix, [2, n]."""

def true_divide(
    input: Tensor, other: Tensor | Number | _complex, *, rounding_mode: _str | None = None, out: Tensor | None = None
) -> Tensor:
    """Quotient: y = a/b, dy/da = 1/b, dy/db = −a/b²; integers give floats. ``rounding_mode`` 'trunc' or 'floor' rounds."""

def trunc(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Return x without its fraction; the gradient is 0."""

def trunc_(input: Tensor) -> Tensor:
    """Compute `trunc` in place and return the tensor."""

def typename(obj: Any) -> _str:
    """Return the name of an object's type, with its module; of a class or a function its own name."""

def unbind(input: Tensor, dim: _int = 0) -> tuple[Tensor, ...]:
    """Return a tuple of the slices along ``dim``, views."""

def unbind_copy(input: Tensor, dim: _int = 0) -> tuple[Tensor, ...]:
    """Return what `unbind` does in memory of its own, in C order: what is written to the result leaves the input as it is. Its derivative is that of `unbind`."""

def unflatten(input: Tensor, dim: _int, sizes: _int | _size) -> Tensor:
    """Split one dim into ``sizes`` (one may be -1)."""

def unfold_copy(input: Tensor, *args: Any, out: Tensor | None = None, **kw: Any) -> Tensor:
    """Return what `unfold` does in memory of its own, in C order: what is written to the result leaves the input as it is. Its derivative is that of `unfold`."""

@overload
def unique(
    input: Tensor, sorted: _bool = True, return_inverse: Literal[False] = False, return_counts: Literal[False] = False, dim:
    _int | None = None
) -> Tensor:
    """Return the distinct elements (or slices along ``dim``) in order; if asked, where each element went and how often each occurs."""
@overload
def unique(
    input: Tensor, sorted: _bool = True, *, return_inverse: Literal[True], return_counts: Literal[False] = False, dim: _int |
    None = None
) -> tuple[Tensor, Tensor]:
    """Return the distinct elements (or slices along ``dim``) in order; if asked, where each element went and how often each occurs."""
@overload
def unique(
    input: Tensor, sorted: _bool = True, return_inverse: Literal[False] = False, *, return_counts: Literal[True], dim: _int |
    None = None
) -> tuple[Tensor, Tensor]:
    """Return the distinct elements (or slices along ``dim``) in order; if asked, where each element went and how often each occurs."""
@overload
def unique(
    input: Tensor, sorted: _bool = True, *, return_inverse: Literal[True], return_counts: Literal[True], dim: _int | None = None
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the distinct elements (or slices along ``dim``) in order; if asked, where each element went and how often each occurs."""
@overload
def unique(
    input: Tensor, sorted: _bool = True, return_inverse: _bool = False, return_counts: _bool = False, dim: _int | None = None
) -> Tensor | tuple[Tensor, ...]:
    """Return the distinct elements (or slices along ``dim``) in order; if asked, where each element went and how often each occurs."""

@overload
def unique_consecutive(
    input: Tensor, return_inverse: Literal[False] = False, return_counts: Literal[False] = False, dim: _int | None = None
) -> Tensor:
    """Return `unique` of neighbours only, in the order of the input."""
@overload
def unique_consecutive(
    input: Tensor, return_inverse: Literal[True], return_counts: Literal[False] = False, dim: _int | None = None
) -> tuple[Tensor, Tensor]:
    """Return `unique` of neighbours only, in the order of the input."""
@overload
def unique_consecutive(
    input: Tensor, return_inverse: Literal[False] = False, *, return_counts: Literal[True], dim: _int | None = None
) -> tuple[Tensor, Tensor]:
    """Return `unique` of neighbours only, in the order of the input."""
@overload
def unique_consecutive(
    input: Tensor, return_inverse: Literal[True], return_counts: Literal[True], dim: _int | None = None
) -> tuple[Tensor, Tensor, Tensor]:
    """Return `unique` of neighbours only, in the order of the input."""
@overload
def unique_consecutive(
    input: Tensor, return_inverse: _bool = False, return_counts: _bool = False, dim: _int | None = None
) -> Tensor | tuple[Tensor, ...]:
    """Return `unique` of neighbours only, in the order of the input."""

def unravel_index(indices: Tensor, shape: _int | _size) -> tuple[Tensor, ...]:
    """Return the coordinates of flat ``indices`` into a tensor of ``shape``: a tuple with one integer tensor for each dim."""

def unsafe_chunk(input: Tensor, chunks: _int, dim: _int = 0) -> tuple[Tensor, ...]:
    """Return `chunk` as `unsafe_split` does it."""

def unsafe_split(input: Tensor, split_size: _int | Sequence[_int], dim: _int = 0) -> tuple[Tensor, ...]:
    """Return `split`, whose parts autograd does not know to be views: each may be changed in place, if the input is not used again."""

def unsafe_split_with_sizes(input: Tensor, split_sizes: _int | _size, dim: _int = 0) -> tuple[Tensor, ...]:
    """Return `split_with_sizes` as `unsafe_split` does it."""

def unsqueeze(input: Tensor, dim: _int) -> Tensor:
    """Return a view with a new dim of size 1 at ``dim``."""

def unsqueeze_copy(input: Tensor, *args: Any, out: Tensor | None = None, **kw: Any) -> Tensor:
    """Return what `unsqueeze` does in memory of its own, in C order: what is written to the result leaves the input as it is. Its derivative is that of `unsqueeze`."""

def vander(x: Tensor, N: _int | None = None, increasing: _bool = False) -> Tensor:
    """Return x^(N−1), …, x, 1 as the columns of a matrix, or in ``increasing`` order; N is the size of x if not given."""

def var(
    input: Tensor, dim: _int | Sequence[_int] | None = None, unbiased: _bool | None = None, keepdim: _bool = False, *,
    correction: _float | None = None, out: Tensor | None = None
) -> Tensor:
    """Return the variance over ``dim``: Σ(x − mean)²/(n − correction); correction 1 unless ``unbiased=False`` or given."""

def var_mean(
    input: Tensor, dim: _int | Sequence[_int] | None = None, unbiased: _bool | None = None, keepdim: _bool = False, *,
    correction: _float | None = None, out: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """Return (variance, mean) over ``dim``; see `var`."""

def vdot(input: Tensor, other: Tensor | Number | _complex, *, out: Tensor | None = None) -> Tensor:
    """Inner product of two vectors, the first conjugated: y = Σ conj(aᵢ)·bᵢ."""

def view_as_complex(input: Tensor) -> Tensor:
    """Return pairs of real numbers as complex ones: […, 2] → […]; a view."""

def view_as_complex_copy(input: Tensor, *args: Any, out: Tensor | None = None, **kw: Any) -> Tensor:
    """Return what `view_as_complex` does in memory of its own, in C order: what is written to the result leaves the input as it is. Its derivative is that of `view_as_complex`."""

def view_as_real(input: Tensor) -> Tensor:
    """Return a complex tensor's memory as real numbers, a last dim of (real, imaginary): […] → […, 2]; a view."""

def view_as_real_copy(input: Tensor, *args: Any, out: Tensor | None = None, **kw: Any) -> Tensor:
    """Return what `view_as_real` does in memory of its own, in C order: what is written to the result leaves the input as it is. Its derivative is that of `view_as_real`."""

def view_copy(input: Tensor, *args: Any, out: Tensor | None = None, **kw: Any) -> Tensor:
    """Return what `view` does in memory of its own, in C order: what is written to the result leaves the input as it is. Its derivative is that of `view`."""

def vsplit(input: Tensor, indices_or_sections: _int | Sequence[_int] | Tensor) -> tuple[Tensor, ...]:
    """Return the `tensor_split` along dim 0 into equal parts or at indices. RuntimeError if uneven."""

def vstack(tensors: Sequence[Tensor], *, out: Tensor | None = None) -> Tensor:
    """Join as rows, along dim 0."""

@overload
def where(condition: Tensor) -> tuple[Tensor, ...]:
    """Return a where the condition holds, else b; each gets the gradient where it was chosen. With one argument: `nonzero`."""
@overload
def where(
    condition: Tensor, input: Tensor | Number | _complex, other: Tensor | Number | _complex, *, out: Tensor | None = None
) -> Tensor:
    """Return a where the condition holds, else b; each gets the gradient where it was chosen. With one argument: `nonzero`."""

def xlogy(input: Tensor, other: Tensor | Number | _complex, *, out: Tensor | None = None) -> Tensor:
    """Return x·ln y, 0 where x is 0 (unless y is nan)."""

def xlogy_(input: Tensor, other: Tensor | Number | _complex) -> Tensor:
    """Compute `xlogy` in place and return the tensor."""

def zero_(input: Tensor) -> Tensor:
    """Fill with 0, in place. Derivative: 0, as what was there is overwritten."""

def zeros(
    *args: Any, size: _int | _size | None = None, out: Tensor | None = None, dtype: _dtype | None = None, layout: _layout | None
    = None, device: Device = None, requires_grad: _bool = False, pin_memory: _bool = False, memory_format: _memory_format | None
    = None
) -> Tensor:
    """Return a tensor of ``size`` filled with 0, of the default dtype or ``dtype``."""

def zeros_like(
    input: Tensor, *, dtype: _dtype | None = None, device: Device = None, requires_grad: _bool = False, layout: _layout | None =
    None, memory_format: _memory_format | None = None, pin_memory: _bool = False
) -> Tensor:
    """Return what `zeros` does with the shape and dtype of another tensor."""
