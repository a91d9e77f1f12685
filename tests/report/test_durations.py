from __future__ import annotations

import pytest
from matplotlib.figure import Figure

from optsched.numbers import short, spoken
from optsched.report.load import ROUND, at_least, log_ticks, unit_for


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0.5, "0.5 seconds"),
        (1, "1 second"),
        (90, "1.5 minutes"),
        (3600, "1 hour"),
        (7 * 86_400, "7 days"),
        (27_335.35, "7.59 hours"),
    ],
)
def test_durations_in_words(seconds, words):
    assert spoken(seconds) == words


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0, "0 s"),
        (2.311e-7, "0.231 µs"),
        (2.311e-5, "23.1 µs"),
        (9.998e-4, "1,000 µs"),
        (0.05, "50 ms"),
        (1.977, "1.98 s"),
        (90, "1.5 min"),
        (27_335.35, "7.59 h"),
        (2000 * 86_400, "2,000 d"),
    ],
)
def test_short_durations_have_three_digits(seconds, words):
    assert short(seconds) == words


@pytest.mark.parametrize(
    ("span", "name"),
    [(1, "seconds"), (149, "seconds"), (150, "minutes"), (9000, "hours"), (2.5 * 86_400, "days")],
)
def test_units(span, name):
    assert unit_for(span)[1] == name


def test_round_durations_increase_and_are_found():
    assert list(ROUND) == sorted(set(ROUND))
    assert [at_least(1.0), at_least(61.0), at_least(2.1 * 86_400)] == [1.0, 120.0, 4 * 86_400.0]
    assert at_least(10.0**9) == 10.0**9


@pytest.mark.parametrize(("days", "last"), [(6.6, "3 d"), (143, "100 d"), (2000, "1 year")])
def test_long_axes_have_a_tick_near_their_end(days, last):
    axes = Figure().subplots()
    axes.set_xscale("log")
    log_ticks(axes.xaxis, 1.0, days * 86_400)
    assert axes.get_xticklabels()[-1].get_text() == last


def test_every_decade_has_a_tick():
    for power in range(-7, 7):
        axes = Figure().subplots()
        axes.set_xscale("log")
        log_ticks(axes.xaxis, 10.0**power, 10.0 ** (power + 1))
        assert len(axes.get_xticks()) >= 1
