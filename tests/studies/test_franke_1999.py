from __future__ import annotations

import itertools
import json

import numpy as np
import pandas as pd
import pytest

from optsched.cli import run as optsched
from optsched.errors import InputError
from optsched.report.page import Verdict
from optsched.studies.franke_1999.claims import claims
from optsched.studies.franke_1999.evaluation import (
    compared,
    keeping_up,
    plain,
    prepare,
)
from optsched.studies.franke_1999.plan import (
    MPLS,
    PUBLISHED,
    SEEDS,
    SHOWN,
    TABLE,
    VARIANTS,
    Workload,
    inputs,
    plan,
)
from optsched.studies.offered import offered_by
from optsched.studies.study_folder import write_inputs
from optsched.sweeps.sweep_file import read_sweep
from optsched.traces.reading import write_trace
from optsched.traces.trace import Trace

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
            ("settings.mpl", "settings.admission", "settings.sharing", "settings.compact")
        ) | dict.fromkeys(
            ("settings.context_switch", "settings.job_memory", "settings.node_memory")
        )
        for policy in ("fcfs", "conservative"):
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
    assert len(found) == 11 * 2
    assert set(found.values()) == {Verdict.HELD}


def test_what_is_not_so_is_not_held(tiny):
    reverse = {2: (10.0, 1.0), 3: (11.0, 2.0), 5: (12.0, 3.0)}
    worse = {"fcfs": (10.0, 1.0), "conservative": (10.0, 1.0)} | reverse
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


def test_the_highest_load_is_judged_by_the_workloads_near_it(tiny):
    frame = synthetic(tiny, lambda strategy, admission: LIKE_THE_PAPER[strategy])
    frame.loc[frame["offered"] > 0.8, "kept_up"] = False
    found = verdicts(frame)
    keeps_up = {name for name in found if "allows utilizations" in name[0]}
    assert {found[name] for name in keeps_up} == {Verdict.NOT_HELD}


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
    model = rows[rows["trace"].str.contains("model_")]
    usual = model[(model["policy"] == "gang") & model["solver"].isna()]
    usual = usual[usual["settings.compact"].isna() & usual["settings.context_switch"].isna()]
    by_trace = usual[usual["execution"].isna()].groupby("trace").size()
    assert set(by_trace) == {len(VARIANTS) * len(MPLS)}
    full = plan([], tmp_path / "inputs", quick=False)["runs"]
    assert len(full[0]["trace"]) == 81
    # the paper's 81 workloads with five strategies, in each variant
    assert 81 * (2 + len(MPLS)) == 405


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


def test_the_quick_study_from_the_command_line(shared, tmp_path, capsys):
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

    (one / "report.html").unlink()
    assert optsched(["report", str(one)]) == 0
    assert (one / "report.html").read_text() == page
    capsys.readouterr()


def test_a_study_says_which_log_it_needs(tmp_path, capsys):
    assert optsched(["study", "franke-1999", "--traces", str(tmp_path), "-o", "none"]) == 1
    told = capsys.readouterr().err
    assert "SDSC-BLUE-2000-4.2-cln.swf.gz" in told
    assert "expected --traces" in told
