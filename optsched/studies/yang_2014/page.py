"""The page of the study."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from optsched.numbers import counted
from optsched.report.page import Figure, Page, Section, Table, Value, cell, duration, share
from optsched.studies.paired import Improvement, percent
from optsched.studies.results import grouped
from optsched.studies.yang_2014.claims import claims
from optsched.studies.yang_2014.evaluation import (
    METRICS,
    cells,
    compared,
    gain,
    grid,
    replaced,
    scattering,
    varied,
)
from optsched.studies.yang_2014.plan import (
    BLUE,
    EXACT,
    GENERIC,
    GREEDY,
    INTERVAL,
    LOGS,
    SHOWN,
    SOLVERS,
    VARIANTS,
    WINDOW,
)
from optsched.studies.yang_2014.published import SHARES, TABLES
from optsched.studies.yang_2014.windows import improved, matched, window_section

if TYPE_CHECKING:
    import pandas as pd

NEXT_TO_NOTHING = 0.01
"""A change of no more than this, with its whole interval, is next to nothing."""

OPEN_ENDS = (
    "The paper does not identify its jobs of SDSC-BLUE: parts of as many are run, evenly spaced. "
    "Of Intrepid, 1,200 jobs are public, in three parts (the paper has 2,612); Mira, of the same "
    "site, stands beside it. Every part starts on an empty machine and ends when its last job has.",
    "An improvement is that of the mean over all parts, so parts in which jobs wait long weigh "
    "more; one table shows every part. Parts differ far more than draws of the sensitive jobs do, "
    "so the interval is that of a paired bootstrap over the parts, each with the means of its "
    "draws. Where there are only three it is hardly more than their range.",
    f"Default is FCFS with EASY backfilling that takes the first free nodes in the order of the "
    f"line; it decides at every event. The window decides every {INTERVAL:.0f} s, as the paper "
    "says of its scheduler; the table of windows has a row without ticks. A control at alpha = 0 "
    "tells what the policy costs where contiguous nodes are worth nothing.",
    "The paper does not say whether its design backfills behind the window, so there are three "
    "variants: strict (only the window starts jobs), backfill (jobs behind a blocked head start in "
    "slots if they do not delay it) and backfill, scatter (a head that no slot holds may also "
    "start on scattered nodes). Jobs of the window itself may delay the head in all of them.",
    "Greedy is Algorithm 3; with the exchange that section III.B describes it stands in the table "
    "of windows. Utilisation is equation (11), the time that jobs held nodes: a job that runs "
    "faster holds them for less time, so making jobs faster lowers it unless the makespan falls as "
    "much. The makespan stands beside it.",
)


def page(
    frame: pd.DataFrame, pictures: Mapping[str, str], versions: Mapping[str, str], *, quick: bool
) -> Page:
    """Return the page; its first paragraph says what the exact solver is worth.

    Parameters
    ----------
    frame : pandas.DataFrame
        What `evaluation.prepare` returns.
    pictures : mapping of str to str
        The SVG of each picture.
    versions : mapping of str to str
        What the runs were made with.
    quick : bool
        Whether it is the small part, of which nothing can be concluded.
    """
    own = grid(frame)
    logs = [log.name for log in LOGS if log.name in set(own["log"])]
    by_log = [
        Section(log, [*(_table(own, log, m) for m in METRICS), *_figures(own, pictures, log)])
        for log in logs
    ]
    judged = [] if quick else [Section("What becomes of the claims", [_claims(own)])]
    runs, jobs = len(frame), int(frame["jobs"].sum())
    lead = f"{_lead(frame)} All from {runs:,} simulations of {jobs:,} jobs."
    if quick:
        lead = (
            "A quick look at a small part: nothing can be concluded from it, so no claim is judged "
            f"here. {lead}"
        )
    return Page(
        title="Yang et al. 2014: window-based locality-aware scheduling, run again",
        lead=lead,
        sections=[
            *judged,
            Section("Is the exact solver worth it?", [_exact(own)]),
            Section("From part to part", [_parts(frame)]),
            *by_log,
            Section(
                "Window, solver, ticks, and the time to decide", window_section(frame, pictures)
            ),
            Section("Locality, large jobs, fragmentation", [_places(own)]),
            Section("What was run", [_runs(frame)]),
            Section("What the paper leaves open", list(OPEN_ENDS)),
        ],
        repeat=f"optsched study yang-2014{' --quick' if quick else ''} --traces TRACES -o DIR",
        versions=versions,
    )


def _lead(frame: pd.DataFrame) -> str:
    """Return what the exact solver is worth on SDSC-BLUE, and both ends of Table II."""
    own = grid(frame)
    wanted = {"log": BLUE.name, "variant": SHOWN}
    runs = compared(own, solver=EXACT, **wanted)
    change = replaced(own, "mean_wait", GREEDY, EXACT, **wanted)
    _, middle = varied(frame)
    ties = scattering(middle, "mean_wait", EXACT, GENERIC, charged=False, interval=INTERVAL)
    greedy = scattering(own, "mean_wait", GREEDY, EXACT, **wanted)
    table = next(t for t in TABLES if (t.log, t.metric) == (BLUE.name, "mean_wait"))
    found = cells(own, table.metric, solver=EXACT, **wanted)
    published = table.branch_and_bound
    return (
        f"Is the exact solver worth it? {_worth(change)}: on {BLUE.name}, Greedy was optimal in "
        f"{percent(matched(runs))}% of {int(runs['problems'].sum()):,} decisions, "
        f"{percent(runs['heuristic_gap'].mean())}% short on average where it was not. Branch and "
        f"bound in its place changes the mean wait by {change} (a plus for less). A single run "
        f"moves by {percent(greedy)}% up or down, and on one part by {percent(ties)}% between "
        f"branch and bound and {GENERIC}, which differ in ties alone. Against Default, the window "
        f"with branch and bound "
        f"improves the mean wait by {found[SHARES[-1], SHARES[-1]]} where alpha = beta = 50% "
        f"(paper {published[-1][-1]}%), by {found[SHARES[0], SHARES[0]]} where they are 10% "
        f"(paper {published[0][0]}%)."
    )


def _worth(change: Improvement) -> str:
    """Return in words what the interval says."""
    if change.low >= -NEXT_TO_NOTHING and change.high <= NEXT_TO_NOTHING:
        return "Next to nothing"
    if change.low > 0:
        return "A little" if change.mean < 5 * NEXT_TO_NOTHING else "Yes"
    return "No" if change.high < 0 else "Not that these runs could show"


def _claims(own: pd.DataFrame) -> Table:
    rows: list[list[Value]] = []
    for claim in claims(own, list(VARIANTS)):
        judged = [replace(cell(j.verdict), note=j.why) for j in claim.judgements.values()]
        rows.append([claim.text, claim.published, *judged])
    return Table(
        "Branch and bound with a window of five jobs, by variant. Held: so in at least nine of ten "
        "cells, or steps from one alpha or beta to the next; in part: in half of them. An "
        "improvement counts where its whole interval is above 0. Compactness and utilisation are "
        "one claim: both or not held.",
        ["claim", "published", *VARIANTS],
        rows,
    )


def _exact(own: pd.DataFrame) -> Table:
    rows: list[list[Value]] = []
    for log in own["log"].unique():
        for variant in VARIANTS:
            wanted = {"log": log, "variant": variant}
            runs = compared(own, solver=EXACT, **wanted)
            row: list[Value] = [log, variant, int(runs["problems"].sum()), share(matched(runs))]
            row += [share(runs["heuristic_gap"].mean()), int(runs["unproven"].sum())]
            for metric in ("mean_wait", "mean_response"):
                row.append(improved(replaced(own, metric, GREEDY, EXACT, **wanted)))
            row.append(share(scattering(own, "mean_wait", GREEDY, EXACT, **wanted)))
            rows.append(row)
    return Table(
        "Decisions of branch and bound, and what Greedy finds in the same: the share where it is "
        "optimal, how much less it places where it is not. Then what branch and bound in Greedy's "
        "place gains in the whole run (a plus is better), and by how much the mean wait of a "
        "single run moves, up or down.",
        [
            "log",
            "variant",
            "decisions",
            "Greedy optimal",
            "its gap else",
            "unproven",
            "wait",
            "response",
            "wait moves by",
        ],
        rows,
    )


def _parts(frame: pd.DataFrame) -> Table:
    """Return the improvement of the wait in each part, at the corners and with alpha = 0."""
    own = grid(frame)
    corners = sorted(set(own["alpha"]))
    shown = [0.0, corners[0], corners[len(corners) // 2], corners[-1]]
    rows: list[list[Value]] = []
    usual = frame[(frame["window"].isin([WINDOW]) & ~frame["charged"]) | frame["window"].isna()]
    usual = usual[(usual["interval"] == INTERVAL) | usual["interval"].isna()]
    by_part = dict(grouped(usual, ["log", "part"]))
    names = [log.name for log in LOGS]
    for log, part in sorted(by_part, key=lambda key: (names.index(key[0]), _first_job(key[1]))):
        runs = by_part[log, part]
        for variant in list(VARIANTS)[1:]:
            row: list[Value] = [log, part, variant]
            pairs = compared(runs, solver=EXACT, variant=variant)
            row.append(duration(pairs["mean_wait_default"].mean()))
            for size in dict.fromkeys(shown):
                at = pairs[(pairs["alpha"] == size) & (pairs["beta"] == size)]
                row.append(improved(gain(at, "mean_wait")))
            rows.append(row)
    labels = [f"alpha = beta = {100 * size:.0f}%" for size in dict.fromkeys(shown)]
    return Table(
        "Improvement of the mean wait over Default, part by part, with branch and bound. At 0% "
        "contiguous nodes are worth nothing: what the policy itself costs.",
        ["log", "jobs", "variant", "wait of Default", *labels],
        rows,
    )


def _table(own: pd.DataFrame, log: str, metric: str) -> Table:
    """Return a table of the paper beside ours: rows are beta and algorithm, columns alpha."""
    published = next((t for t in TABLES if (t.log, t.metric) == (log, metric)), None)
    found = {
        solver: cells(own, metric, log=log, solver=solver, variant=SHOWN) for solver in SOLVERS
    }
    alphas = sorted({alpha for _, alpha in found[EXACT]})
    rows: list[list[Value]] = []
    for beta in sorted({beta for beta, _ in found[EXACT]}):
        for solver, theirs in zip(SOLVERS, ("branch_and_bound", "greedy")):
            row: list[Value] = [f"{100 * beta:.0f}%", solver]
            for alpha in alphas:
                note = ""
                if published is not None:
                    value = getattr(published, theirs)[SHARES.index(beta)][SHARES.index(alpha)]
                    note = f"paper {value:g}%"
                row.append(improved(found[solver][beta, alpha], note))
            rows.append(row)
    number = f"Table {published.number}. " if published else "Not in the paper. "
    return Table(
        f"{number}{log}: improvement of {METRICS[metric]} over Default, with its 95% interval; "
        f"variant {SHOWN}.",
        ["beta", "algorithm", *[f"alpha = {100 * alpha:.0f}%" for alpha in alphas]],
        rows,
    )


def _figures(own: pd.DataFrame, pictures: Mapping[str, str], log: str) -> list[Figure]:
    shown = []
    for table in TABLES:
        name = f"table-{table.number.lower()}"
        if table.log != log or name not in pictures:
            continue
        told = []
        for variant in VARIANTS:
            found = cells(own, table.metric, log=log, solver=EXACT, variant=variant)
            means = [100 * one.mean for one in found.values()]
            told.append(f"{variant} {min(means):.1f} to {max(means):.1f}%")
        published = [value for row in table.branch_and_bound for value in row]
        shown.append(
            Figure(
                pictures[name],
                f"Improvement by alpha, a curve for each beta: published {min(published):.1f} to "
                f"{max(published):.1f}%, measured {', '.join(told)}.",
                f"Table {table.number} as curves, branch and bound, for all variants. The strict "
                "one has a scale of its own.",
            )
        )
    return shown


def _places(own: pd.DataFrame) -> Table:
    shares = {
        "contiguous_share": "contiguous jobs",
        "loss_of_capacity": "loss of capacity",
        "external_fragmentation": "external fragmentation",
    }
    numbers = {"mean_hops": "mean hops", "mean_dispersal": "dispersal"}
    times = {
        "large_mean_wait": "mean wait of large jobs",
        "large_max_wait": "longest wait of large jobs",
        "makespan": "makespan",
    }
    rows: list[list[Value]] = []
    for log in own["log"].unique():
        for variant in VARIANTS:
            pairs = compared(own, log=log, variant=variant, solver=EXACT)
            row: list[Value] = [log, variant]
            for name in shares:
                row += [share(pairs[f"{name}_default"].mean()), share(pairs[name].mean())]
            for name in numbers:
                row += [float(pairs[f"{name}_default"].mean()), float(pairs[name].mean())]
            for name in times:
                row += [duration(pairs[f"{name}_default"].mean()), duration(pairs[name].mean())]
            rows.append(row)
    groups = [*shares.values(), *numbers.values(), *times.values()]
    return Table(
        "Means over all cells, Default beside the window with branch and bound. Large jobs are the "
        "tenth with most processors: do they starve? Loss of capacity: free node-time while a job "
        "waited that needed no more nodes; external fragmentation: the part of it in slots too "
        "small for every waiting job. Hops on the torus of SDSC-BLUE, in Hilbert's order.",
        ["log", "variant", *[(group, who) for group in groups for who in ("Default", "window")]],
        rows,
    )


def _runs(frame: pd.DataFrame) -> Table:
    rows: list[list[Value]] = []
    for (log, machine), own in grouped(frame, ["log", "machine"]):
        parts = sorted(set(own["part"]), key=_first_job)
        draws = sorted({int(draw) for draw in own["draw"]})
        rows.append([log, machine, ", ".join(parts), ", ".join(map(str, draws)), len(own)])
    return Table(
        "The parts of each log (jobs in the cleaned log, from 1), the draws of the sensitive jobs, "
        f"and how many simulations. Solvers: {_solvers(frame)}.",
        ["log", "machine", "parts", "draws", "runs"],
        rows,
    )


def _first_job(part: str) -> int:
    return int(part.split(":")[0])


def _solvers(frame: pd.DataFrame) -> str:
    counts: dict[Any, int] = frame["solver"].dropna().value_counts().to_dict()
    told = [f"{solver} ({counted(runs, 'run')})" for solver, runs in sorted(counts.items())]
    return ", ".join(told)
