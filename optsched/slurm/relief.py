"""The least to do so that a pending job of Slurm starts: the answer, and the lines that do it."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from functools import cached_property

from optsched.models.hold import Release
from optsched.models.node_placement.problem import NodePlacement, Placements
from optsched.slurm.explain import Explanation
from optsched.slurm.hold_problem import Claim, Question
from optsched.slurm.pins import Update, Updates, updates_of
from optsched.slurm.snapshot import Row, SlurmSnapshot, placement_fields


@dataclass(frozen=True, eq=False)
class Relief:
    """An answer to one of the questions of an explanation.

    Parameters
    ----------
    explanation : Explanation
        The explanation.
    question : Question
        The question.
    release : Release
        Its answer.
    """

    explanation: Explanation
    question: Question
    release: Release

    @cached_property
    def lifted(self) -> tuple[Claim, ...]:
        """The claims that are lifted."""
        return tuple(self.question.claims[claim] for claim in self.release.lifted)

    @property
    def lost(self) -> int:
        """The work that is lost, in microseconds of node time."""
        return sum(claim.lost for claim in self.lifted)

    @cached_property
    def nodes(self) -> tuple[str, ...]:
        """Names of the nodes on which the job then starts."""
        names = self.question.problem.nodes or ()
        return tuple(str(names[node]) for node in dict.fromkeys(self.release.nodes))

    @cached_property
    def lines(self) -> tuple[str, ...]:
        """The lines for a shell: put the job first, pin it to its nodes, and lift the claims.

        Requeued jobs are held, lest they start again where the job is to start. Claims are lifted
        last, so that no other job takes the nodes before.
        """
        job = self.explanation.job
        found = []
        if self.explanation.released is not job:
            found.append(f"scontrol release {job.label}")
        if self.explanation.ahead:
            found.append(f"scontrol update JobId={job.label} Nice={self._nice}")
        return (
            *found,
            *(update.line for update in self._pins.updates),
            *map(_lifting, self.lifted),
        )

    @property
    def _nice(self) -> int:
        """The value that puts the job before the others.

        It goes twice as far as needed: priorities move until the job starts, and none is shown
        below 1.
        """
        job = self.explanation.job
        first = max(other.priority for other in self.explanation.ahead)
        return job.nice - 2 * (first - job.priority + 1)

    @cached_property
    def not_pinned(self) -> str:
        """Why the job is not pinned to its nodes; empty if it is."""
        return self._pins.without.get(self.explanation.job.label, "")

    @cached_property
    def afterwards(self) -> tuple[str, ...]:
        """The lines that take back what was done, once the job has started."""
        job = self.explanation.job
        lifted = [claim.job.label for claim in self.lifted if claim.job is not None]
        found = [f"scontrol release {label}" for label in lifted]
        if self.explanation.ahead:
            found.append(f"scontrol update JobId={job.label} Nice={job.nice}")
        marked = [
            Update(job.label, "unmark", job, (f"Comment={job.comment}",)).line
            for _ in self._pins.updates
        ]
        return (*found, *marked)

    @cached_property
    def _pins(self) -> Updates:
        """The update that pins the job, if it can be pinned."""
        explanation = self.explanation
        row = Row(explanation.job.label, explanation.job, explanation.request)
        problem = NodePlacement(**placement_fields([row], explanation.supply))
        nodes = tuple(sorted(self.release.nodes))
        placements = Placements((nodes,), (((),) * len(nodes),))
        posed = SlurmSnapshot(problem, (row,), {}, {})
        found = updates_of(explanation.queue, posed, placements)
        return Updates(tuple(each for each in found.updates if each.what == "pin"), found.without)


def _lifting(claim: Claim) -> str:
    if claim.job is None:
        return shlex.join(("scontrol", "update", f"NodeName={claim.node}", "State=RESUME"))
    return f"scontrol requeuehold {claim.job.label}"
