"""Migration-based placement for the partition knapsack: Algorithm 3 of Li et al. (2015)."""

from __future__ import annotations

from typing import NamedTuple

from optsched.models.partition_mkp import PartitionMKP
from optsched.models.partition_mkp_boxes import Placement
from optsched.solvers.partition_mkp.filling import Choice, Fillings


class Migration(NamedTuple):
    """A job that leaves its bin for another one; they compare by cost, the best first.

    Parameters
    ----------
    increase : int
        Idle routers that the victim has more in its new bin.
    moved : int
        Routers that it takes in the old one.
    victim : int
        The job.
    home : Choice
        The bin for the incoming job, which the victim leaves.
    host : Choice
        The bin that the victim goes to.
    """

    increase: int
    moved: int
    victim: int
    home: Choice
    host: Choice


def placed_by_migration(problem: PartitionMKP) -> Placement:
    """Put each job where it leaves few routers idle, if another one makes room there (Algorithm 3).

    Before a job goes into the bin that accepts it directly, or into none, the bins that it prefers
    to that are looked at in turn. A job there, placed in this decision, is a qualified victim if
    without it there is room for the incoming job, if another bin accepts it, and if both together
    then leave fewer routers idle than without the migration; where no bin accepts the incoming
    job, any migration that makes room is a gain. In the first bin with a qualified victim the one
    with the least increase of idle routers moves; of equal ones the smallest, then the first.
    """
    return _Migrating(problem).place()


class _Migrating:
    """The bins, and where their jobs could go."""

    def __init__(self, problem: PartitionMKP) -> None:
        self._problem = problem
        self._bins = Fillings(problem)
        self._hosts: dict[int, Choice | None] = {}

    def place(self) -> Placement:
        hopeless: set[int] = set()
        bins = self._bins
        for job, routers in enumerate(self._problem.routers):
            if routers in hopeless:
                continue
            choices = bins.choices(routers)
            direct = bins.direct(choices)
            migration = self._migration(choices, direct and direct[0])
            if migration is not None:
                self._move(migration)
                direct = bins.direct([migration.home])
                hopeless.clear()
            if direct is None:
                hopeless.add(routers)
                continue
            bins.put(job, *direct)
            self._hosts.clear()
        return bins.places(len(self._problem.routers))

    def _migration(self, choices: list[Choice], direct: Choice | None) -> Migration | None:
        """Return the best migration out of the first bin from which there is one.

        Only bins are looked at that the job prefers to the one which accepts it directly.
        """
        for home in choices:
            if home == direct:
                break
            filling = self._bins.fillings[home.bin]
            best: Migration | None = None
            for victim, (shape, _) in filling.held.items():
                moved = shape[0] * shape[1] * shape[2]
                idle = moved - self._problem.routers[victim]
                if direct is not None and home.idle - idle >= direct.idle:
                    continue
                host = self._host(victim, home.bin)
                if host is None or (
                    direct is not None and home.idle + host.idle - idle >= direct.idle
                ):
                    continue
                found = Migration(host.idle - idle, moved, victim, home, host)
                if (best is None or found < best) and filling.has_room_without(victim, home.shape):
                    best = found
            if best is not None:
                return best
        return None

    def _host(self, victim: int, home: int) -> Choice | None:
        """Return the bin that a job of bin `home` prefers of all others with room for it."""
        if victim not in self._hosts:
            choices = self._bins.choices(self._problem.routers[victim])
            direct = self._bins.direct([choice for choice in choices if choice.bin != home])
            self._hosts[victim] = direct and direct[0]
        return self._hosts[victim]

    def _move(self, migration: Migration) -> None:
        fillings = self._bins.fillings
        fillings[migration.home.bin].take(migration.victim)
        direct = self._bins.direct([migration.host])
        if direct is not None:
            self._bins.put(migration.victim, *direct)
