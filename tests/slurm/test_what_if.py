"""Changes in words: what each makes of the queue and the nodes, and what is refused."""

from dataclasses import replace
from datetime import datetime
from pathlib import Path

import numpy as np
import pytest

from optsched.errors import InputError
from optsched.sites.slurm_files import Notes
from optsched.sites.slurm_partitions import Access, shown_partitions
from optsched.slurm.explain import explain
from optsched.slurm.future import Future
from optsched.slurm.limits import Limit, Limits, Share
from optsched.slurm.snapshot import placement_problem
from optsched.slurm.what_if import Change, Present, read_changes
from optsched.slurm.what_if import changed as with_changes

from .conftest import NOW, job, left_by, queue_of, running, supply

RUNS = running(9, "c1", end=NOW + 100, start=NOW - 100)
PRESENT = Present(
    queue_of(
        RUNS,
        job(job_id=1, user="ada", priority=5),
        job(job_id=2, user="bob", account="ai", qos="low", priority=3, held=True),
    ),
    left_by(RUNS),
)
"""A job on c1 and two that wait, of ada and of bob."""


def changed(present: Present, lines: list[str]) -> Present:
    return with_changes(present, map(Change, lines))


def pending(found: Present) -> dict[int, object]:
    return {job.job_id: job for job in found.queue.pending}


def test_nodes_are_drained_now_or_from_a_time_on_and_resumed():
    now = changed(PRESENT, ["drain c[2-3]"]).supply
    assert [now.site.states[place] for place in (1, 2, 3)] == ["drained", "drained", "up"]
    assert now.free[[1, 2]].sum() == 0
    later = changed(PRESENT, ["drain c[2-3] at 1970-01-01T00:30+00:00"]).supply
    assert later.site.states == PRESENT.supply.site.states
    assert later.closing[[1, 2]].tolist() == [1800, 1800]
    assert np.isinf(later.closing[[0, 3]]).all()
    clock = datetime.fromtimestamp(NOW).replace(second=0)  # over by less than a minute
    for at, time in ((f"{clock:%H:%M}", round(clock.timestamp()) + 86_400), ("1800", 1800)):
        assert changed(PRESENT, [f"drain c2 at {at}"]).supply.closing[1] == time
        dated = Change(f"drain c2 at {at}").dated(NOW)
        assert dated.startswith("drain c2 at 1970-01-0")
        assert changed(PRESENT, [dated]).supply.closing[1] == time
    again = changed(PRESENT, ["drain c2", "resume c2"]).supply
    assert again.site.states == PRESENT.supply.site.states
    assert (again.free == PRESENT.supply.free).all()
    with pytest.raises(InputError, match="c3 is up; expected drained nodes"):
        changed(PRESENT, ["resume c3"])


def test_nodes_are_added_like_one():
    found = changed(PRESENT, ["add 3 like c1"]).supply
    assert found.site.nodes[-3:] == ("c1-new1", "c1-new2", "c1-new3")
    assert (found.free[-3:] == found.site.capacity[0]).all()
    assert (found.site.capacity[-3:] == found.site.capacity[0]).all()
    assert set(found.site.partition("short").nodes.tolist()) == {0, 1, 7, 8, 9}
    assert set(found.site.partition("rest").nodes.tolist()) == {2, 3, 4}
    assert found.switches[-3:] == ("leaf1",) * 3
    problem = placement_problem(PRESENT.queue, found).problem
    assert len(problem.free) == 10
    # what Slurm says of the size of the partition is over
    asks = job(partitions=("rest",), least_nodes=4, most_nodes=4, reason="PartitionNodeLimit")
    present = Present(queue_of(asks), supply())
    too_many = "it asks for 4 nodes, and partition rest has 3"
    assert Future(present.queue, present.supply).left["1"] == too_many
    found = changed(present, ["add 1 like c3"])
    assert Future(found.queue, found.supply).by_limits.tolist() == [0]


def test_priorities_limits_and_holds_of_jobs():
    found = pending(changed(PRESENT, ["priority 1 = 2000", "limit 2 = 2:00:00", "release 2"]))
    assert (found[1].priority, found[1].priority_by_operator) == (2000, True)
    assert (found[2].limit, found[2].held) == (7200, False)
    assert pending(changed(PRESENT, ["priority 1 = 0"]))[1].held
    assert pending(changed(PRESENT, ["release 2", "priority 2 = 7"]))[2].priority == 7
    running = changed(PRESENT, ["limit 9 = 10"]).queue.running[0]
    assert (running.limit, running.end) == (600, NOW - 100 + 600)
    for line, held in (
        ("hold 1", {1: True, 2: True}),
        ("hold user ada", {1: True, 2: True}),
        ("release account ai", {1: False, 2: False}),
        ("release qos low", {1: False, 2: False}),
        ("hold partition all", {1: True, 2: True}),
    ):
        jobs = pending(changed(PRESENT, [line]))
        assert {number: one.held for number, one in jobs.items()} == held, line


def test_a_limit_that_an_operator_sets_is_bound_by_no_partition_or_qos(tmp_path):
    """Of a partition of 10 minutes and a QOS of 5; what Slurm says of the old limit is over."""
    there = supply(limits=Limits({"q": (Limit("QOS q", "MaxWallPJ", "", 5, 0),)}))
    long = {"partitions": ("short",), "limit": 900.0}
    for reason in ("PartitionTimeLimit", "QOSMaxWallDurationPerJobLimit", ""):
        queue = queue_of(job(reason=reason, qos="q", user="ada", **long))
        assert "exceeds the 10 min of partition short" in Future(queue, there).left["1"]
        for time in ("4", "30"):
            found = changed(Present(queue, there), [f"limit 1 = {time}"])
            future = Future(found.queue, found.supply)
            assert (future.by_limits.tolist(), dict(future.left)) == ([0], {})
            assert explain(found.queue, found.supply, "1").rule == ""
    # Slurm looks at the limits before it says that a job waits for resources
    for reason, nodes, rule in (
        ("Priority", 1, "its time limit, 15 min, exceeds the 10 min of partition short"),
        ("Resources", 3, "it asks for 3 nodes, and partition short has 2"),
        ("Resources", 1, ""),
    ):
        asks = job(reason=reason, least_nodes=nodes, **long)
        assert explain(queue_of(asks), supply(), "1").rule == rule


def test_a_job_is_submitted_with_options_of_sbatch():
    line = "submit -N 2 --ntasks-per-node 4 -c 2 -t 1:00:00 -p all --mem 1G --gres gpu:a100:1"
    job = pending(changed(PRESENT, [line]))[10]
    assert (job.least_nodes, job.most_nodes, job.tasks, job.cores_per_task) == (2, 2, 8, 2)
    # of those that are not held, the lowest priority
    assert (job.limit, job.memory_per_node, job.priority) == (3600, 1024, 5)
    assert dict(job.per_node) == {"gpu": 1, "gpu:a100": 1}
    assert job.partitions == ("all",)
    assert job.user == "(new)"
    found = changed(PRESENT, ["submit -p all -n 3", "priority 10=7"])
    assert pending(found)[10].priority == 7
    assert pending(changed(PRESENT, ["submit -p all --priority 0"]))[10].held


def test_accounts_users_and_qos_are_refused_that_slurm_refuses():
    """Of those that are all known, and that Slurm is to enforce."""
    keys = ("root", "", ""), ("ai", "", ""), ("ai", "ada", ""), ("bio", "", ""), ("bio", "bob", "")
    known = Limits(
        associations=dict.fromkeys(keys, ()),
        parents={"root": "", "ai": "root", "bio": "root"},
        shares=dict.fromkeys(keys, Share(1, 0.5, 0.0)),
        names=frozenset({"low", "high"}),
    )
    settings = {"accountingstorageenforce": "associations,qos"}
    there = replace(PRESENT, supply=replace(PRESENT.supply, limits=known, settings=settings))
    for options, message in (
        ("-A nope", "unknown account 'nope'; known: ai, bio, root"),
        ("-q nope", "unknown QOS 'nope'; known: high, low"),
        ("--user eve", "unknown user 'eve'; known: ada, bob"),
        ("-A ai --user bob", "unknown user 'bob' of account ai; known: ada"),
    ):
        line = f"submit -p all -t 1 --priority 1 {options}"
        with pytest.raises(InputError, match=message):
            changed(there, [line])
        hidden = replace(known, parents={}, names=frozenset())
        for limits, enforced in ((hidden, settings), (known, {})):
            supply = replace(there.supply, limits=limits, settings=enforced)
            assert 10 in pending(changed(replace(there, supply=supply), [line]))
    assert 10 in pending(changed(there, ["submit -p all -A ai -q low --user ada"]))


def test_the_page_lists_the_options_of_a_submitted_job():
    with pytest.raises(InputError, match=r"'submit': no options; expected some of ") as found:
        changed(PRESENT, ["submit"])
    options = str(found.value).partition("some of ")[2].split(", ")
    page = Path(__file__).parents[2] / "docs" / "commands" / "slurm-forecast.md"
    listed = ", ".join(f"`{each}`" for each in options[:-1]) + f" and `{options[-1]}`"
    assert f"options of `submit` are {listed}" in " ".join(page.read_text().split())


def test_a_job_without_a_limit_has_that_of_its_partition_as_in_slurm():
    access = {"all": Access(default_time=1800.0), "short": Access(default_time=3600.0)}
    supply = replace(PRESENT.supply, access=access)
    for partition, limit, said in (
        ("all", 1800, "DefaultTime of partition all, 30 min"),
        ("short", 600, "MaxTime of partition short, 10 min"),  # shorter than the default
        ("rest", np.inf, "MaxTime of partition rest, none"),
    ):
        found = changed(replace(PRESENT, supply=supply), [f"submit -N 1 -p {partition}"])
        assert pending(found)[10].limit == limit
        assert found.supply.notes == (
            f"job 10: its limit is {said}",
            "job 10: taken to have priority 5, the lowest of the queue",
        )
    own = changed(PRESENT, ["submit -N 1 -t 5 -p all --priority 7"])
    assert own.supply.notes == PRESENT.supply.notes


def test_the_default_limit_is_read(tmp_path):
    path = tmp_path / "partitions.txt"
    for text, limit in (("NONE", np.inf), ("01:00:00", 3600), ("UNLIMITED", np.inf)):
        path.write_text(f"PartitionName=p Nodes=c1 MaxTime=02:00:00 DefaultTime={text} State=UP\n")
        assert shown_partitions(path, {"c1": 0}, {}, Notes())[1]["p"].default_time == limit


def test_a_released_job_has_the_priority_that_slurm_would_give():
    there = supply(settings={"priorityweightage": "1000", "prioritymaxage": "00:10:00"})
    like = {"user": "ada", "account": "a", "qos": "q"}
    queue = queue_of(
        job(job_id=1, priority=0, held=True, nice=7, **like),
        # of 5 minutes of 10 it has 500 for its age
        job(job_id=2, priority=940, submit=NOW - 300, nice=3, **like),
        job(job_id=3, priority=2000, submit=NOW - 900, **like),
        job(job_id=4, priority=9, user="bob"),
        job(job_id=5, priority=0, held=True, user="eve"),
        job(job_id=6, priority=0, held=True, user="eve"),
    )
    found = changed(Present(queue, there), ["release 1", "release user eve"])
    priorities = [one.priority for one in pending(found).values() if not one.held]
    assert priorities == [436, 940, 2000, 9, 9, 9]
    assert found.supply.notes == (
        "job 1: taken to have priority 436, that of job 2, "
        "of the same user, account, QOS and partition, without its age",
        "jobs 5, 6: taken to have priority 9, the lowest of the queue",
    )
    other = job(job_id=7, priority=0, held=True, user="eve", qos="q")
    found = changed(Present(queue_of(*queue.jobs, other), there), ["release 7"])
    assert pending(found)[7].priority == 443
    assert "that of job 2, of the same QOS and partition" in found.supply.notes[0]
    explained = explain(queue, there, "1")
    assert explained.released.priority == 436
    assert [each.job_id for each in explained.ahead] == [3, 2]
    basic = replace(there, settings={"prioritytype": "priority/basic"})
    last = changed(Present(queue, basic), ["release 1"])
    assert pending(last)[1].priority == 8
    assert last.supply.notes[0].endswith("priority 8, below all others, as by priority/basic")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("drain x9", "'x9'; expected one of|unknown node 'x9'|no node 'x9'"),
        ("drain c1 at noon", "'noon'; expected a time such as 18:00"),
        ("drain c1 at 24:00", "'24:00'; expected a time such as 18:00"),
        ("drain c1 at 1969-12-31", "1969-12-31 is over; expected a time from 1970-01-01"),
        ("drain", "'drain'; expected drain NODES .at TIME.$"),
        ("release", "'release'; expected hold or release JOB or user NAME$"),
        ("add 0 like c1", "0; expected a whole number from 1 to 100,000"),
        ("add -3 like c1", "-3; expected a whole number from 1 to 100,000"),
        ("priority 1 = -1", "-1; expected a whole number from 0 to 4,294,967,293"),
        ("priority 1 = 4294967294", "4294967294; expected a whole number from 0 to 4,294,967,293"),
        ("priority 77 = 1", "'77' is not in the queue"),
        ("priority 9 = 1", "'9' is RUNNING; expected a pending job"),
        ("priority 2 = 7", "2 is held, so Slurm refuses it; expected it to be released"),
        ("hold user eve", "no pending job of user eve"),
        ("submit -N 2-1", "-N/--nodes: 2-1; expected a whole number from 1 to 1,000,000"),
        ("submit -N 2 -t soon", "-t/--time: 'soon'; expected a time such as"),
        ("submit -N 2 --array=1-3 -w c9", "--array=1-3 -w c9; expected some of -N, -n, -c, "),
        ("submit -p none", "'none'"),
        ("submit 'x", "No closing quotation"),
        ("policy best", "'best'"),
        ("paint c1", "expected drain NODES"),
    ],
)
def test_what_cannot_be_is_one_line_with_the_words(line, message):
    with pytest.raises(InputError, match=message) as found:
        changed(PRESENT, [line])
    assert str(found.value).startswith(f"--what-if: {line!r}")
    assert "\n" not in str(found.value)


def test_lines_come_from_a_file_too_and_policies_are_for_forecasts_alone(tmp_path):
    file = tmp_path / "changes.txt"
    file.write_text("# a comment\ndrain c1\n\n  priority 1 = 3  \n")
    assert read_changes([f"@{file}", "drain c2"]) == [
        *(Change("drain c1", file, 2), Change("priority 1 = 3", file, 4), Change("drain c2")),
    ]  # fmt: skip
    file.write_text("# a comment\n\npolicy easy\ndrain x9\n")
    with pytest.raises(InputError, match=f"^{file}, line 3: 'policy easy' is for optsched slurm"):
        read_changes([f"@{file}"])
    with pytest.raises(InputError, match=f"^{file}, line 4: 'drain x9': unknown node 'x9'"):
        with_changes(PRESENT, read_changes([f"@{file}"], is_forecast=True))
    for name, what in (("none", "no such file"), ("", "is a folder")):
        with pytest.raises(InputError, match=f"{what}; expected a file of what-ifs, one on each"):
            read_changes([f"@{tmp_path / name}"])
    file.write_text("# nothing\n\n")
    with pytest.raises(InputError, match=r"changes.txt: has no line; expected drain NODES"):
        read_changes([f"@{file}"])
    easy = read_changes(["policy easy"], is_forecast=True)
    assert with_changes(PRESENT, easy).policy == "easy"
    with pytest.raises(InputError, match="'policy easy' is for optsched slurm forecast"):
        read_changes(["policy easy"])
