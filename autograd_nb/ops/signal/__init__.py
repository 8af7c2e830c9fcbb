"""Fourier transforms, windows and finite differences."""
