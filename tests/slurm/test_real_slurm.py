"""The closed loop on a real Slurm: plan, apply, see the jobs start there, and reset."""

import os
import subprocess
from collections.abc import Iterator

import pytest

from optsched.sites.slurm_notation import hosts_of
from optsched.slurm.capture import run_command
from optsched.slurm.pins import updates_of
from optsched.slurm.plan import Ask, QueuePlan, carry_out, current_queue, current_situation
from optsched.solvers.solving import solve

from .real_slurm import ASLEEP, AWAKE, EIGHTS, RealSlurm, asked, marks, optsched

pytestmark = marks()

SIZES = (2, 2, 3, 4)


@pytest.fixture(scope="module")
def running(tmp_path_factory) -> Iterator[RealSlurm]:
    with RealSlurm(tmp_path_factory.mktemp("real") / "slurm") as slurm:
        yield slurm


@pytest.fixture
def slurm(running) -> Iterator[RealSlurm]:
    """Return the Slurm with 5 and 6 free nodes on two leaf switches, and a scheduler asleep."""
    running.schedule(AWAKE)
    running.wait(
        lambda: running.call("sinfo", "-h", "-N", "-t", "idle", "-o", "%N").count("n") >= 64
    )
    jobs = [
        running.submit("-w", nodes, f"-N{len(hosts_of(nodes))}", "--exclusive")
        for nodes in ("n[01-03]", "n[09-10]", *EIGHTS[2:])
    ]
    running.wait(lambda: all(running.field(job, "State") == "RUNNING" for job in jobs))
    running.schedule(ASLEEP)
    yield running
    running.cancel()


def leaf(node: str) -> int:
    return (int(node[1:]) - 1) // 8


def _seconds_run(slurm: RealSlurm, node: str) -> int:
    used = slurm.call("squeue", "-h", "-w", node, "-O", "TimeUsed").strip()
    minutes, _, seconds = used.partition(":")
    return 60 * int(minutes) + int(seconds)


def test_jobs_start_on_the_planned_nodes_on_fewest_switches(slurm):
    jobs = [slurm.submit(f"-N{size}", "--exclusive", "--comment=mine") for size in SIZES]
    applied = optsched(slurm, "apply", "--yes")
    assert f"updated {len(SIZES)} of {len(SIZES)} jobs" in applied.stderr
    planned = {job: slurm.field(job, "ReqNodes") for job in jobs}
    assert [len(hosts_of(planned[job])) for job in jobs] == [*SIZES]
    slurm.schedule(AWAKE)
    slurm.wait(lambda: all(slurm.field(job, "State") == "RUNNING" for job in jobs))
    started = {job: slurm.field(job, "NodeList") for job in jobs}
    assert started == planned
    assert sum(len({leaf(node) for node in hosts_of(nodes)}) for nodes in started.values()) == 4
    assert f"{len(jobs)} jobs" in optsched(slurm, "reset", "--yes").stderr  # keep their pins
    first, *others = jobs
    slurm.call("scontrol", "requeue", first)
    slurm.wait(lambda: slurm.field(first, "State") == "PENDING")
    assert slurm.field(first, "ReqNodes") == planned[first]
    assert "updated 1 of 1 job" in optsched(slurm, "reset", "--yes").stderr
    assert (slurm.field(first, "ReqNodes"), slurm.field(first, "comment")) == ("", "mine")
    assert all(slurm.field(job, "comment").startswith("optsched:") for job in others)


def test_reset_restores_pending_jobs(slurm):
    comment = "$(touch no) 'quoted' \\ \n\x1b[2J é"
    jobs = [slurm.submit("-N3", f"--comment={comment}"), slurm.submit("-N2", "--array=0-2%2")]
    before = slurm.call("scontrol", "show", "jobs", "-o")
    applied = optsched(slurm, "apply", "--yes")
    assert "updated 3 of 3 jobs" in applied.stderr
    assert slurm.field(jobs[0], "ReqNodes").startswith("n")
    assert "updated 3 of 3 jobs" in optsched(slurm, "reset", "--yes").stderr
    assert slurm.field(jobs[0], "ReqNodes") == ""
    assert not any(slurm.field(job, "comment").startswith("optsched") for job in jobs)
    assert comment.split("\n")[0] in before
    assert comment.split("\n")[0] in slurm.call("scontrol", "show", "jobs", "-o")


def test_jobs_that_start_meanwhile_keep_their_nodes(slurm, monkeypatch):
    jobs = [slurm.submit(*words) for words in (["-N2"], ["-N3", "--exclusive"], ["-n1"])]
    for name, value in slurm.variables.items():
        monkeypatch.setenv(name, value)
    situation = current_situation(Ask("priority"))
    placements = solve(situation.posed.problem, "best-fit").solution
    updates = updates_of(situation.queue, situation.posed, placements).updates
    assert len(updates) == len(jobs)
    slurm.schedule(AWAKE)
    slurm.wait(lambda: all(slurm.field(job, "State") == "RUNNING" for job in jobs))
    started = [slurm.field(job, "NodeList") for job in jobs]
    assert {reason for _, reason in carry_out(updates)} == {"it is RUNNING by now"}
    for update in updates:  # as if the jobs had started after the look at them
        run_command(update.words)
    assert [slurm.field(job, "NodeList") for job in jobs] == started


def test_no_job_is_pinned_or_stays_so_where_others_have_started(slurm, monkeypatch):
    job = slurm.submit("-N11", "--exclusive", "--comment=mine")
    for name, value in slurm.variables.items():
        monkeypatch.setenv(name, value)
    situation = current_situation(Ask())
    plan = QueuePlan(situation, solve(situation.posed.problem, "best-fit").solution)
    [update] = plan.updates.updates
    other = slurm.submit("-w", "n05", "-N1", "--priority=4000000000")
    slurm.schedule(AWAKE)
    slurm.wait(lambda: slurm.field(other, "State") == "RUNNING")
    assert [*carry_out([update], plan)] == [(update, "others have started on its nodes")]
    run_command(update.words)  # as if the other had started after the look at the queue
    assert slurm.field(job, "ReqNodes")
    assert [reason for _, reason in carry_out(plan.given_up(current_queue()))] == [""]
    assert (slurm.field(job, "ReqNodes"), slurm.field(job, "comment")) == ("", "mine")


def test_jobs_of_a_plan_that_reserves_start_at_once_and_are_lowered_again(slurm):
    """Eleven nodes are free until the others end, after ten minutes at the latest."""
    slurm.schedule("sched_interval=60,bf_interval=600")
    first = slurm.submit("-N40", "--exclusive", "-t", "5", "--nice=-90")
    soon = slurm.submit("-N3", "-t", "5", "--nice=-50", "--comment=mine")
    loose = slurm.submit("-n16", "-t", "5", "--nice=-45")  # of any number of nodes
    late = slurm.submit("-N2", "-t", "60", "--nice=-40")
    applied = optsched(slurm, "apply", "--reserve", "1", "--yes")
    assert {slurm.field(job, "State") for job in (soon, loose)} == {"RUNNING"}, applied
    shown = slurm.call("scontrol", "show", "job", loose)
    out = {*hosts_of(shown.partition("ExcNodeList=")[2].split()[0])}
    assert 60 < len(out) < 64
    assert out.isdisjoint(hosts_of(slurm.field(loose, "NodeList")))
    assert [slurm.field(job, "State") for job in (first, late)] == ["PENDING"] * 2
    order = slurm.call("squeue", "-h", "-o", "%i %Q %y", "-j", f"{first},{soon},{late}")
    assert {*order.splitlines()} == {f"{first} 90 -90", f"{soon} 50 -50", f"{late} 40 -40"}
    assert slurm.field(soon, "comment").endswith(" mine")


def test_reset_lowers_what_is_raised(slurm):
    slurm.schedule("sched_interval=60,bf_interval=600")
    slurm.submit("-N40", "--exclusive", "-t", "5", "--nice=-90")
    job = slurm.submit("-N3", "-t", "5", "--nice=7", "--comment=mine")
    [line] = asked(slurm, "plan", "--reserve", "1")["lines"]
    subprocess.run(line, shell=True, env=os.environ | slurm.variables, check=True)
    slurm.wait(lambda: slurm.field(job, "State") == "RUNNING")
    assert int(slurm.call("squeue", "-h", "-o", "%y", "-j", job)) < 0
    optsched(slurm, "reset", "--yes")
    assert int(slurm.call("squeue", "-h", "-o", "%y", "-j", job)) == 7


def test_a_failed_node_gives_its_pin_up(slurm):
    job = slurm.submit("-N5")
    optsched(slurm, "apply", "--yes")
    [first, *_] = pinned = hosts_of(slurm.field(job, "ReqNodes"))
    slurm.call("scontrol", "update", f"NodeName={first}", "State=DOWN", "Reason=test")
    try:
        optsched(slurm, "apply", "--yes")
        now = hosts_of(slurm.field(job, "ReqNodes"))
        assert len(now) == len(pinned)
        assert first not in now
    finally:
        slurm.call("scontrol", "update", f"NodeName={first}", "State=RESUME")


def test_the_lines_of_explain_start_a_stuck_job_before_others(slurm):
    """Seven nodes of one leaf: two are to be requeued, and the job before it would take them."""
    # jobs may start seconds apart, and those that lose the least are requeued
    slurm.wait(lambda: 2 * _seconds_run(slurm, "n09") < 3 * _seconds_run(slurm, "n01"))
    before = slurm.submit("-N13", "--exclusive", "--nice=-100")
    stuck = slurm.submit("-N7", "--exclusive", "--switches=1@10:00", "--comment=mine")
    found = asked(slurm, "explain", stuck)
    assert (found["now"]["room"], found["now"]["chunks"]) == (6, 7)
    assert found["ahead"] == [before]
    least = found["least"]
    [claim] = least["lifted"]
    requeued = claim.removeprefix("requeue ")
    assert slurm.field(requeued, "NodeList") == "n[09-10]"
    _run(slurm, least["lines"])
    slurm.schedule(AWAKE)
    slurm.wait(lambda: slurm.field(stuck, "State") == "RUNNING")
    assert hosts_of(slurm.field(stuck, "NodeList")) == least["nodes"]
    assert [slurm.field(job, "State") for job in (before, requeued)] == ["PENDING"] * 2
    assert "held" in slurm.field(requeued, "Reason")
    _run(slurm, least["afterwards"])
    assert slurm.field(stuck, "comment").endswith(" mine")
    assert "held" not in slurm.field(requeued, "Reason")


def test_drained_nodes_and_held_jobs_wait_for_the_job_and_are_given_back(slurm):
    """All but four nodes are planned for another job when the blockers reach their limits."""
    slurm.schedule(AWAKE)
    before = slurm.submit("-N60", "--exclusive", "--nice=-100")
    slurm.wait(lambda: slurm.field(before, "SchedNodes").startswith("n"))
    job = slurm.submit("-N12", "--exclusive", "--comment=mine")  # 11 are free now
    words = "explain", job, "--within", "660", "--actions"
    held = asked(slurm, *words, "hold")["least"]
    assert held["lifted"] == [f"hold {before}"]
    _run(slurm, held["lines"])
    assert "Held" in slurm.field(before, "Reason")
    _run(slurm, held["afterwards"])
    assert "Held" not in slurm.field(before, "Reason")
    assert slurm.field(job, "comment").endswith(" mine")
    optsched(slurm, "reset", "--yes")
    assert (slurm.field(job, "ReqNodes"), slurm.field(job, "comment")) == ("", "mine")

    slurm.wait(lambda: slurm.field(before, "SchedNodes").startswith("n"))
    least = asked(slurm, *words, "drain")["least"]
    assert (least["lifted"], least["drained"]) == ([], least["nodes"])
    assert len(least["nodes"]) == 12
    _run(slurm, least["lines"])
    blockers = slurm.call("squeue", "-h", "-t", "R", "-o", "%A").split()
    slurm.call("scancel", *blockers)  # they end early: 52 nodes are too few for the other job
    slurm.wait(lambda: not slurm.call("squeue", "-h", "-t", "R,CG"))
    assert [slurm.field(each, "State") for each in (before, job)] == ["PENDING"] * 2
    _run(slurm, least["at_start"])
    slurm.wait(lambda: slurm.field(job, "State") == "RUNNING")
    assert hosts_of(slurm.field(job, "NodeList")) == least["nodes"]
    _run(slurm, least["afterwards"])
    assert slurm.field(job, "comment").endswith(" mine")
    assert "drain" not in slurm.call("sinfo", "-h", "-N", "-o", "%T")
    assert slurm.field(before, "State") == "PENDING"


def _run(slurm: RealSlurm, lines: list[str]) -> None:
    for line in lines:
        subprocess.run(line, shell=True, check=True, env=os.environ | slurm.variables, timeout=60)
