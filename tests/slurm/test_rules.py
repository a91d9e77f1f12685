"""Rules by what a queue says of jobs: plans for a captured one keep to them and name them."""

from __future__ import annotations

from collections import Counter

import pytest

from optsched import rules
from optsched.models.node_placement.rules import with_rules
from optsched.slurm.plan import Ask, read_situation
from optsched.solvers.solving import solve


@pytest.mark.parametrize("column", ["user", "partition", "account", "qos"])
def test_a_rule_by_each_column_of_a_queue_limits_a_plan_and_is_named(shared, column):
    problem = read_situation(shared("slurm/fixtures/26.05.5"), Ask()).posed.problem
    plan = solve(problem, "first-fit").solution
    started = [job for job, nodes in enumerate(plan.nodes) if nodes]
    counts = Counter(problem.columns["jobs"][column][job] for job in started)
    few = rules.limit("jobs", max(counts.values()) - 1, by=column)
    ruled = with_rules(problem, {"few": few})
    broken = [str(found) for found in ruled.violations(plan)]
    assert broken
    assert all(found.startswith("few ") for found in broken)
    kept = solve(ruled, "first-fit").solution
    assert ruled.violations(kept) == []
    left = [job for job in started if not kept.nodes[job]]
    assert any(ruled.blocking(kept, job).startswith("rule few ") for job in left)
