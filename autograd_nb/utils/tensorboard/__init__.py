"""Files that TensorBoard shows: `SummaryWriter`."""

from . import summary as summary
from .writer import SummaryWriter

__all__ = ["SummaryWriter"]
