"""The ops: a family a file. Importing this package declares them all and attaches them to Tensor."""

from . import activation, arithmetic, binary, cast, convert, create, indexing, inplace, reduction, shape, softmax, unary  # noqa: F401
