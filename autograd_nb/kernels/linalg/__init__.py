"""Kernels of linear algebra: factorisations, solvers, eigenvalues, on batches of matrices."""
