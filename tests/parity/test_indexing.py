"""Random index expressions through both libraries: values, first and second derivatives, assignment, errors."""

import itertools
import random
import warnings

import numpy as np
import pytest

torch = pytest.importorskip("torch")
import autograd_nb as ag  # noqa: E402

from .snippets import check  # noqa: E402


class Index:
    """A tensor in an index expression, of either library."""

    def __init__(self, array):
        self.array = np.asarray(array)

    def of(self, lib):
        d = {"b": lib.bool, "i": lib.int64}[self.array.dtype.kind]
        return lib.tensor(self.array.tolist(), dtype=d) if self.array.size else lib.zeros(self.array.shape, dtype=d)

    def __repr__(self):
        return f"tensor({self.array.tolist()})"


def expression(r, rng, shape):
    """Items that mostly fit ``shape``: ints, slices, None, Ellipsis, bools, lists, integer and boolean tensors."""
    items, d, dots = [], 0, False
    common = r.choice([(2,), (3,), (2, 3), (1,), (2, 1)])
    while d < len(shape) and r.random() > 0.1:
        n = shape[d]
        kind = r.choice("isstttbnLemBo")
        if kind == "i":
            items.append(r.randint(-n, n - 1))
        elif kind == "s":
            items.append(slice(r.choice([None, 0, 1, -2, 5]), r.choice([None, -1, 2, 7]), r.choice([None, 1, 2])))
        elif kind == "t":
            items.append(Index(rng.integers(-n, n, r.choice([common, (1,), common]))))
        elif kind == "b":
            items.append(Index(rng.random(n) < 0.6))
        elif kind == "m" and d + 1 < len(shape):
            items.append(Index(rng.random((n, shape[d + 1])) < 0.6))
            d += 1
        elif kind == "L":
            items.append([r.randint(-n, n - 1) for _ in range(common[-1])])
        elif kind == "o":
            items.append(Index(np.array(r.randint(-n, n - 1))))
        else:
            if kind == "n":
                items.append(None)
            elif kind == "B":
                items.append(r.choice([True, False]))
            elif kind == "e" and not dots:
                items.append(Ellipsis)
                dots = True
                if r.random() < 0.5:
                    n = shape[-1]
                    items.append(r.choice([r.randint(-n, n - 1), Index(rng.integers(-n, n, common))]))
                break
            continue
        d += 1
    return items


def of(lib, items):
    return tuple(i.of(lib) if isinstance(i, Index) else i for i in items)


def run(lib, array, order, items, view):
    """Reading and writing ``items`` of a permuted tensor, with all derivatives."""
    index = of(lib, items)
    x = lib.tensor(array.tolist(), dtype=lib.float64, requires_grad=True)
    y = (x * 1).permute(*order)[index]
    (g,) = lib.autograd.grad((y**3).sum(), x, create_graph=True)
    (gg,) = lib.autograd.grad((g * g).sum(), x)
    values = np.random.RandomState(0).standard_normal(tuple(y.shape))
    v = lib.tensor(values.tolist(), dtype=lib.float64) if values.size else lib.zeros(y.shape, dtype=lib.float64)
    v.requires_grad_()
    z = (x * 2).permute(*order)
    w = z if view else z * 1
    w[index] = v * v
    first = lib.autograd.grad((w**3).sum(), (x, v), create_graph=True)
    second = lib.autograd.grad(sum((q * q).sum() for q in first), (x, v))
    filled = z.detach().clone()
    filled[index] = 3.5
    return [y, g, gg, w, *first, *second, filled]


@pytest.mark.parametrize("seed", range(12))
def test_random_expressions(seed):
    r, rng = random.Random(seed), np.random.default_rng(seed)
    for trial in range(25):
        shape = [r.choice([1, 2, 3, 4]) for _ in range(r.choice([1, 2, 3, 4]))]
        order = r.sample(range(len(shape)), len(shape))
        items = expression(r, rng, [shape[d] for d in order])
        array = rng.standard_normal(shape)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                theirs = run(torch, array, order, items, trial % 2)
            except (IndexError, RuntimeError) as error:
                with pytest.raises(type(error), match=str(error)[:12].replace("(", r"\(")):
                    run(ag, array, order, items, trial % 2)
                continue
            mine = run(ag, array, order, items, trial % 2)
        for k, (a, b) in enumerate(zip(mine, theirs, strict=True)):
            np.testing.assert_allclose(
                a.detach().numpy(), b.detach().numpy(), err_msg=f"result {k} of {items} on {shape} permuted {order}"
            )


BAD = [
    lambda t, x: x[5],
    lambda t, x: x[0, 5],
    lambda t, x: x[0, 0, 0, 0],
    lambda t, x: x[[5]],
    lambda t, x: x[t.tensor([True, False, True])],
    lambda t, x: x[t.tensor([1.0])],
    lambda t, x: x[t.tensor([1], dtype=t.int16)],
    lambda t, x: x[::-1],
    lambda t, x: x[1.0],
    lambda t, x: x[0:1.5],
    lambda t, x: t.tensor(3.0)[0],
    lambda t, x: t.tensor(3.0)[:],
    lambda t, x: x[[0, 1], [0, 1, 2]],
    lambda t, x: x.__setitem__(0, [1, 2, 3]),
    lambda t, x: x.__setitem__(0, np.array([1.0, 2.0])),
    lambda t, x: x.__setitem__(0, t.ones(7)),
    lambda t, x: x.__setitem__([0, 1], t.ones(7)),
    lambda t, x: x.__setitem__([0], t.ones(1, dtype=t.float64)),
    lambda t, x: x.gather(0, t.tensor([0])),
    lambda t, x: x.gather(0, t.zeros(2, 3, 4)),
    lambda t, x: x.gather(0, t.full((2, 3, 4), 9)),
    lambda t, x: x.index_select(0, t.tensor([9])),
    lambda t, x: x.scatter(0, t.zeros(9, 9, 9, dtype=t.int64), 1.0),
    lambda t, x: x.index_add(0, t.tensor([0]), t.ones(2, 3, 4)),
    lambda t, x: x.take(t.tensor([99])),
    lambda t, x: x.masked_fill(t.ones(2, 3, 4), 0.0),
    lambda t, x: x.topk(9),
    lambda t, x: x.kthvalue(9),
]


@pytest.mark.parametrize("number", range(len(BAD)))
def test_errors(number):
    with pytest.raises(Exception) as theirs:
        BAD[number](torch, torch.zeros(2, 3, 4))
    x = ag.zeros(2, 3, 4)
    with pytest.raises(theirs.type):
        BAD[number](ag, x)
    assert x._version == 0


#: ops along a dim, with an index and values of any rank
RANKED = [
    "x.scatter_reduce({d}, i, s, 'sum')", "x.scatter_add({d}, i, s)", "x.scatter({d}, i, s)", "x.index_add({d}, i, s)", "x.index_copy({d}, i, s)",
    "x.index_reduce({d}, i, s, 'prod')", "x.gather({d}, i)", "x.index_select({d}, i)", "x.index_fill({d}, i, s)",
]


@pytest.mark.parametrize("call", RANKED)
@pytest.mark.filterwarnings("ignore")
def test_ranks_and_sizes_that_do_not_fit(call):
    """The same kind of error, or the same shape, whatever the ranks of operand, index and values are."""
    shapes = [(), (2,), (2, 2), (2, 2, 2)]
    values = [*shapes, (3,), (1,), (1, 2), (3, 1), (3, 3)] if "scatter" in call else shapes if "s" in call.partition("(")[2] else [()]
    indices = [*shapes, (2, 1)] if "scatter" in call else shapes
    for x, i, s, d in itertools.product(shapes, indices, values, (-3, -1, 0, 1, 2)):
        found = []
        for lib in (torch, ag):
            names = {"x": lib.ones(x), "i": lib.zeros(i, dtype=lib.int64), "s": lib.ones(s)}
            try:
                found.append(tuple(eval(call.format(d=d), names).shape))
            except Exception as error:
                found.append(next(t for t in (IndexError, NotImplementedError, RuntimeError, Exception) if isinstance(error, t)))
        assert found[0] == found[1], (call, x, i, s, d, found)


def test_strides_of_what_an_index_picks():
    """Dims of size 1 have strides too, which decide in what order the dims of a result lie."""
    for order in itertools.permutations(range(4)):
        for new, d in itertools.product(range(5), range(5)):
            found = []
            for lib in (torch, ag):
                y = lib.zeros(2, 1, 3, 4).permute(order).unsqueeze(new)[(slice(None),) * d + (lib.tensor([0, -1]),)]
                found.append([step for n, step in zip(y.shape, y.stride(), strict=True) if n > 1])
            assert found[0] == found[1], (order, new, d)


INPLACE = [
    "index_add_", "index_copy_", "index_fill_", "scatter_", "scatter_add_", "masked_fill_", "put_", "index_put_",
    "masked_scatter_", "scatter_reduce_", "tril_",
]  # fmt: skip


@pytest.mark.parametrize("name", INPLACE)
@pytest.mark.parametrize("view", [False, True])
def test_inplace_rewrites_history(name, view):
    def go(t):
        r = np.random.RandomState(0)
        x = t.tensor(r.randn(4, 3).tolist(), dtype=t.float64, requires_grad=True)
        s = t.tensor(r.randn(4, 3).tolist(), dtype=t.float64, requires_grad=True)
        i = t.tensor([0, 2, 1, 3])
        m = t.tensor(r.rand(4, 3) < 0.5)
        args = {
            "index_add_": (0, i, s * 2), "index_copy_": (0, i, s * 2), "index_fill_": (0, i[:2], s.sum()),
            "scatter_": (0, i.reshape(4, 1).expand(4, 3), s * 2), "scatter_add_": (1, i.reshape(4, 1).expand(4, 3) % 3, s * 2),
            "masked_fill_": (m, s.sum()), "put_": (i, s[:, 0] * 2), "index_put_": ((i, i % 3), s[:, 0] * 2, True),
            "masked_scatter_": (m, s * 2), "scatter_reduce_": (1, i.reshape(4, 1).expand(4, 3) % 3, s * 2, "prod"), "tril_": (),
        }[name]  # fmt: skip
        base = (x * x) if not view else t.stack([x * x, x], 0)
        y = base if not view else base[0]
        getattr(y, name)(*args)
        inputs = (x, s) if name != "tril_" else (x,)
        first = t.autograd.grad((base**3).sum(), inputs, create_graph=True)
        second = t.autograd.grad(sum((q * q).sum() for q in first), inputs)
        return [base, *first, *second], y._version

    (mine, a), (theirs, b) = go(ag), go(torch)
    assert a == b == 1
    for p, q in zip(mine, theirs, strict=True):
        np.testing.assert_allclose(p.detach().numpy(), q.detach().numpy())


def test_searching_what_is_not_sorted():
    """PyTorch's search looks at certain elements; on rows that are not sorted, or have nan, its answer follows from which they are."""
    rng = np.random.default_rng(0)
    for _ in range(200):
        n = int(rng.choice([*range(9), 127, 128, 129, 300]))  # (few sorted edges are searched in another way than many)
        edges, values = rng.integers(0, 6, (2, n)) / 1.0, rng.integers(-1, 7, (2, 4)) / 1.0
        if rng.random() < 0.5:
            edges.sort(1)
        edges[rng.random((2, n)) < rng.choice([0, 0.1])], values[rng.random((2, 4)) < 0.1] = np.nan, np.nan
        order = np.stack([rng.permutation(n), rng.permutation(n)])
        for right in (False, True):
            found = [
                [
                    t.searchsorted(t.tensor(edges), t.tensor(values), right=right), t.bucketize(t.tensor(values), t.tensor(edges[0]), right=right),
                    t.searchsorted(t.tensor(edges), t.tensor(values), right=right, sorter=t.tensor(order)),
                ]
                for t in (ag, torch)
            ]  # fmt: skip
            for a, b in zip(*found, strict=True):
                assert a.tolist() == b.tolist(), (edges, values, right)


#: indices with one mask, several, and none
MASKS = {
    "rows": lambda m: m.tensor([True, False]), "all dims": lambda m: m.tensor([[True, False, True], [False, True, False]]),
    "columns": lambda m: (slice(None), m.tensor([True, False, True])), "of a part": lambda m: (m.tensor([True, False]), slice(0, 2)),
    "numbers": lambda m: m.tensor([0]), "two": lambda m: (m.tensor([True, False]), m.tensor([1])),
}  # fmt: skip


@pytest.mark.parametrize("index", MASKS)
@pytest.mark.parametrize("kind", ["bool", "int64", "float32"])
def test_one_value_of_another_dtype_goes_where_one_mask_says(kind, index):
    """It fills, as `masked_fill_` does; every other index wants the tensor's dtype."""

    def assigned(m, value):
        x = m.zeros(2, 3).to(getattr(m, kind))
        value = m.tensor(*value[:1], dtype=getattr(m, value[1])).requires_grad_(value[1][0] == "f")
        try:
            x[MASKS[index](m)] = value * 1
        except RuntimeError:
            return "refused"
        try:
            x.sum().backward()
        except RuntimeError:
            return x.tolist(), "no gradient"
        return x.tolist(), value.grad.tolist()

    for value in ((2.5, "float64"), ([2.5], "float64"), ([[0.25]], "float64"), (2 + 1j, "complex64"), (-3, "int64")):
        assert assigned(ag, value) == assigned(torch, value)


def gathered(lib, values, places, full, d, turned):
    """Gather by an expanded index, three times: the later calls are known."""
    x, index = lib.tensor(values, requires_grad=True), lib.tensor(places).expand(*full)
    y, at = (x.transpose(0, -1), index.transpose(0, -1).clone().transpose(0, -1)) if turned else (x, index)
    found = [y.gather(-1 - d if turned else d, at) for _ in range(3)]
    found[-1].backward(lib.arange(found[-1].numel(), dtype=lib.float64).reshape(found[-1].shape))
    return [t.detach().tolist() for t in (*found, x.grad)]


@pytest.mark.parametrize("shape", [(5, 6), (6, 4, 6), (3, 2, 4, 3)])
def test_gather_by_expanded_indices(shape):
    rng = np.random.default_rng(0)
    values = rng.standard_normal(shape).tolist()
    for d, spread in itertools.product(range(len(shape)), itertools.product((False, True), repeat=len(shape))):
        full = [4 if k == d else n for k, n in enumerate(shape)]
        places = rng.integers(0, min(shape), [1 if s else n for n, s in zip(full, spread, strict=True)]).tolist()
        assert gathered(ag, values, places, full, d, False) == gathered(torch, values, places, full, d, False)
        if shape[0] == shape[-1] == 6:
            square = [full[d], *full[1:-1], full[d]] if d in (0, 2) else full
            places = rng.integers(0, 4, [1 if s else n for n, s in zip(square, spread, strict=True)]).tolist()
            assert gathered(ag, values, places, square, d, True) == gathered(torch, values, places, square, d, True)


def refusals(lib):
    x = lib.arange(12.0).reshape(3, 4)
    for wanted in ([0, 3], [0, 3], [0, 3], [0, 4], [-1, 0], [3, 0]):
        for index in (lib.tensor([wanted]).expand(3, 2), lib.tensor([[0, 1], wanted, [0, 0]])):
            try:
                yield x.gather(1, index).tolist()
            except RuntimeError as error:
                yield str(error).split(" is ")[0]


def test_gather_refuses_what_is_out_of_range_however_often_it_was_called():
    assert list(refusals(ag)) == list(refusals(torch))


def changed(lib, which):
    for _ in range(3):
        x, index = lib.ones(3, 4, requires_grad=True) * 1, lib.tensor([[0, 3]] * 3)
        y = x.gather(1, index).sum()
        (x.detach(), index)[which].add_(0)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            y.backward()


@pytest.mark.parametrize("which", [0, 1])
def test_known_gathers_refuse_changes_of_what_they_keep(which):
    changed(ag, which)
    changed(torch, which)


@pytest.mark.parity
def test_indices_of_other_ranks_and_of_nothing():
    """What has no elements is never read, and an index of no dims stands for one of one."""
    shapes = ("()", "0", "1", "2", "(0, 2)", "(2, 0)", "(1, 1)", "(2, 2)")
    two = ("x.gather({d}, i)", "x.index_select({d}, i)", "x.index_fill({d}, i, 3)", "x.scatter({d}, i, 3)", "x.take(i)")
    three = ("x.scatter({d}, i, s)", "x.scatter_add({d}, i, s)", "x.scatter_reduce({d}, i, s, 'amax')", "x.index_add({d}, i, s)",
             "x.index_copy({d}, i, s)", "x.index_reduce({d}, i, s, 'amax')")  # fmt: skip
    check({
        f"{call} {d} {x} {i} {s}": f"x = t.ones({x}); i = t.zeros({i}, dtype=t.int64); s = t.ones({s}); r = {call.format(d=d)}"
        for calls, sources in ((two, ("()",)), (three, shapes)) for call in calls for d in (0, -1) for x in shapes for i in shapes for s in sources
    }, kinds="subclasses")  # fmt: skip


@pytest.mark.parametrize("name", ["scatter", "scatter_", "scatter_add", "scatter_add_"])
def test_scatters_of_nothing_give_the_source_zeros(name):
    """An index without elements reads nothing of the source, whose gradient is then 0 in its own shape, whatever that is."""
    for index in ((2, 0), (0,), (0, 3)):
        for source in ((0,), (), (1,), (0, 3), (2, 0), (1, 0)):
            found = []
            for library in (torch, ag):
                x, src = library.ones(2, 3, requires_grad=True), library.ones(source, requires_grad=True)
                y = getattr(x * 1, name)(0, library.zeros(index, dtype=library.int64), src)
                try:
                    y.sum().backward()
                except RuntimeError:  # PyTorch's gradient does not fit its source (tests/fuzz/reasons/values.py)
                    assert library is torch
                    break
                found.append([None if t.grad is None else t.grad.tolist() for t in (x, src)])
            else:
                assert found[0] == found[1], (index, source)


@pytest.mark.parametrize("expanded", [False, True])
@pytest.mark.parametrize("order", [(0, 1, 2, 3, 4), (4, 3, 2, 1, 0), (2, 0, 4, 1, 3)])
def test_dims_that_lie_apart(order, expanded):
    """Index tensors of any two or more dims, beside one another or not, in any order of memory: read, differentiated, written, added to."""

    def run(lib, dims):
        rng = np.random.default_rng(1)
        x = lib.from_numpy(np.arange(4 * 5 * 3 * 6 * 2, dtype="f").reshape(4, 5, 3, 6, 2)).permute(*order)
        x = (x[:, :1].expand(-1, 3, -1, -1, -1) if expanded else x).detach().requires_grad_()
        index = tuple(lib.from_numpy(rng.integers(-n, n, (3, 2))) if d in dims else slice(None) for d, n in enumerate(x.shape))
        y = x[index]
        g = lib.from_numpy(rng.normal(size=tuple(y.shape)).astype("f"))
        results = [y, *lib.autograd.grad(y, x, g)]
        for write in ("z[index] = 7.0", "z[index] += 1.0", "z[index] = g"):
            z = x.detach().permute(4, 3, 2, 1, 0).clone().permute(4, 3, 2, 1, 0)
            exec(write, {"z": z, "index": index, "g": g})
            results.append(z)
        return results

    for count in (2, 3, 4, 5):
        for dims in itertools.combinations(range(5), count):
            for mine, theirs in zip(run(ag, dims), run(torch, dims), strict=True):
                np.testing.assert_array_equal(mine.detach().numpy(), theirs.detach().numpy(), str(dims))
                assert mine.stride() == theirs.stride(), dims


@pytest.mark.parametrize("expanded", [False, True])
@pytest.mark.parametrize("order", [(0, 1, 2, 3), (3, 2, 1, 0), (2, 0, 3, 1)])
def test_masks_of_dims_in_any_order_of_memory(order, expanded):
    """A mask of some dims that stand together, over a tensor with gaps, in another order of memory, or of which elements stand for several."""

    def run(lib, first, count):
        rng = np.random.default_rng(1)
        x = lib.from_numpy(np.arange(4 * 5 * 6 * 4, dtype="f").reshape(4, 5, 6, 4))[:, :, ::2].permute(*order)
        x = (x[:, :1].expand(-1, 3, -1, -1) if expanded else x).detach().requires_grad_()
        mask = lib.from_numpy(rng.random(tuple(x.shape[first : first + count])) > 0.5)
        index = ((slice(None),) * first + (mask,)) if first else mask
        y = x[index]
        g = lib.from_numpy(rng.normal(size=tuple(y.shape)).astype("f"))
        results = [y, *lib.autograd.grad(y, x, g)]
        for write in ("z[index] = 7.0", "z[index] += 1.0", "z[index] = g"):
            z = x.detach().permute(3, 2, 1, 0).clone().permute(3, 2, 1, 0)
            exec(write, {"z": z, "index": index, "g": g})
            results.append(z)
        return results

    for first, count in [(f, c) for f in range(4) for c in range(1, 5 - f)]:
        for mine, theirs in zip(run(ag, first, count), run(torch, first, count), strict=True):
            np.testing.assert_array_equal(mine.detach().numpy(), theirs.detach().numpy(), f"{first} {count}")
            assert mine.stride() == theirs.stride(), (first, count)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "bool", "float16", "complex64"])
@pytest.mark.parametrize("shape", [(7,), (7, 5), (7, 5, 3), (4, 5, 3, 2), (3, 2, 4, 2, 2)])
def test_assignment_by_tensors(shape, dtype):
    """Integers, slices and index tensors of one shape, or a mask; values, single ones, rows and numbers, at places that are named twice or counted
    from the end; what is refused leaves all as it was."""
    rng = np.random.default_rng(0)
    for case in range(60):
        kind = ("whole", "one", "row", "number")[case % 4]
        sort, many = case // 4 % 3, (2, 3) if case % 5 else (6,)
        items = [rng.integers(-n, n, many) for n in shape]
        if sort == 1:  # numbers and slices among them
            items = [(p, slice(None), slice(1, None), int(p.flat[0]))[r] for p, r in zip(items, rng.integers(0, 4, len(shape)), strict=True)]
        items = items[: rng.integers(1, len(shape) + 1)]
        mask = rng.random(shape[: len(items)]) > 0.5
        found = []
        for lib in (torch, ag):
            d = getattr(lib, dtype)
            memory = lib.from_numpy(np.arange(2 * np.prod(shape)).reshape(2 * shape[0], *shape[1:])).to(d)
            x = memory[shape[0] :]  # what it begins in goes on before, and index tensors behind
            wide = [lib.from_numpy(np.concatenate([p, p]))[: len(p)] if isinstance(p, np.ndarray) else p for p in items]
            index = lib.from_numpy(mask) if sort == 2 else tuple(wide) if len(wide) > 1 or case % 2 else wide[0]
            value = lib.from_numpy(np.arange(x[index].numel() + 1)).to(d)[1:].reshape(x[index].shape)
            value = {"whole": value, "one": value.flatten()[:1], "row": value[:1] if value.ndim else value, "number": 3}[kind]
            beyond = (*index[:-1], index[-1] + 2 * shape[len(index) - 1]) if sort == 0 and isinstance(index, tuple) else None
            for _ in range(3):  # as it is first seen, and as it is known
                version = x._version
                if kind == "number" or value.numel():
                    x[index] = value
                    assert x._version == version + 1 or dtype == "bool"
                if lib is ag and beyond is not None:  # (PyTorch has written some by then)
                    before = x.clone()
                    with pytest.raises(IndexError):
                        x[beyond] = value
                    assert (x == before).all()
                if dtype != "bool":
                    x[index] += 1
                if sort == 0 and isinstance(index, tuple) and kind == "whole":
                    x.index_put_(index, value)
            found.append(memory.to(lib.complex128).numpy())
        np.testing.assert_array_equal(*found, f"{case} {items}")


def test_assignment_by_several_indices_within_modes_and_programs():
    for lib in (torch, ag):
        i, j, v = lib.tensor([0, 2, 2]), lib.tensor([1, 0, -1]), lib.tensor([1.0, 2.0, 3.0])
        x = lib.zeros(3, 4)
        for _ in range(3):
            x[i, j] = v
        leaf = lib.zeros(3, 4, requires_grad=True)
        y = leaf * 1
        y[i, j] = v.requires_grad_()
        (y * y).sum().backward()
        assert v.grad.tolist() == [2.0, 4.0, 6.0] and leaf.grad.abs().sum() == 0
        with lib.no_grad():
            leaf[i, j] = v
            leaf[i, j] = leaf[i, j] + leaf.view(-1)[:3]  # of the same memory
        assert leaf.tolist() == [[0.0, 1.0, 0.0, 0.0], [0.0] * 4, [3.0, 0.0, 0.0, 3.0]]
        with pytest.raises(RuntimeError):
            lib.ones(3, 4, requires_grad=True)[i, j] = v
        with lib.inference_mode():
            inferred = lib.zeros(3, 4)
            inferred[i, j] = 1.0
            assert inferred.sum() == 3
    step = ag.compile(lambda x, i, j, v: x.__setitem__((i, j), v) or x.sum())
    for k in range(5):
        x = ag.zeros(3, 4)
        assert step(x, ag.tensor([0, k % 3]), ag.tensor([1, 2]), ag.tensor([1.0, 2.0])).item() == 3 and x.sum() == 3


def test_assignment_by_tensors_and_slices_that_change():
    """A slice's bound may be a tensor, whose number is asked for each time; what is no integer is refused, also where its like was an integer."""
    for lib in (torch, ag):
        i, bound, v = lib.tensor([0, 2]), lib.tensor(1), lib.ones(2)
        x, seen = lib.zeros(3, 6), []
        for k in range(4):
            bound.fill_(k)
            x[i, bound:] = float(k + 1)
            seen.append(x.tolist())
        for _ in range(3):
            x[i, 1:] = 0.0
        for wrong in (slice(1.0, None), slice("1", None)):
            with pytest.raises(TypeError):
                x[i, wrong] = 0.0
        assert x[0].tolist() == [1.0, 0.0, 0.0, 0.0, 0.0, 0.0] and seen[3][0] == [1.0, 2.0, 3.0, 4.0, 4.0, 4.0]
        calls = []

        class Watched(lib.Tensor):
            @classmethod
            def __torch_function__(cls, func, types, args=(), kwargs=None):
                calls.append(func)
                return super().__torch_function__(func, types, args, kwargs or {})

        for _ in range(3):
            lib.zeros(3, 6)[i, i] = v.as_subclass(Watched)
        assert sum(f is lib.Tensor.__setitem__ for f in calls) == 3
    step = ag.compile(lambda x, mask: x.__setitem__(mask, 1.0) or x.sum())
    found = []
    with pytest.warns(UserWarning, match="boolean mask"):  # (it stays eager)
        found += [step(ag.zeros(4, 2), ag.arange(4) < k).item() for k in range(5)]
    assert found == [0, 2, 4, 6, 8]


PARTS = [0, 1, -1, slice(None), slice(1, None), slice(None, -1), slice(None, None, 2), slice(1, None, 2)]


@pytest.mark.parametrize("shape", [(4,), (4, 4), (2, 4, 4)])
@pytest.mark.parametrize("lies", ["in order", "turned", "with gaps"])
def test_parts_of_a_tensor_are_put_into_others_of_it(shape, lies):
    """What is written is what was there before, whether the parts meet or lie one between the elements of the other.

    PyTorch refuses some that meet, and of others that do reads what it has written: its numbers are those of a copy.
    """
    drawn = random.Random(lies)
    for _ in range(100):
        to, source = [tuple(drawn.choice(PARTS) for _ in shape) for _ in range(2)]
        told = []
        for t in (torch, ag):
            whole = t.arange(2.0 * np.prod(shape)).reshape(*shape, 2)
            x = whole[..., 0] if lies == "with gaps" else whole[..., 0].clone()
            x = x.transpose(0, -1) if lies == "turned" else x
            found = []
            for _ in range(3):  # the second finds the plan of the first
                try:
                    before = x.clone()
                    x[to] = x[source]
                except RuntimeError:
                    found.append("refused")
                else:
                    if t is torch:
                        x.copy_(before)
                        x[to] = before[source]
                found.append(x.tolist())
            told.append(found)
        assert told[0] == told[1], (to, source)


@pytest.mark.parametrize("index", [slice(None), ..., (), (slice(None), slice(None)), slice(0, 3), (slice(None), ...), None, slice(1, None)])
@pytest.mark.parametrize("grows", [False, True])
def test_an_assignment_to_all_of_a_tensor_is_a_copy_to_itself(index, grows):
    """No part of it is set, which the graph shows, and a second pass may go through it where what saves nothing may be used again."""
    told = []
    for t in (torch, ag):
        found = []
        for value in ("tensor", "number"):
            for _ in range(3):  # the second finds the plan of the first
                given = t.ones(4, dtype=t.float64).requires_grad_()
                x = t.ones(3, 4, dtype=t.float64) * (given if grows else 1)
                x[index] = given * 2 if value == "tensor" else 5.0
                name = x.grad_fn and x.grad_fn.name().removeprefix("torch::autograd::").rstrip("03")
                found += [name, x._version, x.tolist(), x.requires_grad]
                if x.requires_grad:
                    found += [g.tolist() if g is not None else g for g in t.autograd.grad((x * x).sum(), [given], allow_unused=True)]
        told.append(found)
    assert told[0] == told[1]


def test_what_is_chosen_by_false_is_nothing_also_of_views_that_may_not_be_written():
    for t in (torch, ag):
        x = t.ones(1, 4).requires_grad_() * 1
        with t.no_grad():
            view = x.view(4)
            x.mul_(2)
        view[False] = 0.0
        assert view.tolist() == [2.0] * 4
        shown = t.ones(2, 3, dtype=t.complex64).conj()
        wide = shown.expand(2, 2, 3)
        wide[()] = shown  # what stands there is what may be written where elements share memory
        assert wide.tolist() == [[[1 + 0j] * 3] * 2] * 2
