"""The worlds in which systems can be compared, from ``plan.toml``, and their runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import count
from math import isqrt
from pathlib import Path, PurePath
from typing import Any, Literal, NamedTuple, get_args, get_origin, get_type_hints

from optsched.metrics.jobs import least_large
from optsched.registry import policies
from optsched.simulator.simulate import prepare_trace
from optsched.studies.content import PLAN, content_of
from optsched.studies.plan import find_log
from optsched.text_files import read_toml
from optsched.traces.bandwidth import drawn
from optsched.traces.input_files import infer_files
from optsched.traces.job_pieces import split_jobs
from optsched.traces.reading import read_trace
from optsched.traces.trace import Trace

TABLE = read_toml(content_of("systems") / PLAN)
DEMANDS = TABLE["demands"]
SHAPES = TABLE["shapes"]

BACKFILL = "backfill"
"""The setting of which all choices are run where a policy for plain nodes has it."""


LOG = ".swf.gz"
"""The end of the name of the trace with the jobs as they are in the log."""


class Site(NamedTuple):
    """A log, and its machine; ``plan.toml`` describes the fields.

    Other worlds than plain nodes need machines of certain shapes, which may be a little larger.
    """

    name: str
    file: str
    jobs: int
    processors: int
    large_from: int

    @property
    def log(self) -> str:
        """Name of the log in the names of the traces that are made of it."""
        return PurePath(self.file).name.removesuffix(".gz").removesuffix(".swf")

    @property
    def words(self) -> dict[str, Any]:
        """What ``plan.toml`` states in braces."""
        smp, cores = SHAPES["smp"], SHAPES["cluster"]
        return {
            "log": self.log,
            "processors": self.processors,
            "large_from": self.large_from,
            "large_boxes": max(1, self.processors // SHAPES["large_boxes"]),
            "torus": "torus:" + "x".join(map(str, torus_of(self.processors))),
            "smp": f"smp:{-(-self.processors // smp)}x{smp}",
            "cluster": f"cluster:{-(-self.processors // cores)}x{cores}",
            "cores": cores,
        }


def torus_of(processors: int) -> tuple[int, int, int]:
    """Return the sides of the smallest torus that has these processors and no flat shape.

    No side is more than twice as long as another, and their sum is the least.

    >>> torus_of(1152), torus_of(430)
    ((8, 12, 12), (6, 8, 9))
    """
    for size in count(processors):
        shapes = [
            (a, b, size // a // b)
            for a in range(1, round(size ** (1 / 3)) + 1)
            if size % a == 0
            for b in range(a, isqrt(size // a) + 1)
            if size // a % b == 0 and size // a // b <= 2 * a
        ]
        if shapes:
            return min(shapes, key=sum)
    raise AssertionError("unreachable: a cube is such a torus")


BLUE, SAMPLE = (Site(**TABLE[name]) for name in ("full", "quick"))


class Key(NamedTuple):
    """A system of a world."""

    world: str
    system: str


PLAIN_EASY = Key("plain nodes", "easy")
"""The system that most worlds can be related to."""


class System(NamedTuple):
    """A policy, perhaps with a solver that is not its own and with settings."""

    policy: str
    solver: str | None = None
    settings: Mapping[str, Any] = {}

    @property
    def name(self) -> str:
        """The choices as they are typed: ``gang, mpl=2`` for instance."""
        stated = [f"{key}={_typed(value)}" for key, value in self.settings.items()]
        return ", ".join([self.policy, *filter(None, [self.solver]), *stated])


class World(NamedTuple):
    """A machine and an execution model on which systems can be compared with one another.

    Jobs of `large_from` processors or more are large. All systems have the `settings`. `systems`
    are by name, in the order of tables, and `baselines` what each is compared with. `own` are the
    headings of the figures that only this world has, and `beside` is a system of another world
    whose figures stand beside.
    """

    name: str
    trace: str
    machine: str
    execution: str | None
    large_from: int
    settings: Mapping[str, Any]
    systems: Mapping[str, System]
    baselines: Mapping[str, Key]
    own: Mapping[str, str]
    beside: Key | None = None


def _typed(value: Any) -> str:
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else f"{value}"


def plain_systems() -> list[System]:
    """Return all policies of the registry for a line of nodes, with all their backfilling.

    Those that ``plan.toml`` leaves out are not among them.
    """
    found = []
    for name in policies:
        cls = policies[name]
        if "nodes" in cls.machines and name not in TABLE["left_out"]:
            wanted = get_type_hints(cls).get(BACKFILL)
            choices = get_args(wanted) if get_origin(wanted) is Literal else ()
            found += [System(name, settings={BACKFILL: one}) for one in choices] or [System(name)]
    return found


def worlds(site: Site) -> list[World]:
    """Return the worlds, in the order of tables."""
    return [_world(table, site) for table in TABLE["worlds"]]


def _world(table: Mapping[str, Any], site: Site) -> World:
    fields = site.words
    stated = table.get("systems", ())
    own = [System(one["policy"], one.get("solver"), one.get("settings", {})) for one in stated]
    systems = {one.name: one for one in own or plain_systems()}
    bases = {system.name: one.get("base") for system, one in zip(own, stated)}
    return World(
        table["name"],
        table["trace"].format(**fields),
        table["machine"].format(**fields),
        table.get("execution"),
        int(table["large"].format(**fields)),
        {
            key: int(value.format(**fields)) if value == "{large_boxes}" else value
            for key, value in table.get("settings", {}).items()
        },
        systems,
        {
            name: Key(table["name"], bases[name]) if bases.get(name) else Key(*table["base"])
            for name in systems
        },
        table["own"],
        Key(*table["beside"]) if "beside" in table else None,
    )


def unplanned() -> dict[str, frozenset[str]]:
    """Return the policies of the registry that are run in no world, with the machines they need.

    Those that ``plan.toml`` leaves out are not among them.
    """
    run = {system.policy for world in worlds(BLUE) for system in world.systems.values()}
    settled = run.union(TABLE["left_out"])
    return {name: policies[name].machines for name in policies if name not in settled}


def runs(site: Site) -> dict[tuple[str, str], dict[str, Any]]:
    """Return the runs by world and system."""
    planned = {}
    for world in worlds(site):
        for name, system in world.systems.items():
            chosen = {
                "execution": world.execution,
                "solver": system.solver,
                "settings": {**world.settings, **system.settings},
            }
            planned[world.name, name] = {
                "trace": world.trace,
                "machine": world.machine,
                "policy": system.policy,
                "large_from": world.large_from,
            } | {key: value for key, value in chosen.items() if value}
    return planned


def plan(
    folders: Sequence[Path], inputs: Path, *, quick: bool, trace: str | None = None
) -> dict[str, Any]:
    """State the sweep."""
    planned = runs(_of(folders, trace, quick=quick)[0]).values()
    blocks = [run | {"trace": str(inputs / run["trace"])} for run in planned]
    return {"keep": TABLE["keep"], "runs": blocks}


def inputs(
    folders: Sequence[Path], *, quick: bool, trace: str | None = None
) -> Mapping[str, Trace]:
    """Make the traces: the first jobs of the log, with demands, and in pieces with files."""
    site, jobs = _of(folders, trace, quick=quick)
    return {
        f"{site.log}{LOG}": jobs,
        f"{site.log}-demands{LOG}": drawn(jobs, DEMANDS["mix"], DEMANDS["seed"]),
        f"{site.log}-pieces.rackham.gz": infer_files(split_jobs(jobs, SHAPES["cluster"]).trace),
    }


def _of(folders: Sequence[Path], trace: str | None, *, quick: bool) -> tuple[Site, Trace]:
    """Return the log of the study, or that of the user, and its first jobs."""
    site = SAMPLE if quick else BLUE
    if trace is None:
        return site, read_trace(find_log(site.file, folders)).jobs(1, site.jobs)
    log = prepare_trace(trace)
    jobs = log.jobs(1, min(site.jobs, len(log)))
    size = log.header.max_procs or int(log.processors.max())
    name = PurePath(log.name).name
    return Site(name, f"{name}{LOG}", len(jobs), size, least_large(jobs)), jobs
