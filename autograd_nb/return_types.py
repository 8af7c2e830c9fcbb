"""Named tuples that ops with several results return, as PyTorch's ``torch.return_types``."""

from __future__ import annotations

from typing import Any

__all__: list[str] = []


def _maker(name: str, fields: tuple[str, ...]) -> Any:
    from collections import namedtuple

    def text(self: Any) -> str:
        rows = ",\n".join(f"{f}={getattr(self, f)!r}" for f in fields)
        return f"torch.return_types.{name}(\n{rows})"

    cls = type(name, (namedtuple(name, fields),), {"__slots__": (), "__repr__": text, "__module__": __name__})
    globals()[name] = cls
    __all__.append(name)
    return cls


max = _maker("max", ("values", "indices"))  # noqa: A001
min = _maker("min", ("values", "indices"))  # noqa: A001
aminmax = _maker("aminmax", ("min", "max"))
cummax = _maker("cummax", ("values", "indices"))
cummin = _maker("cummin", ("values", "indices"))
frexp = _maker("frexp", ("mantissa", "exponent"))
median = _maker("median", ("values", "indices"))
nanmedian = _maker("nanmedian", ("values", "indices"))
mode = _maker("mode", ("values", "indices"))
kthvalue = _maker("kthvalue", ("values", "indices"))
sort = _maker("sort", ("values", "indices"))
topk = _maker("topk", ("values", "indices"))
histogram = _maker("histogram", ("hist", "bin_edges"))
histogramdd = _maker("histogramdd", ("hist", "bin_edges"))
triangular_solve = _maker("triangular_solve", ("solution", "cloned_coefficient"))
geqrf = _maker("geqrf", ("a", "tau"))
qr = _maker("qr", ("Q", "R"))
svd = _maker("svd", ("U", "S", "V"))
slogdet = _maker("slogdet", ("sign", "logabsdet"))
lu_unpack = _maker("lu_unpack", ("P", "L", "U"))
_lu_with_info = _maker("_lu_with_info", ("LU", "pivots", "info"))
linalg_slogdet = _maker("linalg_slogdet", ("sign", "logabsdet"))
linalg_cholesky_ex = _maker("linalg_cholesky_ex", ("L", "info"))
linalg_inv_ex = _maker("linalg_inv_ex", ("inverse", "info"))
linalg_solve_ex = _maker("linalg_solve_ex", ("result", "info"))
linalg_lu = _maker("linalg_lu", ("P", "L", "U"))
linalg_lu_factor = _maker("linalg_lu_factor", ("LU", "pivots"))
linalg_lu_factor_ex = _maker("linalg_lu_factor_ex", ("LU", "pivots", "info"))
linalg_ldl_factor = _maker("linalg_ldl_factor", ("LD", "pivots"))
linalg_ldl_factor_ex = _maker("linalg_ldl_factor_ex", ("LD", "pivots", "info"))
linalg_qr = _maker("linalg_qr", ("Q", "R"))
linalg_svd = _maker("linalg_svd", ("U", "S", "Vh"))
linalg_eigh = _maker("linalg_eigh", ("eigenvalues", "eigenvectors"))
linalg_eig = _maker("linalg_eig", ("eigenvalues", "eigenvectors"))
linalg_lstsq = _maker("linalg_lstsq", ("solution", "residuals", "rank", "singular_values"))
