"""The API reference on the site: every public name has an entry with an example, and what entries say of whole kinds of ops holds."""

from __future__ import annotations

import enum
import importlib
import inspect
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import autograd_nb as torch
from autograd_nb.ops.core.guesses import guess_keyword
from autograd_nb.ops.core.registry import OPS
from tests.test_examples import has_example, is_error


@pytest.fixture(scope="module")
def pages():
    """The modules of the site that need no Sphinx, by their names."""
    folder = str(Path(__file__).parents[1] / "docs" / "_ext")
    sys.path.insert(0, folder)
    yield importlib.import_module
    sys.path.remove(folder)


def test_every_public_name_is_told_of(pages):
    walk = pages("walk")
    entries = walk.entries()
    told = {name for entry in entries for name in (entry.name, *entry.also)}
    things = {id(entry.thing) for entry in entries}
    without = set()
    for space_name in walk.NAMESPACES:
        space = walk.namespace(space_name)
        for name in walk._public(space):
            thing = inspect.getattr_static(space, name) if space_name == "Tensor" else getattr(space, name, None)
            ours = (getattr(thing, "__module__", None) or "autograd_nb").startswith(("autograd_nb", "torch"))
            described = callable(thing) or isinstance(thing, property)
            if ours and described and not inspect.ismodule(thing) and not isinstance(thing, torch.dtype) and id(thing) not in things:
                without.add(".".join(filter(None, ("autograd_nb", space_name, name))))
    # names of this kind only stand for types in annotations; the methods are those without the underscore
    without = {name for name in without - told if "symbols" not in str(getattr(eval(name, {"autograd_nb": torch}), "__module__", ""))}
    assert without <= {"autograd_nb.Tensor.detach_", "autograd_nb.Tensor.requires_grad_"}


def test_entries_have_examples(pages):
    """Those of several processes and of attributes are shown by the tutorials; no others may come."""
    walk = pages("walk")
    without = [
        entry.name.removeprefix("autograd_nb.") for entry in walk.entries()
        if not has_example(entry.name.removeprefix("autograd_nb."), entry.text) and not entry.page.endswith("answers") and not is_error(entry.thing)
        and not isinstance(entry.thing, property)
    ]  # fmt: skip
    assert {name for name in without if not name.startswith("distributed.")} <= ALLOWED


#: whose examples would show nothing that a reader looks for
ALLOWED = {
    "nn.init.new_empty", "nn.init.new_full", "nn.parallel.data_parallel", "autograd.forward_ad.exit_dual_level", "autograd.forward_ad.make_dual",
    "autograd.forward_ad.unpack_dual", "Tensor.dequantize", "Tensor.is_distributed",
    "from_file", "get_file_path", "viz.Held", "viz.time_map", "errors.keywords_of", "errors.shorten", "errors.unexpected", "errors.version",
    "errors.with_guess",
}  # fmt: skip


def test_what_the_reference_says_of_kinds_of_ops(pages):
    rules = pages("answers").rules
    tried = {"the operand's": 0, "operands are": 0, "the operand's without": 0}
    for name, op in OPS.items():
        said = rules(name).get("Shapes", "")
        if not said or op.kind == "inplace" or op.kind == "internal":
            continue
        integers = "float" not in op.dtypes
        x = torch.ones(2, 3, dtype=torch.int64 if integers else torch.float32) * (1 if integers else 0.5)
        if said == "the operand's":
            tried["the operand's"] += 1
            assert op.call(x).shape == (2, 3), name
            with pytest.raises(TypeError):
                op.call("no tensor")
        elif said.startswith("operands are"):
            tried["operands are"] += 1
            needed = [p for p in inspect.signature(op.call).parameters.values() if p.default is p.empty and p.kind is p.POSITIONAL_OR_KEYWORD]
            others = [x[:1]] * (len(needed) - 1)
            assert op.call(x, *others).shape == (2, 3), name
            with pytest.raises(RuntimeError):
                op.call(x, *[torch.ones(4, dtype=x.dtype)] * len(others))
        else:
            tried["the operand's without"] += 1
            assert op.call(x, dim=1).shape == (2,) and op.call(x, dim=(0, 1) if name == "logsumexp" else None).shape == (), name
            assert ("keepdim" in said) == ("keepdim" in inspect.signature(op.call).parameters), name
            assert "keepdim" not in said or op.call(x, dim=1, keepdim=True).shape == (2, 1), name
            with pytest.raises(IndexError):
                op.call(x, dim=2)
    assert all(count >= 5 for count in tried.values()), tried


def test_what_the_reference_says_of_examples_is_so(pages):
    """What `observe` wrote is what the examples show now."""
    observe = pages("observe")
    written = json.loads(observe.FILE.read_text(encoding="utf-8"))
    assert len(written) > 550 and written.keys() <= OPS.keys(), "make stubs writes it anew"
    stale = []
    for name in written:
        torch.manual_seed(0)
        if observe.observe(name) != written[name]:
            stale.append(name)
    assert stale == [], "make stubs writes it anew"
    assert observe.observe("argmax")["nodes"] == [] and observe.observe("exp")["nodes"] == ["ExpBackward0"]
    assert observe.observe("positive")["same"] and observe.observe("addmm")["shapes"] == [["[1, 1]", "[1, 2]", "[2, 1]"], ["[1, 1]"]]


#: what refuses nothing: it takes any object, or changes a switch, or does nothing with what it is given
TAKES_ANYTHING = {
    "Tensor.is_pinned", "Tensor.module_load", "Tensor.pin_memory", "Tensor.to_dense", "autograd.forward_ad.unpack_dual",
    "distributed.batch_isend_irecv", "distributed.get_default_backend_for_device", "distributed.get_node_local_rank",
    "distributed.get_process_group_ranks", "distributed.is_backend_available", "distributed.supports_complex", "distributions.biject_to",
    "distributions.identity_transform", "distributions.transform_to", "errors.guess", "errors.keywords_of", "errors.shorten",
    "errors.unexpected", "errors.warn_user", "errors.with_guess",
    "func.replace_all_batch_norm_modules_", "is_storage", "is_tensor", "nn.Identity",
    "nn.UninitializedBuffer", "nn.UninitializedParameter", "nn.init.ones_",
    "nn.init.zeros_", "nn.parallel.data_parallel", "nn.utils.parameters_to_vector", "nn.utils.parametrize.is_parametrized",
    "nn.utils.parametrize.transfer_parametrizations_and_params", "nn.utils.parametrize.type_before_parametrizations",
    "nn.utils.rnn.invert_permutation", "nn.utils.weight_norm", "profiler.tensorboard_trace_handler", "random.fork_rng", "save",
    "serialization.compact", "serialization.reduce_tensor", "set_anomaly_enabled", "set_flush_denormal", "set_warn_always", "to_dlpack", "typename",
    "utils.checkpoint.set_checkpoint_debug_enabled", "utils.checkpoint.set_checkpoint_early_stop", "utils.data.default_convert", "wait",
}  # fmt: skip


def test_entries_say_what_they_refuse_and_ops_their_derivative(pages):
    no_errors, no_derivative = pages("answers").without()
    assert {name.removeprefix("autograd_nb.") for name in no_errors} == TAKES_ANYTHING
    assert no_derivative == set()


def test_what_the_reference_says_is_refused_is_so(pages):
    refuse = pages("refuse")
    assert len(refuse.written()) > 900
    done = subprocess.run([sys.executable, refuse.__file__], env=os.environ | {"NUMBA_DISABLE_JIT": "1"}, capture_output=True, text=True, check=True)
    assert done.stdout.split() == [], "make stubs writes it anew"


def misspelt(entry):
    """Yield calls of a public name by a keyword that lacks a letter: the keyword, and what the call says."""
    thing = getattr(entry.thing, "__func__", entry.thing)
    if isinstance(thing, (property, enum.EnumMeta)) or not callable(thing):
        return
    try:
        parameters = list(inspect.signature(thing).parameters.values())
    except ValueError:
        return  # written in C
    for p in parameters:
        wrong = p.name[0] + p.name[2:]
        if len(p.name) < 4 or p.name[0] == "_" or p.kind not in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY) or wrong in [q.name for q in parameters]:
            continue
        others = [q for q in parameters if q is not p and q.default is q.empty]
        given = [torch.ones(2, 2) for q in others if q.kind == q.POSITIONAL_OR_KEYWORD]
        try:
            thing(*given, **{q.name: 1 for q in others if q.kind == q.KEYWORD_ONLY}, **{wrong: 1})
        except Exception as error:
            guess_keyword(error, error.__traceback__)
            yield wrong, f"{type(error).__name__}: {error}"
        else:
            yield wrong, "taken"


@pytest.mark.filterwarnings("ignore:torch.utils.checkpoint")
def test_every_keyword_of_every_public_name_is_guessed_at_when_a_letter_of_it_is_missing(pages):
    """As it is shown where nobody catches the error: constructors of loaders, schedulers, distributions and samplers had no guess."""
    said = {f"{entry.name}({wrong}=)": text for entry in pages("walk").entries() for wrong, text in misspelt(entry)}
    without = {call: text for call, text in said.items() if "Did you mean '" not in text}
    # a function that takes any keyword only misses one; some ask first what they were given; what is traced is given any keyword
    asked = ("autograd_nb.load(", "autograd_nb.from_file(", "autograd_nb.Tensor.random_(", "autograd_nb.onnx.export(")
    assert len(said) > 3000
    assert {c: t for c, t in without.items() if " missing " not in t and not c.startswith(asked)} == {}
