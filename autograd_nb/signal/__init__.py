"""Signal processing: `windows`."""

from . import windows as windows
