"""The command line of the fuzzer."""

from __future__ import annotations

import argparse
import importlib
import pkgutil
import tempfile
import time
from pathlib import Path

import fuzz.folders
import fuzz.options
import fuzz.readers
import fuzz.slurm  # noqa: F401 (each has targets)
import optsched
from fuzz.campaign import Place, Report, in_turn, run_cases, typed, until
from fuzz.forks import Bounds
from fuzz.seeds import Seeds
from fuzz.target import TARGETS, make
from optsched.compilation import cores


def main() -> int:
    """Fuzz, report, and return 1 if something failed."""
    parser = argparse.ArgumentParser(prog="fuzz", description="Fuzz all that optsched reads.")
    parser.add_argument("--seed", type=int, default=1, help="of all cases")
    parser.add_argument("--seconds", type=float, default=60, help="how long to go on")
    parser.add_argument("--cases", type=int, help="so many of each target, however long it takes")
    parser.add_argument("--targets", help="with commas; all if left out")
    parser.add_argument("--case", help="TARGET/NUMBER: run this one alone, and show it")
    parser.add_argument("--slots", type=int, default=cores(), help="cases at once")
    parser.add_argument("--keep", type=Path, help="new or empty folder for the input of failures")
    given = parser.parse_args()
    targets = given.targets.split(",") if given.targets else [*TARGETS]
    if unknown := [name for name in targets if name not in TARGETS]:
        parser.error(f"no target {unknown[0]!r}; known: {', '.join(TARGETS)}")
    if given.keep and given.keep.exists() and not _is_empty(given.keep):
        parser.error(f"{given.keep} is there and is not an empty folder; give another name")
    _import_everything()
    with tempfile.TemporaryDirectory(prefix="optsched-fuzz-") as scratch:
        home = Path(scratch)
        (home / "seeds").mkdir()
        seeds = Seeds(home / "seeds")
        bounds = Bounds()
        if given.case:
            target, _, number = given.case.partition("/")
            return _show(Place(target, given.seed, int(number)), home, seeds, bounds)
        keep = given.keep or Path(tempfile.mkdtemp(prefix="optsched-fuzz-failures-"))
        report = Report(keep, seeds)
        if given.cases is None:
            places = until(time.monotonic() + given.seconds, targets, given.seed, report.spent)
        else:
            places = in_turn(targets, given.seed, given.cases)
        for judged in run_cases(places, home / "cases", seeds, bounds, given.slots):
            for failure in report.add(judged):
                print(f"{judged.place}: {failure.kind}: {failure.cause}", flush=True)
        report.print()
        if not given.keep and _is_empty(keep):
            keep.rmdir()
    return 1 if report.groups else 0


def _is_empty(folder: Path) -> bool:
    return folder.is_dir() and not any(folder.iterdir())


def _import_everything() -> None:
    for module in pkgutil.walk_packages(optsched.__path__, "optsched."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)


def _show(place: Place, home: Path, seeds: Seeds, bounds: Bounds) -> int:
    """Run one case, and show all of it; its input stays."""
    kept = Path(tempfile.mkdtemp(prefix="optsched-fuzz-case-"))
    case = make(*place, kept, seeds)
    print(f"input:   {kept}\ncommand: {typed(case)}")
    [judged] = run_cases(iter([place]), home / "cases", seeds, bounds, 1)
    print(f"exit code {judged.ended.code} after {judged.ended.seconds:.1f} s")
    print(f"--- stdout\n{judged.ended.out}\n--- stderr\n{judged.ended.err}")
    for failure in judged.failures:
        print(f"--- {failure.kind}: {failure.cause}\n{failure.seen}")
    return 1 if judged.failures else 0
