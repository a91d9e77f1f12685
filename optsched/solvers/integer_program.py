"""Exact bin packing by column generation and the branch and bound of the window knapsack."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from optsched.errors import InputError
from optsched.models.integer_program import IntegerProgram, Values
from optsched.models.problem import Problem
from optsched.models.window_mkp import NOT_PLACED, WindowMKP
from optsched.registry import solvers
from optsched.solvers.anytime import AnytimeSolver, Progress
from optsched.solvers.highs import run_highs
from optsched.solvers.result import Budget, Limit
from optsched.solvers.window_mkp.branch_and_bound import BranchAndBound

WORK_OF_DIVE = 20_000_000
"""Most nodes of the exact search of a dive."""

FEW = 30
"""Items that a dive leaves to the exact search."""


@solvers.register("bin-search")
@dataclass(frozen=True)
class BinSearch(AnytimeSolver):
    """Bin packing by column generation, then a window knapsack for a number of bins.

    First fit, largest items first, gives a packing. Column generation over the contents of a bin
    gives a bound: at prices of items, rounded to integers, no packing has fewer bins than the
    price of all items over that of the dearest content of a bin, which is found exactly. If the two
    differ, numbers of bins from the bound on are tried: the items fit if and only if the window
    knapsack of as many slots, in which a job is worth its size, places all.

    P. C. Gilmore, R. E. Gomory, "A linear programming approach to the cutting-stock problem",
    Operations Research 9, 849-859, 1961.

    A. A. Farley, "A note on bounding a class of linear programming problems, including cutting
    stock problems", Operations Research 38, 922-923, 1990.
    """

    models = frozenset({"integer-program"})
    seconds_per_work = BranchAndBound.seconds_per_work
    requires = "highspy"

    def prepare(self, problem: Problem[Any] | None = None) -> None:
        """Import HiGHS, and compile the kernels that the window knapsacks need."""
        import highspy  # noqa: F401

        BranchAndBound().prepare()
        window = None
        if isinstance(problem, IntegerProgram) and problem.packing is not None:
            search = _Search(problem, Progress(Budget(work=WORK_OF_DIVE), None, "min"), 0)
            search.price_contents()
            if search.is_open:
                window = search.window(search.bound)
        BranchAndBound().prepare(window)

    def search(
        self, problem: IntegerProgram, progress: Progress, hint: Values | None, seed: int
    ) -> None:
        """Search for fewer bins until there are none; other programs are refused."""
        if problem.packing is None:
            raise InputError("the program is not one of bin packing; expected another solver")
        search = _Search(problem, progress, seed)
        if hint is not None:
            search.offer(problem.packing.bin_of_item(hint))
        search.run()


class _Search:
    """A search for the fewest bins."""

    def __init__(self, problem: IntegerProgram, progress: Progress, seed: int) -> None:
        assert problem.packing is not None
        self._packing, self._progress, self._seed = problem.packing, progress, seed
        self._sizes, self._capacity, self.most = problem.packing  # most bins
        self._order = sorted(
            (item for item, size in enumerate(self._sizes) if size),
            key=lambda item: -self._sizes[item],
        )
        self._demand = Counter(self._sizes[item] for item in self._order)
        self._contents: list[Counter[int]] = []
        self._master: Any = None
        total, largest = sum(self._sizes), max(self._sizes)
        progress.bound = 0 if not total else self.most + 1  # no bin holds the largest
        self.bins: list[int] = []  # of each item
        self.value = self.most + 1  # their number
        if largest <= self._capacity:
            progress.bound = -(-total // max(1, self._capacity))
            self.offer([NOT_PLACED] * len(self._sizes))

    @property
    def bound(self) -> int:
        """Least number of bins that may suffice."""
        assert self._progress.bound is not None
        return self._progress.bound

    @property
    def is_open(self) -> bool:
        """Whether fewer bins than found, of those there are, may suffice."""
        return self.bound < min(self.value, self.most + 1)

    def offer(self, bins: Sequence[int]) -> None:
        """Keep a packing if it is better; items that are not placed go where they fit first."""
        room: list[int] = []
        packed = list(bins)
        for item in self._order:
            number = bins[item]
            room += [self._capacity] * (number + 1 - len(room))
            if number != NOT_PLACED:
                room[number] -= self._sizes[item]
        for item in self._order:
            size = self._sizes[item]
            if bins[item] == NOT_PLACED:
                packed[item] = next((b for b, left in enumerate(room) if size <= left), len(room))
                room += [self._capacity] * (packed[item] + 1 - len(room))
                room[packed[item]] -= size
        used = {b: rank for rank, b in enumerate(dict.fromkeys(packed[i] for i in self._order))}
        if not self.bins or len(used) < self.value:
            sized = zip(packed, self._sizes)
            self.bins = [used[b] if size else 0 for b, size in sized]
            self.value = len(used)
            if self.value <= self.most:
                self._progress.offer(self._packing.values(self.bins), self.value)

    def run(self) -> None:
        """Search until the fewest bins are found, or a limit is reached."""
        self.price_contents()
        rng = np.random.default_rng(self._seed)
        for _ in range(20):
            if self.is_open:
                self._dive(rng)
        while self.is_open:
            for number in range(self.bound, min(self.value, self.most + 1)):
                self._progress.check()
                if self._is_decided(number):
                    break

    def price_contents(self) -> None:
        """Raise the bound by column generation."""
        if self.is_open:
            self._progress.prove(self._bound_of(self._demand, self.value))

    def window(self, number: int) -> WindowMKP:
        """Return the window knapsack that places all items if they fit into a number of bins."""
        return WindowMKP([self._sizes[item] for item in self._order], [self._capacity] * number)

    def _is_decided(self, number: int) -> bool:
        """Find out whether all items fit into a number of bins; return whether that is known."""
        total = sum(self._sizes)
        is_last = number + 1 == min(self.value, self.most + 1)
        question = _Question(self._progress.rest(1.0 if is_last else 0.5), total)
        answer = BranchAndBound().answer(self.window(number), question, seed=self._seed)
        self._progress.work += answer.work
        bins = [NOT_PLACED] * len(self._sizes)
        for item, slot in zip(self._order, answer.solution):
            bins[item] = slot
        self.offer(bins)
        is_refuted = answer.bound is not None and answer.bound < total
        if is_refuted:
            self._progress.prove(number + 1)
        return is_refuted or answer.objective == total

    def _dive(self, rng: np.random.Generator) -> None:
        """Fill bins with contents that the linear program takes, and try the rest exactly."""
        left, filled, aim = +self._demand, list[Counter[int]](), self.bound
        while left.total() > FEW:
            bound = self._bound_of(left, aim - len(filled) + 1)
            if bound is None or bound > aim - len(filled):
                return
            amounts = np.array(self._master.getSolution().col_value)
            fitting = [number for number, one in enumerate(self._contents) if one <= left]
            shares = np.array([max(amounts[number], 1e-9) for number in fitting]) ** 2
            content = self._contents[fitting[rng.choice(len(fitting), p=shares / shares.sum())]]
            filled.append(content)
            left = left - content
        items = list(left.elements())
        window = WindowMKP(items, [self._capacity] * (aim - len(filled)))
        budget = self._progress.rest()
        most = min(WORK_OF_DIVE, budget.work or WORK_OF_DIVE)
        question = _Question(Budget(budget.seconds, most), sum(items))
        answer = BranchAndBound().answer(window, question, seed=self._seed)
        self._progress.work += answer.work
        rest = [Counter[int]() for _ in range(aim - len(filled))]
        for size, slot in zip(items, answer.solution):
            if slot != NOT_PLACED:
                rest[slot][size] += 1
        bin_of_copy = {
            size: [b for b, one in enumerate(filled + rest) for _ in range(one[size])]
            for size in self._demand
        }
        bins = [NOT_PLACED] * len(self._sizes)
        for item in self._order:
            if copies := bin_of_copy[self._sizes[item]]:
                bins[item] = copies.pop()
        self.offer(bins)

    def _bound_of(self, demand: Counter[int], enough: int) -> int | None:
        """Return a bound, up to `enough`, of the bins for items of each size; None at a limit."""
        import highspy

        if self._master is None:
            self._master = highspy.Highs()
            self._master.silent()
            self._master.setOptionValue("threads", 1)
            for _ in self._demand:
                self._master.addRow(0, highspy.kHighsInf, 0, [], [])
            contents: dict[int, Counter[int]] = {}
            for item in self._order:
                contents.setdefault(self.bins[item], Counter())[self._sizes[item]] += 1
            for content in contents.values():
                self._add(content)
        sizes = list(self._demand)
        amounts = np.array([demand[size] for size in sizes], dtype=np.int64)
        rows = np.arange(len(sizes), dtype=np.int32)
        infinite = np.full(len(sizes), highspy.kHighsInf)
        self._master.changeRowsBounds(len(rows), rows, amounts.astype(float), infinite)
        copies = [s for s in demand for _ in range(min(demand[s], self._capacity // s))]
        row_of = [sizes.index(size) for size in copies]
        bound = 0
        while self._progress.exhausted() is None:
            run_highs(self._master)
            self._progress.work += 20_000  # nodes that take as long
            if self._master.getModelStatus() != highspy.HighsModelStatus.kOptimal:
                return None
            duals = np.array(self._master.getSolution().row_dual)
            prices = (np.maximum(duals, 0) * 10**6).astype(np.int64)
            window = WindowMKP(copies, [self._capacity], prices[row_of])
            answer = BranchAndBound().answer(window, Progress(self._progress.rest(), None))
            self._progress.work += answer.work
            if answer.bound:
                bound = max(bound, -(-int(prices @ amounts) // round(answer.bound)))
            content = Counter(c for c, slot in zip(copies, answer.solution) if slot == 0)
            least = math.ceil(self._master.getInfo().objective_function_value - 1e-6)
            if bound >= min(enough, least) or content in self._contents:
                return bound
            self._add(content)
        return None

    def _add(self, content: Counter[int]) -> None:
        self._contents.append(content)
        rows = [row for row, size in enumerate(self._demand) if content[size]]
        counts = np.array([content[size] for size in self._demand if content[size]], dtype=float)
        infinite = float("inf")
        self._master.addCol(1.0, 0.0, infinite, len(rows), np.array(rows, np.int32), counts)


class _Question(Progress):
    """The progress of a search that ends once its bound is below the size of all items."""

    def __init__(self, budget: Budget, total: int) -> None:
        super().__init__(budget, None)
        self._total, self._is_refuted = total, False

    def note(self, objective: int, bound: int | None) -> None:
        """Note whether the bound answers the question."""
        self._is_refuted = bound is not None and bound < self._total

    def exhausted(self) -> Limit | None:
        """Return a limit if one is reached, or the question is answered."""
        return Limit.WORK if self._is_refuted else super().exhausted()
