"""Scaled traces: sizes, arrivals, what is counted, and what the header says."""

from fractions import Fraction
from math import ceil

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from optsched.errors import InputError
from optsched.traces.cleaning import clean
from optsched.traces.facts import facts
from optsched.traces.reading import read_trace, write_trace
from optsched.traces.trace import Header, Trace
from optsched.traces.transformations import scale_trace


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
