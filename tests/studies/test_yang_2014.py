"""yang-2014: what matters on its page, computed anew from its stored runs and from the logs."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

STUDIED = "yang-2014"
EXACT = {"variant": "backfill", "window": 5, "interval": 30, "ties": "heuristic"}
EXACT |= {"solver": "branch-and-bound", "charged": False}
ONE_CELL = {"alpha": "alpha == 0.3", "beta": 0.3, "draw": 0}


def chosen(frame, alpha="alpha > 0", log="SDSC-BLUE", **settings):
    """Some of the runs whose submissions are as logged."""
    plain = (frame["shake"].fillna(0) == 0) & (frame["adjacency"].fillna("line") == "line")
    own = frame[plain & (frame["log"] == log)].query(alpha)
    for name, value in settings.items():
        own = own[own[name] == value]
    return own


def by_cell(frame, metric, **settings):
    """The means of some runs: a row for each part, a column for each cell of the tables."""
    own = chosen(frame, **settings)
    return own.pivot_table(index="part", columns=["beta", "alpha"], values=metric).to_numpy()


def default(frame, metric, variant="default, every 30 s", **more):
    return by_cell(frame, metric, variant=variant, stated="scattered", **more)


def window(frame, metric, **more):
    return by_cell(frame, metric, **EXACT | more)


def interval(before, after, of):
    """Student's t with the effect of each part by a numeric derivative in its weight."""
    n, step = len(before), 1e-6

    def value(weights):
        weights = weights[:, None] / weights.sum()
        return of((weights * before).sum(axis=0), (weights * after).sum(axis=0))

    whole = value(np.ones(n))
    effects = [(value(np.ones(n) + step * row) - whole) / step * n for row in np.eye(n)]
    half = stats.t.ppf(0.975, n - 1) * np.std(effects, ddof=1) / n**0.5
    return whole, whole - half, whole + half


def mean_gain(old, new):
    return 100 * float(np.mean(1 - new / old))


@pytest.mark.parametrize("log", ["SDSC-BLUE", "ANL-Intrepid"])
@pytest.mark.parametrize("metric", ["wait", "response"])
def test_the_gains_of_the_tables_are_those_of_the_runs(log, metric, frame, found):
    before, after = (of(frame, f"mean_{metric}", log=log) for of in (default, window))
    assert before.shape == after.shape == (8 if log == "SDSC-BLUE" else 3, 25)
    key = f"{metric}.{'blue' if log == 'SDSC-BLUE' else 'intrepid'}"
    mean, low, high = interval(before, after, mean_gain)
    expected = mean, low, min(high, 100)  # no wait gets more than 100% shorter
    assert found.values[f"{key}±"] == pytest.approx(expected, rel=1e-3)


def test_utilization_falls_with_the_work_and_hardly_without(frame, found):
    falls, free = (
        interval(
            *(of(frame, "utilization", alpha=alpha) for of in (default, window)),
            lambda old, new: -mean_gain(old, new),
        )
        for alpha in ("alpha > 0", "alpha == 0")
    )
    assert found.values["use.blue±"] == pytest.approx(falls, rel=1e-3)
    assert found.values["kept.blue±"] == pytest.approx(free, rel=1e-3)


def test_greedy_which_is_best_in_nearly_all_decisions_is_judged_on_the_same_parts(frame, found):
    base, exact = default(frame, "mean_wait"), window(frame, "mean_wait")
    greedy = window(frame, "mean_wait", solver="greedy")
    gains = [mean_gain(base.mean(axis=0), one.mean(axis=0)) for one in (exact, greedy)]
    assert found.values["greedy.wait.blue"] == pytest.approx(gains[0] - gains[1])
    shorter = interval(greedy, exact, mean_gain)
    assert found.values["exact.wait±"] == pytest.approx(shorter, rel=1e-3)
    own = chosen(frame, **EXACT)
    best = (own["contested"] * own["contested_matched"]).sum() / own["contested"].sum()
    assert found.values["greedy.optimal"] == pytest.approx(100 * best)
    assert found.values["decisions"] == own["problems"].sum()


def test_the_noise_floor_is_that_of_the_random_ties(frame, found):
    base = default(frame, "mean_wait", **ONE_CELL).mean()
    gains = [
        100 * (1 - window(frame, "mean_wait", ties="random", seed=seed, **ONE_CELL).mean() / base)
        for seed in range(8)
    ]
    low, high = stats.t.interval(0.95, 7, scale=np.std(gains, ddof=1) * (9 / 8) ** 0.5)
    assert found.values["noise.ties.wait.blue.smallest"] == pytest.approx((high - low) / 2)
    assert found.values["noise.ties.wait.blue.range"] == pytest.approx((min(gains), max(gains)))


def test_the_curve_has_the_main_reading_and_each_combination_once(study, frame, runs, found):
    columns = study.call("columns", runs)
    ties = [one for one in columns if "ties: at random" in one.choices]
    single = [one.choices for one in columns if one not in ties]
    assert len(single) == len(set(single))
    assert len(ties) >= 8
    assert len(columns) == found.values["curve"]
    [main] = [one.found for one in columns if not one.choices]
    base, own = (of(frame, "mean_wait", **ONE_CELL).mean() for of in (default, window))
    assert main.mean == pytest.approx(100 * (1 - own / base))


@pytest.mark.long
def test_sizes_of_intrepid_fit_the_paper_in_processors(shared, found):
    file = shared("traces/ANL-Intrepid-2009-1200.swf.gz")
    sizes = pd.read_csv(file, sep=r"\s+", comment=";", header=None)[4]  # allocated
    assert found.values["sizes.smallest"] == sizes.min()
    for name, each in (("cores", 1), ("nodes", 4)):
        share = 100 * (sizes / each).between(1024, 8191).mean()
        assert found.values[f"sizes.{name}"] == pytest.approx(share, abs=0.5)
