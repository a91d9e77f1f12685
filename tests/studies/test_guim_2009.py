from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from optsched.cli import run as optsched
from optsched.errors import InputError
from optsched.machines.machine import read_machine
from optsched.registry import studies
from optsched.report.page import Verdict
from optsched.schedule import State
from optsched.studies.guim_2009.claims import claims
from optsched.studies.guim_2009.evaluation import (
    FIGURES,
    KILLED,
    LCT,
    METRICS,
    OF_RUN,
    PUBLISHED,
    SLOWDOWNS,
    TABULATED,
    WITH_SLACK,
    all_runs,
    as_stated,
    by_part,
    change,
    figures_of,
    mean,
    prepare,
    published,
    range_of,
    read_as,
)
from optsched.studies.guim_2009.figures import figures
from optsched.studies.guim_2009.page import HEADS, PROCESSORS, dependent, values
from optsched.studies.guim_2009.plan import (
    CENTRES,
    INSTEAD_OF,
    OTHER_TIES,
    PAPER,
    QUICK,
    READINGS,
    REQUESTED_OF,
    SAME_OBJECTIVE,
    SCHEDULERS,
    STATED,
    VARIANTS,
    inputs,
    plan,
    runs,
    workloads,
)
from optsched.studies.results import ALL
from optsched.studies.study_folder import write_inputs
from optsched.sweeps.sweep_file import read_sweep
from optsched.traces.bandwidth import LEVELS, MIXES
from optsched.traces.reading import read_trace

pytestmark = pytest.mark.long

EVERY = workloads(quick=False)
STATED_ALONE, FIRST_FIT_REQUESTED, RAISED, REQUESTED = VARIANTS


def synthetic(figure):
    """What `prepare` returns, of runs whose metrics `figure` gives by label and scheduler."""
    rows = []
    for (reading, centre, mix, part, name), run in runs(quick=False).items():
        one = SimpleNamespace(reading=reading, centre=centre, mix=mix, part=part)
        measured = {metric: figure(one, name, metric) for metric in FIGURES}
        rows.append(
            measured
            | dict.fromkeys(OF_RUN, 1)
            | {
                "reading": reading,
                "centre": centre,
                "mix": mix,
                "part": part,
                "scheduler": name,
                "load": 0.8,
                "largest_job": 128,
                "mean_demand": 700.0,
                "without_slack": 0.1,
                **{f"demand_{level}": 1 / 3 for level in LEVELS},
                "run": f"{run['trace']} {name}",
                "machine": run["machine"],
                "jobs": 20_000,
                "evaluated": 10_000,
            }
        )
    return pd.DataFrame(rows)


LIKE_THE_PAPER = {
    # slowdown and wait, penalised runtime, killed jobs
    "FF": (100.0, 10.0, 400),
    "LC": (107.0, 8.0, 100),
    "LCT=1": (130.0, 5.0, 60),
    "LCT=1.15": (118.0, 6.0, 80),
    "LCT=1.25": (112.0, 7.0, 90),
    "LCT=1.5": (104.0, 7.5, 95),
    "RUA": (102.0, 5.0, 80),
}


def like_the_paper(workload, name, metric):
    own = LIKE_THE_PAPER[name.partition(",")[0]]
    value = own[2 if KILLED in metric else "penalised_percent" in metric]
    return value + workload.part / 1000 if KILLED not in metric else value


def verdicts(frame):
    """The verdicts by claim, and by variant or reading."""
    found = defaultdict(dict)
    for claim in claims(frame):
        found[claim.text] |= {name: one.verdict for name, one in claim.judgements.items()}
    return {text: one for text, one in found.items() if ALL not in one}


def test_what_the_paper_says_holds_in_results_that_look_like_it():
    found = verdicts(synthetic(like_the_paper))
    assert len(found) == 25
    assert {verdict for one in found.values() for verdict in one.values()} == {Verdict.HELD}
    assert {*map(tuple, found.values())} == {(*VARIANTS, *READINGS)}


def test_what_cannot_be_judged_is_listed_once():
    listed = [claim for claim in claims(synthetic(like_the_paper)) if ALL in claim.judgements]
    assert [claim.judgements[ALL].verdict for claim in listed] == [Verdict.NOT_JUDGED] * 2


def test_what_is_not_so_is_not_held():
    def alike(workload, name, metric):
        # the runs differ, by less than counts as a difference
        return 100.0 + 1e-9 * [*SCHEDULERS].index(name)

    found = verdicts(synthetic(alike))
    # all that is not "at most" or "similar"
    held = {text for text, one in found.items() if one[RAISED] == Verdict.HELD}
    assert {text.partition(" (")[0] for text in held} == {
        "A threshold of 1 has the fewest killed jobs",
        "LessConsume performs like thresholds of 1.25 and 1.5",
        "LessConsume has a penalized runtime similar to that of a threshold of 1.5",
        "A threshold of 1.15 has a bounded slowdown close to that of 1.25, SDSC",
        "RUA: the 95th percentile of the bounded slowdown is less than 5% above that of First Fit",
        "RUA: jobs wait about as long as with First Fit, 95th percentile",
    }
    assert {one[RAISED] for one in found.values()} == {Verdict.HELD, Verdict.NOT_HELD}


def test_runs_that_do_not_differ_are_not_compared():
    def figure(workload, name, metric):
        value = like_the_paper(workload, "FF" if name.startswith("LCT=1.5") else name, metric)
        return 100.0 if workload.reading == "high 1,500 MB/s" else value

    judged = claims(synthetic(figure))
    [halved] = [one for one in judged if "halve" in one.text and STATED in one.judgements]
    assert halved.judgements[STATED].verdict is Verdict.HELD
    assert halved.judgements[STATED].why.endswith("; no run differs between LCT=1.5 and FF")
    unpenalized = "high 1,500 MB/s"
    of_reading = [one.judgements[unpenalized] for one in judged if unpenalized in one.judgements]
    assert {one.verdict for one in of_reading} == {Verdict.NOT_JUDGED}
    assert {one.why for one in of_reading} == {"no run differs, so there is nothing to compare"}
    assert unpenalized not in dependent(judged)


def test_what_differs_by_part_is_not_decided():
    def figure(workload, name, metric):
        return 100 + (name == "LC") * (30 if workload.part == 1 else -20)

    [higher] = [
        one for text, one in verdicts(synthetic(figure)).items()
        if text.startswith("LessConsume has a lower bounded slowdown")
    ]  # fmt: skip
    assert higher[RAISED] == Verdict.NOT_DECIDED


def of_quarter(figure):
    [found] = [one for text, one in verdicts(synthetic(figure)).items() if "by about four" in text]
    return found


def test_the_limits_of_first_fit_are_a_variant_of_their_own():
    def figure(workload, name, metric):
        value = like_the_paper(workload, name, metric)
        return 100 if metric == KILLED and name == "FF" else value

    found = of_quarter(figure)
    assert found.pop(RAISED) == Verdict.NOT_HELD
    assert {*found.values()} == {Verdict.HELD}


def test_a_reading_changes_what_it_names_and_nothing_else():
    def figure(workload, name, metric):
        value = like_the_paper(workload, name, metric)
        other = metric == WITH_SLACK or workload.reading == "high 3,000 MB/s"
        return 100 if other and name.startswith("FF") else value

    found = of_quarter(figure)
    assert {name for name, one in found.items() if one == Verdict.NOT_HELD} == {
        "high 3,000 MB/s",
        "killed jobs with slack",
    }
    judged = claims(synthetic(figure))
    assert dependent(judged)["high 3,000 MB/s"] >= 1
    assert dependent(judged)["CTC of 340 processors"] == 0


def test_a_reading_of_one_center_has_the_runs_of_the_others():
    frame = synthetic(lambda workload, name, metric: 1.0 + (workload.reading != ""))
    own = read_as(frame, "CTC of 340 processors")
    stated = own[own["scheduler"].isin(VARIANTS[STATED_ALONE].values())]
    assert set(stated.loc[stated["centre"] == "CTC", KILLED]) == {2.0}
    assert set(own.loc[own["centre"] == "SDSC", KILLED]) == {1.0}
    assert not own.duplicated(["centre", "mix", "part", "scheduler"]).any()
    assert set(as_stated(own)["scheduler"]) == set(PAPER)


def test_where_neither_kills_a_job_nothing_is_judged():
    def figure(workload, name, metric):
        if metric == KILLED and (workload.mix, workload.centre) == ("HIGH", "SDSC"):
            return 0
        return like_the_paper(workload, name, metric)

    judged = {claim.text: claim.judgements for claim in claims(synthetic(figure))[:27]}
    [fifth] = [one for text, one in judged.items() if "SDSC, HIGH" in text]
    [quarter] = [one for text, one in judged.items() if "by about four" in text]
    assert fifth == {}
    assert quarter[RAISED].verdict == Verdict.HELD


def test_no_killed_job_beside_some_is_a_ratio_of_zero():
    def figure(workload, name, metric):
        return 0 if metric == KILLED and name.startswith("LCT=1,") else 100

    [fewest] = [
        claim for claim in claims(synthetic(figure))[:27] if "fewest killed" in claim.text
    ]  # fmt: skip
    assert fewest.judgements[STATED].why.startswith("0 times [0, 0]")


def claim_of(figure, text):
    return next(one for one in claims(synthetic(figure)) if text in one.text)


def test_killed_jobs_where_the_other_policy_has_none_are_no_ratio():
    def figure(workload, name, metric):
        return 0 if metric == KILLED and name.startswith("FF") else 100

    fifth = claim_of(figure, "SDSC, HIGH").judgements[STATED]
    assert fifth == (Verdict.NOT_HELD, "some with RUA, none with FF")


def test_a_claim_judged_case_by_case_says_where_it_holds():
    def figure(workload, name, metric):
        less = (workload.centre, workload.mix) == ("SDSC", "LOW") and name.startswith("RUA")
        return 25.0 if less else 100.0 + 1e-9 * name.startswith("RUA")

    lower = claim_of(figure, "a lower penalized runtime").judgements[STATED]
    assert lower.verdict == Verdict.IN_PART
    assert lower.why.startswith("CTC HIGH does not hold, 1 times [1, 1]; CTC MED does not hold")
    assert lower.why.endswith("; SDSC LOW holds, 0.25 times [0.25, 0.25]")


def test_numbers_that_differ_by_rounding_are_equal():
    def figure(workload, name, metric):
        return 100 / 3 * (1 + 1e-11 * workload.part * name.startswith("FF"))

    lower = claim_of(figure, "a lower penalized runtime").judgements[STATED]
    assert lower.verdict == Verdict.NOT_HELD


def test_means_have_the_range_of_the_parts():
    assert range_of([3.0, np.nan, 1.0]) == (2.0, 1.0, 3.0)
    assert (range_of([3.0]).mean, np.isnan(range_of([3.0]).low)) == (3.0, True)
    assert np.isnan(range_of([np.nan]).mean)


def test_published_tables_are_whole_but_for_what_is_lost():
    assert {table["metric"] for table in PUBLISHED} == set(METRICS) == set(HEADS)
    for table in PUBLISHED:
        numbers = [published(table["metric"], c, m, n) for c in CENTRES for m in MIXES
                   for n in TABULATED]  # fmt: skip
        assert np.isnan(numbers).sum() == (4 if table["metric"] == KILLED else 0)
    assert published("p95_wait", "SDSC", "HIGH", "LCT=1.5") == 41779
    assert published(KILLED, "CTC", "HIGH", "FF") == 428
    assert published(KILLED, "sample", "MED", "FF") is None


def test_published_numbers_stand_below_ours_and_lost_ones_are_a_dash():
    tables = values(synthetic(like_the_paper), quick=False)["published"]
    assert [table["number"] for table in tables] == list(range(1, 8))
    first, killed = tables[0]["records"][0], tables[6]["records"][0]
    assert (first["FF"].text, first["FF"].note) == ("100 [100, 100]", "paper 4.2")
    assert (killed["LC"].text, killed["LC"].note) == ("100 [100, 100]", "paper -")


def test_only_finished_jobs_of_the_second_half_count():
    states = [State.KILLED] * 3 + [State.FINISHED, State.FINISHED, State.KILLED]
    jobs = pd.DataFrame(
        {
            "final_state": pd.Categorical(states),
            "bounded_slowdown": [9.0, 9, 9, 1, 3, 9],
            "turnaround_time": [9.0, 9, 9, 100, 300, 9],
            "run_time": [9.0, 9, 9, 50, 60, 9],
            "requested_time": [9.0, 9, 9, 100, 100, 10],
            "waiting_time": [90, 90, 90, 10, 30, 90],
            "penalised_percent": [np.nan, np.nan, np.nan, 0, 20, np.nan],
        }
    )
    found = figures_of(jobs)
    assert (found["evaluated"], found[KILLED], found[WITH_SLACK]) == (3, 1, 1)
    slowdowns = [found[f"mean_{name}"] for name in ("bounded_slowdown", *SLOWDOWNS)]
    assert slowdowns == [3.5, 2.0, 2.0]
    assert (found["mean_wait"], found["p95_penalised_percent"]) == (20.0, pytest.approx(19.0))
    assert (found["p50_wait"], found["p75_wait"]) == (20.0, 25.0)
    assert np.isnan(figures_of(jobs.iloc[:2])["mean_wait"])


def test_changes_are_of_the_same_draw():
    def figure(workload, name, metric):
        return workload.part * (2 if name in INSTEAD_OF else 4) * (name != "FF")

    frame = read_as(synthetic(figure))
    assert mean(frame, "CTC", "LOW", "LC", KILLED).mean == 8
    for metric in METRICS:
        assert change(by_part(frame), "LC, exact", "LC", metric) == pytest.approx((0.5, 0.5, 0.5))
        assert np.isnan(change(by_part(frame), "LC", "FF", metric).mean)
    shown = values(frame, quick=False)
    assert shown["exact"][0][HEADS[KILLED]].text == "0.5 [0.5, 0.5]"
    assert [row["policy"] for row in shown["limits"]] == sorted([*REQUESTED_OF] * 7)


def test_killed_jobs_are_summed_over_workloads_and_other_changes_multiplied():
    def figure(workload, name, metric):
        return {"LC": 4, "RUA": 1}.get(name, 8) if workload.mix == "HIGH" else int(name == "RUA")

    frame = read_as(synthetic(figure))
    assert change(by_part(frame), "LC", "FF", KILLED).mean == 0.5
    # nothing in MED and LOW, so these are left out
    assert change(by_part(frame), "LC", "FF", "mean_wait").mean == pytest.approx(0.5)
    assert change(by_part(frame), "RUA", "FF", KILLED).mean == pytest.approx(3 / 8)
    two = frame[(frame["part"] < 3) & (frame["centre"] == "CTC")]
    assert change(by_part(two), "LC", "FF", KILLED) == (0.5, 0.5, 0.5)
    one = two[two["part"] < 2]
    assert np.isnan(change(by_part(one), "LC", "FF", KILLED).low)


def page(frame, drawn):
    return studies["guim-2009"]().page(frame, claims(frame), drawn, {}, quick=False)


def test_the_page_has_all_parts():
    frame = synthetic(like_the_paper)
    drawn = dict.fromkeys(figures(frame), "<svg/>")
    assert set(drawn) == {f"figure-{number}" for number in range(4, 10)}
    made = page(frame, drawn)
    assert made.sections[0].title == "The claims"
    summary = " ".join([made.lead, *made.summary])
    assert "nan" not in summary
    assert "0.25 times" in summary
    assert "differ in ties alone: LC, exact, has 1.00 times the killed jobs" in summary
    assert "another objective, RUA, exact, has 1.00 times" in summary
    assert "LC, exact for all" not in summary  # it equals LC by construction
    assert "slowdown is 100 there (paper 4.2), and 400 jobs are killed (paper 428)" in summary
    assert sum(
        part.form == "figure" for s in made.sections for part in s.parts if part != str(part)
    )
    assert len(all_runs(frame)) == len(runs(quick=False))


def test_where_two_policies_have_to_do_the_same_the_page_says_why():
    def said(figure):
        made = page(synthetic(figure), {})
        texts = {one.title: [part for part in one.parts if isinstance(part, str)]
                 for one in made.sections}  # fmt: skip
        return texts["Tables 1 to 7"], texts["Is exact selection worth it?"]

    [like_first_fit], [like_less_consume] = said(lambda workload, name, metric: 100.0)
    assert like_first_fit.startswith("LCT=1.5 equals First Fit by construction here")
    assert like_less_consume.startswith('"LC, exact for all" equals LC by construction here')
    assert said(lambda workload, name, metric: float(len(name))) == ([], [])


def test_exact_selection_with_the_same_objective_is_known():
    assert SAME_OBJECTIVE == ["LC, exact"]


def test_a_failed_run_ends_the_evaluation(tmp_path):
    with pytest.raises(InputError, match=r"1 run of the study failed; the first: no memory"):
        prepare(pd.DataFrame({"error": [None, "no memory"]}), tmp_path)


def test_a_log_that_is_not_there_is_named(tmp_path):
    with pytest.raises(InputError, match="CTC-SP2"):
        inputs([tmp_path], quick=False)


def test_waits_are_shown_by_percentile():
    records = values(synthetic(like_the_paper), quick=False)["percentiles"]
    assert len(records) == 2 * 3 * len(PAPER)
    assert list(records[0].values())[:4] == ["CTC", "HIGH", "FF", 100.002]


def test_the_policies_take_all_that_is_planned_and_no_two_are_the_same(tmp_path):
    [trace] = inputs([], quick=True).values()
    files = {run["trace"] for run in runs(quick=False).values()}
    write_inputs(dict.fromkeys(files, trace), tmp_path)
    study = read_sweep(plan([], Path("inputs"), quick=False), base=tmp_path)
    # the same trace for all: what is left are the machines, one of them of a reading
    assert len(study.runs) == len(CENTRES) * len(SCHEDULERS) + len(VARIANTS[STATED])
    assert study.keep == "jobs"
    assert {name for names in VARIANTS.values() for name in names.values()} <= set(SCHEDULERS)
    assert {*INSTEAD_OF.values(), *REQUESTED_OF} <= set(PAPER)
    assert [SCHEDULERS[name]["settings"]["threshold"] for name in LCT] == [1, 1.15, 1.25, 1.5]


@pytest.mark.parametrize("centre", CENTRES, ids=str)
def test_the_machines_hold_the_jobs(shared, centre):
    machine = read_machine(CENTRES[centre]["machine"])
    trace = read_trace(shared(f"traces/{CENTRES[centre]['file']}"))
    assert machine.processors == PROCESSORS
    assert trace.processors.max() <= machine.size
    assert len(trace) >= CENTRES[centre]["jobs"]
    whole_nodes = trace.processors[: CENTRES[centre]["jobs"]] % PROCESSORS == 0
    assert whole_nodes.all() == (centre == "SDSC")


@pytest.fixture(scope="module")
def quick(tmp_path_factory):
    """The folder of a quick look."""
    folder = tmp_path_factory.mktemp("quick") / "study"
    assert optsched(["study", "guim-2009", "--quick", "--workers", "1", "-o", str(folder)]) == 0
    return folder


def test_the_quick_study_from_the_command_line(quick, capsys):
    written = (quick / "report.html").read_text()
    assert "A quick look at a generated workload" in written
    assert "The claims" not in written
    assert json.loads((quick / "study.json").read_text())["study"] == "guim-2009"
    rows = pd.read_csv(quick / "policies.csv")
    assert rows["scheduler"].tolist() == list(SCHEDULERS)
    assert set(rows["evaluated"]) == {QUICK["sample"]["jobs"] // 2}
    own = rows.set_index("scheduler")
    assert own.loc["LCT=1", "p95_penalised_percent"] == 0
    assert own.loc["LC, exact", "unproven"] == 0
    exact = {*INSTEAD_OF, OTHER_TIES[0]}
    rules = [name for name in SCHEDULERS if name not in exact]
    assert own.loc[rules, "heuristic_matched"].isna().all()
    assert own.loc[[*INSTEAD_OF], "heuristic_matched"].between(0, 1).all()
    # the rules are exact in what they look for
    for exact in SAME_OBJECTIVE:
        rule = INSTEAD_OF[exact]
        assert own.loc[exact, "heuristic_matched"] == 1
        assert own.loc[exact, list(METRICS)].equals(own.loc[rule, list(METRICS)])

    (quick / "report.html").unlink()
    assert optsched(["report", str(quick)]) == 0
    assert (quick / "report.html").read_text() == written
    capsys.readouterr()


def test_the_page_of_the_quick_study_is_whole_in_a_browser(browser, quick):
    context = browser.new_context()
    context.set_offline(True)
    page = context.new_page()
    errors: list[str] = []
    page.on("console", lambda message: errors.append(message.text))
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.goto((quick / "report.html").as_uri())
    pictures = page.locator("img")
    drawn = pictures.evaluate_all("all => all.map((i) => [i.naturalWidth > 0, i.alt.length > 0])")
    assert len(drawn) == 3
    assert all(width and alt for width, alt in drawn)
    assert page.locator(".verdict").count() == 0  # nothing is judged by a quick look
    assert page.locator("table").count() == 15
    page.set_viewport_size({"width": 400, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") <= 400
    assert errors == []
    context.close()
