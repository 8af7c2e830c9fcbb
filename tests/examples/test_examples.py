"""The examples run as their users run them: as programs."""

from __future__ import annotations

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
    assert sorted(files) == ["checkpoint.safetensors", "two_branch.png", "two_branch.safetensors", "two_branch_loss.png"]
    for name in ("two_branch.png", "two_branch_loss.png"):
        assert files[name].read_bytes().startswith(b"\x89PNG\r\n")

    from safetensors.numpy import load_file

    weights = load_file(files["two_branch.safetensors"])
    assert weights["trunk.0.weight"].shape == (16, 1, 3, 3)
    assert len(weights) == 2 * 3 + 2 * 2 * 3  # three convolutions, twice three layers, each with a bias


@classifier
def test_show_error(tmp_path):
    out = train("--show-error", "--out", tmp_path)
    assert "Trying to backward through the graph a second time" in out
    assert "retain_graph=True" in out


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


@classifier
def test_errors_are_friendly(tmp_path):
    assert "Nothing to resume" in train("--resume", "--out", tmp_path / "empty", code=1)
    file = tmp_path / "file"
    file.touch()
    assert "Cannot write to" in train("--out", file / "inside", code=1)
    assert "--epochs" in train("--epochs", "0", code=2)
