"""Linear algebra on batches of matrices: factorisations, solvers, spectra, and functions of matrices.

The kernels (`autograd_nb.kernels.linalg.lapack`) loop over a batch, so it is one launch. Derivative rules are written with the same
ops, of which they take as few new factorisations as they can; under ``create_graph`` what they read is differentiated too.

Source: https://docs.pytorch.org/docs/stable/linalg.html
"""

from . import decompose, determinant, functions, least_squares, lu, norms, products, spectral, triangular
