"""Jobs of several blocks and of segments on a real Slurm that has them, from version 26.05 on."""

import re
import shutil
import subprocess
from dataclasses import replace

import pytest

from optsched.models.node_placement.problem import Placements
from optsched.sites.slurm_notation import hosts_of
from optsched.slurm.pins import updates_of
from optsched.slurm.plan import Ask, current_situation
from optsched.slurm.snapshot import placement_problem
from optsched.solvers.solving import solve

from .real_slurm import BLOCKS, SEARCHED, SETTINGS, RealSlurm, why_not

FREE = 44


def why_no_blocks() -> str:
    """Return why no Slurm with segments can be started; an empty text if it can."""
    if reason := why_not():
        return reason
    words = (str(shutil.which("slurmctld", path=SEARCHED)), "-V")
    said = subprocess.run(words, capture_output=True, text=True, check=False).stdout
    version = re.search(r"([0-9]+)\.([0-9]+)\.", said)
    new = version is not None and (int(version[1]), int(version[2])) >= (26, 5)
    return "" if new else f"{said.strip()} has no segments with flags"


pytestmark = [
    pytest.mark.skipif(bool(why_no_blocks()), reason=f"no real Slurm: {why_no_blocks()}"),
    pytest.mark.long,
]


@pytest.fixture
def slurm(tmp_path, monkeypatch):
    """Return a Slurm with eight blocks of 8 nodes, of which 8, 4, 4, 4, 8, 4, 6 and 6 are free."""
    settings = SETTINGS.replace("topology/tree", "topology/block")
    with RealSlurm(tmp_path / "slurm", settings=settings, topology=BLOCKS) as slurm:
        for name, value in slurm.variables.items():
            monkeypatch.setenv(name, value)
        busy = [*range(13, 17), *range(21, 25), *range(29, 33), *range(45, 49), 55, 56, 63, 64]
        jobs = [slurm.submit("-w", f"n{node:02}", "-N1", "--exclusive") for node in busy]
        slurm.wait(lambda: all(slurm.field(job, "State") == "RUNNING" for job in jobs))
        yield slurm


def posed(jobs):
    """Return what Slurm says as if these held jobs were released."""
    situation = current_situation(Ask("nodes"))
    queue = situation.queue
    free = tuple(
        replace(job, held=False, reason="") if job.label in jobs else job for job in queue.jobs
    )
    queue = replace(queue, jobs=free)
    return queue, placement_problem(queue, situation.supply, weigh="nodes")


def test_jobs_start_on_planned_blocks_and_slurm_keeps_the_same_limits(slurm):
    asked = (
        ("-N12",),
        ("-N8", "--segment=4"),
        ("-N12", "--segment=4", "--consolidate-segments"),
        ("-N12", "--segment=6"),
    )
    jobs = [slurm.submit("-H", "--exclusive", *options) for options in asked]
    queue, snapshot = posed(jobs)
    assert snapshot.left == {}
    result = solve(snapshot.problem, "column-generation")
    assert result.objective == FREE == sum(map(len, result.solution.nodes))
    for update in updates_of(queue, snapshot, result.solution).updates:
        slurm.call(*update.words)
    slurm.call("scontrol", "release", *jobs)
    slurm.wait(lambda: all(slurm.field(job, "State") == "RUNNING" for job in jobs))
    names = snapshot.problem.nodes
    for job, at in zip(jobs, result.solution.nodes):
        assert {*hosts_of(slurm.field(job, "NodeList"))} == {names[node] for node in at}
    slurm.call("scancel", *jobs)
    for options in asked:
        job = slurm.submit("-H", "--exclusive", *options)
        _, snapshot = posed([job])
        slurm.call("scontrol", "release", job)
        slurm.wait(lambda job=job: slurm.field(job, "State") == "RUNNING")
        index = {name: place for place, name in enumerate(snapshot.problem.nodes)}
        at = tuple(sorted(index[name] for name in hosts_of(slurm.field(job, "NodeList"))))
        (row,) = snapshot.rows
        assert row.label == job
        assert snapshot.problem.violations(Placements((at,), (((),) * len(at),))) == []
        slurm.call("scancel", job)
        slurm.wait(lambda job=job: "RUNNING" not in slurm.field(job, "State"))
