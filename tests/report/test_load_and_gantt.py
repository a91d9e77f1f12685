"""The load of a run over time, its waits, and Gantt charts, in pictures and to zoom."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.figure import Figure
from report.looks import heading, section, texts

from optsched import save, simulate
from optsched.numbers import short, spoken
from optsched.report import load, run_page, style
from optsched.report.load import ROUND, Steps, at_least, log_ticks, thinned, unit_for
from optsched.report.page import render
from optsched.report.pictures import gantt
from optsched.report.pictures.gantt import Gantt, Rectangles, Window, chart_data
from optsched.report.pictures.load_and_waits import Waits, ecdf, size_classes

changes = st.lists(st.tuples(st.integers(0, 5000), st.integers(-20, 20)), min_size=1, max_size=200)


@given(changes, st.integers(0, 18))
def test_bins_keep_the_integral_and_each_has_the_quantiles_of_its_own_seconds(pairs, number):
    times, amounts = zip(*pairs)
    steps = Steps.from_stays(times, [5001.0] * len(pairs), amounts, 0.0, 5001.0)
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


def test_units_round_durations_and_ticks_grow_with_what_is_shown():
    spans = (1, 149, 150, 9000, 2.5 * 86_400)
    names = ["seconds", "seconds", "minutes", "hours", "days"]
    assert [unit_for(span)[1] for span in spans] == names
    assert [at_least(1.0), at_least(61.0), at_least(2.1 * 86_400)] == [1.0, 120.0, 4 * 86_400.0]
    assert at_least(10.0**9) == 10.0**9

    def ticks(low, high):
        axes = Figure().subplots()
        axes.set_xscale("log")
        log_ticks(axes.xaxis, low, high)
        return texts(axes.get_xticklabels())

    for days, last in ((6.6, "3 d"), (143, "100 d"), (2000, "1 year")):
        assert ticks(1.0, days * 86_400)[-1] == last
    assert all(ticks(10.0**power, 10.0 ** (power + 1)) for power in range(-7, 7))


def shown(run, part):
    return gantt.rectangles(gantt.schedule_of(run), part)


def test_rectangles_by_hand_carry_the_numbers_of_their_jobs(small_run):
    found = shown(small_run, Window(0, 80, 10))
    assert found.job.tolist() == [0, 2, 1]
    assert list(zip(found.begin, found.end, found.low, found.high)) == [
        (0, 60, 0, 4),
        (9, 39, 4, 7),
        (60, 80, 0, 8),
    ]
    for part, jobs in (((0, 9, 10), [0]), ((60, 80, 10), [1]), ((0, 80, 4), [0, 1])):
        assert shown(small_run, Window(*part)).job.tolist() == jobs
    [axes] = Gantt().figure(small_run).axes
    numbers = {text.get_text(): text.get_position() for text in axes.texts}
    assert numbers == {"1": (30, 2), "3": (24, 5.5), "2": (70, 4)}


def test_the_area_of_all_rectangles_is_the_work(random_run):
    run = random_run(300)
    found = shown(run, Window(-np.inf, np.inf, 64))
    area = ((found.end - found.begin) * (found.high - found.low)).sum()
    assert area == pytest.approx(((run.end - run.start) * run.trace.processors).sum())
    assert len(found.job) > len(run.trace)


def test_of_a_long_run_a_busy_window_of_a_round_length_is_shown(random_run):
    run = random_run(2000)
    part = gantt.window(run, most=200)
    assert part.end - part.begin in ROUND
    assert part.processors == 64
    found = shown(run, part)
    assert 0 < len(found.job) <= 200
    held = np.minimum(found.end, part.end) - np.maximum(found.begin, part.begin)
    used = (held * (found.high - found.low)).sum() / (64 * (part.end - part.begin))
    assert used >= 0.9 * run.summary["utilization"]
    words = heading(Gantt().figure(run, most=200))
    assert words.startswith("a busy time of ")
    assert " of 2,000 jobs" in words


def test_many_thin_jobs_are_shown_on_the_first_processors_only(make_trace, monkeypatch):
    monkeypatch.setattr(gantt, "ROWS", 8)
    narrow = [(10 * i, 1000, 1000, 2) for i in range(400)]
    for rows, processors in ((narrow, 16), ([*narrow, (0, 9000, 9000, 500)], 1000)):
        run = simulate(make_trace(*rows), "nodes:1000", "fcfs")
        part = gantt.window(run, most=100)
        assert part.processors == processors
        found = shown(run, part)
        assert 8 < len(found.job) <= 100
        assert found.low.max() < processors


def test_a_moment_of_a_very_long_run_is_found(make_trace):
    """A year of nothing but 64 jobs in one hour: the window is a part of that hour."""
    crowd = [(10**7 + 10 * i, 300, 300, 1) for i in range(64)]
    trace = make_trace((0, 1, 1, 1), *crowd, (3 * 10**7, 1, 1, 1), name="year")
    run = simulate(trace, "nodes:64", "fcfs")
    part = gantt.window(run, most=40)
    assert 10 < len(shown(run, part).job) <= 40
    assert 10**7 - 3600 <= part.begin < part.end <= 10**7 + 3600


@pytest.mark.parametrize("runtime", [1, 500])
def test_where_an_instant_is_too_much_only_the_first_processors_are_shown(make_trace, runtime):
    trace = make_trace(*((0, runtime, runtime, 1) for _ in range(64)), name="ones")
    run = simulate(trace, "nodes:64", "fcfs")
    assert gantt.window(run, most=20).processors == 16
    for drawn in (Gantt().figure(run, most=20), run.plot.gantt(days=(0, 1), most=20)):
        assert "16 of 64 jobs on the first 16 of 64 processors" in heading(drawn)
    assert heading(Gantt().figure(run, most=64)).startswith("all 64 jobs")


def test_neighbors_differ_in_color_and_a_job_has_one():
    i, row = np.divmod(np.arange(100), 10)
    found = Rectangles(row * 10 + i, i + 0.0, i + 1.0, row, row + 1)
    color = gantt.colors(found, 10, 10).reshape(10, 10)
    assert (color[1:] != color[:-1]).all()
    assert (color[:, 1:] != color[:, :-1]).all()
    assert set(color.ravel()) <= set(range(len(style.FILLS)))

    rows = [(0, 0.0, 5.0, 0, 2), (1, 0.0, 5.0, 2, 4), (0, 0.0, 5.0, 4, 6), (2, 5.0, 9.0, 0, 6)]
    color = gantt.colors(Rectangles(*map(np.array, zip(*rows))), 9, 6)
    assert color[0] == color[2]
    assert len({int(color[0]), int(color[1]), int(color[3])}) == 3


def test_the_caption_counts_jobs_and_says_which_never_started(interrupted_run, make_trace):
    told = heading(Gantt().figure(interrupted_run))
    assert told == "all 2 jobs that started; 2 never started"
    single = simulate(make_trace((0, 60, 60, 4)), "nodes:10", "easy")
    assert heading(Gantt().figure(single)) == "1 job that started"


def jobs(starts, places=None):
    """Return a table of jobs of 10 s on a processor; all are submitted at 5 s."""
    count = len(starts)
    start = np.array(starts, dtype=float)
    return {
        "job_id": np.arange(1, count + 1),
        "user": np.arange(count) % 2,
        "submission_time": np.full(count, 5.0),
        "requested_number_of_resources": np.full(count, 1),
        "starting_time": start,
        "finish_time": start + 10,
        "allocated_resources": np.array(places or ["0"] * count, dtype=object),
    }


def test_a_chart_shows_a_short_run_whole_if_it_has_places():
    data = chart_data(jobs([25.5, 5, np.nan], places=["0-3 7", "4", ""]))
    assert data["about"] == "All 2 jobs"
    assert (data["job"], data["places"]) == ([2, 1], ["4", "0-3 7"])
    assert data["begin"] == data["wait"] == [0, 20.5]
    assert data["length"] == [10, 10]
    assert [data["users"][place] for place in data["user"]] == ["1", "0"]
    assert data["period"] == data["view"] == [0, 30.5]
    for without in (jobs([np.nan, np.nan]), {"job_id": np.array([1])}):
        assert chart_data(without) is None


def test_a_chart_of_a_long_run_shows_the_busiest_period():
    # starts every 100 s; 4 of them, from 1005 s on, every 10 s
    starts = [5 + 100 * k for k in range(10)] + [1005, 1015, 1025, 1035, 1135]
    data = chart_data(jobs(starts), most=3)
    assert (data["period"], data["job"]) == ([1000, 1030], [11, 12, 13])
    assert data["about"] == "The busiest period: 3 of 15 jobs"
    places = ["0 2 4 6"] * 6  # intervals count like jobs
    assert len(chart_data(jobs(range(5, 11), places), most=8)["job"]) < 6
    table = jobs([5, 1005, 1010, 1015, 1020])
    table["finish_time"][0] = np.nan  # runs on into the period, and to the end
    data = chart_data(table, most=2)
    assert (data["period"][0], data["job"][0], data["length"][0]) == (1000, 1, 1025)
    table["finish_time"][0] = np.inf  # times that are not finite are none
    table["submission_time"][1:] = np.nan
    assert (chart_data(table)["job"], chart_data(table)["length"]) == ([1], [0])


def test_names_of_users_do_not_end_the_data_of_a_chart(make_trace, tmp_path):
    trace = make_trace(*((0, 60, 60, 4) for _ in range(2)))
    texts = {"user_name": np.array(["</script><script>alert(1)", "anna\n"], dtype=object)}
    folder = save(simulate(trace.changed(texts=texts), "nodes:4", "fcfs"), tmp_path / "run")
    page = run_page.page(folder)
    [figure] = [figure for figure in section(page, "Pictures") if figure.charts]
    assert figure.name == "gantt"
    assert figure.charts[0]["users"] == ["</script><script>alert(1)", "anna\\n"]
    text = render(page)
    assert text.count("</script>") == 2
    assert "\\u003c/script>\\u003cscript>alert(1)" in text
