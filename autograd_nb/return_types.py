"""Named tuples that ops with several results return, as PyTorch's ``torch.return_types``."""

from __future__ import annotations

from collections import namedtuple
from typing import TYPE_CHECKING, Any


def _maker(name: str) -> Any:
    fields = _FIELDS[name]

    def text(self: Any) -> str:
        rows = ",\n".join(f"{f}={getattr(self, f)!r}" for f in fields)
        return f"torch.return_types.{name}(\n{rows})"

    cls = type(name, (namedtuple(name, fields),), {"__slots__": (), "__repr__": text, "__module__": __name__})
    return cls


#: name -> fields
_FIELDS = {
    "max": ("values", "indices"),
    "min": ("values", "indices"),
    "aminmax": ("min", "max"),
    "cummax": ("values", "indices"),
    "cummin": ("values", "indices"),
    "frexp": ("mantissa", "exponent"),
    "median": ("values", "indices"),
    "nanmedian": ("values", "indices"),
    "mode": ("values", "indices"),
    "kthvalue": ("values", "indices"),
    "sort": ("values", "indices"),
    "topk": ("values", "indices"),
    "histogram": ("hist", "bin_edges"),
    "histogramdd": ("hist", "bin_edges"),
    "triangular_solve": ("solution", "cloned_coefficient"),
    "geqrf": ("a", "tau"),
    "qr": ("Q", "R"),
    "svd": ("U", "S", "V"),
    "slogdet": ("sign", "logabsdet"),
    "lu_unpack": ("P", "L", "U"),
    "_lu_with_info": ("LU", "pivots", "info"),
    "linalg_slogdet": ("sign", "logabsdet"),
    "linalg_cholesky_ex": ("L", "info"),
    "linalg_inv_ex": ("inverse", "info"),
    "linalg_solve_ex": ("result", "info"),
    "linalg_lu": ("P", "L", "U"),
    "linalg_lu_factor": ("LU", "pivots"),
    "linalg_lu_factor_ex": ("LU", "pivots", "info"),
    "linalg_ldl_factor": ("LD", "pivots"),
    "linalg_ldl_factor_ex": ("LD", "pivots", "info"),
    "linalg_qr": ("Q", "R"),
    "linalg_svd": ("U", "S", "Vh"),
    "linalg_eigh": ("eigenvalues", "eigenvectors"),
    "linalg_eig": ("eigenvalues", "eigenvectors"),
    "linalg_lstsq": ("solution", "residuals", "rank", "singular_values"),
}

__all__ = list(_FIELDS)

if TYPE_CHECKING:  # what the table of ops holds
    from .ops.signatures.return_types import *  # noqa: F403
else:

    def __getattr__(name: str) -> Any:
        """Return a class that nobody has asked for before."""
        if name not in _FIELDS:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return globals().setdefault(name, _maker(name))


def __dir__() -> list[str]:
    return sorted({*globals(), *_FIELDS})
