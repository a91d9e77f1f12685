"""Loading input files before the work begins, and the figures of that."""

from __future__ import annotations

import numpy as np
import pytest

from optsched import simulate
from optsched.errors import InputError
from optsched.traces.cleaning import clean
from optsched.traces.trace import Trace


def run(trace, solver="fcfs", machine="cluster:2x2", **settings):
    return simulate(trace, machine, "locality", solver=solver, settings=settings, check=True)


def test_a_job_loads_or_waits_or_finds_its_file(jobs_with_files):
    trace = jobs_with_files(
        (0, 100, 500, 1, 7), (10, 100, 500, 1, 7), (20, 50, 500, 2, 8), (164, 10, 90, 1, 7)
    )
    found = run(trace)
    assert found.start.tolist() == [0, 10, 20, 164]
    assert found.end.tolist() == [164, 164, 20 + 128 + 50, 174]
    assert found.jobs["transfer_time"].tolist() == [64, 0, 128, 0]
    assert found.jobs["waiting_for_a_load"].tolist() == [0, 54, 0, 0]
    summary = found.summary
    assert summary["transfer_time"] == 192
    assert summary["waiting_for_a_load"] == 54
    assert summary["data_reuse"] == 2
    assert summary["core_time"] == 164 + 154 + 2 * 178 + 10
    stretch = [164 / 164, 154 / 164, 178 / 178, 10 / 74]
    assert found.jobs["stretch"].tolist() == pytest.approx(stretch)
    assert summary["mean_bounded_stretch"] == pytest.approx((164 + 154 + 178 + 10) / 300 / 4)


def test_loading_counts_against_the_limit(jobs_with_files):
    found = run(jobs_with_files((0, 100, 150, 1, 7)))
    assert found.end.tolist() == [150]
    assert found.summary["killed"] == 1


def test_only_the_evaluated_jobs_count(jobs_with_files):
    category = np.array([0, 1, 2])
    trace = jobs_with_files(
        (0, 10, 90, 1, 1), (1, 10, 90, 1, 2), (2, 10, 90, 1, 3), category=category
    )
    summary = run(trace).summary
    assert (summary["evaluated"], summary["transfer_time"]) == (1, 64)


def test_a_trace_without_files_is_refused():
    trace = clean(Trace(*np.array([[1], [0], [10], [20], [1]])))
    with pytest.raises(InputError, match="has no input files; 'optsched trace annotate' infers"):
        run(trace)


def test_files_are_for_clusters(jobs_with_files):
    with pytest.raises(InputError, match="is for clusters, not nodes:4"):
        simulate(jobs_with_files((0, 9, 9, 1, 1)), "nodes:4", "easy", execution="file-loading")
