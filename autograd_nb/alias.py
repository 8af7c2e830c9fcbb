"""Programs that say ``import torch`` run with this library: `as_torch`, and ``python -m autograd_nb run script.py``.

Every import of ``torch`` or of a module below it gives the module of this library with that name. Nothing of PyTorch is read,
and PyTorch need not be installed.
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import runpy
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

PACKAGE = __name__.rpartition(".")[0]

TORCH_VERSION = "2.13.0"  #: the PyTorch that this library follows
#: PyTorch's modules whose contents stand in another module here
MOVED = {
    "nn.modules.batchnorm": "nn.modules.normalization",
    "nn.modules.instancenorm": "nn.modules.normalization",
    "nn.modules.padding": "nn.modules.shaping",
    "nn.modules.flatten": "nn.modules.linear",
    "nn.modules.pixelshuffle": "nn.modules.shaping",
    "nn.modules.channelshuffle": "nn.modules.shaping",
    "nn.modules.adaptive": "nn",
    "nn.modules.fold": "nn",
    "nn.modules.upsampling": "nn",
    "nn.modules.rnn": "nn",
    "nn.modules.transformer": "nn",
    "autograd.variable": "autograd",
    **{f"optim.{name}": "optim.adam" for name in ("adamw", "adamax", "nadam", "radam")},
    **{f"optim.{name}": "optim.adaptive" for name in ("rmsprop", "adagrad", "adadelta", "rprop", "asgd")},
    **{f"optim.{name}": "optim.matrices" for name in ("_adafactor", "_muon")},
    "utils.data.distributed": "utils.data.sampler",
    "utils.data._utils": "utils.data",
    "utils.data._utils.collate": "utils.data.collate",
    "functional": "",
    "amp.autocast_mode": "amp",
    "amp.grad_scaler": "amp",
    "cuda.amp.autocast_mode": "cuda.amp",
    "cuda.amp.grad_scaler": "cuda.amp",
    "_tensor": "tensor",
    "utils.model_zoo": "hub",
    "autograd.anomaly_mode": "autograd.anomaly",
    "nn.parallel.data_parallel": "nn.parallel",
    "nn.parallel.distributed": "nn.parallel",
}


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds ``torch`` and ``torch.*``, and gives the modules of this library under those names."""

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> importlib.machinery.ModuleSpec | None:
        if fullname != "torch" and not fullname.startswith("torch."):
            return None
        here = _own_name(fullname)
        if here is None:
            return None
        return importlib.machinery.ModuleSpec(fullname, self, is_package=True)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        here = _own_name(spec.name)
        assert here is not None
        module = importlib.import_module(here)
        # the import system writes its spec into what it is given; the module keeps its own
        self._kept = getattr(self, "_kept", {})
        self._kept[spec.name] = (module.__spec__, module.__loader__)
        return module

    def exec_module(self, module: ModuleType) -> None:
        name = module.__spec__.name if module.__spec__ else ""
        if name in self._kept:
            module.__spec__, module.__loader__ = self._kept.pop(name)


def _own_name(fullname: str) -> str | None:
    """This library's module for PyTorch's ``fullname``, None where there is none."""
    rest = fullname.partition(".")[2]
    names = [rest]
    if rest in MOVED:
        names.append(MOVED[rest])
    for name in names:
        candidate = f"{PACKAGE}.{name}" if name else PACKAGE
        try:
            if importlib.util.find_spec(candidate) is not None:
                return candidate
        except ModuleNotFoundError:
            continue
    return None


_finder: _Finder | None = None


def as_torch() -> ModuleType:
    """From now on ``import torch`` (and ``import torch.nn`` …) in this process gives this library; returns it.

    Errors: RuntimeError when the real PyTorch is already imported.

    Example:
        >>> import autograd_nb
        >>> torch = autograd_nb.as_torch()          # doctest: +SKIP
        >>> import torch.nn.functional as F         # doctest: +SKIP
    """
    global _finder
    package = importlib.import_module(PACKAGE)
    present = sys.modules.get("torch")
    if present is not None and present is not package:
        raise RuntimeError(
            "as_torch(): the real torch is already imported in this process (sys.modules['torch']); call as_torch() before "
            "anything imports it"
        )
    if _finder is None:
        _finder = _Finder()
        sys.meta_path.insert(0, _finder)
    sys.modules["torch"] = package
    # programs choose between old and new ways of PyTorch by its version
    package.__version__ = f"{TORCH_VERSION}+autograd_nb"  # type: ignore[attr-defined]
    return package


def run(target: str, arguments: list[str], module: bool = False) -> None:
    """Run a script (or with ``module`` a module) as ``__main__`` with its arguments, ``torch`` being this library."""
    as_torch()
    sys.argv = [target, *arguments]
    if module:
        sys.path.insert(0, "")
        runpy.run_module(target, run_name="__main__", alter_sys=True)
        return
    path = Path(target)
    if not path.exists():
        raise FileNotFoundError(f"no such script: {target}")
    sys.path.insert(0, str(path.resolve().parent))
    runpy.run_path(str(path), run_name="__main__")
