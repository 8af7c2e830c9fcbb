"""Training steps of many kinds, as tutorials and papers write them, small: what users run, beside the ops that the other benches time."""
