"""Round durations, and time axes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from optsched.durations import DAY, HOUR, MINUTE, UNITS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis

ROUND = (
    *(1.0, 2.0, 5.0, 10.0, 15.0, 30.0),
    *(MINUTE, 2 * MINUTE, 5 * MINUTE, 10 * MINUTE, 15 * MINUTE, 30 * MINUTE),
    *(HOUR, 2 * HOUR, 3 * HOUR, 6 * HOUR, 12 * HOUR),
    *(DAY, 2 * DAY, 4 * DAY, 7 * DAY, 14 * DAY, 28 * DAY, 56 * DAY, 112 * DAY, 364 * DAY),
)
"""Round durations in seconds, each at most about three times the previous one."""

_LOG_TICKS = (
    *((1e-7, "0.1 µs"), (1e-6, "1 µs"), (1e-5, "10 µs"), (1e-4, "0.1 ms"), (1e-3, "1 ms")),
    *((1e-2, "10 ms"), (0.1, "0.1 s"), (1.0, "1 s"), (10.0, "10 s")),
    *((MINUTE, "1 min"), (10 * MINUTE, "10 min")),
    *(
        (HOUR, "1 h"),
        (6 * HOUR, "6 h"),
        (DAY, "1 d"),
        (3 * DAY, "3 d"),
        (7 * DAY, "7 d"),
        (30 * DAY, "30 d"),
    ),
    *((100 * DAY, "100 d"), (365 * DAY, "1 year"), (3650 * DAY, "10 years")),
)


def unit_for(span: float) -> tuple[float, str]:
    """Return the unit, in seconds and by name, in which to show a span of `span` seconds."""
    seconds, name = UNITS[0]
    for longer, longer_name in UNITS[1:]:
        if span >= 2.5 * longer:
            seconds, name = longer, longer_name
    return seconds, f"{name}s"


def at_least(seconds: float) -> float:
    """Return the shortest round duration that is not below `seconds`."""
    return next((duration for duration in ROUND if duration >= seconds), seconds)


def time_axis(axes: Axes, begin: float, end: float, unit: tuple[float, str]) -> None:
    """Show the time from `begin` to `end` along x, in seconds since the first submission.

    Ticks are at round durations in a unit of `unit_for`. Parts of days are decimal, so that a
    position on the axis is one number.
    """
    from matplotlib.ticker import MultipleLocator, ScalarFormatter

    seconds, name = unit
    axes.set_xlabel(f"{name} since the first submission")
    axes.set_xlim(begin / seconds, end / seconds)
    if seconds < DAY:
        axes.xaxis.set_major_locator(MultipleLocator(at_least((end - begin) / 10) / seconds))
    axes.xaxis.set_major_formatter(ScalarFormatter(useOffset=False))


def log_ticks(axis: Axis, low: float, high: float, *, zero: bool = False) -> None:
    """Put ticks from 0.1 microseconds to ten years on a logarithmic axis of seconds, and at 0.

    The scale of the axis is set. Its range is in seconds; `zero` says whether it includes 0.
    """
    from matplotlib.ticker import NullLocator

    ticks = [(place, text) for place, text in _LOG_TICKS if low <= place <= high]
    if zero:
        ticks.insert(0, (0.0, "0"))
    axis.set_ticks([place for place, _ in ticks], [text for _, text in ticks])
    axis.set_minor_locator(NullLocator())
