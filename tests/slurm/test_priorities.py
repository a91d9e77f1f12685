"""The factors of priorities, who has how much of a limit, and who may preempt whom."""

from __future__ import annotations

from dataclasses import replace

import pytest

from optsched.errors import InputError
from optsched.slurm.access import users_of_limit
from optsched.slurm.explain import behind_by, explain, read_factors
from optsched.slurm.limits import Limit, Limits
from optsched.slurm.supply import read_supply
from optsched.slurm.unseen import may_preempt

from .conftest import NOW, queue_of


def test_captured_factors_add_up_to_the_priorities(captured):
    folder, queue, _ = captured
    factors = read_factors(folder)
    jobs = {job.job_id: job for job in queue.pending}
    seen = 0
    for number, own in factors.items():
        if number in jobs and own.get("TRES") is None:
            assert sum(own.values()) == pytest.approx(jobs[number].priority, abs=2)
            seen += 1
    assert seen > 20


def test_what_puts_a_job_behind_others_is_the_mean_difference(job, supply):
    factors = {
        1: {"age": 10, "fair share": 5, "QOS": 0},
        2: {"age": 10, "fair share": 105, "QOS": 1000},
        3: {"age": 0, "fair share": 55, "QOS": 0},
    }
    jobs = [job(job_id=number, priority=10 + number) for number in (1, 2, 3)]
    assert behind_by(jobs[0], jobs[1:], factors) == [("QOS", 500), ("fair share", 75)]
    assert behind_by(jobs[0], jobs[1:], {}) == []
    found = explain(queue_of(*jobs), supply(), "1", factors=factors)
    assert found.behind == [("QOS", 500), ("fair share", 75)]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("A B\n1 2\n", "line 1: no JOBID and PRIORITY; expected what sprio -l writes"),
        ("JOBID PRIORITY AGE\nx 1 2\n", "line 2, JOBID: 'x'; expected the number of a job"),
    ],
)
def test_wrong_factors_are_refused_with_their_line(tmp_path, text, message):
    (tmp_path / "sprio.txt").write_text(text)
    with pytest.raises(InputError) as found:
        read_factors(tmp_path)
    assert message in str(found.value)
    assert read_factors(tmp_path / "none") == {}


def test_who_has_how_much_of_a_limit_is_named(job, running, left_by):
    limit = Limit("QOS two", "GrpJobs", "", 3, 3)
    runs = [
        running(10, "c1", user="ada", qos="two", cores=1),
        running(11, "c1", user="ada", qos="two", cores=1),
        running(12, "c2", user="bob", qos="two", cores=1),
        running(13, "c3", user="eve", qos="other", cores=1),
    ]
    waits = job(job_id=1, qos="two", user="bob")
    supply = replace(left_by(*runs), limits=Limits({"two": (limit,), "other": ()}))
    assert users_of_limit(waits, runs, supply) == (("ada", 2), ("bob", 1))
    assert explain(queue_of(*runs, waits), supply, "1").limit_users == (("ada", 2), ("bob", 1))
    assert users_of_limit(replace(waits, qos="other"), runs, supply) == ()


def test_only_the_qos_that_its_own_may_preempt_counts(job, running, left_by):
    runs = [
        running(10, "c1", qos="low", cores=16, end=NOW + 60),
        running(11, "c2", qos="normal", cores=16),
    ]
    waits = job(job_id=1, qos="high")
    supply = replace(left_by(*runs), settings={"preempttype": "preempt/qos"})
    queue = queue_of(*runs, waits)

    def labels(rules):
        found = may_preempt(waits, queue, replace(supply, qos_preempts=rules))
        return [each.label for each in found]

    assert labels({"high": ("low",)}) == ["10"]
    assert labels({"high": ()}) == []
    assert labels(None) == ["10", "11"]  # not known: any other


def test_which_qos_may_preempt_is_read_and_wrong_lines_are_refused(shared, tmp_path):
    folder = tmp_path / "captured"
    folder.mkdir()
    for file in shared("slurm/fixtures/24.11.5").iterdir():
        (folder / file.name).write_bytes(file.read_bytes())
    assert read_supply(folder).qos_preempts is None
    (folder / "qos.txt").write_text("Name|Preempt|PreemptMode\nhigh|low,normal|requeue\nlow||\n")
    assert read_supply(folder).qos_preempts == {"high": ("low", "normal"), "low": ()}
    (folder / "qos.txt").write_text("Name|Preempt\nhigh|low|x\n")
    with pytest.raises(InputError, match=r"qos.txt, line 2: 3 fields; expected 2, as in line 1"):
        read_supply(folder)
