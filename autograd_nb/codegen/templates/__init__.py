"""Templates that put loops around a formula: pointwise loops and reductions, rows, random numbers."""
