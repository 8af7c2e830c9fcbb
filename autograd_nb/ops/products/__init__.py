"""Products of matrices, Einstein sums, and distances of all pairs."""
