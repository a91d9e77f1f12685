"""The finished runs of a sweep folder, and the page that compares them.

Folder format: ``docs/formats/sweep-folder.md``.
"""

from __future__ import annotations

import json
import logging
import shlex
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from optsched.errors import InputError
from optsched.files import remove
from optsched.numbers import counted
from optsched.report import runs_page
from optsched.report.folder_files import Expected, checked, read_object, read_pictures
from optsched.report.gantt_chart import read_charts
from optsched.report.page import write_page
from optsched.report.run_comparison import RunComparison, read_runs
from optsched.report.run_folder import FOLDER as RUN
from optsched.report.runs_plots import draw
from optsched.simulator.provenance import versions
from optsched.simulator.scenario import OPTIONS
from optsched.sweeps.sweeping import FOLDER, PICTURES

RUNS: Expected = {"run": str, "config": dict}
SETTING = "settings."
"""Prefix of the settings among the values of a run."""

DRAWN = ("jobs", "measure", "workload_seed", "shake_seed")
"""Keys whose values are parts or draws of the same trace or workload."""

SYSTEMS = ("load", "shake", "unknown_negative")
"""Keys that change the jobs of a trace or workload."""

log = logging.getLogger("optsched")


def compared(folder: Path) -> RunComparison:
    """Read the finished runs of a sweep side by side; unfinished ones are counted in a message."""
    found, missing = finished_runs(folder)
    if missing:
        log.warning("%s of the sweep not finished, left out", counted(missing, "run"))
    try:
        return read_runs(found)
    except InputError as error:
        keys = varying(planned(folder).values())
        over = next((key for key in (*DRAWN, "trace", "workload", *SYSTEMS) if key in keys), None)
        if over is None:
            raise
        hint = f"over all of them: optsched compare {folder} --over {over} -o DIR"
        raise InputError(f"{error.mistakes[0]}; {hint}", file=error.file) from None


def report(folder: Path) -> Path:
    """Write the page that compares the runs of a sweep, and its pictures, into the folder."""
    return write_comparison(compared(folder), folder)


def write_comparison(comparison: RunComparison, folder: Path) -> Path:
    """Write the page and the pictures of a comparison of a sweep's runs into its folder."""
    for stale in (path for pattern in PICTURES for path in folder.glob(pattern)):
        remove(stale)
    draw(comparison, folder)
    within = [run._replace(path=f"runs/{Path(run.path).name}") for run in comparison.runs]
    page = runs_page.page_of(
        RunComparison(within, comparison.jobs),
        read_pictures(folder, runs_page.PICTURES),
        read_charts(folder),
        _repeat(comparison, folder),
        versions(),
    )
    return write_page(page, folder)


def _repeat(comparison: RunComparison, folder: Path) -> str | None:
    """Return the command that repeats the runs, or the commands; None where there is none."""
    sweep = read_object(folder / FOLDER.marker, {"sweep": dict, "runs": list})
    configs = {run["run"]: dict(run["config"]) for run in sweep["runs"]}
    finished = {Path(run.path).name: run.config for run in comparison.runs}
    policies = [config.pop("policy", "") for config in configs.values()]
    stated: dict[str, Any] = {"settings": {}}
    alike = len({*policies}) == len(policies) > 1
    for config in configs.values():
        for key, value in config.pop("settings", {}).items():
            alike &= stated["settings"].setdefault(key, value) == value
        alike &= all(stated.setdefault(key, value) == value for key, value in config.items())
    for name, config in configs.items():
        # options of solvers are for the policies that pose problems
        poses = "solver" in finished.get(name, {})
        for key in stated.keys() - config.keys() - {"settings"}:
            alike &= bool(OPTIONS[key].needs_problems) and not poses
    if not alike:
        commands = [run.config["repeat"] for run in comparison.runs]
        return None if None in commands else "\n".join(commands)
    stated["policy"] = ",".join(policies)
    first = comparison.runs[0].config  # with paths from the current folder
    words = ["optsched", "simulate"]
    words += [first["trace"]] if stated.pop("trace", None) is not None else []
    stated |= {key: first[key] for key in ("machine",) if key in stated}
    words += [word for key, one in OPTIONS.items() for word in one.words(stated.get(key))]
    files: dict[str, str] = {}
    for done in finished.values():
        files |= done.get("files", {})
    for file, sha256 in files.items():
        words += ["--file-sha256", f"{file}={sha256}"]
    words += ["--no-csv"] * (sweep["sweep"].get("keep") == "jobs")
    return shlex.join([*words, "-o", "DIR"])


def finished_runs(folder: Path) -> tuple[dict[str, Path], int]:
    """Return the folders of the finished runs of a sweep, and the number of the other runs.

    The runs are in the order of the sweep, under speaking names: the policy and the other values
    of the sweep file in which the runs differ, ``easy, event_order=batched`` for instance. A run
    that no such values tell apart has the name of its folder.
    """
    values = planned(folder)
    keys = varying(values.values())
    names = {run: speaking(own, keys) for run, own in values.items()}
    uses = Counter(names.values())
    places = {
        name if name and uses[name] == 1 else run: folder / "runs" / run
        for run, name in names.items()
    }
    found = {name: place for name, place in places.items() if (place / RUN.marker).is_file()}
    return found, len(places) - len(found)


def planned(folder: Path) -> dict[str, dict[str, Any]]:
    """Return the values of each run of a sweep, by its name; settings as ``settings.window``."""
    file = folder / FOLDER.marker
    runs = [checked(run, RUNS, file, "runs") for run in read_object(file, {"runs": list})["runs"]]
    found = {}
    for run in runs:
        flat = {key: value for key, value in run["config"].items() if key != "settings"}
        settings = run["config"].get("settings")
        settings = settings if isinstance(settings, dict) else {}
        found[run["run"]] = flat | {f"{SETTING}{key}": one for key, one in settings.items()}
    return found


def varying(runs: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return the keys in which runs differ, in order of appearance."""
    values = list(runs)
    keys = dict.fromkeys(key for own in values for key in own)
    return [key for key in keys if any(own.get(key) != values[0].get(key) for own in values)]


def speaking(values: Mapping[str, Any], keys: Iterable[str]) -> str:
    """Return the name of a run by some of its values: ``easy, event_order=batched``."""
    shown = {key.removeprefix(SETTING): values[key] for key in keys if key in values}
    policy = [in_words(shown.pop("policy"))] if "policy" in shown else []
    return ", ".join(policy + [f"{key}={in_words(value)}" for key, value in shown.items()])


def in_words(value: Any) -> str:
    """Return a value of a sweep file as text."""
    return value if isinstance(value, str) else json.dumps(value)
