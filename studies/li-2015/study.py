"""Li et al. 2015: the numbers, tables and figures of the page, from the runs of plan.toml."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import combinations
from pathlib import Path, PurePath
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from optsched.documentation import markdown
from optsched.machines.machine import read_machine
from optsched.numbers import written
from optsched.report.pictures.nodes import FILLS
from optsched.report.style import INK
from optsched.studies.claims import NotRunError
from optsched.studies.figures import NARROW, WIDE, Column, specification_curve
from optsched.studies.intervals import Interval, Noise, mean_of, noise_floor, reduction
from optsched.traces.catalogue import find_log
from optsched.traces.cleaning import clean
from optsched.traces.reading import read_trace
from optsched.traces.trace import Trace
from optsched.traces.transformations import scale_trace
from optsched.workloads.capability_mix import CapabilityMix
from optsched.workloads.spec_file import read_workload

# ---- The workloads


def inputs(plan: Mapping[str, Any], folders: Sequence[Path]) -> dict[str, Trace]:
    """Generate the modeled workloads, and scale the parts of the logs."""
    own, model = plan["own"], read_workload(plan["own"]["model"])
    assert isinstance(model, CapabilityMix)
    needed = {label: axis["trace"] for label, axis in plan["axes"]["log"].items()}
    asked = {label for run in plan["runs"] for label in _named(run["log"], needed)}
    if "smallest" in own:
        classes = [one for one in model.classes if one.smallest >= own["smallest"]]
        total = sum(one.share for one in classes)
        classes = [replace(one, share=100 * one.share / total) for one in classes]
        model = replace(model, classes=tuple(classes))
    traces = {}
    for label in asked:
        if label in own["logs"]:
            first, last = own["logs"][label]["jobs"]
            last = min(last, first + own["jobs"] - 1) if "smallest" in own else last
            log = clean(read_trace(find_log(own["logs"][label]["file"], folders)))
            trace, load = log.jobs(first, last), own["load"]
        else:
            load, seed = (float(words.split()[1]) for words in label.split(", "))
            trace = model.generate(own["jobs"], int(seed))
        file = PurePath(needed[label]).name
        traces[file] = at_load(trace, own["nodes"], load)
    return traces


def _named(stated: Any, every: Mapping[str, Any]) -> list[str]:
    if stated == "all":
        return [*every]
    return stated if isinstance(stated, list) else [stated]


def at_load(trace: Trace, nodes: int, load: float) -> Trace:
    """Return a trace scaled to a number of nodes and stretched to offer a load."""
    sized = scale_trace(trace, nodes).trace
    return scale_trace(sized, nodes, load=load / offered(sized, nodes)).trace


def days_of(trace: Trace) -> float:
    """Return the days from the first submission to the last one."""
    return float(trace.submit.max() - trace.submit.min()) / 86_400


def offered(trace: Trace, nodes: int) -> float:
    """Return the work of a trace over what the nodes can do in the days of its submissions."""
    work = float((trace.processors * trace.runtime).sum())
    return work / (nodes * (float(trace.submit.max() - trace.submit.min())))


# ---- What is kept of each run

PARTS = ("running", "migrating", "internal", "fragmented", "drained", "undecided", "unwanted")
NODE_TIME = {part: f"recorded_node_time.{part}" for part in PARTS}
LEVELS = tuple(range(0, 100, 5))
SCANNED = {
    "not_prepared": ("started when detected", "others were prepared", "no plan", "no attempt"),
    "given_up": ("started elsewhere", "taken by the queue head", "reserved for the queue head"),
}
LEVEL_NAMES = (
    *NODE_TIME.values(),
    *(f"recorded_{kind}.{level}" for kind in ("held", "running") for level in LEVELS),
)
REASONS = [f"{name}.{why}" for name, every in SCANNED.items() for why in every]
METRICS = (
    *("occupied", "useful", "makespan", "mean_wait", "large_mean_wait", "large_mean_drain"),
    *("mean_bounded_slowdown", "migrations", "migrations_at_start", "migrations_ahead"),
    *("problems", "unproven", "fallbacks", "heuristic_matched", "nominal_seconds"),
    *("large_detected", "large_mean_buffer", "large_mean_ahead"),
    *("prepared", "prepared_starts", "prepared_beside", "prepared_mean_buffer"),
)
STATED = ("run", "log", "variant", "system", "trace", "jobs", "shake", "shake_seed", "folder")
WORKLOAD = ("days", "offered", "large_jobs", "large_work", "largest_job")


def prepare(results: pd.DataFrame, inputs: Path) -> pd.DataFrame:
    """Keep labels and metrics, and add the figures of the workload of each run.

    Parts of metrics are 0 where they do not occur in a run that has others.
    """
    files = {name: inputs / PurePath(name).name for name in results["trace"].unique()}
    figures = {
        (name, machine): figures_of(read_trace(files[name]), read_machine(machine).size)
        for name, machine in set(zip(results["trace"], results["machine"]))
    }
    known = pd.DataFrame([*map(figures.get, zip(results["trace"], results["machine"]))])
    frame = results.reset_index(drop=True).drop(columns=["large_jobs"]).join(known)
    return with_all_parts(frame)


def with_all_parts(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the columns that are kept, with 0 for parts of metrics that did not occur."""
    frame = frame.reindex(columns=[*STATED, *WORKLOAD, *METRICS, *LEVEL_NAMES, *REASONS])
    recorded, scanned = frame["occupied"].notna(), frame["migrations_ahead"].notna()
    for names, there in ((LEVEL_NAMES, recorded), (REASONS, scanned)):
        for name in names:
            frame[name] = np.where(there, np.nan_to_num(frame[name].astype(float)), np.nan)
    return frame


def figures_of(trace: Trace, nodes: int) -> dict[str, float]:
    """Return the figures of a workload on a machine of so many nodes.

    Those are the days, the load, the number of large jobs, their share of the work, and the largest
    job. A job is large above a 27th of the machine.
    """
    large, work = trace.processors > round(nodes / 27), trace.processors * trace.runtime
    return {
        "days": days_of(trace),
        "offered": offered(trace, nodes),
        "large_jobs": int(large.sum()),
        "large_work": float(work[large].sum() / work.sum()),
        "largest_job": int(trace.processors.max()),
    }


# ---- Means over units

LOGS = ("Mira", "Trinity", "Curie")
SEEDS = ("seed 1", "seed 2", "seed 3")
WORKLOADS = (*(f"load {load}, {seed}" for load in (0.9, 1.1) for seed in SEEDS), *LOGS)
NONE, EASY, EASY_MIGRATION = "no migration", "EASY on boxes", "EASY on boxes, migration"
NODES = "EASY on nodes"
VARIANT = {
    "joint": "ahead, joint",
    "alone": "ahead",
    "start": "at start",
    "start-joint": "at start, joint",
    "prepared": "ahead, joint, all prepared",
    "shapes": "ahead, all prepared, all shapes",
    "victim": "ahead, one victim",
}
"""The paper's system under each reading."""

FOUR = ("joint", "alone", "start", "start-joint")
"""The readings of when jobs move, and with whom."""

AT_START = {
    "joint": "at start, joint",
    "alone": "at start",
    "prepared": "at start, joint",
    "shapes": "at start, all shapes",
    "victim": "at start, one victim",
}
"""The same system without looking ahead."""


def load(results: pd.DataFrame) -> pd.DataFrame:
    """Fill in what runs do not state, and add what is free while the head waits."""
    lost = results[NODE_TIME["fragmented"]] + results[NODE_TIME["drained"]]
    return results.assign(
        shake=results["shake"].fillna(0),
        shake_seed=results["shake_seed"].fillna(-1).astype(int),
        lost=lost,
        got_box=results["prepared"] / results["large_detected"],
    )


def unit_of(log: str) -> str:
    """Return the unit of a workload: both loads of a seed have the same jobs."""
    return log.rpartition(", ")[2]


def of(runs: pd.DataFrame, variant: str, metric: str) -> pd.Series[float]:
    """Return a metric of a variant by workload, without those that are shaken."""
    own = runs[(runs["variant"] == variant) & (runs["shake"] == 0)]
    return own.set_index("log")[metric].astype(float)


def by_unit(runs: pd.DataFrame, variant: str, metric: str) -> pd.Series[float]:
    """Return a metric of a variant by unit.

    Raises
    ------
    NotRunError
        If a workload is missing, or has nothing recorded.
    """
    found = of(runs, variant, metric).dropna()
    if set(found.index) != set(WORKLOADS):
        raise NotRunError
    return found.groupby(unit_of).mean()


def mean(runs: pd.DataFrame, variant: str, metric: str) -> float:
    """Return the mean of a metric over the units."""
    return float(by_unit(runs, variant, metric).mean())


def apart(runs: pd.DataFrame, one: str, other: str, metric: str) -> Interval:
    """Return by how many points a share is higher with one variant than with another."""
    return mean_of(by_unit(runs, one, metric) - by_unit(runs, other, metric)) * 100


def fall(runs: pd.DataFrame, before: str, after: str, metric: str) -> Interval:
    """Return by how many percent the mean of a metric falls from one variant to another."""
    return reduction(by_unit(runs, before, metric), by_unit(runs, after, metric)) * 100


# ---- What claims.toml names


def level(runs: pd.DataFrame, reading: str, *, metric: str, window: int = 100) -> Interval:
    """Return the share of the nodes that are held, or run, in the recorded time."""
    return mean_of(by_unit(runs, windowed(reading, window), metric)) * 100


def windowed(reading: str, size: int) -> str:
    """Return the variant of a reading with a window of another size."""
    return VARIANT[reading] + (f", window {size}" if size != 100 else "")


def gain(runs: pd.DataFrame, reading: str, *, with_: str = "", without: str = NONE) -> Interval:
    """Return by how many points more nodes run with migration."""
    return apart(runs, with_ or VARIANT[reading], without, "useful")


def fragmented_fall(runs: pd.DataFrame, reading: str) -> Interval:
    """Return by how much the node time falls that is free, but not in one box."""
    return fall(runs, NONE, VARIANT[reading], NODE_TIME["fragmented"])


def backfilled(runs: pd.DataFrame, reading: str) -> Interval:
    """Return by how many points more nodes run with backfilling."""
    return apart(runs, VARIANT[reading], f"{VARIANT[reading]}, no backfilling", "useful")


def got_box(runs: pd.DataFrame, reading: str) -> Interval:
    """Return the share of the large jobs of the window that get a box of their own."""
    return mean_of(by_unit(runs, VARIANT[reading], "got_box")) * 100


def looked_ahead(runs: pd.DataFrame, reading: str, *, metric: str) -> Interval:
    """Return by how many points a share is higher than if jobs migrate at starts alone."""
    return apart(runs, VARIANT[reading], AT_START[reading], metric)


def window(runs: pd.DataFrame, reading: str, *, size: int) -> Interval:
    """Return by how many points more nodes run with a larger window."""
    return apart(runs, windowed(reading, size), VARIANT[reading], "useful")


def cost(runs: pd.DataFrame, reading: str, *, size: int) -> Interval:
    """Return by how many percent a larger window takes more nominal time in all."""
    return fall(runs, VARIANT[reading], windowed(reading, size), "nominal_seconds") * -1


# ---- All choices together

ALONE, START, PREPARED, SHAPES = (
    "for the large job alone",
    "only as a large job starts",
    "all large jobs prepared",
    "boxes of any shape",
)
COMBINED: dict[tuple[str, str], tuple[str, ...]] = {
    ("ahead, joint", NONE): (),
    ("ahead, joint, window 500", f"{NONE}, window 500"): ("window of 500",),
    ("ahead, joint, window 1000", f"{NONE}, window 1000"): ("window of 1000",),
    ("ahead, joint, no backfilling", f"{NONE}, no backfilling"): ("nothing is backfilled",),
    ("ahead, joint, all prepared", NONE): (PREPARED,),
    ("ahead", NONE): (ALONE,),
    ("ahead, window 500", f"{NONE}, window 500"): (ALONE, "window of 500"),
    ("ahead, window 1000", f"{NONE}, window 1000"): (ALONE, "window of 1000"),
    ("ahead, no backfilling", f"{NONE}, no backfilling"): (ALONE, "nothing is backfilled"),
    ("ahead, one victim", NONE): (ALONE, "one victim a plan"),
    ("ahead, all prepared", NONE): (ALONE, PREPARED),
    ("ahead, all prepared, all shapes", NONE): (ALONE, PREPARED, SHAPES),
    ("at start, joint", NONE): (START,),
    ("at start", NONE): (START, ALONE),
    ("at start, window 500", f"{NONE}, window 500"): (START, ALONE, "window of 500"),
    ("at start, window 1000", f"{NONE}, window 1000"): (START, ALONE, "window of 1000"),
    ("at start, no backfilling", f"{NONE}, no backfilling"): (
        *(START, ALONE, "nothing is backfilled"),
    ),
    ("at start, no pause point", f"{NONE}, no pause point"): (START, ALONE, "no pause point"),
    ("at start, one victim", NONE): (START, ALONE, "one victim a plan"),
    ("at start, all shapes", NONE): (START, ALONE, SHAPES),
    ("at start, convex boxes", f"{NONE}, convex boxes"): (START, ALONE, "convex boxes"),
    ("at start, exact detection", f"{NONE}, exact detection"): (START, ALONE, "exact detection"),
    ("at start, any free box", f"{NONE}, any free box"): (START, ALONE, "placed in any free box"),
    ("at start, shared bandwidth", NONE): (START, ALONE, "moves share the bandwidth"),
    ("at start, free migration", NONE): (START, ALONE, "moves are free"),
    (EASY_MIGRATION, EASY): (START, ALONE, "EASY backfilling on boxes"),
}
"""Systems with migration and without, and in what they differ from the main reading."""

CHOICES = (
    *(START, ALONE, PREPARED, SHAPES, "one victim a plan", "window of 500", "window of 1000"),
    *("moves share the bandwidth", "moves are free", "convex boxes", "exact detection"),
    *("placed in any free box", "nothing is backfilled", "no pause point"),
    "EASY backfilling on boxes",
)
"""Rows of the figure."""


def combined(runs: pd.DataFrame) -> Iterator[tuple[str, Column]]:
    """Yield the effect of migration on the nodes running, by system that was run on everything."""
    for (with_, without), choices in COMBINED.items():
        with suppress(NotRunError):
            yield with_, Column(apart(runs, with_, without, "useful"), frozenset(choices))


# ---- How small an effect could be seen

COMPARED = {
    "migration": ("ahead, joint", NONE),
    "looking ahead": ("ahead", "at start"),
    "deciding jointly": ("ahead, joint", "ahead"),
    "migration with EASY": (EASY_MIGRATION, EASY),
}
SHORT = {"load 1.1, seed 1": "model", "Mira": "mira", "Trinity": "trinity", "Curie": "curie"}


def floors(runs: pd.DataFrame) -> Iterator[tuple[str, str, Noise]]:
    """Yield the noise floor of a difference of nodes running, by workload, in points."""
    shaken = runs[runs["shake"] > 0].set_index(["log", "variant", "shake_seed"])["useful"]
    shaken = shaken.sort_index()
    for log in SHORT:
        for what, (one, other) in COMPARED.items():
            with suppress(KeyError):
                several = 100 * (shaken.loc[log, one] - shaken.loc[log, other]).dropna()
                yield log, what, noise_floor(several)


# ---- What the page needs


def values(runs: pd.DataFrame, claims: dict[str, Any]) -> dict[str, Any]:
    """Return the values of the page by name."""
    main, columns = VARIANT["joint"], dict(combined(runs))
    effects = [one.found for one in columns.values()]
    levels = {name: mean(runs, name, "occupied") for name in complete(runs)}
    shaken = runs["shake"] > 0
    loads = of(runs, NODES, "offered")
    singles = {
        name: apart(runs, name, "at start", "useful").mean
        for name in levels
        if name.startswith("at start")
    }
    posed = [mean(runs, name, "problems") for name in (main, windowed("joint", 1000))]
    found: dict[str, Any] = {
        "runs": len(runs),
        "problems.100": posed[0],
        "problems.1000": posed[1],
        "jobs": int(runs["jobs"].sum()),
        "claims.judged": sum(bool(one.found) for one in claims.values()),
        "units": len(by_unit(runs, main, "useful")),
        "logs": len(LOGS),
        "seeds": len(SEEDS),
        "shakes": runs.loc[shaken, "shake_seed"].nunique(),
        "offered": tuple(loads[[WORKLOADS[0], WORKLOADS[3], "Mira"]]),
        "curve": len(effects),
        "gain.always": all(one.mean > 0 for one in effects),
        "curve.sure": sum(one.low > 0 for one in effects),
        "curve.least": min(one.mean for one in effects),
        "curve.most": max(one.mean for one in effects),
        "levels": len(levels),
        "levels.highest": 100 * max(levels.values()),
        "levels.never-85": max(levels.values()) < 0.85,
        "near-90": 100 * sum(mean(runs, main, f"recorded_held.{at}") for at in (85, 90, 95)),
        "none.undecided": 100 * mean(runs, NONE, NODE_TIME["undecided"]),
        "none.exact.undecided": 100
        * mean(runs, f"{NONE}, exact detection", NODE_TIME["undecided"]),
        "fragmented.easy.moves": 100 * mean(runs, EASY_MIGRATION, NODE_TIME["fragmented"]),
        "fragmented.easy": 100 * mean(runs, EASY, NODE_TIME["fragmented"]),
        "moves": mean(runs, main, "migrations"),
        "moves.at-start": 100 * share(runs, main, "migrations_at_start", "migrations"),
        "started-in-box": 100 * share(runs, main, "prepared_starts", "large_detected"),
        "buffer": mean(runs, main, "large_mean_buffer") / 3600,
        "buffer.prepared.min": mean(runs, main, "prepared_mean_buffer") / 60,
        "beside": share(runs, main, "prepared_beside", "prepared"),
        "jointly": apart(runs, main, "ahead", "useful"),
        "four.alike": all(
            apart(runs, *pair, "useful").low < 0 < apart(runs, *pair, "useful").high
            for pair in combinations([VARIANT[one] for one in FOUR], 2)
        ),
        "shapes.start": apart(runs, "at start, all shapes", "at start", "useful"),
        "shapes.most": max(singles, key=singles.__getitem__) == "at start, all shapes",
        "waits.fall": fall(runs, NONE, main, "mean_wait"),
    }
    systems = {name: VARIANT[name] for name in VARIANT} | {
        "none": NONE,
        "none.no-pause": f"{NONE}, no pause point",
        "none.exact": f"{NONE}, exact detection",
        "no-pause": "at start, no pause point",
        "exact": "at start, exact detection",
        "easy": EASY,
        "easy.moves": EASY_MIGRATION,
        "nodes": NODES,
    }
    for name, variant in systems.items():
        for kind, metric, times in (
            ("running", "useful", 100),
            ("wait", "mean_wait", 1 / 3600),
            ("large", "large_mean_wait", 1 / 3600),
        ):
            with suppress(NotRunError):
                found[f"{kind}.{name}"] = times * mean(runs, variant, metric)
    names = {"at start, no pause point": "no-pause", "at start, exact detection": "exact"}
    for variant, name in names.items():
        if variant in columns:
            found[f"gain.{name}"] = columns[variant].found
    for reason in REASONS:
        of_ = "large_detected" if reason.startswith("not") else "prepared"
        found[reason.partition(".")[2].replace(" ", "-")] = 100 * share(runs, main, reason, of_)
    for log, what, floor in floors(runs):
        found[f"noise.{what.replace(' ', '-')}.{SHORT[log]}"] = floor
    return found


def share(runs: pd.DataFrame, variant: str, part: str, whole: str) -> float:
    """Return the mean over units of one metric over another."""
    return mean(runs.assign(share=runs[part] / runs[whole]), variant, "share")


def complete(runs: pd.DataFrame) -> list[str]:
    """Return the variants that were run on all workloads and have a recorded time."""
    own = runs[(runs["shake"] == 0) & runs["occupied"].notna()]
    counts = own.groupby("variant", sort=False)["log"].nunique()
    return [*counts[counts == len(WORKLOADS)].index]


def tables(runs: pd.DataFrame, claims: dict[str, Any]) -> dict[str, pd.DataFrame | str]:
    """Return the tables of the page, and those of the data beside it."""
    return {
        "floors": floors_table(runs),
        "noise": noise_table(runs),
        "four": four_table(runs),
        "systems": systems_table(runs),
        "boxes": boxes_table(runs),
        "variants": variants_table(runs),
        "node-time": node_time_table(runs),
        "changes": changes_table(runs),
        "figures-5-7": levels_table(runs),
        "workloads": workloads_table(runs),
        "all": runs.drop(columns=["trace"]),
    }


def floors_table(runs: pd.DataFrame) -> str:
    """Return the smallest effects that could be seen in a single pair of runs, in points."""
    rows: dict[str, dict[str, str]] = {}
    for log, what, floor in floors(runs):
        name = "the model" if log.startswith("load") else log
        rows.setdefault(what, {})[name] = written(floor.smallest, digits=1)
    return markdown(pd.DataFrame(rows).T.rename_axis("effect of"))


def noise_table(runs: pd.DataFrame) -> pd.DataFrame:
    """Return the noise floors."""
    return pd.DataFrame(
        {
            "jobs of": "the model" if log.startswith("load") else log,
            "effect of": what,
            "from … to": " … ".join(written(end, digits=1) for end in (floor.low, floor.high)),
            "smallest effect seen": written(floor.smallest, digits=1),
        }
        for log, what, floor in floors(runs)
    )


def four_table(runs: pd.DataFrame) -> pd.DataFrame:
    """Return the nodes that run under the four combinations of when and for whom jobs migrate."""
    rows = {
        "only as a large job starts": ("at start", "at start, joint"),
        "ahead of that, too": ("ahead", "ahead, joint"),
    }
    table = pd.DataFrame(
        {
            what: [written(100 * mean(runs, name, "useful"), "%", 1) for name in variants]
            for what, variants in rows.items()
        },
        pd.Index(["for the large job alone", "jointly with others"], name="jobs migrate"),
    )
    return table.T.rename_axis("jobs migrate")


SYSTEMS = {
    "ahead, joint": "the paper's system",
    "ahead": "… for the large job alone",
    "at start": "… only as a large job starts",
    NONE: "… without migration",
    EASY_MIGRATION: "EASY on boxes, migration",
    EASY: "EASY on boxes",
    NODES: "EASY on nodes",
}


def systems_table(runs: pd.DataFrame) -> pd.DataFrame:
    """Return nodes running, waits and migrations of the main systems, means over units."""
    rows = []
    for variant, name in SYSTEMS.items():
        boxes = variant != NODES
        waits = (mean(runs, variant, f"{kind}mean_wait") / 3600 for kind in ("", "large_"))
        rows.append(
            {
                "": name,
                "running": written(100 * mean(runs, variant, "useful"), "%") if boxes else "–",
                "wait, h": written(next(waits)),
                "of large jobs, h": written(next(waits)),
                "moves": f"{mean(runs, variant, 'migrations'):,.0f}" if boxes else "–",
            }
        )
    return pd.DataFrame(rows)


def boxes_table(runs: pd.DataFrame) -> pd.DataFrame:
    """Return the fates of the large jobs that the window detected, by workload."""
    own = runs[runs["migrations_ahead"].notna() & (runs["shake"] == 0)]
    kept = ["variant", "log", "large_detected", "prepared", "prepared_starts", *REASONS]
    kept += ["prepared_beside", "migrations_at_start", "migrations_ahead"]
    times = {f"{name} h": own[f"{name}_mean_buffer"] / 3600 for name in ("large", "prepared")}
    table = own[kept].assign(**times)
    return table.rename(columns=lambda name: name.rpartition(".")[2].replace("_", " "))


def variants_table(runs: pd.DataFrame) -> pd.DataFrame:
    """Return the metrics of each variant, means over the units of the workloads it was run on."""
    own = runs[runs["shake"] == 0].assign(unit=runs["log"].map(unit_of))
    names = {
        "occupied": "held %",
        "useful": "running %",
        "mean_wait": "wait h",
        "large_mean_wait": "large wait h",
        "large_mean_drain": "large as head h",
        "mean_bounded_slowdown": "bounded slowdown",
        "migrations": "migrations",
        "problems": "problems",
        "unproven": "unproven",
        "fallbacks": "fallbacks",
        "nominal_seconds": "nominal s",
    }
    means = own.groupby(["variant", "unit"], sort=False)[[*names]].mean()
    table = means.groupby("variant", sort=False).mean().rename(columns=names)
    table[["held %", "running %"]] *= 100
    table[[name for name in table if name.endswith(" h")]] /= 3600
    table.insert(0, "workloads", own.groupby("variant", sort=False)["log"].nunique())
    return table


def node_time_table(runs: pd.DataFrame) -> pd.DataFrame:
    """Return where the recorded node time goes, in percent, means over units."""
    rows = {
        variant: {part: 100 * mean(runs, variant, name) for part, name in NODE_TIME.items()}
        for variant in complete(runs)
    }
    return pd.DataFrame(rows).T.rename_axis("variant")


def changes_table(runs: pd.DataFrame) -> pd.DataFrame:
    """Return the effect of each single change, on the workloads that both variants were run on."""
    rows = []
    for variant in runs["variant"].unique():
        base = base_of(variant)
        if base and base != variant:
            rows.append({"change": variant, "of": base} | changed(runs, base, variant))
    return pd.DataFrame(rows)


def base_of(variant: str) -> str:
    """Return the variant that differs from this one in a single change; none of some."""
    if variant == NODES:
        return ""
    if variant in ("EASY, position search", "EASY, free migration"):
        return EASY_MIGRATION
    bases = {"ahead, joint": "ahead, joint", "ahead": "ahead", "at start": "at start", "EASY": EASY}
    return next((base for start, base in bases.items() if variant.startswith(start)), "")


def changed(runs: pd.DataFrame, base: str, variant: str) -> dict[str, Any]:
    """Return by how much running nodes and waits change, with intervals."""

    def sides(metric: str) -> tuple[pd.Series[float], pd.Series[float]]:
        pair = pd.concat([of(runs, one, metric) for one in (base, variant)], axis=1).dropna()
        means = pair.groupby(unit_of).mean()
        return means.iloc[:, 0], means.iloc[:, 1]

    before, after = sides("useful")
    points = mean_of(after - before) * 100
    wait = reduction(*sides("mean_wait")) * -100
    return {
        "points running": points.mean, "from": points.low, "to": points.high,
        "wait %": wait.mean, "wait from": wait.low, "wait to": wait.high, "interval": points.how,
    }  # fmt: skip


def levels_table(runs: pd.DataFrame) -> pd.DataFrame:
    """Return the share of the recorded time by level of the nodes held, as in Figures 5 to 7."""
    shares = {}
    for size in (100, 500, 1000):
        with suppress(NotRunError):
            variant = windowed("joint", size)
            shares[f"window {size}, %"] = [
                100 * mean(runs, variant, f"recorded_held.{level}") for level in LEVELS
            ]
    index = pd.Index([f"{level} to {level + 5}%" for level in LEVELS], name="nodes held")
    return pd.DataFrame(shares, index)


def workloads_table(runs: pd.DataFrame) -> pd.DataFrame:
    """Return the workloads."""
    own = runs[runs["variant"] == NODES]
    return pd.DataFrame(
        {
            "workload": own["log"],
            "jobs": own["jobs"],
            "days": own["days"],
            "offered load": own["offered"],
            "large jobs": own["large_jobs"].astype(int),
            "their work, %": 100 * own["large_work"],
            "largest job, nodes": own["largest_job"].astype(int),
        }
    )


def figures(runs: pd.DataFrame, claims: dict[str, Any], *, narrow: bool) -> dict[str, Figure]:
    """Draw the figures of the page, for a wide page or a phone."""
    columns = [column for _, column in combined(runs)]
    used = [one for one in CHOICES if any(one in column.choices for column in columns)]
    label = "gain in running nodes, points"
    curve = specification_curve(columns, used, label, limits=(-8, 50), narrow=narrow)
    return {
        "readings": curve,
        "levels": draw_levels(runs, narrow=narrow),
        "node-time": draw_node_time(runs, narrow=narrow),
    }


def draw_levels(runs: pd.DataFrame, *, narrow: bool) -> Figure:
    """Draw the share of the recorded time by nodes held, for each window."""
    table = levels_table(runs)
    figure = Figure((NARROW if narrow else WIDE, 2.5), layout="constrained")
    panels = np.atleast_1d(figure.subplots(1, table.shape[1], sharey=True))
    for panel, (name, shares) in zip(panels, table.items()):
        panel.bar(LEVELS, shares, 5, align="edge", color=FILLS[0], edgecolor=INK, linewidth=0.4)
        panel.axvline(90, color=INK, linestyle="--", linewidth=1)
        panel.set(xlim=(20, 100), title=str(name).partition(",")[0], xticks=[30, 60, 90])
        panel.grid(visible=False, axis="x")
    panels[0].set_ylabel("recorded time, %")
    figure.supxlabel("nodes held, % (dashed: the paper)", fontsize="medium")
    return figure


def draw_node_time(runs: pd.DataFrame, *, narrow: bool) -> Figure:
    """Draw the parts of the recorded node time of the main systems."""
    shown = [variant for variant in SYSTEMS if variant != NODES]
    figure = Figure((NARROW if narrow else WIDE, 3.0 if narrow else 2.5), layout="constrained")
    axes = figure.subplots()
    left = np.zeros(len(shown))
    for part, color in zip(PARTS, FILLS):
        shares = np.array([100 * mean(runs, variant, NODE_TIME[part]) for variant in shown])
        axes.barh(
            range(len(shown)),
            shares,
            0.7,
            left,
            color=color,
            edgecolor=INK,
            linewidth=0.3,
            label=part.replace("undecided", "overlooked"),
        )
        left += shares
    axes.set(xlim=(0, 100), xlabel="recorded node time, %")
    axes.set_yticks(range(len(shown)), [SYSTEMS[one] for one in shown])
    axes.invert_yaxis()
    axes.grid(visible=False, axis="y")
    figure.legend(loc="outside upper center", ncols=3 if narrow else 7, fontsize="small")
    return figure
