"""How Numba compiles kernels: its own pipeline, without what is done in vain.

Kernels that are generated go without the passes that have nothing to do there, a fifth of the time: their text has no
expressions over whole arrays, no closures, no ``with`` and ``raise``, and calls nothing that is put in place of the call
before types are known.
"""

from __future__ import annotations

from typing import Any

from numba.core import typed_passes as typed
from numba.core import untyped_passes as untyped
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.compiler_machinery import register_pass
from numba.core.typed_passes import NativeLowering

from ..frontend import Passes
from ..library import Code

ALWAYS_IDLE = (typed.AnnotateTypes, typed.DumpParforDiagnostics)
IDLE = (
    *ALWAYS_IDLE,
    *(typed.NopythonRewrites, typed.InlineOverloads, typed.NoPythonSupportedFeatureValidation),
    *(untyped.InlineClosureLikes, untyped.InlineInlinables, untyped.WithLifting, untyped.RewriteDynamicRaises),
    *(untyped.MakeFunctionToJitFunction, untyped.FindLiterallyCalls, untyped.LiteralUnroll),
    untyped.LiteralPropagationSubPipelinePass,
)


@register_pass(mutates_CFG=True, analysis_only=False)
class KernelLowering(NativeLowering):
    """The pass that lowers a kernel to machine code; what Python calls is apart (`entry_point`)."""

    _name = "kernel_lowering"

    def run_pass(self, state: Any) -> bool:
        library = state.library = Code(state.targetctx.codegen(), state.func_id.func_qualname)
        library.enable_object_caching()
        super().run_pass(state)
        library.set_environments()
        return True


class Written(CompilerBase):
    """The pipeline of kernels that are written by hand."""

    idle: tuple[type, ...] = ALWAYS_IDLE

    def define_pipelines(self) -> list[Any]:
        passes = Passes("kernel")
        for step, description in DefaultPassBuilder.define_nopython_pipeline(self.state).passes:
            if step not in self.idle:
                passes.add_pass(KernelLowering if step is NativeLowering else step, description)
        passes.finalize()
        return [passes]


class Generated(Written):
    """The pipeline of kernels that are generated."""

    idle = IDLE
