"""The checker must bite: each broken state is told."""

from dataclasses import replace
from typing import ClassVar

import numpy as np
import pytest

from optsched.extend import Start, State
from optsched.machines.nodes import Nodes
from optsched.machines.site import SiteMachine
from optsched.policies import reservation
from optsched.policies.easy import Easy
from optsched.policies.fcfs import FCFS
from optsched.policies.priority import SJF
from optsched.simulator.engine import Engine
from optsched.simulator.problem_solver import ProblemSolver
from optsched.simulator.simulate import InvariantChecker, InvariantError
from optsched.sites.site import Site


class Promising(FCFS):
    """FCFS that promises starts."""

    promises: ClassVar[dict[int, float]] = {}

    def promised(self, system):
        return {job: at for job, at in self.promises.items() if job in list(system.queue)}


# the first job runs until 100; the others wait for it
WAITING = (0, 100, 100, 3), (1, 50, 50, 4), (2, 20, 20, 1)


@pytest.fixture
def engine(make_trace):
    return Engine(make_trace(*WAITING), Nodes(4), FCFS(), ProblemSolver({}))


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


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda e: e.held.__setitem__(1, ((0, 2),)), "held by"),
        (lambda e: e.held.pop(0), "lost"),
        (lambda e: setattr(e.system.machine, "free", 0), "counted free"),
        (lambda e: list.append(e.system.queue, 0), "waits and runs"),
        (lambda e: e.system.queue.reverse(), "out of order"),
        (lambda e: e.system.running.remove(0), "not those that hold"),
        (lambda e: e.core.work_left.__setitem__(0, -5.0), "of work left"),
        (lambda e: setattr(e.system, "now", 1), "backwards"),
    ],
)
def test_a_sound_state_passes_and_a_damaged_one_is_told(engine, damage, message):
    checker = stop_at(engine, 2)
    checker.check(engine)
    assert checker.checks == 1
    damage(engine)
    with pytest.raises(InvariantError, match=message):
        checker.check(engine)


def promising(trace, promises, **changes):
    """Return an engine, checked, under a policy that makes promises."""
    policy = Promising()
    vars(policy).update(promises=promises, **changes)
    return Engine(trace, Nodes(4), policy, ProblemSolver({}), observe=InvariantChecker().check)


def test_a_promise_holds_until_the_job_starts_or_it_is_withdrawn_or_a_decision_charged(make_trace):
    promising(make_trace(*WAITING), {1: 100, 2: 150}).run()
    engine = promising(make_trace(*WAITING), {2: 100})
    checked = engine.observe
    engine.observe = lambda engine: (checked(engine), engine.policy.promises.clear())
    engine.run()
    engine = promising(make_trace(*WAITING), {1: 2})
    solver = engine.problem_solver
    solver.begin_decision = lambda now: setattr(solver, "charged", 1.0)
    engine.run()


@pytest.mark.parametrize(
    ("promises", "message"),
    [
        ({1: 2}, "at 2 s: job row 1 waits, but was promised to start by 2"),
        # there is no event at this time
        ({1: 60}, "at 100.*: job row 1 started at 100.*, but was promised 60"),
        ({2: 100}, "at 100.* s: job row 2 waits, but was promised to start by 100"),
    ],
)
def test_a_broken_promise_is_told(promises, message, make_trace):
    with pytest.raises(InvariantError, match=message):
        promising(make_trace(*WAITING), promises).run()


def test_a_job_that_runs_beyond_its_estimated_end_voids_the_promises_of_the_moment(make_trace):
    trace = make_trace(*WAITING, (300, 50, 50, 4), (301, 1, 1, 1))
    trace = replace(trace, requested_time=np.array([60, 50, 20, 50, 1]))
    promising(trace, {1: 60, 2: 110}, enforces_limits=False).run()
    with pytest.raises(InvariantError, match=r"row 4 .* promised 340"):
        promising(trace, {1: 60, 4: 340}, enforces_limits=False).run()


def test_a_promise_is_kept_at_the_first_tick_from_then_on(make_trace):
    promising(make_trace(*WAITING), {1: 100}, interval=30.0).run()
    with pytest.raises(InvariantError, match=r"row 1 .* promised 80"):
        promising(make_trace(*WAITING), {1: 80}, interval=30.0).run()


WIDE_HEAD = (0, 10, 10, 3), (1, 20, 20, 4), (2, 50, 50, 1)
"""The last job would delay the second one, which can start at 10."""


@pytest.mark.parametrize(("policy", "chosen"), [(Easy, {}), (SJF, {"backfill": "easy"})])
@pytest.mark.parametrize("on_a_site", [False, True])
def test_a_backfilled_job_that_delays_the_head_breaks_a_promise(
    on_a_site, policy, chosen, make_trace, monkeypatch
):
    class Misled(policy):
        def compiled(self, run):
            if not on_a_site:
                return None
            decisions = super().compiled(run)
            decisions.tables.waiting.candidates.requested[2] = 1.0
            return decisions

    def start_all(system, jobs, reservation):
        yield from (Start(job) for job in jobs if system.machine.fits(system.demands[job]))

    monkeypatch.setattr(reservation, "backfill", start_all)
    site = Site("plain", ("a",), ("cores", "memory"), np.array([[4, 9]]))
    machine, trace = SiteMachine(site) if on_a_site else Nodes(4), make_trace(*WIDE_HEAD)
    given = machine, Misled(**chosen), ProblemSolver({})
    with pytest.raises(InvariantError, match=r"at 10.* row 1 waits, .* to start by 10"):
        Engine(trace, *given, observe=InvariantChecker().check).run()


def test_the_end_accounts_for_every_job(engine):
    engine.observe = InvariantChecker().check
    engine.run()
    InvariantChecker().check_end(engine)
    engine.state[1] = State.RUNNING
    engine.core.work_left[2] = 3.0
    with pytest.raises(InvariantError, match=r"row 1 is running.*row 2 finished with 3\.0 s"):
        InvariantChecker().check_end(engine)
