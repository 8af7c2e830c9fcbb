"""A plugin for pytest: every launch that can be cut in pieces is, for three threads, as if much work were in each.

``python -m pytest -p tests.cut tests/parity/test_op_db.py`` runs PyTorch's op database so.
"""

from __future__ import annotations


def pytest_configure() -> None:
    import autograd_nb as torch
    from autograd_nb.codegen import threads

    threads.WORTH = threads.EVEN = 1
    threads.ALIGN = 16  # so many numbers are drawn at once
    torch.set_num_threads(3)
