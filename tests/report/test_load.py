"""The load of a run over time as steps, its waits, and axes of durations."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.figure import Figure
from report.looks import heading, texts

from optsched.numbers import short, spoken
from optsched.report import load
from optsched.report.load import Steps, at_least, log_ticks, thinned, unit_for
from optsched.report.pictures.load_and_waits import Waits, ecdf, size_classes

changes = st.lists(st.tuples(st.integers(0, 5000), st.integers(-20, 20)), min_size=1, max_size=200)


@given(changes, st.integers(0, 18))
def test_bins_keep_the_integral_and_each_has_the_quantiles_of_its_own_seconds(pairs, number):
    steps = Steps.from_changes(*zip(*pairs), 0.0, 5001.0)
    whole = sum(amount * (5001 - time) for time, amount in pairs)  # of every change alone
    assert steps.integral(5001.0) == pytest.approx(whole)
    bins = steps.binned(20)
    assert len(bins.mean) <= 20
    assert (bins.mean * np.diff(bins.edges)).sum() == pytest.approx(whole)
    number = min(number, len(bins.mean) - 1)
    seconds = np.arange(bins.edges[number], bins.edges[number + 1])
    values = steps.values[np.searchsorted(steps.times, seconds, side="right") - 1]
    for found, share in ((bins.low[number], 0.1), (bins.high[number], 0.9)):
        assert found in values
        assert np.mean(values < found) <= share + 1e-9
        assert np.mean(values <= found) >= share - 1e-9


@given(st.lists(st.floats(1e-6, 1e6), min_size=1, max_size=500, unique=True))
def test_thinning_keeps_the_ends_and_the_last_point_of_each_cell_up_to_its_limit(places):
    x = np.array([1.0, 1.1, 1.2, 9.0, 50.0, 99.0, 100.0])
    assert x[thinned(x, 4)].tolist() == [1.0, 1.2, 9.0, 100.0]
    assert thinned(x, 7).tolist() == list(range(7))
    assert thinned(x[:0], 7).tolist() == []
    kept = thinned(np.sort(np.array(places)), 50)
    assert len(kept) <= 50
    assert (kept[0], kept[-1]) == (0, len(places) - 1)
    assert (np.diff(kept) > 0).all()


def test_what_runs_and_what_waits_by_hand(small_run):
    steps = load.processors_in_use(small_run)
    assert steps.times.tolist() == [0, 9, 39, 60]
    assert (steps.values.tolist(), steps.end) == ([4, 7, 4, 8], 80)
    bins = steps.binned(5)  # short functions are not averaged
    assert (bins.width, bins.edges.tolist()) == (0, [0, 9, 39, 60, 80])
    jobs, work = load.waiting_jobs(small_run), load.waiting_work(small_run)
    assert dict(zip(jobs.times.tolist(), jobs.values.tolist())) == {0: 0, 5: 1, 9: 1, 60: 0}
    assert work.values.tolist() == [0, 160, 160, 0]
    assert load.subject(small_run) == "small: easy on nodes:10"


def test_jobs_that_never_start_wait_or_are_rejected_and_those_without_end_run_on(interrupted_run):
    run = interrupted_run
    assert load.span(run) == (0, 100)
    assert load.waiting_jobs(run).values[-1] == 1
    assert load.waiting_work(run).values[-1] == 8 * 50
    assert load.processors_in_use(run).values[-1] == 8
    figure = Waits().figure(run)
    assert max(figure.axes[0].lines[0].get_ydata()) == 2 / 3
    assert heading(figure).endswith("1 never")


@given(st.lists(st.integers(0, 10**6), min_size=1, max_size=100), st.integers(0, 10**6))
def test_shares_are_those_of_the_jobs_that_waited_no_longer(times, at):
    values, shares = ecdf(np.array(times, dtype=float))
    upto = np.searchsorted(values, at, side="right")
    share = shares[upto - 1] if upto else 0.0
    assert share == np.mean(np.array(times) <= at)
    assert shares[-1] == 1


def test_size_classes_cover_the_machine_without_overlap():
    classes = size_classes(np.arange(1, 129), 128)
    assert [(found.low, found.high) for found in classes] == [(1, 1), (2, 2), (3, 16), (17, 128)]
    assert np.sum([found.jobs for found in classes], axis=0).tolist() == [1] * 128
    assert size_classes(np.array([100]), 128)[0].low == 17
    assert [c.high for c in size_classes(np.array([1, 2]), 2)] == [1, 2]


def test_waits_of_zero_are_on_the_axis_and_said_like_the_longest(small_run):
    figure = Waits().figure(small_run)
    [axes] = figure.axes
    assert axes.get_xlim()[0] == 0
    assert axes.get_xticklabels()[0].get_text() == "0"
    assert heading(figure).startswith("66.7% of the jobs started at once")
    assert heading(figure).endswith("all within 55 seconds")
    x, y = axes.lines[0].get_data()
    assert (x[:2].tolist(), y[1]) == ([0, 0], 2 / 3)


@pytest.mark.parametrize(
    ("in_words", "seconds", "words"),
    [
        (spoken, 0.5, "0.5 seconds"), (spoken, 1, "1 second"), (spoken, 90, "1.5 minutes"),
        (spoken, 3600, "1 hour"), (spoken, 7 * 86_400, "7 days"), (spoken, 27_335.35, "7.59 hours"),
        (short, 0, "0 s"), (short, 2.311e-7, "0.231 µs"), (short, 2.311e-5, "23.1 µs"),
        (short, 9.998e-4, "1,000 µs"), (short, 0.05, "50 ms"), (short, 1.977, "1.98 s"),
        (short, 90, "1.5 min"), (short, 27_335.35, "7.59 h"), (short, 2000 * 86_400, "2,000 d"),
    ],
)  # fmt: skip
def test_durations_have_three_digits_and_a_unit(in_words, seconds, words):
    assert in_words(seconds) == words


def test_units_and_round_durations_grow_with_what_is_shown():
    spans = (1, 149, 150, 9000, 2.5 * 86_400)
    names = ["seconds", "seconds", "minutes", "hours", "days"]
    assert [unit_for(span)[1] for span in spans] == names
    assert [at_least(1.0), at_least(61.0), at_least(2.1 * 86_400)] == [1.0, 120.0, 4 * 86_400.0]
    assert at_least(10.0**9) == 10.0**9


def test_long_axes_have_a_tick_near_their_end_and_every_decade_has_one():
    def ticks(low, high):
        axes = Figure().subplots()
        axes.set_xscale("log")
        log_ticks(axes.xaxis, low, high)
        return texts(axes.get_xticklabels())

    for days, last in ((6.6, "3 d"), (143, "100 d"), (2000, "1 year")):
        assert ticks(1.0, days * 86_400)[-1] == last
    assert all(ticks(10.0**power, 10.0 ** (power + 1)) for power in range(-7, 7))
