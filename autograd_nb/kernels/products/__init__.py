"""Kernels of products: matrices by BLAS and in tiles, distances between rows."""
