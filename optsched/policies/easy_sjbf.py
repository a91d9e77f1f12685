"""EASY backfilling, shortest candidate first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from optsched.policies.easy import Easy
from optsched.registry import policies
from optsched.simulator.system import System


@policies.register("easy-sjbf")
@dataclass
class EasySJBF(Easy):
    """EASY in which backfill candidates are tried by requested time, ties by submission.

    References
    ----------
    D. Tsafrir, Y. Etsion, D. Feitelson, "Backfilling using system-generated predictions rather
    than user runtime estimates", IEEE TPDS 18(6), 2007.
    """

    def candidates(self, system: System) -> Sequence[int]:
        """Return the jobs behind the head that fit now, the shortest first."""
        return sorted(super().candidates(system), key=system.requested_time.__getitem__)
