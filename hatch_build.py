"""What `make wheel PACK=1` adds to a wheel: packs of kernels, which make it one for a platform and a version of Python."""

from __future__ import annotations

import os
import sys
import sysconfig
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class Packs(BuildHookInterface):
    """Puts the packs in the folder that AUTOGRAD_NB_WHEEL_PACKS names into the wheel; without it the wheel is pure."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        folder = os.environ.get("AUTOGRAD_NB_WHEEL_PACKS")
        if not folder:
            return
        found = sorted(Path(folder).glob("*.pack"))
        if not found:
            raise FileNotFoundError(f"AUTOGRAD_NB_WHEEL_PACKS names {folder}, which has no packs")
        build_data["force_include"].update({str(path): f"autograd_nb/packs/{path.name}" for path in found})
        python = f"cp{sys.version_info[0]}{sys.version_info[1]}"
        platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
        build_data["pure_python"], build_data["tag"] = False, f"{python}-{python}-{platform}"
