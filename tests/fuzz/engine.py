"""A sweep executed in this process, which has everything imported."""

from __future__ import annotations

from collections.abc import Generator, Sequence

from optsched.sweeps.engines import Outcome, Task, execute


class Here:
    """Executes at most so many tasks, one after the other; the others fail, to end soon."""

    slots = 1

    def __init__(self, most: int) -> None:
        self._most = most

    def execute_all(self, tasks: Sequence[Task]) -> Generator[Outcome, None, None]:
        """Yield the outcome of each task."""
        for task in tasks[: self._most]:
            yield execute(task)
        for task in tasks[self._most :]:
            yield Outcome(task.run.name, None, "left out by the fuzzer")
