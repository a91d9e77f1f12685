"""The contract of a policy: the class, and the actions that it can return."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

from optsched.errors import InputError, UnknownNameError, brief
from optsched.metrics.measure import Measure
from optsched.numbers import LONGEST
from optsched.registry import models
from optsched.simulator.system import System


class Start(NamedTuple):
    """Start a waiting job now.

    Parameters
    ----------
    job : int
        Row of the job in the trace.
    place : object, optional
        The allocation, in the machine's own terms; by default the machine chooses.
    limit : float, optional
        Walltime of the job in seconds, in place of its requested time.
    """

    job: int
    place: Any = None
    limit: float | None = None


class Move(NamedTuple):
    """Move running jobs to other places, in the machine's own terms, all at once.

    The jobs go on working.

    Parameters
    ----------
    places : mapping of int to object
        The new place of each job that moves, by its row in the trace.
    """

    places: Mapping[int, Any]


class Migrate(NamedTuple):
    """Stop running jobs and restart them in other places, all at once.

    A migrating job makes no progress for as long as the execution model says, and its time limit is
    extended by as much. A job that was started at this very time loses nothing: it begins in the
    other place.

    Parameters
    ----------
    places : mapping of int to object
        The new place of each job that moves, in the machine's own terms.
    parked : frozenset of int
        Migrating jobs that leave their place before the new one is free.
    """

    places: Mapping[int, Any]
    parked: frozenset[int] = frozenset()


class Share(NamedTuple):
    """Give a running job a share of its processors' time from now on.

    A job that has had no share since it got its processors starts with its first share above 0.

    Parameters
    ----------
    job : int
        Row of the job in the trace.
    share : float
        Share of the time, from 0 to 1.
    """

    job: int
    share: float


class Wake(NamedTuple):
    """Request a decision at a time, even if there is no event.

    Parameters
    ----------
    at : float
        Simulated time in seconds, later than now.
    """

    at: float


Action = Start | Move | Migrate | Share | Wake


SHORTEST_INTERVAL = 1e-6
"""Shortest interval in seconds that the rounding of simulated time preserves."""


class Answers(NamedTuple):
    """Default solver and fallback for the problems of a model.

    Parameters
    ----------
    solver : str
        Name of the solver.
    fallback : str
        Name of the heuristic that decides when the solver fails or finds nothing better.
    by_objective : bool
        Whether the solver must optimize the model's objective, so that no rule may be chosen.
    options : mapping
        Options for the solver and the fallback, each of which takes those that it has. Options of a
        profile take precedence.
    """

    solver: str
    fallback: str
    by_objective: bool = False
    options: Mapping[str, Any] = {}


class Policy(ABC):
    """A scheduling algorithm: reads the queue and the machine, and returns actions.

    A subclass is a dataclass whose fields are its settings, registered with
    ``@policies.register(name)``.

    Attributes
    ----------
    name : str
        The registered name, or the name of the class if the policy is not registered.
    measures : mapping of str to Measure
        What the figures of `figures` are, by key.
    machines : frozenset of str
        The kinds of machine that the policy runs on. Kinds that extend these are included: a torus
        is also a line of nodes.
    models : mapping of str to Answers
        The models of the problems that the policy poses, with default solvers; may be empty.
    execution : str or None
        Name of the default execution model.
    compiled : callable or None
        Method that binds a kernel which decides in place of `decide`, see
        `optsched.simulator.compiled_decisions`. It may return None for a run that the kernel is not
        for, if the policy has a `decide`. A subclass with a `decide` of its own does not inherit
        it.
    enforces_limits : bool
        Whether a job is killed at its walltime.
    interval : float
        Seconds between two decisions; with 0, a decision follows every event. A policy with an
        interval decides at a tick only if something has changed since the last decision, such as
        by the jobs that it started itself.
    """

    name: ClassVar[str]
    machines: ClassVar[frozenset[str]] = frozenset({"nodes"})
    models: ClassVar[Mapping[str, Answers]] = {}
    execution: ClassVar[str | None] = None
    measures: ClassVar[Mapping[str, Measure]] = {}
    compiled: ClassVar[Callable[..., Any] | None] = None
    enforces_limits: ClassVar[bool] = True
    interval: float = 0.0

    def __init_subclass__(cls) -> None:
        """Name a policy after its class until it is registered."""
        super().__init_subclass__()
        cls.name = cls.__name__
        stated = next(one for one in cls.__mro__ if {"decide", "compiled"} & set(vars(one)))
        if "compiled" not in vars(stated):  # a class of the user's, perhaps not a policy itself
            cls.compiled = None
        elif cls.compiled and getattr(cls.decide, "__isabstractmethod__", False):
            cls.decide = by_kernel  # type: ignore[method-assign]

    def begin(self, system: System) -> None:  # noqa: B027 (most policies keep nothing)
        """Prepare for a run, and forget any earlier run."""

    def check_declared(self) -> None:
        """Refuse an interval at which simulated time would be rounded, and wrong models.

        Raises
        ------
        InputError
            If the interval is neither 0 nor between `SHORTEST_INTERVAL` and `LONGEST`, or the
            policy does not give `Answers` to names of models.
        """
        interval = self.interval
        if interval != 0 and not SHORTEST_INTERVAL <= interval <= LONGEST:
            expected = f"expected 0 or seconds from {SHORTEST_INTERVAL} to {LONGEST:,}"
            raise InputError(f"{interval}; {expected}", field=f"interval of policy {self.name!r}")
        posed, owner = self.posed(), f"policy {self.name!r}"
        expected = 'expected a model and its solvers, {"window-mkp": Answers("highs", "greedy")}'
        if not isinstance(posed, Mapping):
            raise InputError(f"{brief(posed)}; {expected}", field=f"models of {owner}")
        for model, answers in posed.items():
            if not isinstance(model, str) or not isinstance(answers, Answers):
                found = brief(answers if isinstance(model, str) else model)
                raise InputError(f"{found}; {expected}", field=f"models of {owner}")
            if model not in models:
                raise UnknownNameError(f"model of {owner}", model, models)
            if not isinstance(answers.options, Mapping):
                found = f"{brief(answers.options)}; expected a mapping"
                raise InputError(found, field=f"options of {model} in models of {owner}")

    def posed(self) -> Mapping[str, Answers]:
        """Return those of `models` whose problems the policy poses with its settings."""
        return self.models

    def large_from(self) -> int | None:
        """Return the number of processors from which a job is large; None if not defined."""
        return None

    def admits(self, job: int, system: System) -> bool:
        """Return whether `job` can be started at all; otherwise it is rejected at submission."""
        return not system.machine.why_never(system.demands[job])

    def figures(self, system: System) -> Mapping[str, Any]:
        """Return additional figures of the summary, JSON-able, when a run is over."""
        return {}

    def promised(self, system: System) -> Mapping[int, float]:
        """Return the time by which each waiting job starts that has a reservation; for checks.

        It may start later only if a job runs beyond its estimated end. A job that has no promise
        any more, or a later one, has lost it to a job that came first in the order of the policy:
        the policy itself keeps the earliest time in all other cases. Jobs that have left the queue
        may be included.
        """
        return {}

    def notes(self) -> Sequence[str]:
        """Return warnings about what the policy leaves out, when a run is over."""
        return ()

    @abstractmethod
    def decide(self, system: System) -> Iterable[Action]:
        """Return the actions to execute now.

        Each action is executed before the next is requested, so a generator sees the effects of its
        earlier actions in `system`. A policy reads `system` and never changes it.

        Parameters
        ----------
        system : System
            The queue, the machine, the running jobs, and what happened since the last decision.

        Returns
        -------
        iterable of Action
            Actions in the order of execution.
        """


def by_kernel(self: Policy, system: System) -> Iterable[Action]:
    """Stand for the `decide` of a policy whose decisions are those of a kernel."""
    raise NotImplementedError


def is_extended(cls: type) -> bool:
    """Return whether a class overrides a method of the one that states its method `compiled`."""
    for one in cls.__mro__:
        if "compiled" in vars(one):
            return False
        if any(_overrides(one, name) for name in vars(one)):
            return True
    return False


def _overrides(cls: type, name: str) -> bool:
    """Return whether a class overrides a method that is not abstract."""
    inherited = getattr(super(cls, cls), name, None)
    is_abstract = getattr(inherited, "__isabstractmethod__", False)
    return inspect.isfunction(inherited) and not is_abstract and not name.startswith("__")


@dataclass
class ModelPolicy(Policy):
    """Policy that poses a problem of one model on the first jobs of the queue that fit.

    A subclass names the `model`, states the fields of the problem in `data`, and, unless the first
    decisions of the model say which jobs start, the actions in `actions`.

    Parameters
    ----------
    window : int
        Number of jobs from the queue head that are decided on together.

    Attributes
    ----------
    model : str
        Name of the model, or the model.
    answers : Answers
        Default solver and fallback.

    Raises
    ------
    InputError
        If the window holds no job.
    """

    window: int = 50

    model: ClassVar[Any] = None
    answers: ClassVar[Answers] = Answers("cp-sat", "in-order")

    def __post_init__(self) -> None:
        if self.window < 1:
            raise InputError(f"window {self.window}; expected a whole number from 1")

    def posed(self) -> Mapping[str, Answers]:
        """Return the model and what answers it."""
        if self.model is None:
            raise InputError("missing; expected a model or its name", field=f"model of {self.name}")
        return {getattr(self.model, "name", self.model): self.answers}

    @abstractmethod
    def data(self, system: System, jobs: Sequence[int]) -> Mapping[str, Any]:
        """Return the fields of the problem of starting jobs, which fit one by one."""

    def actions(self, system: System, jobs: Sequence[int], answer: Any) -> Iterable[Action]:
        """Return the actions of an answer: a start of each job whose first decision is not 0."""
        name = next(iter(answer))
        decisions = answer[name]
        if decisions.shape != (len(jobs),):
            of = " x ".join(map(str, decisions.shape)) or "one value"
            expected = f"expected one for each of {len(jobs)} jobs, or a method actions"
            raise InputError(f"first decisions {name!r}: {of}; {expected}")
        return [Start(job) for job, decision in zip(jobs, decisions.tolist()) if decision]

    def decide(self, system: System) -> Iterable[Action]:
        """Pose the problem of the first jobs that fit, and carry the answer out."""
        fits, demands = system.machine.fits, system.demands
        jobs = [job for job in [*system.queue][: self.window] if fits(demands[job])]
        if not jobs:
            return
        [name] = self.posed()
        answer = system.pose(models[name](**self.data(system, jobs)))
        if answer is not None:
            yield from self.actions(system, jobs, answer)
