"""What the paper claims, and what becomes of it in each workload."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from optsched.studies.judging import Claim, Judgement, judge
from optsched.studies.li_2015.evaluation import NODE_TIME, both, of, workloads
from optsched.studies.li_2015.plan import (
    LONGER,
    NEITHER,
    ONLY_BACKFILLING,
    ONLY_MIGRATION,
    OWN,
    SYSTEM,
)
from optsched.studies.li_2015.published import UTILISATION, WINDOWS

if TYPE_CHECKING:
    from collections.abc import Callable

    import pandas as pd

ALL = "all"
"""What all workloads together are called."""

AROUND = 0.05
"""A utilisation is around that of the paper if it is no further from it."""

ALIKE = 0.02
"""Utilisations are similar if they are no further apart."""

MORE = 1.1
"""A window costs time if solving takes at least so many times as long."""

AVOIDED = 0.5
"""Drainage is avoided if no more than this share of it is left."""


def claims(frame: pd.DataFrame) -> list[Claim]:
    """Judge the claims of the paper, run by run, in all workloads together and in each.

    Parameters
    ----------
    frame : pandas.DataFrame
        What `evaluation.prepare` returns.
    """
    by_workload = {ALL: frame}
    by_workload |= {name: frame[frame["workload"] == name] for name in workloads(frame)}

    def claim(text: str, published: str, judgement: Callable[[pd.DataFrame], Judgement]) -> Claim:
        return Claim(text, published, {name: judgement(own) for name, own in by_workload.items()})

    return [
        *(
            claim(
                f"Utilisation is around {UTILISATION:.0%} with a scan window of {depth} "
                f"(Figure {WINDOWS[depth]})",
                f"around {UTILISATION:.0%}",
                lambda own, name=name: _around(own, name),  # type: ignore[misc]
            )
            for name, depth in zip(OWN, WINDOWS)
        ),
        claim(
            "Migration improves the utilisation over only backfilling (section 7)",
            "improves",
            lambda own: _more(own, SYSTEM, ONLY_BACKFILLING),
        ),
        claim(
            "Windows of 500 and 1000 keep it similar to that of 100 (section 7)",
            "similar",
            _alike,
        ),
        claim(
            "A larger window costs scheduling time (section 7)",
            "more time",
            _costs,
        ),
        claim(
            "Migration avoids the drainage of nodes that are free, but not in one box (section 1)",
            "avoided",
            _avoided,
        ),
        claim(
            "Backfilling keeps the utilisation up while a large job waits (section 6)",
            "high",
            lambda own: _more(own, SYSTEM, ONLY_MIGRATION),
        ),
        claim(
            "Backfilling alone gains more than migration alone (section 8, of BlueGene/L)",
            "even more",
            lambda own: _more(own, ONLY_BACKFILLING, ONLY_MIGRATION, over=NEITHER),
        ),
    ]


def percent(values: pd.Series[float]) -> str:
    """Return the mean of shares in percent, with their range if there are several; or a dash."""
    known = values.dropna()
    if known.empty:
        return "\N{EN DASH}"
    told = f"{100 * known.mean():.1f}%"
    if len(known) > 1:
        told += f" ({100 * known.min():.1f} to {100 * known.max():.1f})"
    return told


def _around(own: pd.DataFrame, variant: str) -> Judgement:
    """Judge by the nodes that are held, the more favourable reading."""
    held, running = of(own, variant, "occupied"), of(own, variant, "useful")
    told = f"{percent(held)} held, {percent(running)} running; "
    told += f"within {100 * AROUND:.0f} points by nodes held "
    return judge((held - UTILISATION).abs() <= AROUND, f"{told}in {{so}} of {{of}} runs")


def _more(own: pd.DataFrame, one: str, other: str, *, over: str | None = None) -> Judgement:
    """Judge whether more nodes run with one variant than with another."""
    first, second = both(own, one, other, "useful")
    told = f"running: {percent(first)} ({one}), {percent(second)} ({other})"
    if over is not None:
        told += f", {percent(of(own, over, 'useful'))} ({over})"
    return judge(first > second, f"{told}; more in {{so}} of {{of}} runs")


def _alike(own: pd.DataFrame) -> Judgement:
    apart = []
    for variant in LONGER:
        long, usual = both(own, variant, SYSTEM, "useful")
        apart += list((long - usual).abs())
    told = f"at most {100 * np.nanmax(apart):.1f} points apart" if np.isfinite(apart).any() else ""
    within = f"within {100 * ALIKE:.0f} points in {{so}} of {{of}} comparisons"
    return judge([gap <= ALIKE for gap in apart], "; ".join(filter(None, (told, within))))


def _costs(own: pd.DataFrame) -> Judgement:
    """Judge by the nominal time of all solves, which does not depend on the machine."""
    cases, told = [], []
    for variant in LONGER:
        long, usual = both(own, variant, SYSTEM, "nominal_seconds")
        ratio = long / usual
        told.append(f"{ratio.mean():.2f} times ({variant})")
        cases += list(ratio >= MORE)
    return judge(
        cases,
        f"nominal solving time {' and '.join(told)}; at least {MORE:g} times in {{so}} of {{of}} "
        "comparisons",
    )


def _avoided(own: pd.DataFrame) -> Judgement:
    with_, without = both(own, SYSTEM, ONLY_BACKFILLING, NODE_TIME["fragmented"])
    told = f"{percent(without)} of the node time without migration, {percent(with_)} with it"
    return judge(with_ <= AVOIDED * without, f"{told}; at least halved in {{so}} of {{of}} runs")
