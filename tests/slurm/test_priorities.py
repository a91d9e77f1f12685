"""Which jobs are before others: factors of priorities, limits, and who may preempt whom."""

from __future__ import annotations

from dataclasses import replace

import pytest

from optsched.errors import InputError
from optsched.slurm.access import users_of_limit
from optsched.slurm.explain import explain
from optsched.slurm.factors import behind_by, read_factors, set_by_operator
from optsched.slurm.forecast import forecast
from optsched.slurm.future import Future
from optsched.slurm.limits import Limit, Limits
from optsched.slurm.order import Order, rank, tasks
from optsched.slurm.preemption import may_preempt
from optsched.slurm.supply import read_supply

from .conftest import NOW, ONE_NODE, job, left_by, queue_of, running, supply
from .test_explain import answer


def test_captured_factors_add_up_to_the_priorities(captured):
    folder, queue, _ = captured
    factors = read_factors(folder)
    told = [(job, factors[job.job_id]) for job in queue.pending if job.job_id in factors]
    told = [(job, own) for job, own in told if own.get("TRES") is None]
    for one, own in told:
        assert sum(own.values()) == pytest.approx(one.priority, abs=2)
    assert len(told) > 20
    assert not any(set_by_operator(job, factors) for job in queue.pending)


def test_what_puts_a_job_behind_others_is_the_mean_difference():
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


def test_a_priority_without_factors_is_set_by_an_operator(tmp_path):
    header = "JOBID PARTITION USER PRIORITY AGE PARTITION QOS NICE TRES"
    rows = ("1 p ada 1007 0 0 0 0", "2 p ada 1000 0 1000 0 0", "3 p ada 900 0 0 0 0 cpu=900")
    (tmp_path / "sprio.txt").write_text("\n".join((header, *rows, "4 p ada 1 0 0 0 0")) + "\n")
    factors = read_factors(tmp_path)
    assert factors[3]["TRES"] == 900
    found = {
        n: set_by_operator(job(job_id=n, priority=p), factors)
        for n, p in ((1, 1007), (2, 1000), (3, 900), (4, 1), (5, 7))
    }
    assert found == {1: True, 2: False, 3: False, 4: False, 5: False}


def test_a_job_whose_priority_is_set_is_raised_by_it_and_not_by_its_nice():
    runs = running(9, "c1", "c2", "c3", "c4", end=NOW + 900)
    whole = {"least_nodes": 4, "most_nodes": 4, "partitions": ("own",)}
    first = job(job_id=2, priority=30, **whole)
    for is_set, line, back in ((True, "Priority=52", "Priority=10"), (False, "Nice=-42", "Nice=0")):
        asks = job(job_id=1, priority=10, priority_by_operator=is_set, **whole)
        found = answer(explain(queue_of(asks, first, runs), left_by(runs), "1"))
        assert found.lines[0] == f"scontrol update JobId=1 {line}"
        assert found.afterwards[-1] == f"scontrol update JobId=1 {back}"


def test_wrong_factors_are_refused_with_their_line(tmp_path):
    assert read_factors(tmp_path) == {}
    for text, message in (
        ("A B\n1 2\n", "line 1: no JOBID and PRIORITY; expected what sprio -l writes"),
        ("JOBID PRIORITY AGE\nx 1 2\n", "line 2, JOBID: 'x'; expected the number of a job"),
        (f"JOBID PRIORITY AGE\n{'9' * 5000} 1 2\n", "expected the number of a job"),
    ):
        (tmp_path / "sprio.txt").write_text(text)
        with pytest.raises(InputError, match=message):
            read_factors(tmp_path)


def test_who_has_how_much_of_a_limit_is_named():
    limit = Limit("QOS two", "GrpJobs", "", 3, 3)
    of = (("ada", "two"), ("ada", "two"), ("bob", "two"), ("eve", "other"))
    runs = [running(n, "c1", user=user, qos=qos, cores=1) for n, (user, qos) in enumerate(of, 10)]
    waits = job(job_id=1, qos="two", user="bob")
    supply = replace(left_by(*runs), limits=Limits({"two": (limit,), "other": ()}))
    assert users_of_limit(waits, runs, supply) == (("ada", 2), ("bob", 1))
    assert explain(queue_of(*runs, waits), supply, "1").limit_users == (("ada", 2), ("bob", 1))
    assert users_of_limit(replace(waits, qos="other"), runs, supply) == ()


def test_jobs_preempt_those_that_their_qos_may_preempt_and_within_it_by_priority():
    """With PreemptMode=WITHIN of the QOS, or of all, those of their own of a lower priority."""
    running_qos = {10: "low", 11: "normal", 21: "self", 22: "self", 23: "self"}
    runs = [running(n, "c1", cores=1, qos=q, priority=n - 20) for n, q in running_qos.items()]
    by_qos = {"preempttype": "preempt/qos"}
    within = by_qos | {"preemptmode": "REQUEUE,WITHIN"}
    for own, rules, settings, expected in (
        ("high", {"high": ("low",)}, by_qos, [10]),
        ("high", {"high": ()}, by_qos, []),
        ("high", {"high": ("high",)}, by_qos, []),
        ("high", None, by_qos, [*running_qos]),  # not known: any other
        ("self", {"self": ()}, by_qos, []),
        ("self", {"self": ("self",)}, by_qos, [21]),
        ("self", {"self": ()}, within, [21]),
        ("self", None, within, [10, 11, 21]),
    ):
        there = replace(left_by(*runs), qos_preempts=rules, settings=settings)
        found = may_preempt(job(qos=own, priority=2), runs, there)
        assert [each.job_id for each in found] == expected, (own, rules)


def test_which_qos_may_preempt_and_how_much_of_its_usage_counts_is_read(tmp_path):
    (tmp_path / "nodes.txt").write_text(ONE_NODE)
    assert read_supply(tmp_path, NOW).qos_preempts is None
    path, header = tmp_path / "qos.txt", "Name|Preempt|PreemptMode|UsageFactor\n"
    for text, preempts, usage in (
        ("high|low,normal|requeue|\nlow|||\n", {"high": ("low", "normal"), "low": ()}, {}),
        ("self||requeue,within|\n", {"self": ("self",)}, {}),
        ("free||off|0.500000\n", {"free": ()}, {"free": 0.5}),
    ):
        path.write_text(header + text)
        found = read_supply(tmp_path, NOW)
        assert (found.qos_preempts, found.qos_usage) == (preempts, usage)
    for wrong, said in (
        ("free|||half\n", r"qos.txt, line 2, UsageFactor: 'half'; expected a number"),
        ("high|low|x\n", r"qos.txt, line 2: 3 fields; expected 4, as in line 1"),
    ):
        path.write_text(header + wrong)
        with pytest.raises(InputError, match=said):
            read_supply(tmp_path, NOW)


def test_jobs_before_it_are_those_of_its_nodes_and_of_higher_tiers():
    tiers, parts = {"rest": 9, "short": 1}, supply().site.partitions
    parts = [replace(each, priority_tier=tiers.get(each.name, 5)) for each in parts]
    there = supply(partitions=tuple(parts))
    jobs = (
        job(job_id=1, priority=50, partitions=("own",)),  # c1 to c4
        job(job_id=2, priority=60, partitions=("all",)),
        job(job_id=3, priority=10, partitions=("rest",)),  # c3, c4 and m1, of a higher tier
        job(job_id=4, priority=70, partitions=("block",)),  # g1 and g2
        job(job_id=5, priority=90, partitions=("short",), limit=60.0),  # c1 and c2, a lower tier
        job(job_id=6, priority=40, partitions=("all",)),
    )
    found = explain(queue_of(*jobs), there, "1")
    assert [each.job_id for each in found.ahead] == [3, 2]
    assert [each.job_id for each in found.ahead_by_priority] == [2]
    starts = forecast(Future(queue_of(*jobs), there), None, draws=0).starts
    assert {one.label: one.ahead for one in starts}["1"] == 2


def test_of_arrays_those_tasks_count_that_may_start_now():
    array = job(job_id=2, array_id=2, array_tasks=(0, 1, 2, 3), array_limit=3, priority=9)
    runs = running(7, "c1", array_id=2, array_tasks=(9,), cores=1)
    held = job(job_id=3, array_id=3, array_tasks=(0, 1), priority=9, held=True)
    late = job(job_id=4, priority=9, eligible=NOW + 60)
    queue = queue_of(job(job_id=1), array, held, late, runs)
    found = explain(queue, supply(), "1")
    assert [each.label for each in found.ahead] == ["2_[0-1]"]
    assert tasks(found.ahead) == 2
    assert [each.label for each in explain(queue, supply(), "2_1").ahead] == ["2_0"]
    assert explain(queue, supply(), "2").ahead == ()
    starts = forecast(Future(queue, supply()), None, draws=0).starts
    assert {one.label: one.ahead for one in starts} == {
        "1": 2, "2_0": 0, "2_1": 1, "2_2": 2, "2_3": 2, "4": 2,
    }  # fmt: skip

