"""Limits of QOS and accounts, and preemption by QOS, beside what a real Slurm does."""

import math
from collections.abc import Iterator

import pytest

from .real_slurm import (
    ASLEEP,
    AWAKE,
    PROGRAMS,
    SETTINGS,
    AccountedSlurm,
    asked,
    forecast,
    marks,
    real_starts,
    starts,
)

pytestmark = marks(PROGRAMS)

APART = 15
"""Seconds by which a start may differ."""

RUNS = 45
"""Seconds for which the jobs run that have all of a limit, while all is asked."""

OF_ACCOUNTS = (
    "add account ai",
    "add account bio",
    "add user games account=ai",
    "add user news account=bio",
    "modify account bio set GrpJobs=1",
    "add qos two MaxJobsPerUser=2",
    "add qos few GrpTRES=cpu=12",
    "add qos short MaxWall=2",
    "add qos low PreemptMode=requeue",
    "add qos high Preempt=low",
    "add qos self PreemptMode=requeue,within",
    "add qos free Flags=PartitionTimeLimit",
    "modify user games set qos+=two,few,short,low,high,self,free",
)

OF_QOS = """\
PreemptType=preempt/qos
PreemptMode=REQUEUE
PriorityWeightPartition=1000
PartitionName=brief Nodes=n[41-43] MaxTime=2 MaxNodes=2
PartitionName=pair Nodes=n[63-64] MaxTime=60
PartitionName=single Nodes=n62 MaxTime=60
"""

LIMITED = (
    (
        *("-q two", 3, "QOSMaxJobsPerUserLimit"),
        "QOS two for user games allows 2 running jobs (MaxJobsPU): 2 in use",
    ),
    (
        *("-q few -n8", 2, "QOSGrpCpuLimit"),
        "QOS few allows 12 cpu (GrpTRES): 8 in use, 8 asked, 4 too many",
    ),
    (
        *("--uid=news", 2, "AssocGrpJobsLimit"),
        "account bio allows 1 running jobs (GrpJobs): 1 in use",
    ),
)
"""Options, how many jobs have them, and why the last one waits: by Slurm, and in our words."""

BLOCKED = (
    (
        *("-q short -t5", "QOSMaxWallDurationPerJobLimit"),
        "QOS short allows 2 minutes (MaxWallPJ): 5 asked, 3 too many",
    ),
    (
        *("-p brief -t5", "PartitionTimeLimit"),
        "its time limit, 5 min, exceeds the 2 min of partition brief",
    ),
    ("-p brief -N3", "PartitionNodeLimit", "its 3 nodes are more than the 2 of partition brief"),
)
"""Options of jobs that no end of another one lets start, and why."""


@pytest.fixture(scope="module")
def running(tmp_path_factory) -> Iterator[AccountedSlurm]:
    folder = tmp_path_factory.mktemp("real") / "slurm"
    with AccountedSlurm(folder, OF_ACCOUNTS, settings=SETTINGS + OF_QOS) as slurm:
        yield slurm


@pytest.mark.parametrize(
    ("options", "what_if"), [(["-q", "two"], "hold qos two"), ([], "hold account ai")]
)
def test_a_what_if_that_holds_an_account_or_a_qos_comes_true(slurm, options, what_if) -> None:
    whole = ("-p", "pair", "-N2", "--exclusive", "-t1")
    first = slurm.submit("--uid=games", *whole, seconds=58)
    slurm.wait(lambda: first in real_starts(slurm))
    held = slurm.submit("--uid=games", *whole, *options, seconds=3)
    other = slurm.submit("--uid=news", *whole, seconds=3)
    slurm.wait(lambda: slurm.field(held, "Reason") == "Resources")
    found = forecast(slurm, what_if)
    was, will = starts(found), starts(found["what_if"])
    assert was[held] < was[other]
    assert (will[held], will[other]) == (math.inf, was[held])
    slurm.call("scontrol", "hold", held)
    slurm.wait(lambda: other in real_starts(slurm))
    real = real_starts(slurm)
    assert abs(real[other] - will[other]) <= APART
    assert held not in real


def test_limits_are_those_that_slurm_names_and_hold_as_long(slurm) -> None:
    def submit(options: str, seconds: int) -> str:
        words = f"--uid=games -t1 {options}".split()
        return slurm.submit(*words, seconds=seconds)

    jobs = [[submit(options, RUNS) for _ in range(count)] for options, count, _, _ in LIMITED]
    blocked = [submit(options, 3) for options, _, _ in BLOCKED]
    over = blocked[0]
    free = submit("-q free -p brief -t5 --exclusive -N2 -w n[41-42]", RUNS)
    after = submit("-q free -p brief -t5 --exclusive -N2 -w n[41-42]", 3)
    running = {job for its in jobs for job in its[:-1]} | {free}
    slurm.wait(lambda: running <= {*real_starts(slurm)})
    slurm.wait(lambda: slurm.field(after, "Reason") == "Resources")
    said = forecast(slurm)
    # no job has ended, so none says how long jobs run
    assert len(asked(slurm, "forecast")["jobs"]) == len(said["jobs"])
    first, will = real_starts(slurm), starts(said)
    planned = asked(slurm, "plan")["blocked"]
    for (_, _, reason, words), its in zip(LIMITED, jobs):
        assert slurm.field(its[-1], "Reason") == reason
        assert asked(slurm, "explain", its[-1])["rule"] == planned[its[-1]] == words
        assert abs(will[its[-1]] - min(first[job] for job in its[:-1]) - 60) <= APART
    assert [slurm.field(job, "Reason") for job in blocked] == [reason for _, reason, _ in BLOCKED]
    assert said["left"] == dict(zip(blocked, (words for _, _, words in BLOCKED)))
    assert said["left"].items() <= planned.items()
    for minutes in (1, 10):  # of an operator, who may go beyond
        changed = forecast(slurm, f"limit {over} = {minutes}")["what_if"]
        assert starts(changed)[over] == changed["time"]
    # the flag of the QOS, which lets jobs be longer than their partition allows, is not shown
    assert asked(slurm, "explain", after)["rule"] is None
    assert abs(will[after] - first[free] - 300) <= APART
    slurm.call("scontrol", "update", f"JobId={over}", "TimeLimit=10")
    last = {its[-1] for its in jobs} | {over, after}
    slurm.wait(lambda: last <= {*real_starts(slurm)})
    real = real_starts(slurm)
    for its in jobs:  # each starts when the first one ends
        assert abs(real[its[-1]] - min(first[job] for job in its[:-1]) - RUNS) <= APART


def test_jobs_that_may_preempt_by_qos_start_as_forecast(slurm) -> None:
    def submit(partition: str, options: str) -> str:
        words = f"--uid=games -t1 --exclusive -p {partition} {options}".split()
        return slurm.submit(*words, seconds=100)

    low, normal = submit("pair", "-q low -w n63"), submit("pair", "-w n64")
    own = submit("single", "-q self --nice=50")
    slurm.wait(lambda: {low, normal, own} <= {*real_starts(slurm)})
    slurm.schedule(ASLEEP)
    high, plain = submit("pair", "-q high"), submit("pair", "")
    higher, lower = submit("single", "-q self"), submit("single", "-q self --nice=90")
    settings = "PreemptType=preempt/qos, PreemptMode=REQUEUE"
    named = {
        job: [f"whether it preempts 1 running job ({other}), {settings}"] if other else []
        for job, other in ((high, low), (plain, ""), (higher, own), (lower, ""))
    }
    assert {job: asked(slurm, "explain", job)["unseen"] for job in named} == named
    said = forecast(slurm)
    doubts = {one["job"]: one["doubts"] for one in said["jobs"]}
    may = "Slurm may preempt 1 running job, and the forecast takes it as gone"
    assert {job: starts(said)[job] <= said["time"] + 1 for job in named} == {
        high: True, plain: False, higher: True, lower: False,
    }  # fmt: skip
    assert {job: may in doubts[job] for job in named} == {j: bool(n) for j, n in named.items()}
    assert {*asked(slurm, "plan")["unseen"]} == {text for its in named.values() for text in its}
    slurm.schedule(AWAKE)
    slurm.wait(lambda: {high, higher} <= {*real_starts(slurm)})
    assert slurm.field(normal, "State") == "RUNNING"
    for job in (low, own, plain, lower):  # requeued ones are completing at first
        slurm.wait(lambda job=job: slurm.field(job, "State") == "PENDING")
