"""The runs: modeled workloads and parts of SDSC-BLUE, in the blocks of ``plan.toml``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from optsched.studies.content import PLAN, content_of
from optsched.studies.franke_1999.changes import UNCHANGED, Change, changed
from optsched.studies.plan import find_log
from optsched.text_files import read_toml
from optsched.traces.reading import read_trace
from optsched.traces.trace import Trace
from optsched.workloads.trace_fit import Sizes, fit_workload

CONTENT = content_of("franke-1999")
TABLE = read_toml(CONTENT / PLAN)
PUBLISHED = read_toml(CONTENT / "published.toml")

SEEDS: list[int] = TABLE["seeds"]
FEW: Mapping[str, list[float]] = TABLE["few"]
REQUESTS: float = TABLE["imperfect"]["requests"]
CHANGED: Mapping[str, Any] = TABLE["changes"]
MPLS = (2, 3, 5)

ADMISSIONS, SHARINGS = ("fcfs", "skip"), ("rows", "fill", "nodes", "turns")
TURNS = SHARINGS[-1]
VARIANTS = [f"{admission}, {sharing}" for admission in ADMISSIONS for sharing in SHARINGS]
"""Variants that the paper leaves open: the admission behind a blocked job, and the sharing."""

SHARED = [variant for variant in VARIANTS if not variant.endswith(TURNS)]
"""The variants of all workloads, in which jobs run at a share of the time; the others have time
slices, on those of the few whose jobs arrive as in the baseline."""

SHOWN, SKIPPED = "fcfs, fill", "skip, fill"
"""The variants of the figures. Where one stands for all it is the first."""

BEST = "skip, nodes"
"""The variant with the shortest response times."""

INSTANCES = (1, 2, 3)
"""Sequential jobs of Figure 9."""

LU_SECONDS = 100
"""Run time of an instance of Figure 9; the figure compares, so any will do."""

TRACE = "trace"
MODELS: list[Sizes] = TABLE["blue"]["models"]
"""Stand-ins for a part of SDSC-BLUE: the part itself, and the jobs that its models generate."""


class Workload(NamedTuple):
    """A workload of the paper's model: factors of interarrival times and run times, and a seed.

    It may be changed, to see on what the results depend.
    """

    interarrival: float
    service: float
    seed: int
    change: Change = UNCHANGED

    @property
    def file(self) -> str:
        """The name of its file."""
        changed = f"_{self.change.key}" if self.change.key else ""
        factors = f"interarrival{self.interarrival:g}_service{self.service:g}"
        return f"model_{factors}_seed{self.seed}{changed}.swf.gz"


class Part(NamedTuple):
    """A part of SDSC-BLUE, from its first job on, or what a model fitted to it generates."""

    first: int
    stand_in: str
    seed: int = 0

    @property
    def file(self) -> str:
        """The name of its file."""
        seed = f"_seed{self.seed}" if self.seed else ""
        return f"blue_from{self.first}_{self.stand_in}{seed}.swf.gz"


class Instances(NamedTuple):
    """So many sequential jobs that are submitted together, as in Figure 9."""

    number: int

    @property
    def file(self) -> str:
        """The name of its file."""
        return f"instances_{self.number}.swf.gz"


def workloads(*, quick: bool) -> dict[str, list[Any]]:
    """Return the sets of workloads that ``plan.toml`` names."""
    table = TABLE | TABLE["quick"] if quick else TABLE
    first, *others = table["seeds"]

    def modeled(
        factors: Mapping[str, list[float]], seed: int, change: Change = UNCHANGED
    ) -> list[Workload]:
        pairs = ((i, s) for i in factors["interarrival"] for s in factors["service"])
        return [Workload(i, s, seed, change) for i, s in pairs]

    few = {seed: modeled(table["few"], seed) for seed in table["seeds"]}
    return {
        "all": modeled(table["factors"], first),
        "few": few[first],
        "other seeds": [one for seed in others for one in few[seed]],
        "usual arrivals": [
            one for own in few.values() for one in own if one.interarrival == own[0].interarrival
        ],
        "imperfect": modeled(table["few"], first, Change(requests=REQUESTS)),
        "changed": list(_changed(quick=quick)),
        "baseline": few[first][:1],
        "baselines": [own[0] for own in few.values()],
        "instances": [Instances(number) for number in INSTANCES],
        "blue": list(_parts(quick=quick)),
    }


def changes(*, quick: bool) -> list[tuple[float, Change]]:
    """Return the service factor and the change of each changed workload, at first none."""
    table = _stated_changes(quick=quick)
    loads = [(service, UNCHANGED) for service in (table["service"], *table["other_services"])]
    stated = [{"service": table["service"]} | one for one in table["each"]]
    return loads + [(one.pop("service"), Change(**one)) for one in stated]


def _stated_changes(*, quick: bool) -> dict[str, Any]:
    return dict(CHANGED) | (TABLE["quick"]["changes"] if quick else {})


def _changed(*, quick: bool) -> Iterator[Workload]:
    table = _stated_changes(quick=quick)
    for service, change in changes(quick=quick):
        for seed in table["seeds"]:
            yield Workload(table["interarrival"], service, seed, change)


def _parts(*, quick: bool) -> Iterator[Part]:
    blue = TABLE["blue"]
    for first in TABLE["quick"]["first"] if quick else blue["first"]:
        yield Part(first, TRACE)
        for model in MODELS:
            for seed in SEEDS[:1] if quick else SEEDS:
                yield Part(first, model, seed)


def plan(folders: Sequence[Path], inputs: Path, *, quick: bool) -> dict[str, Any]:
    """State the sweep."""
    files = {
        name: [str(inputs / one.file) for one in own]
        for name, own in workloads(quick=quick).items()
    }
    blocks = [block | {"trace": files[block["trace"]]} for block in TABLE["sweep"]["runs"]]
    return {"keep": TABLE["keep"], "runs": blocks}


def inputs(folders: Sequence[Path], *, quick: bool) -> Mapping[str, Trace]:
    """Generate the workloads, and cut the parts out of SDSC-BLUE."""
    blue = read_trace(find_log(TABLE["blue"]["file"], folders))
    jobs = TABLE["quick"]["jobs"] if quick else PUBLISHED["jobs"]
    length = TABLE["quick"]["jobs"] if quick else TABLE["blue"]["jobs"]

    def made(one: Any) -> Trace:
        if isinstance(one, Workload):
            return generated(one, jobs)
        if isinstance(one, Instances):
            return _instances(one.number)
        return _stand_in(blue.jobs(one.first, one.first + length - 1), one.stand_in, one.seed)

    every = dict.fromkeys(one for own in workloads(quick=quick).values() for one in own)
    return {one.file: made(one) for one in every}


def generated(workload: Workload, jobs: int) -> Trace:
    """Generate a workload of the paper's model."""
    trace = workload.change.model.generate(
        jobs,
        workload.seed,
        interarrival_factor=workload.interarrival,
        service_factor=workload.service,
    )
    if workload.change == UNCHANGED:
        return trace
    return changed(trace, workload.change, PUBLISHED["nodes"], workload.seed)


def _instances(number: int) -> Trace:
    run = np.full(number, LU_SECONDS)
    return Trace(
        job_id=np.arange(1, number + 1),
        submit=np.zeros(number, dtype=np.int64),
        runtime=run,
        requested_time=run,
        processors=np.ones(number, dtype=np.int64),
        name="instances",
    )


def _stand_in(part: Trace, stand_in: str, seed: int) -> Trace:
    """Return a part of a log with perfect estimates, or what a model fitted to it generates."""
    if stand_in == TRACE:
        perfect = replace(part, requested_time=part.runtime, stated_time=part.runtime, label=None)
        return replace(perfect, submit=part.submit - part.submit.min())
    sizes: Sizes = "uniform" if stand_in == "uniform" else "observed"
    fitted = fit_workload(part, sizes=sizes, processors=TABLE["blue"]["processors"])
    return fitted.model.generate(len(part), seed)
