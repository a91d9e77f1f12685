"""The worlds in which systems can be compared, from ``plan.toml``, and their runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args, get_origin, get_type_hints

from optsched.registry import policies
from optsched.studies.content import PLAN, content_of
from optsched.studies.study import find_log
from optsched.text_files import read_toml
from optsched.traces.bandwidth import drawn
from optsched.traces.input_files import infer_files
from optsched.traces.job_pieces import split_jobs
from optsched.traces.reading import read_trace
from optsched.traces.trace import Trace

TABLE = read_toml(content_of("systems") / PLAN)
DEMANDS = TABLE["demands"]

BACKFILL = "backfill"
"""The setting of which all choices are run where a policy for plain nodes has it."""


class Site(NamedTuple):
    """A log, and its machine as each world sees it; ``plan.toml`` describes the fields."""

    name: str
    file: str
    jobs: int
    processors: int
    torus: str
    smp: str
    cluster: str
    cores: int
    large_from: int
    large_boxes: int


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
    fields = site._asdict()
    stated = table.get("systems", ())
    own = [System(one["policy"], one.get("solver"), one.get("settings", {})) for one in stated]
    systems = {one.name: one for one in own or plain_systems()}
    bases = {system.name: one.get("base") for system, one in zip(own, stated)}
    return World(
        table["name"],
        table["trace"],
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


def plan(folders: Sequence[Path], inputs: Path, *, quick: bool) -> dict[str, Any]:
    """State the sweep."""
    planned = runs(SAMPLE if quick else BLUE).values()
    blocks = [run | {"trace": str(inputs / run["trace"])} for run in planned]
    return {"keep": TABLE["keep"], "runs": blocks}


def inputs(folders: Sequence[Path], *, quick: bool) -> Mapping[str, Trace]:
    """Make the traces: the first jobs of the log, with demands, and in pieces with files."""
    site = SAMPLE if quick else BLUE
    jobs = read_trace(find_log(site.file, folders)).jobs(1, site.jobs)
    return {
        "jobs.swf.gz": jobs,
        "demands.swf.gz": drawn(jobs, DEMANDS["mix"], DEMANDS["seed"]),
        "pieces.rackham.gz": infer_files(split_jobs(jobs, site.cores).trace),
    }
