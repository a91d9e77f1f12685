"""The tables of the page."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from optsched.machines.smp import BANDWIDTH
from optsched.report.page import Cell, Table, Value, cell, share
from optsched.studies.guim_2009.claims import REACHED, SMALL, claims
from optsched.studies.guim_2009.evaluation import (
    BY_PERCENTILE,
    PERCENTILES,
    by_draw,
    centres,
    change,
    mean,
    mixes,
    part,
)
from optsched.studies.guim_2009.plan import (
    EXACT_SOLVER,
    INSTEAD_OF,
    PAPER,
    REQUESTED_OF,
    SAME_OBJECTIVE,
    SCHEDULERS,
    VARIANTS,
)
from optsched.studies.guim_2009.published import (
    FF,
    KILLED,
    LC,
    LOGS,
    RUA,
    TABLES,
    TABULATED,
    Published,
)
from optsched.studies.offered import offered_by
from optsched.studies.student import Mean
from optsched.traces.bandwidth import LEVELS
from optsched.traces.reading import read_trace

if TYPE_CHECKING:
    import pandas as pd

COLUMNS = {
    KILLED: ("killed", "jobs"),
    "p95_bounded_slowdown": ("bounded slowdown", "95%"),
    "mean_bounded_slowdown": ("bounded slowdown", "mean"),
    "p95_wait": ("wait, s", "95%"),
    "mean_wait": ("wait, s", "mean"),
    "p95_penalised_percent": ("penalised runtime, %", "95%"),
    "mean_penalised_percent": ("penalised runtime, %", "mean"),
}
"""How the metrics are headed."""


def claims_table(frame: pd.DataFrame) -> Table:
    """Return the verdict on each claim, by whose limits are raised."""
    rows: list[list[Value]] = []
    for claim in claims(frame):
        row: list[Value] = [claim.text, claim.published]
        for variant in VARIANTS:
            judged = claim.judgements.get(variant)
            row.append(judged and replace(cell(judged.verdict), note=judged.why))
        rows.append(row)
    return Table(
        "By whose limits are raised by the penalty factor that is promised at the start: the paper "
        "says so of RUA, and not of First Fit, which promises nothing. Held: so in at least nine "
        "of ten comparisons of two policies on the same jobs and demands; in part: in half of "
        f"them. A factor counts as reached from {REACHED:g} of it on; RUA may lose {SMALL:.0%}. "
        "Thresholds were run with raised limits only.",
        ["claim", "published", *VARIANTS],
        rows,
    )


def published_tables(frame: pd.DataFrame) -> list[Table]:
    """Return Tables 1 to 7, our means and intervals with the published numbers below."""
    return [_published_table(frame, table) for table in TABLES]


def _published_table(frame: pd.DataFrame, table: Published) -> Table:
    rows: list[list[Value]] = []
    for centre in centres(frame):
        for mix in mixes(frame):
            row: list[Value] = [centre, mix]
            for name in TABULATED:
                note = _theirs(table, centre, mix, name)
                row.append(measured(mean(frame, centre, mix, name, table.metric), note))
            rows.append(row)
    lost = " A dash: lost from the paper's text." if table.metric == KILLED else ""
    return Table(
        f"Table {table.number}. {table.title}{_what_killed(table)}: the mean over the draws of the "
        f"demands, with its 95% interval; below, the paper's.{lost}",
        ["centre", "mix", *TABULATED],
        rows,
    )


def _what_killed(table: Published) -> str:
    if table.metric != KILLED:
        return ""
    return " of those evaluated (the paper heads it 95th percentile, of which one number has none)"


def _theirs(table: Published, centre: str, mix: str, name: str) -> str:
    if centre not in LOGS:
        return ""
    value = table.value(centre, mix, name)
    return "paper -" if value is None else f"paper {value:,g}"


def measured(value: Mean, note: str = "") -> Cell:
    """Return a mean as a cell, with its interval if it has one."""
    shown = cell(value.mean)
    if value.low == value.low:
        low, high = (cell(end).text for end in (value.low, value.high))
        shown = replace(shown, text=f"{shown.text} [{low}, {high}]")
    return replace(shown, note=note)


def schedulers_table(frame: pd.DataFrame) -> Table:
    """Return the figures of all policies."""
    return _figures(
        frame,
        list(SCHEDULERS),
        "All policies, means over the draws. Exact: processors are selected by "
        f"{EXACT_SOLVER}; for all: so that all jobs on its nodes lose least, not the job alone; "
        "with RUA, the place and start with the least slowdown is asked for in the place of one "
        "for each threshold. Limits as requested: no limit is raised.",
    )


def rua_table(frame: pd.DataFrame) -> Table:
    """Return the numbers of Figures 8 and 9."""
    return _figures(
        frame,
        [FF, LC, RUA],
        "Figures 8 and 9 in numbers, with the means beside the 95th percentiles: means over the "
        "draws with their 95% intervals. The paper draws them without numbers, and its section 8.3 "
        "gives few: for SDSC with HIGH a bounded slowdown of 100 with First Fit and of around 110 "
        "with RUA, which it calls less than 5 % apart; for CTC with HIGH waits of 4,000 to 5,000 s "
        "with RUA and First Fit, and of 7,000 s with LessConsume, where its Table 3 has 10,286 s "
        "with First Fit and 12,588 s with LessConsume.",
        intervals=True,
    )


def _figures(
    frame: pd.DataFrame, names: list[str], caption: str, *, intervals: bool = False
) -> Table:
    rows: list[list[Value]] = []
    for centre in centres(frame):
        for mix in mixes(frame):
            for name in names:
                found = [mean(frame, centre, mix, name, metric) for metric in COLUMNS]
                shown = [measured(one) if intervals else cell(one.mean) for one in found]
                rows.append([centre, mix, name, *shown])
    return Table(caption, ["centre", "mix", "policy", *COLUMNS.values()], rows)


def percentiles_table(frame: pd.DataFrame) -> Table:
    """Return waiting times and penalised runtimes by percentile."""
    shown = {"wait": "wait, s", "penalised_percent": "penalised runtime, %"}
    rows: list[list[Value]] = [
        [centre, mix, name, *(
            cell(mean(frame, centre, mix, name, column).mean)
            for of in shown for column in BY_PERCENTILE[of].values()
        )]
        for centre in centres(frame) for mix in mixes(frame) for name in PAPER
    ]  # fmt: skip
    heads = [(label, f"{p}%") for label in shown.values() for p in PERCENTILES]
    return Table(
        "Waiting time and penalised runtime of the jobs that finished, by percentile: means over "
        "the draws.",
        ["centre", "mix", "policy", *heads],
        rows,
    )


def limits_table(frame: pd.DataFrame) -> Table:
    """Return what raised limits do: with them, over without."""
    pairs = {name: (name, requested) for name, requested in REQUESTED_OF.items()}
    return _ratios_table(
        frame,
        pairs,
        "What raised limits do: each figure with limits raised by the promised penalty factor, "
        "over that with limits as requested. Below 1 is less.",
    )


def exact_table(frame: pd.DataFrame) -> Table:
    """Return what exact selection makes of it: each figure over that of the paper's selection."""
    pairs = {exact: (exact, name) for exact, name in INSTEAD_OF.items()}
    return _ratios_table(
        frame,
        pairs,
        f"What exact selection makes of it: each figure with {EXACT_SOLVER} in the place of "
        "LessConsume, over that with LessConsume. Below 1 is less. Nothing is left on the table "
        "where the objective is the same: as read here, LessConsume finds the least penalty at its "
        "time, and with a threshold the first start within it, so an exact solver can differ in "
        "ties only, and of equally good places that of the rule is taken: 1 in all columns of "
        f"{' and of '.join(SAME_OBJECTIVE)}, is what there has to be. The others have another "
        "objective: what all jobs on the nodes lose, the least penalty at the first start within "
        "the threshold, the least slowdown of all places and starts.",
    )


def _ratios_table(frame: pd.DataFrame, pairs: dict[str, tuple[str, str]], caption: str) -> Table:
    parts = {("all", "all"): frame} if len(centres(frame)) > 1 else {}
    parts |= {(c, m): part(frame, c, m) for c in centres(frame) for m in mixes(frame)}
    rows: list[list[Value]] = [
        [name, *where, *(measured(change(own, one, other, metric)) for metric in COLUMNS)]
        for name, (one, other) in pairs.items()
        for where, own in parts.items()
    ]
    return Table(
        f"{caption} Means over the draws with their 95% intervals, which say nothing of other "
        "logs: geometric ones, of killed jobs the mean ratio of their sums.",
        ["policy", "centre", "mix", *COLUMNS.values()],
        rows,
    )


def problems_table(frame: pd.DataFrame) -> Table:
    """Return how the problems were answered."""
    rows: list[list[Value]] = []
    for name, scheduler in SCHEDULERS.items():
        own = frame[frame["scheduler"] == name]
        row: list[Value] = [name, scheduler.policy, scheduler.solver, int(own["problems"].sum())]
        row += [int(own["unproven"].sum()), int(own["fallbacks"].sum())]
        rows.append([*row, share(float(own["heuristic_matched"].astype(float).mean()))])
    return Table(
        "The problems that the policies posed, in all runs. Unproven: answers without a proof that "
        "there is no better one, as heuristics give none. Rule as good: the share of the answered "
        "problems in which LessConsume, with the threshold if there is one, finds as good a place "
        "as what answered them; a dash where a rule of the paper did, beside which none is asked.",
        ["run", "policy", "solver", "problems", "unproven", "fallbacks", "rule as good"],
        rows,
    )


def workload_table(frame: pd.DataFrame) -> Table:
    """Return what was run."""
    rows: list[list[Value]] = []
    for centre in centres(frame):
        for mix in mixes(frame):
            own = part(frame, centre, mix)
            first = own.iloc[0]
            trace = read_trace(first["path"])
            processors = _processors(first["machine"])
            demand = trace.annotations["bandwidth"]
            row: list[Value] = [centre, mix, first["machine"], int(first["jobs"])]
            row += [int(first["evaluated"]), int(trace.processors.max())]
            row += [offered_by(trace, processors).load]
            row += [share(float((demand == level).mean())) for level in LEVELS.values()]
            asked = float((trace.processors * trace.runtime * demand).sum())
            row.append(asked / float((trace.processors * trace.runtime).sum()))
            row.append(share(float(by_draw(own, FF, "utilization").mean())))
            rows.append([*row, len(set(own["seed"])), len(own)])
    levels = ", ".join(f"{name} {amount:,}" for name, amount in LEVELS.items())
    return Table(
        "The workloads. Load: the work of all jobs, without penalties, over what the machine can "
        f"do from the first submission to the last. Demands in MB/s for each process: {levels}; a "
        f"node has {BANDWIDTH:,} MB/s for its processors. Shares of the jobs, and the mean demand "
        "of a processor in use, are those of the first draw; utilisation is that with First Fit.",
        [
            *("centre", "mix", "machine", "jobs", "evaluated", "largest job", "load"),
            *(("jobs with demand", level) for level in LEVELS),
            *("mean demand, MB/s", "utilisation", "draws", "runs"),
        ],
        rows,
    )


def _processors(machine: str) -> int:
    nodes, _, processors = machine.partition(":")[2].partition("x")
    return int(nodes) * int(processors)
