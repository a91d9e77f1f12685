"""Which pending jobs are before others: in explanations, forecasts and plans the same ones."""

from __future__ import annotations

from dataclasses import replace

from optsched.slurm.explain import explain
from optsched.slurm.forecast import forecast
from optsched.slurm.future import Future
from optsched.slurm.order import Order, rank, tasks

from .conftest import NOW, job, queue_of, running, supply


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


def test_the_number_before_a_job_is_that_of_the_jobs_named(captured):
    _, queue, supply = captured
    order = Order(queue, supply)
    for waits in queue.pending:
        one = replace(waits, array_tasks=waits.array_tasks[:1])
        before = order.before(one)
        assert tasks(before) == order.number_before(one)
        ranks = [rank(each, supply) for each in before]
        assert waits.job_id not in [each.job_id for each in before]
        assert len({*ranks}) == len(ranks)
