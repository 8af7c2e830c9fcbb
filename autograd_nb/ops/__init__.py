"""The ops: a family a file. Importing this package declares them all and attaches them to Tensor."""

from . import activation, arithmetic, binary, cast, convert, create, device, dropout, gather, indexing, inplace, masked, random, reduction, shape, softmax, statistics, unary  # noqa: F401
