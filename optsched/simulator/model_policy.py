"""A policy whose decisions are problems of one model."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from optsched.errors import InputError
from optsched.registry import models
from optsched.simulator.actions import Action, Start
from optsched.simulator.policy import Answers, Policy
from optsched.simulator.system import System


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
        decisions = answer[next(iter(answer))]
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
