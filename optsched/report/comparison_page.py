"""Page of a comparison: best solutions, proofs, and times of the solvers."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any

import numpy as np

from optsched.folders import read_frame, read_pictures, read_record
from optsched.models.snapshot_file import source_file
from optsched.numbers import counted, short
from optsched.report.page import (
    Cell,
    Figure,
    Page,
    Part,
    Row,
    Section,
    Table,
    Value,
    duration,
    figures,
    share,
)
from optsched.report.run_page import limits_in_words
from optsched.solvers.comparison.tables import (
    AT_ONCE,
    LATER,
    RESULT_COLUMNS,
    primal_gap,
    summarize,
    trivial,
)
from optsched.solvers.finding import load_profile, profile_names
from optsched.solvers.result import Status

if TYPE_CHECKING:
    import pandas as pd

PICTURES = ("quality", "profile")
NAMED = 3  # largest number of names in a sentence

SIGNS = {"max": 1, "min": -1}
"""Sign of a better objective less a worse one; older folders do not state the sense."""

MOST_PATHS = 20
"""Largest number of snapshots of a folder that the command names; else it names the folder."""


def page(folder: Path) -> Page:
    """Return the page of a comparison folder, from its files alone."""
    config = read_record(folder)
    results = read_frame(folder / "results.parquet", RESULT_COLUMNS, LATER)
    table = summarize(results)
    pictures = read_pictures(folder, PICTURES)
    sections = [
        _claims(
            "Wrong answers",
            config.get("wrong_answers", ()),
            "Results that verification refuses. They count as errors, and are not used.",
            "snapshot, solver and violation",
        ),
        _claims(
            "Contradictions",
            config["contradictions"],
            "Claims that exclude each other. A claim that a verified solution refutes counts as"
            " an error, and its bound is not used.",
            "snapshot, solvers and their claims",
        ),
        Section("Failures", _failures(results)),
        Section("The solvers", _all_and_hard(results, table)),
        Section("Pictures", _figures(pictures, results, table)),
        Section("The comparison", _compared(config, results)),
    ]
    snapshots = [_snapshots(own) for own in _by_kind(results)]
    counts = [counted(len(config[f"{noun}s"]), noun) for noun in ("solver", "snapshot")]
    return Page(
        title=f"Comparison of {' on '.join(counts)}",
        lead=_lead(config, results, table),
        sections=[section for section in sections if section.parts],
        repeat=_repeat(config),
        versions=config["versions"],
        summary=_budget_in_words(config, results),
        appendix=[Section("The snapshots", snapshots)] if snapshots else [],
    )


def finding(config: Mapping[str, Any], results: pd.DataFrame) -> tuple[str, list[Table]]:
    """Return the finding of a comparison in words, and a table of its solvers for each kind.

    `config` is the content of ``comparison.json``.
    """
    table = summarize(results)
    tables = [part for part in _all_and_hard(results, table) if isinstance(part, Table)]
    return _lead(config, results, table), tables


def _by_kind(frame: pd.DataFrame) -> list[pd.DataFrame]:
    return [own for _, own in frame.groupby("kind", sort=False)] if len(frame) else []


def _lead(config: Mapping[str, Any], results: pd.DataFrame, table: pd.DataFrame) -> str:
    words = []
    for own in _by_kind(table):
        kind, number = own["kind"].iloc[0], int(own["snapshots"].max())
        answers = results[results["kind"] == kind]
        if len(own) == 1:
            words.append(_alone(config, answers, own))
        else:
            best = own[own["best"] == own["best"].max()]
            words.append(
                f"{kind}: {_listed(best['solver'])} reached the best known objective"
                f" on {_of(best['best'].iloc[0] * number, number)}."
            )
        proven = (own["proven"] * own["snapshots"]).round().astype(int)
        groups = [
            f"{_listed(own['solver'][proven == count])} on {_of(count, number)}"
            for count in sorted(set(proven), reverse=True)
        ]
        words.append(f"Proofs: {'; '.join(groups)}.")
        with_proof = answers["status"].isin([Status.OPTIMAL, Status.INFEASIBLE])
        unproven = number - answers.loc[with_proof, "snapshot"].nunique()
        if unproven:
            words.append(f"{counted(unproven, 'snapshot')} without a proof.")
    improved = _improved(config, results)
    if improved:
        words.append(f"{counted(len(improved), 'snapshot')} with a better objective than known.")
    if missing := config.get("missing", ()):
        words.insert(0, f"The comparison was interrupted; not compared: {in_short(missing)}.")
    failures = config.get("failures", ())
    if failures:
        words.insert(0, f"{counted(len(failures), 'failure')} of solvers: see below.")
    return " ".join(_alarm(config) + words)


def _alone(config: Mapping[str, Any], answers: pd.DataFrame, own: pd.DataFrame) -> str:
    """Return the finding about a solver that is compared with no other."""
    known = {
        snapshot["name"]
        for snapshot in config["snapshots"]
        if snapshot.get("known", {}).get("objective") is not None
    }
    kind, solver, gap = own["kind"].iloc[0], own["solver"].iloc[0], float(own["mean_gap"].iloc[0])
    with_value = answers[answers["snapshot"].isin(known)]
    others = "bounds and known values" if len(with_value) else "bounds"
    found = [f"{kind}: {solver} is the only solver, compared with {others} alone."]
    if not np.isnan(gap):
        found.append(f"Mean gap to the best bound: {share(gap).text}.")
    if len(with_value):
        reached = with_value["verified"] & (
            with_value["objective"] == with_value["best_objective"]
        ).fillna(value=False)
        of_known = f"{int(reached.sum()):,} of {counted(len(with_value), 'snapshot')}"
        found.append(f"It reached the known objective on {of_known} with one.")
    return " ".join(found)


def _alarm(config: Mapping[str, Any]) -> list[str]:
    """Return a sentence that names the wrong answers and contradictions, if there are any."""
    wrong, contradictions = config.get("wrong_answers", []), config["contradictions"]
    counts = [
        counted(len(found), noun)
        for found, noun in ((wrong, "wrong answer"), (contradictions, "contradiction"))
        if found
    ]
    if not counts:
        return []
    named = [str(text).rstrip(".") for text in [*wrong, *contradictions]]
    more = len(named) - NAMED
    rest = f"; and {more:,} more, see below" if more > 0 else ""
    return [f"{' and '.join(counts)}: {'; '.join(named[:NAMED])}{rest}."]


def _claims(title: str, found: Sequence[Any], explained: str, column: str) -> Section:
    """Return the section of wrong answers or contradictions; it is empty without any."""
    rows = [[str(text)] for text in found]
    return Section(title, [explained, Table(title, [column], rows)] if found else [])


def _of(count: float, number: int) -> str:
    """Return a number of the snapshots in words."""
    if round(count) == 0:
        return "no snapshot"
    if number == 1:
        return "the only snapshot"
    return f"{'all' if round(count) == number else f'{round(count):,} of'} {number:,} snapshots"


def _listed(names: Sequence[str] | pd.Series[str]) -> str:
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else str(last)


def _budget_in_words(config: Mapping[str, Any], results: pd.DataFrame) -> list[str]:
    """Return a sentence on the budgets, and on how many results used them up."""
    if results.empty:
        return []
    stopped = int((results["limit"].fillna("") != "").sum())
    used = f"{stopped:,} of {counted(len(results), 'result')}" if stopped else "no result"
    budgets = {limits_in_words(solver["budget"]) for solver in config["solvers"]}
    limits = f"is {budgets.pop()}" if len(budgets) == 1 else "differs between the solvers"
    return [f"The budget for one snapshot {limits}; {used} ended at a limit."]


def _all_and_hard(results: pd.DataFrame, table: pd.DataFrame) -> list[Part]:
    """Return the table of each kind of problem, and that without the trivial snapshots."""
    parts: list[Part] = []
    easy = trivial(results)
    for own in _by_kind(table):
        kind, number = own["kind"].iloc[0], int(own["snapshots"].max())
        hard = results[~easy & (results["kind"] == kind)]
        left = hard["snapshot"].nunique()
        parts.append(_solvers(own, counted(number, "snapshot")))
        if left < number:
            parts.append(
                f"Trivial snapshots of {kind}: {number - left:,} of {number:,}. All solvers answer"
                f" them optimally, each in at most {short(AT_ONCE)}, and at least one with a proof."
            )
        if 0 < left < number:
            parts.append(_solvers(summarize(hard), f"{counted(left, 'snapshot')} not trivial"))
    return parts


def _solvers(own: pd.DataFrame, which: str) -> Table:
    rows: list[Row] = [
        {
            "solver": row["solver"],
            "solved": row["solved"],
            "best": share(row["best"]),
            "proven": share(row["proven"]),
            ("gap to the best bound", "mean"): share(row["mean_gap"]),
            ("gap to the best bound", "median"): share(row["median_gap"]),
            ("gap to the best bound", "highest"): share(row["max_gap"]),
            "primal integral": duration(row["primal_integral"]),
            ("time", "mean"): duration(row["mean_seconds"]),
            ("time", "median"): duration(row["median_seconds"]),
            ("time", "95th percentile"): duration(row["p95_seconds"]),
            ("time", "total"): duration(row["total_seconds"]),
            "errors": row["errors"],
        }
        for row in own.to_dict("records")
    ]
    caption = (
        f"{own['kind'].iloc[0]}, {which}. Best: the best known objective was reached."
        " Gaps are over the snapshots that were solved. Primal integral: mean of the gap to"
        " the best known objective, integrated over the time of the slowest solver. Times are"
        " wall-clock times; their mean is geometric, shifted by 1 s."
    )
    return Table.of(caption, rows)


def _figures(
    pictures: Mapping[str, str], results: pd.DataFrame, table: pd.DataFrame
) -> list[Figure]:
    """Return the pictures; their words have the values at the ends of the curves."""
    gaps = []
    for own in _by_kind(results[results["best_objective"].notna()]):
        ours = own["objective"].astype("float64").to_numpy()
        gap = primal_gap(ours, own["best_objective"].astype("float64"))
        final = own.assign(gap=np.where(np.isnan(ours), 1.0, gap))
        ends = final.groupby("solver", sort=False)["gap"].mean()
        shown = ", ".join(f"{solver} {100 * end:.3g}%" for solver, end in ends.items())
        slowest = short(float(own["seconds"].max()))
        gaps.append(f"{own['kind'].iloc[0]}, at the end, after at most {slowest}: {shown}.")
    shares = []
    for row in table.to_dict("records"):
        text = f"{row['kind']}, {row['solver']}: {row['proven']:.0%} proven"
        alone = np.isnan(row["best"])
        shares.append(text if alone else f"{text}, {row['best']:.0%} best objective")
    about = {
        "quality": (
            "Mean gap to the best known objective over the snapshots, against time.",
            f"Mean gap to the best known objective over time. {' '.join(gaps)}".strip(),
        ),
        "profile": (
            "Share of the snapshots solved within a factor of the time of the fastest solver.",
            f"Performance profiles. Shares of the snapshots at the end: {'; '.join(shares)}.",
        ),
    }
    return figures(pictures, about, "comparison")


def _snapshots(own: pd.DataFrame) -> Table:
    """Return the best known objective and bound of each snapshot, and the first proof."""
    rows: list[Row] = []
    for snapshot, answers in own.groupby("snapshot", sort=False):
        known = answers.iloc[0]
        proofs = answers[answers["status"].isin([Status.OPTIMAL, Status.INFEASIBLE])]
        reached = answers["verified"] & (answers["objective"] == answers["best_objective"])
        objective: Value = None
        if answers["best_objective"].notna().any():
            objective = int(known["best_objective"])
        elif (answers["status"] == Status.INFEASIBLE).any():
            why = answers["message"][answers["status"] == Status.INFEASIBLE]
            objective = Cell("infeasible", note=" ".join(filter(None, why)))
        by: Value = None
        after: Value = None
        if len(proofs):
            fastest = proofs.iloc[int(proofs["seconds"].to_numpy().argmin())]
            by, after = str(fastest["solver"]), duration(float(fastest["seconds"]))
        row: Row = {
            "snapshot": str(snapshot),
            "size": str(known["size"]),
            ("best known", "objective"): objective,
            ("best known", "bound"): float(known["best_bound"]),
            ("solvers that", "reached it"): int(reached.fillna(value=False).sum()),
            ("solvers that", "proved"): len(proofs),
            ("first proof", "by"): by,
            ("first proof", "after"): after,
        }
        rows.append(row)
    kind = own["kind"].iloc[0]
    return Table.of(f"{kind}: best known results of each snapshot, and their proofs.", rows)


def _failures(results: pd.DataFrame) -> list[Part]:
    failed = results[results["status"] == Status.ERROR]
    if failed.empty:
        return []
    rows = failed[["snapshot", "solver", "message"]].fillna("").to_numpy(object).tolist()
    return [Table("Results that do not count", ["snapshot", "solver", "error"], rows)]


def _compared(config: Mapping[str, Any], results: pd.DataFrame) -> list[Part]:
    rows: list[list[Value]] = [
        [
            solver["name"],
            Cell(solver["solver"], solver["solver"], note=solver["version"] or ""),
            ", ".join(f"{name} = {value}" for name, value in solver["options"].items()) or None,
            duration(solver["budget"]["seconds"]),
            solver["budget"]["work"],
            solver["seed"],
        ]
        for solver in config["solvers"]
    ]
    columns = ["name", "solver", "options", "time limit", "work limit", "seed"]
    table = Table("The solvers, and the budget of each for one snapshot.", columns, rows)
    improved = _improved(config, results)
    better = [f"Better than known: {in_short(improved)}."] if improved else []
    known = []
    for about in config.get("known_values", ()):
        number = counted(about["snapshots"], "snapshot")
        known.append(f"Known values of {number} are those of {about['path']}.")
        known += [f"{unused_names(about)}."] if about["unused"] else []
    return [table, *known, *better, *map(str, config["skipped"])]


def _improved(config: Mapping[str, Any], results: pd.DataFrame) -> list[str]:
    """Return the snapshots with a better objective than the known one, both in words."""
    best = results.groupby("snapshot")["best_objective"].first().dropna().astype(int).to_dict()
    found = []
    for snapshot in config["snapshots"]:
        name, known = snapshot["name"], snapshot.get("known", {}).get("objective")
        sign = SIGNS.get(snapshot.get("sense"), 0)
        if known is not None and name in best and sign * (best[name] - known) > 0:
            found.append(f"{name} ({best[name]:,}, known was {known:,})")
    return found


def in_short(names: Sequence[str]) -> str:
    """Return the first of some names, and how many more there are."""
    more = f" and {len(names) - NAMED:,} more" if len(names) > NAMED else ""
    return f"{', '.join(names[:NAMED])}{more}"


def unsolved(results: pd.DataFrame) -> list[str]:
    """Return the snapshots of which a solver found no solution and said no reason, by solver."""
    lacking = results[(results["status"] == Status.NO_SOLUTION) & (results["message"] == "")]
    return [
        f"{solver}: no solution of {in_short([*own])}"
        for solver, own in lacking.groupby("solver", sort=False)["snapshot"]
    ]


def unused_names(about: Mapping[str, Any]) -> str:
    """Return the names in a table of known values that are of no file beside it, in words."""
    names = [*map(str, about["unused"])]
    of_none = f"{counted(len(names), 'name')} of no instance beside it"
    return f"{about['path']}: {of_none}: {in_short(names)}"


def _repeat(config: Mapping[str, Any]) -> str | None:
    """Return the command that repeats a comparison; None if no command can."""
    solvers, paths = config["solvers"], [s["path"] for s in config["snapshots"]]
    budgets = {(s["budget"]["seconds"], s["budget"]["work"]) for s in solvers}
    alike = len(budgets) == 1 and len({s["seed"] for s in solvers}) == 1
    if not alike or None in paths or not all(map(_is_named, solvers)):
        return None
    [(seconds, work)] = budgets
    if seconds is None and work is None:
        return None
    # a folder or file of many snapshots stands for all of them
    crowded = Counter(map(_home, paths))
    homes = (_home(path) if crowded[_home(path)] > MOST_PATHS else path for path in paths)
    words = ["optsched", "compare", *dict.fromkeys(homes)]
    words += ["--solvers", ",".join(solver["name"] for solver in solvers)]
    words += [] if seconds is None else ["--time-limit", str(seconds)]
    words += [] if work is None else ["--work-limit", str(work)]
    return shlex.join([*words, "--seed", str(solvers[0]["seed"]), "-o", "DIR"])


def _is_named(solver: Mapping[str, Any]) -> bool:
    """Return whether a command can name a solver: not one with options, nor one of a file."""
    name = solver["name"]
    if name == solver["solver"]:
        return not solver["options"]
    return name in profile_names() and dict(load_profile(name).options) == solver["options"]


def _home(path: str) -> str:
    """Return the folder of a snapshot, or the file of one of several instances."""
    file = source_file(Path(path))
    return str(PurePath(path).parent if str(file) == path else file)
