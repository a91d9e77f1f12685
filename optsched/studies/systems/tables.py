"""The tables of the page."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from optsched.report.page import Cell, Table, Value, cell, duration, share
from optsched.studies.offered import offered_by
from optsched.studies.systems.evaluation import (
    GAIN,
    POINTS,
    SECONDS,
    TIMES,
    is_baseline,
    run_of,
    site_run,
    systems_of,
)
from optsched.studies.systems.remarks import signed
from optsched.studies.systems.worlds import World, worlds
from optsched.traces.reading import read_trace

if TYPE_CHECKING:
    import pandas as pd

DIMENSIONLESS = "mean_bounded_slowdown"
SHARES = (
    "loss_of_capacity",
    "contiguous_share",
    "internal_fragmentation",
    "external_fragmentation",
)
"""Own figures of worlds that are shown in percent."""


def overall_table(frame: pd.DataFrame) -> Table:
    """Return what every system gains over its baseline, and what it costs."""
    rows: list[list[Value]] = []
    for (_, run), own in zip(frame.iterrows(), is_baseline(frame)):
        base = "baseline" if own else run["base"]
        elsewhere = f" on {run['base_world']}" if run["base_world"] != run["world"] else ""
        columns = (*GAIN.values(), POINTS)
        gains = [cell(None) if own else gained(run[name]) for name in columns]
        rows.append(
            [
                run["system"],
                run["world"],
                f"{base}{elsewhere}",
                *gains,
                int(run["killed"]),
                int(run["problems"]),
                duration(run[SECONDS]),
            ]
        )
    return Table(
        "What each system gains over the baseline of its world, in percent: by how much the time "
        "is shorter, so with a minus it is longer; of utilisation the difference in points. "
        "Killed jobs, problems that were solved, and nominal time of their solvers as they are. A "
        "dash: the baseline itself, one that has nothing to shorten, or all jobs are large.",
        [
            "system",
            "world",
            "compared with",
            *(("gain, %", label) for label in TIMES.values()),
            ("gain, %", "utilisation"),
            ("cost", "killed"),
            ("cost", "problems"),
            ("cost", "solver time"),
        ],
        rows,
    )


def world_table(frame: pd.DataFrame, world: World) -> Table:
    """Return the figures of the systems of a world, with the gains small beside them."""
    runs = [run for _, run in systems_of(frame, world.name).iterrows()]
    rows: list[list[Value]] = []
    if world.beside is not None:
        rows.append(_row(run_of(frame, world.beside), world, beside=True))
    rows += [_row(run, world) for run in runs]
    return Table(
        f"{world.name}, {world.machine}: the times, and by how many percent they are shorter than "
        "those of the baseline. Large jobs have "
        f"{world.large_from} processors or more.",
        [
            "system",
            *TIMES.values(),
            "utilisation",
            "killed",
            *world.own.values(),
            "problems",
            "solver time",
        ],
        rows,
    )


def _row(run: pd.Series[Any], world: World, *, beside: bool = False) -> list[Value]:
    system = f"{run['system']}, on {run['world']}" if beside else run["system"]
    row: list[Value] = [system]
    itself = (run["world"], run["system"]) == (run["base_world"], run["base"])
    for metric in TIMES:
        value = run[metric]
        shown = cell(value) if metric == DIMENSIONLESS else duration(value)
        found = run[GAIN[metric]]
        known = not (beside or itself) and found == found
        row.append(replace(shown, note=f"{signed(found)}%" if known else ""))
    row += [share(run["utilization"]), int(run["killed"])]
    for name in world.own:
        value = None if beside else run[name]
        row.append(share(value) if name in SHARES else cell(value))
    return [*row, int(run["problems"]), duration(run[SECONDS])]


def gained(value: float) -> Cell:
    """Return a gain in percent, with its sign."""
    return cell(None) if value != value else Cell(signed(value), value)


def traces_table(frame: pd.DataFrame) -> Table:
    """Return what the machine of each world is asked for."""
    site = site_run(frame)
    rows: list[list[Value]] = []
    for world in worlds(site):
        trace = read_trace(systems_of(frame, world.name)["path"].iloc[0])
        offered = offered_by(trace, site.processors)
        rows.append(
            [
                world.name,
                world.machine,
                world.execution or "as logged",
                len(trace),
                Cell(f"{offered.days:.3g}", offered.days),
                share(offered.load),
                duration(offered.runtime),
                len(world.systems),
            ]
        )
    return Table(
        "What was run. Load: work of the jobs over what the machine can do from the first to the "
        "last submission.",
        ["world", "machine", "execution", "jobs", "days", "load", "mean run time", "systems"],
        rows,
    )
