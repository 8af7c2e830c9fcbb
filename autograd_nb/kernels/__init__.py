"""Hand-written kernels on flat arrays, in rooms by family; compiled by `autograd_nb.launch.Kernel` on first use."""
