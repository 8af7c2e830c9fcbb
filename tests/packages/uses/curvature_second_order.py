"""Second derivatives: BackPACK's gradients of samples, curvature and its factors, and curvlinops's matrices that are only multiplied with."""

import numpy as np
import torch
from backpack import backpack, extend
from backpack.extensions import KFAC, BatchGrad, BatchL2Grad, DiagGGNExact, DiagHessian, SumGradSquared, Variance
from curvlinops import EFLinearOperator, GGNLinearOperator, HessianLinearOperator

from ..helpers import data, fill, integers, numbers


def run():
    net = extend(fill(torch.nn.Sequential(torch.nn.Linear(5, 6), torch.nn.Sigmoid(), torch.nn.Linear(6, 3))))
    loss = extend(torch.nn.CrossEntropyLoss())
    x, y = data(7, 5), integers(3, 7)
    with backpack(BatchGrad(), BatchL2Grad(), Variance(), SumGradSquared(), DiagGGNExact(), DiagHessian()):
        loss(net(x), y).backward()
    found = {name: numbers(*(getattr(p, name) for p in net.parameters())) for name in
             ("grad", "grad_batch", "batch_l2", "variance", "sum_grad_squared", "diag_ggn_exact", "diag_h")}
    picture = extend(fill(torch.nn.Sequential(torch.nn.Conv2d(1, 2, 3), torch.nn.ReLU(), torch.nn.MaxPool2d(2), torch.nn.Flatten(), torch.nn.Linear(8, 3))))
    with backpack(BatchGrad(), DiagGGNExact()):
        loss(picture(data(7, 1, 6, 6)), y).backward()
    found["picture"] = numbers(*(p.grad_batch for p in picture.parameters()), *(p.diag_ggn_exact for p in picture.parameters()))
    plain = fill(torch.nn.Sequential(torch.nn.Linear(5, 4), torch.nn.Tanh(), torch.nn.Linear(4, 3)))
    parameters, batches = list(plain.parameters()), [(x[:4], y[:4]), (x[4:], y[4:])]
    for kind in (HessianLinearOperator, GGNLinearOperator, EFLinearOperator):
        operator = kind(plain, torch.nn.CrossEntropyLoss(), parameters, batches)
        found[kind.__name__] = numbers(operator @ data(operator.shape[1], seed=2))
    return found
