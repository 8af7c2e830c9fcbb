"""The benchmarks' machinery, and that results are compared; `tests/parity/test_bench.py` compares every case with PyTorch."""

from __future__ import annotations

import copy
import dataclasses
import json
import os

import numpy as np
import pytest

import autograd_nb as torch
from autograd_nb.codegen.build.machine_code import store
from bench import first_calls, programs, report, run
from bench.case import COMPILED, OURS, PEERS, Disagreement, Program, arrays, compare, observe, peers_of, ready
from bench.cases import CASES
from bench.cliffs import __main__ as cliffs
from bench.cold import __main__ as cold
from bench.cold.process import Spent, stages
from bench.cold.programs import PROGRAMS
from bench.cold.programs_jax import PROGRAMS as IN_JAX
from bench.cold.stages import STAGES
from bench.measure import interleaved, measure, ratio, share
from bench.targets import TARGETS

#: one of each kind: these run without PyTorch, and compile few kernels
FEW = ("mul | backward", "index slice | recorded", "Adam, 10 parameters", "add 1k | forward", "matmul 4×8×16 | backward", "MLP 8-16-2, batch 4, SGD")


@pytest.fixture
def unconfined():
    """`run.main` keeps its process to some processors and sets the environment."""
    environment, processors = dict(os.environ), os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else None
    threads = torch.get_num_threads()
    yield
    torch.set_num_threads(threads)
    os.environ.clear()
    os.environ.update(environment)
    if processors is not None:
        os.sched_setaffinity(0, processors)


def case_named(name):
    return next(c for c in CASES if c.name == name)


def test_every_case_has_a_name_of_its_own_and_every_target_a_group():
    names = [c.name for c in CASES]
    assert len(set(names)) == len(names)
    groups = {(c.suite, c.group) for c in CASES}
    assert {k for k in TARGETS if k[1]} <= groups
    assert {s for s, _ in TARGETS} == {"overhead", "kernels", "models"} == {s for s, _ in groups}
    for group in groups:
        assert any(c.quick and c.smallest for c in CASES if (c.suite, c.group) == group), group
    assert all(set(c.bounds) <= {*PEERS} and (not c.bounds or c.compiled) for c in CASES)


@pytest.mark.parametrize("name", FEW)
def test_eager_compiled_and_numpy_agree(name):
    case = case_named(name)
    reference = observe(case, ready(case, OURS))
    assert reference and all(np.isfinite(a).all() for a in reference)
    for peer in peers_of(case, [COMPILED, "NumPy"]):
        compare(case, reference, observe(case, ready(case, peer)), peer)


def test_what_disagrees_is_not_timed():
    case = case_named("MLP 8-16-2, batch 4, SGD")
    good = ready(case, "NumPy")
    wrong = Program(good.step, lambda: [a + 0.01 for a in arrays(good.gradients())])
    broken = dataclasses.replace(case, others={"NumPy": lambda: wrong})
    row = measure(broken, [OURS, "NumPy"], 1, 1e-4)
    assert "NumPy" not in row["seconds"] and "differs" in row["problems"][0]
    with pytest.raises(Disagreement, match="shapes"):
        compare(case, [np.zeros(2)], [np.zeros(3)], "both")
    with pytest.raises(Disagreement, match="NaN"):
        compare(case, [np.array([np.nan])], [np.zeros(1)], "both")


def test_a_peer_that_fails_is_left_out_with_its_reason():
    def fails():
        raise NotImplementedError("no such op")

    case = dataclasses.replace(case_named("add 1k | forward"), others={"NumPy": fails})
    row = measure(case, [OURS, "NumPy"], 1, 1e-4)
    assert row["skipped"] == {"NumPy": "NotImplementedError: no such op"}
    assert OURS in row["seconds"] and not row["problems"]


def test_the_order_of_blocks_alternates():
    order = []
    times = interleaved({"a": lambda: order.append("a"), "b": lambda: order.append("b")}, 2, 0.0)
    assert order[-4:] == ["a", "b", "b", "a"] and {k: len(v) for k, v in times.items()} == {"a": 2, "b": 2}
    assert ratio([1.0, 2.0, 30.0], [2.0, 4.0, 10.0])[0] == 0.5


def test_one_table_and_its_file(tmp_path, capsys, unconfined):
    target = tmp_path / "out" / "result.json"
    words = ["MLP 8-16-2", "add 1k | forward", "--quick", "--blocks", "2", "--seconds", "1e-4", "--peers", "compiled,NumPy", "--json", str(target)]
    assert run.main(words) == 0
    text = capsys.readouterr().out
    assert "add 1k | forward" in text and "    compiled" in text and "GB/s" in text
    result = json.loads(target.read_text())
    rows = {r["name"]: r for r in result["rows"]}
    assert set(rows) == {"add 1k | forward", "MLP 8-16-2, batch 4, SGD"}
    mlp = rows["MLP 8-16-2, batch 4, SGD"]
    assert set(mlp["seconds"]) == {OURS, COMPILED, "NumPy"} and set(mlp["ratios"][COMPILED]) == {OURS, "NumPy"}
    assert share(rows["add 1k | forward"], result["limits"]) > 0
    with pytest.raises(SystemExit, match="there is no 'Theano'"):
        run.main(["--peers", "Theano"])


def result_with(seconds, theirs=1.0, spread=0.01):
    row = {
        "name": "a case", "suite": "models", "group": "MLP", "size": 0, "bytes": 0, "flops": 0, "bounds": {"PyTorch": 0.5}, "problems": [],
        "seconds": {OURS: seconds, COMPILED: seconds / 2, "PyTorch": theirs}, "skipped": {},
        "ratios": {OURS: {"PyTorch": seconds / theirs}, COMPILED: {"PyTorch": seconds / theirs / 2, OURS: 0.5}},
        "spread": {OURS: {"PyTorch": spread}, COMPILED: {"PyTorch": spread}},
    }  # fmt: skip
    return {"rows": [row], "startup": [], "memory": [], "limits": {"bytes": 1.0, "flops": 1.0}}


def test_the_summary_says_what_misses_its_target():
    text = report.summary(result_with(1.5))
    assert "target 0.75, MISSED" in text and "target 1.1, MISSED): a case" in text
    assert "a case: 0.75 of PyTorch (target 0.5)" in text
    assert "MISSED" not in report.summary(result_with(0.5))


def test_changes_are_those_beyond_noise():
    before = result_with(1.0)
    assert "0 of 2 rows" in report.changes(before, result_with(1.05))
    assert "2 of 2 rows" in report.changes(before, result_with(1.5)) and "1.50×" in report.changes(before, result_with(1.5))
    assert "0 of 2 rows" in report.changes(before, result_with(1.5, spread=0.3))
    assert "0 of 2 rows" in report.changes(before, result_with(2.0, theirs=2.0))  # the whole machine was slower
    gone = copy.deepcopy(before)
    gone["rows"][0]["name"] = "another"
    assert "only before: another" in report.changes(gone, before)


# ------------------------------------------------------------------------------------------------- from cold


def test_stages_and_kernels_of_a_process(tmp_path):
    first, second = (stages(OURS, "first gradient", str(tmp_path)) for _ in range(2))
    assert set(first["stages"]) <= set(STAGES)
    assert all(first["stages"][s] > 0 for s in ("importing", "Python", "front end", "type inference", "lowering", "IR text", "LLVM", "loading"))
    made = {k["name"]: k for k in first["kernels"]}
    assert {"mul", "sum", "mul_backward"} <= set(made) and not first["loaded"]
    assert all(k["instructions"] > k["blocks"] > 0 and k["seconds"] > 0 for k in made.values())
    assert made["sum"]["instructions"] > made["mul"]["instructions"]
    assert not second["kernels"] and second["loaded"] == len(first["kernels"])
    assert not second["stages"].get("LLVM") and sum(second["stages"].values()) < sum(first["stages"].values())


def test_ratios_of_processes(monkeypatch, tmp_path, capsys, unconfined):
    seconds = {OURS: 6.0, COMPILED: 9.0, "PyTorch": 3.0}

    def spent(peer, name, cache):
        warm = len(seen) and seen[-1] == (peer, cache)
        seen.append((peer, cache))
        t = seconds[peer] / (6 if warm else 1) * (2 if name == "MLP" else 1)
        return Spent(t, t / 2, t, t / 2, 0.0)

    seen = []
    found = {"stages": {"LLVM": 1.0}, "kernels": [{"name": "mul", "types": ["float32[:]"], "seconds": 0.5, "instructions": 1234, "blocks": 99}]}
    monkeypatch.setattr(cold, "spent", spent)
    monkeypatch.setattr(cold, "stages", lambda peer, name, cache: found)
    monkeypatch.setattr(cold, "absent", lambda peer: "jax is not installed" if peer == "JAX" else "")
    target = tmp_path / "figures.json"
    assert cold.main(["first", "mlp", "--rounds", "2", "--json", str(target)]) == 0
    text = capsys.readouterr().out
    assert "JAX: jax is not installed" in text and "mul (float32[:])" in text and "1,234" in text
    means = {line[22:48].strip(): line[68:].split()[:2] for line in text.splitlines() if line.startswith("geometric mean")}
    assert means[OURS] == ["2.00", "2.00"] and means[COMPILED] == ["3.00", "3.00"] and means[OURS + cold.WARM] == ["0.33", "0.33"]
    figures = json.loads(target.read_text())
    assert {k: len(v) for k, v in figures["programs"]["MLP"].items()} == dict.fromkeys(
        (OURS, OURS + cold.WARM, COMPILED, COMPILED + cold.WARM, "PyTorch"), 2)  # fmt: skip
    with pytest.raises(SystemExit, match="there are first gradient, MLP"):
        cold.main(["none of them"])
    assert len(PROGRAMS) == 9 and set(IN_JAX) < set(PROGRAMS)


def test_first_calls_of_a_compiled_step():
    found = first_calls.child("MLP 8-16-2", str(store.folder))
    assert len(found["calls"]) == 4 and found["captured"] == 1 and found["stages"]["program"] > 0
    assert found["loaded"] + len(found["kernels"]) > 5


def test_steps_are_timed_by_several_interpreters(monkeypatch, capsys, unconfined):
    monkeypatch.setattr(programs, "BLOCKS", 2)
    programs.main(["MLP 8-16-2", "--step", "--json"])
    (found,) = json.loads(capsys.readouterr().out).values()
    assert 1e-7 < found < 1e-2
    times = iter([5e-6, 7e-6, 6e-6, 6e-6] + 6 * [8e-6])
    monkeypatch.setattr(programs, "by", lambda python, words: {words[0]: next(times)})
    programs.main(["step", "--pythons", "one", "two"])
    assert "one 5.0 µs  two 6.0 µs" in capsys.readouterr().out


def test_cliffs_are_cases_that_break_a_rule(monkeypatch, capsys, unconfined):
    rows = {"slower": [1.0, 1.06, 1.0], "even": [1.0, 1.05, 1.0], "behind": [1.21, 1.0, 1.0], "beside": [1.2, 0.5, 1.0]}
    monkeypatch.setattr(cliffs, "all_cases", lambda torch, peer: [(name, lambda name=name: name) for name in rows])
    monkeypatch.setattr(cliffs, "measured", rows.get)
    monkeypatch.setattr("sys.argv", ["bench.cliffs"])
    cliffs.main()
    printed = capsys.readouterr().out
    assert "slower" in printed and "behind" in printed and "even" not in printed and "beside" not in printed
    assert "4 cases, 2 break a rule" in printed and "worst 1.06, 1 above 1.05" in printed and "worst 1.21, 1 above 1.2" in printed


def test_cliffs_time_steps_that_run():
    """There are at least 400 cases, of which two are timed here; `tests/parity/test_bench.py` compares them with PyTorch."""
    cases = cliffs.all_cases(torch, None)
    assert len(cases) >= 400 and len({name for name, _ in cases}) == len(cases)
    for name in ("plus a row, small, added gradient", "a + b of 100"):
        eager, compiled = cliffs.measured(dict(cases)[name](), 0.0)
        assert eager > 0 and compiled > 0, name
