"""PyTorch's names for what is not here: GPUs, process groups, TorchScript, mixed precision. Begin at `table`."""
