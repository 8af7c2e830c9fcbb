"""Structured ops by the samples of their declarations: dtypes, derivatives, layouts, ``out=``, batches, compiled programs.

A new op is tested here without a line in tests/. PyTorch runs the same texts in `tests/parity/test_samples.py`.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pytest
from numba import config

import autograd_nb as torch
from autograd_nb import launch
from autograd_nb.autograd import gradcheck, gradgradcheck
from autograd_nb.ops.core.reduction import ReductionOp
from autograd_nb.ops.core.structured import Structured

from .samples import KINDS, SAMPLES, Sample, structured_ops, tensors

#: those that stand when the tests are collected: further variants (of other numbers of dims) come up as they are called
EVERY = structured_ops()

#: what these read is memory, so another layout of the same values is another operand, or none that they take
OF_MEMORY = [text for text in SAMPLES if any(name in text for name in ("as_strided", ".view(", "view_as_complex"))]

#: these read memory in front of an operand, which belongs to no derivative and to no single sample of a batch (nor in PyTorch)
BEYOND = [text for text, (op, _) in SAMPLES.items() if op.name == "as_strided_beyond"]

#: the derivative of a draw is that of its law: zero, or implicit, and no difference of two draws
DRAWN = [text for text, (op, _) in SAMPLES.items() if op.forward.__module__.endswith("random.sampling")]


def leaves(sample: Sample, dtype: str = "float64") -> list[torch.Tensor]:
    return [torch.from_numpy(a.copy()).requires_grad_(a.dtype.kind in "fc") for a in sample.operands(dtype)]


def real(t: torch.Tensor) -> torch.Tensor:
    return torch.view_as_real(t) if t.is_complex() else t


def loss(result) -> torch.Tensor | None:
    """A number that hangs on every differentiable tensor of the result."""
    found = [real(t).square().sum() for t in tensors(result) if t.requires_grad]
    return sum(found[1:], found[0]) if found else None


def same(found, expected, tolerance: float = 1e-10) -> None:
    found, expected = tensors(found), tensors(expected)
    assert len(found) == len(expected)
    for a, b in zip(found, expected, strict=True):
        assert a.shape == b.shape
        np.testing.assert_allclose(a.detach().resolve_conj().numpy(), b.detach().resolve_conj().numpy(), rtol=tolerance, atol=tolerance)


#: ops without a derivative, in PyTorch neither (``underived``: batch_norm with weights of other ranks); that of ctc_loss has none
UNDERIVED = ("geqrf", "combined", "underived")


@contextmanager
def unless_refused(op: Structured) -> Iterator[None]:
    """Goes on after the error of a rule that says itself that there is no such derivative."""
    try:
        yield
    except (NotImplementedError, RuntimeError) as error:
        if op.name not in (*UNDERIVED, "ctc_loss") or "not implemented" not in str(error):
            raise


def test_every_structured_op_is_run_by_a_sample(monkeypatch):
    """Its own, or another's, as far as its second derivative: one that no sample runs is not tested. No kernel is compiled to see that."""
    if not config.DISABLE_JIT:
        itself = f"{__file__}::{test_every_structured_op_is_run_by_a_sample.__name__}"
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", itself]
        run = subprocess.run(command, env={**os.environ, "NUMBA_DISABLE_JIT": "1"}, capture_output=True, text=True)
        assert run.returncode == 0 and "1 passed" in run.stdout, run.stdout
        return
    ran: set[int] = set()

    def seen(name):
        function = getattr(Structured, name)

        def call(self, *args, **options):
            ran.add(id(self))
            return function(self, *args, **options)

        monkeypatch.setattr(Structured, name, call)

    for name in ("__call__", "_call", "record", "record_any", "recording"):
        seen(name)
    for op, sample in SAMPLES.values():
        operands = leaves(sample)
        with unless_refused(op):
            for _ in range(2):
                result = sample(*operands)
                plain = [real(t).sum() for t in tensors(result) if t.requires_grad]
                if plain and op.name not in UNDERIVED:  # of gradients that come in without a history
                    torch.autograd.grad(plain, operands, create_graph=True, allow_unused=True)
                total = loss(result)
                if total is not None:
                    total = loss([g for g in torch.autograd.grad(total, operands, create_graph=True, allow_unused=True) if g is not None])
                if total is not None:
                    torch.autograd.grad(total, operands, allow_unused=True)
    silent = [(op.forward.__module__, op.name, op.node_name) for op in EVERY if id(op) not in ran and not isinstance(op, ReductionOp)]
    assert not silent, "declare samples= for these"


@pytest.mark.parametrize("text", SAMPLES)
def test_dtypes_are_those_of_the_declaration(text):
    op, sample = SAMPLES[text]
    declared = op.dtypes.split()
    taken = []
    for kind, dtype in KINDS.items():
        try:
            result = sample(*[torch.from_numpy(a) for a in sample.operands(dtype)])
        except (NotImplementedError, RuntimeError, TypeError, ValueError, IndexError):
            continue
        taken.append(kind)
        if kind == "half":
            wide = sample(*[torch.from_numpy(a).float() for a in sample.operands(dtype)])
            same([t.double() for t in tensors(result)], [t.double() for t in tensors(wide)], 4e-3)
    assert taken == declared


def shown(g: torch.Tensor) -> torch.Tensor:
    """The same numbers as a view that shows conjugates or negatives of what lies in memory."""
    return g.conj().resolve_conj().conj() if g.is_complex() else torch.complex(torch.zeros_like(g), -g).conj().imag


@pytest.mark.parametrize("text", [t for t, (op, _) in SAMPLES.items() if op.name not in UNDERIVED])
def test_gradients_may_show_conjugates_or_negatives(text):
    """As hooks may return them."""
    op, sample = SAMPLES[text]
    for dtype in [KINDS[kind] for kind in ("float", "complex") if kind in op.dtypes]:
        found = []
        for hook in (lambda g: g * 1, shown):
            operands = leaves(sample, dtype)
            torch.manual_seed(1)
            try:
                results = [t for t in tensors(sample(*[t * 1 if t.requires_grad else t for t in operands])) if t.requires_grad]
            except RuntimeError as error:
                if "does not support automatic differentiation for outputs with complex dtype" not in str(error):
                    raise
                continue
            for t in results:
                t.register_hook(hook)
            if results:
                torch.autograd.backward([real(t).square().sum() for t in results])
            found.append([t.grad for t in operands if t.grad is not None])
        same(found[1:], found[:1])


@pytest.mark.parametrize("text", [t for t in SAMPLES if t not in BEYOND + DRAWN])
def test_derivatives(text):
    """First ones backward, forward and over a batch of cotangents, and second ones, beside differences."""
    op, sample = SAMPLES[text]
    operands = leaves(sample)
    if not any(t.requires_grad for t in tensors(sample(*operands))):
        return
    with unless_refused(op):
        assert gradcheck(sample, operands, atol=1e-6, check_forward_ad=True, check_batched_grad=True)
        assert gradgradcheck(sample, operands, atol=1e-5, fast_mode=True)


@pytest.mark.parametrize("text", [t for t in SAMPLES if t not in OF_MEMORY])
def test_layouts(text):
    """Operands whose dims stand in the other order in memory, and every other element of a wider one, give the same."""
    op, sample = SAMPLES[text]
    plain = leaves(sample)
    turned = [torch.from_numpy(a.T.copy()).requires_grad_(a.dtype.kind == "f") for a in sample.operands()]
    gaps = [torch.from_numpy(np.repeat(a[..., None], 2, -1)).requires_grad_(a.dtype.kind == "f") for a in sample.operands()]
    expected = sample(*plain)
    same(sample(*[t.permute(*range(t.ndim)[::-1]) if t.ndim else t for t in turned]), expected)
    same(sample(*[t[..., 0] for t in gaps]), expected)
    total, other = loss(expected), loss(sample(*[t.permute(*range(t.ndim)[::-1]) if t.ndim else t for t in turned]))
    if total is None:
        return
    gradients: tuple = ((), ())
    with unless_refused(op):
        gradients = torch.autograd.grad(total, plain, allow_unused=True), torch.autograd.grad(other, turned, allow_unused=True)
    for a, b in zip(*gradients, strict=True):
        assert (a is None) == (b is None)
        if a is not None:
            np.testing.assert_allclose(a.numpy(), b.numpy().T, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("text", SAMPLES)
def test_out(text):
    """Where the function takes ``out=``, the result goes there, and that is what is returned."""
    _, sample = SAMPLES[text]
    call = sample.with_out()
    if call is None:
        return
    operands = [t.detach() for t in leaves(sample)]
    torch.manual_seed(0)
    whole = sample.whole(torch)(*operands)
    outs = tuple(torch.empty_like(t) for t in tensors(whole))
    torch.manual_seed(0)
    found = call(outs if isinstance(whole, tuple) else outs[0], *operands)
    same(found, whole)
    assert all(a.data_ptr() == b.data_ptr() for a, b in zip(tensors(found), outs, strict=True))


def test_out_is_tested():
    """A test of the test above: it finds the functions that take ``out=``."""
    assert sum(sample.with_out() is not None for _, sample in SAMPLES.values()) > 40


@pytest.mark.parametrize("text", [t for t in SAMPLES if t not in BEYOND and "channels_last" not in t])  # a format of four dims
def test_batches(text):
    _, sample = SAMPLES[text]
    first = [t.detach() for t in leaves(sample)]
    batch = [torch.stack([t, t * 1.25]) for t in first]
    if not first:
        return
    expected = [tensors(sample(*[t[k] for t in batch])) for k in range(2)]
    found = tensors(torch.vmap(sample, randomness="same")(*batch))
    same(found, [torch.stack(list(pair)) for pair in zip(*expected, strict=True)])


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*(reads values|hooks run in the backward)")  # such a step runs eagerly
@pytest.mark.parametrize("text", SAMPLES)
def test_compiled(text):
    """A compiled step with its gradients gives what the eager one does, the second time too."""
    op, sample = SAMPLES[text]
    call = sample.function(torch)

    def step(*operands):
        result = call(*operands)
        total = loss(result)
        gradients = () if total is None else torch.autograd.grad(total, operands, allow_unused=True)
        return [*[t.clone() for t in tensors(result)], *[g for g in gradients if g is not None]]

    def operands():
        torch.manual_seed(0)
        return [t.requires_grad_(t.requires_grad and op.name not in UNDERIVED) for t in leaves(sample)]

    compiled, expected = torch.compile(step), step(*operands())
    for _ in range(2):
        same(compiled(*operands()), expected)


class Watching:
    """An observer that finds kernels which write what they do not say, in memory that is an operand's or was written by another kernel.

    (A buffer that nobody else reads may be an argument.)
    """

    def __init__(self, operands: list[np.ndarray]):
        self.made, self.found = list(operands), set()

    def __call__(self, call, args) -> None:
        arrays = [(k, a) for k, given in enumerate(args) for a in (given if isinstance(given, list) else [given]) if isinstance(a, np.ndarray)]
        said = [a for k, a in arrays if k >= len(args) - call.outputs or k == call.over]
        others = [(a, a.copy()) for k, a in arrays if a.size and not any(np.shares_memory(a, o) for o in said)]
        call.entry(*args)
        for a, before in others:
            if a.tobytes() != before.tobytes() and any(np.shares_memory(a, m) for m in self.made):
                self.found.add(call.name)
        self.made += said


@pytest.mark.parametrize("text", SAMPLES)
def test_kernels_write_only_what_they_say(text):
    """`compile` shares a result between those that read it: sorting once put its keys in order, which a median then read."""
    sample = SAMPLES[text][1]
    operands = leaves(sample)
    watching = Watching([t._data for t in operands])
    with launch.observe(watching), unless_refused(SAMPLES[text][0]):
        value = loss(sample(*operands))
        if value is not None:
            try:
                value.backward()
            except NotImplementedError:
                pass  # what has no derivative has none (`test_derivatives`)
    assert not watching.found
