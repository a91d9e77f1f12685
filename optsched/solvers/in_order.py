"""Decisions of a statement in order, each as far as nothing is violated: the fallback of models."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from optsched.models.stated import Stated
from optsched.registry import models, solvers
from optsched.solvers.anytime import AnytimeSolver, Progress, StoppedError
from optsched.solvers.result import Limit


@solvers.register("in-order")
@dataclass(frozen=True)
class InOrder(AnytimeSolver):
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

    def search(self, problem: Stated, progress: Progress, hint: Any, seed: int) -> None:
        """Take the decisions in one pass; neither hint nor seed is used."""
        formulation, sign = problem.formulate(), 1 if problem.sense == "max" else -1
        program, limit = formulation.program, None
        x = program.lower.copy()

        def rated() -> tuple[int, int]:
            progress.work += 1
            found = problem.verified(formulation.decode(x))
            return -len(found.found), sign * found.objective

        own = np.concatenate([n.ravel() for n in problem.symbols.variables.values()] or [x[:0]])
        left, part, best = own[program.lower[own] < program.upper[own]], len(own), rated()
        while len(left) and (limit := progress.exhausted()) is None:
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
        if best[0] == 0:
            progress.offer(formulation.decode(x), sign * best[1])
        if limit or best[0] < 0:
            raise StoppedError(limit or Limit.WORK)
