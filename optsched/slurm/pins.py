"""Pins: pending jobs that Slurm starts on planned nodes only, and the way back.

A pin sets two fields of a job, and both can be set back: its nodes, and its comment, which gets a
mark in front of what it was. The mark has a digest of the nodes; so nodes that somebody else has
set since are not taken for ours. To start at once, a job may be raised before others with its pin,
by its nice. The mark has the nice before and since.

A job that cannot start on more nodes than planned requires the planned ones; it required none
before. All others exclude the other nodes: if a job started in the moment before, naming required
nodes would take its surplus ones, while Slurm refuses to exclude nodes of a running job. The number
of nodes is never set: as an operator's setting it would exempt the job from limits for good, and
Slurm does not show a range of numbers such that it could be restored.
"""

from __future__ import annotations

import hashlib
import re
import shlex
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace

from optsched.models.node_placement.problem import Placements
from optsched.sites.slurm_notation import host_list
from optsched.slurm.queue import QueuedJob, SlurmQueue
from optsched.slurm.snapshot import Row, SlurmSnapshot

LONGEST_COMMENT = 1024  # most bytes of a comment that Slurm accepts
LONGEST_MARK = "optsched:-01234567:-2147483645:-2147483645"  # a mark as long as one may be
LEAST_NICE = -(2**31) + 3  # the least nice that Slurm accepts

_MARKED = re.compile(
    r"optsched:(?P<excludes>-?)(?P<digest>[0-9a-f]{8})"
    r"(?::(?P<before>-?\d{1,10}):(?P<since>-?\d{1,10}))?(?: (?P<comment>.*))?",
    re.DOTALL,
)

NODES = {"required": "ReqNodeList", "excluded": "ExcNodeList"}
"""The settings of the fields of a job that pins set."""


@dataclass(frozen=True)
class Update:
    """Update of a job."""

    label: str  # number of the job
    # What the update does: ``pin``, ``clear`` a pin, ``lower`` a job that is raised, or only
    # ``unmark`` a job whose nodes somebody else has set
    what: str
    job: QueuedJob  # record of the queue on which the update was decided
    settings: tuple[str, ...]  # settings, as ``scontrol update`` takes them

    @property
    def words(self) -> tuple[str, ...]:
        """The command and its arguments."""
        return ("scontrol", "update", f"JobId={self.label}", *self.settings)

    @property
    def line(self) -> str:
        """The command as a line for a shell, without control characters."""
        return " ".join(map(_quoted, self.words))


@dataclass(frozen=True)
class Updates:
    """Updates by which Slurm follows a plan."""

    updates: tuple[Update, ...]  # pins to clear first, then new pins, jobs of higher priority first
    without: Mapping[str, str]  # by label, the jobs of the plan that are not pinned, and why
    raised: frozenset[str] = frozenset()  # labels of pinned jobs that are raised until they start


def without_pins(queue: SlurmQueue) -> SlurmQueue:
    """Return a queue in which the jobs have the nodes and comments that they had before pins."""
    return replace(queue, jobs=tuple(map(_original, queue.jobs)))


def clearing(queue: SlurmQueue, keep: Iterable[str] = ()) -> tuple[Update, ...]:
    """Return the updates that take all pins back, but those of the labels in `keep`.

    Those of running jobs stay: Slurm refuses to clear the nodes of a running job. They are lowered
    if they are raised still.
    """
    kept = {*keep}
    return tuple(filter(None, (_cleared(job) for job in queue.jobs if job.label not in kept)))


def lowering(queue: SlurmQueue) -> tuple[Update, ...]:
    """Return the updates that set the nice of raised jobs back, pending or running."""
    return tuple(filter(None, map(_lowered, queue.jobs)))


def pinned(queue: SlurmQueue, *, running: bool = False) -> dict[str, tuple[str, ...]]:
    """Return by label the nodes that pinned jobs require or exclude, pending or running ones."""
    return {
        job.label: job.required or job.excluded
        for job in queue.jobs
        if _field(job) and (job.has_nodes if running else job.state == "PENDING")
    }


def pinned_placements(queue: SlurmQueue, snapshot: SlurmSnapshot) -> Placements | None:
    """Return the pins of earlier plans as placements; None without any that is feasible still.

    `snapshot`: the problem, which is made from the queue `without_pins`.
    """
    problem = snapshot.problem
    index = {name: place for place, name in enumerate(problem.nodes or ())}
    pins = {job.label: job for job in queue.pending if _field(job)}
    nodes = []
    for row, count in zip(snapshot.rows, problem.chunks.tolist()):
        job = pins.get(row.label)
        names = () if job is None else job.required or index.keys() - {*job.excluded}
        at = sorted(index[name] for name in names if name in index)
        nodes.append(tuple(at) if len(at) == count else ())
    placements = Placements(tuple(nodes), tuple(((),) * len(at) for at in nodes))
    return placements if any(nodes) and not problem.violations(placements) else None


def updates_of(
    queue: SlurmQueue,  # the queue as it is, with the pins of earlier plans
    snapshot: SlurmSnapshot,  # the problem, which is made from the queue `without_pins`
    placements: Placements,
    # Labels of jobs that are not pinned this time, as Slurm did not start them on their pins
    unmet: Collection[str] = (),
    raises: Mapping[str, int] = {},  # by label, how far a job is raised if it is pinned
) -> Updates:
    """Return the updates by which Slurm follows a plan."""
    names = snapshot.problem.nodes
    assert names is not None
    as_is = {job.label: job for job in queue.jobs}
    pins: list[tuple[int, Update]] = []
    without: dict[str, str] = {}
    keep = []
    for row, at in zip(snapshot.rows, placements.nodes):
        if not at:
            continue
        nodes = tuple(str(names[node]) for node in dict.fromkeys(at))
        reason = _why_not(row, nodes)
        if row.label in unmet:
            reason = "Slurm did not start it on the nodes of its last pin"
        if reason:
            without[row.label] = reason
            continue
        keep.append(row.label)
        job = as_is.get(row.label, row.job)
        higher = raises.get(row.label, 0)
        field = "required" if _is_fixed(row, nodes) else "excluded"
        if field == "excluded":
            nodes = tuple(str(name) for name in names if name not in {*nodes})
        before = _field(job)
        if higher or before != field or _digest(getattr(job, field)) != _digest(nodes):
            mark = f"optsched:{'-' * (field == 'excluded')}{_digest(nodes)}"
            settings = [f"{NODES[before]}="] if before not in ("", field) else []
            settings.append(f"{NODES[field]}={host_list(nodes)}")
            if higher:
                nice = max(LEAST_NICE, row.job.nice - higher)
                mark += f":{row.job.nice}:{nice}"
                settings.append(f"Nice={nice}")
            settings.append(f"Comment={mark}{row.job.comment and ' '}{row.job.comment}")
            pins.append((row.job.priority, Update(row.label, "pin", job, (*settings,))))
    pins.sort(key=lambda pair: -pair[0])
    updates = (*clearing(queue, keep), *(update for _, update in pins))
    return Updates(updates, without, frozenset(raises.keys() & {*keep}))


def _why_not(row: Row, nodes: tuple[str, ...]) -> str:
    job = row.job
    if job.required:
        return "it requires these nodes itself"
    if job.preferred:  # Slurm holds it where a required node lacks what it prefers
        return f"it prefers {job.preferred}"
    if job.excluded and not _is_fixed(row, nodes):
        return "its number of nodes is not fixed, and it excludes nodes itself"
    if "\0" in job.comment or any("\ud800" <= sign <= "\udfff" for sign in job.comment):
        return "its comment cannot be set back"
    if len(f"{LONGEST_MARK} {job.comment}".encode()) > LONGEST_COMMENT:
        return "its comment has no room for a mark"
    return ""


def _is_fixed(row: Row, nodes: Collection[str]) -> bool:
    """Return whether a job cannot start on more than its planned nodes."""
    job = row.job
    one_task = job.tasks == 1 and not job.per_job
    return len(nodes) == (job.most_nodes or one_task)


def _original(job: QueuedJob) -> QueuedJob:
    """Return a job with the nodes, the nice and the comment that it had before its pin."""
    marked = _MARKED.fullmatch(job.comment)
    if marked is None:
        return job
    field = _field(job)
    job = replace(_as_before(job, marked), comment=marked["comment"] or "")
    if field != "required":
        return replace(job, excluded=()) if field else job
    # after a restart Slurm 24.11 shows no number, of which a pin is evidence
    most = job.most_nodes or (len(job.required) if len(job.required) > 1 else 0)
    return replace(job, required=(), most_nodes=most)


def _as_before(job: QueuedJob, marked: re.Match[str]) -> QueuedJob:
    """Return a job as before it was raised; as it is if somebody else has set its nice since."""
    if marked["since"] is None or int(marked["since"]) != job.nice:
        return job
    before = int(marked["before"])
    return replace(job, nice=before, priority=max(1, job.priority - (before - job.nice)))


def _lowered(job: QueuedJob) -> Update | None:
    """Return the update that sets the nice of a job back; None for a job that is not raised."""
    marked = _MARKED.fullmatch(job.comment)
    ended = job.state != "PENDING" and not job.has_nodes
    if marked is None or marked["since"] is None or ended:
        return None
    nice = _as_before(job, marked).nice
    set_nice = (f"Nice={nice}",) if nice != job.nice else ()
    rest = f" {marked['comment']}" if marked["comment"] else ""
    comment = f"Comment=optsched:{marked['excludes']}{marked['digest']}{rest}"
    return Update(job.label, "lower", job, (*set_nice, comment))


def _field(job: QueuedJob) -> str:
    """Return the field that has the nodes of the pin of a job; empty without a pin."""
    marked = _MARKED.fullmatch(job.comment)
    if marked is None:
        return ""
    field = "excluded" if marked["excludes"] else "required"
    return field if marked["digest"] == _digest(getattr(job, field)) else ""


def _cleared(job: QueuedJob) -> Update | None:
    """Return the update that takes the pin of a job back; None for a job without one."""
    original, field = _original(job), _field(job)
    if original is job or not (job.state == "PENDING" or (job.has_nodes and not field)):
        return _lowered(job)
    settings = [f"{NODES[field]}="] if field else []
    settings += [f"Nice={original.nice}"] if original.nice != job.nice else []
    settings.append(f"Comment={original.comment}")
    return Update(job.label, "clear" if field else "unmark", job, (*settings,))


def _digest(nodes: Iterable[str]) -> str:
    return hashlib.sha256("\n".join(sorted({*nodes})).encode()).hexdigest()[:8]


def _quoted(word: str) -> str:
    """Return a word as a shell reads it, with ``$'...'`` around control characters."""
    if word.isprintable():
        return shlex.quote(word)
    safe = (
        sign
        if sign.isprintable() and sign not in "\\'"
        else "".join(f"\\x{byte:02x}" for byte in sign.encode(errors="surrogatepass"))
        for sign in word
    )
    return f"$'{''.join(safe)}'"
