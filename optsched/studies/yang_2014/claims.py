"""The verdicts on the claims of the paper, under each variant.

That a metric improves is judged cell by cell of a table, as the paper has a gain in every cell.
Other claims are judged by one quantity and its interval, a paired bootstrap over the parts of a
log: the mean step from one alpha or beta to the next, or the difference of the improvements by two
algorithms, which are comparable where it is surely no larger than the largest in the paper's table.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from optsched.report.page import Verdict
from optsched.studies.judging import (
    MOST,
    SOME,
    Claim,
    Judgement,
    judge_claims,
    judge_interval,
    judge_together,
    verdict,
)
from optsched.studies.paired import (
    Improvement,
    Interval,
    improvement,
    mean_interval,
    percent,
    signed,
)
from optsched.studies.yang_2014.evaluation import (
    PUBLISHED,
    cells,
    compared,
    contributions,
    control,
    gain,
    grid,
    noise,
    published,
    tied,
    varied,
)
from optsched.studies.yang_2014.plan import (
    BLUE,
    CONTENT,
    EXACT,
    GREEDY,
    INTERVAL,
    SHOWN,
    VARIANTS,
    WINDOW,
)

if TYPE_CHECKING:
    import pandas as pd

GAIN = 0.001
"""A gain is at least this: a tenth of a percent, the last digit that is shown."""

KEPT = 0.01
"""Utilization stays high if it falls by no more than this."""

LITTLE = 0.05
"""A larger window gains little if it gains less than this."""


def claims(frame: pd.DataFrame) -> list[Claim]:
    """Judge the claims of the paper."""
    return judge_claims(CONTENT, __name__, {variant: (frame, variant) for variant in VARIANTS})


def improves(frame: pd.DataFrame, variant: str, table: str) -> Judgement:
    """Judge whether a metric improves in the cells of a table.

    The claim holds if the gain is sure in most cells, in part if in some of them, and does not hold
    if there is surely none in all cells together.
    """
    found = _gain(frame, variant, table)
    of_cells = _cells(frame, variant, table)
    means = [100 * cell.mean for cell in of_cells]
    sure = sum(cell.low >= GAIN for cell in of_cells)
    why = f"{found}; {min(means):.1f} to {max(means):.1f}% by cell, "
    why += f"in {sure} of {len(means)} cells significantly above 0"
    if sure >= SOME * len(means):
        return Judgement(verdict(sure / len(means)), why)
    return Judgement(Verdict.NOT_HELD if found.high <= 0 else Verdict.NOT_DECIDED, why)


def reaches(frame: pd.DataFrame, variant: str, table: str) -> Judgement:
    """Judge whether the largest improvement of a table is at least the published one."""
    best = max(_cells(frame, variant, table), key=lambda cell: cell.mean)
    theirs = max(published(table).values()) / 100
    return judge_interval(best, f"{best} in the best cell", above=np.nextafter(theirs, 0.0))


def grows(frame: pd.DataFrame, variant: str, table: str) -> Judgement:
    """Judge whether the improvement grows with alpha and with beta."""
    by_part = _contributions(frame, variant, table).unstack("part")
    steps = [
        by_part.xs(high, level=along) - by_part.xs(low, level=along)
        for along in ("alpha", "beta")
        for low, high in pairwise(sorted(set(by_part.index.get_level_values(along))))
    ]
    of_part = np.concatenate([step.to_numpy() for step in steps])
    found = mean_interval(of_part.mean(axis=0), by_part.columns)
    up = (of_part.mean(axis=1) > 0).sum()
    why = f"{_points(found)} a step; {up} of {len(of_part)} steps go up"
    if max(cell.mean for cell in _cells(frame, variant, table)) <= 0:
        return Judgement(Verdict.NOT_HELD, f"{why}; no cell has a gain")
    return judge_interval(found, why, above=GAIN)


def comparable(frame: pd.DataFrame, variant: str, table: str) -> Judgement | None:
    """Judge whether the algorithms are no further apart than in the published table.

    The noise floor stands beside it where there is one: the deviation of the improvement in a cell
    between random answers of all optimal ones.
    """
    if _pairs(frame, variant, table, GREEDY).empty:
        return None
    theirs = published(table), published(table, "greedy")
    most = max(abs(theirs[0][key] - theirs[1][key]) for key in theirs[0]) / 100
    exact, greedy = (_contributions(frame, variant, table, one) for one in (EXACT, GREEDY))
    apart = exact - greedy
    if not apart.any():
        pairs = _pairs(frame, variant, table, EXACT)
        contested = int(pairs["contested"].sum())
        optimal = round((pairs["contested_matched"] * pairs["contested"]).sum())
        why = (
            f"no run differs; Greedy is optimal in {optimal:,} of {contested:,} contested decisions"
        )
        return Judgement(Verdict.HELD, why)
    found = mean_interval(apart, apart.index.get_level_values("part"))
    largest = 100 * apart.groupby(level=["beta", "alpha"]).mean().abs().max()
    why = f"{_points(found)} apart; at most {largest:.1f} in a cell"
    if PUBLISHED[table]["log"] == BLUE and variant == SHOWN:
        floor = noise(compared(tied(frame)), PUBLISHED[table]["metric"])
        why += f", where random ties deviate by {percent(floor.deviation)}"
    return judge_interval(found, why, above=-most, below=most)


def more(frame: pd.DataFrame, variant: str, table: str, than: str) -> Judgement:
    """Judge whether the improvement of a table is above that of another, if there is one at all.

    Tables of one log are compared part by part. Those of two logs have different jobs: one is above
    the other if its whole interval is.
    """
    one, other = (_gain(frame, variant, number) for number in (table, than))
    if one.high <= 0:
        return Judgement(Verdict.NOT_HELD, f"{one} and {other}; the first does not improve")
    if PUBLISHED[table]["log"] == PUBLISHED[than]["log"]:
        more = _contributions(frame, variant, table) - _contributions(frame, variant, than)
        found = mean_interval(more, more.index.get_level_values("part"))
        return judge_interval(found, _points(found), above=GAIN)
    between = Interval(one.mean - other.mean, one.low - other.high, one.high - other.low, one.parts)
    return judge_interval(between, f"{one} and {other}", above=GAIN)


def compact(frame: pd.DataFrame, variant: str, log: str) -> Judgement | None:
    """Judge compactness and utilization at once: compact allocations alone are easy to have.

    Where no job gets shorter, since jobs that do hold their nodes for less time.
    """
    pairs = compared(control(frame), solver=EXACT, log=log, variant=variant)
    if pairs.empty:
        return None
    share, kept = pairs["contiguous_share"].mean(), gain(pairs, "utilization")
    why = f"{100 * share:.1f}% of the jobs contiguous, utilization {kept} against Default, "
    why += "where no job gets shorter"
    if share < MOST:
        return Judgement(Verdict.NOT_HELD, why)
    return judge_interval(kept, why, above=-KEPT)


def large_wait(frame: pd.DataFrame, variant: str, log: str, at_most: float) -> Judgement:
    """Judge whether the mean wait of large jobs grows by less than a share."""
    pairs = compared(grid(frame), solver=EXACT, log=log, variant=variant)
    known = pairs["large_mean_wait"].notna() & pairs["large_mean_wait_default"].notna()
    found = gain(pairs[known], "large_mean_wait")
    longer = Interval(-found.mean, -found.high, -found.low, found.parts)
    why = f"{signed(longer.mean)}% [{percent(longer.low)}, {percent(longer.high)}] in the mean wait"
    return judge_interval(longer, why, below=at_most)


def window(frame: pd.DataFrame, variant: str, windows: list[int], over: int) -> Judgement | None:
    """Judge windows against another, by the mean wait; the window is varied in one variant.

    The paper's window has to improve on a smaller one, and larger ones may improve on it by little.
    """
    if variant != SHOWN or not frame["charged"].any():
        return None
    runs = varied(frame)[1]
    runs = runs[(runs["solver"] == EXACT) & ~runs["charged"] & (runs["interval"] == INTERVAL)]
    waits = runs.pivot(index=["part", "draw"], columns="window", values="mean_wait")
    found = {
        size: improvement(waits[over], waits[size], waits.index.get_level_values("part"))
        for size in windows
    }
    bounds = {"below": LITTLE} if over == WINDOW else {"above": GAIN}
    judged = [judge_interval(one, f"{size}: {one}", **bounds) for size, one in found.items()]
    return judge_together(judged, "; ".join(one.why for one in judged))


def _pairs(frame: pd.DataFrame, variant: str, table: str, solver: str) -> pd.DataFrame:
    log = PUBLISHED[table]["log"]
    return compared(grid(frame), log=log, solver=solver, variant=variant)


def _gain(frame: pd.DataFrame, variant: str, table: str, solver: str = EXACT) -> Improvement:
    return gain(_pairs(frame, variant, table, solver), PUBLISHED[table]["metric"])


def _contributions(
    frame: pd.DataFrame, variant: str, table: str, solver: str = EXACT
) -> pd.Series[float]:
    return contributions(_pairs(frame, variant, table, solver), PUBLISHED[table]["metric"])


def _cells(frame: pd.DataFrame, variant: str, table: str) -> list[Improvement]:
    log, metric = PUBLISHED[table]["log"], PUBLISHED[table]["metric"]
    return [*cells(grid(frame), metric, log=log, solver=EXACT, variant=variant).values()]


def _points(found: Interval) -> str:
    """Write a difference of improvements in points, with its interval."""
    ends = f" [{percent(found.low)}, {percent(found.high)}]" if np.isfinite(found.low) else ""
    return f"{percent(found.mean)} points{ends}"
