"""The verdicts on the claims of the paper, in each workload."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from optsched.studies.cells import span
from optsched.studies.judging import Claim, Judgement, judge, judge_claims
from optsched.studies.li_2015.evaluation import NODE_TIME, both, of
from optsched.studies.li_2015.plan import CONTENT, PUBLISHED
from optsched.studies.results import ALL, by_workload

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
    """Judge the claims of the paper, run by run, in all workloads together and in each."""
    parts = {ALL: frame} | by_workload(frame)
    return judge_claims(CONTENT, __name__, {name: (own,) for name, own in parts.items()})


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
    numbers = f"{percent(held)} held, {percent(running)} running; "
    numbers += f"within {100 * AROUND:.0f} points by nodes held in {{so}} of {{of}} runs"
    return judge((held - PUBLISHED["utilization"]).abs() <= AROUND, numbers)


def more(own: pd.DataFrame, one: str, other: str, over: str | None = None) -> Judgement:
    """Judge whether more nodes run with one variant than with another."""
    first, second = both(own, one, other, "useful")
    numbers = f"running: {percent(first)} ({one}), {percent(second)} ({other})"
    if over is not None:
        numbers += f", {percent(of(own, over, 'useful'))} ({over})"
    return judge(first > second, f"{numbers}; more in {{so}} of {{of}} runs")


def alike(own: pd.DataFrame, variants: Sequence[str], to: str) -> Judgement:
    """Judge whether as many nodes run with each of the variants as with another."""
    apart = []
    for variant in variants:
        long, usual = both(own, variant, to, "useful")
        apart += list((long - usual).abs())
    most = f"at most {100 * np.nanmax(apart):.1f} points apart" if np.isfinite(apart).any() else ""
    within = f"within {100 * ALIKE:.0f} points in {{so}} of {{of}} comparisons"
    return judge([gap <= ALIKE for gap in apart], "; ".join(filter(None, (most, within))))


def costs(own: pd.DataFrame, variants: Sequence[str], beside: str) -> Judgement:
    """Judge the nominal time of all solves, which does not depend on the machine."""
    cases, numbers = [], []
    for variant in variants:
        long, usual = both(own, variant, beside, "nominal_seconds")
        ratio = long / usual
        numbers.append(f"{ratio.mean():.2f} times ({variant})")
        cases += list(ratio >= MORE)
    return judge(
        cases,
        f"nominal solving time {' and '.join(numbers)}; at least {MORE:g} times in {{so}} of "
        "{of} comparisons",
    )


def avoided(own: pd.DataFrame, one: str, other: str) -> Judgement:
    """Judge the node time that is free, but not in one box."""
    with_, without = both(own, one, other, NODE_TIME["fragmented"])
    numbers = f"{percent(without)} of the node time without migration, {percent(with_)} with it"
    return judge(with_ <= AVOIDED * without, f"{numbers}; at least halved in {{so}} of {{of}} runs")
