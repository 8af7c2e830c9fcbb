"""Several processes, on one machine or many, that compute together: `torch.distributed`'s names over MPI.

Source: https://docs.pytorch.org/docs/stable/distributed.html
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .barriers import barrier, monitored_barrier, new_group, new_subgroups, new_subgroups_by_enumeration
from .collectives import (
    all_gather,
    all_gather_into_tensor,
    all_reduce,
    broadcast,
    gather,
    reduce,
    reduce_scatter,
    reduce_scatter_tensor,
    scatter,
)
from .comm_hooks import BuiltinCommHookType, GradBucket
from .exchanges import all_to_all, all_to_all_single
from .failures import DistBackendError, DistError, DistNetworkError, DistStoreError
from .group import (
    GroupMember,
    ProcessGroup,
    default_pg_timeout,
    destroy_process_group,
    get_backend,
    get_debug_level,
    get_default_backend_for_device,
    get_global_rank,
    get_group_rank,
    get_node_local_rank,
    get_pg_count,
    get_process_group_ranks,
    get_rank,
    get_world_size,
    group,
    init_process_group,
    is_backend_available,
    is_gloo_available,
    is_initialized,
    is_mpi_available,
    is_nccl_available,
    is_torchelastic_launched,
    is_ucc_available,
)
from .messages import P2POp, batch_isend_irecv, irecv, isend, recv, send
from .mpi import is_available
from .objects import (
    all_gather_object,
    broadcast_object_list,
    gather_object,
    recv_object_list,
    scatter_object_list,
    send_object_list,
)
from .reduce_op import ReduceOp, supports_complex
from .work import Work

if TYPE_CHECKING:
    from . import nn


def __getattr__(name: str) -> Any:
    """Import what few programs need when it is asked for."""
    if name in ("nn", "optim", "checkpoint", "fsdp", "algorithms"):  # those of what is written with optimizers and modules stand with these
        import importlib

        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = [
    "BuiltinCommHookType", "DistBackendError", "DistError", "DistNetworkError", "DistStoreError", "GradBucket", "GroupMember", "P2POp",
    "ProcessGroup", "ReduceOp", "Work", "all_gather", "all_gather_into_tensor", "all_gather_object", "all_reduce", "all_to_all",
    "all_to_all_single", "barrier", "batch_isend_irecv", "broadcast", "broadcast_object_list", "default_pg_timeout", "destroy_process_group",
    "gather", "gather_object", "get_backend", "get_debug_level", "get_default_backend_for_device", "get_global_rank", "get_group_rank",
    "get_node_local_rank", "get_pg_count", "get_process_group_ranks", "get_rank", "get_world_size", "group", "init_process_group", "irecv",
    "is_available", "is_backend_available", "is_gloo_available", "is_initialized", "is_mpi_available", "is_nccl_available",
    "is_torchelastic_launched", "is_ucc_available", "isend", "monitored_barrier", "new_group", "new_subgroups", "new_subgroups_by_enumeration",
    "nn", "recv", "recv_object_list", "reduce", "reduce_scatter", "reduce_scatter_tensor", "scatter", "scatter_object_list", "send",
    "send_object_list", "supports_complex",
]  # fmt: skip
