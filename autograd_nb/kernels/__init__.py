"""Hand-written kernels on flat arrays, a family a file; compiled by `autograd_nb.launch.Kernel` on first use."""
