"""Batches of tensors that look like one: `vmap`."""
