"""The catalogue of rules on captured queues: plans, refused answers, explanations."""

from __future__ import annotations

from functools import cache

import pytest

from optsched import rules
from optsched.content import bundled
from optsched.models.node_placement.rules import with_rules
from optsched.slurm.plan import Ask, read_situation
from optsched.solvers.solving import solve

FIXTURES = ("22.05.8", "24.11.5", "26.05.5")


@cache
def posed_in(folder):
    """Return the placement of a captured queue, and the plan of first fit without rules."""
    problem = read_situation(folder, Ask()).posed.problem
    return problem, solve(problem, "first-fit").solution


@pytest.fixture(params=["sample-slurm", *FIXTURES])
def posed(request, shared):
    if request.param == "sample-slurm":
        return posed_in(bundled("sites") / request.param)
    return posed_in(shared(f"slurm/fixtures/{request.param}"))


def started(plan):
    return [job for job, nodes in enumerate(plan.nodes) if nodes]


def most(problem, plan, column):
    """Return the largest number of jobs of a plan that have one value of a column."""
    values = [problem.columns["jobs"][column][job] for job in started(plan)]
    return max(values.count(value) for value in values)


def nodes_in_use(problem, plan):
    return len({node for nodes in plan.nodes for node in nodes} - {*problem.busy})


CATALOGUE = {
    "jobs of a user": lambda problem, plan: rules.limit(
        "jobs", most(problem, plan, "user") - 1, by="user"
    ),
    "jobs of a partition": lambda problem, plan: rules.limit(
        "jobs", most(problem, plan, "partition") - 1, by="partition"
    ),
    "cores of an account": lambda problem, plan: rules.limit("cores", 1, by="account"),
    "nodes of a QOS": lambda problem, plan: rules.limit("nodes", 1, by="qos"),
    "nodes kept free": lambda problem, plan: rules.nodes_free(
        len(problem.free) - len(problem.busy) - nodes_in_use(problem, plan) + 1
    ),
    "power cap": lambda problem, plan: rules.power_cap(0, of="cores"),
    "spread over leaves": lambda problem, plan: rules.spread(1),
    "users apart": lambda problem, plan: rules.never_together(),
    "jobs together": lambda problem, plan: rules.together(
        "user", [problem.columns["jobs"]["user"][job] for job in started(plan)]
    ),
    "reserve": lambda problem, plan: rules.reserve(
        "cores", int(problem.free[:, [*problem.resources].index("cores")].sum())
    ),
    "few moves": lambda problem, plan: rules.few_moves(
        {str(problem.jobs[job]): ["nowhere"] for job in started(plan)}, 0
    ),
}
"""Each so tight that the plan without rules breaks it, where it can be."""


@pytest.mark.parametrize("name", CATALOGUE)
def test_each_rule_of_the_catalogue_limits_a_plan_and_is_named(posed, name):
    problem, plan = posed
    ruled = with_rules(problem, {name: CATALOGUE[name](problem, plan)})
    broken = [str(found) for found in ruled.violations(plan)]
    result = solve(ruled, "first-fit")
    kept = result.solution
    assert result.verified
    assert ruled.violations(kept) == []
    if not broken:  # what runs takes more already
        assert len(started(plan)) == len(started(kept)) == 2
        return
    assert all(found.startswith(f"{name} ") for found in broken)
    left = [job for job in started(plan) if not kept.nodes[job]]
    assert left
    assert any(ruled.blocking(kept, job).startswith(f"rule {name} ") for job in left)
