"""Slurm's multifactor priority."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from optsched.errors import InputError
from optsched.machines.site import SiteMachine
from optsched.policies.priority import Column, PriorityOrder, Waiting
from optsched.registry import policies
from optsched.simulator.actions import Action, Start
from optsched.simulator.system import System
from optsched.sites.site import Site
from optsched.sites.slurm_amounts import seconds
from optsched.sites.slurm_lines import Line, configuration_lines

WEEK = 7 * 86_400


class Weights(NamedTuple):
    """The settings of slurm.conf about priorities, with Slurm's defaults; times in seconds."""

    age: int = 0
    fair_share: int = 0
    job_size: int = 0
    partition: int = 0
    qos: int = 0
    favor_small: bool = False
    max_age: float = WEEK
    half_life: float = WEEK


@policies.register("multifactor")
@dataclass
class Multifactor(PriorityOrder):
    """Slurm's priority/multifactor: the highest sum of weighted factors first.

    Each factor is from 0 to 1: the age in the queue over the longest that counts; the size, as the
    mean of the shares of the cores and of the nodes of the machine; the factors of partition and
    QOS over the highest ones; and the fair share, the rank of the user by decayed usage among all
    users of the trace: accounts have equal shares, and so have the users of an account. Jobs in a
    partition of a higher tier are before all others.

    Parameters
    ----------
    config : str
        slurm.conf with the weights (``PriorityWeightAge`` and so on) and its folder; by default
        that of the machine, if a slurm.conf describes it. Without one all weights are 0.
    qos : str
        Priorities of QOS, ``high=1000,normal=10`` for instance, which Slurm has in its database.
    backfill : {"none", "easy"}
        As for other orders.

    References
    ----------
    SchedMD, "Multifactor priority plugin" and "Fair tree fairshare algorithm", Slurm documentation,
    https://slurm.schedmd.com/priority_multifactor.html.
    """

    config: str = ""
    qos: str = ""

    machines = frozenset({"site"})

    def begin(self, system: System) -> None:
        """Read the weights, and compute the factors that do not change."""
        super().begin(system)
        machine = system.machine
        assert isinstance(machine, SiteMachine)
        path = Path(self.config) if self.config else machine.configuration
        weights = self._weights = Weights() if path is None else read_weights(path)
        self._entered = np.array(system.submit, dtype=np.float64)
        names = system.texts.get("partition_name", [""] * len(self._entered))
        self._tier, factor = _partitions(machine.site, names)
        size = self._size(system, machine.site)
        self._fixed = weights.job_size * size + weights.partition * factor
        self._fixed += weights.qos * self._qos_factor(system)
        self._usage = _Usage(system, weights.half_life) if weights.fair_share else None

    def decide(self, system: System) -> Iterable[Action]:
        """Note who uses how much, and decide in order of the priorities."""
        self._entered[system.submitted] = system.now
        if self._usage is None:
            return super().decide(system)
        self._usage.advance(system)
        return self._noting(super().decide(system), self._usage)

    def scores_now(self, jobs: NDArray[np.int64], system: System) -> Column:
        """Return minus the priority of each job, behind that of its tier."""
        weights = self._weights
        waited = (system.now - self._entered[jobs]) / weights.max_age
        priority = self._fixed[jobs] + weights.age * np.minimum(waited, 1.0)
        if self._usage is not None:
            priority += weights.fair_share * self._usage.factors()[self._usage.owner[jobs]]
        highest = sum(weights[:5]) + 1  # more than any priority
        scores: Column = -(self._tier[jobs] * highest + np.floor(priority))
        return scores

    def scores(self, jobs: Waiting) -> Column:
        """Raise an error: priorities need more than these columns."""
        raise NotImplementedError

    @staticmethod
    def _noting(actions: Iterable[Action], usage: _Usage) -> Iterator[Action]:
        """Yield actions, and note the jobs that they start."""
        for action in actions:
            yield action
            if isinstance(action, Start):
                usage.start(action.job)

    def _size(self, system: System, site: Site) -> Column:
        """Return the factor of the size of each job."""
        cores = self._processors / site.capacity[:, 0].sum()
        nodes = np.maximum(system.annotations.get("nodes", 1), 1) / len(site.nodes)
        shares: Column = np.minimum((cores + nodes) / 2, 1.0)
        return 1.0 - shares if self._weights.favor_small else shares

    def _qos_factor(self, system: System) -> Column:
        """Return the factor of the QOS of each job."""
        priorities: dict[str, int] = {}
        for part in filter(None, self.qos.split(",")):
            name, _, number = part.partition("=")
            if not (name and number.isascii() and number.isdigit() and len(number) <= 9):
                expected = "expected priorities, high=1000,normal=10 for instance"
                raise InputError(f"qos {self.qos!r}; {expected}")
            priorities[name] = int(number)
        most = max(priorities.values(), default=0) or 1
        names = system.texts.get("qos", [""] * len(system.job_id))
        return np.array([priorities.get(name, 0) / most for name in names])


class _Usage:
    """Processor time of users, which decays by half in each half-life.

    Parameters
    ----------
    system : System
        The system before the first event.
    half_life : float
        Half-life in seconds; 0 or infinity for no decay.

    Attributes
    ----------
    owner : int64 array, shape (jobs,)
        Number of the user of each job, with the account.
    """

    def __init__(self, system: System, half_life: float) -> None:
        unknown = np.full(len(system.job_id), -1)
        columns = (system.owners.get(name, unknown) for name in ("group", "user"))
        pairs, self.owner = np.unique(np.array([*columns]).T, axis=0, return_inverse=True)
        self.owner = self.owner.ravel()
        _, self._account = np.unique(pairs[:, 0], return_inverse=True)
        self._rate, self._used = np.zeros((2, len(pairs)))
        self._processors = system.processors
        self._constant = math.log(2) / half_life if half_life else 0.0
        self._since = system.now

    def start(self, job: int) -> None:
        """Count a job from now on."""
        self._rate[self.owner[job]] += self._processors[job]

    def advance(self, system: System) -> None:
        """Count up to now, and no longer count the jobs that have ended."""
        passed, constant = system.now - self._since, self._constant
        self._since = system.now
        if constant:
            left = math.exp(-constant * passed)
            self._used = self._used * left + self._rate * (1 - left) / constant
        else:
            self._used += self._rate * passed
        for job in system.ended:
            self._rate[self.owner[job]] -= self._processors[job]

    def factors(self) -> Column:
        """Return the fair share of each user: 1 for the least usage, and equal for equal usage."""
        of_account = np.bincount(self._account, self._used)[self._account]
        pairs = list(zip(of_account.tolist(), self._used.tolist()))
        behind = 0
        rank: dict[tuple[float, float], int] = {}
        for pair, count in sorted(Counter(pairs).items()):
            rank[pair] = behind
            behind += count
        return 1.0 - np.array([rank[pair] for pair in pairs]) / len(pairs)


def read_weights(path: Path) -> Weights:
    """Return the weights that slurm.conf states.

    Raises
    ------
    InputError
        If the file cannot be read, or a value has another form.
    """
    found: dict[str, float] = {}
    for line in configuration_lines(path):
        for key, name in (
            ("priorityweightage", "age"),
            ("priorityweightfairshare", "fair_share"),
            ("priorityweightjobsize", "job_size"),
            ("priorityweightpartition", "partition"),
            ("priorityweightqos", "qos"),
        ):
            if key in line.values:
                found[name] = line.count(key)
        for key, name in (("prioritymaxage", "max_age"), ("prioritydecayhalflife", "half_life")):
            if key in line.values:
                found[name] = _duration(line, key)
        if "priorityfavorsmall" in line.values:
            found["favor_small"] = line.text("priorityfavorsmall").lower() in ("yes", "true", "1")
    return Weights(**found)  # type: ignore[arg-type]  # bool and int are numbers


def _duration(line: Line, key: str) -> float:
    """Return a time in seconds; the longest age may not be 0."""
    found = line.parsed(key, seconds)
    if key == "prioritymaxage" and not found:
        raise line.wrong(key, "a time above 0")
    return found


def _partitions(site: Site, names: Sequence[str] | NDArray[np.object_]) -> tuple[Column, Column]:
    """Return the highest tier and factor of the partitions that each job names."""
    there = {each.name: each for each in site.partitions}
    most = max((each.priority_factor for each in site.partitions), default=0) or 1
    default = next((each.name for each in site.partitions if each.default), "")
    known: dict[str, tuple[float, float]] = {}
    for text in set(names):
        named = [there[name] for name in (text or default).split(",") if name in there]
        tier = max((each.priority_tier for each in named), default=1)
        factor = max((each.priority_factor for each in named), default=0)
        known[text] = float(tier), factor / most
    tiers, factors = np.array([known[text] for text in names]).reshape(-1, 2).T
    return tiers, factors
