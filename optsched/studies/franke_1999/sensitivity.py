"""On what the comparison with backfilling depends: ratios under one change at a time."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from optsched.studies.franke_1999.changes import Change
from optsched.studies.franke_1999.evaluation import BACKFILLING, EASY, FCFS, usual
from optsched.studies.franke_1999.plan import BEST, CHANGED, SKIPPED, changes
from optsched.studies.student import mean_of

if TYPE_CHECKING:
    import pandas as pd


FEWEST = 2
"""Seeds that a ratio needs."""


class Quantity(NamedTuple):
    """A mean of a strategy, over that of conservative backfilling on the same jobs."""

    strategy: str
    variant: str | None = None
    metric: str = "mean_response"


CLAIMED = Quantity("MPL 5", BEST)
CLAIMED_OF_LARGE = Quantity("MPL 3", BEST, "large_mean_response")
ONE_ROW = Quantity("MPL 1", "skip, rows")
AGGRESSIVE = Quantity(EASY)

QUANTITIES: dict[tuple[str, str], Quantity] = {
    ("all jobs", FCFS): Quantity(FCFS),
    ("all jobs", EASY): AGGRESSIVE,
    ("all jobs", "MPL 1 (skip)"): ONE_ROW,
    ("all jobs", f"MPL 3 ({BEST})"): Quantity("MPL 3", BEST),
    ("all jobs", f"MPL 5 ({BEST})"): CLAIMED,
    ("all jobs", f"MPL 5 ({SKIPPED})"): Quantity("MPL 5", SKIPPED),
    ("large jobs", f"MPL 3 ({BEST})"): CLAIMED_OF_LARGE,
}
"""What is compared with backfilling, by the heading of its column."""


class Ratio(NamedTuple):
    """The geometric mean of a ratio over the seeds, with its interval.

    The mean is nan with fewer than `FEWEST` seeds.
    """

    mean: float
    low: float
    high: float
    seeds: int


class Case(NamedTuple):
    """A changed workload and what is found with it.

    Parameters
    ----------
    service : float
        Service factor.
    change : Change
        What else is changed.
    load, cv, side_by_side : float
        Offered load, coefficient of variation of the run times, and the number of jobs of mean size
        for which the machine has nodes; means over the seeds that are kept up with.
    ratios : dict of Quantity to Ratio
        Each ratio in the seeds that its strategy and backfilling keep up with.
    kept_up, seeds : int
        Seeds that the strategy of `CLAIMED` and backfilling keep up with, and all of them.
    """

    service: float
    change: Change
    load: float
    cv: float
    side_by_side: float
    ratios: dict[Quantity, Ratio]
    kept_up: int
    seeds: int

    @property
    def words(self) -> str:
        """What is changed."""
        load = f"service factor {self.service:g}" if self.service != CHANGED["service"] else ""
        return "; ".join(filter(None, (self.change.words, load))) or "nothing"


def cases(frame: pd.DataFrame) -> list[Case]:
    """Return the changed workloads, in the order of the plan."""
    runs = usual(frame)
    runs = runs[(runs["interarrival"] == CHANGED["interarrival"])]
    found = []
    for service, change in changes(quick=False):
        own = runs[(runs["service"] == service) & (runs["change"] == change.key)]
        if (own["strategy"] == ONE_ROW.strategy).any():
            found.append(_case(own, service, change))
    return found


def _case(runs: pd.DataFrame, service: float, change: Change) -> Case:
    base = runs[runs["strategy"] == BACKFILLING].set_index("seed")
    ratios = {one: _ratio(_runs_of(runs, one), base, one.metric) for one in QUANTITIES.values()}
    kept = _runs_of(runs, CLAIMED)["kept_up"] & base["kept_up"]
    figures = base.loc[kept, ["offered", "runtime_cv", "side_by_side"]]
    load, cv, side_by_side = figures.mean().tolist()
    return Case(service, change, load, cv, side_by_side, ratios, int(kept.sum()), len(base))


def _ratio(own: pd.DataFrame, base: pd.DataFrame, metric: str) -> Ratio:
    both = own["kept_up"] & base["kept_up"]
    logarithms = np.log(own[metric] / base[metric])[both]
    if len(logarithms) < FEWEST:
        return Ratio(np.nan, np.nan, np.nan, len(logarithms))
    mean, low, high = np.exp(mean_of(logarithms)).tolist()
    return Ratio(mean, low, high, len(logarithms))


def _runs_of(runs: pd.DataFrame, one: Quantity) -> pd.DataFrame:
    own = runs[(runs["strategy"] == one.strategy)]
    if one.variant is not None:
        own = own[own["variant"] == one.variant]
    return own.set_index("seed")


class Turning(NamedTuple):
    """Where a ratio passes 1 while a field of the change grows.

    Parameters
    ----------
    value, cv, side_by_side : float
        The field there, and the figures of `Case`; nan if the ratio passes 1 nowhere in the range.
    seeds : int
        The fewest seeds in a case beside it.
    lowest, highest : Case
        The ends of the range.
    """

    value: float
    cv: float
    side_by_side: float
    seeds: int
    lowest: Case
    highest: Case


def turning(found: list[Case], field: str, quantity: Quantity) -> Turning | None:
    """Return the largest value of a field at which a ratio passes 1.

    It is interpolated between two cases, by the logarithm of the ratio. Only cases count in which
    nothing else is changed and that have the ratio; None if there are not two.
    """
    usual_service = CHANGED["service"]
    plain = Change()
    line = sorted(
        (
            case
            for case in found
            if case.service == usual_service
            and case.ratios[quantity].seeds >= FEWEST
            and case.change._replace(**{field: getattr(plain, field)}) == plain
        ),
        key=lambda case: getattr(case.change, field),
    )
    if len(line) < 2:
        return None
    nowhere = (float("nan"),) * 3
    at, seeds = nowhere, 0
    for one, other in pairwise(line):
        low, high = (np.log(case.ratios[quantity].mean) for case in (one, other))
        if low * high < 0:
            share = low / (low - high)
            ends: list[tuple[Any, ...]] = [
                (getattr(case.change, field), case.cv, case.side_by_side) for case in (one, other)
            ]
            first, last = map(np.array, ends)
            at = tuple((first + share * (last - first)).tolist())
            seeds = min(case.ratios[quantity].seeds for case in (one, other))
    return Turning(*at, seeds, line[0], line[-1])
