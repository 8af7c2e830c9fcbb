"""Vectorisable elementary functions: branch-free formulas over typed symbols that become packed instructions.

Each formula expands in place into straight-line code inside any kernel (`m.exp(x)`), so LLVM vectorises the whole loop.
They dispatch on ``x.dtype`` ("float32" or "float64"). Rules that all of them keep:

- every constant that must be exact in a product (Cody-Waite parts) has few enough bits for that, so the results are the
  same whether or not LLVM contracts ``a * b + c`` to one fused instruction;
- no float is cast to an integer before it is known to be in range (the cast is undefined for NaN and beyond);
- coefficients are minimax fits (Remez in 50 digits, weighted for relative error), rounded to the dtype one by one with the
  others refitted; the docstring of a formula says on which interval. Errors stated are maxima found by the sweep of
  ``tests/codegen/test_vecmath.py`` (ulp of the correctly rounded result's binade).
"""

from __future__ import annotations

from . import arithmetic, bessel, exponential, gammas, halves, hyperbolic, logarithm, power, special, trigonometric
