"""Pods and jobs on the free nodes of a cluster: rules beside column generation.

    python benchmarks/node_placement.py --traces ../shared/traces -o benchmarks/results

Protocol: four families of cases. `busy`: nodes with GPUs of Alibaba's openb cluster, drawn at
random and filled to 90 % with pods of its list, of which a third leaves again; the next pods are
placed, as many as ask for all free GPUs. On all 1,213 nodes with GPUs it is 97 %, a twentieth, and
400 pods. The weight of a pod is what it takes of
GPUs, in thousandths. `all`: the whole list of pods on all 1,523 nodes, empty. `queue`: 100 jobs of
1 to 64 chunks on 1,500 nodes that are partly busy, with many different weights. `gangs`: 100 jobs
of 1 to 64 chunks on as many different nodes, of 1,500; cores, memory and weights are drawn evenly,
and nodes become partly busy, each in a part of its own, until the jobs ask for 1 to 1.5 times the
free cores. A rule takes the
jobs in the order of the list; "largest" is the best of the four rules when the heaviest jobs come
first. Values and bounds are weights in thousands: GPUs, for pods. "gap" is that of the bound, in
per cent. Seconds are those of one solve, after compiling. With `--cp-sat SECONDS`, CP-SAT answers
the model's program, too. With `--fragmentation`, for the family `busy` alone, the table has the
fragmentation in devices: "FGD leaves" after `least-fragmentation`, "leaves" after the exact answer,
"leaves least" after one that is asked for the least fragmentation at the greatest weight; "weight"
is the weight of that, and "least" the lower bound, where the greatest weight is proven.
"""

from __future__ import annotations

import argparse
import dataclasses
import random
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from results import Times, circumstances, keep, shown

import optsched
from optsched.models.node_placement import NodePlacement, fragmentation
from optsched.solvers.finding import find_solver
from optsched.solvers.node_placement.column_generation import ColumnGeneration
from optsched.solvers.result import Budget, Result, Status

NODES = Path("clusters", "openb_node_list_all_node.csv.gz")
PODS = "openb_pod_list_{}.csv.gz"
RULES = ("first-fit", "best-fit", "device-packing", "least-fragmentation")
EXACT, GENERIC = "column-generation", "cp-sat"
WHOLE = 1000
QUEUED = 1_000
"""Pods that are left for the queue when a cluster is filled."""

BUSY = {40: (0.9, 1 / 3, None), 150: (0.9, 1 / 3, None), 600: (0.9, 1 / 3, None)}
BUSY |= {1_213: (0.97, 0.05, 400)}
"""Load of that many nodes, the share of pods that leave again, and the most pods in the queue."""

Record = dict[str, Any]


class Case(NamedTuple):
    """A problem, with its family and its parameters as text."""

    family: str
    parameters: str
    problem: NodePlacement


def openb(traces: Path, pods: str) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the nodes of openb, and one of its lists of pods."""
    nodes = pd.read_csv(traces / NODES).fillna({"model": "none"})
    listed = pd.read_csv(traces / NODES.with_name(PODS.format(pods)), dtype={"gpu_spec": str})
    listed = listed.fillna({"gpu_spec": ""})
    shares = (listed.num_gpu == 1) & (listed.gpu_milli < WHOLE)
    listed["share"] = (WHOLE * listed.num_gpu).mask(shares, listed.gpu_milli)
    return nodes, listed


def emptied(nodes: pd.DataFrame) -> list[Record]:
    """Return nodes as records, with all of their devices free."""
    records = nodes.to_dict("records")
    for node in records:
        node["devices"] = [WHOLE] * node["gpu"]
    return records


def asking_least_fragmentation(problem: NodePlacement) -> NodePlacement:
    """Return the same problem, in which the fragmentation matters after the weight."""
    fields = {each.name: getattr(problem, each.name) for each in dataclasses.fields(problem)}
    return NodePlacement(**fields | {"then": ["fragmentation"]})


def least_of(problem: NodePlacement, result: Result) -> float | None:
    """Return the lower bound of the fragmentation, in devices; None if the weight is open."""
    assert result.bound is not None
    most = problem.radices[0]
    weight = -(-result.bound // most)
    if weight > problem.measures(result.solution)["weight"]:
        return None
    return (weight * most - result.bound) / (WHOLE * int(problem.chunks[problem.share > 0].sum()))


def problem_of(nodes: list[Record], pods: list[Record]) -> NodePlacement:
    """Return the problem of placing pods."""
    models = {node["model"] for node in nodes}
    shares = [pod["share"] for pod in pods]
    return NodePlacement(
        ["cpu", "memory"],
        np.array([[node["cpu_milli"], node["memory_mib"]] for node in nodes]),
        [1] * len(pods),
        np.array([[pod["cpu_milli"], pod["memory_mib"]] for pod in pods]),
        weights=shares,
        devices=[node["devices"] for node in nodes],
        share=shares,
        kinds=[node["model"] for node in nodes],
        allowed=[
            sorted(models.intersection(pod["gpu_spec"].split("|"))) if pod["gpu_spec"] else None
            for pod in pods
        ],
    )


def devices_for(node: Record, pod: Record) -> list[int] | None:
    """Return the devices of a node that a pod takes, the tightest ones; None if it does not fit."""
    if pod["gpu_spec"] and node["model"] not in pod["gpu_spec"].split("|"):
        return None
    if node["cpu_milli"] < pod["cpu_milli"] or node["memory_mib"] < pod["memory_mib"]:
        return None
    share, free = pod["share"], node["devices"]
    fitting = [device for device, left in enumerate(free) if left >= min(share, WHOLE)]
    if share < WHOLE:
        return [min(fitting, key=free.__getitem__)] if fitting else None
    return fitting[: share // WHOLE] if len(fitting) >= share // WHOLE else None


def take(node: Record, pod: Record, devices: list[int], times: int = 1) -> None:
    """Take what a pod needs off a node, or give it back, -1 times."""
    node["cpu_milli"] -= times * pod["cpu_milli"]
    node["memory_mib"] -= times * pod["memory_mib"]
    for device in devices:
        node["devices"][device] -= times * min(pod["share"], WHOLE)


def busy(
    traces: Path, seed: int, number: int, load: float, leaving: float, most: int | None
) -> NodePlacement:
    """Return the problem of a queue of pods on nodes that are partly busy."""
    listed, pods = openb(traces, "gpuspec33")
    rng = random.Random(seed)
    nodes = emptied(listed[listed.gpu > 0].sample(number, random_state=seed))
    devices = WHOLE * sum(node["gpu"] for node in nodes)
    draws = max(5_000, 20 * number)
    drawn = pods[pods.num_gpu > 0].sample(draws, random_state=seed, replace=True)
    arriving = iter(drawn.to_dict("records"))
    placed, used = [], 0
    for pod in islice(arriving, draws - QUEUED):
        rng.shuffle(nodes)
        fitting = ((node, chosen) for node in nodes if (chosen := devices_for(node, pod)))
        for node, chosen in islice(fitting, 1):
            take(node, pod, chosen)
            placed.append((node, pod, chosen))
            used += pod["share"]
        if used >= load * devices:
            break
    rng.shuffle(placed)
    for node, pod, chosen in placed[: int(leaving * len(placed))]:
        take(node, pod, chosen, -1)
    free = sum(sum(node["devices"]) for node in nodes)
    queue: list[Record] = []
    for pod in islice(arriving, most):
        if sum(waiting["share"] for waiting in queue) >= free:
            break
        queue.append(pod)
    return problem_of(nodes, queue)


def queued(seed: int, jobs: int = 100, nodes: int = 1_500) -> NodePlacement:
    """Return the problem of a queue of jobs of cores, memory and GPUs, all counted."""
    rng = random.Random(seed)
    free = []
    for node in range(nodes):
        cores, memory, gpus = 64, 512 if node % 3 == 0 else 256, 4 if node % 5 == 0 else 0
        left = 1 - rng.choice((0, 0, 0.25, 0.5, 0.75, 1))
        free.append([int(left * amount) for amount in (cores, memory, gpus)])
    chunks, demand, weights = [], [], []
    for _ in range(jobs):
        chunks.append(rng.choice((1, 1, 2, 4, 8, 8, 16, 32, 64)))
        gpus = rng.choice((0, 0, 0, 0, 0, 1, 2))
        cores = rng.choice((4, 8, 16, 32, 48, 64))
        demand.append([cores, rng.choice((2, 4, 4, 8)) * cores, gpus])
        weights.append(rng.randint(1, 1000) * chunks[-1] * (cores + 20 * gpus))
    return NodePlacement(["cores", "memory", "gpu"], free, chunks, demand, weights=weights)


def gangs(seed: int, jobs: int = 100, nodes: int = 1_500) -> NodePlacement:
    """Return the problem of a queue of jobs of one chunk per node, for 1 to 1.5 times the cores."""
    rng = random.Random(seed)
    chunks, demand, weights = [], [], []
    for _ in range(jobs):
        chunks.append(rng.randint(1, 64))
        gpus = rng.choice((1, 2, 4)) if rng.random() < 0.15 else 0
        demand.append([rng.randint(1, 64), rng.randint(1, 256), gpus])
        weights.append(rng.randint(1, 100_000))
    free = [[64, 256 * (1 + (n % 3 == 0)), 4 * (n % 5 == 0)] for n in range(nodes)]
    asked = sum(size * cores for size, (cores, _, _) in zip(chunks, demand))
    left, load = 64 * nodes, (1, 1.25, 1.5)[seed % 3]
    for node in rng.sample(range(nodes), nodes):
        if load * left <= asked:
            break
        share = rng.random()
        free[node] = [int(share * amount) for amount in free[node]]
        left -= 64 - free[node][0]
    return NodePlacement(
        ["cores", "memory", "gpu"],
        free,
        chunks,
        demand,
        weights=weights,
        most_per_node=[1] * jobs,
    )


def cases(traces: Path, families: list[str], nodes: list[int], seeds: int) -> Iterator[Case]:
    """Yield the cases of some families."""
    every = range(1, seeds + 1)
    if "busy" in families:
        for number in nodes:
            for seed in every:
                problem = busy(traces, seed, number, *BUSY[number])
                yield Case("busy", str(seed), problem)
    if "all" in families:
        for name in ("gpuspec33", "default"):
            cluster, pods = openb(traces, name)
            yield Case("all", name, problem_of(emptied(cluster), pods.to_dict("records")))
    if "queue" in families:
        for seed in every:
            yield Case("queue", str(seed), queued(seed))
    if "gangs" in families:
        for seed in every:
            yield Case("gangs", str(seed), gangs(seed))


def answer_to(problem: NodePlacement, solver: str, seconds: float, **options: Any) -> Result:
    """Return the answer of a solver within a time limit."""
    chosen, _ = find_solver(solver, problem.name, options)
    return optsched.solve(problem, chosen, budget=Budget(seconds=seconds))


def measured(
    case: Case, seconds: float, generic: float | None, leaves: bool, times: Times
) -> dict[str, Any]:
    """Return the row of a case, and add the times of the rules and of a proof."""
    problem = case.problem
    cell = f"{case.family}, {len(problem.free)} nodes, {case.parameters}"

    def answer(solver: str, limit: float = seconds, **options: Any) -> Result:
        return answer_to(problem, solver, limit, **options)

    def thousands(weight: float | None) -> str:
        return "-" if weight is None else f"{weight / 1000:.2f}"

    row: dict[str, Any] = {
        "family": case.family,
        "case": case.parameters,
        "nodes": len(problem.free),
        "jobs": len(problem.chunks),
    }
    by_rule = {rule: answer(rule) for rule in RULES}
    times.add_all({f"{cell}, {rule}": result.seconds for rule, result in by_rule.items()})
    row |= {rule: thousands(result.objective) for rule, result in by_rule.items()}
    row["largest"] = thousands(max(answer(rule, order="largest").objective or 0 for rule in RULES))
    exact = answer(EXACT)
    if exact.status is Status.OPTIMAL:
        times.add(cell, exact.seconds)
    found = {"": exact}
    if generic is not None:
        found["cp-sat "] = answer(GENERIC, generic)
    for name, result in found.items():
        row |= {
            f"{name}value": thousands(result.objective),
            f"{name}bound": thousands(result.bound),
            f"{name}gap": "-" if result.gap is None else f"{100 * result.gap:.4f}",
        }
    if leaves:
        asked = asking_least_fragmentation(problem)
        least = answer_to(asked, EXACT, seconds)
        answers = {"FGD leaves": by_rule["least-fragmentation"], "leaves": exact}
        for name, result in (answers | {"leaves least": least}).items():
            row[name] = f"{fragmentation(problem, result.solution):.2f}"
        bound = least_of(asked, least)
        row |= {
            "least": "-" if bound is None else f"{bound:.2f}",
            "weight": thousands(asked.measures(least.solution)["weight"]),
        }
    return row | {"status": exact.status.value, "seconds": round(exact.seconds, 2)}


def table(rows: list[dict[str, Any]]) -> list[str]:
    """Return the measurements as lines for people."""
    widths = {name: max(len(name), *(len(str(row[name])) for row in rows)) + 2 for name in rows[0]}
    heads = "".join(f"{name:>{width}}" for name, width in widths.items())
    return [heads] + [
        "".join(f"{row[name]:>{width}}" for name, width in widths.items()) for row in rows
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--traces", type=Path, default=Path("../shared/traces"), metavar="DIR")
    parser.add_argument("--seeds", type=int, default=3, help="of each kind of case")
    parser.add_argument("--families", default="busy,all,queue,gangs", help="families of cases")
    parser.add_argument("--nodes", default="40,150,600,1213", help="of the family busy")
    parser.add_argument("--seconds", type=float, default=5.0, help="time limit of a solve")
    parser.add_argument("--cp-sat", type=float, metavar="SECONDS", help="time limit of CP-SAT")
    parser.add_argument("--fragmentation", action="store_true", help="measure it; busy alone")
    parser.add_argument("-o", "--output", type=Path, required=True, help="folder for the results")
    options = parser.parse_args()
    measured_on = circumstances()
    families, nodes = options.families.split(","), [int(n) for n in options.nodes.split(",")]
    if options.fragmentation:
        families = ["busy"]
    problems = list(cases(options.traces, families, nodes, options.seeds))
    ColumnGeneration().prepare()
    times = Times()
    rows = [
        measured(case, options.seconds, options.cp_sat, options.fragmentation, times)
        for case in shown(problems, len(problems))
    ]
    keep(options.output, "node-placement", measured_on, table(rows), rows, times)


if __name__ == "__main__":
    main()
