"""The state of a site in figures, and what a defragmentation would win, by counting."""

import re
from dataclasses import replace
from datetime import UTC, datetime
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from optsched.numbers import moment
from optsched.report.page import render
from optsched.sites.parts import Reservation
from optsched.sites.site import Partition, Site
from optsched.slurm import defragmentation
from optsched.slurm.defragmentation import CLOSED, FILLS
from optsched.slurm.queue import Allocation
from optsched.slurm.state import ClusterState, idle_while_waiting, page, past, weekly_waits
from optsched.slurm.supply import Supply
from optsched.traces.trace import Header, Trace

from .conftest import NODES, NOW, SMALL, job, left_by, queue_of, running, supply


def test_groups_add_up_to_the_site(captured):
    _, queue, supply = captured
    state = ClusterState(queue, supply)
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
    state = ClusterState(queue, left_by(alone, full))
    parts = {group.name: group for group in state.by_partition}
    assert parts["short"].idle == 1
    assert parts["short"].free[0] == 16  # of c1, whose job is alone, nothing is free
    assert dict(state.stranded) == {"cores": 4}
    [largest] = [one for one in state.largest if one.partition == "block"]
    assert (largest.whole_nodes, largest.nodes, largest.gpus) == (1, 1, 4)
    drained = replace(state.supply, site=replace(state.supply.site, states=["drained"] * 7))
    assert ClusterState(queue, drained).everywhere.in_service == 0


def test_waits_and_idle_nodes_of_each_week():
    """Three jobs of a week and one of the next, on 4 nodes; times in hours from a Monday.

    In the third week one runs on 2 nodes for 3 hours, one has waited for 2, and one ends later.
    """
    begun = int(datetime(2026, 11, 16, tzinfo=UTC).timestamp())
    jobs = [[0, 0, 2, 4], [0, 2, 1, 2], [1, 1, 3, 1], [168, 5, 1, 1], [336, 1, 9, 2]]
    submit, wait, ran, nodes = np.array(jobs).T * [[3600], [3600], [3600], [1]]
    history = Trace(
        *(np.arange(1, 6), submit, ran, ran, nodes),
        wait=wait,
        annotations={"allocated_nodes": nodes},
        texts={"account": np.array([*"aabaa"], dtype=object)},
        header=Header((("UnixStartTime", str(begun)),)),
    )
    now = begun + 340 * 3600
    times = {"submit": now - 4 * 3600, "start": now - 3 * 3600, "account": "a"}
    runs = running(5, "c1", "c2", **times)
    waits = job(job_id=6, submit=now - 2 * 3600)
    found = past(history, queue_of(runs, waits, replace(runs, job_id=7, state="COMPLETED")), now)
    rows = weekly_waits(found, "account")
    assert [(row.week - begun, row.name, row.jobs, row.median) for row in rows] == [
        (336 * 3600, "a", 1, 3600),
        (168 * 3600, "a", 1, 5 * 3600),
        (0, "a", 2, 3600),
        (0, "b", 1, 3600),
    ]
    # the first two hours somebody waits, and 4 of 4 nodes are busy; later 5 hours without a job
    assert idle_while_waiting(found, 4) == [
        (begun + 336 * 3600, 3.0, 8.0),
        (begun + 168 * 3600, 5.0, 20.0),
        (begun, 2.0, 0.0),
    ]


def test_the_page_of_a_state_escapes_what_users_write():
    queue = queue_of(job(job_id=1, user="<b>ada</b>", reason="<i>Priority</i>"))
    text = render(page(ClusterState(queue, supply()), None))
    assert "<b>ada" not in text
    assert "&lt;b&gt;ada" in text
    assert "7 of 7 nodes in service are idle, and 1 job waits" in text
    assert "optsched slurm report -o report.html" in text
    busy = [running(number, node) for number, node in enumerate(NODES[:6], 2)]
    state = ClusterState(queue_of(*busy, job(shown_nodes=25)), left_by(*busy))
    assert "1 of 7 nodes in service is idle, and 1 job waits" in page(state, None).lead
    assert state.waiting_by("partitions") == [("all", 1, 25, 0.0)]
    assert (
        page(state, None, Path("a b")).repeat == "optsched slurm report --from 'a b' -o report.html"
    )


def test_the_page_lists_reservations_with_times_in_a_named_zone():
    kept = (
        Reservation("later", ("c1", "c2"), NOW + 60, NOW + 120, {"lab": 2}, flags=("MAINT",)),
        Reservation("own", ("g1",), admits={"users": ("ada", "bob"), "allowed_partitions": ("x",)}),
        Reservation("floating", ("c3",), ahead=3600.0),
    )
    text = render(page(ClusterState(queue_of(job()), supply(reservations=kept)), None))
    times = [moment(NOW + seconds, is_short=True) for seconds in (60, 120)]
    admits = "users ada, bob; allowed partitions x"
    for words in ("later", "c[1-2]", "2 lab", "MAINT", admits, "always in 1 h", *times):
        assert words in text, words
    assert ">Reservations<" not in render(page(ClusterState(queue_of(job()), supply()), None))
    assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d[+-]\d\d:\d\d", moment(NOW, is_short=True))
    assert datetime.fromisoformat(moment(NOW)).timestamp() == NOW


def answer(*jobs, **fields):
    """Return the answer for running jobs on a site of seven nodes."""
    return ClusterState(queue_of(*jobs), left_by(*jobs, **fields)).defragmentation


def test_two_half_empty_nodes_become_one_unless_there_are_too_many_sizes(monkeypatch):
    # of the 16 cores of c1 and c2, 6 and 5 are in use: either job could join the other
    found = answer(running(1, "c1", cores=6), running(2, "c2", cores=5))
    assert (found.won, found.most, found.jobs, found.fewest, found.movable) == (1, 1, 1, 1, 2)
    [move] = found.moves
    assert {move.source, move.target} == {"c1", "c2"}
    assert found.emptied == (move.source,)
    monkeypatch.setattr(defragmentation, "LARGEST", 1)
    found = answer(running(1, "c1", cores=6), running(2, "c2", cores=5))
    assert (found.too_large, found.won, found.moves, found.movable) == (True, 0, (), 2)


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
    for there in (closed, kept, hidden):
        found = ClusterState(queue_of(*jobs), there).defragmentation
        assert (found.won, found.movable, found.unclear) == (0, 1, there is hidden)
        assert found.stay == {CLOSED: 1}


@pytest.mark.parametrize("captured", SMALL, indirect=True)
def test_a_plan_for_a_captured_cluster_fits_node_by_node(captured):
    _, queue, supply = captured
    state = ClusterState(queue, supply)
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
    state = ClusterState(queue_of(*jobs), left_by(*jobs))
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
        state = ClusterState(queue_of(*jobs), left_by(*jobs))
        vars(state)["defragmentation"] = replace(found, **change)
        assert words in render(page(state, None)), words


@st.composite
def clusters(draw):
    """Return the capacities of nodes n0, n1 and so on, what is free, and running jobs."""
    count = draw(st.sampled_from((4, 5, 3)))
    sizes = st.tuples(st.sampled_from((6, 8, 4)), st.sampled_from((8, 12)))
    capacity = draw(st.lists(sizes, min_size=count, max_size=count))
    if draw(st.booleans()):
        capacity = [capacity[0]] * count
    free, jobs = np.array(capacity), []
    for number in range(1, draw(st.sampled_from((5, 6, 4, 2)))):
        partition = draw(st.sampled_from(("all", "all", "some")))
        several = draw(st.sampled_from((1, 1, 2)))
        inside = st.integers(0, count - 1 if partition == "all" else 1)
        nodes = draw(st.lists(inside, min_size=several, max_size=several, unique=True))
        if (free[nodes] == 0).any():
            continue
        most = np.minimum(free[nodes], 5).tolist()
        amounts = [draw(st.tuples(*(st.integers(1, one) for one in each))) for each in most]
        free[nodes] -= amounts
        there = [
            Allocation(node=f"n{node}", cores=cores, memory=memory, gres={})
            for node, (cores, memory) in zip(nodes, amounts)
        ]
        its = {"state": "RUNNING", "start": 0, "end": NOW + 60, "partitions": (partition,)}
        its |= {"least_nodes": several, "tasks": several, "allocations": tuple(there)}
        stays = draw(st.sampled_from((0,) * 5 + (1,)))
        jobs.append(job(job_id=number, other=("it asks for adjacent nodes",) * stays, **its))
    return np.array(capacity), free, jobs


def best_by_trying(capacity, jobs):
    """Return the most nodes won and the fewest jobs moved, of all ways to place all shares."""
    amounts = [[(at.cores, at.memory) for at in each.allocations] for each in jobs]
    own = [tuple(int(name[1:]) for name in each.nodes) for each in jobs]
    ways = []
    for each, nodes in zip(jobs, own):
        inside = range(len(capacity) if each.partitions == ("all",) else 2)
        every = [w for w in product(inside, repeat=len(nodes)) if len({*w}) == len(w)]
        ways.append([nodes] if each.other else every)
    busy = len({node for nodes in own for node in nodes})
    best = 0, 0
    for way in product(*ways):
        left = capacity.copy()
        for nodes, each in zip(way, amounts):
            for node, at in zip(nodes, each):
                left[node] -= at
        if (left >= 0).all():
            won = busy - len({node for nodes in way for node in nodes})
            best = max(best, (won, -sum(nodes != was for nodes, was in zip(way, own))))
    return best[0], -best[1]


@settings(deadline=None, max_examples=200)
@given(cluster=clusters())
def test_answers_are_those_of_trying_all_ways(cluster):
    capacity, free, jobs = cluster
    names = tuple(f"n{place}" for place in range(len(capacity)))
    partitions = Partition("all", np.arange(len(capacity))), Partition("some", np.arange(2))
    site = Site("s", names, ("cores", "memory"), capacity, partitions=partitions)
    got = ClusterState(queue_of(*jobs), Supply(site, free, NOW)).defragmentation
    assert (got.won, got.jobs) == best_by_trying(capacity, jobs)
    assert (got.most, got.fewest) == (got.won, got.jobs)
