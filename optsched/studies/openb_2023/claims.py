"""The verdicts on the claims of the paper, on its protocol, by list of pods."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from optsched.studies.judging import Claim, Judgement, judge, judge_claims
from optsched.studies.openb_2023.evaluation import of_part, ways_of
from optsched.studies.openb_2023.plan import ARRIVALS, CONTENT, FGD, PUBLISHED

if TYPE_CHECKING:
    import pandas as pd

HUNDREDS = 200
"""Hundreds of GPUs are at least so many."""

NEAR = 0.5
"""Allocations, in percent of all GPUs, are alike if they are no further apart."""


def claims(frame: pd.DataFrame) -> list[Claim]:
    """Judge the claims on each list of pods."""
    own = of_part(frame, ARRIVALS)
    cases = {str(name): (rows, str(name)) for name, rows in own.groupby("list", sort=False)}
    return judge_claims(CONTENT, __name__, cases)


def hundreds(own: pd.DataFrame, name: str, rules: Sequence[str]) -> Judgement:
    """Judge whether each rule leaves hundreds of GPUs, draw by draw."""
    left = (own["gpus"] - own["placed"])[own["way"].isin(rules)]
    return judge(left >= HUNDREDS, f"{left.min():.0f} to {left.max():.0f} GPUs")


def more(own: pd.DataFrame, name: str, rule: str) -> Judgement:
    """Judge whether FGD allocates more GPUs than a rule, draw by draw."""
    placed = ways_of(own, "placed")
    gain = placed[FGD.name] - placed[rule]
    numbers = f"{gain.mean():+.1f} GPUs ({gain.min():+.1f} to {gain.max():+.1f})"
    return judge(gain > 0, f"in {{so}} of {{of}} draws; {numbers}")


def least_fragmentation(own: pd.DataFrame, name: str, rules: Sequence[str]) -> Judgement:
    """Judge whether FGD leaves less fragmentation than all of the rules, draw by draw."""
    left = ways_of(own, "fragmentation")
    less = left[list(rules)].min(axis=1) - left[FGD.name]
    numbers = f"{-less.mean():+.1f} GPUs beside the best of them"
    return judge(less > 0, f"in {{so}} of {{of}} draws; {numbers}")


def as_published(own: pd.DataFrame, name: str, rule: str) -> Judgement:
    """Judge whether the mean share of GPUs that a rule allocates is near that of the artifact."""
    rows = own[own["way"] == rule]
    found = 100 * (rows["placed"] / rows["gpus"]).mean()
    published = PUBLISHED["allocated"][name][rule]
    apart = found - published
    return judge([abs(apart) <= NEAR], f"{found:.2f}%, {apart:+.2f} points from {published:.2f}%")
