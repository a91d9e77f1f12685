"""Jobs that have their processors for a share of the time: integrated exactly."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from optsched import simulate
from optsched.column_sets import lowest
from optsched.extend import ExecutionModel, Move, Policy, Share, Start
from optsched.machines.matrix import Slice
from optsched.traces.trace import Header


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


class Swap(Policy):
    """Starts two jobs that overlap in two rows, and lets them change places when a third comes."""

    machines = frozenset({"matrix"})

    def decide(self, system):
        if system.now == 0:
            return [Start(0, Slice(0, 0b011)), Start(1, Slice(1, 0b110))]
        if system.now == 5:
            return [Move({0: Slice(1, 0b011), 1: Slice(0, 0b110)})]
        return []


def test_jobs_that_change_places_do_so_all_at_once(make_trace):
    trace = make_trace((0, 10, 10, 2), (0, 10, 10, 2), (5, 10, 10, 1))
    run = simulate(trace, "matrix:3", Swap(), check=True, journal=True)
    moves = run.journal.frame.query("event == 'move'")
    assert moves[["job", "detail"]].values.tolist() == [[0, "row 1: 0-1"], [1, "row 0: 1-2"]]
    assert run.end.tolist()[:2] == [10, 10]


@pytest.mark.parametrize("share", [-0.5, 1.5, float("nan")])
def test_a_share_is_from_0_to_1(share, make_trace):
    class SharesWrongly(ProcessorSharing):
        def decide(self, system):
            return [Start(0, Slice(0, 1)), Share(0, share)]

    with pytest.raises(ValueError, match="expected from 0 to 1"):
        simulate(make_trace((0, 10, 10, 1)), "matrix:1", SharesWrongly())


def test_the_machine_is_of_the_kind_that_the_policy_runs_on(make_trace):
    trace = make_trace((0, 10, 10, 1)).changed(header=Header((("MaxProcs", "7"),)))
    assert simulate(trace, policy=ProcessorSharing()).machine.spec == "matrix:7"
