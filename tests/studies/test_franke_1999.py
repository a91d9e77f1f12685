from __future__ import annotations

import itertools
import json
from pathlib import PurePath

import numpy as np
import pandas as pd
import pytest

from optsched.cli import run as optsched
from optsched.errors import InputError
from optsched.report import style
from optsched.report.page import Verdict
from optsched.studies.franke_1999.changes import UNCHANGED, Change, changed
from optsched.studies.franke_1999.claims import claims
from optsched.studies.franke_1999.closer import add_closer_looks
from optsched.studies.franke_1999.evaluation import (
    GANG,
    compared,
    in_words,
    keeping_up,
    mean_ratio,
    plain,
    prepare,
)
from optsched.studies.franke_1999.plan import (
    CHANGED,
    MPLS,
    PUBLISHED,
    SEEDS,
    SHARED,
    SHOWN,
    TABLE,
    VARIANTS,
    Workload,
    changes,
    generated,
    inputs,
    plan,
    workloads,
)
from optsched.studies.franke_1999.sensitivity import (
    CLAIMED,
    FEWEST,
    Case,
    Quantity,
    Ratio,
    cases,
    turning,
)
from optsched.studies.offered import offered_by
from optsched.studies.study_folder import write_inputs
from optsched.sweeps.sweep_file import read_sweep
from optsched.traces.reading import write_trace
from optsched.traces.trace import Trace

pytestmark = pytest.mark.long

NODES = PUBLISHED["nodes"]
INTERARRIVAL, SERVICE = TABLE["factors"].values()


def grid():
    """The 81 workloads of the first seed, and the few of the others."""
    yield from (Workload(*factors, 1) for factors in itertools.product(INTERARRIVAL, SERVICE))
    few = itertools.product(TABLE["few"]["interarrival"], TABLE["few"]["service"], SEEDS[1:])
    yield from (Workload(*factors) for factors in few)


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    """A folder with a small trace for every workload of the grid, loads from 0.5 to 1.2."""
    folder = tmp_path_factory.mktemp("inputs")
    for one in grid():
        interarrival, service = one.interarrival, one.service
        run = np.array([round(160_000 * service / interarrival), 1000])
        trace = Trace(
            job_id=np.array([1, 2]),
            submit=np.array([0, 100_000]),
            runtime=run,
            requested_time=run,
            processors=np.array([100, 1]),
        )
        write_trace(trace, folder / one.file)
    return folder


def synthetic(folder, times):
    """Results in which a strategy has the mean response and wait that `times` says.

    `times` takes the strategy (``fcfs``, ``conservative`` or the level) and the admission.
    """
    rows = []
    for one in grid():
        load = 0.5 * one.service / one.interarrival
        base = {
            "trace": f"elsewhere/{one.file}",
            "execution": None,
            "solver": None,
            "error": None,
            "utilization": min(load, 0.92),
            "makespan": 1e5,
            "jobs": 2,
        }
        nothing = dict.fromkeys(
            f"settings.{name}"
            for name in (
                *("mpl", "admission", "sharing", "compact", "context_switch"),
                *("job_memory", "variation", "node_memory"),
            )
        )
        for policy in ("fcfs", "conservative", "easy"):
            own = metrics(times(policy, ""), load)
            rows.append(base | nothing | own | {"policy": policy, "machine": f"nodes:{NODES}"})
        for variant, mpl in itertools.product(VARIANTS, MPLS):
            admission, sharing = variant.split(", ")
            own = metrics(times(mpl, admission), load)
            own |= {"settings.admission": admission, "settings.sharing": sharing}
            own |= {"settings.mpl": mpl, "policy": "gang", "machine": f"matrix:{NODES}"}
            rows.append(base | nothing | own)
    return prepare(pd.DataFrame(rows), folder)


def metrics(times, load):
    response, wait = times
    scale = 1000 / (1.3 - min(load, 1.2))
    return {
        "mean_response": response * scale,
        "mean_wait": wait * scale,
        "large_mean_response": response * scale,
        "large_mean_wait": wait * scale,
    }


LIKE_THE_PAPER = {
    "fcfs": (10.0, 9.0),
    "conservative": (2.0, 1.0),
    "easy": (1.9, 0.9),
    2: (3.0, 0.9),
    3: (2.0, 0.4),
    5: (1.9, 0.2),
}


def verdicts(frame):
    found = {}
    for claim in claims(frame):
        if not claim.judge:
            continue
        for variant, judged in claim.judgements.items():
            found[claim.text, variant.partition(",")[0]] = judged.verdict
    return found


def test_what_the_paper_found_holds_in_results_that_look_like_it(tiny):
    found = verdicts(synthetic(tiny, lambda strategy, admission: LIKE_THE_PAPER[strategy]))
    assert len(found) == 13 * 2
    assert set(found.values()) == {Verdict.HELD}


def test_what_is_not_so_is_not_held(tiny):
    reverse = {2: (10.0, 1.0), 3: (11.0, 2.0), 5: (12.0, 3.0)}
    alike = dict.fromkeys(("fcfs", "conservative"), (10.0, 1.0))
    worse = alike | {"easy": (12.0, 1.0)} | reverse
    found = verdicts(synthetic(tiny, lambda strategy, admission: worse[strategy]))
    keeps_up = {name for name in found if "allows utilizations" in name[0]}
    assert {found[name] for name in found.keys() - keeps_up} == {Verdict.NOT_HELD}
    assert {found[name] for name in keeps_up} == {Verdict.HELD}


def test_what_differs_by_seed_is_not_decided(tiny):
    frame = synthetic(tiny, lambda strategy, admission: LIKE_THE_PAPER[strategy])
    gang = (frame["strategy"] == "MPL 5") & (frame["seed"] == 2)
    frame.loc[gang, "mean_response"] *= 1.5
    found = verdicts(frame)
    changed = {text for (text, _), verdict in found.items() if verdict != Verdict.HELD}
    assert changed == {
        "Mean response: MPL 5 is better than perfect backfilling",
        "Gang scheduling: the mean response time falls as the level rises",
    }
    better = found["Mean response: MPL 5 is better than perfect backfilling", "fcfs"]
    assert better == Verdict.NOT_DECIDED


def test_the_mean_ratio_is_that_of_the_workloads_of_all_seeds(tiny):
    frame = synthetic(tiny, lambda strategy, admission: LIKE_THE_PAPER[strategy])
    once = frame["seed"] == 1
    once &= ~frame["service"].isin(TABLE["few"]["service"])
    gang = frame["strategy"] == "MPL 5"
    frame.loc[gang & once, "mean_response"] *= 9.0
    frame.loc[gang & (frame["seed"] == 2), "mean_response"] *= 2.0
    frame.loc[gang & (frame["seed"] == 3), "mean_response"] *= 4.0
    found = mean_ratio(compared(frame, SHOWN, None), "mean_response", "MPL 5", "backfilling")
    assert np.exp(found.mean) == pytest.approx(0.95 * 2)
    assert in_words(found).startswith("1.90 times [")
    frame["kept_up"] = False
    found = mean_ratio(compared(frame, SHOWN, None), "mean_response", "MPL 5", "backfilling")
    assert in_words(found) == "nan times"


def test_the_highest_load_is_judged_by_the_workloads_near_it(tiny):
    frame = synthetic(tiny, lambda strategy, admission: LIKE_THE_PAPER[strategy])
    frame.loc[frame["offered"] > 0.8, "kept_up"] = False
    found = verdicts(frame)
    keeps_up = {name for name in found if "allows utilizations" in name[0]}
    assert {found[name] for name in keeps_up} == {Verdict.NOT_HELD}


def test_whether_a_level_keeps_up_is_not_decided_where_the_seeds_disagree(tiny):
    frame = synthetic(tiny, lambda strategy, admission: LIKE_THE_PAPER[strategy])
    level = frame["strategy"] == "MPL 2"
    one = frame[frame["seed"] == 1]
    frame.loc[level & (frame["seed"] == 2), "kept_up"] = False
    text = "MPL 2 allows utilizations of up to 90%"
    assert verdicts(frame)[text, "fcfs"] == Verdict.NOT_DECIDED
    assert verdicts(one)[text, "fcfs"] == Verdict.NOT_DECIDED


def test_variants_are_judged_apart(tiny):
    def times(strategy, admission):
        response, wait = LIKE_THE_PAPER[strategy]
        return (20.0, wait) if admission == "skip" else (response, wait)

    found = verdicts(synthetic(tiny, times))
    claim = "Mean response: MPL 5 is better than perfect backfilling"
    assert (found[claim, "fcfs"], found[claim, "skip"]) == (Verdict.HELD, Verdict.NOT_HELD)


def test_only_workloads_are_judged_that_the_strategies_keep_up_with(tiny):
    frame = synthetic(tiny, lambda strategy, admission: LIKE_THE_PAPER[strategy])
    table = compared(frame)
    assert len(table) == 81
    loads = table["offered", "FCFS"]
    assert loads.loc[1.0, 1.0, 1] == pytest.approx((100 * 160_000 + 1000) / (NODES * 100_000))
    assert loads.max() > 1
    kept = keeping_up(table, "FCFS", "MPL 3")
    assert set(kept.index) == set(loads[loads <= 0.92 / 0.97].index)
    frame.loc[(frame["strategy"] == "MPL 3") & (frame["interarrival"] == 1), "kept_up"] = False
    kept = keeping_up(compared(frame), "FCFS", "MPL 3")
    assert 1.0 not in kept.index.get_level_values("interarrival")
    assert len(keeping_up(compared(frame), "FCFS")) > len(kept)
    assert set(plain(frame)["variant"].dropna()) == set(VARIANTS)


def test_a_failed_run_ends_the_evaluation(tmp_path):
    with pytest.raises(InputError, match=r"1 run of the study failed; the first: no memory"):
        prepare(pd.DataFrame({"error": [None, "no memory"]}), tmp_path)


def test_all_runs_are_there(shared, tmp_path):
    write_inputs(inputs([shared("traces")], quick=True), tmp_path)
    study = read_sweep(plan([], tmp_path / "inputs", quick=True))
    rows = pd.DataFrame([run.columns for run in study.runs])
    sets = workloads(quick=True)
    of_paper = {one.file for one in (*sets["all"], *sets["other seeds"])}
    model = rows[[PurePath(trace).name in of_paper for trace in rows["trace"]]]
    usual = model[(model["policy"] == "gang") & model["solver"].isna()]
    usual = usual[usual["settings.compact"].isna() & usual["settings.context_switch"].isna()]
    usual = usual[usual["execution"].isna() & (usual["settings.mpl"] > 1)]
    settings = usual["settings.admission"] + ", " + usual["settings.sharing"]
    by_trace = usual[settings.isin(SHARED)].groupby("trace").size()
    assert set(by_trace) == {len(SHARED) * len(MPLS)}
    full = plan([], tmp_path / "inputs", quick=False)["runs"]
    assert len(full[0]["trace"]) == 81
    # the paper's 81 workloads with five strategies, in each variant
    assert 81 * (2 + len(MPLS)) == 405


STATED = [change for _, change in changes(quick=False)]


@pytest.mark.parametrize("change", STATED, ids=lambda change: change.key or "unchanged")
def test_a_change_keeps_the_work_and_the_span_of_the_submissions(change):
    trace = generated(Workload(1.0, 1.3, 1), 500)
    other = changed(trace, change, NODES, 1)
    work, before = ((one.processors * one.runtime).sum() for one in (other, trace))
    assert work == pytest.approx(before, rel=1e-3)
    assert other.submit[[0, -1]].tolist() == trace.submit[[0, -1]].tolist()
    assert (np.diff(other.submit) >= 0).all()
    assert other.processors.min() >= 1
    assert other.processors.max() <= NODES
    assert (other.requested_time >= other.runtime).all()


def test_nothing_else_changes():
    trace = generated(Workload(1.0, 1.3, 1), 500)
    same = changed(trace, UNCHANGED, NODES, 1)
    for name in ("submit", "runtime", "processors", "requested_time"):
        assert (getattr(same, name) == getattr(trace, name)).all()
    bursts = changed(trace, Change(gap_power=2.0), NODES, 1)
    assert np.diff(bursts.submit).std() > np.diff(trace.submit).std()
    assert (bursts.runtime == trace.runtime).all()
    heavy = changed(trace, Change(run_power=2.0), NODES, 1)
    assert (np.argsort(heavy.runtime, kind="stable") == np.argsort(trace.runtime, kind="stable"))[
        -50:
    ].all()
    dealt = changed(trace, Change(shuffled=True), NODES, 1)
    assert sorted(dealt.processors) == sorted(trace.processors)
    assert (dealt.processors != trace.processors).any()
    powers = changed(trace, Change(power_of_two=True), NODES, 1).processors
    assert (powers & (powers - 1) == 0).all()
    assert ((powers >= trace.processors) & (powers < 2 * trace.processors)).all()
    blind = changed(trace, Change(requests=np.inf), NODES, 1)
    assert set(blind.requested_time) == {trace.runtime.max()}


def test_classes_get_the_shares_of_the_paper():
    trace = generated(Workload(1.0, 1.0, 1, Change(published_shares=True)), 10_000)
    for one in UNCHANGED.model.classes:
        of_class = (trace.processors >= one.smallest) & (trace.processors <= one.largest)
        assert 100 * of_class.mean() == pytest.approx(one.share, abs=1)
    usual, shared_out = UNCHANGED.model, Change(published_shares=True).model
    rates = [sum(1 / c.interarrival.mean for c in m.classes) for m in (usual, shared_out)]
    assert rates[0] == pytest.approx(rates[1])


def test_the_sign_turns_between_two_cases():
    def case(power, ratio, seeds=3, **others):
        change = Change(run_power=power, **others)
        return Case(
            1.3, change, 0.7, 2 * power, 10.0, {CLAIMED: Ratio(ratio, 0.0, 9.0, seeds)}, 3, 3
        )

    found = [case(1.0, 2.0), case(3.0, 0.5), case(2.0, 1.2, shuffled=True), case(0.0, 3.0)]
    at = turning(found, "run_power", CLAIMED)
    assert at.value == pytest.approx(2.0)
    assert at.cv == pytest.approx(4.0)
    assert (at.lowest.change.run_power, at.highest.change.run_power) == (0.0, 3.0)
    assert np.isnan(turning(found[::3], "run_power", CLAIMED).value)
    assert turning(found, "size_factor", CLAIMED) is None
    fewer = [*found[:1], case(2.0, 1.25, 2), case(3.0, 0.8, 3), case(4.0, np.nan, FEWEST - 1)]
    at = turning(fewer, "run_power", CLAIMED)
    assert (at.value, at.seeds) == (pytest.approx(2.5), 2)
    assert at.highest.change.run_power == 3.0


def test_a_ratio_counts_only_the_seeds_that_are_kept_up_with():
    rows = [
        {"seed": seed, "strategy": strategy, "variant": variant, "mean_response": response}
        for seed in (1, 2, 3)
        for strategy, variant, response in (
            ("backfilling", None, 1.0),
            ("FCFS", None, 4.0),
            ("EASY", None, 1.0),
            ("MPL 1", "skip, rows", 1.0),
            *(
                (level, f"skip, {share}", float(seed))
                for level in GANG
                for share in ("fill", "nodes")
            ),
        )
    ]
    frame = pd.DataFrame(rows).assign(
        kind="model",
        compact=True,
        execution=None,
        context_switch=0.0,
        solver=None,
        interarrival=CHANGED["interarrival"],
        change="",
        service=CHANGED["service"],
        offered=0.7,
        side_by_side=10.0,
    )
    frame["large_mean_response"] = frame["mean_response"]
    frame["runtime_cv"] = frame["seed"].astype(float)
    frame["kept_up"] = (frame["seed"] < 3) & ((frame["strategy"] != "FCFS") | (frame["seed"] == 1))
    (found,) = cases(frame)
    assert found.ratios[CLAIMED].mean == pytest.approx(2**0.5)
    assert found.ratios[CLAIMED].seeds == found.kept_up == 2
    assert np.isnan(found.ratios[CLAIMED].low)
    assert np.isnan(found.ratios[Quantity("FCFS")].mean)
    assert found.cv == pytest.approx(1.5)


def test_a_closer_look_repeats_a_few_runs(tmp_path):
    """Three jobs, two of them short: by turns of 60 s the second of the short ones waits."""
    trace = Trace(
        job_id=np.arange(1, 4),
        submit=np.array([0, 10, 10]),
        runtime=np.array([600, 20, 30]),
        requested_time=np.array([600, 20, 30]),
        processors=np.array([320, 320, 320]),
    )
    write_trace(trace, tmp_path / "model.swf")
    run = {"trace": "elsewhere/model.swf", "machine": "matrix:320", "policy": "gang"}
    run |= {"change": "", "interarrival": 1.0, "service": 1.0, "compact": True, "execution": None}
    run |= {"context_switch": 0.0, "mpl": 5.0, "admission": "fcfs", "solver": "first-fit"}
    frame = pd.DataFrame([run | {"sharing": sharing} for sharing in ("rows", "turns", "fill")])
    looked = add_closer_looks(frame, tmp_path)
    assert looked["short_share"].tolist()[:2] == pytest.approx([2 / 3, 2 / 3])
    # the first turn ends at 60 s: then the second job runs 20 s, and the third 30 s
    assert looked["short_response"][1] == pytest.approx((70 + 100) / 2)
    assert looked["short_response"][0] == pytest.approx((60 + 80) / 2)
    assert looked["short_response"].isna().tolist() == [False, False, True]
    assert looked["contested"].isna().all()


def test_the_baseline_is_that_of_the_paper(shared):
    """Section 6: about 60 days, a load of 0.55, 30 % large jobs with over 80 % of the work."""
    from optsched.workloads.spec_file import read_workload

    trace = read_workload("franke-1999").generate(10_000, 1)
    offered = offered_by(trace, NODES)
    assert 58 < offered.days < 65
    assert 0.5 < offered.load < 0.58
    large = trace.processors > 32
    work = trace.processors * trace.runtime
    assert 0.28 < large.mean() < 0.32
    assert work[large].sum() / work.sum() > 0.8


def test_the_quick_study_from_the_command_line(shared, tmp_path, capsys, monkeypatch):
    monkeypatch.delitem(style.METADATA, ".png")  # as long in drawing as the others
    traces = str(shared("traces"))
    one = tmp_path / "one"
    quick = ["study", "franke-1999", "--traces", traces, "--quick", "--workers", "1"]
    assert optsched([*quick, "-o", str(one)]) == 0
    assert len(list(one.rglob("run.json"))) > 50
    page = (one / "report.html").read_text()
    assert "A quick look at a small part" in page
    assert f"Figure 5 ({SHOWN})" in page
    about = json.loads((one / "study.json").read_text())
    assert (about["study"], about["quick"]) == ("franke-1999", True)
    capsys.readouterr()


def test_a_study_says_which_log_it_needs(tmp_path, capsys):
    assert optsched(["study", "franke-1999", "--traces", str(tmp_path), "-o", "none"]) == 1
    told = capsys.readouterr().err
    assert "SDSC-BLUE-2000-4.2-cln.swf.gz" in told
    assert "expected --traces" in told
