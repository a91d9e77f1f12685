"""The kit of studies: intervals that keep their word, one rule for verdicts, numbers of pages.

The pages, data and plans of the full studies in `studies/` belong together.
"""

import json
import math
import os
import re
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from optsched.cli import INTERRUPTED
from optsched.cli import run as optsched
from optsched.cli.pages import verdicts
from optsched.content import bundled
from optsched.errors import InputError
from optsched.numbers import numbers_in
from optsched.studies import claims, intervals
from optsched.studies.claims import FAILS, HOLDS, OPEN, Region, judge, named, read_claims
from optsched.studies.effects import average
from optsched.studies.figures import Column, claims_panel, specification_curve
from optsched.studies.folder import StudyFolder, check_page, evaluate, page_mistakes
from optsched.studies.intervals import Interval
from optsched.studies.running import labelled, looked_at, study, study_runs

VALUES = {
    "gain": 16.6, "gain±": (16.6, -1.93, 34.6), "gain.interval": (-1.93, 34.6), "worse": -6.47,
    "jobs": 21_030_678, "verdict": "does not hold", "so": True, "not-so": False,
}  # fmt: skip


RIGHT = """
1. falls by 17%<!--gain-->, or 16.6%<!--gain-->, by 17% (−2 to 35%)<!--gain±-->
2. by **17%**<!--gain-->
(-1.9 to 35%<!--gain.interval-->)
21.0 million<!--jobs-->, exactly 21,030,678<!--jobs-->, about 21,000,000<!--jobs-->; it **does not
hold**<!--verdict-->; falls by 6.5%<!--abs worse-->, that is −6.5%<!--worse-->
Table II of 2014, Figure 3, `x = 5`, [a link](http://x.org/17), 95% intervals, 42<!--fixed-->
three things<!--so-->
<!-- begin t -->

| a |

<!-- end -->
"""


@pytest.mark.parametrize(
    ("text", "mistake"),
    [
        (RIGHT, None),
        ("\nby 16.5%<!--gain-->", "2: 16.5: gain is 16.6"),
        ("by 17% (−1 to 35%)<!--gain±-->", "1: 17, −1, 35: gain± is 16.6, -1.93, 34.6"),
        ("by (−2 to 35%)<!--gain±-->", "no number before gain±"),
        ("falls by 6.5%<!--worse-->", "worse is -6.47"),
        ("it holds<!--verdict-->", "expected 'does not hold' before verdict"),
        ("by 17% of 3 them", "1: 3 has no name"),
        ("by 17%<!--gian-->", "unknown value 'gian'; did you mean gain"),
        ("so it is<!--not-so-->", "not-so is not true"),
        ("five<!--gain-->", "gain is 16.6"),
        ("much<!--gain-->", "no number before gain"),
        ("much<!--fixed-->", "fixed, but there is no number"),
        ("<!-- begin t -->\n\n| b |\n\n<!-- end -->", "1: table t differs"),
        ("<!-- begin u -->\n<!-- end -->", "1: unknown table 'u'"),
        ("<!-- begin t -->\n\n| a |", "<!-- begin t --> alone"),
    ],
)
def test_right_pages_have_no_mistakes_and_wrong_ones_have_them_with_their_lines(text, mistake):
    found = list(page_mistakes(text, VALUES, {"t": "| a |"}))
    assert any(mistake in one for one in found) if mistake else not found, found


def test_numbers_are_as_precise_as_they_are_written():
    written = numbers_in("some 1,200 to −3.50%, twelve of 10-20, v2.0, 3x, 42.6 min and 1 h, ±4")
    assert [(one.value, one.half, one.unit) for one in written] == [
        (1200, 50, ""), (-3.5, 0.005, "%"), (12, 0, ""), (10, 0.5, ""), (20, 0.5, ""),
        (42.6, 0.05, "min"), (1, 0.5, "h"), (4, 0.5, ""),
    ]  # fmt: skip


def test_t_is_that_of_the_textbook_and_from_twenty_units_on_intervals_lean_to_the_tail():
    # Student 1908: the additional hours of sleep of ten patients
    sleep = [1.2, 2.4, 1.3, 1.3, 0.0, 1.0, 1.8, 0.8, 4.6, 1.4]
    found = intervals.mean_of(sleep)
    assert found[:3] == pytest.approx((1.58, 0.7001, 2.4599), abs=1e-3)
    assert found.how == "t, n = 10"
    found = intervals.mean_of(np.random.default_rng(3).lognormal(size=40))
    assert found.high - found.mean > 1.3 * (found.mean - found.low) > 0
    assert found.how == "BCa, n = 40"
    assert intervals.reduction([0] * 29 + [1], [1] * 30).how == "n = 30"  # some means are 0


def test_intervals_and_noise_floors_say_what_they_are():
    pair, three = intervals.mean_of([1.0, 2.0]), intervals.range_of([3.0, 1.0, 2.0])
    assert pair.how == "n = 2"
    assert math.isnan(pair.low)
    assert three == (2.0, 1.0, 3.0, 3, "range")
    assert three.how == "range of 3"
    assert Region(0).verdict(three) == OPEN  # it decides nothing
    assert intervals.exactly(5).how == "exact"
    assert (intervals.exactly(5) * -2 + 1)[:3] == (-9, -9, -9)
    floor = intervals.noise_floor([1.0, 3.0, 2.0])  # what one more run stays within
    assert (floor.mean, floor.low, floor.high, floor.n) == (2, 1, 3, 3)
    assert floor.smallest == pytest.approx(4.3027 * (4 / 3) ** 0.5, rel=1e-4)


def test_a_reduction_that_is_the_same_everywhere_has_no_width():
    before = np.array([10.0, 20.0, 70.0])
    assert intervals.reduction(before, 0.8 * before)[:3] == pytest.approx((0.2, 0.2, 0.2))
    both = np.column_stack([before, before])
    found = intervals.reduction(both, both * [0.8, 0.5], [-1, 1])
    assert found[:3] == pytest.approx((0.3, 0.3, 0.3))
    assert math.isnan(intervals.reduction([0.0, 0.0, 0.0], [1.0, 2.0, 3.0]).low)


@pytest.mark.parametrize("n", [3, 6])
@pytest.mark.parametrize("quantity", ["mean", "reduction"])
def test_intervals_hold_the_truth_as_often_as_they_promise(quantity, n):
    """In 95% for normal values; skewed ones take more units than studies have."""
    rng = np.random.default_rng(n)

    def coverage(before, after, truth):
        if quantity == "mean":
            found = [intervals.mean_of(one) for one in before]
        else:
            found = [intervals.reduction(*pair) for pair in zip(before, after)]
        return np.mean([one.low <= truth <= one.high for one in found])

    before = rng.normal(10, 2, (1500, n))
    after = 0.8 * before + rng.normal(0, 1, before.shape)
    truth = 10 if quantity == "mean" else 0.2
    assert coverage(before, after, truth) == pytest.approx(0.95, abs=0.017)
    before = rng.lognormal(size=(1500, n))
    after = before * np.exp(rng.normal(-0.2, 0.5, before.shape))
    truth = np.exp(0.5) if quantity == "mean" else 1 - np.exp(-0.2 + 0.125)
    assert 0.8 < coverage(before, after, truth) < 0.93


def test_differences_of_independent_quantities_and_averages_have_the_deviation_of_each():
    one, other = Interval(5, 3, 8, 9, "t"), Interval(1, 0, 1.5, 4, "t")
    found = intervals.difference(one, other)
    assert found[:3] == pytest.approx((4, 4 - math.hypot(2, 0.5), 4 + math.hypot(3, 1)))
    assert (found.n, found.kind) == (4, "t")
    # Welch: standard errors of 1 and 2 halve to sqrt(1 + 4) / 2; (1 + 16 / 7) of degrees 3 and 7
    one, other = (Interval(8, 8 - h, 8 + h, n, "t") for h, n in ((3.18245, 4), (4.72925, 8)))
    found = average([one, other + 2])
    degrees = (1 + 4) ** 2 / (1 / 3 + 16 / 7)  # 9.55: t is 2.2427
    assert (found.mean, found.how) == (9, "t, n = 12")
    assert found.half == pytest.approx(stats.t.ppf(0.975, degrees) * 5**0.5 / 2, rel=1e-5)
    assert average([one]) is one
    assert average([one, intervals.mean_of([1.0, 2.0])]).how == "n = 6"
    assert average([one._replace(low=8, high=8)] * 2)[:3] == (8, 8, 8)


@pytest.mark.parametrize(
    ("region", "found", "verdict"),
    [
        (Region(0), (2, 1, 3), HOLDS), (Region(0), (-2, -3, -1), FAILS),
        (Region(0), (1, -1, 3), OPEN), (Region(0), (1, math.nan, math.nan), OPEN),
        (Region(0), (0, 0, 0), FAILS), (Region(0, with_low=True), (0, 0, 0), HOLDS),
        (Region(-1, 1), (0, -0.5, 0.5), HOLDS), (Region(-1, 1), (0, -2, 2), OPEN),
        (Region(-1, 1), (3, 1, 5), FAILS), (Region(-1, 1, with_high=True), (1, 1, 1), HOLDS),
    ],
)  # fmt: skip
def test_one_rule_gives_every_verdict(region, found, verdict):
    assert region.verdict(Interval(*found, 5, "t")) == verdict


CLAIMS = """
[readings]
main = "as it is"
other = "otherwise"
[[groups]]
group = "Waits"
of = "gain"
above = 0.0
claims = [
    { key = "one", text = "It falls", size = 2.0, published = 5 },
    { key = "two", text = "As told", size = 3, above = "published", published = "told" },
    { key = "three", text = "It is seen", not_judged = "no data" },
    { key = "four", text = "Main only", size = 1, readings = ["main"], unit = "h" },
]
"""


def judged(tmp_path, text=CLAIMS):
    (tmp_path / "claims.toml").write_text(text)

    def call(name, *reading, size):
        if name == "told":
            return 10 * size
        return Interval(size, size - 1, size + 1, 5, "t") * (1 if reading == ("main",) else -1)

    return judge(read_claims(tmp_path / "claims.toml"), call)


def test_claims_are_judged_under_each_reading(tmp_path):
    found = judged(tmp_path)
    verdicts = {key: one.verdict() for key, one in found.items()}
    assert verdicts == {"one": HOLDS, "two": FAILS, "three": "not judged", "four": OPEN}
    assert found["one"]._replace(found={}).verdict() == "not judged"  # it was not run
    assert found["one"].verdict("other") == FAILS
    assert (found["two"].region.low, found["two"].published) == (30, 30)
    assert list(found["four"].found) == ["main"]
    values = named({"x": np.float64(2), "noise": intervals.noise_floor([1, 3])}, found)
    assert (values["claims"], values["claims.hold"], values["claims.unjudged"]) == (4, 1, 1)
    assert values["one±"] == (2, 1, 3)
    assert values["one@other.verdict"] == FAILS
    assert (values["one.published"], values["x"], values["noise.range"]) == (5, 2, (1, 3))


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ('of = "gain"', "", r"groups\[1\].claims\[1\] of: missing"),
        ("above = 0.0", "", r"claims\[1\]: no region; expected above"),
        ('key = "two"', 'key = "one"', r"claims\[2\].key: 'one' is that of another claim"),
        ('["main"]', '["mian"]', "unknown reading 'mian'; did you mean main"),
        ("[readings]", "[reading]", "unknown key 'reading'; did you mean readings"),
        ("above = 0.0", 'above = "zero"', r"claims\[1\] above: 'zero'; expected an integer or a n"),
        ("[[groups]]", "[groups]", "groups: .*; expected a list"),
    ],
)
def test_what_is_wrong_with_claims_is_named(old, new, told, tmp_path):
    with pytest.raises(InputError, match=told):
        judged(tmp_path, CLAIMS.replace(old, new, 1))


def texts(figure):
    return {text.get_text() for axes in figure.axes for text in axes.texts}


def test_a_panel_has_a_row_for_each_claim_a_shape_for_each_verdict_and_no_more(tmp_path):
    figure, narrow = (claims_panel(judged(tmp_path), narrow=narrow) for narrow in (False, True))
    assert {"It falls", "Main only", "2.0 [1.0, 3.0]"} <= texts(figure)
    assert "It is seen" not in texts(figure)
    assert len(figure.axes) == 2  # percent, and hours
    assert narrow.get_figwidth() * 96 <= 390 - 2 * 12
    assert "paper 5.0" in texts(narrow)
    marks = {line.get_marker() for line in figure.axes[0].lines} - {"None"}
    assert marks - {">"} == {"D", "o", "s"}
    one = judged(tmp_path)["one"]._replace(published=None)
    figure = claims_panel({"one": one._replace(unit="times")}, narrow=True)
    legend = [text.get_text() for text in figure.legends[0].texts]
    assert legend == ["holds", "where the claim is true"]
    assert figure.axes[0].get_xlabel() == "times (axis compressed above 1)"
    far = one._replace(found={"main": Interval(40.0, 30.0, 50.0, 5, "t")})
    for shown, scale in (({"one": one, "far": far}, "asinh"), ({"far": far}, "linear")):
        assert claims_panel(shown).axes[0].get_xscale() == scale


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (-0.0062, "%", "0.0%"), (0.32, "points", "0.3"), (16.6, "%", "17%"), (0.0, "%", "0%"),
        (0.0111, "times", "0.01"), (1.0, "times", "1.00"), (29.1, "times", "29"),
        (0.0062, "GPUs", "0.0"), (None, "%", "–"),
    ],
)  # fmt: skip
def test_digits_below_the_noise_are_not_written(value, unit, text):
    assert claims.without_noise(value, unit) == text


@pytest.mark.parametrize(
    ("ends", "unit", "edges", "text"),
    [
        ((0.426, 0, 0.737), "times", (-math.inf, 1), "0.43 [0, 0.74]"),
        ((1.554, 0.997, 2.124), "times", (1, math.inf), "1.554 [0.997, 2.124]"),
        ((21.9, 11.1, 32.8), "%", (100 / 3, math.inf), "21.9 [11.1, 32.8]"),
        ((0.2, -0.04, 0.44), "%", (0, math.inf), "0.20 [−0.04, 0.44]"),
    ],
)
def test_an_end_does_not_round_to_an_edge_beyond_which_it_lies(ends, unit, edges, text):
    assert claims.with_interval(Interval(*ends, 6, "t"), unit, edges) == text


def test_a_specification_curve_sorts_effects_and_shows_choices():
    columns = [
        Column(Interval(mean, mean - 1, mean + 1, 5, "t"), frozenset(choices))
        for mean, choices in ((3, "a"), (1, ""), (-200, "ab"))
    ]
    figure = specification_curve(columns, ["a", "b"], "gain", limits=(-10, 10))
    effect, dots = figure.axes
    assert [text.get_text() for text in effect.texts] == ["main reading", "3 times"]
    places = {tuple(line.get_xdata()) for line in dots.lines}
    assert places == {(0, 2), (0,)}


PLAN = """
title = "EASY beside FCFS"
paper = "none"
keep = "summary"
machine = "nodes:256"
trace = "samples/sample-256.swf"
[lists]
policies = ["fcfs", "easy"]
[axes.part]
first = { jobs = "1:100" }
second = { jobs = "101:200" }
third = { jobs = "201:300", lists = { policies = ["easy", "fcfs"] } }
[axes.kind]
usual = {}
[[runs]]
part = "all"
kind = "usual"
policy = "@policies"
[[runs]]
part = ["first"]
policy = "easy"
settings = {}
label = { kind = "again" }
[quick]
runs = [{ part = "first", policy = "easy" }]
[quick.axes.part]
first = { jobs = "1:20" }
"""
STATED = """
[readings]
mean = "as a mean"
p95 = "at its 95th percentile"
[[groups]]
group = "Jobs wait less"
of = "gain"
above = 0
claims = [{ key = "gain", text = "with EASY", published = 50 }]
"""
CODE = '''
"""What EASY gains."""
from optsched.studies.intervals import reduction

def gain(runs, reading):
    own = runs[runs["kind"] == "usual"]
    waits = own.pivot(index="part", columns="policy", values=f"{reading}_wait")
    return reduction(waits["fcfs"], waits["easy"]) * 100

def values(runs, claims):
    return {"runs": len(runs)}

def tables(runs, claims):
    return {"waits": runs.pivot_table(index="part", columns="policy", values="mean_wait")}
'''
PAGE = """# EASY

There are seven<!--runs--> rows, and the claim {verdict}<!--gain.verdict-->.

<img src="results/claims.svg">

<!-- begin waits -->
<!-- end -->
"""


def written(own, files):
    own.mkdir()
    for name, text in files.items():
        (own / name).write_text(text)
    return own


@pytest.fixture
def folder(tmp_path):
    files = {"plan.toml": PLAN, "claims.toml": STATED, "study.py": CODE, "page.md": PAGE}
    return written(tmp_path / "easy-study", files)


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """The results of the study of `folder`."""
    own = folder.__wrapped__(tmp_path_factory.mktemp("ran"))
    out = own.parent / "out"
    assert optsched(["study", str(own), "-o", str(out), "--workers", "1"]) == 0
    return out / "results"


@pytest.fixture
def stored(folder, results):
    """The folder of the study with its results."""
    shutil.copytree(results, folder / "results")
    return folder


def test_blocks_are_expanded_by_labels_and_lists_and_a_run_has_a_row_for_each_label(folder):
    table = StudyFolder(folder).plan
    runs, found = study_runs(looked_at(table, quick=False), [], folder, folder)
    assert [labels["part"] for labels in found] == ["first", "second", "third", "first"]
    assert [labels["kind"] for labels in found] == ["usual"] * 3 + ["again"]
    policies = [block["policy"] for block in runs["runs"]]
    assert policies == [["fcfs", "easy"], ["fcfs", "easy"], ["easy", "fcfs"], "easy"]
    assert runs["trace"][0].endswith("sample-256.swf")
    quick, _ = study_runs(looked_at(table, quick=True), [], folder, folder)
    assert [block["jobs"] for block in quick["runs"]] == ["1:20"]
    results = pd.DataFrame({"run": ["a", "b"], "wait": [1, 2]})
    rows = labelled(results, [["a", "b"], ["a"]], [{"kind": "x"}, {"kind": "y"}])
    assert rows.values.tolist() == [["a", "x", 1], ["b", "x", 2], ["a", "y", 1]]
    with pytest.raises(InputError, match=r"axes\.wait: is the name of a column of results"):
        labelled(results, [["a"]], [{"wait": "x"}])


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ('["first"]', '["frist"]', r"runs\[2\].part: unknown part 'frist'; did you mean first"),
        ("@policies", "@polices", r"runs\[1\].policy: unknown list 'polices'"),
        ("samples/", "simples/", "simples/sample-256.swf: no folder is named"),
        ("axes.kind", "axes.policy", r"axes.policy: is the name of a key of a run"),
        ("keep =", "kept =", "unknown key 'kept'; did you mean keep"),
        ('{ kind = "again" }', '"again"', r"runs\[2\].label: 'again'; expected a table"),
        ("[lists]", "[lists", "plan.toml: not TOML"),
    ],
)
def test_what_is_wrong_with_a_plan_is_named(old, new, told, folder, tmp_path, monkeypatch, capsys):
    monkeypatch.delenv("OPTSCHED_TRACES", raising=False)
    (folder / "plan.toml").write_text(PLAN.replace(old, new, 1))
    assert optsched(["study", str(folder), "-o", str(tmp_path / "out")]) == 1
    said = capsys.readouterr().err
    assert re.search(told, said), said
    assert "plan.toml" in said or "simples" in said


def held(folder):
    return {file.name: file.read_bytes() for file in folder.iterdir()}


def test_a_study_runs_from_its_folder_and_its_page_is_checked(folder, tmp_path, capsys):
    def said(code, *words):
        """Run the command, and return what it says."""
        assert optsched(["study", str(folder), *words]) == code
        return "".join(capsys.readouterr())

    out, place = tmp_path / "out", folder / "page.md"
    running = ("-o", str(out), "--workers", "1")
    assert "the page differs" in said(0, *running)
    files = {"results.parquet", "about.json", "data.md"}
    files |= {"claims.csv", "waits.csv", "claims.svg", "claims-narrow.svg"}
    assert held(out / "results").keys() == files
    assert "| first |" in (out / "page.md").read_text()
    assert not (folder / "results").exists()
    assert "results.parquet: missing" in said(1, "--check")
    assert "6 runs, 0 to do" in said(0, *running, "--write")
    verdict = evaluate(StudyFolder(folder), folder).claims["verdict"][0]
    mistake = f"{place}:3: expected {verdict!r} before gain.verdict"
    assert mistake in said(1, "--check").splitlines()
    place.write_text(place.read_text().replace("{verdict}", verdict))
    assert "2 numbers as computed" in said(0, "--check")
    before = held(folder / "results")
    said(0, "--write")
    assert before == held(folder / "results") == held(out / "results")
    (folder / "plan.toml").write_text(PLAN + "\n# changed")
    (folder / "results" / "claims.svg").unlink()
    told = said(1, "--check")
    assert "no results/claims.svg" in told
    assert "plan.toml has changed since these results" in told


def test_results_of_unchanged_runs_are_taken(stored, results, tmp_path, capsys):
    again = ["study", str(stored), "--workers", "1", "--new-only", "-o"]
    assert optsched([*again, str(tmp_path / "new")]) == 0
    assert "6 runs, 0 to do" in capsys.readouterr().err
    new = tmp_path / "new" / "results" / "results.parquet"
    assert new.read_bytes() == (results / "results.parquet").read_bytes()
    (stored / "plan.toml").write_text(PLAN.replace("201:300", "201:350"))
    assert optsched([*again, str(tmp_path / "changed")]) == 0
    assert "6 runs, 2 to do" in capsys.readouterr().err
    frame = pd.read_parquet(tmp_path / "changed" / "results" / "results.parquet")
    assert frame["part"].tolist().count("third") == 2
    assert len(frame) == 7


def test_a_quick_look_concludes_nothing(folder, tmp_path):
    out = tmp_path / "out"
    assert optsched(["study", str(folder), "-o", str(out), "--quick", "--workers", "1"]) == 0
    assert {file.name for file in (out / "results").iterdir()} == {"results.parquet", "about.json"}
    assert json.loads((out / "study.json").read_text())["quick"] is True
    assert optsched(["study", str(folder), "-o", str(out)]) == 1  # a folder of its own


@pytest.mark.parametrize(
    ("file", "old", "new", "told"),
    [
        ("study.py", "", None, "no study.py; expected a study, with plan.toml"),
        ("plan.toml", "", None, "no plan.toml; expected a study"),
        ("study.py", "def gain", "def gian", "unknown function 'gain'; did"),
        ("study.py", "len(runs)", "1 / 0", "study.py, line 11: ZeroDiv"),
        ("study.py", "def values", "def va lues", "study.py, line 10: Synt"),
        ("study.py", "* 100", "and 5", "gain: gain returned 5; expected"),
    ],
)
def test_a_wrong_folder_gets_one_line(file, old, new, told, stored, capsys):
    text = (stored / file).read_text()
    (stored / file).unlink()
    if new is not None:
        (stored / file).write_text(text.replace(old, new))
    assert optsched(["study", str(stored), "--check"]) == 1
    errors = capsys.readouterr().err.strip().splitlines()
    assert told in errors[-1]
    assert "Traceback" not in "".join(errors)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ("no/such/folder -o out", "no/such/folder: no such folder; expected a study"),
        ("none -o out", "unknown study 'none'"),
        ("easy-study", "--output: missing; expected -o DIR to run it, or --check"),
        ("easy-study -o out --trace x.swf", "has traces of its own"),
    ],
)
def test_what_is_asked_for_wrongly_is_named(arguments, told, folder, monkeypatch, capsys):
    monkeypatch.chdir(folder.parent)
    assert optsched(["study", *arguments.split()]) == 1
    assert told in capsys.readouterr().err


def test_a_study_is_found_by_its_name_in_the_folder_studies(folder, tmp_path, monkeypatch, capsys):
    (tmp_path / "studies").mkdir()
    shutil.move(folder, tmp_path / "studies" / "easy-study")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "easy-study").mkdir()  # that of its runs
    assert optsched(["study", "easy-study", "-o", "easy-study", "--workers", "1"]) == 0
    assert optsched(["list", "studies"]) == 0
    assert "easy-study" in capsys.readouterr().out


def test_a_study_may_have_further_files_and_make_its_traces_and_runs(folder, tmp_path):
    more = "def blocks(part):\n    return [{'part': part, 'policy': 'easy'}]"
    (folder / "more.py").write_text(more)
    code = """
from optsched.traces.reading import read_trace
from optsched.content import bundled

from .more import blocks

def inputs(plan, folders):
    trace = read_trace(bundled("traces") / "samples" / "sample-256.swf")
    return {"mine.swf": trace.jobs(1, plan["own"]["jobs"])}

def runs(plan, folders):
    return blocks("first")

def prepare(results, inputs):
    assert (inputs / "mine.swf").is_file()
    return results.assign(twice=2 * results["mean_wait"]).drop(columns="folder")

def values(runs, claims):
    return {"twice": runs["twice"].iloc[0]}
"""
    (folder / "study.py").write_text(code)
    (folder / "claims.toml").unlink()
    plan = PLAN.replace("samples/sample-256.swf", "inputs/mine.swf")
    (folder / "plan.toml").write_text(plan.replace("[lists]", "[own]\njobs = 120\n[lists]"))
    found = study(folder, tmp_path / "out", workers=1)
    frame = pd.read_parquet(found.folder / "results" / "results.parquet")
    assert frame["twice"].tolist() == (2 * frame["mean_wait"]).tolist()
    assert frame["part"].tolist() == ["first"]


# Problems that are solved without a sweep: the cases of a study are kept, and solved once
OF_CASES = """
from functools import partial
from pathlib import Path
import numpy as np

HERE = Path(__file__).parent

def files(plan, folders):
    return [HERE / "data"]

def cases(plan, folders):
    return {name: partial(solve, name, size) for name, size in (("three", 3), ("five", 5))}

def solve(name, placed):
    with (HERE / "solved").open("a") as file:
        file.write(f"{name} ")
    yield {"jobs": placed, "share": np.float64(1 / placed), "bound": np.nan}
    if (HERE / f"interrupt-{name}").exists():
        raise KeyboardInterrupt

def values(runs, claims):
    return {"placed": int(runs["jobs"].sum())}

def tables(runs, claims):
    return {"answers": runs}
"""


@pytest.fixture
def solves(tmp_path):
    """Return the folder of a study of two cases, which notes in `solved` those that it solves."""
    page = "# Solved\n\n8<!--placed--> jobs.\n"
    files = {"plan.toml": 'title = "a"\npackages = ["numpy"]\n', "data": "1", "page.md": page}
    return written(tmp_path / "solves", files | {"study.py": OF_CASES})


def solved(folder):
    names = (folder / "solved").read_text().split()
    (folder / "solved").unlink()
    return sorted(names, reverse=True)


def test_a_study_of_problems_that_was_stopped_solves_the_others_alone(solves, tmp_path, capsys):
    whole, stopped = tmp_path / "whole", tmp_path / "stopped"
    answers = study(solves, whole, workers=1).tables["answers"]
    assert answers.columns.tolist() == ["jobs", "share", "bound"]
    assert answers["share"].tolist() == [1 / 3, 1 / 5]
    about = json.loads((whole / "results" / "about.json").read_text())
    assert {"optsched", "numpy"} <= about["versions"].keys()
    assert solved(solves) == ["three", "five"]
    (solves / "interrupt-five").touch()
    command = ["study", str(solves), "-o", str(stopped), "--workers", "1"]
    assert optsched(command) == INTERRUPTED
    said = "interrupted with 1 case left; the same command resumes the study"
    assert said in capsys.readouterr().err
    assert [file.name for file in (stopped / "cases").iterdir()] == ["three.json"]
    (solves / "interrupt-five").unlink()
    assert optsched(command) == 0
    assert solved(solves) == ["three", "five", "five"]
    assert held(stopped / "results") == held(whole / "results")
    assert optsched(command) == 0
    assert "2 cases, 0 to do" in capsys.readouterr().err
    assert not (solves / "solved").exists()


def test_a_case_is_solved_again_if_its_file_is_damaged_or_what_it_rests_on_has_changed(
    solves, tmp_path, caplog
):
    study(solves, tmp_path / "out", workers=1)
    solved(solves)
    file = tmp_path / "out" / "cases" / "five.json"
    os.truncate(file, 20)
    study(solves, tmp_path / "out", workers=1)
    assert solved(solves) == ["five"]
    assert f"{file} is damaged; the case is solved again" in caplog.text
    file.write_text(file.read_text().replace('"numpy": "', '"numpy": "0.'))  # another version
    study(solves, tmp_path / "out", workers=1)
    assert solved(solves) == ["five"]
    for changed, text in (("plan.toml", 'title = "b"\n'), ("data", "2")):
        (solves / changed).write_text(text)
        study(solves, tmp_path / "out", workers=1)
        assert solved(solves) == ["three", "five"]


FOLDERS = sorted(file.parent.name for file in bundled("studies").glob("*/study.py"))


@pytest.mark.parametrize("name", FOLDERS)
def test_the_page_of_a_folder_agrees_with_its_results(name):
    """Otherwise: optsched study NAME --check."""
    assert check_page(StudyFolder(bundled("studies") / name))[0] == []


@pytest.mark.long
@pytest.mark.parametrize("name", FOLDERS)
def test_tables_and_figures_are_those_of_the_results(name, tmp_path):
    """Otherwise: optsched study NAME --write."""
    own = bundled("studies") / name
    shutil.copytree(own, tmp_path / name)
    evaluate(StudyFolder(tmp_path / name), tmp_path / name)
    for file in own.rglob("*.*"):
        if file.parent.name != "__pycache__":
            assert (tmp_path / name / file.relative_to(own)).read_bytes() == file.read_bytes(), file


@pytest.mark.parametrize(
    ("name", "jobs", "some"),
    [
        ("franke-1999", 500, {"model-1-1.3-1-sizes-times-8.swf.gz", "blue-1-trace.swf.gz"}),
        ("guim-2009", 1000, {"CTC-MED-1-1700.swf.gz", "SDSC-MED-1-2000.swf.gz"}),
    ],
)
def test_a_plan_names_a_trace_for_each_workload(name, jobs, some, shared, tmp_path):
    own, folders = StudyFolder(bundled("studies") / name), [shared("traces")]
    plan = looked_at(own.plan, quick=True)
    inputs = own.call("inputs", plan, folders)
    assert some < set(inputs)
    assert {len(trace) for trace in inputs.values()} == {jobs}
    plan["runs"] = own.call("runs", plan, folders)
    table, labels = study_runs(plan, folders, own.path, tmp_path)
    assert {Path(run["trace"][0]).name for run in table["runs"]} == set(inputs)
    assert len(table["runs"]) == len(labels)


def test_verdicts_are_counted_by_claim(tmp_path):
    results, unpublished = tmp_path / "two" / "results", tmp_path / "of no paper"
    for folder, plan in ((results.parent, 'paper = "Two"'), (unpublished, "")):
        folder.mkdir()
        (folder / "plan.toml").write_text(plan)
    results.mkdir()
    (results / "claims.csv").write_text(
        "key,reading,verdict\na,main,holds\na,other,not decided\nb,main,does not hold\n"
    )
    link = "[two](studies/two/page.md)"
    assert list(verdicts(tmp_path))[1:] == [(link, "2", "1", "1", "0", "0")]
