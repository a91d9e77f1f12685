"""EASY backfilling in SJBF order: shortest candidate first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from optsched.policies.easy import Easy
from optsched.registry import policies
from optsched.simulator.system import System

if TYPE_CHECKING:
    from optsched.machines._site_nodes import OnSite
    from optsched.simulator._replay import Runs
    from optsched.simulator._replay import State as ReplayState


@policies.register("easy-sjbf")
@dataclass
class EasySJBF(Easy):
    """EASY whose backfill candidates are tried by requested time, ties by submission.

    References
    ----------
    D. Tsafrir, Y. Etsion, D. Feitelson, "Backfilling using system-generated predictions rather
    than user runtime estimates", IEEE TPDS 18(6), 2007.
    """

    def in_order(self, jobs: list[int], system: System) -> list[int]:
        """Return the candidates in backfill order: the shortest first."""
        return sorted(jobs, key=system.requested_time.__getitem__)

    def replay(self, state: ReplayState, nodes: int | OnSite) -> Runs | None:
        """Replay the policy."""
        from optsched.policies.parts._priority_queue import replay_by_score

        return replay_by_score(state, nodes, backfills=True, shortest_first=True)
