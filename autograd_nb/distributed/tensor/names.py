"""Which calls are of which kind, as far as `rules` need to know: all others are computed of whole tensors."""

from __future__ import annotations

from functools import cache

from ...ops.core.registry import OPS


def _words(text: str) -> list[str]:
    return text.split()


#: what is computed element by element, beside the table's pointwise ops; in place with "_" behind
_ELEMENTWISE = (
    "clone contiguous to type_as zeros_like ones_like empty_like full_like rsub div divide true_divide floor_divide remainder fmod pow float_power positive "
    "isclose bitwise_not logit round nan_to_num relu sigmoid tanh relu6 leaky_relu elu selu celu gelu silu mish softplus softsign tanhshrink hardtanh "
    "hardsigmoid hardswish hardshrink softshrink threshold logsigmoid heaviside ldexp lerp conj conj_physical resolve_conj resolve_neg clamp clip "
    "clamp_min clamp_max masked_fill where addcmul addcdiv copy fill zero cpu cuda detach polygamma mvlgamma sgn angle real imag arctan2 xlogy "
    "__and__ __or__ __xor__ __invert__ __eq__ __pow__ __rpow__ __rsub__ __rtruediv__ __floordiv__ __rfloordiv__ __div__ __rmod__ __lshift__ __rshift__ "
    "__pos__ __iand__ __ior__ __ixor__ __ipow__ __ilshift__ __irshift__ special.expit"
)
#: views -> of the same memory, whose elements lie where theirs did
VIEWS = frozenset(_words(
    "view reshape view_as reshape_as flatten ravel unflatten permute transpose swapaxes swapdims t movedim moveaxis expand expand_as "
    "broadcast_to squeeze unsqueeze select narrow split split_with_sizes chunk tensor_split unbind diagonal unfold hsplit vsplit dsplit "
    "adjoint __getitem__ T mT H mH"
))
#: those of them whose arguments are the shape of the result
SHAPED = frozenset(_words(
    "view reshape view_as reshape_as unflatten expand expand_as broadcast_to"
))
#: what works along some dims, and leaves the others alone -> the place of the dims among the arguments
ALONG = {
    **dict.fromkeys(_words(
    "sum nansum mean amax amin prod all any logsumexp argmax argmin max min median nanmedian softmax log_softmax softmin cumsum cumprod "
    "cummax cummin logcumsumexp sort argsort var std var_mean std_mean count_nonzero flip nanmean glu"
), 1),
    **dict.fromkeys(["norm", "vector_norm", "topk", "kthvalue", "normalize", "diff"], 2),
}  # fmt: skip
#: what asks nothing of the numbers, and what is of this rank's memory
LOCAL = frozenset(_words(
    "element_size is_floating_point is_complex is_signed is_inference is_pinned is_shared get_device data_ptr storage untyped_storage "
    "_typed_storage storage_type storage_offset is_conj is_neg requires_grad_ retain_grad detach_ share_memory_ pin_memory "
    "is_contiguous is_coalesced is_distributed record_stream sparse_dim dense_dim const_data_ptr is_set_to"
))
#: what makes tensors of a given size, with an operand's dtype
NEW = frozenset(["new_zeros", "new_ones", "new_empty", "new_full", "new_tensor", "new"])
#: what changes a tensor's shape, or its memory, in place
REFUSED = frozenset(_words(
    "resize_ resize_as_ set_ t_ transpose_ swapaxes_ swapdims_ squeeze_ unsqueeze_ as_strided_ resize resize_as apply_ map_ map2_"
))


@cache
def elementwise() -> frozenset[str]:
    """Return the names of what is computed element by element."""
    table = {info.call.__name__ for info in OPS.values() if info.kind in ("pointwise", "cast")}
    return frozenset(table | set(_ELEMENTWISE.split()))
