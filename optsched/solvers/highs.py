"""HiGHS, for every problem with a formulation."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from optsched.models.export import highs_model
from optsched.registry import solvers
from optsched.solvers import interruption
from optsched.solvers.generic import GenericSolver, Outcome, Search, own_log
from optsched.solvers.result import Limit, Status


@solvers.register("highs")
@dataclass(frozen=True)
class Highs(GenericSolver):
    """Branch and cut by HiGHS, by default in one thread."""

    seconds_per_solve = 5e-4
    seconds_per_work = 3e-3
    default_work = 300
    requires = "highspy"
    _imports = ("highspy",)
    set_by: ClassVar[Mapping[str, str]] = {
        "time_limit": "a time limit",
        "mip_max_nodes": "a work limit",
        "random_seed": "a seed",
        "mip_rel_gap": "relative_gap",
        "output_flag": "-v",
    }

    def check_native(self) -> None:
        """Check the names and values of native options."""
        import highspy

        highs = highspy.Highs()
        highs.silent()
        known = [name for name in dir(highs.getOptions()) if not name.startswith("_")]

        def put(name: str, value: object) -> None:
            if highs.setOptionValue(name, value) != highspy.HighsStatus.kOk:
                raise ValueError

        self._set_native(known, put, "HiGHS")

    def run(self, search: Search) -> Outcome:
        """Search with HiGHS."""
        import highspy

        highs = highs_model(search.program)
        options: dict[str, Any] = {
            "threads": 1,
            **self.native,
            "random_seed": search.seed,
            "mip_rel_gap": self.relative_gap,
            "mip_max_nodes": search.node_limit(),
            "time_limit": search.seconds_left(),
        }
        for name, value in options.items():
            if value is not None:
                highs.setOptionValue(name, value)
        if search.start is not None:
            every = np.arange(search.program.num_variables, dtype=np.int32)
            highs.setSolution(len(every), every, search.start.astype(float))

        run_highs(highs, search, say=own_log(self.name))
        info = highs.getInfo()
        work = max(0, info.mip_node_count)
        ended = highspy.HighsModelStatus
        limit = None
        match status := highs.getModelStatus():
            case ended.kOptimal:
                claim = Status.OPTIMAL
            case ended.kTimeLimit:
                claim, limit = Status.FEASIBLE, Limit.TIME
            case ended.kSolutionLimit:
                claim, limit = Status.FEASIBLE, Limit.WORK
            case ended.kInterrupt:
                claim, limit = Status.FEASIBLE, Limit.INTERRUPT
            case ended.kInfeasible:
                return Outcome(Status.INFEASIBLE, work=work)
            case ended.kUnbounded | ended.kUnboundedOrInfeasible:
                return search.unbounded_or_infeasible(work)
            case _:
                message = f"HiGHS: {highs.modelStatusToString(status)}"
                return Outcome(Status.ERROR, work=work, message=message)
        return Outcome(claim, rounded_solution(highs), info.mip_dual_bound, limit, work)


def rounded_solution(highs: Any) -> NDArray[np.int64] | None:
    """Return the best solution that HiGHS has found, None without any."""
    import highspy

    feasible = int(highspy.SolutionStatus.kSolutionStatusFeasible)
    if highs.getInfo().primal_solution_status != feasible:
        return None
    rounded: NDArray[np.int64] = np.rint(highs.getSolution().col_value).astype(np.int64)
    return rounded


def run_highs(
    highs: Any,
    search: Search | None = None,
    most_looks: float = math.inf,
    say: Callable[[str], None] | None = None,
) -> None:
    """Run HiGHS until it has ended or Ctrl-C is pressed, and record what it finds in a search.

    `say` takes its log. Of an integer program, the search also ends after `most_looks` looks at
    its limits. HiGHS looks several times at each node, and after each round of cuts at the root.
    """
    import highspy

    looks = 0
    kinds = highspy.cb.HighsCallbackType
    improving, between = int(kinds.kCallbackMipImprovingSolution), int(kinds.kCallbackMipInterrupt)
    logging = int(kinds.kCallbackLogging)

    def callback(kind: Any, message: str, out: Any, into: Any, _data: Any) -> None:
        # frequent callbacks let Python handle Ctrl-C
        nonlocal looks
        if int(kind) == logging and say is not None:
            say(message)
            return
        if int(kind) == improving:
            # the reported objective is that of a point within the tolerance
            value = None if search is None else search.value_near(out.mip_solution)
            if search is not None and value is not None:
                search.found(value, out.mip_dual_bound)
            return
        if int(kind) == between:
            looks += 1
            if search is not None:
                search.bounded(out.mip_dual_bound)
        if looks > most_looks or interruption.requested():
            into.user_interrupt = True

    highs.setCallback(callback, None)
    highs.startCallback(kinds.kCallbackMipImprovingSolution)
    highs.startCallback(kinds.kCallbackMipInterrupt)
    highs.startCallback(kinds.kCallbackSimplexInterrupt)
    if say is not None:
        highs.setOptionValue("output_flag", True)
        highs.setOptionValue("log_to_console", False)
        highs.startCallback(kinds.kCallbackLogging)
    if highs.run() == highspy.HighsStatus.kError:
        # other code in this process may have started HiGHS with more threads
        highspy.Highs.resetGlobalScheduler(True)
        highs.run()
