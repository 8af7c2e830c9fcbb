"""How Numba compiles kernels: its own pipeline, but with the entry points of `entry`.

Kernels that are generated go without the passes that have nothing to do there, a sixth of the time: their text has no
expressions over whole arrays and no closures.
"""

from __future__ import annotations

from typing import Any

from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.compiler_machinery import PassManager, register_pass
from numba.core.typed_passes import NativeLowering, NopythonRewrites
from numba.core.untyped_passes import InlineClosureLikes

from ..library import Code
from .entry_point import Lowering

IDLE = (NopythonRewrites, InlineClosureLikes)


@register_pass(mutates_CFG=True, analysis_only=False)
class KernelLowering(NativeLowering):
    """To machine code, with an entry point of our own."""

    _name = "kernel_lowering"

    def run_pass(self, state: Any) -> bool:
        library = state.library = Code(state.targetctx.codegen(), state.func_id.func_qualname)
        library.enable_object_caching()
        super().run_pass(state)
        library.set_environments()
        return True

    @property
    def lowering_class(self) -> type[Lowering]:
        return Lowering


class Written(CompilerBase):
    """Of kernels that are written by hand."""

    idle: tuple[type, ...] = ()

    def define_pipelines(self) -> list[Any]:
        passes = PassManager("kernel")
        for step, description in DefaultPassBuilder.define_nopython_pipeline(self.state).passes:
            if step not in self.idle:
                passes.add_pass(KernelLowering if step is NativeLowering else step, description)
        passes.finalize()
        return [passes]


class Generated(Written):
    """Of kernels that are generated."""

    idle = IDLE
