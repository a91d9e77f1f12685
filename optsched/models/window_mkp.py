"""The window knapsack: contiguous free slots for the jobs of a scheduling window.

Model page: ``models/window-mkp/README.md``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from optsched.arrays import Ints
from optsched.errors import InputError
from optsched.models.fields import Integers, from_one
from optsched.models.problem import Choice, Problem, Violation, listed, named, wrong_length
from optsched.models.program import Formulation, Program, ProgramBuilder, formulations
from optsched.models.schema import declared, field, labels
from optsched.registry import models

__all__ = ["NOT_PLACED", "Assignment", "WindowMKP"]

Assignment = tuple[int, ...]
"""The slot of each job in order, from 0; -1 for a job that is not placed."""

NOT_PLACED = -1

MOST_STEPS = 1_000_000
"""Steps after which the list of equally good solutions counts as too long."""


@models.register("window-mkp")
@declared
class WindowMKP(Problem[Assignment]):
    """0-1 multiple knapsack of a window of jobs into free slots (Yang et al. 2014, eq. 1-5).

    Raises
    ------
    InputError
        If a size, capacity or profit is below 0, or lengths do not match; the message
        lists all mistakes.

    Notes
    -----
    A solution is a tuple with the slot of each job, from 0, and -1 for a job that is not placed.

    References
    ----------
    X. Yang, Z. Zhou, W. Tang, X. Zheng, J. Wang, Z. Lan, "Balancing job performance with system
    performance via locality-aware scheduling on torus-connected systems", IEEE Cluster 2014.

    Examples
    --------
    >>> problem = WindowMKP(weights=[6, 4, 3, 1, 2], capacities=[3, 6, 6])
    >>> problem.objective((1, 2, 0, -1, 2))
    15
    >>> problem.violations((1, 2, 0, 2, 2))
    [Violation(constraint='capacity', detail='slot 3 of size 6 holds jobs of size 7')]
    """

    weights: Ints = field(Integers(0), "size of each job, in nodes", symbol="n, w_j")
    capacities: Ints = field(Integers(0), "size of each slot, in nodes", symbol="m, C_i")
    profits: Ints = field(
        Integers(0, like="weights"),
        "profit of starting each job; its size if left out, as in the paper",
        symbol="p_j",
        default=None,
        filled=lambda fields: fields["weights"],
    )
    jobs: Sequence[str | int] | None = labels(
        "weights", "a label for each job, its number in the trace for instance"
    )
    slots: Sequence[str | int] | None = labels(
        "capacities", "a label for each slot, its first node for instance"
    )

    sense = "max"
    default_solver = "branch-and-bound"

    @property
    def size(self) -> str:
        """Jobs x slots."""
        return f"{len(self.weights)}x{len(self.capacities)}"

    def objective(self, solution: Assignment) -> int:
        """Return the profit of the placed jobs, equation (1)."""
        profits = self.profits.tolist()
        return sum(profits[job] for job, slot in enumerate(solution) if slot != NOT_PLACED)

    def choice(self, objective: int) -> Choice:
        """Return whether there is one job, all of several are placed, or some have to wait."""
        return choice_among(len(self.weights), objective, self.profits.sum())

    def equally_good(self, objective: int) -> list[Assignment]:
        """Return all assignments with an objective, the first job in the first slot first.

        Raises
        ------
        InputError
            If a million steps of the search do not suffice.
        """
        weights, profits = self.weights.tolist(), self.profits.tolist()
        room = self.capacities.tolist()
        rest = [sum(profits[job:]) for job in range(len(profits) + 1)]
        choice: list[int] = []
        found: list[Assignment] = []
        steps = 0

        def extend(job: int, missing: int) -> None:
            nonlocal steps
            steps += 1
            if steps > MOST_STEPS:
                problem = f"a window of {self.size} has too many equally good solutions to list"
                raise InputError(f"{problem}; expected a smaller window")
            if not 0 <= missing <= rest[job]:
                return
            if job == len(weights):
                found.append(tuple(choice))
                return
            for slot, left in enumerate(room):
                if weights[job] <= left:
                    room[slot] -= weights[job]
                    choice.append(slot)
                    extend(job + 1, missing - profits[job])
                    choice.pop()
                    room[slot] += weights[job]
            choice.append(NOT_PLACED)
            extend(job + 1, missing)
            choice.pop()

        extend(0, objective)
        return found

    def violations(self, solution: Assignment) -> list[Violation]:
        """Check that every job has one entry, slots exist, and no slot is overfull, equation (2).

        Equation (3), at most one slot for a job, holds by the form of a solution.
        """
        if not isinstance(solution, tuple | list | Sequence | np.ndarray):
            kind = type(solution).__name__
            return [Violation("form", f"a {kind}; expected a sequence of slots")]
        if found := wrong_length(solution, len(self.weights)):
            return found
        room = self.capacities.tolist()
        for job, (slot, weight) in enumerate(zip(solution, self.weights.tolist(), strict=True)):
            if slot == NOT_PLACED:
                continue
            if not 0 <= slot < len(room):
                found.append(Violation("slot", f"job {job + 1} is put into slot {slot + 1}"))
                continue
            room[slot] -= weight
        for slot, left in enumerate(room):
            if left < 0:
                size = int(self.capacities[slot])
                detail = f"slot {slot + 1} of size {size} holds jobs of size {size - left}"
                found.append(Violation("capacity", detail))
        return found

    def solution_to_json(self, solution: Assignment) -> dict[str, Any]:
        """Return the number of each job's slot, from 1; null for a job that is not placed."""
        return {"slot_of_job": [None if slot == NOT_PLACED else slot + 1 for slot in solution]}

    def solution_from_json(self, fields: Mapping[str, Any]) -> Assignment:
        """Return the assignment written by `solution_to_json`."""
        slots = from_one(fields.get("slot_of_job") if isinstance(fields, Mapping) else None)
        if slots is None:
            raise InputError("expected slot numbers from 1, or null", field="slot_of_job")
        return tuple(NOT_PLACED if slot is None else slot for slot in slots)

    def describe(self, solution: Assignment | None = None) -> list[tuple[str, str]]:
        """Return the slots with their jobs, and the waiting jobs.

        Profits other than sizes follow the size of a job: ``A (6, +9)``.
        """
        sizes: Sequence[Any] = self.weights.tolist()
        if not np.array_equal(self.profits, self.weights):
            sizes = [f"{w}, +{p}" for w, p in zip(self.weights, self.profits)]
        jobs, slots = named(self.jobs, sizes), named(self.slots, self.capacities)
        if solution is None:
            return [("jobs", " ".join(jobs)), ("slots", " ".join(slots))]
        places = [(f"slot {slot}", number) for number, slot in enumerate(slots)]
        return [
            (place, listed(job for job, at in zip(jobs, solution) if at == number))
            for place, number in [*places, ("not placed", NOT_PLACED)]
        ]


def choice_among(jobs: int, objective: int, total: int) -> Choice:
    """Return the data of the choice among jobs of a total profit, by the objective."""
    if jobs == 1:
        return Choice.ONE_JOB
    return Choice.CONTESTED if objective < total else Choice.ALL_PLACED


@formulations.register("window-mkp")
class WindowFormulation(Formulation[WindowMKP, Assignment]):
    """Equations (1) to (4) of the model's page.

    ``x[j, i]`` is 1 if job j is placed in slot i, and fixed to 0 if the job is larger.
    """

    @cached_property
    def program(self) -> Program:
        """The program, with variables x[j, i] by job."""
        weights, capacities = self.problem.weights, self.problem.capacities
        builder = ProgramBuilder("max")
        x = builder.variables(
            "x_job{}_slot{}",
            len(weights),
            len(capacities),
            upper=weights[:, None] <= capacities,
            objective=self.problem.profits[:, None],
        )
        builder.rows("capacity_slot{}", (weights, x.T), at_most=capacities)
        builder.rows("once_job{}", (1, x), at_most=1)
        return builder.build()

    def decode(self, x: Ints) -> Assignment:
        """Return the slot of each job."""
        jobs, slots = len(self.problem.weights), len(self.problem.capacities)
        if slots == 0:
            return (NOT_PLACED,) * jobs
        placed = np.asarray(x).reshape(jobs, slots)
        slot = np.where(placed.any(axis=1), placed.argmax(axis=1), NOT_PLACED)
        return tuple(slot.tolist())

    def encode(self, solution: Assignment) -> Ints:
        """Return the 0-1 vector of an assignment."""
        x = np.zeros((len(self.problem.weights), len(self.problem.capacities)), dtype=np.int64)
        for job, slot in enumerate(solution):
            if slot != NOT_PLACED:
                x[job, slot] = 1
        return x.ravel()
