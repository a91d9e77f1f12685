"""What becomes of the claims of a paper."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from optsched.report.page import Verdict

MOST, SOME = 0.9, 0.5
"""Shares of the cases from which on a claim is held, and held in part."""


class Judgement(NamedTuple):
    """A verdict, and the numbers that it comes from."""

    verdict: Verdict
    why: str


class Claim(NamedTuple):
    """A claim of a paper.

    Parameters
    ----------
    text : str
        What is claimed.
    published : str
        What the paper gives for it.
    judgements : mapping of str to Judgement
        By variant of what the paper leaves open.
    """

    text: str
    published: str
    judgements: Mapping[str, Judgement]


def verdict(share: float) -> Verdict:
    """Return the verdict on a claim that is so in this share of the cases."""
    if share >= MOST:
        return Verdict.HELD
    return Verdict.IN_PART if share >= SOME else Verdict.NOT_HELD


def judge(cases: Iterable[bool], told: str) -> Judgement:
    """Judge a claim by the cases in which it is so.

    Parameters
    ----------
    cases : iterable of bool
        Whether it is so, case by case; at least one.
    told : str
        What the cases are, with ``{so}`` and ``{of}`` for how many, and of how many.
    """
    outcomes = list(cases)
    so = sum(map(bool, outcomes))
    return Judgement(verdict(so / len(outcomes)), told.format(so=so, of=len(outcomes)))
