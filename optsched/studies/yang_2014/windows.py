"""What window, solver, ticks and charges make of it: tables and picture of the page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from optsched.report.page import Cell, Figure, Table, Value, share
from optsched.studies.paired import Improvement, percent
from optsched.studies.results import grouped
from optsched.studies.yang_2014.evaluation import compared, gain, varied
from optsched.studies.yang_2014.plan import (
    BLUE,
    CP_SAT_WORK,
    EXACT,
    GENERIC,
    GREEDY,
    OTHERS,
    SHOWN,
)

if TYPE_CHECKING:
    import pandas as pd


def window_section(frame: pd.DataFrame, pictures: Mapping[str, str]) -> list[str | Table | Figure]:
    """Return improvements by window and solver: of all parts, and of the one that CP-SAT ran."""
    middle, runs = varied(frame)
    pairs = compared(runs)
    generic = pairs[pairs["solver"] == GENERIC]
    same = pairs.merge(generic[["part", "draw", "window"]].drop_duplicates())
    same = same[same["solver"].isin([EXACT, GREEDY, GENERIC])]
    about = (
        f"{BLUE.name}, variant {SHOWN}, alpha = beta = {100 * middle:.0f}%: improvement over "
        "Default by window and solver"
    )
    alt = "Improvement of the mean wait by window size and solver; the table above has the numbers."
    drawn = [
        Figure(svg, alt, "Improvement of the mean wait over Default, with its interval.")
        for svg in [pictures.get("windows")]
        if svg is not None
    ]
    return [
        _by_window(
            f"{about}. Charged: what is decided waits as long as the solver's work nominally "
            "takes.",
            pairs[pairs["solver"] != GENERIC],
        ),
        *drawn,
        _by_window(
            f"{about}, on the one part and draw that CP-SAT ran too, with {CP_SAT_WORK} of its "
            "deterministic time for each decision. Nominal charges are too small for generic "
            "solvers on large windows.",
            same,
        ),
    ]


def _by_window(caption: str, pairs: pd.DataFrame) -> Table:
    rows: list[list[Value]] = []
    by = ["window", "interval", "solver", "charged"]
    for (window, interval, solver, charged), own in grouped(pairs, by):
        exact = solver not in (GREEDY, OTHERS[1])
        rows.append(
            [
                int(window),
                "every event" if interval == 0 else f"every {interval:.0f} s",
                solver,
                "charged" if charged else "free",
                len(own),
                improved(gain(own, "mean_wait")),
                improved(gain(own, "mean_response")),
                share(matched(own)) if exact else None,
                int(own["unproven"].sum()) if exact else None,
                int(own["fallbacks"].sum()),
            ]
        )
    return Table(
        caption,
        [
            "window",
            "decides",
            "solver",
            "time",
            "runs",
            "wait",
            "response",
            "Greedy as good",
            "unproven",
            "fallbacks",
        ],
        rows,
    )


def matched(runs: pd.DataFrame) -> float:
    """Return the share of problems where Greedy is as good as the answer that counted."""
    problems = runs["problems"].sum()
    return float((runs["heuristic_matched"] * runs["problems"]).sum() / problems)


def improved(found: Improvement, note: str = "") -> Cell:
    """Return an improvement in percent, with its interval and a note."""
    notes = ", ".join(part for part in (found.interval, note) if part)
    return Cell(f"{percent(found.mean)}%", found.mean, note=notes)
