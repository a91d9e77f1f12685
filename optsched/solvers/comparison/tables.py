"""Tables of a comparison: results, incumbents and a summary per solver."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from optsched.solvers.comparison.claims import Entry, Reconciled
from optsched.solvers.result import Incumbent, Result, Status
from optsched.solvers.solver_call import answer_to_json

if TYPE_CHECKING:
    import pandas as pd

RESULT_COLUMNS = {
    "snapshot": "str",
    "kind": "str",
    "size": "str",
    "solver": "str",
    "status": "str",
    "objective": "Int64",
    "bound": "float64",
    "gap": "float64",
    "best_objective": "Int64",
    "best_bound": "float64",
    "gap_to_best_bound": "float64",
    "seconds": "float64",
    "work": "float64",
    "verified": "bool",
    "limit": "str",
    "primal_integral": "float64",
    "message": "str",
}
INCUMBENT_COLUMNS = {
    name: RESULT_COLUMNS[name]
    for name in ("snapshot", "kind", "solver", "seconds", "objective", "bound")
}

LATER = ("primal_integral",)
"""Columns of results that comparisons of version 1.0 lack."""

SHIFT = 1.0
"""Seconds by which the geometric mean of times is shifted, so that tiny ones do not rule it."""

AT_ONCE = 0.01
"""Longest time in seconds in which a solver answers a trivial snapshot."""

Answered = Sequence[tuple[Entry, Reconciled]]
"""Problems of a comparison with their reconciled results."""


def primal_gap(objective: ArrayLike, best: ArrayLike) -> NDArray[np.float64]:
    """Return the primal gap of objectives to the best known ones, from 0 to 1.

    The gap is ``|objective - best| / max(|objective|, |best|)``, 0 where both are 0 and 1 where
    they differ in sign, so that it is defined for all objectives, of both senses.

    T. Berthold, "Measuring the impact of primal heuristics", Operations Research Letters 41,
    611-614, 2013.
    """
    ours, theirs = np.asarray(objective, np.float64), np.asarray(best, np.float64)
    largest = np.maximum(np.abs(ours), np.abs(theirs))
    gap = np.abs(ours - theirs) / np.where(largest == 0, 1.0, largest)
    return np.minimum(gap, 1.0)


def primal_integral(result: Result, best: int | None, until: float) -> float:
    """Return the primal gap of a result, integrated over the seconds until a time.

    The gap is 1 before the first solution; NaN if no objective is known. T. Berthold, see
    `primal_gap`.
    """
    if best is None:
        return math.nan
    found = [one for one in result.incumbents if result.verified and one.seconds < until]
    times = np.array([0.0, *(one.seconds for one in found), until])
    gaps = np.append(1.0, primal_gap([one.objective for one in found], best))
    return float(np.diff(times) @ gaps)


def result_frame(answered: Answered) -> pd.DataFrame:
    """Return one row per problem and solver, with the columns of `RESULT_COLUMNS`."""
    import pandas as pd

    rows = [
        (
            entry.name,
            entry.problem.name,
            entry.problem.size,
            result.solver,
            result.status.value,
            result.objective,
            result.bound,
            result.gap,
            reconciled.objective,
            reconciled.bound,
            replace(result, bound=reconciled.bound).gap if result.verified else None,
            result.seconds,
            result.work,
            result.verified,
            "" if result.limit is None else result.limit.value,
            primal_integral(
                result, reconciled.objective, max(one.seconds for one in reconciled.results)
            ),
            result.message or str(result.conflict or ""),
        )
        for entry, reconciled in answered
        for result in reconciled.results
    ]
    return pd.DataFrame(rows, columns=list(RESULT_COLUMNS)).astype(RESULT_COLUMNS)


def incumbent_frame(answered: Answered) -> pd.DataFrame:
    """Return one row per improving solution, with the columns of `INCUMBENT_COLUMNS`.

    Only verified results count; the last row of a problem and solver is the final solution.
    """
    import pandas as pd

    rows: list[tuple[Any, ...]] = []
    for entry, reconciled in answered:
        for result in reconciled.results:
            if not result.verified or result.objective is None:
                continue
            incumbents = list(result.incumbents)
            if not incumbents or incumbents[-1].objective != result.objective:
                incumbents.append(Incumbent(result.seconds, result.objective, result.bound))
            about = entry.name, entry.problem.name, result.solver
            rows += [(*about, *incumbent) for incumbent in incumbents]
    return pd.DataFrame(rows, columns=list(INCUMBENT_COLUMNS)).astype(INCUMBENT_COLUMNS)


def answers(answered: Answered) -> Iterator[dict[str, Any]]:
    """Yield the solution of each problem and solver as a JSON-able object.

    A solution that did not pass verification may be any object, and is given as text.
    """
    for entry, reconciled in answered:
        for result in reconciled.results:
            if result.solution is not None:
                yield {
                    "snapshot": entry.name,
                    "solver": result.solver,
                    "objective": result.objective,
                    "verified": result.verified,
                    "violations": [str(violation) for violation in result.violations],
                    "solution": answer_to_json(entry.problem, result),
                }


def trivial(results: pd.DataFrame) -> pd.Series[bool]:
    """Return which results are of trivial snapshots: all solvers answer optimally, and at once.

    That is: a solver has a proof, and every solver has the best objective, or proves that there is
    no solution, within `AT_ONCE` seconds.

    `results`: results with the columns of `RESULT_COLUMNS`.
    """
    infeasible = results["status"] == Status.INFEASIBLE
    best = (results["objective"] == results["best_objective"]).fillna(value=False)
    good = ((results["verified"] & best) | infeasible) & (results["seconds"] <= AT_ONCE)
    proof = infeasible | (results["status"] == Status.OPTIMAL)
    of = [results["kind"], results["snapshot"]]
    found: pd.Series[bool] = good.groupby(of).transform("all") & proof.groupby(of).transform("any")
    return found


def summarize(results: pd.DataFrame) -> pd.DataFrame:
    """Return one row per model and solver, in the order of `results`.

    `results`: results with the columns of `RESULT_COLUMNS`. Columns: ``kind, solver, snapshots``;
    ``solved``: snapshots with a verified solution or a proof of infeasibility; ``best`` and
    ``proven``: shares of the snapshots with the best objective (NaN for a solver that is compared
    with no other), and with a proof of optimality or infeasibility; ``mean_gap, median_gap,
    max_gap``: gap to the best bound, over the snapshots with a solution and a bound;
    ``primal_integral``: its mean; ``mean_seconds``: geometric mean of the wall-clock time, shifted
    by `SHIFT`; ``median_seconds, p95_seconds, total_seconds``: that time over all snapshots;
    ``errors``: number of results with that status.
    """
    import pandas as pd

    rivals = results.groupby("kind")["solver"].nunique().to_dict()
    rows = []
    for (kind, solver), own in results.groupby(["kind", "solver"], sort=False):
        infeasible = own["status"] == Status.INFEASIBLE
        has_solution = own["verified"] & own["objective"].notna()
        is_best = has_solution & (own["objective"] == own["best_objective"]).fillna(value=False)
        gap, seconds = own["gap_to_best_bound"], own["seconds"]
        rows.append(
            {
                "kind": kind,
                "solver": solver,
                "snapshots": len(own),
                "solved": int((has_solution | infeasible).sum()),
                "best": float((is_best | infeasible).mean()) if rivals[kind] > 1 else math.nan,
                "proven": float(((own["status"] == Status.OPTIMAL) | infeasible).mean()),
                "mean_gap": float(gap.mean()),
                "median_gap": float(gap.median()),
                "max_gap": float(gap.max()),
                "primal_integral": float(own["primal_integral"].mean()),
                "mean_seconds": float(np.exp(np.log(seconds + SHIFT).mean())) - SHIFT,
                "median_seconds": float(seconds.median()),
                "p95_seconds": float(seconds.quantile(0.95)),
                "total_seconds": float(seconds.sum()),
                "errors": int((own["status"] == Status.ERROR).sum()),
            }
        )
    return pd.DataFrame(rows)
