"""The page of the study."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from optsched.report.page import (
    Cell,
    Figure,
    Page,
    Section,
    Table,
    Value,
    Verdict,
    cell,
    duration,
    share,
)
from optsched.studies.franke_1999 import standing_in, varied
from optsched.studies.franke_1999.claims import HIGH, MIDDLE, claims
from optsched.studies.franke_1999.evaluation import (
    BACKFILLING,
    FCFS,
    GANG,
    KEPT_UP,
    METRICS,
    STRATEGIES,
    baseline,
    compared,
    keeping_up,
)
from optsched.studies.franke_1999.figures import FIGURES
from optsched.studies.franke_1999.plan import (
    EXACT,
    FEW_INTERARRIVAL,
    FEW_SERVICE,
    SEEDS,
    SHOWN,
    SKIPPED,
    VARIANTS,
)
from optsched.studies.franke_1999.published import (
    DAYS,
    LARGE_FROM,
    LARGE_SHARE,
    LARGE_WORK,
    NODES,
    UTILISATION,
)
from optsched.studies.franke_1999.standing_in import MODELS
from optsched.studies.offered import offered_by
from optsched.workloads.spec_file import read_workload

if TYPE_CHECKING:
    import pandas as pd

ABOUT = 0.1
"""A figure of the baseline is that of the paper if it differs by no more than this share."""

OPEN_ENDS = (
    "The paper gives the parameters of the workload model (Tables 2 and 3), not how sizes are "
    "drawn within a class: they are uniform here, which comes near its figures of the baseline. "
    "Each class is a renewal process of its own; the first 10,000 jobs of all are taken.",
    "It does not give the factors of its 81 workloads. Here times between arrivals are multiplied "
    "by 1 to 0.8, run times by 1 to 1.8, which leads from its baseline to loads above 1. The "
    "random numbers are the same in all of them. A strategy keeps up with a workload whose jobs "
    f"arrive in at least {KEPT_UP:.0%} of the makespan; where it does not, its queue grows as long "
    "as jobs arrive and means tell how long was simulated, so they are not compared.",
    "It does not say whether jobs behind one that does not fit may get a place (admission: fcfs or "
    "skip), nor whether rows take equal turns, jobs also run in rows where their columns are idle, "
    "or a node's time is shared by the jobs on it alone (sharing: rows, fill, nodes). The last is "
    "a relaxation: there need not be turns in which all processes of each job run together. The "
    "paper does say that the level at a node is the number of jobs on it, which rows alone would "
    "not give. All six variants are run; figures show two.",
    "Backfilling is conservative, with estimates that are the run times. Turns are short against "
    "run times: a job runs at its share of the time. Switching takes no time unless said.",
    "A job keeps its columns; running jobs change rows when a job comes or ends, so that rows "
    "become free. Columns that bear the fewest jobs are taken first.",
)


def page(
    frame: pd.DataFrame, pictures: Mapping[str, str], versions: Mapping[str, str], *, quick: bool
) -> Page:
    """Return the page; its first paragraph says whether gang scheduling beats backfilling.

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
    judged = [] if quick else [Section("What becomes of the claims", _claims(frame))]
    runs, jobs = len(frame), int(frame["jobs"].sum())
    told = f"All from {runs:,} simulations of {jobs:,} jobs."
    lead = f"{_lead(frame)} {told}"
    if quick:
        lead = (
            "A quick look at a small part: nothing can be concluded from it, so no claim is judged "
            f"here. {told}"
        )
    return Page(
        title="Franke et al. 1999: gang scheduling, run again",
        lead=lead,
        sections=[
            *judged,
            Section(
                "The baseline workload",
                [*([] if quick else [_baseline(frame)]), *_sizes(pictures)],
            ),
            Section("Response and wait by utilisation", _figures(frame, pictures)),
            Section(
                "What the variants make of it",
                [*_variants(frame, pictures), _where_time_goes(frame)],
            ),
            Section("Is exact packing worth it?", [varied.packings(frame), varied.ties(frame)]),
            Section(
                "Compaction, context switches, memory, estimates",
                [
                    varied.costs(frame),
                    varied.figure_9(frame),
                    varied.memory(frame),
                    varied.estimates(frame),
                ],
            ),
            Section("Does the model stand in for a trace?", _stand_in(frame, quick=quick)),
            Section("From seed to seed", [varied.seeds(frame)]),
            Section("What the paper leaves open", list(OPEN_ENDS)),
        ],
        repeat=f"optsched study franke-1999{' --quick' if quick else ''} --traces TRACES -o DIR",
        versions=versions,
    )


def _lead(frame: pd.DataFrame) -> str:
    """Return what becomes of the paper's main finding."""
    tables = {variant: compared(frame, variant) for variant in VARIANTS}
    over_backfilling = {
        (variant, level): _ratio(table, "mean_response", level, BACKFILLING)
        for variant, table in tables.items()
        for level in GANG
    }
    middles = {key: ratio.median() for key, ratio in over_backfilling.items()}
    high = {key: middle for key, middle in middles.items() if key[1] == HIGH}
    best_of_high, worst_of_high = min(high, key=high.__getitem__), max(high, key=high.__getitem__)
    best = min(middles, key=middles.__getitem__)
    below = int((over_backfilling[best] < 1).sum())
    over_fcfs = [_ratio(tables[name], "mean_response", HIGH, FCFS) for name in (SHOWN, SKIPPED)]
    waits = [
        _ratio(tables[name], "large_mean_wait", MIDDLE, BACKFILLING) for name in (SHOWN, SKIPPED)
    ]
    exact = varied.packing_runs(frame)
    exact = exact[(exact["solver"] == EXACT) & (exact["variant"] == SHOWN)]
    gain = exact["mean_response"] / exact["mean_response_plain"]
    return (
        f"Does gang scheduling beat perfect backfilling? The paper has it so with {HIGH}, "
        f"slightly. Here its mean response time is {high[best_of_high]:.2f} times that of "
        f"backfilling in the best variant ({best_of_high[0]}) and {high[worst_of_high]:.2f} times "
        f"in the worst ({worst_of_high[0]}), in the median of the workloads that both keep up "
        f"with. Best of all is {best[1]} ({best[0]}): {middles[best]:.2f} times, and below 1 in "
        f"{below} of {len(over_backfilling[best])}. Against FCFS, {HIGH} has "
        f"{over_fcfs[0].median():.2f} ({SHOWN}) and {over_fcfs[1].median():.2f} times ({SKIPPED}). "
        f"Large jobs wait {waits[0].median():.2f} and {waits[1].median():.2f} times as long under "
        f"{MIDDLE} as with backfilling. Exact packing in the place of first fit gives "
        f"{gain.median():.2f} times the mean response time ({SHOWN}), and a better one in "
        f"{int((gain < 1).sum())} of {len(gain)} runs."
    )


def _ratio(table: pd.DataFrame, metric: str, one: str, other: str) -> pd.Series[float]:
    """Return a mean over that of another strategy, where both keep up."""
    both = keeping_up(table, one, other)
    return both[metric, one] / both[metric, other]


def _claims(frame: pd.DataFrame) -> list[str | Table]:
    tables: list[str | Table] = []
    for seed, about in (
        (SEEDS[0], "On the 81 workloads of the first seed."),
        (None, "On all seeds, workloads of the others included."),
    ):
        rows: list[list[Value]] = []
        for claim in claims(frame, seed):
            judged = [replace(cell(j.verdict), note=j.why) for j in claim.judgements.values()]
            rows.append([claim.text, claim.published, *judged])
        tables.append(
            Table(
                f"{about} By variant of gang scheduling: admission, sharing. Claims on means: in "
                "the workloads that both strategies keep up with. Held: so in nine of ten of them "
                "(or of steps from level to level); in part: in half of them.",
                ["claim", "published", *VARIANTS],
                rows,
            )
        )
    return tables[:1] if len(set(frame["seed"].dropna())) == 1 else tables


def _baseline(frame: pd.DataFrame) -> Table:
    trace = baseline(frame)
    offered = offered_by(trace, NODES)
    large = trace.processors >= LARGE_FROM
    work = trace.processors * trace.runtime
    utilisation = compared(frame)["utilization", FCFS].to_dict()[1.0, 1.0, SEEDS[0]]
    work_of_large = work[large].sum() / work.sum()
    more = Verdict.HELD if work_of_large > LARGE_WORK else Verdict.NOT_HELD
    rows: list[list[Value]] = [
        ["days of submissions", offered.days, f"about {DAYS:g}", _about(offered.days, DAYS)],
        [
            "utilisation of the run (FCFS)",
            float(utilisation),
            f"{UTILISATION:g}",
            _about(utilisation, UTILISATION),
        ],
        [
            "share of large jobs (more than 32 nodes)",
            share(large.mean()),
            f"{LARGE_SHARE:.0%}",
            _about(large.mean(), LARGE_SHARE),
        ],
        ["their share of the work", share(work_of_large), f"more than {LARGE_WORK:.0%}", more],
    ]
    for one in read_workload("franke-1999").to_table()["classes"]:
        within = (trace.processors >= one["smallest"]) & (trace.processors <= one["largest"])
        label = f"share of jobs of {one['smallest']} to {one['largest']} nodes"
        found, published = within.mean(), one["share"] / 100
        rows.append([label, share(found), f"{published:.2%}", _about(found, published)])
    return Table(
        "The workload of the paper's tables; held: within a tenth of the published figure. The "
        "paper's shares of the classes are not quite those that follow from its own times between "
        "arrivals, which are what is drawn here.",
        ["figure", "measured", "published", "verdict"],
        rows,
    )


def _about(measured: float, published: float) -> Verdict:
    """Return whether a figure is that of the paper, to a tenth of it."""
    near = abs(measured / published - 1) <= ABOUT
    return Verdict.HELD if near else Verdict.NOT_HELD


def _sizes(pictures: Mapping[str, str]) -> list[Figure]:
    told = {
        "figure-3": ("Jobs by size.", "Number of jobs of each size, and of at most that size."),
        "figure-4": ("CPU time by size.", "CPU time of the jobs of each size, and up to it."),
    }
    return [
        Figure(pictures[name], alt, caption)
        for name, (caption, alt) in told.items()
        if name in pictures
    ]


def _figures(frame: pd.DataFrame, pictures: Mapping[str, str]) -> list[str | Figure | Table]:
    """Return Figures 5 to 8, and their numbers at some interarrival factors."""
    parts: list[str | Figure | Table] = [
        f"Each figure twice: jobs placed in order of arrival ({SHOWN}), and jobs behind a blocked "
        f"one placed too ({SKIPPED}). A panel for each interarrival factor, a point for each "
        "service factor. Overloaded workloads leave the panels."
    ]
    for name, what in FIGURES.items():
        if name not in pictures:
            continue
        shown = keeping_up(compared(frame, what.variant), BACKFILLING)[what.metric]
        ends = [
            f"{strategy} {duration(shown[strategy].min()).text} to "
            f"{duration(shown[strategy].max()).text}"
            for strategy in _present(shown.columns)
        ]
        parts.append(
            Figure(
                pictures[name],
                f"Mean {METRICS[what.metric]}, in workloads that backfilling keeps up with: "
                f"{'; '.join(ends)}.",
                f"Figure {what.number} ({what.variant}): mean {METRICS[what.metric]}.",
            )
        )
    return [*parts, *(_numbers(frame, variant) for variant in (SHOWN, SKIPPED))]


def _numbers(frame: pd.DataFrame, variant: str) -> Table:
    """Return mean response times at some interarrival factors."""
    table = compared(frame, variant)
    names = _present(table["mean_response"].columns)
    rows: list[list[Value]] = []
    by_workload: dict[Any, dict[Any, float]] = table.to_dict(orient="index")
    for (interarrival, service, _), own in by_workload.items():
        if interarrival in FEW_INTERARRIVAL:
            load = own["offered", FCFS]
            row: list[Value] = [f"{interarrival:g} and {service:g}", Cell(f"{load:.2f}", load)]
            for metric in ("mean_response", "large_mean_response"):
                row += [duration(own[metric, name]) for name in names]
            rows.append(row)
    groups = [(what, name) for what in ("all jobs", "large jobs") for name in names]
    return Table(
        f"Mean response times ({variant}), by interarrival and service factor.",
        ["factors", "offered load", *groups],
        rows,
    )


def _where_time_goes(frame: pd.DataFrame) -> Table:
    """Return what response times consist of, by strategy."""
    rows: list[list[Value]] = []
    for variant in (SHOWN, SKIPPED):
        table = compared(frame, variant)
        for factors in ((1.0, service) for service in FEW_SERVICE):
            if (*factors, SEEDS[0]) not in table.index:
                continue
            own: dict[Any, float] = table.xs((*factors, SEEDS[0])).to_dict()
            run, offered = own["mean_runtime", FCFS], own["offered", FCFS]
            load = Cell(f"{offered:.2f}", offered)
            for name in _present(table["mean_response"].columns):
                wait, response = own["mean_wait", name], own["mean_response", name]
                of_gang = variant if name in GANG else ""
                if name in GANG or variant == SHOWN:
                    pause = max(0.0, round(response - wait - run, 3))  # 0 but for rounding
                    times = (wait, pause, run, response)
                    rows.append([load, name, of_gang, *map(duration, times)])
    return Table(
        "What a mean response time consists of: waiting for processors, having them while others "
        "run on them (pause), running. Sharing turns waiting into pauses: it gains where it saves "
        "more waiting than it costs in pauses.",
        ["offered load", "strategy", "variant", "wait", "pause", "run", "response"],
        rows,
    )


def _variants(frame: pd.DataFrame, pictures: Mapping[str, str]) -> list[str | Figure | Table]:
    rows: list[list[Value]] = []
    for variant in VARIANTS:
        table = compared(frame, variant)
        for level in _present(table["mean_response"].columns, GANG):
            row: list[Value] = [variant, level]
            row += [len(keeping_up(table, level, other)) for other in (FCFS, BACKFILLING)]
            for metric in METRICS:
                for other in (FCFS, BACKFILLING):
                    ratio = _ratio(table, metric, level, other).median()
                    row.append(Cell(f"{ratio:.2f}", ratio))
            rows.append(row)
    columns = ("workloads", *METRICS.values())
    groups = [(what, other) for what in columns for other in (FCFS, BACKFILLING)]
    parts: list[str | Figure | Table] = [
        Table(
            "Means of gang scheduling over those of FCFS and of perfect backfilling: median over "
            "the workloads that both keep up with, and how many they are. Below 1 is better.",
            ["variant", "level", *groups],
            rows,
        )
    ]
    if "variants" in pictures:
        parts.append(
            Figure(
                pictures["variants"],
                "Mean response time over that of backfilling by offered load, a panel for each "
                "variant; the numbers are in the table above.",
                "Above the line perfect backfilling is better.",
            )
        )
    return parts


def _stand_in(frame: pd.DataFrame, *, quick: bool) -> list[str | Table]:
    rows: list[list[Value]] = []
    for model in MODELS:
        near, order = standing_in.judgement(frame, model), standing_in.order_kept(frame, model)
        cells = [replace(cell(found.verdict), note=found.why) for found in (near, order)]
        rows.append([f"sizes {model}", *cells])
    judged = Table(
        "Whether what the fitted model generates gives the means of the trace.",
        ["model", "the trace's mean response times", "its ranking of the strategies"],
        rows,
    )
    return [
        "A renewal model has no days, no weeks, no users who submit again what they have just "
        "submitted: it keeps the moments of the times between arrivals, not their order.",
        *([] if quick else [judged]),
        standing_in.by_part(frame),
    ]


def _present(
    columns: pd.Index, names: Mapping[str, int] | tuple[str, ...] = STRATEGIES
) -> list[str]:
    return [name for name in names if name in set(columns)]
