"""Resizing, sampling, attention, CTC and bags against PyTorch, over drawn shapes and options."""

import math
import random
import warnings

import numpy as np
import pytest

torch = pytest.importorskip("torch")
import autograd_nb as ours  # noqa: E402

from .snippets import check  # noqa: E402

T, F = torch.nn.functional, ours.nn.functional
D = torch.float64


def twins(tree, known=None):
    """PyTorch's arguments as ours; a tensor that stands in two places stays one tensor."""
    known = {} if known is None else known
    if isinstance(tree, torch.Tensor):
        if id(tree) not in known:
            known[id(tree)] = ours.from_numpy(tree.detach().numpy().copy()).requires_grad_(tree.requires_grad)
        return known[id(tree)]
    if isinstance(tree, dict):
        return {k: twins(v, known) for k, v in tree.items()}
    return [twins(v, known) for v in tree] if isinstance(tree, list) else tree


def close(mine, theirs, what, tol):
    assert tuple(mine.shape) == tuple(theirs.shape), what
    np.testing.assert_allclose(mine.detach().numpy(), theirs.detach().numpy(), rtol=tol, atol=tol, err_msg=what)


def agree(name, args, kw, tol=1e-8, module=(T, F)):
    """Call both; results and the gradients of everything that wants one must agree, or both must refuse with one type."""
    known = {}
    my_args, my_kw = twins(args, known), twins(kw, known)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            theirs = getattr(module[0], name)(*args, **kw)
        except Exception as error:
            with pytest.raises(type(error)):
                getattr(module[1], name)(*my_args, **my_kw)
            return
        mine = getattr(module[1], name)(*my_args, **my_kw)
    theirs, mine = ([r for r in (v if isinstance(v, tuple) else (v,)) if r is not None] for v in (theirs, mine))
    assert len(theirs) == len(mine)
    what = f"{name} {[getattr(a, 'shape', a) for a in args]} { ({k: getattr(v, 'shape', v) for k, v in kw.items()}) }"
    for a, b in zip(mine, theirs, strict=True):
        close(a, b, what, tol)
    if not any(t.requires_grad for t in theirs):
        return
    sum((t**2).sum() for t in theirs if t.requires_grad).backward()
    sum((t**2).sum() for t in mine if t.requires_grad).backward()
    for t in [*args, *kw.values()]:
        if isinstance(t, torch.Tensor) and t.requires_grad:
            g = known[id(t)].grad
            if g is None or t.grad is None:  # unused: none, or zeros
                assert all(x is None or not x.any() for x in (g, t.grad)), what
            else:
                close(g, t.grad, f"gradient of {what}", tol * 10)


def leaf(*shape, d=D):
    return torch.randn(shape, dtype=d, requires_grad=True)


@pytest.fixture(autouse=True)
def seed():
    random.seed(0)
    torch.manual_seed(0)


RESIZE = {1: ["nearest", "nearest-exact", "linear"], 2: ["nearest", "nearest-exact", "bilinear", "bicubic", "lanczos"], 3: ["nearest", "trilinear"]}


@pytest.mark.parity
def test_interpolate():
    for _ in range(150):
        n = random.choice([1, 2, 2, 3])
        mode = random.choice(RESIZE[n])
        kw = {"mode": mode}
        if "linear" in mode or mode == "bicubic":
            kw["align_corners"] = random.choice([None, False, True])
        if mode == "lanczos" or (mode in ("bilinear", "bicubic") and random.random() < 0.5):
            kw["antialias"] = True
        sizes = [random.randint(2, 9) for _ in range(n)]
        if random.random() < 0.5:
            # (one column out of anti-aliased resizing is wrong in PyTorch 2.13)
            kw["size"] = tuple(random.randint(2, 12) for _ in range(n))
        else:
            kw["scale_factor"] = random.choice([2, 1.5, 3, 1.0])
        agree("interpolate", [leaf(2, 3, *sizes)], kw)


@pytest.mark.parity
def test_grid_sample_and_affine_grid():
    for _ in range(80):
        n, aligned = random.choice([2, 3]), random.choice([True, False])
        mode = random.choice(["bilinear", "nearest", *["bicubic"] * (n == 2)])
        padding = random.choice(["zeros", "border", "reflection"])
        x, grid = leaf(2, 2, *[random.randint(1, 5) for _ in range(n)]), leaf(2, *[random.randint(1, 14) for _ in range(n)], n)
        agree("grid_sample", [x, grid, mode, padding, aligned], {})
        agree("affine_grid", [leaf(2, n, n + 1), (2, 3, *[random.randint(1, 4) for _ in range(n)]), aligned], {})


@pytest.mark.parity
def test_unfold_and_fold():
    pair = lambda a, b: (random.randint(a, b), random.randint(a, b))
    for _ in range(60):
        kw = {"kernel_size": pair(1, 3), "dilation": pair(1, 2), "padding": pair(0, 2), "stride": pair(1, 3)}
        h, w = pair(1, 7)
        agree("unfold", [leaf(2, 3, h, w)], kw)
        blocks = T.unfold(torch.zeros(1, 1, 8, 9), **kw).shape[-1]
        k = kw["kernel_size"]
        agree("fold", [leaf(2, 2 * k[0] * k[1], blocks), (8, 9)], kw)


@pytest.mark.parity
def test_attention():
    for _ in range(80):
        batch = random.choice([(), (2,), (2, 3), (2, 1, 3)])
        n, m, e, v = (random.randint(1, 6) for _ in range(4))
        mask = None
        if random.random() < 0.6:
            shape = random.choice([(n, m), (1, m), (*batch, n, m), (*[1] * len(batch), 1, m)])
            mask = torch.rand(shape) > 0.3 if random.random() < 0.5 else leaf(*shape)
        kw = {"is_causal": mask is None and random.random() < 0.4, "scale": random.choice([None, 0.3])}
        agree("scaled_dot_product_attention", [leaf(*batch, n, e), leaf(*batch, m, e), leaf(*batch, m, v), mask], kw)


@pytest.mark.parity
def test_multi_head_attention():
    for _ in range(80):
        heads, n, m, batch = (random.randint(1, 3) for _ in range(4))
        e = heads * random.choice([1, 2])
        separate, shared = random.random() < 0.3, random.random() < 0.4
        q = leaf(n, batch, e)
        k = v = q
        if separate or not shared:
            k, v = (leaf(m, batch, random.randint(1, 4)) for _ in range(2)) if separate else [leaf(m, batch, e)] * 2
        m = k.shape[0]
        mask = random.choice([None, torch.rand(n, m) < 0.3, torch.randn(batch * heads, n, m, dtype=D)])
        padding = random.choice([None, torch.rand(batch, m) < 0.3])
        for t in (mask, padding):
            if t is not None and t.dtype == torch.bool:
                t[..., 0] = False
        if mask is not None and padding is not None and mask.dtype == torch.bool and random.random() < 0.5:
            mask = None
        extra = random.random() < 0.3
        args = [
            q, k, v, e, heads, None if separate else leaf(3 * e, e), leaf(3 * e), leaf(1, 1, e) if extra else None, leaf(1, 1, e) if extra else None,
            random.random() < 0.3, 0.0, leaf(e, e), leaf(e),
        ]  # fmt: skip
        kw = {"key_padding_mask": padding, "attn_mask": mask, "need_weights": random.random() < 0.6, "average_attn_weights": random.random() < 0.5}
        if separate:
            sizes = zip("qkv", (e, k.shape[2], v.shape[2]), strict=True)
            kw |= {"use_separate_proj_weight": True, **{f"{c}_proj_weight": leaf(e, s) for c, s in sizes}}
        agree("multi_head_attention_forward", args, kw)


@pytest.mark.parity
def test_sequences_that_are_padded():
    """The first says of which dtype and trailing sizes the result is; what comes back shares no memory."""
    made = "R = t.nn.utils.rnn; x = t.arange(3.0).requires_grad_(); p = R.pad_sequence; "
    lists = ("[x, t.ones(1).double()]", "[t.ones(2).double(), x]", "[t.ones(1).int() * 2, t.tensor([0.7, 1.7])]", "[t.ones(2).bool(), t.ones(3) * 2]",
             "[x[:, None], t.ones(1)]", "[t.ones(2, 2), t.ones(1, 1), t.ones(3, 1)]", "[t.ones(2, 1), t.ones(1, 2)]", "[t.ones(2), t.ones(2, 1)]",
             "[x.sum(), x]", "[x, x.sum()]")
    check({f"{given}, {more}": f"{made}y = p({given}, {more}); y.requires_grad and (y * y).sum().backward(); r = y, y.stride(), x.grad"
           for given in lists for more in ("", "True", "True, 0.5", "padding_side='left'")}, kinds=True)
    check({f"back {first}": f"{made}y = p([x, x[:1]], {first}); z = R.unpad_sequence(y, t.tensor([3, 1]), {first})\n"
           "r = [(v, v.stride(), v._is_view()) for v in z]; z[0].mul_(2); (z[0].sum() + z[1].sum()).backward(); r = r, x.grad, y, y.stride()"
           for first in ("True", "False")}, kinds=True)
    check({f"back of {given}": f"y = t.arange(6.).reshape(3, 2){given}; w = y.detach(); r = y.exp() if y.requires_grad else y\n"
           "z = R.unpad_sequence(y, t.tensor([2, 1])); r = z, y, y.stride(), w.shape; z[0].sum().backward(); r = r, y.grad"
           for given in ("", " * t.ones(2, requires_grad=True)", ".requires_grad_()", ".double().requires_grad_().clone()")}, kinds=True)  # fmt: skip


@pytest.mark.parity
def test_ctc_loss():
    for _ in range(80):
        steps, batch, classes, most = random.randint(1, 8), random.randint(1, 3), random.randint(2, 5), random.randint(1, 4)
        blank = random.randrange(classes)
        labels = [c for c in range(classes) if c != blank]
        counts, lengths = [random.randint(0, most) for _ in range(batch)], [random.randint(1, steps) for _ in range(batch)]
        targets = torch.tensor([[random.choice(labels) for _ in range(most)] for _ in range(batch)], dtype=random.choice([torch.int32, torch.int64]))
        if random.random() < 0.5:
            targets = torch.cat([row[:n] for row, n in zip(targets, counts, strict=True)])
        if random.random() < 0.5:
            counts, lengths = torch.tensor(counts), torch.tensor(lengths)
        else:
            counts, lengths = tuple(counts), tuple(lengths)
        kw = {"blank": blank, "reduction": random.choice(["mean", "sum"]), "zero_infinity": True}
        x = leaf(steps, batch, classes)
        y = ours.from_numpy(x.detach().numpy().copy()).requires_grad_()
        theirs = T.ctc_loss(x.log_softmax(2), targets, lengths, counts, **kw)
        mine = F.ctc_loss(y.log_softmax(2), *(twins(t) for t in (targets, lengths, counts)), **kw)
        close(mine, theirs, "ctc_loss", 1e-8)
        theirs.backward()
        mine.backward()
        close(y.grad, x.grad, "gradient of ctc_loss", 1e-8)


@pytest.mark.parity
def test_embedding_bag():
    for _ in range(100):
        n, width = random.randint(1, 6), random.randint(1, 4)
        kw = {"mode": random.choice(["sum", "mean", "max"])}
        if random.random() < 0.5:
            x = torch.randint(0, n, (random.randint(1, 4), random.randint(1, 4)))
        else:
            count = random.randint(0, 8)
            x = torch.randint(0, n, (count,))
            offsets = sorted([0] + [random.randint(0, count) for _ in range(random.randint(0, 3))])
            if random.random() < 0.4:
                kw["include_last_offset"] = True
                offsets.append(count)
            kw["offsets"] = torch.tensor(offsets)
        if random.random() < 0.4:
            kw["padding_idx"] = random.randint(-n, n - 1)
        if kw["mode"] == "sum" and random.random() < 0.5:
            kw["per_sample_weights"] = leaf(*x.shape)
        agree("embedding_bag", [x, leaf(n, width)], kw)


@pytest.mark.parity
@pytest.mark.parametrize("n", [2, 3])
def test_fractional_max_pool(n):
    for _ in range(30):
        sizes = [random.randint(3, 7) for _ in range(n)]
        k = tuple(random.randint(1, 2) for _ in range(n))
        out = tuple(random.randint(1, s - w) for s, w in zip(sizes, k, strict=True))
        kw = {"output_size": out, "_random_samples": torch.rand(2, 2, n, dtype=D)}
        agree(f"fractional_max_pool{n}d", [leaf(2, 2, *sizes), k], kw)


@pytest.mark.parity
@pytest.mark.parametrize("n", [1, 2, 3])
def test_resizing_of_many_planes_and_to_few_places(n):
    """Small planes are resized some together, of which the last may be fewer; what no place reads has no gradient."""
    for mode in RESIZE[n]:
        for _ in range(8):
            sizes, size = ([random.choice((1, 2, 3, 5, 11, 12, 24)) for _ in range(n)] for _ in range(2))
            kw = {"size": size, "mode": mode, "antialias": mode == "lanczos"}
            if "linear" in mode or mode == "bicubic":
                kw["align_corners"] = random.random() < 0.5
                kw["antialias"] = n == 2 and random.random() < 0.5
            if kw["antialias"]:  # (as above)
                kw["size"] = [max(v, 2) for v in size]
            agree("interpolate", [leaf(random.randint(1, 7), random.choice((1, 3, 17)), *sizes)], kw)


@pytest.mark.parity
@pytest.mark.parametrize("n", [1, 2, 3])
def test_pools_of_narrow_and_wide_rows(n):
    """With ties, nan and infinities; windows with gaps, over whole rows, and in the padding."""
    for turn in range(40):
        sizes = [random.choice((1, 2, 3, 5, 9, 16, 34) if n == 3 else (1, 2, 5, 9, 14, 30, 70)) for _ in range(n)]
        k, stride, dilation, parts = ([random.randint(1, m) for _ in range(n)] for m in (4, 4, 2, 6))
        padding, flag = [random.randint(0, v // 2) for v in k], random.random() < 0.5
        x = torch.randn(2, 2, *sizes, dtype=D)
        if turn % 3 == 0:
            x = x.round()
        if turn % 5 == 0:
            x[torch.rand_like(x) < 0.4] = -math.inf
        if all(v + 2 * p >= m * (w - 1) + 1 for v, p, m, w in zip(sizes, padding, dilation, k, strict=True)):
            agree(f"max_pool{n}d", [x.requires_grad_(turn % 5 != 0), k, stride, padding, dilation, flag], {"return_indices": True})
        agree(f"adaptive_max_pool{n}d", [x.detach(), parts], {"return_indices": True})
        if n > 1 and all(v > p + w for v, p, w in zip(sizes, parts, k, strict=True)):
            kw = {"output_size": parts, "_random_samples": torch.rand(2, 2, n, dtype=D), "return_indices": True}
            agree(f"fractional_max_pool{n}d", [x.detach(), k], kw)
        agree(f"adaptive_avg_pool{n}d", [leaf(2, 2, *sizes), parts], {})
        if all(v + 2 * p >= w for v, p, w in zip(sizes, padding, k, strict=True)):
            agree(f"avg_pool{n}d", [leaf(2, 2, *sizes), k, stride, padding, flag, turn % 2 == 0], {})


@pytest.mark.parity
def test_modules():
    torch.manual_seed(0)
    theirs = torch.nn.AdaptiveLogSoftmaxWithLoss(16, 20, [5, 10, 15], div_value=2.0)
    mine = ours.nn.AdaptiveLogSoftmaxWithLoss(16, 20, [5, 10, 15], div_value=2.0)
    mine.load_state_dict({k: twins(v) for k, v in theirs.state_dict().items()})
    assert repr(mine) == repr(theirs)
    x, t = torch.randn(12, 16), torch.randint(0, 20, (12,))
    a, b = mine(twins(x), twins(t)), theirs(x, t)
    close(a.output, b.output, "output", 1e-5)
    a.loss.backward()
    b.loss.backward()
    for p, q in zip(mine.parameters(), theirs.parameters(), strict=True):
        close(p.grad, q.grad, "gradient", 1e-5)
    assert mine.predict(twins(x)).tolist() == theirs.predict(x).tolist()
    for name, args, shape in [
        ("Upsample", (None, 2, "bilinear"), (1, 2, 3, 3)), ("UpsamplingNearest2d", (None, 2), (1, 2, 3, 3)), ("Fold", ((4, 4), 2), (1, 8, 9)),
        ("UpsamplingBilinear2d", ((5, 6),), (1, 2, 3, 3)), ("Unfold", (2,), (1, 2, 4, 4)),
    ]:  # fmt: skip
        theirs, mine = getattr(torch.nn, name)(*args), getattr(ours.nn, name)(*args)
        x = torch.randn(shape)
        close(mine(twins(x)), theirs(x), name, 1e-5)
        assert repr(mine) == repr(theirs)


POOLS = {f"{kind}max_pool{n}d": n for n in (1, 2, 3) for kind in ("", "adaptive_", "fractional_") if (kind, n) != ("fractional_", 1)}


@pytest.mark.parametrize("name", POOLS)
def test_the_largest_of_several_nan(name):
    """The last of them, to which the gradient goes."""
    n, rng = POOLS[name], np.random.default_rng(0)
    for size in (2, 3):
        x = np.round(rng.standard_normal((1, 2, *[5] * n)))
        x[rng.random(x.shape) < 0.4] = np.nan
        options = {"output_size": 2, "_random_samples": rng.random((1, 2, n))} if name.startswith("fractional") else {}
        found = []
        for lib in (torch, ours):
            leaf = lib.tensor(x, requires_grad=True)
            given = {k: lib.tensor(v) if isinstance(v, np.ndarray) else v for k, v in options.items()}
            y, index = getattr(lib.nn.functional, name)(leaf, size, return_indices=True, **given)
            y.sum().backward()
            found.append((y.detach().numpy(), index.numpy(), leaf.grad.numpy()))
        for theirs, mine in zip(*found, strict=True):
            np.testing.assert_array_equal(mine, theirs)


@pytest.mark.parametrize("n", [1, 2, 3])
def test_windows_of_max_pooling_that_lie_in_the_padding(n):
    """They have the least number and the place that PyTorch says (behind the plane, where no gradient goes)."""
    for size, kernel, stride, dilation, ceil in ((1, 2, None, 2, False), (1, 2, 1, 2, True), (2, 2, 2, 4, True), (3, 2, 2, 4, True), (4, 2, 2, 4, True)):
        x = np.arange(1.0, 1 + size**n, dtype=np.float32).reshape(1, 1, *[size] * n)
        call = f"max_pool{n}d"
        got, want = (getattr(lib.nn.functional, call)(lib.tensor(x), kernel, stride, 1, dilation, ceil, True) for lib in (ours, torch))
        for a, b in zip(got, want, strict=True):
            np.testing.assert_array_equal(a.numpy(), b.numpy())
        leaf = ours.tensor(x, requires_grad=True)
        y = getattr(ours.nn.functional, call)(leaf, kernel, stride, 1, dilation, ceil)
        y[y.isfinite()].sum().backward()
        assert leaf.grad.sum().item() == y.isfinite().sum().item()


@pytest.mark.parity
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_a_cells_second_state_may_have_another_dtype(dtype):
    code = f"c = t.linspace(-1, 1, 6).reshape(2, 3).to(t.{dtype}).requires_grad_(); h, n = t.lstm_cell(x, (c.detach() * 0 + s, c), w, u, b, b)\n"
    code = code.replace("c.detach() * 0 + s", "s") + "(h.sum() + n.sum()).backward(); r = h, n, c.grad, x.grad"
    weights = "w, u, b = (t.linspace(-1, 1, n).reshape(s) for n, s in ((24, (12, 2)), (36, (12, 3)), (12, (12,))))"
    check({"lstm_cell": code}, f"x = t.ones(2, 2).requires_grad_(); s = t.full((2, 3), .3); {weights}", tolerance=2e-3)


@pytest.mark.parity
@pytest.mark.parametrize("dtype", ["float64", "float16", "int64", "bool", "complex64"])
def test_a_convolutions_bias_of_another_dtype(dtype):
    """Where padding is given in words PyTorch does not look at the bias' dtype."""
    before = f"x = t.arange(16.).reshape(1, 1, 4, 4); w = t.ones(2, 1, 2, 2); b = t.tensor([1, 0]).to(t.{dtype})"
    options = ("", ", padding='valid'", ", padding='same'", ", padding=1", ", stride=2, padding='valid'")
    check({call: f"r = F.conv2d(x, w, b{call})" for call in options}, before)


@pytest.mark.parity
@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
@pytest.mark.parametrize("size", [(16, 16), (7, 9), (20, 11), (33, 50), (3, 24)])
def test_smooth_resizing_rounds_as_pytorch_does(mode, size):
    """To the last bit where weights are few: torchvision rounds the result to bytes, and halves must fall on the same side."""
    image = np.random.default_rng(0).integers(0, 256, (2, 3, 20, 24)).astype(np.float32)
    found, expected = (
        np.asarray(t.nn.functional.interpolate(t.from_numpy(image), size=size, mode=mode, antialias=True, align_corners=False)) for t in (ours, torch)
    )
    np.testing.assert_allclose(found, expected, rtol=0, atol=0 if mode == "bilinear" and size == (16, 16) else 2e-4)


@pytest.mark.parity
@pytest.mark.parametrize("size", [(2, 1, 3, 4), (2, 1, 2, 3, 4)])
def test_affine_grid_keeps_nothing(size):
    """It may be passed any number of times where nodes that saved nothing may be, and its matrices may be changed before."""
    found = []
    for t in (torch, ours):
        before = t is ours and ours.autograd.set_graph_reuse("torch")
        try:
            n = len(size) - 2
            theta = t.linspace(-1, 1, 2 * n * (n + 1)).reshape(2, n, n + 1).requires_grad_()
            y = t.nn.functional.affine_grid(theta, size, align_corners=False)
            for _ in range(2):
                with t.no_grad():
                    theta.mul_(2)
                (y * t.linspace(0, 1, y.numel()).reshape(y.shape)).sum().backward()
            (g,) = t.autograd.grad((y * y).sum(), theta, create_graph=True)
            (h,) = t.autograd.grad((g * g).sum(), theta)
            found.append([y.grad_fn.name(), *(v.detach().numpy() for v in (theta.grad, g, h))])
        finally:
            if before:
                ours.autograd.set_graph_reuse(before)
    assert found[0][0] == found[1][0]
    for a, b in zip(found[0][1:], found[1][1:], strict=True):
        np.testing.assert_allclose(b, a, rtol=1e-5, atol=1e-5)
