"""Programs that say ``import torch`` run with this library: `as_torch`, and ``python -m autograd_nb run script.py``.

Every import of ``torch`` or of a module below it gives the module of this library with that name. Nothing of PyTorch is read,
and PyTorch need not be installed.
"""

from __future__ import annotations

import copyreg
import importlib
import importlib.util
import runpy
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from ..config import settings
from ..dtypes import dtype, finfo, iinfo
from ..nn.parameter import Buffer, Parameter
from ..tensor import Tensor, TensorMeta
from .gpus import asked
from .import_aliases import Finder
from .small import TorchVersion

PACKAGE = __name__.split(".")[0]

TORCH_VERSION = "2.13.0"  #: the PyTorch that this library follows

#: where programs find ``torch`` that start as processes of their own
SHIM = Path(__file__).parent / "shim"

#: classes by whose module programs tell of which library a tensor is -> PyTorch's name of it
IDENTITIES: dict[type, str] = {
    **dict.fromkeys((Tensor, dtype, finfo, iinfo), "torch"),
    **dict.fromkeys((Parameter, Buffer), "torch.nn.parameter"),
}


def _own_name(fullname: str) -> str | None:
    """Return this library's module for PyTorch's ``fullname``, None where there is none."""
    rest = fullname.partition(".")[2]
    candidate = f"{PACKAGE}.{rest}" if rest else PACKAGE
    try:
        return candidate if importlib.util.find_spec(candidate) is not None else None
    except ModuleNotFoundError:
        return None


_finder: Finder | None = None


def _named(module: str, name: str) -> Any:
    return getattr(importlib.import_module(module), name)


def _take_identity(package: ModuleType) -> None:
    """Give the package and the classes that programs ask for their module PyTorch's names; pickles go on naming this library's."""
    homes = {cls: cls.__module__ for cls in IDENTITIES}
    package.__name__ = "torch"
    for cls, module in IDENTITIES.items():
        cls.__module__ = module

    def reduce_class(cls: type) -> Any:
        return (_named, (homes[cls], cls.__name__)) if cls in homes else cls.__qualname__

    for kind in {type(cls) for cls in IDENTITIES if issubclass(type(cls), TensorMeta)}:
        copyreg.pickle(kind, reduce_class)  # type: ignore[arg-type]


def as_torch() -> ModuleType:
    """Let ``import torch`` (and ``import torch.nn`` …) in this process give this library from now on, and return it.

    The package and the classes of tensors and dtypes name PyTorch's modules as theirs then, by which programs choose a backend, and
    `importlib.metadata` knows a ``torch``. Nodes of the graph that saved nothing can be run again: see `autograd.set_graph_reuse`.

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
        settings.reuse = True  # programs for PyTorch are lenient, some of them without knowing it
        _finder = Finder("torch", _own_name)
        sys.meta_path.insert(0, _finder)
        sys.path.insert(0, str(SHIM))  # processes that multiprocessing starts are given this path, and `importlib.metadata` looks there
        _take_identity(package)
    sys.modules["torch"] = package
    for name in list(sys.modules):  # an import that finds them here leaves alone what their package has under their name: gradcheck
        if name.startswith(PACKAGE + "."):
            sys.modules.setdefault("torch" + name.removeprefix(PACKAGE), sys.modules[name])
    # programs choose between old and new ways of PyTorch by its version
    package.__version__ = TorchVersion(f"{TORCH_VERSION}+autograd_nb")  # type: ignore[attr-defined]
    asked()
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
