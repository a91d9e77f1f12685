"""Classes in the user's Python files, by the file: ``my.py:Mine``.

This text is the name of the class in all output, since it alone repeats a run, even if the file
registers the class under another name.
"""

from __future__ import annotations

import hashlib
import re
import sys
import traceback
from contextlib import redirect_stdout
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from types import ModuleType
from typing import Any

from optsched.errors import InputError, UnknownNameError, one_line

NAMED = re.compile(r"(?P<path>.+\.py):(?P<name>[^:/]*)", re.DOTALL)

_PREFIX = "optsched-file-"  # of the names of modules; no import has such a name

_modules: dict[tuple[Path, str], ModuleType] = {}
_origins: dict[type[Any], ClassInFile] = {}


@dataclass(frozen=True)
class ClassInFile:
    """A class in a Python file, with its text as the user names it, ``my.py:Mine``.

    The object holds the source of the class, so that it can be pickled, and a worker process uses
    the class as it was when the run was planned.
    """

    text: str
    path: Path
    source: bytes = field(repr=False)

    @property
    def file(self) -> str:
        """The file as the user names it."""
        return self.text.rpartition(":")[0]

    @property
    def name(self) -> str:
        """The name of the class in the file."""
        return self.text.rpartition(":")[2]

    @cached_property
    def sha256(self) -> str:
        """The SHA-256 of the file."""
        return hashlib.sha256(self.source).hexdigest()

    def load(self, noun: str, contract: type[Any]) -> type[Any]:
        """Return the class, a subclass of `contract`, with `text` as its ``name``.

        Messages call it a `noun`, "policy" for instance.

        Raises
        ------
        InputError
            If the file cannot be executed, or holds no such class of the right kind.
        """
        module = self._module()
        own = {
            name: value
            for name, value in vars(module).items()
            if isinstance(value, type) and value.__module__ == module.__name__
        }
        if self.name not in own:
            fitting = [name for name, cls in own.items() if issubclass(cls, contract)]
            raise UnknownNameError(noun, self.name, fitting).within(self.file)
        cls: Any = own[self.name]
        expected = f"expected a subclass of optsched.extend.{contract.__name__}"
        if not issubclass(cls, contract):
            raise InputError(f"{self.name} is not a {noun}; {expected}", file=self.file)
        if missing := sorted(getattr(cls, "__abstractmethods__", ())):
            methods = " and ".join(missing)
            raise InputError(f"{self.name} does not define {methods}", file=self.file)
        cls.name = self.text
        _origins[cls] = self
        return cls  # type: ignore[no-any-return]

    def _module(self) -> ModuleType:
        """Return the module, executed once per process."""
        key = self.path, self.sha256
        if key in _modules:
            return _modules[key]
        place = hashlib.sha256(str(self.path).encode() + self.source).hexdigest()
        module = ModuleType(f"{_PREFIX}{place[:16]}")
        module.__file__ = str(self.path)
        sys.modules[module.__name__] = module  # where dataclasses look up types
        try:
            with redirect_stdout(sys.stderr):  # stdout is for the answer
                exec(compile(self.source, str(self.path), "exec", dont_inherit=True), vars(module))
        except (Exception, SystemExit) as error:  # whatever the file does
            del sys.modules[module.__name__]
            reason = f"{type(error).__name__}: {one_line(' '.join(str(error).split()))}"
            line = error.lineno if isinstance(error, SyntaxError) else self._line(error)
            raise InputError(reason, file=self.file, line=line) from None
        _modules[key] = module
        return module

    def _line(self, error: BaseException) -> int | None:
        """Return the last line of the file in the traceback of an error, None if there is none."""
        lines = [
            frame.lineno
            for frame in traceback.extract_tb(error.__traceback__)
            if frame.filename == str(self.path)
        ]
        return lines[-1] if lines else None


def names_file(text: object) -> bool:
    """Return whether a text names a Python file, with or without a class."""
    return isinstance(text, str) and (text.endswith(".py") or NAMED.fullmatch(text) is not None)


def find_class(text: str, base: Path | None = None) -> ClassInFile:
    """Return the class that a text names, ``FILE.py:CLASS``.

    A relative path starts from the folder `base`, by default the current one.

    Raises
    ------
    InputError
        If there is no such file, or the text does not name a class.
    """
    found = NAMED.fullmatch(text)
    path = Path(base or "", found["path"] if found else text)
    if not path.is_file():
        raise InputError("no such file; expected FILE.py:CLASS", file=path)
    if found is None or not found["name"].isidentifier():
        example = f"{text.partition('.py')[0]}.py:Mine"
        raise InputError(f"{text!r}; expected FILE.py:CLASS, {example} for instance")
    try:
        return ClassInFile(text, path.absolute(), path.read_bytes())
    except OSError as error:
        raise InputError(f"{error.strerror}; expected a Python file", file=path) from None


def in_file(cls: type[Any]) -> bool:
    """Return whether a class stands in a file that was named with a class of it."""
    return cls.__module__.startswith(_PREFIX)


def origin_of(cls: type[Any]) -> ClassInFile | None:
    """Return the file that a class was loaded from, None for a class of a package."""
    return _origins.get(cls)
