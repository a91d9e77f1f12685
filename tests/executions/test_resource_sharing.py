"""Jobs on nodes whose shared resources saturate, and the figures of that."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from policies.workloads import jobs_with

from optsched import simulate
from optsched.column_sets import columns_on_file
from optsched.errors import InputError


def run(trace, machine="smp:1x4", policy="fcfs"):
    return simulate(trace, machine, policy, execution="resource-sharing", check=True)


def test_two_jobs_over_the_capacity_of_a_node():
    # from 50 s on they demand 8,000 of 6,000 MB/s: both run at 3/4 of their speed
    found = run(jobs_with((0, 300, 9999, 2, 2000), (50, 100, 9999, 2, 2000)))
    assert found.end.tolist() == pytest.approx([50 + 100 / 0.75 + 150, 50 + 100 / 0.75])
    assert found.jobs["penalised_time"].tolist() == pytest.approx([100 / 3, 100 / 3])
    assert found.jobs["penalised_percent"].tolist() == pytest.approx([100 / 9, 100 / 3])
    summary = found.summary
    assert summary["penalised_jobs"] == 2
    assert summary["mean_penalised_percent"] == pytest.approx((100 / 9 + 100 / 3) / 2)
    assert summary["penalised_processor_hours"] == pytest.approx(4 * 100 / 3 / 3600)


def test_a_job_is_as_slow_as_on_the_worst_of_its_nodes():
    # processors 0-3 and 4-5; the second job saturates the second node only
    found = run(jobs_with((0, 100, 999, 6, 1500), (0, 100, 999, 2, 6000)), "smp:2x4")
    speed = 1 / ((2 * 1500 + 2 * 6000) / 6000)
    assert found.end.tolist() == pytest.approx([100 / speed, 100 / speed])


def test_penalties_of_several_resources_add_up():
    trace = jobs_with((0, 100, 999, 4, 2000), network=[100])
    machine = "smp:1x4:bandwidth=6000:network=256"
    penalty = (8000 / 6000 - 1) + (400 / 256 - 1)
    assert run(trace, machine).end.tolist() == pytest.approx([100 * (1 + penalty)])


def test_what_it_needs_is_told():
    trace = jobs_with((0, 1, 1, 1, 1))
    with pytest.raises(InputError, match=r"is for nodes that share resources \(smp\), not nodes:4"):
        run(trace, "nodes:4")
    with pytest.raises(InputError, match="bandwidth: expected whole numbers"):
        run(trace.annotated(bandwidth=np.array([0.5])))


@pytest.mark.parametrize(
    ("jobs", "machine", "said"),
    [
        ([(0, 1, 1, 1, 10**9 + 1)], "smp:1x4", "bandwidth: 1000000001 in job 1; expected a demand"),
        ([(0, 1, 1, 1, 10**9)], "smp:1x1:bandwidth=1:x=999999937", "too large to be counted"),
    ],
)
@pytest.mark.parametrize("policy", ["easy", "sjbf"])
def test_numbers_that_no_problem_can_hold_are_refused_at_once(jobs, machine, said, policy):
    with pytest.raises(InputError) as raised:
        run(jobs_with(*jobs), machine, policy)
    assert said in str(raised.value)


def rows(latest, longest, limits, widest, demands):
    """Return the strategy that draws jobs, of limits and demands among those given."""
    times = st.integers(0, latest), st.integers(1, longest), st.sampled_from(limits)
    row = st.tuples(*times, st.integers(1, widest), st.sampled_from(demands))
    return st.lists(row, min_size=1, max_size=8)


@given(
    jobs=rows(50, 100, [100, 10**5, 10**7, 10**9], 6, [0, 1, 10**3, 10**6, 10**9]),
    capacity=st.sampled_from([1, 7, 6000, 10**6, 10**9]),
    policy=st.sampled_from(["sjbf", "rua"]),
)
def test_what_is_not_refused_at_once_runs_to_its_end(jobs, capacity, policy):
    trace, machine = jobs_with(*jobs), f"smp:2x3:bandwidth={capacity}"
    try:
        run(trace, machine, "fcfs")
    except InputError:  # the execution model looks first, whatever the policy
        with pytest.raises(InputError, match="too large to be counted"):
            run(trace, machine, policy)
    else:
        found = run(trace, machine, policy)
        assert found.summary["waiting"] == found.fallbacks == 0


def in_all(trace, machine, policy="fcfs", **other):
    chosen = {"settings": {"worst_node": "in-all"}, "execution": "resource-sharing"}
    return simulate(trace, machine, policy, **chosen, **other)


def test_penalties_of_different_nodes_at_different_times_do_not_add_up():
    # job 2 has a process on each node; job 3 doubles the time on the second node up to 20 s, and
    # job 4, in the place of job 1, that on the first from 50 to 70 s
    jobs = [(0, 50, 999, 1, 0), (0, 100, 999, 2, 1000), (0, 10, 999, 1, 5000)]
    trace, machine = jobs_with(*jobs, (50, 10, 999, 1, 5000)), "smp:2x2:bandwidth=3000"
    assert run(trace, machine).end.tolist() == pytest.approx([50, 100 + 10 + 10, 20, 70])
    found = in_all(trace, machine, check=True)
    assert found.end.tolist() == pytest.approx([50, 100 + 10, 20, 70])
    assert found.jobs["penalised_time"].tolist() == pytest.approx([0, 10, 10, 10])


def ends_of_processes(found, nodes, processors, capacity):
    """Return the exact ends of the jobs of a run, by its starts and places alone."""
    jobs = found.jobs
    demand = found.trace.annotations["bandwidth"].tolist()
    width = nodes * processors
    held = [columns_on_file(str(text), width) for text in jobs["allocated_resources"]]
    node = (1 << processors) - 1
    counts = [[(of >> n * processors & node).bit_count() for n in range(nodes)] for of in held]
    start = [Fraction(one) for one in found.start.tolist()]
    limit = [Fraction(int(one)) for one in found.trace.requested_time]
    left = {
        (job, node): Fraction(int(found.trace.runtime[job]))
        for job, held in enumerate(counts)
        for node, count in enumerate(held)
        if count
    }
    ends = {}
    now = min(start)
    while len(ends) < len(start):
        on = [job for job in range(len(start)) if start[job] <= now and job not in ends]
        done = [job for job in on if all(left.get((job, n), 0) <= 0 for n in range(nodes))]
        done += [job for job in on if job not in done and now >= start[job] + limit[job]]
        if done:
            ends |= dict.fromkeys(done, now)
            continue
        slow = [
            max(Fraction(sum(counts[job][n] * demand[job] for job in on), capacity), Fraction(1))
            for n in range(nodes)
        ]
        steps = [one - now for one in start if one > now]
        steps += [start[job] + limit[job] - now for job in on]
        steps += [left[job, n] * slow[n] for job, n in left if job in on and left[job, n] > 0]
        step = min(steps)
        for job, n in left:
            if job in on:
                left[job, n] -= step / slow[n]
        now += step
    return [float(ends[job]) for job in range(len(start))]


@given(jobs=rows(40, 60, [1, 2, 9], 8, [500, 1000, 2000, 4000]))
def test_jobs_whose_processes_run_for_themselves_end_as_by_hand(jobs):
    jobs = sorted((submit, run, run * slack, width, mb) for submit, run, slack, width, mb in jobs)
    found = in_all(jobs_with(*jobs), "smp:4x2:bandwidth=3000", check=True)
    assert found.end.tolist() == pytest.approx(ends_of_processes(found, 4, 2, 3000))
    single = jobs_with(*((s, r, q, min(p, 2), mb) for s, r, q, p, mb in jobs))
    instant = run(single, "smp:1x4:bandwidth=3000").end.tolist()
    assert in_all(single, "smp:1x4:bandwidth=3000").end.tolist() == pytest.approx(instant)
