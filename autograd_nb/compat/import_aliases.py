"""Modules of PyTorch whose contents stand elsewhere here: they can be imported by PyTorch's names too."""

from __future__ import annotations

import importlib
import importlib.machinery
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

PACKAGE = __name__.split(".")[0]

#: PyTorch's name -> the module here, both below the package; their parents are packages, or have an empty ``__path__``
MOVED = {
    "nn.modules.batchnorm": "nn.modules.normalization",
    "nn.modules.instancenorm": "nn.modules.normalization",
    "nn.attention.flex_attention": "nn.flex_attention",
    "nn.modules.padding": "nn.modules.shaping",
    "nn.modules.flatten": "nn.modules.linear",
    "nn.modules.pixelshuffle": "nn.modules.shaping",
    "nn.modules.channelshuffle": "nn.modules.shaping",
    "nn.modules.fold": "nn.modules.shaping",
    "nn.modules.upsampling": "nn.modules.shaping",
    "autograd.variable": "autograd",
    **{f"optim.{name}": "optim.adam" for name in ("adamw", "adamax", "nadam", "radam")},
    **{f"optim.{name}": "optim.adaptive" for name in ("rmsprop", "adagrad", "adadelta", "rprop", "asgd")},
    **{f"optim.{name}": "optim.matrices" for name in ("_adafactor", "_muon")},
    "utils.data.distributed": "utils.data.sampler",
    "distributed.nn.functional": "distributed.nn",
    "distributed.distributed_c10d": "distributed",
    "distributed._functional_collectives": "distributed.functional",
    "distributed.optim": "optim.sharded",
    **{f"distributed.tensor.parallel{name}": "nn.parallel.tensor_parallel" for name in ("", ".style", ".api", ".loss")},
    "distributed._tensor.experimental": "distributed.tensor.experimental",
    **dict.fromkeys(
        (
            "distributed._tensor",
            "distributed.device_mesh",
            "distributed.tensor.placement_types",
            "distributed._tensor.device_mesh",
            "distributed._tensor.placement_types",
            "distributed.tensor.device_mesh",
        ),
        "distributed.tensor",
    ),
    "distributed.checkpoint": "serialization.sharded",
    "distributed.checkpoint.state_dict": "serialization.sharded.state",
    **{
        f"distributed.checkpoint.{name}": "serialization.sharded"
        for name in ("filesystem", "state_dict_saver", "state_dict_loader", "stateful", "api")
    },
    "distributed.optim.zero_redundancy_optimizer": "optim.sharded",
    "distributed.algorithms": "distributed",
    "distributed.algorithms.join": "distributed.joining",
    "distributed.algorithms.ddp_comm_hooks": "distributed.comm_hooks",
    "distributed.algorithms.ddp_comm_hooks.default_hooks": "distributed.comm_hooks",
    "distributed.algorithms.ddp_comm_hooks.powerSGD_hook": "distributed.power_sgd",
    "distributed.algorithms.ddp_comm_hooks.debugging_hooks": "distributed.comm_hooks",
    "utils.data._utils": "utils.data",
    "utils.data._utils.collate": "utils.data.collate",
    "utils.data._utils.worker": "utils.data.worker",
    "functional": "",
    "backends.opt_einsum": "ops.products.einsum_order",
    "futures": "distributed.futures",
    "storage": "ops.creation.storages",
    "amp": "compat.precision",
    "multiprocessing": "compat.processes",
    "version": "compat.version",
    "fx": "compat.fx",
    "fx._symbolic_trace": "compat.fx.tracer",
    **{
        f"fx.{name}": f"compat.fx.{name}"
        for name in ("graph", "graph_module", "immutable_collections", "interpreter", "node", "passes", "proxy")
    },
    "fx.subgraph_rewriter": "compat.fx.subgraph_rewriter",
    "fx.passes.shape_prop": "compat.fx.passes.shape_prop",
    "amp.autocast_mode": "amp",
    "amp.grad_scaler": "amp",
    "cuda.amp.autocast_mode": "cuda.amp",
    "cuda.amp.grad_scaler": "cuda.amp",
    "_tensor": "tensor",
    "utils.model_zoo": "hub",
    "torch": "",
    "profiler.profiler": "profiler",
    "autograd.anomaly_mode": "autograd.anomaly",
    "nn.parallel.data_parallel": "nn.parallel",
}

#: modules here that PyTorch has names or modules in which they have not -> PyTorch's names of them; the names are in `beside`
HOMES: dict[str, tuple[str, ...]] = {
    **{name: (name,) for name in (
        "autograd", "autograd.forward_ad", "autograd.function", "autograd.gradcheck",
        "distributions.transforms", "distributions.kl", "nn", "nn.functional", "nn.modules", "nn.modules.module",
        "nn.modules.dropout", "nn.parallel", "nn.utils", "nn.utils.stateless", "nn.attention", "onnx", "optim", "optim.optimizer", "profiler",
            "serialization", "utils", "utils._pytree",
        "utils.checkpoint", "utils.data", "utils.data.dataloader", "autograd.graph", "autograd.profiler", "utils.dlpack", "utils.tensorboard",
        "utils.hooks", "utils.benchmark", "func", "random", "testing", "sparse", "masked", "compiler", "return_types",
    )},
    "tensor": ("_tensor",), "compat.fx": ("fx",), "compat.fx.passes": ("fx.passes",), "serialization.sharded": ("distributed.checkpoint",),
        "compat.precision": ("amp", "amp.autocast_mode", "amp.grad_scaler"), "compat.processes": ("multiprocessing",),
    "distributed": ("distributed", "distributed.distributed_c10d", "distributed._functional_collectives", "distributed.algorithms"),
    **{name: (name,) for name in ("nn.modules.conv", "nn.modules.loss", "nn.modules.container", "nn.modules.linear", "nn.modules.utils")},
    "nn.modules.normalization": ("nn.modules.normalization", "nn.modules.batchnorm", "nn.modules.instancenorm"),
    "optim.adam": tuple(f"optim.{name}" for name in ("adam", "adamw", "adamax", "nadam", "radam")),
    "optim.adaptive": tuple(f"optim.{name}" for name in ("rmsprop", "adagrad", "adadelta", "rprop", "asgd")), "optim.sgd": ("optim.sgd",),
    "utils.data": ("utils.data", "utils.data._utils"),
    "compat.version": ("version",), "optim.sharded": ("distributed.optim",), "graph.modes": ("autograd.grad_mode",),
    "serialization.sharded.state": ("distributed.checkpoint.state_dict",), "distributed.tensor": ("distributed.tensor",),
    "nn.parallel.tensor_parallel": ("distributed.tensor.parallel",),
    "distributed.nn": ("distributed.nn",), "distributed.comm_hooks": ("distributed.algorithms.ddp_comm_hooks",),
    "utils.data.worker": ("utils.data._utils.worker",), "utils.data.collate": ("utils.data._utils.collate",),
}  # fmt: skip


class Asked(importlib.machinery.SourceFileLoader):
    """Loads a module of `HOMES`, which is asked for PyTorch's other names in it from then on."""

    def exec_module(self, module: ModuleType) -> None:
        """Run the module."""
        super().exec_module(module)
        ask_too(module)


def ask_too(module: ModuleType) -> None:
    """Let a module be asked for PyTorch's other names in it; the table that has them is read when that happens first."""
    own, home = module.__dict__.get("__getattr__"), module.__name__
    places = HOMES[home.partition(".")[2]]

    def ask(name: str) -> Any:
        if own is not None:
            try:
                return own(name)
            except AttributeError:
                pass
        if name == "torch":  # as PyTorch's modules import it: old programs make one-hot vectors by torch.sparse.torch.eye
            return sys.modules[PACKAGE]
        if not name.startswith("__"):  # (such the import system asks for)
            from .absent import NOT_THERE, besides

            if (found := besides(places, name, home)) is not NOT_THERE:
                return found
            for below in (f"{PACKAGE}.{place}.{name}" for place in places):
                if finder.find_spec(below) is not None or last.find_spec(below) is not None:
                    return importlib.import_module(below)
        raise AttributeError(f"module {home!r} has no attribute {name!r}", name=name, obj=module)

    module.__dict__["__getattr__"] = ask


def ask_early() -> None:
    """Do this for the modules that are loaded before the finder is there."""
    for name in HOMES:
        if f"{PACKAGE}.{name}" in sys.modules:
            ask_too(sys.modules[f"{PACKAGE}.{name}"])


class Finder:
    """Gives modules of this library under other names: those below ``prefix`` for which ``own`` tells a name."""

    def __init__(self, prefix: str, own: Callable[[str], str | None]):
        self._prefix, self._own = prefix, own
        self._kept: dict[str, tuple[Any, ...]] = {}

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> importlib.machinery.ModuleSpec | None:
        """Return the spec of a module that the import system asks for."""
        if fullname.partition(".")[0] != self._prefix or self._own(fullname) is None:
            return None
        return importlib.machinery.ModuleSpec(fullname, self, is_package=True)  # type: ignore[arg-type]

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        """Return the module of this library, which keeps its own spec: the import system writes another into what it is given."""
        module = importlib.import_module(self._own(spec.name) or PACKAGE)
        self._kept[spec.name] = (module.__spec__, module.__loader__)
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Put the module's spec back; it has run long ago."""
        name = module.__spec__.name if module.__spec__ else ""
        if name in self._kept:
            module.__spec__, module.__loader__ = self._kept.pop(name)


class First(Finder):
    """Gives aliases, and loads the modules that are asked for PyTorch's other names too."""

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> importlib.machinery.ModuleSpec | None:
        """Return the spec of a module that the import system asks for."""
        package, _, name = fullname.partition(".")
        if package == self._prefix and name in HOMES:
            spec = importlib.machinery.PathFinder.find_spec(fullname, path)
            if spec is not None and type(spec.loader) is importlib.machinery.SourceFileLoader:
                spec.loader = Asked(fullname, spec.loader.path)
                return spec
        return super().find_spec(fullname, path, target)


def _moved(fullname: str) -> str | None:
    here = MOVED.get(fullname.partition(".")[2])
    return None if here is None else f"{PACKAGE}.{here}".rstrip(".")


finder: Finder = First(PACKAGE, _moved)


class Last:
    """Asked for modules of this library that are nowhere else; what answers for those that are not here is read when that happens first."""

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> importlib.machinery.ModuleSpec | None:
        """Return the spec of a module that the import system asks for."""
        if not fullname.startswith(PACKAGE + "."):
            return None
        from .absent import finder as absent

        return absent.find_spec(fullname, path, target)


last: Last = Last()
