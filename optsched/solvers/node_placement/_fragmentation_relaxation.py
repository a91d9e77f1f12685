"""Column generation for the least fragmentation among placements of some weight.

The contents of nodes are the columns, each with the fragmentation that it leaves. For any prices of
chunks, and prices of weight and licences from 0, no placement of that weight leaves less than

    what weight earns  -  what supply and licences cost
        +  the least that jobs cost beyond what their weight earns
        +  the least that a content of each node leaves beyond what its chunks earn

which is the Lagrangian bound.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from optsched.models.node_placement.fields import WHOLE
from optsched.solvers.highs import run_highs
from optsched.solvers.node_placement._effort import Effort
from optsched.solvers.node_placement._master import (
    ITERATIONS_PER_RUN,
    MOST_NODES,
    PRIMAL,
    SECONDS_PER_ENTRY,
    SECONDS_PER_NODE,
    SECONDS_PER_RUN,
)
from optsched.solvers.node_placement._spots import Column, Nodes, Pricing
from optsched.solvers.node_placement._types import Ints

Floats = NDArray[np.float64]

SEARCH, LONGEST_SEARCH = 2_000, 200_000
"""Limits of the search for the best content, at first and finally."""

TOLERANCE = 1e-7
"""Worth, in devices, by which a content may be better than the one found."""

SECONDS_PER_ITERATION = 1e-4
"""Nominal seconds of an iteration of simplex in an integer program, with all beside it."""

GAP = 1e-6
"""Relative gap at which the bound is near enough."""


class Prices(NamedTuple):
    """Prices of a chunk of each type, of a unit of weight and of each licence, in devices."""

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


class Relaxation:
    """The linear program over contents of some nodes, beside chunks that are there already.

    minimize    fragmentation of contents
    subject to  chunks in contents, and those that are there  =  chunks of jobs, of each type
                contents of a spot                            =  its nodes
                weight of jobs                               >=  a given one
                licences of jobs                             <=  free ones

    Parameters
    ----------
    nodes : Nodes
        All nodes.
    pricing : Pricing
        What finds new contents.
    effort : Effort
        Limits of the search.
    number : int64 array, shape (spots,)
        Nodes of each spot.
    supply : int64 array, shape (types,)
        Chunks of each type that other nodes hold.
    weight : int
        Weight that jobs have at least.

    Attributes
    ----------
    bound : float
        Lower bound of the fragmentation of the nodes.
    prices : Prices
        Those that prove it.
    magnitude : float
        Sum of the absolute parts of the bound, of which its rounding error is a tiny share.
    columns : list of Column
        All columns so far.
    solved : bool
        Whether the program has been solved; the following are those of the last solution.
    value : float
        Optimum.
    duals : Prices
        Dual prices.
    taken : float array, shape (columns,)
        Nodes with each column.
    """

    def __init__(
        self,
        nodes: Nodes,
        pricing: Pricing,
        effort: Effort,
        number: Ints,
        supply: Ints,
        weight: int,
    ) -> None:
        import highspy

        self._nodes, self._pricing, self._effort = nodes, pricing, effort
        self._number, self._weight = number, weight
        self._todo = np.flatnonzero(number)
        self.bound, self.columns = -math.inf, list[Column]()
        self.solved = False
        self._known: dict[tuple[int, bytes], int] = {}
        classes, licences = nodes.instance.classes, nodes.instance.problem.licences
        self._heaviest = float(classes.weights.max(initial=1))
        self._types, self._spots = len(supply), len(number)
        self._highs = highs = highspy.Highs()
        highs.silent()
        for option, value in (("threads", 1), ("mip_rel_gap", 0.0)):
            highs.setOptionValue(option, value)
        self._supply = supply
        unlimited = np.full(len(licences), -math.inf)
        lower = np.concatenate((-supply, number, [weight / self._heaviest], unlimited))
        upper = np.concatenate((-supply, number, [math.inf], licences))
        nothing = np.empty(0)
        starts = np.zeros(len(upper), dtype=np.int32)
        highs.addRows(len(upper), lower, upper, 0, starts, nothing.astype(np.int32), nothing)
        rows, values = [], []
        first = self._types + self._spots
        heavy = classes.weights / self._heaviest
        for one, chunks, part, needed in zip(
            classes.type_of, classes.chunks, heavy, classes.licences
        ):
            used = np.flatnonzero(needed)
            rows.append(np.concatenate(([one, first], first + 1 + used)))
            values.append(np.concatenate(([-chunks, part], needed[used])))
        self._add(np.zeros(len(rows)), classes.jobs, rows, values)

    def _add(self, costs: Any, upper: Any, rows: Sequence[Ints], values: Sequence[Any]) -> None:
        if not rows:
            return
        starts = np.cumsum([0, *map(len, rows)])
        self._highs.addCols(
            len(rows), np.asarray(costs, dtype=float), np.zeros(len(rows)),
            np.asarray(upper, dtype=float), int(starts[-1]), starts[:-1].astype(np.int32),
            np.concatenate(rows).astype(np.int32), np.concatenate(values).astype(float),
        )  # fmt: skip

    def add(self, columns: Iterable[Column]) -> int:
        """Add columns that are new, and return their number."""
        new: list[Column] = []
        for column in columns:
            number = len(self.columns) + len(new)
            if self._known.setdefault(_key(column), number) == number:
                new.append(column)
        rows, values = [], []
        for spot, content, _ in new:
            used = np.flatnonzero(content.counts)
            rows.append(np.append(used, self._types + spot))
            values.append(np.append(content.counts[used], 1))
        self._add([column.cost for column in new], np.full(len(new), math.inf), rows, values)
        self.columns += new
        return len(new)

    def solve(self) -> bool:
        """Solve the program; return whether it was solved within the time limit."""
        import highspy

        highs = self._highs
        seconds = highs.getRunTime() + max(1e-3, self._effort.seconds_left())
        highs.setOptionValue("time_limit", seconds)
        highs.setOptionValue("simplex_strategy", PRIMAL)
        run_highs(highs)
        info = highs.getInfo()
        size = highs.getNumRow() + highs.getNumCol()
        iterations = ITERATIONS_PER_RUN + max(0, info.simplex_iteration_count)
        self._effort.work += SECONDS_PER_RUN + SECONDS_PER_ENTRY * size * iterations
        if highs.getModelStatus() != highspy.HighsModelStatus.kOptimal:
            return False
        self.solved, self.value = True, highs.getObjectiveValue()
        solution = highs.getSolution()
        duals = np.array(solution.row_dual)
        self.taken = np.array(solution.col_value)[len(self._nodes.instance.jobs_of) :]
        first = self._types + self._spots
        self.duals = Prices(
            duals[: self._types],
            max(0.0, duals[first]) / self._heaviest,
            np.minimum(0.0, duals[first + 1 :]),
        )
        self._of_spot = duals[self._types : first]
        return True

    def price(self, prices: Prices, limit: int) -> None:
        """Price all spots, and raise the bound if it is a better one."""
        problem, classes = self._nodes.instance.problem, self._nodes.instance.classes
        worth = self._pricing.price(prices.chunks, self._todo, TOLERANCE, limit)
        cost = classes.chunks * prices.chunks[classes.type_of] - prices.weight * classes.weights
        cost = cost - classes.licences @ prices.licences
        parts = (
            float(np.minimum(0.0, cost) @ classes.jobs),
            -float(self._number[self._todo] @ worth),
            prices.weight * self._weight,
            -float(prices.chunks @ self._supply),
            float(prices.licences @ problem.licences),
        )
        if sum(parts) > self.bound:
            self.bound, self.prices = sum(parts), prices
            self.magnitude = sum(map(abs, parts))

    def start_even(self, cost: float) -> None:
        """Start from equal prices of all devices that chunks take, at a known cost."""
        instance = self._nodes.instance
        free = float(self._number @ self._nodes.spots.device.sum(axis=1)) / WHOLE
        taken = instance.types.devices * instance.types.share / instance.units
        nothing = np.zeros(len(instance.problem.licences))
        self.start_at(Prices(-cost / max(free, 1.0) * taken, 0.0, nothing))

    def start_at(self, prices: Prices) -> None:
        """Start from some prices, and the contents that are worth most at them."""
        self.price(prices, SEARCH)
        self.add(next(self._pricing.columns(spot)) for spot in self._todo.tolist())

    def tighten(self, until: float, rounds: float = math.inf) -> None:
        """Generate columns until the bound is near the optimum, or at a share of the budget.

        The relaxation has been started.
        """
        limit, smoothing = SEARCH, 0.5
        while rounds > 0 and self.solve():
            rounds -= 1
            if self.value - self.bound <= GAP * abs(self.value) or self._effort.spent() >= until:
                break
            step = smoothing
            while True:
                self.price(self.prices.towards(self.duals, 1 - step), limit)
                found = (c for spot in self._todo.tolist() for c in self._pricing.columns(spot))
                new = self.add(column for column in found if self.loss(column) < -TOLERANCE)
                if new or not step or self._effort.spent() >= until:
                    break
                step = step / 2 if step > 0.25 else 0.0
            if not new:
                if limit >= LONGEST_SEARCH:
                    break
                limit, smoothing = 10 * limit, 0.0

    def loss(self, column: Column) -> float:
        """Return what a column costs beyond the best ones, by the duals."""
        earned = float(column.content.counts @ self.duals.chunks)
        return column.cost - earned - float(self._of_spot[column.spot])

    def solve_integer(
        self, until: float, start: tuple[Ints, Iterable[Column]] | None = None
    ) -> tuple[Ints, list[Column], bool] | None:
        """Return the best integer solution found, and whether it is the best of all; or None.

        A solution is the jobs of each class, and a column for each node. The search ends at a
        number of nodes, or at a share of the budget.

        Parameters
        ----------
        until : float
            Share of the budget.
        start : (jobs, columns), optional
            A solution to start from.
        """
        import highspy

        highs, effort = self._highs, self._effort
        every = np.arange(highs.getNumCol(), dtype=np.int32)
        first = len(every) - len(self.columns)
        integer = np.full(len(every), int(highspy.HighsVarType.kInteger), dtype=np.uint8)
        highs.changeColsIntegrality(len(every), every, integer)
        highs.setOptionValue("time_limit", max(1e-3, effort.seconds_left(until)))
        price = SECONDS_PER_NODE * (highs.getNumRow() + highs.getNumCol())
        most = int(min(MOST_NODES, max(0.0, effort.work_left(until)) / price))
        highs.setOptionValue("mip_max_nodes", most)
        if start is not None:
            values = np.zeros(len(every))
            values[:first] = start[0]
            for column in start[1]:
                values[first + self._known[_key(column)]] += 1
            solution = highspy.HighsSolution()
            solution.col_value = values.tolist()
            highs.setSolution(solution)
        run_highs(highs)
        info = highs.getInfo()
        effort.work += price * (1 + max(0, info.mip_node_count))
        effort.work += SECONDS_PER_ITERATION * max(0, info.simplex_iteration_count)
        found = None
        if info.primal_solution_status == int(highspy.SolutionStatus.kSolutionStatusFeasible):
            values = np.rint(highs.getSolution().col_value)
            jobs, times = np.split(values.astype(np.int64), [first])
            chosen = np.repeat(np.arange(len(times)), times).tolist()
            optimal = highs.getModelStatus() == highspy.HighsModelStatus.kOptimal
            found = jobs, [self.columns[column] for column in chosen], optimal
        integer[:] = int(highspy.HighsVarType.kContinuous)
        highs.changeColsIntegrality(len(every), every, integer)
        return found


def _key(column: Column) -> tuple[int, bytes]:
    return column.spot, column.content.counts.tobytes()
