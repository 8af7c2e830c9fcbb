"""PyTorch's own op database, run through both libraries: values, dtypes, shapes, gradients, second derivatives.

``python -m tests.parity.opdb [name…]`` prints one line per op and why it fails; ``--table FILE`` writes the table of all.
"""

from __future__ import annotations

import sys
import traceback
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch.testing._internal.common_methods_invocations import op_db

import autograd_nb as ag
from autograd_nb.ops.registry import OPS

DTYPES = (torch.float64, torch.float32, torch.int64, torch.bool)
TOLERANCE = {torch.float64: (1e-7, 1e-9), torch.float32: (1.5e-4, 2e-5), torch.float16: (5e-3, 5e-3)}
#: results that differ from run to run, or whose sign or order is free
RANDOM = {"rand", "randn", "randint", "bernoulli", "multinomial", "normal", "dropout", "exponential", "uniform", "poisson", "geometric",
          "cauchy", "log_normal", "empty", "rrelu", "new_empty", "fractional", "randperm"}  # fmt: skip


@dataclass
class Outcome:
    """What became of one op."""

    name: str
    state: str = "passed"  # passed, failed, missing
    samples: int = 0
    passed: int = 0
    grads: int = 0
    second: int = 0
    second_passed: int = 0
    reasons: list[str] = field(default_factory=list)


class Unsupported(Exception):
    """A sample that is not about dense real CPU tensors."""


def ours(value: Any) -> Any:
    """A PyTorch argument as one of this library's."""
    if isinstance(value, torch.Tensor):
        if value.layout is not torch.strided or value.is_quantized or value.dtype.is_complex or value.is_conj() or value.is_neg():
            raise Unsupported("sparse, quantized or complex")
        if value.dtype not in NUMPY:
            raise Unsupported(str(value.dtype))
        source = value.detach()
        if source.numel() == 0:
            base = ag.from_numpy(source.numpy().copy())
        else:  # the whole storage, so that views and strides behave alike
            count = source.untyped_storage().nbytes() // source.element_size()
            flat = torch.empty(0, dtype=source.dtype).set_(source.untyped_storage(), 0, (count,))
            base = ag.from_numpy(flat.numpy().copy())
            base = base.as_strided(tuple(source.shape), tuple(source.stride()), source.storage_offset()).detach()
        return base.requires_grad_(value.requires_grad)
    if isinstance(value, torch.dtype):
        if value not in NUMPY:
            raise Unsupported(str(value))
        return getattr(ag, str(value).removeprefix("torch."))
    if isinstance(value, (torch.layout, torch.memory_format)):
        raise Unsupported(str(value))
    if isinstance(value, torch.device):
        return "cpu"
    if isinstance(value, torch.Size):
        return ag.Size(value)
    if isinstance(value, torch.Generator):
        raise Unsupported("generator")
    if isinstance(value, (list, tuple)):
        return type(value)(ours(v) for v in value) if not hasattr(value, "_fields") else tuple(ours(v) for v in value)
    if isinstance(value, dict):
        return {k: ours(v) for k, v in value.items()}
    if isinstance(value, slice):
        return slice(*(ours(v) for v in (value.start, value.stop, value.step)))
    if isinstance(value, complex):
        raise Unsupported("complex")
    return value


NUMPY = {torch.float64, torch.float32, torch.float16, torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.bool}


def find(op: Any) -> Any:
    """This library's function for an op of the database, or None."""
    if op.name in REORDERED:
        return REORDERED[op.name]
    names = [op.name, *[a.name for a in getattr(op, "aliases", ())]]
    for name in names:
        space: Any = ag
        for part in name.split("."):
            space = getattr(space, part, None)
            if space is None:
                break
        if callable(space):
            return space
        if name in OPS:
            return OPS[name].call
    last = op.name.split(".")[-1]
    return getattr(ag.Tensor, last, None) if op.method_variant is not None or last.startswith("__") else None


#: functions that the database calls with their arguments in another order
REORDERED = {
    "where": lambda input, condition, other, **kw: ag.where(condition, input, other, **kw),
    "stack": lambda tensors, *args, **kw: ag.stack(tensors, *args, **kw),
}


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
    return value.detach().numpy(force=True)


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
            rtol, atol = TOLERANCE.get(y.dtype, (0, 0))
            scale = max(1.0, float(np.nanmax(np.abs(np.where(np.isfinite(plain(y)), plain(y), 0)), initial=0.0))) if rtol else 1.0
            np.testing.assert_allclose(plain(x), plain(y), rtol=rtol, atol=atol * scale, err_msg=f"{what} {i}")


def run_sample(function: Any, op: Any, sample: Any, outcome: Outcome, gradients: bool, second: bool) -> None:
    random = any(r in op.name for r in RANDOM)
    args = ours((sample.input, *sample.args))
    kwargs = ours(sample.kwargs)
    theirs = op(sample.input, *sample.args, **sample.kwargs)
    mine = function(*args, **kwargs)
    compare(mine, theirs, "value", not random)
    if not gradients or random:
        return
    t_in = [t for t in leaves((sample.input, sample.args, sample.kwargs)) if t.requires_grad]
    m_in = [t for t in leaves((args, kwargs)) if t.requires_grad]
    t_out = [t for t in leaves(theirs) if t.requires_grad]
    m_out = [t for t in leaves(mine) if t.requires_grad]
    assert len(t_out) == len(m_out), f"{len(m_out)} outputs require grad instead of {len(t_out)}"
    if not t_out:
        return
    rng = np.random.default_rng(0)
    weights = [rng.uniform(0.5, 1.5, tuple(t.shape)) for t in t_out]
    t_w = [torch.from_numpy(np.asarray(w)).to(t.dtype) for w, t in zip(weights, t_out)]
    m_w = [ag.from_numpy(np.asarray(w)).to(t.dtype) for w, t in zip(weights, m_out)]
    outcome.grads += 1
    graph = second and op.supports_gradgrad
    t_g = torch.autograd.grad(t_out, t_in, t_w, create_graph=graph, allow_unused=True)
    m_g = ag.autograd.grad(m_out, m_in, m_w, create_graph=graph, allow_unused=True)
    for i, (x, y) in enumerate(zip(m_g, t_g)):
        if y is None or x is None:  # an input that is not used may come as zeros
            for z in (x, y):
                assert z is None or not np.any(plain(z)), f"gradient {i}: {'none' if x is None else 'one'}"
            continue
        compare(x, y, f"gradient {i}")
    if not graph:
        return
    t_pairs = [(t, i) for i, t in enumerate(t_g) if t is not None and t.requires_grad]
    m_pairs = [m_g[i] for _, i in t_pairs]
    if not t_pairs:
        return
    outcome.second += 1
    seeds = [rng.uniform(0.5, 1.5, tuple(t.shape)) for t, _ in t_pairs]
    t_seeds = [torch.from_numpy(np.asarray(s)).to(t.dtype) for s, (t, _) in zip(seeds, t_pairs)]
    t_h = torch.autograd.grad([t for t, _ in t_pairs], t_in, t_seeds, allow_unused=True)
    live = [(g, s) for g, s in zip(m_pairs, seeds) if g is not None and g.requires_grad]
    if live:
        m_h = ag.autograd.grad([g for g, _ in live], m_in, [ag.from_numpy(np.asarray(s)).to(g.dtype) for g, s in live], allow_unused=True)
    else:
        m_h = [None] * len(m_in)
    for i, (x, y) in enumerate(zip(m_h, t_h)):
        if y is None or x is None:
            for z in (x, y):
                assert z is None or not np.any(plain(z)), f"second derivative {i}: {'none' if x is None else 'one'}"
            continue
        compare(x, y, f"second derivative {i}")
    outcome.second_passed += 1


def check(op: Any, most: int | None = None, dtypes: tuple = DTYPES) -> Outcome:
    """Run every sample of an op in every dtype."""
    outcome = Outcome(op.name if not op.variant_test_name else f"{op.name} ({op.variant_test_name})")
    function = find(op)
    if function is None:
        outcome.state = "missing"
        return outcome
    for dtype in dtypes:
        if dtype not in op.supported_dtypes("cpu"):
            continue
        differentiable = dtype.is_floating_point and op.supports_autograd
        torch.manual_seed(0)
        try:
            samples = list(op.sample_inputs("cpu", dtype, requires_grad=differentiable))
        except Exception:
            continue
        for k, sample in enumerate(samples[:most]):
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                try:
                    run_sample(function, op, sample, outcome, differentiable, dtype is torch.float64)
                except Unsupported:
                    continue
                except Exception as error:
                    outcome.samples += 1
                    if len(outcome.reasons) < 3:
                        text = " ".join(str(error).split())[:160]
                        where = traceback.extract_tb(error.__traceback__)[-1]
                        outcome.reasons.append(f"{dtype} #{k}: {type(error).__name__}: {text} [{where.filename.rsplit('/', 1)[-1]}:{where.lineno}]")
                    continue
            outcome.samples += 1
            outcome.passed += 1
    if outcome.passed < outcome.samples:
        outcome.state = "failed"
    return outcome


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
            print(f"{row.state:8s}{row.name}: {row.passed}/{row.samples}, second {row.second_passed}/{row.second}", flush=True)
            for r in row.reasons if row.state == "failed" else ():
                print("          ", r, flush=True)
    count = {s: sum(r.state == s for r in rows) for s in ("passed", "failed", "missing")}
    print(count)
    if table:
        with open(table, "w") as f:
            f.write("| op | samples | passed | second derivatives | notes |\n|---|---|---|---|---|\n")
            for r in sorted(rows, key=lambda r: r.name):
                note = "not here" if r.state == "missing" else (r.reasons[0] if r.reasons else "")
                f.write(f"| {r.name} | {r.samples} | {r.passed} | {r.second_passed}/{r.second} | {note.replace('|', '/')} |\n")


if __name__ == "__main__":
    main(sys.argv[1:])
