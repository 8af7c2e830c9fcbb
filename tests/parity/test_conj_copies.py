"""Copies of views that show conjugates or negatives, against PyTorch's: how they lie in memory, and where they are in the graph."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")

from .snippets import difference

#: views, most with dims of one element, whose strides say nothing of where an element lies
SLICES = ["x.mH[..., :1]", "x[:, None, :1].mH", "x[..., :1].conj()", "x.T[:1, :1].conj()", "x.mT[:1].conj()", "x[:1].mH[None]", "x.conj().T[1:]",
          "x[::2].mH", "x.conj()[:, 1]", "x.mH[:1].expand(3, 4)", "x.conj().imag.mT[:, :1]", "x.conj().imag.mT[:1, :1]", "x.mH.imag[:1, 1:]"]  # fmt: skip
COPIES = ["v.clone()", "v.resolve_conj()", "v.resolve_neg()", "v.conj_physical()", "v.contiguous()", "v.to(v.dtype, copy=True)", "v.detach().clone()",
          "copy.deepcopy(v)", "-v", "v + 1", "v.conj().resolve_conj()", "v.requires_grad_().clone()", "v.requires_grad_().resolve_neg()"]  # fmt: skip


@pytest.mark.parametrize("copy", COPIES)
@pytest.mark.parametrize("view", SLICES)
def test_copies_lie_as_pytorchs(view, copy):
    program = f"import copy\nx = t.arange(16, dtype=t.complex64).mul(1 - 2j).reshape(4, 4)\nv = {view}\nr = {copy}"
    assert not difference(program + "\nr = r, r.stride(), r.is_conj(), r.is_neg()")


@pytest.mark.parametrize("view", ["x.mH", "x[0].conj()", "x.conj().imag", "x.detach().mH.requires_grad_()", "x.detach().conj().imag.requires_grad_()"])
@pytest.mark.parametrize("call", ["resolve_conj", "resolve_neg", "clone", "contiguous", "conj_physical"])
def test_copies_have_places_of_their_own_in_the_graph(view, call):
    """What is computed of a copy has a gradient by it, and by what it was copied from."""
    program = f"v = {view}; c = v.{call}()\nr = t.autograd.grad((c * c).abs().sum(), [c, v], allow_unused=True), c is v, c.is_leaf, c.grad_fn is v.grad_fn"
    assert not difference(program, "x = t.tensor([[1 + 2j, 3 - 1j], [0.5j, 2]], requires_grad=True)")


@pytest.mark.parametrize("view", ["x.conj()", "x.mH", "x.conj().imag", "x.conj()[0]", "x._neg_view()", "x._neg_view().conj()", "x.conj().imag.mT[:1]"])
def test_set_reads_memory_as_it_lies(view):
    program = f"v = {view}; y = t.zeros(2, dtype=v.dtype); y.set_(v)"
    assert not difference(f"{program}; r = y, y.stride(), y.is_conj(), y.add_(1).clone(), x", "x = t.tensor([[1 + 2j, 3], [4, 5j]])")
