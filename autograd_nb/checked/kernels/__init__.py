"""The files of `autograd_nb.kernels`, imported under this name."""

from ...kernels import __path__ as __path__  # type: ignore[attr-defined]
