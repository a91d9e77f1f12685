"""The least to do so that a pending job of Slurm starts: the answer, and the lines that do it."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from functools import cached_property

from optsched.models.hold import Release
from optsched.models.node_placement.problem import NodePlacement, Placements
from optsched.numbers import counted
from optsched.sites.slurm_notation import host_list
from optsched.slurm.explain import Explanation
from optsched.slurm.hold_problem import Claim, Question
from optsched.slurm.order import ahead_by, tasks
from optsched.slurm.pins import Updates, updates_of
from optsched.slurm.plan import on_lighter_nodes
from optsched.slurm.snapshot import Row, SlurmSnapshot, placement_fields


@dataclass(frozen=True, eq=False)
class Relief:
    """An answer to one of the questions of an explanation."""

    explanation: Explanation
    question: Question
    release: Release

    @cached_property
    def lifted(self) -> tuple[Claim, ...]:
        """The claims that are lifted."""
        return tuple(self.question.claims[claim] for claim in self.release.lifted)

    @cached_property
    def drained(self) -> tuple[str, ...]:
        """Names of the nodes that are drained."""
        return tuple(self._name(node) for node in self.release.drained)

    @cached_property
    def moved(self) -> tuple[tuple[Claim, tuple[str, ...], int], ...]:
        """The running jobs that are moved, each with its new nodes and the node time lost."""
        question = self.question
        return tuple(
            (question.claims[claim], tuple(map(self._name, nodes)), int(question.migration[claim]))
            for claim, nodes in self.release.moved
        )

    @property
    def lost(self) -> int:
        """The node time that is lost, in microseconds."""
        lifted = sum(claim.lost for claim in self.lifted)
        moved = sum(lost for _, _, lost in self.moved)
        return lifted + moved + int(self.question.idle[list(self.release.drained)].sum())

    @property
    def count(self) -> int:
        """How many claims are lifted or moved, and nodes drained."""
        return len(self.lifted) + len(self.moved) + len(self.drained)

    @property
    def withheld(self) -> bool:
        """Whether the lines are held back: they stop running jobs, and not all is known."""
        stops = self.moved or any(claim.action == "requeue" for claim in self.lifted)
        return bool(stops and self.explanation.unseen and not self.explanation.force)

    @property
    def _comes_next(self) -> bool:
        """Whether the job starts without any line: it fits, and no other is before it."""
        explanation = self.explanation
        return not (self.count or explanation.ahead or explanation.released is not explanation.job)

    @cached_property
    def steps(self) -> tuple[str, ...]:
        """What the lines do to the job itself, in words."""
        explanation = self.explanation
        if self.withheld or self._comes_next:
            return ()
        found = ["release it"] if explanation.released is not explanation.job else []
        if self._first:
            others = explanation.ahead_by_priority
            found.append(f"raise it above {counted(tasks(others), 'job')}")
        return (*found, *("pin it" for _ in self._pins.updates))

    @cached_property
    def nodes(self) -> tuple[str, ...]:
        """Names of the nodes on which the job then starts."""
        return tuple(map(self._name, dict.fromkeys(self._at)))

    @property
    def weight(self) -> int:
        """Weight of the nodes of the chunks."""
        return int(self.explanation.supply.weights[list(self._at)].sum())

    @cached_property
    def _at(self) -> tuple[int, ...]:
        """The node of each chunk; where nothing has to be done, as light as is found."""
        nodes, hold = tuple(sorted(self.release.nodes)), self.question.problem
        if self.count:
            return nodes
        of_nodes = ("resources", "free", "kinds", "switches", "blocks", "busy")
        of_job = ("chunks", "demand", "most_per_node", "allowed", "span")
        problem = NodePlacement(
            **{name: getattr(hold, name) for name in of_nodes},
            **{name: [getattr(hold, name)] for name in of_job},
            exclusive=(0,) if hold.exclusive else (),
            then=("switches",) if hold.switches is not None else (),
        )
        placements = Placements((nodes,), (((),) * len(nodes),))
        return on_lighter_nodes(problem, placements, self.explanation.supply.weights).nodes[0]

    def _name(self, node: int) -> str:
        names = self.question.problem.nodes or ()
        return str(names[node])

    @cached_property
    def lines(self) -> tuple[str, ...]:
        """The lines for a shell to run now; none if they are `withheld`, or nothing has to be done.

        The job is put first, unless other jobs are to start as Slurm plans until then, and pinned
        to its nodes; other jobs are held, or kept away from these nodes. If it is to start now,
        what `at_start` has follows.
        """
        explanation, job = self.explanation, self.explanation.job
        if self.withheld or self._comes_next:
            return ()
        found = []
        if explanation.released is not job:
            found.append(f"scontrol release {job.label}")
        if not explanation.follows_plan or self._is_now:
            found += self._first
        found += [update.line for update in self._pins.updates]
        found += [_lifting(claim) for claim in self.lifted if claim.is_pending]
        if self.drained:
            found.append(self._set_state("DRAIN", f"Reason=optsched:{job.label}"))
        return (*found, *(self._freeing if self._is_now else ()))

    @cached_property
    def at_start(self) -> tuple[str, ...]:
        """The lines for the time of the start, if that is later: they free the nodes for the job.

        Jobs are requeued no sooner, as they may end before. Where other jobs start as Slurm plans
        until then, the job is put first.
        """
        if self._is_now or self.withheld or self._comes_next:
            return ()
        return (*(self._first if self.explanation.follows_plan else ()), *self._freeing)

    @property
    def _is_now(self) -> bool:
        return self.question.start == self.explanation.supply.time

    @cached_property
    def _freeing(self) -> tuple[str, ...]:
        """The lines that free nodes, which come last, lest other jobs take the nodes."""
        found = [_lifting(claim) for claim in self.lifted if not claim.is_pending]
        return (*found, *((self._set_state("UNDRAIN"),) if self.drained else ()))

    def _set_state(self, state: str, *words: str) -> str:
        nodes = f"NodeName={host_list(self.drained)}"
        return shlex.join(("scontrol", "update", nodes, f"State={state}", *words))

    @property
    def _higher(self) -> int:
        """How far the job is raised to be before the others; 0 if there are none."""
        others = self.explanation.ahead_by_priority
        return ahead_by(self.explanation.released, others) if others else 0

    @property
    def _first(self) -> tuple[str, ...]:
        """The line that puts the job before the others, if there are any."""
        return (self._put(self._higher),) if self._higher else ()

    @property
    def raising(self) -> tuple[str, ...]:
        """The what-if that raises the job as `lines` do; empty if they do not."""
        if {*self._first}.isdisjoint(self.lines):
            return ()
        job = self.explanation.released
        found = f"priority {job.label} = {job.priority + self._higher}"
        return (found,) if job is self.explanation.job else (f"release {job.label}", found)

    def _put(self, higher: int) -> str:
        """Return the line that raises the job from what it is now; 0 takes that back."""
        job = self.explanation.job
        value = f"Nice={job.nice - higher}"
        if job.priority_by_operator:  # Slurm ignores its nice
            value = f"Priority={job.priority + higher}"
        return f"scontrol update JobId={job.label} {value}"

    @property
    def is_pinned(self) -> bool:
        """Whether the lines pin the job to its nodes."""
        return bool(self.lines and self._pins.updates)

    @cached_property
    def not_pinned(self) -> str:
        """Why the job is not pinned to its nodes; empty if it is."""
        return self._pins.without.get(self.explanation.job.label, "")

    @cached_property
    def afterwards(self) -> tuple[str, ...]:
        """The lines that take back what was done, once the job has started, but for its pin.

        Slurm refuses to clear the nodes of a running job.
        """
        if self.withheld or self._comes_next:
            return ()
        lifted = [claim.job.label for claim in self.lifted if claim.job is not None]
        found = [shlex.join(("scontrol", "release", label)) for label in lifted]
        if self._first:
            found.append(self._put(0))
        return tuple(found)

    @cached_property
    def _pins(self) -> Updates:
        explanation = self.explanation
        row = Row(explanation.job.label, explanation.job, explanation.request)
        problem = NodePlacement(**placement_fields([row], explanation.supply))
        placements = Placements((self._at,), (((),) * len(self._at),))
        posed = SlurmSnapshot(problem, (row,), {}, {})
        found = updates_of(explanation.queue, posed, placements)
        return Updates(tuple(each for each in found.updates if each.what == "pin"), found.without)


def _lifting(claim: Claim) -> str:
    if claim.job is None:
        return shlex.join(("scontrol", "update", f"NodeName={claim.node}", "State=RESUME"))
    return shlex.join(("scontrol", "hold" if claim.is_pending else "requeuehold", claim.job.label))
