"""What programs ask about process groups, answered: this is one process.

Source: https://docs.pytorch.org/docs/stable/distributed.html
"""

from __future__ import annotations

from typing import Any


def is_available() -> bool:
    """False."""
    return False


def is_initialized() -> bool:
    """False."""
    return False


is_nccl_available = is_gloo_available = is_mpi_available = is_torchelastic_launched = is_initialized


def _none(*args: Any, **kwargs: Any) -> Any:
    raise RuntimeError(
        "torch.distributed is not available: this library trains in one process (test distributed.is_available() first)"
    )


init_process_group = get_rank = get_world_size = barrier = all_reduce = all_gather = broadcast = reduce = _none


def destroy_process_group(group: Any = None) -> None:
    """Nothing: there is none."""
