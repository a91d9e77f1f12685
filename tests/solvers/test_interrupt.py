"""Ctrl-C ends a solve soon, with its best solution, and leaves nothing behind."""

import os
import signal
import sys
import tempfile
import threading
import time
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from optsched import Budget, compare, registry, solve
from optsched.models import WindowMKP
from optsched.solvers import interruption
from optsched.solvers.generic import run_in_thread
from optsched.solvers.result import Limit, Status
from optsched.solvers.solver import Solver


def children():
    """Return the processes that this one has started and that are not gone; those of Linux."""
    found = set()
    for status in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            fields = status.read_text(errors="replace").rpartition(")")[2].split()
            if int(fields[1]) == os.getpid():
                found.add(status.parent.name)
    return found


pytestmark = [
    pytest.mark.skipif(sys.platform == "win32", reason="sends a POSIX signal"),
    pytest.mark.skipif(
        threading.current_thread() is not threading.main_thread(),
        reason="signals go to the main thread",
    ),
    pytest.mark.usefixtures("interruptible"),
]


@contextmanager
def ctrl_c(delay, again=3.0):
    """Press Ctrl-C after a delay, and again and again as people do."""
    released = threading.Event()

    def press() -> None:
        # Python drops an interrupt that comes in a destructor
        pause = delay
        while not released.wait(pause):
            os.kill(os.getpid(), signal.SIGINT)
            pause = again

    fingers = threading.Thread(target=press, daemon=True)
    handler = signal.getsignal(signal.SIGINT)
    try:
        fingers.start()
        yield
    finally:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        released.set()
        fingers.join()
        signal.signal(signal.SIGINT, handler)


@pytest.mark.parametrize("delay", [0.02, 0.4])
def test_ctrl_c_stops_a_solve(generic, hard, delay, tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    generic.prepare()
    before = children()
    with ctrl_c(delay), pytest.raises(KeyboardInterrupt):
        solve(hard, generic, budget=Budget(seconds=30), interruptible=False)
    assert list(tmp_path.iterdir()) == []
    assert children() <= before
    assert solve(WindowMKP([3, 2], [4]), generic).objective == 3


@pytest.fixture
def patient(monkeypatch):
    """Wait for a search to end, on however busy a machine; the time limit is a failure."""
    monkeypatch.setattr(interruption, "PATIENCE", 100.0)


GENERIC = [n for n in registry.solvers if registry.solvers[n].models is None]
SEARCHES = ("best-first", "depth-first", "branch-and-bound")
"""Exact solvers of this package."""


@pytest.mark.usefixtures("patient")
@pytest.mark.parametrize("name", [*SEARCHES, *GENERIC])
def test_ctrl_c_returns_the_best_solution(name, solver_named, hard):
    solver, handler = solver_named(name), signal.getsignal(signal.SIGINT)
    solve(hard, solver, budget=Budget(seconds=0.01))  # compiles
    with ctrl_c(0.6, again=100):
        result = solve(hard, solver, budget=Budget(seconds=30))
    assert (result.status, result.limit) == (Status.FEASIBLE, Limit.INTERRUPT)
    assert result.verified
    assert result.bound >= result.objective > 0
    assert signal.getsignal(signal.SIGINT) is handler
    assert not interruption.requested()


def test_ctrl_c_at_the_solver_of_a_hint_returns_the_hint(hard):
    with ctrl_c(0.4, again=30):
        result = solve(hard, "greedy", hint="depth-first", budget=Budget(seconds=30))
    assert (result.solver, result.limit) == ("depth-first", Limit.INTERRUPT)
    assert result.solution is not None


def test_python_waits_at_its_end_for_a_search_that_ctrl_c_left_behind():
    threads, released = [], threading.Event()

    def run(_post) -> None:
        threads.append(threading.current_thread())
        released.wait(30)

    with ctrl_c(0.1, again=0.5), pytest.raises(KeyboardInterrupt):
        run_in_thread(run, lambda: None, search=None)
    assert threads[0].is_alive()
    assert not threads[0].daemon
    released.set()
    threads[0].join()


class Deaf(Solver):
    """Sleep, whatever happens."""

    models = frozenset({"window-mkp"})

    def solve(self, problem, *, budget, hint=None, seed=0, on_incumbent=None):
        time.sleep(30)


@pytest.mark.parametrize("again", [0.4, 30])
def test_a_second_ctrl_c_or_a_deaf_solver_ends_at_once(again, hard, monkeypatch):
    monkeypatch.setattr(interruption, "PATIENCE", 0.2)
    with ctrl_c(0.1, again), pytest.raises(KeyboardInterrupt):
        solve(hard, Deaf())
    assert not interruption.requested()


def test_ctrl_c_ends_a_whole_comparison(hard):
    with ctrl_c(0.4, again=30), pytest.raises(KeyboardInterrupt):
        compare([hard] * 20, ["depth-first"], budget=Budget(seconds=3))


class Stopped(Solver):
    """A solver that is interrupted after some answers; the first one is to the warm-up."""

    models = frozenset({"window-mkp"})

    def __init__(self, after):
        self.left = 1 + after

    def solve(self, problem, *, budget, hint=None, seed=0, on_incumbent=None):
        if not self.left:
            raise KeyboardInterrupt
        self.left -= 1
        return solve(problem, "greedy")


SMALL = [WindowMKP([3, 2], [4 + number]) for number in range(3)]


@pytest.mark.parametrize(
    ("after", "kept", "missing"),
    [
        (0, ["greedy"], ("window-mkp-1 by Stopped", "window-mkp-2", "window-mkp-3")),
        (1, ["greedy", "Stopped"], ("window-mkp-2", "window-mkp-3")),
        (2, ["greedy", "Stopped"] * 2, ("window-mkp-3",)),
    ],
)
def test_an_interrupted_comparison_has_what_all_solvers_answered(after, kept, missing):
    comparison = compare(SMALL, ["greedy", Stopped(after)])
    assert comparison.results["solver"].tolist() == kept
    assert comparison.missing == missing
    assert comparison.record["missing"] == list(missing)
    assert [one["name"] for one in comparison.config["solvers"]] == list(dict.fromkeys(kept))
    assert len(comparison.config["snapshots"]) == max(after, 1)
    assert "interrupted" in repr(comparison)
    assert f"not compared: {missing[0]}" in comparison._repr_html_()


def test_an_interrupt_is_raised_before_the_first_answer_or_on_request():
    with pytest.raises(KeyboardInterrupt):
        compare(SMALL, [Stopped(0)])
    with pytest.raises(KeyboardInterrupt):
        compare(SMALL, [Stopped(1)], interruptible=False)


def test_another_thread_solves_without_signals():
    found = []
    thread = threading.Thread(target=lambda: found.append(solve(SMALL[0])))
    thread.start()
    thread.join()
    assert found[0].objective == 3
