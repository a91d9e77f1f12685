from __future__ import annotations

import numpy as np
import pytest

from optsched.studies.paired import improvement


def test_it_is_the_ratio_of_the_means_over_parts():
    found = improvement([100, 300, 10], [50, 310, 8], ["a", "a", "b"])
    assert found.mean == pytest.approx(1 - (180 + 8) / (200 + 10))
    assert (found.worst, found.best) == (pytest.approx(0.1), pytest.approx(0.2))
    assert (found.parts, found.pairs) == (2, 3)
    assert np.isnan(found.low)
    assert str(found) == "10.5%"


def test_more_may_be_better():
    found = improvement([0.5, 0.5], [0.6, 0.5], [1, 2], more_is_better=True)
    assert found.mean == pytest.approx(0.1)


def test_parts_that_agree_have_an_interval_of_no_length():
    found = improvement([10, 20, 30], [9, 18, 27], [1, 2, 3])
    assert (found.low, found.high) == (pytest.approx(0.1), pytest.approx(0.1))


def test_pairs_of_one_part_do_not_make_the_interval_narrower():
    rng = np.random.default_rng(3)
    before = rng.lognormal(5, 0.5, 6)
    after = before * rng.uniform(0.5, 1.2, 6)
    parts = np.arange(6)
    one = improvement(before, after, parts)
    many = improvement(np.tile(before, 5), np.tile(after, 5), np.tile(parts, 5))
    assert (many.mean, many.low, many.high) == pytest.approx((one.mean, one.low, one.high))
    assert (many.parts, many.pairs) == (6, 30)


def test_the_interval_covers_what_the_parts_were_drawn_with():
    rng = np.random.default_rng(7)
    covered = 0
    for _ in range(60):
        before = rng.lognormal(5, 0.5, 25)
        after = before * rng.normal(0.8, 0.1, 25)
        found = improvement(before, after, np.arange(25))
        assert found.low <= found.mean <= found.high
        covered += found.low <= 0.2 <= found.high
    assert covered >= 50  # of 60 at 95 %; the bootstrap is a little too narrow with 25 parts


def test_it_repeats():
    rng = np.random.default_rng(1)
    before = rng.uniform(1, 2, 10)
    after = before * rng.uniform(0.5, 1.5, 10)
    first, second = (improvement(before, after, np.arange(10)) for _ in range(2))
    assert first == second
