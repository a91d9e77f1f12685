"""``optsched compare``."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from optsched.cli import BAD_INPUT, DONE, INTERRUPTED, NO_SOLUTION
from optsched.cli.compare_runs import are_runs, compare_over, compare_runs
from optsched.cli.completion import comma_separated, models_and_snapshots, solver_names
from optsched.cli.options import Integer, Models, Number, Output, Seconds, budget_of, import_models
from optsched.cli.terminal import print_json, print_lines, print_table, progress_bar, say
from optsched.durations import short
from optsched.errors import InputError
from optsched.files import check_replaceable, written_folder
from optsched.models.snapshot_file import snapshot_files
from optsched.numbers import counted
from optsched.report.comparison_folder import FOLDER, fill
from optsched.report.comparison_page import in_short, unsolved, unused_names
from optsched.report.page import Cell, cell, duration, share
from optsched.solvers.comparison import compare
from optsched.solvers.comparison.tables import AT_ONCE, summarize, trivial
from optsched.solvers.result import Status

if TYPE_CHECKING:
    import pandas as pd

DEFAULT_SECONDS = 10.0
"""Default time limit per solve in seconds."""

COLUMNS: dict[str, tuple[str, Callable[[Any], Cell]]] = {
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
    "errors": ("errors", cell),
}
"""Columns of the printed table: names in the table of a comparison, labels, and what shows them."""

SPARE = ("in all", "95%", "median gap", "largest gap", "snapshots", "solved")
"""Columns that a narrow terminal leaves out, the first one first."""


def command(
    *snapshots: Annotated[Path, Parameter(required=True, completer=models_and_snapshots)],
    output: Output,
    solvers: Annotated[str | None, Parameter(completer=comma_separated(solver_names))] = None,
    time_limit: Seconds | None = None,
    work_limit: Number | None = None,
    seed: Integer | None = None,
    days: str | None = None,
    over: str | None = None,
    baseline: str | None = None,
    json: bool = False,
    model: Models = None,
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
        Seed of the solvers' random choices; by default each profile's seed.
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
    import_models(model)
    if are_runs(snapshots):
        of_solvers = {"solvers": solvers, "time-limit": time_limit}
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
    check_replaceable(output, FOLDER)
    total = sum(len(snapshot_files(path)) for path in snapshots)
    names = None if solvers is None else [name.strip() for name in solvers.split(",")]
    if time_limit is None and work_limit is None:
        time_limit = DEFAULT_SECONDS
    budget = budget_of(time_limit, work_limit)
    with written_folder(output, FOLDER) as folder:
        with progress_bar("solving", total, "snapshots") as advance:
            comparison = compare(
                snapshots,
                names,
                budget=budget,
                seed=seed,
                progress=advance,
                separate_process=True,
            )
        fill(comparison, folder)
    if json:
        records = comparison.table.to_dict(orient="records")
        print_json({"table": records})
    else:
        _print(comparison.table)
        print_lines([*_trivial(comparison.results), ("comparison folder", output)])
    errors = (*comparison.wrong_answers, *comparison.contradictions, *comparison.failures)
    unused = [unused_names(about) for about in comparison.config["known_values"] if about["unused"]]
    results = comparison.results
    told = results[(results["status"] == Status.INFEASIBLE) & (results["message"] != "")]
    conflicts = [f"{name}: {text}" for name, text in zip(told["snapshot"], told["message"])]
    for text in (*errors, *comparison.refusals, *unsolved(comparison.results), *unused, *conflicts):
        say(f"optsched: {text}")
    if comparison.missing:
        say(f"optsched: interrupted; not compared: {in_short(comparison.missing)}")
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


def _print(table: pd.DataFrame) -> None:
    """Print the table of a comparison, without models if there is one, and without zero errors."""
    columns = dict(COLUMNS)
    if table["kind"].nunique() == 1:
        del columns["kind"]
    if not table["errors"].any():
        del columns["errors"]
    labels = [label for label, _ in columns.values()]
    rows = [
        [show(record[name]) for name, (_, show) in columns.items()]
        for record in table.to_dict(orient="records")
    ]
    print_table(labels, rows, SPARE)
