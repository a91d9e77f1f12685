"""Improvements over the Default scheduler, cell by cell of the paper's tables."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from optsched.machines.machine import read_machine
from optsched.machines.torus import Torus
from optsched.numbers import parse_span
from optsched.simulator.problem_solver import Ties
from optsched.studies.paired import Improvement, improvement
from optsched.studies.results import check_results, grouped
from optsched.studies.yang_2014.plan import (
    BLUE,
    CONTENT,
    INTERVAL,
    SCATTERED,
    SHOWN,
    TABLE,
    VARIANTS,
    WINDOW,
)
from optsched.text_files import read_toml
from optsched.traces.cleaning import clean
from optsched.traces.reading import read_trace

if TYPE_CHECKING:
    import pandas as pd

_PUBLISHED = read_toml(CONTENT / "published.toml")
SHARES: list[float] = _PUBLISHED["shares"]
"""The values of alpha (columns) and of beta (rows)."""

PUBLISHED: Mapping[str, Mapping[str, Any]] = {one["number"]: one for one in _PUBLISHED["tables"]}
"""Tables I to VI, by number."""

METRICS = {
    "utilization": "system utilization",
    "mean_wait": "mean wait",
    "mean_response": "mean response",
}
"""The metrics of the paper, by their names in a summary."""

MORE_IS_BETTER = frozenset({"utilization"})

PAIRED_BY = ["log", "part", "alpha", "beta", "draw", "stated"]
"""Columns that are equal in a run and in the Default run that it is compared with."""

NEEDED = (
    *("trace", "machine", "config.jobs", "solver", "charge_decisions", "ties", "seed", "error"),
    *(f"settings.{name}" for name in ("alpha", "beta", "draw", "stated", "window", "interval")),
    *("settings.backfill", "settings.scatter", "jobs", *METRICS, "large_mean_wait"),
)
"""Columns of the results that the evaluation reads."""

SIZES, SLOTS = "jobs_by_size.", "free_by_slot_size."
"""Columns of shares by size, each with the least size of its class: jobs, and free node time."""


NEGLIGIBLE = 0.001
"""Shares from which on a class of sizes is shown."""


class Noise(NamedTuple):
    """The improvements by random answers out of all optimal ones, over the seeds."""

    mean: float
    low: float
    high: float
    deviation: float
    seeds: int


def prepare(results: pd.DataFrame, inputs: Path) -> pd.DataFrame:
    """Add the columns of `described`, and the sizes of jobs of `with_job_sizes`."""
    return with_job_sizes(described(results))


def described(results: pd.DataFrame) -> pd.DataFrame:
    """Add ``log``, ``part``, ``variant`` (``default``, or a key of `VARIANTS`) and ``charged``.

    The settings lose their prefix, and values that a run does not state are filled in.
    """
    check_results(results, NEEDED)
    names = {name: name.removeprefix("settings.") for name in results.columns}
    names |= {"config.jobs": "part", "charge_decisions": "charged"}
    frame = results.rename(columns=names)
    log_of = {log["file"]: name for name, log in TABLE["logs"].items()}
    frame["log"] = [log_of[PurePath(trace).name] for trace in frame["trace"]]
    frame["stated"] = frame["stated"].fillna(SCATTERED)
    frame["ties"] = frame["ties"].fillna(str(Ties.HEURISTIC))
    variant_of = {
        (own["backfill"], own["scatter"], own.get("stated", SCATTERED)): name
        for name, own in VARIANTS.items()
    }
    frame["variant"] = [
        variant_of.get(key, "default")
        for key in zip(frame["backfill"], frame["scatter"], frame["stated"])
    ]
    mine = frame["variant"] != "default"
    for name, usual in (("window", WINDOW), ("interval", INTERVAL)):
        frame.loc[mine, name] = frame.loc[mine, name].fillna(usual)
    frame["charged"] = frame["charged"].fillna(False).astype(bool)
    return frame


def with_job_sizes(frame: pd.DataFrame) -> pd.DataFrame:
    """Add the share of the jobs of each part by size: 1 node, 2 to 3, 4 to 7 and so on."""
    import pandas as pd

    shares: dict[tuple[str, str, str], pd.Series[float]] = {}
    for (file, machine), own in grouped(frame, ["trace", "machine"]):
        nodes = read_machine(machine)
        processors = nodes.nodes_per_router if isinstance(nodes, Torus) else 1
        trace = clean(read_trace(file))
        for part in own["part"].unique():
            sizes = trace.jobs(*parse_span(part)).processors / processors
            least = pd.Series(np.exp2(np.floor(np.log2(np.maximum(sizes, 1.0)))).astype(int))
            shares[file, machine, part] = least.value_counts(normalize=True)
    table = pd.DataFrame(shares).fillna(0.0).sort_index().T
    table.columns = [f"{SIZES}{least}" for least in table.columns]
    keys = list(zip(frame["trace"], frame["machine"], frame["part"]))
    return frame.join(table.loc[keys].set_axis(frame.index))


def by_size(frame: pd.DataFrame, columns: str) -> dict[int, float]:
    """Return mean shares by size, `SIZES` or `SLOTS`, without nearly empty classes at the ends."""
    names = [name for name in frame.columns if name.startswith(columns)]
    means = frame[names].mean().dropna().to_dict()
    shares = {int(name.removeprefix(columns)): means[name] for name in names if name in means}
    filled = [size for size, share in shares.items() if share >= NEGLIGIBLE]
    return {size: shares[size] for size in sorted(shares) if filled[0] <= size <= filled[-1]}


def published(number: str, solver: str = "branch_and_bound") -> dict[tuple[float, float], float]:
    """Return a published table by (beta, alpha), in percent."""
    rows = PUBLISHED[number][solver]
    return {
        (beta, alpha): value for beta, row in zip(SHARES, rows) for alpha, value in zip(SHARES, row)
    }


def grid(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the runs behind the tables: those of `usual` with sensitive jobs."""
    own = usual(frame)
    return own[own["alpha"] > 0]


def control(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the runs of `usual` in which contiguous nodes make no job shorter."""
    own = usual(frame)
    return own[own["alpha"] == 0]


def usual(frame: pd.DataFrame) -> pd.DataFrame:
    """Return Default, and the window of the paper: free decisions, ties as Greedy breaks them."""
    return _as_in_paper(frame[frame["ties"] == Ties.HEURISTIC])


def tied(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the runs in which ties are broken in several ways, and others on the same jobs."""
    own = _as_in_paper(_middle(frame)[1])
    draw = int(own.loc[own["ties"] == Ties.RANDOM, "draw"].iloc[0])
    return own[own["draw"] == draw]


def _as_in_paper(frame: pd.DataFrame) -> pd.DataFrame:
    """Return Default, and the paper's window and interval with free decisions."""
    usual = (frame["window"] == WINDOW) & (frame["interval"] == INTERVAL) & ~frame["charged"]
    return frame[usual | (frame["variant"] == "default")]


def compared(frame: pd.DataFrame, **wanted: Any) -> pd.DataFrame:
    """Return the runs with the wanted values beside the Default runs on the same jobs.

    Metrics of the Default run end in ``_default``.
    """
    default = frame["variant"] == "default"
    mine = ~default
    for name, value in wanted.items():
        mine &= frame[name] == value
    beside = frame[default].drop_duplicates(PAIRED_BY)
    return frame[mine].merge(beside, on=PAIRED_BY, suffixes=("", "_default"), validate="m:1")


def gain(pairs: pd.DataFrame, metric: str) -> Improvement:
    """Return the improvement of a metric over the Default, of all runs together."""
    return improvement(
        pairs[f"{metric}_default"],
        pairs[metric],
        pairs["log"] + " " + pairs["part"],
        more_is_better=metric in MORE_IS_BETTER,
    )


def contributions(pairs: pd.DataFrame, metric: str) -> pd.Series[float]:
    """Return what each part contributes to the improvement of each cell, for one log.

    The index is beta, alpha and part; the mean over the parts is the improvement of the cell.
    """
    means = pairs.groupby(["beta", "alpha", "part"])[[metric, f"{metric}_default"]].mean()
    default = means[f"{metric}_default"]
    usual = default.groupby(level=["beta", "alpha"]).transform("mean")
    sign = 1.0 if metric in MORE_IS_BETTER else -1.0
    return sign * (means[metric] - default) / usual


def cells(
    frame: pd.DataFrame, metric: str, **wanted: Any
) -> Mapping[tuple[float, float], Improvement]:
    """Return the improvements of a metric by (beta, alpha)."""
    needed = dict.fromkeys((*PAIRED_BY, "variant", *wanted, metric))
    pairs = compared(frame[[*needed]], **wanted)
    return {
        (beta, alpha): gain(own, metric) for (beta, alpha), own in grouped(pairs, ["beta", "alpha"])
    }


def replaced(frame: pd.DataFrame, metric: str, old: str, new: str, **wanted: Any) -> Improvement:
    """Return the improvement of a metric when one solver takes the place of another."""
    pairs = _beside(frame, metric, old, new, **wanted)
    parts = pairs["log"] + " " + pairs["part"]
    return improvement(pairs[f"{metric}_old"], pairs[f"{metric}_new"], parts)


def scattering(frame: pd.DataFrame, metric: str, old: str, new: str, **wanted: Any) -> float:
    """Return by how much a metric differs between two solvers in a run: the mean, up or down."""
    pairs = _beside(frame, metric, old, new, **wanted)
    return float((pairs[f"{metric}_new"] / pairs[f"{metric}_old"] - 1).abs().mean())


def _beside(frame: pd.DataFrame, metric: str, old: str, new: str, **wanted: Any) -> pd.DataFrame:
    by = [*PAIRED_BY, "variant", "window", "interval", "charged"]
    own = frame[[*dict.fromkeys((*by, "solver", *wanted, metric))]]
    one, other = (compared(own, solver=solver, **wanted) for solver in (old, new))
    return one.merge(other, on=by, suffixes=("_old", "_new"), validate="1:1")


def noise(pairs: pd.DataFrame, metric: str) -> Noise:
    """Return the improvements of a metric in the pairs with random answers, over the seeds."""
    drawn = pairs[pairs["ties"] == Ties.RANDOM]
    found = [gain(own, metric).mean for _, own in grouped(drawn, ["seed"])]
    deviation = float(np.std(found, ddof=1))
    return Noise(float(np.mean(found)), min(found), max(found), deviation, len(found))


def varied(frame: pd.DataFrame) -> tuple[float, pd.DataFrame]:
    """Return alpha and beta where window and solver are varied, and all runs there."""
    middle, own = _middle(frame)
    return middle, own[own["ties"] == Ties.HEURISTIC]


def _middle(frame: pd.DataFrame) -> tuple[float, pd.DataFrame]:
    middle = float(frame.loc[frame["ties"] == Ties.RANDOM, "alpha"].iloc[0])
    at = (frame["log"] == BLUE) & (frame["alpha"] == middle) & (frame["beta"] == middle)
    return middle, frame[at & frame["variant"].isin([SHOWN, "default"])]


def all_runs(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the improvement of every metric in every cell, one row each."""
    import pandas as pd

    by = ["log", "variant", "solver", "ties", "window", "interval", "charged", "beta", "alpha"]
    pairs = compared(frame)
    rows = [
        dict(zip(by, key)) | {"metric": metric} | gain(own, metric)._asdict()
        for key, own in grouped(pairs, by)
        for metric in METRICS
    ]
    return pd.DataFrame(rows)
