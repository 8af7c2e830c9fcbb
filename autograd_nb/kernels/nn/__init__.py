"""Kernels of neural networks: convolutions, pools, norms, attention, recurrent layers, images."""
