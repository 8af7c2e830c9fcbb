"""Resizing where PyTorch has ways of its own: images of bytes, by integer weights with bytes in between, and factors that change no size."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import autograd_nb  # noqa: E402

SIZES = {"size": (9, 11, 5)}, {"size": (3, 4, 2)}, {"size": (5, 9, 7)}, {"size": (8, 7, 6)}
FACTORS = {"scale_factor": 1.1}, {"scale_factor": 1.7}, {"scale_factor": 0.6}, {"scale_factor": 1.7, "recompute_scale_factor": True}
BYTES = np.random.default_rng(3).integers(0, 256, (2, 5, 5, 7, 6)).astype(np.uint8)


def resized(lib, x, mode, options):
    """The values and strides of what `interpolate` makes, or the class of the error."""
    options = {k: v[: x.ndim - 2] if k == "size" else v for k, v in options.items()}
    x = lib.from_numpy(np.ascontiguousarray(x))
    if options.pop("last"):
        x = x.contiguous(memory_format=lib.channels_last)
    try:
        y = lib.nn.functional.interpolate(x, mode=mode, **options)
    except (RuntimeError, ValueError, NotImplementedError) as error:
        return type(error)
    return y.tolist(), y.stride()


def differing(x, mode, which=(False, True)):
    """The options with which the two libraries differ."""
    every = itertools.product(which, (None, False, True), SIZES + FACTORS, (False, True) if x.ndim == 4 else (False,))
    for antialias, aligned, size, last in every:
        options = {"antialias": antialias, "align_corners": aligned, "last": last, **size}
        ours, theirs = (resized(lib, x, mode, options) for lib in (autograd_nb, torch))
        if ours != theirs and not (isinstance(ours, type) and isinstance(theirs, type) and issubclass(ours, theirs)):
            yield options


@pytest.mark.parametrize("mode, dims", [("linear", 1), ("bilinear", 2), ("trilinear", 3), ("bicubic", 2), ("lanczos", 2), ("nearest-exact", 2)])
@pytest.mark.parametrize("channels", [3, 5])
def test_images_of_bytes(mode, dims, channels):
    x = BYTES[(slice(None), slice(channels), *(slice(None),) * dims, *(0,) * (3 - dims))]
    assert list(differing(x, mode)) == []


@pytest.mark.parametrize("dims", [1, 2, 3])
@pytest.mark.parametrize("mode", ["nearest", "nearest-exact"])
def test_factors_that_change_no_size_or_double_it(mode, dims):
    for size, factor in itertools.product((3, 4, 7), (1.05, 1.19, 2.0, 2.1, 2.2, 0.99, 1.9)):
        x = np.arange(size, dtype=np.float32).reshape(1, 1, *(1,) * (dims - 1), size)
        options = {"scale_factor": (1.0,) * (dims - 1) + (factor,), "last": False}
        ours, theirs = (resized(lib, x, mode, options) for lib in (autograd_nb, torch))
        assert ours == theirs, (size, factor)
