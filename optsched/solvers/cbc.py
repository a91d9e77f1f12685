"""CBC as packaged in PuLP, for every problem with a formulation."""

from __future__ import annotations

import re
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from optsched.models.export import highs_model
from optsched.registry import solvers
from optsched.solvers import interruption
from optsched.solvers.generic import GenericSolver, Outcome, Post, Search, own_log, run_in_thread
from optsched.solvers.result import Limit, Status

# the log has eight digits; larger numbers are written as 1e+09 and do not match
INCUMBENT = re.compile(r"Integer solution of (-?[\d.]+) found .*\(([\d.]+) seconds\)")
TREE = re.compile(r"best possible (-?[\d.]+) \(")
BOUND = re.compile(r"Lower bound: +(\S+)")
NODES = re.compile(r"Enumerated nodes: +(\d+)")
REFUSED = re.compile(r"Possible options for \w+ are: ([\w ]+)|is illegal for")

WITHOUT_FLAWS = ("preprocess", "probing", "gomory")
"""What is turned off: probing and Gomory cuts cut optima off in CBC 2.10."""

OFF = tuple(word for name in WITHOUT_FLAWS for word in (f"-{name}", "off"))


@solvers.register("cbc")
@dataclass(frozen=True)
class Cbc(GenericSolver):
    """Branch and cut by CBC, run as a separate program on files.

    Incumbents are read from the log of CBC, which arrives in pieces: the recorded times are right,
    but incumbents may be reported late.
    """

    largest_number = 20_000
    largest_objective = 10**9
    seconds_per_solve = 4.5e-3
    seconds_per_work = 3e-3
    default_work = 300
    requires = "PuLP"
    _imports = ("highspy", "pulp")
    set_by: ClassVar[Mapping[str, str]] = {
        "seconds": "a time limit",
        "maxNodes": "a work limit",
        "randomCbcSeed": "a seed",
        "ratioGap": "relative_gap",
        **dict.fromkeys(WITHOUT_FLAWS, "optsched: with others, CBC 2.10 cuts optima off"),
    }

    def check_native(self) -> None:
        """Check the names and values of native options, by what CBC says of them."""
        from pulp import PULP_CBC_CMD

        for name in self.native:
            command = [PULP_CBC_CMD.pulp_cbc_path, *self._words([name]), "-quit"]
            done = subprocess.run(
                command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
            )
            if f"No match for {name}" in done.stdout:
                raise self.unknown_option(name, ())
            if found := REFUSED.search(done.stdout):
                expected = f"expected one of {found[1]}" if found[1] else "expected a number"
                raise self.refused_option(name, expected)

    def _words(self, names: Iterable[str]) -> list[str]:
        return [word for name in names for word in (f"-{name}", _as_word(self.native[name]))]

    @classmethod
    def installed_version(cls) -> str | None:
        """Return the version of PuLP, which contains CBC."""
        installed = super().installed_version()
        return installed and f"PuLP {installed}"

    def run(self, search: Search) -> Outcome:
        """Search with CBC."""
        with tempfile.TemporaryDirectory(prefix="optsched-cbc-") as folder:
            return self._run_in(Path(folder), search)

    def _run_in(self, folder: Path, search: Search) -> Outcome:
        from pulp import PULP_CBC_CMD

        stated = search.program
        sign, offset = -1 if stated.sense == "max" else 1, stated.offset
        # CBC minimizes
        program = replace(stated, sense="min", objective=sign * stated.objective, offset=0)
        highs_model(program).writeModel(str(folder / "program.mps"))
        command = [PULP_CBC_CMD.pulp_cbc_path, "program.mps", "-timeMode", "elapsed"]
        say = own_log(self.name)
        # CBC takes seed 0 for the time of day
        command += ["-randomCbcSeed", str(search.seed + 1), "-ratioGap", str(self.relative_gap)]
        if search.start is not None:
            lines = (f"{v} c{v} {value}\n" for v, value in enumerate(search.start.tolist()))
            (folder / "start.txt").write_text("start\n" + "".join(lines))
            command += ["-mipstart", "start.txt"]
        nodes = search.node_limit()
        if nodes is not None:
            # the fast search below a certain depth ignores the limit
            command += ["-maxNodes", str(nodes), "-depthMiniBab", "-999"]
        began = search.seconds()
        seconds = search.seconds_left()
        if seconds is not None:
            command += ["-seconds", f"{seconds:.3f}"]
        command += [*OFF, *self._words(self.native), "-solve", "-solution", "status.txt"]
        command += ["-saveSolution", "values.bin", "-quit"]

        log: list[str] = []
        started: list[subprocess.Popen[str]] = []

        def run(post: Post) -> None:
            tree: float | None = None
            with subprocess.Popen(
                command,
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            ) as process:
                started.append(process)
                assert process.stdout is not None
                for line in process.stdout:
                    log.append(line)
                    if say is not None:
                        say(line)
                    if match := TREE.search(line):
                        tree = sign * float(match[1]) + offset
                        post(None, tree)
                    if match := INCUMBENT.search(line):
                        objective = sign * float(match[1]) + offset
                        post(objective, tree, began + float(match[2]))

        def stop() -> None:
            for process in started:
                process.send_signal(signal.SIGINT)  # CBC then writes what it has found

        def abandon() -> None:
            for process in started:
                process.kill()

        # a thread, which no signal interrupts between the start of CBC and the record of it
        run_in_thread(run, stop, search, abandon)
        return _outcome(folder, "".join(log), search, sign)


def _as_word(value: object) -> str:
    return {True: "on", False: "off"}[value] if isinstance(value, bool) else str(value)


def _outcome(folder: Path, log: str, search: Search, sign: int) -> Outcome:
    nodes = NODES.search(log)
    work = int(nodes[1]) if nodes else 0
    try:
        status, x = _written(folder)
    except (OSError, ValueError):  # missing or incomplete
        if interruption.requested():
            return Outcome(Status.NO_SOLUTION, work=work, limit=Limit.INTERRUPT)
        message = log.strip().rpartition("\n")[2] or "no answer"
        if shutil.disk_usage(folder).free < 2**16:
            message = f"no space left in {tempfile.gettempdir()} (TMPDIR), where its files are"
        elif _is_excluded_by_bounds(folder):
            return Outcome(Status.INFEASIBLE, work=work)
        return Outcome(Status.ERROR, work=work, message=f"CBC: {message}")
    if "nfeasible" in status or status == "Unbounded":
        return search.unbounded_or_infeasible(work)
    found = BOUND.search(log)
    bound = sign * float(found[1]) + search.program.offset if found else None
    if status.startswith("Optimal"):
        if bound is None and x is not None:
            bound = search.program.value(x)
        return Outcome(Status.OPTIMAL, x, bound, work=work)
    limit = Limit.TIME if status.startswith("Stopped on time") else Limit.WORK
    return Outcome(Status.FEASIBLE, x, bound, limit, work)


def _is_excluded_by_bounds(folder: Path) -> bool:
    """Return whether CBC finds no solution before its search; it then fails to write a status."""
    from pulp import PULP_CBC_CMD

    if not (folder / "status.txt").exists():
        return False
    command = [PULP_CBC_CMD.pulp_cbc_path, "program.mps", *OFF, "-maxNodes", "0"]
    command += ["-solve", "-quit"]
    again = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    return "Problem is infeasible" in again.stdout


def _written(folder: Path) -> tuple[str, NDArray[np.int64] | None]:
    """Return the status that CBC wrote, and the values of the variables if it has a solution."""
    status = (folder / "status.txt").read_text().partition("\n")[0].partition(" - ")[0]
    if not status:
        raise ValueError("an empty file")
    if "nfeasible" in status or status == "Unbounded" or "no integer solution" in status:
        return status, None
    # counts, objective, row values, duals, values of variables
    saved = (folder / "values.bin").read_bytes()
    rows, columns = np.frombuffer(saved, dtype=np.int32, count=2).tolist()
    values = np.frombuffer(saved, dtype=np.float64, offset=16 + 16 * rows, count=columns)
    return status, np.rint(values).astype(np.int64)
