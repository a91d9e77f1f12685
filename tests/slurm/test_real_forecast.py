"""Forecasts beside what a real Slurm does: each what-if comes true, and jobs preempt others.

Jobs that hold all nodes run to their limits of a minute, those that wait for them for seconds. So
the first starts are compared with their forecasts by the second, later ones by their order.
"""

import math
import shlex
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from typing import NamedTuple

import pytest

from optsched.sites.slurm_notation import hosts_of

from .real_slurm import (
    ASLEEP,
    AWAKE,
    SETTINGS,
    RealSlurm,
    asked,
    forecast,
    marks,
    real_starts,
    starts,
)

pytestmark = marks()

APART = 15
"""Seconds by which a real start may differ from its forecast."""

BEFORE, DRAIN, AFTER = 45, 60, 65
"""Seconds after which a job may begin, nodes are drained, and another job may begin."""

LAST = 120
"""Seconds within which all starts that are compared come about."""


class Case(NamedTuple):
    """A what-if about a partition of its own, and the command that makes it so, or a job more.

    ``{0}`` and ``{1}`` are the jobs that wait, ``{b}`` is the one that holds the nodes.
    """

    partition: str
    nodes: str
    blockers: Sequence[str]  # their options
    jobs: Sequence[str]
    what_if: str
    really: str
    moved: Sequence[int]  # the jobs that start at another time
    late: int = APART  # seconds by which a start may be later than its forecast
    seconds: int = 58  # for which the blockers run
    rules: str = "MaxTime=60"


UPDATE = "scontrol update"

CASES = (
    Case(
        *("drained", "n[01-04]", ("-wn[01-02]", "-wn[03-04]"), ("-N2", "-N2")),
        *("drain n[01-02]", f"{UPDATE} NodeName=n[01-02] State=DRAIN Reason=test", (1,)),
    ),
    Case(
        *("later", "n[05-06]", (), ("-N2 --begin=now+{before}", "-N1 --begin=now+{after}")),
        *("drain n[05-06] at {at}", f"{UPDATE} NodeName=n[05-06] State=DRAIN Reason=test", (1,)),
    ),
    Case(
        *("resumed", "n[07-10]", ("-wn[09-10]",), ("-N2", "-N2")),
        *("resume n[07-08]", f"{UPDATE} NodeName=n[07-08] State=RESUME", (0, 1)),
    ),
    Case(  # Slurm 22.05 adds no node while it runs: they come from another partition
        *("larger", "n[11-12]", ("-wn[11-12]",), ("-N2", "-N2", "-N4")),
        *("add 2 like n11", f"{UPDATE} PartitionName=larger Nodes=n[11-14]", (0, 1, 2)),
    ),
    Case(
        *("raised", "n[15-16]", ("-wn[15-16]",), ("-N2", "-N2")),
        *("priority {1} = 5000", f"{UPDATE} JobId={{1}} Priority=5000", (0, 1)),
    ),
    Case(  # the second job would delay the first one
        *("shorter", "n[17-18]", ("-wn17 -t5",), ("-N2", "-N1 -t10")),
        *("limit {1} = 1", f"{UPDATE} JobId={{1}} TimeLimit=1", (1,)),
    ),
    Case(  # Slurm looks for jobs beyond their limits twice a minute, and ends it
        *("running", "n[19-20]", ("-wn[19-20] -t10",), ("-N2",)),
        *("limit {b} = 1", f"{UPDATE} JobId={{b}} TimeLimit=1", (0,)),
        late=45,
        seconds=300,
    ),
    Case(
        *("held", "n[21-22]", ("-wn[21-22]",), ("-N2", "-N2")),
        *("hold {0}", "scontrol hold {0}", (0, 1)),
    ),
    Case(
        *("owned", "n[23-24]", ("-wn[23-24]",), ("-N2 --uid=games", "-N2")),
        *("hold user games", "scontrol hold {0}", (0, 1)),
    ),
    Case(
        *("zero", "n[25-26]", ("-wn[25-26]",), ("-N2", "-N2")),
        *("priority {0} = 0", f"{UPDATE} JobId={{0}} Priority=0", (0, 1)),
    ),
    Case(
        *("released", "n[27-28]", ("-wn[27-28]",), ("-N2 --hold --nice=-50", "-N2")),
        *("release {0}", "scontrol release {0}", (0, 1)),
    ),
    Case(
        *("submitted", "n[29-30]", ("-wn[29-30]",), ("-N2",)),
        *("submit -N 2 -t 1 -p submitted --exclusive", "", (1,)),
    ),
    Case(  # limits of operators may be beyond those of the partition
        *("lifted", "n[31-32]", ("-wn[31-32]",), ("-N2 -t5",), "limit {0} = 10"),
        *(f"{UPDATE} JobId={{0}} TimeLimit=10", (0,)),
        rules="MaxTime=2",
    ),
    Case(
        *("whole", "n[37-38]", ("-wn[37-38]",), ("-N2", "-N1")),
        *("hold partition whole", "scontrol hold {0},{1}", (0, 1)),
    ),
)

OTHERS = """\
PartitionName=queue Nodes=n[33-36] MaxTime=60
PartitionName=urgent Nodes=n[41-44] MaxTime=60 PriorityTier=5 PreemptMode=OFF
PartitionName=spare Nodes=n[41-43] MaxTime=60 PriorityTier=1 PreemptMode=REQUEUE
PartitionName=firm Nodes=n44 MaxTime=60 PriorityTier=1 PreemptMode=OFF
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
PriorityWeightPartition=1000
"""


@pytest.fixture(scope="module")
def running(tmp_path_factory) -> Iterator[RealSlurm]:
    own = "".join(f"PartitionName={one.partition} Nodes={one.nodes} {one.rules}\n" for one in CASES)
    folder = tmp_path_factory.mktemp("real") / "slurm"
    with RealSlurm(folder, settings=SETTINGS + OTHERS + own) as slurm:
        yield slurm


def submit(slurm: RealSlurm, partition: str, options: str, seconds: int = 5) -> str:
    """Submit a job with a limit of a minute, unless it has another one."""
    words = ("-t1", "-p", partition, "--exclusive", *options.split())
    return slurm.submit(*words, seconds=seconds)


def test_each_what_if_comes_true(slurm) -> None:
    slurm.call("scontrol", "update", "NodeName=n[07-08]", "State=DRAIN", "Reason=test")
    blockers = {
        one.partition: [submit(slurm, one.partition, words, one.seconds) for words in one.blockers]
        for one in CASES
    }
    slurm.wait(lambda: {job for its in blockers.values() for job in its} <= {*real_starts(slurm)})
    began = time.time()
    times = {"before": BEFORE, "after": AFTER}
    jobs = {
        one.partition: [submit(slurm, one.partition, words.format(**times)) for words in one.jobs]
        for one in CASES
    }
    drained = datetime.fromtimestamp(began + DRAIN).astimezone().isoformat(timespec="seconds")

    def stated(one: Case, text: str) -> str:
        [*_, blocker] = blockers[one.partition] or [""]
        return text.format(*jobs[one.partition], b=blocker, at=drained)

    with ThreadPoolExecutor(2) as pool:  # while all nodes are still held
        found = [*pool.map(lambda one: forecast(slurm, stated(one, one.what_if)), CASES)]
    resumed, _ = jobs["resumed"]
    planned = asked(slurm, "plan", "--what-if", "resume n[07-08]")
    explained = asked(slurm, "explain", resumed, "--what-if", "resume n[07-08]")
    for one in CASES:
        if not one.really:
            jobs[one.partition].append(submit(slurm, one.partition, "-N2"))
        elif one.partition != "later":
            slurm.call(*shlex.split(stated(one, one.really)))
    done = time.time()
    [lifted] = jobs["lifted"]
    slurm.wait(lambda: slurm.field(lifted, "Reason") == "Resources")
    let = asked(slurm, "explain", lifted)
    priority = slurm.field(jobs["released"][0], "PriorityLong")
    time.sleep(max(0.0, began + DRAIN - time.time()))
    slurm.call(*shlex.split(stated(CASES[1], CASES[1].really)))

    then = {one.partition: starts(its["what_if"]) for one, its in zip(CASES, found)}
    every = {
        job: at
        for one in CASES
        for job, at in then[one.partition].items()
        if job in jobs[one.partition]
    }
    expected = {job for job, at in every.items() if at < math.inf}
    slurm.wait(lambda: expected <= {*real_starts(slurm)} or time.time() > began + LAST)
    slurm.wait(lambda: time.time() > began + AFTER + APART)
    real = real_starts(slurm)
    for one, its in zip(CASES, found):
        own, was, will = jobs[one.partition], starts(its), then[one.partition]
        there = {job: real.get(job, math.inf) for job in own}
        shown = stated(one, one.what_if), was, will, there
        moved = [at for at, job in enumerate(own) if was.get(job) != will[job]]
        assert moved == [*one.moved], shown
        assert {job for job in will if was.get(job, math.inf) != will[job]} <= {*own}, shown
        # a job of an earlier start, by more than cycles of Slurm, starts earlier
        assert all(
            there[job] < there[other]
            for job in own
            for other in own
            if will[job] + APART < will[other]
        ), shown
        for job in own:
            assert (there[job] == math.inf) == (will[job] == math.inf), shown
            late = max(will[job], done) + one.late
            # but for the first one, a job starts sooner, as those before it end sooner
            if min(will[each] for each in own) == will[job] < math.inf:
                assert will[job] - APART <= there[job] <= late, shown
            elif will[job] < math.inf:
                assert there[job] <= late, shown

    assert [one["nodes"] for one in planned["jobs"] if one["job"] == resumed] == []
    assert [one["nodes"] for one in planned["what_if"]["jobs"] if one["job"] == resumed] == [
        hosts_of(slurm.call("squeue", "-h", "-t", "all", "-j", resumed, "-o", "%N").strip())
    ]
    assert explained["earliest"] == explained["time"]
    assert (let["rule"], let["now"]["fits"]) == (None, False)
    [assumed] = found[10]["what_if"]["assumed"]
    assert f"priority {int(priority):,}, " in assumed


def test_each_policy_starts_what_slurm_then_starts(slurm) -> None:
    """A job of one node delays one of three, which starts before that of four, if it may."""
    first = submit(slurm, "queue", "-N2 -t1 -wn[33-34]", 100)
    second = submit(slurm, "queue", "-N1 -t5 -wn35", 100)
    slurm.wait(lambda: {first, second} <= {*real_starts(slurm)})
    large = submit(slurm, "queue", "-N4 -t1 --nice=-100")
    middle = submit(slurm, "queue", "-N3 -t1")
    small = submit(slurm, "queue", "-N1 -t2 --nice=100", 100)
    three = (large, middle, small)
    found = {
        name: starts(forecast(slurm, f"policy {name}")["what_if"])
        for name in ("conservative", "easy", "none")
    }
    order = {name: sorted(three, key=its.__getitem__) for name, its in found.items()}
    assert order["conservative"] == [middle, small, large]
    assert order["easy"] == [small, middle, large]
    assert order["none"][0] == large
    slurm.wait(lambda: all(slurm.field(job, "StartTime") != "N/A" for job in three))
    planned = {job: slurm.field(job, "StartTime") for job in three}
    assert sorted(planned, key=planned.__getitem__) == order["conservative"]
    slurm.schedule(f"{AWAKE},bf_job_part_count_reserve=1")  # the first of each partition
    slurm.wait(lambda: slurm.field(small, "State") == "RUNNING")
    assert [slurm.field(job, "State") for job in (large, middle)] == ["PENDING"] * 2
    slurm.schedule("sched_interval=1,bf_interval=-1")
    slurm.call("scancel", small)
    last = submit(slurm, "queue", "-N1 -t2 --nice=100", 100)
    time.sleep(4)
    assert slurm.field(last, "State") == "PENDING"


def looks(slurm: RealSlurm) -> int:
    """Return how many looks at the queue Slurm's backfill scheduler has ended."""
    stats = slurm.call("sdiag").partition("Backfilling stats")[2]
    return int(stats.partition("Total cycles:")[2].split()[0])


def test_each_setting_of_the_backfill_scheduler_starts_what_slurm_then_starts(slurm) -> None:
    """A job of four nodes waits for those of a job of ten minutes; one node is idle."""
    holds = submit(slurm, "queue", "-N3 -t10", 600)
    slurm.wait(lambda: holds in real_starts(slurm))
    submit(slurm, "queue", "-N4 --nice=-100")
    for parameters, options, is_started in (
        ("bf_window=60", "-t20", False),
        ("bf_window=60", "-t2", True),
        ("bf_window=3", "-t20", True),
        ("bf_min_prio_reserve=100000", "-t20", True),
        ("bf_min_age_reserve=3600", "-t20", True),
        ("bf_max_job_test=1", "-t2", False),
        ("bf_max_job_part=1", "-t2", False),
        ("bf_max_job_user=1", "-t2", False),
        ("bf_max_job_user=1", "-t2 --uid=games", True),
        ("bf_max_job_user_part=1", "-t2", False),
    ):
        slurm.schedule(f"{AWAKE},{parameters}")
        one = submit(slurm, "queue", f"-N1 --hold {options}", 100)
        found = forecast(slurm, f"release {one}")
        before = looks(slurm)
        slurm.call("scontrol", "release", one)
        # the look that ends first may have begun before the release
        slurm.wait(lambda: looks(slurm) >= before + 2)  # noqa: B023
        case = parameters, options
        assert (starts(found["what_if"])[one] <= found["time"] + 1) == is_started, case
        assert (slurm.field(one, "State") == "RUNNING") == is_started, case
        slurm.call("scancel", one)
        slurm.wait(lambda: not slurm.call("squeue", "-h", "-t", "completing"))


def test_jobs_that_may_preempt_start_as_forecast_and_plans_leave_them_to_slurm(slurm) -> None:
    low = [submit(slurm, "spare", "", 100) for _ in range(3)]
    firm = submit(slurm, "firm", "", 100)
    slurm.wait(lambda: {*low, firm} <= {*real_starts(slurm)})
    slurm.schedule(ASLEEP)
    may, may_not = submit(slurm, "urgent", "-N2 -t1", 58), submit(slurm, "urgent", "-N1 -wn44")
    then = submit(slurm, "urgent", "-N2 -t1")
    behind = submit(slurm, "spare", "")
    of_slurm = "PreemptType=preempt/partition_prio, PreemptMode=REQUEUE"
    which = f"whether it preempts 3 running jobs ({', '.join(low)}), {of_slurm}"
    first = asked(slurm, "explain", may)
    assert first["unseen"] == [which]
    assert (first["least"]["proven"], first["least"]["lines"]) == (False, [])
    assert asked(slurm, "explain", behind)["unseen"] == []
    planned = asked(slurm, "plan")
    assert (planned["jobs"], planned["unseen"]) == ([], {which: 3})
    found = forecast(slurm)
    said = {one["job"]: one["doubts"] for one in found["jobs"]}
    assert said[may] == ["Slurm may preempt 3 running jobs, and the forecast takes them as gone"]
    at = starts(found)
    assert at[may] <= found["time"] + 1
    assert at[then] == at[may] + 60
    awake = time.time()
    slurm.schedule(AWAKE)
    slurm.wait(lambda: slurm.field(may, "State") == "RUNNING")
    states = [slurm.field(job, "State") for job in low]
    assert states.count("RUNNING") == 1
    assert slurm.field(firm, "State") == "RUNNING"
    assert slurm.field(may_not, "State") == "PENDING"
    slurm.wait(lambda: slurm.field(then, "State") == "RUNNING")
    really = real_starts(slurm)
    late = awake - found["time"]
    for job in (may, then):
        assert abs(really[job] - at[job] - late) < APART


def test_a_priority_that_is_set_heeds_no_nice_and_is_raised_by_another_one(slurm) -> None:
    holds = submit(slurm, "queue", "-N4", 100)
    slurm.wait(lambda: holds in real_starts(slurm))
    first, second = submit(slurm, "queue", "-N4"), submit(slurm, "queue", "-N4")
    slurm.call("scontrol", "update", f"JobId={second}", "Priority=900")
    slurm.call("scontrol", "update", f"JobId={second}", "Nice=-500")
    assert slurm.field(second, "PriorityLong") == "900"
    slurm.schedule(ASLEEP)
    found = asked(slurm, "explain", second)
    assert found["ahead"] == [first]
    raising, *_ = found["least"]["lines"]
    slurm.call(*shlex.split(raising))
    assert int(slurm.field(second, "PriorityLong")) > int(slurm.field(first, "PriorityLong"))
    assert asked(slurm, "explain", second)["ahead"] == []
    slurm.call(*shlex.split(found["least"]["afterwards"][-1]))
    assert slurm.field(second, "PriorityLong") == "900"
