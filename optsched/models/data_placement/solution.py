"""Plans of a data placement: node, cores and start of each job."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from optsched.column_sets import columns_on_file, interval_text
from optsched.errors import InputError
from optsched.models.fields import LARGEST_FIELD

LEFT_OUT = -1
"""The node of a job that is not in the plan."""

WIDEST = 62
"""Most cores of a node, so that sets of cores fit into the bits of an int64."""


@dataclass(frozen=True, eq=False, repr=False)
class Plan:
    """Nodes, cores and starts of the jobs of a queue.

    Parameters
    ----------
    node : int64 array, shape (jobs,)
        The node of each job, from 0; -1 for a job that is left out.
    start : int64 array, shape (jobs,)
        Seconds from the decision to the start of each job; 0 for a job that is left out.
    cores : int64 array, shape (jobs,)
        Cores of each job as a bit mask, bit c for core c of its node; 0 for a job that is left out.
    """

    node: NDArray[np.int64]
    start: NDArray[np.int64]
    cores: NDArray[np.int64]

    def __post_init__(self) -> None:
        for name in ("node", "start", "cores"):
            array = np.asarray(getattr(self, name), dtype=np.int64).view()
            array.flags.writeable = False
            object.__setattr__(self, name, array)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Plan):
            return NotImplemented
        return all(
            np.array_equal(getattr(self, field.name), getattr(other, field.name))
            for field in fields(self)
        )

    def __hash__(self) -> int:
        return hash((self.node.tobytes(), self.start.tobytes(), self.cores.tobytes()))

    def __repr__(self) -> str:
        return f"<Plan {np.count_nonzero(self.node != LEFT_OUT)} of {len(self.node)} jobs>"

    @property
    def rows(self) -> NDArray[np.int64]:
        """Node, start and cores, shape (3, jobs)."""
        return np.array([self.node, self.start, self.cores])

    def to_json(self) -> dict[str, Any]:
        """Return node, cores as intervals and start of each job; null for a job left out."""
        places = [
            None if node == LEFT_OUT else {"node": node, "cores": interval_text(mask), "start": at}
            for node, at, mask in zip(self.node.tolist(), self.start.tolist(), self.cores.tolist())
        ]
        return {"place_of_job": places}


def plan_from_json(written: Mapping[str, Any], cores: int) -> Plan:
    """Return the plan written by `Plan.to_json`.

    Parameters
    ----------
    written : mapping
        The object on file.
    cores : int
        Cores of a node.
    """
    places = written.get("place_of_job") if isinstance(written, Mapping) else None
    if not isinstance(places, list):
        raise InputError("expected a list of places, or null", field="place_of_job")
    rows = []
    for job, place in enumerate(places):
        row = (LEFT_OUT, 0, 0) if place is None else _row(place, cores)
        if row is None:
            raise InputError(
                'expected null or an object such as {"node": 0, "cores": "0-3 5", "start": 60}, '
                f"nodes from 0 and cores within 0-{cores - 1}",
                field=f"place_of_job[{job}]",
            )
        rows.append(row)
    return Plan(*np.array(rows, dtype=np.int64).reshape(-1, 3).T)


def _row(place: Any, cores: int) -> tuple[int, int, int] | None:
    if not isinstance(place, Mapping) or set(place) != {"node", "cores", "start"}:
        return None
    node, text, start = place["node"], place["cores"], place["start"]
    if not all(type(number) is int and 0 <= number <= LARGEST_FIELD for number in (node, start)):
        return None
    mask = columns_on_file(text, cores) if isinstance(text, str) and text else None
    if text == "":
        mask = 0
    return None if mask is None else (node, start, mask)
