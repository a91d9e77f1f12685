"""What the paper claims, and what becomes of it under each variant."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from optsched.report.page import Verdict
from optsched.studies.paired import Improvement
from optsched.studies.yang_2014.evaluation import METRICS, cells, compared, gain

if TYPE_CHECKING:
    import pandas as pd

EXACT, GREEDY = "branch-and-bound", "greedy"

MOST, SOME = 0.9, 0.5
"""Shares of cells or steps from which on a claim is held, and held in part."""

COMPARABLE = 0.01
"""Improvements that differ by no more than this are comparable."""

Cells = Mapping[tuple[float, float], Improvement]


class Judgement(NamedTuple):
    """A verdict, and the numbers that it comes from."""

    verdict: Verdict
    why: str


class Claim(NamedTuple):
    """A claim of the paper.

    Parameters
    ----------
    text : str
        What is claimed.
    published : str
        What the paper's tables give for it.
    judgements : mapping of str to Judgement
        By variant.
    """

    text: str
    published: str
    judgements: Mapping[str, Judgement]


def claims(frame: pd.DataFrame, variants: Sequence[str]) -> list[Claim]:
    """Judge the claims of the paper.

    A claim of an improvement is held if it is positive, with its whole confidence interval, in at
    least nine cells of ten of a table; in part, in at least half of them. A claim of a trend counts
    the steps from one alpha or beta to the next that go up in the same way. Both algorithms are
    comparable where their improvements differ by one percentage point at most.

    Parameters
    ----------
    frame : pandas.DataFrame
        What `evaluation.prepare` returns.
    variants : sequence of str
        The variants to judge.
    """
    found = []
    published = {
        ("SDSC-BLUE", "utilization"): "0.98 to 3.83%",
        ("SDSC-BLUE", "mean_wait"): "11.27 to 27.33%",
        ("SDSC-BLUE", "mean_response"): "10.14 to 28.83%",
        ("ANL-Intrepid", "utilization"): "0.42 to 4.84%",
        ("ANL-Intrepid", "mean_wait"): "6.20 to 11.68%",
        ("ANL-Intrepid", "mean_response"): "3.81 to 10.85%",
    }
    tables = {
        (log, metric, variant): cells(frame, metric, log=log, solver=EXACT, variant=variant, **MAIN)
        for log, metric in published
        for variant in variants
    }
    for (log, metric), values in published.items():
        own = {variant: tables[log, metric, variant] for variant in variants}
        better = {variant: _improves(table) for variant, table in own.items()}
        grows = {variant: _grows(table) for variant, table in own.items()}
        name = METRICS[metric]
        found.append(Claim(f"{log}: {name} improves", values, better))
        text = f"{log}: what {name} gains grows with alpha and beta"
        found.append(Claim(text, "grows", grows))
    less = {
        variant: _less(
            tables["ANL-Intrepid", "mean_wait", variant], tables["SDSC-BLUE", "mean_wait", variant]
        )
        for variant in variants
    }
    found.append(Claim("The wait improves less on Intrepid than on SDSC-BLUE", "yes", less))
    alike = {variant: _comparable(frame, variant) for variant in variants}
    found.append(Claim("Branch and bound and Greedy are comparable", "within 1 point", alike))
    compact = {variant: _compact(frame, variant) for variant in variants}
    text = "Allocations are compact while utilisation stays high"
    found.append(Claim(text, "guaranteed", compact))
    return found


MAIN = {"window": 5, "charged": False}


def _verdict(share: float) -> Verdict:
    if share >= MOST:
        return Verdict.HELD
    return Verdict.IN_PART if share >= SOME else Verdict.NOT_HELD


def _improves(table: Cells) -> Judgement:
    sure = [cell.low > 0 if cell.low == cell.low else cell.mean > 0 for cell in table.values()]
    least, most = _range(table)
    why = f"{least:.1f} to {most:.1f}%; above 0 in {sum(sure)} of {len(sure)} cells"
    return Judgement(_verdict(sum(sure) / len(sure)), why)


def _grows(table: Cells) -> Judgement:
    betas, alphas = (sorted(set(values)) for values in zip(*table))
    steps = [table[b, y].mean - table[b, x].mean for b in betas for x, y in pairwise(alphas)]
    steps += [table[y, a].mean - table[x, a].mean for a in alphas for x, y in pairwise(betas)]
    up = sum(step > 0 for step in steps)
    return Judgement(_verdict(up / len(steps)), f"{up} of {len(steps)} steps go up")


def _less(one: Cells, other: Cells) -> Judgement:
    fewer = [one[key].mean < other[key].mean for key in one if key in other]
    why = f"in {sum(fewer)} of {len(fewer)} cells"
    return Judgement(_verdict(sum(fewer) / len(fewer)), why)


def _comparable(frame: pd.DataFrame, variant: str) -> Judgement:
    apart = []
    for log in frame["log"].unique():
        for metric in METRICS:
            exact = cells(frame, metric, log=log, solver=EXACT, variant=variant, **MAIN)
            greedy = cells(frame, metric, log=log, solver=GREEDY, variant=variant, **MAIN)
            apart += [abs(exact[key].mean - greedy[key].mean) for key in exact]
    alike = sum(difference <= COMPARABLE for difference in apart)
    why = f"within 1 point in {alike} of {len(apart)} cells; at most {100 * max(apart):.1f} points"
    return Judgement(_verdict(alike / len(apart)), why)


def _compact(frame: pd.DataFrame, variant: str) -> Judgement:
    pairs = compared(frame, solver=EXACT, variant=variant, **MAIN)
    share = pairs["contiguous_share"].mean()
    kept = gain(pairs, "utilization")
    kept_high = kept.low >= -COMPARABLE
    why = f"{100 * share:.1f}% of the jobs contiguous, utilisation {kept} against Default"
    if share < MOST:
        return Judgement(Verdict.NOT_HELD, why)
    return Judgement(Verdict.HELD if kept_high else Verdict.IN_PART, why)


def _range(table: Cells) -> tuple[float, float]:
    means = [100 * cell.mean for cell in table.values()]
    return min(means), max(means)
