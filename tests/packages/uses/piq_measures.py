"""Measures of pictures by piq: SSIM, MS-SSIM, VIF, GMSD, FSIM, VSI, HaarPSI, MDSI and total variation, with gradients"""

import piq
import torch

from ..helpers import data, numbers


def run():
    double = torch.float64  # (in float32 VSI's gradient has 3 digits, in either library)
    truth = data(2, 3, 48, 48, dtype=double).sigmoid()
    x = (truth + 0.1 * data(2, 3, 48, 48, seed=1, dtype=double)).clamp(0, 1).requires_grad_()
    found = {}
    measures = {
        "ssim": piq.SSIMLoss(data_range=1.0), "multi": piq.MultiScaleSSIMLoss(kernel_size=3, data_range=1.0), "vif": piq.VIFLoss(data_range=1.0),
        "gmsd": piq.GMSDLoss(data_range=1.0), "haar": piq.HaarPSILoss(data_range=1.0), "mdsi": piq.MDSILoss(data_range=1.0),
        "fsim": piq.FSIMLoss(data_range=1.0), "vsi": piq.VSILoss(data_range=1.0), "srsim": piq.SRSIMLoss(data_range=1.0),
    }
    for name, measure in measures.items():
        x.grad = None
        loss = measure(x, truth)
        loss.backward()
        found[name] = numbers(loss, x.grad)
    found["others"] = numbers(piq.psnr(x, truth, data_range=1.0), piq.total_variation(x), torch.as_tensor(piq.dss(x[:, :1].contiguous(), truth[:, :1])))
    return found
