"""Execution model of jobs that lose time when they migrate."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from optsched.errors import InputError
from optsched.metrics.measure import Group, measures_in
from optsched.numbers import LONGEST
from optsched.registry import executions
from optsched.schedule import Schedule
from optsched.settings import later
from optsched.simulator.execution import ExecutionModel, ExecutionReport
from optsched.simulator.system import System
from optsched.traces.trace import Trace


@executions.register("migration")
@dataclass
class MigrationDelay(ExecutionModel):
    """Jobs are stopped, written, read again and restarted when they migrate.

    A migration takes ``restart + per_node * nodes`` seconds, in which the job makes no progress. A
    parked job, whose new box is not yet free, is stopped and restarted twice. Jobs that migrate
    together may share the bandwidth: then `nodes` is the number of all their nodes, since each node
    gets an equal share, so that all are written and read in the same time.

    Parameters
    ----------
    restart : float
        Seconds for stopping and restarting a job of any size.
    per_node : float
        Seconds per node for writing and reading. The default is for 32 GB per node at 1 TB/s for
        the whole machine.
    bandwidth : {"own", "shared"}
        Whether each job writes and reads at the whole bandwidth, or the jobs that one plan moves
        share it.

    Raises
    ------
    InputError
        If a number of seconds is negative.

    References
    ----------
    K. Li, M. Malawski, J. Nabrzyski, "Topology-aware scheduling on Blue Waters with proactive queue
    scanning and migration-based job placement", JSSPP 2015, section 6 (which gives no figures).
    """

    restart: float = 300.0
    per_node: float = 0.064
    bandwidth: Literal["own", "shared"] = later("own")

    def __post_init__(self) -> None:
        for name, seconds in (("restart", self.restart), ("per_node", self.per_node)):
            if not 0 <= seconds <= LONGEST:
                raise InputError(f"{name} {seconds}; expected seconds from 0 to {LONGEST:,}")

    def migrated(
        self, jobs: Sequence[int], parked: Collection[int], system: System
    ) -> Sequence[float]:
        """Return the seconds that each migration takes."""
        nodes = [system.processors[job] for job in jobs]
        if self.bandwidth == "shared":
            nodes = [sum(nodes)] * len(jobs)
        once = [self.restart + self.per_node * number for number in nodes]
        return [2 * delay if job in parked else delay for job, delay in zip(jobs, once)]

    measures = measures_in(
        Group.EXECUTION,
        migrations=("migrations", "migrations", "Migrations of running jobs."),
        migrated_jobs=("migrated jobs", "jobs", "Jobs that migrated once or more."),
        parked=("migrations of parked jobs", "migrations",
            "Migrations in which the job stopped before its new box was free."),
        mean_migration_delay=("mean delay of a migration", "seconds",
            "Mean time for which a migration stops a job."),
        migration_processor_hours=("time lost in migrations", "processor-hours",
            "Processors times the time for which migrations stop jobs."),
    )  # fmt: skip

    def report(self, trace: Trace, schedule: Schedule) -> ExecutionReport:
        """Return the number of migrations of each job, and the seconds that they took."""
        assert schedule.paused is not None
        delay = schedule.paused  # less than the sum of all delays if one was cut short
        times = np.zeros(len(trace), np.int64)
        for migration in schedule.migrations:
            times[migration.job] += 1
        parked = sum(migration.parked for migration in schedule.migrations)
        return ExecutionReport(
            columns={"migrations": times, "migration_delay": delay},
            figures={
                "migrations": int(times.sum()),
                "migrated_jobs": int(np.count_nonzero(times)),
                "parked": int(parked),
                "mean_migration_delay": float(delay.sum() / times.sum()) if times.any() else None,
                "migration_processor_hours": float((delay * trace.processors).sum() / 3600),
            },
        )
