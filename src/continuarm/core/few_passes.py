"""The passes of Numba's compiler that this package's own functions need."""

from typing import Any

from numba.core import typed_passes, untyped_passes
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.compiler_machinery import PassManager

__all__ = ["FewPasses"]

untyped: Any = untyped_passes
typed: Any = typed_passes
Compiler: Any = CompilerBase
Manager: Any = PassManager
Default: Any = DefaultPassBuilder

PASSES = (
    untyped.TranslateByteCode,
    untyped.FixupArgs,
    untyped.IRProcessing,
    untyped.GenericRewrites,
    untyped.ReconstructSSA,
    typed.NopythonTypeInference,
    typed.PreLowerStripPhis,
    typed.NoPythonSupportedFeatureValidation,
    typed.IRLegalization,
    typed.AnnotateTypes,
    typed.NativeLowering,
    typed.NoPythonBackend,
)
OURS = "continuarm."


class FewPasses(Compiler):  # type: ignore[misc]
    """Without what serves closures, array expressions and `with`, where the code is our own."""

    def define_pipelines(self) -> list[Any]:
        """One list of passes; all of Numba's for functions of other packages."""
        state = self.state
        if not state.func_id.modname.startswith(OURS) or state.flags.auto_parallel.enabled:
            return [Default.define_nopython_pipeline(state)]
        manager = Manager("few passes")
        for one in PASSES:
            manager.add_pass(one, one.__name__)
        manager.finalize()
        return [manager]
