"""Windows to solve, and their optima by brute force."""

import itertools

import numpy as np
from hypothesis import strategies as st

from optsched.models import WindowMKP

sizes = st.integers(1, 12)


@st.composite
def windows(draw, jobs=5, slots=3):
    """Draw a small window: profit is weight, near weight, or anything from 0."""
    weights = draw(st.lists(sizes, max_size=jobs))
    capacities = draw(st.lists(st.integers(0, 20), max_size=slots))
    kind = draw(st.sampled_from(("weight", "correlated", "free")))
    if kind == "weight":
        return WindowMKP(weights=weights, capacities=capacities)
    if kind == "correlated":
        return WindowMKP(weights, capacities, [weight + 3 for weight in weights])
    profit = st.lists(st.integers(0, 15), min_size=len(weights), max_size=len(weights))
    return WindowMKP(weights, capacities, draw(profit))


def optimum_of(window):
    """Try every assignment."""
    choices = range(-1, len(window.capacities))
    return max(
        window.objective(solution)
        for solution in itertools.product(choices, repeat=len(window.weights))
        if not window.violations(solution)
    )


def columns_of(weights, profits, residual, multipliers, unit):
    """Return the arguments of a search over the sets of jobs that slots may hold."""
    return {
        "weights": weights,
        "profits": unit * profits,
        "residual": residual,
        "allowed": weights[None, :] <= residual[:, None],
        "must": np.zeros(len(weights), np.bool_),
        "multipliers": multipliers,
    }
