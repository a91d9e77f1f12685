from __future__ import annotations

import numpy as np
import pytest

from optsched.errors import InputError
from optsched.report.page import Verdict
from optsched.studies.judging import (
    Judgement,
    frame_of_claims,
    judge_claims,
    judge_interval,
    judge_together,
    read_claims,
)
from optsched.studies.paired import Interval, mean_interval
from optsched.studies.template import claims_table


@pytest.mark.parametrize(
    ("low", "high", "bounds", "verdict"),
    [
        (0.03, 0.09, {"above": 0.02}, Verdict.HELD),
        (0.01, 0.09, {"above": 0.02}, Verdict.NOT_DECIDED),
        (0.005, 0.02, {"above": 0.02}, Verdict.NOT_HELD),
        (-0.01, 0.015, {"above": -0.02, "below": 0.02}, Verdict.HELD),
        (0.02, 0.05, {"above": -0.02, "below": 0.02}, Verdict.NOT_HELD),
        (-0.05, 0.05, {"above": -0.02, "below": 0.02}, Verdict.NOT_DECIDED),
        (np.nan, np.nan, {"above": 0.0}, Verdict.NOT_DECIDED),
    ],
)
def test_a_claim_is_judged_by_the_whole_interval(low, high, bounds, verdict):
    found = judge_interval(Interval((low + high) / 2, low, high, 8), "why", **bounds)
    assert found == (verdict, "why")


@pytest.mark.parametrize(
    ("of_each", "verdict"),
    [
        ([Verdict.HELD, Verdict.HELD], Verdict.HELD),
        ([Verdict.HELD, Verdict.NOT_DECIDED], Verdict.IN_PART),
        ([Verdict.NOT_HELD, Verdict.IN_PART], Verdict.IN_PART),
        ([Verdict.NOT_HELD, Verdict.NOT_DECIDED], Verdict.NOT_HELD),
        ([Verdict.NOT_DECIDED], Verdict.NOT_DECIDED),
    ],
)
def test_a_claim_on_several_quantities_holds_if_it_does_for_each(of_each, verdict):
    found = judge_together([Judgement(one, "") for one in of_each], "why")
    assert found == (verdict, "why")


def test_each_part_counts_once_in_the_interval_of_a_mean():
    found = mean_interval([1, 3, 10, 4, 4], ["a", "a", "b", "c", "c"])
    assert (found.mean, found.parts) == (pytest.approx(16 / 3), 3)
    assert (found.low, found.high) == (pytest.approx(2), pytest.approx(10))
    assert np.isnan(mean_interval([1, 2], [1, 2]).low)
    assert mean_interval([2, 2, 2], [1, 2, 3])[:3] == (2, 2, 2)


def test_a_claim_may_state_why_it_cannot_be_judged(tmp_path):
    text = '[[claims]]\ntext = "It scales"\npublished = ""\nnot_judged = "No figure is given."\n'
    (tmp_path / "claims.toml").write_text(text)
    claims = judge_claims(tmp_path, __name__, {"one": (), "two": ()}, "Here.")
    assert claims == [c.__class__(**{**vars(c), "where": "Here."}) for c in read_claims(tmp_path)]
    row = frame_of_claims(claims).iloc[0]
    assert (row["verdict"], row["why"]) == ("not judged", "No figure is given.")
    (record,) = claims_table(claims, ["one", "two"])
    assert record["one"].verdict is Verdict.NOT_JUDGED
    assert record["one"].note == "No figure is given."
    assert record["two"] is None


@pytest.mark.parametrize("line", ["", "judge = 3", "not_judged = 3"])
def test_a_claim_without_a_judge_or_a_reason_is_refused(line, tmp_path):
    (tmp_path / "claims.toml").write_text(f'[[claims]]\ntext = "a"\npublished = ""\n{line}\n')
    with pytest.raises(InputError, match="expected a text"):
        read_claims(tmp_path)
