"""Products of many tensors in a good order, and counts of operations."""

import opt_einsum
import torch
from fvcore.nn import giou_loss, sigmoid_focal_loss, smooth_l1_loss
from opt_einsum_fx import optimize_einsums_full

from ..helpers import data, numbers


def chain(a, b, c):
    return torch.functional.einsum("ij,jk->ik", a, torch.functional.einsum("jk,kl->jl", b, c)) * 2


def run():
    a, b, c = data(4, 5).requires_grad_(), data(5, 6, seed=1), data(6, 3, seed=2)
    path, _ = opt_einsum.contract_path("ij,jk,kl->il", a, b, c)
    product = opt_einsum.contract("ij,jk,kl->il", a, b, c)
    product.square().sum().backward()
    expression = opt_einsum.contract_expression("ij,jk->ik", (4, 5), (5, 6))
    graph = optimize_einsums_full(chain, (a.detach(), b, c))
    boxes = torch.tensor([[0.0, 0.0, 2.0, 2.0], [1.0, 1.0, 3.0, 4.0]])
    return {"product": numbers(product, expression(a.detach(), b)), "gradient": numbers(a.grad), "path": [len(path)], "graph": numbers(graph(a.detach(), b, c)),
            "losses": numbers(sigmoid_focal_loss(data(4, 3), data(4, 3, seed=4).sigmoid(), reduction="mean"),
                              smooth_l1_loss(data(4), data(4, seed=5), beta=0.5, reduction="sum"), giou_loss(boxes, boxes.flip(0) + 0.5))}
