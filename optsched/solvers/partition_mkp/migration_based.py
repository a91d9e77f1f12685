"""Migration-based placement for the partition knapsack: Algorithm 3 of Li et al. (2015)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from optsched.models.partition_mkp import PartitionMKP, Placement
from optsched.registry import solvers
from optsched.solvers.heuristic import Heuristic
from optsched.solvers.partition_mkp.bins import Bins, Choice


class Move(NamedTuple):
    """A migration of a job to another bin, ordered by cost.

    `increase` is that of the idle routers of the victim, `moved` its routers in the old bin. `home`
    is the old bin, for the incoming job, and `host` the new one.
    """

    increase: int
    moved: int
    victim: int
    home: Choice
    host: Choice


@solvers.register("migration-based")
@dataclass(frozen=True)
class MigrationBased(Heuristic):
    """Direct placement with migrations of placed jobs (Algorithm 3 of Li et al. 2015).

    For each job, the bins that it prefers to the one that accepts it directly, if any, are examined
    in the order of preference. A job there, placed in this decision, is a qualified victim if the
    incoming job fits without it, if another bin accepts it, and if the migration leaves fewer
    routers idle than direct placement. If no bin accepts the incoming job directly, the last
    condition is dropped. In the first bin with qualified victims, the one with the least increase
    of idle routers moves; of equal victims, the smallest, then the first. Work is counted in jobs.

    References
    ----------
    K. Li, M. Malawski, J. Nabrzyski, "Topology-aware scheduling on Blue Waters with proactive
    queue scanning and migration-based job placement", JSSPP 2015.

    Examples
    --------
    The second job takes the layers of four where the first was, so that the third fits, too:

    >>> bins = ["4x2x1@0,0,0", "3x3x1@4,0,0"]
    >>> problem = PartitionMKP((8, 4, 1), bins, waiting=[8, 4, 4])
    >>> [place.bin for place in MigrationBased().place(problem)]
    [1, 0, 0]
    """

    models = frozenset({"partition-mkp"})
    work_unit = "jobs"
    seconds_per_work = 5e-5

    def place(self, problem: PartitionMKP) -> Placement:
        """Return the placement by Algorithm 3."""
        return _Migrating(problem).place()

    def effort(self, problem: PartitionMKP) -> int:
        """Return the number of waiting jobs."""
        return len(problem.waiting)


class _Migrating:
    """State of migration-based placement: the bins, and a cache of hosts of their jobs."""

    def __init__(self, problem: PartitionMKP) -> None:
        self._problem = problem
        self._bins = Bins(problem)
        self._hosts: dict[int, Choice] = {}
        self._stuck: set[int] = set()

    def place(self) -> Placement:
        # sizes that do not fit until a job moves
        hopeless: set[int] = set()
        for job, routers in enumerate(self._problem.routers):
            if routers in hopeless:
                continue
            direct = self._bins.direct(routers)
            choice = direct and direct[0]
            move = self._best_move(routers, choice)
            if move is not None:
                self._bins.bins[move.home.bin].take(move.victim)
                self._put(move.victim, move.host)
                self._stuck.clear()
                hopeless.clear()
                choice = move.home
            if choice is None:
                hopeless.add(routers)
            else:
                self._put(job, choice)
        return self._bins.places(len(self._problem.routers))

    def _put(self, job: int, choice: Choice) -> None:
        knapsack = self._bins.bins[choice.bin]
        spot = knapsack.spot(choice.shape)
        assert spot is not None
        knapsack.put(job, choice.shape, spot)
        self._hosts.clear()

    def _best_move(self, routers: int, direct: Choice | None) -> Move | None:
        """Return the best move out of the first bin that has one, or None.

        Only bins that the job prefers to the bin which accepts it directly are examined.
        """
        for home in self._bins.preferred(routers, direct):
            knapsack = self._bins.bins[home.bin]
            best: Move | None = None
            for victim, (shape, _) in knapsack.held.items():
                moved = shape[0] * shape[1] * shape[2]
                idle = moved - self._problem.routers[victim]
                if direct is not None and home.idle - idle >= direct.idle:
                    continue
                host = self._host(victim, home.bin)
                if host is None or (
                    direct is not None and home.idle + host.idle - idle >= direct.idle
                ):
                    continue
                found = Move(host.idle - idle, moved, victim, home, host)
                if (best is None or found < best) and knapsack.fits_without(victim, home.shape):
                    best = found
            if best is not None:
                return best
        return None

    def _host(self, victim: int, home: int) -> Choice | None:
        """Return the most preferred bin other than `home` that accepts a job, or None."""
        if victim not in self._hosts and victim not in self._stuck:
            direct = self._bins.direct(self._problem.routers[victim], besides=home)
            if direct is None:
                self._stuck.add(victim)
            else:
                self._hosts[victim] = direct[0]
        return self._hosts.get(victim)
