"""Searches for the greatest weight, then for the least fragmentation, by contents of nodes."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType

import numpy as np

from optsched.arrays import Floats, Ints
from optsched.models.node_placement import NodePlacement, Placements
from optsched.models.node_placement.fields import WHOLE
from optsched.solvers.anytime import Progress
from optsched.solvers.node_placement._contents import device_scale, losses_of, with_cost
from optsched.solvers.node_placement._plan import PartialPlacement
from optsched.solvers.node_placement._pricing import QUICK_SEARCH
from optsched.solvers.node_placement._relaxation import Master, Prices, Relaxation, scale_of
from optsched.solvers.node_placement._types import Content, Instance

SHARE = 0.15
"""Share of the columns with fractions that a dive fixes in each step."""

GAP, LEAST_GAP = 1e-5, 1e-6
"""Relative gaps at which the relaxations of weight and fragmentation are exact enough."""

RELAXING = 0.6
"""Most of the budget left that a relaxation may take, before it is rounded as it is."""

CHOOSING = 0.8
"""Share of the budget after which no further jobs are chosen."""

INTEGER = 0.8
"""Most of the budget left that the integer program over all contents may take."""

FEW_KINDS = 200
"""Most kinds of nodes for which it is searched."""

CHOICES_PER_DIVE = 3

SLACK = 0.002
ROUNDINGS = (
    *((0.0, share) for share in (SHARE, 0.02, 0.05)),
    *((slack, SHARE) for slack in (0.0005, 0.001, SLACK, 0.003, 0.005, 0.01)),
)
"""Shares of the room that are left when a choice is rounded, and of columns that a dive fixes."""

EMPTIED, FEWEST_EMPTIED = 150, 40
"""Nodes that are emptied and packed anew together, and the fewest."""

PATIENCE = 20
"""Attempts in vain after which twice as many nodes are emptied."""

GAP_OF_SOME = 2e-6
"""Relative gap at which the relaxation of emptied nodes is exact enough."""

SHARE_OF_PROGRAM = 0.1
"""Most of the budget left that the integer program of emptied nodes may take."""

LEAST_LOSS = 0.1
"""Chance that a node without loss is emptied, relative to one of the mean loss."""

SECONDS_PER_PLAN = 5e-6
"""Nominal seconds of making a placement of contents, for each job and node."""

DIVING = 1_000
"""Limit of the search for the best content in a dive."""

ROUNDS, ROUNDS_IF_FEW = 3, 12
"""Rounds of pricing between two steps of a dive, and those for few kinds of nodes."""

INTEGRAL = 1e-6
"""Distance from an integer that counts as one."""

NEARLY_WHOLE = 0.8

MOST_NODES = 2_000
"""Nodes of branch and bound for one choice."""

VIOLATED = 1e-7
"""Least relative violation of a new row."""

ROWS_EACH = 3
"""Most rows that are added for one choice."""

TOLERANCE = 2e-6
"""What HiGHS may leave out of the scaled objective."""

SECONDS_PER_CHOICE = 5e-3
SECONDS_PER_ENTRY = 2e-8
"""Nominal seconds of a choice, and of an iteration of simplex for each row and column."""


class Packing:
    """Search for the placement of greatest weight, where switches and blocks do not matter."""

    plan: PartialPlacement  # best placement so far
    bound: int  # upper bound of the weight
    relaxation: Relaxation

    def __init__(self, instance: Instance, progress: Progress, start: PartialPlacement) -> None:
        self._instance, self._progress = instance, progress
        self.plan = start
        classes = instance.classes
        self._unit = math.gcd(*classes.weights.tolist())  # of any sum of weights
        self.bound = int(classes.weights @ classes.jobs)
        self.relaxation = Relaxation(instance, progress)

    @property
    def proven(self) -> bool:
        """Whether no placement has more weight."""
        return self.plan.value >= self.bound

    def worth_of_nodes(self, prices: Floats) -> Floats:
        """Return an upper bound of what the chunks on a node of each kind are worth."""
        every, pricing = np.arange(len(self._instance.nodes)), self.relaxation.pricing
        pricing.price(prices, every, self._instance.types.most, 0.0, QUICK_SEARCH)
        return pricing.bounds.copy()

    def relax(self) -> None:
        """Lower the bound to that of the relaxation, as far as the budget goes."""
        for content in self.plan.contents().values():
            self.relaxation.add(content)
        self.relaxation.tighten(GAP, self._progress.after(RELAXING))
        self.bound = self._whole(self.relaxation.bound)

    def _whole(self, bound: float) -> int:
        """Return the largest weight that a bound allows, at most the bound so far."""
        if math.isinf(bound):
            return self.bound
        whole = math.floor(bound + max(1e-6, 1e-9 * abs(bound)))
        return min(self.bound, whole // self._unit * self._unit)

    def round(self) -> Iterator[None]:
        """Round the relaxation by a dive; pause then."""
        if not self.proven and self._progress.spent() < 1 and self.relaxation.solve():
            self._offer(self.relaxation, dive(self.relaxation))
            yield

    def choose(self) -> Iterator[None]:
        """Choose the jobs of several chunks, and others; pause after each dive."""
        every, classes = self.relaxation, self._instance.classes
        if self.proven or (classes.chunks == 1).all():
            return
        # jobs that the relaxation does not place in full violate rows of its prices
        first, number, rounded = every.prices, 0, set[tuple[bytes, float]]()
        choice = JobChoice(self._instance, self._progress)
        while True:
            jobs = choice.solve(0.0, CHOOSING)
            self.bound = self._whole(choice.bound)
            if jobs is None or self.proven or self._progress.spent() >= CHOOSING:
                break
            if choice.add(every.rows, jobs):
                continue
            every.limit_jobs(jobs)
            every.start_at(first)
            every.tighten(GAP, CHOOSING)
            if not choice.add(every.rows, jobs):
                break
            number += 1
            if number % CHOICES_PER_DIVE == 0:
                self._round_choice(choice.solve(SLACK, CHOOSING), SHARE, rounded)
                yield
        for slack, share in ROUNDINGS:
            if self.proven or self._progress.spent() >= CHOOSING:
                break
            self._round_choice(choice.solve(slack, CHOOSING), share, rounded)
            yield
        every.limit_jobs(classes.jobs)
        every.start_at(first)
        every.solve()

    def _round_choice(
        self, jobs: Ints | None, share: float, rounded: set[tuple[bytes, float]]
    ) -> None:
        """Round the relaxation with no other jobs than a choice, once with each share."""
        if jobs is None or (jobs.tobytes(), share) in rounded:
            return
        rounded.add((jobs.tobytes(), share))
        self.relaxation.limit_jobs(jobs)
        if self.relaxation.solve():
            self._offer(self.relaxation, dive(self.relaxation, share))

    def combine(self) -> Iterator[None]:
        """Search the integer program over all contents, for few kinds of nodes; pause then."""
        few = len(self._instance.nodes) <= FEW_KINDS
        if few and not self.proven and self._progress.spent() < 1 and self.relaxation.solve():
            found = self.relaxation.solve_integer(self._progress.after(INTEGER))
            if found is not None:
                self._offer(self.relaxation, found[1])
            yield

    def repack(self, seed: int) -> Iterator[None]:
        """Empty some nodes and pack them anew, time and again; pause after each.

        The more a content is worth below the best ones, the likelier it is taken off its node.
        """
        instance, relaxation, rng = self._instance, self.relaxation, np.random.default_rng(seed)
        nodes, nothing = np.flatnonzero(instance.kind_of >= 0), np.zeros_like(instance.types.most)
        number, vain = min(EMPTIED, len(nodes) // 2), 0
        while (
            FEWEST_EMPTIED <= number < len(nodes) and not self.proven and self._progress.spent() < 1
        ):
            before, held = self.plan.value, self.plan.contents()
            every = [
                held.get(node) or Content(instance.kind_of[node], nothing, ())
                for node in nodes.tolist()
            ]
            loss = np.maximum([relaxation.loss(content) for content in every], 0.0)
            loss += LEAST_LOSS * loss.mean() + 1e-9
            emptied = rng.choice(len(nodes), number, replace=False, p=loss / loss.sum())
            kept = dict(zip(nodes.tolist(), every))
            for one in emptied.tolist():
                del kept[int(nodes[one])]
            some = relaxation.beside(kept)
            for one in emptied.tolist():
                some.add(every[one])
            some.tighten(GAP_OF_SOME, 1.0)
            if some.solve():
                self._offer(some, dive(some), kept)
            if some.solve():
                found = some.solve_integer(self._progress.after(SHARE_OF_PROGRAM))
                if found is not None:
                    self._offer(some, found[1], kept)
            vain = 0 if self.plan.value > before else vain + 1
            if vain == PATIENCE:
                number, vain = 2 * number, 0
            yield

    def _offer(
        self,
        relaxation: Relaxation,
        chosen: Counter[int],
        held: Mapping[int, Content] = MappingProxyType({}),
    ) -> None:
        """Place contents, by number, beside what other nodes hold."""
        problem = self._instance.problem
        self._progress.work += SECONDS_PER_PLAN * (len(problem.chunks) + len(problem.free))
        plan = PartialPlacement(self._instance)
        plan.place_contents({**held, **relaxation.spread(chosen)})
        plan.fill_up()
        if plan.value > self.plan.value:
            self.plan = plan

    def placements(self) -> Placements:
        """Return the best placement, with jobs of weight 0 where they fit."""
        self.plan.fill(self._instance.weightless)
        return self.plan.placements()


def dive(relaxation: Relaxation, share: float = SHARE) -> Counter[int]:
    """Fix contents of nodes until all nodes have one; return the nodes with each content."""
    progress, instance = relaxation.progress, relaxation.instance
    types, classes = instance.types, instance.classes
    nodes, supply = relaxation.nodes.copy(), relaxation.supply.copy()
    demand = np.zeros_like(types.most)
    np.add.at(demand, classes.type_of, classes.chunks * relaxation.most)
    chosen: Counter[int] = Counter()
    rounds = ROUNDS_IF_FEW if (nodes > 0).sum() < FEW_KINDS // 2 else ROUNDS
    tolerance = 1e-6 * float(classes.weights.max(initial=1))
    while progress.spent() < 1:
        fixed = 0
        for number, times in _largest(relaxation.taken, share):
            content = relaxation.contents[number]
            left = demand - supply
            used = content.counts > 0
            if not (left[used] > 0).any():
                continue
            useful = max(1, int((left[used] // content.counts[used]).min()))
            times = min(times, int(nodes[content.kind]), useful)
            chosen[number] += times
            nodes[content.kind] -= times
            supply += times * content.counts
            fixed += times
        if not fixed or not nodes.any():
            break
        relaxation.restrict(nodes, supply)
        if not relaxation.solve():
            break
        open_, most = np.flatnonzero(nodes), np.minimum(types.most, np.maximum(0, demand - supply))
        for _ in range(rounds):
            relaxation.pricing.price(relaxation.duals.chunks, open_, most, tolerance, DIVING)
            if not relaxation.add_priced(open_) or not relaxation.solve():
                break
    relaxation.restrict(relaxation.nodes, relaxation.supply)
    return +chosen


def _largest(taken: Floats, share: float) -> list[tuple[int, int]]:
    """Return the columns to fix next, and how often."""
    columns = np.flatnonzero(taken > INTEGRAL)
    whole = np.floor(taken[columns] + INTEGRAL).astype(np.int64)
    rest = taken[columns] - whole
    picks = [(int(c), int(t)) for c, t in zip(columns, whole) if t]
    open_ = np.flatnonzero(rest > INTEGRAL)
    order = open_[np.argsort(-rest[open_], kind="stable")]
    first = max(1, int(share * len(order)))
    picks += [
        (int(columns[place]), 1)
        for rank, place in enumerate(order)
        if rank < first or rest[place] > NEARLY_WHOLE
    ]
    return picks


class JobChoice:
    """The jobs of greatest weight that some prices of the relaxation allow.

    At any prices of chunks and licences from 0, the jobs that are placed cost no more than the room
    for them is worth. A choice of jobs satisfies this for all prices if and only if the relaxation
    places all of its jobs. So a few such rows, found as they are violated, stand for it.
    """

    bound: float  # upper bound of the weight of all placements, by the last choice without slack

    def __init__(self, instance: Instance, progress: Progress) -> None:
        self._classes, self._progress = instance.classes, progress
        self.bound = math.inf
        weights, jobs = instance.classes.weights, instance.classes.jobs
        self._scale = scale_of(weights)
        # the three searches that are turned off take longer than branching
        searches = "rins", "rens", "root_reduced_cost"
        off = {f"mip_heuristic_run_{name}": False for name in searches}
        self._program = Master(progress, [], [], mip_abs_gap=0.0, **off)
        nothing = [np.empty(0, dtype=np.int64)] * len(jobs)
        self._program.add(weights * self._scale, jobs, nothing, nothing)

    def add(self, rows: Iterable[tuple[Prices, float]], jobs: Ints) -> bool:
        """Add the rows that the jobs of each class violate most; return if any does."""
        violated = []
        for prices, room in rows:
            cost = prices.paid(self._classes)
            if room > 0 and cost @ jobs > room * (1 + VIOLATED):
                violated.append(cost / room)
        violated.sort(key=lambda cost: -float(cost @ jobs))
        for cost in violated[:ROWS_EACH]:
            self._program.add_row(cost, 1.0)
        return bool(violated)

    def solve(self, slack: float, until: float) -> Ints | None:
        """Return jobs of each class that leave a share `slack` of room, or None in want of time."""
        program, progress = self._program, self._progress
        program.limit_rows(np.full(program.rows, 1.0 - slack))
        price = SECONDS_PER_ENTRY * program.rows * program.columns
        nodes = 1 + progress.work_left(until) / (SECONDS_PER_CHOICE + price)
        jobs = program.solve_integer(until, min(MOST_NODES, nodes))
        progress.work += SECONDS_PER_CHOICE + price * program.iterations
        if not slack and math.isfinite(program.bound):
            self.bound = min(self.bound, (program.bound + TOLERANCE) / self._scale)
        return jobs


class FragmentationSearch:
    """Search for less fragmentation at no less weight than at first."""

    plan: PartialPlacement  # best placement so far
    weight: int  # that jobs have at least
    bound: int  # of the fragmentation of placements of that weight, without jobs of weight 0

    def __init__(self, problem: NodePlacement, progress: Progress, start: Placements) -> None:
        self._progress = progress
        self._instance = instance = Instance(problem, exact=True)
        self._losses = losses_of(instance)
        self._scale = device_scale(instance)
        self.bound = 0
        taken = PartialPlacement(instance)
        taken.take(start)
        held, nothing = taken.contents(), np.zeros_like(instance.types.most)
        self._held = {
            node: with_cost(instance, self._losses, held.get(node, Content(kind, nothing, ())))
            for kind, nodes in enumerate(instance.nodes_of)
            for node in nodes
        }
        self.weight = taken.value
        placed = [[job for job in jobs if start.nodes[job]] for jobs in instance.jobs_of]
        self._jobs = np.array(list(map(len, placed)), dtype=np.int64)
        self.plan = self._plan(self._held, self._jobs)
        # what nodes leave unusable on which no chunk fits
        measured = problem.measures(self.plan.placements())["fragmentation"]
        self._rest = measured - round(self._scale * _cost(self._held))

    def run(self) -> Iterator[None]:
        """Search for less; pause after the relaxation, and after the integer program."""
        if self.plan.value < self.weight or self.proven:
            return  # contents do not tell which chunks of one job may share no node
        relaxation = Relaxation(self._instance, self._progress, self._losses, self.weight)
        self._relax(relaxation)
        yield
        if not self.proven and self._progress.spent() < 1 and relaxation.solve():
            until = self._progress.after(INTEGER)
            found = relaxation.solve_integer(until, self._jobs, self._held.values())
            if found is not None:
                self._offer(found[0], relaxation.spread(found[1]))
            yield

    @property
    def proven(self) -> bool:
        """Whether no placement leaves less."""
        return self._rest + round(self._scale * _cost(self._held)) <= self.bound

    def _relax(self, relaxation: Relaxation) -> None:
        """Raise the bound to that of the relaxation, as far as the budget goes."""
        instance, until = self._instance, self._progress.after(RELAXING)
        nothing = np.zeros_like(instance.types.most)
        empty = (Content(kind, nothing, ()) for kind in range(len(instance.nodes)))
        for content in (*self._held.values(), *empty):
            relaxation.add(with_cost(instance, self._losses, content))
        # at first, all devices that chunks take have one price
        free = float(instance.nodes @ self._losses.free.sum(axis=1)) / WHOLE
        devices = instance.types.devices * instance.types.share / instance.units
        price = -_cost(self._held) / max(free, 1.0)
        no_licences = np.zeros(len(instance.problem.licences))
        relaxation.start_at(Prices(price * devices, 0.0, no_licences))
        relaxation.tighten(LEAST_GAP, until)
        bound = -self._scale * relaxation.bound
        error = max(1e-6, 1e-9 * relaxation.magnitude * self._scale)
        self.bound = max(self.bound, self._rest + math.ceil(bound - error))

    def _offer(self, jobs: Ints, held: dict[int, Content]) -> None:
        """Replace the contents of nodes by others, if that leaves less unusable."""
        if _cost(held) >= _cost(self._held) - 1e-9:
            return
        plan = self._plan(held, jobs)
        if plan.value >= self.weight:  # otherwise chunks of one job that may not share a node
            self._jobs, self._held, self.plan = jobs, held, plan

    def _plan(self, held: dict[int, Content], jobs: Ints) -> PartialPlacement:
        """Return the placement of so many jobs of each class in contents of nodes."""
        plan = PartialPlacement(self._instance)
        plan.place_contents(held, jobs)
        return plan


def _cost(held: dict[int, Content]) -> float:
    return sum(content.cost for content in held.values())
