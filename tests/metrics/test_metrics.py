"""Measures of summaries, free slots, and the parts of node time, by hand and node by node."""

import itertools
import json
import os
import subprocess
import sys
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from optsched import registry, simulate
from optsched.boxes.box import Box, Grid, shapes
from optsched.boxes.free_boxes import anchors, first_fit, holds, words_of
from optsched.content import bundled
from optsched.machines.torus import Torus
from optsched.metrics.fragmentation import fragmentation
from optsched.metrics.jobs import MEASURES, measures_of, unstated
from optsched.metrics.measure import Group, Measure
from optsched.metrics.node_time import PARTS, free_box_holds, node_time
from optsched.metrics.stretch import WINDOW, window_sessions
from optsched.numbers import MISSING
from optsched.report.saved import save
from optsched.schedule import Migration, Schedule, State
from optsched.simulator.execution import ExecutionModel
from optsched.simulator.policy import Migrate, Policy, Start
from optsched.traces.reading import read_trace
from optsched.traces.transformations import drawn

SAMPLES = bundled("traces") / "samples"
LOG, FILES = (str(SAMPLES / name) for name in ("sample-256.swf", "sample-8x20.rackham"))
SITE = "site:sample-site"
BOXES = {"settings": {"large": 32, "prepare": "ahead", "moves": 2}}

SYSTEMS = {
    "easy": (LOG, None, "easy", {}),
    "switches and rejections": (LOG, SITE, "placement", {}),
    "as-logged": (LOG, None, "as-logged", {}),
    "contiguity": (LOG, "nodes:256", "window", {"execution": "contiguity"}),
    "locality of jobs": (LOG, "torus:8x8x4", "window", {}),
    "boxes": (LOG, "torus:8x8x4", "torus", BOXES),
    "gang": (LOG, "matrix:256", "gang", {"execution": "paging", "settings": {"job_memory": 400}}),
    "file-loading": (FILES, "cluster:8x20", "locality", {}),
    "resource-sharing": (LOG, "smp:64x4", "rua", {}),
}


@pytest.mark.parametrize("system", SYSTEMS)
def test_every_key_of_a_summary_has_a_measure(system):
    path, machine, policy, options = SYSTEMS[system]
    trace = read_trace(path)
    if policy == "rua":
        trace = drawn(trace, "HIGH", seed=1)
    if policy == "as-logged":
        trace = trace.changed(wait=trace.job_id % 7 * 1000)
    options = {"jobs": None if path == FILES else (1, 120)} | options
    run = simulate(trace, machine, policy, **options)
    measures = measures_of(run.config)
    assert run.summary.keys() - measures.keys() == set()
    for key, value in run.summary.items():
        assert bool(measures[key].by) == isinstance(value, dict) or value is None, key


def test_the_systems_above_are_all_that_add_figures():
    used = {policy for _, _, policy, _ in SYSTEMS.values()}
    own = {name for name in registry.policies if adds(registry.policies[name], Policy, "figures")}
    assert own <= used
    executions = {name for name in registry.executions if registry.executions[name].measures}
    assert executions == {
        name
        for name in registry.executions
        if adds(registry.executions[name], ExecutionModel, "report")
    }


def adds(cls, base, method):
    return getattr(cls, method) is not getattr(base, method)


def test_a_key_has_the_same_measure_wherever_it_is_stated():
    owners = [
        registered[name]
        for registered in (registry.metrics, registry.policies, registry.executions)
        for name in registered
    ]
    stated = dict(MEASURES)
    for owner in owners:
        for key, measure in owner.measures.items():
            assert stated.setdefault(key, measure) == measure


@pytest.mark.parametrize(
    ("unit", "value", "text"),
    [
        *(("seconds", 105_400, "1.22 days"), ("seconds", 0.000_02, "20 µs")),
        *(("share", 0.4181, "41.81%"), ("processor-seconds", 36_000_000, "10,000 processor-hours")),
        *(("jobs", 54_034, "54,034 jobs"), ("nodes", 2.345_67, "2.346 nodes")),
        *(("", 4.117, "4.117"), ("seconds", float("nan"), MISSING), ("seconds", "none", "none")),
        *(("", True, "yes"), ("jobs", 10**400, str(10**400))),
    ],
)
def test_a_value_is_written_with_its_unit(unit, value, text):
    assert Measure("name", unit, Group.OTHER, "").text(value) == text


def test_what_nobody_states_is_named_by_its_key():
    assert unstated("idle_before_first_start").name == "idle before first start"
    assert unstated("x").text(np.float64(2.5)) == "2.5"


def test_a_session_ends_with_the_window_of_its_first_job():
    user = np.array([1, 2, 1, 1, 2, 1, -1, -1])
    submit = np.array([0, 10, 290, 301, 310, 601, 700, 700])
    # job 4 is 11 s after job 3, but 301 s after the job that opened the session
    assert window_sessions(user, submit).tolist() == [0, 1, 0, 2, 1, 2, 3, 4]


@given(st.lists(st.tuples(st.integers(-1, 3), st.integers(0, 400)), max_size=30))
def test_sessions_are_of_one_user_and_within_the_window(rows):
    user = np.array([who for who, _ in rows], dtype=np.int64)
    submit = np.cumsum([0, *(gap for _, gap in rows)])[: len(rows)]
    session = window_sessions(user, submit)
    assert sorted(set(session.tolist())) == list(range(len(set(session.tolist()))))
    for own in range(len(set(session.tolist()))):
        assert len(set(user[session == own].tolist())) == 1
        assert (user[session == own] != -1).all() or (session == own).sum() == 1
        assert np.ptp(submit[session == own]) <= WINDOW


NODES = 9


def nodes_of(text):
    for part in text.split():
        first, _, last = part.partition("-")
        yield from range(int(first), int(last or first) + 1)


times = st.integers(1, 9)
job = st.tuples(st.integers(0, 20), times, times, st.integers(1, NODES + 1))


@given(st.lists(job, min_size=1, max_size=12), st.sampled_from(["fcfs", "easy", "window"]))
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@example(rows=[(0, 1, 1, NODES + 1)], policy="fcfs")
def test_it_says_what_a_look_at_every_node_says(make_trace, rows, policy):
    trace = make_trace(*sorted(rows))
    run = simulate(trace, f"nodes:{NODES}", policy)
    found = fragmentation(run.trace, NODES, run.schedule)
    classes = np.zeros(found.classes.shape[1])
    rejected = run.state == "REJECTED"
    for k, now in enumerate(found.time):
        free = np.ones(NODES, bool)
        for job in np.flatnonzero((run.start <= now) & (run.end > now)):
            free[list(nodes_of(run.resources[job]))] = False
        waiting = run.trace.processors[~rejected & (run.trace.submit <= now) & (run.start > now)]
        wanted = waiting.min() if len(waiting) else 0
        edges = np.flatnonzero(np.diff(np.concatenate(([0], free.astype(int), [0]))))
        slots = (edges[1::2] - edges[::2]).tolist()
        assert found.free[k] == free.sum()
        assert found.slots[k] == len(slots)
        assert found.largest_slot[k] == max(slots, default=0)
        assert found.smallest_waiting[k] == wanted
        useless = sum(slot for slot in slots if slot < wanted <= free.sum())
        assert found.useless[k] == useless
        if k + 1 < len(found.time):
            for slot in slots:
                classes[slot.bit_length() - 1] += slot * (found.time[k + 1] - now)
    assert found.classes.sum(axis=0) == pytest.approx(classes)
    if rejected.all():  # nothing ever happens
        assert not found.classes.any()
        assert found.summary() == {}
        return
    stretch = np.arange(len(found.classes) + 1) * np.ptp(found.time) / len(found.classes)
    so_far = np.append(0, np.cumsum(found.free[:-1] * np.diff(found.time)))
    free = np.interp(stretch, found.time - found.time[0], so_far)
    assert found.classes.sum(axis=1) == pytest.approx(np.diff(free), abs=1e-6)


def test_the_summary_is_a_mean_over_time_and_nodes_apart_are_fragmentation(make_trace):
    # from 0 to 10 nodes 2-3 are busy, 10 to 20 all four; a job of three waits from 4 to 10
    trace = make_trace((0, 10, 10, 2), (0, 10, 10, 1), (4, 10, 10, 3))
    run = simulate(trace, "nodes:4", "fcfs")
    found = fragmentation(run.trace, 4, run.schedule)
    assert found.time.tolist() == [0, 4, 10, 20]
    figures = found.summary()
    assert figures["loss_of_capacity"] == 0  # one node free was never enough
    assert figures["external_fragmentation"] == 0
    assert figures["mean_slots"] == 1
    assert figures["free_by_slot_size"] == {"1": 1, "2": 0, "4": 0}
    assert run.summary["mean_largest_slot"] == figures["mean_largest_slot"] == 1
    # nodes 2-3 are busy from 0 to 20, four nodes are free around them from 10 on
    trace = make_trace((0, 10, 10, 2), (0, 20, 20, 2), (0, 10, 10, 2), (10, 5, 5, 4))
    figures = simulate(trace, "nodes:6", "window", settings={"interval": 0}).summary
    assert figures["external_fragmentation"] == pytest.approx(10 * 4 / (25 * 6))
    assert figures["loss_of_capacity"] == figures["external_fragmentation"]


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
    return [box for box in boxes if not grid.mistake(box) and grid.admits(box.extent)]


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
    convex=st.booleans(),
    nodes_per_router=st.integers(1, 2),
    holes=st.sampled_from([(), ("1x1x2@0,1,0",)]),
    migrate=st.booleans(),
    interval=st.sampled_from([0.0, 4.0]),
)
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_it_says_what_a_look_at_every_router_says(
    make_trace, rows, shape, wrap, convex, nodes_per_router, holes, migrate, interval
):
    torus = Torus(shape, nodes_per_router, wrap=wrap, holes=holes, convex=convex)
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
