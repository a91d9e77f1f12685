"""Migration-based placement for the partition knapsack: Algorithm 3 of Li et al. (2015)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from optsched.models.partition_mkp import PartitionMKP, Placement
from optsched.registry import solvers
from optsched.solvers.heuristic import Heuristic
from optsched.solvers.partition_mkp.filling import Choice, Fillings


class Move(NamedTuple):
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


@solvers.register("migration-based")
@dataclass(frozen=True)
class MigrationBased(Heuristic):
    """Put each job where it leaves few routers idle, if another one makes room there (Algorithm 3).

    Before a job goes into the bin that accepts it directly, or into none, the bins that it prefers
    to that are looked at in turn. A job there, placed in this decision, is a qualified victim if
    without it there is room for the incoming job, if another bin accepts it, and if both together
    then leave fewer routers idle than without the migration; where no bin accepts the incoming
    job, any migration that makes room is a gain. In the first bin with a qualified victim the one
    with the least increase of idle routers moves; of equal ones the smallest, then the first. Work
    is counted in jobs.

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
    """The bins, and where their jobs could go."""

    def __init__(self, problem: PartitionMKP) -> None:
        self._problem = problem
        self._bins = Fillings(problem)
        self._hosts: dict[int, Choice] = {}
        self._stuck: set[int] = set()

    def place(self) -> Placement:
        # what has no place has none until a job moves
        hopeless: set[int] = set()
        for job, routers in enumerate(self._problem.routers):
            if routers in hopeless:
                continue
            direct = self._bins.direct(routers)
            choice = direct and direct[0]
            move = self._best_move(routers, choice)
            if move is not None:
                self._bins.fillings[move.home.bin].take(move.victim)
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
        filling = self._bins.fillings[choice.bin]
        spot = filling.spot(choice.shape)
        assert spot is not None
        filling.put(job, choice.shape, spot)
        self._hosts.clear()

    def _best_move(self, routers: int, direct: Choice | None) -> Move | None:
        """Return the best move out of the first bin from which there is one.

        Only bins are looked at that the job prefers to the one which accepts it directly.
        """
        for home in self._bins.preferences(routers):
            if home == direct:
                break
            filling = self._bins.fillings[home.bin]
            best: Move | None = None
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
                found = Move(host.idle - idle, moved, victim, home, host)
                if (best is None or found < best) and filling.has_room_without(victim, home.shape):
                    best = found
            if best is not None:
                return best
        return None

    def _host(self, victim: int, home: int) -> Choice | None:
        """Return the bin that a job of bin `home` prefers of all others that accept it."""
        if victim not in self._hosts and victim not in self._stuck:
            direct = self._bins.direct(self._problem.routers[victim], besides=home)
            if direct is None:
                self._stuck.add(victim)
            else:
                self._hosts[victim] = direct[0]
        return self._hosts.get(victim)
