"""Sparse softmax functions and their losses."""

import torch
from entmax import Entmax15, entmax15, entmax15_loss, entmax_bisect, sparsemax, sparsemax_loss

from ..helpers import data, integers, numbers


def run():
    x = data(4, 7).requires_grad_()
    outputs = sparsemax(x, dim=-1), entmax15(x, dim=-1), entmax_bisect(x, alpha=1.3, dim=-1)
    sum((o * data(4, 7, seed=1)).sum() for o in outputs).backward()
    alpha = torch.tensor(1.4, requires_grad=True)
    entmax_bisect(x.detach(), alpha=alpha).square().sum().backward()
    losses = sparsemax_loss(x, integers(7, 4)), entmax15_loss(x, integers(7, 4))
    return {"outputs": numbers(*outputs), "gradient": numbers(x.grad), "alpha": numbers(alpha.grad), "losses": numbers(*losses),
            "zeros": [float((o == 0).sum()) for o in outputs[:2]], "module": numbers(Entmax15(dim=0)(data(5, 3)))}
