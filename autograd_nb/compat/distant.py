"""More of the table: what PyTorch has for many machines and for its own compiler, that packages name and mostly do not use.

Messages between processes are in `autograd_nb.distributed`; PyTorch's older FSDP, tensors in parts and files in parts are not here. Nothing is an instance
of their classes, so that programs that ask go on with what is here.
"""

from __future__ import annotations

import typing

from .table import Absent, Answer, At, NoClass, Refuses, Says, Sets, Value, each


def _lacks(what: str) -> Refuses:
    return Refuses(NotImplementedError, f"{what}: not in this library (`distributed` has process groups, collectives and DistributedDataParallel)")


_FSDP, _PARTS = _lacks("the older way of models in parts (FullyShardedDataParallel; use fully_shard)"), _lacks("tensors in parts (DTensor)")
_FILES, _LAUNCH = _lacks("checkpoints in parts"), _lacks("PyTorch's launcher (`python -m autograd_nb.distributed` starts processes)")
_MODELS, _HOOKS = _lacks("this way of averaging models"), _lacks("this hook of DistributedDataParallel")
_GRAPHS = _lacks("graphs of PyTorch's compiler")
_FSDP_NAMES: dict[str, Answer] = {
    **each(NoClass(_FSDP), "FullyShardedDataParallel ShardingStrategy StateDictType CPUOffload BackwardPrefetch MixedPrecision"),
    **each(NoClass(_FSDP), "FullStateDictConfig FullOptimStateDictConfig OptimStateKeyType"),
    **each(NoClass(_FSDP), "ShardedStateDictConfig ShardedOptimStateDictConfig LocalStateDictConfig"),
    **{name: At(f"nn.parallel.fully_sharded:{name}") for name in (
        "fully_shard", "FSDPModule", "MixedPrecisionPolicy", "OffloadPolicy", "CPUOffloadPolicy", "register_fsdp_forward_method")},
}
_TENSOR_NAMES: dict[str, Answer] = {
    **each(NoClass(_PARTS), "DTensor Shard Replicate Partial Placement DeviceMesh"), **each(_PARTS, "distribute_tensor distribute_module init_device_mesh"),
}
_CHECKPOINT_NAMES: dict[str, Answer] = {
    **each(_FILES, "save load async_save save_state_dict load_state_dict"), **each(NoClass(_FILES), "FileSystemReader FileSystemWriter DefaultLoadPlanner"),
    **each(NoClass(_FILES), "DefaultSavePlanner"),
}
_WRAP = each(_FSDP, "wrap enable_wrap transformer_auto_wrap_policy size_based_auto_wrap_policy lambda_auto_wrap_policy _or_policy always_wrap_policy")
_STATE = ("get_model_state_dict get_optimizer_state_dict get_state_dict set_model_state_dict set_optimizer_state_dict set_state_dict "
          "_init_optim_state")  # fmt: skip


def _module(doc: str, names: dict[str, Answer], *submodules: str) -> Absent:
    return Absent(doc, names, submodules=submodules)


DISTANT: dict[str, Absent] = {
    "distributed.fsdp": _module("Models in parts.", _FSDP_NAMES, "wrap", "fully_sharded_data_parallel", "api", "sharded_grad_scaler"),
    "distributed.fsdp.fully_sharded_data_parallel": _module("Models in parts.", _FSDP_NAMES),
    "distributed.fsdp.api": _module("Models in parts.", _FSDP_NAMES),
    "distributed.fsdp.wrap": _module("Which modules are parts.", {**_WRAP, "ModuleWrapPolicy": NoClass(_FSDP), "CustomPolicy": NoClass(_FSDP)}),
    "distributed.fsdp.sharded_grad_scaler": _module("Mixed precision of models in parts.", {"ShardedGradScaler": NoClass(_FSDP)}),
    "distributed._composable": _module("Models in parts.", {}, "fsdp"),
    "distributed._composable.fsdp": _module("Models in parts.", _FSDP_NAMES),
    "distributed.tensor": _module("Tensors in parts, which are not here.", _TENSOR_NAMES, "parallel", "placement_types", "experimental"),
    "distributed._tensor": _module("Tensors in parts.", _TENSOR_NAMES, "experimental"),
    "distributed.tensor.placement_types": _module("Where parts are.", {**_TENSOR_NAMES, "_StridedShard": NoClass(_PARTS)}),
    "distributed.tensor.parallel": _module("Modules in parts.", {
        **each(_PARTS, "parallelize_module loss_parallel"),
        **each(NoClass(_PARTS), "RowwiseParallel ColwiseParallel SequenceParallel PrepareModuleInput PrepareModuleOutput ParallelStyle"),
    }),
    "distributed.tensor.experimental": _module("Tensors in parts.", each(_PARTS, "implicit_replication context_parallel local_map")),
    "distributed._tensor.experimental": _module("Tensors in parts.", each(_PARTS, "implicit_replication")),
    "distributed.device_mesh": _module("Processes in a grid.", {"DeviceMesh": NoClass(_PARTS), "init_device_mesh": _PARTS, "_mesh_resources": Value(None)}),
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
        **each(_FSDP, "checkpoint_wrapper apply_activation_checkpointing offload_wrapper"), **each(NoClass(_FSDP), "CheckpointImpl CheckpointWrapper")}),
    "distributed.rpc": _module("Calls on other machines, which are not here.", {
        "is_available": Says(False), **each(_lacks("calls on other machines (RPC)"), "init_rpc rpc_sync rpc_async remote shutdown")}),
    "distributed.run": _module("PyTorch's launcher.", each(_LAUNCH, "main run get_args_parser config_from_args")),
    "distributed.launch": _module("PyTorch's older launcher.", each(_LAUNCH, "main launch")),
    "distributed.utils": _module("Helpers of models in parts.", each(_FSDP, "_sync_module_states _replace_by_prefix")),
    "distributed.constants": _module("Limits of time.", {"default_pg_timeout": At("compat.small:DEFAULT_TIMEOUT")}),
    "_dynamo._trace_wrapped_higher_order_op": _module("Indices of functions that are compiled.", {"TransformGetItemToIndex": Sets()}),
    "_dynamo.exc": _module("Errors of PyTorch's compiler.", each(
        At("compat.small:CompilerError"), "Unsupported TorchDynamoException TensorifyScalarRestartAnalysis UserError "
        "BackendCompilerFailed InternalTorchDynamoError")),
    "_functorch": _module("Transforms as PyTorch has them inside.", {}),
    "onnx._internal": _module("PyTorch's ONNX files.", {}, "exporter"), "onnx._internal.exporter": _module("PyTorch's ONNX files.", {}),
    "_ops": _module("PyTorch's table of ops.", each(NoClass(_GRAPHS), "HigherOrderOperator OpOverload OpOverloadPacket")),
    "_prims_common": _module("PyTorch's rules for ops.", {"is_contiguous_or_false": At("compat.small:is_contiguous_or_false")}),
    "fx.experimental": _module("Shapes of graphs.", {}, "symbolic_shapes", "proxy_tensor"),
    "fx.experimental.symbolic_shapes": _module("Shapes of graphs, which are numbers here.", {
        **{name: At(f"compat.small:{name}") for name in ("statically_known_true", "guard_or_true", "guard_or_false", "guard_size_oblivious")},
        **each(Says(set()), "free_symbols free_unbacked_symbols"), "is_symbolic": Says(False),
        **each(At("compat.small:CompilerError"), "GuardOnDataDependentSymNode ConstraintViolationError")}),
    "fx.experimental.proxy_tensor": _module("Graphs of functions.", {"get_proxy_mode": Says(None), "make_fx": _GRAPHS}),
    "jit.annotations": _module("Types of scripts.", {name: Value(getattr(typing, name)) for name in ("List", "Dict", "Tuple", "Optional")}),
    "cuda.nvtx": _module("Marks for NVIDIA's profiler, which have no effect.", {**each(Says(None), "range_push range_pop mark"), **each(Sets(), "range")}),
    "cuda.random": _module("States of GPUs' generators, of which there are none.", {
        "get_rng_state_all": Says([]), "set_rng_state_all": Says(None), **each(Says(None), "manual_seed manual_seed_all")}),
}  # fmt: skip
