"""The answers, one row each: what every way places on each problem, and what it costs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from optsched.models.node_placement import NodePlacement, Placements, fragmentation
from optsched.models.node_placement.fields import WHOLE as GPU
from optsched.solvers.result import Budget, Result, Status
from optsched.solvers.solving import find_solver
from optsched.solvers.solving import solve as solve_problem
from optsched.studies.cases import Case
from optsched.studies.openb_2023.clos import read_leaves, whole_nodes
from optsched.studies.openb_2023.cluster import Cluster, devices_for, partly_busy
from optsched.studies.openb_2023.online import Forecast, coming_and_going, in_batches
from optsched.studies.openb_2023.openb import Nodes, Pods, read_nodes, read_pods
from optsched.studies.openb_2023.plan import (
    ARRIVALS,
    BATCHES,
    BUSY,
    EXACT,
    FEW_TYPES,
    FILES,
    FORECAST,
    IN_ORDER,
    LEAVING,
    LEFT_OUT,
    OF_SWITCHES,
    RULES,
    SWITCHES,
    TABLE,
    WHOLE,
    Way,
    files,
    part,
)

if TYPE_CHECKING:
    import pandas as pd

Row = dict[str, Any]
Draws = Callable[[Mapping[str, Any]], Iterable[tuple[Any, ...]]]
Rows = Callable[..., Iterator[Row]]

COLUMNS = (
    *("part", "list", "nodes", "seed", "size", "case", "way", "jobs", "gpus", "asked", "placed"),
    *("pods", "fragmentation", "bound", "weight", "most_weight", "switches", "least_switches"),
    *(
        "waited",
        "mean_wait",
        "p95_wait",
        "gpu_wait",
        "decisions",
        "proven",
        "nominal_seconds",
        "wall_seconds",
    ),
)
"""The columns of the results, in order."""


class Answers:
    """The answers of a way, and what they have cost.

    Parameters
    ----------
    way : Way
        The way.
    work : float, optional
        Budget for each problem, in the unit of its solver.
    """

    _nominal = _wall = 0.0

    def __init__(self, way: Way, work: float | None = None) -> None:
        self._solver, _ = find_solver(way.solver, "node-placement", way.options)
        self._budget = Budget(work=work)
        self._first = None if way.after is None else Answers(way.after)

    def solve(self, problem: NodePlacement) -> Result:
        """Solve a problem."""
        result = solve_problem(problem, self._solver, budget=self._budget, interruptible=False)
        price = self._solver.seconds_per_work
        self._nominal += self._solver.seconds_per_solve + result.work * price
        self._wall += result.seconds
        return result

    def __call__(self, problem: NodePlacement) -> Placements:
        """Return the placements."""
        if self._first is not None:
            placed = self._first(problem)
            if all(placed.nodes):
                return placed
        found: Placements = self.solve(problem).solution
        return found

    @property
    def cost(self) -> Row:
        """The columns with nominal and wall-clock seconds of all answers."""
        first = self._first
        return {
            "nominal_seconds": self._nominal + (first._nominal if first else 0.0),
            "wall_seconds": self._wall + (first._wall if first else 0.0),
        }


class Files:
    """The files of the study, all of which are read at once, so that none fails late.

    Attributes
    ----------
    nodes, with_gpus : Nodes
        All nodes, and those with GPUs.
    pods : dict of str to Pods
        The lists of pods, by name.
    leaves : list of int
        Number of hosts of each leaf switch of Lingjun.
    """

    def __init__(self, folders: Sequence[Path]) -> None:
        found = dict(zip(FILES, files(folders)))
        self.nodes = read_nodes(found[TABLE["nodes"]])
        self.with_gpus = self.nodes.chosen(np.flatnonzero(self.nodes.gpus))
        self.pods = {name: read_pods(found[file]) for name, file in TABLE["lists"].items()}
        self.leaves = read_leaves(found[TABLE["topology"]])

    def asking(self, name: str) -> Pods:
        """Return the pods of a list that need GPUs."""
        pods = self.pods[name]
        return pods.chosen(np.flatnonzero(pods.share))

    def drawn(self, number: int, seed: int) -> Nodes:
        """Return nodes with GPUs, drawn at random and in the order of the list."""
        rng = np.random.default_rng(seed)
        rows = rng.choice(len(self.with_gpus.gpus), number, replace=False)
        return self.with_gpus.chosen(np.sort(rows))


def cases(folders: Sequence[Path], *, quick: bool) -> dict[str, Case]:
    """Return the cases of all parts, each a draw of problems that are answered in all ways."""
    data = Files(folders)
    found: dict[str, Case] = {}
    for name, (draws, rows) in PARTS_OF.items():
        of = part(name, quick=quick)
        for draw in draws(of):
            found["-".join(map(str, (name, *draw)))] = partial(_case, name, rows, data, of, draw)
    return found


def _case(
    name: str, rows: Rows, data: Files, of: Mapping[str, Any], draw: Sequence[Any]
) -> Iterator[Row]:
    """Yield the rows of a case of a part, with all columns."""
    for row in rows(data, of, *draw):
        yield dict.fromkeys(COLUMNS) | {"part": name} | row


def _numbers_and_seeds(of: Mapping[str, Any]) -> Iterator[tuple[int, int]]:
    """Yield the numbers of nodes, each with the seeds of its draws."""
    for case in of["cases"]:
        for seed in range(1, case["seeds"] + 1):
            yield case["nodes"], seed


def _busy(data: Files, of: Mapping[str, Any], number: int, seed: int) -> Iterator[Row]:
    """Partly busy nodes, and a queue that asks for all their free GPUs."""
    nodes, pods = data.drawn(number, seed), data.asking(of["list"])
    cluster, queue = partly_busy(nodes, pods, of["load"], of["left"], seed)
    for row in _offline(cluster.problem(queue), [*RULES, EXACT], of["work"]):
        yield {"list": of["list"], "seed": seed} | row


def _whole(data: Files, of: Mapping[str, Any], name: str) -> Iterator[Row]:
    """All pods of a list onto all nodes."""
    nodes = data.drawn(of["nodes"], 1) if of["nodes"] else data.nodes
    pods = data.pods[name]
    pods = pods.chosen(range(of["pods"] or len(pods.share)))
    for row in _offline(Cluster(nodes).problem(pods), [*RULES, FEW_TYPES, EXACT], of["work"]):
        yield {"list": name} | row


def _arrivals(data: Files, of: Mapping[str, Any], name: str, seed: int) -> Iterator[Row]:
    """More pods than the nodes with GPUs can hold, in random order."""
    nodes = data.drawn(of["nodes"], 1) if of["nodes"] else data.with_gpus
    shares = int(of["load"] * GPU * nodes.gpus.sum())
    pods = arriving(data.pods[name], shares, seed)
    ways = [*IN_ORDER, FEW_TYPES, *[EXACT] * (seed <= of["exact"])]
    for row in _offline(Cluster(nodes).problem(pods), ways, of["work"]):
        yield {"list": name, "seed": seed} | row


def arriving(pods: Pods, shares: int, seed: int) -> Pods:
    """Return the pods of a list, then pods drawn from it until all ask for so much; shuffled.

    Of a list that asks for more, the first pods are returned, shuffled.
    """
    rng = np.random.default_rng(seed)
    drawn = drawing(pods, rng)(max(0, shares - int(pods.share.sum())))
    every = pods.joined(drawn).until(shares)
    return every.chosen(rng.permutation(len(every.share)))


def drawing(pods: Pods, rng: np.random.Generator) -> Forecast:
    """Return a function that draws pods from a list."""

    def draw(shares: int) -> Pods:
        enough = 10 + 2 * int(shares / pods.share.mean())
        return pods.chosen(rng.integers(len(pods.share), size=enough)).until(shares)

    return draw


def _offline(problem: NodePlacement, ways: Sequence[Way], work: float) -> Iterator[Row]:
    """Place all pods at once."""
    for way in ways:
        answers = Answers(way, work if way is EXACT else None)
        result = answers.solve(problem)
        proof: Row = {}
        if way is EXACT:
            assert result.bound is not None
            proof = {"bound": result.bound / GPU, "proven": result.status is Status.OPTIMAL}
        yield _placed(problem, result.solution) | {"way": way.name} | proof | answers.cost


def _placed(problem: NodePlacement, placements: Placements) -> Row:
    """Return the columns of a problem and of what is placed."""
    assert not problem.violations(placements)
    return {
        "nodes": len(problem.free),
        "jobs": len(problem.chunks),
        "gpus": sum(map(sum, problem.devices)) / GPU,
        "asked": problem.share.sum() / GPU,
        "placed": problem.objective(placements) / GPU,
        "pods": sum(map(bool, placements.nodes)),
        "fragmentation": fragmentation(problem, placements),
    }


def _batches(data: Files, of: Mapping[str, Any], number: int, seed: int) -> Iterator[Row]:
    """Partly busy nodes, and a queue that is placed batch by batch."""
    nodes, pods = data.drawn(number, seed), data.asking(of["list"])
    cluster, queue = partly_busy(nodes, pods, of["load"], of["left"], seed)
    problem = cluster.problem(queue)
    about = {"list": of["list"], "seed": seed}
    for row in _offline(problem, [*IN_ORDER, EXACT], of["work"]):
        yield about | row
    sizes = [(EXACT, size) for size in of["sizes"]]
    sizes += [(FORECAST, size) for size in of["forecast"]]
    for way, size in sizes:
        answers = Answers(way, of["work"])
        cluster, _ = partly_busy(nodes, pods, of["load"], of["left"], seed)
        ahead = drawing(pods, np.random.default_rng(seed)) if way is FORECAST else None
        found = in_batches(cluster, queue, size, answers, ahead)
        row = _placed(problem, found) | answers.cost
        yield about | row | {"way": way.name, "size": size}


def _leaving(data: Files, of: Mapping[str, Any], seed: int) -> Iterator[Row]:
    """Pods that come and go."""
    nodes = data.drawn(of["nodes"], seed)
    pods = fitting(nodes, data.pods[of["list"]])
    pods = pods.chosen(range(max(0, len(pods.share) - of["pods"]), len(pods.share)))
    for way in (*IN_ORDER, EXACT, LEFT_OUT):
        answers = Answers(way, of["work"] if way.solver == EXACT.solver else None)
        stay = coming_and_going(nodes, pods, answers)
        waits = stay.started - pods.created
        yield {
            "list": of["list"],
            "nodes": of["nodes"],
            "seed": seed,
            "way": way.name,
            "jobs": len(waits),
            "gpus": float(nodes.gpus.sum()),
            "waited": float((waits > 0).mean()),
            "mean_wait": float(waits.mean()),
            "p95_wait": float(np.percentile(waits, 95)),
            "gpu_wait": float(np.average(waits, weights=pods.share)),
            "decisions": stay.decisions,
        } | answers.cost


def fitting(nodes: Nodes, pods: Pods) -> Pods:
    """Return the pods that an idle node can hold."""
    idle = Cluster(nodes)
    return pods.chosen(
        [
            pod
            for pod in range(len(pods.share))
            if any(
                devices_for(idle, pods, pod, node) is not None for node in range(len(nodes.gpus))
            )
        ]
    )


def _switches(data: Files, of: Mapping[str, Any], number: int, seed: int) -> Iterator[Row]:
    """Jobs of whole nodes on leaf switches; the cases are numbered from 1."""
    problem = whole_nodes(data.leaves, **of["cases"][number - 1], seed=seed)
    for way in OF_SWITCHES:
        answers = Answers(way, of["work"] if way is OF_SWITCHES[-1] else None)
        result = answers.solve(problem)
        measures = problem.measures(result.solution)
        row = {"case": number, "seed": seed, "way": way.name, "nodes": len(problem.free)}
        row |= {"jobs": len(problem.chunks), "weight": measures["weight"]}
        row |= {"switches": measures["switches"]} | answers.cost
        if way is OF_SWITCHES[-1]:
            row |= _proof(problem, result)
        yield row


def _proof(problem: NodePlacement, result: Result) -> Row:
    """Return the bound of an objective as a weight, and as switches at that weight."""
    assert result.bound is not None
    radix = problem.radices[0]
    weight = -(-int(result.bound) // radix)
    least = weight * radix - int(result.bound)
    return {
        "most_weight": weight,
        "least_switches": least,
        "proven": result.status is Status.OPTIMAL,
    }


def _seeds(of: Mapping[str, Any]) -> range:
    return range(1, of["seeds"] + 1)


PARTS_OF: dict[str, tuple[Draws, Rows]] = {
    BUSY: (_numbers_and_seeds, _busy),
    WHOLE: (lambda of: product(of["lists"]), _whole),
    ARRIVALS: (lambda of: product(of["lists"], _seeds(of)), _arrivals),
    BATCHES: (_numbers_and_seeds, _batches),
    LEAVING: (lambda of: product(_seeds(of)), _leaving),
    SWITCHES: (lambda of: product(range(1, len(of["cases"]) + 1), _seeds(of)), _switches),
}
"""Of each part, by its settings: what tells its cases apart, and the rows of a case."""


def of_part(frame: pd.DataFrame, name: str) -> pd.DataFrame:
    """Return the rows of a part."""
    return frame[frame["part"] == name]


def ways_of(rows: pd.DataFrame, column: str) -> pd.DataFrame:
    """Return a column of one list and size of clusters: a row for each draw, a column by way."""
    return rows.pivot(index="seed", columns="way", values=column)


def all_runs(frame: pd.DataFrame) -> pd.DataFrame:
    """Return all answers."""
    return frame
