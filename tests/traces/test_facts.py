import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from optsched.errors import InputError
from optsched.traces.cleaning import clean
from optsched.traces.facts import facts, lines
from optsched.traces.swf import read_swf
from optsched.traces.trace import Header, Trace


def make(processors, submit=None, requested=10, **columns):
    jobs = np.arange(1, len(processors) + 1)
    submit = jobs if submit is None else submit
    times = [np.full(len(jobs), seconds) for seconds in (10, requested)]
    return Trace(jobs, submit, *times, np.array(processors), **columns)


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
    known = facts(make([1, 1, 1, 1], wait=np.array([5, -1, 0, 1000])))
    assert known["logged_wait"]["known_share"] == 0.75
    assert known["logged_wait"]["known"]["mean"] == 335
    page = "\n".join(lines(known))
    assert "logged waits    of 75.0% of the jobs, 335 s on average\n" in page
    known = facts(make([1, 1]))
    assert known["logged_wait"] == {"known_share": 0.0, "known": None}
    assert "logged" not in "\n".join(lines(known))


def test_what_cannot_be_told_is_none():
    known = facts(make([1], requested=-1))
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
    known = facts(make(sizes), 1024)["sizes"]
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
    assert facts(make([1] * 5))["interarrival"]["cv"] == 0.0
    gaps = np.array([1, 2, 3, 10])
    known = facts(make([1] * 5, submit=np.concatenate(([0], np.cumsum(gaps)))))
    assert known["interarrival"]["cv"] == pytest.approx(gaps.std() / gaps.mean())
    assert known["interarrival"]["median"] == 2.5
    assert facts(make([1, 1], submit=[5, 5]))["interarrival"]["cv"] == 0.0


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
    header = Header((("MaxProcs", "2"),))
    assert "larger jobs     1" in lines(facts(make([1, 4], header=header)))
