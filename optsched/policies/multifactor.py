"""Slurm's multifactor priority."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from optsched.arrays import Floats, Ints
from optsched.errors import InputError
from optsched.machines.site import SiteMachine
from optsched.numbers import parse_number
from optsched.policies.priority import PriorityOrder
from optsched.registry import policies
from optsched.simulator.policy import Action, Start
from optsched.simulator.system import System
from optsched.sites.requests import known_partitions
from optsched.sites.site import Site
from optsched.sites.slurm_files import Line, configuration_lines
from optsched.sites.slurm_notation import seconds

Names: TypeAlias = Sequence[str] | NDArray[np.object_]

WEEK = 7 * 86_400


FLAGS = (
    *("ACCRUE_ALWAYS", "SMALL_RELATIVE_TO_TIME"),
    *("NO_NORMAL_PART", "NO_NORMAL_QOS", "NO_NORMAL_TRES"),
)
"""The PriorityFlags that change priorities as Slurm does; NO_NORMAL_ALL is all of NO_NORMAL."""

IDLE_FLAGS = ("CALCULATE_RUNNING", "FAIR_TREE", "NO_NORMAL_ASSOC")
"""PriorityFlags that change no order here: of running jobs, the default, or of no factor here."""


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
    resources: Mapping[str, float] = MappingProxyType({})
    flags: frozenset[str] = frozenset()
    left_out: tuple[str, ...] = ()  # settings that are not modeled


FACTORS = Weights._fields[:5]
"""The weights of single factors."""


@policies.register("multifactor")
@dataclass
class Multifactor(PriorityOrder):
    """Slurm's priority/multifactor: the highest sum of weighted factors first.

    Each factor is from 0 to 1: the age in the queue over the longest that counts; the size, as the
    mean of the shares of the cores and of the nodes of the machine; the factors of partition and
    QOS over the highest ones; the amount of each resource (TRES) over that of the partition; and
    the fair share, the rank of the user by decayed usage among all users of the trace: accounts
    have equal shares, and so have the users of an account.

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
        weights = Weights() if path is None else read_weights(path, machine.site)
        self._weights = weights
        self._entered = np.array(system.submit, dtype=np.float64)
        names = system.texts.get("partition_name", [""] * len(self._entered))
        self._fixed = weights.job_size * self._size(system, machine.site)
        self._fixed += weights.partition * self._partition_factor(machine.site, names)
        self._fixed += weights.qos * self._qos_factor(system)
        if weights.resources:
            self._fixed += self._resources(system, machine, names)
        self._usage = _Usage(system, weights.half_life) if weights.fair_share else None

    def decide(self, system: System) -> Iterable[Action]:
        """Note who uses how much, and decide in order of the priorities."""
        if "ACCRUE_ALWAYS" not in self._weights.flags:
            self._entered[system.submitted] = system.now
        if self._usage is not None:
            self._usage.advance(system)
        for action in super().decide(system):
            yield action
            if self._usage is not None and isinstance(action, Start):
                self._usage.start(action.job)

    def notes(self) -> Sequence[str]:
        """Return the settings of slurm.conf that are not modeled, or that there are no weights."""
        found, weights = [], self._weights
        if not any((*weights[: len(FACTORS)], *weights.resources.values())):
            found.append("multifactor: all weights are 0, so jobs are in order of submission")
        if weights.left_out:
            found.append(f"slurm.conf: not modeled, left out: {', '.join(weights.left_out)}")
        return found

    def scores_now(self, jobs: Ints, system: System) -> Floats:
        """Return minus the priority of each job."""
        weights = self._weights
        waited = (system.now - self._entered[jobs]) / weights.max_age
        priority = self._fixed[jobs] + weights.age * np.minimum(waited, 1.0)
        if self._usage is not None:
            priority += weights.fair_share * self._usage.factors()[self._usage.owner[jobs]]
        scores: Floats = -np.floor(priority)
        return scores

    def _size(self, system: System, site: Site) -> Floats:
        """Return the factor of the size of each job."""
        weights = self._weights
        cores = np.array(system.processors) / site.capacity[:, 0].sum()
        nodes = np.maximum(system.annotations.get("nodes", 1), 1) / len(site.nodes)
        if "SMALL_RELATIVE_TO_TIME" in weights.flags:
            minutes = np.ceil(np.array(system.requested_time) / 60)  # the unit of Slurm
            shares = np.maximum(cores, nodes) / minutes
        else:
            shares = (cores + nodes) / 2
        share: Floats = np.minimum(shares, 1.0)
        return 1.0 - share if weights.favor_small else shares

    def _partition_factor(self, site: Site, names: Names) -> Floats:
        """Return the factor of the partition of each job, the highest of those that it names."""
        most = max((each.priority_factor for each in site.partitions), default=0) or 1
        if "NO_NORMAL_PART" in self._weights.flags:
            most = 1
        factor = {
            text: max((each.priority_factor for each in known_partitions(text, site)), default=0)
            for text in set(names)
        }
        return np.array([factor[text] for text in names]) / most

    def _resources(self, system: System, machine: SiteMachine, names: Names) -> Floats:
        """Return the sum of the weighted factors of the resources of each job."""
        site, requests = machine.site, machine.requests
        total = {
            text: [_amounts(site, each.nodes) for each in known_partitions(text, site)]
            for text in set(names)
        }
        weights, found = self._weights, np.zeros(len(names))
        nodes = np.maximum(system.annotations.get("nodes", np.ones(len(names))), 1).tolist()
        for job, (text, number) in enumerate(zip(names, requests.numbers)):
            if number < 0:
                continue
            one = requests.of(number)[0]
            asked = {"node": nodes[job]} | {
                _resource_name(name): one.chunks * amount
                for name, amount in zip(site.resources, one.demand)
            }
            for name, weight in weights.resources.items():
                there = [1] if "NO_NORMAL_TRES" in weights.flags else [t[name] for t in total[text]]
                share = max((asked[name] / amount for amount in there if amount), default=0)
                found[job] += weight * share
        return found

    def _qos_factor(self, system: System) -> Floats:
        """Return the factor of the QOS of each job."""
        priorities: dict[str, int] = {}
        for part in filter(None, self.qos.split(",")):
            name, _, number = part.partition("=")
            if not (name and number.isascii() and number.isdigit() and len(number) <= 9):
                expected = "expected priorities, high=1000,normal=10 for instance"
                raise InputError(f"qos {self.qos!r}; {expected}")
            priorities[name] = int(number)
        most = max(priorities.values(), default=0) or 1
        if "NO_NORMAL_QOS" in self._weights.flags:
            most = 1
        names = system.texts.get("qos", [""] * len(system.job_id))
        return np.array([priorities.get(name, 0) / most for name in names])


class _Usage:
    """Processor time of users, which decays by half in each half-life."""

    def __init__(self, system: System, half_life: float) -> None:
        unknown = np.full(len(system.job_id), -1)
        columns = (system.owners.get(name, unknown) for name in ("group", "user"))
        pairs, self.owner = np.unique(np.array([*columns]).T, axis=0, return_inverse=True)
        self.owner = self.owner.ravel()  # user, with the account, of each job
        _, self._account = np.unique(pairs[:, 0], return_inverse=True)
        self._rate, self._used = np.zeros((2, len(pairs)))
        self._processors = system.processors
        self._half_life = half_life
        self._since = system.now

    def start(self, job: int) -> None:
        """Count a job from now on."""
        self._rate[self.owner[job]] += self._processors[job]

    def advance(self, system: System) -> None:
        """Count up to now, and no longer count the jobs that have ended."""
        passed, self._since = system.now - self._since, system.now
        self._used = used_after(passed, self._used, self._rate, self._half_life)
        for job in system.ended:
            self._rate[self.owner[job]] -= self._processors[job]

    def factors(self) -> Floats:
        """Return the fair share of each user: 1 for the least usage, and equal for equal usage."""
        of_account = np.bincount(self._account, self._used)[self._account]
        pairs = list(zip(of_account.tolist(), self._used.tolist()))
        behind = 0
        rank: dict[tuple[float, float], int] = {}
        for pair, count in sorted(Counter(pairs).items()):
            rank[pair] = behind
            behind += count
        return 1.0 - np.array([rank[pair] for pair in pairs]) / len(pairs)


def used_after(passed: float, used: Floats, rate: Floats, half_life: float) -> Floats:
    """Return usage after some seconds in which it grows at a rate, and decays by half-lives."""
    constant = math.log(2) / half_life if half_life else 0.0  # infinite: no decay
    if not constant:
        return used + rate * passed
    left = math.exp(-constant * passed)
    return used * left + rate * (1 - left) / constant


def read_weights(path: Path, site: Site) -> Weights:
    """Return the weights that slurm.conf states, of a site whose resources have the names."""
    found: dict[str, Any] = {}
    known = {"node", *map(_resource_name, site.resources)}
    left_out: list[str] = []
    for line in configuration_lines(path):
        for name in FACTORS:
            if (key := f"priorityweight{name.replace('_', '')}") in line.values:
                found[name] = line.count(key)
        for key, name in (("prioritymaxage", "max_age"), ("prioritydecayhalflife", "half_life")):
            if key in line.values:
                found[name] = _duration(line, key)
        if "priorityfavorsmall" in line.values:
            found["favor_small"] = line.text("priorityfavorsmall").lower() in ("yes", "true", "1")
        if "priorityweighttres" in line.values:
            weights = line.parsed("priorityweighttres", _named_weights)
            found["resources"] = {name: of for name, of in weights.items() if name in known}
            left_out += [f"PriorityWeightTRES {name}" for name in weights if name not in known]
        if "priorityflags" in line.values:
            flags = set(filter(None, line.text("priorityflags").upper().split(",")))
            if "NO_NORMAL_ALL" in flags:
                flags = flags - {"NO_NORMAL_ALL"} | {f for f in FLAGS if f.startswith("NO_NORMAL")}
            found["flags"] = frozenset(flags).intersection(FLAGS)
            left_out += [f"PriorityFlags {name}" for name in sorted(flags - {*FLAGS, *IDLE_FLAGS})]
        if line.count("priorityweightassoc"):
            left_out.append("PriorityWeightAssoc")
    return Weights(**found, left_out=tuple(left_out))


def _duration(line: Line, key: str) -> float:
    """Return a time in seconds; the longest age may not be 0."""
    found = line.parsed(key, seconds)
    if key == "prioritymaxage" and not found:
        raise line.wrong(key, "a time above 0")
    return found


def _named_weights(text: str) -> dict[str, float]:
    """Return the weights of resources by name: ``cpu``, ``mem``, ``node``, ``gres/gpu``."""
    found = {}
    for part in filter(None, text.split(",")):
        name, _, number = part.partition("=")
        try:
            found[name.lower()] = parse_number(number)
        except ValueError:
            expected = "expected weights such as CPU=1000,Mem=2000,GRES/gpu=3000"
            raise InputError(f"{text!r}; {expected}") from None
    return found


def _resource_name(name: str) -> str:
    """Return Slurm's name of a resource of a site."""
    return {"cores": "cpu", "memory": "mem"}.get(name, f"gres/{name}".lower())


def _amounts(site: Site, nodes: Ints) -> dict[str, int]:
    """Return the amounts of all resources of some nodes, by Slurm's names."""
    total = site.capacity[nodes].sum(axis=0).tolist()
    return {"node": len(nodes)} | {_resource_name(n): t for n, t in zip(site.resources, total)}
