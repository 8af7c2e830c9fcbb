"""Kernels of reading and writing by index, of sorting and of selecting."""
