"""Window-based locality-aware scheduling."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

from optsched.errors import InputError
from optsched.registry import policies
from optsched.simulator.compiled_decisions import CompiledDecisions, CompiledRun
from optsched.simulator.policy import Answers, Policy


@policies.register("window")
@dataclass
class Window(Policy):
    """The first jobs of the queue are placed into contiguous slots, all in one decision.

    Jobs that no slot can hold wait, equation (7). Slots that can hold no job are left out, equation
    (8), and so are the smallest ones if there are more slots than jobs. The rest is a 0-1 multiple
    knapsack problem for the chosen solver. Within a slot, jobs are in the order of the queue from
    the low end.

    Parameters
    ----------
    window : int
        Number of jobs from the queue head that are decided on together.
    interval : float
        Seconds between two decisions, each on one window. With 0, a decision follows every event,
        on successive windows until one starts no job.
    backfill : {"none", "easy"}
        With ``none``, only jobs of the window start, and all wait behind a head that no slot can
        hold: the strict reading of the paper, under which waits are many times longer. With
        ``easy``, later jobs may start after the window if the queue head is blocked, each in
        the smallest slot that holds it, without delay of the head. The head has a reservation of
        contiguous nodes, by estimated ends, which backfilled jobs respect, but not the window.
    scatter : {"never", "head"}
        Whether a queue head that no slot can hold starts on scattered nodes, of the largest slots
        first, if enough are free. Its reservation is then that of EASY, by number.

    Raises
    ------
    InputError
        If the window holds no job or the interval is negative.

    References
    ----------
    X. Yang, Z. Zhou, W. Tang, X. Zheng, J. Wang, Z. Lan, "Balancing job performance with system
    performance via locality-aware scheduling on torus-connected systems", IEEE Cluster 2014.
    """

    window: int = 5
    interval: float = 30.0
    backfill: Literal["none", "easy"] = "easy"
    scatter: Literal["never", "head"] = "never"

    models: ClassVar[Mapping[str, Answers]] = {"window-mkp": Answers("branch-and-bound", "greedy")}

    def __post_init__(self) -> None:
        if self.window < 1:
            raise InputError(f"window {self.window}; expected a whole number from 1")
        if not self.interval >= 0:
            raise InputError(f"interval {self.interval}; expected seconds from 0")

    def compiled(self, run: CompiledRun) -> CompiledDecisions:
        """Bind the decision kernel to a run, with all nodes free."""
        from optsched.policies._window import ASK, Rule
        from optsched.policies._window_decisions import WindowDecisions

        rule = Rule(
            window=self.window,
            repeats=not self.interval,
            backfills=self.backfill == "easy",
            scatters=self.scatter == "head",
            answer=ASK,
        )
        return WindowDecisions(rule, run)
