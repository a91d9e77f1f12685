"""Policies on a site: equal to a textbook scheduler, and to those on a line of processors."""

from __future__ import annotations

import importlib.util
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from optsched import registry, simulate
from optsched.errors import InputError
from optsched.machines.site import SiteMachine
from optsched.policies.easy import Easy
from optsched.simulator.system import columns_of
from optsched.sites.parts import Reservation, Tree
from optsched.sites.requests import TEXTS, Requests
from optsched.sites.site import Partition, Site
from optsched.traces.cleaning import clean
from optsched.traces.reading import read_trace
from optsched.traces.trace import Header, Trace

ORDERS = ("sjf", "saf", "wfp3", "unicef", "f1")
"""Priority orders."""


def plain_site(nodes, cores):
    """Return a site on which only processors count."""
    return Site(
        "plain",
        tuple(f"n{node}" for node in range(nodes)),
        ("cores", "memory"),
        np.tile([cores, 1000], (nodes, 1)),
    )


SITE = Site(
    "small",
    ("a", "b", "c", "d", "e", "f"),
    ("cores", "memory", "gpu", "gpu:big"),
    np.array(
        [
            *([4, 100, 0, 0], [4, 100, 0, 0], [8, 400, 0, 0]),
            *([4, 200, 2, 0], [8, 200, 3, 2], [4, 100, 0, 0]),
        ]
    ),
    features=(("ib",), ("ib",), ("fat",), ("fat",), ("ib", "fat"), ("ib",)),
    states=("up",) * 5 + ("drained",),
    partitions=(
        Partition("batch", np.arange(6), default=True),
        Partition("gpu", np.array([3, 4]), max_nodes=1, max_time=12),
        Partition("own", np.array([0, 1, 2]), exclusive=True, memory_per_core=30),
    ),
    licences={"matlab": 3},
)


KEPT = replace(
    SITE,
    partitions=(*SITE.partitions, Partition("first", np.array([1, 2, 4]), priority_tier=3)),
    states=("up", "up", "reserved", "up", "up", "drained"),
    reservations=(
        Reservation("early", ("b", "c"), 6, 20),
        Reservation("late", ("c", "d", "e"), 25, 45),
        Reservation("over", ("a",), -9, 0),
    ),
)
"""The same with a partition of a higher tier, and reservations."""

WIRED = replace(SITE, topologies={"tree": Tree(("one", "two"), [-1, -1], [0, 1, 0, 1, 0, 1])})


@pytest.fixture(scope="module")
def site_textbook():
    """The independent statement of the schedulers of a site."""
    path = Path(__file__).parent / "site_textbook.py"
    spec = importlib.util.spec_from_file_location("site_textbook", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def some(values):
    """Draw a value, or -1 for unknown more often than not."""
    return st.one_of(st.just(-1), st.just(-1), values)


jobs = st.fixed_dictionaries(
    {
        "gap": st.integers(0, 6),
        "runtime": st.integers(1, 12),
        "slack": st.integers(0, 8),
        "processors": st.integers(1, 9),
        "nodes": some(st.integers(1, 3)),
        "tasks": some(st.integers(1, 6)),
        "cores_per_task": some(st.integers(1, 3)),
        "tasks_per_node": some(st.integers(1, 3)),
        "memory_per_node": some(st.sampled_from([0, 40, 150])),
        "memory_per_core": some(st.sampled_from([10, 25, 60])),
        "gpus": some(st.integers(0, 3)),
        "gpus_per_node": some(st.integers(1, 2)),
        "exclusive": some(st.integers(0, 1)),
        "partition_name": st.sampled_from(["", "", "", "gpu", "own", "gpu,own", "first", "lost"]),
        "features": st.sampled_from(["", "", "", "ib", "fat", "[ib|fat]", "none"]),
        "gpu_type": st.sampled_from(["", "", "big"]),
        "licences": st.sampled_from(["", "", "matlab", "matlab:2"]),
        "reservation": st.sampled_from(["", "", "", "", "early", "late", "over", "unknown"]),
    }
)


FIELDS = (
    *("tasks", "cores_per_task", "tasks_per_node", "memory_per_node", "memory_per_core"),
    *("gpus", "gpus_per_node", "exclusive"),
)
"""Numbers that a job may state, beside its nodes."""


def trace_of(rows, unit=1):
    """Return the trace of some rows, whose times are in units of so many seconds."""
    column = {name: np.array([row[name] for row in rows]) for name in rows[0]}
    column |= {name: column[name] * unit for name in ("gap", "runtime", "slack")}
    numbers = set(column) - {"gap", "runtime", "slack", "processors", *TEXTS}
    return clean(
        Trace(
            job_id=np.arange(1, len(rows) + 1),
            submit=np.cumsum(column["gap"]),
            runtime=column["runtime"],
            requested_time=column["runtime"] + column["slack"],
            processors=column["processors"],
            annotations={name: column[name] for name in numbers},
            texts={name: column[name].astype(object) for name in TEXTS},
        )
    )


def alternatives(trace, site=SITE):
    """Return the alternatives of each job for the textbook; empty if it is rejected."""
    requests = Requests(site, columns_of(trace))
    return [
        [
            SimpleNamespace(
                **one._asdict() | {"nodes": {*np.flatnonzero(requests.nodes[one.nodes])}}
            )
            for one in (requests.of(number) if number >= 0 else ())
        ]
        for number in requests.numbers
    ]


def queues(trace, site):
    """Return the cells, the tier and the number of the reservation of each job."""
    there = {each.name: each for each in site.partitions}
    number = {each.name: place for place, each in enumerate(site.reservations)}
    cells, tiers, own = [], [], []
    for names, kept in zip(trace.texts["partition_name"], trace.texts["reservation"]):
        found = [there[name] for name in (names or "batch").split(",") if name in there]
        own.append(number.get(kept))
        cells.append({kept} if kept in number else {node for p in found for node in p.nodes})
        tiers.append(max((each.priority_tier for each in found), default=0))
    return {"cells": cells, "tier": tiers, "own": own}


@pytest.mark.parametrize("site", [SITE, KEPT], ids=["queues", "reservations"])
@pytest.mark.parametrize(
    ("policy", "backfill"),
    [("fcfs", "none"), ("easy", "easy"), ("sjf", "none"), ("sjf", "easy"), ("conservative", "all")],
)
def test_schedules_equal_the_textbook(policy, backfill, site, site_textbook):
    @given(st.lists(jobs, min_size=1, max_size=20))
    @settings(max_examples=50, deadline=None)
    def compare(rows):
        assert_equal_to_the_textbook(trace_of(rows), site, policy, backfill, site_textbook)

    compare()


def assert_equal_to_the_textbook(trace, site, policy, backfill, site_textbook):
    chosen = {"backfill": backfill} if policy == "sjf" else {}
    run = simulate(trace, SiteMachine(site), policy, settings=chosen, check=True)
    columns = [trace.submit, trace.runtime, trace.requested_time]
    submit, runtime, estimate = (column.tolist() for column in columns)
    capacity = np.where(site.is_usable[:, None], site.capacity, 0).tolist()
    given_jobs = (capacity, site.licences.values(), alternatives(trace, site))
    windows = [(each.start, each.end, {*site.places(each.nodes)}) for each in site.reservations]
    options = queues(trace, site) | {"windows": windows}
    if backfill == "all":
        wanted = site_textbook.conservative(*given_jobs, submit, runtime, estimate, **options)
    else:
        wanted = site_textbook.easy(
            *(*given_jobs, submit, runtime, estimate),
            backfills=backfill == "easy",
            order=(lambda job: (estimate[job], job)) if policy == "sjf" else None,
            **options,
        )
    never = [start is None for start in wanted]
    assert np.isnan(run.start).tolist() == never
    assert run.start[~np.array(never)].tolist() == [at for at in wanted if at is not None]
    return chosen


SPARE = replace(
    plain_site(20, 4),
    partitions=(
        Partition("batch", np.arange(20), default=True),
        Partition("left", np.arange(9)),
        Partition("right", np.arange(9, 20)),
    ),
    licences={"matlab": 3},
)
"""Nodes enough that heads have some to spare."""


def on_nodes(most, cores, times):
    """Draw a job on whole nodes or parts of them."""
    unknown = dict.fromkeys(FIELDS, -1) | dict.fromkeys(TEXTS, "")
    own = {
        "gap": st.sampled_from([0, 0, 1, 3]),
        "nodes": st.integers(1, most),
        "cores": st.sampled_from(cores),
        "runtime": st.integers(*times),
        "slack": st.sampled_from([0, 0, 3, 9]),
        "partition_name": st.sampled_from(["", "", "left", "right"]),
        "licences": st.sampled_from(["", "", "", "matlab", "matlab:2"]),
    }

    def row(job):
        return unknown | job | {"processors": job["nodes"] * job.pop("cores")}

    return st.fixed_dictionaries(own).map(row)


@pytest.mark.parametrize("several", [False, True], ids=["one-queue", "several-queues"])
@pytest.mark.parametrize(
    ("policy", "backfill"), [("easy", "easy"), pytest.param("sjf", "easy", marks=pytest.mark.long)]
)
def test_long_jobs_take_no_more_than_heads_can_spare(policy, backfill, several, site_textbook):
    # the first jobs hold half of the nodes for a while, heads need most of them, and jobs that last
    # beyond their shadow times take several nodes each: more than one of them is often too much;
    # as a job ends early, a shadow time may come before the end of a short one
    running, heads = on_nodes(10, [4], (4, 9)), on_nodes(14, [2, 4], (2, 15))
    long, short = on_nodes(5, [1, 4], (10, 30)), on_nodes(5, [1, 4], (2, 14))

    @given(
        st.lists(running, min_size=1, max_size=3),
        st.lists(heads, min_size=1, max_size=2),
        st.lists(st.one_of(long, short, heads), min_size=2, max_size=9),
    )
    @settings(max_examples=60, deadline=None)
    def compare(first, blocked, later):
        rows = [*first, *blocked, *later]
        trace = trace_of(rows if several else [row | {"partition_name": ""} for row in rows])
        chosen = assert_equal_to_the_textbook(trace, SPARE, policy, backfill, site_textbook)
        assert_equal_to_the_engine(trace, SPARE, policy, chosen)

    compare()


CONTESTED = replace(
    plain_site(6, 4),
    features=(("ib",), ("fat",), ("ib",)) * 2,
    partitions=(
        Partition("batch", np.arange(6), default=True),
        Partition("left", np.arange(4)),
        Partition("right", np.arange(2, 6), priority_tier=2),
        Partition("alone", np.arange(1, 5), exclusive=True),
    ),
    licences={"matlab": 3},
)
"""Few nodes, so that many jobs wait."""

WINDOWS = (Reservation("early", ("n1", "n2"), 9, 24), Reservation("late", ("n2", "n4"), 30, 50))
"""Reservations on these."""


@pytest.mark.parametrize(
    ("windows", "unit"),
    [
        pytest.param((), 1, id="licences"),
        pytest.param(WINDOWS, 1.1, id="reservations-fractions"),
        pytest.param((), 1.1, id="licences-fractions", marks=pytest.mark.long),
        pytest.param(WINDOWS, 1, id="reservations", marks=pytest.mark.long),
    ],
)
def test_reservations_of_many_jobs_equal_the_textbook(windows, unit, site_textbook):
    # jobs end early, so that what others wait for becomes free, some of it licences or a hole
    # between reservations; sums of fractions are rounded; one alternative may be in the way of
    # another of the same job, which wants the nodes for itself
    site = replace(CONTESTED, reservations=windows)
    drawn = {
        "reservation": st.sampled_from(["", "", *(each.name for each in windows)]),
        "features": st.sampled_from(["", "", "", "[ib|fat]"]),
        "partition_name": st.sampled_from(["", "", "left", "right", "left,alone", "right,alone"]),
    }
    job = st.builds(dict.__or__, on_nodes(4, [1, 2, 4], (1, 9)), st.fixed_dictionaries(drawn))

    @given(st.lists(job, min_size=8, max_size=18))
    @settings(max_examples=100, deadline=None)
    def compare(rows):
        trace = trace_of(rows, unit)
        assert_equal_to_the_textbook(trace, site, "conservative", "all", site_textbook)

    compare()


def in_parts(nodes, parts):
    """Return a site with a licence and partitions of given nodes; `alone` has nodes for one job."""
    return replace(
        plain_site(nodes, 4),
        partitions=tuple(
            Partition(name, np.array(at), exclusive=name == "alone", default=not number)
            for number, (name, at) in enumerate(parts.items())
        ),
        licences={"matlab": 1},
    )


def test_a_job_may_give_up_its_place_for_one_that_was_in_its_way(site_textbook):
    # the last job has shared nodes from 10 on; as the third moves from 20 to 5, it could have the
    # nodes of its other partition for itself from 7 on, but for its own place on one of them
    parts = {
        "first": [0],
        "second": [1, 5],
        "outer": [0, 2, 4],
        "shared": [1, 2, 5],
        "alone": [2, 3, 4],
    }
    jobs = [
        own_job(0, 5, 15, 1) | {"partition_name": "first", "processors": 4},
        own_job(0, 10, 0, 2) | {"partition_name": "second", "processors": 8},
        own_job(0, 2, 0, 3) | {"partition_name": "outer"},
        own_job(0, 25, 0, 3) | {"partition_name": "shared,alone"},
    ]
    site = in_parts(6, parts)
    assert_equal_to_the_textbook(trace_of(jobs), site, "conservative", "all", site_textbook)


def test_reserved_jobs_are_placed_again_at_ends_alone(site_textbook):
    # at 5 the fourth job goes where the first has been, and leaves what the third could have at
    # once; that is noticed at the next end, not as the last one is submitted
    parts = {"outer": [0, 2], "last": [3], "inner": [1, 2], "first": [0, 1]}
    jobs = [
        own_job(0, 5, 15, 2) | {"partition_name": "outer", "processors": 8},
        own_job(0, 5, 5, 1, "matlab") | {"partition_name": "last"},
        own_job(0, 12, 0, 2) | {"partition_name": "inner", "processors": 8},
        own_job(0, 10, 0, 1, "matlab") | {"partition_name": "first", "processors": 4},
        own_job(6, 20, 0, 1) | {"partition_name": "last"},
    ]
    trace, site = trace_of(jobs), in_parts(4, parts)
    assert_equal_to_the_textbook(trace, site, "conservative", "all", site_textbook)
    run = simulate(trace, SiteMachine(site), "conservative")
    assert run.start.tolist() == [0, 0, 15, 5, 6]


@pytest.mark.parametrize("policy", ["fcfs", "easy", "conservative", "as-logged", "placement"])
def test_reservations_hold(policy):
    chosen = {"interval": 0.0} if policy == "placement" else {}

    @given(st.lists(jobs, min_size=1, max_size=20), st.integers(0, 100))
    @settings(max_examples=25, deadline=None)
    def check(rows, began):
        trace = trace_of(rows).changed(
            wait=np.array([3 * row["gap"] for row in rows]),
            header=Header((("UnixStartTime", str(began)),)),
        )
        kept = (*KEPT.reservations, Reservation("endless", ("c", "e"), 50))
        site = replace(KEPT, reservations=tuple(later(each, began) for each in kept))
        run = simulate(trace, SiteMachine(site), policy, settings=chosen, check=True)
        assert "WAITING" not in run.state.tolist()  # whoever can no longer start is rejected
        for job in np.flatnonzero(~np.isnan(run.start)).tolist():
            first, last = run.start[job], run.start[job] + trace.requested_time[job]
            held = {*host_numbers(run.resources[job])}
            for each in KEPT.reservations:
                kept = {*site.places(each.nodes).tolist()}
                if trace.texts["reservation"][job] == each.name:
                    assert held <= kept
                    assert each.start <= first < last <= each.end
                else:
                    assert not each.overlaps(first, last) or not held & kept

    check()


def later(reservation, seconds):
    start, end = reservation.start + seconds, reservation.end + seconds
    return Reservation(reservation.name, reservation.nodes, start, end)


def host_numbers(text):
    """Return the numbers of nodes in an interval set."""
    for run in text.split():
        first, _, last = run.partition("-")
        yield from range(int(first), int(last or first) + 1)


def test_a_head_stops_only_the_partitions_that_share_nodes_with_its_own(make_trace):
    site = replace(
        plain_site(3, 4),
        partitions=tuple(
            Partition(name, np.array(nodes))
            for name, nodes in (("left", [0]), ("right", [1]), ("both", [0, 1]), ("far", [2]))
        ),
    )
    names = ["left", "left", "left", "both", "right", "both", "far"]
    sizes = [2, 4, 1, 2, 1, 8, 4]
    trace = make_trace(*((0, 50 if at < 2 else 9, 50, size) for at, size in enumerate(sizes)))
    trace = trace.changed(texts={"partition_name": np.array(names, dtype=object)})
    for policy, starts, nodes in (
        # the second job is a head, so the third waits; the fourth has the right node
        ("fcfs", [0, 50, 100, 0, 0, 109, 0], ["0", "0", "0", "1", "1", "0-1", "2"]),
        # the third and the fourth end before the head needs all of the left node
        ("easy", [0, 50, 0, 0, 0, 100, 0], ["0", "0", "0", "0-1", "1", "0-1", "2"]),
    ):
        run = simulate(trace, SiteMachine(site), policy, check=True)
        assert run.start.tolist() == starts
        assert [*run.resources] == nodes


def test_a_job_of_two_partitions_is_backfilled_where_there_is_room_again(make_trace):
    site = replace(
        plain_site(5, 1),  # of which the last stays idle
        partitions=(Partition("left", np.array([0, 1])), Partition("right", np.array([2, 3]))),
    )
    names = ["left", "right", "right", "right", "left,right"]
    # the fourth is the head; both partitions are full until the second ends
    rows = (0, 200, 200, 2), (0, 50, 50, 1), (0, 100, 100, 1), (1, 10, 10, 2), (2, 40, 40, 1)
    trace = make_trace(*rows).changed(texts={"partition_name": np.array(names, dtype=object)})
    for check in (False, True):
        run = simulate(trace, SiteMachine(site), "easy", check=check, compiled_from=0)
        assert run.start.tolist() == [0, 0, 0, 100, 50]
        assert run.resources[4] == "2"


def test_jobs_in_reservations_that_the_site_has_not_are_in_none(make_trace):
    trace = make_trace((0, 9, 9, 2))
    trace = trace.changed(texts={"reservation": np.array(["gone"], dtype=object)})
    run = simulate(trace, SiteMachine(KEPT), "easy", check=True)
    assert run.start.tolist() == [0]
    note = "reservations: 1 job in reservations that the site does not have, taken as in none"
    assert note in run.notes


ONE_OF_EACH = {("sjf", "none"), ("sjf", "easy"), ("wfp3", "easy")}
"""Fixed scores and scores that grow, with and without backfilling; the rest takes long."""


WHERE_PROCESSORS_COUNT = [
    ("fcfs", {}),
    ("easy", {}),
    ("easy-sjbf", {}),
    ("conservative", {}),
    *(
        pytest.param(
            *(order, {"backfill": backfill}),
            marks=() if (order, backfill) in ONE_OF_EACH else pytest.mark.long,
        )
        for order in ORDERS
        for backfill in ("none", "easy")
    ),
]


@pytest.mark.parametrize(("policy", "chosen"), WHERE_PROCESSORS_COUNT)
@pytest.mark.parametrize("order", ["batched", "one-by-one"])
def test_where_only_processors_count_a_site_is_a_line(policy, chosen, order):
    @given(
        st.lists(
            st.tuples(*(st.integers(*ends) for ends in ((0, 6), (1, 12), (0, 8), (1, 14)))),
            min_size=1,
            max_size=25,
        )
    )
    @settings(max_examples=40, deadline=None)
    def compare(rows):
        gap, runtime, slack, size = np.array(rows).T
        trace = clean(Trace(np.arange(len(rows)), np.cumsum(gap), runtime, runtime + slack, size))
        line = simulate(trace, "nodes:12", policy, settings=chosen, event_order=order)
        for nodes, cores in ((12, 1), (3, 4)):
            machine = SiteMachine(plain_site(nodes, cores))
            run = simulate(trace, machine, policy, settings=chosen, event_order=order, check=True)
            np.testing.assert_array_equal(run.start, line.start)

    compare()


@pytest.mark.parametrize(("policy", "chosen"), WHERE_PROCESSORS_COUNT)
@pytest.mark.parametrize("order", ["batched", "one-by-one"])
def test_a_log_runs_on_a_site_as_on_a_line(policy, chosen, order, shared):
    trace = read_trace(shared("traces/SDSC-SP2-1998-4.2-cln.swf.gz"))
    options = {"settings": chosen, "event_order": order, "jobs": (1, 3000)}
    line = simulate(trace, "nodes:128", policy, **options)
    run = simulate(trace, SiteMachine(plain_site(16, 8)), policy, **options)
    np.testing.assert_array_equal(run.start, line.start)


KERNELS = [
    *(("fcfs", {}), ("easy", {}), ("easy-sjbf", {})),
    *(
        pytest.param(
            *(order, {"backfill": backfill}), marks=() if order == "sjf" else pytest.mark.long
        )
        for order in ("sjf", "f1")
        for backfill in ("none", "easy")
    ),
    ("conservative", {}),
]


@pytest.mark.parametrize(("policy", "chosen"), KERNELS)
def test_kernels_and_engine_agree(policy, chosen):
    @given(
        st.lists(jobs, min_size=1, max_size=30),
        st.sampled_from(["batched", "one-by-one"]),
        st.booleans(),
    )
    @settings(max_examples=60, deadline=None)
    def compare(rows, order, several):
        options = {"settings": chosen, "event_order": order}
        trace = trace_of(rows if several else [row | {"partition_name": ""} for row in rows])
        site = replace(KEPT, states=SITE.states, reservations=())
        assert_equal_to_the_engine(trace, site, policy, **options)

    compare()


def assert_equal_to_the_engine(trace, site, policy, settings, event_order="batched"):
    """Compare runs in which the core acts, the engine follows, and Python asks the kernels."""
    known = registry.policies[policy]
    in_python = type(known.__name__, (known,), {"decide": known.decide})
    runs = [
        simulate(trace, SiteMachine(site), one(**settings), event_order=event_order, journal=seen)
        for one, seen in ((known, False), (known, True), (in_python, False))
    ]
    for run in runs[1:]:
        np.testing.assert_array_equal(run.start, runs[0].start)
        np.testing.assert_array_equal(run.end, runs[0].end)
        assert run.state.tolist() == runs[0].state.tolist()
        assert list(run.resources) == list(runs[0].resources)
        assert run.schedule.decisions == runs[0].schedule.decisions


@pytest.mark.parametrize("policy", ["easy", "easy-sjbf", "sjf", "conservative"])
@pytest.mark.parametrize("several", [False, True], ids=["one-queue", "several-queues"])
def test_kernels_and_engine_agree_where_many_different_jobs_wait(policy, several):
    random, jobs = np.random.default_rng(7), 400
    parts = {"all": np.arange(24), "left": np.arange(10), "right": np.arange(10, 24)}
    site = replace(
        plain_site(24, 16),
        partitions=tuple(
            Partition(name, nodes, default=name == "all") for name, nodes in parts.items()
        ),
    )
    runtime = random.lognormal(5, 1, jobs).astype(np.int64) + 1
    nodes = random.integers(1, 13, jobs)
    trace = clean(
        Trace(
            np.arange(jobs),
            np.cumsum(random.exponential(40, jobs)).astype(np.int64),
            runtime,
            (runtime * random.uniform(1, 4, jobs)).astype(np.int64),
            nodes * random.integers(1, 17, jobs),
            annotations={
                "nodes": np.where(random.random(jobs) < 0.5, nodes, -1),
                "memory_per_core": random.integers(1, 60, jobs),
                "exclusive": (random.random(jobs) < 0.1).astype(np.int64),
            },
            texts={
                "partition_name": random.choice([*parts] if several else ["all"], jobs).astype(
                    object
                )
            },
        )
    )
    chosen = {"backfill": "easy"} if policy == "sjf" else {}
    assert_equal_to_the_engine(trace, site, policy, chosen)


def own_job(gap, runtime, slack, nodes, licences=""):
    unknown = dict.fromkeys(FIELDS, -1) | dict.fromkeys(TEXTS, "")
    own = {"gap": gap, "runtime": runtime, "slack": slack, "nodes": nodes, "licences": licences}
    return unknown | own | {"processors": nodes}


@pytest.mark.parametrize(
    ("nodes", "rows", "starts"),
    [
        # At 4 s the first job ends early. The head, with four of five nodes, can start at 6 s now,
        # in place of 8 s; what comes at 5 s would end at 8 s.
        (
            5,
            [
                *(own_job(0, 4, 6, 1), own_job(0, 6, 0, 1), own_job(0, 8, 0, 1)),
                *(own_job(1, 5, 0, 4), own_job(4, 3, 0, 1)),
            ],
            [0, 0, 0, 6, 8],
        ),
        # The head starts at 10 s with one of three licences and three of six nodes. Behind it, jobs
        # with two licences and with one are too much.
        (
            6,
            [
                *(own_job(0, 10, 0, 4), own_job(1, 5, 0, 3, "matlab:1")),
                *(own_job(1, 48, 0, 1, "matlab:2"), own_job(0, 48, 0, 1, "matlab:1")),
            ],
            [0, 10, 2, 15],
        ),
    ],
    ids=["a head that may start earlier", "licences"],
)
def test_backfilled_jobs_leave_heads_what_they_need(nodes, rows, starts):
    site, trace = replace(plain_site(nodes, 1), licences={"matlab": 3}), trace_of(rows)
    run = simulate(trace, SiteMachine(site), "easy", check=True)
    assert run.start.tolist() == starts
    assert_equal_to_the_engine(trace, site, "easy", {})


@pytest.mark.parametrize("policy", ["easy", "sjf", "conservative"])
def test_jobs_wait_for_licences(policy):
    # two of three licences are held until 10 s, so the second job waits, and the third does not
    jobs = own_job(0, 10, 0, 1, "matlab:2"), own_job(1, 10, 0, 1, "matlab:2")
    trace = trace_of([*jobs, own_job(1, 8, 0, 1, "matlab:1")])
    site = replace(plain_site(6, 1), licences={"matlab": 3})
    options = {"settings": {"backfill": "easy"}} if policy == "sjf" else {}
    run = simulate(trace, SiteMachine(site), policy, check=True, **options)
    assert run.start.tolist() == [0, 10, 2]


def test_jobs_that_are_late_within_the_tolerance_count_as_ended_for_a_head():
    # of four nodes, three are held; the head needs three, and has two and the free one from 10 on
    late, later = 10 + 5e-7, 10 + 9e-7
    rows = [
        *((0, late, 10, 1), (0, later, 10, 1), (4 + 2.5e-7, 6 + 5e-7, 6, 1)),
        *((5, 9, 9, 3), (6, 50, 50, 1)),
    ]
    submit, runtime, requested, size = np.array(rows, dtype=np.float64).T
    trace = clean(Trace(np.arange(5), submit, runtime, runtime, size.astype(np.int64)))
    trace = replace(trace, requested_time=requested)
    run = simulate(trace, SiteMachine(plain_site(4, 1)), "easy", check=True)
    # as the first job ends, all should have: the head can spare one of the four nodes
    assert run.start[4] == late
    assert_equal_to_the_engine(trace, plain_site(4, 1), "easy", {})


def test_reserved_jobs_wait_for_nodes_of_jobs_that_are_late_within_the_tolerance():
    # the third job is to start at 10 s on the node of the first, which runs on while one comes
    late = 10 + 5e-7
    rows = (0, late, 10, 1), (0, 10, 10, 1), (2, 5, 5, 1), (2.5, 7, 7, 1)
    submit, runtime, requested, size = np.array(rows, dtype=np.float64).T
    alone = {"exclusive": np.ones(4, dtype=np.int64)}
    trace = Trace(np.arange(4), submit, runtime, runtime, size.astype(np.int64), annotations=alone)
    trace = replace(clean(trace), requested_time=requested)
    run = simulate(trace, SiteMachine(plain_site(2, 1)), "conservative", check=True)
    assert run.start.tolist() == [0, 0, late, 10]
    assert_equal_to_the_engine(trace, plain_site(2, 1), "conservative", {})


@pytest.mark.parametrize("policy", ["easy", "conservative", "wfp3"])
@pytest.mark.parametrize("column", [{"begin": 5}, {"exclusive": 1, "begin": 5}])
def test_jobs_that_are_held_wait(policy, column, make_trace):
    trace = make_trace((0, 9, 9, 2), (1, 9, 9, 2))
    columns = {name: np.full(2, at) for name, at in column.items()}
    trace = clean(trace.changed(annotations=columns, cleaning=None))
    run = simulate(trace, SiteMachine(SITE), policy, check=True)
    assert run.start.tolist() == [5, 5]


PLAIN = {"gap": 0, "runtime": 1, "slack": 0, "processors": 1, "nodes": -1}
PLAIN |= dict.fromkeys(FIELDS, -1)
PLAIN |= dict.fromkeys(("partition_name", "features", "gpu_type", "licences", "reservation"), "")


@given(st.lists(jobs, min_size=1, max_size=20))
@example(  # a higher tier is before jobs that were submitted earlier
    [PLAIN] * 4
    + [PLAIN | {"slack": 6, "processors": number} for number in (3, 7)]
    + [PLAIN | {"slack": 6, "processors": 3, "partition_name": "first"}]
)
@settings(max_examples=30, deadline=None)
def test_jobs_that_would_jump_the_queue_are_backfilled_in_the_order_of_a_subclass(rows):
    class Shortest(Easy):
        def in_order(self, jobs, system):
            return sorted(jobs, key=system.requested_time.__getitem__)

    trace = trace_of(rows)
    runs = [
        simulate(trace, SiteMachine(KEPT), one, check=True) for one in (Shortest(), "easy-sjbf")
    ]
    np.testing.assert_array_equal(runs[0].start, runs[1].start)


def kept(policy, rows, settings=None, **options):
    """Run jobs, and return for each that had a reservation its first shadow time and its start."""
    first, known = {}, registry.policies[policy]

    class Observed(known):
        def promised(self, system):
            found = super().promised(system)
            for job, at in found.items():
                first.setdefault(job, at)
            return found

    chosen = Observed(**settings or {})
    run = simulate(trace_of(rows), SiteMachine(WIRED), chosen, check=True, **options)
    return [(shadow, run.start[job]) for job, shadow in first.items()]


@pytest.mark.parametrize(
    "solver", [None, pytest.param("first-fit", marks=pytest.mark.long), "best-fit", "cp-sat"]
)
def test_a_reserved_job_starts_no_later_than_first_promised(solver):
    options = {"solver": solver, "settings": {"interval": 0.0}}

    @given(st.lists(jobs, min_size=1, max_size=20), st.integers(2, 20))
    @settings(max_examples=20 if solver == "cp-sat" else 80, deadline=None)
    def check(rows, window):
        options["settings"]["window"] = window
        in_one_queue = [row | {"partition_name": ""} for row in rows]
        for promised, start in (*kept("placement", rows, **options), *kept("easy", in_one_queue)):
            assert start <= promised

    check()


def test_the_solver_chooses_the_nodes(make_trace):
    # the leaf switches have 3 and 2 nodes; on the first nodes, the second job would span both
    tree = Tree(("one", "two"), [-1, -1], [0, 0, 0, 1, 1])
    site = Site(
        *("wired", tuple("abcde"), ("cores", "memory"), np.tile([1, 1], (5, 1))),
        topologies={"tree": tree},
    )
    trace = make_trace((0, 9, 9, 2), (0, 9, 9, 3))
    nodes = {}
    for solver in ("first-fit", "cp-sat"):
        run = simulate(trace, SiteMachine(site), "placement", solver=solver, check=True)
        assert run.start.tolist() == [0, 0]
        nodes[solver] = list(run.resources), run.summary["mean_switches"]
    assert nodes == {"first-fit": (["0-1", "2-4"], 1.5), "cp-sat": (["3-4", "0-2"], 1.0)}


def test_heads_that_fit_together_are_placed_before_larger_jobs(make_trace):
    trace = make_trace((0, 9, 9, 2), (0, 9, 9, 3), (0, 9, 9, 6), (0, 9, 9, 4))
    run = simulate(trace, SiteMachine(plain_site(1, 9)), "placement", solver="cp-sat", check=True)
    # of 9 cores the heads have 5; the third job has a reservation at 9, which the fourth keeps
    assert run.start[:3].tolist() == [0, 0, 30]
    assert run.start[3] == 0


@pytest.mark.parametrize(
    ("chosen", "message"),
    [
        ({"window": 0}, "window 0; expected"),
        ({"interval": -1.0}, "interval -1.0; expected seconds"),
    ],
)
def test_wrong_settings_of_placement_are_refused(chosen, message, make_trace):
    with pytest.raises(InputError, match=message):
        simulate(make_trace((0, 9, 9, 2)), SiteMachine(SITE), "placement", settings=chosen)


@pytest.mark.parametrize("policy", ["as-logged", "easy", "conservative", "placement"])
@pytest.mark.parametrize("version", ["22.05.8", "24.11.5", "26.05.5"])
def test_what_a_slurm_ran_can_run_on_its_site(version, policy, shared):
    folder = shared(f"slurm/fixtures/{version}")
    run = simulate(folder / "sacct.json.gz", f"site:{folder}", policy, check=True)
    assert run.summary["finished"] + run.summary["killed"] == len(run.trace) > 20


def test_a_job_that_ran_over_the_limit_of_its_partition_is_not_rejected():
    times = np.array([13, 12, 13])  # the limit of the partition is 12 s
    trace = clean(
        Trace(
            *(
                np.arange(3),
                np.zeros(3, np.int64),
                times,
                np.array([12, 12, 13]),
                np.ones(3, np.int64),
            ),
            texts={"partition_name": np.array(["gpu"] * 3, dtype=object)},
        )
    )
    run = simulate(trace, SiteMachine(SITE), "fcfs", check=True)
    assert np.isnan(run.start).tolist() == [False, False, True]
    reason = "its requested time is over the limit of its partition"
    assert run.summary["rejected_because"] == {reason: 1}
