"""Decompositions of tensors with PyTorch as tensorly's backend, and contractions by autoray."""

import autoray
import tensorly as tl
import torch
from tensorly import decomposition, tenalg

from ..helpers import data, numbers


def run():
    tl.set_backend("pytorch")
    x = data(4, 5, 6, dtype=torch.float64)
    weights, factors = decomposition.parafac(x, rank=3, init="svd", n_iter_max=20, tol=0)
    core, matrices = decomposition.tucker(x, rank=[2, 3, 3], init="svd", n_iter_max=10, tol=0)
    train = decomposition.tensor_train(x, rank=[1, 2, 3, 1])
    rebuilt = tl.cp_to_tensor((weights, factors)), tl.tucker_to_tensor((core, matrices)), tl.tt_to_tensor(train)
    y = x.clone().requires_grad_()
    tl.norm(tenalg.mode_dot(y, data(3, 5, seed=1, dtype=torch.float64), 1) ** 2).backward()
    q, r = autoray.do("linalg.qr", x[0])
    traced = autoray.lazy.array(x[0])
    return {"rebuilt": numbers(*rebuilt), "unfolded": numbers(tl.unfold(x, 1), tenalg.khatri_rao([x[0].T, x[1].T])), "gradient": numbers(y.grad),
            "autoray": numbers(q @ r, autoray.do("einsum", "ij,kj->ik", x[0], x[1])), "lazy": numbers((traced @ traced.T).compute()),
            "backend": [len(autoray.infer_backend(x))]}
