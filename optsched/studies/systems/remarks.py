"""What the numbers of a world say, in words."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from optsched.numbers import counted
from optsched.report.durations import short
from optsched.studies.paired import percent
from optsched.studies.systems.evaluation import (
    GAIN,
    TIMES,
    gain,
    is_baseline,
    run_of,
    systems_of,
)
from optsched.studies.systems.same_jobs import SAME
from optsched.studies.systems.worlds import PLAIN_EASY, Key, World

if TYPE_CHECKING:
    import pandas as pd

BEHIND = 0.05
"""A machine that takes this share longer than EASY on plain nodes may not keep up with jobs."""

NOTHING = 0.0005
"""Smaller gains are shown as none."""


def signed(share: float) -> str:
    """Return a gain in percent, with its sign."""
    text = percent(share)
    return text if text.startswith("-") or text == "0.0" else f"+{text}"


def shortest(frame: pd.DataFrame, world: World, metric: str) -> str:
    """Return what has the shortest time in a world, and what it gains over its baseline.

    Where the system beside is no baseline, what it gains over that, too.

    Parameters
    ----------
    frame : pandas.DataFrame
        What `evaluation.prepare` returns.
    world : World
        One of those that were run.
    metric : str
        One of `TIMES`.
    """
    own = systems_of(frame, world.name)
    if own[metric].isna().all():
        return "none"
    run = own.iloc[int(own[metric].argmin())]
    base = Key(run["base_world"], run["base"])
    yardsticks = [base] if base != Key(world.name, run["system"]) else []
    if (beside := _only_beside(world)) is not None:
        yardsticks.append(beside)
    told = [
        f"{signed(found)}% over {_elsewhere(key, world)}"
        for key in yardsticks
        if (found := float(gain(run_of(frame, key)[metric], run[metric]))) == found
    ]
    return f"{run['system']} ({', '.join(told) or 'the baseline'})"


def _only_beside(world: World) -> Key | None:
    """Return the system of another world that is told beside, where it is not the baseline."""
    return None if world.beside in world.baselines.values() else world.beside


def _elsewhere(key: Key, world: World) -> str:
    return key.system if key.world == world.name else f"{key.system} on {key.world}"


def remarks(frame: pd.DataFrame, world: World) -> list[str]:
    """Return what can be said of a world.

    Parameters
    ----------
    frame : pandas.DataFrame
        What `evaluation.prepare` returns.
    world : World
        One of those that were run.
    """
    told = [
        _extremes(frame, world),
        _all_round(frame, world),
        _without_effect(frame, world),
        _killed(frame, world),
        _left(frame, world),
        _behind(frame, world),
        _beside(frame, world),
    ]
    return [text for text in told if text]


def _compared(frame: pd.DataFrame, world: str) -> pd.DataFrame:
    own = systems_of(frame, world)
    return own[~is_baseline(own)]


def _listed(names: Iterable[str]) -> str:
    return "; ".join(names)


def _extremes(frame: pd.DataFrame, world: World) -> str:
    own = _compared(frame, world.name)
    told = []
    for metric in ("mean_wait", "mean_bounded_slowdown", "mean_response"):
        gains = own[GAIN[metric]]
        if gains.notna().any():
            high, low = (_with_gain(own, metric, end) for end in (gains.max(), gains.min()))
            found = (
                f"most with {high}, least with {low}" if high != low else f"the same with {high}"
            )
            told.append(f"{_capital(TIMES[metric])}: {found}.")
    return " ".join(["Gains over the baseline.", *told]) if told else ""


def _with_gain(runs: pd.DataFrame, metric: str, value: float) -> str:
    """Return the first system with a gain, how many more have it too, and the gain."""
    first, *more = runs["system"][(runs[GAIN[metric]] - value).abs() <= NOTHING]
    others = f" and {counted(len(more), 'other')}" if more else ""
    return f"{first}{others} ({signed(value)}%)"


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _all_round(frame: pd.DataFrame, world: World) -> str:
    """Say what is no longer in any time, and what gains some and loses some."""
    own = _compared(frame, world.name)
    gains = own[list(GAIN.values())]
    better, worse = (gains > NOTHING).any(axis=1), (gains < -NOTHING).any(axis=1)
    told = []
    if (found := better & ~worse).any():
        told.append(
            f"No time is longer, and some are shorter, with {_listed(own['system'][found])}"
        )
    if (found := worse & ~better).any():
        told.append(
            f"no time is shorter, and some are longer, with {_listed(own['system'][found])}"
        )
    if mixed := int((better & worse).sum()):
        told.append(f"some times are shorter and others longer with {mixed} of {len(own)} systems")
    return f"{'. '.join(_capital(text) for text in told)}." if told else ""


def _without_effect(frame: pd.DataFrame, world: World) -> str:
    own = _compared(frame, world.name)
    same = own[(own[list(GAIN.values())].fillna(0).abs() <= NOTHING).all(axis=1)]
    if not len(same):
        return ""
    return f"As the baseline in all times: {_listed(same['system'])}."


def _killed(frame: pd.DataFrame, world: World) -> str:
    own = systems_of(frame, world.name)
    few, many = own.nsmallest(1, "killed").iloc[0], own.nlargest(1, "killed").iloc[0]
    if few["killed"] == many["killed"]:
        return ""
    same = [
        f"{one['system']} {' and '.join(f'{signed(one[name])}%' for name in SAME.values())}"
        for _, one in _compared(frame, world.name).iterrows()
    ]
    return (
        f"Killed jobs: from {few['killed']:,.0f} ({few['system']}) to {many['killed']:,.0f} "
        f"({many['system']}) of {own['jobs'].iloc[0]:,.0f}. Times are of jobs that finished, so "
        "they are not of the same jobs in all systems. On the jobs that finish with the baseline, "
        f"too, mean wait and mean response gain: {_listed(same)}."
    )


def _left(frame: pd.DataFrame, world: World) -> str:
    own = systems_of(frame, world.name)
    told = [
        f"{one['system']} ({one['rejected']:,.0f} rejected, {one['waiting']:,.0f} still waiting)"
        for _, one in own.iterrows()
        if one["rejected"] + one["waiting"]
    ]
    return f"Jobs that never ran: {_listed(told)}." if told else ""


def _behind(frame: pd.DataFrame, world: World) -> str:
    own = systems_of(frame, world.name)
    over = own["makespan"] / run_of(frame, PLAIN_EASY)["makespan"] - 1
    late = [
        f"{name} ({percent(share)}%)" for name, share in zip(own["system"], over) if share > BEHIND
    ]
    if not late:
        return ""
    return (
        f"The last job ends more than {BEHIND:.0%} later than with {PLAIN_EASY.system} on "
        f"{PLAIN_EASY.world}: {_listed(late)}. Where that is because the queue has grown as long "
        "as jobs came, waits tell how long was simulated, too."
    )


def _beside(frame: pd.DataFrame, world: World) -> str:
    """Relate the waits to those of the system that is only told beside."""
    beside = _only_beside(world)
    if beside is None:
        return ""
    other = run_of(frame, beside)["mean_wait"]
    waits = systems_of(frame, world.name).set_index("system")["mean_wait"]
    if not other > 0:
        return ""
    told = (
        f"{short(value)} ({value / other:.3g} times) with {name}" for name, value in waits.items()
    )
    return (
        f"{beside.system} on {beside.world} has a mean wait of {short(other)}; here "
        f"it is {_listed(told)}."
    )
