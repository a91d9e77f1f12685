"""The runs: workloads on the machine of the paper, under the variants of ``plan.toml``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from optsched.studies.content import PLAN, content_of
from optsched.studies.offered import offered_by
from optsched.studies.plan import logs_at_hand
from optsched.text_files import read_toml
from optsched.traces.cleaning import clean
from optsched.traces.reading import read_trace
from optsched.traces.scaling import scale_trace
from optsched.traces.trace import Trace
from optsched.workloads.capability_mix import CapabilityMix
from optsched.workloads.spec_file import read_workload

CONTENT = content_of("li-2015")
TABLE = read_toml(CONTENT / PLAN)
PUBLISHED = read_toml(CONTENT / "published.toml")
QUICK, MODEL = TABLE["quick"], TABLE["modeled"]
SEEDS, LOADS = TABLE["seeds"], MODEL["loads"]

LOGS: dict[str, Any] = dict(TABLE["logs"])
LOAD: float = LOGS.pop("load")


CONVEX = ":convex=true"
"""End of the spec of a torus with convex boxes."""


class Variant(NamedTuple):
    """The settings of ``torus`` and of migrations, a solver with its budget, if any, and boxes."""

    settings: Mapping[str, Any]
    solver: Mapping[str, Any]
    convex: bool


class Machine(NamedTuple):
    """A torus, and the number of nodes above which jobs are large on it."""

    routers: tuple[int, int, int]
    large: int

    @property
    def nodes(self) -> int:
        """The number of its nodes."""
        x, y, z = self.routers
        return int(x * y * z * TABLE["machine"]["nodes"])

    @property
    def spec(self) -> str:
        """Its spec."""
        sides = (*self.routers, TABLE["machine"]["nodes"])
        links = ",".join(map(str, TABLE["machine"]["links"]))
        return f"torus:{'x'.join(map(str, sides))}:hilbert:links={links}"

    def spec_of(self, variant: Variant) -> str:
        """Return its spec for a variant, which may have convex boxes."""
        return self.spec + (CONVEX if variant.convex else "")


FULL, SMALL = (Machine(one["routers"], one["large"]) for one in (TABLE["machine"], QUICK))


def _variant(table: Mapping[str, Any]) -> Variant:
    solver = {key: table[key] for key in ("solver", "work_limit") if key in table}
    settings = TABLE["bases"][table["base"]] | table.get("settings", {})
    return Variant(settings, solver, table.get("convex", False))


MAIN = {name: _variant(table) for name, table in TABLE["comparison"].items()}
"""The variants of the comparison, run on all workloads."""

SINGLE = {name: _variant(table) for name, table in TABLE["changes"].items()}
"""Single changes; at the lower load they are run on one seed only."""

VARIANTS = MAIN | SINGLE
OWN: Mapping[str, Mapping[str, int]] = PUBLISHED["windows"]
"""The paper's system with its scan windows; the first stands for all."""

READINGS: Mapping[str, Mapping[str, str]] = TABLE["readings"]
"""When the paper's system migrates: the variants that replace its own under each reading."""

SYSTEM = next(iter(OWN))
CEILING = "EASY on nodes"
"""EASY that counts nodes: no boxes, so nothing is fragmented."""


class Modeled(NamedTuple):
    """A modeled workload: the load that it offers, and the seed."""

    load: float
    seed: int

    @property
    def file(self) -> str:
        """The name of its file."""
        return f"modelled_load{self.load:g}_seed{self.seed}.swf.gz"


MODELED = {one.file: one for one in (Modeled(load, seed) for load in LOADS for seed in SEEDS)}
"""By the names of their files."""

WORKLOADS = (*(f"modeled, load {load:g}" for load in LOADS), *LOGS)
"""In the order of tables."""


def modeled(*, quick: bool) -> list[Modeled]:
    """List the modeled workloads."""
    return [Modeled(LOADS[-1], SEEDS[0])] if quick else list(MODELED.values())


def real_logs(folders: Sequence[Path], *, quick: bool) -> dict[str, Path]:
    """Find the logs that are there, but the first one alone for a quick look."""
    wanted = list(LOGS)[:1] if quick else LOGS
    return logs_at_hand({name: LOGS[name]["file"] for name in wanted}, folders)


def jobs_of(file: str) -> str:
    """Return the name of the jobs in a file: those of a seed are the same at all loads."""
    return f"seed {MODELED[file].seed}" if file in MODELED else file


def workload_of(file: str) -> str:
    """Return the workload of a file; the files of one workload differ in their seeds."""
    if file in MODELED:
        return f"modeled, load {MODELED[file].load:g}"
    return file.removesuffix(".swf.gz")


def plan(folders: Sequence[Path], inputs: Path, *, quick: bool) -> dict[str, Any]:
    """State the sweep."""
    machine = SMALL if quick else FULL
    workloads = modeled(quick=quick)
    real = [f"{name}.swf.gz" for name in real_logs(folders, quick=quick)]
    every = [*(one.file for one in workloads), *real]
    few = [one.file for one in workloads if one.load == LOADS[-1] or one.seed == SEEDS[0]]
    torus = {"policy": "torus", "execution": "migration"}
    runs = [
        {"large_from": machine.large + 1}
        | {"trace": [str(inputs / file) for file in (every if name in MAIN else [*few, *real])]}
        | {"machine": machine.spec_of(variant)}
        | torus
        | {"settings": dict(variant.settings) | {"large": machine.large}}
        | dict(variant.solver)
        for name, variant in VARIANTS.items()
    ]
    nodes = {"machine": f"nodes:{machine.nodes}", "policy": "easy"}
    files = {"trace": [str(inputs / file) for file in every]}
    ceiling = {"large_from": machine.large + 1} | nodes | files
    return {"keep": TABLE["keep"], "runs": [*runs, ceiling]}


def inputs(folders: Sequence[Path], *, quick: bool) -> Mapping[str, Trace]:
    """Generate the modeled workloads, and scale the parts of the logs that are there."""
    nodes = (SMALL if quick else FULL).nodes
    model, jobs = _model(quick=quick), QUICK["jobs"] if quick else MODEL["jobs"]
    traces = {
        one.file: _at_load(model.generate(jobs, one.seed), nodes, one.load)
        for one in modeled(quick=quick)
    }
    for name, path in real_logs(folders, quick=quick).items():
        first, last = LOGS[name]["jobs"]
        last = first + QUICK["jobs"] - 1 if quick else last
        part = clean(read_trace(path)).jobs(first, last)
        traces[f"{name}.swf.gz"] = _at_load(part, nodes, LOAD)
    return traces


def _model(*, quick: bool) -> CapabilityMix:
    """Return the model, or for a quick look its classes of many nodes."""
    model = read_workload(MODEL["spec"])
    assert isinstance(model, CapabilityMix)
    if not quick:
        return model
    classes = [one for one in model.classes if one.smallest >= QUICK["smallest"]]
    total = sum(one.share for one in classes)
    return replace(
        model, classes=tuple(replace(one, share=100 * one.share / total) for one in classes)
    )


def _at_load(trace: Trace, nodes: int, load: float) -> Trace:
    """Return a trace scaled to a number of nodes and stretched to offer a load."""
    sized = scale_trace(trace, nodes).trace
    factor = load / offered_by(sized, nodes).load
    return scale_trace(sized, nodes, load=factor).trace
