"""Hyper-Erlang distribution of common order, with two phases, and its fit to three moments.

The fit is the simplest of four families. With the reduced moments ``m_k = mu_k / (n (n+1) ...
(n+k-1))`` a Hyper-Erlang distribution of order ``n`` has the moments ``mu_k`` if and only if the
means ``1/lambda_i`` of its stages are a two-point distribution with the moments ``m_k``. Such a
distribution with positive points exists if and only if ``m_2 > m_1^2`` and ``m_1 m_3 > m_2^2``;
both conditions hold from some order on, unless the data are degenerate.

M. A. Johnson, M. R. Taaffe, "Matching moments to phase distributions: mixtures of Erlang
distributions of common order", Communications in Statistics: Stochastic Models 5(4), 1989.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from optsched.errors import InputError

SLOWEST, FASTEST = 1e-50, 1e50
"""Range of the rates; the moments of others might overflow a float."""

LARGEST_ORDER = 1_000_000
"""Most stages; a larger number is taken for a mistake."""


@dataclass(frozen=True)
class HyperErlang:
    """Mixture of two Erlang distributions of the same order.

    The Laplace transform is the sum over both phases of ``p_i (rate_i / (s + rate_i))^order``.

    >>> times = HyperErlang(order=2, rates=(0.01, 0.5), p1=0.25)
    >>> times.family, times.mean
    ('hyper-Erlang', 53.0)
    """

    order: int  # number of exponential stages of each phase, from 1
    rates: tuple[float, float]  # rate of the stages in each phase, in 1/s, above 0
    p1: float = 1.0  # probability of the first phase, from 0 to 1

    def __post_init__(self) -> None:
        mistakes = []
        if type(self.order) is not int or not 1 <= self.order <= LARGEST_ORDER:
            wanted = f"a whole number from 1 to {LARGEST_ORDER}"
            mistakes.append(f"order: {self.order!r}; expected {wanted}")
        for name, rate in zip(("lambda1", "lambda2"), self.rates):
            if not (_is_number(rate) and SLOWEST <= rate <= FASTEST):
                wanted = f"a rate per second, from {SLOWEST:g} to {FASTEST:g}"
                mistakes.append(f"{name}: {rate!r}; expected {wanted}")
        if not (_is_number(self.p1) and 0 <= self.p1 <= 1):
            mistakes.append(f"p1: {self.p1!r}; expected a probability from 0 to 1")
        if mistakes:
            raise InputError(*mistakes)

    @classmethod
    def erlang(cls, order: int, rate: float) -> HyperErlang:
        """Return an Erlang distribution; order 1 gives the exponential distribution."""
        return cls(order, (rate, rate))

    @property
    def probabilities(self) -> tuple[float, float]:
        """Probability of each phase."""
        return self.p1, 1.0 - self.p1

    @property
    def family(self) -> str:
        """Name of the family: exponential, Erlang, hyper-exponential or hyper-Erlang."""
        single = self.p1 in (0, 1) or self.rates[0] == self.rates[1]
        if self.order == 1:
            return "exponential" if single else "hyper-exponential"
        return "Erlang" if single else "hyper-Erlang"

    @property
    def mean(self) -> float:
        """Expectation, in seconds."""
        return self.moment(1)

    def moment(self, k: int) -> float:
        """Return the noncentral moment ``E[t^k]``, in seconds to the power of `k` (from 1)."""
        rising = math.prod(range(self.order, self.order + k))
        return rising * sum(p / rate**k for p, rate in zip(self.probabilities, self.rates))

    def sample(self, rng: np.random.Generator, size: int) -> NDArray[np.float64]:
        """Draw `size` independent times, in seconds."""
        rates = np.where(rng.random(size) < self.p1, *self.rates)
        times: NDArray[np.float64] = rng.standard_gamma(self.order, size) / rates
        return times

    def to_table(self) -> dict[str, Any]:
        """Return the parameters under the names of a workload spec."""
        lambda1, lambda2 = self.rates
        return {"lambda1": lambda1, "lambda2": lambda2, "order": self.order, "p1": self.p1}


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


HIGHEST_ORDER = 1000
"""Highest order; times that need a higher one are nearly constant."""

CLOSE = 1e-9
"""Relative difference below which two moments count as equal."""


class Fit(NamedTuple):
    """Fitted distribution, and the moments that it shares with the data."""

    distribution: HyperErlang  # the simplest distribution found
    matched: int  # number of matched moments, from the first on; at most three
    note: str  # reason for not matching all three moments, and the replacement; empty if all match


def fit_moments(mu1: float, mu2: float, mu3: float) -> Fit:
    """Fit the first three noncentral moments of times.

    They are the means of the times, of their squares and of their cubes, in powers of seconds. The
    fit is the exponential or Erlang distribution with these moments (up to a relative 1e-9 in the
    second and third), else the Hyper-Erlang distribution of the least order, which is
    hyper-exponential at order 1. The first phase has the longer times.
    """
    moments = (mu1, mu2, mu3)
    if not all(math.isfinite(mu) and mu > 0 for mu in moments):
        raise InputError(f"moments {mu1}, {mu2}, {mu3}; expected finite numbers above 0")
    # moments of the times over their mean; by Cauchy and Schwarz square >= 1, cube >= square^2
    square, cube = mu2 / mu1 / mu1, mu3 / mu1 / mu1 / mu1
    if min(square, cube / square / square) < 1 - CLOSE or math.isinf(cube):
        raise InputError(f"no positive times have the moments {mu1}, {mu2}, {mu3}")
    order = max(1, min(round(1 / (square - 1)), HIGHEST_ORDER)) if square > 1 else HIGHEST_ORDER
    erlang = HyperErlang.erlang(order, order / mu1)
    if _matched(erlang, moments) == 3:
        return Fit(erlang, 3, "")
    least = _least_order(square, cube)
    if least is not None:
        fitted = _three_moments(least, mu1, square, cube)
        return Fit(fitted, _matched(fitted, moments), "")
    least = _least_order(square, math.inf)
    if least is not None:
        fitted = _two_moments(least, mu1, square)
        note = (
            f"the third moment needs an order above {HIGHEST_ORDER}; "
            "matched the first two, each phase with half of the mean"
        )
        return Fit(fitted, _matched(fitted, moments), note)
    note = (
        f"nearly constant times: the moments need an order above {HIGHEST_ORDER}; "
        f"took an Erlang distribution of order {order} with the same mean"
    )
    return Fit(erlang, _matched(erlang, moments), note)


def _least_order(square: float, cube: float) -> int | None:
    """Return the least order that fulfills both conditions; None if above `HIGHEST_ORDER`."""
    for order in range(1, HIGHEST_ORDER + 1):
        m2, m3 = _reduced(order, square, cube)
        if m2 > 1 and m3 > m2 * m2:
            return order
    return None


def _reduced(order: int, square: float, cube: float) -> tuple[float, float]:
    """Return the second and third reduced moments, relative to the first."""
    m2 = square * order / (order + 1)
    return m2, cube * order * order / ((order + 1) * (order + 2))


def _three_moments(order: int, mu1: float, square: float, cube: float) -> HyperErlang:
    m2, m3 = _reduced(order, square, cube)
    variance = m2 - 1
    # around the mean the roots do not cancel: their product is minus the variance
    shift = (m3 - 3 * m2 + 2) / variance
    farther = (shift + math.copysign(math.hypot(shift, 2 * math.sqrt(variance)), shift)) / 2
    above, below = sorted((farther, -variance / farther), reverse=True)
    longer = 1 + above
    # near 0 the sum could round to 0; the quotient of the conditions stays positive
    shorter = 1 + below if below > -0.5 else (m3 - m2 * m2) / (variance * longer)
    p1 = -below / (above - below)
    return HyperErlang(order, (_rate(order, mu1, longer), _rate(order, mu1, shorter)), p1)


def _two_moments(order: int, mu1: float, square: float) -> HyperErlang:
    m2 = square * order / (order + 1)
    longer = m2 + math.sqrt(m2 * (m2 - 1))
    shorter = m2 / longer
    return HyperErlang(
        order, (_rate(order, mu1, longer), _rate(order, mu1, shorter)), 1 / (2 * longer)
    )


def _rate(order: int, mu1: float, point: float) -> float:
    return min(max(order / mu1 / point, SLOWEST), FASTEST)


def _matched(distribution: HyperErlang, moments: tuple[float, ...]) -> int:
    """Return the number of moments that a distribution matches, from the first on."""
    matched = 0
    for k, mu in enumerate(moments, 1):
        if abs(distribution.moment(k) - mu) > CLOSE * mu:
            break
        matched = k
    return matched
