"""More of the table: names that PyTorch has in modules that this library has too, and that packages take from there.

A module does not import them; it is asked for them when it has no such name (`import_aliases.ask_too`). What they do is in `taken.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .table import Answer, At, NoClass, Refuses, Says, Value, each


def _taken(names: str) -> dict[str, Answer]:
    return {name: At(f"compat.taken:{name}") for name in names.split()}


def _lacks(what: str) -> Refuses:
    return Refuses(NotImplementedError, f"{what}: not in this library, which computes eagerly or by compile() on dense tensors of the CPU")


_STORE = _lacks("stores of keys between processes (MPI connects them here)")
_SHARDED = _lacks("this way to make tensors in parts (distribute_tensor and DTensor.from_local are here)")
_PIPES = _lacks("data pipes (datasets and `DataLoader` are here)")

#: PyTorch's name of the module -> the names
BESIDE: dict[str, dict[str, Answer]] = {
    "amp.autocast_mode": {"_cast": At("compat.taken:cast_floats")},
    "_tensor": _taken("_rebuild_from_type_v2"),
    "amp": {"OptState": At("compat.taken:OptState"), "_cast": At("compat.taken:cast_floats")},
    "autograd": {
        "_profiler_enabled": Says(False), "_is_checkpoint_valid": Says(True), "_disable_profiler": Says(None),
        "kineto_available": At("profiler:kineto_available"), "DeviceType": At("compat.taken:DeviceType"),
        "profiler_legacy": At("compat.taken:profiler_legacy"),
    },
    "distributed": {
        **each(NoClass(_STORE), "Store TCPStore FileStore PrefixStore HashStore ProcessGroupGloo Backend"), "_rank_not_in_group": Says(False),
        **{name: At(f"distributed.tensor:{name}") for name in ("DeviceMesh", "init_device_mesh")},
        "_pg_map": Value({}), "_world": Value(None), **each(_STORE, "_new_process_group_helper"), "is_xccl_available": Says(False),
    },
    "distributed.checkpoint.state_dict": {"_init_optim_state": At("serialization.sharded.state:_begin")},
    "distributed.tensor": {
        "_mesh_resources": Value(None), "_StridedShard": NoClass(_SHARDED), "distribute_module": At("nn.parallel.tensor_parallel:distribute_module"),
    },
    "distributions.transforms": _taken("_clipped_sigmoid"),
    "profiler": {"itt": At("profiler.itt")},
    "distributions.kl": {"_KL_REGISTRY": At("distributions.kl:_REGISTRY")},
    "autograd.function": _taken("_nested_map"),
    "autograd.gradcheck": _taken("get_numerical_jacobian"),
    "nn.functional": {
        "_Reduction": At("nn._reduction"), **_taken("grouped_mm _canonical_mask _none_or_dtype"),
        **each(_lacks("products of quantized tensors"), "scaled_mm scaled_grouped_mm"),
    },
    "nn.modules.conv": {"_ConvTransposeNd": At("nn.modules.conv:_ConvTransposed")},
    "nn.modules.module": {"_EXTRA_STATE_KEY_SUFFIX": Value("_extra_state")},
    "nn.modules.dropout": {"_DropoutNd": At("nn.modules.dropout:_Dropout")},
    "nn.utils": _taken("convert_conv2d_weight_memory_format convert_conv3d_weight_memory_format"),
    "nn.utils.stateless": {**_taken("_reparametrize_module"), "_functional_call": At("nn.utils.functional_call:functional_call")},
    "optim.optimizer": {
        **_taken("_default_to_fused_or_foreach _use_grad_for_differentiable _view_as_real _to_scalar"),
        **each(Says([]), "_get_capturable_supported_devices"), "_get_value": At("compat.taken:number"), "_stack_if_compiling": At("compat.taken:stack"),
        "_dispatch_sqrt": At("compat.taken:square_root"), "_disable_dynamo_if_unsupported": At("compat.taken:undecorated"),
    },
    "serialization": {
        **_taken("SourceChangeWarning _is_zipfile"), "DEFAULT_PROTOCOL": Value(2),
        "_open_zipfile_reader": At("compat.records:open_for_reading"), "_open_zipfile_writer": At("compat.records:open_for_writing"),
        "get_unsafe_globals_in_checkpoint": _lacks("get_unsafe_globals_in_checkpoint"),
    },
    "utils._pytree": {
        **_taken("_list_flatten _list_unflatten _list_flatten_with_keys is_structseq_instance treespec_dumps treespec_loads"),
        "is_namedtuple_instance": At("compat.taken:is_namedtuple"),
    },
    "utils.checkpoint": {"get_device_states": At("compat.taken:device_states"), "set_device_states": Says(None)},
    "utils.data": {
        **each(NoClass(_PIPES), "IterDataPipe MapDataPipe DFIterDataPipe"), **each(_PIPES, "argument_validation runtime_validation"),
        "functional_datapipe": At("compat.taken:undecorated"),
    },
    "utils.data.dataloader": {"_collate_fn_t": Value(Callable[[list[Any]], Any]), "_worker_init_fn_t": Value(Callable[[int], None])},
    "utils.data._utils.worker": {"_worker_info": Value(None), "_generate_state": At("compat.taken:generate_state")},
    "utils.data._utils.collate": {
        "np_str_obj_array_pattern": At("compat.taken:TEXT_ARRAYS"), "default_collate_err_msg_format": At("compat.taken:COLLATE_ERROR")},
}  # fmt: skip

