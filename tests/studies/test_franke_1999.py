"""The functions of the study of Franke et al. 1999, on stored results and on small tables."""

import importlib

import numpy as np
import pandas as pd
import pytest

import optsched
from optsched.content import bundled
from optsched.studies.claims import NotRunError
from optsched.text_files import read_toml
from optsched.traces.trace import Trace

STUDIED = "franke-1999"
CHANGES = read_toml(bundled("studies") / STUDIED / "plan.toml")["own"]["changes"]
NODES = 320
LEVEL_5 = {"one": "MPL 5", "other": "backfilling", "metric": "mean_response"}
USUAL = {"kind": "model", "interarrival": "1", "offered": 0.8, "run": "a", "jobs": 10}


@pytest.fixture(scope="module")
def made(study):
    """The module of the workloads."""
    return importlib.import_module(f"{study._module.__name__}.workloads")


def results(*rows):
    """Make results of runs: strategy, draw, service factor, response, utilization."""
    names = ["strategy", "draw", "service", "mean_response", "utilization"]
    frame = pd.DataFrame(rows, columns=names).assign(**USUAL, shake_seed=np.nan)
    gang = frame["strategy"].str.startswith("MPL")
    choices = {"queue": "in order", "sharing": "fill"}
    choices |= dict.fromkeys(("change", "packing", "cost"))
    return frame.assign(**{name: np.where(gang, one, None) for name, one in choices.items()})


def test_a_change_is_over_the_workloads_that_both_keep_up_with_in_all_draws(study):
    """Ratios 2 and 4 in the first draw, 2 in both others: geometric means 2, 2 and 2 are left."""
    frame = results(
        *[("backfilling", draw, service, 1.0, 0.8) for draw in "123" for service in ("1", "1.3")],
        *[("MPL 5", draw, "1", 2.0, 0.8) for draw in "123"],
        *[("MPL 5", draw, "1.3", 4.0, 0.8) for draw in "12"],
        ("MPL 5", "3", "1.3", 4.0, 0.7),  # 0.7 / 0.8 is below 0.97: it does not keep up
    )

    def change():
        return study.call("change", study.call("load", frame), "fill", **LEVEL_5)

    found = change()
    assert (found.mean, found.low, found.n) == (pytest.approx(100), pytest.approx(100), 3)
    frame.loc[frame["utilization"] < 0.8, "utilization"] = 0.8
    assert change().mean == pytest.approx(100 * (8**0.5 - 1))  # of 2 and 4 in each draw
    no_ratio = (frame["strategy"] == "MPL 5") & (frame["service"] == "1")
    frame.loc[no_ratio, "mean_response"] = 0.0
    assert change().mean == pytest.approx(300)


def test_the_highest_utilization_needs_workloads_that_ask_for_more(study, runs):
    one_row = study.call("System", "MPL 1", "jobs pass", "rows")
    with pytest.raises(NotRunError):  # it is run on loads up to 0.88 alone
        study.call("highest", runs, one_row)


@pytest.mark.parametrize("queue", ["in order", "jobs pass"])
def test_level_1_reverts_to_fcfs_if_jobs_stay_in_order(study, made, queue):
    """What section 1 of the paper says, and why jobs that pass are another system."""
    trace = made.modeled(1.0, 1.3, 1, made.Change(), 300, NODES)
    admission = study.plan["axes"]["queue"][queue]["settings"]["admission"]
    settings = {"mpl": 1, "admission": admission, "sharing": "rows"}
    one = optsched.simulate(trace, "matrix:320", "gang", settings=settings)
    other = optsched.simulate(trace, "nodes:320", "fcfs")
    assert np.array_equal(one.start, other.start) == (queue == "in order")


def test_the_load_is_the_work_over_that_of_the_machine(study):
    """Two jobs of 10 s on 4 and 2 of 8 nodes, submitted 20 s apart: 60 of 160 node-seconds."""
    two = np.array([10, 10])
    trace = Trace(np.array([1, 2]), np.array([0, 20]), two, two, np.array([4, 2]))
    found = study.call("offered_by", trace, "nodes:8")
    assert (found["offered"], found["side_by_side"]) == (60 / 160, 8 / 3)
    assert (found["mean_runtime"], found["runtime_cv"]) == (10, 0)


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_keeps_the_work_and_the_span_of_the_submissions(made, name):
    change = made.Change(**CHANGES[name])
    trace = change.model.generate(500, 1, interarrival_factor=1.0, service_factor=1.3)
    other = made.changed(trace, change, NODES, 1)
    work, before = ((one.processors * one.runtime).sum() for one in (other, trace))
    assert work == pytest.approx(before, rel=1e-3)
    assert other.submit[[0, -1]].tolist() == trace.submit[[0, -1]].tolist()
    assert (np.diff(other.submit) >= 0).all()
    assert 1 <= other.processors.min() <= other.processors.max() <= NODES
    assert (other.requested_time >= other.runtime).all()


def test_nothing_else_changes(made):
    trace = made.modeled(1.0, 1.3, 1, made.Change(), 500, NODES)

    def changed(**how):
        return made.changed(trace, made.Change(**how), NODES, 1)

    for name in ("submit", "runtime", "processors", "requested_time"):
        assert (getattr(changed(), name) == getattr(trace, name)).all()
    bursts = changed(gap_power=2.0)
    assert np.diff(bursts.submit).std() > np.diff(trace.submit).std()
    assert (bursts.runtime == trace.runtime).all()
    heavy = changed(run_power=2.0)
    order = [np.argsort(one.runtime, kind="stable")[-50:].tolist() for one in (heavy, trace)]
    assert order[0] == order[1]
    dealt = changed(shuffled=True)
    assert sorted(dealt.processors) == sorted(trace.processors)
    assert (dealt.processors != trace.processors).any()
    powers = changed(power_of_two=True).processors
    assert (powers & (powers - 1) == 0).all()
    assert ((powers >= trace.processors) & (powers < 2 * trace.processors)).all()
    assert set(changed(requests=np.inf).requested_time) == {trace.runtime.max()}


def test_classes_get_the_shares_of_the_paper(made):
    usual, shared_out = made.Change().model, made.Change(published_shares=True).model
    trace = shared_out.generate(10_000, 1)
    for one in usual.classes:
        of_class = (trace.processors >= one.smallest) & (trace.processors <= one.largest)
        assert 100 * of_class.mean() == pytest.approx(one.share, abs=1)
    rates = [sum(1 / c.interarrival.mean for c in m.classes) for m in (usual, shared_out)]
    assert rates[0] == pytest.approx(rates[1])
