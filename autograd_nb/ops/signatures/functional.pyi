"""The ops that are offered under ``nn.functional``. Written by `make stubs` from the table of ops: change the op, not this file."""

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

def adaptive_avg_pool1d(input: Tensor, output_size: _int | Sequence[_int]) -> Tensor:
    """Return the mean of each of ``output_size`` nearly equal parts, which shares the gradient evenly."""

def adaptive_avg_pool2d(input: Tensor, output_size: _int | Sequence[_int]) -> Tensor:
    """Return the mean of each of ``output_size`` nearly equal parts, which shares the gradient evenly."""

def adaptive_avg_pool3d(input: Tensor, output_size: _int | Sequence[_int]) -> Tensor:
    """Return the mean of each of ``output_size`` nearly equal parts, which shares the gradient evenly."""

@overload
def adaptive_max_pool1d(input: Tensor, output_size: _int | Sequence[_int], return_indices: Literal[False] = False) -> Tensor:
    """Return the largest element of each of ``output_size`` nearly equal parts, to which the gradient goes."""
@overload
def adaptive_max_pool1d(
    input: Tensor, output_size: _int | Sequence[_int], return_indices: Literal[True]
) -> tuple[Tensor, Tensor]:
    """Return the largest element of each of ``output_size`` nearly equal parts, to which the gradient goes."""

@overload
def adaptive_max_pool1d_with_indices(
    input: Tensor, output_size: _int | Sequence[_int], return_indices: Literal[True] = True
) -> tuple[Tensor, Tensor]:
    """Return what `adaptive_max_pool` does and the places of the maxima."""
@overload
def adaptive_max_pool1d_with_indices(
    input: Tensor, output_size: _int | Sequence[_int], return_indices: Literal[False]
) -> Tensor:
    """Return what `adaptive_max_pool` does and the places of the maxima."""

@overload
def adaptive_max_pool2d(input: Tensor, output_size: _int | Sequence[_int], return_indices: Literal[False] = False) -> Tensor:
    """Return the largest element of each of ``output_size`` nearly equal parts, to which the gradient goes."""
@overload
def adaptive_max_pool2d(
    input: Tensor, output_size: _int | Sequence[_int], return_indices: Literal[True]
) -> tuple[Tensor, Tensor]:
    """Return the largest element of each of ``output_size`` nearly equal parts, to which the gradient goes."""

@overload
def adaptive_max_pool2d_with_indices(
    input: Tensor, output_size: _int | Sequence[_int], return_indices: Literal[True] = True
) -> tuple[Tensor, Tensor]:
    """Return what `adaptive_max_pool` does and the places of the maxima."""
@overload
def adaptive_max_pool2d_with_indices(
    input: Tensor, output_size: _int | Sequence[_int], return_indices: Literal[False]
) -> Tensor:
    """Return what `adaptive_max_pool` does and the places of the maxima."""

@overload
def adaptive_max_pool3d(input: Tensor, output_size: _int | Sequence[_int], return_indices: Literal[False] = False) -> Tensor:
    """Return the largest element of each of ``output_size`` nearly equal parts, to which the gradient goes."""
@overload
def adaptive_max_pool3d(
    input: Tensor, output_size: _int | Sequence[_int], return_indices: Literal[True]
) -> tuple[Tensor, Tensor]:
    """Return the largest element of each of ``output_size`` nearly equal parts, to which the gradient goes."""

@overload
def adaptive_max_pool3d_with_indices(
    input: Tensor, output_size: _int | Sequence[_int], return_indices: Literal[True] = True
) -> tuple[Tensor, Tensor]:
    """Return what `adaptive_max_pool` does and the places of the maxima."""
@overload
def adaptive_max_pool3d_with_indices(
    input: Tensor, output_size: _int | Sequence[_int], return_indices: Literal[False]
) -> Tensor:
    """Return what `adaptive_max_pool` does and the places of the maxima."""

def affine_grid(theta: Tensor, size: _int | _size, align_corners: _bool | None = None) -> Tensor:
    """Return a grid for `grid_sample` of places θ·(x, y, 1): ``theta`` (N, 2, 3) and ``size`` (N, C, H, W) → (N, H, W, 2); or 3-D."""

def alpha_dropout(input: Tensor, p: _float = 0.5, training: _bool = False, inplace: _bool = False) -> Tensor:
    """Do dropout that keeps mean 0 and variance 1 of SELU networks."""

def avg_pool1d(
    input: Tensor, kernel_size: _int | Sequence[_int], stride: _int | Sequence[_int] | None = None, padding: _int |
    Sequence[_int] = 0, ceil_mode: _bool = False, count_include_pad: _bool = True
) -> Tensor:
    """Return the mean of each window, which shares the gradient evenly."""

def avg_pool2d(
    input: Tensor, kernel_size: _int | Sequence[_int], stride: _int | Sequence[_int] | None = None, padding: _int |
    Sequence[_int] = 0, ceil_mode: _bool = False, count_include_pad: _bool = True, divisor_override: _int | None = None, *, out:
    Tensor | None = None
) -> Tensor:
    """Return the mean of each window, which shares the gradient evenly."""

def avg_pool3d(
    input: Tensor, kernel_size: _int | Sequence[_int], stride: _int | Sequence[_int] | None = None, padding: _int |
    Sequence[_int] = 0, ceil_mode: _bool = False, count_include_pad: _bool = True, divisor_override: _int | None = None, *, out:
    Tensor | None = None
) -> Tensor:
    """Return the mean of each window, which shares the gradient evenly."""

def batch_norm(
    input: Tensor, running_mean: Tensor | None, running_var: Tensor | None, weight: Tensor | None = None, bias: Tensor | None =
    None, training: _bool = False, momentum: _float = 0.1, eps: _float = 1e-05, cudnn_enabled: _bool = True
) -> Tensor:
    """Return (x − mean)/√(var + eps)·weight + bias per channel (dim 1)."""

def bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """y[…, o] = x₁ᵀ·W[o]·x₂ + b[o] over the last dims."""

def binary_cross_entropy(
    input: Tensor, target: Tensor, weight: Tensor | None = None, size_average: _bool | None = None, reduce: _str | None = None,
    reduction: _str = 'mean'
) -> Tensor:
    """Return −t·ln x − (1 − t)·ln(1 − x), logarithms kept above −100; dL/dx = (x − t)/(x(1 − x))."""

def binary_cross_entropy_with_logits(
    input: Tensor, target: Tensor, weight: Tensor | None = None, size_average: _bool | None = None, reduce: _str | None = None,
    reduction: _str = 'mean', pos_weight: Tensor | None = None
) -> Tensor:
    """Return −t·ln σ(x)·pos_weight − (1 − t)·ln(1 − σ(x)), without overflow; dL/dx = σ(x) − t."""

def celu(input: Tensor, alpha: _float = 1.0, inplace: _bool = False) -> Tensor:
    """Return max(0, x) + min(0, alpha·(e^(x/alpha) − 1)); dy/dx = 1 for x > 0, else e^(x/alpha)."""

def celu_(input: Tensor, alpha: _float = 1.0) -> Tensor:
    """Compute `celu` in place and return the tensor."""

def channel_shuffle(input: Tensor, groups: _int) -> Tensor:
    """Return the channels (dim 1) of ``groups`` groups, taken in turn; the gradient is put back. RuntimeError unless they divide by it."""

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

def cosine_embedding_loss(
    input1: Tensor, input2: Tensor, target: Tensor, margin: _float = 0.0, size_average: _bool | None = None, reduce: _str | None
    = None, reduction: _str = 'mean'
) -> Tensor:
    """Return 1 − cos(x₁, x₂) where the target is 1, max(0, cos(x₁, x₂) − margin) where it is −1."""

def cosine_similarity(x1: Tensor, x2: Tensor, dim: _int = 1, eps: _float = 1e-08) -> Tensor:
    """Return x₁·x₂/(max(‖x₁‖, eps)·max(‖x₂‖, eps)) along ``dim`` of the broadcast inputs."""

def cross_entropy(
    input: Tensor, target: Tensor, weight: Tensor | None = None, size_average: _bool | None = None, ignore_index: _int = -100,
    reduce: _str | None = None, reduction: _str = 'mean', label_smoothing: _float = 0.0
) -> Tensor:
    """Return −ln softmax(input) at the target class; dL/dx = softmax(x) − onehot(target), over the mean's count."""

def ctc_loss(
    log_probs: Tensor, targets: Tensor, input_lengths: Tensor | Sequence[_int], target_lengths: Tensor | Sequence[_int], blank:
    _int = 0, reduction: _str = 'mean', zero_infinity: _bool = False
) -> Tensor:
    """Return −ln of the probability that ``log_probs`` (T, N, C) spells the targets, over all alignments with blanks and repeats."""

def dropout(input: Tensor, p: _float = 0.5, training: _bool = True, inplace: _bool = False) -> Tensor:
    """Zero elements with probability ``p`` while ``training``, and divide the others by 1 - p: y = x · mask / (1 - p)."""

def dropout1d(input: Tensor, p: _float = 0.5, training: _bool = True, inplace: _bool = False) -> Tensor:
    """Do dropout of whole channels of (N, C, L) or (C, L)."""

def dropout2d(input: Tensor, p: _float = 0.5, training: _bool = True, inplace: _bool = False) -> Tensor:
    """Do dropout of whole channels of (N, C, H, W)."""

def dropout3d(input: Tensor, p: _float = 0.5, training: _bool = True, inplace: _bool = False) -> Tensor:
    """Do dropout of whole channels of (N, C, D, H, W) or (C, D, H, W)."""

def elu(input: Tensor, alpha: _float = 1.0, inplace: _bool = False) -> Tensor:
    """Return x for x > 0, else alpha·(eˣ − 1); dy/dx = 1, or alpha·eˣ."""

def elu_(input: Tensor, alpha: _float = 1.0) -> Tensor:
    """Compute `elu` in place and return the tensor."""

def embedding(
    input: Tensor, weight: Tensor, padding_idx: _int | None = None, max_norm: _float | None = None, norm_type: _float = 2.0,
    scale_grad_by_freq: _bool = False, sparse: _bool = False
) -> Tensor:
    """Return the rows of ``weight`` [n, d] at the integers of ``input``: [*, d]. The gradient of a row is the sum over its uses."""

def embedding_bag(
    input: Tensor, weight: Tensor, offsets: Tensor | None = None, max_norm: _float | None = None, norm_type: _float = 2,
    scale_grad_by_freq: _bool = False, mode: _str = 'mean', sparse: _bool = False, per_sample_weights: Tensor | None = None,
    include_last_offset: _bool = False, padding_idx: _int | None = None
) -> Tensor:
    """Return sums, means or maxima of bags of rows of ``weight`` (n, d): (bags, d), an empty bag giving zeros."""

def feature_alpha_dropout(input: Tensor, p: _float = 0.5, training: _bool = False, inplace: _bool = False) -> Tensor:
    """Do alpha dropout of whole channels (the first two dims)."""

def fold(
    input: Tensor, output_size: _int | Sequence[_int], kernel_size: _int | Sequence[_int], dilation: _int | Sequence[_int] = 1,
    padding: _int | Sequence[_int] = 0, stride: _int | Sequence[_int] = 1
) -> Tensor:
    """Return columns added up to images, values of overlapping windows summed: (N, C·∏ kernel_size, L) → (N, C, *output_size)."""

@overload
def fractional_max_pool2d(
    input: Tensor, kernel_size: _int | Sequence[_int], output_size: _int | Sequence[_int] | None = None, output_ratio: _float |
    Sequence[_float] | None = None, return_indices: Literal[False] = False, _random_samples: Tensor | None = None
) -> Tensor:
    """Return maxima of windows at random places, ``output_size`` of them or ``output_ratio`` of the input's sizes."""
@overload
def fractional_max_pool2d(
    input: Tensor, kernel_size: _int | Sequence[_int], output_size: _int | Sequence[_int] | None = None, output_ratio: _float |
    Sequence[_float] | None = None, *, return_indices: Literal[True], _random_samples: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """Return maxima of windows at random places, ``output_size`` of them or ``output_ratio`` of the input's sizes."""

@overload
def fractional_max_pool2d_with_indices(
    input: Tensor, kernel_size: _int | Sequence[_int], output_size: _int | Sequence[_int] | None = None, output_ratio: _float |
    Sequence[_float] | None = None, return_indices: Literal[False] = False, _random_samples: Tensor | None = None
) -> Tensor:
    """Return maxima of windows at random places, ``output_size`` of them or ``output_ratio`` of the input's sizes, with the places of the maxima."""
@overload
def fractional_max_pool2d_with_indices(
    input: Tensor, kernel_size: _int | Sequence[_int], output_size: _int | Sequence[_int] | None = None, output_ratio: _float |
    Sequence[_float] | None = None, *, return_indices: Literal[True], _random_samples: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """Return maxima of windows at random places, ``output_size`` of them or ``output_ratio`` of the input's sizes, with the places of the maxima."""

@overload
def fractional_max_pool3d(
    input: Tensor, kernel_size: _int | Sequence[_int], output_size: _int | Sequence[_int] | None = None, output_ratio: _float |
    Sequence[_float] | None = None, return_indices: Literal[False] = False, _random_samples: Tensor | None = None
) -> Tensor:
    """Return maxima of windows at random places, ``output_size`` of them or ``output_ratio`` of the input's sizes."""
@overload
def fractional_max_pool3d(
    input: Tensor, kernel_size: _int | Sequence[_int], output_size: _int | Sequence[_int] | None = None, output_ratio: _float |
    Sequence[_float] | None = None, *, return_indices: Literal[True], _random_samples: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """Return maxima of windows at random places, ``output_size`` of them or ``output_ratio`` of the input's sizes."""

@overload
def fractional_max_pool3d_with_indices(
    input: Tensor, kernel_size: _int | Sequence[_int], output_size: _int | Sequence[_int] | None = None, output_ratio: _float |
    Sequence[_float] | None = None, return_indices: Literal[False] = False, _random_samples: Tensor | None = None
) -> Tensor:
    """Return maxima of windows at random places, ``output_size`` of them or ``output_ratio`` of the input's sizes, with the places of the maxima."""
@overload
def fractional_max_pool3d_with_indices(
    input: Tensor, kernel_size: _int | Sequence[_int], output_size: _int | Sequence[_int] | None = None, output_ratio: _float |
    Sequence[_float] | None = None, *, return_indices: Literal[True], _random_samples: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """Return maxima of windows at random places, ``output_size`` of them or ``output_ratio`` of the input's sizes, with the places of the maxima."""

def gaussian_nll_loss(
    input: Tensor, target: Tensor, var: Tensor, full: _bool = False, eps: _float = 1e-06, reduction: _str = 'mean'
) -> Tensor:
    """Return (ln v + (x − t)²/v)/2, v the variance kept above ``eps``; ``full`` adds ln(2π)/2."""

def gelu(input: Tensor, approximate: _str = 'none', *, out: Tensor | None = None) -> Tensor:
    """Return x·Φ(x), Φ the normal distribution function; dy/dx = Φ(x) + x·φ(x). ``approximate='tanh'`` takes the formula with tanh."""

def glu(input: Tensor, dim: _int = -1) -> Tensor:
    """Return a·σ(b), a and b the halves of the input along ``dim``: its size n becomes n/2."""

def grid_sample(
    input: Tensor, grid: Tensor, mode: _str = 'bilinear', padding_mode: _str = 'zeros', align_corners: _bool | None = None
) -> Tensor:
    """Return ``input`` (N, C, H, W) read at ``grid`` (N, Hₒ, Wₒ, 2) of (x, y) in [−1, 1]: (N, C, Hₒ, Wₒ); or with one dim more."""

def group_norm(
    input: Tensor, num_groups: _int, weight: Tensor | None = None, bias: Tensor | None = None, eps: _float = 1e-05,
    cudnn_enabled: _bool = True
) -> Tensor:
    """Return (x − mean)/√(var + eps)·weight + bias, the statistics over each of ``num_groups`` groups of channels of a sample."""

def gumbel_softmax(logits: Tensor, tau: _int = 1, hard: _bool = False, eps: _float = 1e-10, dim: _int = -1) -> Tensor:
    """Return `softmax` of (logits + Gumbel noise)/tau: a relaxed sample of the categories along ``dim``."""

def hardshrink(input: Tensor, lambd: _float = 0.5, *, out: Tensor | None = None) -> Tensor:
    """Return x where |x| > lambd, else 0; dy/dx = 1 there, else 0."""

def hardsigmoid(input: Tensor, inplace: _bool = False) -> Tensor:
    """Return 0 below −3, 1 above 3, x/6 + 1/2 between; dy/dx = 1/6 there, else 0."""

def hardswish(input: Tensor, inplace: _bool = False) -> Tensor:
    """Return x·hardsigmoid(x); dy/dx = 0 below −3, 1 above 3, x/3 + 1/2 between."""

def hardtanh(input: Tensor, min_val: _float = -1.0, max_val: _float = 1.0, inplace: _bool = False) -> Tensor:
    """Return x kept within [min_val, max_val]; dy/dx = 1 within, 0 at and beyond the edges."""

def hardtanh_(input: Tensor, min_val: _float = -1.0, max_val: _float = 1.0) -> Tensor:
    """Compute `hardtanh` in place and return the tensor."""

def hinge_embedding_loss(
    input: Tensor, target: Tensor, margin: _float = 1.0, size_average: _bool | None = None, reduce: _str | None = None,
    reduction: _str = 'mean'
) -> Tensor:
    """Return x where the target is 1 (dL/dx = 1), max(0, margin − x) where it is −1 (dL/dx = −1, or 0)."""

def huber_loss(
    input: Tensor, target: Tensor, reduction: _str = 'mean', delta: _float = 1.0, weight: Tensor | None = None
) -> Tensor:
    """Return (a − b)²/2 where |a − b| ≤ delta, else delta·(|a − b| − delta/2); dL/da = a − b, kept within [−delta, delta]."""

def instance_norm(
    input: Tensor, running_mean: Tensor | None = None, running_var: Tensor | None = None, weight: Tensor | None = None, bias:
    Tensor | None = None, use_input_stats: _bool = True, momentum: _float = 0.1, eps: _float = 1e-05, cudnn_enabled: _bool =
    True
) -> Tensor:
    """Return `batch_norm` with statistics of every sample by itself. ValueError for one spatial element when they are used."""

def interpolate(
    input: Tensor, size: _int | _size | None = None, scale_factor: _float | Sequence[_float] | None = None, mode: _str =
    'nearest', align_corners: _bool | None = None, recompute_scale_factor: _bool | None = None, antialias: _bool = False
) -> Tensor:
    """Resize the dims after (batch, channels) to ``size``, or by ``scale_factor``: (N, C, d…) → (N, C, size…)."""

def kl_div(
    input: Tensor, target: Tensor, size_average: _bool | None = None, reduce: _str | None = None, reduction: _str = 'mean',
    log_target: _bool = False
) -> Tensor:
    """Return t·(ln t − x), x a log-probability; with ``log_target`` the target is one too. dL/dx = −t."""

def l1_loss(
    input: Tensor, target: Tensor, size_average: _bool | None = None, reduce: _str | None = None, reduction: _str = 'mean',
    weight: Tensor | None = None
) -> Tensor:
    """Return |a − b|; dL/da = sign(a − b), 0 at 0."""

def layer_norm(
    input: Tensor, normalized_shape: _int | _size, weight: Tensor | None = None, bias: Tensor | None = None, eps: _float =
    1e-05, cudnn_enable: _bool = True
) -> Tensor:
    """Return (x − mean)/√(var + eps)·weight + bias, the statistics over the last dims, of sizes ``normalized_shape``."""

def leaky_relu(input: Tensor, negative_slope: _float = 0.01, inplace: _bool = False) -> Tensor:
    """Return x for x > 0, else negative_slope·x; dy/dx = 1, or negative_slope."""

def leaky_relu_(input: Tensor, negative_slope: _float = 0.01) -> Tensor:
    """Compute `leaky_relu` in place and return the tensor."""

def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None, *, out: Tensor | None = None) -> Tensor:
    """y = x·Wᵀ + b over the last dim: (…, in) → (…, out) with W (out × in); dx = g·W, dW = gᵀ·x, db = Σ g."""

def linear_cross_entropy(
    input: Tensor, linear_weight: Tensor, target: Tensor, *, linear_bias: Tensor | None = None, weight: Tensor | None = None,
    reduction: _str = 'mean', ignore_index: _int | None = None, label_smoothing: _float = 0.0, options: Any = None
) -> Tensor:
    """Return `cross_entropy` of `linear(input, linear_weight, linear_bias)`: input (N, in) or (in), weights (C, d…, in), bias (C, d…)."""

def local_response_norm(
    input: Tensor, size: _int | _size, alpha: _float = 0.0001, beta: _float = 0.75, k: _float = 1.0
) -> Tensor:
    """Return x/(k + alpha·mean of x² over ``size`` neighbouring channels)^beta, of the input's shape (N, C, …)."""

def log_softmax(input: Tensor, dim: _int | None = None, _stacklevel: _int = 3, dtype: _dtype | None = None) -> Tensor:
    """Return `log_softmax` along ``dim``."""

def logsigmoid(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Return ln σ(x), without overflow; dy/dx = σ(−x)."""

def lp_pool1d(
    input: Tensor, norm_type: _float, kernel_size: _int | Sequence[_int], stride: _int | Sequence[_int] | None = None,
    ceil_mode: _bool = False
) -> Tensor:
    """Return (Σ xᵖ)^(1/p) over each window."""

def lp_pool2d(
    input: Tensor, norm_type: _float, kernel_size: _int | Sequence[_int], stride: _int | Sequence[_int] | None = None,
    ceil_mode: _bool = False
) -> Tensor:
    """Return (Σ xᵖ)^(1/p) over each window."""

def lp_pool3d(
    input: Tensor, norm_type: _float, kernel_size: _int | Sequence[_int], stride: _int | Sequence[_int] | None = None,
    ceil_mode: _bool = False
) -> Tensor:
    """Return (Σ xᵖ)^(1/p) over each window."""

def margin_ranking_loss(
    input1: Tensor, input2: Tensor, target: Tensor, margin: _float = 0.0, size_average: _bool | None = None, reduce: _str | None
    = None, reduction: _str = 'mean'
) -> Tensor:
    """Return max(0, −t·(a − b) + margin); dL/da = −t and dL/db = t where that is positive."""

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
def max_pool1d_with_indices(
    input: Tensor, kernel_size: _int | Sequence[_int], stride: _int | Sequence[_int] | None = None, padding: _int |
    Sequence[_int] = 0, dilation: _int | Sequence[_int] = 1, ceil_mode: _bool = False, return_indices: Literal[True] = True
) -> tuple[Tensor, Tensor]:
    """Return what `max_pool` does and the place of each maximum in its plane."""
@overload
def max_pool1d_with_indices(
    input: Tensor, kernel_size: _int | Sequence[_int], stride: _int | Sequence[_int] | None = None, padding: _int |
    Sequence[_int] = 0, dilation: _int | Sequence[_int] = 1, ceil_mode: _bool = False, *, return_indices: Literal[False]
) -> Tensor:
    """Return what `max_pool` does and the place of each maximum in its plane."""

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
def max_pool2d_with_indices(
    input: Tensor, kernel_size: _int | Sequence[_int], stride: _int | Sequence[_int] | None = None, padding: _int |
    Sequence[_int] = 0, dilation: _int | Sequence[_int] = 1, ceil_mode: _bool = False, return_indices: Literal[True] = True
) -> tuple[Tensor, Tensor]:
    """Return what `max_pool` does and the place of each maximum in its plane."""
@overload
def max_pool2d_with_indices(
    input: Tensor, kernel_size: _int | Sequence[_int], stride: _int | Sequence[_int] | None = None, padding: _int |
    Sequence[_int] = 0, dilation: _int | Sequence[_int] = 1, ceil_mode: _bool = False, *, return_indices: Literal[False]
) -> Tensor:
    """Return what `max_pool` does and the place of each maximum in its plane."""

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

@overload
def max_pool3d_with_indices(
    input: Tensor, kernel_size: _int | Sequence[_int], stride: _int | Sequence[_int] | None = None, padding: _int |
    Sequence[_int] = 0, dilation: _int | Sequence[_int] = 1, ceil_mode: _bool = False, return_indices: Literal[True] = True
) -> tuple[Tensor, Tensor]:
    """Return what `max_pool` does and the place of each maximum in its plane."""
@overload
def max_pool3d_with_indices(
    input: Tensor, kernel_size: _int | Sequence[_int], stride: _int | Sequence[_int] | None = None, padding: _int |
    Sequence[_int] = 0, dilation: _int | Sequence[_int] = 1, ceil_mode: _bool = False, *, return_indices: Literal[False]
) -> Tensor:
    """Return what `max_pool` does and the place of each maximum in its plane."""

def max_unpool1d(
    input: Tensor, indices: Tensor, kernel_size: _int | Sequence[_int], stride: _int | Sequence[_int] | None = None, padding:
    _int | Sequence[_int] = 0, output_size: _int | Sequence[_int] | None = None
) -> Tensor:
    """Return values put back where `max_pool` found them, zeros elsewhere; the gradient is read there."""

def max_unpool2d(
    input: Tensor, indices: Tensor, kernel_size: _int | Sequence[_int], stride: _int | Sequence[_int] | None = None, padding:
    _int | Sequence[_int] = 0, output_size: _int | Sequence[_int] | None = None
) -> Tensor:
    """Return values put back where `max_pool` found them, zeros elsewhere; the gradient is read there."""

def max_unpool3d(
    input: Tensor, indices: Tensor, kernel_size: _int | Sequence[_int], stride: _int | Sequence[_int] | None = None, padding:
    _int | Sequence[_int] = 0, output_size: _int | Sequence[_int] | None = None
) -> Tensor:
    """Return values put back where `max_pool` found them, zeros elsewhere; the gradient is read there."""

def mish(input: Tensor, inplace: _bool = False) -> Tensor:
    """Return x·t, t = tanh(softplus(x)); dy/dx = t + x·σ(x)·(1 − t²)."""

def mse_loss(
    input: Tensor, target: Tensor, size_average: _bool | None = None, reduce: _str | None = None, reduction: _str = 'mean',
    weight: Tensor | None = None
) -> Tensor:
    """Return (a − b)², reduced by ``reduction`` ('none', 'mean', 'sum'); dL/da = 2(a − b)/n."""

def multi_head_attention_forward(
    query: Tensor, key: Tensor, value: Tensor, embed_dim_to_check: _int, num_heads: _int, in_proj_weight: Tensor, in_proj_bias:
    Tensor | None, bias_k: Tensor | None, bias_v: Tensor | None, add_zero_attn: _bool, dropout_p: _float, out_proj_weight:
    Tensor, out_proj_bias: Tensor | None, training: _bool = True, key_padding_mask: Tensor | None = None, need_weights: _bool =
    True, attn_mask: Tensor | None = None, use_separate_proj_weight: _bool = False, q_proj_weight: Tensor | None = None,
    k_proj_weight: Tensor | None = None, v_proj_weight: Tensor | None = None, static_k: Tensor | None = None, static_v: Tensor |
    None = None, average_attn_weights: _bool = True, is_causal: _bool = False
) -> tuple[Tensor, Tensor | None]:
    """Return attention in ``num_heads`` subspaces: (L, N, E), (S, N, Eₖ), (S, N, Eᵥ) → ((L, N, E), weights (N, L, S) or None)."""

def multi_margin_loss(
    input: Tensor, target: Tensor, p: _float = 1, margin: _float = 1.0, weight: Tensor | None = None, size_average: _bool | None
    = None, reduce: _str | None = None, reduction: _str = 'mean'
) -> Tensor:
    """Return Σ over the other classes of max(0, margin − x_target + x)ᵖ / C, p 1 or 2."""

def multilabel_margin_loss(
    input: Tensor, target: Tensor, size_average: _bool | None = None, reduce: _str | None = None, reduction: _str = 'mean'
) -> Tensor:
    """Return Σ over targets j and other classes i of max(0, 1 − (x_j − x_i)) / C; a row's targets end at the first −1."""

def multilabel_soft_margin_loss(
    input: Tensor, target: Tensor, weight: Tensor | None = None, size_average: _bool | None = None, reduce: _str | None = None,
    reduction: _str = 'mean'
) -> Tensor:
    """Return the mean over classes of the binary cross-entropy of logits: −t·ln σ(x) − (1 − t)·ln σ(−x), (N, C) → (N), reduced."""

def native_channel_shuffle(input: Tensor, groups: _int) -> Tensor:
    """Return the channels (dim 1) of ``groups`` groups, taken in turn; the gradient is put back. RuntimeError unless they divide by it."""

def nll_loss(
    input: Tensor, target: Tensor, weight: Tensor | None = None, size_average: _bool | None = None, ignore_index: _int = -100,
    reduce: _str | None = None, reduction: _str = 'mean'
) -> Tensor:
    """Return −input at the target class, as after `log_softmax`; dL/dx = −1 there, over the mean's count."""

def normalize(input: Tensor, p: _float = 2.0, dim: _int = 1, eps: _float = 1e-12, out: Tensor | None = None) -> Tensor:
    """Return x/max(‖x‖ₚ, eps) along ``dim``, of the input's shape."""

def one_hot(tensor: Tensor, num_classes: _int = -1) -> Tensor:
    """Return int64 vectors with a 1 at each integer's place: [*, num_classes] (one more than the greatest, if −1)."""

def pad(input: Tensor, pad: Sequence[_int], mode: _str = 'constant', value: Number | _complex | None = None) -> Tensor:
    """Pad the last dims: ``pad`` lists (before, after) from the last dim forward; negative numbers cut off."""

def pairwise_distance(x1: Tensor, x2: Tensor, p: _float = 2.0, eps: _float = 1e-06, keepdim: _bool = False) -> Tensor:
    """Return ‖x₁ − x₂ + eps‖ₚ along the last dim: (…, n) → (…), or (…, 1) if ``keepdim``."""

def pdist(input: Tensor, p: _float = 2.0) -> Tensor:
    """Return the distances ‖x[i] − x[j]‖ₚ of all pairs i < j of the rows of a matrix, in order: N rows give N(N−1)/2 numbers."""

def pixel_shuffle(input: Tensor, upscale_factor: _int) -> Tensor:
    """Return (…, C r², H, W) → (…, C, H r, W r). RuntimeError unless the channels divide by r²."""

def pixel_unshuffle(input: Tensor, downscale_factor: _int) -> Tensor:
    """Return (…, C, H r, W r) → (…, C r², H, W). RuntimeError unless height and width divide by r."""

def poisson_nll_loss(
    input: Tensor, target: Tensor, log_input: _bool = True, full: _bool = False, size_average: _bool | None = None, eps: _float
    = 1e-08, reduce: _str | None = None, reduction: _str = 'mean'
) -> Tensor:
    """Return eˣ − t·x (``log_input``; dL/dx = eˣ − t) or x − t·ln(x + eps); ``full`` adds Stirling's approximation of ln t! where t > 1."""

def prelu(input: Tensor, weight: Tensor) -> Tensor:
    """Return x for x > 0, else weight·x; ``weight`` has one element, or one a channel (dim 1)."""

def relu(input: Tensor, inplace: _bool = False) -> Tensor:
    """Return max(x, 0), as `torch.relu`; ``inplace`` writes x itself."""

def relu6(input: Tensor, inplace: _bool = False) -> Tensor:
    """Return min(max(x, 0), 6); dy/dx = 1 for 0 < x < 6, else 0."""

def relu_(input: Tensor) -> Tensor:
    """Compute `relu` in place and return the tensor."""

def rms_norm(input: Tensor, normalized_shape: _int | _size, weight: Tensor | None = None, eps: _float | None = None) -> Tensor:
    """Return x/√(mean x² + eps)·weight over the last dims; ``eps`` None is the dtype's machine epsilon."""

def rrelu(
    input: Tensor, lower: _float = 0.125, upper: _float = 0.3333333333333333, training: _bool = False, inplace: _bool = False
) -> Tensor:
    """Return x for x > 0, else a·x, where a is drawn from [lower, upper] in training and their mean otherwise."""

def rrelu_(input: Tensor, lower: _float = 0.125, upper: _float = 0.3333333333333333, training: _bool = False) -> Tensor:
    """Compute `rrelu` in place and return the tensor."""

def scaled_dot_product_attention(
    query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None = None, dropout_p: _float = 0.0, is_causal: _bool =
    False, scale: _float | None = None, enable_gqa: _bool = False
) -> Tensor:
    """Return softmax(scale · Q·Kᵀ + mask)·V over the last two dims: (…, L, E), (…, S, E), (…, S, Eᵥ) → (…, L, Eᵥ)."""

def selu(input: Tensor, inplace: _bool = False) -> Tensor:
    """Return s·(max(0, x) + min(0, α·(eˣ − 1))), s ≈ 1.0507 and α ≈ 1.6733; dy/dx = s for x > 0, else s·α·eˣ."""

def selu_(input: Tensor) -> Tensor:
    """Compute `selu` in place and return the tensor."""

def sigmoid(input: Tensor) -> Tensor:
    """Return σ(x) = 1/(1 + e⁻ˣ), as `torch.sigmoid`."""

def silu(input: Tensor, inplace: _bool = False) -> Tensor:
    """Return x·σ(x), also called swish; dy/dx = σ(x)·(1 + x·(1 − σ(x)))."""

def smooth_l1_loss(
    input: Tensor, target: Tensor, size_average: _bool | None = None, reduce: _str | None = None, reduction: _str = 'mean',
    beta: _float = 1.0
) -> Tensor:
    """Return (a − b)²/(2·beta) where |a − b| < beta, else |a − b| − beta/2; dL/da = (a − b)/beta, kept within [−1, 1]."""

def soft_margin_loss(
    input: Tensor, target: Tensor, size_average: _bool | None = None, reduce: _str | None = None, reduction: _str = 'mean'
) -> Tensor:
    """Return ln(1 + e^(−t·x)); dL/dx = −t·σ(−t·x)."""

def softmax(input: Tensor, dim: _int | None = None, _stacklevel: _int = 3, dtype: _dtype | None = None) -> Tensor:
    """Return `softmax` along ``dim``."""

def softmin(input: Tensor, dim: _int | None = None, _stacklevel: _int = 3, dtype: _dtype | None = None) -> Tensor:
    """Return the `softmax` of −x along ``dim``: e^−xᵢ / Σⱼ e^−xⱼ."""

def softplus(input: Tensor, beta: _float = 1.0, threshold: _float = 20.0, *, out: Tensor | None = None) -> Tensor:
    """Return ln(1 + e^(βx))/β, x itself where βx is above ``threshold``."""

def softshrink(input: Tensor, lambd: _float = 0.5, *, out: Tensor | None = None) -> Tensor:
    """Return x moved by ``lambd`` towards 0, and 0 for |x| ≤ lambd; dy/dx = 1 beyond, else 0."""

def softsign(input: Tensor) -> Tensor:
    """Return x/(1 + |x|); dy/dx = 1/(1 + |x|)²."""

def tanh(input: Tensor) -> Tensor:
    """Return the hyperbolic tangent, as `torch.tanh`."""

def tanhshrink(input: Tensor) -> Tensor:
    """Return x − tanh x; dy/dx = tanh² x."""

def threshold(input: Tensor, threshold: _float, value: _float, inplace: _bool = False) -> Tensor:
    """Return x where x > threshold, else ``value``; dy/dx = 1 there, else 0."""

def threshold_(input: Tensor, threshold: _float, value: _float) -> Tensor:
    """Compute `threshold` in place and return the tensor."""

def triplet_margin_loss(
    anchor: Tensor, positive: Tensor, negative: Tensor, margin: _float = 1.0, p: _float = 2, eps: _float = 1e-06, swap: _bool =
    False, size_average: _bool | None = None, reduce: _str | None = None, reduction: _str = 'mean'
) -> Tensor:
    """Return max(0, d(anchor, positive) − d(anchor, negative) + margin), d the `pairwise_distance`: (N, n) → (N), reduced."""

def triplet_margin_with_distance_loss(
    anchor: Tensor, positive: Tensor, negative: Tensor, *, distance_function: Callable[[Tensor, Tensor], Tensor] | None = None,
    margin: _float = 1.0, swap: _bool = False, reduction: _str = 'mean'
) -> Tensor:
    """Return max(0, d(anchor, positive) − d(anchor, negative) + margin) with any distance d; `pairwise_distance` if None."""

def unfold(
    input: Tensor, kernel_size: _int | Sequence[_int], dilation: _int | Sequence[_int] = 1, padding: _int | Sequence[_int] = 0,
    stride: _int | Sequence[_int] = 1
) -> Tensor:
    """Return the windows of images as columns: (N, C, H, W) → (N, C·∏ kernel_size, L), L the number of places of the window."""

def upsample(
    input: Tensor, size: _int | _size | None = None, scale_factor: _float | Sequence[_float] | None = None, mode: _str =
    'nearest', align_corners: _bool | None = None
) -> Tensor:
    """Return the old name of `interpolate`."""

def upsample_bilinear(
    input: Tensor, size: _int | _size | None = None, scale_factor: _float | Sequence[_float] | None = None
) -> Tensor:
    """Return `interpolate` with mode 'bilinear' and aligned corners."""

def upsample_nearest(
    input: Tensor, size: _int | _size | None = None, scale_factor: _float | Sequence[_float] | None = None
) -> Tensor:
    """Return `interpolate` with mode 'nearest'."""
