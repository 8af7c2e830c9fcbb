"""More of the table: names that PyTorch keeps for old programs, and those of its kernels for quantized tensors, graphs and other devices."""

from __future__ import annotations

import builtins
import ctypes
import functools
import glob
import importlib
import inspect
import math
import os
import platform
import sys
import textwrap
import threading
import warnings
from sys import modules

from ..errors import DeviceError
from .table import Absent, Answer, At, NoClass, Refuses, Returns, Says, Sets, Value, each

#: modules of Python's that programs take from PyTorch's namespace
_PYTHONS = (builtins, ctypes, functools, glob, importlib, inspect, math, os, platform, sys, textwrap, threading, warnings)


def _lacks(what: str) -> Refuses:
    return Refuses(NotImplementedError, f"{what}: not in this library, which computes on dense tensors of the CPU")


def _gone(name: str, instead: str) -> Refuses:
    text = f"This function was deprecated since version 1.9 and is now removed: torch.{name}; in this library as in PyTorch it is {instead}"
    return Refuses(RuntimeError, text)


_QUANTIZED, _SPARSE, _GRAPH = _lacks("quantized tensors"), _lacks("this format of sparse tensors"), _lacks("graphs of TorchScript")
_GPU = Refuses(DeviceError, "this library computes on the CPU only: kernels of GPUs are not there")
_NATIVE = _lacks("this step of a kernel of PyTorch (the function of nn.functional is here)")
_NONE, _NO = Says(None), Says(False)
_AUTOCAST = (("is", "enabled"), ("set", "enabled"), ("get", "dtype"), ("set", "dtype"))


def _older(names: str) -> dict[str, Answer]:
    return {name: At(f"compat.older:{name}") for name in names.split()}


#: names of modules that are nowhere else
OLD_MODULES: dict[str, Absent] = {
    "nn._reduction": Absent("Old flags of losses, as reductions.", _older("get_enum legacy_get_string legacy_get_enum")),
    "nn.parallel.replicate": Absent("Modules on several devices, of which there is one.", _older("replicate")),
    "nn.parallel.parallel_apply": Absent("Modules on several devices, of which there is one.", _older("parallel_apply")),
    "_utils_internal": Absent("Paths, and what PyTorch's makers measure.", {
        **_older("get_file_path get_file_path_2 get_writable_path"), **each(_NONE, "prepare_multiprocessing_environment log_export_usage signpost_event"),
        **each(_NO, "justknobs_check is_fb_unit_test"), "USE_GLOBAL_DEPS": Value(True), "USE_RTLD_GLOBAL_WITH_LIBTORCH": Value(False),
    }),
    "cuda.amp.common": Absent("Whether there is a GPU to scale for.", {"amp_definitely_not_available": Says(True)}),
    "profiler.itt": Absent("Marks for Intel's profiler, which is not there.", {
        "is_available": _NO, **each(_NONE, "mark range_push range_pop"), "range": Sets(),
    }),
    "_C._functions": Absent("Classes of nodes.", {"AccumulateGrad": At("graph.node:AccumulateGrad"), **_older("UndefinedGrad DelayedError")}),
    "nn.parallel._functions": Absent("What goes between devices, of which there is one.", each(NoClass(_GPU), "Broadcast Gather Scatter ReduceAddCoalesced")),
    "utils.collect_env": Absent("What a report of a fault tells.", {"get_pretty_env_info": Says("autograd_nb on the CPU"), "main": _NONE}),
    "utils.backcompat": Absent("Warnings of old programs' broadcasting, which can be set without effect.", {
        "broadcast_warning": Value(None), "keepdim_warning": Value(None),
    }),
    "_namedtensor_internals": Absent("Names of dims.", each(_lacks("names of dims"), "check_serializing_named_tensor update_names is_ellipsis")),
}  # fmt: skip

#: names of the package itself
OLD_TOP: dict[str, Answer] = {
    **_older("kl_div binary_cross_entropy_with_logits frobenius_norm nuclear_norm detach_ as_strided_ addmv_ _compute_linear_combination"),
    **{name: At(f"compat.precision:{name}") for name in (
        "get_autocast_dtype", "set_autocast_enabled", "set_autocast_dtype", "autocast_increment_nesting", "autocast_decrement_nesting",
        "clear_autocast_cache", "set_autocast_cache_enabled", "is_autocast_cache_enabled",
        *(f"{name}_autocast_{device}_{what}" for device in ("cpu", "ipu", "xla") for name, what in _AUTOCAST), "get_autocast_gpu_dtype",
        "set_autocast_gpu_dtype",
    )},
    "init_num_threads": _NONE, "is_distributed": _NO,
    "_nnpack_available": _NO, "_tensor_classes": Value(set()), "_storage_classes": At("compat.older:STORAGE_CLASSES"),
    **each(Value(True), "has_lapack has_spectral"), **each(Value(False), "has_mkl has_openmp has_cuda has_cudnn has_mps"),
    "fork": At("distributed.futures:fork"), "wait": At("distributed.futures:wait"), "legacy_contiguous_format": At("ops.creation.device:contiguous_format"),
    "eig": _gone("eig", "linalg.eig"), "symeig": _gone("symeig", "linalg.eigh"), "lstsq": _gone("lstsq", "linalg.lstsq"),
    "solve": _gone("solve", "linalg.solve"), "matrix_rank": _gone("matrix_rank", "linalg.matrix_rank"),
    "AcceleratorError": NoClass(_GPU), "FatalError": NoClass(_lacks("faults of PyTorch's own")), "classproperty": Returns("Do nothing to the function."),
    **each(NoClass(_QUANTIZED), "qscheme QInt8Storage QUInt8Storage QInt32Storage QUInt4x2Storage QUInt2x4Storage"),
    **{name: Value(name) for name in ("per_tensor_affine", "per_channel_affine", "per_tensor_symmetric", "per_channel_symmetric")},
    "per_channel_affine_float_qparams": Value("per_channel_affine_float_qparams"),
    "_debug_has_internal_overlap": At("compat.older:has_internal_overlap"), **_older("_nnpack_spatial_convolution convolution"),
    **_older("max_pool1d_with_indices native_dropout embedding_renorm_ from_file get_file_path"),
    "DisableTorchFunctionSubclass": At("compat.overriding:DisableTorchFunctionSubclass"), "StorageBase": At("ops.creation.storages:StorageBase"),
    **each(_NONE, "prepare_multiprocessing_environment profiler_allow_cudagraph_cupti_lazy_reinit_cuda12 sym_constrain_range sym_fresh_size"),
    **each(_NONE, "sym_constrain_range_for_size thread_safe_generator"),
    **{name: Value(value) for name, value in {
        "USE_GLOBAL_DEPS": True, "USE_RTLD_GLOBAL_WITH_LIBTORCH": False, "TYPE_CHECKING": False, "PRIVATE_OPS": (), "AVG": "avg", "SUM": "sum",
        "torch": modules[__name__.partition(".")[0]], **{module.__name__: module for module in _PYTHONS},
    }.items()},
    "functional": At("functional"), "F": At("nn.functional"), "windows": At("signal.windows"),
    **each(_QUANTIZED, "fbgemm_linear_fp16_weight_fp32_activation fbgemm_linear_int8_weight_fp32_activation"),
    **each(_GPU, "miopen_convolution_add_relu miopen_convolution_transpose miopen_depthwise_convolution"),
    **each(_NATIVE, "native_norm slice_inverse"), **each(_GRAPH, "merge_type_from_type_comment classes cpp"),
    **each(NoClass(_GRAPH), "AggregationType ArgumentSpec AwaitType BenchmarkConfig BenchmarkExecutionStats BufferDict CallStack Capsule"),
    **each(NoClass(_GRAPH), "CompleteArgumentSpec ConcreteModuleType ConcreteModuleTypeBuilder DeepCopyMemoTable DeserializationStorageContext"),
    **each(NoClass(_GRAPH), "DeviceObjType DispatchKey DispatchKeySet EnumType ExcludeDispatchKeyGuard ExecutionPlan Gradient IODescriptor"),
    **each(NoClass(_GRAPH), "InferredType LockingLogger LoggerBase ModuleDict NoopLogger OperatorInfo ParameterDict PyObjectType PyTorchFileWriter"),
    **each(NoClass(_GRAPH), "ScriptClassFunction ScriptDictIterator ScriptDictKeyIterator ScriptListIterator ScriptModuleSerializer"),
    **each(NoClass(_GRAPH), "ScriptObjectProperty SerializationStorageContext StaticModule StreamObjType SymBoolType SymIntType Tag"),
    **each(NoClass(_GRAPH), "ThroughputBenchmark Value"),
    "_aminmax": At("compat.older:_aminmax"),
    **each(_QUANTIZED, "_empty_affine_quantized _empty_per_channel_affine_quantized"),
    **each(_QUANTIZED, "choose_qparams_optimized empty_quantized fake_quantize_per_channel_affine fused_moving_avg_obs_fake_quant int_repr q_scale"),
    **each(_QUANTIZED, "q_per_channel_axis q_per_channel_scales q_per_channel_zero_points q_zero_point quantize_per_tensor_dynamic"),
    **each(_QUANTIZED, "quantized_batch_norm quantized_gru quantized_gru_cell quantized_lstm quantized_lstm_cell quantized_max_pool1d"),
    **each(_QUANTIZED, "quantized_max_pool2d quantized_max_pool3d quantized_rnn_relu_cell quantized_rnn_tanh_cell fbgemm_linear_int8_weight"),
    **each(_QUANTIZED, "fbgemm_linear_fp16_weight fbgemm_linear_quantize_weight fbgemm_pack_gemm_matrix_fp16 fbgemm_pack_quantized_matrix"),
    "hsmm": At("sparse.batches:hspmm"), "resize_as_sparse_": At("sparse.batches:resize_as_"),
    **each(_SPARSE, "ccol_indices_copy col_indices_copy crow_indices_copy row_indices_copy indices_copy values_copy"),
    **each(_GPU, "cudnn_affine_grid_generator cudnn_batch_norm cudnn_convolution cudnn_convolution_add_relu cudnn_convolution_relu"),
    **each(_GPU, "cudnn_convolution_transpose cudnn_grid_sampler miopen_batch_norm miopen_convolution miopen_convolution_relu miopen_ctc_loss miopen_rnn"),
    **each(_NATIVE, "batch_norm_stats batch_norm_elemt batch_norm_backward_elemt batch_norm_backward_reduce batch_norm_gather_stats"),
    **each(_NATIVE, "batch_norm_gather_stats_with_counts batch_norm_update_stats mkldnn_convolution mkldnn_max_pool2d mkldnn_rnn_layer"),
    **each(_NATIVE, "mkldnn_adaptive_avg_pool2d mkldnn_linear_backward_weights mkldnn_max_pool3d embedding_bag lobpcg"),
    **each(_GRAPH, "import_ir_module import_ir_module_from_buffer parse_ir parse_schema parse_type_comment unify_type_list"),
    "cond": At("compat.control_flow:cond"), "while_loop": At("compat.control_flow:while_loop"), "dsmm": At("ops.products.matmul:mm"),
    **each(NoClass(_GRAPH), "AliasDb AnyType Argument Block BoolType ClassType Code CompilationUnit ComplexType DictType ErrorReport FloatType"),
    **each(NoClass(_GRAPH), "FunctionSchema Graph GraphExecutorState IntType InterfaceType JITException ListType Node NoneType NumberType"),
    **each(NoClass(_GRAPH), "OptionalType RRefType ScriptClass ScriptDict ScriptList ScriptMethod ScriptObject StringType TensorType TracingState"),
    **each(NoClass(_GRAPH), "TupleType Type UnionType Use LiteScriptModule FutureType FileCheck"),
}
