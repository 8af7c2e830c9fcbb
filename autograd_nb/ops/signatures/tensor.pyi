"""What the ops attach to Tensor. Written by `make stubs` from the table of ops: change the op, not this file."""

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

class TensorMethods:
    """The methods and attributes that the ops give Tensor."""

    def __new__(cls, *args: Any, **kwargs: Any) -> Self: ...

    @property
    def H(self) -> Tensor:
        """The conjugate transpose of a matrix."""

    @property
    def T(self) -> Tensor:
        """The dims in reverse order, a view."""

    def __abs__(self) -> Tensor:
        """y = |x|, dy/dx = sgn x (0 at 0); complex numbers give real ones."""

    def __add__(self, other: Tensor | Number | _complex) -> Tensor: ...

    def __and__(self, other: Tensor | Number | _complex) -> Tensor: ...

    def __array__(self: _Holds[_Array], dtype: Any = None, copy: _bool | None = None) -> _Array: ...

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any: ...

    def __array_wrap__(self, array: Any, context: Any = None, return_scalar: _bool = False) -> Tensor:
        """Return what NumPy computed as a tensor; bools as bytes, as in PyTorch."""

    def __bool__(self) -> _bool: ...

    def __complex__(self) -> Tensor: ...

    def __contains__(self, value: Any) -> _bool: ...

    def __delitem__(self, index: Any) -> None: ...

    def __dir__(self) -> list[_str]:
        """Return the attributes that a tensor has, for `dir`: places that only views fill are none of the others'."""

    def __div__(self, other: Tensor | Number | _complex) -> Tensor: ...

    def __dlpack__(
        self, *, stream: Any = None, max_version: Any = None, dl_device: Any = None, copy: _bool | None = None
    ) -> Any:
        """Return a capsule with the tensor's memory; ``stream`` is for devices, and is None (or -1) here."""

    def __dlpack_device__(self) -> tuple[_int, _int]:
        """Return DLPack's number of the CPU; ValueError for a tensor of the device 'meta', which has no memory."""

    def __eq__(self, other: Tensor | Number | _complex) -> Tensor: ...  # type: ignore[override]

    def __float__(self) -> _float: ...

    def __floordiv__(self, other: Tensor | Number | _complex) -> Tensor: ...

    def __format__(self, spec: _str) -> _str: ...

    def __ge__(self, other: Tensor | Number | _complex) -> Tensor: ...

    def __getitem__(self, index: Any) -> Tensor: ...

    def __gt__(self, other: Tensor | Number | _complex) -> Tensor: ...

    def __iadd__(self, other: Tensor | Number | _complex) -> Tensor:
        """Compute `add` in place and return the tensor."""

    def __iand__(self, other: Tensor | Number | _complex) -> Tensor: ...

    def __ifloordiv__(self, other: Tensor | Number | _complex) -> Tensor: ...

    def __ilshift__(self, other: Tensor | Number | _complex) -> Tensor: ...

    def __imod__(self, other: Tensor | Number | _complex) -> Tensor: ...

    def __imul__(self, other: Tensor | Number | _complex) -> Tensor:
        """Compute `mul` in place and return the tensor."""

    def __index__(self) -> _int: ...

    def __int__(self) -> Tensor: ...

    def __invert__(self) -> Tensor: ...

    def __ior__(self, other: Tensor | Number | _complex) -> Tensor: ...

    def __ipow__(self, other: Tensor | Number | _complex) -> Tensor: ...  # type: ignore[misc]

    def __irshift__(self, other: Tensor | Number | _complex) -> Tensor: ...

    def __isub__(self, other: Tensor | Number | _complex) -> Tensor:
        """Compute `sub` in place and return the tensor."""

    def __iter__(self) -> Iterator[Tensor]: ...

    def __itruediv__(self, other: Tensor | Number | _complex) -> Tensor: ...

    def __ixor__(self, other: Tensor | Number | _complex) -> Tensor: ...

    def __le__(self, other: Tensor | Number | _complex) -> Tensor: ...

    def __len__(self) -> _int: ...

    def __long__(self) -> Tensor: ...

    def __lshift__(self, other: Tensor | Number | _complex) -> Tensor: ...

    def __lt__(self, other: Tensor | Number | _complex) -> Tensor: ...

    def __matmul__(self, other: Tensor | Number | _complex) -> Tensor:
        """Return the product of vectors, matrices and batches of them; batch dims broadcast."""

    def __mod__(self, other: Tensor | Number | _complex) -> Tensor: ...

    def __mul__(self, other: Tensor | Number | _complex) -> Tensor: ...

    def __ne__(self, other: Tensor | Number | _complex) -> Tensor: ...  # type: ignore[override]

    def __neg__(self) -> Tensor:
        """y = −x, dy/dx = −1."""

    def __nonzero__(self) -> _bool: ...

    def __or__(self, other: Tensor | Number | _complex) -> Tensor: ...

    def __pointwise__(self, name: _str, args: tuple[Any, ...], options: dict[Any, Any]) -> Any:
        """Return ``m.<name>`` on tensors (see `autograd_nb.codegen.formula.namespace`)."""

    def __pos__(self) -> Tensor:
        """Return the tensor itself. RuntimeError for booleans."""

    def __pow__(self, other: Any) -> Tensor: ...

    def __radd__(self, other: Tensor | Number | _complex) -> Tensor: ...

    def __rand__(self, other: Tensor | Number | _complex) -> Tensor: ...

    def __rdiv__(self, other: Tensor | Number | _complex) -> Tensor:
        """Return ``other / input``. Recorded it is two ops, as in PyTorch: what the derivative keeps is then nobody's to change."""

    def __repr__(self) -> _str:
        """Return ``tensor([…], dtype=…, grad_fn=<…>)``."""

    def __reversed__(self) -> Tensor:
        """Return ``reversed(x)``: the first dim from the back, a tensor as PyTorch gives it."""

    def __rfloordiv__(self, other: Tensor | Number | _complex) -> Tensor: ...

    def __rlshift__(self, other: Tensor | Number | _complex) -> Tensor: ...

    def __rmatmul__(self, other: Any) -> Tensor: ...

    def __rmod__(self, other: Tensor | Number | _complex) -> Tensor: ...

    def __rmul__(self, other: Tensor | Number | _complex) -> Tensor: ...

    def __ror__(self, other: Tensor | Number | _complex) -> Tensor: ...

    def __rpow__(self, other: Tensor | Number | _complex) -> Tensor: ...

    def __rrshift__(self, other: Tensor | Number | _complex) -> Tensor: ...

    def __rshift__(self, other: Tensor | Number | _complex) -> Tensor: ...

    def __rsub__(self, other: Tensor | Number | _complex) -> Tensor: ...

    def __rtruediv__(self, other: Tensor | Number | _complex) -> Tensor:
        """Return ``other / input``. Recorded it is two ops, as in PyTorch: what the derivative keeps is then nobody's to change."""

    def __rxor__(self, other: Tensor | Number | _complex) -> Tensor: ...

    def __setitem__(self, index: Any, value: Any) -> None: ...

    def __sub__(self, other: Tensor | Number | _complex) -> Tensor: ...

    def __truediv__(self, other: Tensor | Number | _complex) -> Tensor: ...

    def __xor__(self, other: Tensor | Number | _complex) -> Tensor: ...

    @property
    def _backward_hooks(self) -> None:
        """None, or what was set, which nothing reads: hooks of a tensor are its node's."""
    @_backward_hooks.setter
    def _backward_hooks(self, value: None) -> None: ...

    def _fix_weakref(self) -> None:
        """Do nothing: weak references to a tensor end with the tensor."""

    @property
    def _grad_fn(self) -> None:
        """`grad_fn`, by its old name."""

    def _is_all_true(self) -> Tensor:
        """Return whether all elements of a tensor of bools are true."""

    def _is_any_true(self) -> Tensor:
        """Return whether some element of a tensor of bools is true."""

    def _neg_view(self) -> Tensor:
        """Return a view that shows the negatives."""

    def _repr_html_(self) -> _str:
        """Return what notebooks show of a tensor: shape, dtype, device, how it was made and where, a table of values, how many of each there are."""

    def _typed_storage(self) -> TypedStorage:
        """Return `storage`, by the name that PyTorch's own functions use."""

    def abs(self, *, out: Tensor | None = None) -> Tensor:
        """y = |x|, dy/dx = sgn x (0 at 0); complex numbers give real ones."""

    def abs_(self) -> Tensor:
        """Compute `abs` in place and return the tensor."""

    def absolute(self, *, out: Tensor | None = None) -> Tensor:
        """y = |x|, dy/dx = sgn x (0 at 0); complex numbers give real ones."""

    def absolute_(self) -> Tensor:
        """Compute `abs` in place and return the tensor."""

    def acos(self, *, out: Tensor | None = None) -> Tensor:
        """y = arccos x, dy/dx = −1/√(1 − x²)."""

    def acos_(self) -> Tensor:
        """Compute `acos` in place and return the tensor."""

    def acosh(self, *, out: Tensor | None = None) -> Tensor:
        """y = arcosh x, dy/dx = 1/√(x² − 1)."""

    def acosh_(self) -> Tensor:
        """Compute `acosh` in place and return the tensor."""

    def add(self, other: Tensor | Number | _complex, *, alpha: _float | None = None, out: Tensor | None = None) -> Tensor:
        """Sum: y = a + alpha·b, dy/da = 1, dy/db = alpha."""

    def add_(self, other: Tensor | Number | _complex, *, alpha: _float | None = None) -> Tensor:
        """Compute `add` in place and return the tensor."""

    def addbmm(
        self, batch1: Tensor, batch2: Tensor, *, beta: _float = 1, alpha: _float = 1, out: Tensor | None = None
    ) -> Tensor:
        """y = beta·input + alpha·Σᵢ A[i]·B[i]."""

    def addbmm_(self, batch1: Tensor, batch2: Tensor, *, beta: _float = 1, alpha: _float = 1) -> Tensor:
        """Do what `addbmm` does, in place. A tensor that has to be broadcast gets the shape of the result, as in PyTorch."""

    def addcdiv(self, tensor1: Tensor, tensor2: Tensor, *, value: Number | _complex = 1, out: Tensor | None = None) -> Tensor:
        """Return x + value·(tensor1 / tensor2), ``value`` a number."""

    def addcdiv_(self, tensor1: Tensor, tensor2: Tensor, *, value: Number | _complex = 1) -> Tensor:
        """Compute `addcdiv` in place and return the tensor."""

    def addcmul(self, tensor1: Tensor, tensor2: Tensor, *, value: Number | _complex = 1, out: Tensor | None = None) -> Tensor:
        """Return x + value·(tensor1 · tensor2), ``value`` a number."""

    def addcmul_(self, tensor1: Tensor, tensor2: Tensor, *, value: Number | _complex = 1) -> Tensor:
        """Compute `addcmul` in place and return the tensor."""

    def addmm(self, mat1: Tensor, mat2: Tensor, *, beta: _float = 1, alpha: _float = 1, out: Tensor | None = None) -> Tensor:
        """y = beta·input + alpha·A·B."""

    def addmm_(self, mat1: Tensor, mat2: Tensor, *, beta: _float = 1, alpha: _float = 1) -> Tensor:
        """Compute `addmm` in place and return the tensor."""

    def addmv(self, mat: Tensor, vec: Tensor, *, beta: _float = 1, alpha: _float = 1, out: Tensor | None = None) -> Tensor:
        """y = beta·input + alpha·A·v."""

    def addmv_(self, mat: Tensor, vec: Tensor, *, beta: _float = 1, alpha: _float = 1) -> Tensor:
        """Do what `addmv` does, in place. Of an expanded tensor each element is the last one's successor, row by row, as in PyTorch."""

    def addr(self, vec1: Tensor, vec2: Tensor, *, beta: _float = 1, alpha: _float = 1, out: Tensor | None = None) -> Tensor:
        """y = beta·input + alpha·a⊗b; of booleans with 'or' for the sum and 'and' for products."""

    def addr_(self, vec1: Tensor, vec2: Tensor, *, beta: _float = 1, alpha: _float = 1) -> Tensor:
        """Do what `addr` does, in place."""

    def adjoint(self) -> Tensor:
        """Return the conjugate transpose of the last two dims, a view. RuntimeError for 1-D tensors."""

    def all(self, dim: _int | Sequence[_int] | None = None, keepdim: _bool = False, *, out: Tensor | None = None) -> Tensor:
        """Return whether every element is not 0, over ``dim`` or all."""

    def allclose(
        self, other: Tensor | Number | _complex, rtol: _float = 1e-05, atol: _float = 1e-08, equal_nan: _bool = False
    ) -> _bool:
        """Return whether `isclose` holds everywhere."""

    def amax(self, dim: _int | Sequence[_int] = (), keepdim: _bool = False, *, out: Tensor | None = None) -> Tensor:
        """Return the maximum over ``dim`` (an int or several); ties share the gradient; nan wins."""

    def amin(self, dim: _int | Sequence[_int] = (), keepdim: _bool = False, *, out: Tensor | None = None) -> Tensor:
        """Return the minimum over ``dim`` (an int or several); ties share the gradient; nan wins."""

    def aminmax(
        self, *, dim: _int | Sequence[_int] | None = None, keepdim: _bool = False, out: Tensor | None = None
    ) -> _return_types.aminmax:
        """Return (min, max) over a dim, or over everything."""

    def angle(self, *, out: Tensor | None = None) -> Tensor:
        """Return the angle in radians, within [−π, π]; of real numbers 0 or π. The gradient is i·x·g/|x|², 0 at 0."""

    def any(self, dim: _int | Sequence[_int] | None = None, keepdim: _bool = False, *, out: Tensor | None = None) -> Tensor:
        """Return whether any element is not 0, over ``dim`` or all."""

    def apply_(self, callable: Callable[..., _float]) -> Tensor:
        """Replace every element by ``callable(element)``, a Python function; slow. Derivative: none. Errors: RuntimeError for tensors that require grad."""

    def arccos(self, *, out: Tensor | None = None) -> Tensor:
        """y = arccos x, dy/dx = −1/√(1 − x²)."""

    def arccos_(self) -> Tensor:
        """Compute `acos` in place and return the tensor."""

    def arccosh(self, *, out: Tensor | None = None) -> Tensor:
        """y = arcosh x, dy/dx = 1/√(x² − 1)."""

    def arccosh_(self) -> Tensor:
        """Compute `acosh` in place and return the tensor."""

    def arcsin(self, *, out: Tensor | None = None) -> Tensor:
        """y = arcsin x, dy/dx = 1/√(1 − x²)."""

    def arcsin_(self) -> Tensor:
        """Compute `asin` in place and return the tensor."""

    def arcsinh(self, *, out: Tensor | None = None) -> Tensor:
        """y = arsinh x, dy/dx = 1/√(x² + 1)."""

    def arcsinh_(self) -> Tensor:
        """Compute `asinh` in place and return the tensor."""

    def arctan(self, *, out: Tensor | None = None) -> Tensor:
        """y = arctan x, dy/dx = 1/(1 + x²)."""

    def arctan2(self, other: Tensor | Number | _complex, *, out: Tensor | None = None) -> Tensor:
        """Return the angle of the point (b, a): dy/da = b/(a² + b²), dy/db = −a/(a² + b²)."""

    def arctan2_(self, other: Tensor | Number | _complex) -> Tensor:
        """Compute `atan2` in place and return the tensor."""

    def arctan_(self) -> Tensor:
        """Compute `atan` in place and return the tensor."""

    def arctanh(self, *, out: Tensor | None = None) -> Tensor:
        """y = artanh x, dy/dx = 1/(1 − x²)."""

    def arctanh_(self) -> Tensor:
        """Compute `atanh` in place and return the tensor."""

    def argmax(self, dim: _int | None = None, keepdim: _bool = False, *, out: Tensor | None = None) -> Tensor:
        """Return the index of the maximum along ``dim`` (the first of several; nan wins), or in the flattened tensor."""

    def argmin(self, dim: _int | None = None, keepdim: _bool = False, *, out: Tensor | None = None) -> Tensor:
        """Return the index of the minimum along ``dim`` (the first of several; nan wins), or in the flattened tensor."""

    def argsort(self, dim: _int = -1, descending: _bool = False, *, stable: _bool = False) -> Tensor:
        """Return the indices that sort along ``dim``."""

    def argwhere(self) -> Tensor:
        """Return `nonzero`, one row per element that is not zero."""

    def as_strided(self, size: _int | _size, stride: _int | Sequence[_int], storage_offset: _int | None = None) -> Tensor:
        """Return the tensor's memory under any shape and strides (in elements), a view; elements seen twice collect both gradients."""

    def as_strided_(self, size: _int | _size, stride: _int | Sequence[_int], storage_offset: _int | None = None) -> Tensor:
        """Return the tensor itself after `as_strided`: it is read through other sizes and strides, its memory stays."""

    def as_strided_scatter(
        self, src: Tensor, size: _int | _size, stride: _int | Sequence[_int], storage_offset: _int | None = None
    ) -> Tensor:
        """Return a copy of ``input`` with ``src`` in place of ``as_strided(size, stride, storage_offset)``; it keeps the strides."""

    def as_subclass(self, cls: type) -> Any:
        """Return the tensor as one of another class, with the same memory; dy/dx = 1. TypeError where ``cls`` is no subclass of Tensor."""

    def asin(self, *, out: Tensor | None = None) -> Tensor:
        """y = arcsin x, dy/dx = 1/√(1 − x²)."""

    def asin_(self) -> Tensor:
        """Compute `asin` in place and return the tensor."""

    def asinh(self, *, out: Tensor | None = None) -> Tensor:
        """y = arsinh x, dy/dx = 1/√(x² + 1)."""

    def asinh_(self) -> Tensor:
        """Compute `asinh` in place and return the tensor."""

    def atan(self, *, out: Tensor | None = None) -> Tensor:
        """y = arctan x, dy/dx = 1/(1 + x²)."""

    def atan2(self, other: Tensor | Number | _complex, *, out: Tensor | None = None) -> Tensor:
        """Return the angle of the point (b, a): dy/da = b/(a² + b²), dy/db = −a/(a² + b²)."""

    def atan2_(self, other: Tensor | Number | _complex) -> Tensor:
        """Compute `atan2` in place and return the tensor."""

    def atan_(self) -> Tensor:
        """Compute `atan` in place and return the tensor."""

    def atanh(self, *, out: Tensor | None = None) -> Tensor:
        """y = artanh x, dy/dx = 1/(1 − x²)."""

    def atanh_(self) -> Tensor:
        """Compute `atanh` in place and return the tensor."""

    def backward(
        self, gradient: Tensor | None = None, retain_graph: _bool | None = None, create_graph: _bool = False, inputs: Tensor |
        Sequence[Tensor] | None = None
    ) -> None:
        """Accumulate d(self)/d(leaf) into the ``.grad`` of the leaves, and consume the graph."""

    def baddbmm(
        self, batch1: Tensor, batch2: Tensor, *, beta: _float = 1, alpha: _float = 1, out: Tensor | None = None
    ) -> Tensor:
        """y[i] = beta·input[i] + alpha·A[i]·B[i]."""

    def baddbmm_(self, batch1: Tensor, batch2: Tensor, *, beta: _float = 1, alpha: _float = 1) -> Tensor:
        """Compute `baddbmm` in place and return the tensor."""

    def bernoulli(
        self, p: Tensor | _float | None = None, *, generator: Generator | None = None, out: Tensor | None = None
    ) -> Tensor:
        """Return 1 with the probability that the element of ``input`` gives (or ``p`` for all), else 0. Its gradient is 0."""

    def bernoulli_(self, p: Tensor | _float = 0.5, *, generator: Generator | None = None) -> Tensor:
        """Fill with 1 with probability ``p`` (a number, or a tensor that broadcasts), else 0."""

    def bfloat16(self, memory_format: _memory_format | None = None) -> Tensor:
        """Return the tensor as bfloat16."""

    def bincount(self, weights: Tensor | None = None, minlength: _int = 0) -> Tensor:
        """Return how often each non-negative integer of a 1-d tensor occurs, or the sum of ``weights`` there; no gradient. RuntimeError otherwise."""

    def bitwise_and(self, other: Tensor | Number | _complex, *, out: Tensor | None = None) -> Tensor:
        """Return the bitwise and of integers and booleans. NotImplementedError for others."""

    def bitwise_and_(self, other: Tensor | Number | _complex) -> Tensor:
        """Compute `bitwise_and` in place and return the tensor."""

    def bitwise_left_shift(self, other: Tensor | Number | _complex, *, out: Tensor | None = None) -> Tensor:
        """Return a·2ᵇ of integers, 0 where b is not a place of their bits. NotImplementedError for others."""

    def bitwise_left_shift_(self, other: Tensor | Number | _complex) -> Tensor:
        """Compute `bitwise_left_shift` in place and return the tensor."""

    def bitwise_not(self, *, out: Tensor | None = None) -> Tensor:
        """Return every bit inverted; ``not`` for booleans. NotImplementedError for floats."""

    def bitwise_not_(self) -> Tensor:
        """Compute `bitwise_not` in place and return the tensor."""

    def bitwise_or(self, other: Tensor | Number | _complex, *, out: Tensor | None = None) -> Tensor:
        """Return the bitwise or of integers and booleans. NotImplementedError for others."""

    def bitwise_or_(self, other: Tensor | Number | _complex) -> Tensor:
        """Compute `bitwise_or` in place and return the tensor."""

    def bitwise_right_shift(self, other: Tensor | Number | _complex, *, out: Tensor | None = None) -> Tensor:
        """Return ⌊a/2ᵇ⌋ of integers, the sign where b is no place of theirs. NotImplementedError for others."""

    def bitwise_right_shift_(self, other: Tensor | Number | _complex) -> Tensor:
        """Compute `bitwise_right_shift` in place and return the tensor."""

    def bitwise_xor(self, other: Tensor | Number | _complex, *, out: Tensor | None = None) -> Tensor:
        """Return the bitwise exclusive or of integers and booleans. NotImplementedError for others."""

    def bitwise_xor_(self, other: Tensor | Number | _complex) -> Tensor:
        """Compute `bitwise_xor` in place and return the tensor."""

    def bmm(self, mat2: Tensor, *, out: Tensor | None = None) -> Tensor:
        """Products of two batches of matrices: y[i] = A[i]·B[i]."""

    def bool(self, memory_format: _memory_format | None = None) -> Tensor:
        """Return the tensor as bool."""

    def broadcast_to(self, size: _int | _size) -> Tensor:
        """Return ``expand`` under its NumPy name."""

    def byte(self, memory_format: _memory_format | None = None) -> Tensor:
        """Return the tensor as uint8."""

    def cauchy_(self, median: _float = 0, sigma: _float = 1, *, generator: Generator | None = None) -> Tensor:
        """Fill with numbers of the Cauchy distribution. Derivative: 0, as what was there is overwritten."""

    def cdouble(self, memory_format: _memory_format | None = None) -> Tensor:
        """Return the tensor as complex128."""

    def ceil(self, *, out: Tensor | None = None) -> Tensor:
        """Return the smallest integer ≥ x; the gradient is 0."""

    def ceil_(self) -> Tensor:
        """Compute `ceil` in place and return the tensor."""

    def cfloat(self, memory_format: _memory_format | None = None) -> Tensor:
        """Return the tensor as complex64."""

    def chalf(self, memory_format: _memory_format | None = None) -> Tensor:
        """Return the tensor as complex32."""

    def char(self, memory_format: _memory_format | None = None) -> Tensor:
        """Return the tensor as int8."""

    def cholesky(self, upper: _bool = False, *, out: Tensor | None = None) -> Tensor:
        """Return `linalg.cholesky`, its older name."""

    def cholesky_inverse(self, upper: _bool = False, *, out: Tensor | None = None) -> Tensor:
        """Return A⁻¹, given the Cholesky factor of A (…, n, n)."""

    def cholesky_solve(self, L: Tensor, upper: _bool = False, *, out: Tensor | None = None) -> Tensor:
        """X with A·X = B, given the Cholesky factor of A: B (…, n, k), L (…, n, n), batches broadcast."""

    def chunk(self, chunks: _int, dim: _int = 0) -> tuple[Tensor, ...]:
        """Return at most ``chunks`` views of equal size (the last may be smaller) along ``dim``."""

    def clamp(
        self, min: Tensor | Number | _complex | None = None, max: Tensor | Number | _complex | None = None, *, out: Tensor |
        None = None
    ) -> Tensor:
        """Return x kept within [min, max] (numbers or tensors); dy/dx = 1 inside and at the edges, else 0."""

    def clamp_(self, min: Tensor | Number | _complex | None = None, max: Tensor | Number | _complex | None = None) -> Tensor:
        """Compute `clamp` in place and return the tensor."""

    def clamp_max(self, max: Tensor | Number | _complex, *, out: Tensor | None = None) -> Tensor:
        """Return x kept at or below ``max``; dy/dx = 1 for x ≤ max, else 0."""

    def clamp_max_(self, max: Tensor | Number | _complex) -> Tensor:
        """Compute `clamp_max` in place and return the tensor."""

    def clamp_min(self, min: Tensor | Number | _complex, *, out: Tensor | None = None) -> Tensor:
        """Return x kept at or above ``min``."""

    def clamp_min_(self, min: Tensor | Number | _complex) -> Tensor:
        """Compute `clamp_min` in place and return the tensor."""

    def clip(
        self, min: Tensor | Number | _complex | None = None, max: Tensor | Number | _complex | None = None, *, out: Tensor |
        None = None
    ) -> Tensor:
        """Return x kept within [min, max] (numbers or tensors); dy/dx = 1 inside and at the edges, else 0."""

    def clip_(self, min: Tensor | Number | _complex | None = None, max: Tensor | Number | _complex | None = None) -> Tensor:
        """Compute `clamp` in place and return the tensor."""

    def clone(self, *, memory_format: _memory_format | None = None) -> Tensor:
        """Return a copy in memory of its own, with the same order of dims unless ``memory_format`` says another; dy/dx = 1."""

    def conj(self) -> Tensor:
        """Return the complex conjugate, a view; a real tensor is its own. The gradient is conj(g)."""

    def conj_physical(self, *, out: Tensor | None = None) -> Tensor:
        """Return the complex conjugate in memory of its own; a real tensor is its own; dx = conj(g)."""

    def conj_physical_(self) -> Tensor:
        """Compute `conj_physical` in place and return the tensor."""

    def const_data_ptr(self) -> _int:
        """Return `data_ptr`, for those who only read."""

    def contiguous(self, memory_format: _memory_format | None = None) -> Tensor:
        """Return the tensor itself when its elements stand in C order (or as ``memory_format`` says), else a copy so laid."""

    def copy_(self, src: Tensor, non_blocking: _bool = False) -> Tensor:
        """Overwrite with ``src`` (a tensor that broadcasts and is cast, or a number); the gradient goes to ``src``."""

    def copysign(self, other: Tensor | Number | _complex, *, out: Tensor | None = None) -> Tensor:
        """Return |a| with the sign of b."""

    def copysign_(self, other: Tensor | Number | _complex) -> Tensor:
        """Compute `copysign` in place and return the tensor."""

    def corrcoef(self) -> Tensor:
        """Return the matrix of Pearson's correlation coefficients of the rows, kept within [−1, 1]."""

    def cos(self, *, out: Tensor | None = None) -> Tensor:
        """y = cos x, dy/dx = −sin x."""

    def cos_(self) -> Tensor:
        """Compute `cos` in place and return the tensor."""

    def cosh(self, *, out: Tensor | None = None) -> Tensor:
        """y = cosh x, dy/dx = sinh x."""

    def cosh_(self) -> Tensor:
        """Compute `cosh` in place and return the tensor."""

    def count_nonzero(self, dim: _int | Sequence[_int] | None = None) -> Tensor:
        """Return how many elements are not 0, over ``dim`` or all."""

    def cov(self, *, correction: _int = 1, fweights: Tensor | None = None, aweights: Tensor | None = None) -> Tensor:
        """Return the covariance matrix of the rows (variables) over the columns (observations)."""

    def cpu(self, memory_format: _memory_format | None = None) -> Tensor:
        """Return the tensor itself: it lives on the CPU (a copy where ``memory_format`` asks for another order of dims). Derivative: the gradient itself."""

    def cross(self, other: Tensor | Number | _complex, dim: _int | None = None, *, out: Tensor | None = None) -> Tensor:
        """Return `linalg.cross` along ``dim``, the first dim of size 3 if not given."""

    def cuda(self, device: Device = None, non_blocking: _bool = False, memory_format: _memory_format | None = None) -> Tensor:
        """Raise RuntimeError: there is no cuda device here (but see `compat.gpus`)."""

    def cummax(self, dim: _int, *, out: Tensor | None = None) -> _return_types.cummax:
        """Return (values, indices) of the maximum so far along ``dim``; the last index of several; nan wins."""

    def cummin(self, dim: _int, *, out: Tensor | None = None) -> _return_types.cummin:
        """Return (values, indices) of the minimum so far along ``dim``; the last index of several; nan wins."""

    def cumprod(self, dim: _int, *, dtype: _dtype | None = None, out: Tensor | None = None) -> Tensor:
        """yₖ = x₀ · … · xₖ along ``dim``; integers give int64. The gradient is right where elements are 0."""

    def cumprod_(self, dim: _int, *, dtype: _dtype | None = None) -> Tensor:
        """Compute `cumprod` in place and return the tensor."""

    def cumsum(self, dim: _int, *, dtype: _dtype | None = None, out: Tensor | None = None) -> Tensor:
        """yₖ = x₀ + … + xₖ along ``dim``; integers give int64; dL/dx is the running sum of g from the end."""

    def cumsum_(self, dim: _int, *, dtype: _dtype | None = None) -> Tensor:
        """Compute `cumsum` in place and return the tensor."""

    def data_ptr(self) -> _int:
        """Return the address of the first element; 0 where there is none."""

    def deg2rad(self, *, out: Tensor | None = None) -> Tensor:
        """y = x·π/180."""

    def deg2rad_(self) -> Tensor:
        """Compute `deg2rad` in place and return the tensor."""

    def dense_dim(self) -> _int:
        """Return how many dims have no coordinates: all of a dense tensor."""

    def dequantize(self) -> Tensor:
        """Return the tensor in float32: it was not quantized."""

    def det(self, *, out: Tensor | None = None) -> Tensor:
        """Return the determinants of square matrices (…, n, n) → (…); dA = g·det(A)·A⁻ᴴ, the matrix of cofactors where A is singular."""

    @property
    def device(self) -> _device:
        """Where the tensor lives: the CPU."""

    def diag(self, diagonal: _int = 0, *, out: Tensor | None = None) -> Tensor:
        """Return a matrix with a 1-d tensor on its diagonal, or the diagonal of a matrix. RuntimeError for other ranks."""

    def diag_embed(self, offset: _int = 0, dim1: _int = -2, dim2: _int = -1) -> Tensor:
        """Return matrices with the last dim on diagonal ``offset`` and zeros elsewhere."""

    def diagflat(self, offset: _int = 0) -> Tensor:
        """Return a matrix with all elements on its diagonal."""

    def diagonal(self, offset: _int = 0, dim1: _int = 0, dim2: _int = 1) -> Tensor:
        """Return the diagonal of each matrix in dims ``dim1``, ``dim2`` as a view, in a new last dim."""

    def diagonal_scatter(self, src: Tensor, offset: _int = 0, dim1: _int = 0, dim2: _int = 1) -> Tensor:
        """Return a copy of ``input`` with ``src`` in place of ``diagonal(offset, dim1, dim2)``."""

    def diff(
        self, n: _int = 1, dim: _int = -1, prepend: Tensor | None = None, append: Tensor | None = None, *, out: Tensor | None =
        None
    ) -> Tensor:
        """Return the n-th difference along ``dim``: yₖ = xₖ₊₁ − xₖ, with ``prepend`` and ``append`` joined on first."""

    def digamma(self, *, out: Tensor | None = None) -> Tensor:
        """y = ψ(x) = Γ'(x)/Γ(x); dy/dx = the trigamma function. nan at negative integers, ∓∞ at ±0."""

    def digamma_(self) -> Tensor:
        """Compute `digamma` in place and return the tensor."""

    def dim(self) -> _int:
        """Return the number of dims."""

    def dim_order(self, *, ambiguity_check: _bool | Sequence[Any] = False) -> tuple[_int, ...]:
        """Return the dims from the outermost in memory to the innermost; RuntimeError where that is ambiguous and ``ambiguity_check`` says to look."""

    def dist(self, other: Tensor | Number | _complex, p: _float = 2) -> Tensor:
        """Return the p-norm of input − other."""

    def div(self, other: Tensor | Number | _complex, *, rounding_mode: _str | None = None, out: Tensor | None = None) -> Tensor:
        """Quotient: y = a/b, dy/da = 1/b, dy/db = −a/b²; integers give floats. ``rounding_mode`` 'trunc' or 'floor' rounds."""

    def div_(self, other: Tensor | Number | _complex, *, rounding_mode: _str | None = None) -> Tensor:
        """Compute `div` in place and return the tensor."""

    def divide(
        self, other: Tensor | Number | _complex, *, rounding_mode: _str | None = None, out: Tensor | None = None
    ) -> Tensor:
        """Quotient: y = a/b, dy/da = 1/b, dy/db = −a/b²; integers give floats. ``rounding_mode`` 'trunc' or 'floor' rounds."""

    def divide_(self, other: Tensor | Number | _complex, *, rounding_mode: _str | None = None) -> Tensor:
        """Compute `div` in place and return the tensor."""

    def dot(self, tensor: Tensor, *, out: Tensor | None = None) -> Tensor:
        """Inner product of two vectors: y = Σ aᵢbᵢ."""

    def double(self, memory_format: _memory_format | None = None) -> Tensor:
        """Return the tensor as float64."""

    def dsplit(self, indices_or_sections: _int | Sequence[_int] | Tensor) -> tuple[Tensor, ...]:
        """Return the `tensor_split` along dim 2 into equal parts or at indices. RuntimeError if uneven."""

    def element_size(self) -> _int:
        """Return the bytes of one element."""

    def eq(self, other: Tensor | Number | _complex, *, out: Tensor | None = None) -> Tensor:
        """Return whether a = b, element by element."""

    def eq_(self, other: Tensor | Number | _complex) -> Tensor:
        """Compute `eq` in place and return the tensor."""

    def equal(self, other: Tensor | Number | _complex) -> _bool:
        """Return whether two tensors have the same shape and elements."""

    def erf(self, *, out: Tensor | None = None) -> Tensor:
        """y = 2/√π ∫₀ˣ e^(−t²) dt, dy/dx = 2/√π · e^(−x²)."""

    def erf_(self) -> Tensor:
        """Compute `erf` in place and return the tensor."""

    def erfc(self, *, out: Tensor | None = None) -> Tensor:
        """y = 1 − erf x, without the loss of digits for large x."""

    def erfc_(self) -> Tensor:
        """Compute `erfc` in place and return the tensor."""

    def erfinv(self, *, out: Tensor | None = None) -> Tensor:
        """Return the inverse of `erf` on [−1, 1]; dy/dx = √π/2 · e^(y²), with y found again, so that it may be changed in between."""

    def erfinv_(self) -> Tensor:
        """Compute `erfinv` in place and return the tensor."""

    def exp(self, *, out: Tensor | None = None) -> Tensor:
        """y = eˣ, dy/dx = y."""

    def exp2(self, *, out: Tensor | None = None) -> Tensor:
        """y = 2ˣ, dy/dx = y·ln 2."""

    def exp2_(self) -> Tensor:
        """Compute `exp2` in place and return the tensor."""

    def exp_(self) -> Tensor:
        """Compute `exp` in place and return the tensor."""

    def expand(self, *sizes: _int | Sequence[_int], size: _int | _size | None = None, implicit: _bool = False) -> Tensor:
        """Return a view in which dims of size 1 are stretched to ``size`` (-1 keeps a dim); new dims may be added in front."""

    def expand_as(self, other: Tensor | Number | _complex) -> Tensor:
        """Return ``expand`` to the shape of ``other``."""

    def expm1(self, *, out: Tensor | None = None) -> Tensor:
        """y = eˣ − 1, without the loss of digits near 0; dy/dx = y + 1."""

    def expm1_(self) -> Tensor:
        """Compute `expm1` in place and return the tensor."""

    def exponential_(self, lambd: _float = 1, *, generator: Generator | None = None) -> Tensor:
        """Fill with exponentially distributed numbers of rate ``lambd``. Derivative: 0, as what was there is overwritten."""

    def fill_(self, value: Tensor | _float) -> Tensor:
        """Overwrite every element with ``value``, a number or a 0-d tensor."""

    def fill_diagonal_(self, fill_value: Number | _complex, wrap: _bool = False) -> Tensor:
        """Write ``fill_value`` on the main diagonal, in place; with ``wrap`` a tall matrix's diagonal begins again below."""

    def fix(self, *, out: Tensor | None = None) -> Tensor:
        """Return x without its fraction; the gradient is 0."""

    def fix_(self) -> Tensor:
        """Compute `trunc` in place and return the tensor."""

    def flatten(self, start_dim: _int = 0, end_dim: _int = -1) -> Tensor:
        """Merge the dims from ``start_dim`` to ``end_dim`` into one."""

    def flip(self, *axes: _int | Sequence[_int], dims: _int | Sequence[_int] | None = None) -> Tensor:
        """Return the elements in reverse order along each of ``dims``, copied. RuntimeError for a dim named twice."""

    def fliplr(self) -> Tensor:
        """Return `flip` of dim 1. RuntimeError for fewer than 2 dims."""

    def flipud(self) -> Tensor:
        """Return `flip` of dim 0. RuntimeError for 0-d tensors."""

    def float(self, memory_format: _memory_format | None = None) -> Tensor:
        """Return the tensor as float32."""

    def float_power(self, exponent: Tensor | Number | _complex, *, out: Tensor | None = None) -> Tensor:
        """Return `pow` in float64, or complex128 where an operand is complex."""

    def float_power_(self, exponent: Tensor | Number | _complex) -> Tensor:
        """Compute `float_power` in place, of float64, and of complex128 where an operand is complex, and return the tensor."""

    def floor(self, *, out: Tensor | None = None) -> Tensor:
        """Return the largest integer ≤ x; the gradient is 0."""

    def floor_(self) -> Tensor:
        """Compute `floor` in place and return the tensor."""

    def floor_divide(self, other: Tensor | Number | _complex, *, out: Tensor | None = None) -> Tensor:
        """y = ⌊a/b⌋; no gradient. RuntimeError for integers by zero."""

    def floor_divide_(self, other: Tensor | Number | _complex) -> Tensor:
        """Compute `floor_divide` in place and return the tensor."""

    def fmax(self, other: Tensor | Number | _complex, *, out: Tensor | None = None) -> Tensor:
        """Return max(a, b), the other one where one is nan."""

    def fmin(self, other: Tensor | Number | _complex, *, out: Tensor | None = None) -> Tensor:
        """Return min(a, b), the other one where one is nan."""

    def fmod(self, other: Tensor | Number | _complex, *, out: Tensor | None = None) -> Tensor:
        """Remainder with the sign of the dividend: y = a − b·trunc(a/b)."""

    def fmod_(self, other: Tensor | Number | _complex) -> Tensor:
        """Compute `fmod` in place and return the tensor."""

    def frac(self, *, out: Tensor | None = None) -> Tensor:
        """Return the fraction of x, with its sign: y = x − trunc x, dy/dx = 1."""

    def frac_(self) -> Tensor:
        """Compute `frac` in place and return the tensor."""

    def frexp(self, *, out: Tensor | None = None) -> _return_types.frexp:
        """Return (mantissa, exponent) with x = mantissa·2^exponent, ½ ≤ |mantissa| < 1, the exponent an int32; 0, ±∞ and nan have exponent 0."""

    def gather(self, dim: _int, index: Tensor, *, sparse_grad: _bool = False, out: Tensor | None = None) -> Tensor:
        """y[i, j, k] = x[index[i, j, k], j, k] (for dim 0): one element for each index; the gradient is scattered back and added."""

    def gcd(self, other: Tensor | Number | _complex, *, out: Tensor | None = None) -> Tensor:
        """Return the greatest common divisor of integers. NotImplementedError for others."""

    def gcd_(self, other: Tensor | Number | _complex) -> Tensor:
        """Compute `gcd` in place and return the tensor."""

    def ge(self, other: Tensor | Number | _complex, *, out: Tensor | None = None) -> Tensor:
        """Return whether a ≥ b, element by element."""

    def ge_(self, other: Tensor | Number | _complex) -> Tensor:
        """Compute `ge` in place and return the tensor."""

    def geometric_(self, p: _float, *, generator: Generator | None = None) -> Tensor:
        """Fill with the number of trials up to the first success of probability ``p``: 1, 2, … Derivative: 0, as what was there is overwritten."""

    def geqrf(self, *, out: Tensor | None = None) -> _return_types.geqrf:
        """Return (a, tau): R in the upper triangle of a, and below it the vectors of the reflections whose product is Q; see `linalg.qr`."""

    def ger(self, vec2: Tensor, *, out: Tensor | None = None) -> Tensor:
        """Outer product of two vectors: y[i, j] = aᵢ·bⱼ."""

    def get_device(self) -> _int:
        """Return −1, which stands for the CPU."""

    @property
    def grad_dtype(self) -> _dtype:
        """Return the dtype that gradients of a leaf have: its own. RuntimeError for others."""

    def greater(self, other: Tensor | Number | _complex, *, out: Tensor | None = None) -> Tensor:
        """Return whether a > b, element by element."""

    def greater_(self, other: Tensor | Number | _complex) -> Tensor:
        """Compute `gt` in place and return the tensor."""

    def greater_equal(self, other: Tensor | Number | _complex, *, out: Tensor | None = None) -> Tensor:
        """Return whether a ≥ b, element by element."""

    def greater_equal_(self, other: Tensor | Number | _complex) -> Tensor:
        """Compute `ge` in place and return the tensor."""

    def gt(self, other: Tensor | Number | _complex, *, out: Tensor | None = None) -> Tensor:
        """Return whether a > b, element by element."""

    def gt_(self, other: Tensor | Number | _complex) -> Tensor:
        """Compute `gt` in place and return the tensor."""

    def half(self, memory_format: _memory_format | None = None) -> Tensor:
        """Return the tensor as float16."""

    def hardshrink(self, lambd: _float = 0.5, *, out: Tensor | None = None) -> Tensor:
        """Return x where |x| > lambd, else 0; dy/dx = 1 there, else 0."""

    def hash_tensor(
        self, dim: _int | Sequence[_int] = (), *, keepdim: _bool = False, mode: _int = 0, out: Tensor | None = None
    ) -> Tensor:
        """Return the exclusive or of the bits of all elements, or of those along ``dim``, each as float64 or int64, in uint64."""

    def heaviside(self, values: Tensor, *, out: Tensor | None = None) -> Tensor:
        """Return 0 for x < 0, ``values`` at 0, 1 for x > 0; no gradient. RuntimeError when the dtypes differ."""

    def heaviside_(self, values: Tensor) -> Tensor:
        """Compute `heaviside` in place and return the tensor."""

    def histc(self, bins: _int = 100, min: _float = 0, max: _float = 0, *, out: Tensor | None = None) -> Tensor:
        """Return how many elements fall into each of ``bins`` equal bins from min to max (from the data where both are 0)."""

    def histogram(
        self, bins: _int | Sequence[_int] | Tensor | Sequence[Tensor] = 100, *, range: Sequence[_float] | None = None, weight:
        Tensor | None = None, density: _bool = False, out: Tensor | None = None
    ) -> _return_types.histogram:
        """Return (hist, bin_edges): how many elements (or how much ``weight``) fall into each bin; ``density``: so that the integral is 1."""

    def hsplit(self, indices_or_sections: _int | Sequence[_int] | Tensor) -> tuple[Tensor, ...]:
        """Return the `tensor_split` along dim 1 into equal parts or at indices. RuntimeError if uneven."""

    def hypot(self, other: Tensor | Number | _complex, *, out: Tensor | None = None) -> Tensor:
        """y = √(a² + b²) without overflow in between; dy/da = a/y, dy/db = b/y."""

    def hypot_(self, other: Tensor | Number | _complex) -> Tensor:
        """Compute `hypot` in place and return the tensor."""

    def i0(self, *, out: Tensor | None = None) -> Tensor:
        """Return the modified Bessel function of the first kind I₀; dI₀/dx = I₁."""

    def i0_(self) -> Tensor:
        """Compute `i0` in place and return the tensor."""

    def igamma(self, other: Tensor | Number | _complex, *, out: Tensor | None = None) -> Tensor:
        """The regularised lower incomplete gamma function P(a, x) = 1/Γ(a) ∫₀ˣ tᵃ⁻¹e⁻ᵗ dt, a = ``input``, x = ``other``, both floating point tensors."""

    def igamma_(self, other: Tensor | Number | _complex) -> Tensor:
        """Compute `igamma` in place and return the tensor."""

    def igammac(self, other: Tensor | Number | _complex, *, out: Tensor | None = None) -> Tensor:
        """The regularised upper incomplete gamma function Q(a, x) = 1/Γ(a) ∫ₓ^∞ tᵃ⁻¹e⁻ᵗ dt, a = ``input``, x = ``other``, both floating point tensors."""

    def igammac_(self, other: Tensor | Number | _complex) -> Tensor:
        """Compute `igammac` in place and return the tensor."""

    @property
    def imag(self) -> Tensor:
        """The imaginary parts, a view; settable."""
    @imag.setter
    def imag(self, value: Tensor) -> None: ...

    def index_add(self, dim: _int, index: Tensor, source: Tensor, *, alpha: _float = 1, out: Tensor | None = None) -> Tensor:
        """y = x with alpha·source[i] added to the slice y[index[i]] along ``dim``; duplicates add up; dsource = alpha·g[index]."""

    def index_add_(self, dim: _int, index: Tensor, source: Tensor, *, alpha: _float = 1) -> Tensor:
        """Compute `index_add` in place and return the tensor."""

    def index_copy(self, dim: _int, index: Tensor, source: Tensor, *, out: Tensor | None = None) -> Tensor:
        """y = x with the slices y[index[i]] along ``dim`` replaced by source[i]."""

    def index_copy_(self, dim: _int, index: Tensor, source: Tensor) -> Tensor:
        """Compute `index_copy` in place and return the tensor."""

    def index_fill(self, dim: _int, index: Tensor, value: Tensor | _float) -> Tensor:
        """y = x with the slices y[index] along ``dim`` filled with a number or 0-d tensor."""

    def index_fill_(self, dim: _int, index: Tensor, value: Tensor | _float) -> Tensor:
        """Compute `index_fill` in place and return the tensor."""

    def index_put(self, indices: Sequence[Tensor | None], values: Tensor, accumulate: _bool = False) -> Tensor:
        """Out-of-place version of `index_put_`: y = x with y[indices] = values; d/dvalues gathers, d/dx is 0 where overwritten."""

    def index_put_(self, indices: Sequence[Tensor | None], values: Tensor, accumulate: _bool = False) -> Tensor:
        """Do ``input[indices] = values`` for a tuple of index tensors; with ``accumulate`` they are added, duplicates too."""

    def index_reduce(
        self, dim: _int, index: Tensor, source: Tensor, reduce: _str, *, include_self: _bool = True, out: Tensor | None = None
    ) -> Tensor:
        """Return `index_add` with another way to combine: 'prod', 'mean', 'amax' or 'amin'."""

    def index_reduce_(self, dim: _int, index: Tensor, source: Tensor, reduce: _str, *, include_self: _bool = True) -> Tensor:
        """Compute `index_reduce` in place and return the tensor."""

    def index_select(self, dim: _int, index: Tensor, *, out: Tensor | None = None) -> Tensor:
        """Return the slices of ``input`` along ``dim`` at the 1-d ``index``, copied; the gradient is added back slice by slice."""

    def inner(self, other: Tensor | Number | _complex, *, out: Tensor | None = None) -> Tensor:
        """Inner products over the last dims: y[…, …] = Σ a[…, k]·b[…, k]."""

    def int(self, memory_format: _memory_format | None = None) -> Tensor:
        """Return the tensor as int32."""

    def inverse(self, *, out: Tensor | None = None) -> Tensor:
        """Return A⁻¹ of square matrices (…, n, n); dA = −A⁻ᴴ·g·A⁻ᴴ."""

    def is_complex(self) -> _bool:
        """Return whether the dtype is complex."""

    def is_conj(self) -> _bool:
        """Return whether it is a view that shows conjugates: see `conj`."""

    def is_contiguous(self, memory_format: _memory_format | None = None) -> _bool:
        """Return whether the elements stand in C order without gaps, or as another ``memory_format`` says."""

    @property
    def is_cpu(self) -> _bool:
        """True."""

    @property
    def is_cuda(self) -> _bool:
        """False: there are no cuda tensors here."""

    def is_distributed(self) -> _bool:
        """Return False: a tensor is whole."""

    def is_floating_point(self) -> _bool:
        """Return whether the dtype is a float."""

    def is_inference(self) -> _bool:
        """Return whether the tensor was made in inference mode."""

    @property
    def is_ipu(self) -> _bool:
        """False: there are no ipu tensors here."""

    @property
    def is_maia(self) -> _bool:
        """False: there are no maia tensors here."""

    @property
    def is_meta(self) -> _bool:
        """False: there are no meta tensors here."""

    @property
    def is_mkldnn(self) -> _bool:
        """False: there are no mkldnn tensors here."""

    @property
    def is_mps(self) -> _bool:
        """False: there are no mps tensors here."""

    @property
    def is_mtia(self) -> _bool:
        """False: there are no mtia tensors here."""

    def is_neg(self) -> _bool:
        """Return whether it is a view that shows negatives, as ``x.conj().imag`` is."""

    @property
    def is_nested(self) -> _bool:
        """False: there are no nested tensors here."""

    def is_nonzero(self) -> _bool:
        """Return whether the one element is not 0."""

    def is_pinned(self, device: Device = None) -> _bool:
        """Return False: there is no GPU that would read it."""

    @property
    def is_quantized(self) -> _bool:
        """False: there are no quantized tensors here."""

    def is_same_size(self, other: Tensor | Number | _complex) -> _bool:
        """Return whether the shapes are equal."""

    def is_set_to(self, tensor: Tensor) -> _bool:
        """Return whether both tensors read the same memory under the same geometry."""

    def is_shared(self) -> _bool:
        """Return whether the tensor lies in memory that processes share."""

    def is_signed(self) -> _bool:
        """Return whether the dtype is signed."""

    @property
    def is_sparse(self) -> _bool:
        """False: there are no sparse tensors here."""

    @property
    def is_sparse_csr(self) -> _bool:
        """False: there are no sparse_csr tensors here."""

    @property
    def is_vulkan(self) -> _bool:
        """False: there are no vulkan tensors here."""

    @property
    def is_xla(self) -> _bool:
        """False: there are no xla tensors here."""

    @property
    def is_xpu(self) -> _bool:
        """False: there are no xpu tensors here."""

    def isclose(
        self, other: Tensor | Number | _complex, rtol: _float = 1e-05, atol: _float = 1e-08, equal_nan: _bool = False
    ) -> Tensor:
        """Return whether |a − b| ≤ atol + rtol·|b|, element by element."""

    def isfinite(self, *, out: Tensor | None = None) -> Tensor:
        """Return whether x is neither infinite nor nan."""

    def isinf(self, *, out: Tensor | None = None) -> Tensor:
        """Return whether x is infinite."""

    def isnan(self, *, out: Tensor | None = None) -> Tensor:
        """Return whether x is nan."""

    def isneginf(self, *, out: Tensor | None = None) -> Tensor:
        """Return whether x is −∞."""

    def isposinf(self, *, out: Tensor | None = None) -> Tensor:
        """Return whether x is ∞."""

    def isreal(self, *, out: Tensor | None = None) -> Tensor:
        """Return whether the imaginary part is 0."""

    def istft(
        self, n_fft: _int, hop_length: _int | None = None, win_length: _int | None = None, window: Tensor | None = None, center:
        _bool = True, normalized: _bool = False, onesided: _bool | None = None, length: _int | None = None, return_complex:
        _bool = False
    ) -> Tensor:
        """Return the signal whose `stft` is given, with the same arguments: the least-squares one where none has it."""

    def item(self) -> _bool | _int | _float:
        """Return the one element as a Python number. RuntimeError when there are more or none."""

    @property
    def itemsize(self) -> _int:
        """Bytes of one element."""

    def kron(self, other: Tensor | Number | _complex, *, out: Tensor | None = None) -> Tensor:
        """Kronecker product: y[i·n + k, …] = a[i, …]·b[k, …], each dim of size (a's · b's); missing dims in front count as 1."""

    def kthvalue(self, k: _int, dim: _int = -1, keepdim: _bool = False, *, out: Tensor | None = None) -> _return_types.kthvalue:
        """Return (values, indices) of the k-th smallest element (from 1) along ``dim``. RuntimeError when ``k`` does not fit."""

    @property
    def layout(self) -> _layout:
        """How it is stored: with strides."""

    def lcm(self, other: Tensor | Number | _complex, *, out: Tensor | None = None) -> Tensor:
        """Return the least common multiple of integers. NotImplementedError for others."""

    def lcm_(self, other: Tensor | Number | _complex) -> Tensor:
        """Compute `lcm` in place and return the tensor."""

    def ldexp(self, other: Tensor | Number | _complex, *, out: Tensor | None = None) -> Tensor:
        """x·2ᵉ, dy/dx = 2ᵉ."""

    def ldexp_(self, other: Tensor | Number | _complex) -> Tensor:
        """Compute `ldexp` in place and return the tensor."""

    def le(self, other: Tensor | Number | _complex, *, out: Tensor | None = None) -> Tensor:
        """Return whether a ≤ b, element by element."""

    def le_(self, other: Tensor | Number | _complex) -> Tensor:
        """Compute `le` in place and return the tensor."""

    def lerp(self, end: Tensor, weight: Tensor | _float, *, out: Tensor | None = None) -> Tensor:
        """Return a + w·(b − a), w a number or a tensor."""

    def lerp_(self, end: Tensor, weight: Tensor | _float) -> Tensor:
        """Compute `lerp` in place and return the tensor."""

    def less(self, other: Tensor | Number | _complex, *, out: Tensor | None = None) -> Tensor:
        """Return whether a < b, element by element."""

    def less_(self, other: Tensor | Number | _complex) -> Tensor:
        """Compute `lt` in place and return the tensor."""

    def less_equal(self, other: Tensor | Number | _complex, *, out: Tensor | None = None) -> Tensor:
        """Return whether a ≤ b, element by element."""

    def less_equal_(self, other: Tensor | Number | _complex) -> Tensor:
        """Compute `le` in place and return the tensor."""

    def lgamma(self, *, out: Tensor | None = None) -> Tensor:
        """y = ln|Γ(x)|, dy/dx = ψ(x), the `digamma` function."""

    def lgamma_(self) -> Tensor:
        """Compute `lgamma` in place and return the tensor."""

    def log(self, *, out: Tensor | None = None) -> Tensor:
        """y = ln x, dy/dx = 1/x."""

    def log10(self, *, out: Tensor | None = None) -> Tensor:
        """y = log₁₀ x, dy/dx = 1/(x·ln 10)."""

    def log10_(self) -> Tensor:
        """Compute `log10` in place and return the tensor."""

    def log1p(self, *, out: Tensor | None = None) -> Tensor:
        """y = ln(1 + x), without the loss of digits near 0; dy/dx = 1/(1 + x)."""

    def log1p_(self) -> Tensor:
        """Compute `log1p` in place and return the tensor."""

    def log2(self, *, out: Tensor | None = None) -> Tensor:
        """y = log₂ x, dy/dx = 1/(x·ln 2)."""

    def log2_(self) -> Tensor:
        """Compute `log2` in place and return the tensor."""

    def log_(self) -> Tensor:
        """Compute `log` in place and return the tensor."""

    def log_normal_(self, mean: _float = 1, std: _float = 2, *, generator: Generator | None = None) -> Tensor:
        """Fill with exp(z) of normal z with the given mean and standard deviation. Derivative: 0, as what was there is overwritten."""

    def log_softmax(
        self, dim: _int | None = None, dtype: _dtype | None = None, *, axis: _int | None = None, out: Tensor | None = None
    ) -> Tensor:
        """yᵢ = xᵢ − ln Σⱼ e^xⱼ along ``dim``; dL/dx = g − e^y·Σ g. ``dtype`` casts first."""

    def logaddexp(self, other: Tensor | Number | _complex, *, out: Tensor | None = None) -> Tensor:
        """y = ln(eᵃ + eᵇ) without overflow."""

    def logaddexp2(self, other: Tensor | Number | _complex, *, out: Tensor | None = None) -> Tensor:
        """y = log₂(2ᵃ + 2ᵇ) without overflow."""

    def logcumsumexp(self, dim: _int, *, out: Tensor | None = None) -> Tensor:
        """yₖ = ln(e^x₀ + … + e^xₖ) along ``dim``, without overflow."""

    def logdet(self) -> Tensor:
        """Return log det(A) of square matrices (…, n, n); nan for a negative determinant, −∞ for a singular matrix. dA = g·A⁻ᴴ."""

    def logical_and(self, other: Tensor | Number | _complex, *, out: Tensor | None = None) -> Tensor:
        """Return whether a ≠ 0 and b ≠ 0."""

    def logical_and_(self, other: Tensor | Number | _complex) -> Tensor:
        """Compute `logical_and` in place and return the tensor."""

    def logical_not(self, *, out: Tensor | None = None) -> Tensor:
        """x = 0."""

    def logical_not_(self) -> Tensor:
        """Compute `logical_not` in place and return the tensor."""

    def logical_or(self, other: Tensor | Number | _complex, *, out: Tensor | None = None) -> Tensor:
        """Return whether a ≠ 0 or b ≠ 0."""

    def logical_or_(self, other: Tensor | Number | _complex) -> Tensor:
        """Compute `logical_or` in place and return the tensor."""

    def logical_xor(self, other: Tensor | Number | _complex, *, out: Tensor | None = None) -> Tensor:
        """Return whether exactly one of a ≠ 0, b ≠ 0 holds."""

    def logical_xor_(self, other: Tensor | Number | _complex) -> Tensor:
        """Compute `logical_xor` in place and return the tensor."""

    def logit(self, eps: _float | None = None, *, out: Tensor | None = None) -> Tensor:
        """y = ln(x/(1 − x)), x kept within [eps, 1 − eps] when ``eps`` is given; dy/dx = 1/(x(1 − x)), 0 where x was clamped."""

    def logit_(self, eps: _float | None = None) -> Tensor:
        """Compute `logit` in place and return the tensor."""

    def logsumexp(self, dim: _int | Sequence[_int], keepdim: _bool = False, *, out: Tensor | None = None) -> Tensor:
        """Return ln Σ eˣ over ``dim`` (an int or several), without overflow; dL/dx = g·e^(x − y)."""

    def long(self, memory_format: _memory_format | None = None) -> Tensor:
        """Return the tensor as int64."""

    def lt(self, other: Tensor | Number | _complex, *, out: Tensor | None = None) -> Tensor:
        """Return whether a < b, element by element."""

    def lt_(self, other: Tensor | Number | _complex) -> Tensor:
        """Compute `lt` in place and return the tensor."""

    @overload
    def lu(self, pivot: _bool = True, get_infos: Literal[False] = False, out: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Return (LU, pivots), and info if ``get_infos``: the older form of `linalg.lu_factor_ex`."""
    @overload
    def lu(self, pivot: _bool = True, *, get_infos: Literal[True], out: Tensor | None = None) -> tuple[Tensor, Tensor, Tensor]:
        """Return (LU, pivots), and info if ``get_infos``: the older form of `linalg.lu_factor_ex`."""

    def lu_solve(self, LU_data: Tensor, LU_pivots: Tensor, *, out: Tensor | None = None) -> Tensor:
        """Return `linalg.lu_solve`, its older form: b first."""

    @property
    def mH(self) -> Tensor:
        """The conjugate transpose of the last two dims."""

    @property
    def mT(self) -> Tensor:
        """The last two dims swapped, a view."""

    def map2_(self, x: Tensor, y: Tensor, callable: Callable[..., _float]) -> Tensor:
        """Replace every element by ``callable(element, x's, y's)``, a Python function; slow."""

    def map_(self, tensor: Tensor, callable: Callable[..., _float]) -> Tensor:
        """Replace every element by ``callable(element, other's element)``, a Python function; slow."""

    def masked_fill(self, mask: Tensor, value: Tensor | _float) -> Tensor:
        """y = value where the mask holds, x elsewhere; ``value`` a number or 0-d tensor, ``mask`` broadcasts."""

    def masked_fill_(self, mask: Tensor, value: Tensor | _float) -> Tensor:
        """Compute `masked_fill` in place and return the tensor."""

    def masked_scatter(self, mask: Tensor, source: Tensor) -> Tensor:
        """y = x with the elements where the mask holds replaced by those of ``source``, in order."""

    def masked_scatter_(self, mask: Tensor, source: Tensor) -> Tensor:
        """Compute `masked_scatter` in place and return the tensor."""

    def masked_select(self, mask: Tensor, *, out: Tensor | None = None) -> Tensor:
        """Return the elements where the mask holds, in one dim; input and mask broadcast. RuntimeError unless the mask is boolean."""

    def matmul(self, other: Tensor | Number | _complex, *, out: Tensor | None = None) -> Tensor:
        """Return the product of vectors, matrices and batches of them; batch dims broadcast."""

    def matrix_exp(self) -> Tensor:
        """Return Σ Aᵏ/k! of square matrices (…, n, n), by scaling and squaring of Taylor's series."""

    def matrix_power(self, n: _int, *, out: Tensor | None = None) -> Tensor:
        """Return `linalg.matrix_power`, its older name."""

    @overload
    def max(self, dim: None = None, keepdim: _bool = False, *, out: Tensor | None = None) -> Tensor:
        """Return the maximum: of all elements, ``max(x)`` (ties share the gradient); (values, indices) along a dim, ``max(x, dim, keepdim)``, the first index where several attain it (it alone gets the gradient); of two tensors, ``max(x, other)``: `maximum`. nan wins."""
    @overload
    def max(self, dim: _int, keepdim: _bool = False, *, out: Tensor | None = None) -> _return_types.max:
        """Return the maximum: of all elements, ``max(x)`` (ties share the gradient); (values, indices) along a dim, ``max(x, dim, keepdim)``, the first index where several attain it (it alone gets the gradient); of two tensors, ``max(x, other)``: `maximum`. nan wins."""
    @overload
    def max(self, other: Tensor, *, out: Tensor | None = None) -> Tensor:
        """Return the maximum: of all elements, ``max(x)`` (ties share the gradient); (values, indices) along a dim, ``max(x, dim, keepdim)``, the first index where several attain it (it alone gets the gradient); of two tensors, ``max(x, other)``: `maximum`. nan wins."""

    def maximum(self, other: Tensor | Number | _complex, *, out: Tensor | None = None) -> Tensor:
        """y = max(a, b); nan wins; ties share the gradient."""

    def mean(
        self, dim: _int | Sequence[_int] | None = None, keepdim: _bool = False, *, dtype: _dtype | None = None, out: Tensor |
        None = None
    ) -> Tensor:
        """Mean over ``dim``: y = Σ x / n, dy/dx = 1/n."""

    @overload
    def median(self, dim: None = None, keepdim: _bool = False, *, out: Tensor | None = None) -> Tensor:
        """Return the median (the lower one of an even count): of all elements, or (values, indices) along ``dim``. The gradient goes to the element chosen, over all elements evenly to the equal ones."""
    @overload
    def median(self, dim: _int, keepdim: _bool = False, *, out: Tensor | None = None) -> _return_types.median:
        """Return the median (the lower one of an even count): of all elements, or (values, indices) along ``dim``. The gradient goes to the element chosen, over all elements evenly to the equal ones."""

    @overload
    def min(self, dim: None = None, keepdim: _bool = False, *, out: Tensor | None = None) -> Tensor:
        """Return the minimum: of all elements, ``min(x)`` (ties share the gradient); (values, indices) along a dim, ``min(x, dim, keepdim)``, the first index where several attain it (it alone gets the gradient); of two tensors, ``min(x, other)``: `minimum`. nan wins."""
    @overload
    def min(self, dim: _int, keepdim: _bool = False, *, out: Tensor | None = None) -> _return_types.min:
        """Return the minimum: of all elements, ``min(x)`` (ties share the gradient); (values, indices) along a dim, ``min(x, dim, keepdim)``, the first index where several attain it (it alone gets the gradient); of two tensors, ``min(x, other)``: `minimum`. nan wins."""
    @overload
    def min(self, other: Tensor, *, out: Tensor | None = None) -> Tensor:
        """Return the minimum: of all elements, ``min(x)`` (ties share the gradient); (values, indices) along a dim, ``min(x, dim, keepdim)``, the first index where several attain it (it alone gets the gradient); of two tensors, ``min(x, other)``: `minimum`. nan wins."""

    def minimum(self, other: Tensor | Number | _complex, *, out: Tensor | None = None) -> Tensor:
        """y = min(a, b); nan wins; ties share the gradient."""

    def mm(self, mat2: Tensor, *, out: Tensor | None = None) -> Tensor:
        """Product of two matrices: y = A·B (n × k by k × m), dA = g·Bᵀ, dB = Aᵀ·g."""

    def mode(self, dim: _int = -1, keepdim: _bool = False, *, out: Tensor | None = None) -> _return_types.mode:
        """Return (values, indices) of the most frequent value along ``dim``, the smallest of several; the index is that of its last place."""

    def module_load(self, other: Tensor, assign: _bool = False) -> Tensor:
        """Return what a module's `load_state_dict` puts in the tensor's place: itself with the other's values, with ``assign`` the other."""

    def moveaxis(self, source: _int | Sequence[_int], destination: _int | Sequence[_int]) -> Tensor:
        """Move dims to other places, the rest keeping their order."""

    def movedim(self, source: _int | Sequence[_int], destination: _int | Sequence[_int]) -> Tensor:
        """Move dims to other places, the rest keeping their order."""

    def msort(self, *, out: Tensor | None = None) -> Tensor:
        """Return the values sorted along the first dim."""

    def mtia(self, device: Device = None, non_blocking: _bool = False, memory_format: _memory_format | None = None) -> Tensor:
        """Raise RuntimeError: there is no mtia device here (but see `compat.gpus`)."""

    def mul(self, other: Tensor | Number | _complex, *, out: Tensor | None = None) -> Tensor:
        """Product: y = a·b, dy/da = b, dy/db = a."""

    def mul_(self, other: Tensor | Number | _complex) -> Tensor:
        """Compute `mul` in place and return the tensor."""

    def multinomial(
        self, num_samples: _int, replacement: _bool = False, *, generator: Generator | None = None, out: Tensor | None = None
    ) -> Tensor:
        """Return indices drawn with the probabilities (or weights) of each row of ``input``; int64, (num_samples,) or (rows, num_samples)."""

    def multiply(self, other: Tensor | Number | _complex, *, out: Tensor | None = None) -> Tensor:
        """Product: y = a·b, dy/da = b, dy/db = a."""

    def multiply_(self, other: Tensor | Number | _complex) -> Tensor:
        """Compute `mul` in place and return the tensor."""

    def mv(self, vec: Tensor, *, out: Tensor | None = None) -> Tensor:
        """Matrix times vector: y = A·v."""

    def mvlgamma(self, p: _int, *, out: Tensor | None = None) -> Tensor:
        """Return the multivariate log-gamma function of order ``p``: p(p−1)/4·ln π + Σₖ ln Γ(x − k/2), k = 0 … p−1."""

    def mvlgamma_(self, p: _int) -> Tensor:
        """Compute `mvlgamma` in place and return the tensor."""

    @property
    def name(self) -> None:
        """None; names belong to the tensors of other frameworks."""

    def nan_to_num(
        self, nan: _float | None = None, posinf: _float | None = None, neginf: _float | None = None, *, out: Tensor | None =
        None
    ) -> Tensor:
        """Return nan, ∞ and −∞ replaced by ``nan`` (0), ``posinf`` (the largest number) and ``neginf``; there the gradient is 0."""

    def nan_to_num_(self, nan: _float | None = None, posinf: _float | None = None, neginf: _float | None = None) -> Tensor:
        """Compute `nan_to_num` in place and return the tensor."""

    def nanmean(
        self, dim: _int | Sequence[_int] | None = None, keepdim: _bool = False, *, dtype: _dtype | None = None, out: Tensor |
        None = None
    ) -> Tensor:
        """Return the mean of the elements that are not nan. RuntimeError for integers."""

    @overload
    def nanmedian(self, dim: None = None, keepdim: _bool = False, *, out: Tensor | None = None) -> Tensor:
        """Return the median of what is not nan (the lower one of an even count): of all elements, or (values, indices) along ``dim``. The gradient goes to the element chosen, over all elements evenly to the equal ones."""
    @overload
    def nanmedian(self, dim: _int, keepdim: _bool = False, *, out: Tensor | None = None) -> _return_types.nanmedian:
        """Return the median of what is not nan (the lower one of an even count): of all elements, or (values, indices) along ``dim``. The gradient goes to the element chosen, over all elements evenly to the equal ones."""

    def nanquantile(
        self, q: Tensor | _float, dim: _int | None = None, keepdim: _bool = False, *, interpolation: _str = 'linear', out:
        Tensor | None = None
    ) -> Tensor:
        """Return `quantile` of what is not nan; nan where a row has nothing else."""

    def nansum(
        self, dim: _int | Sequence[_int] | None = None, keepdim: _bool = False, *, dtype: _dtype | None = None, out: Tensor |
        None = None
    ) -> Tensor:
        """Return the sum of the elements that are not nan."""

    def narrow(self, dim: _int, start: _int | Tensor, length: _int) -> Tensor:
        """Return the view of ``length`` elements from ``start`` along ``dim``. RuntimeError when it does not fit."""

    def narrow_copy(self, *args: Any, out: Tensor | None = None, **kw: Any) -> Tensor:
        """Return what `narrow` does in memory of its own, in C order: what is written to the result leaves the input as it is. Its derivative is that of `narrow`."""

    @property
    def nbytes(self) -> _int:
        """Bytes of all elements."""

    def ndimension(self) -> _int:
        """Return the number of dims."""

    def ne(self, other: Tensor | Number | _complex, *, out: Tensor | None = None) -> Tensor:
        """Return whether a ≠ b, element by element."""

    def ne_(self, other: Tensor | Number | _complex) -> Tensor:
        """Compute `ne` in place and return the tensor."""

    def neg(self, *, out: Tensor | None = None) -> Tensor:
        """y = −x, dy/dx = −1."""

    def neg_(self) -> Tensor:
        """Compute `neg` in place and return the tensor."""

    def negative(self, *, out: Tensor | None = None) -> Tensor:
        """y = −x, dy/dx = −1."""

    def negative_(self) -> Tensor:
        """Compute `neg` in place and return the tensor."""

    def nelement(self) -> _int:
        """Return the number of elements."""

    def new(self, *args: Any, size: _int | _size | None = None, device: Device = None) -> Tensor:
        """Return what PyTorch's old constructor makes, of this tensor's dtype."""

    def new_empty(
        self, *size: _int | Sequence[_int], dtype: _dtype | None = None, layout: _layout | None = None, device: Device = None,
        requires_grad: _bool = False, pin_memory: _bool = False, **kw: Any
    ) -> Tensor:
        """Return what `empty` does with this tensor's dtype."""

    def new_empty_strided(
        self, size: _int | _size, stride: _int | Sequence[_int], *, dtype: _dtype | None = None, layout: _layout | None = None,
        device: Device = None, requires_grad: _bool = False, pin_memory: _bool = False
    ) -> Tensor:
        """Return `empty_strided` with this tensor's dtype."""

    def new_full(
        self, size: _int | _size, fill_value: Number | _complex, *, dtype: _dtype | None = None, layout: _layout | None = None,
        device: Device = None, requires_grad: _bool = False, pin_memory: _bool = False
    ) -> Tensor:
        """Return `full` with this tensor's dtype."""

    def new_ones(
        self, *size: _int | Sequence[_int], dtype: _dtype | None = None, layout: _layout | None = None, device: Device = None,
        requires_grad: _bool = False, pin_memory: _bool = False, **kw: Any
    ) -> Tensor:
        """Return what `ones` does with this tensor's dtype."""

    def new_tensor(
        self, data: Any, *, dtype: _dtype | None = None, device: Device = None, requires_grad: _bool = False
    ) -> Tensor:
        """Return `tensor` with this tensor's dtype."""

    def new_zeros(
        self, *size: _int | Sequence[_int], dtype: _dtype | None = None, layout: _layout | None = None, device: Device = None,
        requires_grad: _bool = False, pin_memory: _bool = False, **kw: Any
    ) -> Tensor:
        """Return what `zeros` does with this tensor's dtype."""

    def nextafter(self, other: Tensor | Number | _complex, *, out: Tensor | None = None) -> Tensor:
        """Return the next number after a towards b; dy/da = 1 where they differ, dy/db = 0."""

    def nextafter_(self, other: Tensor | Number | _complex) -> Tensor:
        """Compute `nextafter` in place and return the tensor."""

    @overload
    def nonzero(self, *, out: Tensor | None = None, as_tuple: Literal[False] = False) -> Tensor:
        """Return the indices of the elements that are not zero: one row each, or with ``as_tuple`` one 1-d tensor per dim."""
    @overload
    def nonzero(self, *, as_tuple: Literal[True]) -> tuple[Tensor, ...]:
        """Return the indices of the elements that are not zero: one row each, or with ``as_tuple`` one 1-d tensor per dim."""

    def nonzero_static(self, *, size: _int | _size, fill_value: Number | _complex = -1) -> Tensor:
        """Return `nonzero` with ``size`` rows: further ones are cut off, missing ones are ``fill_value``."""

    def norm(
        self, p: _float | _str | None = 'fro', dim: _int | Sequence[_int] | None = None, keepdim: _bool = False, out: Tensor |
        None = None, dtype: _dtype | None = None
    ) -> Tensor:
        """Return (Σ |x|ᵖ)^(1/p) over ``dim`` (default all); 'fro' is p = 2. 'nuc' is the sum of the singular values of a matrix."""

    def normal_(self, mean: _float = 0, std: _float = 1, *, generator: Generator | None = None) -> Tensor:
        """Fill with normal numbers of the given mean and standard deviation. RuntimeError for std < 0."""

    def not_equal(self, other: Tensor | Number | _complex, *, out: Tensor | None = None) -> Tensor:
        """Return whether a ≠ b, element by element."""

    def not_equal_(self, other: Tensor | Number | _complex) -> Tensor:
        """Compute `ne` in place and return the tensor."""

    def numel(self) -> _int:
        """Return the number of elements."""

    def numpy(self: _Holds[_Array], *, force: _bool = False) -> _Array:
        """Return a NumPy array that shares the tensor's memory. RuntimeError when the tensor requires grad, but for under `no_grad`."""

    def orgqr(self, tau: Tensor, *, out: Tensor | None = None) -> Tensor:
        """Return the first n columns of H₁·H₂·…·Hₖ, Hᵢ = I − τᵢ·vᵢ·vᵢᴴ, for vectors vᵢ packed below the diagonal of input (…, m, n) by `geqrf`."""

    def ormqr(
        self, tau: Tensor, other: Tensor | Number | _complex, left: _bool = True, transpose: _bool = False, *, out: Tensor |
        None = None
    ) -> Tensor:
        """Return Q·other, or other·Q if not ``left``, with Qᴴ for Q if ``transpose``: Q is the whole product of `geqrf`'s reflections."""

    def outer(self, vec2: Tensor, *, out: Tensor | None = None) -> Tensor:
        """Outer product of two vectors: y[i, j] = aᵢ·bⱼ."""

    def permute(self, *axes: _int | Sequence[_int], dims: _int | Sequence[_int] | None = None) -> Tensor:
        """Return the dims in another order, a view. RuntimeError unless ``dims`` names each dim once."""

    def pin_memory(self, device: Device = None) -> Tensor:
        """Return the tensor itself: pinned memory serves copies to GPUs, of which there are none."""

    def pinverse(self, rcond: _float = 1e-15) -> Tensor:
        """Return `linalg.pinv` with a relative cutoff of ``rcond``."""

    def polygamma(self, n: _int, *, out: Tensor | None = None) -> Tensor:
        """Return the n-th derivative of `digamma`: ``polygamma(n, x)`` or ``x.polygamma(n)``; its own derivative is that of order n + 1."""

    def polygamma_(self, n: _int) -> Tensor:
        """Compute `polygamma` in place and return the tensor."""

    def positive(self) -> Tensor:
        """Return the tensor itself. RuntimeError for booleans."""

    def pow(self, exponent: Tensor | Number | _complex, *, out: Tensor | None = None) -> Tensor:
        """Power: y = aᵇ, dy/da = b·aᵇ⁻¹, dy/db = y·ln a (0 where a is 0 and b ≥ 0)."""

    def pow_(self, exponent: Tensor | Number | _complex) -> Tensor:
        """Compute `pow` in place and return the tensor."""

    def prelu(self, weight: Tensor) -> Tensor:
        """Return x for x > 0, else weight·x; ``weight`` has one element, or one a channel (dim 1)."""

    def prod(
        self, dim: _int | None = None, keepdim: _bool = False, *, dtype: _dtype | None = None, out: Tensor | None = None
    ) -> Tensor:
        """Return the product of all elements, or over ``dim``; integers give int64. dy/dxᵢ = Π of the others, also of zeros."""

    def put(self, index: Tensor, source: Tensor, accumulate: _bool = False) -> Tensor:
        """y = x with the elements at flat indices replaced by (or with ``accumulate`` added to) ``source``."""

    def put_(self, index: Tensor, source: Tensor, accumulate: _bool = False) -> Tensor:
        """Compute `put` in place and return the tensor."""

    def qr(self, some: _bool = True, *, out: Tensor | None = None) -> _return_types.qr:
        """Return (Q, R): the older form of `linalg.qr`, reduced if ``some``, else complete."""

    def quantile(
        self, q: Tensor | _float, dim: _int | None = None, keepdim: _bool = False, *, interpolation: _str = 'linear', out:
        Tensor | None = None
    ) -> Tensor:
        """Return the q-quantiles along ``dim`` (of all elements by default); ``q`` a number or 1-d tensor, whose dim then comes first."""

    def rad2deg(self, *, out: Tensor | None = None) -> Tensor:
        """y = x·180/π."""

    def rad2deg_(self) -> Tensor:
        """Compute `rad2deg` in place and return the tensor."""

    def random_(self, *bounds: _int | None, generator: Generator | None = None, **kw: Any) -> Tensor:
        """Fill with integers: uniform on [from, to), on [0, to), or up to the largest that the dtype holds exactly, from 0 or ``from`` on."""

    def ravel(self) -> Tensor:
        """Return all elements in one dim, in C order: a view of a contiguous tensor, else a copy."""

    @property
    def real(self) -> Tensor:
        """The real parts, a view; settable."""
    @real.setter
    def real(self, value: Tensor) -> None: ...

    def reciprocal(self, *, out: Tensor | None = None) -> Tensor:
        """y = 1/x, dy/dx = −y²."""

    def reciprocal_(self) -> Tensor:
        """Compute `reciprocal` in place and return the tensor."""

    def relu(self, *, out: Tensor | None = None) -> Tensor:
        """y = max(x, 0), dy/dx = 1 for x > 0, else 0."""

    def relu_(self) -> Tensor:
        """Compute `relu` in place and return the tensor."""

    def remainder(self, other: Tensor | Number | _complex, *, out: Tensor | None = None) -> Tensor:
        """Remainder with the sign of the divisor: y = a − b·⌊a/b⌋."""

    def remainder_(self, other: Tensor | Number | _complex) -> Tensor:
        """Compute `remainder` in place and return the tensor."""

    def renorm(self, p: _float, dim: _int, maxnorm: _float, *, out: Tensor | None = None) -> Tensor:
        """Return the slices along ``dim`` whose p-norm exceeds ``maxnorm`` scaled down to it."""

    def renorm_(self, p: _float, dim: _int, maxnorm: _float) -> Tensor:
        """Compute `renorm` in place and return the tensor."""

    def repeat(self, *counts: _int | Sequence[_int], repeats: _int | Sequence[_int] | None = None) -> Tensor:
        """Repeat the tensor along each dim; needs at least as many numbers as dims."""

    def repeat_interleave(
        self, repeats: _int | Tensor | None = None, dim: _int | None = None, *, output_size: _int | None = None
    ) -> Tensor:
        """Return each element (or slice along ``dim``) repeated; ``repeats`` is one number or one for each."""

    def reshape(self, *sizes: _int | Sequence[_int], shape: _int | _size | None = None) -> Tensor:
        """Return the elements in C order under another shape (one size may be -1): a view where possible, else a copy; dy/dx = 1."""

    def reshape_as(self, other: Tensor | Number | _complex) -> Tensor:
        """Return ``reshape`` with the shape of ``other``."""

    def resize(self, *sizes: Any) -> Tensor:
        """Return the tensor under another shape of as many elements, with a warning: `reshape` is today's name; [1, 2].resize(2, 1) = [[1], [2]]."""

    def resize_(
        self, *sizes: _int | Sequence[_int], size: _int | _size | None = None, memory_format: _memory_format | None = None
    ) -> Tensor:
        """Give the tensor another shape, in place: its elements in C order, further ones undefined where there are more."""

    def resize_as(self, tensor: Tensor) -> Tensor:
        """Return the tensor under the shape of another of as many elements, with a warning: `reshape` is today's name."""

    def resize_as_(self, the_template: Tensor, *, memory_format: _memory_format | None = None) -> Tensor:
        """Return `resize_` to the shape of another tensor; with ``memory_format=torch.preserve_format`` in the order that it looks to be in."""

    def resolve_conj(self) -> Tensor:
        """Return the tensor itself, or a copy of a view that shows conjugates."""

    def resolve_neg(self) -> Tensor:
        """Return the tensor itself, or a copy of a view that shows negatives."""

    def roll(self, shifts: _int | Sequence[_int], dims: _int | Sequence[_int] | None = None) -> Tensor:
        """Return the elements moved by ``shifts`` along ``dims``, those pushed out at the end coming in at the front."""

    def rot90(self, k: _int = 1, dims: _int | _size = (0, 1)) -> Tensor:
        """Return the tensor turned ``k`` times by 90° in the plane of two dims, from the first towards the second."""

    def round(self, *, decimals: _int = 0, out: Tensor | None = None) -> Tensor:
        """Return x rounded to ``decimals`` places, halves to even; the gradient is 0."""

    def round_(self, *, decimals: _int = 0) -> Tensor:
        """Compute `round` in place and return the tensor."""

    def rsqrt(self, *, out: Tensor | None = None) -> Tensor:
        """y = 1/√x, dy/dx = −y³/2."""

    def rsqrt_(self) -> Tensor:
        """Compute `rsqrt` in place and return the tensor."""

    def scatter(
        self, dim: _int, index: Tensor, src: Tensor | _float | None = None, *, value: Number | _complex | None = None, reduce:
        _str | None = None, out: Tensor | None = None
    ) -> Tensor:
        """y = x with y[index[i, j, k], j, k] = src[i, j, k] (for dim 0), ``src`` a tensor or a number; dsrc gathers, dx is 0 there."""

    def scatter_(
        self, dim: _int, index: Tensor, src: Tensor | _float | None = None, *, value: Number | _complex | None = None, reduce:
        _str | None = None
    ) -> Tensor:
        """Compute `scatter` in place and return the tensor."""

    def scatter_add(self, dim: _int, index: Tensor, src: Tensor, *, out: Tensor | None = None) -> Tensor:
        """y = x with src[i, j, k] added to y[index[i, j, k], j, k] (for dim 0); duplicates add up; dsrc gathers."""

    def scatter_add_(self, dim: _int, index: Tensor, src: Tensor) -> Tensor:
        """Compute `scatter_add` in place and return the tensor."""

    def scatter_reduce(
        self, dim: _int, index: Tensor, src: Tensor, reduce: _str, *, include_self: _bool = True, out: Tensor | None = None
    ) -> Tensor:
        """Return `scatter_add` with another way to combine: 'sum', 'prod', 'mean', 'amax' or 'amin', whose ties share the gradient."""

    def scatter_reduce_(self, dim: _int, index: Tensor, src: Tensor, reduce: _str, *, include_self: _bool = True) -> Tensor:
        """Compute `scatter_reduce` in place and return the tensor."""

    def select(self, dim: _int, index: _int) -> Tensor:
        """Return the slice at ``index`` of ``dim``, a view with that dim removed. IndexError when out of range."""

    def select_scatter(self, src: Tensor, dim: _int, index: _int) -> Tensor:
        """Return a copy of ``input`` with ``src`` in place of ``select(dim, index)``."""

    def set_(
        self, source: Tensor | None = None, storage_offset: _int = 0, size: _int | _size | None = None, stride: _int |
        Sequence[_int] | None = None
    ) -> Tensor:
        """Let the tensor read the memory of ``source``, a tensor or a storage (under a geometry of its own, if given); without it become empty."""

    def sgn(self, *, out: Tensor | None = None) -> Tensor:
        """Return x/|x|, 0 at 0; the `sign` of real numbers. Its gradient is that of the direction alone: (g − ḡ·y²)/2|x|."""

    def sgn_(self) -> Tensor:
        """Compute `sgn` in place and return the tensor."""

    def share_memory_(self) -> Tensor:
        """Move the tensor's elements into memory that processes share, and return it; other views that were made before keep the memory they had."""

    def short(self, memory_format: _memory_format | None = None) -> Tensor:
        """Return the tensor as int16."""

    def sigmoid(self, *, out: Tensor | None = None) -> Tensor:
        """y = 1/(1 + e⁻ˣ), dy/dx = y·(1 − y)."""

    def sigmoid_(self) -> Tensor:
        """Compute `sigmoid` in place and return the tensor."""

    def sign(self, *, out: Tensor | None = None) -> Tensor:
        """Return −1, 0 or 1; the gradient is 0. RuntimeError for complex numbers (see `sgn`)."""

    def sign_(self) -> Tensor:
        """Compute `sign` in place and return the tensor."""

    def signbit(self, *, out: Tensor | None = None) -> Tensor:
        """Return whether the sign bit is set (true for −0.0)."""

    def sin(self, *, out: Tensor | None = None) -> Tensor:
        """y = sin x, dy/dx = cos x."""

    def sin_(self) -> Tensor:
        """Compute `sin` in place and return the tensor."""

    def sinc(self, *, out: Tensor | None = None) -> Tensor:
        """y = sin(πx)/(πx), 1 at 0."""

    def sinc_(self) -> Tensor:
        """Compute `sinc` in place and return the tensor."""

    def sinh(self, *, out: Tensor | None = None) -> Tensor:
        """y = sinh x, dy/dx = cosh x."""

    def sinh_(self) -> Tensor:
        """Compute `sinh` in place and return the tensor."""

    @overload
    def size(self, dim: None = None) -> Size:
        """Return the shape, or one size of it."""
    @overload
    def size(self, dim: _int) -> _int:
        """Return the shape, or one size of it."""

    def slice_scatter(
        self, src: Tensor, dim: _int = 0, start: _int | None = None, end: _int | None = None, step: _int = 1, *, out: Tensor |
        None = None
    ) -> Tensor:
        """Return a copy of ``input`` with ``src`` in place of the slice start:end:step of ``dim``."""

    def slogdet(self, *, out: Tensor | None = None) -> _return_types.slogdet:
        """Return `linalg.slogdet`, its older name."""

    def softmax(
        self, dim: _int | None = None, dtype: _dtype | None = None, *, axis: _int | None = None, out: Tensor | None = None
    ) -> Tensor:
        """yᵢ = e^xᵢ / Σⱼ e^xⱼ along ``dim``; dL/dx = y·(g − Σ g·y). ``dtype`` casts first."""

    def sort(
        self, dim: _int = -1, descending: _bool = False, *, stable: _bool | None = None, out: Tensor | None = None
    ) -> _return_types.sort:
        """Return (values, indices) sorted along ``dim``; equal elements keep their order, NaN is greatest. dvalues scatters back."""

    def sparse_dim(self) -> _int:
        """Return how many dims have coordinates: none of a dense tensor."""

    def sparse_mask(self, mask: Tensor) -> Any:
        """Return the elements at the places of a sparse ``mask`` as a sparse tensor; dy/dx = 1 there. RuntimeError for a dense mask."""

    def split(
        self, split_size_or_sections: _int | Sequence[_int] | None = None, dim: _int = 0, **kw: Any
    ) -> tuple[Tensor, ...]:
        """Return views of parts along ``dim``: of one size (the last may be smaller), or of the listed sizes."""

    def split_with_sizes(self, split_sizes: _int | _size, dim: _int = 0) -> tuple[Tensor, ...]:
        """Return `split` by a list of sizes."""

    def sqrt(self, *, out: Tensor | None = None) -> Tensor:
        """y = √x, dy/dx = 1/(2y)."""

    def sqrt_(self) -> Tensor:
        """Compute `sqrt` in place and return the tensor."""

    def square(self, *, out: Tensor | None = None) -> Tensor:
        """y = x², dy/dx = 2x."""

    def square_(self) -> Tensor:
        """Compute `square` in place and return the tensor."""

    def squeeze(self, dim: _int | Sequence[_int] | None = None) -> Tensor:
        """Drop the dims of size 1 (all, or those in ``dim``), a view."""

    def squeeze_(self, dim: _int | Sequence[_int] | None = None) -> Tensor:
        """Return the tensor itself after `squeeze`: it is read through other sizes and strides, its memory stays."""

    def std(
        self, dim: _int | Sequence[_int] | None = None, unbiased: _bool | None = None, keepdim: _bool = False, *, correction:
        _float | None = None, out: Tensor | None = None
    ) -> Tensor:
        """Return the standard deviation over ``dim``: √`var`; the gradient is 0 where it is 0."""

    def stft(
        self, n_fft: _int, hop_length: _int | None = None, win_length: _int | None = None, window: Tensor | None = None, center:
        _bool = True, pad_mode: _str = 'reflect', normalized: _bool = False, onesided: _bool | None = None, return_complex:
        _bool | None = None, align_to_window: _bool | None = None
    ) -> Tensor:
        """Return spectra of pieces of a signal, […, time] → […, frequency, piece]: Σₖ window[k]·x[m·hop + k]·e^(−2πi·ωk/n_fft)."""

    def storage(self) -> TypedStorage:
        """Return the memory that the tensor and all views of it look at, as elements."""

    def storage_offset(self) -> _int:
        """Return the number of elements from the beginning of the storage to the first element."""

    def storage_type(self) -> Any:
        """Return PyTorch's old class of storages of the tensor's dtype."""

    @overload
    def stride(self, dim: None = None) -> tuple[_int, ...]:
        """Return the strides in elements, or one of them."""
    @overload
    def stride(self, dim: _int) -> _int:
        """Return the strides in elements, or one of them."""

    def sub(self, other: Tensor | Number | _complex, *, alpha: _float | None = None, out: Tensor | None = None) -> Tensor:
        """Difference: y = a − alpha·b, dy/da = 1, dy/db = −alpha. RuntimeError for booleans."""

    def sub_(self, other: Tensor | Number | _complex, *, alpha: _float | None = None) -> Tensor:
        """Compute `sub` in place and return the tensor."""

    def subtract(self, other: Tensor | Number | _complex, *, alpha: _float | None = None, out: Tensor | None = None) -> Tensor:
        """Difference: y = a − alpha·b, dy/da = 1, dy/db = −alpha. RuntimeError for booleans."""

    def subtract_(self, other: Tensor | Number | _complex, *, alpha: _float | None = None) -> Tensor:
        """Compute `sub` in place and return the tensor."""

    def sum(
        self, dim: _int | Sequence[_int] | None = None, keepdim: _bool = False, *, dtype: _dtype | None = None, out: Tensor |
        None = None
    ) -> Tensor:
        """Sum over ``dim`` (an int, a tuple, or None for all): y = Σ x, dy/dx = 1."""

    def sum_to_size(self, *sizes: _int | Sequence[_int], size: _int | _size | None = None) -> Tensor:
        """Sum over the dims that were broadcast so that the result has ``size``."""

    def svd(self, some: _bool = True, compute_uv: _bool = True, *, out: Tensor | None = None) -> _return_types.svd:
        """Return (U, S, V) with A = U·diag(S)·Vᴴ: the older form of `linalg.svd`; without ``compute_uv`` U and V are zeros."""

    def swapaxes(self, axis0: _int, axis1: _int) -> Tensor:
        """Swap two axes, a view, as `transpose` does."""

    def swapaxes_(self, axis0: _int, axis1: _int) -> Tensor:
        """Return the tensor itself after `swapaxes`: it is read through other sizes and strides, its memory stays."""

    def swapdims(self, dim0: _int, dim1: _int) -> Tensor:
        """Swap two dims, a view."""

    def swapdims_(self, dim0: _int, dim1: _int) -> Tensor:
        """Return the tensor itself after `swapdims`: it is read through other sizes and strides, its memory stays."""

    def t(self) -> Tensor:
        """Return the transpose of a matrix (tensors of fewer dims as they are). RuntimeError for more than 2 dims."""

    def t_(self) -> Tensor:
        """Return the tensor itself after `t`: it is read through other sizes and strides, its memory stays."""

    def take(self, index: Tensor, *, out: Tensor | None = None) -> Tensor:
        """Return the elements at flat (C order) indices; y has the shape of ``index``. IndexError when out of range."""

    def take_along_dim(self, indices: Tensor, dim: _int | None = None, *, out: Tensor | None = None) -> Tensor:
        """Return `gather` that broadcasts input and indices over the other dims; without ``dim``, on the flattened tensors."""

    def tan(self, *, out: Tensor | None = None) -> Tensor:
        """y = tan x, dy/dx = 1 + y²."""

    def tan_(self) -> Tensor:
        """Compute `tan` in place and return the tensor."""

    def tanh(self, *, out: Tensor | None = None) -> Tensor:
        """y = tanh x, dy/dx = 1 − y²."""

    def tanh_(self) -> Tensor:
        """Compute `tanh` in place and return the tensor."""

    def tensor_split(
        self, indices_or_sections: _int | Sequence[_int] | Tensor | None = None, dim: _int = 0, *, indices: Sequence[_int] |
        None = None, sections: _int | None = None, tensor_indices_or_sections: Tensor | None = None
    ) -> tuple[Tensor, ...]:
        """Return views of nearly equal parts, or of the parts between given indices."""

    def tile(self, *counts: _int | Sequence[_int], dims: _int | Sequence[_int] | None = None) -> Tensor:
        """Repeat the tensor ``dims`` times along each dim (missing dims count as 1)."""

    def to(
        self, *args: Any, dtype: _dtype | None = None, device: Device = None, non_blocking: _bool = False, copy: _bool = False,
        memory_format: _memory_format | None = None
    ) -> Tensor:
        """Return the tensor with another dtype: ``x.to(dtype)``, ``x.to('cpu')``, ``x.to('cpu', dtype)``, ``x.to(other)``."""

    def to_dense(self, dtype: _dtype | None = None, *, masked_grad: _bool | None = None) -> Any:
        """Return the tensor itself, which is dense; of a sparse one the dense one, recorded."""

    def to_sparse(
        self, sparse_dim: _int | None = None, *, layout: object = None, blocksize: object = None, dense_dim: _int | None = None
    ) -> Any:
        """Return a sparse tensor of the elements that are not 0 (see `sparse`), by coordinates or in ``layout``; dy/dx = 1 there."""

    def to_sparse_coo(self) -> Any:
        """Return `to_sparse` by coordinates."""

    def to_sparse_csr(self, dense_dim: _int | None = None) -> Any:
        """Return a sparse matrix by rows of the elements that are not 0."""

    def tolist(self) -> Any:
        """Return the elements as nested lists of Python numbers."""

    def topk(
        self, k: _int, dim: _int = -1, largest: _bool = True, sorted: _bool = True, *, out: Tensor | None = None
    ) -> _return_types.topk:
        """Return (values, indices) of the ``k`` largest (or smallest) along ``dim``, in order; NaN is greatest."""

    def trace(self) -> Tensor:
        """Return the sum of the diagonal of a matrix. RuntimeError unless 2-d."""

    def transpose(self, dim0: _int, dim1: _int) -> Tensor:
        """Swap two dims, a view."""

    def transpose_(self, dim0: _int, dim1: _int) -> Tensor:
        """Return the tensor itself after `transpose`: it is read through other sizes and strides, its memory stays."""

    def triangular_solve(
        self, A: Tensor, upper: _bool = True, transpose: _bool = False, unitriangular: _bool = False, *, out: Tensor | None =
        None
    ) -> _return_types.triangular_solve:
        """Return (solution, cloned_coefficient): the older form of `linalg.solve_triangular`, b before A."""

    def tril(self, diagonal: _int = 0, *, out: Tensor | None = None) -> Tensor:
        """Return the matrices with zeros above the diagonal number ``diagonal``; the gradient too."""

    def tril_(self, diagonal: _int = 0) -> Tensor:
        """Compute `tril` in place and return the tensor."""

    def triu(self, diagonal: _int = 0, *, out: Tensor | None = None) -> Tensor:
        """Return the matrices with zeros below the diagonal number ``diagonal``; the gradient too."""

    def triu_(self, diagonal: _int = 0) -> Tensor:
        """Compute `triu` in place and return the tensor."""

    def true_divide(
        self, other: Tensor | Number | _complex, *, rounding_mode: _str | None = None, out: Tensor | None = None
    ) -> Tensor:
        """Quotient: y = a/b, dy/da = 1/b, dy/db = −a/b²; integers give floats. ``rounding_mode`` 'trunc' or 'floor' rounds."""

    def true_divide_(self, other: Tensor | Number | _complex, *, rounding_mode: _str | None = None) -> Tensor:
        """Compute `div` in place and return the tensor."""

    def trunc(self, *, out: Tensor | None = None) -> Tensor:
        """Return x without its fraction; the gradient is 0."""

    def trunc_(self) -> Tensor:
        """Compute `trunc` in place and return the tensor."""

    @overload
    def type(self) -> _str:
        """Return the tensor's type name ('torch.FloatTensor'), or the tensor cast to a dtype, a type or its name."""
    @overload
    def type(self, dtype: _dtype | _str, non_blocking: _bool = False) -> Tensor:
        """Return the tensor's type name ('torch.FloatTensor'), or the tensor cast to a dtype, a type or its name."""

    def type_as(self, other: Tensor | Number | _complex) -> Tensor:
        """Return the tensor with the dtype of ``other``."""

    def unbind(self, dim: _int = 0) -> tuple[Tensor, ...]:
        """Return a tuple of the slices along ``dim``, views."""

    def unflatten(self, dim: _int, sizes: _int | _size) -> Tensor:
        """Split one dim into ``sizes`` (one may be -1)."""

    def unfold(self, dimension: _int, size: _int | _size, step: _int) -> Tensor:
        """Return views of windows of ``size`` every ``step`` elements along a dim, in a new last dim."""

    def uniform_(self, from_: _float = 0, to: _float = 1, *, generator: Generator | None = None, **kw: Any) -> Tensor:
        """Fill with numbers uniform on [from, to). Derivative: 0, as what was there is overwritten."""

    @overload
    def unique(
        self, sorted: _bool = True, return_inverse: Literal[False] = False, return_counts: Literal[False] = False, dim: _int |
        None = None
    ) -> Tensor:
        """Return the distinct elements (or slices along ``dim``) in order; if asked, where each element went and how often each occurs."""
    @overload
    def unique(
        self, sorted: _bool = True, *, return_inverse: Literal[True], return_counts: Literal[False] = False, dim: _int | None =
        None
    ) -> tuple[Tensor, Tensor]:
        """Return the distinct elements (or slices along ``dim``) in order; if asked, where each element went and how often each occurs."""
    @overload
    def unique(
        self, sorted: _bool = True, return_inverse: Literal[False] = False, *, return_counts: Literal[True], dim: _int | None =
        None
    ) -> tuple[Tensor, Tensor]:
        """Return the distinct elements (or slices along ``dim``) in order; if asked, where each element went and how often each occurs."""
    @overload
    def unique(
        self, sorted: _bool = True, *, return_inverse: Literal[True], return_counts: Literal[True], dim: _int | None = None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Return the distinct elements (or slices along ``dim``) in order; if asked, where each element went and how often each occurs."""
    @overload
    def unique(
        self, sorted: _bool = True, return_inverse: _bool = False, return_counts: _bool = False, dim: _int | None = None
    ) -> Tensor | tuple[Tensor, ...]:
        """Return the distinct elements (or slices along ``dim``) in order; if asked, where each element went and how often each occurs."""

    @overload
    def unique_consecutive(
        self, return_inverse: Literal[False] = False, return_counts: Literal[False] = False, dim: _int | None = None
    ) -> Tensor:
        """Return `unique` of neighbours only, in the order of the input."""
    @overload
    def unique_consecutive(
        self, return_inverse: Literal[True], return_counts: Literal[False] = False, dim: _int | None = None
    ) -> tuple[Tensor, Tensor]:
        """Return `unique` of neighbours only, in the order of the input."""
    @overload
    def unique_consecutive(
        self, return_inverse: Literal[False] = False, *, return_counts: Literal[True], dim: _int | None = None
    ) -> tuple[Tensor, Tensor]:
        """Return `unique` of neighbours only, in the order of the input."""
    @overload
    def unique_consecutive(
        self, return_inverse: Literal[True], return_counts: Literal[True], dim: _int | None = None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Return `unique` of neighbours only, in the order of the input."""
    @overload
    def unique_consecutive(
        self, return_inverse: _bool = False, return_counts: _bool = False, dim: _int | None = None
    ) -> Tensor | tuple[Tensor, ...]:
        """Return `unique` of neighbours only, in the order of the input."""

    def unsafe_chunk(self, chunks: _int, dim: _int = 0) -> tuple[Tensor, ...]:
        """Return `chunk` as `unsafe_split` does it."""

    def unsafe_split(self, split_size: _int | Sequence[_int], dim: _int = 0) -> tuple[Tensor, ...]:
        """Return `split`, whose parts autograd does not know to be views: each may be changed in place, if the input is not used again."""

    def unsafe_split_with_sizes(self, split_sizes: _int | _size, dim: _int = 0) -> tuple[Tensor, ...]:
        """Return `split_with_sizes` as `unsafe_split` does it."""

    def unsqueeze(self, dim: _int) -> Tensor:
        """Return a view with a new dim of size 1 at ``dim``."""

    def unsqueeze_(self, dim: _int) -> Tensor:
        """Return the tensor itself after `unsqueeze`: it is read through other sizes and strides, its memory stays."""

    def untyped_storage(self) -> UntypedStorage:
        """Return the memory that the tensor and all views of it look at, as bytes."""

    def var(
        self, dim: _int | Sequence[_int] | None = None, unbiased: _bool | None = None, keepdim: _bool = False, *, correction:
        _float | None = None, out: Tensor | None = None
    ) -> Tensor:
        """Return the variance over ``dim``: Σ(x − mean)²/(n − correction); correction 1 unless ``unbiased=False`` or given."""

    def vdot(self, other: Tensor | Number | _complex, *, out: Tensor | None = None) -> Tensor:
        """Inner product of two vectors, the first conjugated: y = Σ conj(aᵢ)·bᵢ."""

    def view(
        self, *shape: _int | Sequence[_int] | _dtype, dtype: _dtype | None = None, size: _int | _size | None = None
    ) -> Tensor:
        """Return the same memory under another shape (one size may be -1), or read as another dtype of the same width."""

    def view_as(self, other: Tensor | Number | _complex) -> Tensor:
        """Return ``view`` with the shape of ``other``."""

    @property
    def volatile(self) -> _bool:
        """Return False, with a warning: the flag is of old, see `no_grad`."""

    def vsplit(self, indices_or_sections: _int | Sequence[_int] | Tensor) -> tuple[Tensor, ...]:
        """Return the `tensor_split` along dim 0 into equal parts or at indices. RuntimeError if uneven."""

    @overload
    def where(self, condition: Tensor) -> tuple[Tensor, ...]:
        """Return this tensor where the condition holds, else ``other``."""
    @overload
    def where(self, condition: Tensor, other: Tensor | Number | _complex) -> Tensor:
        """Return this tensor where the condition holds, else ``other``."""

    def xlogy(self, other: Tensor | Number | _complex, *, out: Tensor | None = None) -> Tensor:
        """Return x·ln y, 0 where x is 0 (unless y is nan)."""

    def xlogy_(self, other: Tensor | Number | _complex) -> Tensor:
        """Compute `xlogy` in place and return the tensor."""

    def xpu(self, device: Device = None, non_blocking: _bool = False, memory_format: _memory_format | None = None) -> Tensor:
        """Raise RuntimeError: there is no xpu device here (but see `compat.gpus`)."""

    def zero_(self) -> Tensor:
        """Fill with 0, in place. Derivative: 0, as what was there is overwritten."""
