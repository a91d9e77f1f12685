"""The contract of a formulation: a problem as an integer program, and solutions as its vectors."""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

from optsched.errors import InputError
from optsched.registry import models

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from optsched.models.program import Program

P = TypeVar("P")
Solution = TypeVar("Solution")


class Formulation(ABC, Generic[P, Solution]):
    """A formulation of a problem as a program, with the translation of solutions.

    A subclass is registered for its model with ``@formulations.register(model)``.

    Parameters
    ----------
    problem : Problem
        The problem to formulate.
    """

    name: ClassVar[str]

    def __init__(self, problem: P) -> None:
        self.problem = problem

    @property
    @abstractmethod
    def program(self) -> Program:
        """The problem as an integer linear program; best as a ``functools.cached_property``.

        Raises
        ------
        InputError
            If the program is too large.
        """

    @abstractmethod
    def decode(self, x: NDArray[np.int64]) -> Solution:
        """Return the solution of a vector of the program.

        Parameters
        ----------
        x : int64 array, shape (variables,)
            The vector, within the bounds of the variables; it may violate rows.
        """

    @abstractmethod
    def encode(self, solution: Solution) -> NDArray[np.int64]:
        """Return the vector of a feasible solution; the inverse of `decode`."""


def check_entries(entries: int, most: int, advice: str) -> None:
    """Refuse a program with more than `most` entries, before it is built."""
    if entries > most:
        raise InputError(
            f"the program would have some {entries:,} entries, more than {most:,}; {advice}"
        )


F = TypeVar("F", bound=type[Formulation[Any, Any]])


class Formulations:
    """The registered formulations, by the name of the model.

    A formulation is registered in the module that defines its problem, or in the module ``program``
    beside that module, which is imported at its first use.
    """

    def __init__(self) -> None:
        self._classes: dict[str, type[Formulation[Any, Any]]] = {}

    def register(self, name: str) -> Callable[[F], F]:
        """Return a decorator that registers a class as the formulation of a model."""

        def file_under(cls: F) -> F:
            holder = self._classes.get(name)
            if holder is not None and holder.__qualname__ != cls.__qualname__:
                raise ValueError(f"the formulation of {name!r} is already {holder.__qualname__}")
            cls.name = name
            self._classes[name] = cls
            return cls

        return file_under

    def __contains__(self, name: str) -> bool:
        try:
            self[name]
        except InputError:
            return False
        return True

    def __getitem__(self, name: str) -> type[Formulation[Any, Any]]:
        if name not in self._classes:
            package = sys.modules[models[name].__module__].__package__
            if package and find_spec(f"{package}.program"):
                import_module(f"{package}.program")
        if name not in self._classes:
            raise InputError(f"model {name!r} has no formulation")
        return self._classes[name]


formulations = Formulations()
