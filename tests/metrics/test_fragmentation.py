"""The free slots over time, against a statement that looks at every node at every instant."""

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from optsched import simulate
from optsched.metrics.fragmentation import fragmentation

NODES = 9


def slots_of(free):
    edges = np.flatnonzero(np.diff(np.concatenate(([0], free.astype(int), [0]))))
    return (edges[1::2] - edges[::2]).tolist()


def nodes_of(text):
    for part in text.split():
        first, _, last = part.partition("-")
        yield from range(int(first), int(last or first) + 1)


times = st.integers(1, 9)
job = st.tuples(st.integers(0, 20), times, times, st.integers(1, NODES + 1))


@given(st.lists(job, min_size=1, max_size=12), st.sampled_from(["fcfs", "easy", "window"]))
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@example(rows=[(0, 1, 1, NODES + 1)], policy="fcfs")
def test_it_says_what_a_look_at_every_node_says(make_trace, rows, policy):
    trace = make_trace(*sorted(rows))
    run = simulate(trace, f"nodes:{NODES}", policy)
    found = fragmentation(run.trace, NODES, run.schedule)
    classes = np.zeros(found.classes.shape[1])
    rejected = run.state == "REJECTED"
    for k, now in enumerate(found.time):
        free = np.ones(NODES, bool)
        for job in np.flatnonzero((run.start <= now) & (run.end > now)):
            free[list(nodes_of(run.resources[job]))] = False
        waiting = run.trace.processors[~rejected & (run.trace.submit <= now) & (run.start > now)]
        wanted = waiting.min() if len(waiting) else 0
        slots = slots_of(free)
        assert found.free[k] == free.sum()
        assert found.slots[k] == len(slots)
        assert found.largest_slot[k] == max(slots, default=0)
        assert found.smallest_waiting[k] == wanted
        useless = sum(slot for slot in slots if slot < wanted <= free.sum())
        assert found.useless[k] == useless
        if k + 1 < len(found.time):
            for slot in slots:
                classes[slot.bit_length() - 1] += slot * (found.time[k + 1] - now)
    assert found.classes.sum(axis=0) == pytest.approx(classes)
    if rejected.all():  # nothing ever happens
        assert not found.classes.any()
        assert found.summary() == {}
        return
    stretch = np.arange(len(found.classes) + 1) * np.ptp(found.time) / len(found.classes)
    so_far = np.append(0, np.cumsum(found.free[:-1] * np.diff(found.time)))
    free = np.interp(stretch, found.time - found.time[0], so_far)
    assert found.classes.sum(axis=1) == pytest.approx(np.diff(free), abs=1e-6)


def test_the_summary_is_a_mean_over_time_and_nodes_apart_are_fragmentation(make_trace):
    # from 0 to 10 nodes 2-3 are busy, 10 to 20 all four; a job of three waits from 4 to 10
    trace = make_trace((0, 10, 10, 2), (0, 10, 10, 1), (4, 10, 10, 3))
    run = simulate(trace, "nodes:4", "fcfs")
    found = fragmentation(run.trace, 4, run.schedule)
    assert found.time.tolist() == [0, 4, 10, 20]
    figures = found.summary()
    assert figures["loss_of_capacity"] == 0  # one node free was never enough
    assert figures["external_fragmentation"] == 0
    assert figures["mean_slots"] == 1
    assert figures["free_by_slot_size"] == {"1": 1, "2": 0, "4": 0}
    assert run.summary["mean_largest_slot"] == figures["mean_largest_slot"] == 1
    # nodes 2-3 are busy from 0 to 20, four nodes are free around them from 10 on
    trace = make_trace((0, 10, 10, 2), (0, 20, 20, 2), (0, 10, 10, 2), (10, 5, 5, 4))
    figures = simulate(trace, "nodes:6", "window", settings={"interval": 0}).summary
    assert figures["external_fragmentation"] == pytest.approx(10 * 4 / (25 * 6))
    assert figures["loss_of_capacity"] == figures["external_fragmentation"]
