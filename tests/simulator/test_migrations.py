"""Jobs that are stopped, moved and restarted."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np
import pytest

from optsched import simulate
from optsched.boxes.box import Box
from optsched.executions.migration import MigrationDelay
from optsched.extend import InputError, Migrate, Policy, Start, Wake

BOXES = [Box(x, 0, 0, 1, 1, 1) for x in range(4)]
LEFT, RIGHT, *_ = BOXES

JOB = (0, 100, 100, 1)


@dataclass
class Scripted(Policy):
    """Does at each time what it is told."""

    script: dict = field(default_factory=dict)
    machines: ClassVar = frozenset({"torus"})

    def decide(self, system):
        yield from (Wake(at) for at in self.script if system.now == 0 and at > 0)
        yield from self.script.get(system.now, ())


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


def test_without_an_execution_model_migration_is_free(make_trace):
    found = run(make_trace(JOB), {0: [Start(0, LEFT)], 40: [Migrate({0: RIGHT})]})
    assert found.end.tolist() == [100]
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


def test_a_limit_is_put_off_by_what_migration_took(make_trace):
    trace = replace(make_trace(JOB), requested_time=np.array([60]))
    script = {0: [Start(0, LEFT)], 40: [Migrate({0: RIGHT})]}
    found = run(trace, script, MigrationDelay(restart=20, per_node=0))
    assert found.end.tolist() == [80]
    assert found.summary["killed"] == 1


@pytest.mark.parametrize("name", ["restart", "per_node"])
def test_seconds_are_not_negative(name):
    with pytest.raises(InputError, match=f"{name} -1; expected seconds from 0"):
        MigrationDelay(**{name: -1})
