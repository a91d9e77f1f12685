"""Decisions on a line of processors in a run: what Python does for the kernels."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from optsched.compiled import Kernel
from optsched.kernel_cache import NotOnDiskError, only_loading
from optsched.machines._line_nodes import nodes_of
from optsched.machines.nodes import Nodes
from optsched.policies import _line
from optsched.simulator.compiled_decisions import CompiledDecisions, CompiledRun

Bound = TypeVar("Bound", bound="LineDecisions")


class LineDecisions(CompiledDecisions):
    """The decisions of a kernel that counts processors, and keeps a log of starts and ends."""

    states_places = False

    def __init__(self, run: CompiledRun, decide: Kernel, loop: Kernel, *state: Any) -> None:
        self._processors, self._size = run.trace.processors.astype(np.int64), run.machine.size
        self._log = state[0].log
        with nullcontext() if run.may_compile else only_loading():
            if run.is_alone:
                self.run = loop.bound(run.core, run.way, run.news, *state, numbers=(0,))
                self.resources()
            else:
                self.decide = decide.bound(*state, run.news)

    def place(self, job: int, value: float) -> Any:
        """Return None: the machine gives the first free nodes."""
        return None

    def resources(self) -> Sequence[str]:
        """Return the nodes that each job held, as interval sets."""
        log = self._log.entries[: self._log.number[0]]
        return nodes_of(log, self._processors, self._size)


class QueueDecisions(LineDecisions):
    """The queue of a run as the decision kernel keeps it."""

    def __init__(
        self, run: CompiledRun, rule: _line.Rule, order: Mapping[str, NDArray[Any]]
    ) -> None:
        processors = run.trace.processors.astype(np.int64)
        line = _line.new_line(processors, run.core.requested, run.core.submit, run.machine.size)
        rank, unit, weight = (
            order.get(name, kept).astype(np.float64)
            for name, kept in (("rank", line.rank), ("unit", line.unit), ("weight", line.weight))
        )
        place = np.argsort(np.argsort(rank, kind="stable"))
        line = line._replace(rank=place, score=rank, unit=unit, weight=weight)
        if rule.power:
            slope = (weight if rule.power == 1 else np.cbrt(weight)) / unit
            line = line._replace(score=rank.copy(), slope=slope)
        self._line = line
        super().__init__(run, _line.decide, _line.run, line, rule)

    @property
    def promised(self) -> Mapping[int, float]:
        """The first shadow time of the blocked job, by job."""
        counts = self._line.counts[0]
        if counts.promised == _line.NOBODY:
            return {}
        return {int(counts.promised): float(counts.promised_start)}


def is_line(run: CompiledRun) -> bool:
    """Return whether the machine gives each job the first free nodes, as `Nodes` does."""
    own = type(run.machine)
    return issubclass(own, Nodes) and own.allocate is Nodes.allocate and own.fits is Nodes.fits


def if_at_hand(bind: Callable[[], Bound]) -> Bound | None:
    """Return the decisions of a kernel; None if it is not on disk and not worth compiling."""
    try:
        return bind()
    except NotOnDiskError:
        return None


def queue_decisions(
    run: CompiledRun,
    *,
    power: int = 0,
    backfills: bool = False,
    shortest_first: bool = False,
    keeps: bool = False,
    **order: NDArray[Any],
) -> QueueDecisions | None:
    """Bind the kernel for a queue, see `_line.Rule` and `_line.Line`.

    None on other machines than lines, for numbers that have no order, and where the kernel is not
    on disk and not worth compiling.
    """
    ordered = all(np.isfinite(one).all() for one in order.values())
    if not is_line(run) or not ordered or not order.get("unit", np.ones(1)).all():
        return None
    rule = _line.Rule(power, backfills, shortest_first, keeps)
    return if_at_hand(lambda: QueueDecisions(run, rule, order))
