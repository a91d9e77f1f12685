"""The numbers and tables of the page."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from optsched.machines.smp import BANDWIDTH
from optsched.report.page import Cell, Verdict, cell, share
from optsched.studies.guim_2009.claims import BY_LIMITS, BY_READING, REACHED
from optsched.studies.guim_2009.evaluation import (
    KILLED,
    LCT,
    PERCENTILES,
    PUBLISHED,
    TABULATED,
    WITH_SLACK,
    Spread,
    as_stated,
    by_part,
    change,
    mean,
    noise,
    published,
    read_as,
    same_runs,
)
from optsched.studies.guim_2009.figures import AGAINST, SHOWN, SLOWDOWN, picture_name
from optsched.studies.guim_2009.plan import (
    INSTEAD_OF,
    OTHER_TIES,
    PAPER,
    READINGS,
    REQUESTED_OF,
    SAME_OBJECTIVE,
    SCHEDULERS,
    STATED,
    VARIANTS,
)
from optsched.studies.template import Record
from optsched.traces.bandwidth import LEVELS

if TYPE_CHECKING:
    import pandas as pd

    from optsched.studies.judging import Claim

PROCESSORS = 4
"""Processors of a node."""

WORST = max(1.0, PROCESSORS * LEVELS["high"] / BANDWIDTH)
"""The penalty factor of a node on which all processes have a high demand."""

UNPENALIZED = "high 1,500 MB/s"
"""The reading in which no node is short of bandwidth."""

FEWER_PROCESSORS = "CTC of 340 processors"
"""The reading in which CTC has the size that the log's header gives."""

FOR_ALL = "LC, exact for all"

HEADS = {
    "killed": ("killed", "jobs"),
    "p95_bounded_slowdown": ("bounded slowdown", "95th percentile"),
    "mean_bounded_slowdown": ("bounded slowdown", "mean"),
    "p95_wait": ("wait, s", "95th percentile"),
    "mean_wait": ("wait, s", "mean"),
    "p95_penalised_percent": ("penalized runtime, %", "95th percentile"),
    "mean_penalised_percent": ("penalized runtime, %", "mean"),
}
"""The headings of the metrics."""


def values(frame: pd.DataFrame, *, quick: bool) -> Mapping[str, Any]:
    """Return the names that the template uses."""
    every = frame
    frame = read_as(frame)
    stated = as_stated(frame)
    cases = dict.fromkeys(zip(frame["centre"], frame["mix"]))
    parts = {case: _part(frame, *case) for case in cases}
    together = by_part(frame)
    whole = {("all", "all"): together} if frame["centre"].nunique() > 1 else {}
    compared = whole | {case: by_part(own) for case, own in parts.items()}

    pressed = frame[frame["mix"].isin(["HIGH", "MED"])]
    like_less_consume = same_runs(together, FOR_ALL, "LC")

    def figures(
        names: list[str], frame: pd.DataFrame = frame, *, ranges: bool = False
    ) -> list[Record]:
        return [
            {"center": centre, "mix": mix, "policy": name}
            | {
                head: measured(found) if ranges else cell(found.mean)
                for metric, head in HEADS.items()
                for found in [mean(frame, centre, mix, name, metric)]
            }
            for centre, mix in cases
            for name in names
        ]

    def ratios(pairs: Mapping[str, tuple[str, str]]) -> list[Record]:
        return [
            {"policy": name, "center": where[0], "mix": where[1]}
            | {
                (quantity.partition(",")[0], what): measured(change(own, *pair, metric))
                for metric, (quantity, what) in HEADS.items()
            }
            for name, pair in pairs.items()
            for where, own in compared.items()
        ]

    return {
        "where": {BY_LIMITS: list(VARIANTS), BY_READING: list(READINGS)},
        "stated": VARIANTS[STATED],
        "other_ties": OTHER_TIES,
        "noise": {
            " ".join(head): noise(together, metric)
            for metric, head in HEADS.items()
            if np.isfinite(noise(together, metric))
        },
        "killed": _killed(stated, cases),
        "readings": _readings(every),
        "compared_parts": len(frame[["centre", "part"]].drop_duplicates()),
        "dependent": dependent,
        "reached": REACHED,
        "pressed": by_part(pressed),
        "killed_by_centre": {
            str(centre): {name: mean_killed(by_part(own), name) for name in ("FF", "LC", "RUA")}
            for centre, own in pressed.groupby("centre", sort=False)
        },
        "bounds": bounds,
        "times": lambda a, b, metric, own=together: f"{change(own, a, b, metric).mean:.2f}",
        "mean": partial(mean, stated),
        "if_raised": partial(mean, frame),
        "fewer_processors": partial(mean, as_stated(read_as(every, FEWER_PROCESSORS))),
        "without_penalty": partial(mean, as_stated(read_as(every, UNPENALIZED))),
        "paper": published,
        "slowdown": SLOWDOWN,
        "centres": list(dict.fromkeys(frame["centre"])),
        "mixes": list(dict.fromkeys(frame["mix"])),
        "tabulated": TABULATED,
        "against": AGAINST,
        "shown": SHOWN,
        "picture_name": picture_name,
        "requested": REQUESTED_OF,
        "instead_of": INSTEAD_OF,
        "same_objective": SAME_OBJECTIVE,
        "other_objective": [
            name
            for name, own in INSTEAD_OF.items()
            if name not in SAME_OBJECTIVE
            and own not in LCT
            and not (name == FOR_ALL and like_less_consume)
        ],
        "exact_solver": SCHEDULERS[FOR_ALL]["solver"],
        "for_all": FOR_ALL,
        "largest_threshold": LCT[-1],
        "like_first_fit": same_runs(together, LCT[-1], "FF"),
        "like_less_consume": like_less_consume,
        "worst": WORST,
        "processors": PROCESSORS,
        "bandwidth": BANDWIDTH,
        "levels": LEVELS,
        "published": [one | {"records": _beside(stated, one["metric"])} for one in PUBLISHED],
        "schedulers": figures(list(SCHEDULERS)),
        "rua": figures(["FF", "LC", "RUA"], stated, ranges=True),
        "exact": ratios({exact: (exact, name) for exact, name in INSTEAD_OF.items()}),
        "limits": ratios({name: (name, requested) for name, requested in REQUESTED_OF.items()}),
        "percentiles": [
            {"center": centre, "mix": mix, "policy": name}
            | {
                (head, f"{p}th"): mean(frame, centre, mix, name, f"p{p}_{of}").mean
                for of, head in (("wait", "wait, s"), ("penalised_percent", "penalized runtime, %"))
                for p in PERCENTILES
            }
            for centre, mix in cases
            for name in PAPER
        ],
        "problems": [_problems(frame, name) for name in SCHEDULERS],
        "workloads": [_workload(case, own) for case, own in parts.items()],
    }


def measured(value: Spread, note: str = "") -> Cell:
    """Show a mean with what stands beside it, if anything does."""
    shown = cell(value.mean)
    if not np.isnan(value.low):
        shown = replace(
            shown, text=f"{shown.text} [{cell(value.low).text}, {cell(value.high).text}]"
        )
    return replace(shown, note=note)


def _part(frame: pd.DataFrame, centre: str, mix: str) -> pd.DataFrame:
    return frame[(frame["centre"] == centre) & (frame["mix"] == mix)]


def _beside(frame: pd.DataFrame, metric: str) -> list[Record]:
    """Return our means of a metric, with the published numbers below."""

    def note(centre: str, mix: str, name: str) -> str:
        value = published(metric, centre, mix, name)
        if value is None:
            return ""
        return "paper -" if np.isnan(value) else f"paper {value:,g}"

    return [
        {"center": centre, "mix": mix}
        | {
            name: measured(mean(frame, centre, mix, name, metric), note(centre, mix, name))
            for name in TABULATED
        }
        for centre, mix in dict.fromkeys(zip(frame["centre"], frame["mix"]))
    ]


def _killed(frame: pd.DataFrame, cases: Iterable[tuple[str, str]]) -> list[Record]:
    """Return the killed jobs of the paper's policies."""
    return [
        {"center": centre, "mix": mix, "of killed jobs": of}
        | {name: mean(frame, centre, mix, name, metric).mean for name in PAPER}
        for centre, mix in cases
        for of, metric in (("all", KILLED), ("with slack", WITH_SLACK))
    ]


def _readings(frame: pd.DataFrame) -> list[Record]:
    """Return the figures by center, mix and reading that changes them."""
    changed = ["", *(name for name, one in READINGS.items() if "metrics" not in one)]
    return [
        {"center": centre, "mix": mix, "reading": reading or "as above"}
        | {
            (HEADS[metric][0], name): mean(own, centre, mix, name, metric).mean
            for metric in (KILLED, SLOWDOWN)
            for name in PAPER
        }
        for reading in changed
        for own in [as_stated(frame[frame["reading"] == reading])]
        for centre, mix in dict.fromkeys(zip(own["centre"], own["mix"]))
    ]


def dependent(claims: Iterable[Claim]) -> dict[str, int]:
    """Count the claims whose verdict depends on whose limits are raised, and on each reading.

    Claims that cannot be judged do not count, nor does a reading in which none can.
    """
    found: dict[str, dict[str, Verdict]] = defaultdict(dict)
    for claim in claims:
        for name, one in claim.judgements.items():
            if one.verdict is not Verdict.NOT_JUDGED:
                found[claim.text][name] = one.verdict
    limits = sum(len({one[name] for name in VARIANTS if name in one}) > 1 for one in found.values())
    of_readings = {
        name: sum(one[name] != one.get(STATED, one[name]) for one in judged)
        for name in READINGS
        if (judged := [one for one in found.values() if name in one])
    }
    return {"claims": len(found), BY_LIMITS: limits} | of_readings


def mean_killed(parts: pd.DataFrame, scheduler: str) -> float:
    """Return the killed jobs of a part in all of its mixes, in the mean of the parts."""
    return float(parts[KILLED, scheduler].groupby(level=["centre", "part"]).sum().mean())


def bounds(claims: Iterable[Claim], argument: str) -> list[Any]:
    """Return the values of an argument of the claims, such as how close is "similar"."""
    stated = [claim.arguments[argument] for claim in claims if argument in claim.arguments]
    return sorted({tuple(one) if isinstance(one, list) else one for one in stated})


def _problems(frame: pd.DataFrame, name: str) -> Record:
    own = frame[frame["scheduler"] == name]
    counts: dict[str, Any] = {
        of: int(own[of].sum()) for of in ("problems", "unproven", "fallbacks")
    }
    as_good = share(float(own["heuristic_matched"].astype(float).mean()))
    asked = {"policy": SCHEDULERS[name]["policy"], "solver": SCHEDULERS[name]["solver"]}
    return {"run": name, **asked, **counts, "rule as good": as_good}


def _workload(case: tuple[str, str], own: pd.DataFrame) -> Record:
    first = own.iloc[0]
    return {
        "center": case[0],
        "mix": case[1],
        "machine": first["machine"],
        "jobs": int(first["jobs"]),
        "evaluated": int(first["evaluated"]),
        "largest job": int(first["largest_job"]),
        "load": float(first["load"]),
        "jobs without slack": share(float(first["without_slack"])),
        **{("jobs with demand", level): share(float(first[f"demand_{level}"])) for level in LEVELS},
        "mean demand, MB/s": float(first["mean_demand"]),
        "utilization": share(float(own.loc[own["scheduler"] == "FF", "utilization"].mean())),
        "parts": own["part"].nunique(),
        "runs": len(own),
    }
