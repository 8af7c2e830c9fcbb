"""The names, and what they answer: modules of PyTorch that programs ask, whose work is not done here.

An answer is a kind with what it says; `absent` makes functions and classes of them. The message of a refusal names the remedy.
Sources: https://docs.pytorch.org/docs/stable/cuda.html, accelerator.html, backends.html, hub.html, jit.html, onnx.html
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, Final

from ..errors import DeviceError


@dataclass(frozen=True)
class Says:
    """A function that returns ``value`` whatever it is called with."""

    value: Any
    doc: str = ""


@dataclass(frozen=True)
class Refuses:
    """A function that raises ``error(message)``; ``{first}`` in the message stands for the first argument."""

    error: type[Exception]
    message: str


@dataclass(frozen=True)
class Returns:
    """A function that returns its first argument, or without one a decorator that returns the function."""

    doc: str


@dataclass(frozen=True)
class NoClass:
    """A class of what only exists elsewhere: nothing is an instance of it, and none can be made; it has ``values``, as an enumeration has."""

    refusal: Refuses
    values: str = ""


@dataclass(frozen=True)
class Sets:
    """A function, also a context, that changes nothing."""


@dataclass(frozen=True)
class At:
    """An answer: what stands at "module:name" of this library, or without a name the module."""

    where: str


@dataclass(frozen=True)
class Value:
    """A value that programs read and may set, without effect."""

    value: Any


Answer = Says | Refuses | Returns | NoClass | Sets | At | Value


@dataclass(frozen=True)
class Absent:
    """A module: its docstring, its names, those of its submodules that an attribute gives."""

    doc: str
    names: Mapping[str, Answer]
    submodules: tuple[str, ...] = ()
    also_of_package: bool = False  #: whether the package's names are the module's too


def each(answer: Answer, names: str) -> dict[str, Answer]:
    """Return every one of the names with the answer."""
    return dict.fromkeys(names.split(), answer)


_NO, _YES, _NONE, _ZERO = Says(False), Says(True), Says(None), Says(0)
_GPU = Refuses(DeviceError, "cuda")
_ACCELERATOR = Refuses(
    RuntimeError, "no accelerator is available: this library computes on the CPU only (test accelerator.is_available() first)"
)
_DOWNLOAD = Refuses(
    NotImplementedError, "nothing is downloaded by this library{first}: fetch the file by other means and read it with load(path)"
)
_SCRIPT_SAVE = Refuses(RuntimeError, "jit.save(): TorchScript files cannot be written; save the state_dict with autograd_nb.save")
_SCRIPT_LOAD = Refuses(RuntimeError, "jit.load(): TorchScript files cannot be read; load a state_dict with autograd_nb.load")
_ITSELF = Returns("The function or module as it is, which runs eagerly; `autograd_nb.compile` is what makes functions fast here.")
_NOT_THERE: dict[str, Answer] = each(_NO, "is_available is_built")

#: module's name below the package -> what it says
MODULES: dict[str, Absent] = {
    "cuda": Absent(
        "What programs ask about GPUs, answered: there are none here.",
        {
            **each(_NO, "is_available is_initialized is_bf16_supported is_tf32_supported is_current_stream_capturing"),
            **each(_ZERO, "device_count memory_allocated max_memory_allocated memory_reserved max_memory_reserved"),
            **each(_NONE, "manual_seed manual_seed_all empty_cache synchronize ipc_collect reset_peak_memory_stats init"),
            "memory_summary": Says(""),
            **each(_GPU, "current_stream default_stream set_stream get_rng_state get_rng_state_all set_rng_state mem_get_info"),
            **each(_GPU, "current_device get_device_name get_device_properties set_device get_device_capability"),
            **each(NoClass(_GPU), "Event Stream FloatTensor DoubleTensor HalfTensor LongTensor IntTensor ShortTensor"),
            **each(NoClass(_GPU), "CharTensor ByteTensor BoolTensor"),
            "OutOfMemoryError": At("errors:OutOfMemoryError"),
        },
        submodules=("amp",),
    ),
    "cuda.amp": Absent(
        "The older place of mixed precision, where the device needs no naming.",
        {
            "autocast": At("compat.precision:cuda_autocast"),
            "GradScaler": At("compat.scaling:cuda_GradScaler"),
            **{name: At(f"compat.precision:cuda_{name}") for name in ("custom_bwd", "custom_fwd")},
        },
    ),
    "accelerator": Absent(
        "What programs ask about accelerators, answered: there is none, they go on with the CPU.",
        {
            "is_available": _NO,
            "current_accelerator": _NONE,
            "device_count": _ZERO,
            **each(_NONE, "synchronize empty_cache"),
            **each(_ACCELERATOR, "current_device_index current_device_idx set_device_index set_device_idx"),
        },
    ),
    "backends": Absent(
        "The switches of PyTorch's backends, for programs that set them; of which only ``opt_einsum`` does anything here.",
        {"disable_global_flags": _NONE, "flags_frozen": _NO},
        submodules=("cuda", "cudnn", "mkl", "mkldnn", "mps", "openmp"),
    ),
    "backends.cuda": Absent(
        "Switches of CUDA's libraries, which are not there: they can be set, and have no effect.",
        {
            **_NOT_THERE,
            **each(_NO, "flash_sdp_enabled mem_efficient_sdp_enabled"),
            "math_sdp_enabled": Says(True, "True: attention is computed by its formula."),
            **each(Sets(), "enable_cudnn_sdp enable_flash_sdp enable_math_sdp enable_mem_efficient_sdp preferred_linalg_library sdp_kernel"),
            "matmul": Value(
                SimpleNamespace(
                    allow_tf32=False, allow_fp16_reduced_precision_reduction=False, allow_bf16_reduced_precision_reduction=False
                )
            ),
        },
    ),
    "backends.cudnn": Absent(
        "Switches of cuDNN, which is not there: they can be set, and have no effect.",
        {
            **each(_NO, "is_available is_acceptable"),
            "version": _NONE,
            "flags": Sets(),
            **each(Value(False), "enabled benchmark allow_tf32"),
            "deterministic": Value(True),
            "benchmark_limit": Value(10),
            "fp32_precision": Value("none"),
        },
    ),
    "backends.mkl": Absent("MKL, which is not there: this library has its own kernels.", _NOT_THERE),
    "backends.mkldnn": Absent(
        "oneDNN, which is not there: this library has its own kernels.",
        {**_NOT_THERE, **each(Value(False), "enabled deterministic"), **each(Sets(), "flags set_flags")},
    ),
    "backends.mps": Absent("Apple's GPUs, which are not there: this library computes on the CPU.", _NOT_THERE),
    "backends.openmp": Absent("OpenMP, which is not there: this library has its own threads.", _NOT_THERE),
    "hub": Absent(
        "Weights from the net, which this library does not fetch: the names that programs import, with errors that tell the remedy.",
        each(_DOWNLOAD, "load_state_dict_from_url load_url download_url_to_file load list help"),
    ),
    "jit": Absent(
        "TorchScript's decorators, for programs that use them: functions and modules stay as they are, and run eagerly.",
        {
            **each(_ITSELF, "script trace script_if_tracing ignore export unused interface script_method"),
            **each(_NO, "is_scripting is_tracing"),
            "annotate": At("compat.scripting:annotate"),
            "save": _SCRIPT_SAVE,
            "load": _SCRIPT_LOAD,
            "ScriptModule": At("compat.scripting:ScriptModule"),
            "ScriptFunction": At("compat.scripting:ScriptFunction"),
            "Final": Value(Final),
        },
    ),
    "onnx": Absent("ONNX files of modules.", {"export": At("serialization.onnx.exporting:export"), "is_in_onnx_export": _NO}),
    "_C": Absent(
        "The few names that programs take from PyTorch's binary module.",
        {"Generator": At("ops.random.generator:Generator"), "_LinAlgError": At("errors:LinAlgError")},
        also_of_package=True,
    ),
}
