"""Tensors in parts, and meshes of the ranks that have them: `torch.distributed.tensor`.

Source: https://docs.pytorch.org/docs/stable/distributed.tensor.html
"""

from .dtensor import DTensor, distribute_tensor, empty, full, local_of, ones, rand, randn, zeros
from .layout import Sharding
from .mesh import DeviceMesh, Partial, Placement, Replicate, Shard, init_device_mesh

__all__ = [
    "DTensor", "DeviceMesh", "Partial", "Placement", "Replicate", "Shard", "Sharding", "distribute_tensor", "empty", "full", "init_device_mesh", "local_of",
    "ones", "rand", "randn", "zeros",
]  # fmt: skip
