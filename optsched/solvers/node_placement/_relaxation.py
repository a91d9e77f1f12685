"""Column generation: the linear relaxation over contents of nodes, and a bound at any time.

For any prices of chunks and licences from 0, no placement is worth more than

    what supply and licences cost  +  the best content of each node  +  what jobs are worth beyond

which is the Lagrangian bound. The contents that it finds are the new columns of the master.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from optsched.solvers.highs import run_highs
from optsched.solvers.node_placement._depth_first import contents_found, entries_of
from optsched.solvers.node_placement._device_filling import filling_for
from optsched.solvers.node_placement._effort import Effort
from optsched.solvers.node_placement._master import Contents, Floats, Master, Prices
from optsched.solvers.node_placement._pricing import price_kinds, priced_for, scratch_for
from optsched.solvers.node_placement._types import Content, Instance, Ints

FIRST_STEPS = 30
"""Steps along the slope of the bound before the first master."""

FEW_KINDS = 100
"""Number of kinds below which several contents of each become columns, and are worth more time."""

SEVERAL = 8

QUICK_SEARCH = 300
SEARCH = 2_000
LONGEST_SEARCH = 2_000_000
"""Limits of the search for the best content, in the first steps, then, and finally."""

SECONDS_PER_STEP = 2e-7
"""Nominal seconds of a step of pricing."""

BETTER = 1e-6
"""Least reduced profit of a new column, relative to the highest price."""


class Pricing:
    """The best contents of all kinds of nodes at given prices.

    Attributes
    ----------
    values, bounds : float arrays, shape (kinds,)
        Value of the content found for each kind, and a bound of the best.
    counts : int64 array, shape (kinds, types)
        Chunks in that content.
    """

    def __init__(self, instance: Instance, effort: Effort) -> None:
        self._instance, self._effort = instance, effort
        kinds = len(instance.nodes)
        self._scratch = scratch_for(instance)
        self._filling = filling_for(instance, entries_of(instance))
        self.contents_each = SEVERAL if kinds < FEW_KINDS else 1
        self._priced = priced_for(instance, self.contents_each)
        self._own = np.flatnonzero(instance.exclusive)
        fits = instance.kinds.fits[:, self._own]
        self._filled = -(-fits // instance.fill[self._own])  # by one exclusive job
        self._owner = np.full(kinds, -1)

    def price(self, prices: Floats, todo: Ints, most: Ints, tolerance: float, limit: int) -> None:
        """Find contents of at most `most` chunks of each type, for the kinds `todo`.

        A content may be worth less than the best by `tolerance`, or by more where the search is cut
        off after `limit` steps.
        """
        instance, priced = self._instance, self._priced
        shared = np.where(instance.exclusive, 0.0, prices)
        steps = price_kinds(
            instance.types,
            instance.kinds,
            todo,
            shared,
            most,
            tolerance,
            limit,
            len(instance.nodes) < FEW_KINDS or limit > SEARCH,
            self._scratch,
            self._filling,
            priced,
        )
        self._effort.work += SECONDS_PER_STEP * steps
        self.values, self.bounds, self.counts = priced.value, priced.bound, priced.counts
        self._owner[todo] = -1
        if len(self._own):
            worth = np.where(most[self._own] > 0, prices[self._own], 0.0) * self._filled[todo]
            best = worth.argmax(axis=1)
            worth = worth.max(axis=1)
            better = worth > self.values[todo]
            self._owner[todo[better]] = self._own[best[better]]
            self.values[todo] = np.maximum(self.values[todo], worth)
            self.bounds[todo] = np.maximum(self.bounds[todo], worth)
            for kind in todo[better].tolist():
                self.counts[kind] = instance.alone(kind, int(self._owner[kind])).counts

    def contents(self, kind: int) -> Iterator[Content]:
        """Yield the contents found for a kind, the best first."""
        instance = self._instance
        if self._owner[kind] >= 0:
            yield instance.alone(kind, int(self._owner[kind]))
        for _, content in contents_found(instance, self._priced.found, kind, kind):
            yield content


class Relaxation:
    """The relaxation for some nodes, beside chunks that are there already.

    Parameters
    ----------
    instance : Instance
        Types, classes and kinds.
    contents : Contents
        Known contents, which new ones join.
    pricing : Pricing
        What finds new ones.
    effort : Effort
        Limits of the search.
    nodes : int64 array, shape (kinds,)
        Nodes of each kind.
    supply : int64 array, shape (types,)
        Chunks of each type that other nodes hold.

    Attributes
    ----------
    bound : float
        Upper bound of the weight.
    prices : Prices
        Those that prove it.
    master : Master
        The linear program over the columns so far.
    rows : list of (Prices, float)
        Prices, and an upper bound of what chunks and licences that there is room for are worth.
    """

    def __init__(
        self,
        instance: Instance,
        contents: Contents,
        pricing: Pricing,
        effort: Effort,
        nodes: Ints,
        supply: Ints,
    ) -> None:
        self.instance, self.contents = instance, contents
        self._pricing, self.effort = pricing, effort
        self.nodes, self.supply = nodes, supply
        self.master = Master(instance, contents, effort)
        self.master.restrict(nodes, supply)
        self._in_master: set[int] = set()
        self._new: list[int] = []
        self.rows: list[tuple[Prices, float]] = []
        self.bound = math.inf
        classes = instance.classes
        self.least, self.most = np.zeros_like(classes.jobs), classes.jobs
        self.prices = Prices(
            np.zeros(len(instance.types.most)), np.zeros(classes.licences.shape[1])
        )

    def add(self, content: Content | int) -> bool:
        """Add a column, by its content or the number of it; return whether it is new."""
        number = content if isinstance(content, int) else self.contents.add(content)
        if number in self._in_master:
            return False
        self._in_master.add(number)
        self._new.append(number)
        return True

    def solve(self) -> bool:
        """Solve the master with all columns; return whether it was solved."""
        self.master.add(self._new)
        self._new = []
        return self.master.solve()

    @property
    def demand(self) -> Ints:
        """The chunks of each type that all jobs have."""
        classes = self.instance.classes
        demand = np.zeros(len(self.instance.types.most), dtype=np.int64)
        np.add.at(demand, classes.type_of, classes.chunks * self.most)
        return demand

    def limit_jobs(self, least: Ints, most: Ints) -> None:
        """Set the least and the most jobs of each class; no bound is known then."""
        self.least, self.most = least, most
        self.master.limit_jobs(least, most)
        self.bound = math.inf

    def start_at(self, prices: Prices) -> None:
        """Start from prices that are near the best ones, in place of those of pooled resources."""
        todo, bound = self.price(prices, self.nodes, self.supply, 0.0, QUICK_SEARCH)
        self._note(bound, prices)
        self.add_priced(todo, prices, np.zeros(len(self.nodes)))

    def price(
        self, prices: Prices, nodes: Ints, supply: Ints, tolerance: float, limit: int
    ) -> tuple[Ints, float]:
        """Price kinds with nodes left; return these kinds, and the bound."""
        instance = self.instance
        todo = np.flatnonzero(nodes)
        most = np.minimum(instance.types.most, np.maximum(0, self.demand - supply))
        if supply is self.supply:
            most = instance.types.most
        self._pricing.price(prices.chunks, todo, most, tolerance, limit)
        room = float(nodes[todo] @ self._pricing.bounds[todo])
        room += float(prices.chunks @ supply + prices.licences @ instance.problem.licences)
        if supply is self.supply:
            self.rows.append((prices, room))
        gains = self._gains(prices)
        return todo, room + float(gains @ self._wanted(gains))

    def _gains(self, prices: Prices) -> Floats:
        """Return what a job of each class is worth beyond the prices."""
        classes = self.instance.classes
        cost = classes.chunks * prices.chunks[classes.type_of]
        return np.asarray(classes.weights - cost - classes.licences @ prices.licences)

    def _wanted(self, gains: Floats) -> Ints:
        """Return the jobs of each class that are worth most at these gains."""
        return np.where(gains > 0, self.most, self.least)

    def _note(self, bound: float, prices: Prices) -> bool:
        if bound >= self.bound:
            return False
        self.bound, self.prices = bound, prices
        return True

    def add_priced(self, todo: Ints, prices: Prices, nodes_worth: Floats) -> int:
        """Add the contents of the last pricing that improve the master; return their number."""
        new = 0
        least = BETTER * float(prices.chunks.max(initial=0.0))
        several = len(todo) < FEW_KINDS
        for kind in todo.tolist():
            for content in self._pricing.contents(kind):
                if float(content.counts @ prices.chunks) - nodes_worth[kind] > least:
                    new += self.add(content)
                if not several:
                    break
        return new

    def tighten(self, gap: float, until: float, enough: float = -math.inf) -> None:
        """Generate columns until the bound is within `gap` of the master's optimum, relatively.

        Stops at the optimum, at a bound that is low enough, or at a share `until` of the budget.
        """
        if math.isinf(self.bound):
            self._descend(until)
        tolerance_of_gap = gap / 2 / max(1, int(self.nodes.sum()))
        limit, exact, share = SEARCH, False, 0.5
        while self.bound > enough and self.solve():
            master = self.master
            if self.bound - master.value <= gap * max(1.0, master.value):
                break
            if self.effort.spent() >= until:
                break
            tolerance = 0.0 if exact else tolerance_of_gap * max(1.0, master.value)
            step, new = share, 0
            while True:
                prices = self.prices.towards(master.prices, 1 - step)
                todo, bound = self.price(prices, self.nodes, self.supply, tolerance, limit)
                self._note(bound, prices)
                new = self.add_priced(todo, master.prices, master.nodes_worth)
                if new or step <= 0 or self.effort.spent() >= 1:
                    break
                step = step / 2 if step > 0.25 else 0.0
            if new:
                continue
            if exact and limit >= LONGEST_SEARCH:
                break
            pricing = self._pricing
            cut_off = pricing.bounds[todo] - pricing.values[todo] > tolerance + 1e-6
            if exact or cut_off.any():
                limit = min(10 * limit, LONGEST_SEARCH)
            elif tolerance == 0:
                break
            exact, share = True, 0.0
            longest = SECONDS_PER_STEP * limit * int(cut_off.sum())
            if longest > min(self.effort.work_left(until), self.effort.seconds_left(until)):
                break

    def _descend(self, until: float) -> None:
        """Follow the slope of the bound from the prices of pooled resources."""
        instance, nodes = self.instance, self.nodes
        classes = instance.classes
        prices = self._pooled_prices()
        highest = np.zeros(len(instance.types.most))
        np.maximum.at(highest, classes.type_of, classes.weights / classes.chunks)
        factor, since = 0.05, 0
        for step in range(FIRST_STEPS):
            tolerance = 0.01 * float(prices.chunks.max(initial=0.0))
            todo, bound = self.price(prices, nodes, self.supply, tolerance, QUICK_SEARCH)
            at = prices
            if self._note(bound, prices):
                since = 0
            else:
                since += 1
                if since >= 3:
                    factor, since, at = factor / 2, 0, self.prices
            counts = self._pricing.counts[todo]
            if step >= FIRST_STEPS // 4 or bound < 1.1 * self.bound:
                for kind in todo[counts.any(axis=1)].tolist():
                    self.add(next(self._pricing.contents(kind)))
            wanted = self._wanted(self._gains(prices))
            slope = Prices(
                (self.supply + nodes[todo] @ counts).astype(float),
                (instance.problem.licences - wanted @ classes.licences).astype(float),
            )
            np.subtract.at(slope.chunks, classes.type_of, wanted * classes.chunks)
            square = sum(float(part @ part) for part in slope)
            if square == 0 or self.effort.spent() >= until:
                break
            length = factor * bound / square
            prices = Prices(
                np.clip(at.chunks - length * slope.chunks, 0.0, highest),
                np.maximum(0.0, at.licences - length * slope.licences),
            )

    def _pooled_prices(self) -> Prices:
        """Return the prices if all nodes of a label are one.

        This is a small linear program; without a solution, the prices are 0.
        """
        instance = self.instance
        types, kinds, classes = instance.types, instance.kinds, instance.classes
        on_devices = types.devices * types.share
        need = np.column_stack((types.need, on_devices)).astype(float)
        units = kinds.whole * instance.units + kinds.parts.sum(axis=1)
        free = np.column_stack((kinds.free, units)) * self.nodes[:, None]
        pools = np.unique(instance.pool_of[self.nodes > 0])
        resources, number = need.shape[1], len(types.most)
        pairs, rooms = [], []
        for place, pool in enumerate(pools):
            there = (instance.pool_of == pool) & (self.nodes > 0)
            rooms.append(free[there].sum(axis=0))
            fitting = np.flatnonzero(kinds.fits[there].any(axis=0))
            pairs += [(place, one) for one in fitting.tolist()]
        of_pool, of_type = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
        columns = len(classes.jobs) + len(pairs)
        rows = number + resources * len(pools) + classes.licences.shape[1]
        table = np.zeros((rows, columns))
        jobs = np.arange(len(classes.jobs))
        table[classes.type_of, jobs] = classes.chunks
        pair = len(jobs) + np.arange(len(pairs))
        table[of_type, pair] = -1.0
        for resource in range(resources):
            table[number + of_pool * resources + resource, pair] = need[of_type, resource]
        table[rows - classes.licences.shape[1] :, : len(jobs)] = classes.licences.T
        upper = np.concatenate((self.supply, *rooms, instance.problem.licences))
        gain = np.concatenate((classes.weights, np.zeros(len(pairs))))
        most = np.concatenate((classes.jobs.astype(float), np.full(len(pairs), math.inf)))
        duals = _row_prices(gain.astype(float), most, table, upper.astype(float))
        if duals is None:
            return self.prices
        return Prices(duals[:number], duals[rows - classes.licences.shape[1] :])


def _row_prices(gain: Floats, most: Floats, table: Floats, upper: Floats) -> Floats | None:
    """Return the dual price of each row where a gain is maximized; None without a solution."""
    import highspy

    program = highspy.HighsLp()
    program.num_row_, program.num_col_ = table.shape
    program.sense_ = highspy.ObjSense.kMaximize
    program.col_cost_, program.col_lower_, program.col_upper_ = gain, np.zeros(len(gain)), most
    program.row_lower_, program.row_upper_ = np.full(len(upper), -math.inf), upper
    row, column = np.nonzero(table)
    matrix = program.a_matrix_
    matrix.format_ = highspy.MatrixFormat.kRowwise
    matrix.start_ = np.searchsorted(row, np.arange(len(table) + 1)).astype(np.int32)
    matrix.index_, matrix.value_ = column.astype(np.int32), table[row, column]
    highs = highspy.Highs()
    highs.silent()
    highs.setOptionValue("threads", 1)
    highs.passModel(program)
    run_highs(highs)
    if highs.getModelStatus() != highspy.HighsModelStatus.kOptimal:
        return None
    duals: Floats = np.maximum(0.0, np.array(highs.getSolution().row_dual))
    return duals
