"""Calls of public functions that recur are repeated: what they come to is the same, and what differs is no repetition.

The walks over all ops are in `test_known_calls`, where every call that is repeated is compared with the one that was noted, and in
`tests/parity/test_repeated.py`, over PyTorch's database.
"""

from __future__ import annotations

import re
import threading
import warnings

import pytest

import autograd_nb as torch
import autograd_nb.nn.functional as F
from autograd_nb.autograd.batching import batched
from autograd_nb.graph import recurring
from autograd_nb.ops.core.known_calls import LAYOUTS
from autograd_nb.ops.core.registry import OPS

from ..recurring import poisoned, verified_calls

N = recurring.FIRST


def leaf(*shape, seed=0):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed)).requires_grad_()


X, IMAGE, INDEX = (5, 8), (2, 4, 6, 6), [0, 2]
CALLS = {
    "group_norm": lambda x: F.group_norm(x, 2),
    "layer_norm of columns": lambda x: F.layer_norm(x[:, ::2], (4,)),
    "cross_entropy of columns": lambda x: F.cross_entropy(x[:, ::2], torch.tensor([0, 1, 2, 3, 0])),
    "cat of columns": lambda x: torch.cat([x[:, ::2], x[:, 1::2]]),
    "stack": lambda x: torch.stack([x[:, ::2], x[:, 1::2]], 1),
    "index_add": lambda x: torch.index_add(x, 0, torch.tensor(INDEX), torch.ones(2, 8), alpha=2.0),
    "scatter_reduce": lambda x: x.scatter_reduce(0, torch.zeros(1, 8, dtype=torch.int64), torch.ones(1, 8), "prod"),
    "multi_margin_loss": lambda x: F.multi_margin_loss(x, torch.tensor([0, 1, 2, 3, 0])),
    "nll_loss": lambda x: F.nll_loss(x, torch.tensor([0, 1, 2, 3, 0]), reduction="none"),
    "fft": lambda x: torch.fft.fft(x).real,
    "max_pool1d": lambda x: F.max_pool1d(x, 2),
    "matrix by its transpose": lambda x: torch.addmm(x[:, :5], x, x.t()),
    "batch by its transpose": lambda x: torch.bmm(x.view(1, 5, 8), x.view(1, 5, 8).transpose(1, 2)),
    "rows into their own tensor": lambda x: x.index_put((torch.tensor(INDEX),), x[:2]),
    "parts that overlap": lambda x: torch.cdist(x[:, :6], x[:, :6].detach()),
}


@pytest.mark.parametrize("name", CALLS)
def test_results_gradients_and_second_gradients_are_those_of_the_first_call(name, kept):
    """They are a call's own: what is done to one, or to the operands, does nothing to another."""
    call, x = CALLS[name], leaf(*X)
    seen = []
    with poisoned():
        for k in range(4 * N):
            with torch.no_grad():
                x.copy_(leaf(*X, seed=k % 3))
            y = call(x)
            (g,) = torch.autograd.grad((y * y).sum(), x, create_graph=True)
            (h,) = torch.autograd.grad(g.sum(), x)
            seen.append([y.detach().clone(), g.detach().clone(), h, y.grad_fn.name(), y._version, y.stride(), y._is_view()])
            with torch.no_grad():
                y.base().zero_() if hasattr(y, "base") else y.zero_()
    assert kept
    for k, now in enumerate(seen[3:]):
        for a, b in zip(now, seen[k % 3], strict=True):
            assert torch.equal(a, b) if isinstance(a, torch.Tensor) else a == b, (name, k)


def test_checks_are_made(kept):
    x, target = leaf(*X), torch.tensor([0, 1, 2, 3, 0])
    for _ in range(2 * N):
        F.nll_loss(x, target, reduction="none")
    assert kept
    target[1] = 9
    with pytest.raises(IndexError, match="Target 9 is out of bounds"):
        F.nll_loss(x, target, reduction="none")
    y = F.group_norm(x, 2)
    for _ in range(2 * N):
        h = x * 1
        y = F.group_norm(h, 2)
    h.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


def test_what_values_were_relied_on_is_asked_each_time(kept):
    """Indices counted from the end, or classes to be ignored, are no repetition of those that are not; and none is out of range."""
    x, target, index = leaf(*X), torch.tensor([0, 1, 2, 3, 0]), torch.tensor([0, 2])
    calls = {"loss": lambda: F.nll_loss(x, target, ignore_index=3), "pick": lambda: x[index, index], "list": lambda: x[[0, 2], index]}
    first = {name: call().tolist() for name, call in calls.items()}
    for _ in range(2 * N):
        target.copy_(torch.tensor([0, 1, 2, 4, 0]))
        usual = {name: call().tolist() for name, call in calls.items()}
    assert len(kept) >= 3
    for k in range(2 * N):
        target[3] = 3 if k % 2 else 4
        index[1] = -1 if k % 2 else 2
        found = {name: call().tolist() for name, call in calls.items()}
        if k % 2:
            assert found["loss"] == first["loss"] != usual["loss"]
            assert found["pick"] == [x[0, 0].item(), x[4, 7].item()]
            assert found["list"] == [x[0, 0].item(), x[2, 7].item()]
        else:
            assert found == usual
    index[0] = 8
    for name in ("pick", "list"):
        with pytest.raises(IndexError, match="index 8 is out of bounds"):
            calls[name]()


@pytest.mark.parametrize("call", [torch.cross, torch.dist, torch.cdist, F.cosine_similarity, torch.kron, torch.fmod, torch.nextafter, F.smooth_l1_loss])
def test_parts_of_one_tensor_are_no_two_tensors(call):
    """Their changes are counted in one place, those of two tensors in two."""
    whole = leaf(3, 6) * 1
    for _ in range(3 * N):
        call(whole[:, ::2], whole[:, 1::2])
    for changed in (0, 1):
        outcomes = []
        for function in (call.__wrapped__, call):  # without and with repetition
            pair = [leaf(3, 6) * 1, leaf(3, 6, seed=1) * 1]
            y = function(pair[0][:, ::2], pair[1][:, 1::2]).sum()
            with torch.no_grad():
                pair[changed].copy_(torch.ones(3, 6))
            try:
                y.backward()
                outcomes.append("runs")
            except RuntimeError as error:
                outcomes.append(re.sub("recorded at .*", "", str(error)))
        assert outcomes[0] == outcomes[1], outcomes


def test_what_differs_is_not_repeated():
    x, y, frozen = leaf(*X), leaf(*X, seed=1), leaf(*X, seed=2).requires_grad_(False)
    p = torch.nn.Parameter(x.detach().clone())
    calls = {
        "cat": lambda: torch.cat([x[:, ::2], y[:, ::2]]),
        "the same twice": lambda: (lambda h: torch.cat([h, h]))(x[:, ::2]),
        "in the other order": lambda: torch.cat([y[:, ::2], x[:, ::2]]),
        "with one that needs no gradient": lambda: torch.cat([x[:, ::2], frozen[:, ::2]]),
        "along columns": lambda: torch.cat([x[:, ::2], y[:, ::2]], 1),
        "by name": lambda: torch.cat(tensors=[x[:, ::2], y[:, ::2]], dim=1),
        "as a tuple": lambda: torch.cat((x[:, ::2], y[:, ::2])),
        "three": lambda: torch.cat([x[:, ::2], y[:, ::2], x[:, 1::2]]),
        "a parameter": lambda: torch.cat([p[:, ::2], p[:, 1::2]]),
        "an integer": lambda: F.local_response_norm(x[None], 2, 1),
        "the same number": lambda: F.local_response_norm(x[None], 2, 1.0),
        "another number": lambda: F.local_response_norm(x[None], 2, 1.5),
    }
    with torch.no_grad():
        without = {name: call() for name, call in calls.items()}
    wanted = {name: torch.autograd.grad(call().square().sum(), [x, y, p], allow_unused=True) for name, call in calls.items()}
    for _ in range(6 * N):
        for name, call in calls.items():
            with torch.no_grad():
                found = call()
                assert torch.equal(found, without[name]) and found.grad_fn is None, name
            found = call()
            assert torch.equal(found, without[name]) and found.requires_grad, name
            for g, want in zip(torch.autograd.grad(found.square().sum(), [x, y, p], allow_unused=True), wanted[name], strict=True):
                assert (g is None) is (want is None) and (g is None or torch.equal(g, want)), name


def test_what_warns_or_draws_does_so_each_time():
    x = torch.ones(3, 4)
    torch.manual_seed(0)
    drawn = {tuple(F.dropout1d(x[None]).flatten().tolist()) for _ in range(4 * N)}
    assert len(drawn) > 3
    for _ in range(3 * N):
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            F.mse_loss(torch.ones(3, 1), torch.ones(3))
        assert [w.filename for w in found] == [__file__]


ROWS = leaf(2, 3, 4)
ATTENTION = torch.nn.MultiheadAttention(4, 2, dropout=0.5, batch_first=True)
LAYER = torch.nn.TransformerEncoderLayer(4, 2, 8, batch_first=True)
DRAWS = {
    "dropout2d": lambda x: F.dropout2d(x[None], 0.5),
    "alpha_dropout": lambda x: F.alpha_dropout(x, 0.5, training=True),
    "feature_alpha_dropout": lambda x: F.feature_alpha_dropout(x, 0.5, training=True),
    "gumbel_softmax": F.gumbel_softmax,
    "rrelu": lambda x: F.rrelu(x - 0.5, training=True),
    "attention": lambda x: F.scaled_dot_product_attention(x, x, x, dropout_p=0.5),
    "MultiheadAttention": lambda x: ATTENTION(x, x, x)[0],
    "TransformerEncoderLayer": LAYER,
    "bernoulli": lambda x: torch.bernoulli(x.sigmoid()) * x,
}


@pytest.mark.parametrize("name", DRAWS)
def test_draws_are_new_each_time_and_those_of_the_seed(name, kept):
    call, seen = DRAWS[name], []
    for k in range(5 * N):
        if k % 2 == 0:
            torch.manual_seed(k % 3)
        y = call(ROWS)
        (g,) = torch.autograd.grad(y.square().sum(), ROWS)
        seen.append([y.tolist(), g.tolist(), torch.initial_seed(), torch.get_rng_state().tolist()])
    assert kept
    assert seen[6:] == seen[:-6]
    assert seen[0][0] != seen[1][0] != seen[2][0]


def test_modes_and_watchers_see_each_call():
    x = leaf(*X)
    for _ in range(2 * N):
        F.group_norm(x, 2)
    with torch.inference_mode():
        assert F.group_norm(x, 2).is_inference()
    with torch.profiler.profile() as profile:
        F.group_norm(x, 2)
    assert profile.key_averages()
    packed = []
    with torch.autograd.graph.saved_tensors_hooks(lambda t: packed.append(t) or t, lambda t: t):
        F.group_norm(x, 2)
    assert packed
    assert torch.func.vmap(lambda t: F.group_norm(t[None], 2))(x).shape == (5, 1, 8)
    assert torch.func.jvp(lambda t: F.group_norm(t, 2), (x.detach(),), (x.detach(),))[1].shape == x.shape


def test_ever_new_shapes_leave_room_for_the_others(kept):
    x = leaf(*X)
    for n in range(2, 6 * LAYOUTS):
        F.group_norm(torch.ones(1, n), 1)
        if n % 2:
            F.group_norm(x, 2)
    assert len(kept) == 1  # noted once, and found ever since
    table = F.group_norm.__closure__[[type(c.cell_contents) for c in F.group_norm.__closure__].index(dict)].cell_contents
    assert len(table) <= LAYOUTS


def test_the_users_line_is_known():
    x = leaf(*X)
    for _ in range(3 * N):
        y = F.group_norm(x, 2)
    y.sum().backward()
    with pytest.raises(RuntimeError, match=r"test_repeated\.py:\d+ in test_the_users_line_is_known \(y = F\.group_norm\(x, 2\)\)"):
        y.sum().backward()


def test_several_threads_repeat_the_same_call():
    x = leaf(*X)
    want = F.group_norm(x, 2)
    wrong = []

    def work():
        wrong.extend(k for k in range(20 * N) if not torch.equal(F.group_norm(x, 2), want))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


def test_functions_with_effects_are_never_repeated(kept):
    """Of what is done to an operand there is no repetition: an ``out=``, a write, a flag."""
    x = torch.randn(4, 6)
    for k in range(3 * N):
        out = torch.empty(0)
        assert torch.cumsum(x, 0, out=out) is out and out.shape == (4, 6)
        a = torch.zeros(4, 6)
        assert a.index_fill_(0, torch.tensor([1]), k) is a and a[1, 0] == k
        assert torch.zeros(2, 2).requires_grad_().requires_grad
        assert x.contiguous() is x and x.movedim(0, 1)._base is x and torch.einsum("ij->ji", x)._base is x
    assert all(t is x or t._base is x or t.data_ptr() != x.data_ptr() for t in kept if isinstance(t, torch.Tensor))


def test_views_that_are_repeated_are_views(kept):
    """They look at this call's operand, say so, and see and count its changes; a view of a view, or of what is written, is left to the function."""
    for _ in range(2 * N):
        x = torch.randn(4, requires_grad=True)
        rows, columns = torch.meshgrid(x, x, indexing="ij")
        assert rows._base is x and columns.stride() == (0, 1) and rows._version == x._version
    assert kept
    (rows * columns).sum().backward()
    assert torch.allclose(x.grad, 2 * x.sum().expand(4))
    plain, parts = torch.zeros(4), []
    for _ in range(2 * N):
        parts = torch.unsafe_chunk(plain, 2)
    parts[1].add_(1)
    assert plain.tolist() == [0, 0, 1, 1] and parts[0]._base is None and parts[1]._version == 1 and plain._version == 0
    for _ in range(2 * N):
        part = torch.linalg.diagonal(x.detach()[:3].view(3, 1))
        assert part._base is not None and part.data_ptr() == x.data_ptr()
    weight = torch.ones(2, requires_grad=True)
    for _ in range(2 * N):  # a view of a view looks at the same base, which what is written then has its history from
        base = torch.zeros(4)
        part = torch.linalg.diagonal(base.view(2, 2))
        assert part._base is base
        part.mul_(weight)
        assert base.requires_grad
    with torch.no_grad():
        for _ in range(2 * N):
            made = torch.broadcast_tensors(x, torch.ones(2, 1))[0]
            assert made._base is x and made.grad_fn is None
    with pytest.raises(RuntimeError, match="A view was created in no_grad mode"):
        made.add_(1)


def test_what_returns_its_operand_is_repeated(kept):
    x = leaf(*X)
    with pytest.raises(RuntimeError, match="dropout probability"):
        F.dropout(x, 2.0, False)
    for _ in range(3 * N):
        assert F.dropout(x, 0.5, False) is x
    assert kept and kept[-1] is x


def test_the_table_offers_the_functions_themselves():
    """A function is one object wherever it is found, and known by its name."""
    for name in ("index_add", "cat", "group_norm", "nn.functional.nll_loss", "index_select"):
        if name in OPS:
            assert OPS[name].call.__name__ == name.rpartition(".")[2]
    assert torch.index_add is torch.Tensor.index_add and torch.index_add.__doc__
    assert torch.hardshrink is F.hardshrink and not hasattr(torch.hardshrink.__wrapped__, "written")


def test_the_walk_sees_that_calls_are_repeated():
    with verified_calls() as names:
        for _ in range(3):  # of the first two no note is taken
            F.group_norm(leaf(*X), 2)
    assert "group_norm" in names


def test_notes_do_not_look_at_the_memory_of_batches(monkeypatch):
    """Which would have the map run sample by sample."""
    monkeypatch.setattr(recurring, "FIRST", 1)
    x = leaf(3)
    layer = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.Tanh())
    looked = []
    monkeypatch.setattr(batched.Unbatched, "__init__", lambda self, level: looked.append(level))
    for _ in range(8):
        torch.func.hessian(lambda z: layer(z).square().sum())(x)
        layer(x[None] * 1).square().sum().backward()
    assert not looked
