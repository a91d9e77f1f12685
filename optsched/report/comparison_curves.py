"""Curves of a comparison: quality against time, and performance profiles."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from optsched.solvers.result import Status

if TYPE_CHECKING:
    import pandas as pd

Floats = NDArray[np.float64]

SHORTEST = 1e-7
"""Shortest time in seconds that clocks measure; shorter ones count as this."""


def primal_gap(objective: ArrayLike, best: ArrayLike) -> Floats:
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


def mean_primal_gap(incumbents: pd.DataFrame, best: Mapping[str, float]) -> tuple[Floats, Floats]:
    """Return the mean primal gap of one solver over several problems, against time.

    `incumbents`: incumbents of the solver, with columns ``snapshot, seconds, objective``, in order
    of time for each snapshot. `best`: best known objective of each snapshot that the solver was
    given. The gap of a snapshot is 1 before its first solution. The result is times, and the gap
    from each time on; it is 1 before the first.
    """
    own = incumbents[incumbents["snapshot"].isin(list(best))]
    snapshot = own["snapshot"]
    gap = snapshot.map(best).astype(np.float64)
    gap[:] = primal_gap(own["objective"].to_numpy(np.float64), gap.to_numpy())
    change = gap.to_numpy() - gap.groupby(snapshot).shift(fill_value=1.0).to_numpy()
    when = np.maximum(own["seconds"].to_numpy(np.float64), SHORTEST)
    seconds, at = np.unique(when, return_inverse=True)
    total = np.bincount(at, change, len(seconds))
    return seconds, 1.0 + np.cumsum(total, dtype=np.float64) / max(1, len(best))


def seconds_to_proof(results: pd.DataFrame) -> pd.DataFrame:
    """Return the seconds until each solver had a proof: snapshots x solvers, infinite without."""
    proven = results["status"].isin([Status.OPTIMAL, Status.INFEASIBLE])
    return _by_solver(results, results["seconds"].where(proven))


def seconds_to_best(results: pd.DataFrame, incumbents: pd.DataFrame) -> pd.DataFrame:
    """Return the seconds until each solver had the best known objective: snapshots x solvers.

    The time is infinite if a solver did not reach the objective. On an infeasible problem a proof
    of infeasibility counts, as in the table of the comparison.
    """
    pair = ["snapshot", "solver"]
    best = results[[*pair, "best_objective"]]
    merged = incumbents.merge(best, on=pair)
    reached = merged[(merged["objective"] == merged["best_objective"]).fillna(value=False)]
    first = reached.groupby(pair, as_index=False)["seconds"].min()
    when = results[pair].merge(first, on=pair, how="left")["seconds"]
    when = when.set_axis(results.index)
    infeasible = results["status"] == Status.INFEASIBLE
    return _by_solver(results, when.where(~infeasible, results["seconds"]))


def performance_profile(seconds: Floats) -> list[tuple[Floats, Floats]]:
    """Return the performance profile of each solver.

    E. D. Dolan, J. J. More, "Benchmarking optimization software with performance profiles",
    Mathematical Programming 91, 201-213, 2002.

    `seconds`: time to solve, infinite where a problem was not solved, shape (problems, solvers);
    the curves are, for each solver, increasing ratios of its time to that of the fastest solver of
    a problem, and the share of all problems that it solved within each ratio.
    """
    times = np.maximum(seconds, SHORTEST)
    fastest = times.min(axis=1, keepdims=True, initial=np.inf)
    with np.errstate(invalid="ignore"):
        ratio = times / fastest
    curves = []
    for own in ratio.T:
        factors, counts = np.unique(own[np.isfinite(own)], return_counts=True)
        curves.append((factors, np.cumsum(counts) / max(1, len(own))))
    return curves


def _by_solver(results: pd.DataFrame, seconds: pd.Series[float]) -> pd.DataFrame:
    table = results.assign(seconds=seconds.fillna(np.inf)).pivot(
        index="snapshot", columns="solver", values="seconds"
    )
    return table.reindex(columns=list(dict.fromkeys(results["solver"])))
