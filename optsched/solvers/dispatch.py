"""One name for solvers of several models: each problem goes to the solver of its model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import is_dataclass, replace
from typing import Any, ClassVar

from optsched import registry
from optsched.errors import InputError
from optsched.models.problem import Problem
from optsched.settings import configure, settings_of
from optsched.solvers.result import Result
from optsched.solvers.solver import Solver
from optsched.solvers.solver_call import supports, unsupported


class Dispatch(Solver):
    """The solvers of one name, each for models of its own.

    Its class attributes combine theirs, for callers that do not know the model yet; `of_model`
    returns the solver itself.

    `options`: options of one of the solvers at least.
    """

    classes: ClassVar[tuple[type[Solver], ...]]  # the classes registered under the name

    def __init__(self, options: Mapping[str, Any] | None = None) -> None:
        self._options = options or {}

    def of_model(self, model: str) -> Solver:
        """Return the solver of a model."""
        return solver_with(self.class_of_model(model), self._options)

    @classmethod
    def class_of_model(cls, model: str) -> type[Solver]:
        """Return the class of the solver of a model."""
        for one in cls.classes:
            if supports(one, model):
                return one
        raise unsupported(cls.name, model)

    @classmethod
    def supports(cls, model: str) -> bool:
        """Return whether one of the solvers accepts problems of a model."""
        return any(supports(one, model) for one in cls.classes)

    def prepare(self, problem: Problem[Any] | None = None) -> None:
        """Prepare the solver of the problem's model, all of them if there is no problem."""
        for model in self.models or () if problem is None else (problem.name,):
            self.of_model(model).prepare(problem)

    def solve(self, problem: Problem[Any], **given: Any) -> Result:
        """Answer `problem` with the solver of its model."""
        return self.of_model(problem.name).solve(problem, **given)

    @classmethod
    def installed_version(cls) -> str | None:
        """Return the version of the first that is installed; None if none is."""
        versions = (one.installed_version() for one in cls.classes)
        return next((version for version in versions if version is not None), None)


def classes_of(name: str) -> tuple[type[Solver], ...]:
    """Return the classes registered under a name: one, or one for each of several models."""
    cls: type[Solver] = registry.solvers[name]
    return cls.classes if issubclass(cls, Dispatch) else (cls,)


def combined(holder: type[Solver], added: type[Solver]) -> type[Solver] | None:
    """Return the class for two of the same name; None if both answer the same model.

    `holder`: the class that has the name already, which may be a combined one; `added`: the class
    to add; it takes the place of an earlier version of itself.
    """
    classes = holder.classes if issubclass(holder, Dispatch) else (holder,)
    rivals = [one for one in classes if _overlap(one, added)]
    if any(_place(one) != _place(added) for one in rivals):
        return None
    kept = [*(one for one in classes if one not in rivals), added]
    if len(kept) == 1:
        return added
    attributes = {
        "__doc__": added.__doc__,
        "__qualname__": " and ".join(dict.fromkeys(one.__qualname__ for one in kept)),
        "name": holder.name,
        "classes": tuple(kept),
        "models": frozenset().union(*(one.models or () for one in kept)),
        "exact": all(one.exact for one in kept),
        "is_rule": all(one.is_rule for one in kept),
        "work_unit": ", or ".join(dict.fromkeys(one.work_unit for one in kept)),
        "requires": kept[0].requires,
    }
    for price in ("seconds_per_solve", "seconds_per_work", "default_work"):
        attributes[price] = max(getattr(one, price) for one in kept)
    # a class of another package makes the whole one of that package: its solvers get copies
    foreign = [one.__module__ for one in kept if not one.__module__.startswith("optsched.")]
    attributes["__module__"] = foreign[0] if foreign else __name__
    return type("Dispatch", (Dispatch,), attributes)


def _overlap(one: type[Solver], other: type[Solver]) -> bool:
    if not (isinstance(one.models, frozenset) and isinstance(other.models, frozenset)):
        return True
    return not one.models.isdisjoint(other.models)


def _place(cls: type[Solver]) -> tuple[str, str]:
    return cls.__module__, cls.__qualname__


def solver_with(cls: type[Solver], options: Mapping[str, Any]) -> Solver:
    """Return a solver with given options."""
    if not options:
        return cls()
    if issubclass(cls, Dispatch):
        refusals = []
        for one in cls.classes:
            try:
                solver_with(one, options)
            except InputError as error:
                refusals.append(error)
        if len(refusals) == len(cls.classes):
            raise refusals[0]
        return cls(options)
    if not is_dataclass(cls):
        raise InputError(f"solver {cls.name!r} has no settings")
    own = {one.name for one in settings_of(cls)}
    native = {}
    if "native" in cls.__dataclass_fields__:
        native = {name: value for name, value in options.items() if name not in own}
    configured = {name: value for name, value in options.items() if name not in native}
    solver = configure(cls, configured, f"solver {cls.name!r}")
    return replace(solver, native=native) if native else solver
