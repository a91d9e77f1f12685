"""Solvers by name: registered ones, several of one name, profiles in ``solvers/*.toml``."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, is_dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

from optsched import registry
from optsched.content import bundled
from optsched.errors import InputError, MissingDependencyError, UnknownNameError, brief
from optsched.models.problem import Problem
from optsched.models.snapshot import Snapshot
from optsched.numbers import check_seed
from optsched.registry import ClassInFile, names_class
from optsched.settings import configure, settings_of
from optsched.solvers.result import Budget, Result
from optsched.solvers.solver import Solver
from optsched.solvers.solver_call import described, repr_of
from optsched.text_files import read_toml

KEYS: Mapping[str, tuple[type[Any], str]] = {
    "solver": (str, "the name of a registered solver"),
    "description": (str, "a sentence"),
    "budget": (dict, "a table with seconds or work"),
    "seed": (int, "an integer"),
    "options": (dict, "a table of the solver's options"),
}
"""Type and meaning of the value of each key of a profile."""

LIMITS = ("seconds", "work")
"""Keys of the budget of a profile."""


@dataclass(frozen=True, slots=True)
class Profile:
    """A named configuration of a solver."""

    name: str  # name of the profile: the stem of its file
    solver: str  # registered name of the solver
    description: str = ""  # purpose of the profile
    budget: Budget = field(default_factory=Budget)  # default budget of a solve
    seed: int = 0  # default seed of random choices
    options: Mapping[str, Any] = field(default_factory=dict)  # options of the solver


def find_solver(
    name: str | ClassInFile | Solver,
    # A model that the solver has to support. If left out, a name of several solvers stands
    # for all of them, see `Dispatch`.
    model: str | None = None,
    # Options of solvers of the model. The solver takes those that it has and its profile does
    # not state.
    options: Mapping[str, Any] | None = None,
) -> tuple[Solver, Profile]:
    """Return the solver behind a registered name, a profile, its TOML file, or ``FILE.py:CLASS``.

    A solver is returned unchanged, with a profile of its options.
    """
    if isinstance(name, Solver):
        if model is not None:
            if not supports(name, model):
                raise unsupported(name.name, model, known=solvers_of({model}))
            name = name.of_model(model) if isinstance(name, Dispatch) else name
        check_models(name)
        return name, Profile(name=name.name, solver=name.name, options=options_of(name))
    if not isinstance(name, str | ClassInFile):
        raise InputError(f"{brief(name)}; expected a solver or the name of one", field="solver")
    cls: type[Solver]
    if isinstance(name, ClassInFile) or names_class(name):
        cls = registry.solvers[name]
        profile = Profile(name=cls.name, solver=cls.name)
    elif name in registry.solvers:
        cls, profile = registry.solvers[name], Profile(name=name, solver=name)
    elif name in profile_names() or name.endswith(".toml"):
        profile = load_profile(name)
        cls = registry.solvers[profile.solver]
    else:
        raise unknown_solver(name, [] if model is None else [model])
    if model is not None:
        if not supports(cls, model):
            raise unsupported(profile.name, model, known=solvers_of({model}))
        cls = cls.class_of_model(model) if issubclass(cls, Dispatch) else cls
    taken = {name: one for name, one in (options or {}).items() if name in _options(cls)}
    solver = solver_with(cls, taken | dict(profile.options))
    check_models(solver)
    if version_of(solver) is None:
        raise MissingDependencyError(
            f"solver {name!r} needs the package {solver.requires!r}, which is not installed; "
            f"{solver.install_command()}"
        )
    return solver, profile


def label_of(given: str | ClassInFile | Solver, profile: Profile) -> str:
    """Return the name of a solver in output: a user's class in full, all others as given."""
    return given if isinstance(given, str) and not names_class(given) else profile.name


def unknown_solver(name: str, models: Collection[str]) -> InputError:
    """Return the error of an unknown name, with those that answer problems of one of the models."""
    error = registry.solvers.unknown(name, profile_names())
    if not isinstance(error, UnknownNameError):  # a broken plug-in
        return error
    known = solvers_of(models) if models else error.known
    of = f" of {' and '.join(models)} problems" if models else ""
    others = (
        "; your own solver is a class in a file, FILE.py:CLASS, and for another program there is "
        "`optsched snapshot export`"
    )
    return UnknownNameError(f"solver{of}", name, known, others)


def solvers_of(models: Collection[str]) -> list[str]:
    """Return the names of solvers and profiles that answer problems of one of the models."""
    profiles, found = profile_names(), []
    for name in sorted({*registry.solvers, *profiles}):
        with suppress(InputError):  # a broken plug-in
            solver = load_profile(name).solver if name in profiles else name
            if any(supports(registry.solvers[solver], model) for model in models):
                found.append(name)
    return found


def profile_names() -> list[str]:
    """Return the names of the bundled profiles."""
    return sorted(path.stem for path in bundled("solvers").glob("*.toml"))


def load_profile(name: str | Path) -> Profile:
    """Return the bundled profile of a name, or the profile in a TOML file."""
    path = Path(name)
    if path.suffix != ".toml":
        path = bundled("solvers") / f"{name}.toml"
    table = read_toml(path)
    known = ", ".join(KEYS)
    mistakes = [f"unknown key {key!r}; known: {known}" for key in table if key not in KEYS]
    mistakes += [
        f"{key}: {table[key]!r}; expected {meaning}"
        for key, (kind, meaning) in KEYS.items()
        if key in table and type(table[key]) is not kind
    ]
    stated = table.get("solver")
    if stated is None or names_class(stated):
        shown = "missing" if stated is None else repr(stated)
        mistakes.append(f"solver: {shown}; expected {KEYS['solver'][1]}")
    if mistakes:
        raise InputError(*mistakes, file=path)
    try:
        check_seed(table.get("seed", 0), "seed")
        limits = table.get("budget", {})
        if unknown := [key for key in limits if key not in LIMITS]:
            raise UnknownNameError("key of budget", unknown[0], LIMITS)
        budget = Budget(**limits)
        solver_with(registry.solvers[table["solver"]], table.get("options", {}))
    except InputError as error:
        raise error.within(path) from None
    return Profile(path.stem, **table | {"budget": budget})


def options_of(solver: Solver) -> dict[str, Any]:
    """Return the options of a solver that differ from their defaults, and its native ones."""
    if not is_dataclass(solver):
        return {}
    values = {option: getattr(solver, option.name) for option in settings_of(type(solver))}
    changed = {option.name: value for option, value in values.items() if value != option.default}
    return changed | dict(getattr(solver, "native", {}))


def check_options(snapshot: Snapshot, file: str | Path | None = None) -> None:
    """Check the options in a snapshot, which may come from a file."""
    model = snapshot.problem.name
    for name, value in snapshot.options.items():
        owners = (cls for cls in _classes_of_model(model) if name in _options(cls))
        try:
            if (owner := next(owners, None)) is None:
                known = {one for cls in _classes_of_model(model) for one in _options(cls)}
                raise UnknownNameError("option", name, known)
            solver_with(owner, {name: value})
        except InputError as error:
            raise InputError(str(error), file=file, field="options") from None


def _classes_of_model(model: str) -> Iterator[type[Solver]]:
    for name in registry.solvers:
        with suppress(InputError):  # a broken plug-in
            for cls in classes_of(name):
                if supports(cls, model):
                    yield cls


def _options(cls: type[Solver]) -> list[str]:
    return [option.name for option in settings_of(cls)]


def supports(solver: Solver | type[Solver], model: str) -> bool:
    """Return whether a solver accepts problems of a model."""
    check_models(solver)
    return bool(_stated(solver, "supports", model))


def unsupported(name: str, *models: str, known: Iterable[str] = ()) -> InputError:
    """Return the error of a solver, by its name, that supports no model of these as `known` do."""
    expected = f"; expected one of {', '.join(known)}" if known else ""
    wanted = " or ".join(map(repr, models))
    return InputError(f"solver {name!r} does not answer {wanted} problems{expected}")


def version_of(solver: Solver | type[Solver]) -> str | None:
    """Return the version of a solver, or None if it is not installed."""
    return _stated(solver, "installed_version")  # type: ignore[no-any-return]


def check_models(solver: Solver | type[Solver]) -> None:
    """Check that a solver states its models as the contract requires."""
    if not isinstance(solver.models, frozenset | None):
        wrong = f"{repr_of(solver.models)} as its models; expected a frozenset or None"
        raise InputError(f"solver {solver.name!r} states {wrong}")


def _stated(solver: Solver | type[Solver], method: str, *arguments: Any) -> Any:
    try:
        return getattr(solver, method)(*arguments)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        message = f"solver {solver.name!r} fails in {method}: {described(error, solver)}"
        raise InputError(message) from None


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
    place = added.__module__, added.__qualname__
    if any((one.__module__, one.__qualname__) != place for one in rivals):
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
    configured, native = dict(options), {}
    if "native" in cls.__dataclass_fields__:
        native = {name: configured.pop(name) for name in options if name not in _options(cls)}
    solver = configure(cls, configured, f"solver {cls.name!r}")
    return replace(solver, native=native) if native else solver
