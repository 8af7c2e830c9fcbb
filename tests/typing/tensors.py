"""Tensors and functions of them; where a flag changes what a function returns, its overloads say so."""
# pyright: strict

from __future__ import annotations

from typing import Any, assert_type

import numpy as np

import autograd_nb as torch
import autograd_nb.nn.functional as F
from autograd_nb import Tensor, return_types


def arithmetic(x: Tensor, y: Tensor) -> Tensor:
    z = (2 * x - y / 3) ** 2 + x @ y.T
    z += 1
    z[0] = 0
    z[:, 1:] *= 2.0
    z[z > 3] = 3
    mask = (x < y) & ~(x == y)
    assert_type(mask, Tensor)
    assert_type(-x, Tensor)
    assert_type(abs(x), Tensor)
    assert_type(1 - x, Tensor)
    assert_type(x[0, ..., None], Tensor)
    assert_type(x.shape, torch.Size)
    assert_type(x.shape[0], int)
    assert_type(x.size(), torch.Size)
    assert_type(x.size(0), int)
    assert_type(x.dim(), int)
    assert_type(x.dtype, torch.dtype)
    assert_type(x.requires_grad, bool)
    assert_type(x.grad, Tensor | None)
    assert_type(len(x), int)
    assert_type(list(x), list[Tensor])
    assert_type(bool(x.all()), bool)
    return torch.where(mask, z, x.exp()).sum(dim=(0, 1))


def created() -> None:
    assert_type(torch.tensor([1.0, 2.0], requires_grad=True), Tensor)
    assert_type(torch.zeros(2, 3, dtype=torch.float64), Tensor)
    assert_type(torch.zeros((2, 3)), Tensor)
    assert_type(torch.full((2,), 3.5), Tensor)
    assert_type(torch.arange(0, 10, 2), Tensor)
    assert_type(torch.linspace(0, 1, 5), Tensor)
    assert_type(torch.eye(3), Tensor)
    assert_type(torch.rand(2, 2), Tensor)
    assert_type(torch.randn(2, 2, generator=torch.Generator().manual_seed(1)), Tensor)
    assert_type(torch.from_numpy(np.ones(3)), Tensor)
    assert_type(torch.stack([torch.ones(2), torch.zeros(2)]), Tensor)
    assert_type(torch.cat((torch.ones(2), torch.zeros(2)), dim=0), Tensor)


def flags(x: Tensor) -> None:
    assert_type(x.max(), Tensor)
    assert_type(x.max(1), return_types.max)
    assert_type(x.max(dim=1, keepdim=True), return_types.max)
    assert_type(torch.max(x), Tensor)
    assert_type(torch.max(x, 0), return_types.max)
    assert_type(torch.max(x, x), Tensor)
    assert_type(torch.min(x, other=x), Tensor)
    assert_type(x.min(x), Tensor)
    values, indices = x.max(dim=0)
    assert_type(values, Tensor)
    assert_type(indices, Tensor)
    assert_type(x.max(0).indices, Tensor)
    assert_type(x.median(), Tensor)
    assert_type(x.median(0), return_types.median)
    assert_type(x.nanmedian(dim=0), return_types.nanmedian)
    assert_type(x.unique(), Tensor)
    assert_type(torch.unique(x, return_inverse=True), tuple[Tensor, Tensor])
    assert_type(torch.unique(x, return_counts=True), tuple[Tensor, Tensor])
    assert_type(torch.unique(x, return_inverse=True, return_counts=True), tuple[Tensor, Tensor, Tensor])
    assert_type(torch.unique_consecutive(x), Tensor)
    assert_type(torch.unique_consecutive(x, return_counts=True), tuple[Tensor, Tensor])
    assert_type(x.nonzero(), Tensor)
    assert_type(x.nonzero(as_tuple=True), tuple[Tensor, ...])
    assert_type(torch.where(x > 0), tuple[Tensor, ...])
    assert_type(torch.where(x > 0, x, 0.0), Tensor)
    image = x[None]
    assert_type(F.max_pool2d(image, 2), Tensor)
    assert_type(F.max_pool2d(image, 2, return_indices=True), tuple[Tensor, Tensor])
    assert_type(F.adaptive_max_pool1d(x, 2, return_indices=True), tuple[Tensor, Tensor])
    assert_type(torch.std_mean(x), tuple[Tensor, Tensor])
    assert_type(torch.var_mean(x, dim=1), tuple[Tensor, Tensor])
    assert_type(torch.lu(x), tuple[Tensor, Tensor])
    assert_type(torch.lu(x, get_infos=True), tuple[Tensor, Tensor, Tensor])
    assert_type(torch.meshgrid(x[0], x[1], indexing="ij"), tuple[Tensor, ...])


def named(x: Tensor) -> None:
    assert_type(x.topk(2), return_types.topk)
    assert_type(torch.topk(x, 2, largest=False).values, Tensor)
    assert_type(x.sort(descending=True), return_types.sort)
    assert_type(torch.kthvalue(x, 1), return_types.kthvalue)
    assert_type(x.mode(), return_types.mode)
    assert_type(x.cummax(0), return_types.cummax)
    assert_type(torch.aminmax(x).min, Tensor)
    assert_type(torch.qr(x), return_types.qr)
    assert_type(torch.linalg.qr(x).Q, Tensor)
    assert_type(torch.linalg.qr(x, mode="r"), return_types.linalg_qr)
    assert_type(torch.linalg.svd(x, full_matrices=False).S, Tensor)
    assert_type(torch.linalg.eigh(x).eigenvalues, Tensor)
    assert_type(torch.linalg.slogdet(x), return_types.linalg_slogdet)
    assert_type(torch.linalg.lstsq(x, x).solution, Tensor)
    assert_type(torch.linalg.norm(x, dim=1), Tensor)
    assert_type(torch.fft.rfft(x), Tensor)
    assert_type(torch.special.erfcx(x), Tensor)
    q, r = torch.linalg.qr(x)
    assert_type(q @ r, Tensor)


def out_of_tensors(x: Tensor) -> None:
    assert_type(x.split(2), tuple[Tensor, ...])
    assert_type(torch.chunk(x, 2, dim=1), tuple[Tensor, ...])
    assert_type(x.unbind(), tuple[Tensor, ...])
    assert_type(x.item(), bool | int | float)
    assert_type(float(x.sum()), float)
    assert_type(int(x.argmax()), int)
    assert_type(x.numpy(), np.ndarray[Any, Any])
    assert_type(torch.nn.Parameter(x).numpy(force=True), np.ndarray[Any, Any])
    assert_type(torch.from_numpy(np.zeros(3)), Tensor)
    assert_type(np.asarray(x).size, int)
    assert_type(x.to("cpu", torch.float64), Tensor)
    assert_type(x.to(torch.int64), Tensor)
    assert_type(x.detach().clone(), Tensor)
    assert_type(x.view(-1), Tensor)
    assert_type(x.reshape(1, -1).permute(1, 0).contiguous(), Tensor)
    assert_type(torch.einsum("ij,jk->ik", x, x), Tensor)
    assert_type(x.requires_grad_(), Tensor)
    assert_type(x.is_contiguous(), bool)
    assert_type(torch.allclose(x, x), bool)
    assert_type(torch.equal(x, x), bool)
    assert_type(x.numel(), int)
    assert_type(torch.is_tensor(x), bool)


def randoms(x: Tensor) -> None:
    assert_type(torch.multinomial(x, 2), Tensor)
    assert_type(torch.bernoulli(x), Tensor)
    assert_type(x.normal_(0.0, 1.0), Tensor)
    assert_type(torch.randperm(4), Tensor)
    assert_type(torch.initial_seed(), int)
