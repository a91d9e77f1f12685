"""Each case of the table that takes seconds, on the inputs beside the checkout."""

import pytest

from public_cases.cases import REVIEWS, Case, Outcome
from public_cases.looks import answers, every, never, never_wrong, places, refuses, says
from public_cases.table import CASES

QUICK = [case for case in CASES if not case.long]


@pytest.mark.long
@pytest.mark.parametrize("case", QUICK, ids=[case.name for case in QUICK])
def test_the_right_value_is_seen(case: Case) -> None:
    if not REVIEWS.exists():
        pytest.skip("needs ../shared/reviews, which is not beside this checkout")
    outcome = case.run()
    assert not case.look(outcome), (case.right, outcome.brief())


def _plan(**nodes: str) -> Outcome:
    jobs = ",".join(f'{{"job": "{job[1:]}", "nodes": ["{at}"]}}' for job, at in nodes.items())
    return Outcome(0, f'{{"jobs": [{jobs}]}}', "")


def test_looks_find_what_is_wrong() -> None:
    assert not places("1@a|b", "2@*")(_plan(j1="b", j2="c"))
    assert "not placed" in places("1@a")(_plan(j2="a"))
    assert "expected b" in places("1@b")(_plan(j1="a"))
    assert "must not start: 3" in places("1@a")(_plan(j1="a", j3="a"))
    answer = '{"status": "optimal", "objective": 3, "bound": 3, "verified": true}'
    assert not answers(3)(Outcome(0, answer, ""))
    assert answers(4)(Outcome(0, answer, ""))
    assert never_wrong(4)(Outcome(0, answer, ""))
    assert not never_wrong(4)(Outcome(1, "", "optsched: refused"))
    assert refuses("x")(Outcome(0, "x", ""))
    assert refuses()(Outcome(1, "", "Traceback ..."))
    both = every(says("yes"), never("no"))
    assert not both(Outcome(0, "yes", ""))
    assert both(Outcome(0, "yes no", ""))
