"""The worlds in which systems can be compared: a machine, what says how long jobs take, systems."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal, NamedTuple, get_args, get_origin, get_type_hints

from optsched.registry import policies
from optsched.studies.systems.site import BLUE, Site

WHOLE, DEMANDS, PIECES = "jobs.swf.gz", "demands.swf.gz", "pieces.rackham.gz"
"""The traces: the jobs, the same with drawn demands, and split into those of a node with files."""


class Key(NamedTuple):
    """Which system of which world."""

    world: str
    system: str


class System(NamedTuple):
    """A policy, with what is chosen of it.

    Parameters
    ----------
    policy : str
        Its name.
    solver : str, optional
        Where it is not the policy's own.
    settings : mapping
        Of the policy, where they are stated.
    """

    policy: str
    solver: str | None = None
    settings: Mapping[str, Any] = {}

    @property
    def name(self) -> str:
        """What is chosen, as it is typed: ``gang, mpl=2`` for instance."""
        stated = [f"{key}={_typed(value)}" for key, value in self.settings.items()]
        return ", ".join([self.policy, *filter(None, [self.solver]), *stated])


class World(NamedTuple):
    """Where systems can be compared with one another.

    Parameters
    ----------
    name : str
        As tables name it.
    trace : str
        One of the traces that the study makes for itself.
    machine : str
        As a run names it.
    execution : str, optional
        The execution model; without one jobs run as long as the log says.
    large_from : int
        Jobs of so many processors count as large.
    baselines : mapping of str to Key
        What each system is compared with, by its name.
    systems : mapping of str to System
        By name, in the order of tables.
    own : mapping of str to str
        Figures that only this world has, by their names in a summary, and how they are headed.
    reading : str
        How its table is read.
    settings : mapping
        That all systems of the world have.
    beside : Key, optional
        A system of another world that is told beside the own ones.
    """

    name: str
    trace: str
    machine: str
    execution: str | None
    large_from: int
    baselines: Mapping[str, Key]
    systems: Mapping[str, System]
    own: Mapping[str, str]
    reading: str
    settings: Mapping[str, Any] = {}
    beside: Key | None = None


PLAIN, CONTIGUITY, GANG = "plain nodes", "contiguous nodes", "time slices"
BOXES, SHARING, FILES = "boxes of a torus", "shared bandwidth", "input files"

EASY = System("easy")
PLAIN_EASY = Key(PLAIN, EASY.name)
"""What most worlds can be related to."""

ALPHA = BETA = 0.3
"""What contiguous nodes save of a sensitive job's run time, and the share of these jobs."""

MIX, SEED = "MED", 1
"""How many jobs demand much memory bandwidth, and the seed of the draw."""

BACKFILL = "backfill"
"""The setting of which all choices are run where a policy for plain nodes has it."""

READING = {
    PLAIN: "Jobs run as long as the log says, wherever they are. All policies of the registry for "
    "a line of nodes, each with all choices of its backfilling. The window policy is for "
    "contiguous nodes, which are worth nothing here: it shows what contiguity costs. It decides "
    "at ticks only, not at every event.",
    CONTIGUITY: "The run times of the log are those on scattered nodes; a draw makes "
    f"{BETA:.0%} of the jobs sensitive, which take {ALPHA:.0%} less on one run of nodes (Yang et "
    "al. 2014). So run times, and with them slowdowns, differ from system to system, and response "
    "says more than wait.",
    GANG: "Jobs share processors in time slices (Franke et al. 1999), and run in other rows too "
    "where all of their processors are idle there (sharing=fill). Nothing is lost to a switch, and "
    "no memory runs short. They start early and then have only their turns: wait tells half of it, "
    "response all. Gang scheduling needs no estimates. The baseline is EASY of the world of plain "
    "nodes: the run times are the same.",
    BOXES: "Each job has a box of routers of its own (Li et al. 2015): the system of the paper, "
    "with its layers and with exact detection of free boxes. Each is compared with itself without "
    "migration, so the gain is that of migration alone. EASY on plain nodes stands beside: what a "
    "machine reaches on which shapes do not matter, and decisions need not wait for a cycle.",
    SHARING: "Processes of four-processor nodes share their memory bandwidth (Guim et al. 2009); "
    f"demands are drawn at random, {MIX}, seed {SEED}. A job is slowed by its neighbours, and "
    "killed at its limit. EASY knows nothing of penalties and leaves limits as requested; sjbf and "
    "rua raise them by the penalty they promise, which by itself spares jobs: how many, is told by "
    "sjbf with first-fit, with and without limits=requested. What is left between the latter and "
    "EASY, which chooses the first free processors, too, is not due to limits: candidates are "
    "tried by requested time, and the reservation holds particular processors, not a number of "
    "them. A job loses least with less-consume already; bottleneck-search is asked for what the "
    "rules do not look for: the least penalty at the first start within a threshold, and, with "
    "rua, the least slowdown of all places and starts. The baseline is EASY on the same machine.",
    FILES: "A job loads its input file unless it is in the memory of its node (Gonthier et al. "
    "2024). Jobs larger than a node are split, and files inferred from user, size and time, so "
    "the pieces of a job ask for the same file. Loading counts against the limit of a job, which "
    "is killed at it. All figures are of pieces, not of the jobs that they come from.",
}


def _typed(value: Any) -> str:
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else f"{value}"


def plain_systems() -> list[System]:
    """Return all policies of the registry for a line of nodes, with all their backfilling."""
    found = []
    for name in policies:
        cls = policies[name]
        if "nodes" in cls.machines:
            wanted = get_type_hints(cls).get(BACKFILL)
            choices = get_args(wanted) if get_origin(wanted) is Literal else ()
            found += [System(name, settings={BACKFILL: one}) for one in choices] or [System(name)]
    return found


def worlds(site: Site) -> list[World]:
    """Return the worlds, in the order of tables."""
    return [
        _plain(site),
        _contiguity(site),
        _gang(site),
        _boxes(site),
        _sharing(site),
        _files(site),
    ]


def unplanned() -> dict[str, frozenset[str]]:
    """Return the policies of the registry that are run in no world, with the machines they need."""
    run = {system.policy for world in worlds(BLUE) for system in world.systems.values()}
    return {name: policies[name].machines for name in policies if name not in run}


def _world(
    name: str,
    systems: list[System],
    baselines: Mapping[str, Key] | Key,
    **fields: Any,
) -> World:
    named = {system.name: system for system in systems}
    if isinstance(baselines, Key):
        baselines = dict.fromkeys(named, baselines)
    return World(name, baselines=baselines, systems=named, reading=READING[name], **fields)


def _plain(site: Site) -> World:
    return _world(
        PLAIN,
        plain_systems(),
        PLAIN_EASY,
        trace=WHOLE,
        machine=f"nodes:{site.processors}",
        execution=None,
        large_from=site.large_from,
        own={"loss_of_capacity": "loss of capacity", "contiguous_share": "contiguous"},
    )


def _contiguity(site: Site) -> World:
    windows = [System("window", settings={BACKFILL: choice}) for choice in ("none", "easy")]
    return _world(
        CONTIGUITY,
        [System("fcfs"), EASY, *windows],
        Key(CONTIGUITY, EASY.name),
        trace=WHOLE,
        machine=f"nodes:{site.processors}",
        execution="contiguity",
        large_from=site.large_from,
        own={
            "loss_of_capacity": "loss of capacity",
            "contiguous_share": "contiguous",
            "lost_processor_hours": "lost processor hours",
        },
        settings={"alpha": ALPHA, "beta": BETA},
    )


def _gang(site: Site) -> World:
    systems = [
        System("gang", settings={"admission": admission, "mpl": mpl})
        for admission in ("fcfs", "skip")
        for mpl in (2, 3, 5)
    ]
    return _world(
        GANG,
        systems,
        PLAIN_EASY,
        trace=WHOLE,
        machine=f"matrix:{site.processors}",
        execution=None,
        large_from=site.large_from,
        own={"mean_pause": "mean pause, s"},
        settings={"sharing": "fill"},
        beside=PLAIN_EASY,
    )


def _boxes(site: Site) -> World:
    def system(detect: str, *, migrate: bool) -> System:
        return System("torus", settings={"detect": detect, "migrate": migrate})

    def pairs() -> Iterator[tuple[System, Key]]:
        for detect in ("layered", "exact"):
            without = system(detect, migrate=False)
            for one in (without, system(detect, migrate=True)):
                yield one, Key(BOXES, without.name)

    return _world(
        BOXES,
        [one for one, _ in pairs()],
        {one.name: base for one, base in pairs()},
        trace=WHOLE,
        machine=site.torus,
        execution="migration",
        large_from=site.large_from,
        own={
            "migrations": "migrations",
            "migration_processor_hours": "processor hours migrating",
            "internal_fragmentation": "internal fragmentation",
            "external_fragmentation": "external fragmentation",
        },
        settings={"large": site.large_boxes},
        beside=PLAIN_EASY,
    )


def _sharing(site: Site) -> World:
    systems = [
        EASY,
        System("sjbf", "first-fit"),
        System("sjbf", "first-fit", {"limits": "requested"}),
        System("sjbf", "less-consume"),
        System("sjbf", "less-consume-threshold", {"threshold": 1.15}),
        System("sjbf", "bottleneck-search", {"threshold": 1.15, "goal": "penalty"}),
        System("rua"),
        System("rua", "bottleneck-search", {"choice": "response"}),
    ]
    return _world(
        SHARING,
        systems,
        Key(SHARING, EASY.name),
        trace=DEMANDS,
        machine=site.smp,
        execution="resource-sharing",
        large_from=site.large_from,
        own={
            "penalised_jobs": "penalised jobs",
            "mean_penalised_percent": "penalised runtime, %",
            "penalised_processor_hours": "penalised processor hours",
        },
    )


def _files(site: Site) -> World:
    plain = [System("locality", solver) for solver in ("fcfs", "eft", "lea", "leo", "lem")]
    profiled = [
        System("locality", solver, {BACKFILL: "conservative"}) for solver in ("fcfs", "lem")
    ]
    return _world(
        FILES,
        [*plain, *profiled],
        Key(FILES, plain[0].name),
        trace=PIECES,
        machine=site.cluster,
        execution="file-loading",
        large_from=site.cores,
        own={
            "transfer_time": "transfer time, s",
            "waiting_for_a_load": "waiting for a load, s",
            "data_reuse": "data reuse",
        },
    )
