from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from optsched.errors import InputError
from optsched.traces.cleaning import CleaningReport, clean
from optsched.traces.swf import read_swf
from optsched.traces.trace import Trace


def test_every_rule_on_a_small_trace(small_swf):
    raw = read_swf(small_swf)
    trace = clean(raw)
    assert trace.job_id.tolist() == [1, 3, 4, 5]
    assert trace.processors.tolist() == [4, 8, 1, 2]
    assert trace.requested_time.tolist() == [200, 50, 70, 60]
    assert trace.stated_time.tolist() == [200, -1, 70, 30]
    counts = {"jobs_read": 8, "dropped": 4, "dropped_runtime": 2, "dropped_processors": 1}
    counts |= {"dropped_submit": 1, "processors_from_request": 1, "requested_time_missing": 1}
    counts |= {"requested_time_raised": 1, "reordered": 2, "dropped_parts": 0}
    assert trace.cleaning.to_json() == counts
    shown = "\n".join(trace.cleaning.lines())
    assert "8 jobs read" in shown
    assert "2 dropped: run time unknown or less than 1 s" in shown
    del counts["dropped_parts"]  # which older runs do not state
    assert CleaningReport.from_json(counts) == trace.cleaning


def test_a_clean_log_is_not_copied():
    jobs = np.arange(1, 6)
    raw = Trace(jobs, jobs // 2, jobs, 2 * jobs, jobs)
    trace = clean(raw)
    assert trace.cleaning == CleaningReport(5, 0, 0, 0, 0, 0, 0, 0)
    for name in ("job_id", "submit", "runtime", "requested_time", "processors"):
        assert np.shares_memory(getattr(trace, name), getattr(raw, name))


small = st.integers(-1, 3)
times = small | st.sampled_from([0.99, 2.5])


@given(st.lists(st.tuples(st.integers(0, 4), small, times, small, small, small), min_size=1))
def test_cleaned_traces_obey_the_rules_and_stay_as_they_are(rows):
    *columns, asked = map(np.array, zip(*rows))
    raw = Trace(*columns, requested_processors=asked)
    expected = sorted(
        (s, j, r, max(q, r), p if p > 0 else a)
        for j, s, r, q, p, a in rows
        if s >= 0 and r >= 1 and (p > 0 or a > 0)
    )
    if not expected:
        with pytest.raises(InputError, match=f"all {len(rows)} jobs were dropped"):
            clean(raw)
        return
    cleaned = clean(raw)
    columns = ("submit", "job_id", "runtime", "requested_time", "processors")
    got = list(zip(*(getattr(cleaned, name).tolist() for name in columns)))
    assert sorted(got) == expected
    assert [row[:2] for row in got] == [row[:2] for row in expected]
    assert cleaned.cleaning.dropped + len(cleaned) == len(rows)
    assert clean(cleaned) is cleaned
    again = clean(replace(cleaned, cleaning=None))
    assert again.frame.equals(cleaned.frame)
    assert set(again.cleaning.to_json().values()) <= {0, len(cleaned)}


def test_limits_that_hold_are_left_alone(small_swf):
    trace = clean(replace(read_swf(small_swf), limits_hold=True))
    assert trace.runtime.tolist() == [100, 50, 70, 60]
    assert trace.requested_time.tolist() == [200, 50, 70, 30]
    assert trace.cleaning.requested_time_raised == 0
    assert trace.cleaning.requested_time_missing == 1
    assert trace.limits_hold


def test_parts_of_a_checkpointed_job_are_not_run_beside_the_whole():
    status = np.array([1, 2, 3, 1, 2, 3, 1, 2, 0, 4])
    job_id = np.array([1, 1, 1, 2, 3, 3, 4, 4, 5, 5])
    runtime = np.array([300, 100, 200, 60, 5, 6, -1, 7, 9, 9])
    zeros = np.zeros(10, dtype=int)
    raw = Trace(job_id, zeros, runtime, runtime, zeros + 4, status=status)
    trace = clean(raw)
    # jobs 3 and 4 have no line of the whole that can be run
    assert trace.job_id.tolist() == [1, 2, 3, 3, 4, 5]
    assert trace.runtime.tolist() == [300, 60, 5, 6, 7, 9]
    assert (trace.cleaning.dropped_parts, trace.cleaning.dropped) == (3, 4)
    assert trace.cleaning.lost() == (
        "4 of the 10 jobs of the trace were dropped by cleaning: parts of checkpointed jobs that"
        " have a line of their own as a whole (3); run time unknown or less than 1 s (1)."
    )
    assert clean(raw.select(np.array([0, 3]))).cleaning.lost() == ""
