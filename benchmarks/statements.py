"""Three decisions as their authors would state them: optsched, CP-SAT, CPMpy and Rebalancer.

    python benchmarks/statements.py [--also PYTHON] -o benchmarks/results

Protocol: a power cap over 200 jobs, a window of 50 jobs for 12 slots, and 60 jobs for 20 nodes of
three resources with a limit of three jobs a user, all random from one seed. Each tool gets the same
numbers. "lines" counts the lines that state the decision, without imports, and after a plus those
that all statements of the tool share. "state" is the time to the model, "solve" that of the solver
with one thread and at most 10 s; both are the median of five. All requirements are checked here,
and objectives are recomputed. Rebalancer searches locally, from no job placed, by single moves and
swaps.
Tools that are not installed are left out; `--also` names an interpreter that has others.
"""

import argparse
import ast
import inspect
import json
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

Numbers = list[int]

SECONDS = 10.0
REPEATS = 5


def optsched_power(nodes: Numbers, watts: Numbers, cap: int) -> Iterator[Any]:
    import optsched
    from optsched.extend import Integer, Integers

    @optsched.model("power-cap")
    def power_cap(state, nodes: Integers(1), watts: Integers(like="nodes"), cap: Integer()):
        start = state.binary("start", len(nodes))
        state.maximize(nodes @ start)
        state.require("power", watts @ start <= cap)

    problem = power_cap(nodes=nodes, watts=watts, cap=cap)
    problem.formulate()
    yield
    yield optsched.solve(problem, "cp-sat", time_limit=SECONDS).solution["start"]


def optsched_window(weights: Numbers, slots: Numbers) -> Iterator[Any]:
    import optsched
    from optsched.extend import Integers

    @optsched.model("window")
    def window(state, weights: Integers(1), slots: Integers()):
        x = state.binary("x", len(weights), len(slots))
        state.maximize((weights @ x).sum())
        state.require("capacity", weights @ x <= slots)
        state.require("once", x.sum(axis=1) <= 1)

    problem = window(weights=weights, slots=slots)
    problem.formulate()
    yield
    yield optsched.solve(problem, "cp-sat", time_limit=SECONDS).solution["x"]


def optsched_vector(
    free: list[Numbers], weights: Numbers, demand: list[Numbers], user: Numbers, most: int
) -> Iterator[Any]:
    import optsched
    from optsched.extend import Amounts, Integer, Integers, Texts

    @optsched.model("vector")
    def vector(
        state,
        resources: Texts(),
        free: Amounts("resources"),
        weights: Integers(1),
        demand: Amounts("resources", like="weights"),
        user: Integers(like="weights"),
        most: Integer(),
    ):
        on = state.binary("on", len(weights), len(free))
        state.maximize(weights @ on.sum(axis=1))
        state.require("once", on.sum(axis=1) <= 1)
        state.require("resource", on.T @ demand <= free)
        state.require("user", on.sum(axis=1).sum_by(user) <= most)

    given = {"free": free, "weights": weights, "demand": demand, "user": user, "most": most}
    problem = vector(resources=["cores", "memory", "gpus"], **given)
    problem.formulate()
    yield
    yield optsched.solve(problem, "cp-sat", time_limit=SECONDS).solution["on"]


def cp_sat_power(nodes: Numbers, watts: Numbers, cap: int) -> Iterator[Any]:
    from ortools.sat.python import cp_model

    model = cp_model.CpModel()
    start = [model.new_bool_var(f"start{job}") for job in range(len(nodes))]
    model.add(cp_model.LinearExpr.weighted_sum(start, watts) <= cap)
    model.maximize(cp_model.LinearExpr.weighted_sum(start, nodes))
    yield
    solver = cp_model.CpSolver()
    solver.parameters.max_time_in_seconds, solver.parameters.num_workers = SECONDS, 1
    solver.solve(model)
    yield [solver.value(one) for one in start]


def cp_sat_window(weights: Numbers, slots: Numbers) -> Iterator[Any]:
    from ortools.sat.python import cp_model

    model = cp_model.CpModel()
    x = [[model.new_bool_var(f"x{j}_{s}") for s in range(len(slots))] for j in range(len(weights))]
    for row in x:
        model.add_at_most_one(row)
    for slot, column in zip(slots, zip(*x)):
        model.add(cp_model.LinearExpr.weighted_sum(column, weights) <= slot)
    model.maximize(sum(weight * one for weight, row in zip(weights, x) for one in row))
    yield
    solver = cp_model.CpSolver()
    solver.parameters.max_time_in_seconds, solver.parameters.num_workers = SECONDS, 1
    solver.solve(model)
    yield [[solver.value(one) for one in row] for row in x]


def cp_sat_vector(
    free: list[Numbers], weights: Numbers, demand: list[Numbers], user: Numbers, most: int
) -> Iterator[Any]:
    from ortools.sat.python import cp_model

    model = cp_model.CpModel()
    on = [[model.new_bool_var(f"on{j}_{n}") for n in range(len(free))] for j in range(len(weights))]
    for row in on:
        model.add_at_most_one(row)
    for node, column in zip(free, zip(*on)):
        for amount, needs in zip(node, zip(*demand)):
            model.add(cp_model.LinearExpr.weighted_sum(column, needs) <= amount)
    for one in set(user):
        model.add(sum(sum(row) for row, owner in zip(on, user) if owner == one) <= most)
    model.maximize(sum(weight * sum(row) for weight, row in zip(weights, on)))
    yield
    solver = cp_model.CpSolver()
    solver.parameters.max_time_in_seconds, solver.parameters.num_workers = SECONDS, 1
    solver.solve(model)
    yield [[solver.value(one) for one in row] for row in on]


def cpmpy_power(nodes: Numbers, watts: Numbers, cap: int) -> Iterator[Any]:
    import cpmpy
    import numpy as np

    start = cpmpy.boolvar(len(nodes))
    model = cpmpy.Model([cpmpy.sum(np.array(watts) * start) <= cap])
    model.maximize(cpmpy.sum(np.array(nodes) * start))
    yield
    model.solve(solver="ortools", time_limit=SECONDS, num_workers=1)
    yield start.value().tolist()


def cpmpy_window(weights: Numbers, slots: Numbers) -> Iterator[Any]:
    import cpmpy
    import numpy as np

    x, sizes = cpmpy.boolvar((len(weights), len(slots))), np.array(weights)
    model = cpmpy.Model([cpmpy.sum(row) <= 1 for row in x])
    for slot, size in enumerate(slots):
        model += cpmpy.sum(sizes * x[:, slot]) <= size
    model.maximize(cpmpy.sum(sizes[:, None] * x))
    yield
    model.solve(solver="ortools", time_limit=SECONDS, num_workers=1)
    yield x.value().tolist()


def cpmpy_vector(
    free: list[Numbers], weights: Numbers, demand: list[Numbers], user: Numbers, most: int
) -> Iterator[Any]:
    import cpmpy
    import numpy as np

    on, needs, owner = cpmpy.boolvar((len(weights), len(free))), np.array(demand), np.array(user)
    model = cpmpy.Model([cpmpy.sum(row) <= 1 for row in on])
    for node, amounts in enumerate(free):
        for resource, amount in enumerate(amounts):
            model += cpmpy.sum(needs[:, resource] * on[:, node]) <= amount
    for one in set(user):
        model += cpmpy.sum(on[owner == one]) <= most
    model.maximize(cpmpy.sum(np.array(weights)[:, None] * on))
    yield
    model.solve(solver="ortools", time_limit=SECONDS, num_workers=1)
    yield on.value().tolist()


def rebalancer_power(nodes: Numbers, watts: Numbers, cap: int) -> Iterator[Any]:
    jobs = [f"job{job}" for job in range(len(nodes))]
    solver = _rebalancer(["running"], jobs)
    solver.add_object_dimension("nodes", dict(zip(jobs, map(float, nodes))))
    solver.add_object_dimension("watts", dict(zip(jobs, map(float, watts))))
    solver.add_container_dimension("watts", {"running": float(cap), "waiting": 1e9})
    _capacity(solver, "watts")
    _most(solver, "nodes", ["running"])
    yield
    place = solver.solve()["assignment"]
    yield [place[job] == "running" for job in jobs]


def rebalancer_window(weights: Numbers, slots: Numbers) -> Iterator[Any]:
    jobs = [f"job{job}" for job in range(len(weights))]
    names = [f"slot{slot}" for slot in range(len(slots))]
    solver = _rebalancer(names, jobs)
    solver.add_object_dimension("nodes", dict(zip(jobs, map(float, weights))))
    solver.add_container_dimension("nodes", dict(zip(names, map(float, slots))) | {"waiting": 1e9})
    _capacity(solver, "nodes")
    _most(solver, "nodes", names)
    yield
    place = solver.solve()["assignment"]
    yield [[place[job] == name for name in names] for job in jobs]


def rebalancer_vector(
    free: list[Numbers], weights: Numbers, demand: list[Numbers], user: Numbers, most: int
) -> Iterator[Any]:
    jobs = [f"job{job}" for job in range(len(weights))]
    names = [f"node{node}" for node in range(len(free))]
    solver = _rebalancer(names, jobs)
    solver.add_object_dimension("weight", dict(zip(jobs, map(float, weights))))
    for kind, needs, amounts in zip(("cores", "memory", "gpus"), zip(*demand), zip(*free)):
        solver.add_object_dimension(kind, dict(zip(jobs, map(float, needs))))
        room = dict(zip(names, map(float, amounts))) | {"waiting": 1e9}
        solver.add_container_dimension(kind, room)
        _capacity(solver, kind)
    solver.add_scope("state", dict.fromkeys(names, "placed") | {"waiting": "not placed"})
    users = {f"user{one}": [j for j, own in zip(jobs, user) if own == one] for one in set(user)}
    solver.add_partition("user", users)
    limit = {"type": 1, "globalLimit": float(most)}  # absolute
    of_user = {"name": "user", "scope": "state", "partitionName": "user", "limit": limit}
    of_user["filter"] = {"itemsWhitelist": ["placed"]}
    solver.add_constraint({"groupCountSpec": of_user})
    _most(solver, "weight", names)
    yield
    place = solver.solve()["assignment"]
    yield [[place[job] == name for name in names] for job in jobs]


def _rebalancer(places: list[str], jobs: list[str]) -> Any:
    from rebalancer import ProblemSolver

    solver = ProblemSolver("statements", "benchmarks")
    solver.set_object_name("job")
    solver.set_container_name("place")
    solver.set_assignment({place: [] for place in places} | {"waiting": jobs})
    moves = [{"singleMoveTypeSpec": {}}, {"swapMoveTypeSpec": {}}]
    spec = {"moveTypeList": moves, "solveTime": int(SECONDS)}
    solver.add_solver({"localSearchSolverSpec": spec})
    return solver


def _capacity(solver: Any, dimension: str) -> None:
    spec = {"name": f"capacity-{dimension}", "scope": "place", "dimension": dimension}
    solver.add_constraint({"capacitySpec": spec})


def _most(solver: Any, dimension: str, places: list[str]) -> None:
    spec = {"name": "most", "scope": "place", "dimension": dimension}
    spec["filter"] = {"itemsWhitelist": places}
    solver.add_goal({"maximizeAllocationSpec": spec}, 1.0)


TOOLS = {
    "optsched": "optsched",
    "cp_sat": "ortools",
    "cpmpy": "cpmpy",
    "rebalancer": "rebalancer",
}
"""The tools, and the package of each."""

HELPERS = {"rebalancer": (_rebalancer, _capacity, _most)}
"""What all statements of a tool share."""


def instances() -> dict[str, dict[str, Any]]:
    """Return the numbers of each decision."""
    rng = random.Random(1)
    jobs = [rng.randint(1, 64) for _ in range(200)]
    demand = [[rng.randint(1, 16), rng.randint(2, 60), rng.choice((0, 0, 1, 2))] for _ in range(60)]
    return {
        "power": {
            "nodes": jobs,
            "watts": [n * rng.randint(180, 420) for n in jobs],
            "cap": 300_000,
        },
        "window": {
            "weights": [rng.randint(5, 60) for _ in range(50)],
            "slots": [rng.randint(20, 90) for _ in range(12)],
        },
        "vector": {
            "free": [[rng.randint(8, 24), rng.randint(32, 96), rng.randint(0, 4)]
                     for _ in range(20)],
            "weights": [rng.randint(1, 9) for _ in range(60)],
            "demand": demand,
            "user": [rng.randint(0, 7) for _ in range(60)],
            "most": 3,
        },
    }  # fmt: skip


def objective(decision: str, given: dict[str, Any], answer: Any) -> int:
    """Return the objective of an answer, after a check of all requirements."""
    if decision == "power":
        assert sum(w for w, there in zip(given["watts"], answer) if there) <= given["cap"]
        return sum(n for n, there in zip(given["nodes"], answer) if there)
    weights, placed = given["weights"], [sum(map(int, row)) for row in answer]
    assert max(placed) <= 1
    rooms = [[one] for one in given["slots"]] if decision == "window" else given["free"]
    needs = [[one] for one in weights] if decision == "window" else given["demand"]
    for place, room in enumerate(rooms):
        for kind, amount in enumerate(room):
            assert sum(needs[j][kind] for j, row in enumerate(answer) if row[place]) <= amount
    if decision == "vector":
        users = [one for one, there in zip(given["user"], placed) if there]
        assert max(map(users.count, users), default=0) <= given["most"]
    return sum(weight * there for weight, there in zip(weights, placed))


def lines_of(function: Callable[..., Any]) -> int:
    """Return the lines of the body of a function, up to its first ``yield`` if it has any."""
    text = inspect.getsource(function)
    [tree] = ast.parse(text).body
    assert isinstance(tree, ast.FunctionDef)
    lines = text.splitlines()[tree.body[0].lineno - 1 :]
    lines = lines[: lines.index("    yield")] if "    yield" in lines else lines
    words = [line.split() for line in lines]
    return sum(bool(line) and line[0] not in ("import", "from") for line in words)


def measured() -> list[dict[str, Any]]:
    """Return a row for each decision and each tool of this interpreter."""
    rows = []
    for decision, given in instances().items():
        for tool, package in TOOLS.items():
            try:
                __import__(package)
            except ImportError:
                continue
            function, times, value = globals()[f"{tool}_{decision}"], [], 0
            for _ in range(1 + REPEATS):  # the first one imports
                steps, began = function(**given), time.perf_counter()
                next(steps)
                stated = time.perf_counter()
                answer = next(steps)
                times.append((stated - began, time.perf_counter() - stated))
                value = objective(decision, given, answer)
            state, solve = (statistics.median(column) for column in zip(*times[1:]))
            about = {"decision": decision, "tool": tool, "lines": lines_of(function)}
            rows.append(about | {"objective": value, "state": state, "solve": solve})
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--also", action="append", default=[], help="another interpreter")
    parser.add_argument("--rows", action="store_true", help="print the rows as JSON")
    parser.add_argument("-o", "--output", type=Path, default=Path("benchmarks/results"))
    options = parser.parse_args()
    if options.rows:
        json.dump(measured(), sys.stdout)
        return
    from results import Times, circumstances, keep

    measured_on, times, rows = circumstances(), Times(), measured()
    for other in options.also:
        command = [other, __file__, "--rows"]
        done = subprocess.run(command, env={}, capture_output=True, check=True)
        rows += json.loads(done.stdout.splitlines()[-1])
    rows.sort(key=lambda row: (row["decision"], [*TOOLS].index(row["tool"])))

    times.add_all(
        {f"{row['decision']}, {row['tool']}": row["state"] + row["solve"] for row in rows}
    )
    form = "{:9} {:11} {:>9} {:>10} {:>11} {:>11}"
    heads = ("decision", "tool", "lines", "objective", "state, ms", "solve, ms")
    table = [form.format(*heads)]
    for row in rows:
        shared = sum(map(lines_of, HELPERS.get(row["tool"], ())))
        lines = f"{row['lines']} + {shared}" if shared else row["lines"]
        spent = [f"{1e3 * row[step]:.1f}" for step in ("state", "solve")]
        name = row["tool"].replace("_", "-")
        table.append(form.format(row["decision"], name, lines, row["objective"], *spent))
    keep(options.output, "statements", measured_on, table, rows, times)


if __name__ == "__main__":
    main()
