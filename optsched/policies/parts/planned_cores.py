"""Cores of a cluster, as held by running jobs and plans."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from optsched.machines.cluster import Cluster, Cores
from optsched.models.data_placement.solution import Plan


class PlannedCores:
    """Times at which cores are free, if running jobs end at their limits and plans are kept.

    The cores of a job that ends early are not free for others until a complete replan.

    Attributes
    ----------
    available : float64 array, shape (nodes, cores)
        Time from which on each core is free, in seconds of simulated time.
    reserved : float64 array, shape (nodes, cores)
        Time until which a core is free, if free now and reserved for later; else 0.
    """

    def __init__(self, machine: Cluster) -> None:
        shape = (machine.nodes, machine.cores)
        self.available = np.full(shape, -np.inf)
        self.reserved = np.zeros(shape)
        self._widest = np.zeros(2, dtype=np.int64)
        self._limit = np.full(shape, -np.inf)

    @property
    def widest_hole(self) -> tuple[int, int]:
        """Cores and node of the widest hole, as the authors' program tracks it."""
        return int(self._widest[0]), int(self._widest[1])

    def available_from(self, now: float) -> NDArray[np.int64]:
        """Return the whole seconds from now until each core is free, shape (nodes, cores)."""
        from optsched.policies.parts._planned_cores import from_now

        seconds: NDArray[np.int64] = from_now(self.available, now)
        return seconds

    def reserved_from(self, now: float) -> NDArray[np.int64]:
        """Return the whole seconds from now until the end of each hole, shape (nodes, cores)."""
        from optsched.policies.parts._planned_cores import from_now

        seconds: NDArray[np.int64] = from_now(self.reserved, now)
        return seconds

    def start(self, place: Cores, limit: float) -> None:
        """Record the start of a job, which runs until its limit at most."""
        self._limit[place.node, core_numbers(place.cores)] = limit

    def end(self, place: Cores) -> None:
        """Record the end of a job."""
        self._limit[place.node, core_numbers(place.cores)] = -np.inf

    def forget_plans(self) -> None:
        """Drop all plans, so that only running jobs hold cores."""
        self.available[:] = self._limit
        self.reserved[:] = 0.0
        self._widest[0] = 0

    def earliest(self, node: int, processors: int, now: float) -> tuple[float, Cores]:
        """Return the time at which a node has enough cores, and the cores that are free first."""
        order = np.argsort(self.available[node], kind="stable")[:processors]
        start = max(now, float(self.available[node, order[-1]]))
        return start, Cores(node, sum(1 << int(core) for core in order))

    def hold(self, place: Cores, until: float) -> None:
        """Book the cores of a planned job until its limit."""
        self.available[place.node, core_numbers(place.cores)] = until

    def book(self, plan: Plan, walltimes: NDArray[np.int64], now: float) -> None:
        """Book the cores of the jobs of a plan from `now` on, with their walltimes in seconds."""
        from optsched.policies.parts._planned_cores import book

        book(
            self.available,
            self.reserved,
            self._widest,
            now,
            plan.node,
            plan.start,
            plan.cores,
            walltimes,
        )


def core_numbers(cores: int) -> list[int]:
    """Return the numbers of the cores whose bits are set, in order."""
    return [core for core in range(cores.bit_length()) if cores >> core & 1]
