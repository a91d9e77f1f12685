"""Many cases, several at a time; what was wrong with them, by its cause; the command line."""

import argparse
import importlib
import itertools
import pkgutil
import shlex
import shutil
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from multiprocessing.connection import wait
from pathlib import Path
from typing import NamedTuple

import fuzz.options
import fuzz.readers
import fuzz.slurm  # noqa: F401 (each has targets)
import optsched
from fuzz.forks import Bounds, Ended, Running
from fuzz.oracle import Failure, contents, judge, shown
from fuzz.seeds import Seeds
from fuzz.target import TARGETS, Case, make
from optsched.compilation import cores

KEPT = 3
"""Of how many failures of one cause the input is kept."""


class Place(NamedTuple):
    """Which case: it is the same for the same target, seed and number."""

    target: str
    seed: int
    number: int

    def __str__(self) -> str:
        return f"{self.target}/{self.number}"


class Judged(NamedTuple):
    """A case that has ended, and what is wrong with that."""

    place: Place
    case: Case
    ended: Ended
    failures: list[Failure]


def run_cases(
    places: Iterator[Place], scratch: Path, seeds: Seeds, bounds: Bounds, slots: int
) -> Iterator[Judged]:
    """Run cases, so many at once, in folders of `scratch`, and yield them as they end.

    The next one is asked for when there is room for it.
    """
    under_way: dict[Running, tuple[Place, Case, Path, dict[str, tuple[str, str]]]] = {}
    started = 0
    while True:
        while len(under_way) < slots and (place := next(places, None)) is not None:
            home = scratch / str(started) / "case"
            home.mkdir(parents=True)
            case = make(*place, home, seeds)
            before = contents(home)
            under_way[Running(case, home.parent, bounds)] = place, case, home, before
            started += 1
        if not under_way:
            return
        left = min(running.left for running in under_way)
        wait([running.sentinel for running in under_way], timeout=max(0.0, left))
        for running in list(under_way):
            if (ended := running.ended()) is not None:
                place, case, home, before = under_way.pop(running)
                failures = judge(case, ended, before, contents(home), home, bounds)
                shutil.rmtree(home.parent)
                yield Judged(place, case, ended, failures)


def until(
    deadline: float, targets: Sequence[str], seed: int, spent: Counter[str]
) -> Iterator[Place]:
    """Yield cases until a moment, by `time.monotonic`, of the target that has taken the least.

    The caller keeps the seconds that each target has `spent`.
    """
    numbers: Counter[str] = Counter()
    while time.monotonic() < deadline:
        target = min(targets, key=lambda name: (spent[name] + 0.02 * numbers[name], name))
        yield Place(target, seed, numbers[target])
        numbers[target] += 1


class Report:
    """What was found; the input of failures goes to the folder `keep`."""

    def __init__(self, keep: Path, seeds: Seeds) -> None:
        self.spent: Counter[str] = Counter()
        self.groups: dict[tuple[str, str], list[Judged]] = {}
        self._ends: defaultdict[str, list[tuple[int, float, bool]]] = defaultdict(list)
        self._keep = keep
        self._seeds = seeds

    def add(self, judged: Judged) -> list[Failure]:
        """Count a case and keep the input of one that failed; return failures of a new cause."""
        name, ended = judged.place.target, judged.ended
        self._ends[name].append((ended.code, ended.seconds, bool(judged.failures)))
        self.spent[name] += ended.seconds
        new = []
        for failure in judged.failures:
            group = self.groups.setdefault((failure.kind, failure.cause), [])
            if not group:
                new.append(failure)
            if len(group) < KEPT:
                self._keep_input(judged)
            group.append(judged)
        return new

    def _keep_input(self, judged: Judged) -> None:
        place = judged.place
        folder = self._keep / f"{place.target}-{place.seed}-{place.number}"
        if folder.exists():
            return
        (folder / "case").mkdir(parents=True)
        make(*place, folder / "case", self._seeds)
        told = "".join(f"{kind}: {cause}\n{seen}\n\n" for kind, cause, seen in judged.failures)
        texts = {"command.txt": f"{typed(judged.case)}\n", "failures.txt": told}
        texts |= {"out": judged.ended.out, "err": judged.ended.err}
        for name, text in texts.items():
            (folder / name).write_text(text, errors="backslashreplace")

    def print(self) -> None:
        """Tell the cases of each target, then the failures by cause."""
        print(f"{'target':<28}{'cases':>8}{'failed':>8}{'s':>8}{'slowest':>9}  exit codes")
        every = [end for ends in self._ends.values() for end in ends]
        for name, ends in (*sorted(self._ends.items()), ("all", every)):
            codes = Counter(code for code, _, _ in ends)
            seconds = [taken for _, taken, _ in ends]
            failed = sum(wrong for _, _, wrong in ends)
            figures = f"{len(ends):>8,}{failed:>8,}{sum(seconds):>8,.0f}"
            counts = " ".join(f"{code}: {count}" for code, count in sorted(codes.items()))
            print(f"{name:<28}{figures}{max(seconds, default=0):>9.1f}  {counts}")
        for (kind, cause), judged in sorted(self.groups.items(), key=lambda group: -len(group[1])):
            first = judged[0].place
            print(f"\n{len(judged)} x {kind}: {cause}")
            print(f"    {typed(judged[0].case)[:300]}")
            print(f"    make fuzz SEED={first.seed} CASE={first}")
        if self.groups:
            print(f"\n{len(self.groups)} causes; the input of each is kept in {self._keep}")


def typed(case: Case) -> str:
    """Return the command of a case as it is typed."""
    return shown(f"optsched {shlex.join(case.arguments)}").replace("\n", "\\n")


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
            in_turn = itertools.product(targets, [given.seed], range(given.cases))
            places = itertools.starmap(Place, in_turn)
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
