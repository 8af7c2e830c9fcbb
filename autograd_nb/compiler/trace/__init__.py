"""Static graphs to feed and fetch, their files and pictures, and functions for the user's own Numba code."""
