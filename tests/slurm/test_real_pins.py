"""Random jobs on a real Slurm: every pin starts, though nothing of the plan knows of the others."""

import random
from collections.abc import Iterator

import pytest

from optsched.sites.slurm_notation import hosts_of

from .plan_checker import illegal_starts
from .real_slurm import ASLEEP, AWAKE, SETTINGS, RealSlurm, marks, optsched

pytestmark = marks()

NODES = {
    "n[01-32]": "RealMemory=16000 Feature=thin,old Weight=1",
    "n[33-48]": "RealMemory=32000 Feature=thin,new Weight=5 CoreSpecCount=2",
    "n[49-56]": "RealMemory=256000 Feature=fat Weight=20 Gres=scratch:900G",
    "n[57-64]": "RealMemory=64000 Feature=gpu Weight=30 Gres=gpu:a:4",
}
GRES = """\
NodeName=n[57-64] Name=gpu Type=a File={folder}/gpu[0-3]
NodeName=n[49-56] Name=scratch Count=900G Flags=CountOnly
"""
PARTITIONS = """\
GresTypes=gpu,scratch
PartitionName=small Nodes=n[01-48] MaxNodes=2 MaxCPUsPerNode=6 MaxTime=60 State=UP
PartitionName=alone Nodes=n[17-32] OverSubscribe=EXCLUSIVE MaxTime=60 State=UP
PartitionName=own Nodes=n[25-40] ExclusiveUser=YES MaxTime=60 State=UP
PartitionName=accel Nodes=n[57-64] DefCpuPerGPU=1 DefMemPerGPU=8000 MaxTime=60 State=UP
"""
USERS = ("daemon", "games", "news")


@pytest.fixture(scope="module")
def slurm(tmp_path_factory) -> Iterator[RealSlurm]:
    folder, settings = tmp_path_factory.mktemp("real") / "slurm", SETTINGS + PARTITIONS
    with RealSlurm(folder, settings=settings, nodes=NODES, gres=GRES) as slurm:
        yield slurm


def _asked(draw: random.Random) -> list[str]:
    """Return the options of one job; its number of nodes is fixed, so that it can be pinned."""
    nodes = draw.choice((1, 1, 2, 3))
    kinds = [
        f"-N{nodes} -n{nodes + draw.randrange(6)} --mem-per-cpu={draw.choice((100, 1500, 4000))}",
        f"-N{nodes} --ntasks-per-node={draw.choice((1, 3))} -c{draw.choice((1, 2))}",
        f"-N{nodes} --exclusive --mem={draw.choice((0, 8000))}",
        f"-N1 -n{draw.choice((2, 5))} -C {draw.choice(('fat', 'new', 'old|fat', '[old|new]'))}",
        f"-N1 -n2 --mem={draw.choice((9000, 60000, 200000))}",
        f"-N1 -n1 --gres=scratch:{draw.choice((300, 500))}G",
        f"-N1 -n{draw.choice((2, 4))} -p small",
        f"-N{nodes} -p alone",
        "-N1 -n3 -p own",
        "-N1 -n2 --exclusive=user",
        f"-N2 -n2 -p accel --gpus={draw.choice((3, 5, 6))}",
        f"-N1 -n1 -p accel --gres=gpu:{draw.choice(('1', 'a:2', '4'))}",
        f"-N1 -n{draw.choice((1, 2))} -p accel --gpus-per-task=1 --mem={draw.choice((9, 40))}G",
        "-N1 -n1 -L matlab:1",
    ]
    return draw.choice(kinds).split()


@pytest.mark.parametrize("seed", range(2))
def test_every_pin_starts_on_its_nodes(slurm, tmp_path, seed) -> None:
    draw = random.Random(seed)
    slurm.schedule(AWAKE)
    for count in (25, 60):
        for _ in range(count):
            slurm.submit(*_asked(draw), "-t", "30", f"--uid={draw.choice(USERS)}")
        if count == 25:
            slurm.wait(lambda: slurm.call("squeue", "-h", "-t", "R").count("\n") >= 15)
            slurm.schedule(ASLEEP)
    folder = tmp_path / "captured"
    optsched(slurm, "snapshot", "--keep", str(folder), "-o", str(tmp_path / "snapshot.json"))
    optsched(slurm, "apply", "--yes")
    listed = slurm.call("squeue", "-h", "-t", "PD", "-o", "%i|%k|%n").splitlines()
    waiting = [line.split("|") for line in listed]
    pins = {job: nodes for job, comment, nodes in waiting if comment.startswith("optsched:")}
    assert len(pins) > 15
    plan = {
        "jobs": [{"job": job, "nodes": hosts_of(nodes)} for job, nodes in pins.items()],
        "lines": [f"JobId={job} ReqNodeList={nodes}" for job, nodes in pins.items()],
    }
    assert illegal_starts(folder, plan) == []
    for job, _, _ in waiting:
        if job not in pins:
            slurm.call("scontrol", "hold", job)
    slurm.schedule(AWAKE)
    slurm.wait(lambda: not _not_started(slurm, pins))
    slurm.cancel()


def _not_started(slurm: RealSlurm, pins: dict[str, str]) -> list[str]:
    listed = slurm.call("squeue", "-h", "-t", "all", "-o", "%i|%t|%N").splitlines()
    at = {job: nodes for job, state, nodes in (line.split("|") for line in listed)}
    return [job for job, nodes in pins.items() if at.get(job) != nodes]
