"""SCIP, for every problem with a formulation."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event, Thread
from typing import Any, ClassVar

import numpy as np

from optsched.models.program import UNBOUNDED, Program
from optsched.registry import solvers
from optsched.solvers.generic import GenericSolver, Outcome, Post, Search, own_log, run_in_thread
from optsched.solvers.result import Limit, Status

LIMITS = {
    "timelimit": Limit.TIME,
    "totalnodelimit": Limit.WORK,
    "userinterrupt": Limit.INTERRUPT,
}


@solvers.register("scip")
@dataclass(frozen=True)
class Scip(GenericSolver):
    """Branch, cut and price by SCIP, in one thread."""

    largest_objective = 10**9
    seconds_per_solve = 2.3e-3
    seconds_per_work = 3e-3
    default_work = 300
    requires = "PySCIPOpt"
    _imports = ("pyscipopt",)
    set_by: ClassVar[Mapping[str, str]] = {
        "limits/time": "a time limit",
        "limits/totalnodes": "a work limit",
        "randomization/randomseedshift": "a seed",
        "limits/gap": "relative_gap",
    }

    def check_native(self) -> None:
        """Check the names and values of native options."""
        from pyscipopt import Model

        model = Model()
        self._set_native(model.getParams(), model.setParam, "SCIP")

    @classmethod
    def installed_version(cls) -> str | None:
        """Return the version of PySCIPOpt, which contains SCIP."""
        installed = super().installed_version()
        return installed and f"PySCIPOpt {installed}"

    def run(self, search: Search) -> Outcome:
        """Search with SCIP."""
        from pyscipopt import SCIP_STAGE

        model, variables = _scip_model(search.program)
        parameters = {
            "misc/catchctrlc": False,
            **self.native,
            "randomization/randomseedshift": search.seed,
            "limits/gap": self.relative_gap,
            "limits/totalnodes": search.node_limit(),
            "limits/time": search.seconds_left(),
        }
        for name, value in parameters.items():
            if value is not None:
                model.setParam(name, value)
        if search.start is not None:
            start = model.createSol()
            for number in np.flatnonzero(search.start).tolist():
                model.setSolVal(start, variables[number], float(search.start[number]))
            model.addSol(start)

        def solve(post: Post) -> None:
            recorder = _recorder()(post, variables, search)
            model.includeEventhdlr(recorder, "recorder", "posts solutions and bounds")
            model.optimizeNogil()

        def stop() -> None:
            # SCIP refuses to be interrupted between its stages
            if model.getStage() in (SCIP_STAGE.PRESOLVING, SCIP_STAGE.SOLVING):
                with suppress(Exception):
                    model.interruptSolve()

        with log_of_scip(model, own_log(self.name)):
            run_in_thread(solve, stop, search)
        work = model.getNTotalNodes()
        match status := model.getStatus():
            case "optimal" | "gaplimit":
                claim = Status.OPTIMAL
            case _ if status in LIMITS:
                claim = Status.FEASIBLE
            case "infeasible":
                return Outcome(Status.INFEASIBLE, work=work)
            case "unbounded" | "inforunbd":
                return search.unbounded_or_infeasible(work)
            case _:
                return Outcome(Status.ERROR, work=work, message=f"SCIP: {status}")
        x = np.rint(_point(model, variables)).astype(np.int64) if model.getNSols() else None
        return Outcome(claim, x, model.getDualbound(), LIMITS.get(status), work)


@contextmanager
def log_of_scip(model: Any, say: Callable[[str], None] | None) -> Iterator[None]:
    """Hand the log of SCIP, which it writes to a file, to `say` while it runs."""
    if say is None:
        yield
        return
    with TemporaryDirectory(prefix="optsched-scip-") as folder:
        file, ended = Path(folder) / "log", Event()
        file.touch()
        model.setLogfile(str(file))

        def follow() -> None:
            rest, was_last = "", False
            with file.open() as stream:
                while not was_last:
                    was_last = ended.wait(0.2)
                    lines, _, rest = (rest + stream.read()).rpartition("\n")
                    say(lines)
            say(rest)

        thread = Thread(target=follow)
        thread.start()
        try:
            yield
        finally:
            model.setLogfile(None)
            ended.set()
            thread.join()


def _point(model: Any, variables: list[Any]) -> list[float]:
    best = model.getBestSol()
    return [model.getSolVal(best, variable) for variable in variables]


def _scip_model(program: Program) -> tuple[Any, list[Any]]:
    from pyscipopt import ExprCons, Model, quicksum

    model = Model()
    model.hideOutput()
    variables = [
        model.addVar(
            vtype="I",
            lb=None if lower == -UNBOUNDED else lower,
            ub=None if upper == UNBOUNDED else upper,
            obj=profit,
        )
        for lower, upper, profit in zip(
            program.lower.tolist(), program.upper.tolist(), program.objective.tolist()
        )
    ]
    columns, values = program.columns.tolist(), program.values.tolist()
    sides = zip(program.row_lower.tolist(), program.row_upper.tolist())
    for (start, end), (lower, upper) in zip(pairwise(program.row_start.tolist()), sides):
        entries = zip(columns[start:end], values[start:end])
        left = None if lower == -UNBOUNDED else lower
        right = None if upper == UNBOUNDED else upper
        if left is not None or right is not None:
            model.addCons(ExprCons(quicksum(a * variables[v] for v, a in entries), left, right))
    model.addObjoffset(program.offset)
    if program.sense == "max":
        model.setMaximize()
    return model, variables


@cache
def _recorder() -> Any:
    from pyscipopt import SCIP_EVENTTYPE, Eventhdlr

    class Recorder(Eventhdlr):  # type: ignore[misc]
        """Poster of the improving solutions and bounds that SCIP finds."""

        def __init__(self, post: Post, variables: list[Any], search: Search) -> None:
            self._post, self._variables, self._search = post, variables, search

        def eventinit(self) -> None:
            self.model.catchEvent(SCIP_EVENTTYPE.BESTSOLFOUND, self)
            self.model.catchEvent(SCIP_EVENTTYPE.DUALBOUNDIMPROVED, self)

        def eventexec(self, event: Any) -> None:
            model, objective = self.model, None
            if event.getType() == SCIP_EVENTTYPE.BESTSOLFOUND:
                # the reported objective is that of a point within the tolerance
                objective = self._search.value_near(_point(model, self._variables))
            self._post(objective, model.getDualbound())

    return Recorder
