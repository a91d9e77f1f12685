"""Decorator ``@kernel`` for functions that numba compiles once per machine and keeps on disk."""

from __future__ import annotations

import functools
import re
import sys
from collections.abc import Callable, Sequence
from types import FunctionType
from typing import Any


def kernel(function: Callable[..., Any] | None = None, *, allocates: bool = True) -> Any:
    """Compile a function at its first call, and keep the result on disk.

    A kernel may call other kernels of its own package and of optsched, and those that it is given
    as arguments. A result on disk is recompiled if a file of the packages of all these that kernels
    can depend on has changed. Copy arrays in kernels by loops: one slice assignment or array
    expression compiles for two to three seconds.

    `function`: the function; left out in ``@kernel(allocates=False)``. `allocates`: whether the
    kernel may create arrays or lists, or call kernels that return such. Without, nothing counts the
    references to its arrays, which can take most of the time of kernels that call small kernels
    with many arrays.
    """
    if function is None:
        return functools.partial(kernel, allocates=allocates)
    return Kernel(function, allocates)


class Kernel:
    """A function that is compiled at its first call. numba is imported then, and not before.

    `allocates`: see `kernel`.
    """

    def __init__(self, function: Callable[..., Any], allocates: bool) -> None:
        functools.update_wrapper(self, function)
        self.py_func = function  # the function, not compiled
        self._allocates = allocates

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """Call the compiled function."""
        return self.compiled(*arguments, **named)

    def plain(self, compiled: str = "") -> Callable[..., Any]:
        """Return the function in plain Python, with the kernels that it calls.

        It is slow, and ready at once. Kernels whose module matches a regular expression stay
        compiled.
        """
        names = _plain_names(self.py_func.__module__, compiled)
        plain: Callable[..., Any] = names[self.py_func.__name__]
        return plain

    def at_once(self, *arguments: Any) -> Any:
        """Call the compiled function if it is on disk, else the function in plain Python."""
        from optsched.kernel_cache import NotOnDiskError, only_loading

        try:
            with only_loading():
                return self(*arguments)
        except NotOnDiskError:
            return self.plain()(*arguments)

    def bound(self, *arguments: Any, numbers: Sequence[int | float] = ()) -> Callable[..., Any]:
        """Return the kernel with its first arguments given, to be called with numbers like some.

        The types are looked up now and not at each call, and tuples by reference are read: for one
        of 32 arrays, that is most of the cost of a call from Python.
        """
        from numba import typeof

        from optsched.by_reference import Block, Reference

        types = tuple(typeof(argument) for argument in (*arguments, *numbers))
        self.compiled.compile(types)
        blocks: list[Block] = []

        def passed(argument: Any, own: Any) -> Any:
            if isinstance(own, Reference):
                blocks.append(Block(argument, own))
                return blocks[-1].address
            return tuple(map(passed, argument, own)) if type(argument) is tuple else argument

        given = map(passed, arguments, types)
        call = functools.partial(self.compiled.overloads[types].entry_point, *given)
        call.kept = blocks  # type: ignore[attr-defined]
        return call

    def __reduce__(self) -> str:
        """Return the name by which the kernel is pickled, as a type of arguments."""
        return self.py_func.__qualname__

    @functools.cached_property
    def compiled(self) -> Any:
        """The function as Python calls it."""
        return self._compiled(wrapped=True)

    @functools.cached_property
    def _numba_type_(self) -> Any:
        """The type of the kernel in other kernels, in an attribute that numba looks for.

        What other kernels call has no wrapper for Python. That of a small kernel with many arrays
        takes longer to compile than the kernel.
        """
        from optsched.kernel_cache import CalledKernel

        return CalledKernel(self)

    @functools.cached_property
    def _called(self) -> Any:
        return self._compiled(wrapped=False)  # kept here, because the type only refers to it

    def _compiled(self, *, wrapped: bool) -> Any:
        """Return the function as an object of numba, which compiles it for each argument types."""
        from numba import njit

        from optsched.kernel_cache import CALLED, KernelCache, KernelCompiler

        # numba has public names for none of these
        wrapper = {"pipeline_class": KernelCompiler, "no_cfunc_wrapper": True}
        options = wrapper if wrapped else CALLED
        compiled = njit(self.py_func, _nrt=self._allocates, **options)
        compiled._cache = KernelCache(self.py_func, wrapped=wrapped)
        return compiled


@functools.cache
def _plain_names(module: str, compiled: str) -> dict[str, Any]:
    """Return the names of a module, with plain functions for its kernels, see `Kernel.plain`."""
    names = dict(vars(sys.modules[module]))
    for name, one in vars(sys.modules[module]).items():
        if isinstance(one, Kernel):
            own = one.py_func.__module__
            if own == module:
                defaults = one.py_func.__defaults__
                names[name] = FunctionType(one.py_func.__code__, names, argdefs=defaults)
            elif not (compiled and re.match(compiled, own)):
                names[name] = one.plain(compiled)
    return names
