"""More of the table: what PyTorch has for many machines and for its own compiler, that packages name and mostly do not use.

Messages between processes are in `autograd_nb.distributed`; files in parts as PyTorch's are not here. Nothing is an instance
of their classes, so that programs that ask go on with what is here.
"""

from __future__ import annotations

import typing

from .table import Absent, Answer, At, NoClass, Refuses, Returns, Says, Sets, Value, each


def _lacks(what: str) -> Refuses:
    return Refuses(NotImplementedError, f"{what}: not in this library (`distributed` has process groups, collectives and DistributedDataParallel)")


_ITSELF = Returns("The function or class as it is.")
_PIPES, _NESTED = _lacks("data pipes (datasets and `DataLoader` are here)"), _lacks("nested tensors")
_FSDP = _lacks("this of the older way of models in parts (FullyShardedDataParallel and fully_shard are here)")
_PARTS = _lacks("modules in parts (tensor parallelism; fully_shard is here)")
_FILES, _LAUNCH = _lacks("checkpoints in parts"), _lacks("PyTorch's launcher (`python -m autograd_nb.distributed` starts processes)")
_MODELS, _HOOKS = _lacks("this way of averaging models"), _lacks("this hook of DistributedDataParallel")
_RPC = _lacks("calls on other machines (RPC)")
_GRAPHS = _lacks("graphs of PyTorch's compiler")
_NO_SPARSE: dict[str, Answer] = each(NoClass(_lacks("sparse tensors of GPUs")), "FloatTensor DoubleTensor HalfTensor LongTensor IntTensor")
_FSDP_NAMES: dict[str, Answer] = {
    "OptimStateKeyType": NoClass(_FSDP, "PARAM_NAME PARAM_ID"),
    **{name: At(f"nn.parallel.wrapped:{name}") for name in (
        "FullyShardedDataParallel", "CPUOffload", "MixedPrecision", "FullStateDictConfig", "FullOptimStateDictConfig", "ShardingStrategy",
        "BackwardPrefetch", "StateDictType", "ShardedStateDictConfig", "ShardedOptimStateDictConfig", "LocalStateDictConfig", "StateDictConfig",
        "LocalOptimStateDictConfig", "StateDictSettings")},
    **{name: At(f"nn.parallel.fully_sharded:{name}") for name in (
        "fully_shard", "FSDPModule", "MixedPrecisionPolicy", "OffloadPolicy", "CPUOffloadPolicy", "register_fsdp_forward_method")},
}
_CHECKPOINT_NAMES: dict[str, Answer] = {
    **each(_FILES, "save load async_save save_state_dict load_state_dict"), **each(NoClass(_FILES), "FileSystemReader FileSystemWriter DefaultLoadPlanner"),
    **each(NoClass(_FILES), "DefaultSavePlanner"),
}
_WRAP: dict[str, Answer] = {name: At(f"nn.parallel.wrap_policies:{name}") for name in (
    "wrap", "enable_wrap", "transformer_auto_wrap_policy", "size_based_auto_wrap_policy", "lambda_auto_wrap_policy", "_or_policy", "always_wrap_policy",
    "ModuleWrapPolicy", "CustomPolicy")}
_STATE = ("get_model_state_dict get_optimizer_state_dict get_state_dict set_model_state_dict set_optimizer_state_dict set_state_dict "
          "_init_optim_state")  # fmt: skip


def _module(doc: str, names: dict[str, Answer], *submodules: str) -> Absent:
    return Absent(doc, names, submodules=submodules)


DISTANT: dict[str, Absent] = {
    "distributed.fsdp": _module("Models in parts.", _FSDP_NAMES, "wrap", "fully_sharded_data_parallel", "api", "sharded_grad_scaler"),
    "distributed.fsdp.fully_sharded_data_parallel": _module("Models in parts.", _FSDP_NAMES),
    "distributed.fsdp.api": _module("Models in parts.", _FSDP_NAMES),
    "distributed.fsdp.wrap": _module("Which modules are parts.", _WRAP),
    "distributed.fsdp.sharded_grad_scaler": _module("Mixed precision of models in parts.", {"ShardedGradScaler": At("compat.scaling:GradScaler")}),
    "distributed._composable": _module("Models in parts.", {}, "fsdp"),
    "distributed._composable.fsdp": _module("Models in parts.", _FSDP_NAMES),
    "distributed.tensor.experimental": _module("Tensors in parts.", each(_PARTS, "implicit_replication context_parallel local_map")),
    "distributed.checkpoint.optimizer": _module("Files in parts.", each(_FILES, "load_sharded_optimizer_state_dict")),
    "distributed.checkpoint.format_utils": _module("Files in parts.", {
        **each(_FILES, "dcp_to_torch_save torch_save_to_dcp"), "_EmptyStateDictLoadPlanner": NoClass(_FILES)}),
    "distributed.checkpoint.default_planner": _module("Files in parts.", _CHECKPOINT_NAMES),
    "distributed.algorithms.ddp_comm_hooks.post_localSGD_hook": _module("How gradients are sent.", {
        "post_localSGD_hook": _HOOKS, "PostLocalSGDState": NoClass(_HOOKS)}),
    "distributed.algorithms.model_averaging": _module("Averages of models.", {}, "averagers"),
    "distributed.algorithms.model_averaging.averagers": _module("Averages of models.", each(NoClass(_MODELS), "ModelAverager PeriodicModelAverager")),
    "distributed.algorithms._checkpoint": _module("Checkpointing of modules.", {}, "checkpoint_wrapper"),
    "distributed.algorithms._checkpoint.checkpoint_wrapper": _module("Checkpointing of modules.", {
        name: At(f"utils.checkpoint_wrapper:{name}") for name in (
            "checkpoint_wrapper", "apply_activation_checkpointing", "offload_wrapper", "CheckpointWrapper", "OffloadWrapper", "ActivationWrapper",
            "CheckpointImpl", "_CHECKPOINT_WRAPPED_MODULE", "_CHECKPOINT_PREFIX")}),
    "distributed.rpc": _module("Calls on other machines, which are not here.", {
        "is_available": Says(False), **each(_RPC, "init_rpc rpc_sync rpc_async remote shutdown get_worker_info"),
        **each(NoClass(_RPC), "TensorPipeRpcBackendOptions BackendType RRef WorkerInfo")}, "api"),
    "distributed.autograd": _module("Gradients through calls on other machines, which are not here.", {
        "is_available": Says(False), **each(NoClass(_RPC), "context DistAutogradContext"), **each(_RPC, "backward get_gradients")}),
    "distributed.rpc.api": _module("Calls on other machines, which are not here.", {
        "_require_initialized": _ITSELF, **each(_RPC, "rpc_sync rpc_async remote shutdown _all_gather")}),
    "distributed.run": _module("PyTorch's launcher.", each(_LAUNCH, "main run get_args_parser config_from_args")),
    "distributed.launch": _module("PyTorch's older launcher.", each(_LAUNCH, "main launch")),
    "distributed.utils": _module("Helpers of models in parts.", each(_FSDP, "_sync_module_states _replace_by_prefix")),
    "distributed.constants": _module("Limits of time.", {"default_pg_timeout": At("compat.small:DEFAULT_TIMEOUT")}),
    "_higher_order_ops": _module("Functions that take functions.", {
        name: At("compat.control_flow:" + name) for name in ("associative_scan", "cond", "map", "scan", "while_loop")}),
    **{f"_higher_order_ops.{module}": _module("A function that takes functions.", {name: At("compat.control_flow:" + name)}) for module, name in (
        ("associative_scan", "associative_scan"), ("cond", "cond"), ("map", "map"), ("scan", "scan"), ("while_loop", "while_loop"))},
    "_dynamo._trace_wrapped_higher_order_op": _module("Indices of functions that are compiled.", {"TransformGetItemToIndex": Sets()}),
    "_dynamo.exc": _module("Errors of PyTorch's compiler.", each(
        At("compat.small:CompilerError"), "Unsupported TorchDynamoException TensorifyScalarRestartAnalysis UserError "
        "BackendCompilerFailed InternalTorchDynamoError TorchRuntimeError")),
    "_vmap_internals": _module("The transform that was before `torch.func.vmap`.", {
        "vmap": At("autograd.batching.vmap:vmap"), "_vmap": At("compat.control_flow:_vmap")}),
    "_functorch": _module("Transforms as PyTorch has them inside.", {}, "vmap"),
    "_functorch.vmap": _module("How `vmap` takes arguments apart.", {
        **each(_lacks("the inside of vmap"), "_add_batch_dim _broadcast_to_and_flatten _get_name _remove_batch_dim _validate_and_get_batch_size"),
        **each(_lacks("the inside of vmap"),
            "_process_batched_inputs _maybe_remove_batch_dim _create_batched_inputs _unwrap_batched "
               "_check_out_dims_is_int_or_int_pytree"),
        "Tensor": At("tensor:Tensor"), "tree_flatten": At("autograd.pytree:tree_flatten"), "tree_unflatten": At("autograd.pytree:tree_unflatten")}),
    "_C._functorch": _module("Transforms as PyTorch has them inside.", {
        **each(Says(False), "is_batchedtensor is_gradtrackingtensor is_functionaltensor is_functorch_wrapped_tensor"),
        "get_unwrapped": At("compat.taken:unwrapped"), "is_legacy_batchedtensor": Says(False),
        **each(_lacks("the inside of vmap"), "_add_batch_dim _remove_batch_dim _vmap_increment_nesting _vmap_decrement_nesting"),
        **each(Says(None), "maybe_get_bdim maybe_get_level maybe_current_level")}),
    "_C._distributed_c10d": _module("Messages between processes, inside.", {"ProcessGroup": At("distributed:ProcessGroup"), "Work": At("distributed:Work")}),
    "_C._distributed_rpc": _module("Calls on other machines, which are not here.", {}),
    "_guards": _module("What a graph holds for.", {**each(Says(None), "detect_fake_mode active_fake_mode"), **each(NoClass(_GRAPHS), "Source TracingContext")}),
    "_subclasses.meta_utils": _module("Tensors without values.", each(NoClass(_GRAPHS), "MetaConverter")),
    "_subclasses.functional_tensor": _module("Tensors of graphs.", {"FunctionalTensor": NoClass(_GRAPHS), "mb_unwrap_functional_tensor": _ITSELF}),
    "optim._multi_tensor": _module("Optimizers that work on lists, as all do here.", {
        name: At(f"optim:{name}") for name in ("Adadelta", "Adagrad", "Adam", "AdamW", "Adamax", "ASGD", "NAdam", "RAdam", "RMSprop", "Rprop", "SGD")}),
    "utils._contextlib": _module("Contexts that decorate.", {
        **{name: At(f"graph.modes:{own}") for name, own in (("_DecoratorContextManager", "_Mode"), ("_NoParamDecoratorContextManager", "_GradMode"))}}),
    "utils._sympy": _module("Numbers of graphs.", {}, "value_ranges", "numbers"),
    "utils._sympy.value_ranges": _module("Numbers of graphs.", {"ValueRanges": NoClass(_GRAPHS)}),
    "utils._sympy.numbers": _module("Numbers of graphs.", {"IntInfinity": NoClass(_GRAPHS)}),
    "utils.data.graph_settings": _module("Data pipes.", each(_PIPES, "apply_random_seed get_all_graph_pipes apply_shuffle_settings")),
    "utils.data.datapipes": _module("Data pipes.", {}, "iter", "datapipe"),
    "utils.data.datapipes.datapipe": _module("Data pipes.", each(NoClass(_PIPES), "IterDataPipe MapDataPipe")),
    "utils.data.datapipes.iter": _module("Data pipes.", each(NoClass(_PIPES), "Batcher IterableWrapper Mapper Shuffler"), "combinatorics"),
    "utils.data.datapipes.iter.combinatorics": _module("Data pipes.", each(NoClass(_PIPES), "ShufflerIterDataPipe SamplerIterDataPipe")),
    "nn.utils._per_sample_grad": _module("Gradients of every sample.", each(
        _lacks("call_for_per_sample_grads (`vmap` of `func.grad` gives them)"), "call_for_per_sample_grads")),
    "nn.utils._named_member_accessor": _module("Parameters by name.", each(_lacks("exchanged members (func.functional_call)"),
        "swap_tensor NamedMemberAccessor")),
    "nested._internal": _module("Tensors of rows of several lengths.", {}, "nested_tensor", "ops"),
    "nested._internal.nested_tensor": _module("Tensors of rows of several lengths.", {
        **each(NoClass(_NESTED), "NestedTensor _tensor_symint_registry"), **each(_NESTED, "nested_view_from_values_offsets buffer_from_jagged")}),
    "nested._internal.ops": _module("Tensors of rows of several lengths.", each(_NESTED, "extract_kwargs")),
    "fx.passes.infra": _module("Changes of graphs.", {}, "pass_base"),
    "fx.passes.infra.pass_base": _module("Changes of graphs.", each(NoClass(_GRAPHS), "PassResult PassBase")),
    "fx._pytree": _module("Trees of graphs.", {name: At(f"autograd.pytree:{name}") for name in ("tree_flatten", "tree_map", "tree_unflatten")}),
    "export.decomp_utils": _module("Exported programs.", {"CustomDecompTable": NoClass(_GRAPHS)}),
    "export._trace": _module("Exported programs.", {}),
    "jit._recursive": _module("Scripts of modules.", each(_GRAPHS, "script_call infer_methods_to_compile create_script_module")),
    "numa": _module("Processors' memories.", {}, "binding"),
    "numa.binding": _module("Processors' memories.", {"NumaOptions": NoClass(_LAUNCH), "AffinityMode": NoClass(_LAUNCH, "NODE SOCKET EXCLUSIVE CORE_COMPLEX")}),
    "distributed.pipelining": _module("Models as pipelines.", {
        "pipeline": _FSDP, "ScheduleGPipe": NoClass(_FSDP), "SplitPoint": NoClass(_FSDP, "BEGINNING END")}),
    "utils.data._utils.pin_memory": _module("Batches in memory that a GPU reads fast: as they are.", {"pin_memory": At("compat.taken:pinned")}),
    "distributed.elastic": _module("PyTorch's launcher.", {}, "multiprocessing", "utils"),
    "distributed.elastic.utils": _module("PyTorch's launcher.", {}, "distributed"),
    "distributed.elastic.utils.distributed": _module("PyTorch's launcher.", {"get_free_port": At("compat.taken:free_port")}),
    "distributed.elastic.multiprocessing": _module("PyTorch's launcher.", {}, "errors"),
    "distributed.elastic.multiprocessing.errors": _module("PyTorch's launcher.", {"ChildFailedError": NoClass(_LAUNCH), "record": _ITSELF}),
    "cuda.profiler": _module("NVIDIA's profiler, which is not there.", each(Says(None), "start stop")),
    "cuda.sparse": _module("Sparse tensors of GPUs, which are not there.", _NO_SPARSE),
    "_dynamo.utils": _module("What PyTorch's compiler tells.", {
        "is_compile_supported": Says(True), "counters": Value({}), "disable_cache_limit": Sets()}),
    **{f"onnx.symbolic_opset{n}": _module("How ops become ONNX's: the older way, which is not here.", {}) for n in (9, 11, 12)},
    "onnx.symbolic_helper": _module("How ops become ONNX's: the older way, which is not here.", {
        "parse_args": At("compat.taken:undecorated"), "_set_opset_version": Says(None)}),
    "onnx.operators": _module("Shapes as tensors, for ONNX.", {name: At(f"compat.small:{name}") for name in ("_shape_as_tensor", "shape_as_tensor")}),
    "_inductor.exc": _module("Errors of PyTorch's code generator.", {"InductorError": At("compat.small:CompilerError")}),
    "onnx._internal": _module("PyTorch's ONNX files.", {}, "exporter"), "onnx._internal.exporter": _module("PyTorch's ONNX files.", {}),
    "_ops": _module("PyTorch's table of ops.", each(NoClass(_GRAPHS), "HigherOrderOperator OpOverload OpOverloadPacket _OpNamespace")),
    "_prims_common": _module("PyTorch's rules for ops.", {
        "is_contiguous_or_false": At("compat.small:is_contiguous_or_false"), "alert_not_deterministic": Says(None)}),
    "fx.experimental": _module("Shapes of graphs.", {}, "symbolic_shapes", "proxy_tensor"),
    "fx.experimental.symbolic_shapes": _module("Shapes of graphs, which are numbers here.", {
        **{name: At(f"compat.small:{name}") for name in ("statically_known_true", "guard_or_true", "guard_or_false", "guard_size_oblivious")},
        **each(Says(set()), "free_symbols free_unbacked_symbols"), "is_symbolic": Says(False),
        **each(At("compat.small:CompilerError"), "GuardOnDataDependentSymNode ConstraintViolationError")}),
    "fx.experimental.proxy_tensor": _module("Graphs of functions.", {"get_proxy_mode": Says(None), "make_fx": _GRAPHS}),
    "jit.annotations": _module("Types of scripts.", {
        **{name: Value(getattr(typing, name)) for name in ("List", "Dict", "Tuple", "Optional")},
        **{f"BroadcastingList{n}": Value(list) for n in range(1, 7)}}),
    "cuda.nvtx": _module("Marks for NVIDIA's profiler, which have no effect.", {**each(Says(None), "range_push range_pop mark"), **each(Sets(), "range")}),
    "cuda.random": _module("States of GPUs' generators, of which there are none.", {
        "get_rng_state_all": Says([]), "set_rng_state_all": Says(None), **each(Says(None), "manual_seed manual_seed_all get_rng_state")}),
}  # fmt: skip
