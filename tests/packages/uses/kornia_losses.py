"""Losses of segmentations by kornia (with Hausdorff's distance by erosion), descriptors and matches, morphology, and a warp that is learnt."""

import kornia
import torch
from torch.nn.functional import l1_loss

from ..helpers import data, integers, numbers, stepped


def run():
    losses, logits, labels = kornia.losses, data(2, 4, 8, 8), integers(4, 2, 8, 8)
    other, probabilities = logits.flip(0), logits.softmax(1)
    result = {
        "labels": numbers(
            losses.focal_loss(logits, labels, 0.5, reduction="mean"), losses.dice_loss(logits, labels), losses.tversky_loss(logits, labels, 0.3, 0.7),
            losses.lovasz_softmax_loss(logits, labels), losses.HausdorffERLoss(k=3)(logits, labels[:, None])),
        "pairs": numbers(
            losses.kl_div_loss_2d(probabilities, other.softmax(1)), losses.js_div_loss_2d(probabilities, other.softmax(1)),
            losses.charbonnier_loss(logits, other, reduction="mean"), losses.welsch_loss(logits, other, reduction="mean")),
    }  # fmt: skip
    x, kernel = data(2, 3, 16, 16).sigmoid(), torch.ones(3, 3)
    shapes = [getattr(kornia.morphology, name)(x, kernel) for name in ("dilation", "erosion", "opening", "gradient", "top_hat")]
    patch = data(1, 1, 32, 32).sigmoid()
    corners = kornia.feature.harris_response(patch), kornia.feature.gftt_response(patch), kornia.feature.SIFTDescriptor(32)(patch)
    result |= {"shapes": numbers(*shapes), "corners": numbers(*corners, kornia.feature.match_nn(data(6, 8), data(7, 8, seed=3))[0])}
    source, angles = kornia.filters.gaussian_blur2d(data(1, 1, 20, 20).sigmoid(), (5, 5), (1.5, 1.5)), data(3, 3, seed=4)
    moved = kornia.geometry.warp_perspective(source, torch.tensor([[[1, 0.05, 0.5], [0, 1.0, 0.3], [0, 0, 1]]]), (20, 20))
    warp = torch.eye(3)[None].clone().requires_grad_()
    steps = stepped(
        torch.optim.Adam([warp], lr=1e-2), lambda: l1_loss(kornia.geometry.warp_perspective(source, warp, (20, 20)), moved), 20
    )
    turned = kornia.geometry.axis_angle_to_rotation_matrix(angles)
    return {**result, "warp": steps, "turned": numbers(turned, kornia.geometry.rotation_matrix_to_quaternion(turned))}
