"""A sweep executed in this process, which has everything imported."""

from __future__ import annotations

from collections.abc import Generator, Sequence

from optsched.sweeps.engines import Outcome, Task, execute


class Here:
    """Executes some of the tasks, one after the other.

    Parameters
    ----------
    most : int
        How many; the others count as failed, so that the sweep ends soon.
    """

    slots = 1

    def __init__(self, most: int) -> None:
        self._most = most

    def execute_all(self, tasks: Sequence[Task]) -> Generator[Outcome, None, None]:
        """Yield the outcome of each task."""
        for number, task in enumerate(tasks):
            if number < self._most:
                yield execute(task)
            else:
                yield Outcome(task.run.name, None, "left out by the fuzzer")
