from __future__ import annotations

import numpy as np
import pytest

from optsched.studies.paired import improvement


def test_it_is_the_ratio_of_the_means():
    found = improvement([100, 300], [50, 310])
    assert found.mean == pytest.approx(1 - 360 / 400)
    assert found.worst == pytest.approx(-10 / 300)
    assert found.best == pytest.approx(0.5)
    assert found.pairs == 2


def test_more_may_be_better():
    assert improvement([0.5, 0.5], [0.6, 0.5], more_is_better=True).mean == pytest.approx(0.1)


def test_one_pair_has_no_interval():
    found = improvement([10], [9])
    assert found.mean == pytest.approx(0.1)
    assert np.isnan(found.low)
    assert str(found) == "10.0%"


def test_pairs_that_agree_have_an_interval_of_no_length():
    found = improvement([10, 20, 30], [9, 18, 27])
    assert (found.low, found.high) == (pytest.approx(0.1), pytest.approx(0.1))


def test_the_interval_covers_what_the_pairs_were_drawn_with():
    rng = np.random.default_rng(7)
    covered = 0
    for _ in range(60):
        before = rng.lognormal(5, 0.5, 25)
        after = before * rng.normal(0.8, 0.1, 25)
        found = improvement(before, after)
        assert found.low <= found.mean <= found.high
        covered += found.low <= 0.2 <= found.high
    assert covered >= 50  # of 60 at 95 %; the bootstrap is a little too narrow with 25 pairs


def test_it_repeats():
    rng = np.random.default_rng(1)
    before = rng.uniform(1, 2, 10)
    after = before * rng.uniform(0.5, 1.5, 10)
    assert improvement(before, after) == improvement(before, after)
