"""What a defragmentation would win, against trying all ways to place the shares of jobs."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from optsched.report.page import render
from optsched.sites.parts import Reservation
from optsched.sites.site import Partition, Site
from optsched.slurm import defragmentation
from optsched.slurm.defragmentation import CLOSED, FILLS
from optsched.slurm.page import page
from optsched.slurm.queue import Allocation
from optsched.slurm.state import State
from optsched.slurm.supply import Supply

from .conftest import NOW, SMALL, job, left_by, queue_of, running


def answer(*jobs, **fields):
    """Return the answer for running jobs on a site of seven nodes."""
    return State(queue_of(*jobs), left_by(*jobs, **fields)).defragmentation


def test_two_half_empty_nodes_become_one():
    # of the 16 cores of c1 and c2, 6 and 5 are in use: either job could join the other
    found = answer(running(1, "c1", cores=6), running(2, "c2", cores=5))
    assert (found.won, found.most, found.jobs, found.fewest, found.movable) == (1, 1, 1, 1, 2)
    [move] = found.moves
    assert {move.source, move.target} == {"c1", "c2"}
    assert found.emptied == (move.source,)


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"exclusive": "node"}, "shares its nodes with no other job"),
        ({"exclusive": "user", "user": "ada"}, "those of its user alone"),
        ({"exclusive": None}, "not known in full"),
        ({"constraint": "old"}, "could not start on its nodes"),
        ({"other": ("it asks for adjacent nodes",)}, "it asks for adjacent nodes"),
        ({"reservation": "lab"}, "in a reservation"),
        ({"state": "SUSPENDED"}, "it is suspended"),
        ({"part_of": "7+1"}, "heterogeneous"),
        ({"tres": {"gres/gpu": 2}}, "not stated where it has GPUs"),
        ({"partitions": ("own",)}, "shares its nodes with no other job"),
        ({"partitions": ("gone",)}, "the site has no partition gone"),
        ({"cores": 16, "partitions": ("rest",)}, "only like nodes could hold it"),
    ],
)
def test_jobs_that_stay_are_counted_by_the_reason(fields, reason):
    other = running(2, "c4", cores=2, partitions=("rest",))
    found = answer(running(1, "c3", **{"cores": 3} | fields), other)
    [(words, count)] = found.stay.items()
    assert reason in words
    assert (count, found.movable) == (1, 1)
    # the other job may join it, unless its node is closed or full
    assert found.won == (words not in (CLOSED, FILLS) and "shares its" not in words)


def test_nodes_out_of_service_reserved_or_unclear_take_no_part():
    jobs = running(1, "c1", cores=6), running(2, "c2", cores=5)
    left = left_by(*jobs)
    closed = replace(left, site=replace(left.site, states=["drained", *["up"] * 6]))
    kept = replace(left, reservations=(Reservation("lab", ("c1",), 0, 9000),))
    hidden = replace(left, free=left.free - [[1, 0, 0, 0], *[[0] * 4] * 6])  # a core of no job
    for supply in (closed, kept, hidden):
        found = State(queue_of(*jobs), supply).defragmentation
        assert (found.won, found.movable, found.unclear) == (0, 1, supply is hidden)
        assert found.stay == {CLOSED: 1}


@pytest.mark.parametrize("captured", SMALL, indirect=True)
def test_a_plan_for_a_captured_cluster_fits_node_by_node(captured):
    _, queue, supply = captured
    state = State(queue, supply)
    found = state.defragmentation
    left = {name: row.tolist() for name, row in zip(supply.site.nodes, state.now.free)}
    on = {(job.job_id, node) for job in queue.running for node in job.nodes}
    on_before = {*on}
    inside = {each.name: {*each.nodes.tolist()} for each in supply.site.partitions}
    for move in found.moves:
        [has] = [each for each in move.job.allocations if each.node == move.source]
        threads = int(supply.threads[supply.site.index[move.source]])
        gres = [has.gres.get(name, 0) for name in supply.site.resources[2:]]
        amounts = [has.cores * threads, has.memory, *gres]
        left[move.source] = [free + amount for free, amount in zip(left[move.source], amounts)]
        left[move.target] = [free - amount for free, amount in zip(left[move.target], amounts)]
        on.remove((move.job.job_id, move.source))
        assert supply.site.index[move.target] in inside[move.job.partitions[0]]
        assert supply.site.states[supply.site.index[move.target]] == "up"
    assert min(amount for row in left.values() for amount in row) >= 0
    then = on | {(move.job.job_id, move.target) for move in found.moves}
    assert len(then) == len(on) + len(found.moves)
    assert found.won == len({node for _, node in on_before}) - len({node for _, node in then})
    assert len(found.emptied) >= found.won
    assert found.jobs >= found.fewest or found.won < found.most
    assert found.movable + sum(found.stay.values()) == len(queue.running)


def test_the_page_says_what_is_won_and_that_it_is_proven():
    jobs = running(1, "c1", cores=6), running(2, "c2", cores=5, user="<b>ada</b>")
    state = State(queue_of(*jobs), left_by(*jobs))
    said = "1 more whole node would be idle if 1 running job could be moved."
    shown = page(state, None)
    assert said in shown.lead
    text = render(shown)
    assert "no fewer jobs win as much" in text
    assert "<b>ada" not in text
    found = state.defragmentation
    for change, words in (
        ({"most": 2}, "no more than 2 nodes could be won"),
        ({"fewest": 0}, "at least 0 jobs"),
        ({"won": 0, "moves": (), "most": 3}, "no more than 3 nodes"),
        ({"won": 0, "moves": (), "most": 0}, "would not win a whole node"),
        ({"won": 0, "moves": (), "movable": 0}, "No running job could be moved"),
        ({"won": 0, "moves": (), "too_large": True}, "not computed"),
        ({"unclear": 1}, "On 1 node more or less is in use"),
        ({"moves": found.moves * 22}, "2 more moves are not listed"),
        ({"emptied": ("c1", "c2")}, "takes 1 node that is idle now"),
    ):
        state = State(queue_of(*jobs), left_by(*jobs))
        vars(state)["defragmentation"] = replace(found, **change)
        assert words in render(page(state, None)), words


def test_too_many_sizes_are_not_computed(monkeypatch):
    monkeypatch.setattr(defragmentation, "LARGEST", 1)
    found = answer(running(1, "c1", cores=6), running(2, "c2", cores=5))
    assert found.too_large
    assert (found.won, found.moves, found.movable) == (0, (), 2)


@st.composite
def clusters(draw):
    """Return the capacities of nodes, and jobs as partition, nodes, cores and memory there."""
    count = draw(st.sampled_from((4, 5, 3)))
    sizes = st.tuples(st.sampled_from((6, 8, 4)), st.sampled_from((8, 12)))
    capacity = draw(st.lists(sizes, min_size=count, max_size=count))
    if draw(st.booleans()):
        capacity = [capacity[0]] * count
    free = np.array(capacity)
    jobs = []
    for _ in range(draw(st.sampled_from((4, 5, 3, 1)))):
        partition = draw(st.sampled_from(("all", "all", "some")))
        several = draw(st.sampled_from((1, 1, 2)))
        inside = st.integers(0, count - 1 if partition == "all" else 1)
        nodes = draw(st.lists(inside, min_size=several, max_size=several, unique=True))
        if (free[nodes] == 0).any():
            continue
        most = np.minimum(free[nodes], 5).tolist()
        amounts = [draw(st.tuples(*(st.integers(1, one) for one in each))) for each in most]
        free[nodes] -= amounts
        jobs.append((partition, nodes, amounts, draw(st.sampled_from((False,) * 5 + (True,)))))
    return capacity, jobs


def best_by_trying(capacity, jobs):
    """Return the most nodes won and the fewest jobs moved, of all ways to place all shares."""
    count = len(capacity)
    ways = []
    for partition, nodes, _, stays in jobs:
        inside = range(count if partition == "all" else 2)
        every = [w for w in product(inside, repeat=len(nodes)) if len({*w}) == len(w)]
        ways.append([tuple(nodes)] if stays else every)
    busy = {node for _, nodes, *_ in jobs for node in nodes}
    best = 0, 0
    for way in product(*ways):
        left = np.array(capacity)
        for nodes, (_, _, amounts, _) in zip(way, jobs):
            for node, at in zip(nodes, amounts):
                left[node] -= at
        if (left >= 0).all():
            won = len(busy) - len({node for nodes in way for node in nodes})
            moved = sum(nodes != tuple(own) for nodes, (_, own, *_) in zip(way, jobs))
            best = max(best, (won, -moved))
    return best[0], -best[1]


def placed(capacity, jobs):
    """Return the state of a cluster."""
    count = len(capacity)
    names = tuple(f"n{place}" for place in range(count))
    partitions = Partition("all", np.arange(count)), Partition("some", np.arange(2))
    site = Site("s", names, ("cores", "memory"), np.array(capacity), partitions=partitions)
    free, made = np.array(capacity), []
    for number, (partition, nodes, amounts, stays) in enumerate(jobs, 1):
        there = [
            Allocation(node=names[node], cores=cores, memory=memory, gres={})
            for node, (cores, memory) in zip(nodes, amounts)
        ]
        for node, at in zip(nodes, amounts):
            free[node] -= at
        needs = {"least_nodes": len(nodes), "tasks": len(nodes), "partitions": (partition,)}
        other = ("it asks for adjacent nodes",) if stays else ()
        times = {"state": "RUNNING", "start": 0, "end": NOW + 60}
        made.append(job(job_id=number, allocations=tuple(there), other=other, **needs, **times))
    return State(queue_of(*made), Supply(site, free, NOW))


@settings(deadline=None, max_examples=200)
@given(cluster=clusters())
def test_answers_are_those_of_trying_all_ways(cluster):
    got = placed(*cluster).defragmentation
    assert (got.won, got.jobs) == best_by_trying(*cluster)
    assert (got.most, got.fewest) == (got.won, got.jobs)
