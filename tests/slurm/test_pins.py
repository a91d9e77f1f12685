"""Pins, and how they are taken back."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from optsched.models.node_placement.problem import Placements
from optsched.sites.host_lists import hosts_of
from optsched.slurm.pins import clearing, pinned_placements, updates_of, without_pins
from optsched.slurm.queue import Queue, QueuedJob
from optsched.slurm.snapshot import SlurmSnapshot, placement_problem

comments = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=30)


def queue_of(*jobs: QueuedJob) -> Queue:
    return Queue(jobs, 1000, 42, Path("squeue.json"), {})


def whole_nodes(job, number: int, nodes: int, **fields) -> QueuedJob:
    counts = {"least_nodes": nodes, "most_nodes": nodes, "tasks": nodes, "cores_per_task": 16}
    return job(job_id=number, **counts | fields)


def posed(queue: Queue, supply) -> SlurmSnapshot:
    return placement_problem(without_pins(queue), supply())


def at(*nodes: tuple[int, ...]) -> Placements:
    return Placements(nodes, tuple(((),) * len(each) for each in nodes))


def followed(queue: Queue, updates) -> Queue:
    """Return the queue after updates, as Slurm carries them out."""
    by_label = {update.label: update for update in updates}
    jobs = []
    for job in queue.jobs:
        if job.label in by_label:
            settings = dict(text.split("=", 1) for text in by_label[job.label].settings)
            nodes = settings.get("ReqNodeList")
            required = job.required if nodes is None else tuple(hosts_of(nodes))
            job = replace(job, required=required, comment=settings.get("Comment", job.comment))
        jobs.append(job)
    return replace(queue, jobs=tuple(jobs))


@given(comments)
def test_clearing_restores_what_was_pinned(supply, job, comment):
    before = queue_of(whole_nodes(job, 1, 2, comment=comment), whole_nodes(job, 2, 2))
    updates = updates_of(before, posed(before, supply), at((0, 1), (2, 3))).updates
    pinned = followed(before, updates)
    assert [each.required for each in pinned.jobs] == [("c1", "c2"), ("c3", "c4")]
    assert without_pins(pinned) == before
    assert followed(pinned, clearing(pinned)) == before
    assert {update.what for update in clearing(pinned)} == {"clear"}


def test_running_jobs_lose_their_mark_alone(supply, job):
    before = queue_of(whole_nodes(job, 1, 2, comment="mine"))
    [pin] = updates_of(before, posed(before, supply), at((0, 1))).updates
    pinned = followed(before, [pin]).jobs[0]
    for fields in ({"state": "COMPLETED"}, {"state": "RUNNING", "flags": ("COMPLETING",)}):
        assert clearing(queue_of(replace(pinned, **fields))) == ()
    [update] = clearing(queue_of(replace(pinned, state="RUNNING")))
    assert (update.what, update.settings) == ("unmark", ("Comment=mine",))


@pytest.mark.parametrize("comment", ["optsched:", "optsched:0123abc", "Optsched:01234567", "a"])
def test_comments_without_a_mark_are_nobodys_pins(job, comment):
    queue = queue_of(whole_nodes(job, 1, 2, comment=comment, required=("c1", "c2")))
    assert without_pins(queue) == queue
    assert clearing(queue) == ()


def test_pins_are_placements_while_they_are_feasible(supply, job):
    before = queue_of(whole_nodes(job, 1, 2), whole_nodes(job, 2, 1))
    assert pinned_placements(before, posed(before, supply)) is None
    placements = at((0, 1), ())
    pinned = followed(before, updates_of(before, posed(before, supply), placements).updates)
    assert pinned_placements(pinned, posed(pinned, supply)) == placements
    assert updates_of(pinned, posed(pinned, supply), placements).updates == ()
    down = {"states": ("up", "down", *("up",) * 5)}
    less = placement_problem(without_pins(pinned), supply(**down))
    assert pinned_placements(pinned, less) is None
    [update] = updates_of(pinned, less, at((), ())).updates
    assert update.what == "clear"


def test_pins_are_cleared_before_others_are_set_by_priority(supply, job):
    before = queue_of(*(whole_nodes(job, n, 1, priority=n) for n in (1, 2, 3)))
    first = updates_of(before, posed(before, supply), at((0,), (), ()))
    pinned = followed(before, first.updates)
    updates = updates_of(pinned, posed(pinned, supply), at((), (0,), (1,))).updates
    assert [(update.what, update.label) for update in updates] == [
        ("clear", "1"),
        ("pin", "3"),
        ("pin", "2"),
    ]


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
@given(st.lists(comments, min_size=1, max_size=20))
def test_a_shell_reads_lines_as_they_are_meant(supply, job, texts):
    lines, words = [], []
    for text in texts:
        queue = queue_of(whole_nodes(job, 1, 2, comment=text))
        for update in updates_of(queue, posed(queue, supply), at((0, 1))).updates:
            assert update.line.isprintable()
            lines.append(f"printf '%s\\0' {update.line}")
            words += update.words
    ran = subprocess.run(["bash", "-c", "\n".join(lines)], capture_output=True, check=True)
    assert ran.stdout.decode().split("\0")[:-1] == words
