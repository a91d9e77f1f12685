"""Reservations by runs of like jobs against the plain statement: every job is placed again."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from optsched import read_trace, simulate
from optsched.content import bundled
from optsched.policies.conservative import Conservative
from optsched.traces.cleaning import clean
from optsched.traces.trace import Trace

SAMPLE = bundled("traces") / "samples" / "sample-256.swf"


class Plain(Conservative):
    """Conservative backfilling that places every job again from the first event on."""

    def begin(self, system):
        super().begin(system)
        self._leave_runs([])


def assert_same(trace, machine, **given):
    by_runs = simulate(trace, machine, Conservative(), **given, check=True)
    plain = simulate(trace, machine, Plain(), **given, check=True)
    assert by_runs.start.tolist() == plain.start.tolist()
    assert by_runs.resources == plain.resources
    return by_runs


@pytest.mark.parametrize("order", ["batched", "one-by-one"])
@pytest.mark.parametrize("unit", [1, 1.3])
@given(
    jobs=st.lists(
        st.tuples(st.integers(0, 4), st.integers(1, 12), st.integers(0, 9), st.integers(1, 8)),
        min_size=1,
        max_size=60,
    ),
    kinds=st.integers(1, 8),
)
@settings(max_examples=150, deadline=None)
def test_runs_of_like_jobs_move_as_the_jobs_do_one_by_one(order, unit, jobs, kinds):
    """Few kinds make long runs; sums of fractions are rounded."""
    gaps, runtime, slack, processors = (np.array(column) for column in zip(*jobs))
    requested = (runtime + slack + kinds - 1) // kinds * kinds
    trace = clean(
        Trace(
            job_id=np.arange(len(gaps)),
            submit=np.cumsum(gaps) * unit,
            runtime=runtime * unit,
            requested_time=requested * unit,
            processors=-(-processors // kinds) * min(kinds, 8),
        )
    )
    assert_same(trace, "nodes:16", event_order=order)


@pytest.mark.parametrize("order", ["batched", "one-by-one"])
def test_the_sample_is_scheduled_alike(order):
    trace = read_trace(SAMPLE).jobs(1, 1500)
    assert assert_same(trace, "nodes:160", event_order=order).summary["mean_wait"] > 0


def test_reservations_that_are_not_kept_end_the_runs(make_trace, monkeypatch):
    """A run time within the tolerance above the request: processors are held a little longer."""
    refused = []
    original = Conservative._leave_runs

    def noting(self, jobs):
        refused.append(list(jobs))
        original(self, jobs)

    monkeypatch.setattr(Conservative, "_leave_runs", noting)
    late = 10 + 5e-7
    trace = make_trace((0, late, 10, 4), (1, 9, 10, 4), (2, 5, 10, 4), (10, 10, 10, 4))
    trace = replace(trace, requested_time=np.full(4, 10.0))
    run = simulate(trace, "nodes:4", Conservative(), check=True, compiled_from=0)
    assert refused == [[1]]  # at 10 s, when job 4 is submitted
    assert run.start.tolist() == simulate(trace, "nodes:4", Plain()).start.tolist()
    assert simulate(trace, "nodes:4", "conservative", compiled_from=0).start.tolist() == (
        run.start.tolist()
    )
