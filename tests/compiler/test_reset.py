"""Forgetting what was captured."""

import autograd_nb as torch


def test_reset_forgets_what_was_captured():
    double = torch.compile(lambda x: x * 2)
    double(torch.ones(2))
    assert len(double.programs) == 1
    torch.compiler.reset()
    assert not double.programs
