"""Filters, colours, warps and losses of images, with gradients."""

import kornia
import torch

from ..helpers import data, numbers


def run():
    image = data(2, 3, 20, 24).sigmoid().requires_grad_()
    blurred = kornia.filters.gaussian_blur2d(image, (5, 5), (1.5, 1.5))
    edges = kornia.filters.sobel(blurred)
    matrix = kornia.geometry.get_rotation_matrix2d(torch.tensor([[12.0, 10.0]] * 2), torch.tensor([30.0, -15.0]), torch.ones(2, 2))
    turned = kornia.geometry.warp_affine(image, matrix, (20, 24))
    (edges.mean() + turned.pow(2).mean()).backward()
    points = torch.tensor([[[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.0, 1.0]]])
    homography = kornia.geometry.get_perspective_transform(points, points * 2 + 0.1)
    picture = image.detach()
    return {
        "edges": numbers(edges), "turned": numbers(turned), "gradient": numbers(image.grad), "homography": numbers(homography),
        "colours": numbers(kornia.color.rgb_to_hsv(picture), kornia.color.rgb_to_lab(picture), kornia.color.rgb_to_grayscale(picture)),
        "morphology": numbers(kornia.morphology.dilation(picture, torch.ones(3, 3)), kornia.filters.median_blur(picture, (3, 3))),
        "losses": numbers(kornia.losses.ssim_loss(picture, picture.flip(3), 5), kornia.losses.total_variation(picture)),
        "angles": numbers(kornia.geometry.axis_angle_to_rotation_matrix(data(3, 3))),
        "enhanced": numbers(kornia.enhance.adjust_brightness(picture, 0.2), kornia.enhance.normalize(picture, torch.zeros(3), torch.ones(3) * 2)),
    }
