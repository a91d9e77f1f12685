"""Memory bandwidth that the processes of jobs demand, drawn at random.

References
----------
F. Guim, I. Rodero and J. Corbalan, "The resource usage aware backfilling", JSSPP 2009, sections
6.1 and 6.2.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from optsched.errors import InputError
from optsched.numbers import MOST_CAPACITY, check_seed
from optsched.traces.cleaning import clean
from optsched.traces.trace import Trace

LEVELS: Mapping[str, int] = {"high": 2000, "medium": 1000, "low": 500}
"""MB/s for each process. The paper's number for "high" is illegible; 2,000 is a choice."""

MIXES: Mapping[str, tuple[int, int, int]] = {
    "HIGH": (80, 10, 10),
    "MED": (50, 10, 40),
    "LOW": (10, 10, 80),
}
"""Percent of the jobs with high, medium and low demand."""


def drawn(
    trace: Trace,  # the trace; a raw one is cleaned first
    # The paper's mix of that name, or percent of the jobs with high, medium and low demand
    mix: str | tuple[int, int, int],
    seed: int = 0,  # seed of the random numbers
    # MB/s for each process at ``high``, ``medium`` and ``low``. A level that is left out is
    # that of `LEVELS`.
    levels: Mapping[str, int] = LEVELS,
) -> Trace:
    """Return the trace with the annotation ``bandwidth``, in MB/s for each process, int64.

    Each job draws one random number, in the order of the cleaned trace, and the shares of the mix
    turn that number into a high, medium or low demand. So with one seed, no job demands less in a
    mix of more pressure: the jobs with high demand in LOW have it in MED and HIGH too. A note in
    the header records the draw.
    """
    shares = _shares(mix)
    amounts = _amounts(levels)
    check_seed(seed)
    trace = clean(trace)
    number = np.random.default_rng(seed).random(len(trace))
    ends = np.array([shares[0], shares[0] + shares[1]]) / 100
    annotated = trace.annotated(bandwidth=amounts[np.searchsorted(ends, number, side="right")])
    parts = ", ".join(
        f"{amount:,} MB/s for each process of {share} % of the jobs"
        for amount, share in zip(amounts.tolist(), shares)
    )
    note = f"bandwidth drawn by optsched, seed {seed}: {parts}"
    return replace(annotated, header=trace.header.noted(note))


def _shares(mix: str | tuple[int, int, int]) -> tuple[int, int, int]:
    shares = MIXES.get(mix.upper(), ()) if isinstance(mix, str) else tuple(mix)
    whole = all(type(share) is int and share >= 0 for share in shares)
    if len(shares) != 3 or not whole or sum(shares) != 100:
        expected = (
            f"expected {', '.join(MIXES)} or the percent of the jobs with high, medium and low "
            "demand, 100 in all: 80:10:10 for instance"
        )
        shown = mix if isinstance(mix, str) else ":".join(map(str, mix))
        raise InputError(f"{shown!r}; {expected}", field="mix")
    high, medium, low = shares
    return high, medium, low


def _amounts(levels: Mapping[str, int]) -> NDArray[np.int64]:
    """Return the amounts of the levels, from high to low."""
    for name in levels:
        if name not in LEVELS:
            raise InputError(f"{name!r}; expected {', '.join(LEVELS)}", field="levels")
    known = {**LEVELS, **levels}
    for name, amount in known.items():
        if type(amount) is not int or not 0 <= amount <= MOST_CAPACITY:
            expected = f"expected a whole number from 0 to {MOST_CAPACITY:,}"
            raise InputError(f"{name}={amount}; {expected}", field="levels")
    amounts = list(known.values())
    if amounts != sorted(amounts, reverse=True):
        shown = ",".join(f"{name}={amount}" for name, amount in known.items())
        expected = f"expected {' >= '.join(LEVELS)}"
        raise InputError(f"{shown!r}; {expected}", field="levels")
    return np.array(amounts)
