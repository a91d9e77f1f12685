"""Policies on a site: equal to a textbook scheduler, and to those on a line of processors."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from optsched import simulate
from optsched.machines.site import SiteMachine
from optsched.sites.requests import Requests
from optsched.sites.site import Partition, Site
from optsched.traces.cleaning import clean
from optsched.traces.reading import read_trace
from optsched.traces.trace import Trace

ORDERS = ("sjf", "saf", "wfp3", "unicef", "f1")
"""Priority orders."""

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
        "partition_name": st.sampled_from(["", "", "", "gpu", "own", "gpu,own", "lost"]),
        "features": st.sampled_from(["", "", "", "ib", "fat", "[ib|fat]", "none"]),
        "gpu_type": st.sampled_from(["", "", "big"]),
        "licences": st.sampled_from(["", "", "matlab", "matlab:2"]),
    }
)


def trace_of(rows):
    column = {name: np.array([row[name] for row in rows]) for name in rows[0]}
    texts = ("partition_name", "features", "gpu_type", "licences")
    numbers = set(column) - {"gap", "runtime", "slack", "processors", *texts}
    return clean(
        Trace(
            job_id=np.arange(1, len(rows) + 1),
            submit=np.cumsum(column["gap"]),
            runtime=column["runtime"],
            requested_time=column["runtime"] + column["slack"],
            processors=column["processors"],
            annotations={name: column[name] for name in numbers},
            texts={name: column[name].astype(object) for name in texts},
        )
    )


def alternatives(trace, site=SITE):
    """Return the alternatives of each job for the textbook; empty if it is rejected."""
    columns = {"processors": trace.processors, "requested_time": trace.requested_time}
    requests = Requests(site, columns | trace.annotations | trace.texts)
    return [
        [
            SimpleNamespace(
                **one._asdict() | {"nodes": {*np.flatnonzero(requests.nodes[one.nodes])}}
            )
            for one in (requests.of(number) if number >= 0 else ())
        ]
        for number in requests.numbers
    ]


@pytest.mark.parametrize(
    ("policy", "backfill"),
    [("fcfs", "none"), ("easy", "easy"), ("sjf", "none"), ("sjf", "easy"), ("conservative", "all")],
)
def test_schedules_equal_the_textbook(policy, backfill, site_textbook):
    @given(st.lists(jobs, min_size=1, max_size=20))
    @settings(max_examples=100, deadline=None)
    def compare(rows):
        trace = trace_of(rows)
        chosen = {"backfill": backfill} if policy == "sjf" else {}
        run = simulate(trace, SiteMachine(SITE), policy, settings=chosen, check=True)
        columns = [trace.submit, trace.runtime, trace.requested_time]
        submit, runtime, estimate = (column.tolist() for column in columns)
        capacity = np.where(SITE.is_up[:, None], SITE.capacity, 0).tolist()
        given_jobs = (capacity, SITE.licences.values(), alternatives(trace))
        if backfill == "all":
            wanted = site_textbook.conservative(*given_jobs, submit, runtime, estimate)
        else:
            wanted = site_textbook.easy(
                *(*given_jobs, submit, runtime, estimate),
                backfills=backfill == "easy",
                order=(lambda job: (estimate[job], job)) if policy == "sjf" else None,
            )
        rejected = [start is None for start in wanted]
        assert np.isnan(run.start).tolist() == rejected
        assert run.start[~np.array(rejected)].tolist() == [at for at in wanted if at is not None]
        assert run.summary["rejected"] == sum(rejected)

    compare()


def plain_site(nodes, cores):
    """Return a site on which only processors count."""
    return Site(
        "plain",
        tuple(f"n{node}" for node in range(nodes)),
        ("cores", "memory"),
        np.tile([cores, 1000], (nodes, 1)),
    )


WHERE_PROCESSORS_COUNT = [
    ("fcfs", {}),
    ("easy", {}),
    ("easy-sjbf", {}),
    ("conservative", {}),
    *((order, {"backfill": backfill}) for order in ORDERS for backfill in ("none", "easy")),
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
