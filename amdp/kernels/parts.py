"""How a kernel that only other kernels call is compiled: as a part of its callers, and not for itself.

Numba optimizes every function when it is compiled, turns it into machine code, and does both again in each caller that
the function is linked into, and in each of their callers. For a kernel ten calls deep that is ten times the work, of
which only the last is ever run. A part is left as it was lowered: the kernel that Python calls is optimized and turned
into machine code once, as a whole.
"""

from typing import Any

from numba import _dynfunc
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler, DefaultPassBuilder
from numba.core.compiler_machinery import register_pass
from numba.core.typed_passes import NativeLowering


class PartLibrary(JITCodeLibrary):  # type: ignore[misc]
    """The code of one part, for callers to link."""

    def _optimize_final_module(self) -> None:
        pass

    def _finalize_final_module(self) -> None:
        """Numba's own, without machine code."""
        self._finalize_dynamic_globals()
        self._verify_declare_only_symbols()
        self._finalized = True


@register_pass(mutates_CFG=True, analysis_only=False)
class PartLowering(NativeLowering):  # type: ignore[misc]
    """Lower a part into such a library, and tell callers where it is."""

    _name = "part_lowering"

    def run_pass(self, state: Any) -> bool:
        """Numba's own pass, and what it leaves out for code that is not run: the name by which callers find it."""
        state.library = PartLibrary(state.targetctx.codegen(), state.func_id.func_qualname)
        state.flags.no_compile = True
        super().run_pass(state)
        lowered, name = state.cr, state.func_id.func_name
        found_by = _dynfunc.make_function(
            lowered.fndesc.lookup_module(), name, "a part of compiled code", 0, lowered.env, (state.library,)
        )
        state.targetctx.insert_user_function(found_by, lowered.fndesc, [state.library])
        state["cr"] = lowered._replace(cfunc=found_by)
        return True


class PartCompiler(Compiler):  # type: ignore[misc]
    """Numba's compiler with that one pass exchanged."""

    def define_pipelines(self) -> list[Any]:
        """The one pipeline, without a fallback to Python objects."""
        manager = DefaultPassBuilder.define_nopython_pipeline(self.state)
        manager.passes = [(PartLowering if step is NativeLowering else step, about) for step, about in manager.passes]
        manager._finalized = False
        manager.finalize()
        return [manager]
