from __future__ import annotations

from hypothesis import given, settings

from optsched.testing import check_problem, node_placements


@settings(max_examples=300, deadline=None)
@given(node_placements())
def test_it_keeps_the_contract_of_a_problem(problem):
    check_problem(problem)
