"""EASY backfilling in SJBF order: shortest candidate first."""

from __future__ import annotations

from dataclasses import dataclass

from optsched.policies.easy import Easy
from optsched.registry import policies


@policies.register("easy-sjbf")
@dataclass
class EasySJBF(Easy):
    """EASY whose backfill candidates are tried by requested time, ties by submission.

    References
    ----------
    D. Tsafrir, Y. Etsion, D. Feitelson, "Backfilling using system-generated predictions rather
    than user runtime estimates", IEEE TPDS 18(6), 2007.
    """

    shortest_first = True
