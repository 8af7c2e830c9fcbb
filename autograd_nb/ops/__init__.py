"""The ops: a family a file. Importing this package declares them all and attaches them to Tensor."""

from . import activation, arithmetic, binary, cast, conv, convert, create, cross_entropy, device, dropout, embedding, gather, indexing, inplace, masked, matmul, random, rearrange, reduction, shape, softmax, sorting, statistics, unary  # noqa: F401
