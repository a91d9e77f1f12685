"""The checker must bite: each broken state is told."""

from __future__ import annotations

import pytest

from optsched.machines.nodes import Nodes
from optsched.policies.fcfs import FCFS
from optsched.schedule import State
from optsched.simulator.engine import Engine
from optsched.simulator.invariants import InvariantChecker, InvariantError
from optsched.simulator.problem_solver import NoProblems


@pytest.fixture
def engine(make_trace):
    trace = make_trace((0, 100, 100, 3), (1, 50, 50, 4), (2, 20, 20, 1))
    return Engine(trace, Nodes(4), FCFS(), NoProblems())


def stop_at(engine, moment):
    """Run until simulated time `moment`, and return a checker there."""

    class StopError(Exception):
        pass

    class StopsThere(InvariantChecker):
        def check(self, engine):
            if engine.system.now >= moment:
                raise StopError

    engine.observe = StopsThere().check
    with pytest.raises(StopError):
        engine.run()
    return InvariantChecker()


def test_a_sound_state_passes(engine):
    checker = stop_at(engine, 2)
    checker.check(engine)
    assert checker.checks == 1


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda e: e.held.__setitem__(1, ((0, 2),)), "held by"),
        (lambda e: e.held.pop(0), "lost"),
        (lambda e: setattr(e.system.machine, "free", 0), "counted free"),
        (lambda e: e.system.queue._jobs.append(0), "waits and runs"),
        (lambda e: e.system.queue._jobs.reverse(), "out of order"),
        (lambda e: e.system.running.remove(0), "not those that hold"),
        (lambda e: e.work_left.__setitem__(0, -5.0), "of work left"),
    ],
)
def test_a_damaged_state_is_told(engine, damage, message):
    checker = stop_at(engine, 2)
    damage(engine)
    with pytest.raises(InvariantError, match=message):
        checker.check(engine)


def test_time_does_not_run_backwards(engine):
    checker = stop_at(engine, 2)
    checker.check(engine)
    engine.system.now = 1
    with pytest.raises(InvariantError, match="backwards"):
        checker.check(engine)


def test_the_end_accounts_for_every_job(engine):
    engine.run()
    InvariantChecker().check_end(engine)
    engine.state[1] = State.RUNNING
    engine.work_left[2] = 3.0
    with pytest.raises(InvariantError, match=r"row 1 is running.*row 2 finished with 3\.0 s"):
        InvariantChecker().check_end(engine)
