"""Random numbers: the generator, tensors drawn from it, and samples of laws."""
