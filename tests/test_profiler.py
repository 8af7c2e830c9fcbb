"""Profiles: what is counted, schedules, traces, and that nothing stays behind."""

from __future__ import annotations

import gzip
import json
import os
import time

import pytest
from numba import config

import autograd_nb as torch
import autograd_nb.nn.functional as F
from autograd_nb import launch, nn
from autograd_nb.codegen.build import compilation
from autograd_nb.profiler import ProfilerAction, ProfilerActivity, profile, record_function, schedule, tensorboard_trace_handler

from .functions import Double


def rows(prof, **options):
    return {row.key: row for row in prof.key_averages(**options)}


def test_ops_nodes_optimizer_and_blocks():
    model = nn.Linear(4, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with profile(activities=[ProfilerActivity.CPU]) as prof:
        with record_function("forward"):
            loss = model(torch.ones(3, 4)).relu().sum()
        loss.backward()
        optimizer.step()
    found = rows(prof)
    assert {"forward", "aten::addmm", "aten::relu", "aten::sum", "AddmmBackward0", "ReluBackward0", "Optimizer.step#SGD.step"} <= set(found)
    assert found["aten::relu"].count == 1
    assert found["aten::relu"].bytes_moved == 2 * 3 * 2 * 4
    forward = found["forward"]
    assert forward.cpu_time_total >= found["aten::addmm"].cpu_time_total + found["aten::relu"].cpu_time_total
    assert forward.self_cpu_time_total < forward.cpu_time_total
    whole = sum(e.cpu_time_total for e in prof.events() if e.cpu_parent is None)
    assert prof.key_averages().self_cpu_time_total == pytest.approx(whole)


@pytest.mark.skipif(bool(config.DISABLE_JIT), reason="nothing is compiled")
def test_kernels_that_are_compiled_or_loaded_have_rows(monkeypatch):
    """Of their ops where they are compiled; what is found on disk shares one row."""
    name, key, kinds = f"op_{os.urandom(4).hex()}", os.urandom(8).hex(), ("float32[:]", "float32[:]")
    text = f"def kernel(x, out):\n    out[0] = {int(key, 16) % 1000003}\n"
    with profile() as prof:
        launch.entry(text, "kernel", kinds, name)
    assert rows(prof)[f"autograd_nb::compile: {name}"].count == 1
    for known in ("_built", "_by_key"):
        monkeypatch.setattr(compilation, known, {})
    with profile() as prof:
        launch.entry(text, "kernel", kinds, name)
    assert set(rows(prof)) == {"autograd_nb::load"}


def test_users_functions_have_their_names():
    with profile() as prof:
        Double.apply(torch.ones(3, requires_grad=True)).sum().backward()
    found = rows(prof)
    assert found["Double"].count == found["DoubleBackward"].count == 1
    assert found["Double"].cpu_time_total > found["Double"].self_cpu_time_total


def test_results_are_as_without():
    def compute():
        x = torch.linspace(-1, 1, 50, requires_grad=True)
        F.softmax(x * x, 0).log().sum().backward()
        return x.grad

    expected = compute()
    with profile():
        found = compute()
    assert torch.equal(expected, found)


def test_table(capsys):
    with torch.autograd.profiler.profile(record_shapes=True) as prof:
        for n in (2, 2, 3):
            torch.ones(n, n) @ torch.ones(n, n)
    text = prof.key_averages(group_by_input_shape=True).table(sort_by="self_cpu_time_total", row_limit=10)
    lines = text.splitlines()
    assert lines[1].split("  ")[0].strip() in ("Name", "")
    assert "Self CPU %" in lines[1] and "# of Calls" in lines[1] and "Input Shapes" in lines[1]
    assert "[[2, 2], [2, 2]]" in text and "[[3, 3], [3, 3]]" in text
    assert lines[-1].startswith("Self CPU time total: ")
    counts = {str(r.input_shapes): r.count for r in prof.key_averages(group_by_input_shape=True) if r.key == "aten::mm"}
    assert counts == {"[[2, 2], [2, 2]]": 2, "[[3, 3], [3, 3]]": 1}
    assert len(prof.key_averages().table(row_limit=1).splitlines()) < len(prof.key_averages().table().splitlines())
    assert str(prof).startswith("-")


def test_lines():
    with profile(with_stack=True) as prof:
        torch.ones(3).exp()
    (row,) = (r for r in prof.key_averages(group_by_stack_n=1) if r.key == "aten::exp")
    assert "test_profiler.py" in row.stack[0] and "torch.ones(3).exp()" in row.stack[0]


def test_traces(tmp_path):
    with profile(record_shapes=True) as prof, record_function("mine"):
        torch.ones(3).exp()
    prof.add_metadata("who", "me")
    prof.export_chrome_trace(str(tmp_path / "trace.json"))
    prof.export_chrome_trace(str(tmp_path / "trace.json.gz"))
    trace = json.loads((tmp_path / "trace.json").read_text())
    assert json.loads(gzip.decompress((tmp_path / "trace.json.gz").read_bytes())) == trace
    events = {e["name"]: e for e in trace["traceEvents"]}
    outer, inner = events["mine"], events["aten::exp"]
    assert outer["ts"] <= inner["ts"] and inner["ts"] + inner["dur"] <= outer["ts"] + outer["dur"]
    assert inner["args"]["Input Dims"] == [[3]]
    prof.export_stacks(str(tmp_path / "stacks.txt"))
    assert "mine" in (tmp_path / "stacks.txt").read_text()
    tensorboard_trace_handler(str(tmp_path / "log"), "one")(prof)
    (path,) = (tmp_path / "log").iterdir()
    assert path.name.startswith("one.") and path.name.endswith(".pt.trace.json")


def test_schedule():
    plan = schedule(wait=1, warmup=1, active=2, repeat=2, skip_first=1)
    a = ProfilerAction
    cycle = [a.NONE, a.WARMUP, a.RECORD, a.RECORD_AND_SAVE]
    assert [plan(i) for i in range(11)] == [a.NONE, *cycle, *cycle, a.NONE, a.NONE]
    ready = []
    with profile(schedule=plan, on_trace_ready=lambda p: ready.append((p.step_num, rows(p)))) as prof:
        for i in range(12):
            (torch.ones(2).sin() if i in (3, 8) else torch.ones(2)).cos()
            prof.step()
    assert [step for step, _ in ready] == [5, 9]
    for first, (_, found) in zip((3, 7), ready, strict=True):
        assert found[f"ProfilerStep#{first}"].count == found[f"ProfilerStep#{first + 1}"].count == 1
        assert found["aten::cos"].count == 2
        assert found["aten::sin"].count == 1
    with pytest.raises(ValueError, match="active must be positive"):
        schedule(wait=0, warmup=1, active=0)


def test_compiled_functions_run_compiled():
    @torch.compile
    def f(x):
        return (x.exp() * x).sum()

    x = torch.ones(4)
    f(x)
    with profile() as prof:
        f(x)
    found = rows(prof)
    assert found["CompiledFunction: f"].count == 1
    assert "aten::exp" not in found


def test_a_capture_inside_a_profile():
    @torch.compile
    def f(x):
        with record_function("inside"):
            return (x.exp() * x).sum()

    with profile():
        expected = f(torch.ones(4))
    assert f(torch.ones(4)) == expected
    assert len(f.programs) == 1


def test_record_function_decorates_and_is_quiet_without_a_profile():
    @record_function("named")
    def f():
        return 3

    assert f() == 3
    with profile() as prof:
        assert f() == f() == 3
    assert rows(prof)["named"].count == 2


def test_an_error_inside_ends_the_profile():
    with pytest.raises(RuntimeError, match="shape"), profile() as prof, record_function("wrong"):
        torch.ones(2, 3) @ torch.ones(2, 3)
    assert "wrong" in rows(prof)
    assert launch.observer() is None
    assert "_structured" not in type(torch.ones(1).view).__name__


def test_nothing_stays_behind():
    from autograd_nb.ops.core.structured import Structured

    before = Structured.__call__
    with profile():
        assert Structured.__call__ is not before
        with pytest.raises(RuntimeError, match="already"), profile():
            pass
        assert Structured.__call__ is not before
    assert Structured.__call__ is before
    assert not torch.ones(1).exp().requires_grad


def test_errors():
    prof = profile()
    with pytest.raises(RuntimeError, match="nothing has been recorded"):
        prof.key_averages()
    with pytest.warns(UserWarning, match="CUDA is not available"):
        profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA])
    with pytest.raises(TypeError, match="expected ProfilerActivity"):
        profile(activities=["cpu"])
    with pytest.raises(ValueError, match="No valid profiler activities"):
        profile(activities=[])


def test_times_are_times():
    with profile() as prof, record_function("sleep"):
        time.sleep(0.02)
    assert 20_000 <= rows(prof)["sleep"].self_cpu_time_total < 2_000_000
    assert "ms" in prof.key_averages().table()
