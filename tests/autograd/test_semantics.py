"""The recorder and the engine: single use, atomic and located errors, in-place changes, hooks, modes, memory."""

from __future__ import annotations

import gc
import sys
import threading
import time
import weakref

import numpy as np
import pytest

import autograd_nb as torch


def leaf(*values):
    return torch.tensor(values, dtype=torch.float64, requires_grad=True)


# ------------------------------------------------------------------------------------------------- the graph


def test_leaves_and_nodes():
    x, w = leaf(1.0, 2.0), leaf(3.0, 4.0)
    y = x * w
    assert x.is_leaf
    assert x.grad_fn is None
    assert not y.is_leaf
    assert y.grad_fn.name() == "MulBackward0"
    (a, i), (b, j) = y.grad_fn.next_functions
    assert (a.variable is x, b.variable is w, i, j) == (True, True, 0, 0)
    assert a is y.grad_fn.next_functions[0][0]
    assert (x * 2).grad_fn.next_functions[1] == (None, 0)
    assert y.grad_fn._sequence_nr() < (y * 2).grad_fn._sequence_nr()
    y.grad_fn.metadata["note"] = 1
    assert y.grad_fn.metadata == {"note": 1}
    assert torch.ones(2).is_leaf
    assert not (torch.ones(2) * 2).requires_grad


def test_grad_accumulates_into_the_same_object():
    x = leaf(1.0, 2.0)
    (x * 3).sum().backward()
    first = x.grad
    (x * 4).sum().backward()
    assert x.grad is first
    assert first.tolist() == [7, 7]


def test_two_leaves_never_share_a_gradient():
    x, y = leaf(1.0, 2.0), leaf(1.0, 2.0)
    g = torch.ones(2, dtype=torch.float64)
    (x + y).backward(g)
    x.grad.add_(5)
    assert y.grad.tolist() == [1, 1]
    assert g.tolist() == [1, 1]
    z = leaf(1.0, 2.0)
    z.sum().backward()  # an expanded gradient
    z.grad.mul_(2)
    assert z.grad.tolist() == [2, 2]


def test_retain_grad_and_roots():
    x = leaf(1.0, 2.0)
    y = x * 2
    y.retain_grad()
    assert y.retains_grad
    torch.autograd.backward([y.sum(), (y * y).sum()])
    assert y.grad.tolist() == [5, 9]
    assert x.grad.tolist() == [10, 18]
    with pytest.warns(UserWarning, match="not a leaf"):
        assert (x * 2).grad is None


@pytest.mark.parametrize("seen", ["unsqueeze_", "t_", "squeeze_"])
@pytest.mark.parametrize("changed", ["base", "other", "itself"])
@pytest.mark.parametrize("recorded", [False, True])
def test_a_view_that_is_seen_otherwise_in_place_retains_its_gradient_whatever_is_changed(seen, changed, recorded):
    base = leaf(1.0, 2.0) * 1
    view, other = base.view(-1), base.view(-1)
    view.retain_grad()
    view.mul_(2)
    view.sum().backward(retain_graph=True)
    getattr(view, seen)(*[0] * (seen == "unsqueeze_"))
    with torch.set_grad_enabled(recorded):
        {"base": base, "other": other, "itself": view}[changed].mul_(3)
    for _ in range(2):  # asking tells its history anew
        assert view.grad_fn is not None
        assert view.retains_grad
        assert view.grad.tolist() == [1, 1]


def test_backward_with_inputs():
    x, w = leaf(2.0), leaf(3.0)
    y = x * w
    (y * y).sum().backward(inputs=[x, y])
    assert x.grad.tolist() == [36]
    assert y.grad.tolist() == [12]
    assert w.grad is None


def test_grad_of_intermediates_and_unused():
    x, unused = leaf(2.0), leaf(1.0)
    y = x**2
    z = (y * 3).sum()
    gx, gy = torch.autograd.grad(z, [x, y], retain_graph=True)
    assert (gx.item(), gy.item()) == (12, 3)
    assert x.grad is None
    with pytest.raises(RuntimeError, match="appears to not have been used in the graph"):
        torch.autograd.grad(z, [x, unused], retain_graph=True)
    assert torch.autograd.grad(z, [unused], allow_unused=True, retain_graph=True) == (None,)
    assert torch.autograd.grad(z, [unused], materialize_grads=True, retain_graph=True)[0].tolist() == [0]
    with pytest.raises(ValueError, match="allow_unused"):
        torch.autograd.grad(z, [x], allow_unused=False, materialize_grads=True)
    (batched,) = torch.autograd.grad(z, [x], torch.tensor([1.0, 2.0]), is_grads_batched=True)
    assert batched.tolist() == [[12], [24]]
    assert torch.autograd.grad(z, {"a": x})["a"].item() == 12


def test_higher_derivatives():
    x = leaf(2.0)
    value, out = x**4, []
    for _ in range(4):
        (value,) = torch.autograd.grad(value.sum(), x, create_graph=True)
        out.append(value.item())
    assert out == [32, 48, 48, 24]


# ------------------------------------------------------------------------------------- single use and errors


@pytest.mark.parametrize("make", [lambda x: x.sum(), lambda x: (x * x).sum(), lambda x: (x + 1).mean(), lambda x: x.exp().sum()])
def test_a_graph_is_used_once(make):
    x = leaf(1.0, 2.0)
    y = make(x)
    y.backward()
    before = x.grad.tolist()
    with pytest.raises(RuntimeError) as error:
        y.backward()
    text = str(error.value)
    for phrase in ("Trying to backward through the graph a second time", "retain_graph=True", "test_semantics.py:", "recorded at"):
        assert phrase in text
    assert x.grad.tolist() == before
    z = make(x)
    z.backward(retain_graph=True)
    z.backward()


def test_only_what_ran_is_consumed():
    x = leaf(2.0)
    a = x**2
    b = a * 3
    (g,) = torch.autograd.grad(b.sum(), a)
    assert g.item() == 3
    a.sum().backward()
    assert x.grad.item() == 4


def test_errors_are_atomic():
    x, w = leaf(1.0), leaf(2.0)
    shared = x * x
    shared.sum().backward()
    x.grad = None
    fresh = w * w
    with pytest.raises(RuntimeError, match="second time"):
        (fresh + shared).sum().backward()
    assert x.grad is None
    assert w.grad is None
    fresh.sum().backward()  # was not consumed
    assert w.grad.item() == 4
    y = w.exp()
    z = (x * 3).sum() + (y * y).sum()
    y.detach().add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.backward()
    assert x.grad is None


def test_error_texts():
    x = leaf(1.0, 2.0)
    with pytest.raises(RuntimeError, match="grad can be implicitly created only for scalar outputs"):
        (x * 2).backward()
    with pytest.raises(RuntimeError, match="element 0 of tensors does not require grad and does not have a grad_fn"):
        torch.ones(1).backward()
    with pytest.raises(RuntimeError, match=r"Mismatch in shape: grad_output\[0\] has a shape of torch.Size\(\[3\]\)"):
        (x * 2).backward(torch.ones(3, dtype=torch.float64))
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad is being used in an in-place operation"):
        x.add_(1)
    with pytest.raises(RuntimeError, match="a view of a leaf Variable that requires grad is being used in an in-place operation"):
        x[0].add_(1)
    with pytest.raises(RuntimeError, match=r"Can't call numpy\(\) on Tensor that requires grad"):
        x.numpy()
    with pytest.raises(RuntimeError, match="only Tensors of floating point dtype can require gradients"):
        torch.ones(2, dtype=torch.int64).requires_grad_()
    with pytest.raises(RuntimeError, match="you can only change requires_grad flags of leaf variables"):
        (x * 2).requires_grad_(False)
    with pytest.raises(RuntimeError, match="`inputs` argument to `backward\\(\\)` cannot be empty"):
        x.sum().backward(inputs=[])
    with pytest.raises(RuntimeError, match="cannot register a hook on a tensor that doesn't require gradient"):
        torch.ones(1).register_hook(print)
    with pytest.raises(TypeError, match="hook must be callable"):
        x.register_hook(3)
    with pytest.raises(TypeError, match="assigned grad expected to be a Tensor or None"):
        x.grad = 1
    with pytest.raises(RuntimeError, match="attempting to assign a gradient of size"):
        x.grad = torch.ones(3, dtype=torch.float64)


@pytest.mark.parametrize(
    ("use", "made"),
    [(lambda b: b * b, "Mul"), (lambda b: b * b.detach().clone(), "Mul"), (lambda b: b.sin(), "Mul"), (lambda b: b @ b, "Mul")],
)
def test_modified_arrays_are_named_with_their_versions(use, made):
    a = leaf(1.0, 2.0)
    b = a * a
    c = use(b)
    b.add_(1)
    if c.grad_fn.versions == ():
        return
    try:
        c.sum().backward()
    except RuntimeError as error:
        text = str(error)
        assert f"[torch.DoubleTensor [2]], which is output 0 of {made}, is at version 1; expected version 0 instead" in text
        assert "test_semantics.py" in text
    else:
        # only the copy was saved, and that did not change
        assert use.__code__.co_names[-1] == "clone"


# ------------------------------------------------------------------------------------------ in place and views


def test_a_changed_view_changes_its_base():
    w = leaf(2.0, 3.0)
    base = torch.zeros(2, 2, dtype=torch.float64)
    row = base[0]
    row.mul_(0).add_(w)
    other = base[:, 1]
    assert base.tolist() == [[2, 3], [0, 0]]
    assert base.requires_grad
    assert other.requires_grad
    (base * torch.tensor([[1.0, 10.0], [100.0, 1000.0]], dtype=torch.float64)).sum().backward()
    assert w.grad.tolist() == [1, 10]


def test_an_old_view_follows_its_base():
    w = leaf(2.0, 3.0)
    base = w * 1
    view = base[1:]
    base.mul_(4)
    assert view.item() == 12
    view.sum().backward()
    assert w.grad.tolist() == [0, 4]


def test_setitem_and_views_of_views():
    w, v = leaf(1.0, 2.0, 3.0), leaf(5.0)
    x = w * 1
    x[1:][0:1] = v
    (x * x).sum().backward()
    assert w.grad.tolist() == [2, 0, 6]
    assert v.grad.tolist() == [10]


def test_views_that_cannot_be_changed():
    x = leaf(1.0, 2.0) * 1
    with pytest.raises(RuntimeError, match="is a view and is being modified inplace"):
        x.unbind()[0].add_(1)
    with torch.no_grad():
        view = x[0]
    with pytest.raises(RuntimeError, match="A view was created in no_grad mode"):
        view.add_(1)
    with pytest.raises(RuntimeError, match="more than one element of the written-to tensor refers to a single memory location"):
        torch.zeros(1).expand(3).add_(1)
    with pytest.raises(RuntimeError, match="Can't detach views in-place"):
        x[0].detach_()


def test_detach_shares_the_counter_and_data_does_not():
    x = torch.zeros(2)
    x.detach().add_(1)
    assert x._version == 1
    x.data.add_(1)
    assert x._version == 1
    assert x.tolist() == [2, 2]


# ------------------------------------------------------------------------------------------------------ hooks


def test_order_of_hooks():
    x = leaf(1.0)
    y = x * 2
    seen = []
    y.retain_grad()
    y.register_hook(lambda g: seen.append("tensor"))
    y.grad_fn.register_prehook(lambda gs: seen.append("pre"))
    y.grad_fn.register_hook(lambda gi, go: seen.append("post"))
    x.register_hook(lambda g: seen.append("leaf"))
    x.register_post_accumulate_grad_hook(lambda t: seen.append(f"accumulated {t.grad.item():g}"))
    y.sum().backward()
    assert seen == ["tensor", "pre", "post", "leaf", "accumulated 2"]


def test_hooks_replace_gradients_and_are_removed():
    x = leaf(1.0)
    y = x * 2
    handle = y.register_hook(lambda g: g * 10)
    y.sum().backward(retain_graph=True)
    assert x.grad.item() == 20
    handle.remove()
    handle.remove()
    y.sum().backward()
    assert x.grad.item() == 22
    y = x * 2
    y.register_hook(lambda g: g[:0])
    with pytest.raises(RuntimeError, match="has changed the size of value"):
        y.sum().backward()
    assert torch.is_grad_enabled()


# ------------------------------------------------------------------------------------------------------ modes


def test_modes():
    x = leaf(1.0)

    @torch.no_grad()
    def quiet():
        with torch.enable_grad():
            assert (x * 2).requires_grad
        return x * 2

    assert not quiet().requires_grad
    torch.set_grad_enabled(False)
    assert not torch.is_grad_enabled()
    torch.set_grad_enabled(True)
    with torch.set_grad_enabled(False):
        assert not (x * 2).requires_grad
    with torch.inference_mode():
        t = torch.ones(1, dtype=torch.float64) * 2
    assert t.is_inference()
    with pytest.raises(RuntimeError, match="Inference tensors cannot be saved for backward"):
        x * t
    with pytest.raises(RuntimeError, match="Inplace update to inference tensor"):
        t.add_(1)

    @torch.no_grad()
    def generate():
        yield torch.is_grad_enabled()
        yield torch.is_grad_enabled()

    for inside in generate():
        assert not inside
        assert torch.is_grad_enabled()


def test_modes_belong_to_threads():
    seen = []
    with torch.no_grad():
        thread = threading.Thread(target=lambda: seen.append(torch.is_grad_enabled()))
        thread.start()
        thread.join()
    assert seen == [True]


def test_threads_with_graphs_of_their_own():
    results = {}

    def work(k):
        x = leaf(*np.linspace(0, 1, 50))
        for _ in range(50):
            x.grad = None
            ((x * k).sin() * x).sum().backward()
        results[k] = x.grad.numpy()

    threads = [threading.Thread(target=work, args=(k,)) for k in range(1, 5)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    x = np.linspace(0, 1, 50)
    for k, g in results.items():
        np.testing.assert_allclose(g, np.sin(x * k) + x * k * np.cos(x * k), rtol=1e-12)


# ----------------------------------------------------------------------------------------------------- memory


def test_arrays_are_freed_as_the_engine_passes():
    x = leaf(*range(4))
    y = x.exp()
    saved = weakref.ref(y._data)
    alive = []
    x.register_hook(lambda g: alive.append(saved() is not None))
    z = y.sum()
    del y
    assert saved() is not None
    z.backward()
    assert alive == [False]


def test_dropped_graphs_are_freed_without_the_collector():
    gc.collect()
    gc.disable()
    try:
        x = leaf(1.0, 2.0)
        model = torch.nn.Linear(2, 2).double()
        optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)

        def step():
            optimizer.zero_grad()
            loss = (model(x).tanh()[0:1] * 2).sum()
            loss.backward()
            optimizer.step()

        for _ in range(20):
            step()
        before = len(gc.get_objects())
        for _ in range(10_000):
            step()
        assert len(gc.get_objects()) < before + 100
    finally:
        gc.enable()


def seconds_per_node(n: int) -> float:
    """Of this thread's own time: what others do meanwhile does not count."""
    x = torch.ones(4, requires_grad=True)
    start = time.thread_time()
    y = x
    for _ in range(n):
        y = torch.tanh(y)
    y.backward(torch.ones(4))
    del y
    return (time.thread_time() - start) / n


@pytest.mark.slow
def test_a_chain_of_a_million_nodes(capsys):
    """Neither the engine nor freeing recurses, and a node's cost does not grow with the chain: a walk over what is pending would cost a hundred
    times as much here as in a chain of 10,000. (On a quiet machine it is 1.0 to 1.5 times; memory that is new costs on a busy one.)"""
    seconds_per_node(100)
    short = min(seconds_per_node(10_000) for _ in range(5))
    long = seconds_per_node(1_000_000)
    with capsys.disabled():
        print(f"\nper node: {short * 1e6:.2f} µs in a chain of 10,000, {long * 1e6:.2f} µs in one of 1,000,000: {long / short:.2f}")
    assert long / short < 10
    assert sys.getrecursionlimit() < 10_000


def test_a_leaf_frozen_or_detached_meanwhile_gets_no_gradient():
    a, b, c = (leaf(1.0, 2.0) for _ in range(3))
    y = (a * b * c).sum()
    a.requires_grad_(False)
    b.detach_()
    y.backward()
    assert a.grad is None and b.grad is None and c.grad.tolist() == [1.0, 4.0]


def test_hooks_stay_with_a_tensor_that_is_detached():
    """They are called for its node's gradient, where the graph is still used, and for its own once it is a leaf that requires grad."""
    b = leaf(1.0, 2.0)
    for t, alike in ((b * 1, torch.Tensor.mul), (torch.stack([b, b]).sum(0), torch.Tensor.add)):
        calls = []
        handle = t.register_hook(lambda g, calls=calls: calls.append(1) or g * 2)
        other = alike(t, 3)
        t.detach_()
        other.sum().backward(retain_graph=True)
        assert len(calls) == 1
        t.requires_grad_()
        t.sum().backward()
        assert t.grad.tolist() == [2.0, 2.0] and len(calls) == 2
        handle.remove()
        t.sum().backward()
        other.sum().backward()
        assert t.grad.tolist() == [3.0, 3.0] and len(calls) == 2


def test_in_place_on_a_leaf_that_is_a_view_is_refused():
    leaf = torch.ones(4, 4).t().requires_grad_()
    for change in (lambda: leaf.mul_(2), lambda: leaf.__setitem__(0, 1.0), lambda: leaf.zero_()):
        with pytest.raises(RuntimeError, match="a view of a leaf Variable that requires grad is being used in an in-place operation"):
            change()
    assert leaf.is_leaf and (leaf == 1).all()


def test_results_of_ops_are_no_views_of_what_the_op_made_within():
    x = torch.tensor(3.0, requires_grad=True)
    middle = (x * 2).prod().median()
    assert not middle._is_view()
    middle.mul_(2)  # a view made without recording would refuse
    assert middle.requires_grad and middle == 12


def test_operators_take_arrays():
    x, array = torch.ones(3, requires_grad=True), np.arange(3.0)
    for y in (x * array, x + array, x - array, x / (array + 1), x**array, x // (array + 1)):
        assert isinstance(y, torch.Tensor) and y.dtype is torch.float64 and y.requires_grad
    for call in (lambda: array - x, lambda: array * x, lambda: array + x, lambda: array**x, lambda: array // x):
        with pytest.raises(TypeError):
            call()
    with pytest.raises(TypeError):
        torch.mul(x, array)


@pytest.fixture
def reuse():
    before = torch.autograd.set_graph_reuse("torch")
    yield
    torch.autograd.set_graph_reuse(before)


def test_strict_errors_name_the_switch():
    x = leaf(1.0, 2.0)
    y = x.float()
    (y * y).sum().backward()
    with pytest.raises(RuntimeError, match=r"ToCopyBackward0, recorded at test_semantics.py:(.|\n)*set_graph_reuse\('torch'\)"):
        (y * y).sum().backward()
    z = (x * x).sum()
    z.backward()
    with pytest.raises(RuntimeError, match="second time"):
        z.backward()
    assert torch.autograd.set_graph_reuse("strict") == "strict"
    with pytest.raises(ValueError, match="set_graph_reuse"):
        torch.autograd.set_graph_reuse("lenient")


@pytest.mark.usefixtures("reuse")
def test_what_saved_values_is_used_once_in_both_modes():
    x = leaf(1.0, 2.0)
    y = x.float() * 1
    z = y.exp() + y
    z.sum().backward()
    before = x.grad.tolist()
    with pytest.raises(RuntimeError, match=r"second time(.|\n)*ExpBackward0, recorded at test_semantics.py:(.|\n)*consumed by(.|\n)*test_semantics.py"):
        z.sum().backward()
    assert x.grad.tolist() == before


@pytest.mark.usefixtures("reuse")
@pytest.mark.parametrize("compiled", [False, True])
def test_a_leaf_that_is_converted_once_is_trained_on(compiled):
    w = leaf(1.0, 2.0)
    y = w.float().view(2, 1)

    def step(y):
        return (y * y).sum()

    run = torch.compile(step) if compiled else step
    for n in range(1, 4):
        run(y).backward()
        assert w.grad.tolist() == [2.0 * n, 4.0 * n]
    (g,) = torch.autograd.grad(run(y), w, create_graph=True)
    assert g.tolist() == [2.0, 4.0]
    seen = []
    y.register_hook(lambda g: seen.append(g.tolist()))
    run(y).backward()
    assert seen == [[[2.0], [4.0]]]
