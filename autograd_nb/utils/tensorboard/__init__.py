"""Files that TensorBoard shows: `SummaryWriter`."""

from .writer import SummaryWriter

__all__ = ["SummaryWriter"]
