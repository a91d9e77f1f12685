"""Registries of the classes behind the names that users type, and classes named by their place.

To add a policy, a solver, a model, a machine, an execution model, a workload model or a trace
reader, add one module to the package of its kind, with the class decorated by the registry below.
Solvers of different models may share a name, see `optsched.solvers.finding`. Third-party packages
add classes through an entry point of the group ``optsched.<kind>`` (``optsched.solvers`` for
instance) that names a module to import or the class. An entry point that cannot be loaded is left
out, with a warning.

A class of the user has the place of its code for a name, ``my.py:Mine`` or
``my_package.module:Mine``, in all output, since it alone repeats a run, even if the file registers
the class under another name.
"""

from __future__ import annotations

import hashlib
import importlib
import logging
import re
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass, field, replace
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from pkgutil import iter_modules, resolve_name
from types import ModuleType
from typing import Any, Generic, TypeVar

from optsched.errors import InputError, UnknownNameError, no_such_file, one_line

IN_FILE = re.compile(r"(?P<path>.+\.py)(?::(?P<name>[^:/]*))?", re.DOTALL)
IN_MODULE = re.compile(r"(?!optsched\.)(?P<module>[^\W\d]\w*(\.[^\W\d]\w*)*):(?P<name>[^\W\d]\w*)")

MOST_LINES = 6
"""Most lines of a traceback in a message."""

_PREFIX = "optsched-file-"  # of the names of modules; no import has such a name

_modules: dict[tuple[Path, str], ModuleType] = {}
_origins: dict[type[Any], ClassInFile] = {}


@dataclass(frozen=True)
class ClassInFile:
    """A class in a Python file, or in a module that is installed.

    The object holds the source, so that it can be pickled, and a worker process uses the class in a
    file as it was when the run was planned. A module has to be installed there, too.
    """

    file: str  # the file as the user names it, or the module, ``my_package.module``
    name: str  # the name of the class; empty for the only one of its kind in the file
    path: Path  # the file, or that of the module
    source: bytes = field(repr=False)  # the content of the file

    @property
    def text(self) -> str:
        """The class as the user names it, ``my.py:Mine``."""
        return f"{self.file}:{self.name}"

    @cached_property
    def sha256(self) -> str:
        """The SHA-256 of the file."""
        return hashlib.sha256(self.source).hexdigest()

    def load(self, noun: str, contract: type[Any]) -> type[Any]:
        """Return the class, a subclass of `contract`, with `text` as its ``name``."""
        module = self.module()
        own = {
            name: value
            for name, value in vars(module).items()
            if isinstance(value, type) and value.__module__ == module.__name__
        }
        fitting = [name for name, cls in own.items() if issubclass(cls, contract)]
        expected = f"expected a subclass of optsched.extend.{contract.__name__}"
        if not self.name and not fitting:
            raise InputError(f"holds no {noun}; {expected}", file=self.file)
        if not self.name and len(fitting) > 1:
            several = " or ".join(f"{self.file}:{name}" for name in fitting)
            raise InputError(f"holds more than one {noun}; expected {several}", file=self.file)
        name = self.name or fitting[0]
        if name not in own:
            raise UnknownNameError(noun, name, fitting).within(self.file)
        cls: Any = own[name]
        if not issubclass(cls, contract):
            raise InputError(f"{name} is not a {noun}; {expected}", file=self.file)
        if missing := sorted(getattr(cls, "__abstractmethods__", ())):
            methods = " and ".join(missing)
            raise InputError(f"{name} does not define {methods}", file=self.file)
        _origins[cls] = replace(self, name=name)
        cls.name = _origins[cls].text
        return cls  # type: ignore[no-any-return]

    def module(self) -> ModuleType:
        """Return the module, executed once per process."""
        key = self.path, self.sha256
        if key not in _modules:
            with one_line_errors(self.file, self.path):
                is_file = IN_FILE.fullmatch(self.file)
                _modules[key] = self._executed() if is_file else importlib.import_module(self.file)
        return _modules[key]

    def _executed(self) -> ModuleType:
        place = hashlib.sha256(str(self.path).encode() + self.source).hexdigest()
        module = ModuleType(f"{_PREFIX}{place[:16]}")
        module.__file__ = str(self.path)
        sys.modules[module.__name__] = module  # where dataclasses look up types
        try:
            exec(compile(self.source, str(self.path), "exec", dont_inherit=True), vars(module))
        except BaseException:
            del sys.modules[module.__name__]
            raise
        return module


@contextmanager
def one_line_errors(file: str | Path, place: Path, *passed: type[Exception]) -> Iterator[None]:
    """Turn whatever code of the user raises into one line, with its last line in a file or folder.

    It names the `file` if that is the `place`, or none is in the traceback. Errors that are
    `passed` stay as they are. What the code prints goes to stderr: stdout is for the answer.
    """
    try:
        with redirect_stdout(sys.stderr):
            yield
    except passed:
        raise
    except (Exception, SystemExit) as error:
        frames = [(one.filename, one.lineno) for one in traceback.extract_tb(error.__traceback__)]
        what = str(error)
        if isinstance(error, SyntaxError):
            what = error.msg
            frames.append((error.filename or "", error.lineno))
        own = [(name, line) for name, line in frames if Path(name).is_relative_to(place)]
        name, line = own[-1] if own else (place, None)
        reason = f"{type(error).__name__}: {one_line(' '.join(what.split()))}"
        where = file if Path(name) == place else name
        raise InputError(reason, file=where, line=line) from None


def names_class(text: object) -> bool:
    """Return whether a text names a class by its place: a Python file, or ``MODULE:CLASS``."""
    return isinstance(text, str) and bool(IN_FILE.fullmatch(text) or IN_MODULE.fullmatch(text))


def find_class(text: str, base: Path | None = None) -> ClassInFile:
    """Return the class that ``FILE.py:CLASS``, ``FILE.py`` or ``MODULE:CLASS`` names."""
    if found := IN_FILE.fullmatch(text):
        file, name = found["path"], found["name"]
        if name is not None and not name.isidentifier():
            raise InputError(f"{text!r}; expected FILE.py:CLASS, {file}:Mine for instance")
        path = Path(base or "", file)
        if not path.is_file():
            raise no_such_file(path, ())
    else:
        module, _, name = text.partition(":")
        file, path = module, _file_of(module, name)
    try:
        return ClassInFile(file, name or "", path.absolute(), path.read_bytes())
    except OSError as error:
        raise InputError(f"{error.strerror}; expected a Python file", file=path) from None


def _file_of(module: str, name: str) -> Path:
    try:
        with redirect_stdout(sys.stderr):
            # imports the packages around the module; none is around a relative name
            spec = None if module.startswith(".") else find_spec(module)
    except (Exception, SystemExit) as error:
        if not isinstance(error, ModuleNotFoundError):
            reason = f"{type(error).__name__}: {one_line(' '.join(str(error).split()))}"
            raise InputError(f"module {module!r} cannot be imported: {reason}") from None
        spec = None
    if spec is None or spec.origin is None or not spec.origin.endswith(".py"):
        file = f"{module.replace('.', '/')}.py"
        hint = f"did you mean {file}:{name}?" if Path(file).is_file() else "expected FILE.py:CLASS"
        raise InputError(f"no module {module!r} is installed; {hint}")
    return Path(spec.origin)


def check_file(stated: str) -> None:
    """Check that a file with a class has a given SHA-256, as ``FILE=SHA256`` states it."""
    file, equals, sha256 = stated.rpartition("=")
    if not equals:
        raise InputError(f"{stated!r}; expected FILE=SHA256")
    found = find_class(f"{file}:Any")
    if found.sha256 != sha256:
        raise InputError(f"has SHA-256 {found.sha256}; expected {sha256}", file=file)


def place_of(error: BaseException, cls: type[Any]) -> str:
    """Return where the code of a user's class is in a traceback: ``my.py, line 7 in decide``.

    The lines are from the outermost call to the innermost; the text is empty if there is none.
    """
    file = str(getattr(sys.modules.get(cls.__module__), "__file__", ""))
    frames = traceback.extract_tb(error.__traceback__)
    lines = [f"line {one.lineno} in {one.name}" for one in frames if one.filename == file]
    if not lines or cls.__module__.startswith("optsched."):
        return ""
    if len(lines) > MOST_LINES:  # of a recursion
        lines[2:-2] = ["..."]
    return f"{Path(file).name}, {', '.join(lines)}"


def home_of(cls: type[Any]) -> dict[str, str]:
    """Return the ``file`` and ``sha256`` of a class of the user, nothing of one of optsched."""
    file = getattr(sys.modules.get(cls.__module__), "__file__", None)
    if cls.__module__.startswith("optsched.") or file is None or not Path(file).is_file():
        return {}
    return {"file": Path(file).name, "sha256": hashlib.sha256(Path(file).read_bytes()).hexdigest()}


def in_file(cls: type[Any]) -> bool:
    """Return whether a class stands in a file that was named with a class of it."""
    return cls.__module__.startswith(_PREFIX)


def origin_of(cls: type[Any]) -> ClassInFile | None:
    """Return the place that a class was loaded from by its text, None for any other class."""
    return _origins.get(cls)


T = TypeVar("T", bound=type[Any])


class Registry(Generic[T]):
    """Classes of one kind, by name.

    The lookup of a name imports only the modules of optsched whose text registers it, and the list
    of names imports all modules and plug-ins. Modules and packages whose name starts with an
    underscore are skipped: they hold compiled kernels, which are imported on use.
    """

    def __init__(
        self,
        noun: str,  # word for a class of this kind in messages, "solver" for instance
        group: str,  # name of the entry-point group
        *,
        package: str | None = None,  # package with the modules; the name of the group if left out
        # Name of the registry in those modules; the last part of the group if left out
        variable: str | None = None,
        # Module and name of the base class, ``optsched.solvers.solver:Solver``, of a kind
        # whose classes may also be named by their place, ``FILE.py:CLASS`` or
        # ``MODULE:CLASS``; empty for other kinds
        contract: str = "",
        # Module and name of the function that makes one class of two with the same name,
        # or None if they cannot share it; empty for a kind in which a name is for one
        # class
        combined: str = "",
    ) -> None:
        self.noun = noun
        self.group = group
        self.package = package or group
        self.variable = variable or group.rpartition(".")[2]
        self._contract = contract
        self._combined = combined
        self._classes: dict[str, T] = {}
        self._broken: dict[str, str] = {}
        self._sought: set[str] = set()
        self._plugged = False
        self._discovered = False

    def register(self, name: str) -> Callable[[T], T]:
        """Return a decorator that registers a class under `name` and sets its ``name``.

        A class in a file, ``FILE.py:CLASS``, leaves a name to the class that already has it.
        """

        def file_under(cls: T) -> T:
            if not cls.__module__.startswith("optsched."):
                self._import_own(name)  # our class has the name first
            one, holder = cls, self._classes.get(name)
            if holder is not None:
                if self._combined:
                    shared = resolve_name(self._combined)(holder, cls)
                else:  # a newer version of a class takes its place
                    places = {(each.__qualname__, in_file(each)) for each in (holder, cls)}
                    shared = cls if len(places) == 1 else None
                if shared is None and in_file(cls):
                    return cls  # an edited copy of a module: FILE.py:CLASS names the class
                if shared is None:
                    raise ValueError(f"{self.noun} {name!r} is already {holder.__qualname__}")
                one = shared
            cls.name = name
            self._classes[name] = one
            return cls

        return file_under

    def __getitem__(self, name: str | ClassInFile) -> T:
        if self._contract and (isinstance(name, ClassInFile) or names_class(name)):
            self._discover()  # so that the file takes no name of a package
            found = find_class(name) if isinstance(name, str) else name
            return found.load(self.noun, resolve_name(self._contract))  # type: ignore[return-value]
        assert isinstance(name, str)
        if name not in self:
            raise self.unknown(name)
        return self._classes[name]

    def __contains__(self, name: object) -> bool:
        if isinstance(name, str):
            self._import_own(name)
        if self._combined:
            self._load_plug_ins()
        if name not in self._classes:
            self._discover()
        return name in self._classes

    def __iter__(self) -> Iterator[str]:
        self._discover()
        return iter(sorted(self._classes))

    def values(self) -> list[T]:
        """Return the classes, in order of their names."""
        return [self[name] for name in self]

    @property
    def broken(self) -> Mapping[str, str]:
        """Reasons why entry points could not be loaded, by name."""
        self._discover()
        return self._broken

    def unknown(self, name: str, others: Iterable[str] = ()) -> InputError:
        """Return the error of a name without a class; `others` would have been valid, too."""
        if name in self.broken:
            return InputError(f"{self.noun} {name!r} could not be loaded: {self.broken[name]}")
        file = f"{name}.py"
        files = [file] if self._contract and Path(file).is_file() else []
        return UnknownNameError(self.noun, name, [*self._classes, *others, *files])

    def _import_own(self, name: str) -> None:
        """Import the modules of optsched whose text registers a name, and no other."""
        if self._discovered or name in self._sought:
            return
        self._sought.add(name)
        mark = f'@{self.variable}.register("{name}")'.encode()
        root = Path(__file__).parent
        for path in sorted(root.joinpath(*self.package.split(".")[1:]).rglob("*.py")):
            if mark in path.read_bytes():
                parts = path.relative_to(root.parent).with_suffix("").parts
                importlib.import_module(".".join(parts).removesuffix(".__init__"))

    def _discover(self) -> None:
        if self._discovered:
            return
        self._discovered = True
        _import_modules(self.package)
        self._load_plug_ins()

    def _load_plug_ins(self) -> None:
        if self._plugged:
            return
        self._plugged = True
        from importlib.metadata import entry_points

        for entry_point in entry_points(group=self.group):
            try:
                loaded = entry_point.load()
                if isinstance(loaded, type):
                    self.register(entry_point.name)(loaded)  # type: ignore[arg-type]
            except (Exception, SystemExit) as error:  # any error of a third-party module
                reason = f"{type(error).__name__}: {' '.join(str(error).split())}"
                self._broken[entry_point.name] = reason
                place = f"{entry_point.name} = {entry_point.value} in {self.group}"
                logging.getLogger("optsched").warning(
                    "plug-in %s could not be loaded: %s", place, reason
                )


def _import_modules(package: str) -> None:
    for found in iter_modules(importlib.import_module(package).__path__):
        if found.name.startswith("_"):
            continue
        module = f"{package}.{found.name}"
        importlib.import_module(module)
        if found.ispkg:
            _import_modules(module)


models: Registry[Any] = Registry("model", "optsched.models")
solvers: Registry[Any] = Registry(
    "solver",
    "optsched.solvers",
    contract="optsched.solvers.solver:Solver",
    combined="optsched.solvers.finding:combined",
)
policies: Registry[Any] = Registry(
    "policy", "optsched.policies", contract="optsched.simulator.policy:Policy"
)
machines: Registry[Any] = Registry("machine", "optsched.machines")
executions: Registry[Any] = Registry(
    "execution model", "optsched.executions", contract="optsched.simulator.execution:ExecutionModel"
)
readers: Registry[Any] = Registry("trace format", "optsched.traces", variable="readers")
metrics: Registry[Any] = Registry("metric", "optsched.metrics")
pictures: Registry[Any] = Registry(
    "picture", "optsched.pictures", package="optsched.report.pictures"
)
workloads: Registry[Any] = Registry("workload model", "optsched.workloads")


def all_kinds() -> list[Registry[Any]]:
    """Return the registry of each kind."""
    return [kind for kind in globals().values() if isinstance(kind, Registry)]


def display_of(kind: str) -> Callable[..., Any]:
    """Return the function of `optsched.report.displays` for a kind of object.

    Objects know it by name alone, since pages are on a floor above them.
    """
    function: Callable[..., Any] = resolve_name(f"optsched.report.displays:{kind}")
    return function
