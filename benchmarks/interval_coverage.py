"""How often do 95% intervals from a few units hold the truth? By kind, units, quantity and law.

`mean` is the mean of one value of each unit; `ratio` the share by which a mean falls, from a value
before and after of each unit. A percentile bootstrap stands beside the two kinds that studies use.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import pandas as pd

from optsched.studies import intervals

UNITS = (3, 5, 6, 8, 20, 50)
SPREAD = 0.5
"""Of the change of a unit, in its logarithm."""


def drawn(rng, law, shape):
    """Return values before and after, and the share by which their mean falls in truth."""
    if law == "normal":
        before = rng.normal(10, 2, shape)
        return before, 0.8 * before + rng.normal(0, 1, shape), 0.2
    before = rng.lognormal(size=shape)
    change = rng.normal(-0.2, SPREAD, shape)
    return before, before * np.exp(change), 1 - np.exp(-0.2 + SPREAD**2 / 2)


def percentile(units, of):
    """Return the ends of a percentile bootstrap."""
    places = np.random.default_rng(0).integers(len(units), size=(1000, len(units)))
    return np.quantile(of(units[places].mean(axis=1)), [0.025, 0.975])


def coverage(rng, law, quantity, n, samples):
    """Return the share of samples whose interval holds the truth, by kind of interval."""
    before, after, truth = drawn(rng, law, (samples, n))
    hits = {"percentile": 0, "BCa": 0, "t": 0}
    usual = intervals.ENOUGH
    for one, other in zip(before, after):
        units, right = np.column_stack([one, other]), truth
        if quantity == "mean":
            units, right = one[:, None], 10.0 if law == "normal" else np.exp(0.5)
        of = _fall if quantity == "ratio" else _mean
        ends = {"percentile": percentile(units, of)}
        for kind, enough in (("t", n + 1), ("BCa", 0)):
            intervals.ENOUGH = enough
            found = intervals.reduction(one, other) if quantity == "ratio" else None
            found = intervals.mean_of(one) if found is None else found
            ends[kind] = (found.low, found.high)
        intervals.ENOUGH = usual
        for kind, (low, high) in ends.items():
            hits[kind] += low <= right <= high
    return {kind: hit / samples for kind, hit in hits.items()}


def _fall(means):
    return 1 - means[..., 1] / means[..., 0]


def _mean(means):
    return means[..., 0]


def main():
    """Write ``interval-coverage.txt``."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=2000)
    parser.add_argument("-o", type=Path, default=Path("benchmarks/results"))
    asked = parser.parse_args()
    intervals.RESAMPLES = 1000
    rows = [
        {"quantity": quantity, "units": n, "law": law}
        | coverage(np.random.default_rng(n), law, quantity, n, asked.samples)
        for quantity in ("mean", "ratio")
        for n in UNITS
        for law in ("normal", "lognormal")
    ]
    text = pd.DataFrame(rows).to_string(index=False, float_format="{:.3f}".format)
    (asked.o / "interval-coverage.txt").write_text(text + "\n")
    print(text)


if __name__ == "__main__":
    main()
