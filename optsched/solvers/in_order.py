"""Decisions of a statement in order, each as far as nothing is violated: the fallback of models."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from optsched.models.problem import Problem
from optsched.models.stated import Stated
from optsched.registry import models, solvers
from optsched.solvers.progress import Progress
from optsched.solvers.result import Budget, Limit, Result
from optsched.solvers.solver import OnIncumbent, Solver


@solvers.register("in-order")
@dataclass(frozen=True)
class InOrder(Solver):
    """Take the decisions of a statement in order, while nothing more is violated.

    All decisions begin at their lower bounds. Each is raised as far as no more is violated, and,
    once nothing is, as the objective does not become worse.
    """

    models = frozenset()
    exact = False
    work_unit = "verifications"
    seconds_per_work = 1e-4

    @classmethod
    def supports(cls, model: str) -> bool:
        """Return whether a model is a statement."""
        return model in models and issubclass(models[model], Stated)

    def solve(
        self,
        problem: Problem[Any],
        *,
        budget: Budget,
        hint: Any = None,
        seed: int = 0,
        on_incumbent: OnIncumbent | None = None,
    ) -> Result:
        """Solve a problem in one pass; the hint is not used."""
        assert isinstance(problem, Stated)
        progress = Progress(budget, on_incumbent, problem.sense)
        formulation, sign = problem.formulate(), 1 if problem.sense == "max" else -1
        program, work, limit = formulation.program, 0, None
        x = program.lower.copy()

        def rated() -> tuple[int, int]:
            nonlocal work
            work += 1
            found = problem.verified(formulation.decode(x))
            return -len(found.found), sign * found.objective

        own = np.concatenate([n.ravel() for n in problem.symbols.variables.values()] or [x[:0]])
        left, part, best = own[program.lower[own] < program.upper[own]], len(own), rated()
        while len(left) and (limit := progress.exhausted(work)) is None:
            tried = left[: part if best[0] == 0 else 1]  # what is violated is mended step by step
            before = x[tried]
            x[tried] = program.upper[tried]
            now = rated()
            mends = best[0] < 0 and now[0] >= best[0]
            if mends or (now >= best and (now > best or len(tried) == 1)):
                best, left, part = now, left[len(tried) :], 2 * part
                continue
            x[tried] = before
            if len(tried) > 1:
                part = len(tried) // 2
                continue
            least, most = int(before[0]), int(program.upper[tried[0]])
            while most - least > 1:  # the largest value that serves
                x[tried] = middle = (least + most) // 2
                now = rated()
                best, least, most = (now, middle, most) if now >= best else (best, least, middle)
            x[tried] = least
            left = left[1:]
        solution = formulation.decode(x) if best[0] == 0 else None
        value = sign * best[1]
        if solution is not None:
            progress.note(value, None)
        limit = limit or (Limit.WORK if solution is None else None)
        return progress.result(self.name, solution, value, None, limit, work=work, seed=seed)
