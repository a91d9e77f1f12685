"""What the paper claims, and what becomes of it under each variant."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from optsched.report.page import Verdict
from optsched.studies.judging import MOST, Claim, Judgement, verdict
from optsched.studies.yang_2014.evaluation import METRICS, cells, compared, gain
from optsched.studies.yang_2014.plan import BLUE, EXACT, GREEDY, INTREPID
from optsched.studies.yang_2014.published import SHARES, TABLES, Published

if TYPE_CHECKING:
    import pandas as pd

KEPT = 0.01
"""Utilisation stays high if it falls by no more than this."""

Values = Mapping[tuple[float, float], float]
"""Improvements by (beta, alpha)."""


def claims(frame: pd.DataFrame, variants: Sequence[str]) -> list[Claim]:
    """Judge the claims of the paper.

    An improvement is held if it is positive, with its whole confidence interval, in at least nine
    cells of ten of a table; in part, in at least half of them. A trend counts the steps from one
    alpha or beta to the next that go up in the same way. The two algorithms are comparable where
    their improvements differ by no more than they ever do in the paper's table.

    Parameters
    ----------
    frame : pandas.DataFrame
        What `evaluation.grid` returns.
    variants : sequence of str
        The variants to judge.
    """
    found = []
    for table in TABLES:
        name = f"{table.log}: {METRICS[table.metric]}"
        theirs = _published(table)
        values = f"{min(theirs.values()):g} to {max(theirs.values()):g}%"
        judged = {variant: _improves(frame, table, variant) for variant in variants}
        found.append(Claim(f"{name} improves", values, judged))
        judged = {variant: _grows(_means(frame, table, variant)) for variant in variants}
        found.append(Claim(f"{name}: the gain grows with alpha, beta", _grows(theirs).why, judged))
        most = _furthest(table)
        judged = {variant: _comparable(frame, table, variant, most) for variant in variants}
        text = f"{name}: B&B and Greedy are comparable"
        found.append(Claim(text, f"at most {most:.2f} points apart", judged))
    waits = {table.log: table for table in TABLES if table.metric == "mean_wait"}
    less = {
        variant: _less(
            _means(frame, waits[INTREPID.name], variant), _means(frame, waits[BLUE.name], variant)
        )
        for variant in variants
    }
    paper = _less(_published(waits[INTREPID.name]), _published(waits[BLUE.name]))
    text = f"The wait improves less on {INTREPID.name} than on {BLUE.name}"
    found.append(Claim(text, paper.why, less))
    for log in (BLUE, INTREPID):
        compact = {variant: _compact(frame, log.name, variant) for variant in variants}
        text = f"{log.name}: allocations are compact while utilisation stays high"
        found.append(Claim(text, "guaranteed", compact))
    return found


def _published(table: Published, solver: str = "branch_and_bound") -> Values:
    rows = getattr(table, solver)
    return {
        (beta, alpha): value for beta, row in zip(SHARES, rows) for alpha, value in zip(SHARES, row)
    }


def _furthest(table: Published) -> float:
    """Return by how many points the two algorithms differ at most in a published table."""
    exact, greedy = _published(table), _published(table, "greedy")
    return max(abs(exact[key] - greedy[key]) for key in exact)


def _means(frame: pd.DataFrame, table: Published, variant: str, solver: str = EXACT) -> Values:
    found = cells(frame, table.metric, log=table.log, solver=solver, variant=variant)
    return {key: 100 * cell.mean for key, cell in found.items()}


def _improves(frame: pd.DataFrame, table: Published, variant: str) -> Judgement:
    found = cells(frame, table.metric, log=table.log, solver=EXACT, variant=variant)
    sure = sum(cell.low > 0 for cell in found.values())
    means = [100 * cell.mean for cell in found.values()]
    why = f"{min(means):.1f} to {max(means):.1f}%; surely above 0 in {sure} of {len(means)} cells"
    return Judgement(verdict(sure / len(means)), why)


def _grows(values: Values) -> Judgement:
    betas, alphas = (sorted(set(keys)) for keys in zip(*values))
    steps = [values[b, y] - values[b, x] for b in betas for x, y in pairwise(alphas)]
    steps += [values[y, a] - values[x, a] for a in alphas for x, y in pairwise(betas)]
    up = sum(step > 0 for step in steps)
    return Judgement(verdict(up / len(steps)), f"{up} of {len(steps)} steps go up")


def _comparable(frame: pd.DataFrame, table: Published, variant: str, most: float) -> Judgement:
    exact = _means(frame, table, variant)
    greedy = _means(frame, table, variant, GREEDY)
    apart = [abs(exact[key] - greedy[key]) for key in exact]
    alike = sum(points <= most for points in apart)
    why = f"no further in {alike} of {len(apart)} cells; at most {max(apart):.1f} points"
    return Judgement(verdict(alike / len(apart)), why)


def _less(one: Values, other: Values) -> Judgement:
    fewer = sum(one[key] < other[key] for key in one)
    return Judgement(verdict(fewer / len(one)), f"in {fewer} of {len(one)} cells")


def _compact(frame: pd.DataFrame, log: str, variant: str) -> Judgement:
    """Judge both at once: compact allocations alone are easy to have."""
    pairs = compared(frame, solver=EXACT, log=log, variant=variant)
    share, kept = pairs["contiguous_share"].mean(), gain(pairs, "utilization")
    both = share >= MOST and kept.mean >= -KEPT
    why = f"{100 * share:.1f}% of the jobs contiguous, utilisation {kept} against Default"
    return Judgement(Verdict.HELD if both else Verdict.NOT_HELD, why)
