"""Pins, and how they are taken back."""

import shutil
import subprocess
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from optsched.sites.slurm_notation import hosts_of
from optsched.slurm.capture import Output
from optsched.slurm.pins import clearing, lowering, pinned_placements, updates_of, without_pins
from optsched.slurm.plan import Ask, Plan, Situation, carry_out
from optsched.slurm.queue import Queue
from optsched.slurm.reserved import reserved, with_reserved
from optsched.slurm.snapshot import SlurmSnapshot, placement_problem

from .conftest import left_by, on, queue_of, running, supply, whole

LISTS = {"required": "ReqNodeList", "excluded": "ExcNodeList"}
comments = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=30)


def posed(queue: Queue) -> SlurmSnapshot:
    return placement_problem(without_pins(queue), supply())


def followed(queue: Queue, updates) -> Queue:
    """Return the queue after updates, as Slurm carries them out."""
    settings_of = {update.label: update.settings for update in updates}
    jobs = []
    for one in queue.jobs:
        settings = dict(text.split("=", 1) for text in settings_of.get(one.label, ()))
        own = {field: settings[name] for field, name in LISTS.items() if name in settings}
        nice, comment = int(settings.get("Nice", one.nice)), settings.get("Comment", one.comment)
        raised = {"nice": nice, "priority": one.priority + one.nice - nice}
        nodes = {field: tuple(hosts_of(text)) for field, text in own.items()}
        jobs.append(replace(one, comment=comment, **nodes, **raised))
    return queue_of(*jobs)


@given(comments, st.integers(0, 5000), st.integers(-5000, 5000))
def test_clearing_restores_what_was_pinned(comment, higher, nice):
    before = queue_of(whole(1, 2, comment=comment, priority=70, nice=nice), whole(2, 2))
    placements = on((0, 1), (2, 3))
    updates = updates_of(before, posed(before), placements, raises={"1": higher}).updates
    its = followed(before, updates)
    assert its.jobs[0].priority == 70 + higher
    assert [each.required for each in its.jobs] == [("c1", "c2"), ("c3", "c4")]
    assert without_pins(its).jobs == before.jobs
    assert followed(its, clearing(its)).jobs == before.jobs
    assert {update.what for update in clearing(its)} == {"clear"}


def test_pins_of_jobs_that_have_ended_stay_and_marks_of_pins_that_somebody_has_cleared_go():
    before = queue_of(whole(1, 2, comment="mine"))
    [its] = followed(before, updates_of(before, posed(before), on((0, 1))).updates).jobs
    for required in (its.required, ()):
        assert clearing(queue_of(replace(its, required=required, state="COMPLETED"))) == ()
    [update] = clearing(queue_of(replace(its, required=(), state="RUNNING")))
    assert (update.what, update.settings) == ("unmark", ("Comment=mine",))


def test_raised_jobs_are_lowered_whether_they_run_or_wait():
    before = queue_of(whole(1, 2, comment="mine", priority=70, nice=5))
    [pin] = updates_of(before, posed(before), on((0, 1)), raises={"1": 30}).updates
    assert "Nice=-25" in pin.settings
    its = followed(before, [pin]).jobs[0]
    lowered = replace(its, comment=its.comment.replace(":5:-25", ""), nice=5, priority=70)
    for state in ("PENDING", "RUNNING"):
        now = queue_of(replace(its, state=state))
        [update] = lowering(now)
        assert update.what == "lower"
        assert followed(now, [update]).jobs == (replace(lowered, state=state),)
        assert lowering(followed(now, [update])) == ()
    # a job that runs is lowered without its pin
    [update] = clearing(queue_of(replace(its, state="RUNNING")))
    assert update.what == "lower"
    assert lowering(queue_of(replace(its, state="COMPLETED"))) == ()
    # somebody else has set its nice since
    [update] = lowering(queue_of(replace(its, nice=0)))
    assert update.settings == (f"Comment={lowered.comment}",)
    assert without_pins(queue_of(replace(its, nice=0, priority=9))).jobs[0].priority == 9


def test_a_job_is_raised_before_those_that_have_no_room():
    """Three of four nodes are free; on the fourth a job runs for another minute."""
    own = {"partitions": ("own",), "exclusive": "node"}
    there = running(8, "c4", **own)
    first = whole(1, 4, priority=90, **own)
    second = whole(2, 1, priority=50, limit=60, **own)
    third = whole(3, 2, priority=20, limit=30, **own)

    def plan(*jobs, nodes, reserve=1) -> Plan:
        queue, supply = queue_of(there, *jobs), left_by(there)
        plain = placement_problem(queue, supply)
        kept = reserved(plain, queue, supply, reserve)
        problem = with_reserved(plain, supply, kept)
        return Plan(Situation(queue, supply, problem, Ask(reserve=reserve), kept), on(*nodes))

    ours = (), (0,), (1, 2)
    found = plan(first, second, third, nodes=ours)
    assert [one.row.label for one in found.situation.reserved] == ["1"]
    assert found.raises == {"2": 82, "3": 142}
    assert found.updates.raised == {"2", "3"}
    assert plan(first, second, third, nodes=ours, reserve=0).raises == {}
    # the second one would have room, and is passed over
    assert plan(first, second, third, nodes=((), (), (1, 2))).raises == {}
    assert plan(second, third, nodes=((0,), (1, 2))).raises == {"3": 62}
    assert plan(second, nodes=((0,),)).raises == {}  # none is before it
    by_operator = replace(second, priority_by_operator=True)
    assert plan(first, by_operator, third, nodes=ours).raises == {"3": 142}
    # Slurm may start it, as we cannot tell
    left = replace(first, job_id=4, other=("unknown",), priority=30)
    assert plan(first, second, third, left, nodes=ours).raises == {"2": 82}
    # it has room, but the first job would wait for it
    late = replace(second, limit=61)
    found = plan(first, late, third, nodes=((), (), (1, 2)))
    assert found.raises == {"3": 142}
    assert {row.label: why for row, why in found.not_placed}["2"] == "it would delay job 1"


def test_pins_stay_where_slurm_no_longer_shows_the_number_of_nodes():
    """As Slurm 24.11 does after a restart."""
    before = queue_of(whole(1, 2, tasks=4, cores_per_task=1))
    placements = on((0, 1))
    its = followed(before, updates_of(before, posed(before), placements).updates)
    restarted = queue_of(replace(its.jobs[0], most_nodes=0))
    assert pinned_placements(restarted, posed(restarted)) == placements
    assert updates_of(restarted, posed(restarted), placements).updates == ()
    [update] = updates_of(restarted, posed(restarted), on((2, 3))).updates
    assert update.what == "pin"


@given(comments, st.integers(0, 3))
def test_a_job_that_may_start_on_more_nodes_excludes_the_others(comment, higher):
    usual = {"tasks": 4, "cores_per_task": 1, "comment": comment, "priority": 70}
    before = queue_of(whole(1, 2, **usual, most_nodes=0))
    placements = on((0, 0, 0, 1))
    [pin] = updates_of(before, posed(before), placements, raises={"1": higher}).updates
    assert pin.settings[0] == "ExcNodeList=c[3-4],g[1-2],m1"
    its = followed(before, [pin])
    assert its.jobs[0].excluded == ("c3", "c4", "g1", "g2", "m1")
    assert without_pins(its).jobs == before.jobs
    assert posed(its).problem.allowed == posed(before).problem.allowed
    assert followed(its, clearing(its)).jobs == before.jobs
    # the number of nodes becomes fixed, and the job requires them
    fixed = queue_of(replace(its.jobs[0], most_nodes=2))
    [update] = updates_of(fixed, posed(fixed), placements).updates
    assert update.settings[:2] == ("ExcNodeList=", "ReqNodeList=c[1-2]")
    # it excludes nodes itself, or somebody else has changed those that it excludes
    own = queue_of(replace(before.jobs[0], excluded=("c4",)))
    found = updates_of(own, posed(own), placements)
    assert (found.updates, [*found.without]) == ((), ["1"])
    other = queue_of(replace(its.jobs[0], excluded=("c4",)))
    [update] = clearing(other)
    assert (update.what, update.settings[-1]) == ("unmark", f"Comment={comment}")
    assert followed(other, [update]).jobs[0].excluded == ("c4",)


def test_of_a_pin_that_is_taken_back_the_pin_alone_counts(monkeypatch):
    before = queue_of(whole(1, 2), whole(2, 2))
    pins = updates_of(before, posed(before), on((0, 1), (2, 3))).updates
    monkeypatch.setattr("optsched.slurm.plan.run_command", lambda words: Output(b"", ""))

    def reasons(updates, **fields):
        now = queue_of(*(replace(update.job, **fields) for update in updates))
        monkeypatch.setattr("optsched.slurm.plan.current_queue", lambda: now)
        return {reason for _, reason in carry_out(updates)}

    assert reasons(pins, memory_per_core=9) == {"its memory per core changed"}
    clear = clearing(followed(before, pins))
    assert reasons(clear, memory_per_core=9) == {""}
    assert reasons(clear, required=("c9",)) == {"its required changed"}
    assert reasons(clear, state="RUNNING") == {"it is RUNNING by now"}


def test_a_plan_loses_jobs_on_whose_nodes_others_start_unless_it_has_them_there():
    before = queue_of(running(8, "c7"), *(whole(number, 2) for number in (1, 2)))
    plan = Plan(Situation(before, supply(), posed(before), Ask()), on((0, 1), (2, 3)))
    ran, first, second = followed(before, plan.updates.updates).jobs
    starts = replace(second, state="RUNNING", allocations=running(2, "c3", "c4").allocations)
    assert plan.lost(queue_of(ran, first, starts)) == frozenset()
    assert plan.lost(queue_of(ran, first, starts, running(9, "c2", "c6"))) == {"1"}


@pytest.mark.parametrize("comment", ["optsched:", "optsched:0123abc", "Optsched:01234567", "a"])
def test_comments_without_a_mark_are_nobodys_pins(comment):
    queue = queue_of(whole(1, 2, comment=comment, required=("c1", "c2")))
    assert without_pins(queue).jobs == queue.jobs
    assert clearing(queue) == ()


def test_pins_are_cleared_before_others_are_set_by_priority():
    before = queue_of(*(whole(n, 1, priority=n) for n in (1, 2, 3)))
    first = updates_of(before, posed(before), on((0,), (), ()))
    its = followed(before, first.updates)
    updates = updates_of(its, posed(its), on((), (0,), (1,))).updates
    assert [f"{update.what} {update.label}" for update in updates] == ["clear 1", "pin 3", "pin 2"]


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
@given(st.lists(comments, min_size=1, max_size=20))
def test_a_shell_reads_lines_as_they_are_meant(texts):
    lines, words = [], []
    for text in texts:
        queue = queue_of(whole(1, 2, comment=text))
        for update in updates_of(queue, posed(queue), on((0, 1))).updates:
            assert update.line.isprintable()
            lines.append(f"printf '%s\\0' {update.line}")
            words += update.words
    ran = subprocess.run(["bash", "-c", "\n".join(lines)], capture_output=True, check=True)
    assert ran.stdout.decode().split("\0")[:-1] == words
