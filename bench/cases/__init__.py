"""The table of cases; each file adds those of one folder."""

from bench.cases import kernels, models, overhead

CASES = [*overhead.CASES, *kernels.CASES, *models.CASES]
