"""Compiled kernels on disk: one file for each kernel and types of arguments.

A compiled kernel contains the code of all kernels that it calls, from any source file. So each file
is sealed with a digest of every source file that has kernels, and of the versions of the compilers.
A file whose seal does not match is never loaded, and is replaced. (numba's own cache checks only
the source file of the kernel.)

What kernels call is kept as code that only its callers optimize and translate. numba would optimize
each kernel that another one calls and make it machine code, and then again with each of its
callers. It would do the same with what it states in Python, as ``np.empty``.
"""

from __future__ import annotations

import functools
import hashlib
import logging
import os
import pickle
import re
import stat
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import llvmlite
import numba
import numpy as np
from numba import jit
from numba.core import config, event
from numba.core.caching import NullCache
from numba.core.codegen import JITCodeLibrary, JITCPUCodegen
from numba.core.compiler import Compiler, CompileResult
from numba.core.datamodel import models, register_default
from numba.core.registry import CPUDispatcher
from numba.core.runtime import rtsys
from numba.core.serialize import dumps
from numba.core.target_extension import CPU, dispatcher_registry, jit_registry
from numba.core.types import Dispatcher
from numba.core.types.containers import BaseTuple
from numba.core.types.misc import unliteral
from numba.misc.appdirs import AppDirs

from optsched import compilation
from optsched.version import IMPORTED

PACKAGE = Path(__file__).parent
VERSIONS = (numba.__version__, llvmlite.__version__, np.__version__)

SEAL = 32
"""Bytes of the seal at the start of a file."""

STALE = 3600.0
"""Seconds after which a temporary file counts as the leftover of a killed process."""

_USER = getattr(os, "geteuid", int)()


_only_loads: list[None] = []
"""One entry for each `only_loading` that has begun."""


class NotOnDiskError(Exception):
    """A kernel would have to be compiled."""


@contextmanager
def only_loading() -> Iterator[None]:
    """Load kernels from disk, and compile none."""
    _only_loads.append(None)
    try:
        yield
    finally:
        _only_loads.pop()


class _Compilations(event.Listener):  # type: ignore[misc]
    """Listener that notes when the compilation of a kernel begins and ends, or fails."""

    def on_start(self, started: event.Event) -> None:
        if compilation.announces():
            _announce()
        compiled = started.data["dispatcher"], *_given(started.data["args"])
        compilation.begin(*(one.py_func for one in compiled))

    def on_end(self, ended: event.Event) -> None:
        compilation.end(ended.data["dispatcher"].py_func)


event.register("numba:compile", _Compilations())


def _given(types: Any) -> Iterator[Any]:
    """Yield the functions among arguments of some types, which a kernel is compiled with."""
    for one in types:
        if isinstance(one, Dispatcher):
            yield one.dispatcher
        elif isinstance(one, BaseTuple):
            yield from _given(one)


class KernelCache(NullCache):  # type: ignore[misc]
    """Cache files of one kernel, as numba's interface for loading and saving.

    `wrapped`: whether Python can call the compiled kernel.
    """

    def __init__(self, function: Callable[..., Any], *, wrapped: bool) -> None:
        self._function = function
        self._wrapped = wrapped
        self._source = Path(function.__code__.co_filename).absolute()

    def load_overload(self, signature: Any, target: Any) -> Any:
        """Return the compiled kernel for argument types; None without a valid file.

        All that numba knows of Python and NumPy, which ``target.refresh()`` imports in a quarter of
        a second, is needed to compile and not to load.
        """
        rtsys.initialize(target)
        file = self._file(signature, target.codegen())
        data = b""
        if file is not None:
            with suppress(OSError):
                data = file.read_bytes()
        content = data[SEAL:]
        if data[:SEAL] == self._seal(signature, content):
            types, parts = pickle.loads(content)
            if types == signature:  # the file name has the types as text, which two may share
                if not self._wrapped:
                    target = called_target(target)
                return CompileResult._rebuild(target, *parts)
        if _only_loads:
            raise NotOnDiskError(self._function.__qualname__)
        return None

    def save_overload(self, signature: Any, compiled: Any) -> None:
        """Save the compiled kernel for argument types."""
        file = self._file(signature, compiled.codegen)
        if file is None or compiled.library.has_dynamic_globals:
            return
        content = dumps((signature, compiled._reduce()))
        temporary = file.with_name(f"{file.name}.{uuid.uuid4().hex}")
        _remove_leftovers(file.parent)
        try:
            with temporary.open("xb") as stream:
                stream.write(self._seal(signature, content) + content)
            temporary.replace(file)
        except OSError as error:
            _say(f"{file.parent}: compiled kernels cannot be kept there: {error.strerror}")
        finally:
            with suppress(OSError):
                temporary.unlink()

    def _file(self, signature: Any, codegen: Any) -> Path | None:
        """Return the file of a kernel compiled for argument types; None without a folder."""
        folder = None if None in self._stamps(signature) else _folder(self._source.parent)
        if folder is None:
            return None
        python = (sys.implementation.cache_tag, sys.flags.optimize)
        variant = (
            signature, self._wrapped, codegen.magic_tuple(), python, bool(config.BOUNDSCHECK)
        )  # fmt: skip
        name = re.sub(r"[<>]", "", f"{self._source.stem}.{self._function.__qualname__}")
        return folder / f"{name}-{_short(repr(variant))}.kernel"

    def _seal(self, signature: Any, content: bytes) -> bytes:
        """Return the seal that identifies intact content of the present sources."""
        key = hashlib.blake2b(repr(self._stamps(signature)).encode()).digest()
        return hashlib.blake2b(content, key=key, digest_size=SEAL).digest()

    def _stamps(self, signature: Any) -> list[bytes | None]:
        """Return the stamps of the kernel and of the functions that it is given."""
        return [self._stamp, *(getattr(one._cache, "_stamp", None) for one in _given(signature))]

    @functools.cached_property
    def _stamp(self) -> bytes | None:
        """Digest of all inputs of the compilation but the arguments; None if unknown."""
        if self._function.__closure__ or not self._source.exists():
            return None
        ours, own = _digest(PACKAGE, True), _digest(*_package(self._function, self._source))
        if ours is None or own is None:
            return None
        code = self._function.__code__
        decisive = (VERSIONS, ours, own, self._source.name, code.co_firstlineno, code.co_code)
        return hashlib.blake2b(repr(decisive).encode()).digest()


def source_files(folder: Path, nested: bool) -> Iterator[tuple[Path, bytes]]:
    """Yield the files that kernels of a package can depend on, with their content.

    These are all files of the package, with its subfolders if `nested`; in optsched, only those
    that mention ``@kernel``.
    """
    for path in sorted(folder.rglob("*.py") if nested else folder.glob("*.py")):
        with suppress(OSError):  # a folder of that name, a broken link
            content = path.read_bytes()
            if folder != PACKAGE or b"@kernel" in content:
                yield path, content


@functools.cache
def _digest(folder: Path, nested: bool) -> bytes | None:
    """Return a digest of the files of a package; None if they may differ from the imported ones."""
    digest = hashlib.blake2b()
    for path, content in source_files(folder, nested):
        try:
            changed = path.stat().st_ctime_ns >= IMPORTED
        except OSError:  # removed meanwhile
            changed = True
        if changed:
            _say(f"{path} has changed since this process started; compiled kernels are not kept")
            return None
        digest.update(repr((path.relative_to(folder).parts, len(content))).encode())
        digest.update(content)
    return digest.digest()


def _package(function: Callable[..., Any], source: Path) -> tuple[Path, bool]:
    """Return the folder of a function's package, and whether its subfolders belong to it."""
    package = sys.modules.get(function.__module__.partition(".")[0])
    for folder in getattr(package, "__path__", ()):
        if source.is_relative_to(folder):
            return Path(folder), True
    return source.parent, False


@functools.cache
def _folder(source: Path) -> Path | None:
    """Return the cache folder of the kernels in a source folder; None if none can be written."""
    name = f"{source.name}-{_short(str(source))}"
    given = [Path(config.CACHE_DIR, name)] if config.CACHE_DIR else []
    for folder in (*given, source / "__pycache__"):
        if _can_write(folder) and _is_safe(folder):
            return folder
    private = _private_folder()
    if private is None or not _can_write(private / name):
        return None
    return private / name


@functools.cache
def _private_folder() -> Path | None:
    """Return a folder that only this user can enter: in the home folder, or a temporary one."""
    home = Path(AppDirs("optsched", appauthor=False).user_cache_dir, "kernels")
    if home.is_absolute() and _is_private(home):  # "~" without a home
        return home
    reason = "no folder can be written"
    with suppress(OSError):  # no temporary folder
        shared = Path(tempfile.gettempdir())
        folder = shared / f"optsched-kernels-{_USER}"
        if _keeps_private(shared) and _is_private(folder):
            _say(f"no folder of your own can be written; compiled kernels are kept in {folder}")
            return folder
        if folder.lstat().st_uid != _USER:
            reason = f"{folder} belongs to another user"
    _say(f"{reason}; every run compiles its kernels")
    return None


def _is_private(folder: Path) -> bool:
    """Make a folder for this user alone; return whether the folder is private and writable."""
    with suppress(OSError):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        status = folder.lstat()
        private = stat.S_ISDIR(status.st_mode) and not status.st_mode & 0o077
        return private and status.st_uid == _USER and _can_write(folder)
    return False


def _is_safe(folder: Path) -> bool:
    """Return whether only this user and root can write into a folder."""
    with suppress(OSError):
        status = folder.stat()
        return not status.st_mode & 0o022 and status.st_uid in (0, _USER)
    return False


def _keeps_private(shared: Path) -> bool:
    """Return whether no other user can replace files in a folder."""
    status = shared.stat()
    closed = not status.st_mode & 0o022 or bool(status.st_mode & stat.S_ISVTX)
    return closed and status.st_uid in (0, _USER)


def _can_write(folder: Path) -> bool:
    with suppress(OSError):
        folder.mkdir(mode=0o755, parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
        return True
    return False


def _remove_leftovers(folder: Path) -> None:
    """Remove temporary files of killed processes."""
    with suppress(OSError):
        for path in folder.glob("*.kernel.*"):
            if time.time() - path.stat().st_mtime > STALE:
                path.unlink()


@functools.cache
def _announce() -> None:
    """Say that kernels are compiled, once for each version of their sources and each cache."""
    folder = _folder(PACKAGE)
    if folder is not None:
        mark = folder / f"announced-{(_digest(PACKAGE, True) or b'').hex()[:16]}"
        if mark.exists():
            return
        with suppress(OSError):
            mark.touch()
            for older in set(folder.glob("announced-*")) - {mark}:
                older.unlink()
    compilation.log.info(
        "compiling kernels, once on this machine; first commands take up to a minute longer"
    )


@functools.cache
def _say(message: str) -> None:
    """Log a message once."""
    logging.getLogger("optsched").info(message)


def _short(text: str) -> str:
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


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
        """Return the code to keep on disk."""
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
        super().__init__(typing, called_target(numbas), *rest)


@functools.cache
def called_target(numbas: Any) -> Any:
    """Return numba's target, changed for kernels that other kernels call."""
    return numbas.subtarget(target=Kernels, _internal_codegen=Codegen(numbas.codegen()))


CALLED = {"pipeline_class": CalledCompiler, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
"""Options of ``jit`` for what kernels call."""

dispatcher_registry[Kernels] = CPUDispatcher
jit_registry[Kernels] = functools.partial(jit, **CALLED)


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
