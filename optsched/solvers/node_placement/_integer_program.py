"""Branch and cut by HiGHS for programs that column generation leaves."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from optsched.models.export import highs_model
from optsched.models.program import Program
from optsched.solvers.generic import LARGEST_INT, LONGEST_TIME
from optsched.solvers.highs import run_highs
from optsched.solvers.node_placement._effort import Effort
from optsched.solvers.result import Limit

Ints = NDArray[np.int64]

WORK_PER_COLUMN = 0.1
"""Simplex iterations that take as long as what a column takes before the search."""


def best_vector(program: Program, effort: Effort, seed: int) -> tuple[Ints | None, Limit | None]:
    """Return a vector of least objective, or None if no vector is feasible.

    With a limit that ended the search, it is the best vector found, or None. Work is counted in
    simplex iterations and search nodes.

    Raises
    ------
    StoppedError
        If a limit is reached before the search.
    ArithmeticError
        If HiGHS fails, or its vector is not feasible once it is rounded.
    """
    import highspy

    effort.work += WORK_PER_COLUMN * program.num_variables
    effort.check()
    highs = highs_model(program)
    options: dict[str, Any] = {
        "threads": 1,
        "random_seed": seed % LARGEST_INT,
        # of many columns and few rows, presolve takes longer than the search
        "presolve": "off",
        "mip_rel_gap": 0.0,
        "mip_abs_gap": 0.99,
        "mip_max_nodes": int(min(1 + effort.work_left(), LARGEST_INT)),
        "time_limit": min(effort.seconds_left(), LONGEST_TIME),
    }
    for name, value in options.items():
        highs.setOptionValue(name, value)
    run_highs(highs)
    info = highs.getInfo()
    effort.work += max(0, info.simplex_iteration_count) + max(0, info.mip_node_count)
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
