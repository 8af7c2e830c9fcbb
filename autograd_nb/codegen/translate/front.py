"""How functions are compiled: translated where their text is as kernels' texts are, by Numba's own front end where it is not."""

from __future__ import annotations

import types as pytypes
from typing import Any

from numba.core.bytecode import FunctionIdentity
from numba.core.compiler import CompilerBase
from numba.core.targetconfig import ConfigStack
from numba.core.typed_passes import NativeLowering, NoPythonBackend

from .lowering import translated

#: functions that Numba's own front end compiled, and what the translation did not know; a short list, for tests to read
missed: dict[str, str] = {}


class Lowering(NativeLowering):
    """A pass that lowers what has been translated, or what Numba's passes before it have typed."""

    _name = "kernel_or_helper_lowering"

    def __init__(self, translation: Any = None):
        super().__init__()
        self.translation = translation

    @property
    def lowering_class(self) -> Any:
        return self.translation or super().lowering_class


class Front(CompilerBase):
    """A pipeline that first tries to translate."""

    lowering: type[Lowering]

    def compile_extra(self, func: pytypes.FunctionType) -> Any:
        state = self.state
        wanted, state.func_id = state.return_type, FunctionIdentity.from_function(func)
        with ConfigStack().enter(state.flags.copy()):
            try:
                translation = translated(state, func)
                self.lowering(translation).run_pass(state)
                NoPythonBackend().run_pass(state)
                state.pipeline = None
                return state.cr
            except Exception as error:  # of another version of Numba too, whose lowering is another
                missed[f"{func.__module__}.{func.__code__.co_name}"] = f"{type(error).__name__}: {error}"
        state.func_ir = state.typemap = state.calltypes = None
        state.return_type = wanted
        return super().compile_extra(func)
