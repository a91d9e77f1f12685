"""Workload model of Lublin and Feitelson: rigid jobs with a daily cycle.

References
----------
U. Lublin, D. G. Feitelson, "The workload on parallel supercomputers: modeling the characteristics
of rigid jobs", Journal of Parallel and Distributed Computing 63(11), 2003,
doi:10.1016/S0743-7315(03)00108-4. The values are those of the authors' program ``m_lublin99.c``
(Parallel Workloads Archive) without the distinction between interactive and batch jobs.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from optsched.arrays import Floats, Ints
from optsched.errors import InputError
from optsched.registry import workloads
from optsched.workloads.workload_model import (
    Jobs,
    SpecTable,
    Stream,
    WorkloadModel,
    clock,
    keys_of,
    special_functions,
)

LONGEST_LOG = 12.0
"""Natural logarithm of the longest run time: 45 hours."""

LONGEST_GAP_LOG = 13.0
"""Natural logarithm of the longest interarrival time at the average rate: 5 days."""

LEAST_SHARE = 1e-3
"""Smallest share of a gamma distribution below its limit; less is taken for a mistake."""

BUCKETS = 48
"""Half hours of a day."""

CYCLE_START = 10
"""Half hour (from 0) at which the day described by the gamma distribution begins."""

PROBABILITY, ABOVE_0 = "a probability from 0 to 1", "a number above 0"
RANGES: Mapping[str, tuple[float, float, str]] = {
    "serial_prob": (0, 1, PROBABILITY),
    "pow2_prob": (0, 1, PROBABILITY),
    "uprob": (0, 1, PROBABILITY),
    "pa": (-1, 1, "a number from -1 to 1"),
    "pb": (-10, 10, "a number from -10 to 10"),
    **dict.fromkeys(("a1", "b1", "a2", "b2"), (1e-9, 1e9, ABOVE_0)),
    **dict.fromkeys(("aarr", "barr", "arar", "anum", "bnum"), (1e-9, 1e9, ABOVE_0)),
}
"""Lowest and highest value of each parameter, and its description in messages."""


@workloads.register("lublin-feitelson")
@dataclass(frozen=True)
class LublinFeitelson(WorkloadModel):
    """Sizes that favor powers of two, hyper-gamma run times that depend on size, a daily cycle.

    The parameters have the names of the authors' program. The logarithm of a size is two-stage
    uniform, the natural logarithm of a run time hyper-gamma, and the natural logarithm of an
    interarrival time gamma. The arrival rate follows a daily cycle from midnight, which is submit
    time 0.
    """

    processors: int = 128  # processors of the machine, at least 2
    # Probability of a job on one processor, and of a job on a power of two (from 2)
    serial_prob: float = 0.244
    pow2_prob: float = 0.576
    # Bounds of the two uniform stages of log2 of the size: ``ulow`` to ``umed``, and ``umed``
    # to log2 of the machine. ``umed`` is 2.5 below the last bound if left out.
    ulow: float = 0.8
    umed: float | None = None
    uprob: float = 0.86  # probability of the first stage
    # Shapes and scales of the two gamma distributions of the logarithm of the run time
    a1: float = 4.2
    b1: float = 0.94
    a2: float = 312.0
    b2: float = 0.03
    # Coefficients of the probability of the first distribution: ``pa * size + pb``, kept
    # within 0 and 1
    pa: float = -0.0054
    pb: float = 0.78
    # Shape and scale of the logarithm of the interarrival time, at rush hours
    aarr: float = 10.2303
    barr: float = 0.4871
    arar: float = 1.0225  # factor of ``aarr`` for all hours of the day
    # Shape and scale of the daily cycle, in half hours
    anum: float = 8.1737
    bnum: float = 3.9631
    # See `WorkloadModel`
    description: str = ""
    source: str = ""
    title: str = ""

    def __post_init__(self) -> None:
        spec = SpecTable(self.to_table())
        for key in ("description", "source"):
            spec.text(key)
        top = math.log2(spec.whole("processors", lowest=2, expected="processors of the machine"))
        for key, limits in RANGES.items():
            spec.number(key, *limits)
        ulow = spec.number("ulow", 0, top, f"log2 of a size, from 0 to {top:.4g}")
        if self.umed is not None:
            spec.number("umed", ulow, top, f"log2 of a size, from ulow to {top:.4g}")
        spec.done()
        self._check_together(spec)
        spec.done()

    @classmethod
    def from_table(cls, table: Mapping[str, Any], title: str = "") -> LublinFeitelson:
        """Build a model from the table of a spec; see `WorkloadModel.from_table`."""
        keys = keys_of(cls)
        spec = SpecTable(table)
        spec.known(["model", *keys])
        if "processors" not in table:
            spec.note("processors", "missing; expected processors of the machine from 2")
        try:
            model = cls(**{key: table[key] for key in keys if key in table}, title=title)
        except InputError as error:
            spec.mistakes += error.mistakes
        spec.done()
        return model

    def to_table(self) -> dict[str, Any]:
        """Return the model as the table of a spec, which `from_table` reads back."""
        names = [name for name in keys_of(type(self)) if name != "umed"]
        table = self.table_head() | {name: getattr(self, name) for name in names}
        return table if self.umed is None else table | {"umed": self.umed}

    def draw(self, jobs: int, seed: int, interarrival_factor: float, service_factor: float) -> Jobs:
        """Draw the first `jobs`; see `WorkloadModel.draw`.

        The interarrival factor does not change the daily cycle.
        """
        seeds = np.random.SeedSequence(seed).spawn(3)
        of_sizes, of_services, of_arrivals = (
            Stream(child, lambda rng, n: rng.random((n, 3))).first(jobs).T for child in seeds
        )
        processors = self._sizes(*of_sizes)
        runtime = self._run_times(processors, *of_services[:2]) * service_factor
        shape = self.aarr * self.arar
        gaps = np.exp(_gamma_below(LONGEST_GAP_LOG, shape, self.barr, of_arrivals[0]))
        submit = clock(np.cumsum(gaps * interarrival_factor), self.daily_cycle())
        return Jobs(submit, np.floor(runtime), processors)

    def daily_cycle(self) -> Floats:
        """Return the arrival rate in each half hour from midnight; the mean is 1."""
        edges = (np.arange(BUCKETS + 1) + CYCLE_START + 0.5) / self.bnum
        rates = np.roll(np.diff(special_functions().gammainc(self.anum, edges)), CYCLE_START)
        with np.errstate(invalid="ignore"):
            cycle: Floats = rates / rates.mean()
        return cycle

    def _check_together(self, spec: SpecTable) -> None:
        """Note the parameters that contradict others."""
        if self.serial_prob + self.pow2_prob > 1:
            spec.note("pow2_prob", f"{self.pow2_prob}; expected at most 1 - serial_prob")
        for key, shape, scale, limit in (
            ("a1", self.a1, self.b1, LONGEST_LOG),
            ("a2", self.a2, self.b2, LONGEST_LOG),
            ("aarr", self.aarr * self.arar, self.barr, LONGEST_GAP_LOG),
        ):
            if _share_below(limit, shape, scale) < LEAST_SHARE:
                wanted = f"with {key.replace('a', 'b', 1)} a gamma distribution not all above"
                spec.note(key, f"{getattr(self, key)}; expected {wanted} {limit:g}")
        cycle = self.daily_cycle()
        if not (np.isfinite(cycle).all() and cycle.min() > 0):
            spec.note("anum", f"{self.anum}; expected with bnum some arrivals at all hours")

    def _sizes(self, kind: Floats, stage: Floats, place: Floats) -> Ints:
        """Return a size for each three independent random numbers in [0, 1)."""
        top = math.log2(self.processors)
        middle = max(self.ulow, top - 2.5) if self.umed is None else self.umed
        low = np.where(stage < self.uprob, self.ulow, middle)
        high = np.where(stage < self.uprob, middle, top)
        exponent = low + place * (high - low)
        # a machine whose size is not a power of two does not hold the next power
        power = np.minimum(np.floor(exponent + 0.5), math.floor(top))
        exponent = np.where(kind < self.serial_prob + self.pow2_prob, power, exponent)
        sizes = np.minimum(np.floor(2**exponent + 0.5).astype(np.int64), self.processors)
        return np.where(kind < self.serial_prob, 1, sizes)

    def _run_times(self, processors: Ints, choice: Floats, quantile: Floats) -> Floats:
        """Return a run time for each pair of independent random numbers in [0, 1)."""
        p = np.clip(self.pa * processors + self.pb, 0, 1)
        # a run time that is too long is drawn again, from either of the two distributions
        first = p * _share_below(LONGEST_LOG, self.a1, self.b1)
        second = (1 - p) * _share_below(LONGEST_LOG, self.a2, self.b2)
        logs = np.where(
            choice * (first + second) < first,
            _gamma_below(LONGEST_LOG, self.a1, self.b1, quantile),
            _gamma_below(LONGEST_LOG, self.a2, self.b2, quantile),
        )
        return np.exp(logs)


def _share_below(limit: float, shape: float, scale: float) -> float:
    return float(special_functions().gammainc(shape, limit / scale))


def _gamma_below(limit: float, shape: float, scale: float, quantile: Floats) -> Floats:
    """Return quantiles of a gamma distribution truncated at a limit."""
    share = quantile * _share_below(limit, shape, scale)
    return np.asarray(scale * special_functions().gammaincinv(shape, share))
