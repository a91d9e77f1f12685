"""The linear program over contents of nodes, solved by HiGHS."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from optsched.solvers.highs import run_highs
from optsched.solvers.node_placement._effort import Effort
from optsched.solvers.node_placement._types import Content, Instance, Ints

Floats = NDArray[np.float64]

SECONDS_PER_ENTRY = 8e-9
"""Nominal seconds of a simplex iteration for each row and column."""

SECONDS_PER_RUN = 1e-4
ITERATIONS_PER_RUN = 40
"""Nominal seconds of a run without iterations, and iterations that take as long as the rest."""

SECONDS_PER_NODE = 3e-5
"""Nominal seconds of a node of branch and bound for each row and column."""

PRIMAL, DUAL = 4, 1
"""Strategies of simplex: primal after new columns, dual after new limits of rows."""

MOST_NODES = 50
"""Nodes of branch and bound in an integer program."""

MISSING = 100
"""Cost of a chunk or licence that is missing, relative to the most that a chunk is worth."""

LARGEST_COST = 20
"""Bits of the largest objective coefficient in the program, which is scaled by a power of two."""


class Prices(NamedTuple):
    """Prices of a chunk of each type, and of each licence."""

    chunks: Floats
    licences: Floats

    def towards(self, other: Prices, share: float) -> Prices:
        """Return the prices that are a share of the way from these to others."""
        return Prices(*((1 - share) * one + share * two for one, two in zip(self, other)))


class Contents:
    """Contents of nodes, each once, with their counts as a table."""

    def __init__(self, types: int) -> None:
        self.all: list[Content] = []
        self._number: dict[tuple[int, bytes], int] = {}
        self._counts = np.zeros((64, types), dtype=np.int64)

    @property
    def counts(self) -> Ints:
        """The chunks of each type in each content."""
        return self._counts[: len(self.all)]

    def add(self, content: Content) -> int:
        """Return the number of a content, which may be new."""
        key = content.kind, content.counts.tobytes()
        number = self._number.setdefault(key, len(self.all))
        if number == len(self.all):
            self.all.append(content)
            if number == len(self._counts):
                self._counts = np.concatenate((self._counts, np.zeros_like(self._counts)))
            self._counts[number] = content.counts
        return number

    def has(self, content: Content) -> bool:
        """Return whether the content is among these."""
        return (content.kind, content.counts.tobytes()) in self._number


class Master:
    """The jobs of each class to place, and the nodes of each kind with each content.

    maximize    sum of weights of jobs
    subject to  chunks of jobs of a type  <=  those in contents, and those that are there already
                contents of a kind        <=  its nodes
                licences of jobs          <=  free ones

    Attributes
    ----------
    value : float
        Optimum of the last solution.
    jobs : float array, shape (classes,)
        Jobs placed.
    taken : float array, shape (columns,)
        Nodes with each content of `columns`.
    prices : Prices
        Dual prices of chunks and licences.
    nodes_worth : float array, shape (kinds,)
        Dual price of a node of each kind.
    """

    def __init__(self, instance: Instance, contents: Contents, effort: Effort) -> None:
        import highspy

        self._instance, self._contents, self._effort = instance, contents, effort
        self.columns: list[int] = []
        self._restricted = False
        classes, problem = instance.classes, instance.problem
        heaviest = int(classes.weights.max(initial=1))
        self._scale = 2.0 ** -max(0, heaviest.bit_length() - LARGEST_COST)
        self._types, self._kinds = len(instance.types.most), len(instance.nodes)
        self._highs = highs = highspy.Highs()
        highs.silent()
        for option, value in (
            ("threads", 1),
            ("mip_rel_gap", 0.0),
        ):
            highs.setOptionValue(option, value)
        highs.changeObjectiveSense(highspy.ObjSense.kMaximize)
        licences = problem.licences.astype(float)
        upper = np.concatenate((np.zeros(self._types), instance.nodes, licences))
        lower, nothing = np.full(len(upper), -math.inf), np.empty(0)
        starts = np.zeros(len(upper), dtype=np.int32)
        highs.addRows(len(upper), lower, upper, 0, starts, nothing.astype(np.int32), nothing)
        rows, values = [], []
        first = self._types + self._kinds
        for one, chunks, needed in zip(classes.type_of, classes.chunks, classes.licences):
            used = np.flatnonzero(needed)
            rows.append(np.concatenate(([one], first + used)))
            values.append(np.concatenate(([chunks], needed[used])))
        self._add(classes.weights * self._scale, classes.jobs, rows, values)
        limited = np.concatenate((np.arange(self._types), first + np.arange(len(licences))))
        dearest = MISSING * float((classes.weights / classes.chunks).max(initial=1))
        self._add(
            np.full(len(limited), -dearest * self._scale),
            np.zeros(len(limited)),
            list(limited[:, None]),
            list(np.full((len(limited), 1), -1)),
        )
        self._first = len(classes.jobs) + len(limited)  # column of a content

    def _add(self, costs: Any, upper: Any, rows: Sequence[Ints], values: Sequence[Ints]) -> None:
        if not rows:
            return
        starts = np.cumsum([0, *map(len, rows)])
        self._highs.addCols(
            len(rows),
            np.asarray(costs, dtype=float),
            np.zeros(len(rows)),
            np.asarray(upper, dtype=float),
            int(starts[-1]),
            starts[:-1].astype(np.int32),
            np.concatenate(rows).astype(np.int32),
            np.concatenate(values).astype(float),
        )

    def add(self, numbers: Sequence[int]) -> None:
        """Add columns for contents, by their numbers."""
        rows, values = [], []
        for number in numbers:
            content = self._contents.all[number]
            used = np.flatnonzero(content.counts)
            rows.append(np.append(used, self._types + content.kind))
            values.append(np.append(-content.counts[used], 1))
        self._add(np.zeros(len(rows)), np.full(len(rows), math.inf), rows, values)
        self.columns += numbers

    def restrict(self, nodes: Ints, supply: Ints) -> None:
        """Set the nodes of each kind, and the chunks of each type that are there already."""
        upper = np.concatenate((supply, nodes)).astype(float)
        rows = np.arange(len(upper), dtype=np.int32)
        self._highs.changeRowsBounds(len(rows), rows, np.full(len(rows), -math.inf), upper)
        self._restricted = True

    def limit_jobs(self, least: Ints, most: Ints) -> None:
        """Set the least and the most jobs of each class; chunks and licences may then be missing.

        What is missing costs much more than any job is worth for it.
        """
        lower = np.zeros(self._first)
        upper = np.full(self._first, math.inf if least.any() else 0.0)
        lower[: len(least)], upper[: len(most)] = least, most
        self._highs.changeColsBounds(
            len(lower), np.arange(len(lower), dtype=np.int32), lower, upper
        )
        self._restricted = True

    def solve(self) -> bool:
        """Solve the program; return whether it was solved within the time limit."""
        import highspy

        # of linear programs, HiGHS adds up the seconds of all runs
        seconds = self._highs.getRunTime() + max(1e-3, self._effort.seconds_left())
        self._highs.setOptionValue("time_limit", seconds)
        self._highs.setOptionValue("simplex_strategy", DUAL if self._restricted else PRIMAL)
        self._restricted = False
        run_highs(self._highs)
        info = self._highs.getInfo()
        size = self._highs.getNumRow() + self._highs.getNumCol()
        iterations = ITERATIONS_PER_RUN + max(0, info.simplex_iteration_count)
        self._effort.work += SECONDS_PER_RUN + SECONDS_PER_ENTRY * size * iterations
        if self._highs.getModelStatus() != highspy.HighsModelStatus.kOptimal:
            return False
        solution = self._highs.getSolution()
        values, duals = np.array(solution.col_value), np.array(solution.row_dual)
        duals = np.maximum(duals / self._scale, 0.0)
        self.value = self._highs.getObjectiveValue() / self._scale
        classes, first = len(self._instance.jobs_of), self._types + self._kinds
        self.jobs, self.taken = values[:classes], values[self._first :]
        self.prices = Prices(duals[: self._types], duals[first:])
        self.nodes_worth = duals[self._types : first]
        return True

    def solve_integer(self, until: float) -> Ints | None:
        """Return the nodes with each column's content in the best integer solution found.

        The search ends at a number of nodes, or at a share of the time limit.
        """
        import highspy

        highs = self._highs
        every = np.arange(highs.getNumCol(), dtype=np.int32)
        integer = np.full(len(every), int(highspy.HighsVarType.kInteger), dtype=np.uint8)
        highs.changeColsIntegrality(len(every), every, integer)
        highs.setOptionValue("time_limit", max(1e-3, self._effort.seconds_left(until)))
        price = SECONDS_PER_NODE * (highs.getNumRow() + highs.getNumCol())
        highs.setOptionValue(
            "mip_max_nodes", int(min(MOST_NODES, self._effort.work_left() / price))
        )
        run_highs(highs)
        info = highs.getInfo()
        self._effort.work += price * (1 + max(0, info.mip_node_count))
        found = None
        if info.primal_solution_status == int(highspy.SolutionStatus.kSolutionStatusFeasible):
            values = np.array(highs.getSolution().col_value)[self._first :]
            found = np.rint(values).astype(np.int64)
        integer[:] = int(highspy.HighsVarType.kContinuous)
        highs.changeColsIntegrality(len(every), every, integer)
        return found
