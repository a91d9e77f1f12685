"""Hyper-Erlang distribution of common order, with two phases.

References
----------
M. A. Johnson, M. R. Taaffe, "Matching moments to phase distributions: mixtures of Erlang
distributions of common order", Communications in Statistics: Stochastic Models 5(4), 1989.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

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
