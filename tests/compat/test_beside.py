"""PyTorch's names in modules that are there too: found when they are asked for, with what they do."""

from __future__ import annotations

import importlib
import subprocess
import sys
from collections import OrderedDict

import pytest

import autograd_nb as torch
from autograd_nb.compat.beside import BESIDE
from autograd_nb.compat.import_aliases import HOMES, MOVED
from autograd_nb.compat.more import MODULES
from autograd_nb.compat.table import NoClass, Refuses, Says

NAMES = [(module, name) for module, names in BESIDE.items() for name in names]


@pytest.mark.parametrize(("module", "name"), NAMES)
def test_answers(module, name):
    answer, home = BESIDE[module][name], importlib.import_module(f"autograd_nb.{module}")
    made = getattr(home, name)
    assert getattr(home, name) is made
    match answer:
        case Says(value):
            assert made() == value
        case Refuses(error, _) | NoClass(Refuses(error, _)):
            with pytest.raises(error, match="this library"):
                made()
    with pytest.raises(AttributeError):
        importlib.import_module(f"autograd_nb.{module}").nothing_of_this_name


def test_every_table_has_its_home():
    assert set(BESIDE) <= {place for places in HOMES.values() for place in places}


#: modules in whose place PyTorch's package above them has a function
HIDDEN = {"nn.parallel.data_parallel", *(f"_higher_order_ops.{name}" for name in ("associative_scan", "cond", "map", "scan", "while_loop"))}


@pytest.mark.parametrize("name", sorted({*MOVED, *MODULES} - HIDDEN))
def test_modules_are_attributes_of_those_above(name):
    """A program that has only imported the package finds every module by its path, as in PyTorch."""
    found = torch
    for part in name.split("."):
        found = getattr(found, part)
    assert found is importlib.import_module(f"autograd_nb.{name}")


def test_modules_are_found_before_anything_is_imported_by_name():
    code = (
        "import autograd_nb; torch = autograd_nb.as_torch(); import torch as again;"
        "assert torch.torch is again and torch.functional.einsum is torch.einsum and torch.utils.data._utils.collate.default_collate;"
        "assert torch.amp.autocast_mode.autocast is torch.autocast and torch.cuda.nvtx.mark('x') is None and torch.fx._symbolic_trace;"
        "assert torch.distributed.distributed_c10d.Backend and torch.optim.optimizer._to_scalar(1.5) == 1.5;"
        "from torch.utils.checkpoint import get_device_states; from torch.multiprocessing import start_processes, get_all_start_methods"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_trees_are_written_and_read():
    from autograd_nb.utils import _pytree as trees

    spec = trees.tree_structure({"a": [1, (2, 3)], "b": 4})
    assert trees.treespec_loads(trees.treespec_dumps(spec)) == spec
    with pytest.raises(NotImplementedError, match="this library"):
        trees.treespec_dumps(trees.tree_structure(OrderedDict(a=1)))


def test_printing_is_changed_for_a_while():
    before = repr(torch.tensor([1 / 3]))
    with torch._tensor_str.printoptions(precision=2):
        assert repr(torch.tensor([1 / 3])) == "tensor([0.33])"
    assert repr(torch.tensor([1 / 3])) == before


def test_workers_seeds_differ():
    from autograd_nb.utils.data._utils.worker import _generate_state

    assert _generate_state(1, 0) == _generate_state(1, 0) != _generate_state(1, 1)
    assert all(0 <= number < 2**32 for number in _generate_state(1, 0))


def test_modules_of_other_packages_are_left_alone(tmp_path, monkeypatch):
    """Also those that are called as this library's, PyTorch's own among them."""
    for name in ("", "distributed", "optim"):
        at = tmp_path / "another" / name
        at.mkdir(exist_ok=True)
        (at / "__init__.py").write_text("")
    monkeypatch.syspath_prepend(str(tmp_path))
    for name in ("distributed", "optim"):
        module = importlib.import_module(f"another.{name}")
        assert "__getattr__" not in vars(module)
        assert not hasattr(module, "fsdp")
