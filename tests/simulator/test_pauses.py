"""Jobs that have their processors for a share of the time, or are stopped, moved and restarted."""

from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import ClassVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from optsched import simulate
from optsched.boxes.box import Box
from optsched.column_sets import lowest
from optsched.executions.migration import MigrationDelay
from optsched.extend import ExecutionModel, InputError, Migrate, Move, Policy, Share, Start, Wake
from optsched.machines.matrix import Slice
from optsched.traces.trace import Header


@dataclass
class Scripted(Policy):
    """A policy with a script: the actions of each time."""

    script: dict = field(default_factory=dict)
    machines: ClassVar = frozenset({"matrix", "torus"})

    def decide(self, system):
        yield from (Wake(at) for at in self.script if system.now == 0 and at > 0)
        yield from self.script.get(system.now, ())


class ProcessorSharing(Policy):
    """Every job starts at once, in a row of its own, and all have the same share."""

    machines = frozenset({"matrix"})
    enforces_limits = False

    def decide(self, system):
        for job in system.queue[:]:
            rows = system.machine.rows
            row = rows.index(0) if 0 in rows else len(rows)
            yield Start(job, Slice(row, lowest(2**system.machine.size - 1, system.processors[job])))
        for job in system.held:
            yield Share(job, 1 / len(system.held))


def exact_ends(jobs):
    """Return when each of (submit, runtime) ends under processor sharing, in exact fractions."""
    left = {job: Fraction(runtime) for job, (_, runtime) in enumerate(jobs)}
    now, present, ends = Fraction(0), [], {}
    coming = list(range(len(jobs)))
    while coming or present:
        moments = [now + left[job] * len(present) for job in present]
        after = min(moments + [Fraction(jobs[job][0]) for job in coming[:1]])
        for job in present:
            left[job] -= (after - now) / len(present)
        now = after
        for job in [job for job in present if left[job] == 0]:
            present.remove(job)
            ends[job] = now
        while coming and jobs[coming[0]][0] == now:
            present.append(coming.pop(0))
    return [ends[job] for job in range(len(jobs))]


@given(
    st.lists(st.tuples(st.integers(0, 60), st.integers(1, 50)), min_size=1, max_size=12).map(sorted)
)
def test_processor_sharing_is_integrated_exactly(make_trace, jobs):
    trace = make_trace(*((submit, runtime, runtime, 1) for submit, runtime in jobs))
    run = simulate(trace, "matrix:1", ProcessorSharing(), check=True)
    assert run.end.tolist() == pytest.approx([float(end) for end in exact_ends(jobs)], rel=1e-12)
    assert run.schedule.run_time == pytest.approx(run.trace.runtime, rel=1e-9)
    assert run.summary["utilization"] == pytest.approx(
        float(run.trace.runtime.sum()) / run.summary["makespan"]
    )


def test_pauses_are_told_apart_from_run_time(make_trace):
    # both run at half share from 10 on; the first has 10 s left then, the second 20 s
    trace = make_trace((0, 20, 20, 1), (10, 20, 20, 1))
    run = simulate(trace, "matrix:1", ProcessorSharing(), journal=True)
    assert run.end.tolist() == [30, 40]
    assert run.jobs.paused_time.tolist() == [10, 10]
    assert run.summary["mean_pause"] == 10
    assert run.jobs.execution_time.tolist() == [30, 30]
    assert run.jobs.stretch.tolist() == [1.5, 1.5]
    assert run.summary["utilization"] == 1.0
    assert "share" in set(run.journal.frame.event)


class Half(ExecutionModel):
    """Every job takes twice as long."""

    def started(self, job, allocation, system):
        return ((job, 0.5),)


def test_share_and_speed_multiply_and_only_the_share_is_a_pause(make_trace):
    trace = make_trace((0, 10, 10, 1), (0, 10, 10, 1))
    run = simulate(trace, "matrix:1", ProcessorSharing(), execution=Half())
    assert run.end.tolist() == [40, 40]
    assert run.schedule.paused.tolist() == [20, 20]
    assert run.summary["killed"] == 0  # the policy enforces no limits


def test_jobs_that_change_places_do_so_all_at_once(make_trace):
    starts = [Start(0, Slice(0, 0b011)), Start(1, Slice(1, 0b110))]
    script = {0: starts, 5: [Move({0: Slice(1, 0b011), 1: Slice(0, 0b110)})]}
    trace = make_trace((0, 10, 10, 2), (0, 10, 10, 2))
    run = simulate(trace, "matrix:3", Scripted(script), check=True, journal=True)
    moves = run.journal.frame.query("event == 'move'")
    assert moves[["job", "detail"]].values.tolist() == [[0, "row 1: 0-1"], [1, "row 0: 1-2"]]
    assert run.end.tolist() == [10, 10]


@pytest.mark.parametrize("share", [-0.5, 1.5, float("nan")])
def test_a_share_is_from_0_to_1(share, make_trace):
    script = {0: [Start(0, Slice(0, 1)), Share(0, share)]}
    with pytest.raises(ValueError, match="expected from 0 to 1"):
        simulate(make_trace((0, 10, 10, 1)), "matrix:1", Scripted(script))


def test_the_machine_is_of_the_kind_that_the_policy_runs_on(make_trace):
    trace = make_trace((0, 10, 10, 1)).changed(header=Header((("MaxProcs", "7"),)))
    assert simulate(trace, policy=ProcessorSharing()).machine.spec == "matrix:7"
    with pytest.raises(InputError, match=r"'torus' runs on torus:XxYxZ.* name a machine"):
        simulate(trace, policy="torus")


BOXES = [Box(x, 0, 0, 1, 1, 1) for x in range(4)]
LEFT, RIGHT, *_ = BOXES

JOB = (0, 100, 100, 1)


def run(trace, script, execution=None, nodes=2):
    given = {"execution": execution, "check": True, "journal": True}
    return simulate(trace, f"torus:{nodes}x1x1", Scripted(script), **given)


def test_a_migrated_job_loses_time_and_is_not_killed_for_it(make_trace):
    script = {0: [Start(0, LEFT)], 40: [Migrate({0: RIGHT})]}
    found = run(make_trace(JOB), script, MigrationDelay(restart=25, per_node=5))
    assert found.end.tolist() == [130]
    assert found.summary["killed"] == 0
    assert found.schedule.paused.tolist() == [30]
    assert found.jobs["stretch"].tolist() == [1.3]
    assert found.jobs[["migrations", "migration_delay", "paused_time"]].values.tolist() == [
        [1, 30, 30]
    ]
    assert found.jobs["box"].tolist() == ["1x1x1@1,0,0"]
    assert found.migrations.values.tolist() == [
        [40.0, 1, "1x1x1@0,0,0", "1x1x1@1,0,0", False, 30.0]
    ]
    assert ("migrate", 0, "1x1x1@1,0,0") in [entry[1:] for entry in found.journal.entries]
    figures = {"migrations": 1, "migrated_jobs": 1, "parked": 0, "mean_migration_delay": 30.0}
    assert figures.items() <= found.summary.items()
    assert found.summary["migration_processor_hours"] == 30 / 3600


@pytest.mark.parametrize(
    ("limit", "execution", "end"),
    [(200, None, 100), (60, None, 60), (60, MigrationDelay(restart=20, per_node=0), 80)],
)
def test_migration_is_free_without_a_model_and_puts_limits_off_with_one(
    limit, execution, end, make_trace
):
    trace = replace(make_trace(JOB), requested_time=np.array([limit]))
    found = run(trace, {0: [Start(0, LEFT)], 40: [Migrate({0: RIGHT})]}, execution)
    assert (found.end.tolist(), found.summary["killed"]) == ([end], end < 100)
    assert len(found.migrations) == 1


@pytest.mark.parametrize(("bandwidth", "delays"), [("own", [25, 50]), ("shared", [35, 70])])
def test_jobs_that_change_places_may_share_the_bandwidth(make_trace, bandwidth, delays):
    swap = Migrate({0: RIGHT, 1: LEFT}, parked=frozenset({1}))
    script = {0: [Start(0, LEFT), Start(1, RIGHT)], 40: [swap]}
    execution = MigrationDelay(restart=15, per_node=10, bandwidth=bandwidth)
    found = run(make_trace(JOB, JOB), script, execution)
    assert found.migrations["delay"].tolist() == delays
    assert found.migrations["parked"].tolist() == [False, True]
    assert found.end.tolist() == [100 + delay for delay in delays]


def test_a_job_that_migrates_while_it_restarts_begins_its_restart_again(make_trace):
    script = {0: [Start(0, LEFT)], 40: [Migrate({0: RIGHT})], 45: [Migrate({0: LEFT})]}
    found = run(make_trace(JOB), script, MigrationDelay(restart=20, per_node=0))
    assert found.end.tolist() == [125]  # 40 to 65 without progress
    assert found.schedule.paused.tolist() == [25]
    assert found.migrations["delay"].tolist() == [20, 20]
    assert found.jobs["migration_delay"].tolist() == [25]
    assert found.summary["mean_migration_delay"] == 12.5


def test_a_job_that_migrates_twice_at_one_instant_is_stopped_once(make_trace):
    twice = [Migrate({0: BOXES[2], 1: BOXES[3]}), Migrate({0: RIGHT}, parked=frozenset({0}))]
    script = {0: [Start(0, LEFT), Start(1, RIGHT)], 40: twice}
    found = run(make_trace(JOB, JOB), script, MigrationDelay(restart=20, per_node=0), nodes=4)
    assert found.migrations.values.tolist() == [
        [40.0, 1, "1x1x1@0,0,0", "1x1x1@1,0,0", True, 40.0],
        [40.0, 2, "1x1x1@1,0,0", "1x1x1@3,0,0", False, 20.0],
    ]
    lost = found.jobs["migration_delay"].tolist()
    assert lost == found.migrations["delay"].tolist() == found.schedule.paused.tolist()
    assert found.summary["migrations"] == 2


def test_a_job_that_starts_now_loses_nothing(make_trace):
    script = {0: [Start(0, LEFT), Migrate({0: RIGHT})]}
    found = run(make_trace(JOB), script, MigrationDelay(restart=20, per_node=0))
    assert found.end.tolist() == [100]
    assert not len(found.migrations)
    assert found.jobs["box"].tolist() == ["1x1x1@1,0,0"]


@pytest.mark.parametrize("name", ["restart", "per_node"])
def test_seconds_are_not_negative(name):
    with pytest.raises(InputError, match=f"{name} -1; expected seconds from 0"):
        MigrationDelay(**{name: -1})
