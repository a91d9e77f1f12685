"""What the paper claims, and what becomes of it in each workload."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from optsched.studies.gonthier_2024.evaluation import (
    ALL,
    FILE_TIME,
    improvement,
    reduction,
    workloads,
)
from optsched.studies.gonthier_2024.improvement import Improvement
from optsched.studies.gonthier_2024.plan import (
    DAY,
    EFT,
    FCFS,
    HIGH,
    HOLES,
    LEA,
    LEM,
    LEO,
    LOW,
    MAIN,
    OF_LOG,
    THROTTLED,
    WORKLOADS,
)
from optsched.studies.gonthier_2024.published import THROTTLE
from optsched.studies.judging import Claim, Judgement, judge

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    import pandas as pd

NONE = 0.01
"""A median improvement of no more than this is none."""

FEW = 0.05
"""Shares of the sessions that differ by no more are close."""

THIRD = 1 / 3

DAY_THROTTLED = f"{DAY.name}, every {THROTTLE} s"
"""The day as the authors' published weeks were run; judged, but not counted with the others."""


class Outcome(NamedTuple):
    """Whether a claim is so in a workload, case by case, and the numbers."""

    cases: list[bool]
    told: str


def claims(frame: pd.DataFrame) -> list[Claim]:
    """Judge the claims of the paper in each workload, and in all together.

    Parameters
    ----------
    frame : pandas.DataFrame
        What `evaluation.prepare` returns.
    """
    parts = {name: frame[frame["workload"] == name] for name in workloads(frame)}
    parts |= as_throttled(frame)
    load_of = {one.name: one.load for one in WORKLOADS}
    lower = {own[1].name: own[0].name for own in OF_LOG.values()}

    def claim(
        text: str,
        published: str,
        outcome: Callable[[pd.DataFrame], Outcome],
        load: float | None = None,
    ) -> Claim:
        found = {
            name: outcome(own)
            for name, own in parts.items()
            if load is None or load_of.get(name) == load
        }
        return Claim(text, published, _judged(found))

    def more_saturated(measure: str) -> Claim:
        found = {
            name: _compared(
                (n, _measured(own, n, measure), _measured(parts[lower[name]], n, measure))
                for n in (LEA, LEO, LEM)
            )
            for name, own in parts.items()
            if lower.get(name) in parts
        }
        text = "Saturated clusters benefit more than underused ones from LEA, LEO and LEM, by the"
        return Claim(f"{text} {measure} improvement (section I)", "much more", _judged(found))

    return [
        claim(
            "LEM is not worse than FCFS in 87.5 % of the sessions (section V.F)",
            "at least 87.5 %",
            lambda own: _not_worse(own, LEM, 0.875),
        ),
        claim(
            "LEM improves the median session by 7.5 % (abstract)",
            "7.5 %",
            lambda own: _median(own, LEM, 1.075),
        ),
        claim(
            "LEO is not worse than FCFS in 87.5 % of the sessions (section V.F)",
            "87.5 %",
            lambda own: _not_worse(own, LEO, 0.875),
        ),
        claim(
            "LEA has the largest median improvement (section V.F)",
            "largest",
            _largest_median,
        ),
        claim(
            "LEA is not worse than FCFS in 75 % of the sessions (section V.F)",
            "about 75 %",
            lambda own: _not_worse(own, LEA, 0.75),
        ),
        claim(
            "LEA makes a quarter of the sessions at least twice as fast (section V.F)",
            "2 to 6 times in 25 %",
            lambda own: _quarter(own, LEA, 2.0),
        ),
        claim(
            "EFT brings no real improvement (section V.F)",
            "none",
            lambda own: _none(own, EFT),
        ),
        claim(
            "LEA saves most transfer time, then LEM, then LEO and EFT (Table II)",
            "17.1, 7.1, 0.9, 0.9 %",
            lambda own: _order(own, FILE_TIME),
        ),
        claim(
            "LEM saves 7 % of the transfer time (abstract)",
            "7.1 %",
            lambda own: _saves(own, LEM, 0.07),
        ),
        claim(
            "All save core time, LEA most (Table III)",
            "0.37, 0.10, 0.02, 0.01 %",
            _core_time,
        ),
        claim(
            "Underused cluster: LEO and LEM come close to EFT (section V.D)",
            "close",
            _close_to_eft,
            LOW,
        ),
        claim(
            "Underused cluster: LEA is slower in more than a third of the sessions (section V.D)",
            "more than a third",
            lambda own: _slower(own, LEA, THIRD),
            LOW,
        ),
        claim(
            "Underused cluster: EFT, LEO and LEM change nothing in most sessions (section V.D)",
            "most",
            _unchanged,
            LOW,
        ),
        claim(
            "Saturated cluster: LEA, LEO and LEM improve most sessions (section V.E)",
            "the majority",
            _majority,
            HIGH,
        ),
        claim(
            "Saturated cluster: LEA has a larger mean improvement than LEO and LEM (section V.E)",
            "larger",
            _largest_mean,
            HIGH,
        ),
        more_saturated("median"),
        more_saturated("mean"),
        claim(
            "With backfilling LEA, LEO and LEM make fewer sessions faster (section V.F)",
            "smaller improvements",
            lambda own: _less_with_backfilling(own, "faster"),
        ),
        claim(
            "With backfilling LEA, LEO and LEM have smaller mean improvements (section V.F)",
            "smaller improvements",
            lambda own: _less_with_backfilling(own, "mean"),
        ),
        claim(
            "FCFS and EFT gain more by backfilling than LEA, LEO and LEM do (section V.F)",
            "much more",
            _gain_by_backfilling,
        ),
        claim(
            "EFT-BF brings no significant improvement over FCFS-BF (section V.F)",
            "not significant",
            lambda own: _none(own, EFT + HOLES),
        ),
        claim(
            "LEM-BF is not worse than FCFS-BF in 75 % of the sessions (section V.F)",
            "more than 75 %",
            lambda own: _not_worse(own, LEM + HOLES, 0.75),
        ),
        claim(
            "LEM-BF: an eighth of the sessions at least 1.8 times as fast, at most an eighth below "
            "0.95 (section V.F)",
            "1.8 and 0.95",
            _ends_of_lem,
        ),
        claim(
            "LEA-BF is not worse than FCFS-BF in half of the sessions (section VI)",
            "50 %",
            lambda own: _not_worse(own, LEA + HOLES, 0.5),
        ),
    ]


def as_throttled(frame: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Return the throttled runs of the day under the names of the ten schedulers, if it was run."""
    own = frame[(frame["workload"] == DAY.name) & frame["scheduler"].isin(THROTTLED)]
    if own.empty:
        return {}
    plain = dict(zip(THROTTLED, MAIN))
    return {DAY_THROTTLED: own.assign(scheduler=own["scheduler"].map(plain))}


def _judged(found: dict[str, Outcome]) -> dict[str, Judgement]:
    """Return the judgement of each workload, and of all by the workloads in which it is so."""
    counted = [all(one.cases) for name, one in found.items() if name != DAY_THROTTLED]
    together = {ALL: judge(counted, "so in {so} of {of} workloads")} if counted else {}
    return together | {name: judge(one.cases, one.told) for name, one in found.items()}


def _not_worse(own: pd.DataFrame, name: str, share: float) -> Outcome:
    better = improvement(own, name).better
    return Outcome([better >= share], f"{better:.1%} of the sessions")


def _median(own: pd.DataFrame, name: str, wanted: float) -> Outcome:
    median = improvement(own, name).median
    return Outcome([median >= wanted], f"{median - 1:+.1%}")


def _none(own: pd.DataFrame, name: str) -> Outcome:
    found = improvement(own, name)
    told = f"median {found.median - 1:+.1%}; {found.faster:.0%} faster, {found.slower:.0%} slower"
    return Outcome([abs(found.median - 1) <= NONE], told)


def _largest_median(own: pd.DataFrame) -> Outcome:
    medians = {name: improvement(own, name).median for name in (EFT, LEA, LEO, LEM)}
    return Outcome([medians[LEA] > medians[other] for other in (EFT, LEO, LEM)], _told(medians))


def _largest_mean(own: pd.DataFrame) -> Outcome:
    means = {name: improvement(own, name).mean for name in (LEA, LEO, LEM)}
    return Outcome([means[LEA] > means[other] for other in (LEO, LEM)], _told(means))


def _quarter(own: pd.DataFrame, name: str, times: float) -> Outcome:
    found = improvement(own, name).box_high
    return Outcome([found >= times], f"a quarter at least {found:.3g} times")


def _order(own: pd.DataFrame, metric: str) -> Outcome:
    saved = {name: reduction(own, name, metric) for name in (LEA, LEM, LEO, EFT)}
    cases = [saved[LEA] > saved[LEM], saved[LEM] > saved[LEO], saved[LEM] > saved[EFT]]
    return Outcome(cases, _percent(saved))


def _saves(own: pd.DataFrame, name: str, share: float) -> Outcome:
    saved = reduction(own, name, FILE_TIME)
    return Outcome([saved >= share], f"{saved:.1%}")


def _core_time(own: pd.DataFrame) -> Outcome:
    saved = {name: reduction(own, name, "core_time") for name in (LEA, LEM, LEO, EFT)}
    cases = [*(value > 0 for value in saved.values()), saved[LEA] == max(saved.values())]
    return Outcome(cases, _percent(saved, digits=2))


def _close_to_eft(own: pd.DataFrame) -> Outcome:
    found = {name: improvement(own, name) for name in (EFT, LEO, LEM)}
    cases = [
        abs(found[name].median - found[EFT].median) <= NONE
        and abs(found[name].slower - found[EFT].slower) <= FEW
        for name in (LEO, LEM)
    ]
    told = (f"{name} {one.median - 1:+.1%}, {one.slower:.0%} slower" for name, one in found.items())
    return Outcome(cases, "; ".join(told))


def _slower(own: pd.DataFrame, name: str, share: float) -> Outcome:
    slower = improvement(own, name).slower
    return Outcome([slower > share], f"{slower:.1%} slower")


def _unchanged(own: pd.DataFrame) -> Outcome:
    equal = {name: improvement(own, name).equal for name in (EFT, LEO, LEM)}
    return Outcome([share > 0.5 for share in equal.values()], _percent(equal) + " equal")


def _majority(own: pd.DataFrame) -> Outcome:
    faster = {name: improvement(own, name).faster for name in (LEA, LEO, LEM)}
    return Outcome([share > 0.5 for share in faster.values()], _percent(faster) + " faster")


def _less_with_backfilling(own: pd.DataFrame, measure: str) -> Outcome:
    return _compared(
        (name, _measured(own, name, measure), _measured(own, name + HOLES, measure))
        for name in (LEA, LEO, LEM)
    )


def _measured(own: pd.DataFrame, name: str, measure: str) -> float:
    """Return a field of the improvement by a scheduler."""
    return float(getattr(improvement(own, name), measure))


def _compared(pairs: Iterable[tuple[str, float, float]]) -> Outcome:
    """Judge whether the first of two numbers is larger, scheduler by scheduler."""
    known = list(pairs)
    told = ", ".join(f"{name} {one:.3g} against {other:.3g}" for name, one, other in known)
    return Outcome([one > other for _, one, other in known], told)


def _gain_by_backfilling(own: pd.DataFrame) -> Outcome:
    gains = {name: _by_backfilling(own, name).mean for name in (FCFS, EFT, LEA, LEO, LEM)}
    cases = [gains[one] > gains[other] for one in (FCFS, EFT) for other in (LEA, LEO, LEM)]
    return Outcome(cases, _told(gains))


def _by_backfilling(own: pd.DataFrame, name: str) -> Improvement:
    return improvement(own, name + HOLES, name)


def _ends_of_lem(own: pd.DataFrame) -> Outcome:
    found = improvement(own, LEM + HOLES)
    cases = [found.whisker_high >= 1.8, found.whisker_low >= 0.95]
    return Outcome(cases, f"whiskers {found.whisker_low:.3g} and {found.whisker_high:.3g}")


def _told(values: dict[str, float]) -> str:
    return ", ".join(f"{name} {value:.3g}" for name, value in values.items())


def _percent(values: dict[str, float], digits: int = 1) -> str:
    return ", ".join(f"{name} {100 * value:.{digits}f}%" for name, value in values.items())
