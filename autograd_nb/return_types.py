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
median = _maker("median", ("values", "indices"))
nanmedian = _maker("nanmedian", ("values", "indices"))
mode = _maker("mode", ("values", "indices"))
kthvalue = _maker("kthvalue", ("values", "indices"))
sort = _maker("sort", ("values", "indices"))
topk = _maker("topk", ("values", "indices"))
histogram = _maker("histogram", ("hist", "bin_edges"))
histogramdd = _maker("histogramdd", ("hist", "bin_edges"))
