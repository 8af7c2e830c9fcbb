"""Calls that write into an operand are repeated like others: each counts as a change, and what would be recorded or shares memory is no repetition.

The walks over all ops are in `tests/parity/test_repeated_in_place.py`.
"""

from __future__ import annotations

import threading

import numpy as np
import pytest

import autograd_nb as torch
from autograd_nb.graph import recurring

from ..recurring import poisoned

N = recurring.FIRST


def matrix(seed=0, rows=4):
    return torch.randn(rows, 4, generator=torch.Generator().manual_seed(seed))


ROWS = torch.tensor([0, 2])
PLACES = torch.tensor([[0, 1, 2, 3], [3, 2, 1, 0]])
WRITES = {
    "scatter_": lambda x: x.scatter_(0, PLACES, matrix(1)[:2]),
    "scatter_add_": lambda x: x.scatter_add_(0, PLACES, matrix(1)[:2]),
    "scatter_reduce_": lambda x: x.scatter_reduce_(0, PLACES, matrix(1)[:2], "amax"),
    "index_put_": lambda x: x.index_put_((ROWS,), matrix(1)[:2], accumulate=True),
    "index_add_": lambda x: x.index_add_(0, ROWS, matrix(1)[:2]),
    "index_copy_": lambda x: x.index_copy_(0, ROWS, matrix(1)[:2]),
    "index_fill_": lambda x: x.index_fill_(0, ROWS, 2.0),
    "index_reduce_": lambda x: x.index_reduce_(0, ROWS, matrix(1)[:2], "prod"),
    "masked_scatter_": lambda x: x.masked_scatter_(matrix(1) > 0, matrix(2)),
    "put_": lambda x: x.put_(ROWS, matrix(1)[0, :2]),
    "triu_": lambda x: x.triu_(),
    "cumsum_": lambda x: x.cumsum_(0),
    "addmm_": lambda x: x.addmm_(matrix(1), matrix(2), beta=0.5),
    "eq_": lambda x: x.eq_(matrix(1)),
    "renorm_": lambda x: x.renorm_(2, 0, 0.5),
    "floor_divide_": lambda x: x.floor_divide_(matrix(1) + 3),
    "x[i, j] = 1": lambda x: x.__setitem__((ROWS[:, None], ROWS), 1.0) or x,
    "x[[0, 1]] = 1": lambda x: x.__setitem__([0, 1], 1.0) or x,
    "x[i] = row": lambda x: x.__setitem__(ROWS, matrix(1)[0]) or x,
    "mm(out=)": lambda x: torch.mm(matrix(1), matrix(2), out=x),
    "addcmul(out=)": lambda x: torch.addcmul(matrix(1), matrix(2), matrix(1), out=x),
    "cat(out=)": lambda x: torch.cat([matrix(1)[:2], matrix(2)[:2]], out=x),
    "where(out=)": lambda x: torch.where(matrix(1) > 0, matrix(1), matrix(2), out=x),
}  # fmt: skip


@pytest.mark.parametrize("name", WRITES)
def test_each_call_writes_and_counts(name, kept):
    call = WRITES[name]
    first = matrix()
    assert call(first) is first
    with poisoned():
        for k in range(3 * N):
            x = matrix()
            assert call(x) is x and x._version == first._version == 1 and x.grad_fn is None, k
            assert x.numpy().tobytes() == first.numpy().tobytes(), k
    assert kept
    x = matrix()
    with torch.no_grad():
        for k in range(3 * N):
            call(x)
    assert x._version == 3 * N


@pytest.mark.parametrize("name", [name for name in WRITES if "out=" not in name and name != "floor_divide_"])
def test_what_has_a_history_is_recorded_after_calls_that_were_not(name, kept):
    call = WRITES[name]

    def recorded(x):
        y = x * 1
        call(y)
        assert y._version == 1
        return y.grad_fn.name(), torch.autograd.grad(y.sum(), x)[0].tolist()

    wanted = recorded(matrix().requires_grad_())
    for _ in range(3 * N):
        call(matrix())
    assert kept
    for _ in range(3):
        assert recorded(matrix().requires_grad_()) == wanted
    leaf = matrix().requires_grad_()
    for refused in (leaf, leaf.view(4, 4)):
        with pytest.raises(RuntimeError, match="leaf Variable that requires grad"):
            call(refused)
    assert leaf._version == 0 and leaf.tolist() == matrix().tolist()
    base = matrix()
    view = base.view(4, 4)
    call(view)
    assert base._version == 1
    base.requires_grad_()
    with pytest.raises(RuntimeError, match="a view of a leaf Variable"):
        call(view)


REFUSED = {
    "index_add_": lambda x, i, v: x.index_add_(0, i, v),
    "index_copy_": lambda x, i, v: x.index_copy_(0, i, v),
    "index_put_": lambda x, i, v: x.index_put_((i,), v),
    "put_": lambda x, i, v: x.put_(i * 2, v[:, 0]),
    "scatter_": lambda x, i, v: x.scatter_(0, i[:, None], v),
    "x[i, i] =": lambda x, i, v: x.__setitem__((i, i), v[:, 0]),
    "x[i] = row": lambda x, i, v: x.__setitem__(i, v[0]),
    "masked_scatter_": lambda x, i, v: x.masked_scatter_((x == x) & (i[0] != i[1]), v.repeat(1 if int(i[1]) > 3 else 2, 1)),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_a_call_that_is_refused_after_many_leaves_all_as_it_was(name, kept):
    call, good, bad, values = REFUSED[name], torch.tensor([0, 2]), torch.tensor([0, 9]), matrix(1)[:2]

    def refusal():
        x = matrix()
        with pytest.raises((IndexError, RuntimeError)) as error:
            call(x, bad, values)
        assert x._version == 0 and x.tolist() == matrix().tolist()
        return type(error.value), str(error.value)

    first = refusal()
    for _ in range(3 * N):
        call(matrix(), good, values)
    assert kept
    for _ in range(2):
        assert refusal() == first


SHARED = {
    "mm(out=)": lambda x, y, out: torch.mm(x, y, out=out),
    "cumsum(out=)": lambda x, y, out: torch.cumsum(x, 1, out=out),
    "add(out=)": lambda x, y, out: torch.add(x, y.t(), out=out),
    "flip(out)": lambda x, y, out: out.index_copy_(0, torch.tensor([3, 2, 1, 0]), x),
    "addmm_": lambda x, y, out: out.addmm_(x, y),
    "triu": lambda x, y, out: torch.triu(x, out=out),
}  # fmt: skip


@pytest.mark.parametrize(("name", "n"), [*((name, 4) for name in SHARED), *((name, 200) for name in ("mm(out=)", "add(out=)", "triu"))])
def test_memory_that_operands_have_in_common_is_seen_however_it_came_there(name, n, kept):
    """By ``.data =``, and by NumPy's arrays, of whose parts PyTorch knows nothing either; the parts of one tensor it refuses.

    Large results lie in blocks of the pool.
    """
    call = SHARED[name]

    def matrix(k=0, rows=n):
        return torch.arange(k, k + rows * n, dtype=torch.float32).remainder_(7 + k).reshape(rows, n)

    def by_data():
        x, y, out = matrix(), matrix(1), matrix(2)
        out.data = x
        return x, y, out

    def by_numpy():
        memory = matrix(3, 3 * n).numpy()
        return torch.from_numpy(memory[0:n]), torch.from_numpy(memory[n : 2 * n]), torch.from_numpy(memory[1 : n + 1])

    def by_view():
        x = matrix(0, n + 1)
        return x[:n], matrix(1), x[1:]

    def apart():
        return matrix(), matrix(1), matrix(2)

    def outcome(operands):
        try:
            return call(*operands).tolist(), [t.tolist() for t in operands], [t._version for t in operands]
        except RuntimeError as error:
            return str(error), [t.tolist() for t in operands], [t._version for t in operands]

    ways = (apart, by_data, by_numpy, by_view)
    wanted = [outcome(way()) for way in ways]
    for _ in range(3 * N):
        call(*apart())
    assert kept
    for _ in range(3 * N):
        for way, want in zip(ways, wanted, strict=True):
            assert outcome(way()) == want, way


def test_what_is_assigned_is_compared(kept):
    i, flags = torch.tensor([0, 2]), torch.tensor([True, False, True, False])
    calls = {
        f"{index} = {value}": (index, value)
        for index in ([0, 1], [True, False, True, True], (i[:, None], i), (slice(0, 2), [0, 1]), (flags, 1), ([0, 1], None, 2), (i, ..., [1]))
        for value in (1.0, 1, True, 2.5, -0.0, torch.tensor(3.0))
    }

    def after(index, value):
        x = torch.zeros(4, 4)
        x[index] = value
        return x.numpy().tobytes(), x._version

    wanted = {name: after(*call) for name, call in calls.items()}
    for _ in range(4 * N):
        for name, call in calls.items():
            assert after(*call) == wanted[name], name
    assert kept
    x, k = torch.zeros(4, 4), torch.tensor(1)
    for n in (1, 2, 3):  # a bound that is a tensor is asked each time
        k.fill_(n)
        for _ in range(2 * N):
            x.zero_()
            x[[0, 1], :k] = 1.0
        assert x.sum() == 2 * n


def test_an_assignment_asks_other_classes():
    class Asked:
        seen: list = []

        @classmethod
        def __torch_function__(cls, function, types, args=(), kwargs=None):
            cls.seen.append(function)

    for index in (0, ROWS, [0, 1], (ROWS, ROWS)):
        torch.zeros(4, 4)[index] = Asked()
    assert Asked.seen == [torch.Tensor.__setitem__] * 4


def test_inference_mode_and_transforms_go_their_own_way(kept):
    for _ in range(3 * N):
        matrix().index_add_(0, ROWS, matrix(1)[:2])
    assert kept
    with torch.inference_mode():
        x = matrix()
        for _ in range(3):
            x.index_add_(0, ROWS, matrix(1)[:2])
    assert x.is_inference()
    with pytest.raises(RuntimeError, match="Inplace update to inference tensor outside InferenceMode"):
        x.index_add_(0, ROWS, matrix(1)[:2])
    many = torch.vmap(lambda t, v: t.clone().index_add_(0, ROWS, v))(torch.zeros(3, 4, 4), torch.ones(3, 2, 4))
    assert many.sum() == 24
    step = torch.compile(lambda t: t.index_add_(0, ROWS, torch.ones(2, 4)))
    t = torch.zeros(4, 4)
    for k in range(5):
        step(t)
        assert t.sum() == 8 * (k + 1) and t._version == k + 1


def test_threads_write_each_their_own(kept):
    wrong = []

    def work(seed):
        want = matrix(seed).cumsum_(0).tolist()
        for _ in range(20 * N):
            x = matrix(seed)
            if x.cumsum_(0).tolist() != want or x._version != 1:
                wrong.append(seed)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong and kept


def test_a_draw_is_another_each_time(kept):
    torch.manual_seed(0)
    wanted = [torch.empty(4).random_(100).tolist() for _ in range(4 * N)]
    torch.manual_seed(0)
    assert kept and [torch.empty(4).random_(100).tolist() for _ in range(4 * N)] == wanted
    assert len({tuple(w) for w in wanted}) == 4 * N
    x = torch.zeros(2, 4)
    for row in x:  # views are drawn into as well
        for _ in range(3):
            row.normal_()
    assert x._version == 6 and np.unique(x.numpy()).size == 8
