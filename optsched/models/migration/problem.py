"""Migration: a box for a large job on a torus, by moving running jobs at the least cost.

Model page: ``models/migration/README.md``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any, NamedTuple

from optsched.boxes.box import Box, Triple, box_of_text
from optsched.errors import InputError
from optsched.fields import Integer
from optsched.models.fields import label
from optsched.models.problem import Violation
from optsched.models.schema import declared, field
from optsched.models.torus import (
    LONGEST_SIDE,
    MOST_NODES,
    MigratingProblem,
    Step,
    destinations_of,
    steps_from_json,
    steps_to_json,
)
from optsched.registry import models

MOST_IN_ALL = MOST_NODES * LONGEST_SIDE**3
"""Number of nodes of the largest torus."""


class Plan(NamedTuple):
    """The steps of a migration in order, and the box of the large job.

    Parameters
    ----------
    steps : tuple of Step
        Moves and parkings in order.
    place : Box or None
        The box of the large job, which starts after all steps; None in an infeasible plan.
    """

    steps: tuple[Step, ...]
    place: Box | None

    @property
    def destinations(self) -> dict[int, Box]:
        """The new box of each moved job."""
        return destinations_of(self.steps)


@models.register("migration")
@declared
class Migration(MigratingProblem[Plan]):
    """A large job that needs a box, and running jobs that may be moved to free one.

    Raises
    ------
    InputError
        If running jobs overlap each other, an ending one or a hole, do not fit into their boxes or
        cost more than 10^12 node-seconds, or lengths do not match; the message lists all mistakes.

    References
    ----------
    K. Li, M. Malawski, J. Nabrzyski, "Topology-aware scheduling on Blue Waters with proactive queue
    scanning and migration-based job placement", JSSPP 2015, section 6.

    Examples
    --------
    >>> problem = Migration((4, 1, 1), ["1x1x1@1,0,0"], [1], [60], 2, wrap=(False,) * 3)
    >>> problem.violations(Plan((), Box(2, 0, 0, 2, 1, 1)))
    []
    >>> problem.violations(Plan((), Box(0, 0, 0, 2, 1, 1)))
    [Violation(constraint='overlap', detail='the large job in 2x1x1@0,0,0 meets job 1')]
    """

    incoming: int = field(Integer(1, MOST_IN_ALL), "nodes of the large job, in whole routers")
    incoming_job: str | int | None = field(label(), "a label for the large job", default=None)

    sense = "min"
    default_solver = "position-search"

    @property
    def size(self) -> str:
        """Running jobs, routers of the large job and torus: ``212+550@24x24x24``."""
        sides = "x".join(map(str, self.torus))
        return f"{len(self.running)}+{self.routers_of(self.incoming)}@{sides}"

    @cached_property
    def place_extents(self) -> tuple[Triple, ...]:
        """The extents that the large job may have, the best first."""
        return self.admitted(self.incoming)

    def choices(self) -> Iterator[tuple[int, tuple[Triple, ...], Box | None]]:
        """Yield the large job and the movable ones: number, extents, and the present box."""
        yield len(self.running), self.place_extents, None
        for job in self.movers:
            yield job, self.extents(job), self.running[job]

    def named(self, job: int) -> str:
        """Return the name of a job, of `HOLE` or of `ENDING` for messages."""
        if job == len(self.running):
            return "the large job" if self.incoming_job is None else f"job {self.incoming_job}"
        return self.name_of_running(job)

    def plan(self, destinations: Mapping[int, Box], place: Box | None) -> Plan:
        """Return the plan of moves, with the steps in the order of `ordered`.

        Parameters
        ----------
        destinations : mapping of int to Box
            The new box of each job to move.
        place : Box or None
            The box of the large job.
        """
        return Plan(self.steps(destinations), place)

    def objective(self, solution: Plan) -> int:
        """Return the cost of the moved jobs; parking is free of charge."""
        return self.cost_of(solution.steps)

    def violations(self, solution: Plan) -> list[Violation]:
        """Execute the plan step by step, and check every step."""
        holder, found = self.executed(solution.steps)
        if solution.place is None:
            return [*found, Violation("place", "the large job has no box")]
        return found + self.placed(holder, len(self.running), solution.place, self.incoming)

    def solution_to_json(self, solution: Plan) -> dict[str, Any]:
        """Return the steps in order, jobs from 1, and the box of the large job."""
        place = None if solution.place is None else str(solution.place)
        return {"steps": steps_to_json(solution.steps), "place": place}

    def solution_from_json(self, fields: Mapping[str, Any]) -> Plan:
        """Return the plan written by `solution_to_json`."""
        given = fields if isinstance(fields, Mapping) else {}
        mistakes: list[str] = []
        steps = steps_from_json(given.get("steps"), mistakes)
        text = given.get("place")
        place = box_of_text(text) if isinstance(text, str) else None
        if place is None and text is not None:
            mistakes.append(f"place: {text!r}; expected a box such as '2x4x4@3,0,22'")
        if mistakes:
            raise InputError(*mistakes, field=self.name)
        return Plan(steps, place)

    def describe(self, solution: Plan | None = None) -> list[tuple[str, str]]:
        """Return the problem with the size of its program, or a plan step by step."""
        if solution is None:
            shapes = f"{self.incoming} nodes, shapes: {len(self.place_extents)}"
            return [*self.describe_torus(), ("large job", shapes), self.describe_program()]
        place = "-" if solution.place is None else str(solution.place)
        start = f"{self.named(len(self.running))} ({self.incoming}) in {place}"
        return [*self.describe_steps(solution.steps), ("start", start)]
