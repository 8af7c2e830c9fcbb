"""PyTorch's own op database, run through both libraries: values, dtypes, shapes, gradients, second derivatives, errors.

``python -m tests.parity.opdb [name…]`` prints one line per op and why it fails; ``--table FILE`` writes the table of all.

Every sample is called as a function and checked whole; the first ones of a dtype also by the op's other spellings (method,
operator, in place, ``out=``). The database's error inputs must be refused with a short message and leave what was passed alone.
"""

from __future__ import annotations

import builtins
import contextlib
import sys
import traceback
import types
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch.testing._internal.common_methods_invocations import op_db

import autograd_nb as ag
from autograd_nb.ops.core.registry import OPS

DTYPES = (torch.float64, torch.float32, torch.int64, torch.bool)
TOLERANCE = {torch.float64: (1e-7, 1e-9), torch.float32: (1.5e-4, 2e-5), torch.float16: (5e-3, 5e-3), torch.bfloat16: (1.6e-2, 1e-2)}
#: results that differ from run to run, or whose sign or order is free
RANDOM = {"rand", "randn", "randint", "bernoulli", "multinomial", "normal", "dropout", "exponential", "uniform", "poisson", "geometric",
          "cauchy", "log_normal", "empty", "rrelu", "new_empty", "fractional", "randperm", "lowrank"}  # fmt: skip
#: what a user may be told with
ERRORS = (ValueError, TypeError, RuntimeError, IndexError, NotImplementedError)
#: ops that do not belong to dense, real tensors on a CPU, or to PyTorch's public face
OUTSIDE = {
    "sparse": ("sparse.", "to_sparse", "coalesce"),
    "complex numbers of half precision, which have a walk of their own": ("chalf",),
    "nested tensors, or of another device": ("nn.functional.sdpa_jagged", "jiterator_", "nested"),
    "internal": (
        "_",
        "torch._",
        "torch.ops.",
        "ops.aten",
        "max_pool2d_with_indices_backward",
        "native_dropout_backward",
        "slice",
    ),
}
SPELLED = 3  #: samples of a dtype that are also called by the other spellings


@dataclass
class Outcome:
    """What became of one op or module."""

    name: str
    state: str = "passed"  # passed, failed, missing
    samples: int = 0
    passed: int = 0
    grads: int = 0
    second: int = 0
    second_passed: int = 0
    errors: int = 0
    refused: int = 0
    reasons: list[str] = field(default_factory=list)

    def note(self, text: str) -> None:
        if len(self.reasons) < 4:
            self.reasons.append(text)


class Unsupported(Exception):
    """A sample that is not about dense real CPU tensors."""


NUMPY = {
    torch.float64,
    torch.float32,
    torch.float16,
    torch.bfloat16,
    torch.int64,
    torch.int32,
    torch.int16,
    torch.int8,
    torch.uint8,
    torch.uint16,
    torch.uint32,
    torch.uint64,
    torch.bool,
}
COMPLEX = {torch.complex64, torch.complex128}


def taken(t: torch.Tensor) -> Any:
    """A dense tensor's copy in this library."""
    if t.dtype is torch.bfloat16:  # NumPy has no such numbers: as bits
        return ag.from_numpy(t.contiguous().view(torch.int16).numpy().copy()).view(ag.bfloat16)
    return ag.from_numpy(t.numpy().copy())


def ours(value: Any, storages: dict | None = None) -> Any:
    """A PyTorch argument as one of this library's; tensors that share memory go on sharing it within one call."""
    storages = {} if storages is None else storages
    if isinstance(value, torch.Tensor):
        return _tensor(value, storages)
    if isinstance(value, torch.dtype):
        if value not in NUMPY and value not in COMPLEX:
            raise Unsupported(str(value))
        return getattr(ag, str(value).removeprefix("torch."))
    if isinstance(value, (torch.layout, torch.memory_format)):
        name = str(value).removeprefix("torch.")
        if name in ("strided", "contiguous_format", "preserve_format"):
            return getattr(ag, name)
        raise Unsupported(str(value))
    if isinstance(value, torch.device):
        return "cpu"
    if isinstance(value, torch.Size):
        return ag.Size(value)
    if isinstance(value, torch.Generator):
        return ag.Generator().manual_seed(value.initial_seed() % (1 << 63))
    if isinstance(value, (list, tuple)):
        return (
            type(value)(ours(v, storages) for v in value)
            if not hasattr(value, "_fields")
            else tuple(ours(v, storages) for v in value)
        )
    if isinstance(value, dict):
        return {k: ours(v, storages) for k, v in value.items()}
    if isinstance(value, slice):
        return slice(*(ours(v, storages) for v in (value.start, value.stop, value.step)))
    if isinstance(value, torch.nn.PairwiseDistance):
        return ag.nn.PairwiseDistance(value.norm, value.eps, value.keepdim)
    if isinstance(value, types.FunctionType):
        twin = getattr(ag.nn.functional, value.__name__, None) if value.__module__ == "torch.nn.functional" else None
        return twin or rebound(value)
    if isinstance(value, types.BuiltinFunctionType) and hasattr(ag, value.__name__):
        return getattr(ag, value.__name__)
    return value


def _tensor(value: torch.Tensor, storages: dict) -> Any:
    if value.layout is not torch.strided or value.is_quantized or value.is_conj() or value.is_neg():
        raise Unsupported("sparse, quantized or conjugated")
    if value.dtype not in NUMPY and value.dtype not in COMPLEX:
        raise Unsupported(str(value.dtype))
    if value.device.type != "cpu":
        raise Unsupported(str(value.device))
    source = value.detach()
    if source.numel() == 0:
        base = taken(source)
    else:  # the whole storage, so that views and strides behave alike
        count = source.untyped_storage().nbytes() // source.element_size()
        flat = torch.empty(0, dtype=source.dtype).set_(source.untyped_storage(), 0, (count,))
        key = (source.untyped_storage()._cdata, source.dtype)
        base = storages.setdefault(key, taken(flat))
        try:
            base = base.as_strided(tuple(source.shape), tuple(source.stride()), source.storage_offset()).detach()
        except RuntimeError:  # a storage that was taken away from the tensor
            base = taken(source)
    return base.requires_grad_(value.requires_grad)


def rebound(function: Any) -> Any:
    """A Python function of the database with only the import changed: its ``torch`` is this library."""
    if not isinstance(function, types.FunctionType):
        return function
    world = {**function.__globals__, "torch": ag}
    if "wrapper_set_seed" in world:
        world["wrapper_set_seed"] = lambda op, *args, **kwargs: op(*args, **kwargs)
    twin = types.FunctionType(function.__code__, world, function.__name__, function.__defaults__, function.__closure__)
    twin.__kwdefaults__ = function.__kwdefaults__
    return twin


def find(op: Any) -> Any:
    """This library's function for an op of the database, or None."""
    last = op.name.split(".")[-1]
    here = None
    if op.name in ("uniform", "exponential", "cauchy", "geometric", "log_normal"):  # methods in place, called on a copy
        return rebound(op.op)
    for name in [op.name, *[a.name for a in getattr(op, "aliases", ())]]:
        space: Any = ag
        for part in name.split("."):
            space = getattr(space, part, None)
            if space is None:
                break
        here = space if callable(space) else OPS[name].call if name in OPS else None
        if here is not None:
            break
    if (
        here is None
        and "." not in op.name
        and (op.method_variant is not None or last.startswith("__") or hasattr(torch.Tensor, last))
    ):
        here = getattr(ag.Tensor, last, None)
    if isinstance(op.op, types.FunctionType) and op.op.__name__ == "<lambda>":
        return rebound(op.op) if here is not None else None
    return here if callable(here) else None


def spellings(op: Any) -> Iterator[tuple[str, Any, Any]]:
    """The other ways to call an op: (what, PyTorch's, this library's or None)."""
    methods = (types.MethodDescriptorType, types.FunctionType, types.WrapperDescriptorType)
    for what, theirs in (("method", op.method_variant), ("in place", op.inplace_variant)):
        if (
            isinstance(theirs, methods)
            and theirs.__name__ != "<lambda>"
            and getattr(torch.Tensor, theirs.__name__, None) is not None
        ):
            yield what, theirs, getattr(ag.Tensor, theirs.__name__, None)
    for what, theirs in (("operator", op.operator_variant), ("in-place operator", op.inplace_operator_variant)):
        if theirs is not None and getattr(theirs, "__name__", "<lambda>") != "<lambda>":
            yield what, theirs, theirs


def leaves(tree: Any) -> Iterator[Any]:
    """Tensors (of either library) in an argument tree, in order."""
    if isinstance(tree, (torch.Tensor, ag.Tensor)):
        yield tree
    elif isinstance(tree, (list, tuple)):
        for v in tree:
            yield from leaves(v)
    elif isinstance(tree, dict):
        for v in tree.values():
            yield from leaves(v)


def plain(value: Any) -> np.ndarray:
    value = value.detach()
    return (value.float() if value.dtype in (torch.bfloat16, ag.bfloat16) else value).numpy(force=True)


def compare(mine: Any, theirs: Any, what: str, values: bool = True) -> None:
    a, b = list(leaves(mine)), list(leaves(theirs))
    if not a and not b:
        if values and isinstance(theirs, (bool, int, float)):
            assert mine == theirs or np.isclose(mine, theirs, equal_nan=True), f"{what}: {mine} instead of {theirs}"
        return
    assert len(a) == len(b), f"{what}: {len(a)} tensors instead of {len(b)}"
    for i, (x, y) in enumerate(zip(a, b)):
        assert tuple(x.shape) == tuple(y.shape), f"{what} {i}: shape {list(x.shape)} instead of {list(y.shape)}"
        assert repr(x.dtype) == repr(y.dtype), f"{what} {i}: {x.dtype} instead of {y.dtype}"
        if values:
            real = y.dtype.to_real() if y.dtype.is_complex else y.dtype
            rtol, atol = TOLERANCE.get(real, (0, 0))
            scale = (
                max(1.0, float(np.nanmax(np.abs(np.where(np.isfinite(plain(y)), plain(y), 0)), initial=0.0))) if rtol else 1.0
            )
            np.testing.assert_allclose(plain(x), plain(y), rtol=rtol, atol=atol * scale, err_msg=f"{what} {i}")


def grad(outputs: list, inputs: list, seeds: list, graph: bool) -> list:
    engine = torch.autograd if isinstance(outputs[0], torch.Tensor) else ag.autograd
    return list(engine.grad(outputs, inputs, seeds, create_graph=graph, allow_unused=True))


def compare_gradients(mine: list, theirs: list, what: str) -> None:
    for i, (x, y) in enumerate(zip(mine, theirs)):
        if y is None or x is None:  # an input that is not used may come as zeros
            for z in (x, y):
                assert z is None or not np.any(plain(z)), f"{what} {i}: {'none' if x is None else 'one'}"
            continue
        compare(x, y, f"{what} {i}")


def both(like: list, rng: np.random.Generator) -> tuple[list, list]:
    """The same weights for the outputs of both libraries."""
    weights = [np.asarray(rng.uniform(0.5, 1.5, tuple(t.shape))) for t in like]
    return [ag.from_numpy(w).to(getattr(ag, str(t.dtype)[6:])) for w, t in zip(weights, like)], [
        torch.from_numpy(w.copy()).to(t.dtype) for w, t in zip(weights, like)
    ]


def with_gradients(sample: Any, given: Any, theirs: Any, mine: Any) -> tuple[list[Any], list[Any], list[Any], list[Any]]:
    """PyTorch's and our operands that require grad, and PyTorch's and our results that do, of which there are as many."""
    t_in = [t for t in leaves((sample.input, sample.args, sample.kwargs)) if t.requires_grad]
    m_in = [t for t in leaves(given) if t.requires_grad]
    t_out = [t for t in leaves(theirs) if t.requires_grad]
    m_out = [t for t in leaves(mine) if t.requires_grad]
    assert len(t_out) == len(m_out), f"{len(m_out)} outputs require grad instead of {len(t_out)}"
    return t_in, m_in, t_out, m_out


def run_sample(function: Any, op: Any, sample: Any, outcome: Outcome, gradients: bool, second: bool) -> None:
    """Compare one sample."""
    random = (
        any(r in op.name for r in RANDOM)
        or bool(sample.kwargs.get("dropout_p"))
        or op.name.endswith("multi_head_attention_forward")
    )
    args, kwargs = ours(((sample.input, *sample.args), sample.kwargs))
    process = sample.output_process_fn_grad
    own = not getattr(process, "__qualname__", "").startswith("SampleInput.__init__")
    t_call, m_call = op, function
    if op.gradcheck_wrapper.__name__ != "<lambda>" and gradients:
        wrapper, m_wrapper = op.gradcheck_wrapper, rebound(op.gradcheck_wrapper)
        if "masked" not in wrapper.__name__ and "seed" not in wrapper.__name__:
            t_call = lambda *a, **k: wrapper(op, *a, **k)
            m_call = lambda *a, **k: m_wrapper(function, *a, **k)
    mine = m_call(*args, **kwargs)
    theirs = t_call(sample.input, *sample.args, **sample.kwargs)
    if own and process is not None:
        theirs, mine = process(theirs), rebound(process)(mine)
    if op.name in ("sort", "argsort") and sample.input.dtype is torch.bool and not sample.kwargs.get("stable"):
        mine, theirs = next(leaves(mine)), next(leaves(theirs))  # the order of equal elements is free
        random = op.name == "argsort"
    compare(mine, theirs, "value", not random)
    if not gradients or random:
        return
    t_in, m_in, t_out, m_out = with_gradients(sample, (args, kwargs), theirs, mine)
    if not t_out:
        return
    rng = np.random.default_rng(0)
    m_w, t_w = both(t_out, rng)
    outcome.grads += 1
    graph = second and op.supports_gradgrad
    try:
        t_g = grad(t_out, t_in, t_w, graph)
    except (NotImplementedError, RuntimeError) as error:  # what PyTorch cannot do, we may refuse too
        with contextlib.suppress(type(error)):
            grad(m_out, m_in, m_w, graph)
        outcome.grads -= 1
        return
    m_g = grad(m_out, m_in, m_w, graph)
    compare_gradients(m_g, t_g, "gradient")
    pairs = [(t, m) for t, m in zip(t_g, m_g) if t is not None and t.requires_grad]
    if not graph or not pairs:
        return
    outcome.second += 1
    m_s, t_s = both([t for t, _ in pairs], rng)
    try:
        t_h = grad([t for t, _ in pairs], t_in, t_s, False)
    except (NotImplementedError, RuntimeError):
        outcome.second -= 1
        return
    live = [(m, s) for (_, m), s in zip(pairs, m_s) if m is not None and m.requires_grad]
    m_h = grad([m for m, _ in live], m_in, [s for _, s in live], False) if live else [None] * len(m_in)
    compare_gradients(m_h, t_h, "second derivative")
    outcome.second_passed += 1


def run_spellings(op: Any, sample: Any) -> None:
    """The op's other spellings give what PyTorch's give (or both refuse); in place, the operand is changed and returned."""
    if any(r in op.name for r in RANDOM) or (op.name in ("sort", "argsort") and sample.input.dtype is torch.bool):
        return
    for what, theirs, mine in spellings(op):
        if not isinstance(sample.input, torch.Tensor):
            continue
        x, first = sample.input.detach().clone(), ours(sample.input.detach().clone())
        try:
            expected = theirs(x, *sample.args, **sample.kwargs)
        except Exception:
            continue
        if what.startswith("in") and x.shape != sample.input.shape:
            continue  # PyTorch resized its operand
        assert mine is not None, f"no {what} spelling"
        got = mine(first, *ours(sample.args), **ours(sample.kwargs))
        compare(got, expected, what)
        if what.startswith("in"):
            assert got is first, f"{what}: returned another tensor than its operand"
    if op.supports_out:
        t_args = [a.detach() if isinstance(a, torch.Tensor) else a for a in (sample.input, *sample.args)]
        t_args = [
            [v.detach() if isinstance(v, torch.Tensor) else v for v in a] if isinstance(a, (list, tuple)) else a for a in t_args
        ]
        kwargs = {k: v.detach() if isinstance(v, torch.Tensor) else v for k, v in sample.kwargs.items()}
        expected = op(*t_args, **kwargs)
        if not isinstance(expected, torch.Tensor) or "out" in kwargs:
            return
        out = ours(torch.zeros_like(expected))
        function = find(op)
        got = function(*ours(t_args), **ours(kwargs), out=out)
        compare(out, expected, "out=")
        assert got is out, "out=: returned another tensor"


def samples_of(op: Any, dtype: torch.dtype, differentiable: bool) -> list:
    torch.manual_seed(0)
    try:
        return list(op.sample_inputs("cpu", dtype, requires_grad=differentiable))
    except Exception:
        return []


def fingerprint(tree: Any) -> list:
    return [(t.shape, t.stride(), t._version, plain(t).tobytes(), t.requires_grad) for t in leaves(tree)]


def run_errors(function: Any, op: Any, outcome: Outcome) -> None:
    """The database's error inputs."""
    if op.error_inputs_func is None:
        return
    torch.manual_seed(0)
    try:
        wrong = list(op.error_inputs("cpu"))
    except Exception:
        return
    for k, e in enumerate(wrong):
        sample = e.sample_input
        try:
            op(sample.input, *sample.args, **sample.kwargs)
        except builtins.Exception:
            pass
        else:
            continue  # the database expects this of another device
        try:
            args, kwargs = ours(((sample.input, *sample.args), sample.kwargs))
            before = fingerprint((args, kwargs))
        except (Unsupported, ValueError):  # (more dimensions than NumPy has)
            continue
        outcome.errors += 1
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                function(*args, **kwargs)
        except builtins.Exception as error:
            text = str(error)
            if not isinstance(error, ERRORS):
                outcome.note(f"error input #{k}: {type(error).__name__} instead of {e.error_type.__name__}: {text[:120]}")
            elif len(text) >= 600 or "numba" in text.lower() or not text:
                outcome.note(f"error input #{k}: message of {len(text)} characters: {text[:120]}")
            elif fingerprint((args, kwargs)) != before:
                outcome.note(f"error input #{k}: the arguments were changed")
            else:
                outcome.refused += 1
        else:
            outcome.note(f"error input #{k}: not refused ({e.error_type.__name__}: {e.error_regex[:100]})")


def outside(name: str) -> str:
    """Why an op is not one of dense real tensors on a CPU; empty for those that are."""
    for why, starts in OUTSIDE.items():
        if any(name == s or (name.startswith(s) and s[-1] in "._") for s in starts) and not name.startswith("__"):
            return why
    return ""


def title(op: Any) -> str:
    return f"{op.name} ({op.variant_test_name})" if op.variant_test_name else op.name


def results(call: Any, args: tuple, kwargs: dict, gradients: bool) -> list[np.ndarray]:
    """Values, and gradients of their sum, as float64 arrays."""
    outs = [t for t in leaves(call(*args, **kwargs)) if t.dtype.is_floating_point]
    found = [plain(t).astype(np.float64) for t in outs]
    given = [t for t in leaves((args, kwargs)) if t.requires_grad]
    live = [t for t in outs if t.requires_grad]
    if gradients and live and given:
        engine = torch if isinstance(live[0], torch.Tensor) else ag
        for t, g in zip(given, grad(live, given, [engine.ones_like(t) for t in live], False), strict=True):
            found.append(np.zeros(tuple(t.shape)) if g is None else plain(g).astype(np.float64))
    return found


def nearer(function: Any, op: Any, sample: Any, gradients: bool) -> bool:
    """Whether a result that differs from PyTorch's is at least as near to the truth: a NumPy reference, or PyTorch in float64."""
    kinds = {t.dtype for t in leaves((sample.input, sample.args, sample.kwargs))}
    single = not kinds.isdisjoint((torch.float32, torch.float16, torch.bfloat16))
    near = max([TOLERANCE[k][1] for k in kinds if k in (torch.float16, torch.bfloat16)], default=2e-5)
    try:
        mine = results(function, *ours(((sample.input, *sample.args), sample.kwargs)), gradients)
        theirs = results(op, (sample.input, *sample.args), sample.kwargs, gradients)
        if single:
            exact = sample.transform(
                lambda t: (
                    t.detach().double().requires_grad_(t.requires_grad)
                    if isinstance(t, torch.Tensor) and t.is_floating_point()
                    else t
                )
            )
            truth = results(op, (exact.input, *exact.args), exact.kwargs, gradients)
        elif getattr(op, "ref", None) is not None:
            arrays = [plain(t) if isinstance(t, torch.Tensor) else t for t in (sample.input, *sample.args)]
            truth = [np.asarray(op.ref(*arrays, **sample.kwargs), dtype=np.float64)]
            mine, theirs = mine[:1], theirs[:1]
        else:
            return False
    except builtins.Exception:
        return False
    for a, b, c in zip(mine, theirs, truth, strict=True):
        with np.errstate(all="ignore"):
            wrong, allowed = (float(np.nanmax(np.abs(np.where(x == c, 0, x - c)), initial=0.0)) for x in (a, b))
        scale = max(1.0, float(np.nanmax(np.abs(np.where(np.isfinite(c), c, 0)), initial=0.0)))
        if not wrong <= max(allowed, (near if single else 1e-9) * scale):
            return False
    return True


#: what is wrong in PyTorch itself (its own tests expect the failure)
WRONG_THERE = {"as_strided_scatter": "PyTorch's gradient is known to be wrong"}


def check(op: Any, most: int | None = None, dtypes: tuple = DTYPES, errors: bool = True) -> Outcome:
    """Run every sample of an op (``most`` of a dtype) in every dtype, and its error inputs."""
    outcome = Outcome(title(op))
    function = find(op)
    if function is None:
        outcome.state = "missing"
        return outcome
    for dtype in dtypes:
        if dtype not in op.supported_dtypes("cpu"):
            continue
        differentiable = dtype.is_floating_point and op.supports_autograd and op.name not in WRONG_THERE
        for k, sample in enumerate(samples_of(op, dtype, differentiable)[:most]):
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                try:
                    run_sample(function, op, sample, outcome, differentiable, dtype is torch.float64)
                    if k < SPELLED:
                        run_spellings(op, sample)
                except Unsupported:
                    continue
                except builtins.Exception as error:
                    outcome.samples += 1
                    if (
                        dtype.is_floating_point
                        and isinstance(error, AssertionError)
                        and nearer(function, op, sample, differentiable)
                    ):
                        outcome.passed += 1
                        continue
                    text = " ".join(str(error).split())[:160]
                    where = traceback.extract_tb(error.__traceback__)[-1]
                    outcome.note(
                        f"{dtype} #{k}: {type(error).__name__}: {text} [{where.filename.rsplit('/', 1)[-1]}:{where.lineno}]"
                    )
                    continue
            outcome.samples += 1
            outcome.passed += 1
    if errors:
        run_errors(function, op, outcome)
    if outcome.passed < outcome.samples:
        outcome.state = "failed"
    return outcome


def summary(rows: list[Outcome]) -> str:
    """The figures of a table, in words."""
    inside = [r for r in rows if not outside(r.name)]
    passed = sum(r.state == "passed" for r in inside)
    second = [r for r in inside if r.second]
    whole = sum(r.second == r.second_passed for r in second)
    errors, refused = sum(r.errors for r in inside), sum(r.refused for r in inside)
    samples, good = sum(r.samples for r in inside), sum(r.passed for r in inside)
    return (
        f"{passed} of {len(inside)} entries for dense tensors pass whole ({passed / max(len(inside), 1):.1%}); "
        f"{good} of {samples} samples; second derivatives: {whole} of {len(second)} entries ({whole / max(len(second), 1):.1%}); "
        f"error inputs: {refused} of {errors} refused ({refused / max(errors, 1):.1%})."
    )


def write_table(rows: list[Outcome], path: str) -> None:
    rows = sorted(rows, key=lambda r: r.name)
    dtypes = ", ".join(str(d).removeprefix("torch.") for d in DTYPES)
    with open(path, "w", encoding="utf-8") as f:
        f.write("# Ops against PyTorch's op database\n\n")
        f.write(
            f"Written by `python -m tests.parity.opdb --table docs/ops.md` (PyTorch {torch.__version__.split('+')[0]}; all samples in {dtypes}).\n"
        )
        f.write(
            "A sample passes when value, dtype and shape, the gradient of every input and the second derivatives agree, and for\n"
        )
        f.write("the first ones of a dtype also the method, operator, in-place and `out=` spellings.\n\n")
        f.write(summary(rows) + "\n\n")
        f.write("| op | samples | passed | second derivatives | errors refused | notes |\n|---|---|---|---|---|---|\n")
        for r in rows:
            if outside(r.name):
                continue
            note = "not here" if r.state == "missing" else (r.reasons[0] if r.reasons else "")
            second = f"{r.second_passed}/{r.second}" if r.second else ""
            errors = f"{r.refused}/{r.errors}" if r.errors else ""
            f.write(f"| {r.name} | {r.samples} | {r.passed} | {second} | {errors} | {note.replace('|', '/')} |\n")
        f.write("\nLeft out, as they are not about dense tensors or not public:\n\n")
        for why in OUTSIDE:
            names = sorted({r.name for r in rows if outside(r.name) == why})
            if names:
                f.write(f"- {why}: {', '.join(names)}\n")


def main(names: list[str]) -> None:
    table = None
    if "--table" in names:
        k = names.index("--table")
        table = names[k + 1]
        names = names[:k] + names[k + 2 :]
    rows = []
    for op in op_db:
        if names and op.name not in names:
            continue
        row = check(op)
        rows.append(row)
        if row.state != "missing" or names:
            second = f", second {row.second_passed}/{row.second}" if row.second else ""
            errors = f", errors {row.refused}/{row.errors}" if row.errors else ""
            print(f"{row.state:8s}{row.name}: {row.passed}/{row.samples}{second}{errors}", flush=True)
            for r in row.reasons:
                print("          ", r, flush=True)
    print(summary(rows))
    if table:
        write_table(rows, table)


if __name__ == "__main__":
    main(sys.argv[1:])
