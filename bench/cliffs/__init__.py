"""Where a case is slower than it should be: beside PyTorch, or compiled beside eager."""
