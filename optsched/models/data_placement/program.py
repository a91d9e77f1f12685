"""The integer program of a data placement, and its vectors.

The variables and their order are those of `optsched.models.data_placement.layout`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from optsched.models.data_placement.layout import Layout
from optsched.models.data_placement.left import entry_stays, fill_left, state_left, stays
from optsched.models.data_placement.plan import LEFT_OUT, Plan
from optsched.models.program import Program
from optsched.models.statement import Statement

if TYPE_CHECKING:
    from optsched.models.data_placement.problem import DataPlacement

Ints = NDArray[np.int64]


def formulate(problem: DataPlacement) -> Program:
    """Return the program of the model's page."""
    at = Layout(problem)
    state = Statement()
    _state_places(problem, at, state)
    _state_order(problem, at, state)
    _state_sharing(problem, at, state)
    _state_found(problem, at, state)
    _state_loads(problem, at, state)
    if at.until_next:
        state_left(problem, at, state)
    objective = np.zeros(len(at), dtype=np.int64)
    for job, priority in enumerate(problem.priorities.tolist()):
        objective[at["s", job]] = priority
        objective[at["l", job]] = priority * problem.load_weight
    return Program(
        sense="min",
        objective=objective,
        lower=np.array(at.lower, dtype=np.int64),
        upper=np.array(at.upper, dtype=np.int64),
        **state.rows(),
        variable_name=at.names.__getitem__,
        row_name=state.names.__getitem__,
    )


def _state_places(problem: DataPlacement, at: Layout, state: Statement) -> None:
    free = problem.available.ravel().tolist()
    until = None if problem.reserved is None else problem.reserved.ravel().tolist()
    horizon, latest = problem.horizon, at.latest
    for job, (size, walltime) in enumerate(
        zip(problem.processors.tolist(), problem.walltimes.tolist())
    ):
        s, on = at["s", job], [at["x", job, node] for node in range(at.nodes)]
        state.add(f"once_{job + 1}", dict.fromkeys(on, 1), 1, 0 if problem.partial else 1)
        if problem.partial:
            state.add(f"left_{job + 1}", dict.fromkeys(on, horizon) | {s: 1}, lower=horizon)
            ends = dict.fromkeys(on, horizon - latest) | {s: 1}
            state.add(f"left_not_after_{job + 1}", ends, horizon)
        for node in range(at.nodes):
            cores = range(node * at.cores, (node + 1) * at.cores)
            held = {at["h", job, core]: 1 for core in cores}
            state.add(f"cores_{job + 1}_{node + 1}", held | {on[node]: -size}, 0, 0)
        for core in range(at.all_cores):
            h, name = at["h", job, core], f"{job + 1}_{core + 1}"
            terms = {s: 1, h: -free[core]}
            if until is not None and ("before", job, core) in at:
                before = at["before", job, core]
                state.add(f"hole_{name}", {before: 1, h: -1}, 0)
                slack = latest + walltime - until[core]
                state.add(f"ends_{name}", {s: 1, before: max(slack, 0)}, latest)
                terms[before] = free[core]
            if free[core] > 0:
                state.add(f"free_{name}", terms, lower=0)


def _state_order(problem: DataPlacement, at: Layout, state: Statement) -> None:
    walltimes = problem.walltimes.tolist()
    for one in range(at.jobs):
        for other in range(at.jobs):
            if one == other:
                continue
            order, pair = at["o", one, other], f"{one + 1}_{other + 1}"
            terms = {at["s", other]: 1, at["s", one]: -1, order: -(at.latest + walltimes[one])}
            state.add(f"order_{pair}", terms, lower=-at.latest)
            if one < other:
                either = {order: -1, at["o", other, one]: -1}
                for core in range(at.all_cores):
                    terms = {at["h", one, core]: 1, at["h", other, core]: 1}
                    state.add(f"apart_{pair}_{core + 1}", terms | either, 1)


def _state_sharing(problem: DataPlacement, at: Layout, state: Statement) -> None:
    walltimes, latest = problem.walltimes.tolist(), at.latest
    for one, other in at.pairs:
        apart, pair = at["apart", one, other], f"{one + 1}_{other + 1}"
        both = dict.fromkeys((*at.ways(one, other), *at.ways(other, one)), 1)
        cases = both | {at["gone", one, other]: 1, at["gone", other, one]: 1, apart: 1}
        state.add(f"case_{pair}", cases, 1, 1)
        for node in range(at.nodes):
            here, there = at["x", one, node], at["x", other, node]
            state.add(f"together_{pair}_{node + 1}", both | {here: 1, there: -1}, 1)
            state.add(f"on_one_{pair}_{node + 1}", {here: 1, there: 1, apart: 1}, 2)
        if problem.partial:
            on = {at["x", one, node]: -1 for node in range(at.nodes)}
            state.add(f"there_{pair}", both | on, 0)
        for i, j in ((one, other), (other, one)):
            tie = 0 if i < j else 1
            (q, *left), gone, name = at.ways(i, j), at["gone", i, j], f"{i + 1}_{j + 1}"
            after = {at["s", j]: 1, at["s", i]: -1}
            state.add(f"begins_{name}", after | {q: -(latest + tie)}, lower=-latest)
            state.add(f"stays_{name}", after | {q: latest - walltimes[i]}, latest)
            late = dict.fromkeys((gone, *left), -(latest + walltimes[i] + 1))
            state.add(f"gone_{name}", after | late, lower=-latest)


def _state_found(problem: DataPlacement, at: Layout, state: Statement) -> None:
    node, _, _, loaded, until = problem.resident.T.tolist()
    for entry, job in at.finds:
        ways, late = at.entry_ways(entry, job), at["late", entry, job]
        found, *left = ways
        on, s, name = at["x", job, node[entry]], at["s", job], f"{entry + 1}_{job + 1}"
        last = min(until[entry], at.latest)
        state.add(f"finds_{name}", dict.fromkeys(ways, 1) | {on: -1}, 0)
        state.add(f"finds_or_late_{name}", dict.fromkeys((*ways, late), 1) | {on: -1}, lower=0)
        state.add(f"stays_file_{name}", {s: 1, found: at.latest - last}, at.latest)
        after = dict.fromkeys((late, *left), -(last + 1))
        state.add(f"late_{name}", {s: 1} | after, lower=0)
        most, load = at.latest + int(problem.loads[job]), at["l", job]
        wait = {load: 1, s: 1} | dict.fromkeys(ways, -loaded[entry])
        state.add(f"wait_file_{name}", wait, lower=0)
        wait |= dict.fromkeys(ways, most - loaded[entry]) | {at["z", job]: -most}
        state.add(f"no_more_file_{name}", wait, most)


def _state_loads(problem: DataPlacement, at: Layout, state: Statement) -> None:
    finders: dict[int, list[int]] = {job: [] for job in at.sharing}
    for entry, job in at.finds:
        finders[job] += at.entry_ways(entry, job)
    for one, other in at.pairs:
        for i, j in ((one, other), (other, one)):
            ways, name = at.ways(i, j), f"{i + 1}_{j + 1}"
            finders[j] += ways
            wait = {at["l", j]: 1, at["s", j]: 1, at["l", i]: -1, at["s", i]: -1}
            most = at.latest + int(problem.loads[j])
            state.add(f"wait_{name}", wait | dict.fromkeys(ways, -most), lower=-most)
            more = dict.fromkeys(ways, most) | {at["z", j]: -most}
            state.add(f"no_more_{name}", wait | more, most)
    for job, found in finders.items():
        load, y, z, seconds = at["l", job], at["y", job], at["z", job], int(problem.loads[job])
        state.add(f"finds_{job + 1}", dict.fromkeys(found, 1) | {y: 1}, lower=1)
        for way in found:
            state.add(f"loads_not_{at.names[way]}_{job + 1}", {way: 1, y: 1}, 1)
        state.add(f"loads_{job + 1}", {load: 1, y: -seconds}, lower=0)
        state.add(f"complete_{job + 1}", {load: 1, z: seconds}, seconds)


def plan_of(problem: DataPlacement, x: Ints) -> Plan:
    """Return the plan of a vector; of several nodes the first counts."""
    x = np.asarray(x)
    nodes, cores = problem.available.shape
    jobs, all_cores = len(problem.processors), nodes * cores
    held = x[: jobs * all_cores].reshape(jobs, nodes, cores) != 0
    after = jobs * all_cores
    on = x[after : after + jobs * nodes].reshape(jobs, nodes) != 0
    after += jobs * nodes
    node = np.where(on.any(axis=1), on.argmax(axis=1), LEFT_OUT)
    placed = node != LEFT_OUT
    start = np.where(placed, x[after : after + jobs], 0)
    masks = (held[np.arange(jobs), node] << np.arange(cores)).sum(axis=1)
    return Plan(node, start, np.where(placed, masks, 0))


def vector(problem: DataPlacement, plan: Plan) -> Ints:
    """Return the vector of a plan; the inverse of `plan_of`."""
    at = Layout(problem)
    x = np.zeros(len(at), dtype=np.int64)
    node, mask = plan.node.tolist(), plan.cores.tolist()
    start = np.where(plan.node == LEFT_OUT, problem.horizon, plan.start).tolist()
    end = (np.array(start, dtype=np.int64) + problem.walltimes).tolist()
    times = problem.load_times(plan).tolist()
    for job in range(at.jobs):
        x[at["s", job]], x[at["l", job]] = start[job], times[job]
        if node[job] == LEFT_OUT:
            continue
        x[at["x", job, node[job]]] = 1
        for core in range(at.cores):
            if mask[job] >> core & 1:
                number = node[job] * at.cores + core
                x[at["h", job, number]] = 1
                if start[job] < problem.available[node[job], core]:
                    x[at["before", job, number]] = 1
    for one in range(at.jobs):
        for other in range(at.jobs):
            if one != other and end[one] <= start[other]:
                x[at["o", one, other]] = 1
    if at.until_next:
        fill_left(problem, at, plan, x)
    ways = dict.fromkeys(at.sharing, 0)
    for one, other in at.pairs:
        if node[one] != node[other] or node[one] == LEFT_OUT:
            x[at["apart", one, other]] = 1
            continue
        i, j = (one, other) if start[one] <= start[other] else (other, one)
        case = "q" if start[j] <= end[i] else "next" if stays(at, x, i, j) else "gone"
        x[at[case, i, j]] = 1
        ways[j] += case != "gone"
    for entry, job in at.finds:
        if node[job] == problem.resident[entry, 0]:
            soon = start[job] <= problem.resident[entry, 4]
            case = "found" if soon else "still" if entry_stays(at, x, entry, job) else "late"
            x[at[case, entry, job]] = 1
            ways[job] += case != "late"
    for job in at.sharing:
        x[at["y", job]] = ways[job] == 0
        x[at["z", job]] = times[job] == 0
    return x
