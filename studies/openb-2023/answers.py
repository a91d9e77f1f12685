"""The answers, one row each: what every way places on each problem, and what it costs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from optsched.models.node_placement import NodePlacement, Placements, fragmentation
from optsched.models.node_placement.fields import WHOLE as GPU
from optsched.solvers.finding import find_solver
from optsched.solvers.result import Budget, Result, Status
from optsched.solvers.solving import solve as solve_problem
from optsched.studies.running import Case
from optsched.text_files import read_toml
from optsched.traces.catalogue import find_log

from .cluster import (
    Cluster,
    Forecast,
    coming_and_going,
    devices_for,
    in_batches,
    partly_busy,
    read_leaves,
    whole_nodes,
)
from .trace import Nodes, Pods, read_nodes, read_pods

Row = dict[str, Any]
Of = Mapping[str, Any]

TABLE = read_toml(Path(__file__).with_name("plan.toml"))["own"]
FILES = (TABLE["nodes"], TABLE["topology"], *TABLE["lists"].values())


class Way(NamedTuple):
    """A way to place pods: a solver with options, asked where the way `after` leaves pods out."""

    name: str
    solver: str
    options: Mapping[str, Any] = {}
    after: Way | None = None


RULES = [Way(**rule) for rule in TABLE["rules"]]
"""FGD, and five more rules."""

IN_ORDER = [rule for rule in RULES if "order" not in rule.options]
"""Those that place the pods in the order of their arrival."""

FGD, FEW_TYPES, EXACT = RULES[0], Way(**TABLE["few_types"]), Way(**TABLE["exact"])
FORECAST = EXACT._replace(name="exact with a forecast")
LEFT_OUT = EXACT._replace(name="exact where FGD leaves pods out", after=FGD)
OF_SWITCHES = [Way(**way) for way in TABLE["switches"]]


class Answers:
    """The answers of a way, and what they have cost; with a budget of work for each problem."""

    _nominal = 0.0

    def __init__(self, way: Way, work: float | None = None) -> None:
        self._solver, _ = find_solver(way.solver, "node-placement", way.options)
        self._budget = Budget(work=work)
        self._first = None if way.after is None else Answers(way.after)

    def solve(self, problem: NodePlacement) -> Result:
        """Solve a problem."""
        result = solve_problem(problem, self._solver, budget=self._budget, interruptible=False)
        price = self._solver.seconds_per_work
        self._nominal += self._solver.seconds_per_solve + result.work * price
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
        """The column with the nominal seconds of all answers."""
        own = [self] if self._first is None else [self, self._first]
        return {"nominal_seconds": sum(one._nominal for one in own)}


class Files:
    """The files of the study, all of which are read at once, so that none fails late."""

    def __init__(self, folders: Sequence[Path]) -> None:
        found = {name: find_log(name, folders) for name in FILES}
        self.nodes = read_nodes(found[TABLE["nodes"]])
        self.with_gpus = self.nodes.chosen(np.flatnonzero(self.nodes.gpus))
        self.pods = {name: read_pods(found[file]) for name, file in TABLE["lists"].items()}
        self.leaves = read_leaves(found[TABLE["topology"]])

    def asking(self, name: str) -> Pods:
        """Return the pods of a list that need GPUs."""
        pods = self.pods[name]
        return pods.chosen(np.flatnonzero(pods.share))

    def busy(self, of: Of, number: int, seed: int) -> tuple[Cluster, Pods]:
        """Return partly busy nodes, and a queue that asks for all their free GPUs."""
        nodes, pods = self.drawn(number, seed), self.asking(of["list"])
        return partly_busy(nodes, pods, of["load"], of["left"], seed)

    def drawn(self, number: int, seed: int) -> Nodes:
        """Return nodes with GPUs, drawn at random and in the order of the list."""
        rng = np.random.default_rng(seed)
        rows = rng.choice(len(self.with_gpus.gpus), number, replace=False)
        return self.with_gpus.chosen(np.sort(rows))


def cases(plan: Mapping[str, Any], folders: Sequence[Path]) -> dict[str, Case]:
    """Return the cases of all parts, each a draw of problems that are answered in all ways."""
    data = Files(folders)
    found: dict[str, Case] = {}
    for name, (draws, rows) in PARTS_OF.items():
        of = plan["own"]["parts"][name]
        for draw in draws(of):
            found["-".join(map(str, (name, *draw)))] = partial(_case, rows, name, data, of, *draw)
    return found


def files(plan: Mapping[str, Any], folders: Sequence[Path]) -> list[Path]:
    """Return the files on which the answers rest."""
    return [find_log(name, folders) for name in FILES]


def _case(rows: Callable[..., Iterator[Row]], name: str, *draw: Any) -> Iterator[Row]:
    for row in rows(*draw):
        yield {"part": name} | row


def _numbers_and_seeds(of: Of) -> Iterable[Any]:
    return ((one["nodes"], seed) for one in of["cases"] for seed in range(1, one["seeds"] + 1))


def _busy(data: Files, of: Of, number: int, seed: int) -> Iterator[Row]:
    """Partly busy nodes, and a queue that asks for all their free GPUs."""
    cluster, queue = data.busy(of, number, seed)
    for row in _offline(cluster.problem(queue), [*RULES, EXACT], of["work"]):
        yield {"list": of["list"], "seed": seed} | row


def _whole(data: Files, of: Of, name: str) -> Iterator[Row]:
    """All pods of a list onto all nodes."""
    nodes = data.drawn(of["nodes"], 1) if of["nodes"] else data.nodes
    pods = data.pods[name]
    pods = pods.chosen(range(of["pods"] or len(pods.share)))
    for row in _offline(Cluster(nodes).problem(pods), [*RULES, FEW_TYPES, EXACT], of["work"]):
        yield {"list": name} | row


def _arrivals(data: Files, of: Of, name: str, seed: int, order: int | None = None) -> Iterator[Row]:
    """More pods than the nodes with GPUs can hold, in random order."""
    nodes = data.drawn(of["nodes"], 1) if of["nodes"] else data.with_gpus
    pods = arriving(data.pods[name], int(of["load"] * GPU * nodes.gpus.sum()), seed)
    if order is not None:
        nodes = nodes.chosen(np.random.default_rng(order).permutation(len(nodes.gpus)))
    ways = [*IN_ORDER, FEW_TYPES, *[EXACT] * (seed <= of.get("exact", 0))]
    for row in _offline(Cluster(nodes).problem(pods), ways, of.get("work")):
        yield {"list": name, "seed": seed} | row


def _ties(data: Files, of: Of, name: str, seed: int, order: int) -> Iterator[Row]:
    """Pods of a draw of arrivals, on nodes in another order."""
    for row in _arrivals(data, of, name, seed, order):
        yield row | {"order": order}


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


def _offline(problem: NodePlacement, ways: Sequence[Way], work: float | None) -> Iterator[Row]:
    """Place all pods at once."""
    for way in ways:
        answers = Answers(way, work if way is EXACT else None)
        result = answers.solve(problem)
        proof: Row = {}
        if way is EXACT:
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


def _batches(data: Files, of: Of, number: int, seed: int) -> Iterator[Row]:
    """Partly busy nodes, and a queue that is placed batch by batch."""
    cluster, queue = data.busy(of, number, seed)
    problem = cluster.problem(queue)
    about = {"list": of["list"], "seed": seed}
    for row in _offline(problem, [*IN_ORDER, EXACT], of["work"]):
        yield about | row
    sizes = [(EXACT, size) for size in of["sizes"]]
    sizes += [(FORECAST, size) for size in of["forecast"]]
    for way, size in sizes:
        answers = Answers(way, of["work"])
        ahead = drawing(data.asking(of["list"]), np.random.default_rng(seed))
        ahead = ahead if way is FORECAST else None
        found = in_batches(data.busy(of, number, seed)[0], queue, size, answers, ahead)
        row = _placed(problem, found) | answers.cost
        yield about | row | {"way": way.name, "size": size}


def _leaving(data: Files, of: Of, seed: int) -> Iterator[Row]:
    """Pods that come and go."""
    nodes = data.drawn(of["nodes"], seed)
    pods = fitting(nodes, data.pods[of["list"]])
    pods = pods.chosen(range(max(0, len(pods.share) - of["pods"]), len(pods.share)))
    for way in (*IN_ORDER, EXACT, LEFT_OUT):
        answers = Answers(way, of["work"] if way.solver == EXACT.solver else None)
        started, decisions = coming_and_going(nodes, pods, answers)
        waits = started - pods.created
        row = {"list": of["list"], "nodes": of["nodes"], "seed": seed, "way": way.name}
        row |= {"jobs": len(waits), "gpus": float(nodes.gpus.sum()), "decisions": decisions}
        row |= {"waited": float((waits > 0).mean()), "mean_wait": float(waits.mean())}
        row |= {"p95_wait": float(np.percentile(waits, 95))}
        yield row | {"gpu_wait": float(np.average(waits, weights=pods.share))} | answers.cost


def fitting(nodes: Nodes, pods: Pods) -> Pods:
    """Return the pods that an idle node can hold."""
    idle = Cluster(nodes)

    def fits(pod: int) -> bool:
        return any(devices_for(idle, pods, pod, one) is not None for one in range(len(nodes.gpus)))

    return pods.chosen(list(filter(fits, range(len(pods.share)))))


def _switches(data: Files, of: Of, number: int, seed: int) -> Iterator[Row]:
    """Jobs of whole nodes on leaf switches; the cases are numbered from 1."""
    problem = whole_nodes(data.leaves, **of["cases"][number - 1], seed=seed)
    for way in OF_SWITCHES:
        answers = Answers(way, of["work"] if way is OF_SWITCHES[-1] else None)
        result = answers.solve(problem)
        measures = problem.measures(result.solution)
        row = {"case": number, "seed": seed, "way": way.name, "nodes": len(problem.free)}
        row |= {"jobs": len(problem.chunks), "weight": measures["weight"]}
        row |= {"switches": measures["switches"]} | answers.cost
        if way is OF_SWITCHES[-1]:  # the bound as a weight, and as switches at that weight
            weight = -(-int(result.bound) // problem.radices[0])
            least = weight * problem.radices[0] - int(result.bound)
            row |= {"most_weight": weight, "least_switches": least}
            row |= {"proven": result.status is Status.OPTIMAL}
        yield row


def _orders(of: Of) -> Iterable[Any]:
    """Return the lists with each draw of arrivals, and orders of nodes: several for the first."""
    first, draws = range(1, of["orders"] + 1), _lists_and_seeds(of)
    return ((*one, order) for one in draws for order in (first if one[1] == 1 else one[1:]))


def _numbered(of: Of) -> Iterable[Any]:
    return product(range(1, len(of["cases"]) + 1), range(1, of["seeds"] + 1))


def _lists_and_seeds(of: Of) -> Iterable[Any]:
    return product(of["lists"], range(1, of["seeds"] + 1))


PARTS_OF: dict[str, tuple[Callable[[Of], Iterable[Any]], Callable[..., Iterator[Row]]]] = {
    "busy": (_numbers_and_seeds, _busy),
    "whole": (lambda of: product(of["lists"]), _whole),
    "arrivals": (_lists_and_seeds, _arrivals),
    "ties": (_orders, _ties),
    "batches": (_numbers_and_seeds, _batches),
    "leaving": (lambda of: product(range(1, of["seeds"] + 1)), _leaving),
    "switches": (_numbered, _switches),
}
"""Of each part, by its settings: what tells its cases apart, and the rows of a case."""
