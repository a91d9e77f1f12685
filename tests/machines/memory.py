"""The kernels of the files in the memory of nodes, called one by one."""

from __future__ import annotations

from typing import NamedTuple

from optsched.machines import cluster as kernels
from optsched.machines.cluster import NodeMemory


class Use(NamedTuple):
    """Seconds that a job waits for its file, and whether it loads the file itself."""

    seconds: float
    loads: bool


class Memory(NodeMemory):
    """The memory of nodes, with what jobs do to it."""

    def use(self, node: int, file: int, load: int, now: float, until: float) -> Use:
        """Begin the use of a file by a job."""
        held = (self.table, self.latest_start, self.kept == "next")
        return Use(*kernels.use(*held, node, file, load, float(now), float(until)))

    def start(self, node: int, now: float) -> None:
        """Note the start of a job that uses no file."""
        if self.kept == "next":
            kernels.forget(self.table, self.latest_start, True, node, float(now))

    def drop(self, node: int, file: int, now: float) -> None:
        """End the use of a file by a job."""
        kernels.drop(self.table, node, file, float(now))
