"""``out=`` of other shapes, strides and dtypes, and numbers beside tensors: what is written where, or that it is refused."""

from __future__ import annotations

import inspect
import itertools

import pytest

torch = pytest.importorskip("torch")

import autograd_nb as ours  # noqa: E402

from .snippets import check, outcome  # noqa: E402

OUTPUTS = {
    "plain": "t.zeros(6)", "a transpose": "t.zeros(3, 2).T", "every second": "t.zeros(12)[::2]", "transpose of (2, 3)": "t.zeros(2, 3).T",
    "a column": "t.zeros(6, 2)[:, 0]", "float64": "t.zeros(6, dtype=t.float64)", "int64": "t.zeros(6, dtype=t.int64)",
    "float16": "t.zeros(6, dtype=t.float16)", "int32": "t.zeros(6, dtype=t.int32)", "empty": "t.zeros(0)", "larger": "t.zeros(3, 4)",
    "a leaf that requires grad": "t.zeros(6).requires_grad_()", "part of an array": "t.zeros(12)[:8]",
}  # fmt: skip
RANGES = ("t.arange(6., out=o)", "t.arange(6, out=o)", "t.linspace(0, 1, 6, out=o)", "t.logspace(0, 1, 6, out=o)", "t.range(0, 5, out=o)")
FILLS = ("t.zeros(6, out=o)", "t.ones(6, out=o)", "t.full((6,), 2., out=o)", "t.zeros(2, 3, out=o)", "t.ones(3, 2, out=o)", "t.eye(2, 3, out=o)")
FOLDS = ("t.cumsum(x, 0, out=o)", "t.cumprod(x, 0, out=o)", "t.sum(x.repeat(2, 1), 0, out=o)", "t.prod(x.repeat(2, 1), 0, out=o)",
         "t.mean(x.repeat(2, 1), 0, out=o)", "t.add(x, x, out=o)", "t.exp(x, out=o)",
         "t.cat([x], out=o)", "t.mul(x, 2, out=o)", "t.randperm(6, out=o); o = o.sum()")  # fmt: skip


@pytest.mark.parity
@pytest.mark.parametrize("calls", (RANGES, FILLS, FOLDS), ids=("ranges", "fills", "folds"))
def test_outputs(calls):
    before = "x = t.arange(1., 7.)"
    check({f"{call}, {name}": f"o = {o}; {call}\nr = o, o.stride()" for call in calls for name, o in OUTPUTS.items()}, before)


@pytest.mark.parity
@pytest.mark.parametrize("name", ("sum", "mean", "prod", "nansum", "nanmean", "cumsum", "cumprod"))
def test_an_output_has_the_dtype_that_is_asked_for(name):
    dtypes = ("float32", "float64", "int64", "bool")
    check({
        f"{x}, {d}, out= of {o}": f"o = t.empty({'2' if name.startswith('cum') else '()'}, dtype=t.{o}); "
        f"r = t.{name}(t.ones(2, dtype=t.{x}), 0, dtype=t.{d}, out=o)"
        for x in ("float32", "int64") for d in dtypes for o in dtypes if d != o
    })  # fmt: skip


@pytest.mark.parity
@pytest.mark.parametrize("dtype", ("float32", "float64", "int64"))
def test_what_makes_tensors_is_asked_for_the_dtype_of_its_output(dtype):
    made = ("zeros(2", "ones(2", "empty(2", "full((2,), 1", "eye(2", "arange(2", "range(0, 1", "linspace(0, 1, 2", "linspace(t.tensor(0.), 1, 2",
            "linspace(0, 1, -2", "logspace(0, 1, 2", "logspace(0, t.tensor(1), 2", "rand(2", "randn(2", "randint(0, 2, (2,)", "randperm(2",
            "normal(0., 1., (2,)", "fft.fftfreq(2", "fft.rfftfreq(2")  # fmt: skip
    drawn = "rand|empty|normal"  # (whose values are not compared)
    check({
        f"{call}), out= of {o}": f"o = t.zeros({'2, 2' if 'eye' in call else 2}, dtype=t.{o}); r = t.{call}, dtype=t.{dtype}, out=o)\n"
        f"if any(n in {call!r} for n in {drawn!r}.split('|')): r = r.dtype, r.shape"
        for call in made for o in ("float32", "float64", "int64", "float16")
    }, kinds="subclasses")  # fmt: skip


@pytest.mark.parity
def test_outputs_that_cannot_hold_the_result():
    joined = [f"t.{name}([{parts}], out=o)" for name in ("cat", "concat", "stack", "hstack", "vstack", "dstack", "column_stack")
              for parts in ("x", "x, x.to(t.complex64)", "x.int()", "x.clone().requires_grad_()", "x, t.ones(3, 1)", "x[:0]")]  # fmt: skip
    check({f"{call}, {d}": f"x = t.ones(2); o = t.zeros(0, dtype=t.{d}); {call}; r = o" for call in joined for d in ("int64", "bool", "float32")},
          kinds="subclasses")  # fmt: skip
    check({f"float_power, {p}, {d}": f"x = t.ones(2); o = t.zeros(2, dtype=t.{d}); t.float_power(x, {p}, out=o); r = o"
           for p in ("2", "x", "2j") for d in ("int64", "float32", "float64", "complex64", "complex128")})  # fmt: skip
    drawn = ("x, 1.", "x, x", "0., x", "x.int(), 1.", "x.int(), x", "x, -1.", "0., -x", "x[:0], x[:0]", "x.clone().requires_grad_(), 1.")
    check({f"normal({a}), {d}": f"x = t.ones(2); o = t.zeros(x.shape, dtype=t.{d})[:2 if '[:0]' not in {a!r} else 0]; r = t.normal({a}, out=o).dtype"
           for a in drawn for d in ("int64", "bool", "float32", "float64")}, kinds="subclasses")  # fmt: skip


@pytest.mark.parity
@pytest.mark.parametrize("name", ("sum", "mean", "nansum", "nanmean", "amax", "logsumexp"))
def test_an_output_counts_how_often_it_was_written_to(name):
    check({o: f"o = {o}; t.{name}(t.ones(2, 3), 1, out=o); r = o, o._version" for o in ("t.zeros(2)", "t.zeros(3)", "t.zeros(0)", "t.zeros(4)[::2]")})


@pytest.mark.parity
def test_no_dims_are_all_but_for_any_and_all():
    check({f"{c}, {x}": f"x = {x}; r = {c}"
           for x in ("t.ones(2, 3)", "t.eye(2)", "t.tensor(2.)", "t.zeros(0, 2)", "t.ones(2, dtype=t.uint8)")
           for c in ("t.any(x, ())", "t.all(x, ())", "x.any(())", "x.all(dim=[])", "t.any(x, (), True)", "t.any(x, (), out=t.empty(0, dtype=t.bool))",
                     "t.sum(x, ())", "t.amax(x.float(), ())")})  # fmt: skip


@pytest.mark.parity
def test_a_resized_output_stays_in_its_memory():
    check({
        call: f"x = t.arange(1., 7.); b = t.zeros(12); o = b[2:8]; {call}; r = b, o, o.shape"
        for call in ("t.add(x.reshape(2, 3), 1, out=o)", "t.zeros(2, 2, out=o)", "t.arange(4., out=o)", "t.cat([x[:2], x[:2]], out=o)", "t.exp(x[:1], out=o)")
    })  # fmt: skip


#: calls with a number ``a``; PyTorch takes 0-d tensors for it that do not require grad
WITH_NUMBERS = [
    "t.add(x, x, alpha=a)", "x.clone().add_(x, alpha=a)", "t.sub(x, x, alpha=a)", "t.rsub(x, x, alpha=a)", "t.addcmul(x, x, x, value=a)",
    "t.addcdiv(x, x, x, value=a)", "x.clone().addcmul_(x, x, value=a)", "t.addmm(m, m, m, beta=a)", "t.addmm(m, m, m, alpha=a)",
    "t.addmv(x, m, x, alpha=a)", "t.addr(m, x, x, alpha=a)", "t.baddbmm(m[None], m[None], m[None], alpha=a)", "t.addbmm(m, m[None], m[None], beta=a)",
    "x.index_add(0, t.arange(2), x, alpha=a)", "x.clone().index_add_(0, t.arange(2), x, alpha=a)", "F.pad(x, (1, 1), value=a)",
    "F.leaky_relu(x, a)", "F.elu(x, a)", "F.threshold(x, a, 0.)", "F.hardtanh(x, -1., a)", "F.softplus(x, a)", "F.celu(x, a)",
    "t.full((2,), a)", "t.full_like(x, a)", "x.new_full((2,), a)", "t.nan_to_num(x, a)", "F.hardshrink(x, a)", "F.softshrink(x, a)",
    "t.arange(0, a)", "F.huber_loss(x, x, delta=a)", "F.smooth_l1_loss(x, x, beta=a)", "F.layer_norm(x, (2,), eps=a)",
    "F.margin_ranking_loss(x, x, x, margin=a)", "t.histc(x.detach(), 2, 0, a)",
    "x.masked_fill(x > 0, a)", "x.clone().fill_(a)", "t.fill(x, a)", "x.index_fill(0, t.arange(1), a)", "t.clamp(x, a)", "t.where(x > 0, x, a)",
    "t.pow(x, a)", "t.xlogy(x, a)", "x.clone().mul_(a)", "x / a",
]  # fmt: skip


@pytest.mark.parity
@pytest.mark.parametrize("dtype", ("float32", "float64", "int64"))
def test_numbers_beside_tensors(dtype):
    """A tensor that requires grad is refused where it would get none; others stand for their number."""
    value = "2" if dtype == "int64" else "0.5"
    check({
        f"{call}, {a}": f"x = t.tensor([1., 2.]).requires_grad_(); m = t.eye(2); a = {a}; r = {call}"
        for call in WITH_NUMBERS
        for a in (f"t.tensor({value}, dtype=t.{dtype})", f"t.tensor({value}, dtype=t.{dtype}){'' if dtype == 'int64' else '.requires_grad_()'}", value)
    })  # fmt: skip


@pytest.mark.parity
@pytest.mark.parametrize("kind", ("float", "int", "bool", "complex"))
def test_python_types_as_dtypes(kind):
    """``dtype=float`` is float64 whatever the default dtype is, and complex is complex128."""
    calls = ["t.zeros(2, dtype=D)", "t.tensor([1], dtype=D)", "t.ones(2, dtype=D)", "t.full((2,), 1, dtype=D)", "x.to(D)", "x.sum(dtype=D)",
             "t.zeros_like(x, dtype=D)", "x.new_zeros(2, dtype=D)", "t.as_tensor([1], dtype=D)", "t.eye(2, dtype=D)", "t.scalar_tensor(1, dtype=D)",
             "x.to(dtype=D)", "t.prod(x, dtype=D)", "x.new_tensor([1], dtype=D)", "t.asarray([1], dtype=D)", "t.full_like(x, 1, dtype=D)",
             "t.linspace(0, 1, 3, dtype=D)", "t.logspace(0, 1, 3, dtype=D)"]  # fmt: skip
    check({call: f"x = t.tensor([1, 2]); D = {kind}; r = {call}" for call in calls})


NAMES = [
    "abs", "add", "addmm", "all", "amax", "amin", "any", "argmax", "ceil", "cummax", "cummin", "diag", "diff", "floor", "frac", "isneginf", "isposinf",
    "kthvalue", "log_softmax", "logcumsumexp", "matmul", "mm", "mode", "nan_to_num", "neg", "quantile", "round", "sgn", "sign", "signbit", "sin",
    "softmax", "sort", "sum", "tensordot", "topk", "tril", "trunc",
]  # fmt: skip


@pytest.mark.parity
@pytest.mark.parametrize("name", NAMES)
def test_what_is_said_of_outputs_of_another_dtype(name):
    """Each text has the words of PyTorch's, so that a search finds help: scalar types, C++'s names, what an op only supports."""
    import autograd_nb as ours

    def told(lib, dtype):
        x = lib.tensor([[1.0, 2.0], [3.0, 4.0]], dtype=lib.float64)
        out = lib.empty(0, dtype=getattr(lib, dtype))
        for args in ((x,), (x, x), (x, 0), (x, 1), (x, x, x)):
            for given in (out, (out, lib.empty(0, dtype=lib.int64))):
                try:
                    getattr(lib, name)(*args, out=given)
                except RuntimeError as error:
                    if any(word in str(error) for word in ("type", "support")):
                        return str(error)
                except (TypeError, IndexError):
                    continue
                else:
                    return "written"
        raise AssertionError(name)

    for dtype in ("int16", "float32", "bool"):
        theirs, mine = told(torch, dtype), told(ours, dtype)
        assert theirs.rpartition(": ")[2].rstrip(".") in mine or theirs in mine, (dtype, theirs, mine)


def _taking_outputs():
    """Names of the functions that have an ``out=`` here, also those in torch.special and torch.linalg."""
    for space in ("", "special.", "linalg."):
        home = getattr(ours, space[:-1]) if space else ours
        for name in sorted(getattr(home, "__all__", dir(home))):
            function = getattr(home, name)
            if inspect.isfunction(function) and "out" in inspect.signature(function).parameters and hasattr(getattr(torch, space[:-1], torch), name):
                yield space + name


@pytest.mark.parity
def test_an_output_that_is_an_operand_keeps_its_shape():
    """Ops that read and write in one go refuse to resize it; others read what they have by then."""
    shapes, found, refused = ("()", "(3,)", "(2, 3)"), [], 0
    calls = ("x, out=x", "x, y, out=x", "y, x, out=x", "x, y, y, out=x", "y, x, y, out=x", "y, y, x, out=x", "y > 0, y, x, out=x")
    before = "x, y = [(t.arange(6.)[: t.ones(s).numel()] / n + 0.3).reshape(s) for s, n in (({}, 7), ({}, 5))]"
    for name, call in itertools.product(_taking_outputs(), calls):
        for a, b in itertools.product(shapes, shapes):
            results = (outcome(f"t.{name}({call}); r = x", library, before.format(a, b)) for library in (ours, torch))
            (kind, mine, _), (expected, theirs, _) = results
            if isinstance(theirs, TypeError):
                break  # it takes other arguments, whatever their shapes are
            told = expected == "error" and "doesn't match the broadcast shape" in str(theirs)
            refused += told
            if (told and kind == "result") or (kind == "error" and expected == "result" and "broadcast shape" in str(mine)):
                found.append(f"{name}({call}) of {a} and {b}: {mine!r} instead of {theirs!r}")
    assert not found, f"{len(found)} differ:\n" + "\n".join(found[:20])
    assert refused > 300


@pytest.mark.parity
def test_new_tensors_written_into_one_that_is_there():
    """What is said of a new tensor beside ``out``: its grad, its dtype, its layout."""
    calls = {
        "zeros": "3", "ones": "3", "empty": "3", "full": "(3,), 1.0", "rand": "3", "randn": "3", "arange": "3", "linspace": "0, 1, 3", "logspace": "0, 1, 3",
        "randint": "0, 3, (3,)", "randperm": "3", "range": "0, 2", "eye": "3",
    }  # fmt: skip
    said = ("requires_grad=True", "requires_grad=False", "dtype=t.int64", "dtype=t.float32", "layout=t.strided", "layout=t.sparse_coo", "device='cpu'")
    check({
        f"{name}; {option}": f"out = t.zeros({'3, 3' if name == 'eye' else 3})\nr = t.{name}({args}, out=out, {option}).requires_grad, out.requires_grad"
        for name, args in calls.items() for option in said
    })  # fmt: skip
    check({"zeros on meta": "t.zeros(3, out=t.zeros(3), device='meta')", "empty on meta": "t.empty(3, out=t.zeros(3), device='meta')"})


@pytest.mark.parity
def test_what_makes_tensors_resizes_without_a_word():
    calls = ("zeros(5", "ones(5", "empty(5", "full((5,), 2.", "eye(3", "arange(5", "range(0, 4", "linspace(0, 1, 5", "linspace(t.tensor(0.), 1, 5",
             "logspace(0, 1, 5", "rand(5", "randn(5", "randint(0, 5, (5,)", "randperm(5", "normal(0., 1., (5,)", "bernoulli(t.ones(5)",
             "multinomial(t.ones(5), 5", "fft.fftfreq(5", "fft.rfftfreq(5", "cat([t.ones(5)]", "mv(t.ones(2, 2), t.ones(2)", "sin(t.ones(5)")  # fmt: skip
    check({
        f"{call}), out= of {shape}": "import warnings\nwith warnings.catch_warnings(record=True) as w:\n"
        f"    warnings.simplefilter('always'); y = t.{call}, out=t.empty({shape}, dtype=t.{'int64' if 'perm' in call or 'multi' in call else 'float32'}))\n"
        "r = tuple(y.shape), [str(x.message)[:30] for x in w]"
        for call in calls for shape in ("3", "()", "0")
    })  # fmt: skip


@pytest.mark.parity
def test_powers_of_matrices_have_outputs_of_their_dtype():
    check({
        f"{n}, {o}": f"r = t.linalg.matrix_power(t.eye(3) * 2, {n}, out=t.zeros(3, 3, dtype=t.{o}))"
        for n in range(-5, 9) for o in ("float64", "int32", "complex64", "float16")
    }, kinds=True)  # fmt: skip
