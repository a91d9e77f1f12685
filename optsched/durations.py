"""Durations in words and in short, with a suitable unit, and moments with their time zone."""

from datetime import datetime

MINUTE, HOUR, DAY = 60.0, 3600.0, 86_400.0

UNITS = ((1.0, "second"), (MINUTE, "minute"), (HOUR, "hour"), (DAY, "day"))
"""Units in words, in seconds and by name."""

_SHORT = ((1e-6, "µs"), (1e-3, "ms"), (1.0, "s"), (MINUTE, "min"), (HOUR, "h"), (DAY, "d"))


def spoken(seconds: float) -> str:
    """Return a duration in its largest unit, ``90.0`` as ``1.5 minutes`` for instance."""
    if 0 < seconds < 0.01:
        return short(seconds)
    unit, name = next((u for u in reversed(UNITS) if seconds >= u[0]), UNITS[0])
    amount = _three_digits(seconds / unit)
    return f"{amount} {name}" if amount == "1" else f"{amount} {name}s"


def short(seconds: float) -> str:
    """Return a duration with three digits in a suitable unit, from µs to d: ``1.5 min``."""
    unit, name = next((u for u in reversed(_SHORT) if seconds >= u[0]), _SHORT[0])
    amount = seconds / unit
    return "0 s" if amount == 0 else f"{_three_digits(amount)} {name}"


def _three_digits(amount: float) -> str:
    return f"{amount:,.0f}" if amount >= 99.95 else f"{amount:.3g}"


def moment(seconds: float, *, is_short: bool = False) -> str:
    """Return a time since 1970 as date and time of this machine, with the offset of its zone.

    In short without seconds: ``2026-11-22 17:15+01:00``.
    """
    then = datetime.fromtimestamp(round(seconds)).astimezone()
    return then.isoformat(" ", "minutes") if is_short else then.isoformat()
