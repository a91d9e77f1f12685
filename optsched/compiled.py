"""Decorator ``@kernel`` for functions that numba compiles once per machine and keeps on disk."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any


def kernel(
    function: Callable[..., Any] | None = None, *, allocates: bool = True, inner: bool = False
) -> Any:
    """Compile a function at its first call, and keep the result on disk.

    A kernel may call other kernels of its own package and of optsched. A result on disk is
    recompiled if a file of these packages that kernels can depend on has changed.

    Parameters
    ----------
    function : callable, optional
        The function; left out in ``@kernel(allocates=False)``.
    allocates : bool
        Whether the kernel may create arrays or lists, or call kernels that return such. Without,
        nothing counts the references to its arrays, which can take most of the time of kernels
        that call small kernels with many arrays.
    inner : bool
        Whether only kernels call the kernel. Then it gets no wrapper for Python, whose compilation
        takes longer than that of a small kernel with many arrays.
    """
    if function is None:
        return functools.partial(kernel, allocates=allocates, inner=inner)
    return Kernel(function, allocates, inner)


class Kernel:
    """A function that is compiled at its first call. numba is imported then, and not before.

    Parameters
    ----------
    function : callable
        The function.
    allocates, inner : bool
        See `kernel`.

    Attributes
    ----------
    py_func : callable
        The function, not compiled.
    """

    def __init__(self, function: Callable[..., Any], allocates: bool, inner: bool) -> None:
        functools.update_wrapper(self, function)
        self.py_func = function
        self._allocates = allocates
        self._inner = inner

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """Call the compiled function."""
        return self.compiled(*arguments, **named)

    @functools.cached_property
    def compiled(self) -> Any:
        """The function as an object of numba, which compiles it for each types of arguments."""
        from numba import njit

        from optsched.kernel_cache import KernelCache

        wrapper = {"no_cpython_wrapper": self._inner, "no_cfunc_wrapper": self._inner}
        # numba has no public name for the first
        compiled = njit(self.py_func, _nrt=self._allocates, **wrapper)
        compiled._cache = KernelCache(self.py_func)  # nor a public interface for this
        return compiled

    @functools.cached_property
    def _numba_type_(self) -> Any:
        """The type of the kernel in other kernels, in an attribute that numba looks for."""
        return _called_kernel()(self.compiled)


@functools.cache
def _called_kernel() -> Any:
    """Return the type of kernels in kernels: a literal argument is one of its plain type.

    numba would compile a kernel once more for each literal that it is called with.
    """
    from numba.core.datamodel import models, register_default
    from numba.core.types import Dispatcher
    from numba.core.types.misc import unliteral

    class CalledKernel(Dispatcher):
        def get_call_type(self, context: Any, args: Any, kws: Any) -> Any:
            plain = {name: unliteral(one) for name, one in kws.items()}
            return super().get_call_type(context, tuple(map(unliteral, args)), plain)

    register_default(CalledKernel)(models.OpaqueModel)
    return CalledKernel
