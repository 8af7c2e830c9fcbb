"""What packages take from inside PyTorch's modules (`beside` says from where): small functions with a meaning for dense work on the CPU."""

from __future__ import annotations

import enum
import functools
import itertools
import math
import random
import re
import socket
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

from .. import dtypes
from ..autograd.pytree import TreeSpec, is_namedtuple_class, tree_map
from ..errors import warn_user
from ..graph.modes import set_grad_enabled
from ..nn.utils.functional_call import _replaced
from ..ops.core.registry import OPS
from ..ops.nn.softmax import _log_softmax_backward, _softmax_backward
from ..shapes import wrap_dim
from ..tensor import Tensor

TEXT_ARRAYS: re.Pattern[str] = re.compile(r"[SaUO]")
COLLATE_ERROR: str = "default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; found {}"
profiler_legacy: SimpleNamespace = SimpleNamespace()


class OptState(enum.Enum):
    """The stages of a `GradScaler` with an optimizer."""

    READY = 0
    UNSCALED = 1
    STEPPED = 2


class _Keys(type):
    def __getattr__(cls, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return name


class DispatchKey(metaclass=_Keys):
    """The names of PyTorch's tables of kernels, as texts: there is one table here."""


class DispatchKeySet(frozenset[str]):
    """A set of such names."""

    def __new__(cls, key: Any = ()) -> DispatchKeySet:
        return super().__new__(cls, (key,) if isinstance(key, str) else key)

    def __or__(self, other: Any) -> DispatchKeySet:
        return DispatchKeySet({*self, *other})

    add = __or__

    def has(self, key: str) -> bool:
        """Return whether a name is in the set."""
        return key in self


class DeviceType(enum.Enum):
    """The kinds of devices."""

    CPU = 0
    CUDA = 1


def cast_floats(value: Any, device_type: str, dtype: Any) -> Any:
    """Return float tensors in ``dtype``, also within lists and dicts; float64 and all else stay."""

    def cast(t: Any) -> Any:
        return t.to(dtype) if isinstance(t, Tensor) and t.is_floating_point() and t.dtype is not dtypes.float64 else t

    return tree_map(cast, value)


def _clipped_sigmoid(x: Tensor) -> Tensor:
    """Return the sigmoid, kept within the open interval from 0 to 1."""
    info = dtypes.finfo(x.dtype)
    return x.sigmoid().clamp(min=info.tiny, max=1.0 - info.eps)


def grouped_mm(
    mat_a: Tensor, mat_b: Tensor, *, offs: Tensor | None = None, bias: Tensor | None = None, out_dtype: Any = None
) -> Tensor:
    """Return products of groups: rows of ``mat_a`` up to ``offs[i]`` times ``mat_b[i]``, or parts of the shared dim of two matrices.

    >>> torch.nn.functional.grouped_mm(torch.ones(3, 2), torch.ones(2, 2, 1), offs=torch.tensor([1, 3], dtype=torch.int32)).tolist()
    [[2.0], [2.0], [2.0]]
    """
    if bias is not None:
        raise RuntimeError("grouped_mm(): bias is not supported; add it to the result")
    if (mat_a.ndim == 3 and mat_b.ndim == 3) != (offs is None):
        raise RuntimeError("grouped_mm(): offs must be given if one operand has 2 dims, and only then")
    if offs is None:
        return _in(mat_a @ mat_b, out_dtype)
    ends = offs.tolist()
    spans = list(zip([0, *ends[:-1]], ends, strict=True))
    join = OPS["cat"].call
    if mat_a.ndim == 2 and mat_b.ndim == 2:
        return _in(OPS["stack"].call([mat_a[:, i:j] @ mat_b[i:j] for i, j in spans]), out_dtype)
    if mat_a.ndim == 2:
        parts = [mat_a[i:j] @ mat_b[k] for k, (i, j) in enumerate(spans)]
        return _in(join([*parts, mat_a.new_zeros(mat_a.shape[0] - ends[-1], mat_b.shape[-1])]), out_dtype)
    parts = [mat_a[k] @ mat_b[:, i:j] for k, (i, j) in enumerate(spans)]
    return _in(join([*parts, mat_a.new_zeros(mat_a.shape[1], mat_b.shape[1] - ends[-1])], 1), out_dtype)


def _in(result: Tensor, dtype: Any) -> Tensor:
    return result if dtype is None else result.to(dtype)


def _reparametrize_module(
    module: Any, parameters_and_buffers: dict[str, Any], tie_weights: bool = False, strict: bool = False, stack_weights: bool = False
) -> Any:
    """Return a context in which a module has other tensors in the place of its parameters and buffers."""
    return _replaced(module, parameters_and_buffers, tie_weights, strict)


def _default_to_fused_or_foreach(params: Any, differentiable: bool, use_fused: bool = False) -> tuple[bool, bool]:
    """Return whether PyTorch would fuse updates of parameters on the CPU, and whether it would do them by lists: neither by itself."""
    return bool(use_fused and not differentiable and all(p is None or p.is_floating_point() for p in params)), False


def _use_grad_for_differentiable(func: Callable[..., Any]) -> Callable[..., Any]:
    """Return an optimizer's method that records ops if its option ``differentiable`` says so."""

    @functools.wraps(func)
    def method(*args: Any, **kwargs: Any) -> Any:
        with set_grad_enabled(args[0].defaults["differentiable"]):
            return func(*args, **kwargs)

    return method


def _view_as_real(params: list[Tensor], *state_and_grads: list[Tensor]) -> None:
    """Put views as real numbers in the place of complex parameters, of their gradients and states."""
    for i, p in enumerate(params):
        if p.is_complex():
            for tensors in (params, *state_and_grads):
                tensors[i] = OPS["view_as_real"].call(tensors[i])


def _to_scalar(x: Any) -> Any:
    """Return a tensor of one element without dims, and numbers as they are."""
    return x.squeeze() if isinstance(x, Tensor) and x.ndim else x


def number(x: Any) -> Any:
    """Return the number in a tensor, and numbers as they are."""
    return x.item() if isinstance(x, Tensor) else x


def stack(x: Any) -> Any:
    """Return the list as it is, as PyTorch does outside its compiler."""
    return x


def square_root(x: Any) -> Any:
    """Return √x of a number or tensor."""
    return x.sqrt() if isinstance(x, Tensor) else x**0.5


def undecorated(*args: Any, **kwargs: Any) -> Callable[[Any], Any]:
    """Return a decorator that does nothing."""
    return lambda function: function


def _list_flatten(d: list[Any]) -> tuple[list[Any], None]:
    """Return the children of a list and nothing else to know of it."""
    return d, None


def _list_flatten_with_keys(d: list[Any]) -> tuple[list[Any], None]:
    """Return pairs of keys and children of a list."""
    from ..utils._pytree import SequenceKey

    return [(SequenceKey(k), child) for k, child in enumerate(d)], None


def _list_unflatten(values: Any, context: Any) -> list[Any]:
    """Return the list of these children."""
    return list(values)


def is_namedtuple(obj: Any) -> bool:
    """Return whether an object is a named tuple."""
    return is_namedtuple_class(type(obj))


def is_structseq_instance(obj: Any) -> bool:
    """Return whether an object is one of C's named tuples, such as the results of ``max(dim)`` are in PyTorch."""
    return isinstance(obj, tuple) and hasattr(type(obj), "n_sequence_fields")


_PLAIN: dict[str, type] = {t.__name__: t for t in (list, tuple, dict)}


def treespec_dumps(treespec: TreeSpec, protocol: int | None = None) -> str:
    """Return the shape of a tree of lists, tuples and dicts as JSON. NotImplementedError for other nodes."""
    import json

    return json.dumps(_plain(treespec))


def _plain(spec: TreeSpec) -> Any:
    if spec.is_leaf():
        return None
    if spec.type not in _PLAIN.values():
        raise NotImplementedError(f"treespec_dumps(): a node of type {spec.type.__name__}: this library writes lists, tuples and dicts")
    return [spec.type.__name__, spec.context, [_plain(c) for c in spec.children_specs]]


def treespec_loads(serialized: str) -> TreeSpec:
    """Return the shape of a tree that `treespec_dumps` wrote."""
    import json

    return _made(json.loads(serialized))


def _made(found: Any) -> TreeSpec:
    from ..autograd.pytree import LEAF

    return LEAF if found is None else TreeSpec(_PLAIN[found[0]], found[1], tuple([_made(c) for c in found[2]]))


def device_states(*args: Any) -> tuple[list[int], list[Tensor]]:
    """Return which devices other than the CPU the arguments are on, and their generators' states: none."""
    return [], []


def generate_state(base_seed: int, worker_id: int) -> list[int]:
    """Return four numbers to seed a worker's NumPy generator with: other ones for each seed and worker."""
    return [random.Random(f"{base_seed}/{worker_id}/{k}").getrandbits(32) for k in range(4)]


def _convert_indices_from_coo_to_csr(input: Tensor, size: int, *, out_int32: bool = False) -> Tensor:
    """Return the row pointers of sorted row numbers.

    >>> torch._convert_indices_from_coo_to_csr(torch.tensor([0, 0, 2]), 3)
    tensor([0, 2, 2, 3])
    """
    rows = OPS["arange"].call(size + 1, dtype=input.dtype)
    return OPS["searchsorted"].call(input.contiguous(), rows).to(dtypes.int32 if out_int32 else dtypes.int64)


def _convert_indices_from_csr_to_coo(crow_indices: Tensor, col_indices: Tensor, *, out_int32: bool = False, transpose: bool = False) -> Tensor:
    """Return row and column numbers, in two rows, of row pointers and column numbers.

    >>> torch._convert_indices_from_csr_to_coo(torch.tensor([0, 2, 2, 3]), torch.tensor([0, 1, 1]))
    tensor([[0, 0, 2],
            [0, 1, 1]])
    """
    rows = OPS["arange"].call(crow_indices.shape[-1] - 1).repeat_interleave(crow_indices.diff())
    pair = (col_indices, rows) if transpose else (rows, col_indices)
    return OPS["stack"].call([part.to(dtypes.int32 if out_int32 else dtypes.int64) for part in pair])


def _softmax_backward_data(grad_output: Tensor, output: Tensor, dim: int, input_dtype: Any) -> Tensor:
    """Return the gradient of softmax's operand, from that of its output and the output."""
    return _softmax_backward(grad_output.expand_as(output).to(output.dtype), output, wrap_dim(dim, output.ndim)).to(input_dtype)


def _log_softmax_backward_data(grad_output: Tensor, output: Tensor, dim: int, input_dtype: Any) -> Tensor:
    """Return the gradient of log_softmax's operand, from that of its output and the output."""
    return _log_softmax_backward(grad_output.expand_as(output).to(output.dtype), output, wrap_dim(dim, output.ndim)).to(input_dtype)


def _unique2(input: Tensor, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False) -> tuple[Tensor, ...]:  # noqa: A002
    """Return what `unique` finds as three tensors, those empty that are not asked for."""
    found, inverse, counts = OPS["unique"].call(input, sorted, True, True)
    nothing = OPS["zeros"].call(0, dtype=dtypes.int64)
    return found, inverse if return_inverse else nothing, counts if return_counts else nothing


def _unique(input: Tensor, sorted: bool = True, return_inverse: bool = False) -> tuple[Tensor, ...]:  # noqa: A002
    """Return what `unique` finds and where it stood, which is empty if it is not asked for."""
    return _unique2(input, sorted, return_inverse)[:2]


def _cast(dtype: Any) -> Callable[..., Tensor]:
    def cast(input: Tensor, non_blocking: bool = False) -> Tensor:
        return input.to(dtype)

    cast.__doc__ = f"Return the tensor as {dtype}."
    return cast


_cast_Byte, _cast_Char, _cast_Short, _cast_Int = _cast(dtypes.uint8), _cast(dtypes.int8), _cast(dtypes.int16), _cast(dtypes.int32)
_cast_Long, _cast_Half, _cast_Float, _cast_Double = _cast(dtypes.int64), _cast(dtypes.float16), _cast(dtypes.float32), _cast(dtypes.float64)


def _check_with(error_type: type[Exception], cond: Any, message: Callable[[], Any] | None) -> None:
    """Raise ``error_type`` with ``message()`` unless the condition holds."""
    if not bool(cond):
        raise error_type("Expected cond to be True, but got False." if message is None else str(message()))


def _check_tensor_all_with(error_type: type[Exception], cond: Tensor, message: Callable[[], Any] | None = None) -> None:
    """Raise ``error_type`` with ``message()`` unless all elements are true."""
    _check_with(error_type, cond.all(), message)


def _element_size(dtype: Any) -> int:
    """Return the bytes of an element."""
    return int(dtype.itemsize)


def unwrapped(t: Any) -> Any:
    """Return the tensor: it is not wrapped."""
    return t


def tqdm(*args: Any, **kwargs: Any) -> Any:
    """Return a bar of progress of the package tqdm. ImportError without it."""
    from tqdm import tqdm as bar  # type: ignore[import-untyped]

    return bar(*args, **kwargs)


def is_fake(x: Any) -> bool:
    """Return whether a tensor is without values: none is."""
    return False


def is_alias_of(a: Tensor, b: Tensor) -> bool:
    """Return whether two tensors share memory."""
    return a.untyped_storage().data_ptr() == b.untyped_storage().data_ptr()


def printoptions(**options: Any) -> Any:
    """Return a context in which tensors are printed otherwise; see `set_printoptions`."""
    from contextlib import contextmanager

    from ..display import options as current
    from ..display import set_printoptions

    @contextmanager
    def context() -> Any:
        before = {name: getattr(current, name) for name in ("precision", "threshold", "edgeitems", "linewidth", "sci_mode")}
        set_printoptions(**options)
        try:
            yield
        finally:
            set_printoptions(**before)

    return context()


def _rebuild_tensor(storage: Any, storage_offset: int, size: Sequence[int], stride: Sequence[int]) -> Tensor:
    """Return a tensor over a storage, as PyTorch's files have them."""
    from ..serialization.unpickling import _rebuild_tensor as rebuild

    return rebuild(storage, int(storage_offset), tuple(size), tuple(stride))


def _rebuild_tensor_v2(
    storage: Any, storage_offset: int, size: Sequence[int], stride: Sequence[int], requires_grad: bool, backward_hooks: Any, metadata: Any = None
) -> Tensor:
    """Return a tensor over a storage, which may require gradients."""
    return _rebuild_tensor(storage, storage_offset, size, stride).requires_grad_(bool(requires_grad))


def _rebuild_parameter(data: Tensor, requires_grad: bool, backward_hooks: Any) -> Tensor:
    """Return a parameter with these values."""
    from ..nn.parameter import Parameter

    return Parameter(data, bool(requires_grad))


def _rebuild_from_type_v2(func: Callable[..., Tensor], new_type: type, args: Any, state: Any) -> Tensor:
    """Return what ``func(*args)`` makes, as an instance of a class, with attributes."""
    made: Any = func(*args)
    if type(made) is not new_type:
        made = made.as_subclass(new_type)
    if isinstance(state, dict):
        made.__dict__.update(state)
    return made


class SourceChangeWarning(Warning):
    """Given by PyTorch where the code of a pickled module is another than it was; by nothing here."""


def _is_zipfile(f: Any) -> bool:
    """Return whether a file begins as an archive does at the place where it is; the place stays.

    >>> import io
    >>> torch.serialization._is_zipfile(io.BytesIO(b"PK\x03\x04"))
    True
    """
    place = f.tell()
    start = f.read(4)
    f.seek(place)
    return bool(start == b"PK\x03\x04")


def _nested_map(condition: Callable[[Any], bool], fn: Callable[[Any], Any], condition_msg: str | None = None) -> Callable[[Any], Any]:
    """Return a function that calls ``fn`` on what meets the condition in lists, tuples and dicts; None stays. ValueError for anything else."""
    return functools.partial(_nested, condition, fn, condition_msg)


def _nested(condition: Callable[[Any], bool], fn: Callable[[Any], Any], condition_msg: str | None, x: Any) -> Any:
    if condition(x):
        return fn(x)
    if x is None:
        return None
    again = functools.partial(_nested, condition, fn, condition_msg)
    if isinstance(x, (list, tuple)):
        found = [again(v) for v in x]
        return type(x)(*found) if hasattr(x, "_fields") else type(x)(found)
    if isinstance(x, dict):
        return {k: again(v) for k, v in x.items()}
    expected = f". Accepted types: {condition_msg}, or lists/tuples of them" if condition_msg else ""
    raise ValueError(f"Auto nesting doesn't know how to process an input object of type {type(x).__name__}{expected}")


def get_numerical_jacobian(fn: Callable[[Any], Any], inputs: Any, target: Any = None, eps: float = 1e-3, grad_out: float = 1.0) -> list[Tensor]:
    """Return for each tensor of ``target`` (those of ``inputs``) the derivative of ``fn(inputs)`` by central differences: its elements × the result's."""
    if grad_out != 1.0:
        raise ValueError("Expected grad_out to be 1.0. get_numerical_jacobian no longer supports values of grad_out != 1.0.")
    wanted = inputs if target is None else target
    jacobians = []
    with set_grad_enabled(False):
        for x in (wanted,) if isinstance(wanted, Tensor) else [t for t in wanted if isinstance(t, Tensor)]:
            rows, places = [], x.detach()
            for i in itertools.product(*map(range, x.shape)):
                before = places[i].clone()
                ends = []
                for step in (eps, -eps):
                    places[i] = before + step
                    found = fn(inputs)
                    ends.append((found[0] if isinstance(found, (tuple, list)) else found).detach().reshape(-1).clone())
                places[i] = before
                rows.append((ends[0] - ends[1]) / (2 * eps))
            jacobians.append(OPS["stack"].call(rows))
    return jacobians


def summarized(self: Tensor) -> Tensor:
    """Return the elements that are printed of a large tensor: those at the edges of each dim."""
    from ..display import options

    for dim, n in enumerate(self.shape):
        if n > 2 * options.edgeitems:
            self = OPS["cat"].call((self.narrow(dim, 0, options.edgeitems), self.narrow(dim, n - options.edgeitems, options.edgeitems)), dim)
    return self


def _convolutions(module: Any, dims: int, memory_format: Any) -> Any:
    from .. import nn

    kinds = {4: (nn.Conv2d, nn.ConvTranspose2d), 5: (nn.Conv3d, nn.ConvTranspose3d)}[dims]
    for m in module.modules():
        if isinstance(m, kinds):
            m.weight.data = m.weight.detach().clone().contiguous(memory_format=memory_format)
    return module


def convert_conv2d_weight_memory_format(module: Any, memory_format: Any) -> Any:
    """Lay the weights of all `Conv2d` and `ConvTranspose2d` below a module out in a memory format; the module.

    >>> m = torch.nn.utils.convert_conv2d_weight_memory_format(torch.nn.Conv2d(2, 2, 3), torch.channels_last)
    >>> m.weight.is_contiguous(memory_format=torch.channels_last)
    True
    """
    return _convolutions(module, 4, memory_format)


def convert_conv3d_weight_memory_format(module: Any, memory_format: Any) -> Any:
    """Do the same for `Conv3d` and `ConvTranspose3d`."""
    return _convolutions(module, 5, memory_format)


def _none_or_dtype(input: Tensor | None) -> dtypes.dtype | None:
    """Return the dtype of a tensor, or None for None; RuntimeError for all else."""
    if input is None or isinstance(input, Tensor):
        return None if input is None else input.dtype
    raise RuntimeError(f"input to _none_or_dtype() must be None or torch.Tensor, not {type(input).__name__}")


def _canonical_mask(
    mask: Tensor | None, mask_name: str, other_type: dtypes.dtype | None, other_name: str, target_type: dtypes.dtype, check_other: bool = True
) -> Tensor | None:  # fmt: skip
    """Return a mask of attention as what is added to the scores: -inf where a mask of bools is True, and a mask of floats as it is.

    AssertionError for other masks; a warning where ``check_other`` and the mask has not ``other_type``, the dtype of another mask.
    """
    if mask is None:
        return None
    if mask.dtype.name != "bool" and not mask.is_floating_point():
        raise AssertionError(f"only bool and floating types of {mask_name} are supported, not {mask.dtype}")
    if check_other and other_type is not None and mask.dtype is not other_type:
        warn_user(f"Support for mismatched {mask_name} and {other_name} is deprecated. Use same type for both instead.", UserWarning)
    return mask if mask.is_floating_point() else OPS["zeros_like"].call(mask, dtype=target_type).masked_fill_(mask, -math.inf)


def pinned(data: Any, device: Any = None) -> Any:
    """Return data with each tensor, and each object that has such a method, as its ``pin_memory()`` gives it.

    >>> from autograd_nb.utils.data._utils.pin_memory import pin_memory
    >>> pin_memory({"x": [torch.ones(1), "a"]})
    {'x': [tensor([1.]), 'a']}
    """
    return tree_map(lambda x: x.pin_memory() if hasattr(x, "pin_memory") else x, data)


def free_port() -> int:
    """Return a port of this machine that nothing listens at."""
    with socket.socket() as found:
        found.bind(("localhost", 0))
        return int(found.getsockname()[1])
