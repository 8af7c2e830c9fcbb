"""Tensors in memory that processes share: what one process writes, the others read."""

from __future__ import annotations

import io
import multiprocessing as python_processes

import pytest

import autograd_nb as torch
import autograd_nb.multiprocessing as mp


def train(model, counts, queue):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    model(torch.ones(1, 2)).sum().backward()
    optimizer.step()
    counts[1:].add_(1)
    model.seen.fill_(5)
    queue.get().fill_(7)
    queue.put("done")


@pytest.mark.parametrize("method", ["spawn", "fork"])
def test_a_process_writes_what_another_reads(method):
    context = python_processes.get_context(method) if method == "fork" else mp.get_context(method)
    model, counts, sent = torch.nn.Linear(2, 1), torch.zeros(2, 3).share_memory_(), torch.zeros(2).share_memory_()
    model.register_buffer("seen", torch.zeros(1))
    before = model.weight.detach().clone()
    assert not model.weight.is_shared() and not model.weight.storage().is_shared()
    assert model.share_memory() is model
    assert model.weight.is_shared() and model.seen.is_shared() and counts[1].is_shared() and counts.untyped_storage().is_shared()
    queue = context.Queue()
    process = context.Process(target=train, args=(model, counts, queue))
    process.start()
    queue.put(sent[:1])
    process.join(120)
    assert process.exitcode == 0 and queue.get(timeout=10) == "done"
    assert torch.equal(model.weight, before - 0.5) and model.weight.requires_grad and isinstance(model.weight, torch.nn.Parameter)
    assert counts.tolist() == [[0, 0, 0], [1, 1, 1]] and sent.tolist() == [7, 0] and model.seen.item() == 5


def step(rank, model):
    with torch.no_grad():
        model.bias.add_(1 + rank)


def test_spawned_functions_are_given_the_memory():
    model = torch.nn.Linear(1, 1).share_memory()
    before = model.bias.item()
    mp.spawn(step, (model,), nprocs=1)
    assert model.bias.item() == pytest.approx(before + 1)


def test_shared_tensors_are_as_others():
    x = torch.arange(6.0).reshape(2, 3).requires_grad_()
    assert x.share_memory_() is x and x.share_memory_().is_leaf
    (x * x).sum().backward()
    assert torch.equal(x.grad, 2 * x) and not x.grad.is_shared()
    file = io.BytesIO()
    torch.save(x, file)
    file.seek(0)
    assert torch.equal(torch.load(file), x)
    assert torch.empty(0).share_memory_().is_shared()
    base = torch.arange(6.0)
    view = base[2:].view(2, 2).share_memory_()
    base.mul_(2)
    assert view.tolist() == [[4, 6], [8, 10]] and base.is_shared() and view._base is base
