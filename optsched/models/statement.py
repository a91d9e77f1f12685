"""Write down the rows of a program one by one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from optsched.models.program import UNBOUNDED


class Statement:
    """Collects the rows of a program."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self._start = [0]
        self._columns: list[int] = []
        self._values: list[int] = []
        self._lower: list[int] = []
        self._upper: list[int] = []

    def add(
        self, name: str, terms: Mapping[int, int], upper: int = UNBOUNDED, lower: int = -UNBOUNDED
    ) -> None:
        """Add a row: `lower` <= sum of value times variable <= `upper`."""
        self.names.append(name)
        self._columns += terms.keys()
        self._values += terms.values()
        self._start.append(len(self._columns))
        self._lower.append(lower)
        self._upper.append(upper)

    def rows(self) -> dict[str, Any]:
        """Return the int64 arrays of the rows by the names that `Program` has for them."""
        lists = {
            "row_start": self._start,
            "columns": self._columns,
            "values": self._values,
            "row_lower": self._lower,
            "row_upper": self._upper,
        }
        return {name: np.array(numbers, dtype=np.int64) for name, numbers in lists.items()}
