"""The page of the study."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from optsched.report.page import Cell, Figure, Page, Section, Table, Value, cell, duration, share
from optsched.simulator.provenance import versions
from optsched.studies.paired import Improvement, improvement, percent
from optsched.studies.yang_2014.claims import COMPARABLE, EXACT, GREEDY, MAIN, claims
from optsched.studies.yang_2014.evaluation import METRICS, cells, compared, gain, grouped, varied
from optsched.studies.yang_2014.plan import BLUE, GENERIC, LOGS, VARIANTS
from optsched.studies.yang_2014.plan import MAIN as VARIANT
from optsched.studies.yang_2014.published import SHARES, TABLES

if TYPE_CHECKING:
    import pandas as pd

OPEN_ENDS = (
    "The paper does not identify its 4,830 jobs of SDSC-BLUE: parts of as many are run, evenly "
    "spaced over the log. Of Intrepid, 1,200 jobs are public (the paper has 2,612); Mira, of the "
    "same site, stands beside it. Each cell is the mean over all parts and draws of the sensitive "
    "jobs; in brackets the 95% confidence interval of a paired bootstrap over them. Parts of one "
    "log differ more than draws do, so the intervals are rather too narrow than too wide.",
    "Default is FCFS with EASY backfilling that takes the first free nodes in the order of the "
    "line. The paper does not say whether its design backfills behind the window, so there are "
    "three variants: strict (only the window starts jobs), backfill (jobs behind a blocked head "
    "start in slots if they do not delay it), and backfill, scatter (a head that no slot holds may "
    "also start on scattered nodes).",
    "Utilisation is equation (11): the time that jobs held nodes, over all node-time. A job that "
    "runs faster holds its nodes for less time, so a scheduler that makes jobs faster lowers it "
    "unless the last job ends earlier too. In a log of fixed length the last job hardly does: the "
    "published gains cannot come about in this way, and do not.",
)


def page(frame: pd.DataFrame, pictures: Mapping[str, str]) -> Page:
    """Return the page; its first paragraph says what the exact solver is worth."""
    sections = [
        Section("What becomes of the claims", [_claims(frame)]),
        Section("Is the exact solver worth it?", [_exact(frame)]),
        *[
            Section(
                f"{log.name}", [*_tables(frame, log.name), *_figures(frame, pictures, log.name)]
            )
            for log in LOGS
            if log.name in set(frame["log"])
        ],
        Section("Window, solver, and the time to decide", [*_windows(frame), *_picture(pictures)]),
        Section("Locality, large jobs, fragmentation", [_places(frame)]),
        Section("What the paper leaves open", list(OPEN_ENDS)),
    ]
    runs, jobs = len(frame), int(frame["jobs"].sum())
    return Page(
        title="Yang et al. 2014: window-based locality-aware scheduling, run again",
        lead=f"{_lead(frame)} {_corners(frame)} All from {runs:,} simulations of {jobs:,} jobs.",
        sections=sections,
        repeat="optsched study yang-2014 --traces TRACES -o DIR",
        versions=versions(),
    )


def _lead(frame: pd.DataFrame) -> str:
    own = frame[(frame["solver"] == EXACT) & (frame["variant"] == VARIANT)]
    own = own[(own["window"] == MAIN["window"]) & ~own["charged"]]
    problems = own["problems"].sum()
    matched = (own["heuristic_matched"] * own["problems"]).sum() / problems
    gap = own["heuristic_gap"].mean()
    change = _exact_gain(frame, "mean_wait", variant=VARIANT)
    return (
        f"Is the exact solver worth it? {_worth(change)}: Greedy was optimal in "
        f"{percent(matched)}% of {int(problems):,} decisions, {100 * gap:.0f}% short on average "
        f"where it was not, and branch and bound in its place changes the mean wait by {change}, "
        "a plus for less."
    )


def _corners(frame: pd.DataFrame) -> str:
    """Return the ends of Table II beside the published ones."""
    table = next(t for t in TABLES if (t.log, t.metric) == (BLUE.name, "mean_wait"))
    found = cells(frame, table.metric, log=BLUE.name, solver=EXACT, variant=VARIANT, **MAIN)
    least, most = found[SHARES[0], SHARES[0]], found[SHARES[-1], SHARES[-1]]
    published = table.branch_and_bound
    return (
        f"On SDSC-BLUE the window improves the mean wait by {most} where alpha = beta = "
        f"{100 * SHARES[-1]:.0f}% (paper {published[-1][-1]}%), by {least} where they are "
        f"{100 * SHARES[0]:.0f}% (paper {published[0][0]}%)."
    )


def _worth(change: Improvement) -> str:
    """Return in words what the interval says; a percent either way is next to nothing."""
    if change.low >= -COMPARABLE and change.high <= COMPARABLE:
        return "Next to nothing"
    if change.low > 0:
        return "Yes"
    return "No" if change.high < 0 else "Not that these runs could show"


def _exact_gain(frame: pd.DataFrame, metric: str, **wanted: str) -> Improvement:
    """Return the improvement by branch and bound over Greedy on the same jobs."""
    exact = compared(frame, solver=EXACT, **wanted, **MAIN)
    greedy = compared(frame, solver=GREEDY, **wanted, **MAIN)
    by = ["log", "variant", "jobs_run", "alpha", "beta", "draw"]
    pairs = greedy.merge(exact, on=by, suffixes=("_greedy", "_exact"), validate="1:1")
    return improvement(pairs[f"{metric}_greedy"], pairs[f"{metric}_exact"])


def _claims(frame: pd.DataFrame) -> Table:
    rows: list[list[Value]] = []
    for claim in claims(frame, list(VARIANTS)):
        judged = [
            replace(cell(judgement.verdict), note=judgement.why)
            for judgement in claim.judgements.values()
        ]
        rows.append([claim.text, claim.published, *judged])
    return Table(
        "Held: in at least nine cells of ten; in part: in half of them. Cells are those of branch "
        "and bound with a window of five jobs, by variant.",
        ["claim", "published", *VARIANTS],
        rows,
    )


def _exact(frame: pd.DataFrame) -> Table:
    rows: list[list[Value]] = []
    for log in frame["log"].unique():
        for variant in VARIANTS:
            own = compared(frame, log=log, variant=variant, solver=EXACT, **MAIN)
            problems = own["problems"].sum()
            matched = (own["heuristic_matched"] * own["problems"]).sum() / problems
            change = {
                m: _exact_gain(frame, m, log=log, variant=variant) for m in METRICS if "mean" in m
            }
            rows.append(
                [
                    log,
                    variant,
                    int(problems),
                    share(matched),
                    share(own["heuristic_gap"].mean()),
                    int(own["unproven"].sum()),
                    *[_percent(found) for found in change.values()],
                ]
            )
    return Table(
        "Decisions of branch and bound, and what Greedy finds in the same: the share where it is "
        "optimal, how much less it places where it is not. Then the change of the mean wait and "
        "response when branch and bound replaces Greedy in the whole run (positive is better).",
        [
            "log",
            "variant",
            "decisions",
            "Greedy optimal",
            "its gap else",
            "unproven",
            "wait",
            "response",
        ],
        rows,
    )


def _tables(frame: pd.DataFrame, log: str) -> list[Table]:
    return [_table(frame, log, metric) for metric in METRICS]


def _table(frame: pd.DataFrame, log: str, metric: str) -> Table:
    """Return a table of the paper beside ours: rows are beta and algorithm, columns alpha."""
    published = next((t for t in TABLES if (t.log, t.metric) == (log, metric)), None)
    found = {
        solver: cells(frame, metric, log=log, solver=solver, variant=VARIANT, **MAIN)
        for solver in (EXACT, GREEDY)
    }
    alphas = sorted({alpha for _, alpha in found[EXACT]})
    rows: list[list[Value]] = []
    for beta in sorted({beta for beta, _ in found[EXACT]}):
        for solver, theirs in ((EXACT, "branch_and_bound"), (GREEDY, "greedy")):
            row: list[Value] = [f"{100 * beta:.0f}%", solver]
            for alpha in alphas:
                note = ""
                if published is not None:
                    value = getattr(published, theirs)[SHARES.index(beta)][SHARES.index(alpha)]
                    note = f"paper {value:g}%"
                row.append(_percent(found[solver][beta, alpha], note))
            rows.append(row)
    number = f"Table {published.number}. " if published else "Not in the paper. "
    return Table(
        f"{number}{log}: improvement of {METRICS[metric]} over Default, with its 95% interval; "
        f"variant {VARIANT}.",
        ["beta", "algorithm", *[f"alpha = {100 * alpha:.0f}%" for alpha in alphas]],
        rows,
    )


def _figures(frame: pd.DataFrame, pictures: Mapping[str, str], log: str) -> list[Figure]:
    shown = []
    for table in TABLES:
        name = f"table-{table.number.lower()}"
        if table.log != log or name not in pictures:
            continue
        told = []
        for variant in VARIANTS:
            found = cells(frame, table.metric, log=log, solver=EXACT, variant=variant, **MAIN)
            means = [100 * cell.mean for cell in found.values()]
            told.append(f"{variant} {min(means):.1f} to {max(means):.1f}%")
        published = [value for row in table.branch_and_bound for value in row]
        shown.append(
            Figure(
                pictures[name],
                f"Improvement by alpha, a curve for each beta: published {min(published):.1f} to "
                f"{max(published):.1f}%, measured {', '.join(told)}.",
                f"Table {table.number} as curves, branch and bound, for all variants.",
            )
        )
    return shown


def _windows(frame: pd.DataFrame) -> list[Table]:
    """Return improvements by window and solver: of all parts, and of the one that CP-SAT ran."""
    middle, runs = varied(frame)
    generic = runs[runs["solver"] == GENERIC]
    same = runs.merge(generic[["jobs_run", "draw", "window"]].drop_duplicates())
    about = (
        f"{BLUE.name}, variant {VARIANT}, alpha = beta = {100 * middle:.0f}%: improvement over "
        "Default by window and solver"
    )
    charged = "Charged: what is decided waits as long as the solver's work nominally takes."
    return [
        _by_window(f"{about}. {charged}", runs[runs["solver"] != GENERIC]),
        _by_window(f"{about}, on the one part and draw that CP-SAT ran too.", same),
    ]


def _by_window(caption: str, runs: pd.DataFrame) -> Table:
    rows: list[list[Value]] = []
    for (window, solver, charged), own in grouped(runs, ["window", "solver", "charged"]):
        problems = own["problems"].sum()
        matched = (own["heuristic_matched"] * own["problems"]).sum() / problems
        rows.append(
            [
                int(window),
                solver,
                "charged" if charged else "free",
                len(own),
                _percent(gain(own, "mean_wait")),
                _percent(gain(own, "mean_response")),
                share(matched),
                int(own["unproven"].sum()),
                int(own["fallbacks"].sum()),
            ]
        )
    return Table(
        caption,
        [
            "window",
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


def _picture(pictures: Mapping[str, str]) -> list[Figure]:
    if "windows" not in pictures:
        return []
    alt = "Improvement of the mean wait by window size and solver; the table above has the numbers."
    return [Figure(pictures["windows"], alt, "Improvement of the mean wait over Default.")]


def _places(frame: pd.DataFrame) -> Table:
    rows: list[list[Value]] = []
    for log in frame["log"].unique():
        for variant in VARIANTS:
            own = compared(frame, log=log, variant=variant, solver=EXACT, **MAIN)
            row: list[Value] = [log, variant]
            for name in ("contiguous_share", "loss_of_capacity", "external_fragmentation"):
                row += [share(own[f"{name}_default"].mean()), share(own[name].mean())]
            for name in ("large_mean_wait", "large_max_wait", "makespan"):
                row += [duration(own[f"{name}_default"].mean()), duration(own[name].mean())]
            rows.append(row)
    groups = (
        "contiguous jobs",
        "loss of capacity",
        "external fragmentation",
        "mean wait of large jobs",
        "longest wait of large jobs",
        "makespan",
    )
    return Table(
        "Means over all cells, Default beside the window with branch and bound. Large jobs are the "
        "tenth with most processors: do they starve? Loss of capacity: free node-time while a job "
        "waited that needed no more nodes; external fragmentation: free in slots too small for "
        "every waiting job.",
        ["log", "variant", *[(group, who) for group in groups for who in ("Default", "window")]],
        rows,
    )


def _percent(found: Improvement, note: str = "") -> Cell:
    notes = ", ".join(part for part in (found.interval, note) if part)
    return Cell(f"{percent(found.mean)}%", found.mean, note=notes)
