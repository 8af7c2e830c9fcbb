"""Functions of one element at a time, one formula an op."""
