"""Reservations of all waiting jobs on the nodes of a site, for conservative backfilling."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING

import numpy as np

from optsched.compiled import Kernel
from optsched.machines.site import Held, SiteMachine
from optsched.policies.parts.site_decisions import SiteDecisions
from optsched.simulator.actions import Action
from optsched.simulator.compiled_decisions import CompiledRun, hear
from optsched.simulator.system import System

if TYPE_CHECKING:
    from optsched.simulator.problem_solver import NoProblems, ProblemSolver


class NodeReservations(SiteDecisions):
    """The start and the nodes that are reserved for each waiting job.

    Parameters
    ----------
    system : System
        The system before the first event.
    machine : SiteMachine
        Its machine.
    """

    def __init__(self, system: System, machine: SiteMachine) -> None:
        from optsched.policies.parts import _site_closed, _site_reservations

        super().__init__(len(system.submit))
        self._bind: Callable[..., Callable[[], int]] = Kernel.bound
        queues, self._kernels = machine.queues, _site_reservations
        closed = _site_closed.closed_nodes(queues, system.submit[0])
        self.tables = _site_reservations.new_reservations(
            *(machine.asked, machine.nodes, closed, np.array(system.demands, dtype=np.int64)),
            *(np.array(system.requested_time, dtype=np.float64), closed.of_queue[queues.of_job]),
            tier=np.array(queues.tier),
        )

    @property
    def promised(self) -> Mapping[int, float]:
        """The start that is reserved for each waiting job, if any: none moves later."""
        jobs = self.tables.order[: self.tables.waiting[0]]
        starts = zip(jobs.tolist(), self.tables.start[jobs].tolist())
        return {job: start for job, start in starts if start < np.inf}

    def actions(self, system: System) -> Iterator[Action]:
        """Update the reservations, and start the jobs whose reservations begin."""
        from optsched.simulator._core import DONE

        if not hasattr(self, "decide"):
            self._lengthen()
        hear(self._news, system)
        while self.decide() != DONE:
            self._lengthen()
        yield from self._stated()

    def compiled(self, run: CompiledRun) -> NodeReservations:
        """Return the decisions of a run."""
        self._news, self._bind = run.news, run.bind
        self._lengthen()
        return self

    def answer(self, problem_solver: ProblemSolver | NoProblems) -> None:
        """Let the tables be longer."""
        self._lengthen()

    def place(self, job: int, value: float) -> Held:
        """Return the nodes that are reserved for a job."""
        from optsched.policies.parts._site_lines import NONE

        table = self.tables
        entries, entry = [], int(table.first[job])
        while entry != NONE:
            entries.append(entry)
            entry = int(table.next[entry])
        return Held(int(table.alternative[job]), table.node[entries], table.chunks[entries])

    def _lengthen(self) -> None:
        self.tables = self._kernels.with_room(self.tables)
        self.decide = self._bind(self._kernels.decide, self.tables, self._news)
