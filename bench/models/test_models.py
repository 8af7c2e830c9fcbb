"""pytest-benchmark over the cases of `bench.cases.models`."""

from bench.suite import suite

test_case = suite("models")
