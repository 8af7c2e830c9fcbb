"""pytest-benchmark over the cases of `bench.cases.kernels`."""

from bench.suite import suite

test_case = suite("kernels")
