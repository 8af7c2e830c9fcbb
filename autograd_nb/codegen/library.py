"""How the code of kernels and of the functions that they call goes through LLVM.

Numba optimises every function as a whole and makes machine code of it, and again as a part of whatever it is linked into. What
kernels call is never called from anywhere else, so here all is done once, in the kernel.
"""

from __future__ import annotations

from typing import Any

from llvmlite import binding
from numba import _dynfunc, config
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import DefaultPassBuilder, _LowerResult
from numba.core.compiler_machinery import register_pass
from numba.core.environment import lookup_environment
from numba.core.typed_passes import AnnotateTypes, NativeLowering

from .frontend import Passes
from .translate.front import Front, Lowering

LEVEL: int = 1 if binding.llvm_version_info >= (22,) else 2  #: LLVM 20 vectorises nothing at the first one


class _Library(JITCodeLibrary):
    """A code library whose functions go through LLVM's passes only once, with the kernel that they are part of."""

    def _optimize_functions(self, ll_module: Any) -> None:
        ll_module.data_layout = self._codegen._data_layout


class Code(_Library):
    """The code library of one kernel, whose machine code is taken from it: it is linked elsewhere (`build.linking`)."""

    _object = b""

    def _optimize_final_module(self) -> None:
        """Run LLVM's passes at the first level that inlines, vectorises and cleans up behind both. More of them gain nothing: loops are written
        as they are to run."""
        passes, builder = self._codegen._module_pass_manager(opt=min(int(config.OPT), LEVEL))
        passes.run(self._final_module, builder)

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._verify_declare_only_symbols()
        self._object = self._codegen._tm.emit_object(self._final_module)
        self._finalized = True

    def object_code(self) -> bytes:
        """Return the machine code, as an object file."""
        self._ensure_finalized()
        return self._object

    def environments(self) -> tuple[str, ...]:
        """Return the symbols of the places for the objects that the functions linked in refer to, as in messages of errors."""
        return tuple(v.name for v in self._final_module.global_variables if lookup_environment(v.name) is not None)


class Part(_Library):
    """Code that waits to be linked into a kernel."""

    def _optimize_final_module(self) -> None:
        pass

    def _finalize_final_module(self) -> None:
        self._finalized = True


class Shared(Part):
    """A part that is called from several places, and stays one function."""

    def add_ir_module(self, ir_module: Any) -> None:
        for function in ir_module.functions:
            if not function.is_declaration:
                function.attributes.add("noinline")
        super().add_ir_module(ir_module)


class LibraryLowering(Lowering):
    """A pass that lowers a function into a code library, which nothing is called in yet."""

    library: type[JITCodeLibrary]

    def run_pass(self, state: Any) -> bool:
        library = state.library = self.library(state.targetctx.codegen(), state.func_id.func_qualname)
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


@register_pass(mutates_CFG=True, analysis_only=False)
class HelperLowering(LibraryLowering):
    """The pass that lowers a function to a `Part`."""

    _name = "helper_lowering"
    library = Part


@register_pass(mutates_CFG=True, analysis_only=False)
class SharedLowering(LibraryLowering):
    """The pass that lowers a function to a `Shared` part."""

    _name = "shared_lowering"
    library = Shared


class Helper(Front):
    """The pipeline of functions that kernels call: Numba's own, with `HelperLowering`."""

    lowering: type[Lowering] = HelperLowering

    def define_pipelines(self) -> list[Any]:
        passes = Passes("helper")
        for step, description in DefaultPassBuilder.define_nopython_pipeline(self.state).passes:
            if step is not AnnotateTypes:
                passes.add_pass(self.lowering if step is NativeLowering else step, description)
        passes.finalize()
        return [passes]


class SharedHelper(Helper):
    """The pipeline of functions that are called from several places of a kernel."""

    lowering = SharedLowering
