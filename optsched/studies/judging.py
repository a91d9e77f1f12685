"""The claims of a paper, and the verdicts on them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from optsched.errors import InputError
from optsched.report.page import Cell, Verdict, cell
from optsched.studies.content import CLAIMS
from optsched.studies.paired import Improvement, Interval
from optsched.studies.results import ALL
from optsched.text_files import read_toml

if TYPE_CHECKING:
    import pandas as pd

MOST, SOME = 0.9, 0.5
"""Shares of the cases from which on a claim holds, and holds in part."""


class Judgement(NamedTuple):
    """A verdict, and the numbers that it comes from."""

    verdict: Verdict
    why: str

    @property
    def shown(self) -> Cell:
        """The verdict as a cell of a table, with the numbers beside it."""
        return replace(cell(self.verdict), note=self.why)


@dataclass(frozen=True)
class Claim:
    """A claim of a paper, with the numbers that the paper has for it.

    Parameters
    ----------
    judgements : mapping of str to Judgement
        By variant of what the paper leaves open, or by workload.
    where : str
        The runs that it is judged on, if there are several sets of them.
    judge, arguments
        The function that judges it, by name, and its arguments; no function if the claim cannot be
        judged. Its only judgement, of `ALL`, then says why.
    """

    text: str
    published: str
    judgements: Mapping[str, Judgement] = field(default_factory=dict)
    where: str = ""
    judge: str = ""
    arguments: Mapping[str, Any] = field(default_factory=dict)


def read_claims(content: Path) -> list[Claim]:
    """Read the claims of a paper from ``claims.toml`` in a study's content, without judgements.

    A claim that cannot be judged has the reason, ``not_judged``, in place of ``judge``.

    Raises
    ------
    InputError
        If the file cannot be read, or a claim is not whole.
    """
    file, claims = content / CLAIMS, []
    for number, table in enumerate(read_toml(file).get("claims", ()), 1):
        last = "not_judged" if "not_judged" in table else "judge"
        stated = {key: table.pop(key, None) for key in ("text", "published", last)}
        for key, value in stated.items():
            if not isinstance(value, str):
                field = f"claims[{number}].{key}"
                raise InputError(f"{value!r}; expected a text", file=file, field=field)
        if (why := stated.pop("not_judged", None)) is None:
            claims.append(Claim(**stated, arguments=table))
        else:
            claims.append(Claim(**stated, judgements={ALL: Judgement(Verdict.NOT_JUDGED, why)}))
    return claims


def judge_claims(
    content: Path, module: str, cases: Mapping[str, tuple[Any, ...]], where: str = ""
) -> list[Claim]:
    """Judge the claims of ``claims.toml``, each by the function that it names.

    Parameters
    ----------
    module : str
        The module of the functions. Each takes the arguments of a case and those of the claim, and
        returns a judgement, or None where the claim does not apply.
    cases : mapping of str to tuple
        The first arguments for each variant or workload.

    Raises
    ------
    InputError
        If the file cannot be read, or a function is missing.
    """
    judges = vars(import_module(module))
    claims = []
    for claim in read_claims(content):
        if not claim.judge:
            claims.append(replace(claim, where=where))
            continue
        if not callable(judges.get(claim.judge)):
            expected = f"expected a function of {module}"
            raise InputError(f"{claim.judge!r}; {expected}", file=content / CLAIMS, field="judge")
        found = {
            name: judges[claim.judge](*arguments, **claim.arguments)
            for name, arguments in cases.items()
        }
        judgements = {name: judged for name, judged in found.items() if judged is not None}
        claims.append(replace(claim, where=where, judgements=judgements))
    return claims


def verdict(share: float) -> Verdict:
    """Return the verdict on a claim that is true in this share of the cases."""
    if share >= MOST:
        return Verdict.HELD
    return Verdict.IN_PART if share >= SOME else Verdict.NOT_HELD


def judge(cases: Iterable[bool], numbers: str) -> Judgement:
    """Judge a claim by whether it is true, case by case; there is at least one case.

    `numbers` are those behind the verdict; ``{so}`` stands for the number of cases in which the
    claim is true, ``{of}`` for the number of all cases.
    """
    outcomes = list(cases)
    so = sum(map(bool, outcomes))
    return Judgement(verdict(so / len(outcomes)), numbers.format(so=so, of=len(outcomes)))


def judge_interval(
    found: Interval | Improvement, why: str, *, above: float = -math.inf, below: float = math.inf
) -> Judgement:
    """Judge the claim that a quantity is above one bound and below another, by its interval.

    The claim holds if the whole interval is within the bounds, does not hold if the whole interval
    is outside, and is not decided otherwise, or if there is no interval. For an effect, `above` is
    the noise floor: the effect that a choice without meaning has, such as that between equally good
    answers. For two things that are alike, the bounds are the tolerance to both sides.
    """
    if found.low > above and found.high < below:
        return Judgement(Verdict.HELD, why)
    outside = found.high <= above or found.low >= below
    return Judgement(Verdict.NOT_HELD if outside else Verdict.NOT_DECIDED, why)


def judge_together(judgements: Iterable[Judgement], why: str) -> Judgement:
    """Judge a claim on several quantities by the verdicts on each; there is at least one.

    The claim holds if it holds for all of them, and in part if for some. Otherwise it does not hold
    if it does not for at least one, and is not decided if that is so for all.
    """
    found = {one.verdict for one in judgements}
    if len(found) == 1:
        return Judgement(found.pop(), why)
    some = found & {Verdict.HELD, Verdict.IN_PART}
    return Judgement(Verdict.IN_PART if some else Verdict.NOT_HELD, why)


def frame_of_claims(claims: Iterable[Claim]) -> pd.DataFrame:
    """Return the judgements as a table: claim, published, where, variant, verdict, why."""
    import pandas as pd

    rows = [
        (claim.text, claim.published, claim.where, variant, str(one.verdict), one.why)
        for claim in claims
        for variant, one in claim.judgements.items()
    ]
    columns = ["claim", "published", "where", "variant", "verdict", "why"]
    return pd.DataFrame(rows, columns=columns)
