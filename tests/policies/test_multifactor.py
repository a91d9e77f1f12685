"""Slurm's multifactor priority."""

from __future__ import annotations

import gzip
import json
import re

import numpy as np
import pytest

from optsched import simulate
from optsched.errors import InputError
from optsched.machines.machine import read_machine
from optsched.policies.multifactor import Multifactor, Weights, read_weights
from optsched.simulator.system import System
from optsched.traces.cleaning import clean
from optsched.traces.trace import Trace

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
        owners = {
            name: np.array(columns.pop(name)) for name in ("user", "group") if name in columns
        }
        texts = {name: np.array(of, dtype=object) for name, of in columns.items()}
        trace = clean(trace.changed(texts=texts, **owners, cleaning=None))
        chosen = {"qos": priorities}
        found = simulate(trace, f"site:{folder}", "multifactor", settings=chosen, check=True)
        return found.start.tolist()

    return run


def test_without_weights_jobs_start_in_order_of_submission(starts):
    assert starts("", (0, 5, 16), (1, 5, 16), (2, 5, 1), (3, 5, 16)) == [0, 5, 10, 15]


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


def test_the_weights_are_read(tmp_path):
    file = tmp_path / "slurm.conf"
    file.write_text(
        "PriorityWeightAge=1\nPriorityWeightFairshare=2\nPriorityWeightJobSize=3\n"
        "PriorityWeightPartition=4\nPriorityWeightQOS=5\nPriorityMaxAge=1-0\n"
        "PriorityDecayHalfLife=2-0\nPriorityFavorSmall=NO\n"
    )
    assert read_weights(file) == Weights(1, 2, 3, 4, 5, False, 86_400, 172_800)
    for text, message in (
        ("PriorityWeightAge=x", "line 1, priorityweightage: 'x'; expected a whole number"),
        ("PriorityMaxAge=0", "line 1, prioritymaxage: '0'; expected a time above 0"),
        ("PriorityMaxAge=soon", "line 1, prioritymaxage: 'soon'; expected a time"),
    ):
        file.write_text(text + "\n")
        with pytest.raises(InputError, match=re.escape(message)):
            read_weights(file)


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
    one = np.ones(len(jobs), dtype=np.int64)
    trace = Trace(
        np.array([job["job_id"] for job in jobs]),
        *(one, one, one),
        np.array([int(each["cpu"]) for each in asked]),
        annotations={"nodes": np.array([int(each["node"]) for each in asked])},
        texts={
            "partition_name": np.array([job["partition"] for job in jobs], dtype=object),
            "qos": np.array([job["qos"] for job in jobs], dtype=object),
        },
    )
    system = System.before(trace, read_machine(f"site:{folder}"), lambda problem: None)
    policy = Multifactor(qos="high=1000,normal=0,low=0")
    policy.begin(system)
    found = policy.scores_now(np.arange(len(jobs)), system)
    tier = {"batch": 10, "bigmem": 10, "gpu": 20, "whole": 5, "debug": 50}
    for job, score in zip(jobs, found.tolist()):
        own = points[job["job_id"]]
        wanted = sum(int(own[name]) for name in ("JOBSIZE", "PARTITION", "QOS"))
        highest = max(tier[name] for name in job["partition"].split(","))
        assert -score - highest * 3001 == pytest.approx(wanted, abs=1)
    assert len(jobs) > 100
