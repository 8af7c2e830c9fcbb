"""How Numba compiles kernels: translated, or by its own pipeline without the passes that only describe."""

from __future__ import annotations

from typing import Any

from numba.core.compiler import DefaultPassBuilder
from numba.core.compiler_machinery import register_pass
from numba.core.typed_passes import AnnotateTypes, DumpParforDiagnostics, NativeLowering

from ..frontend import Passes
from ..library import Code, LibraryLowering
from ..translate.front import Front

IDLE: tuple[Any, ...] = (AnnotateTypes, DumpParforDiagnostics)


@register_pass(mutates_CFG=True, analysis_only=False)
class KernelLowering(LibraryLowering):
    """The pass that lowers a kernel to its `Code`; what Python calls is apart (`entry_point`)."""

    _name = "kernel_lowering"
    library = Code


class Kernel(Front):
    """The pipeline of kernels: translated, or Numba's own with `KernelLowering`."""

    lowering = KernelLowering

    def define_pipelines(self) -> list[Any]:
        passes = Passes("kernel")
        for step, description in DefaultPassBuilder.define_nopython_pipeline(self.state).passes:
            if step not in IDLE:
                passes.add_pass(KernelLowering if step is NativeLowering else step, description)
        passes.finalize()
        return [passes]
