"""Fourier transforms over axes of a dense array, by what SciPy does them with: DUCC, or pocketfft before SciPy 1.18.

It is called below SciPy's public functions, as those allocate their result and cost more than a small transform does.
``scale``: 0 leaves sums as they are, 1 divides by √n, 2 by n, the number of points transformed. ``forward``: the exponent's
sign is negative. ``workers``: threads, for which the result is the same.
"""

from __future__ import annotations

from ..codegen.build.compilation import foreign

try:
    from scipy.fft._duccfft import pyduccfft as transforms
except ImportError:
    from scipy.fft._pocketfft import pypocketfft as transforms


@foreign
def c2c(shape, axes, forward, scale, workers, x, out):
    """Write the whole transform of a complex or real array."""
    found = out.reshape(shape)
    transforms.c2c(x.reshape(shape), axes, forward, scale, found, workers)
    if x.dtype.kind == "c":
        return
    if len(axes) > 1:  # zeros as those of a complex transform
        found.imag += 0.0
    elif forward:  # frequencies that are their own opposites were made their own conjugates: zeros of the other sign
        n = shape[axes[0]]
        own = found[(slice(None),) * axes[0] + (slice(None, None, n // 2 if n % 2 == 0 else n),)]
        own.imag *= -1


@foreign
def r2c(shape, half, axes, forward, scale, workers, x, out):
    """Write the transform of a real array, the last of ``axes`` up to the middle frequency."""
    _require_half(shape, half, axes[-1])
    transforms.r2c(x.reshape(shape), axes, forward, scale, out.reshape(half), workers)


@foreign
def c2r(half, shape, axes, forward, scale, workers, x, out):
    """Write the real array whose transform is given up to the middle frequency of the last of ``axes``."""
    _require_half(shape, half, axes[-1])
    transforms.c2r(x.reshape(half), axes, shape[axes[-1]], forward, scale, out.reshape(shape), workers)


def _require_half(shape: tuple[int, ...], half: tuple[int, ...], axis: int) -> None:
    """Raise ValueError unless ``half`` is ``shape`` up to the middle frequency of an axis: pocketfft looks at no sizes of what it writes to."""
    if half[axis] != shape[axis] // 2 + 1 or half[:axis] != shape[:axis] or half[axis + 1 :] != shape[axis + 1 :]:
        raise ValueError(f"a transform of shape {shape} has no half of shape {half} along axis {axis}")
