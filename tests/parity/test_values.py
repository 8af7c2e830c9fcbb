"""Values, dtypes and gradients of single calls at the edges of what an op takes."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from .snippets import check, difference  # noqa: E402

BEFORE = "g = lambda *s: t.arange(1, 1 + int(np.prod(s)), dtype=t.float32).reshape(s)"


@pytest.mark.parity
def test_gradients_of_views_of_tensors_that_share_memory():
    cases = {
        "unfold": ("g(3, 1)", "x.expand(3, 5)", "e.unfold(1, 2, 1)"),
        "unfold of a transpose": ("g(4, 3)", "x.T", "e.unfold(1, 2, 1)"),
        "unfold of dim 0": ("g(1, 4)", "x.expand(5, 4)", "e.unfold(0, 3, 2)"),
        "unfold twice": ("g(6)", "x.unfold(0, 4, 1)", "e.unfold(1, 2, 1)"),
        "as_strided, columns": ("g(3, 1)", "x.expand(3, 5)", "e.as_strided((3, 2), (1, 0))"),
        "as_strided, rows": ("g(1, 3)", "x.expand(4, 3)", "e.as_strided((2, 3), (0, 1))"),
        "as_strided, windows": ("g(3)", "x[:, None].expand(3, 4)", "e.as_strided((2, 2), (1, 1))"),
        "as_strided of windows": ("g(6)", "x.unfold(0, 3, 1)", "e.as_strided((3,), (1,), 1)"),
        "as_strided, windows of a dense tensor": ("g(6)", "x * 1", "e.as_strided((3, 3), (1, 1))"),
        "as_strided of a part": ("g(4, 4)", "x[:, ::2]", "e.as_strided((4, 2), (4, 2))"),
        "as_strided of a transpose": ("g(3, 4)", "x.T", "e.as_strided((5,), (2,), 1)"),
    }
    check({
        name: f"x = {x}.requires_grad_(); e = {e}; y = {y}; r = (y, *t.autograd.grad((y * g(*y.shape)).sum(), [e, x]))"
        for name, (x, e, y) in cases.items()
    }, BEFORE)  # fmt: skip


@pytest.mark.parity
def test_as_strided_scatter_counts_from_the_storage_and_keeps_strides():
    check({
        f"{x}, {geometry}": f"x = {x}; y = t.as_strided_scatter(x, -g(2, 2), {geometry}); r = y, y.stride()"
        for x in ("g(3, 4)", "g(3, 4).T", "g(4, 4)[1:]", "g(4, 4)[:, 1:3]", "g(6, 4)[::2]")
        for geometry in ("(2, 2), (2, 1)", "(2, 2), (4, 1), 4", "(2, 2), (1, 2), 5")
    }, BEFORE)  # fmt: skip


def test_gradient_of_as_strided_scatter():
    """Against finite differences: PyTorch's gradient by the input is known to be wrong (its own gradcheck fails)."""
    import autograd_nb as ag

    x = ag.arange(12, dtype=ag.float64).reshape(4, 3).requires_grad_()
    s = ag.arange(4, dtype=ag.float64).reshape(2, 2).requires_grad_()
    for look in (lambda x: x, lambda x: x.T, lambda x: x[1:]):
        assert ag.autograd.gradcheck(lambda x, s, look=look: ag.as_strided_scatter(look(x), s, (2, 2), (3, 1), 4), (x, s))


@pytest.mark.parity
def test_scalar_indices():
    x, zero = "g(3)", "t.tensor(1.)"
    calls = [
        f"{x}.scatter(0, t.tensor(1), t.tensor(5.))", f"{x}.scatter(0, t.tensor(1), 5.)", f"{zero}.scatter(0, t.tensor(0), t.tensor(5.))",
        f"{x}.scatter(0, t.tensor(1), g(1))", f"{x}.scatter(0, t.tensor([1]), t.tensor(5.))", f"{zero}.scatter(0, t.tensor([0]), g(1))",
        f"{x}.scatter(0, t.tensor([1, 2]), t.tensor(5.))", "g(3, 2).scatter(0, t.tensor(1), t.tensor(5.))",
        f"{x}.scatter_(0, t.tensor(1), 5.)", f"{x}.scatter_add(0, t.tensor(1), t.tensor(5.))", f"{x}.scatter_add_(0, t.tensor(1), t.tensor(5.))",
        *[f"{v}.scatter_reduce(0, t.tensor(0), t.tensor(5.), '{how}')" for v in (x, zero) for how in ("sum", "amax", "mean", "prod")],
        f"{x}.gather(0, t.tensor(1))", f"{zero}.gather(0, t.tensor(0))", f"{zero}.gather(0, t.tensor([0]))", f"{zero}.gather(0, t.tensor([0, 0, 0]))",
        "g(3, 2).gather(0, t.tensor(1))", f"{x}.index_select(0, t.tensor(1))", f"{zero}.index_select(0, t.tensor(0))",
        f"{zero}.index_select(0, t.tensor([0]))", f"{zero}.index_select(0, t.tensor([0, 0]))", "g(3, 2).index_select(1, t.tensor(1))",
        f"t.take_along_dim({x}, t.tensor([1]), 0)", f"t.take_along_dim({x}, t.tensor(1))", f"t.take_along_dim({x}, t.tensor(1), 0)",
        f"t.take_along_dim({zero}, t.tensor(0))", f"t.take_along_dim({zero}, t.tensor(0), 0)", f"t.take({x}, t.tensor(1))",
        f"{x}.index_add(0, t.tensor(1), t.tensor(5.))", f"{zero}.index_add(0, t.tensor(0), t.tensor(5.))",
        f"{x}.index_add(0, t.tensor(1), g(1))", f"{zero}.index_add(0, t.tensor([0]), g(1))", f"{x}.index_copy(0, t.tensor(1), t.tensor(5.))",
        f"{x}.index_copy(0, t.tensor(1), g(1))", f"{zero}.index_copy(0, t.tensor(0), t.tensor(5.))", f"{x}.index_fill(0, t.tensor(1), 5.)",
        f"{zero}.index_fill(0, t.tensor([0]), 5.)", f"{x}.index_put((t.tensor(1),), t.tensor(5.))", f"{x}.index_put((t.tensor(1),), g(1))",
        *[f"{v}.{name}" for v in (x, zero, "g(2, 3)", "g(2, 3, 4)") for name in ("T", "mT", "H", "mH", "adjoint()")],
    ]  # fmt: skip
    codes = {call: f"r = {call}" for call in calls}
    for call in ("x.gather(0, t.tensor(1))", "x.scatter(0, t.tensor(1), s)", "x.scatter_add(0, t.tensor(1), s)", "x.index_select(0, t.tensor(1))"):
        codes[f"gradient of {call}"] = (
            f"x = g(3).requires_grad_(); s = t.tensor(5.).requires_grad_(); y = {call}; r = y, t.autograd.grad((y * y).sum(), [x, s], allow_unused=True)"
        )
    check(codes, BEFORE)


@pytest.mark.parity
def test_dtype_of_sums():
    data = {"float32": "[1.5, 2.7]", "float64": "[0.5, 0.7]", "int64": "[300, 2]", "int32": "[1, 2**31 - 1]", "bool": "[True, True]", "int8": "[100, 100]"}
    check({
        f"{d}.{call}, {to}": f"x = t.tensor({values}, dtype=t.{d}); r = x.{call.replace('D', 't.' + to)}"
        for d, values in data.items()
        for to in ("bool", "uint8", "int8", "int16", "int32", "int64", "float32", "float64", "complex64")
        for call in ("sum(dtype=D)", "sum(0, dtype=D)", "prod(dtype=D)", "cumsum(0, dtype=D)", "nansum(dtype=D)")
        if not (call.startswith("nansum") and to == "complex64") and not (call.startswith("cumsum") and to == "bool")
    })  # fmt: skip


@pytest.mark.parity
def test_scatter_that_combines_has_no_derivative():
    calls = ["x.scatter(0, i, s, reduce='add')", "x.scatter(0, i, s, reduce='multiply')", "(x * 1).scatter_(0, i, s, reduce='add')",
             "x.scatter(0, i, 2., reduce='add')", "(x * 1).scatter_(0, i, 2., reduce='multiply')",
             "x.detach().scatter(0, i, s, reduce='multiply')"]  # fmt: skip
    before = "x = g(3).requires_grad_(); s = g(2).requires_grad_(); i = t.tensor([0, 2])"
    found = [difference(f"y = {call}; r = y; y.sum().backward(); r = x.grad, s.grad", f"{BEFORE}; {before}", kinds=True) for call in calls]
    assert not any(found), "\n".join(found)
    check({call: f"r = {call}" for call in calls}, f"{BEFORE}; {before}")


@pytest.mark.parity
def test_dtypes_of_running_statistics():
    kinds = ("float32", "float64")
    check({
        f"{x}, {m}, {v}, {own}": f"z = t.zeros(2, dtype=t.{m}); o = t.ones(2, dtype=t.{v})\n"
        f"r = F.instance_norm(g(3, 2, 4).to(t.{x}), z, o, use_input_stats={own}), z, o"
        for x in kinds for m in kinds for v in kinds for own in (True, False)
    }, BEFORE)  # fmt: skip
    check({f"{a}, {b}": f"r = F.instance_norm(g(3, 2, 4), {a}, {b})" for a, b in (("None", "t.ones(2)"), ("t.ones(2)", "None"))}, BEFORE)


@pytest.mark.parity
def test_ends_of_ranges_that_the_dtype_has_no_place_for():
    ranges = ["0, 300", "300, 0", "-1, 5", "-200, 200", "0, 1e10", "2.7, 9.9", "0, 1e40", "-129, 3", "0, 5"]
    check({
        f"{name}({ends}), {d}": f"r = t.{name}({ends}, 4, dtype=t.{d})"
        for name in ("linspace", "logspace") for ends in ranges for d in ("int8", "uint8", "int32", "int64", "float32")
        if not (name == "logspace" and d != "int8")
    })  # fmt: skip
    check({d: f"r = t.arange(0, 5, dtype=t.{d})" for d in ("bool", "uint8", "float16")})


@pytest.mark.parity
def test_an_input_times_0_is_not_read():
    """beta=0, also where a gradient of zeros flows to the input."""
    nothing = "x = t.full((2, 2), float('nan'), requires_grad={})"
    for needed in (True, False):
        check({
            call: f"{nothing.format(needed)}; y = {call}; r = y, *t.autograd.grad(y.sum(), [x, v] if {needed} else [v])"
            for call in ("t.addr(x, v, g(2), beta=0)", "t.addmm(x, v[:, None], g(1, 2), beta=0)", "t.addmv(x[0], g(2, 2), v, beta=0, alpha=2)",
                         "t.baddbmm(x[None], v[None, :, None], g(1, 1, 2), beta=0)", "t.addbmm(x, v[None, :, None], g(1, 1, 2), beta=0, alpha=0)")
        }, BEFORE + "; v = g(2).requires_grad_()")  # fmt: skip


@pytest.mark.parity
def test_permutations_in_half_precision():
    check({f"{pivots}": f"r = t.lu_unpack(g(2, 2).half(), t.tensor({pivots}, dtype=t.int32))" for pivots in ([2, 2], [1, 2])}, BEFORE)


@pytest.mark.parity
def test_dtypes_of_unpooling_and_of_the_bias_of_transposed_convolutions():
    unpool = {f"max_unpool{n}d, {d}": f"r = F.max_unpool{n}d(t.ones((1,) * {n + 2}).to(t.{d}), t.zeros((1,) * {n + 2}, dtype=t.int64), 2)"
              for n in (1, 2, 3) for d in ("int64", "int32", "bool", "complex64", "float64")}  # fmt: skip
    bias = {f"bias of {n} dims, {d}": f"r = F.conv_transpose{n}d(t.ones((1, 2) + (3,) * {n}), t.ones((2, 1) + (2,) * {n}), t.ones(1).to(t.{d}))"
            for n in (1, 2, 3) for d in ("int64", "bool", "float64", "complex64")}  # fmt: skip
    check(unpool | bias, BEFORE)


@pytest.mark.parity
def test_put_keeps_the_order_of_dims():
    check({x: f"y = {x}.put(t.tensor([1, 4]), g(2)); r = y, y.stride()" for x in ("g(3, 4)", "g(3, 4).T", "g(3, 8)[:, ::2].T", "g(2, 3, 2).permute(1, 2, 0)")},
          BEFORE)  # fmt: skip


@pytest.mark.parity
def test_resizing_counts_as_a_change():
    check({sizes: f"x = g(2, 3); v = x._version; x.resize_({sizes}); r = x._version - v" for sizes in ("2, 3", "3, 2", "4", "0")}, BEFORE)


@pytest.mark.parity
@pytest.mark.parametrize("weights", [True, False])
def test_dtypes_of_attention_masks(weights):
    given = "F.multi_head_attention_forward(*[g(3, 1, 2).to(t.{})] * 3, 2, 1, g(6, 2).to(t.{}), None, None, None, False, 0., g(2, 2).to(t.{}), None"
    check({
        f"{d}, {mask}": f"r = {given.format(d, d, d)}, need_weights={weights}, {mask})[0]"
        for d in ("float32", "float64")
        for mask in (*(f"attn_mask=t.zeros(3, 3).to(t.{e})" for e in ("float32", "float64", "bool", "int64")),
                     *(f"key_padding_mask=t.zeros(1, 3).to(t.{e})" for e in ("float32", "float64", "bool")),
                     "attn_mask=t.zeros(3, 3), key_padding_mask=t.zeros(1, 3, dtype=t.float64)")
    }, BEFORE)  # fmt: skip


@pytest.mark.parity
def test_the_place_in_the_storage_of_complex_numbers_made_of_their_parts():
    check({x: f"x = {x}; z = t.view_as_complex(x); r = [(y.storage_offset(), y) for y in (z, z[1:], t.view_as_real(z)[1:], z.as_strided((2,), (1,), 0))]"
           for x in ("g(4, 2)", "g(4, 2)[1:]", "g(4, 3, 2)[1, 1:]", "g(3, 6)[1].view(3, 2)")}, BEFORE)  # fmt: skip
