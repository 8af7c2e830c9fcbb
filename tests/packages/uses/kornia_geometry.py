"""Images are filtered, warped, changed in colour, dilated and equalized, and compared."""

import torch
from kornia import color, enhance, feature, filters, geometry, losses, morphology

from ..helpers import data, integers, numbers


def run():
    x = data(2, 3, 24, 24).sigmoid()
    shift = torch.eye(3)[None].repeat(2, 1, 1)
    shift[:, 0, 2], shift[:, 1, 0] = 2.0, 0.1
    scores, classes = data(2, 4, 6, 6), integers(4, 2, 6, 6)
    window = torch.ones(3, 3)
    return {
        "filters": numbers(filters.canny(x)[0], filters.median_blur(x, (3, 3)), filters.bilateral_blur(x, (3, 3), 0.1, (1.0, 1.0)),
                           filters.laplacian(x, 3), filters.motion_blur(x, 3, 30.0, 0.5)),
        "colours": numbers(color.rgb_to_lab(x), color.rgb_to_luv(x), color.hsv_to_rgb(color.rgb_to_hsv(x))),
        "geometry": numbers(geometry.warp_perspective(x, shift, (20, 20)), geometry.rotate(x, torch.tensor([10.0, -20.0])), geometry.pyrdown(x),
                            geometry.find_homography_dlt(data(1, 8, 2), data(1, 8, 2, seed=1)).abs()),
        "morphology": numbers(morphology.dilation(x, window), morphology.opening(x, window), morphology.gradient(x, window)),
        "losses": numbers(losses.ssim_loss(x, x.flip(0), 5), losses.dice_loss(scores, classes), losses.focal_loss(scores, classes, 0.5, reduction="mean")),
        "enhanced": numbers(enhance.equalize(x), enhance.equalize_clahe(x, grid_size=(4, 4)), enhance.adjust_hue(x, 0.2), enhance.posterize(x, 3)),
        "features": numbers(feature.harris_response(x), feature.hessian_response(x), feature.SIFTDescriptor(16)(data(2, 1, 16, 16))),
    }
