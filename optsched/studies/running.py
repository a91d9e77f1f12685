"""Run a study, evaluate its results, and check its page.

Folder format: ``docs/formats/study-folder.md``.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any, NamedTuple

from optsched.binary_files import sha256_of
from optsched.errors import InputError, optional_module
from optsched.files import (
    FolderKind,
    check_replaceable,
    make_folder,
    remove_leftovers,
    unwritable,
    write_json,
    write_text,
    written_folder,
)
from optsched.numbers import counted
from optsched.report import style
from optsched.report.folder_files import Expected, read_object
from optsched.simulator.provenance import versions as installed
from optsched.studies import cases, page
from optsched.studies.cases import Cases
from optsched.studies.claims import DIGITS, frame_of
from optsched.studies.figures import claims_panel, save
from optsched.studies.folder import (
    PAGE,
    PLAN,
    RESULTS,
    Evaluated,
    StudyFolder,
    find_study,
)
from optsched.studies.plan import INPUTS, labelled, looked_at, study_runs
from optsched.sweeps.engines import check_engine, start_engine
from optsched.sweeps.merging import versions_used
from optsched.sweeps.sweep_file import SweepPlan, read_sweep
from optsched.sweeps.sweeping import Sweep
from optsched.traces.catalogue import folders
from optsched.traces.reading import write_trace

if TYPE_CHECKING:
    import pandas as pd

    from optsched.traces.trace import Trace

FRAME, ABOUT, TIMING, DATA = "results.parquet", "about.json", "timing.json", "data.md"
"""Files of results: a row per run, what they rest on, seconds of cases, and all tables."""

SWEEP, MARKER = "sweep", "study.json"
FOLDER = FolderKind(
    "a study", MARKER, (PAGE, cases.PLANNED), (SWEEP, cases.FOLDER, INPUTS, RESULTS)
)
KEPT = FolderKind("results of a study", ABOUT, (FRAME, TIMING, DATA, "*.csv", "*.svg"))

PLANNED: Expected = {"plan": str, "versions": dict}
"""What results rest on: the SHA-256 of the plan, and packages."""

MOST_ROWS = 60
"""Rows of a table from which on `DATA` names its CSV file alone."""


class Evaluation(NamedTuple):
    """The outcome of a study: its folder, its page, and the tables that are kept as CSV, by name.

    `claims` has a row for each claim and reading; it has none after a quick look.
    """

    folder: Path
    page: Path
    tables: Mapping[str, pd.DataFrame]
    claims: pd.DataFrame


class Running:
    """A study with a folder for its runs, or its cases. Finished ones in it are not repeated.

    Options are those of the command. `work` is what is to be done, None if all runs are taken from
    ``results/`` of the study; `total` counts runs or cases.

    Raises
    ------
    InputError
        If the study has mistakes, a log is missing, SciPy is not installed, or the folder holds
        something else.
    """

    def __init__(
        self,
        study: StudyFolder,
        folder: Path,
        *,
        traces: Path | None = None,
        trace: str | None = None,
        quick: bool = False,
        new_only: bool = False,
    ) -> None:
        check_replaceable(folder, FOLDER)
        optional_module("scipy", "a study", "studies")  # for intervals, when all runs are done
        if trace is not None and not study.takes("trace"):
            reason = f"study {study.name!r} has traces of its own; expected no other"
            raise InputError(reason, field="trace")
        self._study, self._folder, self._quick, self._trace = study, folder, quick, trace
        logs: Sequence[Path] = folders() if traces is None else [traces]
        plan = looked_at(study.plan, quick=quick)
        options: dict[str, Any] = {} if trace is None else {"trace": trace}
        self._kept: pd.DataFrame | None = None
        self.work: Sweep | Cases | None
        if study.has("cases"):
            stated = study.call("cases", plan, logs)
            files = study.call_with("files", (), plan, logs)
            shas = {file.name: sha256_of(file) for file in files}
            used = installed() | {name: version(name) for name in plan.get("packages", ())}
            self._begin(trace)
            origin = {"plan": study.plan_sha256, "files": shas}
            self.work = Cases(stated, origin, used, folder)
            self.total = len(self.work.all)
            return
        inputs = study.call_with("inputs", {}, plan, logs, **options)
        if study.has("runs"):
            plan["runs"] = study.call_with("runs", [], plan, logs, **options)
        try:
            table, self._labels = study_runs(plan, logs, study.path, folder / INPUTS)
            self._begin(trace)
            write_inputs(inputs, folder)
            self._plan = read_sweep(table, base=study.path)
        except InputError as error:
            raise error if error.file else error.within(study.path / PLAN) from None
        self.total = len(self._plan.runs)
        pending = self._without_kept() if new_only else self._plan
        self.work = Sweep(pending, folder / SWEEP) if pending.runs else None

    def _begin(self, trace: str | None) -> None:
        """Mark the folder, and remove what was made from earlier results."""
        about = {"study": str(self._study.path.resolve()), "quick": self._quick}
        about |= {} if trace is None else {"trace": PurePath(trace).name}
        folder = self._folder
        there = read_object(folder / MARKER, {}) if (folder / MARKER).is_file() else about
        if there != about:
            raise InputError("holds another study; expected a folder of its own", file=folder)
        try:
            make_folder(folder)
            remove_leftovers(folder)
            shutil.rmtree(folder / RESULTS, ignore_errors=True)
            (folder / PAGE).unlink(missing_ok=True)
        except OSError as error:
            raise unwritable(folder, error) from None
        write_json(folder / MARKER, about)

    def _without_kept(self) -> SweepPlan:
        """Take the rows of the study's results, and return the plan of all other runs."""
        frame = read_results(self._study.path / RESULTS)
        names = {run.former_name: run.name for run in self._plan.runs}
        frame["run"] = frame["run"].replace(names)
        wanted = {run.name for run in self._plan.runs}
        axes = {axis for labels in self._labels for axis in labels}
        kept = frame[frame["run"].isin(wanted)].drop_duplicates("run")
        self._kept = kept.drop(columns=[axis for axis in axes if axis in kept])
        others = wanted - set(kept["run"])
        return replace(self._plan, runs=tuple(r for r in self._plan.runs if r.name in others))

    def conclude(self, *, write: bool = False) -> Evaluation:
        """Evaluate the study when all of `work` is done.

        Parameters
        ----------
        write : bool
            Whether the results go into the folder of the study, and its tables into its page.

        Raises
        ------
        InputError
            If a run has failed, or a function of the study fails.
        """
        import pandas as pd

        timing = None
        if isinstance(self.work, Cases):
            rows, used = cases.answers(self._folder)
            frame = pd.DataFrame(rows)
            timing = {"wall_seconds": frame.pop("wall_seconds").tolist()}
        else:
            frame, used = self._of_sweep()
        about = {"study": self._study.name, "plan": self._study.plan_sha256}
        results, study = self._folder / RESULTS, self._study
        with written_folder(results, KEPT) as folder:
            frame.to_parquet(folder / FRAME, index=False, compression="zstd")
            write_json(folder / ABOUT, about | {"quick": self._quick, "versions": used})
            if timing is not None:
                write_json(folder / TIMING, timing)
            found = None if self._quick else _write_evaluation(study, frame, folder)
        if found is None:
            return Evaluation(self._folder, results / FRAME, {}, pd.DataFrame())
        if write:
            with written_folder(study.path / RESULTS, KEPT) as folder:
                for file in results.iterdir():
                    shutil.copyfile(file, folder / file.name)
            _write_page(study, found, study.path)
        own = self._trace is None
        self.mistakes = list(_mistakes(study, found)) if own else []
        return _written(study, found, self._folder, own=own)

    def _of_sweep(self) -> tuple[pd.DataFrame, dict[str, str]]:
        """Return a row for each run and its labels, in the order of the plan, and the versions."""
        import pandas as pd

        frames, used = [], dict[str, set[str]]()
        if self._kept is not None and len(self._kept):
            frames.append(labelled(self._kept, self._plan.blocks, self._labels))
            known = read_object(self._study.path / RESULTS / ABOUT, PLANNED)["versions"]
            used = {name: set(text.split(" and ")) for name, text in known.items()}
        if self.work is not None:
            runs, file = self._folder / SWEEP / "runs", self._folder / SWEEP / FRAME
            found = pd.read_parquet(file)
            if len(failed := found["error"].dropna()):
                first = f"{counted(len(failed), 'run')} of the study failed; the first: "
                raise InputError(f"{first}{failed.iloc[0]}", file=file)
            found = with_parts(found, self._study.plan.get("parts", ()), runs)
            found = found.assign(folder=[str(runs / run) for run in found["run"]])
            found = labelled(found, self._plan.blocks, self._labels)
            found = self._study.call_with("prepare", found, found, self._folder / INPUTS)
            found = found.drop(columns="folder", errors="ignore")
            found["trace"] = [PurePath(trace).name for trace in found["trace"]]  # on any machine
            frames.append(found)
            for name, several in versions_used(found["run"].unique().tolist(), runs).items():
                used.setdefault(name, set()).update(several)
        order = {run.name: place for place, run in enumerate(self._plan.runs)}
        frame = pd.concat(frames, ignore_index=True) if len(frames) > 1 else frames[0]
        frame = frame.sort_values("run", key=lambda names: names.map(order), kind="stable")
        joined = {name: " and ".join(sorted(several)) for name, several in used.items()}
        return frame.reset_index(drop=True), joined


def study(
    name: str | Path,
    output: str | Path,
    *,
    traces: str | Path | None = None,
    trace: str | Path | None = None,
    quick: bool = False,
    workers: int | None = None,
) -> Evaluation:
    """Run a study, and judge its claims.

    Parameters
    ----------
    name : path or str
        The folder of the study, or its name, as ``optsched list studies`` shows it.
    output : path
        The folder of the runs. Finished runs and cases in it are not repeated.
    traces : path, optional
        Folder of the public logs; those of ``OPTSCHED_TRACES`` by default.
    trace : path or str, optional
        A trace file, or a name from the catalogue, in the place of the logs; only ``systems`` takes
        one.
    quick : bool
        Whether to run a small part, within a minute. It judges no claims.
    workers : int, optional
        Number of processes; by default, as many as there are cores for.

    Raises
    ------
    InputError
        If the study is not known or has mistakes, a log is missing, a run fails, or the folder
        cannot be used.
    """
    check_engine("local", workers, None)
    found = find_study(str(name))
    logs = None if traces is None else Path(traces)
    other = None if trace is None else str(trace)
    running = Running(found, Path(output), traces=logs, trace=other, quick=quick)
    if isinstance(running.work, Cases):
        for _ in running.work.work():
            pass
    elif running.work is not None:
        if running.work.pending:
            for _ in running.work.work(start_engine(running.work.pending, workers)):
                pass
        running.work.finish()
    return running.conclude()


def report(folder: Path) -> Path:
    """Evaluate the results in the folder of a study's runs again, and return its page.

    Raises
    ------
    InputError
        If a file is missing or damaged, or a function of the study fails.
    """
    about = read_object(folder / MARKER, {"study": str})
    study = StudyFolder(Path(about["study"]))
    return _again(study, folder, own="trace" not in about).page


def rewrite(study: StudyFolder) -> Evaluation:
    """Evaluate the stored results of a study again, and put its tables into its page.

    Raises
    ------
    InputError
        If there are no results, or a function of the study fails.
    """
    return _again(study, study.path)


def check(study: StudyFolder) -> tuple[list[str], int]:
    """Compare the page of a study with its stored results.

    Returns
    -------
    mistakes : list of str
        A line for each, which begins with file and line.
    names : int
        How many names the page has.

    Raises
    ------
    InputError
        If there is no page or there are no results, or a function of the study fails.
    """
    file, results = study.path / PAGE, study.path / RESULTS
    if not file.is_file():
        raise InputError(f"no {PAGE}; expected a page whose numbers have names", file=study.path)
    mistakes = list(_mistakes(study, study.evaluated(read_results(results))))
    text = file.read_text(encoding="utf-8")
    mistakes += [
        f"{file}: no {shown}; optsched study {study.path} --write draws it"
        for shown in page.pictures(text)
        if not (study.path / shown).is_file()
    ]
    if read_object(results / ABOUT, PLANNED)["plan"] != study.plan_sha256:
        mistakes.append(f"{results / ABOUT}: {PLAN} has changed since these results")
    return mistakes, len(page.names(text))


def read_results(folder: Path) -> pd.DataFrame:
    """Return the stored results of a study.

    Raises
    ------
    InputError
        If they are missing or damaged.
    """
    import pandas as pd

    file = folder / FRAME
    if not file.is_file():
        raise InputError("missing; expected the results of the study's runs", file=file)
    try:
        return pd.read_parquet(file)
    except (OSError, ValueError):
        raise InputError("damaged; expected results in a Parquet file", file=file) from None


def _mistakes(study: StudyFolder, found: Evaluated) -> Iterator[str]:
    """Yield where the page differs from what is computed."""
    file = study.path / PAGE
    if file.is_file():
        text = file.read_text(encoding="utf-8")
        for one in page.mistakes(text, found.values, found.blocks()):
            yield f"{file}:{one}"


def _again(study: StudyFolder, place: Path, *, own: bool = True) -> Evaluation:
    """Evaluate the results in a folder again, and write its page."""
    results = place / RESULTS
    frame = read_results(results)
    with written_folder(results, KEPT) as folder:
        for name in (FRAME, ABOUT, TIMING):
            if (results / name).is_file():
                shutil.copyfile(results / name, folder / name)
        found = _write_evaluation(study, frame, folder)
    return _written(study, found, place, own=own)


def _write_evaluation(study: StudyFolder, frame: pd.DataFrame, folder: Path) -> Evaluated:
    """Write tables and figures, and the page of all tables, into a folder."""
    found = study.evaluated(frame)
    for narrow in (False, True):
        with style.applied():
            figures = dict(found.figures(narrow=narrow))
            if any(one.found and one.panel for one in found.claims.values()):
                figures.setdefault("claims", claims_panel(found.claims, narrow=narrow))
        save(figures, folder, "-narrow" if narrow else "")
    data = [f"# Data of {study.name}", "The tables of [the study](../page.md), all computed."]
    shown = found.blocks()
    for name, table in found.frames().items():
        index = table.index.names != [None]
        text = table.to_csv(index=index, lineterminator="\n", float_format=DIGITS)
        write_text(folder / f"{name}.csv", text)
        rows = f"{len(table):,} rows in [{name}.csv]({name}.csv)."
        data += [f"## {name}", rows, *([shown[name]] if len(table) <= MOST_ROWS else [])]
    write_text(folder / DATA, "\n\n".join(data) + "\n")
    return found


def _written(study: StudyFolder, found: Evaluated, folder: Path, *, own: bool) -> Evaluation:
    """Write the page, unless the trace is not the study's own: its words are about that."""
    shown = _write_page(study, found, folder) if own else folder / RESULTS / DATA
    claims = frame_of(found.claims, study.stated.readings)
    return Evaluation(folder, shown, found.frames(), claims)


def _write_page(study: StudyFolder, found: Evaluated, folder: Path) -> Path:
    """Write the page with its computed tables into a folder; return that of data without one."""
    if not (study.path / PAGE).is_file():
        return folder / RESULTS / DATA
    old = (study.path / PAGE).read_text(encoding="utf-8")
    new = page.with_tables(old, found.blocks())
    if folder != study.path or new != old:
        write_text(folder / PAGE, new)
    return folder / PAGE


def with_parts(results: pd.DataFrame, metrics: Sequence[str], runs: Path) -> pd.DataFrame:
    """Return the results with a column for each number of metrics that are tables of their own.

    A column is named ``recorded_node_time.running``, for instance. `runs` holds the folders of the
    runs; one that has failed has none.
    """
    import pandas as pd

    if not metrics:
        return results
    rows = []
    for run in results["run"]:
        file = runs / run / "summary.json"
        summary = read_object(file, {}) if file.is_file() else {}
        tables = ((name, summary.get(name) or {}) for name in metrics)
        rows.append({f"{name}.{part}": v for name, table in tables for part, v in table.items()})
    return pd.concat([results, pd.DataFrame(rows, index=results.index, dtype=float)], axis=1)


def write_inputs(traces: Mapping[str, Trace], folder: Path) -> None:
    """Write the traces that a study makes for itself, and remove all others."""
    inputs = folder / INPUTS
    try:
        if traces:
            make_folder(inputs)
        made = {f for name, trace in traces.items() for f in write_trace(trace, inputs / name)}
        for stale in set(inputs.glob("*")) - made:
            stale.unlink()
    except OSError as error:
        raise unwritable(inputs, error) from None
