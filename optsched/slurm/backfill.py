"""For which pending jobs Slurm's backfill scheduler looks and reserves."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from optsched.numbers import whole_number
from optsched.sites.parts import Ints
from optsched.slurm.queue import QueuedJob

TASKS = "bf_max_job_array_resv"

OWNERS: Mapping[str, Callable[[QueuedJob], Hashable]] = {
    "bf_job_part_count_reserve": lambda job: job.partitions[:1],
    "bf_max_job_test": lambda job: "all",
    "bf_max_job_part": lambda job: job.partitions[:1],
    "bf_max_job_user": lambda job: job.user,
    "bf_max_job_user_part": lambda job: (job.user, job.partitions[:1]),
    "bf_max_job_assoc": lambda job: job.association,
    TASKS: lambda job: job.array_id,
}
"""What has a quota of blocked jobs, by the name of the setting; the first counts reservations.

A job in several partitions counts in the first one.
"""

NO_QUOTA = 2**60
"""More than all kinds of quotas of all jobs."""

DEFAULTS = {"bf_max_job_test": 500, TASKS: 20}

HEEDED = frozenset((*OWNERS, "bf_window", "bf_min_age_reserve", "bf_min_prio_reserve"))
"""Settings that a forecast heeds in which each blocked job may have a reservation."""

UNHEEDED = frozenset(("bf_one_resv_per_job",))
"""Settings on reservations that no forecast heeds."""


class Backfill(NamedTuple):
    """The SchedulerParameters on reservations."""

    window: int  # seconds within which a reservation has to begin
    least_age: int  # seconds for which a job has waited that has one
    least_priority: int  # of a job that has one
    quotas: Mapping[str, int]  # by the names of `OWNERS`

    @property
    def changes(self) -> bool:
        """Whether a job may get a reservation as it ages."""
        return self.least_age > 0 or self.least_priority > 0

    def quotas_of(self, jobs: Sequence[QueuedJob | None]) -> tuple[Ints, Ints]:
        """Return the quotas of each job, shape (jobs, kinds), and how many jobs each allows.

        There are none if no job is beyond one. None stands for a job that runs.
        """
        kinds, most = list[list[int]](), [NO_QUOTA]
        for name, owner in OWNERS.items():
            allowed = self.quotas.get(name, NO_QUOTA)
            owners = [None if job is None else owner(job) for job in jobs]
            count = Counter(filter(None, owners))
            binds = max(count.values(), default=0) > allowed
            number = {each: at for at, each in enumerate(count if binds else (), len(most))}
            kinds.append([number.get(each, 0) for each in owners])
            most += [allowed] * len(number)
        kept = kinds if len(most) > 1 else []
        quotas = np.array(kept, dtype=np.int64).reshape(len(kept), len(jobs))
        return quotas.T.copy(), np.array(most)


def stated(settings: Mapping[str, str]) -> dict[str, str]:
    """Return the SchedulerParameters of a cluster by name."""
    each = [one.partition("=") for one in settings.get("schedulerparameters", "").split(",")]
    return {name.strip(): text.strip() for name, _, text in each}


def backfill(settings: Mapping[str, str]) -> Backfill:
    """Return the settings of a cluster on reservations, with the defaults of Slurm."""
    numbers = {name: whole_number(text) for name, text in stated(settings).items()}
    found = {name: number for name, number in numbers.items() if number is not None}
    quotas = {name: found[name] for name in OWNERS if found.get(name, -1) >= (name != TASKS)}
    if "bf_max_job_assoc" in quotas:  # which Slurm then heeds instead
        quotas.pop("bf_max_job_user", None)
    return Backfill(
        60 * (found.get("bf_window") or 1440),
        found.get("bf_min_age_reserve", 0),
        found.get("bf_min_prio_reserve", 0),
        DEFAULTS | quotas,
    )
