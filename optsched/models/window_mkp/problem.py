"""The window knapsack: jobs of a scheduling window into contiguous free slots.

Model page: ``models/window-mkp/README.md``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from optsched.errors import InputError
from optsched.models.fields import FieldChecks
from optsched.models.problem import Problem, Violation
from optsched.registry import models

Assignment = tuple[int, ...]
"""The slot of each job in order, from 0; -1 for a job that is not placed."""

NOT_PLACED = -1


@models.register("window-mkp")
@dataclass(frozen=True, eq=False, init=False)
class WindowMKP(Problem[Assignment]):
    """0-1 multiple knapsack of a window of jobs into free slots (Yang et al. 2014, eq. 1-5).

    Parameters
    ----------
    weights : array_like of int, shape (jobs,)
        Size of each job, in nodes.
    capacities : array_like of int, shape (slots,)
        Size of each slot, in nodes.
    profits : array_like of int, shape (jobs,), optional
        Profit of placing each job; its size if left out, as in the paper.
    jobs : sequence, optional
        A label for each job, for people; its number in the window if left out.
    slots : sequence, optional
        A label for each slot, for people; its number if left out.

    Raises
    ------
    InputError
        If a size is below 1, a capacity or profit below 0, or lengths do not match; all mistakes
        at once.

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

    weights: NDArray[np.int64]
    capacities: NDArray[np.int64]
    profits: NDArray[np.int64]
    jobs: Sequence[str | int] | None
    slots: Sequence[str | int] | None

    sense = "max"
    default_solver = "branch-and-bound"

    def __init__(
        self,
        weights: ArrayLike,
        capacities: ArrayLike,
        profits: ArrayLike | None = None,
        jobs: Sequence[str | int] | None = None,
        slots: Sequence[str | int] | None = None,
    ) -> None:
        check = FieldChecks(self.name)
        sizes = check.integers("weights", weights, at_least=1)
        room = check.integers("capacities", capacities, at_least=0)
        worth = sizes
        if profits is not None:
            worth = check.integers("profits", profits, at_least=0)
            check.same_length("profits", worth, "weights", sizes)
        job_labels, slot_labels = check.labels("jobs", jobs), check.labels("slots", slots)
        if job_labels is not None:
            check.same_length("jobs", job_labels, "weights", sizes)
        if slot_labels is not None:
            check.same_length("slots", slot_labels, "capacities", room)
        check.done()
        for field, value in (
            ("weights", sizes),
            ("capacities", room),
            ("profits", worth),
            ("jobs", job_labels),
            ("slots", slot_labels),
        ):
            object.__setattr__(self, field, value)

    @property
    def size(self) -> str:
        """Jobs x slots."""
        return f"{len(self.weights)}x{len(self.capacities)}"

    def objective(self, solution: Assignment) -> int:
        """Return the profit of the placed jobs, equation (1)."""
        profits = self.profits.tolist()
        return sum(profits[job] for job, slot in enumerate(solution) if slot != NOT_PLACED)

    def violations(self, solution: Assignment) -> list[Violation]:
        """Check equations (2) and (3).

        That a job is in one slot at most (3) is in the form of a solution; what is checked is that
        every job is there once, that the slots exist, and that no slot is overfull (2).
        """
        if not isinstance(solution, tuple | list | Sequence | np.ndarray):
            kind = type(solution).__name__
            return [Violation("form", f"a {kind}; expected a sequence of slots")]
        if len(solution) != len(self.weights):
            jobs = len(self.weights)
            return [Violation("once", f"{len(solution)} entries for {jobs} jobs")]
        room = self.capacities.tolist()
        found = []
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

    def to_json(self) -> dict[str, Any]:
        """Return weights, capacities, profits where they differ from the weights, and labels."""
        fields: dict[str, Any] = {
            "weights": self.weights.tolist(),
            "capacities": self.capacities.tolist(),
        }
        if not np.array_equal(self.profits, self.weights):
            fields["profits"] = self.profits.tolist()
        if self.jobs is not None:
            fields["jobs"] = list(self.jobs)
        if self.slots is not None:
            fields["slots"] = list(self.slots)
        return fields

    @classmethod
    def from_json(cls, fields: Mapping[str, Any]) -> WindowMKP:
        """Build the problem from a snapshot's fields."""
        required, optional = ("weights", "capacities"), ("profits", "jobs", "slots")
        check = FieldChecks(cls.name)
        check.names(fields, required=required, optional=optional)
        known = {name: fields[name] for name in (*required, *optional) if name in fields}
        try:
            problem = cls(**{"weights": [], "capacities": [], **known})
        except InputError as error:
            check.mistakes += error.mistakes
        check.done()
        return problem

    def solution_to_json(self, solution: Assignment) -> dict[str, Any]:
        """Return the number of each job's slot, from 1; null for a job that is not placed."""
        return {"slot_of_job": [None if slot == NOT_PLACED else slot + 1 for slot in solution]}

    def solution_from_json(self, fields: Mapping[str, Any]) -> Assignment:
        """Return the assignment written by `solution_to_json`."""
        slots = fields.get("slot_of_job") if isinstance(fields, Mapping) else None
        if not isinstance(slots, list) or any(
            slot is not None and (isinstance(slot, bool) or not isinstance(slot, int) or slot < 1)
            for slot in slots
        ):
            raise InputError("expected slot numbers from 1, or null", field="slot_of_job")
        return tuple(NOT_PLACED if slot is None else slot - 1 for slot in slots)

    def describe(self, solution: Assignment | None = None) -> list[tuple[str, str]]:
        """Return the slots with the jobs in them, and the jobs that wait."""
        jobs = self.jobs or [str(job + 1) for job in range(len(self.weights))]
        slots = self.slots or [str(slot + 1) for slot in range(len(self.capacities))]
        named = [f"{job} ({weight})" for job, weight in zip(jobs, self.weights)]
        sized = [f"{slot} ({capacity})" for slot, capacity in zip(slots, self.capacities)]
        if solution is None:
            return [("jobs", " ".join(named)), ("slots", " ".join(sized))]
        lines = []
        for number, slot in enumerate(sized):
            inside = [name for name, where in zip(named, solution) if where == number]
            lines.append((f"slot {slot}", " ".join(inside) or "-"))
        waiting = [name for name, where in zip(named, solution) if where == NOT_PLACED]
        lines.append(("not placed", " ".join(waiting) or "-"))
        return lines
