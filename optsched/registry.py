"""Registries of the classes behind the names that users type.

To add a policy, a solver, a model, a machine, an execution model, a workload model or a trace
reader, add one module to the package of its kind, with the class decorated by the registry below.
Solvers of different models may share a name, see `optsched.solvers.finding`. Third-party packages
add classes through an entry point of the group ``optsched.<kind>`` (``optsched.solvers`` for
instance) that names a module to import or the class. An entry point that cannot be loaded is left
out, with a warning.
"""

from __future__ import annotations

import importlib
import logging
import pkgutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Generic, TypeVar

from optsched.class_file import ClassInFile, find_class, in_file, names_class
from optsched.errors import InputError, UnknownNameError

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
                shared = self._shared(holder, cls)
                if shared is None and in_file(cls):
                    return cls  # an edited copy of a module: FILE.py:CLASS names the class
                if shared is None:
                    raise ValueError(f"{self.noun} {name!r} is already {holder.__qualname__}")
                one = shared
            cls.name = name
            self._classes[name] = one
            return cls

        return file_under

    def _shared(self, holder: T, added: T) -> T | None:
        if self._combined:
            return _named(self._combined)(holder, added)  # type: ignore[no-any-return]
        is_version = (holder.__qualname__, in_file(holder)) == (added.__qualname__, in_file(added))
        return added if is_version else None

    def __getitem__(self, name: str | ClassInFile) -> T:
        if self._contract and (isinstance(name, ClassInFile) or names_class(name)):
            self._discover()  # so that the file takes no name of a package
            found = find_class(name) if isinstance(name, str) else name
            return found.load(self.noun, _named(self._contract))  # type: ignore[return-value]
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


def _named(place: str) -> Any:
    """Return the object that ``MODULE:NAME`` names."""
    module, _, name = place.partition(":")
    return getattr(importlib.import_module(module), name)


def _import_modules(package: str) -> None:
    for found in pkgutil.iter_modules(importlib.import_module(package).__path__):
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
    "execution model",
    "optsched.executions",
    contract="optsched.simulator.execution:ExecutionModel",
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
    function: Callable[..., Any] = _named(f"optsched.report.displays:{kind}")
    return function
