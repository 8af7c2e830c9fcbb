"""Universal notation of tensor operations: sums, products, indices and norms by names of axes."""

import einx

from ..helpers import data, integers, numbers


def run():
    x, w = data(4, 6, 5).requires_grad_(), data(5, 3, seed=1)
    mean = einx.mean("a [b] c", x)
    product = einx.dot("a b [c], [c] d -> a b d", x, w)
    added = einx.add("a b d, d", product, data(3, seed=2))
    taken = einx.get_at("[a] b c, i -> i b c", x, integers(4, 3))
    soft = einx.softmax("a b [c]", x)
    (mean.square().sum() + added.sum() + taken.sum() + soft.square().sum()).backward()
    return {"values": numbers(mean, product, added, taken, soft), "gradient": numbers(x.grad)}
