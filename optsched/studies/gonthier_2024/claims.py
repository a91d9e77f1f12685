"""The verdicts on the claims of the paper, in each workload."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from optsched.report.page import Verdict
from optsched.studies.gonthier_2024.evaluation import THROTTLE, improvement, reduction
from optsched.studies.gonthier_2024.plan import CONTENT, DAY, MAIN, OF_LOG, THROTTLED, WORKLOADS
from optsched.studies.judging import Claim, Judgement, judge, read_claims
from optsched.studies.results import ALL, by_workload

if TYPE_CHECKING:
    import pandas as pd

NONE = 0.01
"""A median improvement of no more than this is none."""

FEW = 0.05
"""Shares of the sessions that differ by no more are close."""

DAY_THROTTLED = f"{DAY.name}, every {THROTTLE} s"
"""The day as the authors' published weeks were run; judged, but not counted with the others."""

LOCAL = ("LEA", "LEO", "LEM")
"""The schedulers that look for files."""


def claims(frame: pd.DataFrame) -> list[Claim]:
    """Judge the claims of the paper in each workload, and in all together."""
    parts = by_workload(frame) | as_throttled(frame)
    load_of = {one.name: one.load for one in WORKLOADS}

    def judged(judge: str, load: float | None = None, **arguments: Any) -> dict[str, Judgement]:
        if judge == more_saturated.__name__:
            return _together(more_saturated(parts, **arguments))
        own = {
            name: part for name, part in parts.items() if load is None or load_of.get(name) == load
        }
        return _together({name: globals()[judge](part, **arguments) for name, part in own.items()})

    return [
        replace(claim, judgements=judged(claim.judge, **claim.arguments)) if claim.judge else claim
        for claim in read_claims(CONTENT)
    ]


def as_throttled(frame: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Return the throttled runs of the day under the names of the ten schedulers, if it was run."""
    own = frame[(frame["workload"] == DAY.name) & frame["scheduler"].isin(THROTTLED)]
    if own.empty:
        return {}
    plain = dict(zip(THROTTLED, MAIN))
    return {DAY_THROTTLED: own.assign(scheduler=own["scheduler"].map(plain))}


def _together(found: Mapping[str, Judgement]) -> dict[str, Judgement]:
    """Judge all workloads by those in which the claim is true."""
    true = [one.verdict is Verdict.HELD for name, one in found.items() if name != DAY_THROTTLED]
    return ({ALL: judge(true, "so in {so} of {of} workloads")} if true else {}) | dict(found)


def not_worse(own: pd.DataFrame, name: str, least: float) -> Judgement:
    """Judge the share of the sessions that are not worse."""
    better = improvement(own, name).better
    return judge([better >= least], f"{better:.1%} of the sessions")


def median(own: pd.DataFrame, name: str, least: float) -> Judgement:
    """Judge the median improvement."""
    found = improvement(own, name).median
    return judge([found >= least], f"{found - 1:+.1%}")


def no_improvement(own: pd.DataFrame, name: str) -> Judgement:
    """Judge whether the median session is neither better nor worse."""
    found = improvement(own, name)
    numbers = (
        f"median {found.median - 1:+.1%}; {found.faster:.0%} faster, {found.slower:.0%} slower"
    )
    return judge([abs(found.median - 1) <= NONE], numbers)


def largest(own: pd.DataFrame, name: str, measure: str, others: Sequence[str]) -> Judgement:
    """Judge whether a scheduler has a larger improvement than each of the others."""
    order = [one for one in ("EFT", *LOCAL) if one in {name, *others}]
    found = {one: _measured(own, one, measure) for one in order}
    return judge([found[name] > found[other] for other in others], _listed(found))


def quarter(own: pd.DataFrame, name: str, least: float) -> Judgement:
    """Judge the improvement that a quarter of the sessions reaches."""
    found = improvement(own, name).box_high
    return judge([found >= least], f"a quarter at least {found:.3g} times")


def order(own: pd.DataFrame, metric: str) -> Judgement:
    """Judge whether LEA lowers a sum most, then LEM, then LEO and EFT."""
    saved = {name: reduction(own, name, metric) for name in ("LEA", "LEM", "LEO", "EFT")}
    ranks = (("LEA", "LEM"), ("LEM", "LEO"), ("LEM", "EFT"))
    return judge([saved[one] > saved[other] for one, other in ranks], _percent(saved))


def saves(own: pd.DataFrame, name: str, metric: str, least: float) -> Judgement:
    """Judge the share by which a sum is lower."""
    saved = reduction(own, name, metric)
    return judge([saved >= least], f"{saved:.1%}")


def core_time(own: pd.DataFrame) -> Judgement:
    """Judge whether all schedulers save core time, and LEA most."""
    saved = {name: reduction(own, name, "core_time") for name in ("LEA", "LEM", "LEO", "EFT")}
    cases = [*(value > 0 for value in saved.values()), saved["LEA"] == max(saved.values())]
    return judge(cases, _percent(saved, digits=2))


def close_to_eft(own: pd.DataFrame) -> Judgement:
    """Judge whether the medians and the slower shares of LEO and LEM are those of EFT."""
    found = {name: improvement(own, name) for name in ("EFT", "LEO", "LEM")}
    cases = [
        abs(found[name].median - found["EFT"].median) <= NONE
        and abs(found[name].slower - found["EFT"].slower) <= FEW
        for name in ("LEO", "LEM")
    ]
    shown = (
        f"{name} {one.median - 1:+.1%}, {one.slower:.0%} slower" for name, one in found.items()
    )
    return judge(cases, "; ".join(shown))


def slower(own: pd.DataFrame, name: str, more_than: float) -> Judgement:
    """Judge the share of the sessions that are slower."""
    found = improvement(own, name).slower
    return judge([found > more_than], f"{found:.1%} slower")


def most(own: pd.DataFrame, measure: str, names: Sequence[str]) -> Judgement:
    """Judge whether most sessions are equal, or faster, with each of the schedulers."""
    shares = {name: _measured(own, name, measure) for name in names}
    return judge([share > 0.5 for share in shares.values()], f"{_percent(shares)} {measure}")


def more_saturated(parts: Mapping[str, pd.DataFrame], measure: str) -> dict[str, Judgement]:
    """Judge whether saturated clusters improve more than the underused ones of the same log."""
    lower = {own[1].name: own[0].name for own in OF_LOG.values()}
    return {
        name: _larger(
            (one, _measured(own, one, measure), _measured(parts[lower[name]], one, measure))
            for one in LOCAL
        )
        for name, own in parts.items()
        if lower.get(name) in parts
    }


def less_with_backfilling(own: pd.DataFrame, measure: str) -> Judgement:
    """Judge whether improvements are smaller with backfilling."""
    return _larger(
        (name, _measured(own, name, measure), _measured(own, f"{name}-BF", measure))
        for name in LOCAL
    )


def gain_by_backfilling(own: pd.DataFrame) -> Judgement:
    """Judge whether FCFS and EFT gain more by backfilling than the others."""
    gains = {name: improvement(own, f"{name}-BF", name).mean for name in ("FCFS", "EFT", *LOCAL)}
    cases = [gains[one] > gains[other] for one in ("FCFS", "EFT") for other in LOCAL]
    return judge(cases, _listed(gains))


def eighths(own: pd.DataFrame, name: str, high: float, low: float) -> Judgement:
    """Judge the improvements that an eighth of the sessions exceeds, and falls below."""
    found = improvement(own, name)
    cases = [found.whisker_high >= high, found.whisker_low >= low]
    return judge(cases, f"whiskers {found.whisker_low:.3g} and {found.whisker_high:.3g}")


def _measured(own: pd.DataFrame, name: str, measure: str) -> float:
    """Return a field of the improvement by a scheduler."""
    return float(getattr(improvement(own, name), measure))


def _larger(pairs: Iterable[tuple[str, float, float]]) -> Judgement:
    """Judge whether the first of two numbers is larger, scheduler by scheduler."""
    known = list(pairs)
    numbers = ", ".join(f"{name} {one:.3g} against {other:.3g}" for name, one, other in known)
    return judge([one > other for _, one, other in known], numbers)


def _listed(values: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {value:.3g}" for name, value in values.items())


def _percent(values: Mapping[str, float], digits: int = 1) -> str:
    return ", ".join(f"{name} {100 * value:.{digits}f}%" for name, value in values.items())
