"""Effects over the units of a sweep: intervals derived by hand, pairing, and what is left out."""

import json
import shutil

import pytest

from optsched.cli import run as optsched
from optsched.errors import InputError
from optsched.folders import planned, speaking
from optsched.studies import effects as effects_page
from optsched.studies.effects import ALL, Effect, Effects, effects_over
from optsched.studies.intervals import Interval
from optsched.sweeps.engines import Task, execute
from optsched.sweeps.sweep_file import read_sweep
from optsched.sweeps.sweeping import Sweep
from optsched.traces.reading import write_trace

PARTS = ["1:3", "4:6", "7:9"]
EASY, SJF = [10.0, 20.0, 30.0], [12.0, 18.0, 36.0]
"""Mean waits of the parts under two policies.

The means are 20 and 22, so the change is 10%. A part adds ``(1.1 * easy - sjf) / 20`` to the
negative of it: -0.05, 0.2 and -0.15, of which the deviation is the root of 0.0325. Half the
interval is 4.3027 (t with 2 degrees) * 0.18028 / sqrt(3) = 44.78%.
"""

HALF = 44.783
BOTH = {"jobs": PARTS, "policy": ["easy", "sjf"]}
TRACES = BOTH | {"trace": ["a.swf", "b.swf"]}
APART = {"runs": [{"jobs": "1:4", "policy": "easy"}, {"jobs": "5:9", "policy": "sjf"}]}


@pytest.fixture
def swept(make_trace, tmp_path):
    """Return a function: run a sweep of tiny traces a and b, and set figures of its runs."""
    rows = [(20 * k, 60 + 11 * k % 90, 200, 1 + (7 * k) % 9) for k in range(9)]
    for name in ("a", "b"):
        write_trace(make_trace(*rows), tmp_path / f"{name}.swf")
        rows = [*rows[:-1], (200, 9, 200, 1)]

    def run(table, figures):
        usual = {"trace": ["a.swf"], "machine": "nodes:16", "keep": "summary"}
        table, folder = usual | table, tmp_path / "out"
        table["trace"] = [str(tmp_path / one) for one in table["trace"]]
        for one in Sweep(read_sweep(table), folder).pending:
            execute(Task(one, str(folder / "runs" / one.name), "summary"))
        for run_name, values in planned(folder).items():
            file = folder / "runs" / run_name / "summary.json"
            summary = json.loads(file.read_text())
            file.write_text(json.dumps(summary | figures(values)))
        return folder

    return run


def waits(values):
    """Return the waits of a part, tenfold in trace b, which changes no effect."""
    wait = {"easy": EASY, "sjf": SJF}[values["policy"]][PARTS.index(values["jobs"])]
    return {"mean_wait": wait * (10 if "b.swf" in values["trace"] else 1)}


def effect(found, figure="mean_wait", of=ALL, run="sjf"):
    [one] = [e for e in found.effects if (e.figure, e.of, e.compared) == (figure, of, run)]
    return one


def test_the_interval_over_parts_is_students(swept):
    def figures(values):
        part = PARTS.index(values["jobs"])
        more = {"easy": 0.0, "sjf": 0.01}[values["policy"]] * part
        return waits(values) | {"utilization": 0.5 + 0.1 * part + more}

    folder = swept(BOTH, figures)
    found = effects_over(folder, "jobs")
    assert (found.baseline, found.units, found.notes) == ("easy", 3, [])
    one = effect(found)
    assert (one.before, one.after) == (20, 22)
    assert one.change[:3] == pytest.approx((10, 10 - HALF, 10 + HALF), abs=1e-3)
    assert (one.change.how, one.unit, one.verdict) == ("t, n = 3", "%", "not decided")
    # t(14) * 0.18028 / sqrt(15) = 0.0998 is the first below 0.1; with 14 parts it is 0.1041
    assert one.needed == 15
    points = effect(found, "utilization")  # 0, 1 and 2 points: 1 and t * 1 / sqrt(3)
    assert points.change[:3] == pytest.approx((1, 1 - 2.4841, 1 + 2.4841), abs=1e-4)
    assert points.unit == "points"
    assert effects_page.sentences(found)[0] == (
        "Mean wait, compared with easy: sjf +10% (−35 to 55%), not decided (about 15 parts would be"
        " needed; there are 3)."
    )
    other = effect(effects_over(folder, "jobs", "sjf"), run="easy")
    assert other.change.mean == pytest.approx(100 * (20 / 22 - 1))


def test_several_traces_have_effects_of_their_own(swept):
    found = effects_over(swept(TRACES, waits), "jobs")
    assert found.units == 6
    for trace in ("a", "b"):
        assert effect(found, of=trace).change.half == pytest.approx(HALF, abs=1e-3)
    # the waits of b are ten times those of a, and change by as much: the mean of the two changes
    # has the root of half the variance, and four degrees: t is 2.7764 in place of 4.3027
    one = effect(found)
    assert one.change.mean == pytest.approx(10)
    assert one.change.half == pytest.approx(HALF * 2.77645 / 4.30265 / 2**0.5, abs=1e-3)
    assert one.change.how == "t, n = 6"


def test_a_trace_is_a_unit_whose_parts_are_averaged_first(swept):
    def figures(values):
        more = 1.2 if values["policy"] == "sjf" and "b.swf" in values["trace"] else 1
        return {"mean_wait": waits(values)["mean_wait"] * more}

    found = effects_over(swept(TRACES, figures), "trace")
    one = effect(found)  # +10% and +32%
    assert one.change == pytest.approx((21, 10, 32, 2, "range"))
    assert (found.units, one.change.how) == (2, "range of 2")
    assert (one.verdict, one.needed) == ("not decided", None)


def test_loads_are_compared_one_by_one_and_together(swept):
    def figures(values):
        if (values["load"], values["policy"]) == (0.5, "sjf"):
            return {"mean_wait": EASY[PARTS.index(values["jobs"])] * 0.7}
        return waits(values)

    found = effects_over(swept(BOTH | {"load": [0.5, 1.0]}, figures), "jobs")
    low, high, both = (effect(found, of=of) for of in ("load=0.5", "load=1.0", ALL))
    assert low.change[:3] == pytest.approx((-30, -30, -30))
    assert low.verdict == "lower"
    assert high.change.half == pytest.approx(HALF, abs=1e-3)
    assert both.change.mean == pytest.approx(-10)
    assert both.change.half == pytest.approx(HALF / 2, abs=1e-3)  # of the same parts: no new units
    assert both.change.n == 3


def test_what_has_no_seed_is_the_same_with_each(swept):
    runs = [{"policy": "easy"}, {"policy": "window", "ties": "random", "seed": [1, 2, 3]}]
    folder = swept({"runs": runs}, lambda values: {"mean_wait": 10.0 + values.get("seed", 0)})
    one = effect(effects_over(folder, "seed"), run="window, ties=random")  # 10, 20 and 30% more
    assert one.change[:3] == pytest.approx((20, 20 - 24.841, 20 + 24.841), abs=1e-3)


def test_equal_runs_are_told_from_undecided_ones_and_a_change_from_nothing_is_not_stated(
    swept, tmp_path
):
    found = effects_over(swept(BOTH, lambda values: {"mean_wait": 0.1 + 0.2}), "jobs")
    assert effect(found).verdict == "equal"
    said = "Mean wait, compared with easy: sjf is equal in every part."
    assert effects_page.sentences(found)[0] == said
    folder = swept(BOTH, lambda v: {"mean_wait": 5.0 * (v["policy"] == "sjf")})
    found = effects_over(folder, "jobs")
    assert "sjf has no change to state, as it is 0 there" in effects_page.sentences(found)[0]
    (tmp_path / "page").mkdir()
    effects_page.fill(found, tmp_path / "page", folder)
    assert "0 there" in (tmp_path / "page" / "report.html").read_text()


def test_what_not_all_have_is_left_out_and_other_numbers_of_finished_jobs_are_named(swept):
    folder = swept(BOTH | {"policy": ["easy", "sjf", "fcfs"]}, lambda values: {"mean_wait": 1.0})
    runs = {speaking(own, ("policy", "jobs")): run for run, own in planned(folder).items()}
    shutil.rmtree(folder / "runs" / runs["sjf, jobs=4:6"])
    found = effects_over(folder, "jobs")
    assert found.units == 2
    assert found.notes == [
        "left out, failed or not finished: 1 run (sjf, jobs=4:6)",
        "left out, without jobs or one of easy, sjf, fcfs: 1 part (jobs=4:6)",
    ]
    shutil.rmtree(folder / "runs" / runs["fcfs, jobs=1:3"])
    with pytest.raises(InputError, match=r"one part with all of easy, sjf, fcfs; .* 2 runs"):
        effects_over(folder, "jobs")
    shutil.rmtree(folder)
    folder = swept(BOTH, lambda v: {"finished": 2 + (v["policy"] == "sjf" or v["jobs"] == "1:3")})
    [note] = effects_over(folder, "jobs").notes
    assert note.endswith("2 parts (jobs=4:6; jobs=7:9)")


@pytest.mark.parametrize(
    ("table", "over", "told"),
    [
        ({"jobs": PARTS}, "jobs", "nothing to compare; expected policies, solvers or settings"),
        ({"policy": ["easy", "sjf"]}, "jobs", "'jobs' does not vary; keys that do: policy"),
        ({"policy": ["easy", "sjf"]}, "policy", "nothing to compare"),
        (BOTH | {"jobs": ["1:4", "4:9"]}, "jobs", "1:4 and 4:9 share jobs"),
        (APART, "jobs", "no part with all of easy, sjf; expected two or more"),
    ],
)
def test_what_cannot_be_compared_is_refused(table, over, told, swept):
    with pytest.raises(InputError, match=told):
        effects_over(swept(table, lambda values: {}), over)


def test_the_folder_is_the_same_to_the_byte_and_refused_if_it_is_damaged(swept, tmp_path):
    sweep, folders = swept(TRACES, waits), [tmp_path / "one", tmp_path / "two"]
    for folder in folders:
        folder.mkdir()
        effects_page.fill(effects_over(sweep, "jobs"), folder, sweep)
    made, again = ({f.name: f.read_bytes() for f in folder.iterdir()} for folder in folders)
    assert made == again
    pictures = {"changes.svg", "changes-narrow.svg"}
    assert set(made) == {"effects.json", "effects.csv", "report.html", *pictures}
    (folder / "report.html").unlink()
    assert optsched(["report", str(folder)]) == 0
    assert (folder / "report.html").read_bytes() == made["report.html"]
    head, first = made["effects.csv"].decode().splitlines()[:2]
    columns = "figure,of,compared,before,after,change,low,high,n,interval,unit,verdict,needed"
    assert head == columns
    assert first.startswith("mean_wait,all,sjf,110.0,121.0,10.0,")
    assert first.endswith(",6,t,%,not decided,18")
    for old, new, told in (
        ('"over": "jobs"', '"over": 5', "over: 5; expected a text"),
        ('"n": 6', '"n": "six"', r"effects\[0\] n: 'six'; expected an integer"),
        ('"figure": "mean_wait"', '"figure": "wait"', "'wait'; expected one of mean_wait"),
        ('"over": "jobs",', '"over": "jobs"', "not JSON"),
    ):
        (folder / "effects.json").write_text(made["effects.json"].decode().replace(old, new))
        with pytest.raises(InputError, match=told):
            effects_page.report(folder)


def test_a_higher_utilization_is_better():
    change = Interval(1.0, 0.5, 1.5, 5, "t")
    effects = [Effect(name, ALL, "sjf", 1.0, 2.0, change) for name in ("mean_wait", "utilization")]
    found = Effects("seed", 5, "easy", effects, [])
    assert [effects_page.cells(one)[5].text for one in effects] == ["✕ higher", "● higher"]
    assert effects_page.columns(found)[7] == "seeds needed"
    assert effects_page.lead(found).startswith("2 of 2 differences from easy over 5 seeds can")
