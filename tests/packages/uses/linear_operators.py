"""Lazy matrices: products, solves, determinants and gradients through them."""

import torch
from linear_operator import operators, to_linear_operator
from linear_operator.settings import cholesky_jitter

from ..helpers import data, numbers


def run():
    a = data(6, 6, seed=1)
    a = (a @ a.T + 3 * torch.eye(6)).requires_grad_()
    d = data(6, seed=2).abs().requires_grad_()
    both = to_linear_operator(a) + operators.DiagLinearOperator(d)
    right = data(6, 2, seed=3)
    solved = both.solve(right)
    quad, logdet = both.inv_quad_logdet(right, logdet=True)
    (solved.sum() + quad + logdet).backward()
    kron = operators.KroneckerProductLinearOperator(to_linear_operator(a.detach()), to_linear_operator(data(3, 3, seed=4)))
    toeplitz = operators.ToeplitzLinearOperator(torch.tensor([4.0, 1.0, 0.5, 0.2]))
    low = operators.RootLinearOperator(data(5, 2, seed=5)).add_jitter(1e-2)
    with cholesky_jitter(1e-4):
        root = low.cholesky().to_dense()
    return {
        "solve": numbers(solved), "logdet": numbers(quad, logdet), "gradients": numbers(a.grad, d.grad),
        "kron": numbers(kron @ data(18, 2, seed=6)), "toeplitz": numbers(toeplitz @ data(4, 2, seed=7), toeplitz.to_dense()),
        "root": numbers(root), "product": numbers(torch.matmul(both, right)), "diagonal": numbers(both.diagonal()),
    }
