"""The examples run as their users run them: as programs."""

from __future__ import annotations

import csv
import importlib.util
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NEEDED = ("sklearn", "matplotlib", "tqdm", "PIL", "safetensors")
MISSING = [name for name in NEEDED if importlib.util.find_spec(name) is None]
classifier = pytest.mark.skipif(bool(MISSING), reason=f"the example needs {', '.join(MISSING)}")

ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1"}


def command(name: str, *arguments: object) -> list[str]:
    return [sys.executable, "-W", "error::UserWarning:autograd_nb", str(ROOT / "examples" / name), *map(str, arguments)]


def run(name: str, *arguments: object, code: int = 0) -> str:
    """What the example prints, both streams."""
    done = subprocess.run(
        command(name, *arguments), env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300
    )
    assert done.returncode == code, done.stdout
    return done.stdout


def train(*arguments: object, code: int = 0) -> str:
    return run("two_branch_classifier.py", *arguments, code=code)


def test_first_steps():
    out = run("first_steps.py")
    assert out.rstrip().endswith("all as asserted")
    assert "MeanBackward0 -> MulBackward0 -> PowBackward0 -> AccumulateGrad" in out


@classifier
@pytest.mark.parametrize("backward", ["joint", "sequential"])
def test_one_epoch(tmp_path, backward):
    out = train("--epochs", 1, "--backward", backward, "--out", tmp_path)
    difference = re.search(r"gradients differ by at most (\S+) on", out)
    assert difference
    assert float(difference[1]) < 1e-5
    assert re.search(r"held-out accuracy: even\? \d+\.\d+%, 5 or more\? \d+\.\d+%", out)
    files = {path.name: path for path in tmp_path.iterdir()}
    assert sorted(files) == [
        "checkpoint.safetensors", "two_branch.png", "two_branch.safetensors", "two_branch_loss.csv", "two_branch_loss.png",
    ]  # fmt: skip
    table = list(csv.DictReader(files["two_branch_loss.csv"].read_text().splitlines()))
    assert [int(row["step"]) for row in table] == list(range(1, 1437 // 32 + 1))
    assert float(table[-1]["even"]) < float(table[0]["even"])
    for name in ("two_branch.png", "two_branch_loss.png"):
        assert files[name].read_bytes().startswith(b"\x89PNG\r\n")

    from safetensors.numpy import load_file

    weights = load_file(files["two_branch.safetensors"])
    assert weights["trunk.0.weight"].shape == (16, 1, 3, 3)
    assert len(weights) == 2 * 3 + 2 * 2 * 3  # three convolutions, twice three layers, each with a bias


@classifier
def test_events_for_tensorboard(tmp_path):
    pytest.importorskip("tensorboard", reason="needs the package tensorboard")
    train("--epochs", 1, "--batch-size", 256, "--tensorboard", "--out", tmp_path)
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    runs = {}
    for path in {p.parent for p in (tmp_path / "runs").rglob("events.out.*")}:
        runs[path.relative_to(tmp_path / "runs").as_posix()] = EventAccumulator(str(path)).Reload()
    assert {n for n in runs if n.startswith(("loss", "accuracy"))} == {"loss_even", "loss_big", "accuracy_even", "accuracy_big"}
    assert [e.step for e in runs["loss_even"].Scalars("loss")] == list(range(1, 6))
    assert any(node.name == "TwoBranches/trunk/0/conv2d" for node in runs["."].Graph().node)
    assert "gradients/trunk.0.weight" in runs["."].Tags()["histograms"]
    assert runs["setting"].Scalars("accuracy/even")


@pytest.mark.slow
@classifier
def test_show_error(tmp_path):
    out = train("--show-error", "--out", tmp_path)
    assert "Trying to backward through the graph a second time" in out
    assert "retain_graph=True" in out


@pytest.mark.slow
@classifier
@pytest.mark.skipif(sys.platform == "win32", reason="Ctrl-C cannot be sent to one process there")
def test_stopped_and_resumed_is_as_never_stopped(tmp_path):
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    train("--epochs", 2, "--out", whole)

    process = subprocess.Popen(
        command("two_branch_classifier.py", "--epochs", 2, "--out", parts), env=ENVIRONMENT, stdout=subprocess.PIPE, text=True
    )
    with process:
        for line in process.stdout:
            if line.startswith("epoch  1"):
                process.send_signal(signal.SIGINT)
                break
        rest = process.stdout.read()
    assert process.returncode == 130, rest
    assert "go on with --resume" in rest

    assert "resumed after step" in train("--epochs", 2, "--out", parts, "--resume")
    assert (parts / "two_branch.safetensors").read_bytes() == (whole / "two_branch.safetensors").read_bytes()


@pytest.mark.slow
@classifier
def test_errors_are_friendly(tmp_path):
    assert "Nothing to resume" in train("--resume", "--out", tmp_path / "empty", code=1)
    file = tmp_path / "file"
    file.touch()
    assert "Cannot write to" in train("--out", file / "inside", code=1)
    assert "--epochs" in train("--epochs", "0", code=2)


def picture(path: Path) -> bool:
    return path.read_bytes().startswith(b"\x89PNG\r\n")


def numbers(pattern: str, text: str) -> list[float]:
    """What the groups of a pattern match in the text."""
    found = re.search(pattern, text)
    assert found, text
    return [float(n) for n in found.groups()]


@pytest.mark.slow
@classifier
def test_style_transfer(tmp_path):
    out = run("style_transfer.py", "--height", 48, "--steps", 6, "--out", tmp_path)
    first, last, content = numbers(r"style loss (\S+) -> (\S+), content loss 0 -> (\S+)", out)
    assert last < first
    assert content > 0
    assert picture(tmp_path / "style_transfer.png")
    assert picture(tmp_path / "style_transfer_all.png")


@pytest.mark.slow
@classifier
def test_char_gpt(tmp_path):
    out = run("char_gpt.py", "--steps", 30, "--context", 32, "--width", 32, "--sample", 20, "--prompt", "If ", "--out", tmp_path)
    first, last, held_out = numbers(r"loss (\S+) -> (\S+), held out (\S+)", out)
    assert last < first - 0.5
    assert held_out < first
    assert "times as fast" in out
    assert "\nIf " in out
    assert "Warning" not in out  # the step is compiled, not run eagerly
    assert picture(tmp_path / "char_gpt.png")
    table = list(csv.DictReader((tmp_path / "char_gpt.csv").read_text().splitlines()))
    assert [int(row["step"]) for row in table] == list(range(1, 31))
    assert [round(float(table[i]["loss"]), 3) for i in (0, -1)] == [first, last]
    assert "--prompt must be" in run("char_gpt.py", "--prompt", "\u2603", "--out", tmp_path, code=2)


@pytest.mark.slow
@classifier
def test_pinn_heat(tmp_path):
    out = run("pinn_heat.py", "--steps", 200, "--points", 64, "--out", tmp_path)
    mean, largest = numbers(r"exact solution: mean (\S+), largest (\S+)", out)
    assert mean < 0.1
    assert largest < 0.3
    assert picture(tmp_path / "pinn_heat.png")


@pytest.mark.slow
@classifier
def test_neural_ode(tmp_path):
    out = run("neural_ode.py", "--steps", 30, "--points", 60, "--out", tmp_path)
    first, last = numbers(r"loss (\S+) -> (\S+)", out)
    assert last < first
    assert picture(tmp_path / "neural_ode.png")
    assert "--span must be" in run("neural_ode.py", "--span", 1, "--out", tmp_path, code=2)


@pytest.mark.slow
@classifier
def test_maml_sine(tmp_path):
    out = run("maml_sine.py", "--steps", 60, "--tasks", 4, "--out", tmp_path)
    before = numbers(r"untrained +(\S+) +(\S+) +(\S+)", out)
    after = numbers(r"meta-trained +(\S+) +(\S+) +(\S+)", out)
    assert after[1] < before[1]
    assert picture(tmp_path / "maml_sine.png")


@pytest.mark.slow
@classifier
def test_njit_optimizer(tmp_path):
    out = run("njit_optimizer.py", "--dims", 4, "--repeats", 1, "--out", tmp_path)
    values = [float(v) for v in re.findall(r"(?:numba|scipy): (\S+) after", out)]
    assert len(values) == 4
    assert values[0] == pytest.approx(0, abs=1e-9)
    assert values[2] == pytest.approx(values[3], abs=1e-8)
    assert picture(tmp_path / "njit_optimizer.png")


@pytest.mark.slow
@classifier
def test_user_ops(tmp_path):
    out = run("user_ops.py", "--relax", 20, "--steps", 40, "--out", tmp_path)
    assert "derivatives as finite differences say: True" in out
    assert numbers(r"-> (-\S+) \(known", out)[0] == pytest.approx(-44.326801, abs=1e-5)
    assert "their modes: 6 free ones" in out
    assert picture(tmp_path / "user_ops.png")
