"""The cores of a cluster, as running jobs and plans hold them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from optsched.machines.cluster import Cluster, Cores
from optsched.models.data_placement.solution import Plan


class PlannedCores:
    """From when each core is free, if running jobs end at their limits and plans are kept.

    What a job that ends early gives back is not free for others until everything is planned anew.

    Parameters
    ----------
    machine : Cluster
        The cluster.

    Attributes
    ----------
    available : float64 array, shape (nodes, cores)
        When each core is free for good, in seconds of simulated time.
    reserved : float64 array, shape (nodes, cores)
        Until when a core that is free now, but reserved for later, is free; else 0.
    """

    def __init__(self, machine: Cluster) -> None:
        shape = (machine.nodes, machine.cores)
        self.available = np.full(shape, -np.inf)
        self.reserved = np.zeros(shape)
        self._widest = np.zeros(2, dtype=np.int64)
        self._limit = np.full(shape, -np.inf)

    @property
    def widest_hole(self) -> tuple[int, int]:
        """Cores and node of the widest hole, as far as the authors' program notices."""
        return int(self._widest[0]), int(self._widest[1])

    def start(self, place: Cores, limit: float) -> None:
        """Note that a job runs, until its limit at most."""
        self._limit[place.node, core_numbers(place.cores)] = limit

    def end(self, place: Cores) -> None:
        """Note that a job runs no longer."""
        self._limit[place.node, core_numbers(place.cores)] = -np.inf

    def forget_plans(self) -> None:
        """Return to what the running jobs hold."""
        self.available[:] = self._limit
        self.reserved[:] = 0.0
        self._widest[0] = 0

    def earliest(self, node: int, processors: int, now: float) -> tuple[float, Cores]:
        """Return when a node has enough cores, and those that are free first."""
        order = np.argsort(self.available[node], kind="stable")[:processors]
        start = max(now, float(self.available[node, order[-1]]))
        return start, Cores(node, sum(1 << int(core) for core in order))

    def hold(self, place: Cores, until: float) -> None:
        """Let a planned job have its cores, until its limit."""
        self.available[place.node, core_numbers(place.cores)] = until

    def book(self, plan: Plan, walltimes: NDArray[np.int64], now: float) -> None:
        """Let the jobs of a plan have their cores.

        Parameters
        ----------
        plan : Plan
            The plan.
        walltimes : int64 array, shape (jobs,)
            Seconds that each job of the plan may run.
        now : float
            The time that the plan counts from.
        """
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
    """Return the cores whose bits are set, in order."""
    return [core for core in range(cores.bit_length()) if cores >> core & 1]
