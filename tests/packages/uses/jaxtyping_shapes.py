"""Shapes and dtypes of arguments are checked by their annotations."""

import torch
from beartype import beartype
from jaxtyping import Float, Float32, Int, TypeCheckError, jaxtyped
from jaxtyping import jaxtyped as check
from torch import Tensor

from ..helpers import data, integers, numbers


@check(typechecker=beartype)
def attention(q: Float[Tensor, "batch n dim"], k: Float[Tensor, "batch m dim"], v: Float[Tensor, "batch m out"]) -> Float[Tensor, "batch n out"]:
    return torch.softmax(q @ k.mT / q.shape[-1] ** 0.5, -1) @ v


@check(typechecker=beartype)
def counted(index: Int[Tensor, " n"], size: int) -> Float32[Tensor, " k"]:
    return torch.bincount(index, minlength=size).float()


def run():
    out = attention(data(2, 3, 4), data(2, 5, 4, seed=1), data(2, 5, 6, seed=2))
    refused = 0
    for call in (lambda: attention(data(2, 3, 4), data(2, 5, 3), data(2, 5, 6)), lambda: counted(data(3), 4), lambda: attention(1, 2, 3)):
        try:
            call()
        except Exception:
            refused += 1
    return {"out": numbers(out, counted(integers(4, 9), 4)), "refused": [refused]}
