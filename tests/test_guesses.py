"""What a person reads: wrong names are answered with a guess, compiled functions tell of themselves in sentences."""

from __future__ import annotations

import subprocess
import sys
import warnings

import pytest

import autograd_nb as torch

GUESSES = {
    "torch.onse(2)": "ones",
    "torch.nn.Linaer(2, 3)": "Linear",
    "torch.nn.functional.rellu(1)": "relu",
    "torch.ones(2).backwrd()": "backward",
    "torch.nn.Sequential(torch.nn.ReLU()).paramters()": "parameters",
    "torch.nn.Linear(2, 3).wieght": "weight",
}


@pytest.mark.parametrize("text", GUESSES)
def test_a_wrong_name_is_answered_with_a_guess(text):
    run = subprocess.run([sys.executable, "-c", f"import autograd_nb as torch\n{text}"], capture_output=True, text=True)
    assert run.returncode == 1
    assert run.stderr.strip().endswith(f"Did you mean: '{GUESSES[text]}'?"), run.stderr


def test_a_compiled_function_tells_of_its_programs():
    @torch.compile
    def scaled(x):
        return (x * 2).sum()

    assert repr(scaled).endswith("scaled: nothing captured yet.")
    scaled(torch.ones(3))
    scaled(torch.ones(4))
    text = repr(scaled)
    assert "scaled: 2 programs." in text and "first call of its kind" in text and "has shape [4]" in text
    assert "kernel" in text and "bytes for temporaries" in text and " object at 0x" not in text + repr(scaled.programs)


def test_a_compiled_function_tells_what_runs_eagerly():
    @torch.compile
    def branching(x):
        return x * 2 if x.sum().item() > 0 else x

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        branching(torch.ones(3))
    assert "runs eagerly: it reads values with item()" in repr(branching)
