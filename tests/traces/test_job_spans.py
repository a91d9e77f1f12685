"""Ranges of jobs by number and by day."""

from dataclasses import replace
from datetime import datetime
from zoneinfo import ZoneInfo

import pytest

from optsched import simulate
from optsched.errors import InputError
from optsched.traces.cleaning import Days, numbers_in, span_of
from optsched.traces.trace import Header

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
        ("2003-03-28:2003-03-28", (1, 2)),
        ("2003-03-29", (3, 26)),
        ("2003-03-30", (27, 49)),  # a day of 23 hours
        ("2003-03-31:", (50, 120)),
        (":2003-03-29", (1, 26)),
        ("2003-03-29:2003-03-30", (3, 49)),
        ("7:9", (7, 9)),
        ("7:", (7, 120)),
        (9, (1, 9)),
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
        (Days("2003-03-29", None), undated, r"does not say when it begins \(UnixStartTime\); expect"),
        (Days("2003-03-29", None), began(hourly, "Mars/Base"), "TimeZoneString: 'Mars/Base'; expec"),
        ((5, 121), hourly, "jobs 5:121; expected FROM:TO with 1 <= FROM <= TO <= 120"),
    ):
        with pytest.raises(InputError, match=said):
            numbers_in(span, trace)
