from __future__ import annotations

import itertools
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from optsched.cli import run as optsched
from optsched.errors import InputError
from optsched.report import style
from optsched.report.page import Verdict
from optsched.studies.judging import Claim, Judgement
from optsched.studies.yang_2014.claims import claims, compact, comparable, improves
from optsched.studies.yang_2014.evaluation import (
    PUBLISHED,
    SHARES,
    SIZES,
    by_size,
    cells,
    compared,
    contributions,
    described,
    gain,
    noise,
    prepare,
    published,
    tied,
    varied,
    with_job_sizes,
)
from optsched.studies.yang_2014.figures import _curves
from optsched.studies.yang_2014.page import by_choice, delayed, part_records, tie_records, turned
from optsched.studies.yang_2014.plan import (
    BLUE,
    CONTIGUOUS,
    INTREPID,
    MIRA,
    SCATTERED,
    SHOWN,
    TABLE,
    VARIANTS,
    plan,
)
from optsched.sweeps.sweep_file import read_sweep
from optsched.traces.reading import write_trace
from optsched.traces.trace import Trace

pytestmark = pytest.mark.long


def test_the_published_tables_are_those_that_the_paper_speaks_of():
    tops = {}
    for number in PUBLISHED:
        for solver in ("branch_and_bound", "greedy"):
            assert [len(row) for row in PUBLISHED[number][solver]] == [5] * 5
        tops[number] = max(published(number).values())
    # "as much as 27%" (II), 28.83 (III), "as much as 4.8%" (IV), "about 10%" (V, VI)
    assert tops == {"I": 3.83, "II": 27.33, "III": 28.83, "IV": 4.84, "V": 11.68, "VI": 10.85}


def test_every_run_has_its_default(shared):
    study = read_sweep(plan([shared("traces")], Path("inputs"), quick=False))
    rows = pd.DataFrame([run.columns for run in study.runs])
    rows["settings.stated"] = rows["settings.stated"].fillna(SCATTERED)
    key = ["trace", "jobs", *(f"settings.{name}" for name in ("alpha", "beta", "draw", "stated"))]
    default = rows[rows["policy"] == "easy"]
    assert not default[key].duplicated().any()
    assert set(map(tuple, rows[key].to_numpy())) == set(map(tuple, default[key].to_numpy()))
    parts = {name: len(log["jobs"]) for name, log in TABLE["logs"].items()}
    of_paper = parts[BLUE] + parts[INTREPID]
    # two draws (of Mira one) and the control, and one draw with the other reading
    assert len(default) == of_paper * (25 * 2 + 1 + 25) + parts[MIRA] * (25 + 1)


def synthetic(gain, *, greedy=0.0, share=1.0):
    """Results in which the window improves everything by gain(alpha, beta).

    Random ties in the middle add 0, 2 and 4 points of it. As in the study, alpha = beta = 0 is run
    without Greedy and with one reading of the run times.
    """
    rows = []
    logs, parts = (BLUE, INTREPID), ("1:10", "11:20", "21:30")
    readings = (SCATTERED, "contiguous")
    shares = [*itertools.product(SHARES, SHARES), (0.0, 0.0)]
    for log, (alpha, beta), part, stated in itertools.product(logs, shares, parts, readings):
        base = {
            "trace": TABLE["logs"][log]["file"],
            "machine": TABLE["logs"][log]["machine"],
            "settings.stated": None if stated == SCATTERED else stated,
            "ties": None,
            "seed": np.nan,
            "config.jobs": part,
            "jobs": 10,
            "settings.alpha": alpha,
            "settings.beta": beta,
            "settings.draw": 0,
            "settings.window": np.nan,
            "settings.interval": np.nan,
            "charge_decisions": None,
            "error": None,
        }
        metrics = {"mean_wait": 100.0 + len(part), "mean_response": 200.0 + len(part)}
        metrics["large_mean_wait"] = 300.0
        nobody = {"settings.backfill": None, "settings.scatter": None, "solver": None}
        rows.append(base | metrics | nobody | {"utilization": 0.5, "contiguous_share": 0.5})
        answers = [("branch-and-bound", None, np.nan, 0.0), ("greedy", None, np.nan, -greedy)]
        if log == BLUE and alpha == beta == 0.3 and stated == SCATTERED:
            answers += [
                ("branch-and-bound", "random", seed, 0.02 * number)
                for number, seed in enumerate((7, 8, 9))
            ]
        for (solver, ties, seed, more), variant in itertools.product(answers, VARIANTS.values()):
            if variant.get("stated", SCATTERED) != stated or (stated != SCATTERED and alpha == 0):
                continue
            if (solver == "greedy" and (stated != SCATTERED or alpha == 0)) or (
                ties and variant != VARIANTS[SHOWN]
            ):
                continue
            better = gain(alpha, beta) + more
            better *= 0.5 if log is INTREPID else 1.0
            own = {f"settings.{name}": value for name, value in variant.items()}
            own |= {name: value * (1 - better) for name, value in metrics.items()}
            own["mean_response"] *= 1 - (0.01 if better > 0 else -0.01)
            own |= {"utilization": 0.5 * (1 + better * (3 if log is INTREPID else 1))}
            own |= {"contiguous_share": share, "contested": 20, "contested_matched": 1.0}
            rows.append(base | own | {"solver": solver, "ties": ties, "seed": seed})
    return described(pd.DataFrame(rows))


WINDOWS = ("SDSC-BLUE: a window of 5", "SDSC-BLUE: larger windows")


def verdicts(frame):
    """The verdicts in the shown variant; the window is not varied in these results."""
    judged = [claim for claim in claims(frame) if claim.judge]
    assert [claim.text for claim in judged if not claim.judgements] == [
        claim.text for claim in judged if claim.text.startswith(WINDOWS)
    ]
    return {
        claim.text: claim.judgements["backfill"].verdict for claim in judged if claim.judgements
    }


def test_what_the_paper_found_holds_in_results_that_look_like_it():
    found = verdicts(synthetic(lambda alpha, beta: 0.3 * (alpha + beta)))
    assert set(found.values()) == {Verdict.HELD}
    assert len(found) == 6 * 3 + 12


def test_algorithms_of_which_no_run_differs_are_comparable():
    found = comparable(synthetic(lambda alpha, beta: 0.1), SHOWN, "V")
    assert found.verdict == Verdict.HELD
    # 25 cells of three parts, each with 20
    assert found.why == "no run differs; Greedy is optimal in 1,500 of 1,500 contested decisions"


@pytest.mark.parametrize(
    ("gain", "expected"),
    [
        (lambda alpha, beta: -0.5 * alpha, Verdict.HELD),
        (lambda alpha, beta: -0.02, Verdict.NOT_HELD),
    ],
)
def test_utilization_stays_high_where_no_job_gets_shorter(gain, expected):
    frame = synthetic(gain)
    assert compact(frame, SHOWN, BLUE).verdict == expected
    assert compact(frame, CONTIGUOUS, BLUE) is None  # at alpha = 0, both readings are the same


def test_the_table_of_parts_has_all_of_a_log_and_utilization():
    records = part_records(synthetic(lambda alpha, beta: 0.1))
    own = [one for one in records if one["variant"] == SHOWN and one["log"] == BLUE]
    assert [one["jobs"] for one in own] == ["1:10", "11:20", "21:30", "all"]
    assert own[-1]["utilization", "alpha = 0%"].text == "10.0%"


def test_what_is_not_so_is_not_held():
    found = verdicts(synthetic(lambda alpha, beta: -0.5 * (alpha + beta), greedy=0.05, share=0.5))
    assert set(found.values()) == {Verdict.NOT_HELD}


def test_an_effect_that_differs_by_part_is_not_decided():
    frame = synthetic(lambda alpha, beta: 0.1)
    mine = frame["variant"] != "default"
    frame.loc[mine & (frame["part"] == "1:10"), "mean_wait"] *= 1.5
    assert verdicts(frame)["SDSC-BLUE: mean wait improves"] == Verdict.NOT_DECIDED


@pytest.mark.parametrize(
    ("least", "cells", "expected"),
    [(0.1, 25, Verdict.HELD), (0.3, 15, Verdict.IN_PART), (0.4, 10, Verdict.NOT_DECIDED)],
)
def test_a_metric_improves_if_it_surely_does_in_most_cells(least, cells, expected):
    frame = synthetic(lambda alpha, beta: 0.1 if alpha >= least else 0.0)
    for variant in VARIANTS:
        found = improves(frame, variant, "II")
        assert found.verdict == expected
        assert found.why.endswith(f"in {cells} of 25 cells significantly above 0")


def test_parts_contribute_to_the_improvement_of_a_cell():
    frame = synthetic(lambda alpha, beta: alpha * beta)
    pairs = compared(frame, log=BLUE, variant="strict", solver="greedy")
    for metric in ("mean_wait", "utilization"):
        of_parts = contributions(pairs, metric).groupby(level=["beta", "alpha"]).mean()
        found = cells(frame, metric, log=BLUE, variant="strict", solver="greedy")
        assert of_parts.to_dict() == pytest.approx({key: one.mean for key, one in found.items()})


def by_window(waits):
    """Results at one cell of SDSC-BLUE in which windows have these waits; charging changes none."""
    frame = synthetic(lambda alpha, beta: 0.1)
    middle = frame[(frame["alpha"] == 0.3) & (frame["beta"] == 0.3) & (frame["log"] == BLUE)]
    middle = middle[middle["ties"] == "heuristic"]
    mine = middle[(middle["solver"] == "branch-and-bound") & (middle["variant"] == "backfill")]
    more = [
        mine.assign(window=size, mean_wait=wait + mine["mean_wait"], charged=charged)
        for size, wait in waits.items()
        for charged in (False, True)
    ]
    rest = frame[~frame.index.isin(mine.index)]
    return pd.concat([rest, *more], ignore_index=True)


@pytest.mark.parametrize(
    ("waits", "expected"),
    [
        ({1: 50, 5: 0, 10: 0, 20: 0, 50: 10}, [Verdict.HELD, Verdict.HELD]),
        ({1: 0, 5: 50, 10: 0, 20: 60, 50: 60}, [Verdict.NOT_HELD, Verdict.IN_PART]),
    ],
)
def test_windows_are_judged_against_the_smallest_and_that_of_the_paper(waits, expected):
    judged = [claim for claim in claims(by_window(waits)) if claim.text.startswith(WINDOWS)]
    assert [claim.judgements["backfill"].verdict for claim in judged] == expected


def test_cells_are_those_of_the_table():
    frame = synthetic(lambda alpha, beta: alpha * beta)
    wanted = {"log": "SDSC-BLUE", "variant": "strict", "solver": "greedy"}
    found = cells(frame, "mean_wait", **wanted)
    assert found[0.5, 0.4].mean == pytest.approx(0.2)
    assert found[0.5, 0.4].pairs == 3
    assert len(compared(frame, **wanted)) == 75


def test_random_ties_are_the_noise_floor():
    frame = synthetic(lambda alpha, beta: 0.1, greedy=0.01)
    pairs = compared(tied(frame))
    found = noise(pairs, "mean_wait")
    assert (found.low, found.mean, found.high) == pytest.approx((0.10, 0.12, 0.14))
    assert (found.deviation, found.seeds) == (pytest.approx(0.02), 3)
    every = [record["jobs"] for record in tie_records(pairs)]
    assert every == ["1:10", "11:20", "21:30", "all"]
    assert "where random ties deviate by 2.0" in comparable(frame, SHOWN, "II").why
    assert "random" not in comparable(frame, "strict", "II").why
    assert comparable(frame, CONTIGUOUS, "II") is None  # Greedy has no runs there


def test_the_other_reading_has_a_default_of_its_own():
    frame = synthetic(lambda alpha, beta: 0.1)
    other = (frame["stated"] == "contiguous") & (frame["variant"] == "default")
    frame.loc[other, "mean_wait"] *= 0.5
    wanted = {"log": BLUE, "solver": "branch-and-bound"}
    assert gain(compared(frame, variant=SHOWN, **wanted), "mean_wait").mean > 0
    assert gain(compared(frame, variant=CONTIGUOUS, **wanted), "mean_wait").mean < 0


def test_claims_whose_verdicts_differ_between_two_readings():
    held, fails = Judgement(Verdict.HELD, ""), Judgement(Verdict.NOT_HELD, "")
    stated = [
        Claim("one", "", {SHOWN: held, CONTIGUOUS: fails}),
        Claim("two", "", {SHOWN: held, CONTIGUOUS: held}),
        Claim("three", "", {SHOWN: held}),
    ]
    assert turned(stated, SHOWN, CONTIGUOUS) == ["one (holds, then does not hold)"]


def test_the_delay_of_decisions_alone_is_shown():
    frame = by_window({5: 0, 10: 50}).assign(nominal_seconds=2e-4, problems=10)
    frame["mean_wait"] *= 1 - 0.1 * frame["charged"]
    found = delayed(compared(varied(frame)[1]), "branch-and-bound")
    assert (found["free"], found["charged"]) == pytest.approx((0.1, 0.19))
    assert found["seconds"] == pytest.approx(2e-5)


def test_the_share_of_greedy_is_that_of_contested_decisions():
    figures = {"problems": 100, "one_job": 70, "all_placed": 20, "contested": 10}
    figures |= {"contested_matched": 0.8, "heuristic_matched": 0.97}
    found = by_choice(pd.DataFrame([figures, figures | {"contested_matched": 1.0}]))
    assert (found["problems"], found["contested"], found["contested_share"]) == (200, 20, 0.1)
    assert found["matched"] == pytest.approx(0.9)
    assert (found["failed"], found["failed_all_placed"]) == (2, 4)


def test_sizes_of_jobs_are_shares_of_the_nodes_of_each_part(tmp_path):
    sizes = np.array([4, 8, 12, 16, 1, 60])
    one = np.ones(6, dtype=np.int64)
    [file] = write_trace(Trace(one.cumsum(), one, one, one, sizes), tmp_path / "log.swf")
    runs = [
        {"trace": str(file), "machine": "torus:2x2x4x4", "part": part} for part in ("1:4", "5:6")
    ]
    frame = with_job_sizes(pd.DataFrame(runs))
    assert by_size(frame.iloc[:1], SIZES) == {1: 0.25, 2: 0.5, 4: 0.25}
    assert by_size(frame.iloc[1:], SIZES) == {1: 0.5, 2: 0, 4: 0, 8: 0.5}


def test_a_failed_run_ends_the_evaluation():
    with pytest.raises(InputError, match=r"1 run of the study failed; the first: no memory"):
        prepare(pd.DataFrame({"error": [None, "no memory"]}), Path())


def test_the_quick_study_from_the_command_line(shared, tmp_path, capsys, monkeypatch):
    monkeypatch.delitem(style.METADATA, ".png")  # as long in drawing as the others
    logs = {"SDSC-BLUE": ["116269:116568"], "ANL-Intrepid": ["1:150"], "ALCF-Mira": ["1:150"]}
    monkeypatch.setitem(TABLE["quick"], "logs", logs)
    traces = str(shared("traces"))
    one = tmp_path / "one"
    quick = ["study", "yang-2014", "--traces", traces, "--quick", "--workers", "1"]
    assert optsched([*quick, "-o", str(one)]) == 0
    assert len(list(one.rglob("run.json"))) > 50
    page = (one / "report.html").read_text()
    assert "A quick look at a small part" in page
    assert "Is the exact solver worth it? " in page
    assert "does not hold" not in page
    assert "Greedy was optimal in" in page
    about = json.loads((one / "study.json").read_text())
    assert (about["study"], about["quick"]) == ("yang-2014", True)
    capsys.readouterr()


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["yang2014", "--traces", "."], "unknown study 'yang2014'; did you mean yang-2014?"),
        (
            ["yang-2014"],
            "no folder is named; expected --traces, or OPTSCHED_TRACES",
        ),
        (
            ["yang-2014", "--traces", "."],
            "SDSC-BLUE-2000-4.2-cln.swf.gz: not in .; expected --traces",
        ),
    ],
)
def test_wrong_input(arguments, told, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("OPTSCHED_TRACES", raising=False)
    assert optsched(["study", *arguments, "-o", "out"]) == 1
    assert told in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


@style.applied()
def test_a_beta_has_one_color_whichever_others_are_drawn():
    figure = style.new_figure(3, "betas")
    whole, part = figure.subplots(1, 2)
    _curves(whole, {(beta, alpha): 1.0 for beta in SHARES for alpha in SHARES})
    _curves(part, {(SHARES[-1], alpha): 1.0 for alpha in SHARES})
    [only] = part.lines
    assert only.get_color() == whole.lines[-1].get_color() != whole.lines[0].get_color()
