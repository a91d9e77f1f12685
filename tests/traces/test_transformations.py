"""Traces scaled, at another load, shaken, split, with inferred files, and parts of them."""

from dataclasses import replace
from datetime import datetime
from fractions import Fraction
from math import ceil
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from optsched import simulate
from optsched.errors import InputError
from optsched.traces.cleaning import Days, clean, numbers_in, span_of
from optsched.traces.facts import facts
from optsched.traces.reading import read_trace, write_trace
from optsched.traces.trace import Header, Trace
from optsched.traces.transformations import (
    evaluate,
    infer_files,
    scale_trace,
    split_jobs,
    submitted,
)


def trace_of(sizes, submit=None, header=(("MaxProcs", "64"),), **columns):
    jobs = np.arange(1, len(sizes) + 1)
    times = 10 * jobs if submit is None else submit, np.full(len(jobs), 60), np.full(len(jobs), 100)
    return Trace(jobs, *times, np.array(sizes), header=Header(tuple(header)), **columns)


@given(
    st.lists(st.integers(1, 10**9), min_size=1, max_size=20),
    *[st.integers(1, 10**9)] * 2,
    st.integers(1, 100),
)
def test_sizes_are_exact_rounded_up_and_no_larger_than_the_machine(sizes, processors, to, unit):
    unit = min(unit, to)
    scaled = scale_trace(trace_of(sizes), to, processors=processors, unit=unit).trace
    for size, new in zip(sizes, scaled.processors.tolist()):
        wanted = ceil(Fraction(size * to, processors * unit)) * unit
        assert new == (min(wanted, to // unit * unit) if size <= processors else wanted)
        assert new % unit == 0
        assert new >= unit


def test_sizes_that_are_not_known_stay_so():
    raw = trace_of([-1, 0, 8, -1], requested_processors=np.array([4, -1, 6, -1]))
    done = scale_trace(raw, 32)
    assert done.processors == 64
    assert done.trace.processors.tolist() == [-1, 0, 4, -1]
    assert done.trace.requested_processors.tolist() == [2, -1, 3, -1]
    assert done.changes == ()
    assert len(clean(done.trace)) == 2


def test_what_was_changed_is_counted():
    raw = trace_of([1, 64, 65, 8], wait=np.array([5, 0, -1, 3]))
    done = scale_trace(raw, 33, unit=2)
    assert done.trace.processors.tolist() == [2, 32, 34, 6]
    assert done.changes == (
        (3, "sizes rounded up to a multiple of 2"),
        (1, "sizes cut to 32, the whole machine"),
        (1, "jobs larger than the original machine"),
        (3, "waits left out"),
    )
    exact = Fraction(33, 64) * (1 + 64 + 65 + 8)
    assert done.rounding == pytest.approx(float((2 + 32 + 34 + 6) / exact - 1))
    assert done.trace.wait.tolist() == [-1] * 4
    assert done.trace.runtime.tolist() == raw.runtime.tolist()


def test_times_between_arrivals_are_divided_from_the_first_one_on():
    raw = trace_of([1] * 5, submit=np.array([100, 103, -1, 200, 101]))
    assert scale_trace(raw, 64, load=2).trace.submit.tolist() == [100, 102, -1, 150, 100]
    assert scale_trace(raw, 64, load=0.5).trace.submit.tolist() == [100, 106, -1, 300, 102]
    decimals = trace_of([1] * 5, submit=np.array([0.5, 1.25, 2.0, 3.0, 4.0]))
    assert scale_trace(decimals, 64).trace.submit.tolist() == decimals.submit.tolist()
    assert scale_trace(decimals, 64, load=0.1).trace.submit.tolist() == [0, 8, 16, 26, 36]


def test_the_header_tells_the_origin(small_swf, tmp_path):
    raw = read_trace(small_swf, clean=False)
    done = scale_trace(raw, 40, processors=16, unit=4, load=1.5)
    write_trace(done.trace, tmp_path / "scaled.swf")
    again = read_trace(tmp_path / "scaled.swf", clean=False)
    assert (again.header.max_procs, again.header.max_nodes) == (40, None)
    kept = [line for line in raw.header.lines if line[0].lower() not in ("maxprocs", "maxnodes")]
    assert [line for line in again.header.lines if line in kept] == kept
    note = again.header.values("Note")[-1]
    assert f"Original: {raw.name}, SHA-256 {raw.sha256}." in note
    assert "Sizes times 40 / 16, rounded up to multiples of 4" in note
    assert "Interarrival times divided by 1.5." in note
    for count, what in done.changes:
        assert f"{count} {what}." in note


def test_the_machine_of_the_original_becomes_a_note_and_may_be_stated_in_nodes():
    header = (("MaxNodes", "8"), ("", "  with 8 cores each"), ("MaxProcs", "64 (all)"))
    notes = scale_trace(trace_of([8], header=header), 16).trace.header.values("Note")
    assert notes[0] == "originally MaxNodes: 8 with 8 cores each"
    assert notes[1] == "originally MaxProcs: 64 (all)"
    assert scale_trace(trace_of([8], header=[("MaxNodes", "16")]), 8).processors == 16
    with pytest.raises(InputError, match=r"no MaxProcs and no MaxNodes; expected .* with --from"):
        scale_trace(trace_of([8], header=[]), 8)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"processors": -1}, "from: -1; expected a whole number from 1"),
        ({"load": float("nan")}, "load: nan; expected a factor"),
        ({"load": 0.01}, r"load: 0.01; submit times would be above 2\^53 s"),
    ],
)
def test_numbers_out_of_range_are_refused(options, words):
    with pytest.raises(InputError, match=words):
        scale_trace(trace_of([8, 8], submit=np.array([0, 2**50])), **{"to": 8} | options)
    with pytest.raises(InputError, match="a job of 2,000,000,000 processors; expected at most"):
        scale_trace(trace_of([2 * 10**9]), 8)


@pytest.mark.parametrize(
    ("name", "processors"), [("ALCF-Mira-2018-AugDec", 49152), ("LANL-Trinity-2017-w3", 301056)]
)
def test_real_logs_keep_their_load_on_a_torus(name, processors, shared):
    raw = read_trace(shared(f"traces/{name}.swf.gz"), clean=False)
    done = scale_trace(raw, 27648, unit=2)
    assert done.processors == processors
    assert 0 <= done.rounding < 0.002
    before, after = facts(raw), facts(done.trace)
    assert after["offered_load"] == pytest.approx(before["offered_load"], rel=0.002)
    assert after["machine_size"] == 27648
    assert after["sizes"]["max"] <= 27648


def of_run(trace, **options):
    """Return the number, submission and run time of each job of a run."""
    run = simulate(trace, "nodes:8", "fcfs", **options)
    jobs = run.jobs[["job_id", "submission_time", "run_time"]]
    return run, list(jobs.itertuples(index=False, name=None))


def test_the_load_is_that_of_a_scaled_trace(make_trace):
    trace = make_trace(*((7 * k, 5 + k, 60, 1 + k % 4) for k in range(20)))
    scaled = scale_trace(trace, 8, processors=8, load=1.7).trace
    run, jobs = of_run(trace, load=1.7)
    assert jobs == of_run(scaled)[1]
    assert (run.config["load"], run.config["shake"]) == (1.7, None)
    assert of_run(trace, load=1)[0].config == of_run(trace)[0].config


def test_shaken_jobs_are_those_of_the_part_in_a_new_order(make_trace):
    trace = make_trace(*((k, 5 + k, 99, 1) for k in range(50)))
    run, jobs = of_run(trace, jobs="11:40", shake=60, shake_seed=3)
    draws = np.random.default_rng(3).integers(0, 61, 30).tolist()
    expected = [(10 + k + draw, k) for k, draw in enumerate(draws)]
    assert jobs == [(11 + k, submit, 15 + k) for submit, k in sorted(expected)]
    assert run.config["workload_sha256"] != of_run(trace, jobs="11:40")[0].config["workload_sha256"]


def test_a_part_is_chosen_before_its_load_and_the_load_before_the_shake(make_trace):
    trace = make_trace((0, 5, 9, 1), (100, 5, 9, 1), (150, 6, 9, 1), (170, 7, 9, 1))
    assert of_run(trace, jobs="2:4", load=0.5)[1] == [(2, 100, 5), (3, 200, 6), (4, 240, 7)]
    trace = make_trace(*((100 * k, 5, 9, 1) for k in range(20)))
    draws = np.random.default_rng(0).integers(0, 3, 20)
    _, jobs = of_run(trace, load=2, shake=2)
    assert [at for _, at, _ in jobs] == (50 * np.arange(20) + draws).tolist()


def test_begin_times_keep_their_distance_and_waits_are_left_out(make_trace):
    trace = make_trace((0, 5, 9, 1), (10, 5, 9, 1)).annotated(begin=np.array([40, -1]))
    trace = trace.changed(wait=np.array([1, 2]))
    moved, rows = submitted(trace, np.array([25, 12]))
    assert (rows.tolist(), moved.job_id.tolist()) == ([1, 0], [2, 1])
    assert moved.annotations["begin"].tolist() == [-1, 65]
    assert moved.wait.tolist() == [-1, -1]
    scaled = scale_trace(trace.changed(submit=np.array([10, 30])), 8, processors=8, load=0.5).trace
    assert scaled.annotations["begin"].tolist() == [40, -1]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"load": 0}, "load: 0; expected a factor from 1e-06 to 1e+06"),
        ({"load": 2**-12}, "add up to more than 2^53 s"),
        ({"shake": 1.5}, "shake: 1.5; expected a whole number of seconds from 0 to"),
        ({"shake": 9, "shake_seed": -1}, "shake seed: -1; expected a whole number from 0 to"),
        ({"shake_seed": 1}, "shake seed: nothing to shake; expected a shake too"),
    ],
)
def test_bad_values_get_one_line(make_trace, options, said):
    with pytest.raises(InputError) as raised:
        simulate(make_trace((0, 5, 9, 1), (2**40, 5, 2**52, 1)), **options)
    assert said in str(raised.value)
    assert "\n" not in str(raised.value)


PARIS = ZoneInfo("Europe/Paris")
BEGIN = int(datetime(2003, 3, 28, 22, 0, tzinfo=PARIS).timestamp())


def began(trace, zone="Europe/Paris"):
    lines = [("UnixStartTime", str(BEGIN)), *([("TimeZoneString", zone)] if zone else [])]
    return replace(trace, header=Header(tuple(lines)))


@pytest.fixture
def hourly(make_trace):
    """Return a trace of a job each hour for five days, from 22:00 on; summer time begins in it."""
    return began(make_trace(*((3600 * k, 60, 60, 1) for k in range(120))))


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        *(("2003-03-28:2003-03-28", (1, 2)), ("2003-03-29", (3, 26))),
        ("2003-03-30", (27, 49)),  # a day of 23 hours
        *(("2003-03-31:", (50, 120)), (":2003-03-29", (1, 26)), ("7:9", (7, 9))),
        *(("7:", (7, 120)), (9, (1, 9))),
    ],
)
def test_days_and_numbers(hourly, given, expected):
    assert numbers_in(span_of(given), hourly) == expected
    assert simulate(hourly, "nodes:1", jobs=given).config["jobs"] == list(expected)


def test_days_without_a_zone_are_those_of_utc(hourly):
    begin = 24 - 21 + 1  # 22:00 in Paris is 21:00
    assert numbers_in(Days("2003-03-29", "2003-03-29"), began(hourly, "")) == (begin, begin + 23)


@pytest.mark.parametrize(
    "text", ["2003-02-30:", "1:2003-02-01", "2003-02-01:7", "2003-1-1:", "2003-01-01T00:", "a:b"]
)
def test_what_is_neither_is_refused(text):
    with pytest.raises(InputError, match=r"measure: '.*'; expected FROM:TO, 1:5000 or 2003-01-01:"):
        span_of(text, "measure")


def test_ranges_without_a_job_are_refused(hourly, make_trace):
    then = "no job is submitted then; submissions are from 2003-03-28 to 2003-04-02"
    undated = make_trace((0, 1, 1, 1))
    for span, trace, said in (
        (Days("2003-05-01", None), hourly, f"jobs: 2003-05-01:; {then}"),
        (Days("2003-03-30", "2003-03-29"), hourly, f"jobs: 2003-03-30:2003-03-29; {then}"),
        (Days("2003-03-29", None), undated, r"not say when it begins \(UnixStartTime\); expect"),
        (Days("2003-03-29", None), began(hourly, "Mars/Base"), "TimeZoneString: 'Mars/Base'; exp"),
        ((5, 121), hourly, "jobs 5:121; expected FROM:TO with 1 <= FROM <= TO <= 120"),
    ):
        with pytest.raises(InputError, match=said):
            numbers_in(span, trace)


REAL = "traces/rackham/2022-09-10_V10000_anonymous.txt.gz"


def make(submit, processors, user, **columns):
    return trace_of(processors, np.array(submit), user=np.array(user), **columns)


def files_of(trace, **options):
    return infer_files(trace, **options).annotations["file"].tolist()


def test_a_file_goes_on_from_job_to_job():
    trace = make([0, 800, 1600, 2401], [4] * 4, [7] * 4)
    assert files_of(trace) == [1, 1, 1, 2]
    assert files_of(trace, window=801) == [1] * 4
    assert files_of(trace, window=0) == [1, 2, 3, 4]
    assert infer_files(trace).annotations["file_size"].tolist() == [25_600] * 4
    assert infer_files(trace, per_processor=5).annotations["file_size"].tolist() == [20] * 4
    assert files_of(make([900, 0, 850], [4] * 3, [7] * 3)) == [1, 2, 2]  # as they are submitted
    assert files_of(make([0, 1, 2, 3], [4] * 4, [-1, -1, 7, 7])) == [1, 2, 3, 3]  # -1 is unknown
    with pytest.raises(InputError, match="user: no job states its user"):
        infer_files(make([0, 1], [4] * 2, [-1, -1]))


def test_a_job_of_another_user_or_size_ends_it_or_may_come_between():
    assert files_of(make([0, 1, 2], [4] * 3, [7, 8, 7])) == [1, 2, 3]
    trace = make([0, 10, 20, 30, 820, 840], [4, 4, 2, 4, 4, 2], [7, 8, 7, 7, 7, 7])
    assert files_of(trace) == [1, 2, 3, 4, 4, 5]
    assert files_of(trace, sharing="interleaved") == [1, 2, 3, 1, 1, 4]
    assert files_of(trace, sharing="interleaved", window=820) == [1, 2, 3, 1, 1, 3]


job = st.tuples(st.integers(0, 300), st.integers(1, 2), st.integers(-1, 2))


@given(st.lists(job, max_size=30))
def test_interleaved_jobs_share_what_the_last_alike_has(jobs):
    jobs = [*jobs, (1, 1, 0)]  # one states its user
    gaps, processors, user = zip(*jobs)
    submit = np.cumsum(gaps)
    last, files, known = {}, [], 0
    for job in zip(user, processors, submit.tolist()):
        *alike, now = job
        before, file = last.get(tuple(alike), (-1000, 0))
        if now - before > 800 or alike[0] < 0:
            known += 1
            file = known
        last[tuple(alike)] = now, file
        files.append(file)
    assert files_of(make(submit, processors, user), sharing="interleaved") == files


def test_the_files_of_the_authors(shared):
    """Their numbers, job by job, and not those of chains with other jobs in between."""
    trace = read_trace(shared(REAL))
    theirs = trace.annotations["file"].tolist()
    assert files_of(trace) == theirs
    assert (max(theirs), max(files_of(trace, sharing="interleaved"))) == (1456, 1226)


def test_large_jobs_become_pieces():
    trace = make([0, 0, 5], [45, 20, 60], [1, 2, 3], requested_processors=np.array([50, 30, -1]))
    split = split_jobs(trace.annotated(bandwidth=np.array([1, 2, 3])), 20)
    assert (split.jobs, split.pieces) == (2, 6)
    assert split.trace.job_id.tolist() == [10, 11, 12, 20, 30, 31, 32]
    assert split.trace.processors.tolist() == [20, 20, 5, 20, 20, 20, 20]
    assert split.trace.requested_processors.tolist() == [20, 20, 5, 30, -1, -1, -1]
    assert split.trace.user.tolist() == [1, 1, 1, 2, 3, 3, 3]
    assert split.trace.annotations["bandwidth"].tolist() == [1, 1, 1, 2, 3, 3, 3]
    assert infer_files(split.trace).annotations.keys() == {"bandwidth", "file", "file_size"}
    assert files_of(split.trace) == [1, 1, 2, 3, 4, 4, 4]
    assert split_jobs(split.trace, 20).trace is split.trace
    # more than ten pieces take two digits
    trace = make([0, 1, 2], [11, 10, 1], [1] * 3, preceding_job=np.array([-1, 1, 2]))
    assert split_jobs(trace, 1).trace.job_id.tolist()[9:13] == [109, 110, 200, 201]
    pieces = split_jobs(trace.select(slice(1, None)), 1).trace
    assert pieces.job_id.tolist() == [*range(20, 30), 30]
    assert pieces.preceding_job.tolist() == [10] * 10 + [20]


@given(
    st.lists(st.tuples(st.integers(0, 9), st.integers(1, 60)), min_size=1, max_size=20),
    st.integers(1, 25),
)
def test_pieces_do_the_work_of_their_job_in_its_place(jobs, cores):
    submit, processors = zip(*jobs)
    trace = make(submit, processors, [1] * len(jobs))
    pieces = split_jobs(trace, cores).trace
    assert pieces.processors.max() <= cores
    assert len(np.unique(pieces.job_id)) == len(pieces)
    order = np.lexsort((pieces.job_id, pieces.submit))
    assert order.tolist() == [*range(len(pieces))]
    factor = 10 ** len(str(-(-max(processors) // cores) - 1)) if max(processors) > cores else 1
    origin = pieces.job_id // factor
    assert np.bincount(origin, pieces.processors)[1:].tolist() == list(processors)


def test_jobs_amid_the_trace_are_evaluated_and_those_at_the_start_keep_their_category():
    trace = make([0, 10, 20, 30], [1] * 4, [1] * 4)
    assert evaluate(trace, 10, 30).annotations["category"].tolist() == [0, 1, 1, 2]
    with pytest.raises(InputError, match="evaluate: no job is submitted from 31 s to 40 s"):
        evaluate(trace, 31, 40)
    trace = trace.annotated(category=np.array([-2, -1, 0, 0]))
    assert evaluate(trace, 0, 30).annotations["category"].tolist() == [-2, -1, 1, 2]


@pytest.mark.parametrize(
    ("change", "arguments", "said"),
    [
        (infer_files, {"sharing": "x"}, "sharing: 'x'; expected one of consecutive, interleaved"),
        (infer_files, {"window": 0.5}, "window: 0.5; expected a whole number from"),
        (infer_files, {"per_processor": 2**53}, r"more than 2\^53 MB"),
        (split_jobs, {"cores": 2.0}, "cores: 2.0; expected a whole number from 1"),
        (split_jobs, {"cores": 1}, "more than 100,000,000 pieces"),
        (split_jobs, {"cores": 10**8}, "too large to be extended"),
    ],
)
def test_what_cannot_be_inferred_or_split_is_refused(change, arguments, said):
    trace = make([0], [10**9], [1]).changed(job_id=np.array([2**53]))
    with pytest.raises(InputError, match=said):
        change(trace, **arguments)
