"""The version, under the names that programs look at."""

from __future__ import annotations

from importlib import import_module

__version__: str = import_module(__name__.partition(".")[0]).__version__
cuda = hip = git_version = None
debug = False
