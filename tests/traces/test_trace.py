"""A trace: its columns, parts and annotations, how it is cleaned, and its figures."""

import json
import pickle
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from optsched.errors import InputError
from optsched.traces.cleaning import CleaningReport, clean
from optsched.traces.facts import facts, lines
from optsched.traces.swf import read_swf
from optsched.traces.trace import COLUMNS, Header, Trace
from optsched.traces.transformations import scale_trace


def make(jobs=5, **columns):
    numbers = np.arange(1, jobs + 1)
    given = {"job_id": numbers, "submit": 10 * numbers, "runtime": np.full(jobs, 60)}
    given |= {"requested_time": np.full(jobs, 100), "processors": numbers}
    return Trace(**(given | columns))


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"runtime": np.ones(4, int)}, "runtime: shape .4,.; expected .5,."),
        ({"runtime": np.array([1, 2, 3, 4, np.nan])}, "runtime: not all numbers are finite"),
        ({"wait": np.full(5, 2.0**53 + 2)}, "wait: 9007199254740994.0; expected .* at most 2.53"),
        ({"processors": np.ones(5)}, "processors: type float64; expected integers"),
        ({"runtime": np.array(list("abcde"))}, "runtime: type .*; expected numbers"),
        ({"label": np.array(["a"])}, "label: 1 values for 5 jobs"),
        ({"annotations": {"file": np.ones(4, int)}}, "file: shape .4,.; expected .5,."),
        ({"annotations": {"user": np.ones(5, int)}}, "annotations: 'user'; expected a word"),
        ({"annotations": {"two words": np.ones(5, int)}}, "expected a word"),
        ({"texts": {"user_name": ["a"] * 4 + ["\ud800"]}}, "user_name: half of a surrogate pair"),
    ],
)
def test_wrong_columns_are_refused(columns, message):
    with pytest.raises(InputError, match=message):
        make(**columns)


def test_jobs_counts_from_one_with_both_ends():
    trace = make(label=np.array(list("abcde")))
    assert trace.jobs(2, 4).label.tolist() == ["b", "c", "d"]
    assert trace.jobs(5, 5).job_id.tolist() == [5]
    assert trace.jobs(4).job_id.tolist() == [4, 5]
    assert trace.jobs().frame.equals(trace.frame)
    for first, last in ((0, 3), (4, 3), (1, 6), (6, 6), (-1, 2)):
        with pytest.raises(InputError, match="expected FROM:TO with 1 <= FROM <= TO <= 5"):
            trace.jobs(first, last)


def test_select_takes_rows_in_the_order_given():
    trace = make(name="toy", header=Header((("MaxProcs", "9"),)))
    chosen = trace.select(np.array([3, 0]))
    assert chosen.job_id.tolist() == [4, 1]
    assert chosen.wait.tolist() == [-1, -1]
    assert (chosen.name, chosen.header) == ("toy", trace.header)
    assert trace.select(trace.processors > 3).job_id.tolist() == [4, 5]


def test_unknown_columns_take_no_memory():
    one = np.arange(1, 1001)
    trace = Trace(one, one, one, one, one)
    assert trace.stated_time.tolist() == one.tolist()
    for part in (trace, trace.select(one[::-2] - 1), trace.select(one > 7), trace.jobs(3, 900)):
        assert part.user.strides == part.memory.strides == (0,)
        assert part.user.tolist() == [-1] * len(part)


def test_annotations_go_with_their_jobs_and_cannot_be_changed():
    bandwidth = np.array([0.5, 1, 2, 4, 8], dtype=np.float32)
    annotations = {"file": np.arange(5, dtype=np.int32), "bandwidth": bandwidth}
    mine = np.full(5, 60)
    trace = make(runtime=mine, annotations=annotations, sha256="of a file", published="a log")
    assert trace.annotations["file"].dtype == np.int64
    assert trace.annotations["bandwidth"].dtype == np.float64
    for column in (trace.runtime, trace.annotations["file"]):
        with pytest.raises(ValueError, match="read-only"):
            column[0] = 1
    mine[0] = 61  # what the caller has can be changed
    other = trace.annotated(file=np.zeros(5, int), load=np.ones(5))
    assert (other.sha256, other.published) == (None, None)
    assert list(other.annotations) == ["file", "bandwidth", "load"]
    assert other.annotations["file"].tolist() == [0] * 5
    assert trace.select(np.array([3, 0])).annotations["file"].tolist() == [3, 0]
    assert trace.jobs(2, 3).annotations["bandwidth"].tolist() == [1, 2]
    assert clean(trace.select(slice(None, None, -1))).annotations["file"].tolist() == [*range(5)]
    assert scale_trace(trace, 10, processors=5).trace.annotations["file"].tolist() == [*range(5)]
    assert list(trace.frame.columns) == [*COLUMNS, "file", "bandwidth"]
    assert list(make(label=np.array(list("abcde"))).frame.columns) == [*COLUMNS, "label"]
    assert pickle.loads(pickle.dumps(trace)).frame.equals(trace.frame)


def test_shown_forms_tell_what_it_is():
    trace = make(name="a<b", header=Header((("MaxProcs", "1152"),)))
    assert repr(trace) == "<Trace a<b: 5 jobs, raw>"
    shown = trace._repr_html_()
    assert all(text in shown for text in ("a&lt;b", "1,152 processors", "<td>1 to 5</td>"))
    assert "jobs" in trace.select(slice(0, 0))._repr_html_()


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
        with pytest.raises(InputError, match=r"of the trace w.* dropped by cleaning: .*\)$"):
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


def test_numbers_of_a_small_trace_raw_or_cleaned(small_swf):
    raw = read_swf(small_swf)
    known = facts(raw)
    assert facts(clean(raw)) == known
    assert facts(raw, 64)["offered_load"] == known["offered_load"] / 2
    with pytest.raises(InputError, match="processors: 0; expected a whole number from 1"):
        facts(raw, 0)
    work = 100 * 4 + 50 * 8 + 70 * 1 + 60 * 2
    expected = {"jobs": 4, "span_days": 40 / 86400, "machine_size": 32, "machine_nodes": 16}
    expected |= {"unix_start_time": 100, "work": work, "offered_load": work / (32 * 40)}
    expected |= {"users": 3, "groups": 1, "status": {"1": 4}}
    assert expected.items() <= known.items()
    assert known["cleaning"]["dropped"] == 4
    requests = known["requested_time"]
    assert requests["stated_share"] == 0.75
    assert requests["accuracy"]["max"] == 2.0
    assert requests["overrun_share"] == requests["exact_share"] == 1 / 3
    assert known["interarrival"]["mean"] == 40 / 3
    assert known["header"][1] == ["Computer", "Toy"]


def test_waits_of_the_log_are_told_where_there_are_any():
    known = facts(make(4, wait=np.array([5, -1, 0, 1000])))
    assert known["logged_wait"]["known_share"] == 0.75
    assert known["logged_wait"]["known"]["mean"] == 335
    page = "\n".join(lines(known))
    assert "logged waits    of 75.0% of the jobs, 335 s on average\n" in page
    known = facts(make(2))
    assert known["logged_wait"] == {"known_share": 0.0, "known": None}
    assert "logged" not in "\n".join(lines(known))


def test_what_cannot_be_told_is_none():
    known = facts(make(1, requested_time=np.array([-1])))
    assert known["offered_load"] is known["machine_size"] is known["users"] is None
    assert known["interarrival"] is None
    assert known["requested_time"]["accuracy"] is None
    assert known["sizes"]["larger_than_machine"] is None
    assert json.loads(json.dumps(known)) == known
    page = "\n".join(lines(known))
    assert "offered load" not in page
    assert "stated by 0.0% of the jobs" in page


@given(st.lists(st.integers(1, 5000), min_size=1, max_size=40))
def test_every_size_is_in_its_class(sizes):
    known = facts(make(len(sizes), processors=np.array(sizes)), 1024)["sizes"]
    for row in known["classes"]:
        inside = [size for size in sizes if row["from"] <= size <= row["to"]]
        assert row["jobs"] == len(inside)
        assert row["work_share"] == pytest.approx(sum(inside) / sum(sizes))
    assert sum(row["jobs"] for row in known["classes"]) == len(sizes)
    assert known["serial_share"] == sizes.count(1) / len(sizes)
    powers = [2**k for k in range(13)]
    assert known["power_of_two_share"] == sum(size in powers for size in sizes) / len(sizes)
    assert known["larger_than_machine"] == sum(size > 1024 for size in sizes)


def test_the_coefficient_of_variation_is_that_of_the_gaps():
    assert facts(make(5))["interarrival"]["cv"] == 0.0
    gaps = np.array([1, 2, 3, 10])
    known = facts(make(5, submit=np.concatenate(([0], np.cumsum(gaps)))))
    assert known["interarrival"]["cv"] == pytest.approx(gaps.std() / gaps.mean())
    assert known["interarrival"]["median"] == 2.5
    assert facts(make(2, submit=np.array([5, 5])))["interarrival"]["cv"] == 0.0


def test_the_page_tells_what_matters(small_swf):
    known = facts(read_swf(small_swf))
    assert json.loads(json.dumps(known)) == known
    page = "\n".join(lines(known))
    for text in (
        "small",
        "computer        Toy",
        "machine         32 processors in 16 nodes",
        "jobs            4 in 40 seconds",
        "5 to 8",
        "2 dropped: run time unknown or less than 1 s",
        "jobs submitted before the job above: 2",
        "stated by 75.0% of the jobs; 33.3% of them ran longer, 33.3% exactly as long",
    ):
        assert text in page
    header = Header((("MaxProcs", "1"),))
    assert "larger jobs     1" in lines(facts(make(2, header=header)))
