"""How the code of kernels and of the functions that they call goes through LLVM.

Numba optimises every function as a whole and makes machine code of it, and again as a part of whatever it is linked into. What
kernels call is never called from anywhere else, so here it is only simplified, and the rest is done in the kernel.
"""

from __future__ import annotations

from typing import Any

from numba import _dynfunc
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import DefaultPassBuilder, _LowerResult
from numba.core.compiler_machinery import register_pass
from numba.core.environment import lookup_environment
from numba.core.typed_passes import AnnotateTypes, NativeLowering

from .frontend import Passes
from .translate.front import Front, Lowering


class Simple(JITCodeLibrary):
    """That of entry points, which has no loops."""

    def _optimize_functions(self, ll_module: Any) -> None:
        ll_module.data_layout = self._codegen._data_layout


class Code(JITCodeLibrary):
    """The code library of one kernel."""

    def set_environments(self) -> None:
        """Tell the machine code where the objects are that the functions linked in refer to, as in messages of errors."""
        for variable in self._final_module.global_variables:
            env = lookup_environment(variable.name)
            if env is not None:
                self._codegen.set_env(env.env_name, env)


class Part(JITCodeLibrary):
    """Code that waits to be linked into a kernel."""

    def _optimize_final_module(self) -> None:
        pass

    def _finalize_final_module(self) -> None:
        self._finalized = True


@register_pass(mutates_CFG=True, analysis_only=False)
class HelperLowering(Lowering):
    """The pass that lowers a function to a `Part`."""

    _name = "helper_lowering"

    def run_pass(self, state: Any) -> bool:
        library = state.library = Part(state.targetctx.codegen(), state.func_id.func_qualname)
        state.flags.no_compile = True
        super().run_pass(state)
        lowered = state["cr"]
        fndesc = lowered.fndesc
        # calls are found by this object, which Python has no way to call
        name = fndesc.qualname.split(".")[-1]
        function = _dynfunc.make_function(fndesc.lookup_module(), name, "", 0, lowered.env, (library,))
        state.targetctx.insert_user_function(function, fndesc, [library])
        state.reload_init.extend(getattr(library, "_reload_init", ()))  # early versions have none
        state["cr"] = _LowerResult(fndesc, lowered.call_helper, cfunc=function, env=lowered.env)
        return True


class Helper(Front):
    """The pipeline of functions that kernels call: Numba's own, with `HelperLowering`."""

    lowering = HelperLowering

    def define_pipelines(self) -> list[Any]:
        passes = Passes("helper")
        for step, description in DefaultPassBuilder.define_nopython_pipeline(self.state).passes:
            if step is not AnnotateTypes:
                passes.add_pass(HelperLowering if step is NativeLowering else step, description)
        passes.finalize()
        return [passes]
