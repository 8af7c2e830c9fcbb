"""Counts of operations, modules that are running, and ``functorch.einops.rearrange``, beside PyTorch's."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from torch.utils import flop_counter, module_tracker  # noqa: E402

import autograd_nb as ag  # noqa: E402
from autograd_nb.compat import flop_counter as our_counter  # noqa: E402
from autograd_nb.compat import functorch as ours  # noqa: E402
from autograd_nb.utils.module_tracker import ModuleTracker  # noqa: E402


def drawn(t, *shape, grad=True):
    return t.ones(shape).requires_grad_(grad)


class Net:
    """A small network of several kinds of layers."""

    def __new__(cls, t):
        class Whole(t.nn.Module):
            def __init__(self):
                super().__init__()
                self.first = t.nn.Conv2d(3, 4, 3, padding=1)
                self.rest = t.nn.Sequential(t.nn.Linear(4 * 4 * 4, 10), t.nn.ReLU(), t.nn.Linear(10, 2))

            def forward(self, x):
                return self.rest(self.first(x).relu().flatten(1))

        return Whole()


CASES = {
    "linear": lambda t: t.nn.functional.linear(drawn(t, 3, 4), drawn(t, 5, 4), drawn(t, 5)),
    "linear of three dims": lambda t: t.nn.functional.linear(drawn(t, 2, 3, 4), drawn(t, 5, 4), drawn(t, 5)),
    "linear without a bias": lambda t: t.nn.functional.linear(drawn(t, 2, 3, 4), drawn(t, 5, 4)),
    "linear of a vector": lambda t: t.nn.functional.linear(drawn(t, 4), drawn(t, 5, 4), drawn(t, 5)),
    "mm": lambda t: drawn(t, 3, 4) @ drawn(t, 4, 5),
    "mm of a constant": lambda t: drawn(t, 3, 4) @ drawn(t, 4, 5, grad=False),
    "matmul": lambda t: drawn(t, 2, 3, 4) @ drawn(t, 4, 5),
    "bmm": lambda t: drawn(t, 2, 3, 4) @ drawn(t, 2, 4, 5),
    "bmm of a batch": lambda t: drawn(t, 6, 2, 3, 4) @ drawn(t, 2, 4, 5),
    "mv": lambda t: drawn(t, 3, 4) @ drawn(t, 4),
    "nothing": lambda t: drawn(t, 0, 4) @ drawn(t, 4, 5),
    "einsum": lambda t: t.einsum("bij,bkj->bik", drawn(t, 2, 3, 4), drawn(t, 2, 5, 4)),
    "multi_dot": lambda t: t.linalg.multi_dot([drawn(t, 3, 4), drawn(t, 4, 5), drawn(t, 5, 2)]),
    "conv1d": lambda t: t.nn.functional.conv1d(drawn(t, 2, 3, 8), drawn(t, 4, 3, 3), drawn(t, 4)),
    "conv2d": lambda t: t.nn.functional.conv2d(drawn(t, 2, 3, 8, 8), drawn(t, 4, 3, 3, 3), stride=2),
    "conv2d of data": lambda t: t.nn.functional.conv2d(drawn(t, 2, 3, 8, 8, grad=False), drawn(t, 4, 3, 3, 3), drawn(t, 4)),
    "conv2d of a constant": lambda t: t.nn.functional.conv2d(drawn(t, 2, 3, 8, 8), drawn(t, 4, 3, 3, 3, grad=False)),
    "groups": lambda t: t.nn.functional.conv2d(drawn(t, 2, 4, 8, 8), drawn(t, 6, 2, 3, 3), groups=2, dilation=2),
    "conv3d": lambda t: t.nn.functional.conv3d(drawn(t, 2, 2, 4, 4, 4), drawn(t, 3, 2, 2, 2, 2)),
    "transposed": lambda t: t.nn.functional.conv_transpose2d(drawn(t, 2, 3, 8, 8), drawn(t, 3, 4, 3, 3), stride=2, output_padding=1),
    "transposed groups": lambda t: t.nn.functional.conv_transpose2d(drawn(t, 2, 4, 8, 8), drawn(t, 4, 3, 3, 3), groups=2),
    "transposed of data": lambda t: t.nn.functional.conv_transpose1d(drawn(t, 2, 3, 8, grad=False), drawn(t, 3, 4, 3)),
    "attention": lambda t: t.nn.functional.scaled_dot_product_attention(*(drawn(t, 2, 2, 4, 8) for _ in range(3))),
    "network": lambda t: Net(t)(drawn(t, 2, 3, 4, 4, grad=False)),
}


def counted(t, counter, case):
    with counter(display=False) as c:
        y = case(t)
        forward = c.get_total_flops()
        y.sum().backward()
    by_name = {m: {str(op): n for op, n in ops.items()} for m, ops in c.get_flop_counts().items()}
    return forward, c.get_total_flops(), by_name


@pytest.mark.parametrize("name", CASES)
def test_counts(name):
    expected = counted(torch, flop_counter.FlopCounterMode, CASES[name])
    for _ in range(2):  # calls that recur are counted as well
        assert counted(ag, our_counter.FlopCounterMode, CASES[name]) == expected


def test_mappings_tables_and_registrations():
    x = ag.ones(3, 4)
    with our_counter.FlopCounterMode(display=False, custom_mapping={our_counter._aten.mm: lambda a, b, out_shape: sum((*a, *b, *out_shape))}) as c:
        x @ ag.ones(4, 5)
    assert c.get_total_flops() == 3 + 4 + 4 + 5 + 3 + 5
    with our_counter.FlopCounterMode(display=False) as c, ag.no_grad():
        ag.nn.Linear(4, 5)(x)
    assert c.get_table().splitlines()[2].split() == ["Linear", "120", "100.00%"]
    x @ ag.ones(4, 5)
    assert c.get_total_flops() == 120
    with pytest.raises(RuntimeError, match="duplicate"):
        our_counter.register_flop_formula(our_counter._aten.mm)(len)
    with pytest.raises(NotImplementedError):
        our_counter.register_flop_formula(our_counter._aten.relu)(len)


def seen(t, tracker_of):
    model, found = t.nn.Sequential(t.nn.Linear(2, 3), t.nn.Sequential(t.nn.Tanh())), []
    with tracker_of() as tracker:
        for module in model.modules():
            module.register_forward_hook(lambda *args: found.append((sorted(tracker.parents), tracker.is_bw)))
        y = model(t.ones(1, 2))
        y.register_hook(lambda g: found.append((sorted(tracker.parents), tracker.is_bw)))
        y.sum().backward()
        found.append(sorted(tracker.parents))
    return found


def test_modules_that_run():
    assert seen(ag, ModuleTracker) == seen(torch, module_tracker.ModuleTracker)


#: pattern -> the same written with other functions (PyTorch's own `rearrange` can be called once)
PATTERNS = {
    "a b c -> c b a": lambda x: x.permute(2, 1, 0), "a b c -> b (a c)": lambda x: x.permute(1, 0, 2).reshape(6, 8),
    "a (b b2) c -> (a b) (b2 c)": lambda x: x.reshape(6, 8), "... c -> c ...": lambda x: x.permute(2, 0, 1),
    "a ... -> ... a": lambda x: x.permute(1, 2, 0), "a b c -> a 1 b c": lambda x: x.unsqueeze(1), "a ... -> (... a)": lambda x: x.permute(1, 2, 0).reshape(-1),
}  # fmt: skip


@pytest.mark.parametrize("pattern", PATTERNS)
def test_rearranged(pattern):
    x = torch.arange(48).reshape(2, 6, 4)
    y = ours.rearrange(ag.from_numpy(x.numpy()), pattern, **({"b2": 2} if "b2" in pattern else {}))
    assert y.tolist() == PATTERNS[pattern](x).tolist()
    assert ours.rearrange([ag.ones(2), ag.zeros(2)], "n a -> (a n)").tolist() == [1, 0, 1, 0]


@pytest.mark.parametrize(
    "pattern",
    ["a b c", "a b -> b a", "a b c -> a b", "a a b -> a b", "(a b c -> c b a", "a (b (c)) -> a b c", "a b (c d) -> a b c d", "a b 2 -> a b",
     "a b c -> ... a b c"],
)  # fmt: skip
def test_patterns_that_do_not_fit(pattern):
    with pytest.raises(ValueError, match=r"rearrange|Pattern"):
        ours.rearrange(ag.ones(2, 3, 4), pattern)
