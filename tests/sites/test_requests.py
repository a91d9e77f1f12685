"""What jobs of a trace ask of a site, as chunks."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from optsched.sites.job_request import UnplaceableError
from optsched.sites.parts import Reservation
from optsched.sites.requests import Requests
from optsched.sites.site import Partition, Site
from optsched.slurm.queue import QueuedJob
from optsched.slurm.requests import blocked_by_rule, request_of
from optsched.slurm.supply import Supply

SITE = Site(
    "small",
    ("a", "b", "c", "d", "e"),
    ("cores", "memory", "gpu", "gpu:big"),
    np.array([[4, 100, 0, 0], [4, 100, 0, 0], [8, 400, 0, 0], [4, 200, 2, 0], [8, 200, 3, 2]]),
    features=(("ib",), ("ib",), ("fat",), ("fat",), ("ib", "fat")),
    states=("up", "up", "up", "up", "up"),
    partitions=(
        Partition("batch", np.arange(5), default=True),
        Partition("gpu", np.array([3, 4]), max_nodes=1, max_time=600),
        Partition("own", np.array([0, 1]), exclusive=True, memory_per_core=30),
        Partition("off", np.arange(5), up=False),
    ),
    licences={"matlab": 3},
)


def requests(**columns):
    """Return the requests of jobs; times are 60 s unless stated."""
    jobs = len(next(iter(columns.values())))
    defaults = {"processors": [1] * jobs, "requested_time": [60] * jobs}
    return Requests(SITE, {name: np.array(of) for name, of in (defaults | columns).items()})


def only(**job):
    """Return the requests of one job."""
    return requests(**{name: [value] for name, value in job.items()})


@pytest.mark.parametrize(
    ("job", "chunks", "most", "demand"),
    [
        ({"processors": 6}, 6, 6, (1, 0, 0, 0)),
        ({"processors": 6, "nodes": 2}, 2, 1, (3, 0, 0, 0)),
        ({"processors": 6, "nodes": 2, "allocated_nodes": 3}, 6, 5, (1, 0, 0, 0)),
        ({"processors": 8, "nodes": 1, "gpus": 4, "allocated_nodes": 2}, 2, 1, (4, 0, 2, 0)),
    ],
)
def test_jobs_are_equal_chunks(job, chunks, most, demand):
    [one] = only(**job).alternatives
    assert (one.chunks, one.most_per_node, one.demand) == (chunks, most, demand)


@pytest.mark.parametrize(
    ("job", "demands"),
    [
        ({"gpus": 2, "allocated_nodes": 2}, [(1, (8, 0, 2, 0)), (2, (4, 0, 1, 0))]),
        ({"memory_per_node": 9, "allocated_nodes": 3}, [(1, (8, 9, 0, 0)), (3, (3, 9, 0, 0))]),
        ({"gpus": 3, "allocated_nodes": 3}, [(1, (8, 0, 3, 0))]),  # two nodes have GPUs
        ({"gpus": 2, "allocated_nodes": 2, "partition_name": "gpu"}, [(1, (8, 0, 2, 0))]),
    ],
)
def test_a_job_may_be_on_as_many_nodes_as_in_the_log(job, demands):
    found = only(**{"processors": 8, "nodes": 1} | job).of(0)
    assert [(one.chunks, one.demand) for one in found] == demands


@pytest.mark.parametrize(
    ("job", "reason"),
    [
        ({"processors": 29}, "it does not fit on the nodes that it may use"),
        ({"partition_name": "lost"}, "the site has none of its partitions"),
        ({"partition_name": "off"}, "its partition is down"),
        ({"partition_name": "gpu", "requested_time": 601}, "its requested time is over the limit"),
        ({"partition_name": "gpu", "nodes": 2}, "it asks for more nodes than its partition allows"),
        ({"features": "warm"}, "no node that it may use has its features"),
        ({"features": "ib*2"}, "constraint 'ib*2'; expected features without node counts (*)"),
        ({"features": "ib&"}, "constraint 'ib&'; expected features with &, | and parentheses"),
        ({"licences": "ansys"}, "the site does not have all of its licences"),
        ({"licences": "matlab:4"}, "it asks for more licences than the site has"),
        ({"licences": "matlab:many"}, "its licences cannot be read"),
        ({"gpus": 1, "gpu_type": "old"}, "it asks for gpu:old, which no node has"),
        ({"gpus_per_node": 2**63 - 1}, "it does not fit on the nodes that it may use"),
        ({"licences": f"matlab:{10**20}"}, "it asks for more licences than the site has"),
    ],
)
def test_jobs_that_can_never_start_have_a_reason(job, reason):
    found = only(**job)
    assert found.numbers == [-1]
    assert found.why_never(-1).startswith(reason)


def test_alternatives_are_partitions_and_choices_of_features():
    found = requests(partition_name=["gpu,own,lost", "", "own"], features=["", "[ib|fat]", "ib"])
    nodes = [
        [np.flatnonzero(found.nodes[one.nodes]).tolist() for one in found.of(number)]
        for number in found.numbers
    ]
    assert nodes == [[[3, 4], [0, 1]], [[0, 1, 4], [2, 3, 4]], [[0, 1]]]
    assert [one.exclusive for one in found.of(0)] == [False, True]
    # equal requests have one number
    alike = requests(processors=[3, 3, 4, 3], requested_time=[60, 90, 60, 601])
    assert alike.numbers == [0, 0, 1, 0]


MEMORY = ("memory_per_node", "memory_per_core")


def unknown_or(low, high):
    return st.one_of(st.just(-1), st.integers(low, high))


JOB = {
    "tasks": st.integers(1, 9),
    "cores_per_task": st.integers(1, 4),
    "nodes": unknown_or(1, 4),
    "tasks_per_node": unknown_or(1, 3),
    "memory_per_node": unknown_or(0, 150),
    "memory_per_core": unknown_or(1, 60),
    "gpus": unknown_or(0, 5),
    "gpus_per_node": unknown_or(1, 2),
    "gpus_per_task": unknown_or(1, 2),
    "gpu_type": st.sampled_from(["", "big"]),
    "exclusive": st.integers(0, 1),
    "partition_name": st.sampled_from(["batch", "gpu", "off", "own"]),
    "features": st.sampled_from(["", "ib", "ib&fat", "fat|ib"]),
    "licences": st.sampled_from(["", "matlab:2", "ansys"]),
    "requested_time": st.sampled_from([60, 601]),
}
PLAIN = dict.fromkeys(JOB, -1) | {"tasks": 3, "cores_per_task": 1, "tasks_per_node": 2}
PLAIN |= {"gpu_type": "", "features": "", "licences": "", "exclusive": 0, "requested_time": 60}


# the tasks need two nodes, and the partition gives one
@example(job=PLAIN | {"partition_name": "gpu"})
@given(job=st.fixed_dictionaries(JOB))
def test_jobs_ask_what_they_ask_in_the_queue_of_slurm(job):
    names = ["gpu", "gpu:big"] if job["gpu_type"] else ["gpu"]

    def gpus(column):
        return dict.fromkeys(names, job[column]) if job[column] > 0 else {}

    if job["memory_per_node"] >= 0:
        job = job | {"memory_per_core": -1}
    queued = QueuedJob(
        job_id=1,
        partitions=(job["partition_name"],),
        limit=job["requested_time"],
        least_nodes=max(1, job["nodes"]),
        tasks_per_node=max(0, job["tasks_per_node"]),
        per_node=gpus("gpus_per_node"),
        per_task=gpus("gpus_per_task"),
        per_job=gpus("gpus"),
        constraint=job["features"],
        exclusive="node" if job["exclusive"] else "",
        **{name: job[name] for name in ("tasks", "cores_per_task", "licences")},
        **{name: None if job[name] < 0 else job[name] for name in MEMORY},
    )
    supply = Supply(SITE, SITE.capacity, time=0, licences=dict(SITE.licences))
    found = only(**job | {"processors": job["tasks"] * job["cores_per_task"]})
    try:
        wanted = None if blocked_by_rule(queued, supply) else request_of(queued, supply)
    except UnplaceableError:
        wanted = None
    if wanted is None or wanted.room(supply) < wanted.chunks:
        assert found.numbers == [-1]
        return
    [one] = found.alternatives
    assert one.chunks == wanted.chunks
    assert one.most_per_node == min(wanted.most_per_node or wanted.chunks, wanted.chunks)
    assert one.demand == tuple(wanted.demand[name] for name in SITE.resources)
    assert one.exclusive == wanted.exclusive
    assert one.licences == tuple(wanted.licences.get(name, 0) for name in SITE.licences)
    np.testing.assert_array_equal(found.nodes[one.nodes], wanted.nodes)


def test_jobs_of_a_reservation_have_its_nodes_and_its_time():
    kept = Reservation("course", ("a", "c"), 1000, 1100), Reservation("kept", ("b",))
    site = replace(SITE, reservations=kept)
    columns = {
        "processors": np.array([1, 1, 1, 1, 1, 1, 99]),
        "requested_time": np.array([60, 60, 101, 60, 60, 60, 60]),
        "reservation": np.array(["", *["course"] * 3, "kept", "gone", "course"], dtype=object),
        "unix_time": np.array([0, 0, 0, 1041, 0, 0, 0]),
    }
    found = Requests(site, columns)
    ordinary, course, too_long, too_late, kept, gone, large = found.numbers
    nodes = [found.nodes[found.of(number)[0].nodes].tolist() for number in (ordinary, course, kept)]
    assert nodes == [
        [True, False, True, True, True],  # b is always kept
        [True, False, True, False, False],
        [False, True, False, False, False],
    ]
    assert gone == ordinary
    assert found.why_never(too_long) == "it cannot end within its reservation"
    assert too_late == too_long
    assert found.why_never(large) == "it does not fit in its reservation"
