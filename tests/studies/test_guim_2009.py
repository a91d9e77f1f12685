"""The functions of the study of Guim et al. 2009, on stored results and on small tables."""

import numpy as np
import pandas as pd
import pytest

from optsched.schedule import State

STUDIED = "guim-2009"
KILLED = {"other": "FF", "metric": "killed"}


def test_only_measured_jobs_that_finished_count(study):
    states = [*[State.KILLED] * 3, State.FINISHED, State.FINISHED, State.KILLED]
    columns = {"bounded_slowdown": [1.0, 3, 9], "turnaround_time": [100.0, 300, 9]}
    columns |= {"run_time": [50.0, 60, 9], "requested_time": [100.0, 100, 10]}
    columns |= {"waiting_time": [10, 30, 90], "penalised_percent": [0, 20, np.nan]}
    before = {name: [of[2]] * 3 + of for name, of in columns.items()}
    jobs = pd.DataFrame({"measured": [0] * 3 + [1] * 3, "final_state": states} | before)
    found = study.call("figures_of", jobs)
    assert (found["killed"], found["killed_with_slack"]) == (1, 1)
    names = ("bounded_slowdown", "penalised_slowdown", "requested_slowdown", "wait")
    assert [found[f"mean_{name}"] for name in names] == [3.5, 2.0, 2.0, 20.0]
    assert found["p95_penalised_percent"] == pytest.approx(19.0)


def test_a_threshold_above_the_penalty_of_a_full_node_is_first_fit(study, runs):
    """Four high demands of 2,000 MB/s slow a node of 6,000 MB/s down by 1.333."""
    thresholds = ("LC", "LCT=1", "LCT=1.25", "LCT=1.5")
    assert [study.call("is_first_fit", one, 2000) for one in thresholds] == [False] * 3 + [True]
    assert study.call("is_first_fit", "LCT=1.15", 1725)
    assert not study.call("is_first_fit", "LCT=1.15", 1726)
    assert study.call("same", runs, "LCT=1.5", "FF")
    assert not study.call("same", runs, "LCT=1.25", "FF")


def test_ratios_are_means_of_the_parts_and_published_ones_leave_out_what_is_lost(study, runs):
    """Killed jobs with First Fit and HIGH are lost for SDSC."""
    what = {"one": "LC", "other": ["FF", "RUA"], "metric": "killed", "centres": ["SDSC"]}
    found = study.call("times", runs, "chosen", **what)
    own = runs.all.loc[(2000, "at-each-instant")]["killed"]
    lc, first_fit, rua = (
        own.loc[(limits, name, "SDSC")].unstack("part").sum().to_numpy()
        for name, limits in (("LC", "requested"), ("FF", "requested"), ("RUA", "raised"))
    )
    assert found.mean == pytest.approx((lc / np.minimum(first_fit, rua)).mean())
    found = study.call("paper_times", runs, one="LCT=1.15", mixes=["HIGH", "MED"], **KILLED)
    ctc, sdsc = (70 + 77) / (428 + 247), 79 / 255
    assert found == pytest.approx((ctc + sdsc) / 2)
