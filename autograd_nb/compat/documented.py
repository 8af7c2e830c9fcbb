"""Last of the table: every other name that PyTorch documents, or shows in the modules that it documents.

The file is read when a name is asked for that stands nowhere else. What has a meaning for dense work on the CPU has it (`MEANT`, most of it in
`meant.py`); the rest can be imported, and an error tells what it is when it is used: `REFUSED`, a module -> (refusal, classes, functions).
"""

from __future__ import annotations

import multiprocessing as mp
from typing import Any

from ..errors import DeviceError
from .table import Absent, Answer, At, NoClass, Refuses, Says, Sets, Value, each


def _lacks(what: str) -> Refuses:
    return Refuses(NotImplementedError, f"{what}: not in this library, which computes eagerly or by compile() on dense tensors of the CPU")


def _at(module: str, names: str) -> dict[str, Answer]:
    return {name: At(f"{module}:{name}") for name in names.split()}


_GPU = Refuses(DeviceError, "this library computes on the CPU only: there is no GPU (test cuda.is_available() first)")
_DEVICE = Refuses(RuntimeError, "no such device is available: this library computes on the CPU only (test is_available() first)")
_QUANTIZED, _NESTED, _SPARSE = _lacks("quantized tensors"), _lacks("nested tensors"), _lacks("sparse formats but COO and CSR")
_PACKAGE, _MONITOR = _lacks("torch.package, archives of code and weights (save a state_dict)"), _lacks("counters of torch.monitor")
_MASKED, _EXPORT = _lacks("masked tensors (the functions of `masked` take a mask)"), _lacks("torch.export, graphs of whole programs (`trace` is here)")
_LIBRARY = _lacks("torch.library, ops of other languages (`custom_op` and `pointwise` declare ops here)")
_ONNX, _FILES = _lacks("this way of writing ONNX files (`onnx.export` writes them)"), _lacks("parts of checkpoints (`distributed.checkpoint.save` is here)")
_RPC, _PARTS = _lacks("calls on other machines (RPC)"), _lacks("models and tensors in parts by hand (`fully_shard` is here)")
_PROCESSES = _lacks("this part of PyTorch's distributed (`distributed` has process groups, collectives and DistributedDataParallel)")
_PIPES, _GRAPH = _lacks("data pipes (datasets and `DataLoader` are here)"), _lacks("graphs of PyTorch's compilers")
_COMPILER, _TELLING = _lacks("this switch of PyTorch's compiler"), _lacks("reports of machines (`utils.collect_env.main()`)")
_EXTENSION, _MOBILE = _lacks("extensions in C++ or CUDA (`pointwise` and `custom_op` declare ops in Python)"), _lacks("programs for phones")
_PROFILER, _INSIDE = _lacks("this part of PyTorch's profiler (`profiler.profile` is here)"), _lacks("this part of PyTorch's own machinery")

#: PyTorch's module -> (what its names say, classes, functions), separated by spaces
REFUSED: dict[str, tuple[Refuses, str, str]] = {
    "nn.functional": (_INSIDE, "ScalingType SwizzleType", "assert_int_or_pair"),
    "nn.attention": (_INSIDE, "", "activate_flash_attention_impl register_flash_attention_impl restore_flash_attention_impl"),
    "optim": (_INSIDE, "", "swap_in_optimizer_params_and_state"),
    "autograd": (_INSIDE, "NestedIOFunction", ""),
    "autograd.profiler": (_PROFILER, "EnforceUnique KinetoStepTracker MemRecordsAcc", "load_nvprof parse_nvprof_trace"),
    "autograd.function": (_INSIDE, "BackwardCFunction FunctionMeta NestedIOFunction", ""),
    "autograd.gradcheck": (_INSIDE, "", "get_analytical_jacobian get_numerical_jacobian get_numerical_jacobian_wrt_specific_input"),
    "utils": (_INSIDE, "ThroughputBenchmark", "generate_methods_for_privateuse1_backend get_cpp_backtrace rename_privateuse1_backend"),
    "utils.data": (_PIPES, "DataChunk guaranteed_datapipes_determinism non_deterministic runtime_validation_disabled", ""),
    "utils.checkpoint": (_INSIDE, "CheckpointFunction GraphExecGroup SelectiveCheckpointContext", "create_selective_checkpoint_contexts"),
    "utils.tensorboard": (_INSIDE, "FileWriter RecordWriter", ""),
    "utils.benchmark": (_INSIDE, (
        "CallgrindStats Colorize CopyIfCallgrind FunctionCount FunctionCounts FuzzedParameter FuzzedSparseTensor FuzzedTensor Fuzzer ParameterAlias"
    ), ""),
    "utils.hooks": (_INSIDE, "BackwardHook", ""),
    "utils.collect_env": (_TELLING, "SystemEnv", (
        "check_release_file get_cachingallocator_config get_clang_version get_cmake_version get_conda_packages get_cpu_info "
        "get_cuda_module_loading_config get_cudnn_version get_env_info get_gcc_version get_gpu_info get_intel_gpu_detected "
        "get_intel_gpu_driver_version get_intel_gpu_onboard get_libc_version get_linux_pkg_version get_lsb_version get_mac_version "
        "get_nvidia_driver_version get_nvidia_smi get_os get_pip_packages get_platform get_python_platform get_running_cuda_version "
        "get_windows_version is_xnnpack_available pretty_str run run_and_parse_first_match run_and_read_all run_and_return_first_line "
        "COMMON_PATTERNS CONDA_PATTERNS NVIDIA_PATTERNS ONEAPI_PATTERNS PIP_PATTERNS TORCH_AVAILABLE env_info_fmt"
    )),
    "utils.mobile_optimizer": (_MOBILE, "LintCode MobileOptimizerType", "generate_mobile_module_lints optimize_for_mobile"),
    "utils.cpp_extension": (_EXTENSION, "", (
        "SyclExtension check_compiler_is_gcc check_compiler_ok_for_platform get_compiler_abi_compatibility_and_version get_cxx_compiler "
        "get_default_build_root remove_extension_h_precompiler_headers verify_ninja_availability"
    )),
    "utils.backend_registration": (_INSIDE, "", "generate_methods_for_privateuse1_backend rename_privateuse1_backend"),
    "func": (_INSIDE, "", "debug_unwrap rearrange"),
    "serialization": (_INSIDE, "SourceChangeWarning StorageType set_default_mmap_options skip_data", (
        "check_module_version_greater_or_equal get_crc32_options get_default_mmap_options mkdtemp normalize_storage_type register_package "
        "set_crc32_options storage_to_tensor_type validate_cuda_device validate_hpu_device"
    )),
    "testing": (_INSIDE, "FileCheck", ""),
    "cuda": (_GPU, (
        "BFloat16Storage BFloat16Tensor BoolStorage ByteStorage CUDAPluggableAllocator CharStorage ComplexDoubleStorage ComplexFloatStorage "
        "CudaError DeferredCudaCallError DoubleStorage ExternalStream FloatStorage GreenContext HalfStorage IntStorage LongStorage MemPool "
        "ShortStorage cudaStatus"
    ), (
        "caching_allocator_alloc caching_allocator_delete caching_allocator_disabled caching_allocator_enable can_device_access_peer "
        "change_current_allocator check_error clock_rate cudart current_blas_handle current_solver_handle device_memory_used get_allocator_backend "
        "get_gencode_flags get_per_process_memory_fraction get_stream_from_external get_sync_debug_mode graph_pool_handle host_memory_stats "
        "host_memory_stats_as_nested_dict initial_seed is_tf32_supported list_gpu_processes make_graphed_callables max_memory_cached memory_cached "
        "memory_snapshot memory_usage power_draw reset_accumulated_host_memory_stats reset_accumulated_memory_stats reset_max_memory_cached "
        "reset_peak_host_memory_stats seed seed_all set_sync_debug_mode temperature use_mem_pool utilization"
    )),
    "cuda.amp": (_GPU, "", "amp_definitely_not_available"),
    "cpu": (_INSIDE, "Event Stream", ""),
    "mps": (_DEVICE, "", "compile_shader load_metallib recommended_max_memory set_per_process_memory_fraction"),
    "xpu": (_DEVICE, "MemPool StreamContext XPUGraph XPUPluggableAllocator device device_of graph", (
        "can_device_access_peer change_current_allocator clock_rate device_memory_used get_arch_list get_device_capability get_gencode_flags "
        "get_per_process_memory_fraction get_rng_state_all get_stream_from_external graph_pool_handle initial_seed is_current_stream_capturing "
        "is_tf32_supported make_graphed_callables max_memory_reserved mem_get_info memory_snapshot memory_stats memory_stats_as_nested_dict "
        "memory_usage power_draw reset_accumulated_memory_stats set_per_process_memory_fraction set_rng_state_all set_stream stream temperature "
        "use_mem_pool utilization default_generators"
    )),
    "mtia": (_DEVICE, "MTIAGraph device graph", (
        "attach_out_of_memory_observer default_stream get_device_capability get_rng_state_all graph_pool_handle initial_seed memory_stats "
        "record_memory_history set_rng_state_all set_stream snapshot stream"
    )),
    "accelerator": (_DEVICE, "Graph device_index", "current_stream empty_host_cache get_device_capability set_stream"),
    "backends.cuda": (_GPU, "SDPAParams cuBLASModule cuFFTPlanCache cuFFTPlanCacheAttrContextProp cuFFTPlanCacheManager", (
        "allow_fp16_bf16_reduction_math_sdp blas_workspace_size can_use_cudnn_attention can_use_efficient_attention can_use_flash_attention "
        "cublas_workspace_size cublaslt_workspace_size cudnn_sdp_enabled fp16_bf16_reduction_math_sdp_allowed is_ck_sdpa_available "
        "is_flash_attention_available preferred_blas_library preferred_rocm_fa_library cufft_plan_cache"
    )),
    "backends.mkl": (_INSIDE, "verbose", ""),
    "backends.mps": (_DEVICE, "", "get_core_count get_name is_macos13_or_newer is_macos_or_newer"),
    "jit": (_GRAPH, "CompilationUnit", "export_opnames"),
    "onnx": (_ONNX, "ExportableModule InputObserver", ""),
    "profiler": (_PROFILER, "ExecutionTraceObserver", ""),
    "sparse": (
        _SPARSE, "SparseSemiStructuredTensor SparseSemiStructuredTensorCUSPARSELT SparseSemiStructuredTensorCUTLASS",
        "as_sparse_gradcheck to_sparse_semi_structured",
    ),
    "nested": (_NESTED, "", "narrow"),
    "masked": (_MASKED, "MaskedTensor", "as_masked_tensor is_masked_tensor masked_tensor"),
    "quantization": (_QUANTIZED, "HistogramObserver QuantType QuantWrapper default_placeholder_observer", (
        "add_quant_dequant default_eval_fn default_fake_quant default_fixed_qparams_range_0to1_fake_quant "
        "default_fixed_qparams_range_neg1to1_fake_quant default_histogram_fake_quant default_observer default_per_channel_weight_fake_quant "
        "default_per_channel_weight_observer default_weight_fake_quant default_weight_observer get_default_compare_output_module_list "
        "get_default_dynamic_quant_module_mappings get_default_qat_module_mappings get_default_qconfig_propagation_list "
        "get_default_static_quant_module_mappings get_fuser_method get_quantized_operator get_static_quant_module_class propagate_qconfig_ quantize "
        "quantize_dynamic_jit quantize_jit quantize_qat swap_module WeightObserver default_dynamic_qconfig default_qat_qconfig default_qconfig "
        "float16_dynamic_qconfig float_qparams_weight_only_qconfig"
    )),
    "ao.quantization": (_QUANTIZED, (
        "AffineQuantizedObserverBase FixedQParamsFakeQuantize FixedQParamsObserver FusedMovingAvgObsFakeQuantize Granularity HistogramObserver "
        "MappingType MovingAverageMinMaxObserver MovingAveragePerChannelMinMaxObserver NoopObserver PerAxis PerBlock PerChannelMinMaxObserver "
        "PerGroup PerRow PerTensor PerToken PlaceholderObserver QConfigDynamic QConfigMapping QuantType QuantWrapper RecordingObserver "
        "ReuseInputObserver TorchAODType UniformQuantizationObserverBase ZeroPointDomain default_debug_observer default_placeholder_observer "
        "default_reuse_input_observer"
    ), (
        "ObserverOrFakeQuantize QConfigAny add_quant_dequant convert_dynamic_jit convert_jit default_affine_fixed_qparams_fake_quant "
        "default_affine_fixed_qparams_observer default_dynamic_fake_quant default_dynamic_quant_observer default_embedding_fake_quant "
        "default_embedding_fake_quant_4bit default_eval_fn default_fake_quant default_fixed_qparams_range_0to1_fake_quant "
        "default_fixed_qparams_range_0to1_observer default_fixed_qparams_range_neg1to1_fake_quant default_fixed_qparams_range_neg1to1_observer "
        "default_float_qparams_observer default_float_qparams_observer_4bit default_fused_act_fake_quant default_fused_per_channel_wt_fake_quant "
        "default_fused_wt_fake_quant default_histogram_fake_quant default_histogram_observer default_per_channel_weight_fake_quant "
        "default_symmetric_fixed_qparams_fake_quant default_symmetric_fixed_qparams_observer default_weight_fake_quant disable_fake_quant "
        "disable_observer enable_fake_quant enable_observer fuse_conv_bn fuse_conv_bn_jit fuse_conv_bn_relu fuse_convtranspose_bn fuse_linear_bn "
        "fused_per_channel_wt_fake_quant_range_neg_127_to_127 fused_wt_fake_quant_range_neg_127_to_127 get_block_size "
        "get_default_compare_output_module_list get_default_custom_config_dict get_default_dynamic_quant_module_mappings "
        "get_default_dynamic_sparse_quant_module_mappings get_default_float_to_quantized_operator_mappings get_default_qat_module_mappings "
        "get_default_qat_qconfig_dict get_default_qat_qconfig_mapping get_default_qconfig_dict get_default_qconfig_mapping "
        "get_default_qconfig_propagation_list get_default_static_quant_module_mappings get_default_static_quant_reference_module_mappings "
        "get_default_static_sparse_quant_module_mappings get_dynamic_quant_module_class get_embedding_qat_module_mappings "
        "get_embedding_static_quant_module_mappings get_fuser_method get_fuser_method_new get_observer_state_dict get_quantized_operator "
        "get_static_quant_module_class load_observer_state_dict no_observer_set per_channel_weight_observer_range_neg_127_to_127 "
        "prepare_dynamic_jit prepare_jit propagate_qconfig_ qconfig_equals quantize quantize_dynamic_jit quantize_jit quantize_qat script_qconfig "
        "script_qconfig_dict swap_module weight_observer_range_neg_127_to_127 MatchAllNode Pattern get_combined_dict"
    )),
    "package": (_PACKAGE, (
        "Directory EmptyMatchError GlobGroup Importer ObjMismatchError ObjNotFoundError OrderedImporter PackageExporter PackageImporter "
        "PackagingError"
    ), "is_from_package sys_importer"),
    "export": (
        _EXPORT, "AdditionalInputs CustomDecompTable ExportBackwardSignature ExportGraphSignature FlatArgsAdapter ModuleCallEntry UnflattenedModule",
        "default_decompositions dims draft_export Constraint",
    ),
    "compiler": (_COMPILER, "", (
        "get_default_backend keep_portable_guards_unsafe keep_tensor_guards_unsafe load_cache_artifacts load_compiled_function "
        "nested_compile_region save_cache_artifacts set_default_backend set_enable_guard_collectives skip_all_guards_unsafe "
        "skip_guard_on_all_nn_modules_unsafe skip_guard_on_globals_unsafe skip_guard_on_inbuilt_nn_modules_unsafe substitute_in_graph wrap_numpy"
    )),
    "library": (_LIBRARY, "", "fallthrough_kernel get_kernel infer_schema register_autocast register_torch_dispatch"),
    "overrides": (_INSIDE, "", "redispatch_function"),
    "monitor": (
        _MONITOR, "Aggregation Event EventHandlerHandle Stat TensorboardEventHandler data_value_t",
        "log_event register_event_handler unregister_event_handler COUNT MAX MEAN MIN STAT_EVENT SUM VALUE",
    ),
    "distributed": (_PROCESSES, (
        "AllToAllOptions AllreduceCoalescedOptions AllreduceOptions BackendConfig BarrierOptions BroadcastOptions DebugLevel GatherOptions Logger "
        "QueueEmptyError ReduceOptions ReduceScatterOptions Reducer ScatterOptions"
    ), (
        "GroupName all_gather_coalesced all_gather_single all_reduce_coalesced breakpoint get_backend_config record_comm reduce_scatter_single "
        "register_rendezvous_handler set_debug_level set_debug_level_from_env shrink_group split_group"
    )),
    "return_types": (_INSIDE, (
        "aminmax_out cummax_out cummin_out frexp_out geqrf_out histogram_out kthvalue_out linalg_cholesky_ex_out linalg_eig_out linalg_eigh_out "
        "linalg_inv_ex_out linalg_ldl_factor_ex_out linalg_ldl_factor_out linalg_lstsq_out linalg_lu_factor_ex_out linalg_lu_factor_out "
        "linalg_lu_out linalg_qr_out linalg_slogdet_out linalg_solve_ex_out linalg_svd_out lu_unpack_out max_out median_out min_out mode_out "
        "nanmedian_out qr_out slogdet_out sort_out svd_out topk_out triangular_solve_out"
    ), "pytree_register_structseq"),
    "distributed.optim": (_PROCESSES, "DistributedOptimizer PostLocalSGDOptimizer", "as_functional_optim"),
    "distributed.rpc": (
        _RPC, "AllGatherStates",
        "method_factory new_method BackendValue backend_registered construct_rpc_backend_options init_backend register_backend",
    ),
    "distributed.checkpoint": (_FILES, (
        "BytesStorageMetadata ChunkStorageMetadata DefaultLoadPlanner DefaultSavePlanner HuggingFaceStorageReader HuggingFaceStorageWriter LoadPlan "
        "LoadPlanner Metadata QuantizedHuggingFaceStorageReader ReadItem SavePlan SavePlanner StorageReader StorageWriter TensorStorageMetadata "
        "WriteItem"
    ), "load_sharded_optimizer_state_dict"),
    "distributed.fsdp": (
        _PARTS, "DataParallelMeshDims LocalOptimStateDictConfig OptimStateDictConfig StateDictConfig StateDictSettings UnshardHandle",
        "share_comm_ctx",
    ),
    "distributed.nn": (_PROCESSES, "RemoteModule", ""),
    "nn.quantized": (_QUANTIZED, (
        "BatchNorm2d BatchNorm3d Conv1d Conv2d Conv3d ConvTranspose1d ConvTranspose2d ConvTranspose3d DeQuantize Dropout ELU Embedding EmbeddingBag "
        "FXFloatFunctional FloatFunctional GroupNorm Hardswish InstanceNorm1d InstanceNorm2d InstanceNorm3d LSTM LayerNorm LeakyReLU Linear "
        "MultiheadAttention PReLU QFunctional Quantize ReLU6 Sigmoid Softmax"
    ), ""),
    "nn.intrinsic": (
        _QUANTIZED,
        "BNReLU2d BNReLU3d ConvBn1d ConvBn2d ConvBn3d ConvBnReLU1d ConvBnReLU2d ConvBnReLU3d ConvReLU1d ConvReLU2d ConvReLU3d LinearBn1d LinearReLU",
        "",
    ),
    "nn.qat": (_QUANTIZED, "Conv1d Conv2d Conv3d Embedding EmbeddingBag Linear", ""),
    "nn.quantizable": (_QUANTIZED, "LSTM LSTMCell MultiheadAttention", ""),
    "nn.cpp": (_EXTENSION, "ModuleWrapper OrderedDictWrapper", ""),
    "utils.data._utils": (_PIPES, "ExceptionWrapper", ""),
    "utils.throughput_benchmark": (_INSIDE, "ExecutionStats ThroughputBenchmark", "format_time"),
    "utils.file_baton": (_INSIDE, "FileBaton", ""),
}  # fmt: skip

_LAZY = "LazyConv1d LazyConv2d LazyConv3d LazyConvTranspose1d LazyConvTranspose2d LazyConvTranspose3d"
_NORMS = "LazyBatchNorm1d LazyBatchNorm2d LazyBatchNorm3d LazyInstanceNorm1d LazyInstanceNorm2d LazyInstanceNorm3d"
_FUNCTIONS = _at("overrides", "handle_torch_function has_torch_function")
_MEMORY = "memory_allocated max_memory_allocated memory_reserved max_memory_reserved memory_stats memory_summary empty_cache mem_get_info"
_MODES = each(Sets(), "set_multithreading_enabled enforce_grad_layout_policy")
#: results of functions that write into ``out=`` are of the same classes
_OUT = (
    "aminmax cummax cummin frexp geqrf histogram kthvalue linalg_cholesky_ex linalg_eig linalg_eigh linalg_inv_ex linalg_ldl_factor_ex "
    "linalg_ldl_factor linalg_lstsq linalg_lu_factor_ex linalg_lu_factor linalg_lu linalg_qr linalg_slogdet linalg_solve_ex linalg_svd lu_unpack "
    "max median min mode nanmedian qr slogdet sort svd topk triangular_solve"
)
_OBSERVERS: dict[str, Answer] = {
    **each(NoClass(_QUANTIZED), "MovingAverageMinMaxObserver MovingAveragePerChannelMinMaxObserver NoopObserver PerChannelMinMaxObserver"),
    **each(NoClass(_QUANTIZED), "PlaceholderObserver RecordingObserver"),
    **each(_QUANTIZED, "default_debug_observer default_dynamic_quant_observer default_float_qparams_observer default_histogram_observer"),
    **each(_QUANTIZED, "default_observer default_per_channel_weight_observer default_placeholder_observer default_weight_observer"),
    **each(_QUANTIZED, "get_observer_state_dict load_observer_state_dict"),
}
_QCONFIGS: dict[str, Answer] = {
    **each(NoClass(_QUANTIZED), "QConfig QConfigDynamic"), "QConfigAny": Value(Any),
    **each(_QUANTIZED, "default_activation_only_qconfig default_debug_qconfig default_dynamic_qconfig default_per_channel_qconfig default_qat_qconfig"),
    **each(_QUANTIZED, "default_qat_qconfig_v2 default_qconfig default_weight_only_qconfig float16_dynamic_qconfig float16_static_qconfig"),
    **each(_QUANTIZED, "float_qparams_weight_only_qconfig get_default_qat_qconfig get_default_qconfig per_channel_dynamic_qconfig qconfig_equals"),
}
_UPDATES = ["adam", "adamw", "adamax", "nadam", "radam", "adagrad", "adadelta", "rmsprop", "rprop", "asgd", "sgd"]
#: PyTorch's module -> its names that mean something here
MEANT: dict[str, dict[str, Answer]] = {
    "nn": _at("compat.meant", "Container factory_kwargs"), "nn.modules": _at("compat.meant", "Container"),
    "nn.modules.container": _at("compat.meant", "Container"), "nn.modules.conv": _at("nn", _LAZY),
    "nn.modules.normalization": _at("nn", f"{_NORMS} CrossMapLRN2d"),
    "nn.modules.batchnorm": _at("nn", _NORMS), "nn.modules.instancenorm": _at("nn", _NORMS), "nn.modules.linear": _at("nn", "LazyLinear"),
    "nn.modules.utils": _at("compat.meant", "consume_prefix_in_state_dict_if_present"), "nn.modules.loss": _at("nn", "LinearCrossEntropyLoss"),
    "nn.functional": {
        **each(Value(list), "BroadcastingList1 BroadcastingList2 BroadcastingList3"), **_FUNCTIONS,
        "GRID_SAMPLE_INTERPOLATION_MODES": Value({"bilinear": 0, "nearest": 1, "bicubic": 2}),
        "GRID_SAMPLE_PADDING_MODES": Value({"zeros": 0, "border": 1, "reflection": 2}), "boolean_dispatch": At("compat.small:boolean_dispatch"),
    },
    "nn.utils": _at("compat.meant", "convert_conv2d_weight_memory_format convert_conv3d_weight_memory_format"),
    "nn.attention": {"WARN_FOR_UNFUSED_KERNELS": Value(False), "list_flash_attention_impls": Says([]), "current_flash_attention_impl": Says(None)},
    "nn.attention.bias": _at("compat.meant", "CausalBias CausalVariant causal_lower_right causal_upper_left"),
    "nn.parallel": _at("compat.small", "scatter gather"), "autograd": _MODES, "autograd.grad_mode": _MODES,
    "autograd.graph": {
        **each(Says(None), "set_override_stale_capture_stream set_warn_on_accumulate_grad_stream_mismatch"), "region_activation_memory_budget": Sets()},
    "utils": {**_at("compat.meant", "set_module"), "cmake_prefix_path": Value("")},
    "utils.checkpoint": {
        **_at("compat.meant", "CheckpointPolicy noop_context_fn detach_variable check_backward_validity DefaultDeviceType"), "SAC_IGNORED_OPS": Value(set())},
    "utils.dlpack": _at("compat.meant", "DLDeviceType"), "utils.hooks": _at("compat.meant", "unserializable_hook warn_if_has_hooks"),
    "utils._pytree": {
        **_at("compat.meant", "is_namedtuple key_get treespec_pprint"), **each(Says(False), "is_structseq is_structseq_class"),
        **each(Value(Any), "FlattenFn UnflattenFn DumpableContext FromDumpableContextFn ToDumpableContextFn"), "PyTreeSpec": At("autograd.pytree:TreeSpec")},
    "utils.module_tracker": _at("compat.meant", "ModuleTracker"), "utils.deterministic": {"fill_uninitialized_memory": Value(True)},
    "func": _at("compat.meant", "functionalize"), "random": {"thread_safe_generator": Says(None)},
    "serialization": _at(
        "compat.meant", "LoadEndianness set_default_load_endianness get_default_load_endianness location_tag default_restore_location"),
    "cpu": {"get_capabilities": Says({})}, "cpu.amp": {"autocast": At("compat.precision:cpu_autocast"), "GradScaler": At("compat.scaling:cpu_GradScaler")},
    "version": each(Value(None), "rocm xpu"), "compiler": {"list_backends": Says([])},
    "distributed.algorithms": _at("distributed.joining", "Join JoinHook Joinable"),
    "multiprocessing": {
        **{name: Value(getattr(mp, name)) for name in ("AuthenticationError", "BufferTooShort", "ProcessError")},
        **{name: Value(getattr(mp, name)) for name in ("get_logger", "log_to_stderr", "set_executable", "set_forkserver_preload")},
        "allow_connection_pickling": Value(mp.allow_connection_pickling)},
    **{f"optim.{name}": _at("optim.functional", name) for name in _UPDATES}, "optim._functional": _at("optim.functional", " ".join(_UPDATES)),
    "_tensor": _FUNCTIONS, "backends.mkl": {"VERBOSE_OFF": Value(0), "VERBOSE_ON": Value(1)},
    "__future__": {
        **each(Says(False), "get_overwrite_module_params_on_conversion get_swap_module_params_on_conversion"),
        **each(Says(None), "set_overwrite_module_params_on_conversion set_swap_module_params_on_conversion")},
    "utils.data._utils": {"HAS_NUMPY": Value(True), "IS_WINDOWS": Value(False), "MP_STATUS_CHECK_INTERVAL": Value(5.0), "python_exit_status": Value(False)},
    "return_types": {f"{name}_out": At(f"return_types:{name}") for name in _OUT.split()},
    "cuda.memory": {**_at("cuda", _MEMORY), **each(Says(None), "_record_memory_history _dump_snapshot")},
    "cuda.streams": _at("cuda", "Stream Event"), "cuda.graphs": _at("cuda", "CUDAGraph graph"),
    "quantization.observer": {**_at("quantization", "ObserverBase MinMaxObserver HistogramObserver"), **_OBSERVERS},
    "quantization.qconfig": _QCONFIGS, "ao.quantization.qconfig": _QCONFIGS,
    "ao.quantization.observer": {**_at("ao.quantization", "ObserverBase MinMaxObserver HistogramObserver"), **_OBSERVERS},
    "onnx.errors": _at("onnx", "OnnxExporterError"), "compiler.config": each(Value(False), "force_disable_caches dynamic_sources"),
    "cuda": {"has_half": Value(True), "has_magma": Value(False)},
}  # fmt: skip

#: modules of nothing but such names
MODULES: dict[str, str] = {
    **{f"cuda.{name}": "A part of PyTorch for GPUs, of which there are none here." for name in (
        "graphs", "jiterator", "memory", "nccl", "streams", "tunable")},
    "mps.profiler": "Apple's profiler, which is not here.", "xpu.streams": "Streams of Intel's GPUs, which are not here.",
    "onnx.errors": "Errors of PyTorch's exporter.", "onnx.ops": "ONNX's ops in programs, which are not here.",
    **{f"{home}.{name}": f"{what}, which are not here." for home in ("quantization", "ao.quantization") for name, what in (
        ("observer", "Observers of ranges"), ("qconfig", "Settings of quantization"))},
    "compiler.config": "Switches of PyTorch's compiler, without effect.",
    "nn.attention.bias": "Masks of attention that begin in a corner.", "optim._functional": "Updates of optimizers as functions.",
    "utils.module_tracker": "Which modules are running.", "utils.mobile_optimizer": "Programs for phones, which are not here.",
    "utils.deterministic": "A switch of new memory: it can be set, and has no effect.", "utils.backend_registration": "Other devices, which are not here.",
    "cpu.amp": "The older place of mixed precision on the CPU.",
    "backends.xeon": "PyTorch's launcher for servers, which is not here.", "ao.nn": "Quantized modules, which are not here.",
    "package": "Archives of code and weights, which are not here.", "monitor": "Counters of programs, which are not here.",
    "__future__": "Switches of `Module.to`.", "nn.quantized": "Quantized modules, which are not here.",
    "nn.intrinsic": "Quantized modules, which are not here.",
    "nn.qat": "Quantized modules, which are not here.", "nn.quantizable": "Quantized modules, which are not here.",
    "nn.cpp": "Modules in C++, which are not here.", "utils.hipify": "Programs for AMD's GPUs, which are not here.",
    "utils.throughput_benchmark": "PyTorch's benchmarks, which are not here.", "utils.file_baton": "Locks of PyTorch's builds, which are not here.",
    "utils.jit": "Helpers of TorchScript, which is not here.",
}


def answers(place: str) -> dict[str, Answer]:
    """Return the names of PyTorch's module ``place`` with what they answer."""
    refusal, classes, functions = REFUSED.get(place, (_INSIDE, "", ""))
    return {**each(NoClass(refusal), classes), **each(refusal, functions), **MEANT.get(place, {})}


def absent(place: str) -> Absent:
    """Return a module of `MODULES`."""
    below = place + "."
    return Absent(MODULES[place], answers(place), tuple(m.removeprefix(below) for m in MODULES if m.startswith(below)))
