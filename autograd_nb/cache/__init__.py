"""What ``python -m autograd_nb cache`` does: see, fill and share the kernels that are kept on disk."""
