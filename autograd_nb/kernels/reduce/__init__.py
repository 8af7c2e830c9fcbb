"""Kernels of scans and of counting into bins."""
