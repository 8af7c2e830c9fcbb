"""In-place ops and assignments, called twice: the second call finds what the first one worked out."""

import pytest

import autograd_nb as torch

OPS = {
    "add_": (lambda x, w: x.add_(w), lambda x, w: x + w),
    "iadd": (lambda x, w: x.__iadd__(0.5), lambda x, w: x + 0.5),
    "add_ alpha": (lambda x, w: x.add_(w, alpha=0.3), lambda x, w: x + 0.3 * w),
    "add_ row": (lambda x, w: x.add_(w[0]), lambda x, w: x + w[0]),
    "mul_": (lambda x, w: x.mul_(w), lambda x, w: x * w),
    "add_ itself": (lambda x, w: x.add_(x), lambda x, w: x + x),
    "sigmoid_": (lambda x, w: x.sigmoid_(), lambda x, w: x.sigmoid()),
    "sin_": (lambda x, w: x.sin_(), lambda x, w: x.sin()),
    "clamp_": (lambda x, w: x.clamp_(0.1, 0.9), lambda x, w: x.clamp(0.1, 0.9)),
    "masked_fill_": (lambda x, w: x.masked_fill_(w > 0, 0.5), lambda x, w: x.masked_fill(w > 0, 0.5)),
    "zero_": (lambda x, w: x.zero_(), lambda x, w: x * 0),
    "fill_": (lambda x, w: x.fill_(2), lambda x, w: x * 0 + 2),
    "copy_": (lambda x, w: x.copy_(w), lambda x, w: x * 0 + w),
}


@pytest.mark.parametrize("name", OPS)
@pytest.mark.parametrize("view", [False, True])
def test_values_and_gradients_are_those_of_the_op_out_of_place(name, view):
    inplace, plain = OPS[name]
    a = torch.linspace(-1, 1.5, 12).reshape(3, 4)
    w = torch.linspace(2, -1, 12).reshape(3, 4)
    for _ in range(2):
        found = []
        for function in (inplace, plain):
            x, v = a.clone().requires_grad_(), w.clone().requires_grad_()
            y = x * 2
            if view and function is inplace:
                part = y[1:]
                assert inplace(part, v[1:]) is part
            elif view:
                y = torch.cat([y[:1], plain(y[1:], v[1:])])
            elif function is inplace:
                version = y._version
                assert inplace(y, v) is y and y._version == version + 1
            else:
                y = plain(y, v)
            grads = torch.autograd.grad((y**2).sum(), (x, v), create_graph=True, allow_unused=True)
            total = sum((((g**2).sum() for g in grads if g is not None)), (x * v).sum())
            second = torch.autograd.grad(total, (x, v))
            found.append([y, *grads, *second])
        for p, q in zip(*found, strict=True):
            torch.testing.assert_close(torch.zeros(3, 4) if p is None else p, torch.zeros(3, 4) if q is None else q)


def test_what_is_refused_is_refused_again():
    x, leaf = torch.ones(2), torch.ones(2, requires_grad=True)
    for _ in range(2):
        x.add_(1).mul_(x).sigmoid_().clamp_(0, 1).zero_()
        for call in (
            lambda: leaf.add_(1),
            lambda: leaf.sigmoid_(),
            lambda: leaf.clamp_(0, 1),
            lambda: leaf.zero_(),
            lambda: leaf.__setitem__(0, 1.0),
        ):
            with pytest.raises(RuntimeError, match="leaf"):
                call()
        with torch.no_grad():
            leaf.add_(1).zero_()
            leaf[0] = 1.0
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            y = (leaf * 2).sigmoid()
            y.add_(1)
            y.sum().backward()
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            s = leaf * 2
            y = s.exp() * s
            s[0] = 5.0
            y.sum().backward()
        with torch.inference_mode():
            frozen = torch.ones(2)
        with pytest.raises(RuntimeError, match=r"[Ii]nference"):
            frozen.add_(1)
        with pytest.raises(RuntimeError, match=r"[Ii]nference"):
            frozen[0] = 1.0
        with pytest.raises(RuntimeError, match="overflow"):
            torch.ones(2, dtype=torch.int64).add_(1 << 70)


@pytest.mark.parametrize("index", [1, -1, slice(1, 3), (slice(None), 1), (1, slice(0, 4, 2)), (..., None, 0), (2, 3)])
@pytest.mark.parametrize("value", ["number", "tensor", "broadcast", "itself"])
def test_assignments_and_their_gradients(index, value):
    for _ in range(2):
        x = torch.arange(12.0).reshape(3, 4).requires_grad_()
        shape = x.detach()[index].shape
        v = torch.full(shape[1:] if value == "broadcast" else shape, 7.0, requires_grad=True)
        y = x * 1
        other = y[-1 if isinstance(index, int) else index]
        source = {"number": 7.0, "itself": other}.get(value, v)
        expected = y.detach().clone()
        expected[index].copy_(source.detach() if isinstance(source, torch.Tensor) else torch.tensor(source))
        y[index] = source
        torch.testing.assert_close(y.detach(), expected)
        if value == "itself":
            continue
        gx, gv = torch.autograd.grad((y * 3).sum(), (x, v), allow_unused=True)
        hole = torch.full((3, 4), 3.0)
        hole[index] = 0
        torch.testing.assert_close(gx, hole)
        assert gv is None if value == "number" else gv.sum() == 3.0 * hole.eq(0).sum()


def test_constants_copied_over_all_of_a_result():
    x = torch.ones(3, requires_grad=True)
    y = x * 2
    y.copy_(torch.arange(3.0))
    assert y.requires_grad and y.tolist() == [0, 1, 2]
    y.sum().backward()
    assert x.grad.tolist() == [0, 0, 0]


@pytest.mark.parametrize("name, args, shape", [("t_", (), (3, 1)), ("squeeze_", (), (3,)), ("unsqueeze_", (0,), (1, 1, 3))])
def test_sizes_changed_in_place_without_recording(name, args, shape):
    leaf = torch.ones(1, 3, requires_grad=True)
    node = (y := leaf * 2).grad_fn
    with torch.no_grad():
        getattr(leaf, name)(*args)
        getattr(y, name)(*args)
    assert leaf.shape == y.shape == shape and leaf.requires_grad and leaf.is_leaf and y.grad_fn is node


def test_options_that_may_be_none_are_left_out():
    x = torch.tensor([float("nan"), 1.0, float("inf")])
    assert x.nan_to_num().tolist() == [0, 1, torch.finfo(x.dtype).max]
    assert x.clone().nan_to_num_(posinf=2.0).tolist() == [0, 1, 2]
    assert torch.nn.functional.pad(x[1:2], (1, 0), value=None).tolist() == [0, 1]
    with pytest.raises(TypeError, match="argument 'nan' must be Number"):
        x.nan_to_num("0")


_PLACES, _ROWS = torch.zeros(2, 2, dtype=torch.int64), torch.tensor([1, 0])
WITH_A_SOURCE = {
    "add_": lambda t, s: t.add_(s), "mul_": lambda t, s: t.mul_(s), "copy_": lambda t, s: t.copy_(s), "lerp_": lambda t, s: t.lerp_(s, 0.5),
    "all": lambda t, s: t.__setitem__(slice(None), s), "row": lambda t, s: t.__setitem__(0, s[0]), "mask": lambda t, s: t.__setitem__(t > 0.3, s[0, 0]),
    "rows": lambda t, s: t.__setitem__(_ROWS, s), "index_put_": lambda t, s: t.index_put_((_ROWS,), s, accumulate=True),
    "scatter_": lambda t, s: t.scatter_(0, _PLACES, s), "scatter_add_": lambda t, s: t.scatter_add_(0, _PLACES, s),
    "scatter_reduce_": lambda t, s: t.scatter_reduce_(0, _PLACES, s, "sum"), "index_add_": lambda t, s: t.index_add_(0, _ROWS, s),
    "index_copy_": lambda t, s: t.index_copy_(0, _ROWS, s), "index_reduce_": lambda t, s: t.index_reduce_(0, _ROWS, s, "mean"),
    "index_fill_": lambda t, s: t.index_fill_(0, _ROWS, s[0, 0]), "masked_fill_": lambda t, s: t.masked_fill_(t > 0.3, s[0, 0]),
    "masked_scatter_": lambda t, s: t.masked_scatter_(t > 0.3, s), "put_": lambda t, s: t.put_(_PLACES, s), "fill_": lambda t, s: t.fill_(s[0, 0]),
    "addmm_": lambda t, s: t.addmm_(s, s), "addr_": lambda t, s: t.addr_(s[0], s[1]), "addcmul_": lambda t, s: t.addcmul_(s, s),
    "clamp_": lambda t, s: t.clamp_(s, s), "pow_": lambda t, s: t.pow_(s), "diagonal": lambda t, s: t.diagonal().copy_(s[0]),
    "foreach": lambda t, s: torch._foreach_add_([t], [s]),
}  # fmt: skip


@pytest.mark.parametrize("requires_grad", [False, True])
@pytest.mark.parametrize("name", WITH_A_SOURCE)
def test_nothing_is_written_where_the_source_is_refused(name, requires_grad):
    base = torch.full((2, 2), 0.5).requires_grad_() * 1
    with torch.no_grad():
        source = base[:]
    base.mul_(2)
    t = torch.tensor([[0.25, 0.75], [0.5, 0.4]]).requires_grad_(requires_grad) * 1
    before, version = t.detach().clone(), t._version
    with pytest.raises(RuntimeError, match="A view was created in no_grad mode"):
        WITH_A_SOURCE[name](t, source)
    assert t.detach().equal(before) and t._version == version
