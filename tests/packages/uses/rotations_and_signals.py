"""Rotations (roma), filterbanks of asteroid, and wavelets by ptwt."""

import numpy as np
import ptwt
import roma
import torch
from asteroid_filterbanks import STFTFB, Decoder, Encoder, transforms

from ..helpers import data, numbers


def run():
    q = roma.quat_normalize(data(5, 4)).requires_grad_()
    turned = roma.unitquat_to_rotmat(q)
    between = roma.utils.unitquat_slerp(q[:2], q[2:4], torch.linspace(0, 1, 3))
    vector = roma.rotmat_to_rotvec(turned)
    (vector.square().sum() + between.sum()).backward()
    moved = roma.rigid_points_registration(data(8, 3), data(8, 3) @ roma.rotvec_to_rotmat(torch.tensor([0.1, 0.2, 0.3])).T + 1)

    sound = data(2, 4000).requires_grad_()
    bank = STFTFB(n_filters=64, kernel_size=64, stride=32)
    spoken = Encoder(bank)(sound[:, None])
    back = Decoder(bank)(transforms.apply_mag_mask(spoken, torch.sigmoid(transforms.mag(spoken))))
    back.square().mean().backward()
    line = data(2, 32, dtype=torch.float64).requires_grad_()
    parts = ptwt.wavedec(line, "db2", mode="zero", level=2)
    again = ptwt.waverec(parts, "db2")
    picture = ptwt.wavedec2(data(1, 16, 16, dtype=torch.float64), "haar", level=2)
    freq = ptwt.cwt(line[0], np.arange(1, 5), "mexh")[0]
    (sum(p.square().sum() for p in parts) + freq.sum()).backward()
    return {"turned": numbers(turned, between, vector, q.grad), "moved": numbers(*moved), "sound": numbers(spoken, back, sound.grad),
            "wavelets": numbers(*parts, again, picture[0], *picture[1], freq, line.grad)}
