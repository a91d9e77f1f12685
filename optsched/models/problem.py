"""The contract of a problem: frozen data, an objective, and a verification of solutions."""

from __future__ import annotations

import copy
import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, NamedTuple, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from optsched.fields import Fields
from optsched.models.program import Formulation, formulations
from optsched.models.schema import Schema
from optsched.registry import display_of

Solution = TypeVar("Solution")


class Violation(NamedTuple):
    """A broken constraint: its name on the model's page, and a detail."""

    constraint: str
    detail: str

    def __str__(self) -> str:
        return f"{self.constraint}: {self.detail}"


class Choice(StrEnum):
    """What a decision on waiting jobs leaves to choose."""

    ONE_JOB = "one job"
    """Nothing: there is a single job."""

    ALL_PLACED = "all placed"
    """At most where the jobs go: all of several jobs can be placed."""

    CONTESTED = "contested"
    """Which jobs wait: not all of several jobs can be placed."""


def wrong_length(solution: Sequence[Any], jobs: int) -> list[Violation]:
    """Return the violation of a solution without one entry for each job, if there is one."""
    if len(solution) == jobs:
        return []
    return [Violation("once", f"{len(solution)} entries for {jobs} jobs")]


def named(
    labels: Sequence[str | int] | None, sizes: Sequence[Any] | NDArray[np.int64], prefix: str = ""
) -> list[str]:
    """Return texts of label and size, ``12 (64)``; without labels, of prefix and number from 1."""
    names = labels or [f"{prefix}{number}" for number in range(1, len(sizes) + 1)]
    return [f"{name} ({size})" for name, size in zip(names, sizes)]


def listed(names: Iterable[str]) -> str:
    """Return names in one line, a dash if there is no name."""
    return " ".join(names) or "-"


class Problem(ABC, Generic[Solution]):
    """A decision of a scheduler as an immutable optimization problem.

    A subclass declares its fields in its body, see `optsched.models.schema`, and is decorated with
    ``@models.register(kind)`` and ``@declared``. Its methods `violations` and `objective` verify
    every solution of every solver; they are written from the mathematics, and share no code with
    the `optsched.models.program.Formulation` or with any solver.

    Attributes
    ----------
    name : str
        Name of the model: ``kind`` of the problem on file, and folder of its page in ``models/``.
    sense : {"max", "min"}
        Direction of the objective.
    default_solver : str
        Name of the default solver.
    schema : Schema
        The declared fields.
    former_options : tuple of str
        Options of solvers that earlier versions wrote among the fields; a snapshot moves them to
        its ``options``.
    relaxation : Problem or None
        The same problem without the rules of a site, for solvers that do not know these.
    """

    name: ClassVar[str]
    sense: Literal["max", "min"]
    default_solver: ClassVar[str] = "cp-sat"
    schema: ClassVar[Schema]
    former_options: ClassVar[tuple[str, ...]] = ()
    relaxation: Problem[Any] | None = None

    if TYPE_CHECKING:
        __dataclass_fields__: ClassVar[dict[str, Any]]

        # the constructor also accepts lists for arrays and texts for boxes
        def __init__(self, *values: Any, **fields: Any) -> None: ...

    @property
    def solver(self) -> str:
        """Name of the default solver of this problem."""
        return self.default_solver

    @staticmethod
    def joint_mistakes(fields: Fields, *, on_file: bool) -> list[str]:
        """Return the mistakes in combinations of valid fields; the default has no such check.

        Parameters
        ----------
        fields : dict
            The fields as the problem stores them.
        on_file : bool
            Whether the fields came from a file, where jobs, rows and the like count from 1.
        """
        return []

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.size}>"

    def _repr_html_(self) -> str:
        return str(display_of("problem")(self))

    def copy(self) -> Self:
        """Return a deep copy of the fields, without what was computed from them."""
        fields = {field.name: vars(self)[field.name] for field in dataclasses.fields(self)}
        copied = copy.deepcopy(fields)
        for name, value in fields.items():
            if isinstance(value, np.ndarray):  # the copy of a read-only array is not
                copied[name].flags.writeable = value.flags.writeable
        return self.trusted(**copied)

    @property
    @abstractmethod
    def size(self) -> str:
        """The size of the problem in the model's own terms, ``5x10`` for instance."""

    def formulate(self) -> Formulation[Any, Solution]:
        """Return the registered formulation of the problem.

        Raises
        ------
        InputError
            If the model has no formulation.
        """
        return formulations[self.name](self)

    @abstractmethod
    def objective(self, solution: Solution) -> int:
        """Return the objective value of `solution`."""

    @abstractmethod
    def violations(self, solution: Solution) -> list[Violation]:
        """Return every constraint that `solution` breaks, empty if the solution is feasible."""

    def choice(self, objective: int) -> Choice | None:
        """Return the kind of choice that there is, given the objective of the solution used.

        None, the default, in a model that does not say.
        """
        return None

    def equally_good(self, objective: int) -> list[Solution]:
        """Return all solutions with an objective, in a fixed order, for a draw among them.

        A model that does not define the method cannot list them.

        Raises
        ------
        InputError
            If there are too many to list.
        """
        raise NotImplementedError

    def passes_quick_check(self, solution: Solution) -> bool:
        """Return True only if `violations` would be empty; the default has no quick check.

        A model whose decisions take microseconds checks solutions by a compiled kernel here. Tests
        compare the kernel with `violations`, which states what is checked and names what is wrong.
        """
        return False

    @classmethod
    def trusted(cls, **fields: Any) -> Self:
        """Build a problem from all of its fields in their stored form, without a check.

        This is for policies that make the fields themselves, thousands of times in a run.
        """
        problem = cls.__new__(cls)
        problem.__dict__.update(fields)
        return problem

    def to_json(self) -> dict[str, Any]:
        """Return the fields of the problem as JSON-able values, without `kind`."""
        return self.schema.to_file(self)

    @classmethod
    def from_json(cls, fields: Mapping[str, Any]) -> Self:
        """Build the problem from the fields of a snapshot.

        Raises
        ------
        InputError
            If fields are missing, unknown or wrong; the message lists all mistakes.
        """
        problem = cls.__new__(cls)
        problem.__dict__.update(cls.schema.from_file(fields))
        return problem

    @abstractmethod
    def solution_to_json(self, solution: Solution) -> dict[str, Any]:
        """Return `solution` as JSON-able values, in the terms of the model."""

    @abstractmethod
    def solution_from_json(self, fields: Mapping[str, Any]) -> Solution:
        """Return the solution written by `solution_to_json`.

        Raises
        ------
        InputError
            If `fields` are not of that form.
        """

    @abstractmethod
    def describe(self, solution: Solution | None = None) -> list[tuple[str, str]]:
        """Return the problem, or a solution of the problem, as (label, text) lines."""
