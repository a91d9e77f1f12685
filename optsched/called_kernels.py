"""Kernels as other kernels call them: code that is optimized, and made machine code, in the caller.

numba would do both for each kernel that another one calls, and again in each of its callers.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from numba.core.codegen import JITCodeLibrary, JITCPUCodegen
from numba.core.compiler import Compiler
from numba.core.datamodel import models, register_default
from numba.core.types import Dispatcher
from numba.core.types.misc import unliteral


class Code(JITCodeLibrary):  # type: ignore[misc]
    """The code of a kernel for its callers."""

    def _optimize_functions(self, module: Any) -> None:
        module.data_layout = self._codegen._data_layout

    def _optimize_final_module(self) -> None:
        """Leave the code as it is."""

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._finalized = True

    def serialize_using_object_code(self) -> Any:
        """Return what is kept on disk."""
        return self.serialize_using_bitcode()


class Codegen(JITCPUCodegen):  # type: ignore[misc]
    """numba's generator of code, that makes no machine code."""

    _library_class = Code

    def __init__(self, numbas: JITCPUCodegen) -> None:
        vars(self).update(vars(numbas))

    def set_env(self, name: str, environment: Any) -> None:
        """Do nothing: the environment is for calls from Python."""


@cache
def target(numbas: Any) -> Any:
    """Return numba's target, with such code."""
    return numbas.subtarget(_internal_codegen=Codegen(numbas.codegen()))


class CalledCompiler(Compiler):  # type: ignore[misc]
    """The compiler of kernels that other kernels call."""

    def __init__(self, typing: Any, numbas: Any, *rest: Any) -> None:
        super().__init__(typing, target(numbas), *rest)


class CalledKernel(Dispatcher):  # type: ignore[misc]
    """The type of kernels in kernels: a literal argument is one of its plain type.

    numba would compile a kernel once more for each literal that it is called with.
    """

    def get_call_type(self, context: Any, args: Any, kws: Any) -> Any:
        """Return the types of a call."""
        plain = {name: unliteral(one) for name, one in kws.items()}
        return super().get_call_type(context, tuple(map(unliteral, args)), plain)


register_default(CalledKernel)(models.OpaqueModel)
