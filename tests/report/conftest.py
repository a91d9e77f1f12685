"""Runs to draw: simulated, or put together by hand."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pytest
from report.looks import unstarted

from optsched import simulate
from optsched.boxes.box import Box
from optsched.report import style
from optsched.simulator.policy import Action, Migrate, Policy, Start, Wake
from optsched.simulator.system import System


@pytest.fixture
def without_png(monkeypatch):
    """Write pictures as SVG alone: a PNG takes as long to draw, and has tests of its own."""
    monkeypatch.delitem(style.METADATA, ".png")


@pytest.fixture
def small_run(make_trace):
    """Return three jobs on ten nodes under EASY: 1 and 3 run side by side, 2 after them."""
    trace = make_trace((0, 60, 60, 4), (5, 20, 20, 8), (9, 30, 30, 3), name="small")
    return simulate(trace, "nodes:10", "easy")


@pytest.fixture
def random_run(make_trace):
    """Return the function that simulates a seeded random trace on 64 nodes under EASY."""

    def build(jobs):
        draw = np.random.default_rng(0)
        submit = np.cumsum(draw.exponential(40.0, jobs)).round()
        runtime = np.ceil(draw.exponential(600, jobs))
        size = draw.integers(1, 33, jobs)
        rows = zip(submit.tolist(), runtime.tolist(), (2 * runtime).tolist(), size.tolist())
        return simulate(make_trace(*rows, name="random"), "nodes:64", "easy")

    return build


@pytest.fixture
def interrupted_run(make_trace):
    """Return a run with a rejected job, one that waits for ever and one that never ends."""
    rows = [(0, 100, 100, 4), (10, 50, 50, 20), (20, 50, 50, 4), (30, 50, 50, 8)]
    run = simulate(make_trace(*rows, name="interrupted"), "nodes:10", "fcfs")
    assert run.state.tolist()[1] == "REJECTED"
    run = unstarted(run, 3)
    run.schedule.end[2], run.schedule.state[2] = np.nan, "RUNNING"
    return run


@dataclass
class Scripted(Policy):
    """Does at each time what `script` tells; that is no setting, for it is no JSON."""

    script: ClassVar[Mapping[float, list[Any]]] = {}
    machines: ClassVar[frozenset[str]] = frozenset({"torus"})
    execution: ClassVar[str] = "migration"

    def begin(self, system: System) -> None:
        self.left = dict(self.script)

    def decide(self, system: System) -> Iterable[Action]:
        yield from (Wake(at) for at in self.left if at > system.now)
        yield from self.left.pop(system.now, ())


@pytest.fixture
def scripted(make_trace):
    """Return the function that runs jobs on a torus by a script: actions by time."""

    def build(torus, rows, script):
        policy = Scripted()
        policy.script = script
        return simulate(make_trace(*rows, name="boxed"), torus, policy, check=True)

    return build


@pytest.fixture
def boxes_run(scripted):
    """Return the function that runs four jobs on 4 x 4 x 4 routers, one of them a hole.

    At 40 the third one ends, and the second may be parked and migrated to let the fourth start,
    whose box wraps around; else that never starts.
    """

    def build(*, migrate=True):
        rows = [(0, 900, 900, 3), (0, 900, 900, 8), (0, 40, 40, 4), (40, 900, 900, 16)]
        places = [Box(0, 0, 0, 1, 3, 1), Box(0, 0, 2, 2, 2, 2), Box(2, 1, 1, 2, 2, 1)]
        script = {0: [Start(job, place) for job, place in enumerate(places)]}
        if migrate:
            moved = Migrate({1: Box(2, 1, 2, 2, 2, 2)}, frozenset({1}))
            script[40] = [moved, Start(3, Box(0, 3, 2, 4, 2, 2))]
        return scripted("torus:4x4x4:holes=1x1x1@3,0,0", rows, script)

    return build
