"""One run of the function, watched: kernels over buffers, and what Python did besides."""
