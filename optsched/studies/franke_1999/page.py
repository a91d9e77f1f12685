"""The numbers and tables of the page."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from optsched.numbers import counted
from optsched.report.page import Cell, Value, Verdict, duration, share
from optsched.studies.cells import matched, span, spread
from optsched.studies.franke_1999.changes import Change
from optsched.studies.franke_1999.claims import NEAR
from optsched.studies.franke_1999.evaluation import (
    BACKFILLING,
    FCFS,
    GANG,
    KEPT_UP,
    METRICS,
    STRATEGIES,
    baseline,
    compared,
    in_words,
    keeping_up,
    mean_ratio,
    plain,
    ratios,
)
from optsched.studies.franke_1999.figures import FIGURES
from optsched.studies.franke_1999.plan import (
    CHANGED,
    FEW,
    MODELS,
    MPLS,
    PUBLISHED,
    REQUESTS,
    SEEDS,
    SHARED,
    SHOWN,
    SKIPPED,
    TRACE,
    TURNS,
    VARIANTS,
)
from optsched.studies.franke_1999.sensitivity import (
    AGGRESSIVE,
    CLAIMED,
    CLAIMED_OF_LARGE,
    ONE_ROW,
    QUANTITIES,
    Case,
    Quantity,
    cases,
    turning,
)
from optsched.studies.judging import judge
from optsched.studies.offered import offered_by
from optsched.studies.results import grouped
from optsched.studies.template import Record
from optsched.workloads.spec_file import read_workload

if TYPE_CHECKING:
    import pandas as pd

ABOUT = 0.1
"""A figure of the baseline is that of the paper if it differs by no more than this share."""

STANDS_IN = 1.5
"""A model stands in for a trace where its means differ by at most this factor, up or down."""

EXACT, GENERIC = "row-search", "cp-sat"
SOLVERS = ("best-fit", "greedy-colouring", EXACT, GENERIC)
"""The solvers in the place of first fit, in the order of tables."""

WORKLOAD = ["interarrival", "service", "seed"]
SAME = [*WORKLOAD, "variant", "mpl"]
"""Columns that are equal in a run and in the plain run that it is compared with."""


def values(frame: pd.DataFrame, *, quick: bool) -> Mapping[str, Any]:
    """Return the names that the template uses."""
    tables = {variant: compared(frame, variant) for variant in VARIANTS}
    every = {variant: compared(frame, variant, None) for variant in SHARED}

    def times(variant: str, metric: str, one: str, other: str) -> str:
        """Write a mean over that of another strategy, as the claims have it."""
        return in_words(mean_ratio(every[variant], metric, one, other))

    over_backfilling = [
        {
            "variant": variant,
            "level": level,
            "mean": mean_ratio(every[variant], "mean_response", level, BACKFILLING).mean,
            "times": times(variant, "mean_response", level, BACKFILLING),
            "below": int((found < 1).sum()),
            "from": float(tables[variant]["offered", level][found.index[found < 1]].min()),
            "workloads": len(found),
        }
        for variant in SHARED
        for level in GANG
        for found in [ratios(tables[variant], "mean_response", level, BACKFILLING)]
    ]
    *_, high = GANG
    of_high = [one for one in over_backfilling if one["level"] == high]
    packed = beside_plain(frame, frame[frame["solver"].isin(SOLVERS)])
    exact = packed[(packed["solver"] == EXACT) & (packed["variant"] == SHOWN)]
    found = cases(frame)
    return {
        "variants": VARIANTS,
        "seeds": SEEDS,
        "shown": SHOWN,
        "skipped": SKIPPED,
        "metrics": METRICS,
        "published": PUBLISHED,
        "baseline_jobs": len(baseline(frame)),
        "requests": REQUESTS,
        "kept_up": KEPT_UP,
        "near": NEAR,
        "times": times,
        "best": min(over_backfilling, key=itemgetter("mean")),
        "best_of_high": min(of_high, key=itemgetter("mean")),
        "worst_of_high": max(of_high, key=itemgetter("mean")),
        "exact_gain": exact["mean_response"] / exact["mean_response_plain"],
        "baseline": [] if quick else baseline_table(frame),
        "by_utilization": {
            name: {**shown, "ends": _ends(tables[shown["variant"]], shown["metric"])}
            for name, shown in FIGURES.items()
        },
        "numbers": lambda variant: numbers(tables[variant]),
        "over_space_sharing": [
            {
                "variant": variant,
                "level": level,
                **{
                    ("workloads", other): len(keeping_up(table, level, other))
                    for other in (FCFS, BACKFILLING)
                },
                **{
                    (what, other): _times(ratios(table, metric, level, other).median())
                    for metric, what in METRICS.items()
                    for other in (FCFS, BACKFILLING)
                },
            }
            for variant in SHARED
            for table in [tables[variant]]
            for level in _present(table["mean_response"].columns)
            if level in GANG
        ],
        "where_time_goes": where_time_goes(tables),
        "turns": turns(frame),
        "short_jobs": short_jobs(frame),
        "one_row": ONE_ROW,
        "claimed": CLAIMED,
        "claimed_of_large": CLAIMED_OF_LARGE,
        "change": CHANGED,
        "unchanged": found[0],
        "changed": {case.change.key: case for case in found if case.service == CHANGED["service"]},
        "no_estimates": no_estimates(found),
        "easy": AGGRESSIVE,
        "loads": sorted(
            (case for case in found if not case.change.key), key=lambda case: case.load
        ),
        "changes": [_of_case(case) for case in found],
        "turning": lambda field, quantity=CLAIMED: turning(found, field, quantity),
        "turnings": turnings(found),
        "contested": contested(frame),
        "packings": packings(packed),
        "ties": ties(packed),
        "costs": costs(frame),
        "figure_9": figure_9(frame),
        "memory": memory(frame),
        "estimates": estimates(frame),
        "stands_in": [] if quick else [stands_in(frame, model) for model in MODELS],
        "by_part": by_part(frame),
        "by_seed": by_seed(frame),
    }


def _times(ratio: float, note: str = "", digits: int = 2) -> Cell:
    return Cell(f"{ratio:.{digits}f}", ratio, note=note)


def _present(names: Iterable[str]) -> list[str]:
    """Return the strategies among these names, in the order of tables."""
    there = set(names)
    return [name for name in STRATEGIES if name in there]


def baseline_table(frame: pd.DataFrame) -> list[Record]:
    """Return the figures of the baseline workload beside those of the paper."""
    trace = baseline(frame)
    theirs = PUBLISHED["baseline"]
    offered = offered_by(trace, PUBLISHED["nodes"])
    large = trace.processors >= PUBLISHED["large_from"]
    work = trace.processors * trace.runtime
    used = float(compared(frame)["utilization", FCFS].to_dict()[1.0, 1.0, SEEDS[0]])
    of_large = work[large].sum() / work.sum()

    def record(figure: str, found: float, shown: Value, published: float, text: str) -> Record:
        near = abs(found / published - 1) <= ABOUT
        verdict = Verdict.HELD if near else Verdict.NOT_HELD
        return {"figure": figure, "measured": shown, "published": text, "verdict": verdict}

    days, fraction, limit = theirs["days"], theirs["large_share"], theirs["large_work"]
    records = [
        record("days of submissions", offered.days, offered.days, days, f"about {days:g}"),
        record(
            *("utilization of the run (FCFS)", used, used),
            *(theirs["utilization"], f"{theirs['utilization']:g}"),
        ),
        record(
            *("share of large jobs (more than 32 nodes)", large.mean(), share(large.mean())),
            *(fraction, f"{fraction:.0%}"),
        ),
        {
            "figure": "their share of the work",
            "measured": share(of_large),
            "published": f"more than {limit:.0%}",
            "verdict": Verdict.HELD if of_large > limit else Verdict.NOT_HELD,
        },
    ]
    for one in read_workload("franke-1999").to_table()["classes"]:
        smallest, largest, published = one["smallest"], one["largest"], one["share"] / 100
        found = ((trace.processors >= smallest) & (trace.processors <= largest)).mean()
        label = f"share of jobs of {smallest} to {largest} nodes"
        records.append(record(label, found, share(found), published, f"{published:.2%}"))
    return records


def _ends(table: pd.DataFrame, metric: str) -> dict[str, dict[str, str]]:
    """Return the least and the largest mean of each strategy where backfilling keeps up."""
    shown = keeping_up(table, BACKFILLING)[metric]
    return {
        name: {"low": duration(shown[name].min()).text, "high": duration(shown[name].max()).text}
        for name in _present(shown.columns)
    }


def numbers(table: pd.DataFrame) -> list[Record]:
    """Return mean response times at some interarrival factors."""
    names = _present(table["mean_response"].columns)
    by_workload: dict[Any, dict[Any, float]] = table.to_dict(orient="index")
    return [
        {
            "factors": f"{interarrival:g} and {service:g}",
            "offered load": _times(own["offered", FCFS]),
        }
        | {
            (what, name): duration(own[metric, name])
            for what, metric in (
                ("all jobs", "mean_response"),
                ("large jobs", "large_mean_response"),
            )
            for name in names
        }
        for (interarrival, service, _), own in by_workload.items()
        if interarrival in FEW["interarrival"]
    ]


def where_time_goes(tables: Mapping[str, pd.DataFrame]) -> list[Record]:
    """Return the parts of response times, by strategy."""
    records = []
    for variant in (SHOWN, SKIPPED):
        table = tables[variant]
        for service in FEW["service"]:
            if (1.0, service, SEEDS[0]) not in table.index:
                continue
            own: dict[Any, float] = table.xs((1.0, service, SEEDS[0])).to_dict()
            run = own["mean_runtime", FCFS]
            for name in _present(table["mean_response"].columns):
                if name not in GANG and variant != SHOWN:
                    continue
                wait, response = own["mean_wait", name], own["mean_response", name]
                records.append(
                    {
                        "offered load": _times(own["offered", FCFS]),
                        "strategy": name,
                        "variant": variant if name in GANG else "",
                        "wait": duration(wait),
                        "pause": duration(max(0.0, round(response - wait - run, 3))),  # rounding
                        "run": duration(run),
                        "response": duration(response),
                    }
                )
    return records


def turns(frame: pd.DataFrame) -> list[Record]:
    """Return the means with time slices over those with shares of the time, by rows."""
    runs = plain(frame)
    same = [*WORKLOAD, "admission", "mpl"]
    by_turns, by_rows = (runs[runs["sharing"] == name] for name in (TURNS, "rows"))
    pairs = by_turns.merge(by_rows, on=same, suffixes=("", "_rows"), validate="1:1")
    pairs = pairs[pairs["kept_up"] & pairs["kept_up_rows"]]
    return [
        {"admission": admission, "level": f"MPL {mpl:.0f}", "workloads": len(own)}
        | {
            head: spread(own[metric] / own[f"{metric}_rows"], ".2f", "median")
            for metric, head in METRICS.items()
        }
        for (admission, mpl), own in grouped(pairs, ["admission", "mpl"])
    ]


def short_jobs(frame: pd.DataFrame) -> dict[str, Any]:
    """Return the share of jobs shorter than a turn, their median response times, and all waits."""
    runs = plain(frame)
    looked = runs[runs["short_response"].notna()]
    by = {name: looked[looked["sharing"] == name] for name in ("rows", TURNS)}
    return {
        "share": looked["short_share"].mean(),
        "response": {name: own["short_response"].mean() for name, own in by.items()},
        "wait": {name: own["mean_wait"].mean() for name, own in by.items()},
    }


def _of_case(case: Case) -> Record:
    return {
        "changed": case.words,
        "load": _known(case.load),
        "CV of run times": _known(case.cv),
        "jobs side by side": _known(case.side_by_side, digits=1),
        **{head: _ratio(case, one) for head, one in QUANTITIES.items()},
        "keeps up": f"{case.kept_up} of {case.seeds}",
    }


def _known(value: float, note: str = "", digits: int = 2) -> Value:
    """Return a number as a cell; a dash without seeds that are kept up with."""
    return _times(value, note, digits) if value == value else None


def _ratio(case: Case, quantity: Quantity) -> Value:
    mean, low, high, seeds = case.ratios[quantity]
    interval = f"[{low:.2f}, {high:.2f}]" if low == low else ""
    of = f"{seeds} of {case.seeds} seeds" if seeds < case.seeds else ""
    return _known(mean, "; ".join(filter(None, (interval, of))))


def no_estimates(found: list[Case]) -> Case | None:
    """Return the case of the highest load in which all jobs request the same, if there is one."""
    alike = [case for case in found if case.change == Change(requests=float("inf"))]
    return max(alike, key=lambda case: case.load, default=None)


def turnings(found: list[Case]) -> list[Record]:
    """Return where the ratios of both central claims pass 1, by what is changed."""
    fields = {
        "run_power": "power of the run times",
        "size_factor": "factor of the sizes",
        "gap_power": "power of the times between arrivals",
    }
    claims = {"MPL 5, all jobs": CLAIMED, "MPL 3, large jobs": CLAIMED_OF_LARGE}
    records = []
    for field, name in fields.items():
        record: Record = {"changed": name}
        for head, quantity in claims.items():
            at = turning(found, field, quantity)
            if at is None:
                continue
            ends = [getattr(case.change, field) for case in (at.lowest, at.highest)]
            record["from"], record["to"] = ends
            shown = [_ratio(case, quantity) for case in (at.lowest, at.highest)]
            record |= {(head, "at the lowest"): shown[0], (head, "at the highest"): shown[1]}
            note = ""
            if at.value == at.value:
                note = {
                    "run_power": f"CV {at.cv:.1f}",
                    "size_factor": f"{at.side_by_side:.1f} jobs side by side",
                }.get(field, "")
            value = _times(at.value, note, 1) if at.value == at.value else "nowhere"
            record[head, "passes 1 at"] = value
        if len(record) > 1:
            records.append(record)
    return records


def contested(frame: pd.DataFrame) -> list[Record]:
    """Return the decisions in which there was something to decide, and how first fit did."""
    looked = frame[frame["contested"].notna()]
    records = []
    for (variant,), own in grouped(looked, ["variant"]):
        columns = ["problems", "several", "contested", "missed", "missed_of_several"]
        every, several, open_, missed, of_several = own[columns].sum().tolist()
        records.append(
            {
                "variant": variant,
                "decisions": int(every),
                "several jobs": share(several / every),
                "contested": share(open_ / every),
                ("first fit falls short", "in"): int(missed),
                ("first fit falls short", "of all"): share(missed / every),
                ("first fit falls short", "of those with several jobs"): share(
                    of_several / several
                ),
                ("first fit falls short", "of the contested"): share(missed / open_),
            }
        )
    return records


def beside_plain(frame: pd.DataFrame, varied: pd.DataFrame) -> pd.DataFrame:
    """Return runs beside the plain ones of the same workload, variant and level.

    Only where both keep up with the workload. Metrics of the plain run end in ``_plain``.
    """
    usual = plain(frame)
    usual = usual[usual["variant"].notna()]
    pairs = varied.merge(usual, on=SAME, suffixes=("", "_plain"), validate="m:1")
    return pairs[pairs["kept_up"] & pairs["kept_up_plain"]]


def packings(pairs: pd.DataFrame) -> list[Record]:
    """Return the decisions of other packings, and the means of their runs."""
    metrics = {
        "response": "mean_response",
        "wait": "mean_wait",
        "response of large jobs": "large_mean_response",
    }
    return [
        {
            "variant": variant,
            "solver": solver,
            "runs": len(own),
            "decisions": int(own["problems"].sum()),
            "first fit as good": share(matched(own)),
            "proven": share(1 - own["unproven"].sum() / own["problems"].sum()),
            **{head: _over_plain(own, metric) for head, metric in metrics.items()},
        }
        for variant in sorted(set(pairs["variant"]))
        for solver in SOLVERS
        if len(own := pairs[(pairs["variant"] == variant) & (pairs["solver"] == solver)])
    ]


def _over_plain(own: pd.DataFrame, metric: str) -> Cell:
    ratios = own[metric] / own[f"{metric}_plain"]
    better = f"better in {(ratios < 1).sum()} of {len(ratios)}"
    note = "; ".join(filter(None, (span(ratios, ".2f"), better)))
    return _times(ratios.median(), note, digits=3)


def ties(pairs: pd.DataFrame) -> list[float]:
    """Return the relative differences of mean response times with two exact solvers, by run."""
    one, other = (pairs[pairs["solver"] == solver] for solver in (GENERIC, EXACT))
    both = one.merge(other, on=SAME, suffixes=("", "_other"))
    apart: list[float] = (both["mean_response"] / both["mean_response_other"] - 1).abs().tolist()
    return apart


def costs(frame: pd.DataFrame) -> list[Record]:
    """Return the cost of leaving the rows as they are, and of switching."""
    model = frame[(frame["kind"] == "model") & frame["execution"].isna()]
    changes = {
        f"rows are not compacted ({variant})": own
        for (variant,), own in grouped(model[~model["compact"]], ["variant"])
    } | {
        f"a switch takes {seconds:g} s of 60 s ({SHOWN})": own
        for (seconds,), own in grouped(model[model["context_switch"] > 0], ["context_switch"])
    }
    return [{"change": name, **_levels(frame, own)} for name, own in changes.items()]


def _levels(frame: pd.DataFrame, varied: pd.DataFrame) -> dict[str, Any]:
    pairs = beside_plain(frame, varied)
    cells: dict[str, Value] = {}
    for level in MPLS:
        own = pairs[pairs["mpl"] == level]
        ratios = own["mean_response"] / own["mean_response_plain"]
        note = "; ".join(filter(None, (span(ratios, ".2f"), counted(len(ratios), "workload"))))
        cells[f"MPL {level}"] = _times(ratios.median(), note) if len(ratios) else None
    return cells


def memory(frame: pd.DataFrame) -> list[Record]:
    """Return the cost of paging, by the memory of the jobs, alike or drawn."""
    paged = frame[(frame["kind"] == "model") & frame["execution"].notna()]
    return [
        {
            "mean memory of a job": Cell(f"{megabytes:g} MB", megabytes),
            "its coefficient of variation": variation,
        }
        | {
            f"MPL {run['mpl']:.0f}": replace(
                duration(run["mean_response"]), note=f"{run['paged_jobs'] / run['jobs']:.0%} paged"
            )
            for run in own.sort_values("mpl").to_dict(orient="records")
        }
        for (megabytes, variation), own in grouped(paged, ["job_memory", "variation"])
    ]


def figure_9(frame: pd.DataFrame) -> list[Record]:
    """Return the times of Figure 9 over that of a dedicated run."""
    own = frame[frame["kind"] == "instances"]
    alone = own.loc[own["jobs"] == 1, "mean_response"].iloc[0]
    return [
        {"instances": int(instances)}
        | {
            f"node of {run['node_memory']:g} MB": float(run["mean_response"] / alone)
            for run in runs.sort_values("node_memory").to_dict(orient="records")
        }
        for (instances,), runs in grouped(own, ["jobs"])
    ]


def estimates(frame: pd.DataFrame) -> list[Record]:
    """Return the effect of imperfect estimates on backfilling."""
    backfilled = frame[frame["strategy"] == BACKFILLING]
    asked = backfilled[
        (backfilled["change"] == Change(requests=REQUESTS).key) & (backfilled["seed"] == SEEDS[0])
    ]
    perfect = backfilled[backfilled["change"] == ""]
    pairs = asked.merge(perfect, on=WORKLOAD, suffixes=("", "_perfect"))
    pairs = pairs[pairs["kept_up"] & pairs["kept_up_perfect"]]
    metrics = {
        "response time": "mean_response",
        "wait time": "mean_wait",
        "response time of large jobs": "large_mean_response",
    }
    ratios = {head: pairs[metric] / pairs[f"{metric}_perfect"] for head, metric in metrics.items()}
    return [
        {"mean": head, "over perfect estimates": spread(own, ".2f", "median")}
        for head, own in ratios.items()
    ]


def by_seed(frame: pd.DataFrame) -> list[Record]:
    """Return mean response times by the draw of the workload."""
    runs = plain(frame)
    runs = runs[runs["variant"].isna() | (runs["variant"] == SHOWN)]
    shared = runs.groupby(["interarrival", "service"])["seed"].transform("nunique") > 1
    names = _present(runs["strategy"])
    return [
        {
            "factors": f"{interarrival:g} and {service:g}",
            "seed": int(seed),
            "offered load": _times(own["offered"].iloc[0]),
        }
        | dict(zip(names, map(duration, own.set_index("strategy")["mean_response"].reindex(names))))
        for (interarrival, service, seed), own in grouped(runs[shared], WORKLOAD)
    ]


def stands_in(frame: pd.DataFrame, model: str) -> Record:
    """Judge whether a model gives the means of the trace, and its ranking of the strategies."""
    by = ["first", "strategy"]
    own = frame[frame["kind"] == "blue"]
    trace, made = (
        own[own["stand_in"] == name].groupby(by)["mean_response"].median()
        for name in (TRACE, model)
    )
    found = made / trace
    near = judge(
        (found <= STANDS_IN) & (found >= 1 / STANDS_IN),
        f"{found.median():.2f} times that of the trace in the median; within {STANDS_IN:g} times "
        "in {so} of {of}",
    )
    ranks = [table.unstack().rank(axis=1) for table in (trace, made)]
    order = judge(
        (ranks[0] == ranks[1]).all(axis=1),
        "the same order of the strategies by mean response in {so} of {of} parts",
    )
    return {
        "model": f"sizes {model}",
        "the trace's mean response times": near.shown,
        "its ranking of the strategies": order.shown,
    }


def by_part(frame: pd.DataFrame) -> list[Record]:
    """Return response times of the trace and its stand-ins, part by part."""
    own = frame[frame["kind"] == "blue"]
    names = _present(own["strategy"])
    return [
        {
            "part": f"from job {first:,.0f}",
            "workload": stand_in,
            "offered load": _times(float(runs["offered"].median())),
        }
        | {
            (what, name): _spread(runs[runs["strategy"] == name][metric])
            for what, metric in (("response", "mean_response"), ("wait", "mean_wait"))
            for name in names
        }
        for (first,), part in grouped(own, ["first"])
        for stand_in in (TRACE, *MODELS)
        for runs in [part[part["stand_in"] == stand_in]]
    ]


def _spread(times: pd.Series[float]) -> Cell:
    middle = duration(float(times.median()))
    if len(times) == 1:
        return middle
    note = f"{duration(times.min()).text} to {duration(times.max()).text}"
    return replace(middle, note=note)
