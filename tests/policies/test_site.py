"""Policies on a site: equal to a textbook scheduler, and to those on a line of processors."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from policies import site_textbook, workloads

from optsched import registry, simulate
from optsched.column_sets import columns_on_file
from optsched.machines.site import SiteMachine
from optsched.policies.easy import Easy
from optsched.simulator.system import columns_of
from optsched.sites.parts import Reservation, Tree
from optsched.sites.requests import TEXTS, Requests
from optsched.sites.site import Partition, Site
from optsched.traces.cleaning import clean
from optsched.traces.reading import read_trace
from optsched.traces.trace import Header, Trace


def plain_site(nodes, cores, parts=None, **more):
    """Return a site on which only processors count, with partitions of given nodes.

    The first partition is the default one, and `alone` has nodes for one job.
    """
    partitions = [
        Partition(name, np.array(at), exclusive=name == "alone", default=not number)
        for number, (name, at) in enumerate((parts or {}).items())
    ]
    names, capacity = tuple(f"n{node}" for node in range(nodes)), np.tile([cores, 1000], (nodes, 1))
    site = Site("plain", names, ("cores", "memory"), capacity)
    return replace(site, **({"partitions": tuple(partitions)} if parts else {}), **more)


SITE = Site(
    "small",
    ("a", "b", "c", "d", "e", "f"),
    ("cores", "memory", "gpu", "gpu:big"),
    np.array(
        [[4, 4, 8, 4, 8, 4], [100, 100, 400, 200, 200, 100], [0, 0, 0, 2, 3, 0], [0, 0, 0, 0, 2, 0]]
    ).T,
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


def some(values):
    """Draw a value, or -1 for unknown more often than not."""
    return st.one_of(st.just(-1), st.just(-1), values)


NUMBERS = {
    "nodes": (1, 3),
    "tasks": (1, 6),
    "cores_per_task": (1, 3),
    "tasks_per_node": (1, 3),
    "gpus": (0, 3),
    "gpus_per_node": (1, 2),
    "exclusive": (0, 1),
}
CHOICES = {
    "partition_name": ["", "", "", "gpu", "own", "gpu,own", "first", "lost"],
    "features": ["", "", "", "ib", "fat", "[ib|fat]", "none"],
    "gpu_type": ["", "", "big"],
    "licences": ["", "", "matlab", "matlab:2"],
    "reservation": ["", "", "", "", "early", "late", "over", "unknown"],
}
jobs = st.fixed_dictionaries(
    {
        "gap": st.integers(0, 6),
        "runtime": st.integers(1, 12),
        "slack": st.integers(0, 8),
        "processors": st.integers(1, 9),
        "memory_per_node": some(st.sampled_from([0, 40, 150])),
        "memory_per_core": some(st.sampled_from([10, 25, 60])),
    }
    | {name: some(st.integers(*ends)) for name, ends in NUMBERS.items()}
    | {name: st.sampled_from(choices) for name, choices in CHOICES.items()}
)

UNKNOWN = dict.fromkeys([*NUMBERS, "memory_per_node", "memory_per_core"], -1)
UNKNOWN |= dict.fromkeys(TEXTS, "")


def job(gap, runtime, slack, nodes, licences="", **more):
    own = {"gap": gap, "runtime": runtime, "slack": slack, "nodes": nodes, "licences": licences}
    return UNKNOWN | own | {"processors": nodes} | more


def trace_of(rows, unit=1):
    """Return the trace of some rows, whose times are in units of so many seconds."""
    column = {name: np.array([row[name] for row in rows]) for name in rows[0]}
    column |= {name: column[name] * unit for name in ("gap", "runtime", "slack")}
    numbers = set(column) - {"gap", "runtime", "slack", "processors", *TEXTS}
    runtime = column["runtime"]
    return Trace(
        *(np.arange(1, len(rows) + 1), np.cumsum(column["gap"]), runtime),
        *(runtime + column["slack"], column["processors"]),
        annotations={name: column[name] for name in numbers},
        texts={name: column[name].astype(object) for name in TEXTS},
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


def run_on(site, trace, policy, settings=None, **more):
    """Run jobs under a policy, or one that backfills: "sjf, easy"."""
    name, _, backfill = policy.partition(", ")
    chosen = (settings or {}) | ({"backfill": backfill} if backfill else {})
    return simulate(trace, SiteMachine(site), name, settings=chosen, check=True, **more)


def assert_equal_to_the_textbook(trace, site, policy):
    times = [each.tolist() for each in (trace.submit, trace.runtime, trace.requested_time)]
    capacity = np.where(site.is_usable[:, None], site.capacity, 0).tolist()
    asked = capacity, site.licences.values(), alternatives(trace, site), times
    windows = [(each.start, each.end, {*site.places(each.nodes)}) for each in site.reservations]
    options = queues(trace, site) | {"windows": windows}
    if policy == "conservative":
        wanted = site_textbook.conservative(*asked, **options)
    else:
        order = (lambda job: (times[2][job], job)) if policy.startswith("sjf") else None
        backfills = policy.endswith("easy")
        wanted = site_textbook.easy(*asked, backfills=backfills, order=order, **options)
    found = run_on(site, trace, policy).start.tolist()
    assert [None if np.isnan(at) else at for at in found] == wanted


def assert_equal_to_the_engine(trace, site, policy, event_order="batched"):
    """Compare runs in which the core acts, the engine follows, and Python asks the kernels."""
    name, _, backfill = policy.partition(", ")
    known, chosen = registry.policies[name], {"backfill": backfill} if backfill else {}
    in_python = type(known.__name__, (known,), {"decide": known.decide})
    runs = [
        simulate(trace, SiteMachine(site), one(**chosen), event_order=event_order, journal=seen)
        for one, seen in ((known, False), (known, True), (in_python, False))
    ]
    for run in runs[1:]:
        np.testing.assert_array_equal(run.start, runs[0].start)
        np.testing.assert_array_equal(run.end, runs[0].end)
        assert run.state.tolist() == runs[0].state.tolist()
        assert list(run.resources) == list(runs[0].resources)
        assert run.schedule.decisions == runs[0].schedule.decisions


@pytest.mark.parametrize("site", [SITE, KEPT], ids=["queues", "reservations"])
@pytest.mark.parametrize("policy", ["fcfs", "easy", "sjf", "sjf, easy", "conservative"])
@given(st.lists(jobs, min_size=1, max_size=20))
@settings(max_examples=100, deadline=None)
def test_schedules_equal_the_textbook(policy, site, rows):
    assert_equal_to_the_textbook(trace_of(rows), site, policy)


HALVES = {"batch": range(20), "left": range(9), "right": range(9, 20)}

SPARE = plain_site(20, 4, HALVES, licences={"matlab": 3})
"""Nodes enough that heads have some to spare."""


def on_nodes(most, cores, times):
    """Draw a job on whole nodes or parts of them."""
    own = {
        "gap": st.sampled_from([0, 0, 1, 3]),
        "nodes": st.integers(1, most),
        "cores": st.sampled_from(cores),
        "runtime": st.integers(*times),
        "slack": st.sampled_from([0, 0, 3, 9]),
        "partition_name": st.sampled_from(["", "", "left", "right", "left,right"]),
        "licences": st.sampled_from(["", "", "", "matlab", "matlab:2"]),
    }

    def row(job):
        return UNKNOWN | job | {"processors": job["nodes"] * job.pop("cores")}

    return st.fixed_dictionaries(own).map(row)


@pytest.mark.parametrize("policy", ["easy", pytest.param("sjf, easy", marks=pytest.mark.long)])
@given(
    st.lists(on_nodes(10, [4], (4, 9)), min_size=1, max_size=3),
    st.lists(on_nodes(14, [2, 4], (2, 15)), min_size=1, max_size=2),
    st.lists(
        on_nodes(5, [1, 4], (10, 30)) | on_nodes(5, [1, 4], (2, 14)) | on_nodes(14, [2], (2, 15)),
        min_size=2,
        max_size=9,
    ),
)
@settings(max_examples=240, deadline=None)
def test_long_jobs_take_no_more_than_heads_can_spare(policy, first, blocked, later):
    # the first jobs hold half of the nodes for a while, heads need most of them, and jobs that last
    # beyond their shadow times take several nodes each: more than one of them is often too much;
    # as a job ends early, a shadow time may come before the end of a short one
    trace = trace_of([*first, *blocked, *later])
    assert_equal_to_the_textbook(trace, SPARE, policy)
    assert_equal_to_the_engine(trace, SPARE, policy)


def test_no_start_is_promised_to_a_head_whose_licence_an_earlier_one_needs():
    rows = [
        job(0, 8, 0, 8, partition_name="right") | {"processors": 32},
        job(0, 10, 0, 9, "matlab", partition_name="right") | {"processors": 18},  # a head
        job(1, 18, 0, 1, "matlab", partition_name="left") | {"processors": 4},
        job(0, 20, 0, 3, "matlab:2", partition_name="left") | {"processors": 12},  # another
    ]
    assert_equal_to_the_textbook(trace_of(rows), SPARE, "easy")


CONTESTED = plain_site(
    6,
    4,
    features=(("ib",), ("fat",), ("ib",)) * 2,
    licences={"matlab": 3},
    partitions=(
        Partition("batch", np.arange(6), default=True),
        Partition("left", np.arange(4)),
        Partition("right", np.arange(2, 6), priority_tier=2),
        Partition("alone", np.arange(1, 5), exclusive=True),
    ),
)
"""Few nodes, so that many jobs wait."""

WINDOWS = (Reservation("early", ("n1", "n2"), 9, 24), Reservation("late", ("n2", "n4"), 30, 50))
"""Reservations on these."""

contested = st.builds(
    dict.__or__,
    on_nodes(4, [1, 2, 4], (1, 9)),
    st.fixed_dictionaries(
        {
            "reservation": st.sampled_from(["", "", "early", "late"]),
            "features": st.sampled_from(["", "", "", "[ib|fat]"]),
            "partition_name": st.sampled_from(
                ["", "", "left", "right", "left,alone", "right,alone"]
            ),
        }
    ),
)


@pytest.mark.parametrize("windows", [(), WINDOWS], ids=["licences", "reservations"])
@given(st.lists(contested, min_size=8, max_size=18), st.sampled_from([1, 1.1]))
@settings(max_examples=200, deadline=None)
def test_reservations_of_many_jobs_equal_the_textbook(windows, rows, unit):
    # jobs end early, so that what others wait for becomes free, some of it licences or a hole
    # between reservations; sums of fractions are rounded; one alternative may be in the way of
    # another of the same job, which wants the nodes for itself
    known = [row if windows else row | {"reservation": ""} for row in rows]
    site = replace(CONTESTED, reservations=windows)
    assert_equal_to_the_textbook(trace_of(known, unit), site, "conservative")


@pytest.mark.parametrize(
    ("parts", "rows"),
    [
        pytest.param(
            # the last job has shared nodes from 10 on; as the third moves from 20 to 5, it could
            # have the nodes of its other partition for itself from 7 on, but for its own place
            {"first": [0], "second": [1, 5], "outer": [0, 2, 4], "shared": [1, 2, 5]}
            | {"alone": [2, 3, 4]},
            [
                job(0, 5, 15, 1, partition_name="first", processors=4),
                job(0, 10, 0, 2, partition_name="second", processors=8),
                job(0, 2, 0, 3, partition_name="outer"),
                job(0, 25, 0, 3, partition_name="shared,alone"),
            ],
            id="a job gives up its place for one that was in its way",
        ),
        pytest.param(
            # at 5 the fourth job goes where the first has been, and leaves what the third could
            # have at once; that is noticed at the next end, not as the last one is submitted
            {"outer": [0, 2], "last": [3], "inner": [1, 2], "first": [0, 1]},
            [
                job(0, 5, 15, 2, partition_name="outer", processors=8),
                job(0, 5, 5, 1, "matlab", partition_name="last"),
                job(0, 12, 0, 2, partition_name="inner", processors=8),
                job(0, 10, 0, 1, "matlab", partition_name="first", processors=4),
                job(6, 20, 0, 1, partition_name="last"),
            ],
            id="reserved jobs are placed again at ends alone",
        ),
    ],
)
def test_when_reserved_jobs_are_placed_again(parts, rows):
    site = plain_site(6, 4, parts, licences={"matlab": 1})
    assert_equal_to_the_textbook(trace_of(rows), site, "conservative")


@pytest.mark.parametrize("policy", ["easy", "conservative", "as-logged", "placement"])
@given(st.lists(jobs, min_size=1, max_size=20), st.integers(0, 100))
@settings(max_examples=100, deadline=None)
def test_reservations_hold(policy, rows, began):
    chosen = {"interval": 0.0} if policy == "placement" else {}
    trace = trace_of(rows).changed(
        wait=np.array([3 * row["gap"] for row in rows]),
        header=Header((("UnixStartTime", str(began)),)),
    )
    later = [
        Reservation(each.name, each.nodes, each.start + began, each.end + began)
        for each in (*KEPT.reservations, Reservation("endless", ("c", "e"), 50))
    ]
    site = replace(KEPT, reservations=tuple(later))
    run = run_on(site, trace, policy, chosen)
    assert "WAITING" not in run.state.tolist()  # whoever can no longer start is rejected
    for job in np.flatnonzero(~np.isnan(run.start)).tolist():
        first, last = run.start[job], run.start[job] + trace.requested_time[job]
        held = columns_on_file(run.resources[job], 6)
        for each in KEPT.reservations:
            kept = sum(1 << node for node in site.places(each.nodes).tolist())
            if trace.texts["reservation"][job] == each.name:
                assert not held & ~kept
                assert each.start <= first < last <= each.end
            else:
                assert not each.overlaps(first, last) or not held & kept


def in_partitions(trace, *names):
    return trace.changed(texts={"partition_name": np.array(names, dtype=object)})


def test_jobs_in_reservations_that_the_site_has_not_are_in_none(make_trace):
    trace = make_trace((0, 9, 9, 2))
    run = run_on(KEPT, trace.changed(texts={"reservation": np.array(["gone"], object)}), "easy")
    assert run.start.tolist() == [0]
    note = "reservations: 1 job in reservations that the site does not have, taken as in none"
    assert note in run.notes


KERNELS = ["fcfs", "easy", "easy-sjbf", "sjf", "sjf, easy", "conservative"]
KERNELS += [pytest.param(order, marks=pytest.mark.long) for order in ("f1", "f1, easy")]
WHERE_PROCESSORS_COUNT = [*KERNELS, "wfp3, easy"]
WHERE_PROCESSORS_COUNT += [
    pytest.param(order, marks=pytest.mark.long)
    for order in ("wfp3", "saf", "saf, easy", "unicef", "unicef, easy")
]
"""Fixed scores and scores that grow, with and without backfilling; the rest takes long."""


@pytest.mark.parametrize("policy", WHERE_PROCESSORS_COUNT)
@given(workloads.jobs(14, most=25), workloads.orders)
@settings(max_examples=120, deadline=None)
def test_where_only_processors_count_a_site_is_a_line(policy, rows, order):
    trace, (name, _, backfill) = workloads.trace_of(rows), policy.partition(", ")
    chosen = {"backfill": backfill} if backfill else {}
    line = simulate(trace, "nodes:12", name, settings=chosen, event_order=order)
    for nodes, cores in ((12, 1), (3, 4)):
        run = run_on(plain_site(nodes, cores), trace, policy, event_order=order)
        np.testing.assert_array_equal(run.start, line.start)


@pytest.mark.parametrize("policy", KERNELS)
@given(st.lists(jobs, min_size=1, max_size=30), workloads.orders, st.booleans())
@settings(max_examples=120, deadline=None)
def test_kernels_and_engine_agree(policy, rows, order, several):
    trace = trace_of(rows if several else [row | {"partition_name": ""} for row in rows])
    site = replace(KEPT, states=SITE.states, reservations=())
    assert_equal_to_the_engine(trace, site, policy, order)


@pytest.mark.parametrize("policy", ["easy", "easy-sjbf", "sjf, easy", "conservative"])
@pytest.mark.parametrize("several", [False, True], ids=["one-queue", "several-queues"])
def test_kernels_and_engine_agree_where_many_different_jobs_wait(policy, several):
    trace = read_trace("sample-256").jobs(1, 500)
    job, parts = trace.job_id, {"all": range(12), "left": range(5), "right": range(5, 12)}
    nodes = np.where(job % 2, -(-trace.processors // 16), -1)
    asked = {"memory_per_core": 1 + job % 60, "exclusive": (job % 10 < 1).astype(int)}
    names = [*parts] * 500 if several else ["all"] * 500
    trace = in_partitions(trace.annotated(nodes=nodes, **asked), *names[:500])
    assert_equal_to_the_engine(trace, plain_site(12, 16, parts), policy)


LATE, LATER = 10 + 5e-7, 10 + 9e-7
"""Ends within the tolerance after 10 s."""


@pytest.mark.parametrize(
    ("policy", "nodes", "rows", "starts"),
    [
        pytest.param(
            # of four nodes, three are held; the head needs three, and has two and the free one from
            # 10 on: as the first job ends, all should have, and it can spare one of the four nodes
            "easy",
            4,
            [
                *((0, LATE, 10, 1), (0, LATER, 10, 1), (4 + 2.5e-7, 6 + 5e-7, 6, 1)),
                *((5, 9, 9, 3), (6, 50, 50, 1)),
            ],
            {4: LATE},
            id="jobs that are late count as ended for a head",
        ),
        pytest.param(
            # the third job is to start at 10 s on the node of the first, which runs on while one
            # comes
            "conservative",
            2,
            [(0, LATE, 10, 1), (0, 10, 10, 1), (2, 5, 5, 1), (2.5, 7, 7, 1)],
            {0: 0, 1: 0, 2: LATE, 3: 10},
            id="reserved jobs wait for nodes of jobs that are late",
        ),
    ],
)
def test_jobs_may_be_late_within_the_tolerance(policy, nodes, rows, starts):
    submit, runtime, requested, size = np.array(rows, dtype=np.float64).T
    alone = np.full(len(rows), policy == "conservative", dtype=np.int64)
    times, sizes = (submit, runtime, runtime), size.astype(np.int64)
    trace = clean(Trace(np.arange(len(rows)), *times, sizes, annotations={"exclusive": alone}))
    trace = replace(trace, requested_time=requested)
    run = run_on(plain_site(nodes, 1), trace, policy)
    assert {job: run.start[job] for job in starts} == starts
    assert_equal_to_the_engine(trace, plain_site(nodes, 1), policy)


PLAIN = UNKNOWN | {"gap": 0, "runtime": 1, "slack": 0, "processors": 1}


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
    own = simulate(trace, SiteMachine(KEPT), Shortest(), check=True)
    np.testing.assert_array_equal(own.start, run_on(KEPT, trace, "easy-sjbf").start)


def kept(policy, rows, settings=None, **options):
    """Run jobs, and return for each that had a reservation its first shadow time and its start."""
    one, first = workloads.noting_promises(registry.policies[policy], **settings or {})
    run = simulate(trace_of(rows), SiteMachine(WIRED), one, check=True, **options)
    return [(shadow, run.start[job]) for job, shadow in first.items()]


@pytest.mark.parametrize(
    "solver", [None, pytest.param("first-fit", marks=pytest.mark.long), "best-fit", "cp-sat"]
)
@given(st.lists(jobs, min_size=1, max_size=20), st.integers(2, 20))
@settings(max_examples=80, deadline=None)
def test_a_reserved_job_starts_no_later_than_first_promised(solver, rows, window):
    options = {"solver": solver, "settings": {"interval": 0.0, "window": window}}
    in_one_queue = [row | {"partition_name": ""} for row in rows]
    for promised, start in (*kept("placement", rows, **options), *kept("easy", in_one_queue)):
        assert start <= promised


def test_the_solver_chooses_the_nodes(make_trace):
    # the leaf switches have 3 and 2 nodes; on the first nodes, the second job would span both
    tree = Tree(("one", "two"), [-1, -1], [0, 0, 0, 1, 1])
    site = plain_site(5, 1, topologies={"tree": tree})
    trace = make_trace((0, 9, 9, 2), (0, 9, 9, 3))
    nodes = {}
    for solver in ("first-fit", "cp-sat"):
        run = run_on(site, trace, "placement", solver=solver)
        assert run.start.tolist() == [0, 0]
        nodes[solver] = list(run.resources), run.summary["mean_switches"]
    assert nodes == {"first-fit": (["0-1", "2-4"], 1.5), "cp-sat": (["3-4", "0-2"], 1.0)}


def test_heads_that_fit_together_are_placed_before_larger_jobs(make_trace):
    trace = make_trace((0, 9, 9, 2), (0, 9, 9, 3), (0, 9, 9, 6), (0, 9, 9, 4))
    run = run_on(plain_site(1, 9), trace, "placement", solver="cp-sat")
    # of 9 cores the heads have 5; the third job has a reservation at 9, which the fourth keeps
    assert run.start.tolist() == [0, 0, 30, 0]


@pytest.mark.parametrize("policy", ["as-logged", "easy", "conservative", "placement"])
@pytest.mark.parametrize("version", ["22.05.8", "24.11.5", "26.05.5"])
def test_what_a_slurm_ran_can_run_on_its_site(version, policy, shared):
    folder = shared(f"slurm/fixtures/{version}")
    run = simulate(folder / "sacct.json.gz", f"site:{folder}", policy, check=True)
    assert run.summary["finished"] + run.summary["killed"] == len(run.trace) > 20


def test_a_job_that_ran_over_the_limit_of_its_partition_is_not_rejected():
    times = np.array([13, 12, 13])  # the limit of the partition is 12 s
    requested, one = np.array([12, 12, 13]), np.ones(3, np.int64)
    trace = in_partitions(Trace(np.arange(3), one, times, requested, one), *["gpu"] * 3)
    run = run_on(SITE, trace, "fcfs")
    assert np.isnan(run.start).tolist() == [False, False, True]
    reason = "its requested time is over the limit of its partition"
    assert run.summary["rejected_because"] == {reason: 1}
