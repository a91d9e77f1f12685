"""The fields of a migration: what they may hold, on file and in the problem."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from optsched.boxes.box import Box, box_of_text
from optsched.models.fields import LARGEST, FieldChecks
from optsched.models.torus_fields import OPTIONAL as OF_TORUS
from optsched.models.torus_fields import TorusFields, check_apart, check_boxes, check_torus

REQUIRED = ("torus", "running", "sizes", "elapsed", "incoming")
OPTIONAL = (*OF_TORUS, "movable", "shapes", "running_jobs", "incoming_job")

PARKED = "parked"
"""What a job is in a step of a plan on file that gives it no box."""

MOST_NODES = 10**6 * 64**3
"""Nodes of the largest torus."""


class Fields(NamedTuple):
    """What `optsched.models.migration.Migration` is made of besides its torus, see there."""

    running: Any = ()
    sizes: Any = ()
    elapsed: Any = ()
    incoming: Any = 1
    movable: Any = None
    shapes: Any = None
    running_jobs: Any = None
    incoming_job: Any = None


def check_fields(
    check: FieldChecks, torus: TorusFields, fields: Fields, *, whole: bool = True
) -> tuple[TorusFields, Fields]:
    """Return the fields as plain values; note every mistake in them.

    Parameters
    ----------
    check : FieldChecks
        Where mistakes are noted.
    torus, fields
        As they were given; jobs in `movable` count from 0.
    whole : bool
        Whether all fields were given, so that they can be compared.
    """
    before = len(check.mistakes)
    read = check_torus(check, torus)
    sound = len(check.mistakes) == before
    running = check_boxes(check, "running", fields.running, read.grid if sound else None)
    sizes = tuple(check.integers("sizes", fields.sizes, at_least=1).tolist())
    elapsed = tuple(check.integers("elapsed", fields.elapsed, at_least=0).tolist())
    incoming = _count(check, "incoming", fields.incoming, MOST_NODES)
    shapes = None
    if fields.shapes is not None:
        shapes = _count(check, "shapes", fields.shapes, LARGEST)
    running_jobs = check.labels("running_jobs", fields.running_jobs)
    incoming_job = fields.incoming_job
    if incoming_job is not None and type(incoming_job) not in (int, str):
        check.mistakes.append(f"incoming_job: {incoming_job!r}; expected a text or an integer")
        incoming_job = None
    movable = _movable(check, fields.movable, len(running) if whole else None)
    if whole:
        for name, values in (
            ("sizes", sizes),
            ("elapsed", elapsed),
            ("running_jobs", running_jobs),
        ):
            if values is not None:
                check.same_length(name, values, "running", running)
    plain = Fields(running, sizes, elapsed, incoming, movable, shapes, running_jobs, incoming_job)
    if whole and len(check.mistakes) == before:
        _check_jobs(check, read, plain)
        check_apart(check, "running", running, running_jobs, read)
    return read, plain


def from_file(check: FieldChecks, fields: Mapping[str, Any]) -> tuple[TorusFields, Fields]:
    """Return the fields of a snapshot as plain values; jobs in `movable` count from 1 there."""
    check.names(fields, required=REQUIRED, optional=OPTIONAL)
    known = {name: fields[name] for name in (*REQUIRED, *OPTIONAL) if name in fields}
    whole = all(name in known for name in REQUIRED)
    movable = known.get("movable")
    if isinstance(movable, list):
        known["movable"] = [job - 1 if type(job) is int else job for job in movable]
    torus = TorusFields(
        **{"torus": (64, 64, 64)} | {n: known[n] for n in TorusFields._fields if n in known}
    )
    rest = Fields(**{name: known[name] for name in Fields._fields if name in known})
    return check_fields(check, torus, rest, whole=whole)


def _count(check: FieldChecks, name: str, value: Any, most: int) -> int:
    if hasattr(value, "dtype") and value.dtype.kind in "iu" and value.ndim == 0:
        value = int(value)
    if type(value) is int and 1 <= value <= most:
        return value
    check.mistakes.append(f"{name}: {value!r}; expected an integer from 1 to {most}")
    return 1


def _movable(check: FieldChecks, values: Any, jobs: int | None) -> tuple[int, ...] | None:
    """Return the numbers in ascending order, each once."""
    if values is None:
        return None
    plain = values.tolist() if hasattr(values, "tolist") else values
    numbers = isinstance(plain, list | tuple) and all(type(job) is int for job in plain)
    if not numbers:
        check.mistakes.append("movable: expected a list of numbers of running jobs, from 1")
        return None
    wrong = [
        f"movable[{place}]: {job + 1}; expected a running job, from 1"
        + ("" if jobs is None else f" to {jobs}")
        for place, job in enumerate(plain)
        if job < 0 or (jobs is not None and job >= jobs)
    ]
    check.note("movable", wrong)
    return tuple(sorted(set(plain)))


def _check_jobs(check: FieldChecks, torus: TorusFields, fields: Fields) -> None:
    """Note running jobs that do not fit into their boxes, and those that cost too much."""
    labels = fields.running_jobs or range(1, len(fields.running) + 1)
    small, dear = [], []
    for place, (box, size, elapsed, label) in enumerate(
        zip(fields.running, fields.sizes, fields.elapsed, labels)
    ):
        held = box.volume * torus.nodes_per_router
        if size > held:
            small.append(
                f"sizes[{place}]: job {label} of {size} nodes has {held} in {box} "
                f"(nodes_per_router: {torus.nodes_per_router})"
            )
        if size * elapsed > LARGEST:
            dear.append(
                f"elapsed[{place}]: job {label} costs {size * elapsed} node-seconds; "
                f"expected at most {LARGEST}"
            )
    check.note("sizes", small)
    check.note("elapsed", dear)


def plan_from_file(
    check: FieldChecks, fields: Any
) -> tuple[list[tuple[int, Box | None]], Box | None]:
    """Return the steps of a plan on file, jobs from 0, and the box of the large job."""
    given = fields if isinstance(fields, Mapping) else {}
    steps = given.get("steps")
    read = [_step(step) for step in steps] if isinstance(steps, list) else [None]
    if None in read:
        expected = f"expected a list of steps such as [3, '2x4x4@3,0,22'] or [3, {PARKED!r}]"
        check.mistakes.append(f"steps: {expected}")
    text = given.get("place")
    place = box_of_text(text) if isinstance(text, str) else None
    if place is None and text is not None:
        check.mistakes.append(f"place: {text!r}; expected a box such as '2x4x4@3,0,22'")
    return [step for step in read if step is not None], place


def _step(written: Any) -> tuple[int, Box | None] | None:
    if not isinstance(written, list) or len(written) != 2 or type(written[0]) is not int:
        return None
    if written[1] == PARKED:
        return written[0] - 1, None
    box = box_of_text(written[1]) if isinstance(written[1], str) else None
    return None if box is None else (written[0] - 1, box)
