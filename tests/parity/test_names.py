"""Every public name of PyTorch's documented modules is here: it means the same, or can be imported and says what it is when it is used."""

from __future__ import annotations

import importlib
import inspect
import json
import subprocess
import sys
import types

import pytest

torch = pytest.importorskip("torch")

import autograd_nb as ag  # noqa: E402

MODULES = [
    "torch", "torch.nn", "torch.nn.functional", "torch.nn.init", "torch.nn.utils", "torch.nn.utils.rnn", "torch.nn.utils.parametrizations",
    "torch.nn.utils.parametrize", "torch.nn.utils.prune", "torch.nn.utils.stateless", "torch.nn.parameter", "torch.nn.modules", "torch.nn.attention",
    "torch.nn.attention.flex_attention", "torch.nn.attention.bias", "torch.nn.parallel", "torch.nn.grad", "torch.optim", "torch.optim.lr_scheduler",
    "torch.optim.swa_utils", "torch.autograd", "torch.autograd.functional", "torch.autograd.graph", "torch.autograd.profiler", "torch.autograd.forward_ad",
    "torch.autograd.function", "torch.autograd.grad_mode", "torch.autograd.anomaly_mode", "torch.autograd.gradcheck", "torch.linalg", "torch.fft",
    "torch.special", "torch.distributions", "torch.distributions.constraints", "torch.distributions.transforms", "torch.distributions.kl", "torch.utils",
    "torch.utils.data", "torch.utils.checkpoint", "torch.utils.dlpack", "torch.utils.hooks", "torch.utils.benchmark", "torch.utils.flop_counter",
    "torch.utils.module_tracker", "torch.utils.tensorboard", "torch.func", "torch.random", "torch.serialization", "torch.testing", "torch.amp",
    "torch.cuda", "torch.cuda.amp", "torch.cpu", "torch.cpu.amp", "torch.mps", "torch.xpu", "torch.mtia", "torch.accelerator", "torch.backends.cuda",
    "torch.backends.cudnn", "torch.backends.mkl", "torch.backends.mps", "torch.jit", "torch.onnx", "torch.hub", "torch.profiler", "torch.sparse",
    "torch.nested", "torch.masked", "torch.quasirandom", "torch.quantization", "torch.ao.quantization", "torch.package", "torch.futures", "torch.fx",
    "torch.export", "torch.compiler", "torch.library", "torch.overrides", "torch.monitor", "torch.multiprocessing", "torch.distributed", "torch.storage",
    "torch.signal.windows", "torch.__config__", "torch.__future__", "torch.distributed.optim", "torch.distributed.rpc", "torch.distributed.checkpoint",
    "torch.distributed.fsdp", "torch.distributed.tensor", "torch.nn.quantized", "torch.nn.intrinsic", "torch.nn.qat", "torch.nn.quantizable",
    *(f"torch.nn.modules.{name}" for name in (
        "activation", "batchnorm", "container", "conv", "distance", "dropout", "flatten", "fold", "instancenorm", "linear", "loss", "module", "normalization",
        "padding", "pixelshuffle", "pooling", "rnn", "sparse", "transformer", "upsampling", "utils")),
]  # fmt: skip
CLASSES = ["torch.Tensor", "torch.nn.Module", "torch.nn.Parameter", "torch.optim.Optimizer", "torch.distributions.Distribution", "torch.Generator"]
#: names that are not here, and why
MISSING: dict[str, dict[str, str]] = {
    "torch.nn.functional": dict.fromkeys(("reproducibility_notes", "sparse_support_notes", "tf32_notes"), "texts of PyTorch's own docstrings"),
    "torch.Tensor": {
        **dict.fromkeys(("ccol_indices", "row_indices", "to_sparse_csc", "resize_as_sparse_", "sparse_resize_", "sparse_resize_and_clear_", "smm", "sspaddmm"),
                        "of sparse formats that are not here"),
        "index": "not documented", "slice_inverse": "not documented",
    },
    "torch.nn.Parameter": {}, "torch.linalg": {"common_notes": "texts of PyTorch's own docstrings"}, "torch.fft": {"Tensor": "only a base of its stubs"},
    "torch.sparse": {"solve": "None in PyTorch"}, "torch.monitor": {"TYPE_CHECKING": "typing's"}, "torch.multiprocessing": {"reducer": "Python's"},
    "torch.distributed": {"RankType": "a type in annotations", "log": "a logger"},
    "torch.nn.Module": dict.fromkeys(("T_destination", "ipu", "xpu", "mtia"), "other devices; a type variable"),
    "torch.optim.Optimizer": dict.fromkeys(("OptimizerPreHook", "OptimizerPostHook"), "types in annotations"),
    "torch.Generator": dict.fromkeys(("get_offset", "set_offset", "graphsafe_set_state"), "of generators of GPUs"),
}  # fmt: skip
MISSING["torch.nn.Parameter"] = MISSING["torch.Tensor"]


def public(module):
    """The names that a module of PyTorch offers: what it lists, or what it defines and shows."""
    if "__all__" in vars(module) and module is not torch:
        return sorted(name for name in module.__all__ if not name.startswith("_"))
    own = []
    for name, value in vars(module).items():
        if name.startswith("_") or isinstance(value, types.ModuleType):
            continue
        home = getattr(value, "__module__", None) if inspect.isclass(value) or callable(value) else module.__name__
        if module is torch or (home or "").startswith(module.__name__):
            own.append(name)
    return sorted(own)


LOOK = """
import sys, json, importlib, warnings
warnings.simplefilter("ignore")
import autograd_nb
autograd_nb.as_torch()
wanted, missing = json.load(sys.stdin), {}
for place, names in wanted.items():
    home, _, last = place.rpartition(".")
    try:
        found = importlib.import_module(place)
    except ImportError:
        found = getattr(importlib.import_module(home), last, None)
    lacks = [name for name in names if not hasattr(found, name)]
    if lacks:
        missing[place] = lacks
print(json.dumps(missing))
"""


@pytest.mark.parity
@pytest.mark.filterwarnings("ignore")
def test_every_public_name_is_here():
    """Where `import torch` gives this library, in a process of its own."""
    wanted = {name: public(importlib.import_module(name)) for name in MODULES}
    for place in CLASSES:
        cls = getattr(importlib.import_module(place.rpartition(".")[0]), place.rpartition(".")[2])
        wanted[place] = [name for name in dir(cls) if not name.startswith("_")]
    assert len(wanted) == len(MODULES) + len(CLASSES) and sum(map(len, wanted.values())) > 4000
    answer = subprocess.run([sys.executable, "-c", LOOK], input=json.dumps(wanted), capture_output=True, text=True)
    assert answer.returncode == 0, answer.stderr[-2000:]
    missing = json.loads(answer.stdout)
    unknown = {place: sorted(set(names) - MISSING.get(place, {}).keys()) for place, names in missing.items()}
    assert {place: names for place, names in unknown.items() if names} == {}
    here = {place: sorted(names.keys() - missing.get(place, ())) for place, names in MISSING.items()}
    assert not {place: names for place, names in here.items() if names}, "these are here now, and no longer missing"


#: what PyTorch has not, and why it is here
OWN = {
    "torch": {
        **dict.fromkeys(("as_torch", "numba_callable", "load_graph", "memory", "release_memory"), "this library's own: programs, graphs and memory"),
        **dict.fromkeys(("custom_op", "pointwise"), "ops of users: docs/user_ops.md"),
    },
    "torch.Tensor": dict.fromkeys(("is_leaf_edge", "seq", "outputs"), "of edges of the graph"),
}  # fmt: skip


@pytest.mark.parity
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("place", ["torch", "torch.Tensor", "torch.nn.functional", "torch.linalg", "torch.fft", "torch.special", "torch.signal.windows"])
def test_there_are_no_functions_that_pytorch_has_not(place):
    """Methods that are no functions in PyTorch are none here, and functions no methods: a program that calls one would run here alone."""
    theirs, ours = (eval(place, {"torch": library}) for library in (torch, ag))
    more = {name for name in dir(ours) if not name.startswith("_") and not hasattr(theirs, name)}
    if place != "torch.Tensor":  # a module that both have may have been imported in one only, and what a file imports is not offered
        more = {n for n in more if callable(getattr(ours, n)) and str(getattr(getattr(ours, n), "__module__", ag.__name__)).startswith(ag.__name__)}
    assert more == OWN.get(place, {}).keys()
