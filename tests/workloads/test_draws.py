"""What all models promise about the numbers that they draw from a seed."""

from dataclasses import replace

import numpy as np
import pytest

from optsched.workloads.spec_file import read_workload, workload_names

JOBS = 3_000


@pytest.mark.parametrize("name", workload_names())
def test_a_longer_trace_begins_like_a_shorter_one_and_seeds_differ(name):
    workload = read_workload(name)
    trace = workload.generate(JOBS, 6)
    assert workload.generate(700, 6).frame.equals(trace.jobs(1, 700).frame)
    assert workload.generate(50, 1).submit.tolist() != workload.generate(50, 2).submit.tolist()


@pytest.mark.parametrize("name", workload_names())
def test_factors_scale_the_very_same_draws(name):
    workload = read_workload(name)
    base = workload.generate(JOBS, 5)
    slow = workload.generate(JOBS, 5, interarrival_factor=2.5)
    assert slow.processors.tolist() == base.processors.tolist()
    assert slow.runtime.tolist() == base.runtime.tolist()
    if name != "lublin-feitelson":  # whose daily cycle stays
        assert np.abs(slow.submit - 2.5 * base.submit).max() <= 2
    long = workload.generate(JOBS, 5, service_factor=3)
    assert long.submit.tolist() == base.submit.tolist()
    assert np.abs(long.runtime - 3.0 * base.runtime).max() <= 3
    if name == "blue-waters-like":  # whose requests are usual limits
        assert long.requested_time.tolist() == (3 * base.requested_time).tolist()


@pytest.mark.parametrize("name", ["franke-1999", "blue-waters-like"])
def test_a_change_of_one_class_leaves_the_jobs_of_others_alone(name):
    workload = read_workload(name)
    first, *others = workload.classes
    if name == "franke-1999":
        rates = tuple(9 * rate for rate in first.service.rates)
        changed = replace(first, service=replace(first.service, rates=rates))
    else:
        changed = replace(first, median=60.0)
    base = workload.generate(JOBS, 7)
    trace = replace(workload, classes=(changed, *others)).generate(JOBS, 7)
    assert trace.processors.tolist() == base.processors.tolist()
    untouched = base.processors > first.largest
    assert trace.runtime[untouched].tolist() == base.runtime[untouched].tolist()
    assert trace.runtime[~untouched].tolist() != base.runtime[~untouched].tolist()
