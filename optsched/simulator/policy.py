"""The contract of a policy."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from typing import ClassVar, NamedTuple

from optsched.errors import InputError
from optsched.numbers import LONGEST
from optsched.simulator.actions import Action
from optsched.simulator.system import System

SHORTEST_INTERVAL = 1e-6
"""Seconds; shorter ones are lost in the rounding of simulated time."""


class Answers(NamedTuple):
    """What answers the problems of a model when the user names nothing.

    Parameters
    ----------
    solver : str
        Name of the solver.
    fallback : str
        Name of the heuristic that decides when the solver fails, or has nothing better when it
        ends.
    by_objective : bool
        Whether the answer has to be sought by the model's objective, as published rules do not.
    """

    solver: str
    fallback: str
    by_objective: bool = False


class Policy(ABC):
    """Looks at the queue and the machine, and says what to do.

    A subclass is a dataclass whose fields are its settings, registered with
    ``@policies.register(name)``.

    Attributes
    ----------
    name : str
        The registered name; of a policy that is not registered, the name of its class.
    machines : frozenset of str
        The kinds of machine it can run on, and on those that extend them: a torus is also a line of
        nodes.
    models : mapping of str to Answers
        The kinds of problems it poses, and what answers them; empty for a policy that poses none.
    execution : str or None
        Name of the execution model that runs the jobs when the user names none.
    replay : str or None
        Name of the rule in ``optsched.simulator._replay`` that states the very same policy,
        compiled. Not inherited: a subclass decides differently.
    enforces_limits : bool
        Whether a job is killed when its requested time is over.
    interval : float
        Seconds between two decisions; with 0 every event is followed by one. A policy with an
        interval wakes on a tick only if something has changed since the last; what it started
        itself is such a change.
    """

    name: ClassVar[str]
    machines: ClassVar[frozenset[str]] = frozenset({"nodes"})
    models: ClassVar[Mapping[str, Answers]] = {}
    execution: ClassVar[str | None] = None
    replay: ClassVar[str | None] = None
    enforces_limits: ClassVar[bool] = True
    interval: float = 0.0

    def __init_subclass__(cls) -> None:
        """Name a policy after its class, until it is registered under a name."""
        super().__init_subclass__()
        cls.name = cls.__name__
        cls.replay = cls.__dict__.get("replay")

    def begin(self, system: System) -> None:  # noqa: B027 (most policies keep nothing)
        """Make ready for a run; whatever is remembered of an earlier one is forgotten."""

    def check_interval(self) -> None:
        """Refuse an interval that is lost in the rounding of simulated time, or loses that of jobs.

        Raises
        ------
        InputError
            If it is neither 0 nor between `SHORTEST_INTERVAL` and `LONGEST`.
        """
        interval = self.interval
        if interval != 0 and not SHORTEST_INTERVAL <= interval <= LONGEST:
            expected = f"expected 0 or seconds from {SHORTEST_INTERVAL} to {LONGEST:,}"
            raise InputError(f"{interval}; {expected}", field=f"interval of policy {self.name!r}")

    def posed(self) -> Mapping[str, Answers]:
        """Return those of `models` that it poses with its settings."""
        return self.models

    def large_from(self) -> int | None:
        """Return from how many processors on a job is large, if that means something to it."""
        return None

    def admits(self, job: int, system: System) -> bool:
        """Return whether `job` can be started at all; it is rejected at submission otherwise."""
        return system.processors[job] <= system.machine.size

    @abstractmethod
    def decide(self, system: System) -> Iterable[Action]:
        """Say what to do now.

        Each action is carried out before the next is asked for, so a generator sees in `system`
        what its earlier actions did. `system` is to be read, never changed.

        Parameters
        ----------
        system : System
            The queue, the machine, the running jobs, and what happened since the last decision.

        Returns
        -------
        iterable of Action
            In the order in which they are to be carried out.
        """
