"""Demands for memory bandwidth: drawn in the shares of a mix, the mixes of a seed nested."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from optsched.errors import InputError
from optsched.traces.facts import facts, lines
from optsched.traces.swf import read_swf
from optsched.traces.trace import Trace
from optsched.traces.transformations import drawn


def make(jobs):
    numbers = np.arange(jobs)
    ten = np.full(jobs, 10)
    return Trace(numbers + 1, numbers, ten, ten, numbers % 4 + 1, path="a.swf", sha256="of a file")


def demands(jobs, *arguments, **options):
    return drawn(make(jobs), *arguments, **options).annotations["bandwidth"]


@pytest.mark.parametrize(
    ("mix", "high", "least"),
    [("LOW", 10, 20), ("med", 50, 60), ("HIGH", 80, 90), ((33, 33, 34), 33, 66)],
)
def test_each_job_has_the_level_of_its_own_random_number(mix, high, least):
    """What the draw computes, said job by job."""
    percent = 100 * np.random.default_rng(7).random(500)
    expected = [2000 if one < high else 1000 if one < least else 500 for one in percent]
    assert demands(500, mix, seed=7).tolist() == expected


def test_levels_may_be_others_and_a_note_in_the_header_says_what_was_drawn():
    trace = drawn(make(3), "LOW", seed=7, levels={"high": 1500})
    assert trace.header.values("Note") == [
        "bandwidth drawn by optsched, seed 7: 1,500 MB/s for each process of 10 % of the jobs, "
        "1,000 MB/s for each process of 10 % of the jobs, "
        "500 MB/s for each process of 80 % of the jobs"
    ]
    levels = {"low": 0, "medium": 7, "high": 7}
    assert set(demands(1000, "MED", levels=levels).tolist()) == {7, 0}


@given(
    seed=st.integers(0, 10**6),
    cuts=st.tuples(*[st.tuples(st.integers(0, 100), st.integers(0, 100)).map(sorted)] * 2),
)
def test_more_pressure_lessens_no_demand(seed, cuts):
    (high, least), (more_high, more_least) = cuts
    lower = (min(high, more_high), min(least, more_least))
    upper = (max(high, more_high), max(least, more_least))
    one, other = (demands(200, (a, b - a, 100 - b), seed) for a, b in (lower, upper))
    assert (one <= other).all()


def test_a_draw_is_of_the_cleaned_trace_and_replaces_another(small_swf):
    trace = drawn(read_swf(small_swf), (100, 0, 0))
    assert trace.cleaning.jobs_read == 8
    assert trace.annotations["bandwidth"].tolist() == [2000] * 4
    assert (trace.path, trace.sha256) == (None, None)
    again = drawn(trace.annotated(network=np.arange(4)), (0, 0, 100))
    assert again.annotations["bandwidth"].tolist() == [500] * 4
    assert again.annotations["network"].tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("options", "mistake"),
    [
        ({"mix": "HUGE"}, "mix: 'HUGE'; expected HIGH, MED, LOW or the percent of the jobs"),
        ({"mix": (110, -20, 10)}, "mix: '110:-20:10'; expected"),
        ({"mix": (50.0, 25.0, 25.0)}, "mix: '50.0:25.0:25.0'; expected"),
        ({"seed": -1}, "seed: -1; expected a whole number from 0"),
        ({"levels": {"low": 0.5}}, "levels: low=0.5; expected a whole number from 0 to 1,000"),
    ],
)
def test_what_is_no_mix_is_refused(options, mistake):
    with pytest.raises(InputError) as caught:
        drawn(make(4), **{"mix": "HIGH", **options})
    assert mistake in str(caught.value)


def test_facts_tell_shares_of_jobs_and_of_processor_seconds():
    trace = make(4).annotated(bandwidth=np.array([500, 2000, 500, 2000]))
    known = facts(trace)["demands"]["bandwidth"]
    assert known["levels"] == [
        {"demand": 2000, "share": 0.5, "work_share": 0.6},
        {"demand": 500, "share": 0.5, "work_share": 0.4},
    ]
    assert known["mean"] == (4 * 500 + 6 * 2000) / 10
    assert (known["min"], known["median"], known["max"]) == (500, 1250, 2000)
    many = facts(make(9).annotated(network=np.arange(9) * 1000))
    assert many["demands"]["network"]["levels"] is None
    assert "0 / 4,000 / 8,000 (min/median/max of the jobs)" in "\n".join(lines(many))
