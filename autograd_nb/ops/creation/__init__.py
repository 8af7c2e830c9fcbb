"""New tensors, copies and casts, and what programs ask about tensors without computing."""
