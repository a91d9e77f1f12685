"""Paging: jobs that share a node slow down when its memory does not hold them."""

from dataclasses import replace
from itertools import combinations
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from optsched import simulate
from optsched.column_sets import columns_on_file
from optsched.errors import InputError
from optsched.executions.paging import Paging
from optsched.machines.matrix import Matrix


def paged(trace, columns=1, mpl=3, **settings):
    settings = {"mpl": mpl, "sharing": "nodes"} | settings
    machine = f"matrix:{columns}"
    return simulate(trace, machine, "gang", settings=settings, execution="paging", check=True)


@pytest.mark.parametrize(
    ("memory", "jobs", "expected"), [(128, 2, 200), (256, 2, 200), (256, 3, 300), (128, 3, 1050)]
)
def test_three_jobs_of_45_mb_page_in_128_mb_as_in_figure_9(memory, jobs, expected, make_trace):
    trace = make_trace(*[(0, 100, 100, 1)] * jobs)
    run = paged(trace, node_memory=memory, job_memory=45)
    assert run.end.tolist() == pytest.approx([expected] * jobs)
    assert run.summary["paged_jobs"] == (jobs if expected > 300 else 0)


def test_a_job_pages_while_one_of_its_nodes_is_short(make_trace):
    # the first job holds both nodes; the second shares one from 10 s on, for as long as it needs
    trace = make_trace((0, 100, 100, 2), (10, 15, 15, 1))
    run = paged(trace, columns=2, node_memory=100, job_memory=60, slowdown=3.0)
    # both at 1/2 and 1/3: 15 s of work take 90 s; the first has done 10 + 15 s of work by then
    assert run.end.tolist() == pytest.approx([175, 100])
    # in its 45 s of turns it did 15 s of work
    assert run.jobs.paging_time.tolist() == pytest.approx([30, 30])
    assert run.summary["paging_processor_hours"] == pytest.approx((30 * 2 + 30) / 3600)


def test_the_memory_that_a_trace_states_counts(make_trace):
    trace = make_trace((0, 100, 100, 1), (0, 100, 100, 1))
    stated = replace(trace, memory=np.array([700 * 1024, -1]))
    assert paged(stated, node_memory=1000, job_memory=200).summary["paged_jobs"] == 0
    assert paged(stated, node_memory=1000, job_memory=400).summary["paged_jobs"] == 2


def test_on_nodes_of_its_own_a_job_pages_when_it_is_too_large_alone(make_trace):
    trace = replace(make_trace((0, 10, 40, 1), (0, 10, 40, 1)), memory=np.array([2048, 512]))
    settings = {"node_memory": 1.0}
    run = simulate(trace, "nodes:2", "fcfs", settings=settings, execution="paging", check=True)
    assert run.end.tolist() == [35, 10]
    assert run.jobs.paged.tolist() == [1, 0]


row = st.tuples(st.integers(0, 40), st.integers(1, 30), st.integers(1, 4), st.integers(1, 9))


@given(st.lists(row, min_size=1, max_size=10).map(sorted))
def test_only_jobs_on_short_nodes_page(make_trace, jobs):
    memory = np.array([job[-1] for job in jobs])
    trace = make_trace(*((submit, time, time, size) for submit, time, size, _ in jobs))
    trace = replace(trace, memory=memory * 1024)
    run = paged(trace, columns=4, mpl=4, node_memory=12.0)
    assert run.summary["finished"] == len(jobs)
    lost = run.jobs.paging_time.to_numpy()
    assert run.schedule.run_time == pytest.approx(run.trace.runtime + lost)
    assert ((lost > 1e-9) <= (run.jobs.paged == 1)).all()
    if 4 * memory.max() <= 12:
        assert not run.jobs.paged.any()
    held = [columns_on_file(text, 4) for text in run.resources]
    for one, other in combinations(range(len(jobs)), 2):
        together = min(run.end[one], run.end[other]) > max(run.start[one], run.start[other])
        if together and held[one] & held[other] and memory[one] + memory[other] > 12:
            assert run.jobs.paged[one]
            assert run.jobs.paged[other]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"node_memory": 0}, "node_memory 0.* expected MB above 0"),
        ({"job_memory": "-1"}, "job_memory -1.0; expected MB above 0"),
        ({"slowdown": 0.5}, "slowdown 0.5; expected a number from 1"),
        ({"slowdown": 1001.0}, "slowdown .*; expected"),
        ({"variation": -0.5}, "variation -0.5; expected a number from 0"),
        ({"draw": -1}, "draw -1; expected a whole number from 0"),
    ],
)
def test_settings_that_make_no_sense_are_refused(settings, message, make_trace):
    with pytest.raises(InputError, match=message):
        paged(make_trace((0, 10, 10, 1)), **settings)


def test_a_job_may_need_any_memory_that_a_trace_can_state(make_trace):
    trace = make_trace(*[(0, 100, 100, 1)] * 3)
    run = paged(replace(trace, memory=np.full(3, 2**53)), node_memory=1e9)
    assert run.summary["paged_jobs"] == 3
    assert run.end.tolist() == pytest.approx([1050] * 3)


def test_drawn_memory_has_the_mean_and_variation_that_are_asked_for(make_trace):
    trace = make_trace(*[(0, 1, 1, 1)] * 20_000)
    execution = Paging(node_memory=1e6, job_memory=100.0, variation=2.0, draw=3)
    system = SimpleNamespace(machine=Matrix(1))
    execution.begin(system, trace)
    memory = np.array(execution._memory) / 1024
    assert memory.mean() == pytest.approx(100, rel=0.05)
    assert memory.std() / memory.mean() == pytest.approx(2.0, rel=0.05)
    execution.begin(system, replace(trace, memory=np.full(len(trace), 7 * 1024)))
    assert set(execution._memory) == {7 * 1024}


def test_jobs_that_page_are_those_of_the_draw(make_trace):
    trace = make_trace(*[(0, 100, 100, 1)] * 12)

    def paged_jobs(**settings):
        run = paged(trace, columns=12, node_memory=100.0, job_memory=90.0, **settings)
        return run.jobs["paged"].tolist()

    assert not any(paged_jobs())
    one, again, other = (paged_jobs(variation=1.0, draw=draw) for draw in (1, 1, 2))
    assert any(one)
    assert one == again != other
