"""How Numba compiles generated kernels: its pipeline less the passes that have nothing to do there, a sixth of the time.

Generated text has no expressions over whole arrays and no closures. The kernels written by hand take Numba's own pipeline.
"""

from __future__ import annotations

from typing import Any

from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.compiler_machinery import PassManager
from numba.core.typed_passes import NopythonRewrites
from numba.core.untyped_passes import InlineClosureLikes

IDLE = (NopythonRewrites, InlineClosureLikes)


class Generated(CompilerBase):
    """Numba's pipeline without the `IDLE` passes."""

    def define_pipelines(self) -> list[Any]:
        passes = PassManager("generated")
        for step, description in DefaultPassBuilder.define_nopython_pipeline(self.state).passes:
            if step not in IDLE:
                passes.add_pass(step, description)
        passes.finalize()
        return [passes]
