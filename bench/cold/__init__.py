"""What programs cost that were never run before: whole processes from an empty kernel cache, and the first call of each op."""
