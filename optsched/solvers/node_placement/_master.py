"""Linear and integer programs, whose columns may be found while they are solved, by HiGHS."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from optsched.models.export import highs_model
from optsched.models.program import Program
from optsched.solvers.anytime import Progress
from optsched.solvers.generic import LARGEST_INT, LONGEST_TIME
from optsched.solvers.highs import run_highs
from optsched.solvers.node_placement._types import Floats, Ints
from optsched.solvers.result import Limit

PRIMAL, DUAL = 4, 1
"""Strategies of simplex: dual after new limits of rows, by default primal after new columns."""

LARGEST_COST = 20
"""Bits of the largest objective coefficient in a program, which is scaled by a power of two."""


def scale_of(weights: Ints) -> float:
    """Return the power of two by which weights are scaled in a program."""
    return 2.0 ** -max(0, int(weights.max(initial=1)).bit_length() - LARGEST_COST)


class Master:
    """A program of most gain, whose columns are from 0 to a limit; its users count the work."""

    value: float  # gain of the last solution
    bound: float  # upper bound of the gain in integers
    solution: Floats  # of the linear program, by columns
    duals: Floats  # of its rows
    iterations: int  # of the simplex method
    nodes: int  # of branch and bound

    def __init__(
        self, progress: Progress, lower: Any, upper: Any, strategy: int = PRIMAL, **options: Any
    ) -> None:
        import highspy

        self._progress, self._strategy = progress, strategy
        self._limited = True
        self._highs = highs = highspy.Highs()
        highs.silent()
        for option, value in {"threads": 1, "mip_rel_gap": 0.0, **options}.items():
            highs.setOptionValue(option, value)
        highs.changeObjectiveSense(highspy.ObjSense.kMaximize)
        starts, nothing = np.zeros(len(upper), dtype=np.int32), np.empty(0)
        limits = (np.asarray(limit, dtype=float) for limit in (lower, upper))
        highs.addRows(len(upper), *limits, 0, starts, nothing.astype(np.int32), nothing)

    @property
    def rows(self) -> int:
        """Number of rows."""
        return int(self._highs.getNumRow())

    @property
    def columns(self) -> int:
        """Number of columns."""
        return int(self._highs.getNumCol())

    def add(self, gains: Any, most: Any, rows: Sequence[Ints], values: Sequence[Any]) -> None:
        """Add columns by their gains, limits, and the rows and values of their entries."""
        if not rows:
            return
        starts = np.cumsum([0, *map(len, rows)])
        self._highs.addCols(
            len(rows),
            np.asarray(gains, dtype=float),
            np.zeros(len(rows)),
            np.asarray(most, dtype=float),
            int(starts[-1]),
            starts[:-1].astype(np.int32),
            np.concatenate(rows).astype(np.int32),
            np.concatenate(values).astype(float),
        )

    def add_row(self, row: Floats, upper: float) -> None:
        """Add a row by its entry in each column, and its upper limit."""
        used = np.flatnonzero(row).astype(np.int32)
        self._highs.addRow(-math.inf, upper, len(used), used, row[used])

    def limit_rows(self, upper: Any) -> None:
        """Set the upper limits of the first rows, which have no lower ones then."""
        rows, lower = np.arange(len(upper), dtype=np.int32), np.full(len(upper), -math.inf)
        self._highs.changeRowsBounds(len(rows), rows, lower, np.asarray(upper, dtype=float))
        self._limited = True

    def limit_columns(self, most: Any) -> None:
        """Set the limits of the first columns."""
        columns = np.arange(len(most), dtype=np.int32)
        upper = np.asarray(most, dtype=float)
        self._highs.changeColsBounds(len(columns), columns, np.zeros(len(columns)), upper)
        self._limited = True

    def solve(self) -> bool:
        """Solve the linear program; return whether it was solved within the time limit."""
        import highspy

        highs = self._highs
        # of linear programs, HiGHS adds up the seconds of all runs
        seconds = highs.getRunTime() + max(1e-3, self._progress.seconds_left())
        highs.setOptionValue("time_limit", seconds)
        highs.setOptionValue("simplex_strategy", DUAL if self._limited else self._strategy)
        self._limited = False
        run_highs(highs)
        self.iterations = max(0, highs.getInfo().simplex_iteration_count)
        if highs.getModelStatus() != highspy.HighsModelStatus.kOptimal:
            return False
        self.value, solution = highs.getObjectiveValue(), highs.getSolution()
        self.solution, self.duals = np.array(solution.col_value), np.array(solution.row_dual)
        return True

    def solve_integer(
        self, until: float, nodes: float, start: Ints | None = None, looks: float = math.inf
    ) -> Ints | None:
        """Return the best integer solution found within limits, or None."""
        import highspy

        highs = self._highs
        every = np.arange(self.columns, dtype=np.int32)
        integer = np.full(len(every), int(highspy.HighsVarType.kInteger), dtype=np.uint8)
        highs.changeColsIntegrality(len(every), every, integer)
        highs.setOptionValue("time_limit", max(1e-3, self._progress.seconds_left(until)))
        highs.setOptionValue("mip_max_nodes", int(nodes))
        if start is not None:
            given = highspy.HighsSolution()
            given.col_value = start.astype(float).tolist()
            highs.setSolution(given)
        run_highs(highs, most_looks=looks)
        info = highs.getInfo()
        self.iterations = max(0, info.simplex_iteration_count)
        self.nodes = max(0, info.mip_node_count)
        self.bound = info.mip_dual_bound
        found = None
        if info.primal_solution_status == int(highspy.SolutionStatus.kSolutionStatusFeasible):
            found = np.rint(highs.getSolution().col_value).astype(np.int64)
        integer[:] = int(highspy.HighsVarType.kContinuous)
        highs.changeColsIntegrality(len(every), every, integer)
        return found


WORK_PER_COLUMN = 0.1
"""Simplex iterations that take as long as what a column takes before the search."""


def best_vector(
    program: Program, progress: Progress, seed: int
) -> tuple[Ints | None, Limit | None]:
    """Return a vector of least objective, None for none, and the limit that ended the search."""
    import highspy

    progress.work += WORK_PER_COLUMN * program.num_variables
    progress.check()
    highs = highs_model(program)
    options: dict[str, Any] = {
        "threads": 1,
        "random_seed": seed % LARGEST_INT,
        # of many columns and few rows, presolve takes longer than the search
        "presolve": "off",
        "mip_rel_gap": 0.0,
        "mip_abs_gap": 0.99,
        "mip_max_nodes": int(min(1 + progress.work_left(), LARGEST_INT)),
        "time_limit": min(progress.seconds_left(), LONGEST_TIME),
    }
    for name, value in options.items():
        highs.setOptionValue(name, value)
    run_highs(highs)
    info = highs.getInfo()
    progress.work += max(0, info.simplex_iteration_count) + max(0, info.mip_node_count)
    ended = highspy.HighsModelStatus
    limits = {
        ended.kTimeLimit: Limit.TIME,
        ended.kSolutionLimit: Limit.WORK,
        ended.kInterrupt: Limit.INTERRUPT,
    }
    status = highs.getModelStatus()
    if status not in (ended.kOptimal, ended.kInfeasible, *limits):
        raise ArithmeticError(f"HiGHS: {highs.modelStatusToString(status)}")
    if info.primal_solution_status != int(highspy.SolutionStatus.kSolutionStatusFeasible):
        return None, limits.get(status)
    x: Ints = np.rint(highs.getSolution().col_value).astype(np.int64)
    if not program.admits(x):
        raise ArithmeticError("HiGHS: the rounded solution is not feasible")
    return x, limits.get(status)
