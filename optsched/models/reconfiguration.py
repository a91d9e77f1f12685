"""Reconfiguration: running jobs of a torus are moved, and waiting ones started, in one decision.

Model page: ``models/reconfiguration/README.md``.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from optsched.arrays import Ints
from optsched.boxes.box import Box, Triple
from optsched.errors import InputError
from optsched.fields import LARGEST_FIELD, Fields, Integer
from optsched.models.fields import Integers, Numbers
from optsched.models.migration import MovingFormulation
from optsched.models.problem import Violation, listed, named, wrong_length
from optsched.models.program import Program, ProgramBuilder, formulations
from optsched.models.schema import declared, field, labels
from optsched.models.torus import MigratingProblem, Step, boxes_of_texts, destinations_of
from optsched.registry import models

__all__ = ["Arrangement", "Reconfiguration"]

MOST = 10**15
"""Largest objective value of a problem, which floating-point numbers represent exactly."""


class Arrangement(NamedTuple):
    """A new arrangement of jobs: the steps that move running ones, and boxes of waiting ones.

    Parameters
    ----------
    steps : tuple of Step
        Moves and parkings of running jobs in order.
    boxes : tuple of Box or None
        The box of each waiting job, which starts after all steps; None for a job that goes on
        waiting.
    """

    steps: tuple[Step, ...]
    boxes: tuple[Box | None, ...]

    @property
    def destinations(self) -> dict[int, Box]:
        """The new box of each moved job."""
        return destinations_of(self.steps)


def _dearest_plan(fields: Fields) -> int:
    """Return the cost of moving all movable jobs, in node-seconds."""
    movable = fields["movable"]
    jobs = range(len(fields["running"])) if movable is None else movable
    return sum(fields["sizes"][job] * fields["elapsed"][job] for job in jobs)


@models.register("reconfiguration")
@declared
class Reconfiguration(MigratingProblem[Arrangement]):
    """Waiting jobs of the scan window that need boxes, and running jobs that may be moved.

    Raises
    ------
    InputError
        If running jobs overlap each other or a hole, do not fit into their boxes or cost more than
        10^12 node-seconds, lengths do not match, or the objective may exceed 10^15; the message
        lists all mistakes.

    References
    ----------
    K. Li, M. Malawski, J. Nabrzyski, "Topology-aware scheduling on Blue Waters with proactive queue
    scanning and migration-based job placement", JSSPP 2015, sections 4 to 6.

    Examples
    --------
    >>> problem = Reconfiguration(
    ...     (5, 1, 1), ["1x1x1@1,0,0"], [1], [60], [3, 1], required=[0], wrap=(False,) * 3
    ... )
    >>> both = problem.arrangement({0: Box(3, 0, 0, 1, 1, 1)}, [Box(0, 0, 0, 3, 1, 1), None])
    >>> problem.violations(both), problem.objective(both)  # a move of 60, and a node left out
    ([], 121)
    """

    waiting: tuple[int, ...] = field(
        Integers(1, as_tuple=True),
        "size of each waiting job of the scan window in nodes, in the order of the queue",
        symbol="s_i",
    )
    profits: tuple[int, ...] = field(
        Integers(0, like="waiting", as_tuple=True),
        "profit of starting each waiting job; p_i = s_i if left out",
        symbol="p_i",
        default=None,
        filled=lambda fields: fields["waiting"],
    )
    required: tuple[int, ...] = field(
        Numbers("waiting job", of="waiting", distinct=True),
        "waiting jobs that must start, such as the large job",
        symbol="R",
        default=(),
    )
    worth: int = field(
        Integer(0, LARGEST_FIELD),
        "node-seconds of migration cost that a unit of profit is worth; if left out, one more "
        "than all movable jobs cost, so that profit comes first",
        symbol="w",
        default=None,
        filled=lambda fields: 1 + _dearest_plan(fields),
    )
    waiting_jobs: Sequence[str | int] | None = labels("waiting", "a label for each waiting job")

    sense = "min"
    default_solver = "highs"

    @staticmethod
    def joint_mistakes(fields: Fields, *, on_file: bool) -> list[str]:
        """Return the mistakes in running jobs, and whether the objective may be too large."""
        found = MigratingProblem.joint_mistakes(fields, on_file=on_file)
        cost, profit = _dearest_plan(fields), sum(fields["profits"])
        if fields["worth"] * profit + cost > MOST:
            found.append(
                f"worth: {fields['worth']} for each of {profit} units of profit, beside migrations "
                f"of {cost} node-seconds; expected at most {MOST} in all"
            )
        return found

    @property
    def size(self) -> str:
        """Running jobs, waiting jobs and torus: ``77+10@8x8x8``."""
        sides = "x".join(map(str, self.torus))
        return f"{len(self.running)}+{len(self.waiting)}@{sides}"

    @cached_property
    def alike(self) -> tuple[tuple[int, ...], ...]:
        """The waiting jobs by class: those of equal size and profit, all required or none."""
        found: dict[tuple[int, int, bool], list[int]] = {}
        for job, (size, profit) in enumerate(zip(self.waiting, self.profits)):
            found.setdefault((size, profit, job in self.required), []).append(job)
        return tuple(map(tuple, found.values()))

    def choices(self) -> Iterator[tuple[int, tuple[Triple, ...], Box | None]]:
        """Yield the first job of each class, and the movable jobs: number, extents, present box."""
        for jobs in self.alike:
            yield len(self.running) + jobs[0], self.admitted(self.waiting[jobs[0]]), None
        for job in self.movers:
            yield job, self.extents(job), self.running[job]

    def named(self, job: int) -> str:
        """Return the name of a job, of `HOLE` or of `ENDING` for messages."""
        waiting = job - len(self.running)
        if waiting < 0:
            return self.name_of_running(job)
        if self.waiting_jobs is None:
            return f"waiting job {waiting + 1}"
        return f"job {self.waiting_jobs[waiting]}"

    def arrangement(
        self, destinations: Mapping[int, Box], boxes: Sequence[Box | None]
    ) -> Arrangement:
        """Return an arrangement, with the steps in the order of `ordered`.

        Parameters
        ----------
        destinations : mapping of int to Box
            The new box of each running job to move.
        boxes : sequence of Box or None
            The box of each waiting job, None for a job that goes on waiting.
        """
        return Arrangement(self.steps(destinations), tuple(boxes))

    def objective(self, solution: Arrangement) -> int:
        """Return the cost of the moved jobs, and the worth of the waiting jobs left out."""
        left_out = [p for p, box in zip(self.profits, solution.boxes) if box is None]
        return self.cost_of(solution.steps) + self.worth * sum(left_out)

    def violations(self, solution: Arrangement) -> list[Violation]:
        """Execute the arrangement step by step, then start the waiting jobs one by one."""
        holder, found = self.executed(solution.steps)
        if wrong := wrong_length(solution.boxes, len(self.waiting)):
            return found + wrong
        for job, (size, box) in enumerate(zip(self.waiting, solution.boxes)):
            number = len(self.running) + job
            if box is not None:
                found += self.placed(holder, number, box, size)
            elif job in self.required:
                found.append(Violation("required", f"{self.named(number)} is not started"))
        return found

    def solution_to_json(self, solution: Arrangement) -> dict[str, Any]:
        """Return the steps in order, jobs from 1, and the box of each waiting job or null."""
        boxes = [None if box is None else str(box) for box in solution.boxes]
        return {"steps": self.steps_to_json(solution.steps), "box_of_job": boxes}

    def solution_from_json(self, fields: Mapping[str, Any]) -> Arrangement:
        """Return the arrangement written by `solution_to_json`."""
        given = fields if isinstance(fields, Mapping) else {}
        mistakes: list[str] = []
        steps = self.steps_from_json(given.get("steps"), mistakes)
        boxes = boxes_of_texts(given.get("box_of_job"))
        if boxes is None:
            mistakes.append("box_of_job: expected a list of boxes such as '2x4x4@3,0,22', or null")
        if mistakes or boxes is None:
            raise InputError(*mistakes, field=self.name)
        return Arrangement(steps, boxes)

    def describe(self, solution: Arrangement | None = None) -> list[tuple[str, str]]:
        """Return the problem with the size of its program, or an arrangement step by step."""
        names = named(self.waiting_jobs, self.waiting, "w")
        if solution is None:
            required = listed(names[job] for job in self.required)
            waiting = [("waiting", listed(names)), ("required", required)]
            return [*self.describe_torus(), *waiting, self.describe_program()]
        starts = [
            ("start", f"job {name} in {box}")
            for name, box in zip(names, solution.boxes)
            if box is not None
        ]
        waiting_on = listed(name for name, box in zip(names, solution.boxes) if box is None)
        return [*self.describe_steps(solution.steps), *starts, ("not started", waiting_on)]


@formulations.register("reconfiguration")
class ReconfigurationFormulation(MovingFormulation[Reconfiguration, Arrangement]):
    """Equations (1) to (5) of the model's page.

    The boxes of the waiting jobs are first, class by class, then for each movable job its present
    box, which stands for staying, and its possible new boxes. The jobs of a class, see
    `Reconfiguration.alike`, share the variables of its first job.
    """

    @cached_property
    def program(self) -> Program:
        """The program."""
        problem, running = self.problem, len(self.problem.running)
        first = [jobs[0] for jobs in problem.alike]
        most = np.array([len(jobs) for jobs in problem.alike], dtype=np.int64)
        least = np.where([job in problem.required for job in first], most, 0)
        worth = problem.worth * np.array([problem.profits[job] for job in first], dtype=np.int64)
        builder = ProgramBuilder("min")
        v = self.add_boxes(builder, "start{}")
        z = builder.variables(
            "started{}", [job + 1 for job in first], lower=least, upper=most, objective=-worth
        )
        for number, job in enumerate(first):
            boxes = v[self.variables.job == running + job]
            builder.row(f"start{job + 1}", (1, boxes), (-1, z[number : number + 1]), equal=0)
        self.add_box_rows(builder, v)
        areas = [min(map(math.prod, shapes), default=0) for _, shapes, _ in problem.choices()]
        of_running = sum(areas[len(first) :])
        area = int(np.count_nonzero(problem.place_room())) - of_running
        builder.row("area", (np.array(areas[: len(first)], dtype=np.int64), z), at_most=area)
        return builder.build(offset=int((worth * most).sum()))

    def decode(self, x: Ints) -> Arrangement:
        """Return the arrangement of a vector; of a class, the first jobs start."""
        running = len(self.problem.running)
        boxes: list[Box | None] = [None] * len(self.problem.waiting)
        not_placed = {running + jobs[0]: iter(jobs) for jobs in self.problem.alike}
        destinations, starts = self.chosen(x)
        for job, box in starts:
            # skip boxes beyond the number of jobs of the class
            if (waiting := next(not_placed[job], None)) is not None:
                boxes[waiting] = box
        return self.problem.arrangement(destinations, boxes)

    def encode(self, solution: Arrangement) -> Ints:
        """Return the 0-1 vector of an arrangement, which does not distinguish jobs of a class.

        Nor does the vector state the order of the moves.
        """
        problem, running = self.problem, len(self.problem.running)
        first_of = {job: jobs[0] for jobs in problem.alike for job in jobs}
        kept = dict(enumerate(problem.running)) | solution.destinations
        started = [
            (running + first_of[job], box)
            for job, box in enumerate(solution.boxes)
            if box is not None
        ]
        count = dict.fromkeys(first_of.values(), 0)
        for job, _ in started:
            count[job - running] += 1
        boxes = self.vector([*kept.items(), *started])
        return np.concatenate((boxes, np.array([*count.values()], dtype=np.int64)))
