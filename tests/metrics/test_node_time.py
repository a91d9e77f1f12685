"""The parts of node time, by hand and against a replay that looks at every router."""

import itertools
import json
import os
import subprocess
import sys
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from optsched import simulate
from optsched.boxes.box import Box, Grid, shapes
from optsched.boxes.free_boxes import anchors, first_fit, holds, words_of
from optsched.machines.torus import Torus
from optsched.metrics.node_time import PARTS, free_box_holds, node_time
from optsched.report.saved import save
from optsched.schedule import Migration, Schedule, State
from optsched.simulator.policy import Migrate, Policy, Start

LINE = Torus((1, 1, 10), wrap=(True, True, False))
RING = Torus((1, 1, 10))


def schedule_of(torus, *jobs, migrations=()):
    """Return the schedule of jobs given as (start, end, box), or as None if they never started."""
    states = [State.WAITING if job is None else State.FINISHED for job in jobs]
    ran = [job or (np.nan, np.nan, None) for job in jobs]
    return Schedule(
        start=np.array([start for start, _, _ in ran], float),
        end=np.array([end for _, end, _ in ran], float),
        state=np.array([str(state) for state in states]),
        resources=["" if box is None else torus.nodes_text(box) for _, _, box in ran],
        decisions=0,
        migrations=[
            Migration(time, job, torus.nodes_text(left), torus.nodes_text(taken), False, delay)
            for time, job, left, taken, delay in migrations
        ],
    )


def row(begin, length):
    return Box(0, 0, begin, 1, 1, length)


def parts(**given):
    assert set(given) <= set(PARTS)
    return pytest.approx(dict.fromkeys(PARTS, 0.0) | given)


# two jobs leave two free nodes on each side of the second: a third one of four waits for the end of
# the first, a fourth one of nine until both are gone
JOBS = ((0, 10, 10, 3), (0, 20, 20, 2), (2, 10, 10, 4), (5, 10, 10, 9))
PLACES = ((0, 10, row(0, 4)), (0, 20, row(6, 2)), (10, 20, row(0, 4)), (20, 30, row(0, 9)))


@pytest.mark.parametrize("torus", [LINE, RING])
def test_the_parts_of_a_line_and_of_a_ring(make_trace, torus):
    found = node_time(make_trace(*JOBS), torus, schedule_of(torus, *PLACES), large_from=4)
    assert found.time.tolist() == [0, 2, 5, 10, 20, 30]
    assert found.held.tolist() == [6, 6, 6, 6, 9, 0]
    assert found.running.tolist() == [5, 5, 5, 6, 9, 0]
    # 0-2 nobody waits; 2-10 job 3 is the head: 4 nodes are free; 10-20 job 4 needs 9, 4 are free
    expected = {"running": 5 * 10 + 6 * 10 + 9 * 10, "internal": 1 * 10, "unwanted": 4 * 2}
    expected |= {"fragmented": 4 * 8, "drained": 4 * 10, "unwanted": 4 * 2 + 1 * 10}
    assert found.shares == parts(**{name: part / 300 for name, part in expected.items()})
    assert found.drain.tolist() == [8, 10]
    assert (found.recorded, found.recorded_shares) == (None, {})
    assert not any(levels.any() for levels in found.histogram())


def test_a_job_that_moves_before_it_starts_was_never_where_it_left(make_trace):
    """A start waits for a decision that takes time; a migration of that decision does not."""
    moves = [(0, 0, row(4, 4), row(0, 4), 3.0)]
    schedule = schedule_of(LINE, (2, 14, row(0, 4)), (1, 11, row(4, 4)), migrations=moves)
    found = node_time(make_trace((0, 10, 10, 4), (0, 10, 10, 4)), LINE, schedule)
    assert found.held.tolist() == [0, 4, 8, 8, 4, 0]
    expected = {"running": 40 + 44, "migrating": 4, "undecided": 10 + 6, "unwanted": 2 * 9 + 6 * 3}
    assert found.shares == parts(**{name: part / 140 for name, part in expected.items()})


def test_recording_is_from_eighty_percent_held_to_the_last_submission(make_trace):
    rows = ((0, 10, 10, 7), (2, 18, 18, 1), (8, 2, 2, 1), (16, 5, 5, 4))
    places = ((0, 10, row(0, 7)), (2, 20, row(7, 1)), (8, 10, row(8, 1)), (16, 21, row(0, 5)))
    found = node_time(make_trace(*rows), LINE, schedule_of(LINE, *places))
    assert found.recorded == (2, 16)
    # 2-8: 8 nodes, 8-10: 9, 10-16: one
    assert found.recorded_shares == parts(running=72 / 140, unwanted=68 / 140)
    held, running = found.histogram(10)
    assert held == pytest.approx([0, 6 / 14, 0, 0, 0, 0, 0, 0, 6 / 14, 2 / 14])
    assert running.tolist() == held.tolist()
    figures = found.summary()
    assert figures["occupied"] == figures["useful"] == pytest.approx(72 / 140)
    assert (figures["recorded_from"], figures["recorded_until"]) == (2, 16)
    assert figures["internal_fragmentation"] == pytest.approx(5 / (72 + 14 + 20 + 9))
    assert (figures["large_at_head"], figures["large_max_drain"]) == (1, 0)


def test_a_machine_on_which_nothing_ran_has_no_figures(make_trace):
    found = node_time(make_trace((0, 1, 1, 5)), LINE, schedule_of(LINE, None))
    assert (found.summary(), found.recorded) == ({}, None)
    assert np.isnan(found.drain).all()


@dataclass
class Restless(Policy):
    """Starts each job in the first free box; sometimes takes a running one elsewhere."""

    machines: ClassVar[frozenset[str]] = frozenset({"torus"})
    execution: ClassVar[str] = "migration"
    enforces_limits: ClassVar[bool] = False
    migrate: bool = True
    interval: float = 0.0

    def admits(self, job, system):
        torus = system.machine.emptied()
        return self.place(torus, system.processors[job]) is not None

    def place(self, torus, processors):
        routers = -(-processors // torus.nodes_per_router)
        return first_fit(torus.boxes.free, torus.grid, shapes(routers, torus.grid))

    def decide(self, system):
        torus = system.machine
        for job in system.queue[:]:
            box = self.place(torus, system.processors[job])
            if box is not None:
                yield Start(job, box)
        for job in list(system.held)[: int(system.now) % 3 if self.migrate else 0]:
            extent = system.held[job].extent
            free = anchors(torus.boxes.free, torus.grid, extent)
            if len(free):
                yield Migrate({job: Box(*free[-1].tolist(), *extent)}, frozenset({job}))


def boxes_on(grid):
    sides = [range(1, side + 1) for side in grid.shape]
    boxes = (Box(*each) for each in itertools.product(*map(range, grid.shape), *sides))
    return [box for box in boxes if not grid.mistake(box)]


def replayed(run, now):
    """Return held and running nodes and the parts at an instant, from a look at every router."""
    torus, trace, schedule = run.machine, run.trace, run.schedule
    free = torus.emptied().boxes.free
    here = dict.fromkeys(PARTS, 0)
    for job in np.flatnonzero((schedule.start <= now) & (schedule.end > now)):
        moves = [one for one in schedule.migrations if one.job == job]
        done = [one for one in moves if one.time <= now]
        place = done[-1].taken if done else moves[0].left if moves else schedule.resources[job]
        box = Box(*torus.boxes_of([place])[0].tolist())
        assert free[torus.grid.routers_of(box)].all()
        free[torus.grid.routers_of(box)] = False
        stopped = done and now < done[-1].time + done[-1].delay
        here["migrating" if stopped else "running"] += int(trace.processors[job])
        here["internal"] += box.volume * torus.nodes_per_router - int(trace.processors[job])
    waits = (trace.submit <= now) & ~(schedule.start <= now) & (schedule.state != "REJECTED")
    if not waits.any():
        why = "unwanted"
    else:
        routers = -(-trace.processors[waits.argmax()] // torus.nodes_per_router)
        found = (box for box in boxes_on(torus.grid) if box.volume >= routers)
        if routers > free.sum():
            why = "drained"
        elif any(free[torus.grid.routers_of(box)].all() for box in found):
            why = "undecided"
        else:
            why = "fragmented"
    here[why] = int(free.sum()) * torus.nodes_per_router
    return here


def at_head(run, job):
    """Return for how long a job was the head of the queue, from a look at those before it."""
    trace, schedule = run.trace, run.schedule
    before = [one for one in range(job) if schedule.state[one] != "REJECTED"]
    since = max([trace.submit[job], *schedule.start[before]])
    return schedule.start[job] - since if schedule.start[job] >= since else np.nan


dozen = st.integers(1, 12)


@given(
    rows=st.lists(st.tuples(st.integers(0, 25), dozen, dozen, dozen), min_size=1, max_size=14),
    shape=st.sampled_from([(2, 3, 3), (1, 3, 4), (3, 2, 2)]),
    wrap=st.tuples(*[st.booleans()] * 3),
    nodes_per_router=st.integers(1, 2),
    holes=st.sampled_from([(), ("1x1x2@0,1,0",)]),
    migrate=st.booleans(),
    interval=st.sampled_from([0.0, 4.0]),
)
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_it_says_what_a_look_at_every_router_says(
    make_trace, rows, shape, wrap, nodes_per_router, holes, migrate, interval
):
    torus = Torus(shape, nodes_per_router, wrap=wrap, holes=holes)
    policy = Restless(migrate=migrate, interval=interval)
    delays = {"restart": 1.0, "per_node": 0.25}
    run = simulate(make_trace(*rows), torus, policy, settings=delays, check=True)
    if not np.isfinite(run.end).any():
        return
    found = node_time(run.trace, run.machine, run.schedule)
    parts = [replayed(run, now) for now in found.time]
    assert {sum(here.values()) for here in parts} == {torus.size}
    assert found.running.tolist() == [here["running"] for here in parts]
    held = [here["running"] + here["migrating"] + here["internal"] for here in parts]
    assert found.held.tolist() == held
    spans = np.diff(found.time)

    def shares(begin, end):
        within = [[here[name] for name in PARTS] for here in parts[begin:end]]
        total = spans[begin:end].sum() * torus.size
        return dict(zip(PARTS, spans[begin:end] @ np.array(within) / total))

    assert found.shares == pytest.approx(shares(0, len(spans)))
    assert sum(found.shares.values()) == pytest.approx(1)
    assert found.shares["running"] == pytest.approx(run.summary["utilization"])
    assert found.time[0] == run.trace.submit[0]
    assert found.time[-1] == np.nanmax(run.end)
    last = min(run.trace.submit[-1], found.time[-1])  # later ones were rejected
    begin = next((k for k, nodes in enumerate(held) if nodes >= 0.8 * torus.size), None)
    if begin is None or found.time[begin] >= last:
        assert (found.recorded, found.recorded_shares) == (None, {})
    else:
        end = found.time.tolist().index(last)
        assert found.recorded == (found.time[begin], found.time[end])
        assert found.recorded_shares == pytest.approx(shares(begin, end))
        assert [levels.sum() for levels in found.histogram(7)] == pytest.approx([1, 1])
    large = np.flatnonzero(run.trace.processors >= run.summary["large_from"])
    for job, drain in zip(large, found.drain, strict=True):
        expected = np.nan if run.state[job] == "REJECTED" else at_head(run, job)
        assert drain == pytest.approx(expected, nan_ok=True)


@pytest.mark.parametrize("convex", [False, True])
@pytest.mark.parametrize("wrap", [(True, True, True), (False, True, False), (False, False, True)])
def test_the_kernel_says_what_holds_says(wrap, convex):
    rng = np.random.default_rng(5)
    grid = Grid((3, 4, 5), wrap, convex)
    free = np.ones(grid.shape, bool)
    held, steps = [], []
    for need in rng.integers(0, 25, 400).tolist():
        extent = tuple(rng.integers(1, 4, 3).tolist())
        found = anchors(free, grid, extent)
        release = bool(held) and (len(found) == 0 or rng.random() < 0.4)
        if release:
            box = held.pop(rng.integers(len(held)))
        else:
            box = Box(*rng.choice(found).tolist(), *extent)
            held.append(box)
        free[grid.routers_of(box)] = release
        steps.append((box, release, need, need > 0 and holds(free, grid, need)))
    boxes, releases, needs, expected = zip(*steps)
    changes = np.array(boxes), np.array(releases), np.arange(401), np.array(needs)
    empty = words_of(np.ones(grid.shape, bool), grid)
    found = free_box_holds(empty, *changes, grid.shape[2], grid.wrap, grid.longest)
    assert 50 < sum(expected) < 350
    assert found.tolist() == list(expected)


MANY_INSTANTS = """
import numpy as np
from optsched.machines.torus import Torus
from optsched.metrics.node_time import node_time
from optsched.schedule import Schedule
from optsched.traces.trace import Trace

jobs = 20_000
times = np.random.default_rng(5).random((2, jobs)).cumsum(axis=1)
torus = Torus((1, 1, 10))
end, state = times[0] + times[1] % 1, np.full(jobs, "finished")
schedule = Schedule(start=times[0], end=end, state=state, resources=["0"] * jobs, decisions=0)
numbers, ones = np.arange(jobs), np.ones(jobs, int)
trace = Trace(numbers, numbers // 3, ones, ones, ones, name="many")
print(node_time(trace, torus, schedule).shares)
"""


def test_the_shares_are_the_same_with_any_number_of_threads():
    command = [sys.executable, "-c", MANY_INSTANTS]
    environments = (os.environ | {"OPENBLAS_NUM_THREADS": threads} for threads in "12")
    one, two = (subprocess.check_output(command, env=each) for each in environments)
    assert one == two


def test_a_run_has_the_figures_and_its_page_shows_them(make_trace, tmp_path):
    run = simulate(make_trace(*JOBS), "torus:1x2x5", Restless(), large_from=4)
    summary = run.summary
    assert "fragmentation" not in run.metrics
    measured = run.metrics["node-time"]
    assert measured.summary().items() <= summary.items()
    for name, shares in zip(("recorded_held", "recorded_running"), measured.histogram()):
        levels = {str(5 * level): share for level, share in enumerate(shares) if share}
        assert summary[name] == pytest.approx(levels)
    page = save(run, tmp_path / "run") / "report.html"
    written = json.loads((tmp_path / "run" / "summary.json").read_text())
    assert written["node_time"] == pytest.approx(summary["node_time"])
    assert "Node time, recorded node time, by part." in page.read_text()
    on_a_line = simulate(make_trace(*JOBS), "torus:1x2x5", "fcfs")
    assert "node-time" not in on_a_line.metrics
    assert "node_time" not in on_a_line.summary
