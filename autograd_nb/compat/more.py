"""More of the table: PyTorch's names beyond its documentation, and of what is elsewhere, that packages name while they are imported.

A name with a meaning for dense work on the CPU has it (`At`); another can be imported, and an error tells what it is when it is used. `TOP` has
the names of the package itself. Names are added as packages ask for them.
"""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Final
from urllib.parse import urlparse

from ..dtypes import ABSENT
from .distant import DISTANT
from .old_names import OLD_MODULES, OLD_TOP
from .table import MODULES, Absent, Answer, At, NoClass, Refuses, Returns, Says, Sets, Value, each


def _lacks(what: str) -> Refuses:
    return Refuses(NotImplementedError, f"{what}: not in this library, which computes eagerly or by compile() on dense tensors of the CPU")


def _at(module: str, names: str) -> dict[str, Answer]:
    """Return every one of the names as it stands in a module of this library."""
    return {name: At(f"{module}:{name}") for name in names.split()}


_NO, _NONE, _ZERO = Says(False), Says(None), Says(0)
_ITSELF = Returns("The function or class as it is.")
_EXPORT = _lacks("torch.export, graphs of whole programs (`trace` gives static graphs of functions here)")
_QUANTIZED, _SPARSE, _NESTED = _lacks("quantized tensors"), _lacks("sparse formats but COO and CSR"), _lacks("nested tensors")
_DISPATCH = _lacks("modes that intercept ops (`profiler` and `autograd.graph.saved_tensors_hooks` watch them here)")
_LIBRARY = _lacks("torch.library, ops of other languages (`autograd_nb.custom_op` and `pointwise` declare ops here)")
_GRAPH = _lacks("graphs of TorchScript")
_OLD_ONNX = _lacks("this way of writing ONNX files (`onnx.export` writes them)")
_EXTENSION = _lacks("extensions in C++ or CUDA (`autograd_nb.pointwise` and `custom_op` declare ops in Python)")
_DEVICE = Refuses(RuntimeError, "no such device is available: this library computes on the CPU only (test is_available() first)")

_DEVICES = {
    **each(_NO, "is_available is_initialized is_bf16_supported _is_in_bad_fork is_built"),
    **each(_ZERO, "device_count memory_allocated max_memory_allocated memory_reserved current_allocated_memory driver_allocated_memory"),
    **each(_NONE, "manual_seed manual_seed_all empty_cache synchronize seed seed_all init reset_peak_memory_stats"),
    **each(_DEVICE, "current_stream set_device current_device get_device_name get_device_properties get_rng_state set_rng_state"),
    **each(NoClass(_DEVICE), "Event Stream"),
}

#: module's name below the package -> what it says
MORE: dict[str, Absent] = {
    "_dynamo": Absent(
        "The compiler of PyTorch, for programs that set it up: `autograd_nb.compile` needs none of it.",
        {
            **each(_ITSELF, "disable allow_in_graph disallow_in_graph assume_constant_result forbid_in_graph run"),
            **each(_NONE, "reset mark_dynamic mark_static maybe_mark_dynamic mark_static_address graph_break reset_code_caches"),
            "is_compiling": _NO, "list_backends": Says([]), "explain": _lacks("torch._dynamo.explain"), "optimize": At("compiler:compile"),
            "OptimizedModule": NoClass(_lacks("OptimizedModule (a compiled module keeps its class here)")),
        },
        submodules=("config", "external_utils", "eval_frame"),
    ),
    "_dynamo.config": Absent("Switches of PyTorch's compiler: they can be set, and have no effect.", {
        **each(Value(False), "suppress_errors verbose capture_scalar_outputs capture_dynamic_output_shape_ops force_parameter_static_shapes"),
        **each(Value(False), "optimize_ddp inline_inbuilt_nn_modules allow_unspec_int_on_nn_module dynamic_shapes"),
        "assume_static_by_default": Value(True), "automatic_dynamic_shapes": Value(True), "cache_size_limit": Value(8), "recompile_limit": Value(8),
        "patch": Sets(),
    }),
    "_dynamo.external_utils": Absent("What programs ask while they are compiled.", {"is_compiling": _NO}),
    "_dynamo.eval_frame": Absent("The part of PyTorch's compiler that reads frames.", {"OptimizedModule": NoClass(_lacks("OptimizedModule"))}),
    "_inductor": Absent("The code generator of PyTorch, for programs that set it up.", {"list_options": Says([])}, submodules=("config",)),
    "_inductor.config": Absent("Switches of PyTorch's code generator: they can be set, and have no effect.", {
        **each(Value(False), "coordinate_descent_tuning epilogue_fusion fallback_random fx_graph_cache max_autotune cpp_wrapper freezing"),
        "patch": Sets(),
    }),
    "_logging": Absent("What PyTorch logs of itself.", {"set_logs": _NONE}),
    "export": Absent("Exported programs, which this library does not write.", {
        **each(_EXPORT, "export save load export_for_training register_dataclass unflatten"),
        **each(NoClass(_EXPORT), "ExportedProgram ShapesCollection ModuleCallSignature"), "Dim": NoClass(_EXPORT, "AUTO DYNAMIC STATIC"),
    }),
    "library": Absent("Ops that programs declare.", {
        **_at("compat.operators", "custom_op define impl register_kernel register_autograd register_fake register_vmap Library CustomOpDef"),
        "impl_abstract": At("compat.operators:register_fake"), "triton_op": At("compat.operators:custom_op"),
        **each(_LIBRARY, "opcheck wrap_triton get_ctx"),
    }),
    "overrides": Absent("Objects that stand for tensors and redefine functions.", {
        **_at("compat.overriding", "has_torch_function handle_torch_function is_tensor_like is_tensor_method_or_property get_ignored_functions"),
        **_at("compat.overriding", "has_torch_function_unary has_torch_function_variadic wrap_torch_function enable_reentrant_dispatch"),
        **_at("compat.overriding", "get_overridable_functions get_testing_overrides get_default_nowrap_functions resolve_name"),
        **_at("compat.overriding", "TorchFunctionMode BaseTorchFunctionMode"),
    }),
    "_custom_ops": Absent("The older place of ops that programs declare.", {
        "custom_op": At("compat.operators:custom_op"), "impl_abstract": At("compat.operators:register_fake"),
        **each(_LIBRARY, "impl impl_backward impl_save_for_backward get_ctx"),
    }),
    "_tensor_str": Absent("How tensors are printed.", {
        **_at("compat.small", "_tensor_str _add_suffixes"), "_str_intern": At("display:tensor_text"), "PRINT_OPTS": At("display:options"),
            "printoptions": At("compat.taken:printoptions"), "get_summarized_data": At("compat.taken:summarized"),
    }),
    "__config__": Absent("How the library was built.", {"show": Says("autograd_nb: kernels compiled by Numba"), **each(Says(""), "parallel_info _cxx_flags")}),
    "torch_version": Absent("Versions as PyTorch compares them.", _at("compat.small", "TorchVersion")),
    "quasirandom": Absent("Sequences that fill a cube evenly.", _at("compat.sobol", "SobolEngine")),
    "nn.grad": Absent("Gradients of convolutions as functions.", _at(
        "compat.convolutions", "conv1d_input conv1d_weight conv2d_input conv2d_weight conv3d_input conv3d_weight")),
    "utils._foreach_utils": Absent("What optimizers ask about lists of tensors.", {
        **_at("optim.optimizer", "_group_tensors_by_device_and_dtype"), **each(_NO, "_has_foreach_support _device_has_foreach_support"),
        **each(Says([]), "_get_foreach_kernels_supported_devices _get_fused_kernels_supported_devices"),
    }),
    "utils.flop_counter": Absent("Counts of operations.", _at("compat.flop_counter", "FlopCounterMode flop_registry register_flop_formula")),
    "utils._python_dispatch": Absent("Modes that intercept ops.", {
        "TorchDispatchMode": NoClass(_DISPATCH), "is_traceable_wrapper_subclass": _NO, "_get_current_dispatch_mode": _NONE,
        "return_and_correct_aliasing": _DISPATCH,
    }),
    "utils._triton": Absent("Triton, which is not here.", each(_NO, "has_triton has_triton_package has_triton_tma")),
    "utils.cpp_extension": Absent("Extensions in C++ and CUDA, which are not built here.", {
        **each(_EXTENSION, "load load_inline CppExtension CUDAExtension include_paths library_paths"), "BuildExtension": NoClass(_EXTENSION),
        "CUDA_HOME": Value(None), "ROCM_HOME": Value(None), "IS_HIP_EXTENSION": Value(False), "is_ninja_available": _NO,
    }),
    "utils.weak": Absent("Weak references to tensors.", _at("compat.small", "WeakIdKeyDictionary WeakTensorKeyDictionary WeakIdRef TensorWeakRef")),
    "nn.parallel.scatter_gather": Absent("What goes to several devices, of which there is one.", _at("compat.small", "scatter scatter_kwargs gather")),
    "_utils": Absent("PyTorch's own helpers that programs take.", {
        "is_compiling": _NO,
        **_at("compat.small", "_flatten_dense_tensors _unflatten_dense_tensors _take_tensors"),
        **_at("compat.taken", "_rebuild_tensor _rebuild_tensor_v2 _rebuild_parameter _element_size"), "_get_device_module": _DEVICE,
        "_get_available_device_type": _NONE, "_get_all_device_indices": Says([]), "_get_device_index": _DEVICE,
    }),
    "_lowrank": Absent("Decompositions of low rank.", _at("ops.linalg.least_squares", "svd_lowrank pca_lowrank")),
    "_jit_internal": Absent("TorchScript's own names that programs take.", {
        **each(_ITSELF, "_overload _overload_method export ignore unused _copy_to_script_wrapper"), "Final": Value(Final),
        "boolean_dispatch": At("compat.small:boolean_dispatch"), "is_scripting": _NO,
    }),
    "_subclasses": Absent(
        "Tensors without values.", each(NoClass(_lacks("tensors without values")), "FakeTensor FakeTensorMode"), submodules=("fake_tensor",),
    ),
    "_subclasses.fake_tensor": Absent("Tensors without values.", {
        **each(NoClass(_lacks("tensors without values")), "FakeTensor FakeTensorMode"), "is_fake": At("compat.taken:is_fake"),
        "unset_fake_temporarily": Sets(),
    }),
    "cpu": Absent("The device that all tensors are on.", {
        "is_available": Says(True), "device_count": Says(1), "synchronize": _NONE, "current_device": Says("cpu"), "is_initialized": Says(True),
        **each(Sets(), "stream StreamContext"), **each(_NONE, "set_device current_stream"),
    }),
    "xpu": Absent("Intel's GPUs, which are not there.", _DEVICES),
    "mps": Absent("Apple's GPUs, which are not there.", _DEVICES),
    "mtia": Absent("Meta's accelerators, which are not there.", _DEVICES),
    "ao": Absent("Quantization, which is not here.", {}, submodules=("quantization",)),
    "ao.quantization": Absent("Quantization, which is not here.", {
        **each(_QUANTIZED, "quantize_dynamic prepare prepare_qat convert get_default_qconfig fuse_modules default_qconfig "
               "get_default_qat_qconfig fuse_modules_qat default_observer "
               "default_weight_observer default_per_channel_weight_observer default_dynamic_qconfig default_per_channel_qconfig propagate_qconfig_"),
        **each(NoClass(_QUANTIZED), "QuantStub DeQuantStub FakeQuantize FakeQuantizeBase ObserverBase MinMaxObserver QConfig"),
    }),
    "quantization": Absent("The older place of quantization, which is not here.", {
        **each(_QUANTIZED, "quantize_dynamic prepare prepare_qat convert get_default_qconfig fuse_modules get_default_qat_qconfig quantize_jit "
               "quantize_dynamic_jit default_qconfig default_observer default_weight_observer default_dynamic_qconfig default_per_channel_qconfig "
               "propagate_qconfig_"),
        **each(NoClass(_QUANTIZED), "QuantStub DeQuantStub QuantWrapper FakeQuantize FakeQuantizeBase ObserverBase MinMaxObserver QConfig"),
    }),
    "nn.quantized": Absent("Modules of quantized tensors, which are not here.", each(
        NoClass(_QUANTIZED), "FloatFunctional QFunctional Quantize DeQuantize Linear Conv2d Conv3d ReLU6"), submodules=("dynamic",)),
    "nn.quantized.dynamic": Absent("Modules of quantized tensors, which are not here.", each(
        NoClass(_QUANTIZED), "Linear LSTM GRU LSTMCell GRUCell RNNCell")),
    "__future__": Absent("Switches of how modules are converted.", {
        **_at("nn.parameter", "get_overwrite_module_params_on_conversion set_overwrite_module_params_on_conversion"),
        "get_swap_module_params_on_conversion": _NO, "set_swap_module_params_on_conversion": _NONE,
    }),
    "nested": Absent("Tensors of rows of several lengths, which are not here.", each(
        _NESTED, "nested_tensor as_nested_tensor to_padded_tensor nested_tensor_from_jagged masked_select")),
    "_C._autograd": Absent(
        "What PyTorch's graph consists of.",
        {"SavedTensor": At("autograd.saved:SavedTensor"), "_saved_tensors_hooks_is_enabled": At("autograd.saved:hooks_allowed")},
    ),
    "_C._nn": Absent("Functions of PyTorch's binary module.", {"_parse_to": At("compat.small:_parse_to"), "gelu": At("nn.functional:gelu")}),
    "backends.mha": Absent("The switch of one kernel of attention.", {"get_fastpath_enabled": _NO, "set_fastpath_enabled": _NONE}),
    "backends.quantized": Absent("Backends of quantization, which are not there.", {"engine": Value("none"), "supported_engines": Value(["none"])}),
    "backends.xnnpack": Absent("A library of kernels for phones, which is not here.", {"enabled": Value(False)}),
    "backends.cpu": Absent("What the processor can do.", {"get_cpu_capability": Says("DEFAULT")}),
}  # fmt: skip

#: names of tables in `table`, added to theirs
ADDED: dict[str, dict[str, Answer]] = {
    "_C": {
        "_infer_size": At("compat.older:infer_size"), "_log_api_usage_once": _NONE, "_get_tracing_state": _NONE, "_add_docstr": _ITSELF,
        **_at("compat.overriding", "DisableTorchFunction DisableTorchFunctionSubclass"),
        "_disabled_torch_function_impl": At("compat.overriding:_disabled_torch_function_impl"), "device": At("ops.creation.device:device"),
        "dtype": At("dtypes:dtype"), "Size": At("shapes:Size"), "TensorBase": At("tensor:Tensor"), "_TensorBase": At("tensor:Tensor"),
        **each(_NO, "_is_tracing _get_graph_executor_optimize"), "_has_cuda": Value(False),
        "_TensorMeta": At("tensor:TensorMeta"), "_get_accelerator": At("compat.small:_get_accelerator"),
        "_are_functorch_transforms_active": _NO, "_is_alias_of": At("compat.taken:is_alias_of"), "_get_default_device": Says("cpu"),
        **_at("compat.taken", "DispatchKey DispatchKeySet"), **each(Sets(), "_DisableFuncTorch"),
        **each(Sets(), "_ExcludeDispatchKeyGuard _IncludeDispatchKeyGuard _AutoDispatchBelowAutograd"),
        "_get_cudnn_enabled": Says(True), "_set_math_sdp_allow_fp16_bf16_reduction": _NONE, "_jit_set_nvfuser_guard_mode": _NO,
        **each(NoClass(_GRAPH), "Graph Value Node Type"),
        "_get_deterministic_algorithms": At("config:are_deterministic_algorithms_enabled"),
        "_get_deterministic_algorithms_warn_only": At("config:is_deterministic_algorithms_warn_only_enabled"),
        "_set_deterministic_algorithms": At("config:use_deterministic_algorithms"),
        "_get_privateuse1_backend_name": Says("privateuseone"), "_is_torch_function_mode_enabled": _NO,
        **each(_NO, "_jit_set_profiling_executor _jit_set_profiling_mode _jit_override_can_fuse_on_cpu _jit_override_can_fuse_on_gpu"),
        **each(_NO, "_jit_set_texpr_fuser_enabled _jit_set_nvfuser_enabled _jit_can_fuse_on_cpu _jit_can_fuse_on_gpu"),
    },
    "cuda": {
        "_initialized": Value(False), "_sleep": _NONE,
        "get_arch_list": Says([]), "default_generators": Value(()), "memory_stats": Says({}), "is_bf16_supported": _NO, "_is_in_bad_fork": _NO,
        "CUDAGraph": NoClass(Refuses(RuntimeError, "this library computes on the CPU only")), **each(Sets(), "device stream graph device_of StreamContext"),
        "memory_stats_as_nested_dict": Says({}), "set_rng_state_all": _NONE, "reset_max_memory_allocated": _NONE,
        **each(NoClass(_DEVICE), "BFloat16Tensor BoolStorage ByteStorage CharStorage DoubleStorage FloatStorage HalfStorage IntStorage LongStorage"),
        "has_magma": Value(False), "_lazy_call": _NONE, "set_per_process_memory_fraction": _NONE,
    },
    "hub": {"get_dir": At("compat.small:hub_directory"), "set_dir": At("compat.small:set_hub_directory"), "HASH_REGEX": At("compat.small:HASH_REGEX"),
            "_get_torch_home": At("compat.small:torch_home"), "urlparse": Value(urlparse), "tqdm": At("compat.taken:tqdm")},
    "jit": {
        **each(_ITSELF, "_overload _overload_method freeze optimize_for_inference trace_module _script_if_tracing"),
        "isinstance": At("compat.small:is_instance"),
        "RecursiveScriptModule": At("compat.scripting:ScriptModule"), **each(Sets(), "optimized_execution strict_fusion fuser"),
        **each(_NONE, "set_fusion_strategy enable_onednn_fusion"), "Error": At("compat.small:ScriptError"), "TracerWarning": At("compat.small:TracerWarning"),
        "fork": At("distributed.futures:fork"), "wait": At("distributed.futures:wait"),
        "_fork": At("distributed.futures:fork"), "_wait": At("distributed.futures:wait"), "CompilationUnit": NoClass(_GRAPH),
        "Future": At("distributed.futures:Future"),
        "onednn_fusion_enabled": _NO, "Attribute": At("compat.small:Attribute"), "_get_trace_graph": _GRAPH,
    },
    "accelerator": {
        **each(_NONE, "reset_peak_memory_stats reset_accumulated_memory_stats"), **each(_ZERO, "max_memory_allocated memory_allocated memory_reserved"),
        "get_memory_info": _DEVICE, "max_memory_reserved": _ZERO, "memory_stats": Says({}),
    },
    "onnx": {"ONNXProgram": At("serialization.onnx.exporting:ONNXProgram"), "OnnxExporterError": At("serialization.onnx.graph:ExportError"),
             "producer_version": Value("autograd_nb"),
             **each(_NONE, "register_custom_op_symbolic unregister_custom_op_symbolic"),
             "OperatorExportTypes": NoClass(_OLD_ONNX, "ONNX ONNX_ATEN ONNX_ATEN_FALLBACK"),
             "TrainingMode": NoClass(_OLD_ONNX, "EVAL PRESERVE TRAINING")},
}

#: ops with a function of lists
_BINARY = ("add", "sub", "mul", "div", "pow", "maximum", "minimum", "clamp_max", "clamp_min", "lerp", "addcdiv", "addcmul")
_UNARY = (
    "abs", "acos", "asin", "atan", "ceil", "cos", "cosh", "erf", "erfc", "exp", "expm1", "floor", "frac", "lgamma", "log", "log10", "log1p", "log2", "neg",
    "reciprocal", "round", "rsqrt", "sigmoid", "sign", "sin", "sinh", "sqrt", "tan", "tanh", "trunc",
)  # fmt: skip
_FOREACH = (*(op + end for op in (*_BINARY, *_UNARY) for end in ("", "_")), "copy_", "zero_", "norm", "max", "clone", "mm", "powsum")

for _name, _names in ADDED.items():
    MODULES[_name] = replace(MODULES[_name], names={**MODULES[_name].names, **_names})
MODULES.update(MORE)
MODULES.update(DISTANT)
MODULES.update(OLD_MODULES)
for _parent, _children in {"_C": ("_autograd", "_nn", "_functions"), "backends": ("mha", "quantized", "cpu", "xnnpack")}.items():
    MODULES[_parent] = replace(MODULES[_parent], submodules=(*MODULES[_parent].submodules, *_children))

#: names of the package itself
TOP: dict[str, Answer] = {
    **OLD_TOP,
    **{name: Value(d) for name, d in ABSENT.items()},
    **_at("compat.checks", "_assert _assert_async _check _check_is_size _check_index _check_value _check_type _check_not_implemented _check_tensor_all"),
    **_at("compat.symbols", "SymInt SymFloat SymBool sym_int sym_float sym_max sym_min sym_not sym_ite sym_sqrt sym_sum"),
    **_at("ops.creation.device", "sparse_coo sparse_csr sparse_csc sparse_bsr sparse_bsc jagged _mkldnn"),
    "ScriptModule": At("compat.scripting:ScriptModule"), "ScriptFunction": At("compat.scripting:ScriptFunction"), "Future": At("distributed.futures:Future"),
    **each(_SPARSE, "sparse_csc_tensor sparse_bsr_tensor sparse_bsc_tensor sparse_compressed_tensor"),
    **_at("sparse.batches", "sspaddmm hspmm smm"), "saddmm": At("sparse.batches:sspaddmm"),
    **each(_QUANTIZED, "quantize_per_tensor quantize_per_channel dequantize fake_quantize_per_tensor_affine"),
    "OutOfMemoryError": At("errors:OutOfMemoryError"), "PyTorchFileReader": At("compat.records:FileReader"),
    **each(_NO, "is_vulkan_available cudnn_is_acceptable compiled_with_cxx11_abi"),
    "_weight_norm": At("compat.small:_weight_norm"), "_shape_as_tensor": At("compat.small:_shape_as_tensor"),
    **each(NoClass(_DEVICE), "Stream Event"), "DisableTorchFunction": At("compat.overriding:DisableTorchFunction"),
    **_at("compat.taken", "_convert_indices_from_coo_to_csr _convert_indices_from_csr_to_coo _softmax_backward_data"),
    **_at("compat.taken", "_log_softmax_backward_data _check_with _check_tensor_all_with _unique _unique2"),
    **_at("compat.taken", "_cast_Byte _cast_Char _cast_Short _cast_Int _cast_Long _cast_Half _cast_Float _cast_Double"),
    "_grouped_mm": At("compat.taken:grouped_mm"), "_scaled_mm": _QUANTIZED, "classes": Value(SimpleNamespace()),
    **each(_NESTED, "_nested_view_from_buffer _nested_compute_contiguous_strides_offsets"),
    "StorageBase": At("ops.creation.storages:Storage"), "DeviceObjType": At("ops.creation.device:device"),
    **{f"_foreach_{op}": At(f"compat.foreach:_foreach_{op}") for op in _FOREACH},
}  # fmt: skip
