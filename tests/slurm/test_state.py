"""The state of a site in figures, against counting node by node."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime

import numpy as np
import pytest

from optsched.numbers import moment
from optsched.report.page import render
from optsched.sites.parts import Reservation
from optsched.slurm.page import page
from optsched.slurm.state import State, idle_while_waiting, weekly_waits
from optsched.traces.trace import Header, Trace

from .conftest import NOW, job, left_by, queue_of, running, supply


def test_groups_add_up_to_the_site(captured):
    _, queue, supply = captured
    state = State(queue, supply)
    site = state.everywhere
    assert sum(group.nodes for group in state.by_leaf) == site.nodes == len(supply.site.nodes)
    assert sum(group.idle for group in state.by_leaf) == site.idle
    free = sum(group.free for group in state.by_leaf)
    assert (free == site.free).all()
    assert sum(state.reasons.values()) == sum(max(1, len(j.array_tasks)) for j in queue.pending)
    for one in state.largest:
        assert one.whole_nodes <= one.nodes


def test_what_is_idle_and_stranded_is_counted():
    alone = running(1, "c1", cores=3, exclusive="node")
    full = running(2, "g1", cores=32, end=NOW + 60)
    queue = queue_of(alone, full, job(job_id=3, per_node={"gpu": 2}, cores_per_task=2))
    state = State(queue, left_by(alone, full))
    parts = {group.name: group for group in state.by_partition}
    assert parts["short"].idle == 1
    assert parts["short"].free[0] == 16  # of c1, whose job is alone, nothing is free
    assert dict(state.stranded) == {"cores": 4}
    [largest] = [one for one in state.largest if one.partition == "block"]
    assert (largest.whole_nodes, largest.nodes, largest.gpus) == (1, 1, 4)
    drained = replace(state.supply, site=replace(state.supply.site, states=["drained"] * 7))
    assert State(queue, drained).everywhere.in_service == 0


@pytest.fixture
def history():
    """Three jobs of a week and one of the next, on 4 nodes; times in hours from a Monday."""
    begun = int(datetime(2026, 11, 16, tzinfo=UTC).timestamp())
    jobs = np.array([[0, 0, 2, 4], [0, 2, 1, 2], [1, 1, 3, 1], [168, 5, 1, 1]])
    submit, wait, ran, nodes = jobs.T * [[3600], [3600], [3600], [1]]
    return Trace(
        job_id=np.arange(1, 5),
        submit=submit,
        wait=wait,
        runtime=ran,
        requested_time=ran,
        processors=nodes,
        annotations={"allocated_nodes": nodes},
        texts={"account": np.array(["a", "a", "b", "a"], dtype=object)},
        header=Header((("UnixStartTime", str(begun)),)),
    )


def test_waits_and_idle_nodes_of_each_week(history):
    begun = history.header.unix_start_time
    rows = weekly_waits(history, "account")
    assert [(row.week - begun, row.name, row.jobs, row.median) for row in rows] == [
        (168 * 3600, "a", 1, 5 * 3600),
        (0, "a", 2, 3600),
        (0, "b", 1, 3600),
    ]
    # the first two hours somebody waits, and 4 of 4 nodes are busy; later 5 hours without a job
    assert idle_while_waiting(history, 4) == [(begun + 168 * 3600, 5.0, 20.0), (begun, 2.0, 0.0)]


def test_the_page_of_a_state_escapes_what_users_write():
    queue = queue_of(job(job_id=1, user="<b>ada</b>", reason="<i>Priority</i>"))
    text = render(page(State(queue, supply()), None))
    assert "<b>ada" not in text
    assert "&lt;b&gt;ada" in text
    assert "7 of 7 nodes in service are idle, and 1 job waits" in text


def test_the_page_lists_reservations_with_times_in_a_named_zone():
    kept = (
        Reservation("later", ("c1", "c2"), NOW + 60, NOW + 120, {"lab": 2}, flags=("MAINT",)),
        Reservation("own", ("g1",), admits={"users": ("ada", "bob"), "allowed_partitions": ("x",)}),
        Reservation("floating", ("c3",), ahead=3600.0),
    )
    text = render(page(State(queue_of(job()), supply(reservations=kept)), None))
    times = [moment(NOW + seconds, is_short=True) for seconds in (60, 120)]
    admits = "users ada, bob; allowed partitions x"
    for words in ("later", "c[1-2]", "2 lab", "MAINT", admits, "always in 1 h", *times):
        assert words in text, words
    assert ">Reservations<" not in render(page(State(queue_of(job()), supply()), None))
    assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d[+-]\d\d:\d\d", moment(NOW, is_short=True))
    assert datetime.fromisoformat(moment(NOW)).timestamp() == NOW
