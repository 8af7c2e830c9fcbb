"""What holds for all tests."""

import os

#: tests run on all cores, and count kernels: who wants one compiles it, unless the test is of the workers
os.environ.setdefault("AUTOGRAD_NB_COMPILE_WORKERS", "0")
