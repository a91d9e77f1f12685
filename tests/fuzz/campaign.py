"""Many cases, several at a time; what was wrong with them, by its cause."""

from __future__ import annotations

import shlex
import shutil
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import wait
from pathlib import Path
from typing import NamedTuple

from fuzz.forks import Bounds, Ended, Running
from fuzz.oracle import Failure, contents, judge, shown
from fuzz.seeds import Seeds
from fuzz.target import Case, make

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


class _UnderWay(NamedTuple):
    place: Place
    case: Case
    folder: Path
    before: dict[str, tuple[str, str]]
    running: Running


def run_cases(
    places: Iterator[Place], scratch: Path, seeds: Seeds, bounds: Bounds, slots: int
) -> Iterator[Judged]:
    """Run cases, several at a time, and yield them as they end.

    Parameters
    ----------
    places : iterator of Place
        Which cases; asked for the next one when there is room for it.
    scratch : path
        A folder for the folders of the cases, which are removed.
    seeds : Seeds
        The valid input.
    bounds : Bounds
        What a case may spend.
    slots : int
        How many cases are under way at once.
    """
    under_way: list[_UnderWay] = []
    started = 0
    while True:
        while len(under_way) < slots and (place := next(places, None)) is not None:
            started += 1
            under_way.append(_start(place, scratch / str(started), seeds, bounds))
        if not under_way:
            return
        left = min(one.running.left for one in under_way)
        wait([one.running.sentinel for one in under_way], timeout=max(0.0, left))
        for one in list(under_way):
            ended = one.running.ended()
            if ended is not None:
                under_way.remove(one)
                home = one.folder / "case"
                failures = judge(one.case, ended, one.before, contents(home), home, bounds)
                shutil.rmtree(one.folder)
                yield Judged(one.place, one.case, ended, failures)


def _start(place: Place, folder: Path, seeds: Seeds, bounds: Bounds) -> _UnderWay:
    home = folder / "case"
    home.mkdir(parents=True)
    case = make(*place, home, seeds)
    return _UnderWay(place, case, folder, contents(home), Running(case, folder, bounds))


def in_turn(targets: Sequence[str], seed: int, cases: int) -> Iterator[Place]:
    """Yield so many cases of each target, target by target."""
    for target in targets:
        for number in range(cases):
            yield Place(target, seed, number)


def until(
    deadline: float, targets: Sequence[str], seed: int, spent: Counter[str]
) -> Iterator[Place]:
    """Yield cases until a moment, of the target that has taken the least time so far.

    Parameters
    ----------
    deadline : float
        The moment, by `time.monotonic`.
    targets : sequence of str
        The targets.
    seed : int
        The seed of all cases.
    spent : Counter
        The seconds that each target has taken, kept by the caller.
    """
    numbers: Counter[str] = Counter()
    while time.monotonic() < deadline:
        target = min(targets, key=lambda name: (spent[name] + 0.02 * numbers[name], name))
        yield Place(target, seed, numbers[target])
        numbers[target] += 1


@dataclass
class Tally:
    """What became of the cases of a target."""

    cases: int = 0
    failed: int = 0
    seconds: float = 0.0
    slowest: float = 0.0
    codes: Counter[int] = field(default_factory=Counter)


class Report:
    """What was found.

    Parameters
    ----------
    keep : path
        The folder for the input of failures.
    seeds : Seeds
        What that input is made from.
    """

    def __init__(self, keep: Path, seeds: Seeds) -> None:
        self.tallies: dict[str, Tally] = {}
        self.spent: Counter[str] = Counter()
        self.groups: dict[tuple[str, str], list[Judged]] = {}
        self._keep = keep
        self._seeds = seeds

    def add(self, judged: Judged) -> list[Failure]:
        """Count a case and keep the input of one that failed; return failures of a new cause."""
        tally = self.tallies.setdefault(judged.place.target, Tally())
        tally.cases += 1
        tally.failed += bool(judged.failures)
        tally.seconds += judged.ended.seconds
        tally.slowest = max(tally.slowest, judged.ended.seconds)
        tally.codes[judged.ended.code] += 1
        self.spent[judged.place.target] += judged.ended.seconds
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
        (folder / "command.txt").write_text(f"{typed(judged.case)}\n", errors="backslashreplace")
        (folder / "out").write_text(judged.ended.out)
        (folder / "err").write_text(judged.ended.err)
        told = "".join(f"{kind}: {cause}\n{seen}\n\n" for kind, cause, seen in judged.failures)
        (folder / "failures.txt").write_text(told, errors="backslashreplace")

    def print(self, say: Callable[[str], None]) -> None:
        """Tell the cases of each target, then the failures by cause."""
        say(f"{'target':<28}{'cases':>8}{'failed':>8}{'s':>8}{'slowest':>9}  exit codes")
        total = Tally()
        for name, tally in sorted(self.tallies.items()):
            _tell(say, name, tally)
            total.cases += tally.cases
            total.failed += tally.failed
            total.seconds += tally.seconds
            total.slowest = max(total.slowest, tally.slowest)
            total.codes += tally.codes
        _tell(say, "all", total)
        for (kind, cause), judged in sorted(self.groups.items(), key=lambda group: -len(group[1])):
            first = judged[0].place
            say(f"\n{len(judged)} x {kind}: {cause}")
            say(f"    {typed(judged[0].case)[:300]}")
            say(f"    make fuzz SEED={first.seed} CASE={first}")
        if self.groups:
            say(f"\n{len(self.groups)} causes; the input of each is kept in {self._keep}")


def typed(case: Case) -> str:
    """Return the command of a case as it is typed."""
    return shown(f"optsched {shlex.join(case.arguments)}").replace("\n", "\\n")


def _tell(say: Callable[[str], None], name: str, tally: Tally) -> None:
    codes = " ".join(f"{code}: {count}" for code, count in sorted(tally.codes.items()))
    figures = f"{tally.cases:>8,}{tally.failed:>8,}{tally.seconds:>8,.0f}{tally.slowest:>9.1f}"
    say(f"{name:<28}{figures}  {codes}")
