"""Code of what functions with ``@kernel`` call, which only its callers optimize and translate.

numba would optimize each kernel that another one calls and make it machine code, and then again
with each of its callers. It would do the same with what it states in Python, as ``np.empty``.
"""

from __future__ import annotations

from functools import cache, partial
from typing import Any

from numba import jit
from numba.core.codegen import JITCodeLibrary, JITCPUCodegen
from numba.core.compiler import Compiler
from numba.core.datamodel import models, register_default
from numba.core.registry import CPUDispatcher
from numba.core.target_extension import CPU, dispatcher_registry, jit_registry
from numba.core.types import Dispatcher
from numba.core.types.misc import unliteral


class Code(JITCodeLibrary):  # type: ignore[misc]
    """The code of one kernel, as LLVM reads it."""

    def _optimize_functions(self, module: Any) -> None:
        module.data_layout = self._codegen._data_layout

    def _optimize_final_module(self) -> None:
        pass

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._finalized = True

    def serialize_using_object_code(self) -> Any:
        """Return what is kept on disk."""
        return self.serialize_using_bitcode()


class Codegen(JITCPUCodegen):  # type: ignore[misc]
    """numba's generator of code, without machine code."""

    _library_class = Code

    def __init__(self, numbas: JITCPUCodegen) -> None:
        self.__dict__.update(vars(numbas))

    def set_env(self, name: str, environment: Any) -> None:
        """Do nothing: kernels use no Python objects."""


class Kernels(CPU):  # type: ignore[misc]
    """The processor as a target of its own, on which numba compiles what it states in Python."""


class KernelCompiler(Compiler):  # type: ignore[misc]
    """The compiler of kernels that Python calls."""

    def __init__(self, typing: Any, numbas: Any, *rest: Any) -> None:
        super().__init__(typing, numbas.subtarget(target=Kernels), *rest)


class CalledCompiler(Compiler):  # type: ignore[misc]
    """The compiler of kernels that other kernels call."""

    def __init__(self, typing: Any, numbas: Any, *rest: Any) -> None:
        super().__init__(typing, target(numbas), *rest)


@cache
def target(numbas: Any) -> Any:
    """Return numba's target, changed for kernels that other kernels call."""
    return numbas.subtarget(target=Kernels, _internal_codegen=Codegen(numbas.codegen()))


CALLED = {"pipeline_class": CalledCompiler, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
"""Options of ``jit`` for what kernels call."""

dispatcher_registry[Kernels] = CPUDispatcher
jit_registry[Kernels] = partial(jit, **CALLED)


class CalledKernel(Dispatcher):
    """The type of kernels in kernels: a literal argument is one of its plain type.

    numba would compile a kernel once more for each literal that it is called with.
    """

    def __init__(self, kernel: Any) -> None:
        super().__init__(kernel._called)
        self._kernel = kernel
        self.name = f"kernel({kernel.py_func.__module__}.{kernel.py_func.__qualname__})"

    def __reduce__(self) -> Any:
        """Return how the type is pickled: by the name of the kernel."""
        return getattr, (self._kernel, "_numba_type_")

    def get_call_type(self, context: Any, args: Any, kws: Any) -> Any:
        """Return the types of a call."""
        plain = {name: unliteral(one) for name, one in kws.items()}
        return super().get_call_type(context, tuple(map(unliteral, args)), plain)


register_default(CalledKernel)(models.OpaqueModel)
