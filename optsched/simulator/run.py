"""The result of a simulation."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, wraps
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from optsched import registry
from optsched.documentation import first_line
from optsched.errors import InputError
from optsched.machines.machine import Machine
from optsched.machines.texts import Texts
from optsched.metrics.jobs import (
    bounded_slowdown,
    summarise,
    summarise_placement,
    summarise_problems,
    utilization_between,
    why_rejected,
)
from optsched.metrics.measure import Metric
from optsched.registry import display_of, pictures
from optsched.schedule import Schedule, State
from optsched.simulator.execution import ExecutionReport
from optsched.simulator.job_table import Column, constant, repeated, spread, to_pandas, whole
from optsched.simulator.problem_solver import mishaps
from optsched.simulator.system import NEVER, Holds, Journal
from optsched.solvers.result import Status
from optsched.traces.requests import OWNERS, TEXT_OF
from optsched.traces.trace import Trace

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


class Plots:
    """The pictures of a run, each a method that returns a figure of matplotlib.

    ``run.plot`` in a notebook and ``dir(run.plot)`` list the pictures that the run has,
    ``help(run.plot.gantt)`` shows the arguments of one. Most take a period: ``days=(10, 12)``. All
    take ``size=(3.5, 2.4)``, width and height in inches, and ``title=False``.
    """

    def __init__(self, run: Any) -> None:
        self._run = run

    def __dir__(self) -> list[str]:
        return [name for name in pictures if not pictures[name]().why_not(self._run)]

    def __repr__(self) -> str:
        lines = [f"  {name}(): {first_line(pictures[name])}" for name in dir(self)]
        return "\n".join([f"<pictures of {self._run!r}>", *lines])

    def __getattr__(self, name: str) -> Callable[..., Figure]:
        if name.startswith("_"):
            raise AttributeError(name)
        try:
            picture = pictures[name]()
        except InputError as error:
            raise AttributeError(str(error)) from None
        run = self._run

        @wraps(picture.figure)
        def draw(*args: Any, **options: Any) -> Figure:
            return picture.drawn(run, *args, **options)  # type: ignore[no-any-return]

        _, *own = inspect.signature(picture.figure).parameters.values()
        drawn = inspect.signature(picture.drawn).parameters
        own += [drawn["size"], drawn["title"]]
        returned = "matplotlib.figure.Figure"
        draw.__signature__ = inspect.Signature(own, return_annotation=returned)  # type: ignore[attr-defined]
        draw.__name__ = draw.__qualname__ = name
        return draw


HELD = "a job that it depends on never ends"
QUEUED = "the policy never starts it"


@dataclass(frozen=True, eq=False, repr=False)
class Run:
    """The result of a simulation.

    Parameters
    ----------
    config : dict
        Trace, machine, policy, settings, solver, seed, versions: all that `optsched.simulate` needs
        to repeat the run.
    trace : Trace
        The cleaned trace.
    machine : Machine
        The machine in its state at the end.
    schedule : Schedule
        When and where each job ran.
    problems : mapping of str to list
        The posed problems, by column of `COLUMNS`.
    fallbacks : int
        Number of problems that the fallback decided in place of the solver.
    timing : mapping
        Wall-clock figures, the only difference between two runs of one config.
    compared : frozenset of str
        The models whose problems the fallback solved beside the solver.
    journal : Journal or None
        Every event and action, if requested.
    execution_report : ExecutionReport or None
        Columns, figures and notes of the execution model, if there is one.
    policy_figures : mapping of str to object
        Figures of the policy.
    notes : tuple of str
        Warnings about settings that the user may not have intended.
    measured : bool array, shape (jobs,), optional
        The jobs that figures are of; by default all.
    """

    config: dict[str, Any]
    trace: Trace
    machine: Machine
    schedule: Schedule
    problems: Mapping[str, list[Any]]
    fallbacks: int
    timing: Mapping[str, float]
    compared: frozenset[str] = frozenset()
    journal: Journal | None = None
    execution_report: ExecutionReport | None = None
    policy_figures: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    measured: NDArray[np.bool_] | None = None

    def __repr__(self) -> str:
        jobs = f"{len(self.trace):,} jobs"
        return f"<Run {self.trace.name}: {jobs}, {self.config['policy']} on {self.machine.spec}>"

    @property
    def start(self) -> NDArray[np.float64]:
        """Start of each job, in the trace's own seconds; nan if the job never started."""
        return self.schedule.start

    @property
    def end(self) -> NDArray[np.float64]:
        """End of each job, in the trace's own seconds; nan if the job never ended."""
        return self.schedule.end

    @property
    def state(self) -> NDArray[np.object_]:
        """Final state of each job, a value of `State`, as an array of objects."""
        return self.schedule.state

    @property
    def resources(self) -> Sequence[str]:
        """The processors of each job, as interval sets."""
        return self.schedule.resources

    @property
    def plot(self) -> Plots:
        """The pictures of the run as figures of matplotlib, such as ``run.plot.gantt()``."""
        return Plots(self)

    @cached_property
    def summary(self) -> dict[str, Any]:
        """The metrics of the schedule, the allocations, the problems and the execution model.

        Figures of jobs are of those that are measured, and the utilization is that from the first
        to the last of their submissions; other figures of machine and problems are of the whole
        run.
        """
        large_from, size = self.config["large_from"], self.machine.size
        jobs = summarise(self.trace, size, self._counted, large_from)
        if self.measured is not None:
            ends = self.trace.submit[self.measured][[0, -1]].tolist()
            jobs["utilization"] = utilization_between(self.trace, size, self.schedule, *ends)
        count = len(self.problems["time"])
        problems = {
            "problems": count,
            "unproven": 0,
            **(summarise_problems(self.decisions, self.compared) if count else {}),
            "fallbacks": self.fallbacks,
            "wrong_answers": sum(self.problems["wrong"]),
        }
        model = {} if self.execution_report is None else dict(self.execution_report.figures)
        shared = {"mean_pause": self._mean_pause} if self.machine.time_shared else {}
        placed = slice(None) if self.measured is None else self.measured[self._held]
        placement = summarise_placement({k: v[placed] for k, v in self._measures.items()})
        of_machine = {k: v for metric in self.metrics.values() for k, v in metric.summary().items()}
        return jobs | shared | placement | of_machine | dict(self.policy_figures) | problems | model

    @cached_property
    def decisions(self) -> pd.DataFrame:
        """The posed problems, one row each, with the columns `COLUMNS`."""
        import pandas as pd

        return pd.DataFrame(self.problems)

    @property
    def mishaps(self) -> list[str]:
        """Messages about failures of solvers, see `optsched.simulator.problem_solver.mishaps`."""
        return mishaps(self.decisions) if self.problems["time"] else []

    @property
    def never_answered(self) -> bool:
        """Whether problems were posed and the solver failed on every one."""
        return {*self.problems["status"]} == {Status.ERROR}

    @cached_property
    def metrics(self) -> Mapping[str, Metric]:
        """The registered metrics that apply to the run, by name, such as ``fragmentation``."""
        large_from = self.config["large_from"]
        measured = {
            name: metric.measure(
                self.trace,
                self.machine,
                self._counted if metric.of_jobs else self.schedule,
                large_from,
            )
            for name in registry.metrics
            for metric in [registry.metrics[name]]
        }
        return {name: found for name, found in measured.items() if found is not None}

    @cached_property
    def jobs(self) -> pd.DataFrame:
        """The jobs, one row each, in order of submission: Batsim's columns, then additional ones.

        Additional columns are ``run_time`` (the trace's run time in seconds), ``bounded_slowdown``,
        ``user``, the measures of the machine (`Machine.job_measures`) and those of the execution
        model; where jobs share processors or migrate also ``paused_time``, the seconds in which a
        job held processors and did not run. Where the trace has names, ``user_name``, ``account``,
        ``qos`` and ``partition_name`` are there too, and where jobs never started ``reason`` is. A
        column of times holds integers if all are whole.
        """
        return to_pandas(self.job_columns)

    @property
    def job_columns(self) -> dict[str, Column]:
        """The columns of `jobs`."""
        trace = self.trace
        ran = self.schedule.run_time
        wait = self.start - trace.submit
        response = self.end - trace.submit
        columns: dict[str, Column] = {
            "job_id": trace.job_id,
            "workload_name": constant(trace.name, len(trace)),
            "profile": constant("delay", len(trace)),
            "submission_time": whole(trace.submit),
            "requested_number_of_resources": trace.processors,
            "requested_time": whole(trace.requested_time),
            "success": (self.state == "COMPLETED_SUCCESSFULLY").astype(np.int64),
            "final_state": repeated(self.state),
            "starting_time": whole(self.start),
            "execution_time": whole(self.end - self.start),
            "finish_time": whole(self.end),
            "waiting_time": whole(wait),
            "turnaround_time": whole(response),
            "stretch": response / ran,
            "allocated_resources": self.resources,
            "consumed_energy": np.full(len(trace), np.nan),
            "metadata": constant("", len(trace)),
            "run_time": whole(trace.runtime),
            "bounded_slowdown": bounded_slowdown(response - ran, ran),
            "user": trace.user,
        }
        texts = ((name, trace.texts.get(name, ())) for name in map(TEXT_OF.__getitem__, OWNERS))
        columns |= {name: stated for name, stated in texts if any(stated)}
        paused = self.schedule.paused
        if paused is not None and (self.machine.time_shared or self.machine.holds_boxes):
            columns["paused_time"] = paused
        columns |= {name: spread(of, self._held) for name, of in self._measures.items()}
        if self.execution_report is not None:
            columns |= self.execution_report.columns
        if self.measured is not None:
            columns["measured"] = self.measured.astype(np.int64)
        if reasons := _why_never_started(trace, self.machine, self.schedule):
            columns["reason"] = [reasons.get(row, "") for row in range(len(trace))]
        return columns

    @cached_property
    def migrations(self) -> pd.DataFrame:
        """The migrations, one row each: time, job_id, left, taken, parked, delay.

        The columns ``left`` and ``taken`` hold boxes if the machine allocates boxes, and interval
        sets of processors otherwise.
        """
        import pandas as pd

        moved = self.schedule.migrations
        places = {"left": [one.left for one in moved], "taken": [one.taken for one in moved]}
        for name, resources in places.items():
            measures = self.machine.job_measures(resources) if moved else {}
            places[name] = list(measures.get("box", resources))
        return pd.DataFrame(
            {
                "time": np.array([one.time for one in moved], dtype=np.float64),
                "job_id": self.trace.job_id[[one.job for one in moved]],
                **places,
                "parked": np.array([one.parked for one in moved], dtype=np.bool_),
                "delay": np.array([one.delay for one in moved], dtype=np.float64),
            }
        )

    @cached_property
    def _counted(self) -> Schedule:
        """The schedule of the measured jobs alone."""
        return self.schedule if self.measured is None else self.schedule.only(self.measured)

    @cached_property
    def _held(self) -> NDArray[np.bool_]:
        """Mask of the jobs that have held processors, shape (jobs,)."""
        return self._texts.filled

    @cached_property
    def _measures(self) -> Mapping[str, NDArray[Any]]:
        """The machine's measures of the allocations of jobs that have held processors."""
        return self.machine.job_measures(self._texts.without_empty())

    @cached_property
    def _texts(self) -> Texts:
        return Texts.of(self.resources)

    @property
    def _mean_pause(self) -> float | None:
        """Mean seconds in which a finished job held processors and did not run."""
        finished = self._counted.state == State.FINISHED
        paused = self.end - self.start - self.schedule.run_time
        return float(paused[finished].mean()) if finished.any() else None

    def _repr_html_(self) -> str:
        html: str = display_of("run")(self)
        return html


def _why_never_started(trace: Trace, machine: Machine, schedule: Schedule) -> dict[int, str]:
    """Return the reason of each job that was rejected or waits at the end, by its row."""
    reasons = why_rejected(trace, machine, schedule)
    waiting = np.flatnonzero(schedule.state == State.WAITING).tolist()
    reasons |= dict.fromkeys(waiting, QUEUED)
    if waiting and machine.follows_requests:
        start = [at if at == at else None for at in schedule.start.tolist()]
        holds = Holds(trace, schedule.state.tolist(), start)
        reasons |= {job: HELD for job in waiting if holds.eligible(job) == NEVER}
    return reasons
