"""What a person reads: wrong names are answered with a guess, compiled functions tell of themselves in sentences."""

from __future__ import annotations

import re
import subprocess
import sys
import warnings
from pathlib import Path

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
    assert "runs eagerly: it reads values with item(); keep values in tensors" in repr(branching)


KEYWORDS = {
    "a function": (lambda: torch.sum(torch.ones(3), dmi=0), "dim"),
    "a method": (lambda: torch.ones(3).sum(kepdim=True), "keepdim"),
    "a module": (lambda: torch.nn.Linear(3, 4, bais=True), "bias"),
    "an optimizer": (lambda: torch.optim.SGD([torch.ones(2, requires_grad=True)], lr=0.1, momentun=0.2), "momentum"),
    "a forward": (lambda: torch.nn.Linear(3, 4)(imput=torch.ones(3)), "input"),
}


@pytest.mark.parametrize("what", KEYWORDS)
def test_a_wrong_keyword_is_answered_with_a_guess(what):
    call, near = KEYWORDS[what]
    with pytest.raises(TypeError, match=f"got an unexpected keyword argument '\\w+'\\. Did you mean '{near}'\\?$"):
        call()


def test_a_keyword_like_no_other_is_refused_without_a_guess():
    with pytest.raises(TypeError, match=r"got an unexpected keyword argument 'zyx'$"):
        torch.nn.Linear(3, 4, zyx=1)


class Net(torch.nn.Module):
    """Modules in modules, one of which does not fit."""

    def __init__(self):
        super().__init__()
        self.trunk = torch.nn.Sequential()
        self.trunk.add_module("conv1", torch.nn.Conv2d(3, 8, 3))
        self.trunk.add_module("conv2", torch.nn.Conv2d(4, 8, 3))

    def forward(self, x):
        return self.trunk(x)


def test_an_error_in_a_module_names_its_path_and_what_it_takes():
    with pytest.raises(RuntimeError) as caught:
        Net()(torch.ones(1, 3, 9, 9))
    text = "In the module trunk.conv2 of Net: Conv2d(4, 8, kernel_size=(3, 3), stride=(1, 1)) takes [N, 4, H, W], and was given [1, 8, 7, 7]."
    assert caught.value.__notes__ == [text]
    assert "In the module" not in str(caught.value)  # the message itself stays PyTorch's


MISFITS = {
    "[*, 3]": (torch.nn.Linear(3, 4), (2, 5)),
    "[N, 3, L]": (torch.nn.Conv1d(3, 4, 2), (1, 2, 9)),
    "[N, 3, *]": (torch.nn.BatchNorm1d(3), (4, 5)),
    "[*, 2, 3]": (torch.nn.LayerNorm((2, 3)), (4, 5)),
    "[L, N, 3]": (torch.nn.LSTM(3, 4), (5, 1, 4)),
    "[N, 4, *]": (torch.nn.GroupNorm(2, 4), (1, 3, 5)),
}


@pytest.mark.parametrize("shape", MISFITS)
def test_what_a_module_takes(shape):
    module, given = MISFITS[shape]
    with pytest.raises((RuntimeError, ValueError)) as caught:
        module(torch.ones(given))
    assert f"takes {shape}, and was given {list(given)}." in caught.value.__notes__[0]


def test_the_first_nan_of_the_forward_pass_is_told_with_its_line():
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        with torch.autograd.detect_anomaly():
            x = torch.zeros(3, requires_grad=True)
            y = x.log() * x  # the first one
            z = (y - y).sum()
            with pytest.raises(RuntimeError, match=r"returned nan values.*The first nan of the forward pass was made by mul, called at .*the first one"):
                z.backward()
    assert [str(w.message) for w in told if "operands without nan" in str(w.message)]
    torch.ones(2).log()
    assert torch.autograd.anomaly._state.forward is None


def test_anomaly_detection_gives_way_to_a_profile():
    with pytest.warns(UserWarning, match="Anomaly Detection"), torch.autograd.detect_anomaly(), torch.profiler.profile() as prof:
        torch.ones(3).exp()
    assert any(e.key == "aten::exp" for e in prof.key_averages())


def test_every_reason_to_run_eagerly_has_a_remedy():
    """Those in the compiler's texts: each says what to change, itself or by the table."""
    from autograd_nb.compiler import remedies

    folder = Path(remedies.__file__).parent
    reasons = set()
    for path in folder.rglob("*.py"):
        for text in re.findall(r"""(?:Problem|capture\.problem|self\.problem)\(\s*f?"([^"]+)\"""", path.read_text()):
            reasons.add(re.sub(r"\{name!r\}", "'lr'", re.sub(r"\{MOST(_KINDS)?\}", "64", text)))
    for path in (folder.parent / "ops").rglob("*.py"):
        reasons |= {f"it reads values with {what}" for what in re.findall(r"""launch\.escapes\("([^"]+)"\)""", path.read_text())}
    assert len(reasons) > 50
    assert {r for r in reasons if "; " not in r and "{what}" not in r and not remedies.remedy(r)} == set()
