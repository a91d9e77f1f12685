"""The verdicts on the claims of the paper, under each variant.

An improvement counts if it is positive, with its whole confidence interval. A trend counts the
steps from one alpha or beta to the next that go up. The two algorithms are comparable where their
improvements differ by no more than they ever do in the paper's table.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import TYPE_CHECKING

from optsched.report.page import Verdict
from optsched.studies.judging import MOST, Claim, Judgement, judge, judge_claims
from optsched.studies.paired import Improvement
from optsched.studies.yang_2014.evaluation import PUBLISHED, cells, compared, gain, grid, published
from optsched.studies.yang_2014.plan import CONTENT, EXACT, GREEDY, VARIANTS

if TYPE_CHECKING:
    import pandas as pd

KEPT = 0.01
"""Utilization stays high if it falls by no more than this."""

Cells = Mapping[tuple[float, float], Improvement]
Values = Mapping[tuple[float, float], float]
"""Improvements by (beta, alpha)."""


def claims(frame: pd.DataFrame) -> list[Claim]:
    """Judge the claims of the paper."""
    own = grid(frame)
    return judge_claims(CONTENT, __name__, {variant: (own, variant) for variant in VARIANTS})


def _cells(frame: pd.DataFrame, variant: str, table: str, solver: str = EXACT) -> Cells:
    log, metric = PUBLISHED[table]["log"], PUBLISHED[table]["metric"]
    return cells(frame, metric, log=log, solver=solver, variant=variant)


def _means(frame: pd.DataFrame, variant: str, table: str, solver: str = EXACT) -> Values:
    return {key: 100 * cell.mean for key, cell in _cells(frame, variant, table, solver).items()}


def improves(frame: pd.DataFrame, variant: str, table: str) -> Judgement:
    """Judge whether a metric improves in each cell of a table."""
    found = _cells(frame, variant, table)
    means = [100 * cell.mean for cell in found.values()]
    numbers = f"{min(means):.1f} to {max(means):.1f}%; surely above 0 in {{so}} of {{of}} cells"
    return judge((cell.low > 0 for cell in found.values()), numbers)


def gain_grows(frame: pd.DataFrame, variant: str, table: str) -> Judgement:
    """Judge whether the improvement grows with alpha and with beta."""
    return grows(_means(frame, variant, table))


def grows(values: Values) -> Judgement:
    """Judge whether values grow along the rows and the columns of a table."""
    betas, alphas = (sorted(set(keys)) for keys in zip(*values))
    steps = [values[b, y] - values[b, x] for b in betas for x, y in pairwise(alphas)]
    steps += [values[y, a] - values[x, a] for a in alphas for x, y in pairwise(betas)]
    return judge((step > 0 for step in steps), "{so} of {of} steps go up")


def comparable(frame: pd.DataFrame, variant: str, table: str) -> Judgement:
    """Judge whether the algorithms are no further apart than in the published table."""
    theirs = published(table), published(table, "greedy")
    most = max(abs(theirs[0][key] - theirs[1][key]) for key in theirs[0])
    exact, greedy = (_means(frame, variant, table, solver) for solver in (EXACT, GREEDY))
    apart = [abs(exact[key] - greedy[key]) for key in exact]
    numbers = f"no further in {{so}} of {{of}} cells; at most {max(apart):.1f} points"
    return judge((points <= most for points in apart), numbers)


def less(frame: pd.DataFrame, variant: str, table: str, other: str) -> Judgement:
    """Judge whether the improvements of a table are less than those of another."""
    one, two = _means(frame, variant, table), _means(frame, variant, other)
    return judge((one[key] < two[key] for key in one), "in {so} of {of} cells")


def compact(frame: pd.DataFrame, variant: str, log: str) -> Judgement:
    """Judge compactness and utilization at once: compact allocations alone are easy to have."""
    pairs = compared(frame, solver=EXACT, log=log, variant=variant)
    share, kept = pairs["contiguous_share"].mean(), gain(pairs, "utilization")
    both = share >= MOST and kept.mean >= -KEPT
    why = f"{100 * share:.1f}% of the jobs contiguous, utilization {kept} against Default"
    return Judgement(Verdict.HELD if both else Verdict.NOT_HELD, why)
