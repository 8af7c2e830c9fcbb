"""The ops: a family a file. Importing this package declares them all and attaches them to Tensor."""

from . import activation, arithmetic, binary, cast, conv, convert, create, cross_entropy, device, distance, dropout, embedding, gather, indexing, inplace, loss, masked, matmul, norms, pad, pool, random, rearrange, reduction, scan, shape, softmax, sorting, statistics, summary, unary  # noqa: F401
