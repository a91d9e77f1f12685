"""The verdicts on the claims of the paper, under each reading of it.

A claim is judged by the mean of a quantity over the logs, the day among them, and its interval. The
two clusters of a log run the same jobs, so a log counts once. Quantities that are ratios are
averaged in logarithms. A reading that was not run on all workloads stands beside the authors'
program on those that it was run on, so that the two differ by the reading alone.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from optsched.studies.gonthier_2024.evaluation import improvement, ratios, read_as, reduction
from optsched.studies.gonthier_2024.plan import (
    AS_WRITTEN,
    AUTHORS,
    CONTENT,
    FILES,
    INTERLEAVED,
    OF_LOG,
    READINGS,
    WORKLOADS,
    in_form,
)
from optsched.studies.judging import Claim, Judgement, judge_claims, judge_interval, judge_together
from optsched.studies.paired import Interval, mean_interval
from optsched.studies.results import by_workload

if TYPE_CHECKING:
    import pandas as pd

NONE = 0.01
"""Improvements whose ratio, and shares of sessions whose difference is no more, are the same.

It is also the tolerance of the paper for equal sessions.
"""

FEW = 0.05
"""Shares of the sessions that differ by no more are close."""

WHOLE, WITH_BACKFILLING, WITH_FILES = (
    "all workloads",
    "workloads of backfilling as written",
    "workloads of files as written",
)
"""The workloads that readings are compared on."""

Quantity = Callable[["pd.DataFrame"], float]
"""A number of the runs on one workload."""

_OF_NAME = {one.name: one for one in WORKLOADS}


def claims(frame: pd.DataFrame) -> list[Claim]:
    """Judge the claims of the paper under each reading that was run, by the runs of `compared`.

    A claim that is judged as written on all workloads is not judged again on some of them.
    """
    whole, backfilled, files = (
        judge_claims(
            CONTENT, __name__, {name: (own,) for name, own in read.items() if len(own)}, where
        )
        for where, read in compared(frame).items()
    )
    known = {claim.text for claim in whole if AS_WRITTEN in claim.judgements}
    again = [claim for claim in backfilled if claim.text not in known] + files
    return whole + [claim for claim in again if claim.judgements]


def compared(frame: pd.DataFrame) -> dict[str, dict[str, pd.DataFrame]]:
    """Return the runs that are compared: those of two readings on the same workloads.

    On all workloads, what is written is compared without backfilling, which was run on some.
    """
    program, written, files = (
        read_as(frame, READINGS[name]) for name in (AUTHORS, AS_WRITTEN, FILES)
    )
    backfilled = written["scheduler"].isin(in_form("holes"))
    some = {*written.loc[backfilled, "workload"]}
    weeks = [
        week.name
        for log, others in INTERLEAVED.items()
        for week, other in zip(OF_LOG[log], others)
        if other.name in {*files["workload"]}
    ]
    as_files = program["workload"].isin(weeks) & program["scheduler"].isin(files["scheduler"])
    return {
        WHOLE: {AUTHORS: program, AS_WRITTEN: written[~backfilled]},
        WITH_BACKFILLING: {
            name: own[own["workload"].isin(some)]
            for name, own in ((AUTHORS, program), (AS_WRITTEN, written))
        },
        WITH_FILES: {AUTHORS: program[as_files], FILES: files},
    }


def sessions(
    own: pd.DataFrame,
    names: Sequence[str],
    measure: str,
    above: float = -np.inf,
    below: float = np.inf,
    load: float | None = None,
) -> Judgement | None:
    """Judge whether a share of the sessions is within bounds, with each of the schedulers."""
    found = {name: _over(own, [name], _measured(name, measure), load) for name in names}
    return _judged(found, _share, above=above, below=below)


def times(
    own: pd.DataFrame,
    names: Sequence[str],
    measure: str,
    above: float | None = None,
    below: float = np.inf,
    load: float | None = None,
) -> Judgement | None:
    """Judge whether an improvement is within bounds, with each of the schedulers."""
    found = {name: _over(own, [name], _log(_measured(name, measure)), load) for name in names}
    least = -np.inf if above is None else np.log(above)
    return _judged(found, _ratio, above=least, below=np.log(below))


def larger(
    own: pd.DataFrame,
    name: str,
    measure: str,
    others: Sequence[str],
    load: float | None = None,
) -> Judgement | None:
    """Judge whether a scheduler has a larger improvement than each of the others."""
    one = _log(_measured(name, measure))
    found = {
        f"than {other}": _over(
            own,
            [name, other],
            _difference(one, _log(_measured(other, measure))),
            load,
        )
        for other in others
    }
    return _judged(found, _ratio, above=np.log1p(NONE))


def beyond(own: pd.DataFrame, name: str, ratio: float, above: float) -> Judgement | None:
    """Judge the share of the sessions with an improvement of more than a ratio."""
    found = _over(own, [name], lambda part: float((ratios(part, name) > ratio).mean()))
    return _judged({name: found}, _share, above=above)


def loses_less(own: pd.DataFrame, name: str, than: str) -> Judgement | None:
    """Judge the area between two distributions of the improvement, below an improvement of 1.

    It is the difference of the mean losses of a session, where an improvement of 0.9 loses 0.1.
    """

    def loss(of: str) -> Quantity:
        return lambda part: float(np.maximum(1 - ratios(part, of), 0).mean())

    found = _over(own, [name, than], _difference(loss(than), loss(name)))
    return _judged({f"{than} loses more": found}, _points, above=0.0)


def saves(own: pd.DataFrame, names: Sequence[str], metric: str, above: float) -> Judgement | None:
    """Judge the share by which each of the schedulers lowers a sum.

    The share of the sum over all workloads is shown, too: logs with much of it weigh more there.
    """
    found = {name: saved_by_log(own, name, metric) for name in names}
    return _together(
        judge_interval(
            one,
            f"{name} {_percent(one)}, {100 * reduction(own, name, metric):.2f}% of all",
            above=above,
        )
        for name, one in found.items()
        if one.parts
    )


def saved_by_log(own: pd.DataFrame, name: str, metric: str) -> Interval:
    """Return the mean over the logs of the share by which a scheduler lowers a sum."""
    return _over(own, [name], _saved(name, metric))


def saves_more(
    own: pd.DataFrame, metric: str, pairs: Sequence[tuple[str, str]]
) -> Judgement | None:
    """Judge whether the first scheduler of each pair lowers a sum by more than the second."""
    found = {
        f"{one} over {other}": _over(
            own, [one, other], _difference(_saved(one, metric), _saved(other, metric))
        )
        for one, other in pairs
    }
    return _judged(found, _points, above=0.0)


def close(
    own: pd.DataFrame, names: Sequence[str], to: str, load: float | None = None
) -> Judgement | None:
    """Judge whether medians and slower shares of schedulers are those of another."""
    judged = []
    for name in names:
        pair = [name, to]
        median = _difference(*(_log(_measured(one, "median")) for one in pair))
        slow = _difference(*(_measured(one, "slower") for one in pair))
        medians = {f"{name}, median": _over(own, pair, median, load)}
        shares = {f"{name}, slower": _over(own, pair, slow, load)}
        judged += [
            _judged(medians, _ratio, above=-np.log1p(NONE), below=np.log1p(NONE)),
            _judged(shares, _points, above=-FEW, below=FEW),
        ]
    return _together(judged)


def more_saturated(own: pd.DataFrame, names: Sequence[str], measure: str) -> Judgement | None:
    """Judge whether saturated clusters improve more than the underused ones of the same log."""
    found = {name: _more_saturated(own, _log(_measured(name, measure))) for name in names}
    return _judged(found, _ratio, above=np.log1p(NONE))


def saves_more_saturated(own: pd.DataFrame, names: Sequence[str], metric: str) -> Judgement | None:
    """Judge whether a sum is lowered by more on saturated clusters than on underused ones."""
    found = {name: _more_saturated(own, _saved(name, metric)) for name in names}
    return _judged(found, _points, above=0.0)


def _more_saturated(own: pd.DataFrame, of: Quantity) -> Interval:
    """Return the mean over the logs of what a quantity is larger by on the saturated cluster."""
    logs: dict[str, dict[float, float]] = {}
    for workload, part in by_workload(own).items():
        one = _OF_NAME[workload]
        if one.load is not None:
            logs.setdefault(one.log, {})[one.load] = of(part)
    return _mean({log: by[max(by)] - by[min(by)] for log, by in logs.items() if len(by) > 1})


def fewer_with_backfilling(
    own: pd.DataFrame, names: Sequence[str], measure: str
) -> Judgement | None:
    """Judge whether a share of the sessions is smaller with backfilling."""
    found = {
        name: _over(own, pair, _difference(*(_measured(one, measure) for one in pair)))
        for name in names
        for pair in [(name, f"{name}-BF")]
    }
    return _judged(found, _points, above=NONE)


def smaller_with_backfilling(
    own: pd.DataFrame, names: Sequence[str], measure: str
) -> Judgement | None:
    """Judge whether an improvement is smaller with backfilling."""
    found = {
        name: _over(own, pair, _difference(*(_log(_measured(one, measure)) for one in pair)))
        for name in names
        for pair in [(name, f"{name}-BF")]
    }
    return _judged(found, _ratio, above=np.log1p(NONE))


def gain_by_backfilling(
    own: pd.DataFrame, names: Sequence[str], others: Sequence[str]
) -> Judgement | None:
    """Judge whether backfilling improves sessions more with some schedulers than with others."""

    def gain(name: str) -> Quantity:
        return lambda part: float(np.log(improvement(part, f"{name}-BF", name).mean))

    found = {
        f"{one} over {other}": _over(
            own, [f"{one}-BF", f"{other}-BF"], _difference(gain(one), gain(other))
        )
        for one in names
        for other in others
    }
    return _judged(found, _ratio, above=np.log1p(NONE))


def _over(
    own: pd.DataFrame, names: Collection[str], of: Quantity, load: float | None = None
) -> Interval:
    """Return the mean of a quantity over the logs whose runs have all of the schedulers."""
    return _mean(
        {
            workload: of(part)
            for workload, part in by_workload(own).items()
            if {*names} <= {*part["scheduler"]} and load in (None, _OF_NAME[workload].load)
        }
    )


def _mean(values: Mapping[str, float]) -> Interval:
    """Return the mean of values of workloads or logs over the logs; no parts if there are none."""
    if not values:
        return Interval(np.nan, np.nan, np.nan, 0)
    logs = [_OF_NAME[name].log or name if name in _OF_NAME else name for name in values]
    return mean_interval(list(values.values()), logs)


def _judged(
    found: Mapping[str, Interval],
    shown: Callable[[Interval], str],
    *,
    above: float = -np.inf,
    below: float = np.inf,
) -> Judgement | None:
    """Judge each of some quantities by the same bounds, and all together."""
    known = {label: one for label, one in found.items() if one.parts}
    return _together(
        judge_interval(one, f"{label} {shown(one)}", above=above, below=below)
        for label, one in known.items()
    )


def _together(judgements: Iterable[Judgement | None]) -> Judgement | None:
    known = [one for one in judgements if one is not None]
    return judge_together(known, "; ".join(one.why for one in known)) if known else None


def _measured(name: str, measure: str) -> Quantity:
    """Return a field of the improvement by a scheduler."""
    return lambda part: float(getattr(improvement(part, name), measure))


def _saved(name: str, metric: str) -> Quantity:
    return lambda part: reduction(part, name, metric)


def _log(of: Quantity) -> Quantity:
    return lambda part: float(np.log(of(part)))


def _difference(one: Quantity, other: Quantity) -> Quantity:
    return lambda part: one(part) - other(part)


def _share(found: Interval) -> str:
    return _with_ends(100 * np.array(found[:3]), ".1f", "%")


def _percent(found: Interval) -> str:
    return _with_ends(100 * np.array(found[:3]), ".2f", "%")


def _points(found: Interval) -> str:
    return _with_ends(100 * np.array(found[:3]), "+.2f", " points")


def _ratio(found: Interval) -> str:
    return _with_ends(np.exp(found[:3]), ".3f", " times")


def _with_ends(numbers: Any, form: str, unit: str) -> str:
    """Write a mean with its unit, and the interval if there is one."""
    mean, low, high = numbers
    ends = f" [{low:{form}}, {high:{form}}]" if np.isfinite(low) else ""
    return f"{mean:{form}}{unit}{ends}"
