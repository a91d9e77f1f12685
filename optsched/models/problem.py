"""The contract of a decision: frozen data, an objective, and a verification of solutions."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, NamedTuple, Self, TypeVar

import numpy as np

from optsched.models.formulation import formulations
from optsched.models.schema import Fields, Schema

if TYPE_CHECKING:
    from optsched.models.formulation import Formulation

Solution = TypeVar("Solution")


class Violation(NamedTuple):
    """One broken constraint: its name in the model's page, and what is wrong."""

    constraint: str
    detail: str

    def __str__(self) -> str:
        return f"{self.constraint}: {self.detail}"


class Problem(ABC, Generic[Solution]):
    """One decision of a scheduler, frozen.

    A subclass declares its fields in its body, see `optsched.models.schema`, and is decorated with
    ``@models.register(kind)`` and ``@declared``. `violations` and `objective` are written from the
    maths and share no code with its formulation or with any solver: every answer of every solver
    passes through them. How it is stated as a program is its
    `optsched.models.formulation.Formulation`.

    Attributes
    ----------
    name : str
        The kind: tag of the problem on file, and folder of its page under ``models/``.
    sense : {"max", "min"}
        Direction of the objective.
    default_solver : str
        The solver that answers when none is named.
    schema : Schema
        The declared fields.
    """

    name: ClassVar[str]
    sense: ClassVar[Literal["max", "min"]]
    default_solver: ClassVar[str] = "cp-sat"
    schema: ClassVar[Schema]

    if TYPE_CHECKING:
        __dataclass_fields__: ClassVar[dict[str, Any]]

        # it takes more than it keeps: lists for arrays, texts for boxes
        def __init__(self, *values: Any, **fields: Any) -> None: ...

    @staticmethod
    def joint_mistakes(fields: Fields, *, on_file: bool) -> list[str]:
        """Return the mistakes in fields that are sound one by one; none unless a model has any.

        Parameters
        ----------
        fields : dict
            The fields as the problem keeps them.
        on_file : bool
            Whether they came from a file, where jobs, rows and the like count from 1.
        """
        return []

    def copy(self) -> Self:
        """Return the same decision in memory of its own."""
        twin = copy.deepcopy(self)
        for name, value in vars(self).items():
            if isinstance(value, np.ndarray):
                vars(twin)[name].flags.writeable = value.flags.writeable
        return twin

    @property
    @abstractmethod
    def size(self) -> str:
        """The size of the problem in the model's own terms, ``5x10`` for instance."""

    def formulate(self) -> Formulation[Any, Solution]:
        """Return the formulation that is registered for the model, of this problem.

        Raises
        ------
        InputError
            If there is none.
        """
        return formulations[self.name](self)

    @abstractmethod
    def objective(self, solution: Solution) -> int:
        """Return the objective value of `solution`."""

    @abstractmethod
    def violations(self, solution: Solution) -> list[Violation]:
        """Return every constraint that `solution` breaks; empty when it is feasible."""

    def to_json(self) -> dict[str, Any]:
        """Return the fields of the problem as JSON-able values, without `kind`."""
        return self.schema.to_file(self)

    @classmethod
    def from_json(cls, fields: Mapping[str, Any]) -> Self:
        """Build the problem from the fields of a snapshot.

        Raises
        ------
        InputError
            With all mistakes at once.
        """
        problem = cls.__new__(cls)
        problem.__dict__.update(cls.schema.from_file(fields))
        return problem

    @abstractmethod
    def solution_to_json(self, solution: Solution) -> dict[str, Any]:
        """Return `solution` as JSON-able values, in words that a user of the model knows."""

    @abstractmethod
    def solution_from_json(self, fields: Mapping[str, Any]) -> Solution:
        """Return the solution written by `solution_to_json`.

        Raises
        ------
        InputError
            If it is not of that form.
        """

    @abstractmethod
    def describe(self, solution: Solution | None = None) -> list[tuple[str, str]]:
        """Return the problem, or a solution of it, as (label, text) lines for a terminal."""
