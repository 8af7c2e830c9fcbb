"""Sliding windows of images as columns, and columns added up to images: the halves of im2col convolution on their own."""

from __future__ import annotations

from .conv import add_columns, columns


def unfold(images, channels, geometry, x, out):
    """out (images, channels · window, places) = what each window of x (images, channels, D, H, W) sees, 0 outside."""
    di, hi, wi, do, ho, wo, kd, kh, kw = geometry[:9]
    size, places = channels * di * hi * wi, do * ho * wo
    block = channels * kd * kh * kw * places
    for n in range(images):
        columns(x[n * size:(n + 1) * size], geometry, channels, 0, places, out[n * block:(n + 1) * block], places)


def fold(images, channels, geometry, x, out):
    """The transpose of `unfold`: values of windows are added where they came from."""
    di, hi, wi, do, ho, wo, kd, kh, kw = geometry[:9]
    size, places = channels * di * hi * wi, do * ho * wo
    block = channels * kd * kh * kw * places
    for i in range(out.size):
        out[i] = 0
    for n in range(images):
        add_columns(x[n * block:(n + 1) * block], places, geometry, channels, 0, places, out[n * size:(n + 1) * size])
