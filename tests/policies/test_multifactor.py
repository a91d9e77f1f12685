"""Slurm's multifactor priority."""

import gzip
import json
import re

import numpy as np
import pytest

from optsched import simulate
from optsched.extend import InputError, System, Trace
from optsched.machines.machine import read_machine
from optsched.policies.multifactor import Multifactor, read_weights
from optsched.sites.site import Site

CONFIGURATION = """
ClusterName=mine
NodeName=c[1-4] CPUs=4 RealMemory=900
PartitionName=low Nodes=ALL Default=YES PriorityJobFactor=1
PartitionName=high Nodes=ALL PriorityJobFactor=4
PartitionName=first Nodes=c1 PriorityTier=9
"""


@pytest.fixture
def starts(tmp_path, make_trace):
    """Return a function: the starts of jobs of whole machines, so that one runs at a time."""

    def run(settings, *rows, priorities="", **columns):
        folder = tmp_path / f"{len(list(tmp_path.iterdir()))}"
        folder.mkdir()
        (folder / "slurm.conf").write_text(CONFIGURATION + settings + "\n")
        trace = make_trace(*((at, runtime, runtime, size) for at, runtime, size in rows))
        fields = {name: np.array(columns.pop(name)) for name in {"user", "group"} & {*columns}}
        columns = {name: np.array(column) for name, column in columns.items()}
        texts = {name: of.astype(object) for name, of in columns.items() if of.dtype.kind == "U"}
        asked = {name: of for name, of in columns.items() if name not in texts}
        trace, chosen = trace.changed(texts=texts, annotations=asked, **fields), {"qos": priorities}
        found = simulate(trace, f"site:{folder}", "multifactor", settings=chosen, check=True)
        run.notes = found.notes
        return found.start.tolist()

    return run


def test_without_weights_jobs_start_in_order_of_submission_which_is_noted(starts):
    note = "multifactor: all weights are 0, so jobs are in order of submission"
    rows = (0, 5, 16), (1, 5, 16), (2, 5, 1), (3, 5, 16)
    assert starts("PriorityWeightAge=0", *rows) == [0, 5, 10, 15]
    assert note in starts.notes
    for weight in ("PriorityWeightAge=1", "PriorityWeightTRES=CPU=1"):
        starts(weight, *rows)
        assert note not in starts.notes


def test_large_or_small_jobs_are_first(starts):
    rows = ((0, 5, 16), (1, 5, 12), (1, 5, 16))
    assert starts("PriorityWeightJobSize=1000", *rows) == [0, 10, 5]
    small = "PriorityWeightJobSize=1000\nPriorityFavorSmall=YES"
    assert starts(small, (0, 5, 16), (1, 5, 16), (1, 5, 12)) == [0, 10, 5]


def test_age_outweighs_size_until_it_no_longer_counts(starts):
    rows = ((0, 60, 16), (1, 5, 12), (40, 5, 16))
    size = "PriorityWeightJobSize=100\n"
    assert starts(size + "PriorityWeightAge=1000\nPriorityMaxAge=0:10:00", *rows) == [0, 60, 65]
    assert starts(size + "PriorityWeightAge=1000\nPriorityMaxAge=0:00:10", *rows) == [0, 65, 60]


def test_partitions_and_qos_have_factors(starts):
    rows = ((0, 5, 16), (1, 5, 16), (1, 5, 16))
    partitions = {"partition_name": ["low", "", "low,high"]}
    assert starts("PriorityWeightPartition=100", *rows, **partitions) == [0, 10, 5]
    named = {"qos": ["low", "low", "high"]}
    assert starts("PriorityWeightQOS=100", *rows, **named) == [0, 5, 10]
    assert starts("PriorityWeightQOS=100", *rows, **named, priorities="high=10,low=1") == [0, 10, 5]


def test_jobs_of_a_higher_tier_are_before_all_others(starts):
    rows = ((0, 5, 16), (1, 5, 16), (1, 5, 4))
    partitions = {"partition_name": ["low", "low", "first"]}
    assert starts("PriorityWeightJobSize=1000", *rows, **partitions) == [0, 10, 5]


def test_size_relative_to_time(starts):
    relative = "PriorityWeightJobSize=1000\nPriorityFlags=SMALL_RELATIVE_TO_TIME"
    rows = ((0, 60, 16), (1, 240, 16), (1, 60, 8))
    # 16 cores for 4 minutes are less than 8 for one
    assert starts("PriorityWeightJobSize=1000", *rows) == [0, 60, 300]
    assert starts(relative, *rows) == [0, 120, 60]


def test_age_may_count_from_the_submission(starts):
    rows = ((0, 60, 16), (1, 5, 16), (20, 5, 16))
    age = "PriorityWeightAge=1000\nPriorityMaxAge=0:10:00"
    begin = [0, 40, 0]
    assert starts(age, *rows, begin=begin) == [0, 65, 60]
    assert starts(age + "\nPriorityFlags=ACCRUE_ALWAYS", *rows, begin=begin) == [0, 60, 65]


def test_resources_have_weights(starts):
    rows = ((0, 5, 16), (1, 5, 13), (1, 5, 14))
    assert starts("PriorityWeightTRES=CPU=1000", *rows) == [0, 10, 5]
    memory = {"memory_per_core": [-1, 200, 100]}
    weights = "PriorityWeightTRES=cpu=1000,Mem=4000"
    assert starts(weights, *rows, **memory) == [0, 5, 10]
    # for the larger job 1/16 of the weight, or the weight if that is not normalized
    small = "PriorityWeightJobSize=100\nPriorityFavorSmall=YES\nPriorityWeightTRES=CPU=4"
    assert starts(small, *rows) == [0, 5, 10]
    assert starts(small + "\nPriorityFlags=NO_NORMAL_TRES", *rows) == [0, 10, 5]


def test_factors_that_are_not_normalized(starts):
    rows = ((0, 5, 16), (1, 5, 16), (1, 5, 8))
    weights = "PriorityWeightPartition=100\nPriorityWeightJobSize=900\n"
    named = {"partition_name": ["low", "low", "high"]}
    # 900 / 4 less for the size, 75 more for the partition, or 300 if that is not normalized
    assert starts(weights, *rows, **named) == [0, 5, 10]
    assert starts(weights + "PriorityFlags=NO_NORMAL_ALL", *rows, **named) == [0, 10, 5]
    weights, qos = "PriorityWeightQOS=1\nPriorityWeightJobSize=100\n", {"qos": ["a", "a", "b"]}
    flags = "PriorityFlags=NO_NORMAL_QOS"
    assert starts(weights, *rows, **qos, priorities="b=90") == [0, 5, 10]
    assert starts(weights + flags, *rows, **qos, priorities="b=90") == [0, 10, 5]


def test_what_is_not_modeled_is_named_in_one_line(starts):
    starts("PriorityFlags=CALCULATE_RUNNING,FAIR_TREE", (0, 5, 16))
    assert not any("slurm.conf" in note for note in starts.notes)
    starts(
        "PriorityFlags=MAX_TRES,INCR_ONLY\nPriorityWeightAssoc=3\nPriorityWeightTRES=energy=1",
        (0, 5, 16),
    )
    expected = "PriorityFlags INCR_ONLY, PriorityFlags MAX_TRES, PriorityWeightAssoc"
    (note,) = [note for note in starts.notes if "slurm.conf" in note]
    assert note == f"slurm.conf: not modeled, left out: {expected}, PriorityWeightTRES energy"


def test_users_of_little_usage_are_first(starts):
    rows = ((0, 50, 16), (1, 10, 16), (2, 10, 16), (3, 10, 16))
    weights = "PriorityWeightFairShare=1000"
    owners = {"user": [1, 1, 1, 2], "group": [1, 1, 1, 1]}
    assert starts(weights, *rows, **owners) == [0, 60, 70, 50]
    # an account counts before its users
    owners = {"user": [1, 3, 2, 2], "group": [1, 1, 2, 2]}
    assert starts(weights, *rows, **owners) == [0, 70, 50, 60]


def test_usage_decays(starts):
    # user 1 used more, but long ago; the last two jobs wait for the one before
    rows = ((0, 600, 16), (20_000, 300, 16), (20_250, 10, 16), (20_260, 10, 16))
    owners = {"user": [1, 2, 2, 1], "group": [1, 1, 1, 1]}
    weights = "PriorityWeightFairShare=1000\nPriorityDecayHalfLife="
    assert starts(weights + "1:00:00", *rows, **owners)[2:] == [20_310, 20_300]
    assert starts(weights + "0", *rows, **owners)[2:] == [20_300, 20_310]


NODE = Site("one", ("a",), ("cores", "memory", "gpu", "gpu:big"), np.array([[4, 9, 1, 1]]))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("PriorityWeightAge=x", "line 1, priorityweightage: 'x'; expected a whole number"),
        ("PriorityMaxAge=0", "line 1, prioritymaxage: '0'; expected a time above 0"),
        ("PriorityMaxAge=soon", "line 1, prioritymaxage: 'soon'; expected a time"),
        ("PriorityWeightTRES=CPU=x", "line 1, priorityweighttres: 'CPU=x'; expected weights"),
    ],
)
def test_weights_that_cannot_be_read_are_told_by_line(text, message, tmp_path):
    (tmp_path / "slurm.conf").write_text(text + "\n")
    with pytest.raises(InputError, match=re.escape(message)):
        read_weights(tmp_path / "slurm.conf", NODE)


def test_priorities_of_qos_that_cannot_be_read_are_told(starts):
    with pytest.raises(InputError, match="qos 'high'; expected priorities"):
        starts("", (0, 5, 16), priorities="high")


@pytest.mark.parametrize("version", ["22.05.8", "24.11.5"])
def test_the_points_of_pending_jobs_are_those_of_slurm(version, shared):
    folder = shared(f"slurm/fixtures/{version}")
    lines = gzip.decompress((folder / "sprio.txt.gz").read_bytes()).decode().splitlines()
    head, *rows = (line.split() for line in lines)
    points = {int(row[0]): dict(zip(head, row)) for row in rows}
    queue = json.loads(gzip.decompress((folder / "squeue.json.gz").read_bytes()))["jobs"]
    jobs = [job for job in queue if job["job_id"] in points]
    asked = [dict(re.findall(r"(\w+)=(\d+)", job["tres_req_str"])) for job in jobs]
    cores, nodes = (np.array([int(each[name]) for each in asked]) for name in ("cpu", "node"))
    named = {"partition_name": "partition", "qos": "qos"}
    texts = {name: np.array([job[of] for job in jobs], object) for name, of in named.items()}
    numbers, one = np.array([job["job_id"] for job in jobs]), np.ones_like(cores)
    trace = Trace(numbers, one, one, one, cores, annotations={"nodes": nodes}, texts=texts)
    system = System.before(trace, read_machine(f"site:{folder}"), lambda problem: None)
    policy = Multifactor(qos="high=1000,normal=0,low=0")
    policy.begin(system)
    found = policy.scores_now(np.arange(len(jobs)), system)
    for job, score in zip(jobs, found.tolist()):
        own = points[job["job_id"]]
        wanted = sum(int(own[name]) for name in ("JOBSIZE", "PARTITION", "QOS"))
        assert -score == pytest.approx(wanted, abs=1)
    assert len(jobs) > 100


def test_the_logged_priority_is_an_order(make_trace):
    trace = make_trace((0, 5, 5, 4), (1, 5, 5, 4), (1, 5, 5, 4), (1, 5, 5, 4), (1, 5, 5, 1))
    with pytest.raises(InputError, match="no job of the trace has a priority"):
        simulate(trace, "nodes:4", "priority")
    trace = trace.changed(annotations={"priority": np.array([1, -1, 7, 9, 7])})
    assert simulate(trace, "nodes:4", "priority", check=True).start.tolist() == [0, 20, 10, 5, 15]
