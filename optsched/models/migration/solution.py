"""Plans of a migration problem."""

from __future__ import annotations

from typing import NamedTuple

from optsched.boxes.box import Box
from optsched.models.running_jobs import Step, destinations_of


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
