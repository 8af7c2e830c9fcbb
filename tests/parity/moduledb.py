"""PyTorch's own module database, run through both libraries: outputs, gradients, second derivatives, state after, errors.

``python -m tests.parity.moduledb [name…]`` prints a line per module and why it fails, and the figures of all.

A case is a sample of the database in one dtype, in training or evaluation: the modules are made with the same arguments, the
parameters copied over by state_dict, and both called with the same inputs.
"""

from __future__ import annotations

import builtins
import sys
import traceback
import types
import warnings
from typing import Any
from unittest import mock

import numpy as np
import torch
from torch.testing._internal.common_modules import ModuleErrorEnum, module_db

import autograd_nb as ag

from . import opdb
from .opdb import ERRORS, Unsupported, both, compare, compare_gradients, grad, leaves

DTYPES = (torch.float64, torch.float32)
#: modules whose output is drawn by chance
RANDOM = ("FractionalMaxPool",)
#: how near results in float32 have to be where PyTorch's own are that far from those in float64
ROUGH = {"CTCLoss": (2e-3, 2e-4)}


def ours(value: Any, storages: dict | None = None) -> Any:
    """As `opdb.ours`, and modules and functions among the arguments."""
    storages = {} if storages is None else storages
    if isinstance(value, torch.Tensor):  # a tensor given twice is one tensor
        if id(value) not in storages:
            storages[id(value)] = opdb.ours(value, storages)
        return storages[id(value)]
    if isinstance(value, torch.nn.Module):
        return twin(value)
    if isinstance(value, (types.FunctionType, types.BuiltinFunctionType)) and hasattr(ag.nn.functional, value.__name__):
        return getattr(ag.nn.functional, value.__name__)
    if isinstance(value, (list, tuple)) and not isinstance(value, torch.Size) and not hasattr(value, "_fields"):
        return type(value)(ours(v, storages) for v in value)
    if isinstance(value, dict):
        return {k: ours(v, storages) for k, v in value.items()}
    return opdb.ours(value, storages)


def twin(module: Any) -> Any:
    """This library's module like one that is an argument."""
    kind = type(module).__name__
    if kind in ("TransformerEncoderLayer", "TransformerDecoderLayer"):
        attention = module.self_attn
        mine = getattr(ag.nn, kind)(
            attention.embed_dim, attention.num_heads, module.linear1.out_features, module.dropout.p, ours(module.activation),
            module.norm1.eps, attention.batch_first, module.norm_first, module.linear1.bias is not None,
        )  # fmt: skip
    elif kind == "LayerNorm":
        mine = ag.nn.LayerNorm(tuple(module.normalized_shape), module.eps, module.elementwise_affine, module.bias is not None)
    elif not list(module.parameters()) and not list(module.children()):
        mine = getattr(ag.nn, kind)()
        mine.__dict__.update({k: v for k, v in module.__dict__.items() if not k.startswith("_")})
    else:
        raise Unsupported(f"{kind} as an argument")
    copy_state(mine, module)
    return mine


def copy_state(mine: Any, theirs: Any) -> None:
    a, b = mine.state_dict(), theirs.state_dict()
    assert list(a) == list(b), f"state_dict: {list(a)} instead of {list(b)}"
    mine.load_state_dict({k: opdb.ours(v.detach().clone()) for k, v in b.items()})


def cast(module: Any, dtype: torch.dtype) -> Any:
    return module.to(dtype if isinstance(module, torch.nn.Module) else getattr(ag, str(dtype)[6:]))


def run_case(info: Any, name: str, sample: Any, dtype: torch.dtype, training: bool, outcome: opdb.Outcome) -> None:
    made, given = sample.constructor_input, sample.forward_input
    torch.manual_seed(0)
    sdpa = torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH)  # the one that has second derivatives
    theirs = cast(info.module_cls(*made.args, **made.kwargs), dtype).train(training)
    mine = cast(getattr(ag.nn, name)(*ours(made.args), **ours(made.kwargs)), dtype).train(training)
    t_args, t_kwargs = given.args, given.kwargs
    args, kwargs = ours((t_args, t_kwargs))
    if info.is_lazy:  # the first call makes the parameters
        theirs(*t_args, **t_kwargs), mine(*args, **kwargs)
    assert repr(mine).split("(")[0] == repr(theirs).split("(")[0]
    copy_state(mine, theirs)
    random = name.startswith(RANDOM)
    with sdpa:
        t_out = theirs(*t_args, **t_kwargs)
    m_out = mine(*args, **kwargs)
    compare(m_out, t_out, "output", not random)
    compare(list(mine.state_dict().values()), list(theirs.state_dict().values()), "state after")
    if random:
        return
    t_in = [t for t in (*leaves((t_args, t_kwargs)), *theirs.parameters()) if t.requires_grad]
    m_in = [t for t in (*leaves((args, kwargs)), *mine.parameters()) if t.requires_grad]
    t_y, m_y = [t for t in leaves(t_out) if t.requires_grad], [t for t in leaves(m_out) if t.requires_grad]
    assert len(t_y) == len(m_y), f"{len(m_y)} outputs require grad instead of {len(t_y)}"
    if not t_y or not t_in:
        return
    rng = np.random.default_rng(0)
    m_w, t_w = both(t_y, rng)
    graph = info.supports_gradgrad and dtype is torch.float64
    t_g = grad(t_y, t_in, t_w, graph)
    compare_gradients(list(ag.autograd.grad(m_y, m_in, m_w, retain_graph=graph, allow_unused=True)), t_g, "gradient")
    pairs = [i for i, t in enumerate(t_g) if t is not None and t.requires_grad]
    if not graph or not pairs:
        return
    m_s, t_s = both([t_g[i] for i in pairs], rng)
    try:
        t_h = grad([t_g[i] for i in pairs], t_in, t_s, False)
    except RuntimeError as error:
        if "is not implemented" in str(error):  # what PyTorch cannot do is not compared
            return
        raise
    outcome.second += 1
    m_g = grad(m_y, m_in, m_w, True)
    live = [(m_g[i], s) for i, s in zip(pairs, m_s) if m_g[i] is not None and m_g[i].requires_grad]
    m_h = grad([m for m, _ in live], m_in, [s for _, s in live], False) if live else [None] * len(m_in)
    compare_gradients(m_h, t_h, "second derivative")
    outcome.second_passed += 1


def run_errors(info: Any, name: str, dtype: torch.dtype, training: bool, outcome: opdb.Outcome) -> None:
    for k, e in enumerate(
        info.module_error_inputs_func(info, device="cpu", dtype=dtype, requires_grad=False, training=training)
    ):
        made, given = e.module_error_input.constructor_input, e.module_error_input.forward_input
        called = e.error_on is not ModuleErrorEnum.CONSTRUCTION_ERROR
        try:
            module = info.module_cls(*made.args, **made.kwargs)
            if called:
                cast(module, dtype).train(training)(*given.args, **given.kwargs)
        except builtins.Exception:
            pass
        else:
            continue  # an error in the other mode only
        outcome.errors += 1
        try:
            module = getattr(ag.nn, name)(*ours(made.args), **ours(made.kwargs))
            if called:
                cast(module, dtype).train(training)(*ours(given.args), **ours(given.kwargs))
        except builtins.Exception as error:
            text = str(error)
            wanted = e.error_type if isinstance(e.error_type, tuple) else (e.error_type,)
            if not any(isinstance(error, w) or w is Exception for w in wanted) or not isinstance(
                error, (*ERRORS, AssertionError)
            ):
                outcome.note(f"error input #{k}: {type(error).__name__} instead of {e.error_type}: {text[:120]}")
            elif len(text) >= 600 or "numba" in text.lower() or not text:
                outcome.note(f"error input #{k}: message of {len(text)} characters: {text[:120]}")
            else:
                outcome.refused += 1
        else:
            outcome.note(f"error input #{k}: not refused ({e.error_type.__name__}: {e.error_regex[:100]})")


def check(info: Any, most: int | None = None, dtypes: tuple = DTYPES) -> opdb.Outcome:
    """Run every sample of a module (``most`` of a kind), in training and evaluation, and its error inputs."""
    name = info.module_cls.__name__
    outcome = opdb.Outcome(name)
    for dtype in dtypes:
        for training in (True, False):
            torch.manual_seed(0)
            samples = info.module_inputs_func(info, device="cpu", dtype=dtype, requires_grad=True, training=training)
            for k, sample in enumerate(list(samples)[:most]):
                with warnings.catch_warnings(), np.errstate(all="ignore"):
                    warnings.simplefilter("ignore")
                    try:
                        with mock.patch.dict(opdb.TOLERANCE, {torch.float32: ROUGH[name]} if name in ROUGH else {}):
                            run_case(info, name, sample, dtype, training, outcome)
                    except Unsupported as reason:
                        outcome.note(f"left out: {reason}")
                        continue
                    except builtins.Exception as error:
                        outcome.samples += 1
                        text = " ".join(str(error).split())[:200]
                        where = traceback.extract_tb(error.__traceback__)[-1]
                        what = f"{dtype} {'train' if training else 'eval'} #{k} {sample.desc}"
                        outcome.note(
                            f"{what}: {type(error).__name__}: {text} [{where.filename.rsplit('/', 1)[-1]}:{where.lineno}]"
                        )
                        continue
                outcome.samples += 1
                outcome.passed += 1
    if info.module_error_inputs_func is not None:
        for training in (True, False):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                run_errors(info, name, torch.float64, training, outcome)
    return outcome


def summary(rows: list[opdb.Outcome]) -> str:
    """The figures of all, in words."""
    cases, passed = sum(r.samples for r in rows), sum(r.passed for r in rows)
    second, good = sum(r.second for r in rows), sum(r.second_passed for r in rows)
    errors, refused = sum(r.errors for r in rows), sum(r.refused for r in rows)
    whole = sum(r.samples == r.passed and r.errors == r.refused for r in rows)
    return (
        f"{passed} of {cases} cases ({passed / max(cases, 1):.1%}); {whole} of {len(rows)} modules whole; second derivatives: {good} "
        f"of {second}; error inputs: {refused} of {errors} refused."
    )


def main(names: list[str]) -> None:
    rows = []
    for info in module_db:
        if names and info.module_cls.__name__ not in names:
            continue
        row = check(info)
        rows.append(row)
        errors = f", errors {row.refused}/{row.errors}" if row.errors else ""
        second = f", second {row.second_passed}/{row.second}" if row.second else ""
        state = "passed" if row.passed == row.samples and row.refused == row.errors else "failed"
        print(f"{state:8s}{row.name}: {row.passed}/{row.samples}{second}{errors}", flush=True)
        for r in row.reasons:
            print("          ", r, flush=True)
    print(summary(rows))


if __name__ == "__main__":
    main(sys.argv[1:])
