"""The ops: a family a file. Importing this package declares them all and attaches them to Tensor."""

from . import arithmetic, cast, convert, create, reduction, shape  # noqa: F401
