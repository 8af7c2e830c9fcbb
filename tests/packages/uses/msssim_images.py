"""Similarity of images, as a loss."""

from pytorch_msssim import MS_SSIM, SSIM, ms_ssim, ssim

from ..helpers import data, numbers


def run():
    x = data(2, 3, 176, 176).sigmoid().requires_grad_()
    y = (x.detach() + 0.1 * data(2, 3, 176, 176, seed=1)).clamp(0, 1)
    value = ssim(x, y, data_range=1.0) + ms_ssim(x, y, data_range=1.0, size_average=True)
    value.backward()
    loss = 1 - SSIM(data_range=1.0, channel=3, win_size=7)(x, y)
    return {"value": numbers(value, loss), "gradient": numbers(x.grad), "each": numbers(MS_SSIM(data_range=1.0, size_average=False)(x, y)),
            "same": numbers(ssim(y, y, data_range=1.0))}
