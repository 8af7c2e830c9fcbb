"""pytest-benchmark over the cases of `bench.cases.overhead`."""

from bench.suite import suite

test_case = suite("overhead")
