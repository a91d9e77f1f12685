"""The loop of a simulation whose events and decisions are kernels."""

from __future__ import annotations

from collections.abc import Callable

from optsched.simulator._core import DECIDE, ENDED, FULL, STARTED, Core, News, Way, act, advance

DONE, OPEN, WRONG = range(3)
"""Results of the decision kernel of a policy: decided; a solver has to answer a problem first, then
the kernel is called again; an answer does not hold."""


def drive(
    core: Core,
    way: Way,
    news: News,
    decide: Callable[[], int],
    answer: Callable[[], None],
    set_speeds: Callable[[int], object] | None = None,
) -> None:
    """Run all events.

    Parameters
    ----------
    decide : callable
        The decision kernel of the policy, bound to its own state and to `news`.
    answer : callable
        Answers the problem that a decision leaves open, in the policy's own state.
    set_speeds : callable, optional
        Kernel of the execution model, bound to the core: called after each start (`STARTED`) and
        each end (`ENDED`) of the job in ``core.tally[CHANGED]``.
    """
    go_on, carry_out = advance.bound(core, way, news), act.bound(core, way, news)
    while due := go_on():
        if due != DECIDE:
            if set_speeds is not None and due in (STARTED, ENDED):
                set_speeds(due)
            continue
        while (outcome := decide()) == OPEN:
            while not carry_out():  # what was stated before is not charged for this problem
                assert set_speeds is not None
                set_speeds(STARTED)
            answer()
        if outcome == WRONG or news.counts[FULL]:
            raise RuntimeError("a decision kernel has made an infeasible decision")
