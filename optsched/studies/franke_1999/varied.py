"""What packing, compaction, switching, memory and estimates make of it: tables of the page."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from optsched.report.page import Cell, Table, Value, duration, share
from optsched.studies.franke_1999.evaluation import BACKFILLING, STRATEGIES, plain
from optsched.studies.franke_1999.plan import (
    EXACT,
    GENERIC,
    PACKERS,
    REQUESTS,
    SEEDS,
    SHOWN,
    SWITCHES,
)
from optsched.studies.franke_1999.published import LU_MEMORY, LU_SLOWDOWN
from optsched.studies.results import grouped

if TYPE_CHECKING:
    import pandas as pd

WORKLOAD = ["interarrival", "service", "seed"]
SAME = [*WORKLOAD, "variant", "mpl"]
"""What a run and the plain one that it is compared with have in common."""


def beside_plain(frame: pd.DataFrame, varied: pd.DataFrame) -> pd.DataFrame:
    """Return runs beside the plain ones of the same workload, variant and level.

    Only where both keep up with the workload. Metrics of the plain run end in ``_plain``.
    """
    usual = plain(frame)
    usual = usual[usual["variant"].notna()]
    pairs = varied.merge(usual, on=SAME, suffixes=("", "_plain"), validate="m:1")
    return pairs[pairs["kept_up"] & pairs["kept_up_plain"]]


def packing_runs(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the runs that another solver than first fit packs, beside those that it does."""
    varied = frame[frame["solver"].isin([*PACKERS, GENERIC])]
    return beside_plain(frame, varied)


def packings(frame: pd.DataFrame) -> Table:
    """Return what other packings find, and what comes of it."""
    rows: list[list[Value]] = []
    order = [*PACKERS, GENERIC]
    pairs = packing_runs(frame)
    for (variant, solver), own in sorted(
        grouped(pairs, ["variant", "solver"]),
        key=lambda item: (item[0][0], order.index(item[0][1])),
    ):
        problems = own["problems"].sum()
        row: list[Value] = [variant, solver, len(own), int(problems)]
        row.append(share((own["heuristic_matched"] * own["problems"]).sum() / problems))
        row.append(share(1 - own["unproven"].sum() / problems))
        for metric in ("mean_response", "mean_wait", "large_mean_response"):
            ratios = own[metric] / own[f"{metric}_plain"]
            better = f"better in {(ratios < 1).sum()} of {len(ratios)}"
            note = "; ".join(told for told in (_span(ratios), better) if told)
            row.append(Cell(f"{ratios.median():.3f}", ratios.median(), note=note))
        rows.append(row)
    return Table(
        "Other solvers in the place of first fit: the share of decisions in which first fit does "
        "as well and of those that are proven, and the means of the whole run over those with "
        "first fit (median over the workloads that both keep up with, of all seeds; lowest and "
        "highest beside it, and how many are below 1, which is better).",
        [
            *("variant", "solver", "runs", "decisions", "first fit as good", "proven"),
            *("response", "wait", "response of large jobs"),
        ],
        rows,
    )


def ties(frame: pd.DataFrame) -> str:
    """Say by how much two exact solvers differ, which differ in ties alone."""
    pairs = packing_runs(frame)
    one, other = (pairs[pairs["solver"] == solver] for solver in (GENERIC, EXACT))
    both = one.merge(other, on=SAME, suffixes=("", "_other"))
    if both.empty:
        return f"No run with both {GENERIC} and {EXACT} keeps up."
    apart = (both["mean_response"] / both["mean_response_other"] - 1).abs()
    return (
        f"How much of that is chance? {GENERIC} and {EXACT} are both exact and differ in ties "
        f"alone, of which one leads to another schedule: their mean response times are "
        f"{', '.join(f'{share:.1%}' for share in apart)} apart in the {len(apart)} runs that both "
        "made. A difference of that size in one run tells nothing: what counts is in how many of "
        "the runs the exact solver is better."
    )


def costs(frame: pd.DataFrame) -> Table:
    """Return what it costs to leave the rows as they are, and to switch."""
    rows: list[list[Value]] = []
    model = frame[(frame["kind"] == "model") & frame["execution"].isna()]
    for variant, own in grouped(model[~model["compact"]], ["variant"]):
        rows.append([f"rows are not compacted ({variant[0]})", *_levels(frame, own)])
    for seconds in SWITCHES:
        own = model[model["context_switch"] == seconds]
        rows.append([f"a switch takes {seconds:g} s of 60 s ({SHOWN})", *_levels(frame, own)])
    levels = sorted(frame["mpl"].dropna().unique())
    return Table(
        "Mean response time over that of the same run without the change: median over the "
        "workloads that both keep up with, lowest and highest beside it, and how many they are.",
        ["change", *(f"MPL {level:.0f}" for level in levels)],
        rows,
    )


def _levels(frame: pd.DataFrame, varied: pd.DataFrame) -> list[Value]:
    pairs = beside_plain(frame, varied)
    cells: list[Value] = []
    for level in sorted(frame["mpl"].dropna().unique()):
        own = pairs[pairs["mpl"] == level]
        ratios = own["mean_response"] / own["mean_response_plain"]
        known = len(ratios) > 0
        note = f"{_span(ratios)}; {len(ratios)}" if len(ratios) > 1 else f"{len(ratios)}"
        text = f"{ratios.median():.2f}" if known else ""
        cells.append(Cell(text, ratios.median(), note=note) if known else None)
    return cells


def memory(frame: pd.DataFrame) -> Table:
    """Return what paging costs, by the memory of the jobs."""
    paged = frame[(frame["kind"] == "model") & frame["execution"].notna()]
    rows: list[list[Value]] = []
    for (megabytes,), own in grouped(paged, ["job_memory"]):
        row: list[Value] = [Cell(f"{megabytes:g} MB", megabytes)]
        for _, run in own.sort_values("mpl").iterrows():
            note = f"{run['paged_jobs'] / run['jobs']:.0%} paged"
            row.append(Cell(duration(run["mean_response"]).text, run["mean_response"], note=note))
        rows.append(row)
    levels = sorted(paged["mpl"].unique())
    return Table(
        "Mean response time of the baseline workload where each job needs so much memory on its "
        f"nodes of 1,536 MB, and takes {LU_SLOWDOWN:g} times as long while they are short of it, "
        "by however little. Response times of days are those of a machine that paging overloads.",
        ["memory of a job", *(f"MPL {level:.0f}" for level in levels)],
        rows,
    )


def figure_9(frame: pd.DataFrame) -> Table:
    """Return the times of Figure 9 over that of a dedicated run."""
    own = frame[frame["kind"] == "instances"]
    alone = own.loc[own["jobs"] == 1, "mean_response"].iloc[0]
    rows: list[list[Value]] = []
    for (instances,), runs in grouped(own, ["jobs"]):
        times = runs.sort_values("node_memory")["mean_response"] / alone
        rows.append([int(instances), *map(float, times)])
    nodes = sorted(own["node_memory"].unique())
    return Table(
        f"Figure 9: instances of {LU_MEMORY:g} MB on one node, their time over a dedicated run. "
        f"The paper: two take twice as long on both nodes; three take {LU_SLOWDOWN:g} times as "
        "long on the smaller node as on the larger. That factor is the model's parameter, so what "
        "is shown is that it acts where memory is exceeded and nowhere else.",
        ["instances", *(f"node of {megabytes:g} MB" for megabytes in nodes)],
        rows,
    )


def estimates(frame: pd.DataFrame) -> Table:
    """Return what imperfect estimates do to backfilling."""
    asked = frame[frame["requests"] == REQUESTS]
    perfect = frame[(frame["strategy"] == BACKFILLING) & (frame["requests"] == 1)]
    pairs = asked.merge(perfect, on=WORKLOAD, suffixes=("", "_perfect"))
    pairs = pairs[pairs["kept_up"] & pairs["kept_up_perfect"]]
    rows: list[list[Value]] = []
    for metric, what in (
        ("mean_response", "response time"),
        ("mean_wait", "wait time"),
        ("large_mean_response", "response time of large jobs"),
    ):
        ratios = pairs[metric] / pairs[f"{metric}_perfect"]
        rows.append([what, Cell(f"{ratios.median():.2f}", ratios.median(), note=_span(ratios))])
    return Table(
        f"Backfilling where jobs request up to {REQUESTS:g} times their run time, drawn uniformly, "
        "over backfilling with perfect estimates: median over the workloads that both keep up "
        "with, lowest and highest beside it. Gang scheduling needs no estimate.",
        ["mean", "over perfect estimates"],
        rows,
    )


def seeds(frame: pd.DataFrame) -> Table:
    """Return how much the draw of the workload matters."""
    runs = plain(frame)
    runs = runs[runs["variant"].isna() | (runs["variant"] == SHOWN)]
    shared = runs.groupby(["interarrival", "service"])["seed"].transform("nunique") > 1
    rows: list[list[Value]] = []
    for (interarrival, service), own in grouped(runs[shared], ["interarrival", "service"]):
        for (seed,), of_seed in grouped(own, ["seed"]):
            by = of_seed.set_index("strategy")["mean_response"]
            load = share(round(of_seed["offered"].iloc[0], 3))
            row: list[Value] = [f"{interarrival:g} and {service:g}", int(seed), load]
            rows.append([*row, *(duration(by.get(name)) for name in _order(by.index))])
    return Table(
        f"Mean response time by the seed of the workload ({SHOWN}); seed {SEEDS[0]} is that of "
        "the 81 workloads.",
        ["factors", "seed", "offered load", *_order(runs["strategy"].unique())],
        rows,
    )


def _order(names: Iterable[str]) -> list[str]:
    return [name for name in STRATEGIES if name in set(names)]


def _span(ratios: pd.Series[float]) -> str:
    return f"{ratios.min():.2f} to {ratios.max():.2f}" if len(ratios) > 1 else ""
