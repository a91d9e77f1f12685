"""Solvers for a policy that poses problems of several models."""

from __future__ import annotations

import pytest

from optsched.extend import Answers, Budget, InputError
from optsched.simulator.problem_solver import choose_solvers, text_of
from optsched.solvers.cp_sat import CpSat

MODELS = {
    "window-mkp": Answers("branch-and-bound", "greedy"),
    "gang-packing": Answers("first-fit", "first-fit"),
}


@pytest.mark.parametrize(
    ("asked", "of_window", "of_gang"),
    [
        (None, "branch-and-bound", "first-fit"),
        ("cp-sat", "cp-sat", "cp-sat"),
        ("row-search", "branch-and-bound", "row-search"),
        ("gang-packing=cp-sat", "branch-and-bound", "cp-sat"),
        ("window-mkp=greedy,gang-packing=best-fit", "greedy", "best-fit"),
        ({"window-mkp": CpSat()}, "cp-sat", "first-fit"),
        ("highs-quick", "highs-quick", "highs-quick"),
    ],
)
def test_a_solver_answers_what_it_can_and_so_does_the_text_of_it(asked, of_window, of_gang):
    for again in (asked, text_of(choose_solvers(MODELS, asked))):
        chosen = choose_solvers(MODELS, again)
        assert [chosen[model].name for model in MODELS] == [of_window, of_gang]


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ("window-mkp=", "solver: 'window-mkp='; expected a name, or MODEL=NAME"),
        ("window-mkp=greedy,window-mkp=cp-sat", "with each model once"),
        ("gang=first-fit", "unknown model 'gang' of the policy.*gang-packing"),
        ("gang-packing=greedy", "solver 'greedy' does not answer 'gang-packing' problems"),
        ("gang-packing=nobody", "unknown solver 'nobody'"),
    ],
)
def test_what_cannot_be_asked_for_is_told(asked, message):
    with pytest.raises(InputError, match=message):
        choose_solvers(MODELS, asked)


def test_a_solver_may_exclude_a_model_that_it_could_solve():
    class Choosy(CpSat):
        @classmethod
        def supports(cls, model):
            return model != "window-mkp"

    chosen = choose_solvers(MODELS, Choosy())
    assert [type(one.solver) is Choosy for one in chosen.values()] == [False, True]
    with pytest.raises(InputError, match="does not answer 'window-mkp' problems"):
        choose_solvers(MODELS, {"window-mkp": Choosy()})


def test_budgets_and_seeds_are_the_asked_ones_or_their_own():
    own = choose_solvers(MODELS, "highs-quick")["window-mkp"]
    assert own.budget == own.profile.budget
    default = choose_solvers(MODELS)["window-mkp"]
    assert default.budget == Budget(work=default.solver.default_work)
    asked = choose_solvers(MODELS, budget=Budget(seconds=2), seed=7)["gang-packing"]
    assert (asked.budget, asked.seed) == (Budget(seconds=2), 7)
