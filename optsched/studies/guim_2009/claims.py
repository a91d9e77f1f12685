"""The verdicts on the claims of the paper, by whose limits are raised and by other readings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from typing import TYPE_CHECKING

import numpy as np

from optsched.report.page import Verdict
from optsched.studies.guim_2009.evaluation import KILLED, by_part, read_as, same_runs
from optsched.studies.guim_2009.plan import CONTENT, READINGS, STATED, VARIANTS
from optsched.studies.judging import Claim, Judgement, judge_claims, judge_interval, judge_together
from optsched.studies.paired import Interval, mean_interval

if TYPE_CHECKING:
    import pandas as pd

REACHED = 0.8
"""A factor by which something falls counts as reached from this share of it on."""

ROUNDING = 1e-8
"""Relative differences of no more come from adding up floating-point numbers."""

BY_LIMITS, BY_READING = "whose limits are raised", "other readings"


def claims(frame: pd.DataFrame) -> list[Claim]:
    """Judge the claims of the paper by pairs of runs on the same jobs and demands."""
    by_limits = {name: (read_as(frame), own) for name, own in VARIANTS.items()}
    by_reading = {name: (read_as(frame, name), VARIANTS[STATED]) for name in READINGS}
    judged = judge_claims(CONTENT, __name__, by_limits, BY_LIMITS)
    also = judge_claims(CONTENT, __name__, by_reading, BY_READING)
    return judged + [claim for claim in also if claim.judge]


def ratio(
    frame: pd.DataFrame,
    names: Mapping[str, str],
    pairs: Sequence[tuple[str, str]],
    metrics: Sequence[str],
    centres: Sequence[str] = (),
    mixes: Sequence[str] = (),
    *,
    below: float = np.inf,
    above: float = 0.0,
    at_most: float = np.inf,
    between: tuple[float, float] = (0.0, np.inf),
    within: float = np.inf,
    times: float = 0.0,
    case_by_case: bool = False,
) -> Judgement | None:
    """Judge a claim on the ratio of metrics of two policies, for each pair and metric.

    `names` are the runs of the policies. Where both metrics are 0 on all parts of the logs, there
    is no verdict. Two policies whose runs do not differ are left out: they would be compared with
    themselves. Case by case, the claim is judged on each mix of each center, and shown so.
    """
    own = frame[frame["centre"].isin(centres)] if centres else frame
    own = own[own["mix"].isin(mixes)] if mixes else own
    cases = {"": by_part(own)}
    if case_by_case:
        by_mix = own.groupby(["centre", "mix"], sort=False)
        cases = {f"{centre} {mix}": by_part(part) for (centre, mix), part in by_mix}
    lowest = max(above, between[0], 1 - within)
    highest = min(below, between[1], 1 + within, *([1 / (times * REACHED)] if times else []))
    limit = _share(highest) if highest < at_most else np.nextafter(_share(at_most), np.inf)
    floor = _share(lowest) if lowest > 0 else -np.inf
    means, found, same = [], [], []
    for case, metric, (a, b) in product(cases, metrics, pairs):
        parts = cases[case]
        if same_runs(parts, names[a], names[b]):
            same.append(f"{a} and {b}" + (f" on {case}" if case else ""))
            continue
        interval = _interval(parts[metric, names[a]], parts[metric, names[b]])
        if interval.parts:
            why = _in_words(interval, a, b)
            judged = judge_interval(interval, why, above=floor, below=limit)
            means.append(interval.mean)
            found.append(judged._replace(why=f"{case} {judged.verdict}, {why}" if case else why))
    if not found:
        why = "no run differs, so there is nothing to compare"
        return Judgement(Verdict.NOT_JUDGED, why) if same else None
    aside = f"; no run differs between {', '.join(dict.fromkeys(same))}" if same else ""
    if len(found) == 1 or case_by_case:
        return judge_together(found, "; ".join(one.why for one in found) + aside)
    counts = [
        sum(one.verdict is verdict for one in found)
        for verdict in (Verdict.HELD, Verdict.NOT_HELD, Verdict.NOT_DECIDED)
    ]
    of_all = "of {}, {} hold, {} do not hold, {} not decided".format(len(found), *counts)
    middle = found[int(np.argsort(means, kind="stable")[len(found) // 2])]
    return judge_together(found, f"{middle.why} in the median; {of_all}{aside}")


def _interval(one: pd.Series[float], other: pd.Series[float]) -> Interval:
    """Return the mean difference of two metrics over their sum, where they are not both 0.

    It is that of killed jobs in all mixes of a part, and of other metrics mix by mix.
    """
    of_part = ["centre", "part"]
    if one.name[0] == KILLED:  # type: ignore[index]
        one, other = (killed.groupby(level=of_part).sum() for killed in (one, other))
    total = one + other
    difference = ((one - other) / total)[total > 0]
    difference[difference.abs() <= ROUNDING] = 0.0
    if difference.empty:
        return Interval(np.nan, np.nan, np.nan, 0)
    labels = [difference.index.get_level_values(level) for level in of_part]
    return mean_interval(difference, [f"{centre} {part}" for centre, part in zip(*labels)])


def _share(ratio: float) -> float:
    """Return the difference over the sum of two numbers with this ratio, from -1 to 1."""
    return (ratio - 1) / (ratio + 1) if np.isfinite(ratio) else np.inf


def _in_words(found: Interval, one: str, other: str) -> str:
    """Write the ratio of numbers of two policies, whose difference over the sum is given."""
    mean, low, high = ((1 + share) / (1 - share) if share < 1 else np.inf for share in found[:3])
    if mean == np.inf:
        return f"some with {one}, none with {other}"
    interval = f" [{low:.3g}, {high:.3g}]" if np.isfinite(found.low) else ""
    return f"{mean:.3g} times{interval}"
