"""The page of the study."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from optsched.metrics.node_time import PARTS
from optsched.report.page import (
    Figure,
    Page,
    Section,
    Table,
    Value,
    cell,
    duration,
    share,
)
from optsched.studies.li_2015.changes import change_table, exact_table, migration_table, ratio
from optsched.studies.li_2015.claims import ALIKE, ALL, AROUND, AVOIDED, MORE, claims, percent
from optsched.studies.li_2015.evaluation import NODE_TIME, both, of, variants, workloads
from optsched.studies.li_2015.plan import (
    ABLATIONS,
    CEILING,
    EASY,
    EASY_MIGRATION,
    FULL,
    LOAD,
    LOADS,
    LOGS,
    MODEL,
    NO_PAUSE,
    ONLY_BACKFILLING,
    OWN,
    SMALL,
    SYSTEM,
    VARIANTS,
)
from optsched.studies.li_2015.published import NODES_PER_ROUTER, UTILISATION, WINDOWS
from optsched.traces.reading import read_trace

if TYPE_CHECKING:
    import pandas as pd

OPEN_ENDS = (
    'The paper simulates "modeled trace data" and gives neither jobs, sizes nor run times, nor '
    f"its load. Here they are those of the spec {MODEL}, most of which is assumed and says so, at "
    f"offered loads of {LOADS[0]:g} and {LOADS[1]:g}: times between arrivals are stretched so that "
    "each seed offers just that. Its future work, real traces, stands beside them: parts of logs "
    "whose sizes are scaled to the machine, and whose times between arrivals to a load of "
    f"{LOAD:g}.",
    "What is recorded begins when 80 % of the nodes are held for the first time, as in the paper; "
    "it ends with the last submission here, behind which the machine empties. Each run has its own "
    "such time, so waits and makespans stand beside what is recorded. A node is held if it "
    "is in the box of a job, running if the job asked for it and is not being migrated. The paper "
    "says running nodes; its claim is judged by the nodes held, which is more favourable to it.",
    "It says neither what a migration takes nor what requests are worth. Here a job is stopped for "
    "300 s and 0.064 s for each of its nodes, twice if it has to be parked; requests are drawn "
    "from the spec, or those of the log.",
    "Free partitions are cut into disjoint bins: the largest by its layers, again and again. The "
    "profit of a job is its size, and the head of the queue comes first. The pause point is the "
    "next large job that cannot be placed, as section 1 has it.",
    "How fast the detection of free partitions is, in milliseconds, and how much of the largest "
    "free box the layers find, is measured in benchmarks/results/detection.txt and not here: this "
    "study has no wall-clock times, and is the same to the byte on every machine. Scheduling time "
    "is judged by nominal seconds, the work of each solve at its price.",
)


def page(
    frame: pd.DataFrame, pictures: Mapping[str, str], versions: Mapping[str, str], *, quick: bool
) -> Page:
    """Return the page; its first paragraph says what becomes of the paper's level.

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
    judged = [] if quick else [Section("What becomes of the claims", [_claims(frame)])]
    lead = f"{_lead(frame)} All from {len(frame):,} simulations of {frame['jobs'].sum():,} jobs."
    if quick:
        lead = (
            "A quick look at a small torus: nothing can be concluded from it, so no claim is "
            f"judged here. {lead}"
        )
    return Page(
        title="Li et al. 2015: boxes on a torus, proactive scanning and migration, run again",
        lead=lead,
        sections=[
            *judged,
            Section("Figures 5 to 7", [*_histograms(frame, pictures), _windows(frame)]),
            Section("All variants", [*_waits(frame, pictures), *_variants(frame)]),
            Section("Where the node time goes", _node_time(frame, pictures)),
            Section("What migration buys", [migration_table(frame)]),
            Section(
                "One change at a time",
                [change_table(frame, base) for base in ABLATIONS],
            ),
            Section("What exact models buy", [exact_table(frame)]),
            Section("What was run", [_workloads(frame, quick=quick), _settings(frame)]),
            Section("What the paper leaves open", list(OPEN_ENDS)),
        ],
        repeat=f"optsched study li-2015{' --quick' if quick else ''} --traces TRACES -o DIR",
        versions=versions,
    )


def _lead(frame: pd.DataFrame) -> str:
    """Return what becomes of the paper's level, and what beats its system."""
    system, only = both(frame, SYSTEM, ONLY_BACKFILLING, "useful")
    held = of(frame, SYSTEM, "occupied")
    with_, without = both(frame, EASY_MIGRATION, EASY, "useful")
    large = "large_mean_wait"
    return (
        f"Is the utilisation around {UTILISATION:.0%}, and is it better with migration than with "
        "only backfilling? The paper has it so. Here its system with a scan window of "
        f"{min(WINDOWS)} has {percent(held)} of the nodes held and {percent(system)} running, "
        f"without migration {percent(only)} running. Jobs wait {_median(frame, SYSTEM, CEILING)} "
        "times as long as with EASY that counts nodes, "
        f"{_median(frame, NO_PAUSE, CEILING)} times without the pause point. EASY on boxes, "
        f"exactly detected and without migration, has {percent(without)} running and "
        f"{_median(frame, EASY, CEILING)} times the wait of nodes (large jobs "
        f"{_median(frame, EASY, CEILING, large)} times), with migration {percent(with_)} and "
        f"{_median(frame, EASY_MIGRATION, CEILING)} times (large jobs "
        f"{_median(frame, EASY_MIGRATION, CEILING, large)} times). Waits are medians over all "
        "runs, shares means with their range."
    )


def _median(frame: pd.DataFrame, one: str, other: str, metric: str = "mean_wait") -> str:
    found = ratio(frame, one, other, metric)
    return f"{found.median():.3g}" if found.notna().any() else "\N{EN DASH}"


def _claims(frame: pd.DataFrame) -> Table:
    rows: list[list[Value]] = []
    for claim in claims(frame):
        judged = [replace(cell(j.verdict), note=j.why) for j in claim.judgements.values()]
        rows.append([claim.text, claim.published, *judged])
    return Table(
        "In all workloads, and in each. Held: so in at least nine of ten runs, or comparisons of "
        f"runs on the same jobs; in part: in half of them. Around: within "
        f"{100 * AROUND:.0f} points; similar: within {100 * ALIKE:.0f} points; more time: at "
        f"least {MORE:g} times; avoided: at most {AVOIDED:.0%} left. Means over "
        "the seeds, with their range.",
        ["claim", "published", ALL, *workloads(frame)],
        rows,
    )


def _histograms(frame: pd.DataFrame, pictures: Mapping[str, str]) -> list[Figure]:
    shown = []
    for name, depth in zip(OWN, WINDOWS):
        picture = f"figure-{WINDOWS[depth]}"
        if picture in pictures:
            means = [
                f"{workload} {percent(of(own, name, 'occupied'))} held, "
                f"{percent(of(own, name, 'useful'))} running"
                for workload, own in frame.groupby("workload", sort=False)
            ]
            shown.append(
                Figure(
                    pictures[picture],
                    f"Share of the recorded time by level of utilisation: {'; '.join(means)}.",
                    f"Figure {WINDOWS[depth]}: scan window of {depth}. Nodes in boxes of jobs, and "
                    "nodes that run.",
                )
            )
    return shown


def _windows(frame: pd.DataFrame) -> Table:
    rows: list[list[Value]] = []
    for workload in workloads(frame):
        own = frame[frame["workload"] == workload]
        for name, depth in zip(OWN, WINDOWS):
            row: list[Value] = [workload, depth]
            row += [_spread(of(own, name, metric)) for metric in ("occupied", "useful")]
            near = sum(of(own, name, f"recorded_held.{level}") for level in (85, 90, 95))
            row.append(share(float(np.mean(near))))
            row += [f"{UTILISATION:.0%}", duration(of(own, name, "mean_wait").mean())]
            row += [float(of(own, name, metric).mean()) for metric in ("problems", "migrations")]
            row.append(duration(of(own, name, "nominal_seconds").mean()))
            rows.append(row)
    return Table(
        "The paper's system by scan window: nodes held and running in the recorded time, the share "
        "of that time with 85 % or more held, and what planning took. Means over the seeds, with "
        "their range.",
        [
            "workload",
            "window",
            *(("utilisation", what) for what in ("held", "running", "85% or more", "paper")),
            "mean wait",
            *(("a run", what) for what in ("problems", "migrations", "nominal solving time")),
        ],
        rows,
    )


def _spread(values: pd.Series[float]) -> Value:
    known = values.dropna()
    if known.empty:
        return None
    mean = share(float(known.mean()))
    if len(known) == 1:
        return mean
    return replace(mean, note=f"{100 * known.min():.3g} to {100 * known.max():.3g}%")


def _waits(frame: pd.DataFrame, pictures: Mapping[str, str]) -> list[Figure]:
    if "waits" not in pictures:
        return []
    told = [f"{name} {duration(of(frame, name, 'mean_wait').mean()).text}" for name in VARIANTS]
    return [
        Figure(
            pictures["waits"],
            f"Mean wait of each variant, over all workloads: {'; '.join(told)}.",
            "Mean waits, on a logarithmic scale. On nodes nothing is fragmented: the distance from "
            "them is what boxes cost.",
        )
    ]


def _variants(frame: pd.DataFrame) -> list[Table]:
    tables = []
    for workload in workloads(frame):
        own = frame[frame["workload"] == workload]
        rows: list[list[Value]] = []
        for name in variants(frame):
            paper = f"{UTILISATION:.0%}" if name in OWN else None
            row: list[Value] = [name]
            row += [_spread(of(own, name, metric)) for metric in ("occupied", "useful")]
            row += [paper, duration(of(own, name, "mean_wait").mean())]
            row += [duration(of(own, name, m).mean()) for m in TIMES]
            row += [float(of(own, name, m).mean()) for m in ("mean_bounded_slowdown", "migrations")]
            row.append(duration(of(own, name, "makespan").mean()))
            rows.append(row)
        tables.append(
            Table(
                f"{workload}: means over the seeds, with the range of utilisations. Boxes cannot "
                "be compared with nodes by what is recorded; the makespan, until the last job "
                "ends, can.",
                [
                    "variant",
                    *(("utilisation", what) for what in ("held", "running", "paper")),
                    ("wait", "all jobs"),
                    ("wait", "large jobs"),
                    "large job at the head",
                    "bounded slowdown",
                    "migrations",
                    "makespan",
                ],
                rows,
            )
        )
    return tables


TIMES = ("large_mean_wait", "large_mean_drain")


def _node_time(frame: pd.DataFrame, pictures: Mapping[str, str]) -> list[Figure | Table | str]:
    shown = [name for name in variants(frame) if name != CEILING]
    rows: list[list[Value]] = []
    for workload in workloads(frame):
        own = frame[frame["workload"] == workload]
        for name in shown:
            parts = [share(float(of(own, name, NODE_TIME[part]).mean())) for part in PARTS]
            rows.append([workload, name, *parts])
    parts_told = [
        f"{name}: " + ", ".join(f"{part} {percent_of(frame, name, part)}" for part in PARTS)
        for name in (SYSTEM, EASY, EASY_MIGRATION)
    ]
    figures = [
        Figure(
            pictures["node-time"],
            f"Parts of the recorded node time, means over all workloads. {'; '.join(parts_told)}.",
            "Parts of the recorded node time by variant, means over the seeds.",
        )
    ]
    return [
        "Nodes held by jobs are running, migrating, or internal (in a box beyond what the job "
        "asked for). Free ones are fragmented (enough are free for the head of the queue, but not "
        "in one box), drained (too few are free for it), undecided (a box would hold it: it waits "
        "for the next cycle, or the layers do not show it) or unwanted (no job waits).",
        *(figures if "node-time" in pictures else []),
        Table(
            "Parts of the recorded node time; means over the seeds.",
            ["workload", "variant", *PARTS],
            rows,
        ),
    ]


def percent_of(frame: pd.DataFrame, variant: str, part: str) -> str:
    """Return the mean of a part of the node time in percent."""
    return f"{100 * of(frame, variant, NODE_TIME[part]).mean():.1f}%"


def _workloads(frame: pd.DataFrame, *, quick: bool) -> Table:
    machine = SMALL if quick else FULL
    rows: list[list[Value]] = []
    for workload in workloads(frame):
        own = frame[(frame["workload"] == workload) & (frame["variant"] == CEILING)]
        for path, days, load in own[["path", "days", "offered"]].itertuples(index=False):
            trace = read_trace(path)
            large = trace.processors > machine.large
            work = trace.processors * trace.runtime
            row: list[Value] = [path.rpartition("/")[2].removesuffix(".swf.gz"), len(trace)]
            row += [float(days), float(load), int(large.sum())]
            row += [share(float(work[large].sum() / work.sum())), int(trace.processors.max())]
            rows.append(row)
    wanted = LOGS[:1] if quick else LOGS
    absent = [log.file for log in wanted if log.name not in set(frame["workload"])]
    left_out = f" Not run, as the logs were not there: {', '.join(absent)}." if absent else ""
    return Table(
        f"The workloads, on a torus of {'x'.join(map(str, machine.torus))} routers with "
        f"{NODES_PER_ROUTER} nodes each; jobs of more than {machine.large:,} nodes are "
        f"large.{left_out}",
        ["workload", "jobs", "days", "offered load", "large jobs", "their work", "largest job"],
        rows,
    )


def _settings(frame: pd.DataFrame) -> Table:
    names = list(VARIANTS[SYSTEM].settings)
    rows: list[list[Value]] = []
    for name, variant in VARIANTS.items():
        solver = variant.solver or "the paper's heuristics"
        if variant.work is not None:
            solver += f", work of at most {variant.work:g}"
        row: list[Value] = [name, *(variant.settings[one] for one in names)]
        free = "free" if "restart" in variant.settings else "300 s and 0.064 s a node"
        migration = free if variant.settings["migrate"] else None
        runs = int((frame["variant"] == name).sum())
        rows.append([*row, migration, solver, runs])
    return Table(
        "Settings of the policy torus in each variant, the solvers, and how often it was run. EASY "
        "on nodes has no settings.",
        ["variant", *names, "cost of migration", "solvers", "runs"],
        rows,
    )
