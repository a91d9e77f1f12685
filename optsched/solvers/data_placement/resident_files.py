"""Constraints of CP-SAT on files that stay resident until the next start on their node.

A job finds a resident file that is no longer in use only if no job has started on the node in
between: each other job is on another node, starts before the last use ends, or does not start
before the finder. Each of these reasons is a variable that implies it, shared by pairs of jobs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from optsched.models.data_placement import DataPlacement

if TYPE_CHECKING:
    from ortools.sat.python.cp_model import CpModel, IntVar


class ResidentFiles:
    """Constraints of a model on jobs that find a file which is kept until the next start.

    `start` has the start of each job, `on` whether each job is on each node of the model.
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
        self._known: dict[tuple[str | int, ...], IntVar] = {}

    def add_user(self, finds: IntVar, i: int, j: int) -> None:
        """Let job j find the file of job i on the same node only until its eviction."""
        model = self._model
        soon = model.new_bool_var("")
        end = self._start[i] + self._walltimes[i]
        model.add(self._start[j] <= end).only_enforce_if(soon)
        for k in self._jobs:
            if k not in (i, j):
                reasons = (
                    self._on_different_nodes(i, k),
                    self._before_end(k, i),
                    self._not_before(k, j),
                )
                model.add_bool_or(soon, *reasons).only_enforce_if(finds)

    def add_entry(self, finds: IntVar, entry: int, job: int, place: int) -> None:
        """Let a job find a file that is resident now only until its eviction."""
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
                reasons = (~self._on[k][place], early, self._not_before(k, job))
                model.add_bool_or(soon, *reasons).only_enforce_if(finds)

    def _on_different_nodes(self, i: int, k: int) -> IntVar:
        """Return a variable that implies that two jobs are on different nodes."""
        one, other = min(i, k), max(i, k)
        if (different := self._known.get(("different nodes", one, other))) is None:
            different = self._new("different nodes", one, other)
            for here, there in zip(self._on[one], self._on[other]):
                self._model.add_bool_or(~here, ~there, ~different)
        return different

    def _before_end(self, k: int, i: int) -> IntVar:
        """Return a variable that implies that job k starts before job i ends."""
        if (before := self._known.get(("before end", k, i))) is None:
            before = self._new("before end", k, i)
            end = self._start[i] + self._walltimes[i]
            self._model.add(self._start[k] < end).only_enforce_if(before)
        return before

    def _not_before(self, k: int, j: int) -> IntVar:
        """Return a variable that implies that job k does not start before job j."""
        if (after := self._known.get(("not before", k, j))) is None:
            after = self._new("not before", k, j)
            self._model.add(self._start[k] >= self._start[j]).only_enforce_if(after)
        return after

    def _new(self, *key: str | int) -> IntVar:
        self._known[key] = self._model.new_bool_var("")
        return self._known[key]
