"""Interface of machines, and their specifications."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

from numpy.typing import NDArray

from optsched import registry
from optsched.content import bundled_sites
from optsched.errors import InputError
from optsched.machines.texts import Texts
from optsched.numbers import parse_integer
from optsched.text_files import read_toml

if TYPE_CHECKING:
    from optsched.sites.requests import LastStart

Allocation = Any
"""Allocation of a job, in a form that depends on the machine."""


class Machine(ABC):
    """Resources, and the jobs that hold them.

    Attributes
    ----------
    name : str
        The registered name, which precedes the colon of a specification.
    usage : str
        The form of a specification, for messages.
    size : int
        Number of processors.
    free : int
        Number of processors that no job holds.
    notes : tuple of str
        Warnings about what the machine leaves out of its description.
    time_shared : bool
        Whether several jobs may hold a processor, for a share of the time each.
    holds_boxes : bool
        Whether jobs hold boxes of a torus, and not processors of a line.
    follows_requests : bool
        Whether jobs wait for their begin times, and for the jobs that they depend on.
    """

    name: ClassVar[str]
    usage: ClassVar[str]
    time_shared: ClassVar[bool] = False
    follows_requests: ClassVar[bool] = False
    notes: tuple[str, ...] = ()
    holds_boxes: bool = False
    size: int
    free: int

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.spec}: {self.free:,} processors free>"

    def kinds(self) -> frozenset[str]:
        """Return the kinds of machine that this one can serve as: its own, and its base classes."""
        bases = type(self).__mro__
        return frozenset(vars(base)["name"] for base in bases if "name" in vars(base))

    @classmethod
    @abstractmethod
    def from_spec(cls, text: str) -> Self:
        """Build an empty machine from the text after the colon of a specification.

        Raises
        ------
        InputError
            If the text is not of the form that `usage` shows.
        """

    @classmethod
    def located(cls, text: str, base: Path) -> str:
        """Return the text after the colon with the path in it, if it has one, joined to `base`."""
        return text

    @classmethod
    @abstractmethod
    def from_table(cls, table: Mapping[str, Any]) -> Self:
        """Build an empty machine from the keys of a TOML file, without ``kind``.

        Raises
        ------
        InputError
            If keys are missing or unknown, or values are wrong.
        """

    @classmethod
    def from_file(cls, path: Path, table: Mapping[str, Any]) -> Self:
        """Build an empty machine from the keys of the TOML file `path`, without ``kind``."""
        return cls.from_table(table)

    @property
    @abstractmethod
    def spec(self) -> str:
        """Specification that builds an equal machine."""

    def emptied(self) -> Self:
        """Return a machine of the same resources without jobs."""
        return self.from_spec(self.spec.partition(":")[2])

    def demands(self, jobs: Mapping[str, NDArray[Any]]) -> Sequence[int]:
        """Return the requests of the jobs of a trace in the machine's terms, and expect these jobs.

        By default that is the number of its processors.

        Parameters
        ----------
        jobs : mapping of str to array, shape (jobs,)
            Columns of the trace by name: ``processors``, ``requested_time``, annotations and texts.
        """
        demands: list[int] = jobs["processors"].tolist()
        return demands

    def why_never(self, demand: int) -> str:
        """Return why a job that asks `demand` can never start; empty if it can."""
        return "" if demand <= self.size else "it is larger than the machine"

    def last_starts(
        self, submit: Sequence[float], requested: Sequence[float]
    ) -> Mapping[int, LastStart]:
        """Return until when expected jobs can start; jobs that can start at any time are left out.

        Parameters
        ----------
        submit, requested : sequence of float, shape (jobs,)
            Submission and requested time of each job in seconds.
        """
        return {}

    def fits(self, demand: int) -> bool:
        """Return whether a job that asks `demand` can start now."""
        return demand <= self.free

    @abstractmethod
    def allocate(self, processors: int) -> Allocation:
        """Allocate the first `processors` free processors in the machine's order."""

    @abstractmethod
    def claim(self, place: Any, processors: int) -> Allocation:
        """Allocate the place that a policy chose for a job of `processors` processors.

        Raises
        ------
        ValueError
            If the place is not entirely free, or has another size.
        """

    @abstractmethod
    def release(self, allocation: Allocation) -> None:
        """Free the allocation of a job."""

    def is_contiguous(self, allocation: Allocation) -> bool:
        """Return whether an allocation is contiguous: by default, one interval of processors."""
        return " " not in self.resources(allocation)

    @abstractmethod
    def resources(self, allocation: Allocation) -> str:
        """Return the processors of an allocation as an interval set, ``1-3 5 7`` for instance."""

    def place_text(self, allocation: Allocation) -> str:
        """Return the text of an allocation in the journal; by default its processors."""
        return self.resources(allocation)

    def job_measures(self, resources: Sequence[str]) -> dict[str, NDArray[Any]]:
        """Measure allocations, for the columns that the machine adds to the table of jobs.

        ``runs`` is the number of runs of adjacent processors; an allocation of one run is
        contiguous.

        Parameters
        ----------
        resources : sequence of str
            Allocations as interval sets, not empty.

        Returns
        -------
        dict of str to int64, float64 or text array, shape (allocations,)
            Values by name of the measure.
        """
        return {"runs": 1 + Texts.of(resources).occurrences(" ")}

    @abstractmethod
    def violations(self, held: Mapping[int, Allocation]) -> list[str]:
        """Compare the machine with the allocations of the running jobs.

        Parameters
        ----------
        held : mapping of int to Allocation
            The allocation of each running job.

        Returns
        -------
        list of str
            The differences: processors held twice, lost or invented; empty without any.
        """


class SizedMachine(Machine):
    """Machine that its number of processors describes: ``kind:NUMBER``."""

    unit: ClassVar[str]  # name of the processors, for messages

    def __init__(self, size: int) -> None:
        self.size = size

    @classmethod
    def from_spec(cls, text: str) -> Self:
        """Build a machine of a number of processors in decimal digits."""
        try:
            size = parse_integer(text)
        except ValueError:
            raise InputError(f"machine '{cls.name}:{text}'; expected {cls.usage}") from None
        return cls(size)

    @classmethod
    def from_table(cls, table: Mapping[str, Any]) -> Self:
        """Build the machine from its only key, ``size``."""
        if set(table) != {"size"}:
            raise InputError(f"keys {sorted(table)}; expected size, the number of {cls.unit}")
        return cls(table["size"])

    @property
    def spec(self) -> str:
        """Specification that builds an equal machine."""
        return f"{self.name}:{self.size}"


def check_counts(counts: Mapping[str, Any]) -> None:
    """Refuse parameters, by name, that are not whole numbers from 1."""
    for name, number in counts.items():
        if type(number) is not int or number < 1:
            raise InputError(f"{number!r}; expected a whole number from 1", field=name)


def read_machine(spec: str | int | Path | Machine, base: Path = Path()) -> Machine:
    """Build the empty machine of a specification.

    `spec`: ``kind:size`` such as ``nodes:1152``, a number of nodes, the path of a TOML file with a
    ``kind``, or a machine; `base`: the folder that relative paths start from; by default the
    current one.
    """
    if isinstance(spec, Machine):
        return spec.emptied()
    text = str(spec)
    kind, colon, rest = text.partition(":")
    if text.endswith(".toml") and not (colon and kind in registry.machines):
        return _read_file(base / text)
    if text and not colon and (os.path.exists(base / text) or text in bundled_sites()):
        raise InputError(f"{text!r} is no kind of machine; did you mean site:{text}?")
    if text.isascii() and text.isdigit():
        text, kind, colon, rest = f"nodes:{text}", "nodes", ":", text
    if not colon:
        forms = ", ".join(cls.usage for cls in registry.machines.values())
        raise InputError(f"{text!r} is not a machine; expected {forms} or a TOML file")
    cls: type[Machine] = registry.machines[kind]
    return cls.from_spec(cls.located(rest, base))


def _read_file(path: Path) -> Machine:
    table = read_toml(path)
    kind = table.pop("kind", None)
    if not isinstance(kind, str):
        raise InputError("expected the kind of machine", file=path, field="kind")
    try:
        machine: Machine = registry.machines[kind].from_file(path, table)
    except InputError as error:
        raise error.within(path) from None
    return machine
