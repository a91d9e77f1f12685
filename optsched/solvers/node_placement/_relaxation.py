"""Column generation by HiGHS: the relaxation over contents of nodes, and a bound at any time.

The contents of nodes are the columns. At prices of chunks, weight and licences, no placement of at
least some weight gains more than

    what licences cost  -  what that weight earns
        +  the best content of each node, less the fragmentation it leaves
        +  what jobs are worth beyond the prices

which is the Lagrangian bound. Where the weight is the objective, its price is 1, nothing is left
unusable, and other prices are from 0. The contents that a pricing finds are new columns.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from optsched.arrays import Floats, Ints
from optsched.models.export import highs_model
from optsched.models.program import Program
from optsched.solvers.anytime import Progress
from optsched.solvers.generic import LARGEST_INT, LONGEST_TIME
from optsched.solvers.highs import rounded_solution, run_highs
from optsched.solvers.node_placement._contents import Losses, no_losses
from optsched.solvers.node_placement._pricing import (
    LONGEST_SEARCH,
    QUICK_SEARCH,
    SEARCH,
    SECONDS_PER_STEP,
    Pricing,
)
from optsched.solvers.node_placement._types import Classes, Content, Instance
from optsched.solvers.result import Limit

PRIMAL, DUAL = 4, 1
"""Strategies of simplex: dual after new limits of rows, by default primal after new columns."""


def scale_of(weights: Ints) -> float:
    """Return the power of two by which weights are scaled in a program, to 20 bits at most."""
    return 2.0 ** -max(0, int(weights.max(initial=1)).bit_length() - 20)


class Master:
    """A program of most gain, whose columns are from 0 to a limit; its users count the work."""

    value: float  # gain of the last solution
    bound: float  # upper bound of the gain in integers
    solution: Floats  # of the linear program, by columns
    duals: Floats  # of its rows
    iterations: int  # of the simplex method
    nodes: int  # of branch and bound

    def __init__(
        self, progress: Progress, lower: Any, upper: Any, strategy: int = PRIMAL, **options: Any
    ) -> None:
        import highspy

        self._progress, self._strategy = progress, strategy
        self._limited = True
        self._highs = highs = highspy.Highs()
        highs.silent()
        for option, value in {"threads": 1, "mip_rel_gap": 0.0, **options}.items():
            highs.setOptionValue(option, value)
        highs.changeObjectiveSense(highspy.ObjSense.kMaximize)
        starts, nothing = np.zeros(len(upper), dtype=np.int32), np.empty(0)
        limits = (np.asarray(limit, dtype=float) for limit in (lower, upper))
        highs.addRows(len(upper), *limits, 0, starts, nothing.astype(np.int32), nothing)

    @property
    def rows(self) -> int:
        return int(self._highs.getNumRow())

    @property
    def columns(self) -> int:
        return int(self._highs.getNumCol())

    def add(self, gains: Any, most: Any, rows: Sequence[Ints], values: Sequence[Any]) -> None:
        """Add columns by their gains, limits, and the rows and values of their entries."""
        if not rows:
            return
        starts = np.cumsum([0, *map(len, rows)])
        self._highs.addCols(
            len(rows),
            np.asarray(gains, dtype=float),
            np.zeros(len(rows)),
            np.asarray(most, dtype=float),
            int(starts[-1]),
            starts[:-1].astype(np.int32),
            np.concatenate(rows).astype(np.int32),
            np.concatenate(values).astype(float),
        )

    def add_row(self, row: Floats, upper: float) -> None:
        """Add a row by its entry in each column, and its upper limit."""
        used = np.flatnonzero(row).astype(np.int32)
        self._highs.addRow(-math.inf, upper, len(used), used, row[used])

    def limit_rows(self, upper: Any) -> None:
        """Set the upper limits of the first rows, which have no lower ones then."""
        rows, lower = np.arange(len(upper), dtype=np.int32), np.full(len(upper), -math.inf)
        self._highs.changeRowsBounds(len(rows), rows, lower, np.asarray(upper, dtype=float))
        self._limited = True

    def limit_columns(self, most: Any) -> None:
        """Set the limits of the first columns."""
        columns = np.arange(len(most), dtype=np.int32)
        upper = np.asarray(most, dtype=float)
        self._highs.changeColsBounds(len(columns), columns, np.zeros(len(columns)), upper)
        self._limited = True

    def solve(self) -> bool:
        """Solve the linear program; return whether it was solved within the time limit."""
        import highspy

        highs = self._highs
        # of linear programs, HiGHS adds up the seconds of all runs
        seconds = highs.getRunTime() + max(1e-3, self._progress.seconds_left())
        highs.setOptionValue("time_limit", seconds)
        highs.setOptionValue("simplex_strategy", DUAL if self._limited else self._strategy)
        self._limited = False
        run_highs(highs)
        self.iterations = max(0, highs.getInfo().simplex_iteration_count)
        if highs.getModelStatus() != highspy.HighsModelStatus.kOptimal:
            return False
        self.value, solution = highs.getObjectiveValue(), highs.getSolution()
        self.solution, self.duals = np.array(solution.col_value), np.array(solution.row_dual)
        return True

    def solve_integer(
        self, until: float, nodes: float, start: Ints | None = None, looks: float = math.inf
    ) -> Ints | None:
        """Return the best integer solution found within limits, or None."""
        import highspy

        highs = self._highs
        every = np.arange(self.columns, dtype=np.int32)
        integer = np.full(len(every), int(highspy.HighsVarType.kInteger), dtype=np.uint8)
        highs.changeColsIntegrality(len(every), every, integer)
        highs.setOptionValue("time_limit", max(1e-3, self._progress.seconds_left(until)))
        highs.setOptionValue("mip_max_nodes", int(nodes))
        if start is not None:
            given = highspy.HighsSolution()
            given.col_value = start.astype(float).tolist()
            highs.setSolution(given)
        run_highs(highs, most_looks=looks)
        info = highs.getInfo()
        self.iterations = max(0, info.simplex_iteration_count)
        self.nodes = max(0, info.mip_node_count)
        self.bound = info.mip_dual_bound
        found = rounded_solution(highs)
        integer[:] = int(highspy.HighsVarType.kContinuous)
        highs.changeColsIntegrality(len(every), every, integer)
        return found


def best_vector(
    program: Program, progress: Progress, seed: int
) -> tuple[Ints | None, Limit | None]:
    """Return a vector of least objective, None for none, and the limit that ended the search."""
    import highspy

    progress.work += 0.1 * program.num_variables  # what columns take before the search
    progress.check()
    highs = highs_model(program)
    options: dict[str, Any] = {
        "threads": 1,
        "random_seed": seed % LARGEST_INT,
        # of many columns and few rows, presolve takes longer than the search
        "presolve": "off",
        "mip_rel_gap": 0.0,
        "mip_abs_gap": 0.99,
        "mip_max_nodes": int(min(1 + progress.work_left(), LARGEST_INT)),
        "time_limit": min(progress.seconds_left(), LONGEST_TIME),
    }
    for name, value in options.items():
        highs.setOptionValue(name, value)
    run_highs(highs)
    info = highs.getInfo()
    progress.work += max(0, info.simplex_iteration_count) + max(0, info.mip_node_count)
    ended = highspy.HighsModelStatus
    limits = {
        ended.kTimeLimit: Limit.TIME,
        ended.kSolutionLimit: Limit.WORK,
        ended.kInterrupt: Limit.INTERRUPT,
    }
    status = highs.getModelStatus()
    if status not in (ended.kOptimal, ended.kInfeasible, *limits):
        raise ArithmeticError(f"HiGHS: {highs.modelStatusToString(status)}")
    x = rounded_solution(highs)
    if x is not None and not program.admits(x):
        raise ArithmeticError("HiGHS: the rounded solution is not feasible")
    return x, limits.get(status)


FIRST_STEPS = 30
"""Steps along the slope of the bound before the first master."""

BETTER = 1e-6
"""Least gain of a new column, relative to the highest price."""

SMOOTHING = 0.5
"""Share of the way from the prices of the master to the best ones where pricing begins."""

SECONDS_PER_ENTRY = 8e-9
"""Nominal seconds of a simplex iteration for each row and column."""

SECONDS_PER_RUN = 1e-4
ITERATIONS_PER_RUN = 40
"""Nominal seconds of a run without iterations, and iterations that take as long as the rest."""

SECONDS_PER_NODE = 3e-5
"""Nominal seconds of a node of branch and bound for each row and column."""

LOOKS_PER_NODE = 3
"""Looks at the limits of branch and bound that take as long as a node, at the root, too."""

SECONDS_PER_ITERATION = 1e-4
"""Nominal seconds of an iteration of simplex in an integer program, with all beside it."""

MOST_NODES = 50
"""Nodes of branch and bound in an integer program."""


class Prices(NamedTuple):
    """Prices of a chunk of each type, of a unit of weight, and of each licence."""

    chunks: Floats
    weight: float
    licences: Floats

    def towards(self, other: Prices, share: float) -> Prices:
        """Return the prices that are a share of the way from these to others."""
        keep = 1 - share
        return Prices(
            keep * self.chunks + share * other.chunks,
            keep * self.weight + share * other.weight,
            keep * self.licences + share * other.licences,
        )

    def paid(self, classes: Classes) -> Floats:
        """Return what a job of each class pays for chunks and licences."""
        paid: Floats = classes.chunks * self.chunks[classes.type_of]
        return paid + classes.licences @ self.licences

    def gains(self, classes: Classes) -> Floats:
        """Return what a job of each class is worth beyond the prices."""
        return self.weight * classes.weights - self.paid(classes)


class Relaxation:
    """The linear program over contents of nodes.

    maximize    sum of weights of jobs  -  sum of fragmentation of contents
    subject to  chunks of jobs of a type  <=  those in contents
                contents of a kind        <=  its nodes
                licences of jobs          <=  free ones

    With losses, the weight is not maximized but at least a given one, and the first two kinds of
    rows are equations, since each node has to be counted as it is left.
    """

    bound: float  # upper bound of the objective
    prices: Prices  # those that prove it
    magnitude: float  # sum of its absolute parts, of which the rounding error is a tiny share
    rows: list[tuple[Prices, float]]  # prices, and a bound of what room is worth at these
    contents: list[Content]  # the columns
    value: float  # optimum over these
    duals: Prices  # and its dual prices
    nodes_worth: Floats  # dual price of a node of each kind
    taken: Floats  # nodes with each content

    nodes: Ints  # empty nodes of each kind
    supply: Ints  # chunks of each type on the others

    def __init__(
        self,
        instance: Instance,
        progress: Progress,
        losses: Losses | None = None,
        least: int = 0,
        pricing: Pricing | None = None,
        held: Mapping[int, Content] = MappingProxyType({}),
    ) -> None:
        self.instance, self.progress, self._held = instance, progress, held
        self.pricing = pricing or Pricing(instance, losses or no_losses(), progress)
        self.contents, self.rows = [], []
        self._number: dict[tuple[int, bytes], int] = {}
        self._in_master = 0
        self.bound = self.value = math.inf
        classes, licences = instance.classes, instance.problem.licences
        types, kinds = len(instance.types.most), len(instance.nodes)
        self.most, self._least, self._costed = classes.jobs, least, losses is not None
        self.nodes, self.supply = instance.nodes.copy(), np.zeros(types, dtype=np.int64)
        for content in held.values():
            self.nodes[content.kind] -= 1
            self.supply += content.counts
        nothing = np.zeros(types), float(not self._costed), np.zeros(len(licences))
        self.prices = Prices(*nothing)
        self._first = first = types + kinds  # row of a licence
        self._scale = 1.0 if self._costed else scale_of(classes.weights)
        heaviest = float(classes.weights.max(initial=1))
        self._unit = heaviest if self._costed else 1.0  # of weight in its row
        upper = np.concatenate((self.supply, self.nodes, licences))
        lower = np.full(len(upper), -math.inf)
        if self._costed:
            lower[:first] = upper[:first]
            lower, upper = np.append(lower, least / heaviest), np.append(upper, math.inf)
        self._master = Master(progress, lower, upper)
        rows, values = [], []
        for one, chunks, weight, needed in zip(
            classes.type_of, classes.chunks, classes.weights, classes.licences
        ):
            used = np.flatnonzero(needed)
            row, value = [one, *(first + used)], [chunks, *needed[used]]
            if self._costed:
                row, value = [*row, first + len(licences)], [*value, weight / heaviest]
            rows.append(np.array(row))
            values.append(value)
        gains = np.zeros(len(rows)) if self._costed else classes.weights * self._scale
        self._master.add(gains, classes.jobs, rows, values)

    def beside(self, held: Mapping[int, Content]) -> Relaxation:
        """Return the relaxation for the other nodes, where some keep what they hold."""
        some = Relaxation(self.instance, self.progress, pricing=self.pricing, held=held)
        some.start_at(self.prices)
        return some

    def add(self, content: Content) -> bool:
        """Add a column for a content; return whether it is new."""
        key, number = (content.kind, content.counts.tobytes()), len(self.contents)
        if self._number.setdefault(key, number) != number:
            return False
        self.contents.append(content)
        return True

    def solve(self) -> bool:
        """Solve the program with all columns; return whether it was solved."""
        types, master = len(self.instance.types.most), self._master
        rows, values, costs = [], [], []
        for content in self.contents[self._in_master :]:
            used = np.flatnonzero(content.counts)
            rows.append(np.append(used, types + content.kind))
            values.append(np.append(-content.counts[used], 1))
            costs.append(-content.cost)
        master.add(costs, np.full(len(rows), math.inf), rows, values)
        self._in_master = len(self.contents)
        solved = master.solve()
        iterations = ITERATIONS_PER_RUN + master.iterations
        size = master.rows + master.columns
        self.progress.work += SECONDS_PER_RUN + SECONDS_PER_ENTRY * size * iterations
        if solved:
            duals, last = master.duals / self._scale, self._first + len(self.prices.licences)
            if not self._costed:
                duals = np.maximum(duals, 0.0)
            weight = -float(duals[last]) / self._unit if self._costed else 1.0
            licences = np.maximum(duals[self._first : last], 0.0)
            self.duals = Prices(duals[:types], max(0.0, weight), licences)
            self.nodes_worth = duals[types : self._first]
            self.value = master.value / self._scale
            self.taken = master.solution[len(self.most) :]
        return solved

    def solve_integer(
        self, until: float, jobs: Ints | None = None, held: Iterable[Content] = ()
    ) -> tuple[Ints, Counter[int]] | None:
        """Return the jobs of each class and the nodes by content of a good integer solution."""
        master, progress = self._master, self.progress
        start = None
        if jobs is not None:
            start = np.concatenate((jobs, np.zeros(len(self.contents), dtype=np.int64)))
            for content in held:
                number = self._number[content.kind, content.counts.tobytes()]
                start[len(jobs) + number] += 1
        price = SECONDS_PER_NODE * (master.rows + master.columns)
        left = progress.work_left(until) / price
        looks = LOOKS_PER_NODE * left
        found = master.solve_integer(until, min(MOST_NODES, left), start, looks)
        progress.work += price * (1 + master.nodes) + SECONDS_PER_ITERATION * master.iterations
        if found is None:
            return None
        of_jobs, times = np.split(found, [len(self.most)])
        return of_jobs, Counter({int(one): int(times[one]) for one in np.flatnonzero(times)})

    def spread(self, chosen: Counter[int]) -> dict[int, Content]:
        """Return the content of each node, for the number of nodes with each content."""
        unused = [
            [node for node in nodes if node not in self._held] for nodes in self.instance.nodes_of
        ]
        return {
            unused[self.contents[number].kind].pop(): self.contents[number]
            for number, times in chosen.items()
            for _ in range(times)
        }

    def loss(self, content: Content) -> float:
        """Return what a content is worth below the best ones, by the duals."""
        worth = float(content.counts @ self.duals.chunks) - content.cost
        return float(self.nodes_worth[content.kind]) - worth

    def limit_jobs(self, most: Ints) -> None:
        """Set the most jobs of each class; no bound is known then."""
        self.most = most
        self._master.limit_columns(most)
        self.bound = math.inf

    def restrict(self, nodes: Ints, supply: Ints) -> None:
        """Set the nodes of each kind, and the chunks of each type that are there already."""
        self._master.limit_rows(np.concatenate((supply, nodes)))

    def start_at(self, prices: Prices) -> None:
        """Start from prices that are near the best ones, and the contents found at them."""
        self.price(prices, 0.0, QUICK_SEARCH)
        for kind in range(len(self.instance.nodes)):
            for content in self.pricing.contents(kind):
                self.add(content)

    def price(self, prices: Prices, tolerance: float, limit: int) -> float:
        """Price all kinds; return the bound, and keep it if it is a better one."""
        instance, every = self.instance, np.arange(len(self.instance.nodes))
        self.pricing.price(prices.chunks, every, instance.types.most, tolerance, limit)
        room = float(self.nodes @ self.pricing.bounds + self.supply @ prices.chunks)
        licences = float(prices.licences @ instance.problem.licences)
        self.rows.append((prices, room + licences))
        jobs = float(np.maximum(0.0, prices.gains(instance.classes)) @ self.most)
        parts = room, licences, jobs, -prices.weight * self._least
        if sum(parts) < self.bound:
            self.bound, self.prices = sum(parts), prices
            self.magnitude = sum(map(abs, parts))
        return sum(parts)

    def add_priced(self, kinds: Ints) -> int:
        """Add the contents of the last pricing that improve the program; return their number."""
        least = BETTER * float(np.abs(self.duals.chunks).max(initial=0.0))
        found = (content for kind in kinds.tolist() for content in self.pricing.contents(kind))
        return sum(self.add(content) for content in found if self.loss(content) < -least)

    def tighten(self, gap: float, until: float) -> None:
        """Generate columns until the bound is near the optimum, or at a share of the budget."""
        if math.isinf(self.bound):
            self._descend(until)
        progress, every = self.progress, np.arange(len(self.instance.nodes))
        near = gap / 2 / max(1, int(self.nodes.sum()))
        limit, exact, smoothing = SEARCH, False, SMOOTHING
        while self.solve():
            if self.bound - self.value <= gap * abs(self.value) or progress.spent() >= until:
                break
            tolerance = 0.0 if exact else near * abs(self.value)
            step, new = smoothing, 0
            while True:
                self.price(self.prices.towards(self.duals, 1 - step), tolerance, limit)
                new = self.add_priced(every)
                if new or not step or progress.spent() >= 1:
                    break
                step = step / 2 if step > 0.25 else 0.0
            if new:
                continue
            if exact and limit >= LONGEST_SEARCH:
                break
            gaps = self.pricing.bounds - self.pricing.values
            cut_off = gaps > tolerance + BETTER
            if exact or cut_off.any():
                limit = min(10 * limit, LONGEST_SEARCH)
            elif tolerance == 0:
                break
            exact, smoothing = True, 0.0
            longest = SECONDS_PER_STEP * limit * int(cut_off.sum())
            if longest > min(progress.work_left(until), progress.seconds_left(until)):
                break

    def _descend(self, until: float) -> None:
        """Follow the slope of the bound from the prices of pooled resources."""
        instance, pricing = self.instance, self.pricing
        classes = instance.classes
        prices = self._pooled_prices()
        highest = np.zeros(len(instance.types.most))
        np.maximum.at(highest, classes.type_of, classes.weights / classes.chunks)
        factor, since = 0.05, 0
        for step in range(FIRST_STEPS):
            before = self.bound
            tolerance = 0.01 * float(prices.chunks.max(initial=0.0))
            at, bound = prices, self.price(prices, tolerance, QUICK_SEARCH)
            since = 0 if self.bound < before else since + 1
            if since >= 3:
                factor, since, at = factor / 2, 0, self.prices
            counts = pricing.counts
            if step >= FIRST_STEPS // 4 or bound < 1.1 * self.bound:
                for kind in np.flatnonzero(counts.any(axis=1)).tolist():
                    self.add(next(pricing.contents(kind)))
            wanted = np.where(prices.gains(classes) > 0, self.most, 0)
            chunks = (instance.nodes @ counts).astype(float)
            np.subtract.at(chunks, classes.type_of, wanted * classes.chunks)
            licences = instance.problem.licences - wanted @ classes.licences
            square = float(chunks @ chunks + licences @ licences)
            if square == 0 or self.progress.spent() >= until:
                break
            length = factor * bound / square
            prices = prices._replace(
                chunks=np.clip(at.chunks - length * chunks, 0.0, highest),
                licences=np.maximum(0.0, at.licences - length * licences),
            )

    def _pooled_prices(self) -> Prices:
        """Return the prices if all nodes of a label are one; 0 without a solution."""
        instance = self.instance
        types, kinds, classes = instance.types, instance.kinds, instance.classes
        on_devices = types.devices * types.share
        need = np.column_stack((types.need, on_devices)).astype(float)
        units = kinds.whole * instance.units + kinds.parts.sum(axis=1)
        free = np.column_stack((kinds.free, units)) * instance.nodes[:, None]
        resources, number = need.shape[1], len(types.most)
        columns = [[(one, chunks)] for one, chunks in zip(classes.type_of, classes.chunks)]
        rooms, pools = [], np.unique(instance.pool_of)
        for place, pool in enumerate(pools):
            there, row = instance.pool_of == pool, number + place * resources
            rooms.append(free[there].sum(axis=0))
            for one in np.flatnonzero(kinds.fits[there].any(axis=0)).tolist():
                used = np.flatnonzero(need[one])
                columns.append([(one, -1.0), *zip(row + used, need[one, used])])
        first = number + resources * len(pools)
        for column, licences in zip(columns, classes.licences):
            used = np.flatnonzero(licences)
            column += zip(first + used, licences[used])
        gains, most = np.zeros(len(columns)), np.full(len(columns), math.inf)
        gains[: len(self.most)], most[: len(self.most)] = classes.weights, classes.jobs
        upper = np.concatenate((np.zeros(number), *rooms, instance.problem.licences))
        master = Master(self.progress, np.full(len(upper), -math.inf), upper)
        rows, values = zip(*(map(np.array, zip(*column)) for column in columns))
        master.add(gains, most, rows, values)
        if not master.solve():
            return self.prices
        duals = np.maximum(0.0, master.duals)
        return self.prices._replace(chunks=duals[:number], licences=duals[first:])
