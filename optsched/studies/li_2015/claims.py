"""The verdicts on the claims of the paper, by reading, in all workloads together.

Each is judged by the mean of a quantity and its interval, a bootstrap over the draws of the modeled
workload and the logs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from optsched.studies.cells import span
from optsched.studies.judging import Claim, Judgement, judge_claims, judge_interval, judge_together
from optsched.studies.li_2015.evaluation import NODE_TIME, both, of, read_as, run_as
from optsched.studies.li_2015.plan import CONTENT, PUBLISHED, READINGS, jobs_of
from optsched.studies.paired import Interval, mean_interval
from optsched.studies.results import ALL

if TYPE_CHECKING:
    import pandas as pd

AROUND = 0.05
"""A utilization is around that of the paper if it is no further from it."""

ALIKE = 0.02
"""Utilizations are similar if they are no further apart."""

MORE = 1.1
"""A window costs time if solving takes at least this many times as long."""

AVOIDED = 0.5
"""Drainage is avoided if no more than this share of it is left."""


def claims(frame: pd.DataFrame) -> list[Claim]:
    """Judge the claims of the paper under each reading."""
    return [
        claim
        for reading in READINGS
        for claim in judge_claims(
            CONTENT, __name__, {ALL: (read_as(frame, reading),)}, where=reading
        )
    ]


def percent(values: pd.Series[float]) -> str:
    """Return the mean of shares in percent, with their range if there are several; or a dash."""
    known = values.dropna()
    if known.empty:
        return "\N{EN DASH}"
    ends = span(100 * known, ".1f")
    return f"{100 * known.mean():.1f}%" + (f" ({ends})" if ends else "")


def around(own: pd.DataFrame, variant: str) -> Judgement:
    """Judge the level by the nodes that are held, the more favorable reading."""
    held, running = of(own, variant, "occupied"), of(own, variant, "useful")
    apart = _mean(held - PUBLISHED["utilization"])
    numbers = f"{percent(held)} held, {percent(running)} running; "
    numbers += f"{_points(apart)} from it by nodes held"
    return judge_interval(apart, numbers, above=-AROUND, below=AROUND)


def more(own: pd.DataFrame, one: str, other: str) -> Judgement:
    """Judge whether more nodes run with one variant than with another."""
    first, second = both(own, one, other, "useful")
    numbers = f"running: {percent(first)} ({run_as(own, one)})"
    numbers += f", {percent(second)} ({run_as(own, other)})"
    apart = _mean(first - second)
    return judge_interval(apart, f"{numbers}; {_points(apart)} more", above=0.0)


def alike(own: pd.DataFrame, variants: Sequence[str], to: str) -> Judgement:
    """Judge whether as many nodes run with each of the variants as with another."""
    judged = []
    for variant in variants:
        long, usual = both(own, variant, to, "useful")
        apart = _mean(long - usual)
        numbers = f"{_points(apart)} apart ({run_as(own, variant)})"
        judged.append(judge_interval(apart, numbers, above=-ALIKE, below=ALIKE))
    return judge_together(judged, "; ".join(one.why for one in judged))


def costs(own: pd.DataFrame, variants: Sequence[str], beside: str) -> Judgement:
    """Judge the nominal time of all solves, which does not depend on the machine."""
    judged = []
    for variant in variants:
        long, usual = both(own, variant, beside, "nominal_seconds")
        ratio = _mean((long / usual).map(np.log))
        mean, low, high = np.exp(ratio[:3])
        ends = f" [{low:.2f}, {high:.2f}]" if np.isfinite(low) else ""
        numbers = f"{mean:.2f} times{ends} ({run_as(own, variant)})"
        judged.append(judge_interval(ratio, numbers, above=np.log(MORE)))
    numbers = f"nominal solving time {' and '.join(one.why for one in judged)}"
    return judge_together(judged, numbers)


def avoided(own: pd.DataFrame, one: str, other: str) -> Judgement:
    """Judge the node time that is free, but not in one box."""
    with_, without = both(own, one, other, NODE_TIME["fragmented"])
    left = _mean(with_ - AVOIDED * without)
    numbers = f"{percent(without)} of the node time without migration, {percent(with_)} with it"
    return judge_interval(left, f"{numbers}; {_points(left)} above half", below=np.nextafter(0, 1))


def _mean(values: pd.Series[float]) -> Interval:
    """Return the mean over draws and logs; without an interval if a run has recorded nothing."""
    known = values.dropna()
    if len(known) < len(values):
        mean = float(known.mean()) if len(known) else np.nan
        return Interval(mean, np.nan, np.nan, len(known))
    return mean_interval(known, [jobs_of(file) for file in known.index])


def _points(found: Interval) -> str:
    """Write a difference of shares in points, with its interval."""
    ends = f" [{100 * found.low:.1f}, {100 * found.high:.1f}]" if np.isfinite(found.low) else ""
    return f"{100 * found.mean:.1f} points{ends}"
