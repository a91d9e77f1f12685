"""Run a study, with the runs of a sweep or cases, and evaluate its results.

Cases are work that simulates nothing, each with a file of its answers, so that it can be resumed.

Folder format: ``docs/formats/study-folder.md``.
"""

from __future__ import annotations

import logging
import pickle
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from importlib.metadata import version
from itertools import product
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any

from optsched.compilation import cores
from optsched.errors import InputError, UnknownNameError, optional_module, path_of
from optsched.files import (
    FolderKind,
    begin_folder,
    check_replaceable,
    remove,
    sha256_of,
    write_json,
)
from optsched.folders import Expected, read_object
from optsched.numbers import counted
from optsched.simulator.scenario import versions as installed
from optsched.studies.folder import (
    FRAME,
    PAGE,
    PLAN,
    RESULTS,
    Evaluation,
    StudyFolder,
    evaluate,
    find_study,
    read_about,
    read_results,
    write_results,
)
from optsched.sweeps.engines import LocalProcesses, check_engine, start_engine
from optsched.sweeps.sweep_file import KEYS, read_sweep
from optsched.sweeps.sweeping import Sweep, versions_used, with_parts
from optsched.text_files import merged
from optsched.traces.catalogue import find_log, folders
from optsched.traces.reading import write_trace

if TYPE_CHECKING:
    import pandas as pd

SOLVED: Expected = {"origin": dict, "rows": list}
Case = Callable[[], Iterable[Mapping[str, Any]]]  # solves problems; a row for each answer

log = logging.getLogger("optsched")


@dataclass(frozen=True)
class _Case:
    """A case to solve in a process of its own, and the file for its answers."""

    name: str
    load: Callable[[], Mapping[str, Case]]
    file: Path
    origin: Mapping[str, Any]

    def write(self) -> None:
        """Solve the case, and write its answers."""
        rows = [dict(row) for row in self.load()[self.name]()]
        write_json(self.file, {"origin": self.origin, "rows": rows})


class Cases:
    """Cases by name, with a file in `folder` for each that is solved.

    A case is solved again if `origin`, on which its answers rest, has changed. Each process calls
    `load`, which has to be picklable, for the cases.
    """

    def __init__(
        self, load: Callable[[], Mapping[str, Case]], origin: Mapping[str, Any], folder: Path
    ) -> None:
        self._load, self.origin, self._folder = load, origin, folder.absolute()
        self.all: list[str] = [*load()]
        self.pending = [name for name in self.all if not self._is_solved(name)]

    def work(self, workers: int | None = None) -> Iterator[str]:
        """Solve the pending cases, and yield the name of each when its answers are on the disk."""
        tasks = [_Case(name, self._load, self._file(name), self.origin) for name in self.pending]
        if not tasks:
            return
        engine = LocalProcesses(min(workers or cores(), len(tasks)))
        with closing(engine.execute_all(tasks)) as outcomes:
            for outcome in outcomes:
                if outcome.error is not None:
                    raise InputError(f"case {outcome.name}: {outcome.error}")
                yield outcome.name

    def answers(self) -> list[dict[str, Any]]:
        """Return the rows of all cases, in order."""
        return [row for name in self.all for row in read_object(self._file(name), SOLVED)["rows"]]

    def _file(self, name: str) -> Path:
        return self._folder / f"{name}.json"

    def _is_solved(self, name: str) -> bool:
        try:
            return bool(read_object(self._file(name), SOLVED)["origin"] == self.origin)
        except InputError:
            if self._file(name).is_file():
                log.warning("%s is damaged; the case is solved again", self._file(name))
            return False


INPUTS = "inputs"  # the folder of the traces that a study makes for itself, in its output
ABOUT = ("title", "paper", "packages", "parts", "axes", "lists", "own", "quick", "runs")
"""Keys of ``plan.toml`` that are not those of a sweep."""

Labels = Mapping[str, str]  # a label of each axis that a block of runs names


def looked_at(table: Mapping[str, Any], *, quick: bool) -> dict[str, Any]:
    """Return the content of ``plan.toml``, in a quick look with the changes of its ``quick``."""
    changes = _table(table, "quick")
    whole = {key: value for key, value in table.items() if key != "quick"}
    return merged(whole, changes) if quick else whole


def _table(table: Mapping[str, Any], key: str, at: str = "") -> dict[str, Any]:
    """Return a table in a table, an empty one if it is not there."""
    if not isinstance(found := table.get(key, {}), dict):
        raise InputError(f"{found!r}; expected a table", field=f"{at}{key}")
    return found


def study_runs(
    table: Mapping[str, Any], folders: Sequence[Path], study: Path, inputs: Path
) -> tuple[dict[str, Any], list[Labels]]:
    """Expand the blocks of a plan by the labels of axes and by lists, and find their traces.

    These are in the folder of the study, in `inputs`, or in the folders of the public logs. The
    result is what `read_sweep` reads, and the labels of each of its blocks.
    """
    usual = {key: value for key, value in table.items() if key not in ABOUT}
    axes, lists = _table(table, "axes"), _table(table, "lists")
    for axis in axes:
        for name in _table(axes, axis, "axes."):
            _table(_table(axes[axis], name, f"axes.{axis}."), "lists", f"axes.{axis}.{name}.")
        if axis in (*KEYS, "settings", "combine", "keep", "label"):
            wrong = "is the name of a key of a run; expected another"
            raise InputError(wrong, field=f"axes.{axis}")
    runs = table.get("runs", [{}])
    if not (isinstance(runs, list) and all(isinstance(run, dict) for run in runs)):
        raise InputError("expected a list of tables", field="runs")
    every = [*_labelled(runs, axes, lists)]
    blocks = [block for _, block in every]
    for block in (usual, *blocks):
        if "trace" in block:
            traces = block["trace"] if isinstance(block["trace"], list) else [block["trace"]]
            block["trace"] = [_trace(str(file), folders, study, inputs) for file in traces]
    return usual | {"runs": blocks}, [labels for labels, _ in every]


def _labelled(
    runs: Sequence[Mapping[str, Any]], axes: Mapping[str, Any], lists: Mapping[str, Any]
) -> Iterator[tuple[Labels, dict[str, Any]]]:
    """Yield a block for each combination of the labels that a block names, with the labels."""
    for number, run in enumerate(runs, 1):
        own = {key: value for key, value in run.items() if key not in (*axes, "label")}
        at, named = f"runs[{number}]", dict[str, list[Any]]()
        stated = _table(run, "label", f"{at}.")
        for axis in (one for one in axes if one in run):
            asked = [*axes[axis]] if run[axis] == "all" else run[axis]
            named[axis] = asked if isinstance(asked, list) else [asked]
            if unknown := [label for label in named[axis] if label not in axes[axis]]:
                wrong = str(UnknownNameError(axis, unknown[0], axes[axis]))
                raise InputError(wrong, field=f"{at}.{axis}")
        for chosen in product(*named.values()):
            block: dict[str, Any] = {}
            for axis, label in zip(named, chosen):
                block = merged(block, axes[axis][label])
            known = lists | block.pop("lists", {})
            yield dict(zip(named, chosen)) | stated, _listed(merged(block, own), known, at)


def _listed(value: Any, lists: Mapping[str, Any], at: str) -> Any:
    """Return a value with lists in place of the texts that name them, such as ``@seeds``."""
    if isinstance(value, dict):
        return {key: _listed(one, lists, f"{at}.{key}") for key, one in value.items()}
    if not (isinstance(value, str) and value.startswith("@")):
        return value
    if value[1:] not in lists:
        raise InputError(f"{UnknownNameError('list', value[1:], lists)}", field=at)
    return lists[value[1:]]


def _trace(file: str, folders: Sequence[Path], study: Path, inputs: Path) -> str:
    if file.startswith(f"{INPUTS}/"):
        return str((inputs / file.removeprefix(f"{INPUTS}/")).absolute())
    own = study / file
    return str(own.resolve() if own.is_file() else find_log(file, folders))


def labelled(
    results: pd.DataFrame, blocks: Sequence[Sequence[str]], labels: Sequence[Labels]
) -> pd.DataFrame:
    """Return the results with a column for each axis, in the order of the plan.

    A run of several labels has a row for each of them. `blocks` has the names of the runs of each
    block, `labels` the labels of each.
    """
    import pandas as pd

    pairs = zip(blocks, labels, strict=True)
    table = pd.DataFrame([{"run": name, **own} for names, own in pairs for name in names])
    table = table.drop_duplicates()
    if clash := [name for name in table if name in results and name != "run"]:
        raise InputError("is the name of a column of results", field=f"axes.{clash[0]}")
    return table.merge(results, on="run", validate="m:1")


SWEEP, CASES, MARKER = "sweep", "cases", "study.json"
FOLDER = FolderKind("a study", MARKER, (PAGE,), (SWEEP, CASES, INPUTS, RESULTS))


@lru_cache(maxsize=1)
def _cases(study: Path, plan: bytes, logs: tuple[Path, ...]) -> Mapping[str, Case]:
    """Return the cases of a study, which a process reads once; the plan is pickled."""
    found: Mapping[str, Case] = StudyFolder(study).call("cases", pickle.loads(plan), logs)
    return found


class StudyRun:
    """A study with a folder for its runs, or its cases. Finished ones in it are not repeated.

    Options are those of the command. `work` is what is to be done, None if all runs are taken from
    ``results/`` of the study; `total` counts runs or cases.
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
        self._study, self._folder, self._quick, self._trace = study, folder, quick, trace
        self._kept: pd.DataFrame | None = None
        logs: Sequence[Path] = folders() if traces is None else [traces]
        plan = looked_at(study.plan, quick=quick)
        if trace is not None:
            if "trace" not in plan.get("own", {}):
                reason = f"study {study.name!r} has traces of its own; expected no other"
                raise InputError(reason, field="trace")
            plan = merged(plan, {"own": {"trace": trace}})
        self.work: Sweep | Cases | None
        if study.has("cases"):
            files = study.call_with("files", (), plan, logs)
            shas = {file.name: sha256_of(file) for file in files}
            used = installed() | {name: version(name) for name in plan.get("packages", ())}
            self._begin(CASES)
            origin = {"plan": study.plan_sha256, "files": shas, "versions": used}
            given = study.path.absolute(), pickle.dumps(plan), tuple(logs)
            self.work = cases = Cases(partial(_cases, *given), origin, folder / CASES)
            self.total = len(cases.all)
        else:
            self.work = self._sweep(plan, logs, new_only=new_only)
            self.total = len(self._plan.runs)

    def _sweep(self, plan: dict[str, Any], logs: Sequence[Path], *, new_only: bool) -> Sweep | None:
        study, folder = self._study, self._folder
        inputs = study.call_with("inputs", {}, plan, logs)
        if study.has("runs"):
            plan["runs"] = study.call("runs", plan, logs)
        try:
            table, self._labels = study_runs(plan, logs, study.path, folder / INPUTS)
            self._begin(*[INPUTS] * bool(inputs))
            for name, trace in inputs.items():
                write_trace(trace, folder / INPUTS / name)
            pending = self._plan = read_sweep(table, base=study.path)
        except InputError as error:
            raise error if error.file else error.within(study.path / PLAN) from None
        if new_only:
            kept = read_results(study.path / RESULTS)
            kept = kept[kept["run"].isin([run.name for run in pending.runs])]
            axes = {axis for labels in self._labels for axis in labels}
            self._kept = kept.drop_duplicates("run").drop(columns=axes, errors="ignore")
            others = [run for run in pending.runs if run.name not in {*kept["run"]}]
            pending = replace(pending, runs=tuple(others))
        return Sweep(pending, folder / SWEEP) if pending.runs else None

    def _begin(self, *inner: str) -> None:
        """Mark the folder, make inner ones, and remove what was made from earlier results."""
        about = {"study": str(self._study.path.resolve()), "quick": self._quick}
        about |= {} if self._trace is None else {"trace": PurePath(self._trace).name}
        folder = self._folder
        if (folder / MARKER).is_file() and read_object(folder / MARKER, {}) != about:
            raise InputError("holds another study; expected a folder of its own", file=folder)
        for stale in (RESULTS, INPUTS, PAGE):
            remove(folder / stale)
        for place in (folder, *(folder / name for name in inner)):
            begin_folder(place)
        write_json(folder / MARKER, about)

    def conclude(self, *, write: bool = False) -> Evaluation:
        """Evaluate the study when all of `work` is done.

        To `write` is to put the results into the folder of the study, and its tables into its page.
        """
        import pandas as pd

        if isinstance(self.work, Cases):
            frame, used = pd.DataFrame(self.work.answers()), self.work.origin["versions"]
        else:
            frame, used = self._of_sweep()
        about: dict[str, Any] = {"study": self._study.name, "plan": self._study.plan_sha256}
        about |= {"quick": self._quick, "versions": used}
        write_results(frame, about, self._folder / RESULTS)
        if self._quick:
            return Evaluation(self._folder, self._folder / RESULTS / FRAME, {}, pd.DataFrame(), [])
        return evaluate(self._study, self._folder, own=self._trace is None, write=write)

    def _of_sweep(self) -> tuple[pd.DataFrame, dict[str, str]]:
        """Return a row for each run and its labels, in the order of the plan, and the versions."""
        import pandas as pd

        frames, used = [], dict[str, set[str]]()
        if self._kept is not None and len(self._kept):
            frames.append(labelled(self._kept, self._plan.blocks, self._labels))
            known = read_about(self._study.path / RESULTS)["versions"]
            used = {name: set(text.split(" and ")) for name, text in known.items()}
        if self.work is not None:
            runs, file = self._folder / SWEEP / "runs", self._folder / SWEEP / FRAME
            found = pd.read_parquet(file)
            if len(failed := found["error"].dropna()):
                first = f"{counted(len(failed), 'run')} of the study failed; the first: "
                raise InputError(f"{first}{failed.iloc[0]}", file=file)
            for name, several in versions_used(found["run"].tolist(), runs).items():
                used.setdefault(name, set()).update(several)
            found = with_parts(found, self._study.plan.get("parts", ()), runs)
            found = found.assign(folder=[str(runs / run) for run in found["run"]])
            found = labelled(found, self._plan.blocks, self._labels)
            found = self._study.call_with("prepare", found, found, self._folder / INPUTS)
            found = found.drop(columns="folder", errors="ignore")
            found["trace"] = [PurePath(trace).name for trace in found["trace"]]  # on any machine
            frames.append(found)
        order = {run.name: place for place, run in enumerate(self._plan.runs)}
        frame, place = pd.concat(frames), lambda names: names.map(order)
        frame = frame.sort_values("run", key=place, kind="stable", ignore_index=True)
        return frame, {name: " and ".join(sorted(several)) for name, several in used.items()}


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
    logs = None if traces is None else Path(traces)
    other = None if trace is None else str(trace)
    folder = path_of(output, "output", "expected the folder to write to")
    running = StudyRun(find_study(str(name)), folder, traces=logs, trace=other, quick=quick)
    work = running.work
    if isinstance(work, Cases):
        deque(work.work(workers), maxlen=0)
    elif work is not None:
        if work.pending:
            deque(work.work(start_engine(work.pending, workers)), maxlen=0)
        work.finish()
    return running.conclude()


def report(folder: Path) -> Path:
    """Evaluate the results in the folder of a study's runs again, and return its page."""
    about = read_object(folder / MARKER, {"study": str})
    return evaluate(StudyFolder(Path(about["study"])), folder, own="trace" not in about).page
