"""The contract between the engine and a policy whose decision is a kernel."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from optsched.machines.machine import Machine
from optsched.simulator.execution import ExecutionModel
from optsched.simulator.problem_solver import NoProblems, ProblemSolver
from optsched.traces.trace import Trace

if TYPE_CHECKING:
    from optsched.simulator._core import Core, News, Way


class CompiledRun(NamedTuple):
    """What the kernels of a policy or an execution model are bound to in a run."""

    trace: Trace
    machine: Machine
    problem_solver: ProblemSolver | NoProblems
    core: Core
    way: Way
    news: News
    own_time: Mapping[float, float]
    """The trace's own number for a time of the core that is not the same number."""
    execution: ExecutionModel | None
    is_alone: bool
    """Whether nothing but the policy hears of events and decisions."""
    may_compile: bool
    """Whether to compile kernels that are not on disk, if the policy can decide without them."""


class CompiledDecisions(ABC):
    """The decisions of a policy in one run, made by a kernel.

    The kernel hears of events in `News` and states its actions there.

    Attributes
    ----------
    decide : callable
        The kernel, bound to its own state and the news. It returns `DONE`; `OPEN` where a problem
        has to be answered before it is called again; or `WRONG`.
    run : callable or None
        A kernel that makes decisions, and processes the events between them, where the policy is
        alone. It takes the most decisions, and returns 0 after the last event.
    states_places : bool
        Whether `place` states where each job starts.
    places : named tuple or None
        The nodes of each job that has started, as arrays for the kernel of an execution model, if
        the decisions keep them.
    """

    decide: Callable[[], int]
    run: Callable[[int], int] | None = None
    states_places: bool = True
    places: Any = None

    def answer(self, problem_solver: ProblemSolver | NoProblems) -> None:
        """Answer the problem that the kernel has left open, in the state of the kernel."""
        raise NotImplementedError

    def record(self, problem_solver: ProblemSolver | NoProblems) -> None:  # noqa: B027 (most have none)
        """Record the problems that the kernel itself has answered since the last call."""

    @abstractmethod
    def place(self, job: int, value: float) -> Any:
        """Return the place of a job that starts or moves, in the machine's terms, by its action.

        None for a start leaves the choice to the machine.
        """

    @abstractmethod
    def resources(self) -> Sequence[str]:
        """Return the processors that each job held, as interval sets."""
