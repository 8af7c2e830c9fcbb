"""Formulas: symbols that remember what is done to them, the namespace ``m``, complex values, vectorisable functions."""

from . import primitives, complexes, vecmath  # noqa: I001  (they register the functions of ``m``, in this order)
