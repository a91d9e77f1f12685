import numpy as np
import pytest

from optsched import simulate
from optsched.errors import InputError


def scattered_third(make_trace):
    # two jobs leave the nodes 0-1 and 4-5 free: the third is scattered, the fourth is not
    return make_trace(
        (0, 50, 50, 2), (0, 200, 200, 2), (0, 50, 50, 2), (60, 100, 100, 4), (300, 100, 100, 4)
    )


def run_of(trace, *, policy="fcfs", machine="nodes:6", **given):
    settings = {"alpha": 0.25, "beta": 1.0} | given
    options = {"execution": "contiguity", "check": True, "compiled_from": 0}
    return simulate(trace, machine, policy, settings=settings, **options)


def test_a_contiguous_allocation_saves_sensitive_jobs_alpha_of_the_run_time(make_trace):
    run = run_of(scattered_third(make_trace))
    assert run.resources[3] == "0-1 4-5"
    assert (run.end - run.start).tolist() == pytest.approx([37.5, 150, 37.5, 100, 75])
    assert run.jobs["lost_time"].tolist() == [0, 0, 0, 25, 0]
    assert run.summary["sensitive_jobs"] == 5
    assert run.summary["sensitive_scattered"] == 1
    assert run.summary["lost_processor_hours"] == pytest.approx(25 * 4 / 3600)
    run = run_of(scattered_third(make_trace), beta=0.0)
    assert (run.end - run.start).tolist() == [50, 200, 50, 100, 100]
    assert run.summary["sensitive_jobs"] == 0


@pytest.mark.parametrize("stated", ["scattered", "contiguous"])
def test_nodes_that_links_of_the_torus_connect_are_contiguous_on_request(stated, make_trace):
    trace = scattered_third(make_trace)
    runs = {
        (machine, adjacency): run_of(trace, machine=machine, stated=stated, adjacency=adjacency)
        for machine in ("torus:1x1x6", "torus:1x1x6:wrap=none")
        for adjacency in ("line", "torus")
    }
    assert {run.resources[3] for run in runs.values()} == {"0-1 4-5"}  # router 5 is beside router 0
    scattered = {key: run.summary["sensitive_scattered"] for key, run in runs.items()}
    assert list(scattered.values()) == [1, 0, 1, 1]
    for key, run in runs.items():
        by_model = (75.0, 100.0) if stated == "scattered" else (100.0, 100 / 0.75)
        assert run.end[3] - run.start[3] == pytest.approx(by_model[scattered[key]])
    with pytest.raises(InputError, match=r"adjacency=torus .* kind torus, not nodes:6"):
        run_of(trace, stated=stated, adjacency="torus")


@pytest.mark.parametrize("alpha", [0.0, 0.5])
@pytest.mark.parametrize("policy", ["fcfs", "easy"])
def test_both_readings_are_one_run_if_the_traces_state_the_same_times(alpha, policy, make_trace):
    rng = np.random.default_rng(3)
    submit, runtime, size = (rng.integers(*ends, 80) for ends in ((0, 3000), (1, 40), (1, 5)))
    runs = []
    for stated, time in (("contiguous", 12 * runtime), ("scattered", 12 * runtime / (1 - alpha))):
        rows = zip(np.sort(submit), time.astype(int), time.astype(int), size)
        runs.append(run_of(make_trace(*rows), stated=stated, alpha=alpha, policy=policy))
    assert runs[0].start == pytest.approx(runs[1].start)
    assert runs[0].end == pytest.approx(runs[1].end)
    assert runs[0].jobs["lost_time"].tolist() == pytest.approx(runs[1].jobs["lost_time"].tolist())
    assert runs[0].summary["sensitive_scattered"] > 0


def test_the_draw_is_exact_seeded_and_nested(make_trace):
    trace = make_trace(*[(k, 10, 10, 1) for k in range(200)])
    chosen = {
        (beta, draw): run_of(trace, beta=beta, draw=draw, machine="nodes:8").jobs["sensitive"]
        for beta in (0.1, 0.25)
        for draw in (0, 1)
    }
    assert [int(column.sum()) for column in chosen.values()] == [20, 20, 50, 50]
    assert (chosen[0.1, 0] <= chosen[0.25, 0]).all()
    assert not np.array_equal(chosen[0.1, 0], chosen[0.1, 1])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"alpha": 1}, "expected a share from 0 and below 1"),
        ({"beta": 1.5}, "expected a share from 0 to 1"),
        ({"draw": -1}, "expected a seed from 0"),
        ({"stated": "both"}, "expected one of scattered, contiguous"),
        ({"adjacency": "ring"}, "expected one of line, torus"),
        ({"gamma": 1}, "setting 'gamma' of policy 'window' and execution model 'contiguity'"),
    ],
)
def test_settings_are_checked(settings, message):
    with pytest.raises(InputError, match=message):
        simulate("unread.swf", policy="window", execution="contiguity", settings=settings)


def test_policy_and_model_take_their_own_settings(make_trace):
    settings = {"window": "7", "alpha": "0.5"}
    trace = scattered_third(make_trace)
    run = simulate(trace, "nodes:6", "window", execution="contiguity", settings=settings)
    assert run.config["settings"]["window"] == 7
    defaults = {"beta": 0.3, "draw": 0, "stated": "scattered", "adjacency": "line"}
    assert run.config["execution_settings"] == {"alpha": 0.5} | defaults
