"""``optsched compare``, of solvers or of runs."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from optsched.cli import BAD_INPUT, DONE, INTERRUPTED, NO_SOLUTION, options
from optsched.cli.terminal import (
    print_hanging,
    print_json,
    print_lines,
    print_table,
    progress_bar,
    warn,
)
from optsched.errors import InputError
from optsched.files import FolderKind, check_name, check_replaceable, written_folder
from optsched.folders import COMPARISON, RUN, RUNS, SWEEP, finished_runs, read_object
from optsched.models.snapshot_file import snapshot_files
from optsched.numbers import LARGEST, counted, parse_number, short
from optsched.report.comparison_page import in_short, unsolved, unused_names
from optsched.report.page import Cell, cell, duration, share
from optsched.report.run_comparison import read_runs
from optsched.report.saved import fill_comparison, fill_runs
from optsched.solvers.comparison import compare
from optsched.solvers.comparison.tables import AT_ONCE, summarize, trivial
from optsched.solvers.result import Status
from optsched.studies import effects
from optsched.studies.effects import ALL, effects_over
from optsched.sweeps.sweep_folder import compared

if TYPE_CHECKING:
    import pandas as pd


def are_runs(paths: Sequence[Path]) -> bool:
    """Return whether paths are run folders or a sweep folder, and not snapshots."""
    sweeps = [path for path in paths if _is_a(SWEEP, path)]
    runs = [path for path in paths if path not in sweeps and _is_a(RUN, path)]
    found = {"runs": runs, "a sweep": sweeps}
    found["snapshots"] = [path for path in paths if path not in (*runs, *sweeps)]
    kinds = [name for name, own in found.items() if own]
    if len(kinds) > 1:
        several = f"{' and '.join(kinds)} ({', '.join(str(found[kind][0]) for kind in kinds)})"
        raise InputError(f"{several}; expected runs, one sweep, or snapshots")
    if len(sweeps) > 1:
        raise InputError(f"{counted(len(sweeps), 'sweep')}; expected one sweep, or runs")
    return kinds != ["snapshots"]


def _is_a(kind: FolderKind, path: Path) -> bool:
    """Return whether a folder has the marker of a kind, and not a snapshot of that name."""
    marker = path / kind.marker
    if not marker.is_file():
        return False
    try:
        read_object(marker, {"kind": str})
    except InputError:
        return True
    return False


def compare_runs(paths: Sequence[Path], output: Path, days: str | None, *, json: bool) -> None:
    """Write the folder of a comparison of runs, or of the runs of a sweep, and print its table.

    The Gantt charts show a period of days, FROM:TO, or one in which the schedules differ.
    """
    for path in paths:
        check_name(path)
    check_replaceable(output, RUNS)
    period = None if days is None else _period(days)
    of_sweep = _is_a(SWEEP, paths[0])
    comparison = compared(paths[0]) if of_sweep else read_runs(_named(paths))
    with written_folder(output, RUNS) as folder, options.as_options(("days",)):
        fill_runs(comparison, folder, [str(path) for path in paths], period)
    print_comparison(comparison.table, json=json)
    if not json:
        print_lines([("comparison folder", output)])


def compare_over(path: Path, output: Path, over: str, baseline: str | None, *, json: bool) -> None:
    """Write the folder of the changes in a sweep over the values of a key, and print them."""
    check_name(path)
    if not _is_a(SWEEP, path):
        raise InputError("is for a sweep, not for runs", field="--over")
    check_replaceable(output, effects.FOLDER)
    found = effects_over(path, over, baseline)
    with written_folder(output, effects.FOLDER) as folder:
        effects.fill(found, folder, path)
    warn(*found.notes)
    if json:
        print_json(effects.described(found, path))
        return
    first = 1 if any(one.of != ALL for one in found.effects) else 2
    heads = effects.columns(found)
    spare = ("from", *heads[8:], heads[7])  # for a narrow terminal
    rows = [effects.cells(one) for one in found.effects]
    print_table(heads[:1] + heads[first:], [row[:1] + row[first:] for row in rows], spare)
    for sentence in (effects.lead(found), *effects.sentences(found)):
        print_hanging(sentence, 2)
    print_lines([("comparison folder", output)])


def _period(text: str) -> tuple[float, float]:
    begin, _, end = text.partition(":")
    with suppress(ValueError):
        period = parse_number(begin), parse_number(end)
        if 0 <= period[0] < period[1] <= LARGEST:
            return period
    raise InputError(f"{text!r}; expected FROM:TO in days, 10:12 for instance", field="--days")


def _named(paths: Sequence[Path]) -> dict[str, Path]:
    """Return run folders by name; by the whole path if the name is taken."""
    last = [_name(Path(os.path.abspath(path))) for path in paths]
    uses = Counter(last)
    named = {name if uses[name] == 1 else str(path): path for name, path in zip(last, paths)}
    if len(named) < len(paths):
        twice = next(path for path in paths if list(paths).count(path) > 1)
        raise InputError("is given twice; expected different runs", file=twice)
    return named


def _name(path: Path) -> str:
    """Return the name of a run: that of its folder, in a sweep the one that it has there."""
    sweep = path.parent.parent
    if path.parent.name == "runs" and _is_a(SWEEP, sweep):
        found, _ = finished_runs(sweep)
        return next((name for name, place in found.items() if place.name == path.name), path.name)
    return path.name


DEFAULT_SECONDS = 10.0  # default time limit per solve in seconds

COLUMNS: dict[str, tuple[str, Callable[[Any], Cell]]] = {
    "run": ("run", cell),
    "mean_wait": ("mean wait", duration),
    "p95_wait": ("95%", duration),
    "mean_bounded_slowdown": ("slowdown", cell),
    "utilization": ("in use", share),
    "paired_less": ("wait less", share),
    "paired_more": ("wait more", share),
    "kind": ("model", cell),
    "solver": ("solver", cell),
    "snapshots": ("snapshots", cell),
    "solved": ("solved", cell),
    "best": ("best", share),
    "proven": ("proven", share),
    "mean_gap": ("mean gap", share),
    "median_gap": ("median gap", share),
    "max_gap": ("largest gap", share),
    "median_seconds": ("median time", duration),
    "p95_seconds": ("95%", duration),
    "total_seconds": ("in all", duration),
    "mean_seconds": ("mean time", duration),
    "primal_integral": ("primal integral", duration),
    "errors": ("errors", cell),
}
"""Columns that are printed of runs, then of solvers: their labels, and what shows their values."""

SPARE = (
    *("primal integral", "mean time", "in all", "95%", "median gap", "largest gap"),
    *("snapshots", "solved", "wait more", "wait less"),
)
"""Columns that a narrow terminal leaves out, the first one first."""


def print_comparison(table: pd.DataFrame, *, json: bool) -> None:
    """Print a table, without models if there is one, and without zero errors; or all as JSON."""
    records = table.to_dict(orient="records")
    if json:
        print_json({"table": records})
        return
    one_model = len({*table.get("kind", ())}) == 1
    idle = {"kind": one_model, "errors": not any(table.get("errors", ()))}
    columns = {key: COLUMNS[key] for key in COLUMNS if key in table and not idle.get(key)}
    rows = [[show(one[key]) for key, (_, show) in columns.items()] for one in records]
    print_table([label for label, _ in columns.values()], rows, SPARE)


def command(
    *snapshots: Annotated[Path, Parameter(required=True, completer=options.models_and_snapshots)],
    output: options.Output,
    solvers: Annotated[
        str | None, Parameter(completer=options.comma_separated(options.solver_names))
    ] = None,
    time_limit: options.Seconds | None = None,
    work_limit: options.Number | None = None,
    seed: options.Seeds | None = None,
    days: str | None = None,
    over: str | None = None,
    baseline: str | None = None,
    json: bool = False,
    model: options.Models = None,
) -> int:
    """Compare solvers on the same snapshots, or policies by their runs of the same jobs.

    Parameters
    ----------
    snapshots
        Snapshots, problems in other formats, folders of them, or names (see `optsched list
        snapshots`); the name of a model stands for all its snapshots. Or else the run folders of
        one trace, or one sweep folder: their first run is the baseline.
    output
        The folder to write to. An existing comparison is replaced.
    solvers
        Solvers, profiles and FILE.py:CLASS, separated by commas; by default all installed solvers.
    time_limit
        Wall-clock seconds per solve; 10 if no limit is given.
    work_limit
        Deterministic work per solve, in each solver's own unit.
    seed
        Seed of the solvers' random choices, by default each profile's; of several, A,B,C, each
        snapshot is solved with each.
    days
        FROM:TO, the period of the Gantt charts of runs, in days since the first submission; by
        default one in which the schedules differ.
    over
        A key of a sweep, jobs or workload_seed for instance: compare policies over its values, with
        confidence intervals.
    baseline
        With --over, what all others are compared with; by default the first of the sweep.
    json
        Print the table as one JSON object.
    """
    options.import_models(model)
    if are_runs(snapshots):
        of_solvers: dict[str, Any] = {"solvers": solvers, "time-limit": time_limit}
        of_solvers |= {"work-limit": work_limit, "seed": seed}
        _refuse(of_solvers, "is for solvers on snapshots, not for runs")
        if over is None:
            _refuse(
                {"baseline": baseline}, "expected --over KEY, too; otherwise it is the first run"
            )
            compare_runs(snapshots, output, days, json=json)
            return DONE
        _refuse({"days": days}, "is for runs of the same jobs, not for --over")
        compare_over(snapshots[0], output, over, baseline, json=json)
        return DONE
    reason = "is for runs, not for solvers on snapshots"
    _refuse({"days": days, "over": over, "baseline": baseline}, reason)
    check_replaceable(output, COMPARISON)
    total = sum(len(snapshot_files(path)) for path in snapshots)
    names = None if solvers is None else [name.strip() for name in solvers.split(",")]
    if time_limit is None and work_limit is None:
        time_limit = DEFAULT_SECONDS
    budget = options.budget_of(time_limit, work_limit)
    with written_folder(output, COMPARISON) as folder:
        with progress_bar("solving", total, "snapshots") as advance:
            comparison = compare(
                snapshots, names, budget=budget, seed=seed, progress=advance, separate_process=True
            )
        fill_comparison(comparison, folder)
    print_comparison(comparison.table, json=json)
    if not json:
        print_lines([*_trivial(comparison.results), ("comparison folder", output)])
    errors = (*comparison.wrong_answers, *comparison.contradictions, *comparison.failures)
    unused = [unused_names(about) for about in comparison.config["known_values"] if about["unused"]]
    results = comparison.results
    stuck = results[(results["status"] == Status.INFEASIBLE) & (results["message"] != "")]
    conflicts = [f"{name}: {text}" for name, text in zip(stuck["snapshot"], stuck["message"])]
    left_out = comparison.skipped if names else ()
    warn(*errors, *comparison.refusals, *left_out, *unsolved(results), *unused, *conflicts)
    if comparison.missing:
        warn(f"interrupted; not compared: {in_short(comparison.missing)}")
        return INTERRUPTED
    none = not comparison.table["solved"].any()
    return BAD_INPUT if errors else NO_SOLUTION if none else DONE


def _refuse(options: Mapping[str, Any], reason: str) -> None:
    """Refuse options that are given, and not for what is compared."""
    for name, value in options.items():
        if value is not None:
            raise InputError(reason, field=f"--{name}")


def _trivial(results: pd.DataFrame) -> Iterator[tuple[str, str]]:
    """Yield how many snapshots of a model are trivial, and how good each solver is on the rest."""
    easy = trivial(results)
    for kind, own in results.groupby("kind", sort=False):
        hard = own[~easy[own.index]]
        number, left = own["snapshot"].nunique(), hard["snapshot"].nunique()
        if left < number:
            of = "" if len(own) == len(results) else f" {kind}"
            counts = f"{number - left:,} of {counted(number, 'snapshot')}"
            at_once = f"answered optimally by all solvers, within {short(AT_ONCE)}"
            yield f"trivial{of}", f"{counts}: {at_once}"
            if left:
                rows = summarize(hard).to_dict(orient="records")
                best = (f"{row['solver']} {share(row['best']).text}" for row in rows)
                yield f"best on the other {left:,}", ", ".join(best)
