"""Files that stay on a node until the next start, for CP-SAT.

Who finds a file that its last user left must say why no job started on the node in between: each
other job is elsewhere, starts before the file is left, or not before the finder. These reasons are
variables that may be true only where they hold; pairs of jobs share them.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from optsched.models.data_placement import DataPlacement

if TYPE_CHECKING:
    from ortools.sat.python.cp_model import CpModel, IntVar


class LeftFiles:
    """States who finds a file that may have been left.

    Parameters
    ----------
    model : CpModel
        Where it is stated.
    problem : DataPlacement
        With files that are kept until the next start.
    start : sequence of IntVar
        The start of each job.
    on : sequence of sequences of IntVar
        Whether each job is on each node, in the order of places.
    """

    def __init__(
        self,
        model: CpModel,
        problem: DataPlacement,
        start: Sequence[IntVar],
        on: Sequence[Sequence[IntVar]],
    ) -> None:
        self._model = model
        self._problem = problem
        self._walltimes = problem.walltimes.tolist()
        self._start = start
        self._on = on
        self._jobs = range(len(start))

    def state_user(self, finds: IntVar, i: int, j: int) -> None:
        """Let job j find what job i uses only until it is evicted; both are on one node."""
        model = self._model
        soon = model.new_bool_var("")
        end = self._start[i] + self._walltimes[i]
        model.add(self._start[j] <= end).only_enforce_if(soon)
        for k in self._jobs:
            if k not in (i, j):
                elsewhere = ~self._together[min(i, k)][max(i, k)]
                reasons = (elsewhere, self._before_end[k][i], self._not_before[k][j])
                model.add_bool_or(soon, *reasons).only_enforce_if(finds)

    def state_entry(self, finds: IntVar, entry: int, job: int, place: int) -> None:
        """Let a job find a resident file, of the node at a place, only until it is evicted."""
        model = self._model
        node, _, _, _, until = self._problem.resident[entry].tolist()
        if until == 0 and self._problem.started[node]:
            model.add(self._start[job] == 0).only_enforce_if(finds)
            return
        soon = model.new_bool_var("")
        model.add(self._start[job] <= until).only_enforce_if(soon)
        for k in self._jobs:
            if k != job:
                early = model.new_bool_var("")
                model.add(self._start[k] < until).only_enforce_if(early)
                reasons = (~self._on[k][place], early, self._not_before[k][job])
                model.add_bool_or(soon, *reasons).only_enforce_if(finds)

    @cached_property
    def _together(self) -> list[list[IntVar]]:
        """Of jobs i < k: true if they are on one node."""
        model = self._model
        pairs = [[model.new_bool_var("") for _ in self._jobs] for _ in self._jobs]
        for i in self._jobs:
            for k in range(i + 1, len(self._jobs)):
                for here, there in zip(self._on[i], self._on[k]):
                    model.add_bool_or(~here, ~there, pairs[i][k])
        return pairs

    @cached_property
    def _before_end(self) -> list[list[IntVar]]:
        """Of jobs k, i: job k starts before job i ends, if true."""
        model = self._model
        pairs = [[model.new_bool_var("") for _ in self._jobs] for _ in self._jobs]
        for k in self._jobs:
            for i in self._jobs:
                end = self._start[i] + self._walltimes[i]
                model.add(self._start[k] < end).only_enforce_if(pairs[k][i])
        return pairs

    @cached_property
    def _not_before(self) -> list[list[IntVar]]:
        """Of jobs k, j: job k starts no earlier than job j, if true."""
        model = self._model
        pairs = [[model.new_bool_var("") for _ in self._jobs] for _ in self._jobs]
        for k in self._jobs:
            for j in self._jobs:
                model.add(self._start[k] >= self._start[j]).only_enforce_if(pairs[k][j])
        return pairs
