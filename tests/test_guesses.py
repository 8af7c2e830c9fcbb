"""What a person reads: wrong names are answered with a guess, compiled functions tell of themselves in sentences."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

import autograd_nb as torch
from autograd_nb.ops.core.guesses import PYTHON_GUESSES, guess_keyword
from autograd_nb.ops.core.registry import OPS

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
    lines = str(scaled.programs).splitlines()
    assert [line[:15] for line in lines] == ["  1. Program of", "  2. Program of"][: len(lines)] and text.endswith("\n".join(lines))


def test_a_compiled_function_tells_what_runs_eagerly():
    @torch.compile
    def branching(x):
        return x * 2 if x.sum().item() > 0 else x

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        branching(torch.ones(3))
    assert "runs eagerly: it reads values with item(); keep values in tensors" in repr(branching)


def misspelt(op):
    """A call of an op by a keyword that is nearly its last one."""
    parameters = list(inspect.signature(op.call).parameters.values())
    named = [p.name for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY) and len(p.name) > 2 and p.name[0] != "_"]
    needed = [p for p in parameters if p.default is p.empty and p.kind == p.POSITIONAL_OR_KEYWORD]
    return ([torch.ones(2, 2)] * len(needed), {named[-1] + "_": 1}) if named else None


def test_every_op_has_a_guess_at_a_misspelt_keyword():
    """As it is shown where nobody catches the error: Python refuses most keywords before the function runs."""
    without, tried = set(), 0
    for name, op in OPS.items():
        if call := misspelt(op):
            tried += 1
            with pytest.raises(TypeError) as caught:
                op.call(*call[0], **call[1])
            guess_keyword(caught.value, caught.tb)
            without |= {name} if "Did you mean '" not in str(caught.value) else set()
    assert tried > 900
    # forms that copy views take what the views take; the rest says what it takes
    assert {n for n in without if not n.endswith("_copy")} <= {"random_", "cumsum_"}


def test_no_op_swallows_a_keyword_that_it_does_not_have():
    for op in OPS.values():
        for args in ([torch.ones(2, 2)], [torch.ones(2, 2), 1]):
            with pytest.raises((TypeError, RuntimeError, ValueError, IndexError)):  # a KeyError would be that of the library
                op.call(*args, zyx=1)


SHOWN = {
    "torch.add(torch.ones(2), 1, alpa=2)": "add() got an unexpected keyword argument 'alpa'. Did you mean 'alpha'?",
    "torch.ones(2).div(1, roundig_mode='floor')": "Did you mean 'rounding_mode'?",
    "torch.nn.functional.cross_entropy(1, 2, label_smothing=0.1)": "Did you mean 'label_smoothing'?",
    "torch.zeros(2, requires_gard=True)": "Did you mean 'requires_grad'?",
    "torch.zeros(2).new_ones(3, dtpe=1)": "Did you mean 'dtype'?",
    "torch.nn.utils.clip_grad_norm_([], 1, norm_typ=2)": "Did you mean 'norm_type'?",
    # while a class with a ``__torch_function__`` is there, which functions are asked for in the place of others
    "torch.eye(2).to_sparse()\ntorch.ones(2).double(mmory_format=1)":
    "Tensor.double() got an unexpected keyword argument 'mmory_format'. Did you mean 'memory_format'?",
    "def add(input, alpha): ...\nadd(1, alpa=2)": "add() got an unexpected keyword argument 'alpa'",
}


@pytest.mark.parametrize("text", SHOWN)
def test_a_misspelt_keyword_is_answered_where_errors_are_shown(text):
    run = subprocess.run([sys.executable, "-c", f"import autograd_nb as torch\n{text}"], capture_output=True, text=True)
    shown = run.stderr.strip()
    assert run.returncode == 1 and (shown.endswith(SHOWN[text]) or (PYTHON_GUESSES and "def add" in text)), shown


@pytest.mark.skipif(PYTHON_GUESSES, reason="Python's own messages have the guess")
def test_a_misspelt_keyword_is_answered_in_a_notebook():
    pytest.importorskip("IPython")
    text = (
        "from IPython.core.interactiveshell import InteractiveShell as S; s = S.instance(); "
        "s.run_cell('import autograd_nb as torch'); s.run_cell('torch.add(torch.ones(2), 1, alpa=2)')"
    )
    run = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True)
    assert "Did you mean 'alpha'?" in run.stdout + run.stderr, run.stdout + run.stderr


def test_a_hook_for_errors_that_was_there_is_called():
    text = "import sys; sys.excepthook = lambda *e: print('mine:', e[1]); import autograd_nb as t; t.add(1, 2, alpa=3)"
    run = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True)
    assert re.fullmatch(r"mine: add\(\) got an unexpected keyword argument 'alpa'\. Did you mean 'alpha'\?\n", run.stdout), run.stdout + run.stderr


KEYWORDS = {
    "a function": (lambda: torch.sum(torch.ones(3), dmi=0), "dim"),
    "a method": (lambda: torch.ones(3).sum(kepdim=True), "keepdim"),
    "a module": (lambda: torch.nn.Linear(3, 4, bais=True), "bias"),
    "an optimizer": (lambda: torch.optim.SGD([torch.ones(2, requires_grad=True)], lr=0.1, momentun=0.2), "momentum"),
    "a name of NumPy": (lambda: torch.sum(torch.ones(3), axs=0), "axis"),
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
        for text in re.findall(r"""(?:Problem|capture\.problem|self\.problem|_effect)\((?:[\w.]+, )?\s*f?"([^"]+)\"""", path.read_text()):
            reasons.add(re.sub(r"\{name!r\}", "'lr'", re.sub(r"\{MOST(_KINDS)?\}", "64", text)))
    for path in (folder.parent / "ops").rglob("*.py"):
        reasons |= {f"it reads values with {what}" for what in re.findall(r"""launch\.escapes\("([^"]+)"\)""", path.read_text())}
    assert len(reasons) > 50
    assert {r for r in reasons if "; " not in r and "{what}" not in r and not remedies.remedy(r)} == set()


def test_messages_of_python_name_ops_as_users_do():
    """Python's own errors (an argument too many, a wrong keyword) begin with the name that the function was defined under."""
    from autograd_nb.ops.core.registry import OPS

    named = {name: inspect.unwrap(op.call).__qualname__ for name, op in OPS.items() if inspect.isfunction(inspect.unwrap(op.call))}
    hidden = {name: own for name, own in named.items() if own.startswith("_") and not name.rpartition(".")[2].startswith("_")}
    assert len(named) > 900 and hidden == {}


def anomaly():
    with torch.autograd.detect_anomaly(), pytest.raises(RuntimeError):
        (torch.zeros(3, requires_grad=True).log() * 0).sum().backward()


WARNED = {
    "of a layer's empty weights": lambda: torch.nn.Sequential(torch.nn.Linear(0, 3)),
    "of a layer in a layer": lambda: torch.nn.Transformer(3, 3, 1, 1, 2),
    "of a pass within a pass": anomaly,
    "of the graph of a gradient": lambda: torch.ones(2, requires_grad=True).sum().backward(create_graph=True),
    "of a call that stays eager": lambda: torch.compile(lambda x: x * x.sum().item())(torch.ones(2)),
}


@pytest.mark.parametrize("what", WARNED)
def test_a_warning_names_the_users_line(what):
    """Whatever lies between: it was a line of the library's where a layer makes another, or the engine runs an op."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        WARNED[what]()
    assert told and {Path(w.filename) for w in told} == {Path(__file__)}, [(str(w.message), w.filename) for w in told]
