"""The choice of jobs: an integer program whose rows are prices of the relaxation.

At any prices of chunks and licences from 0, the jobs that are placed cost no more than the room for
them is worth. A choice of jobs satisfies this for all prices if and only if the relaxation places
all of its jobs. So a few such rows, found as they are violated, stand for the relaxation.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from optsched.solvers.highs import run_highs
from optsched.solvers.node_placement._effort import Effort
from optsched.solvers.node_placement._master import LARGEST_COST, Prices
from optsched.solvers.node_placement._types import Instance, Ints

MOST_NODES = 2_000
"""Nodes of branch and bound for one choice."""

VIOLATED = 1e-7
"""Least relative violation of a new row."""

ROWS_EACH = 3
"""Most rows that are added for one choice."""

TOLERANCE = 2e-6
"""What HiGHS may leave out of the scaled objective."""

SECONDS_PER_RUN = 5e-3
SECONDS_PER_ENTRY = 2e-8
"""Nominal seconds of a run, and of an iteration of simplex for each row and column."""


class JobChoice:
    """The jobs of greatest weight that some prices of the relaxation allow.

    Parameters
    ----------
    instance : Instance
        Types, classes and kinds.
    effort : Effort
        Limits of the search.

    Attributes
    ----------
    bound : float
        Upper bound of the weight of all placements, by the last choice without slack.
    """

    def __init__(self, instance: Instance, effort: Effort) -> None:
        import highspy

        self._classes, self._effort = instance.classes, effort
        self.bound = math.inf
        classes = instance.classes
        number = len(classes.jobs)
        heaviest = int(classes.weights.max(initial=1))
        self._scale = 2.0 ** -max(0, heaviest.bit_length() - LARGEST_COST)
        self._highs = highs = highspy.Highs()
        highs.silent()
        for option, value in (
            ("threads", 1),
            ("mip_rel_gap", 0.0),
            ("mip_abs_gap", 0.0),
            # these searches take longer than branching
            ("mip_heuristic_run_rins", False),
            ("mip_heuristic_run_rens", False),
            ("mip_heuristic_run_root_reduced_cost", False),
        ):
            highs.setOptionValue(option, value)
        highs.changeObjectiveSense(highspy.ObjSense.kMaximize)
        nothing = np.empty(0, dtype=np.int32)
        highs.addCols(
            number,
            classes.weights * self._scale,
            np.zeros(number),
            classes.jobs.astype(float),
            0,
            np.zeros(number, dtype=np.int32),
            nothing,
            nothing.astype(float),
        )
        every = np.arange(number, dtype=np.int32)
        integer = np.full(number, int(highspy.HighsVarType.kInteger), dtype=np.uint8)
        highs.changeColsIntegrality(number, every, integer)

    def add(self, rows: Iterable[tuple[Prices, float]], jobs: Ints) -> bool:
        """Add the rows that the number of jobs of each class violates most; return if any does.

        A row is given by its prices and the worth of the room at these.
        """
        classes, violated = self._classes, []
        for prices, room in rows:
            cost = classes.chunks * prices.chunks[classes.type_of]
            cost += classes.licences @ prices.licences
            if room > 0 and cost @ jobs > room * (1 + VIOLATED):
                violated.append(cost / room)
        violated.sort(key=lambda cost: -float(cost @ jobs))
        for cost in violated[:ROWS_EACH]:
            used = np.flatnonzero(cost).astype(np.int32)
            self._highs.addRow(-math.inf, 1.0, len(used), used, cost[used])
        return bool(violated)

    def solve(self, slack: float, until: float) -> Ints | None:
        """Return the number of jobs of each class, or None if none is found in time.

        They leave a share `slack` of the room's worth at all prices. The search ends at a number of
        nodes, or at a share `until` of the budget.
        """
        import highspy

        highs, effort = self._highs, self._effort
        rows, columns = highs.getNumRow(), highs.getNumCol()
        every = np.arange(rows, dtype=np.int32)
        highs.changeRowsBounds(rows, every, np.full(rows, -math.inf), np.full(rows, 1.0 - slack))
        price = SECONDS_PER_RUN + SECONDS_PER_ENTRY * rows * columns
        highs.setOptionValue("time_limit", max(1e-3, effort.seconds_left(until)))
        nodes = int(min(MOST_NODES, 1 + effort.work_left(until) / price))
        highs.setOptionValue("mip_max_nodes", nodes)
        run_highs(highs)
        info = highs.getInfo()
        iterations = max(0, info.simplex_iteration_count)
        effort.work += SECONDS_PER_RUN + SECONDS_PER_ENTRY * rows * columns * iterations
        if not slack and math.isfinite(info.mip_dual_bound):
            self.bound = min(self.bound, (info.mip_dual_bound + TOLERANCE) / self._scale)
        if info.primal_solution_status != int(highspy.SolutionStatus.kSolutionStatusFeasible):
            return None
        jobs: Ints = np.rint(highs.getSolution().col_value).astype(np.int64)
        return jobs
