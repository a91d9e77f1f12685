"""Reservations by runs of like jobs against the plain statement: every job is placed again."""

from dataclasses import replace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from policies import workloads

from optsched import simulate
from optsched.policies.conservative import Conservative


class Plain(Conservative):
    """Conservative backfilling that places every job again from the first event on."""

    def begin(self, system):
        super().begin(system)
        self._leave_runs([])


def of_kinds(jobs, kinds):
    """Return jobs whose requests and sizes are multiples of so many."""
    return [
        (gap, runtime, -(-(runtime + slack) // kinds) * kinds - runtime, -(-size // kinds) * kinds)
        for gap, runtime, slack, size in jobs
    ]


@given(workloads.jobs(8, most=60), st.integers(1, 8), workloads.orders, workloads.units)
@settings(max_examples=600, deadline=None)
def test_runs_of_like_jobs_move_as_the_jobs_do_one_by_one(jobs, kinds, order, unit):
    """Few kinds make long runs."""
    trace = workloads.trace_of(of_kinds(jobs, kinds), unit)
    by_runs, plain = (
        simulate(trace, "nodes:16", one(), event_order=order, check=True)
        for one in (Conservative, Plain)
    )
    assert by_runs.start.tolist() == plain.start.tolist()
    assert by_runs.resources == plain.resources


def test_reservations_that_are_not_kept_end_the_runs(make_trace, monkeypatch):
    """A run time within the tolerance above the request: processors are held a little longer."""
    refused, original = [], Conservative._leave_runs

    def noting(self, jobs):
        refused.append(list(jobs))
        original(self, jobs)

    monkeypatch.setattr(Conservative, "_leave_runs", noting)
    trace = make_trace((0, 10 + 5e-7, 10, 4), (1, 9, 10, 4), (2, 5, 10, 4), (10, 10, 10, 4))
    trace = replace(trace, requested_time=np.full(4, 10.0))
    run = simulate(trace, "nodes:4", Conservative(), check=True, compiled_from=0)
    assert refused == [[1]]  # at 10 s, when job 4 is submitted
    plain = simulate(trace, "nodes:4", Plain())
    alone = simulate(trace, "nodes:4", "conservative", compiled_from=0)
    assert run.start.tolist() == plain.start.tolist() == alone.start.tolist()
