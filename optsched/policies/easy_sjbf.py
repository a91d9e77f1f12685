"""EASY backfilling in SJBF order: shortest candidate first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from optsched.policies.easy import Easy
from optsched.registry import policies
from optsched.simulator.system import System


@policies.register("easy-sjbf")
@dataclass
class EasySJBF(Easy):
    """EASY whose backfill candidates are tried by requested time, ties by submission.

    References
    ----------
    D. Tsafrir, Y. Etsion, D. Feitelson, "Backfilling using system-generated predictions rather
    than user runtime estimates", IEEE TPDS 18(6), 2007.
    """

    replay: ClassVar[str | None] = "SHORTEST_FIRST"

    def in_order(self, jobs: list[int], system: System) -> list[int]:
        """Return the candidates in backfill order: the shortest first."""
        return sorted(jobs, key=system.requested_time.__getitem__)
