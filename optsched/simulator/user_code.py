"""The user's policies and execution models: what they report, and their errors as one line each."""

from __future__ import annotations

import logging
import sys
import traceback
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from numbers import Integral
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np

from optsched.errors import InputError, brief
from optsched.files import json_text
from optsched.numbers import counted
from optsched.registry import place_of
from optsched.schedule import Schedule
from optsched.simulator.execution import ExecutionModel, ExecutionReport
from optsched.simulator.policy import Action, Policy, Start
from optsched.simulator.system import System
from optsched.traces.trace import Trace


def policy_report(policy: Policy, system: System) -> tuple[Mapping[str, Any], tuple[str, ...]]:
    """Return the figures and the notes of a policy, after a check of their types."""
    of = f"of policy {policy.name!r}"
    return _figures(policy.figures(system), of), _notes(policy.notes(), of)


def execution_report(
    execution: ExecutionModel, trace: Trace, schedule: Schedule
) -> ExecutionReport:
    """Return the report of an execution model, after a check of its types and lengths."""
    found, of = execution.report(trace, schedule), f"of execution model {execution.name!r}"
    if not isinstance(found, ExecutionReport):
        raise InputError(f"{brief(found)}; expected an ExecutionReport", field=f"report {of}")
    for name, column in _mapping(found.columns, f"columns {of}").items():
        if np.shape(column) != (len(trace),):
            expected = f"expected a value for each of the {len(trace):,} jobs"
            shape = " x ".join(map(str, np.shape(column))) or "no list of"
            raise InputError(f"{shape} values; {expected}", field=f"column {name!r} {of}")
    return ExecutionReport(found.columns, _figures(found.figures, of), _notes(found.notes, of))


def _figures(found: object, of: str) -> Mapping[str, Any]:
    figures = _mapping(found, f"figures {of}")
    for name, value in figures.items():
        try:
            json_text({name: value})
        except (TypeError, ValueError):
            expected = "expected a number, a text, or a list or dict of these"
            raise InputError(f"{brief(value)}; {expected}", field=f"figure {name!r} {of}") from None
    return figures


def _mapping(found: object, field: str) -> Mapping[str, Any]:
    if not isinstance(found, Mapping) or not all(isinstance(name, str) for name in found):
        raise InputError(f"{brief(found)}; expected a dict with names as keys", field=field)
    return found


def _notes(found: object, of: str) -> tuple[str, ...]:
    notes = found if isinstance(found, list | tuple) else (None,)
    if not all(isinstance(note, str) for note in notes):
        raise InputError(f"{brief(found)}; expected a list or tuple of texts", field=f"notes {of}")
    return tuple(notes)


def refused(
    error: Exception,
    policy: Policy,
    execution: ExecutionModel | None,
    system: System,
    action: Action,
    actions: Iterable[Action],
) -> Exception:
    """Return the error of an action that a user's policy must not take, or the same error.

    The generator `actions` still stands at the line that has yielded the action.
    """
    if isinstance(error, InputError) or not _is_of_user(policy):
        return error
    if execution is not None and place_of(error, type(execution)):
        return error
    reason = f"{type(error).__name__}: {error}"
    if isinstance(action, Start):
        reason = _why_not_started(error, system, action.job)
    frame: FrameType | None = getattr(actions, "gi_frame", None)
    if frame is not None and frame.f_code.co_filename == _file_of(policy):
        reason += f" ({Path(_file_of(policy)).name}, line {frame.f_lineno})"
    return _failed(error, f"policy {policy.name}", system, reason)


def _why_not_started(error: Exception, system: System, job: object) -> str:
    """Return why a job does not start, with the processors that it wants and that are free."""
    if not isinstance(job, Integral) or not 0 <= int(job) < len(system.job_id):
        rows = f"0 to {len(system.job_id) - 1}"
        return f"Start({job!r}) names no job; expected a row of the trace, {rows}"
    job = int(job)
    why = str(error)
    wanted, free = system.processors[job], system.machine.free
    if job in system.running:
        why = "it runs"
    elif system.start[job] is not None:
        why = "it has ended"
    elif system.submit[job] > system.now:
        why = f"it is submitted at {system.submit[job]:.15g} s"
    elif wanted > free:
        of_all = f"{free:,} of {system.machine.size:,} are free"
        why = f"it wants {counted(wanted, 'processor')}, {of_all}"
    return f"cannot start job {system.job_id[job]}: {why}"


@contextmanager
def explaining(
    policy: Policy, execution: ExecutionModel | None, system: System | None = None
) -> Iterator[None]:
    """Turn errors that the user's code raises in the context into one line each.

    Without a system, the run is over.
    """
    try:
        yield
    except InputError:
        raise
    except Exception as error:
        reason = f"{type(error).__name__}: {error}"
        for noun, part in (("execution model", execution), ("policy", policy)):
            if part is not None and (place := place_of(error, type(part))):
                who = f"{noun} {part.name}"
                raise _failed(error, who, system, f"{reason} ({place})") from error
        frames = traceback.extract_tb(error.__traceback__)
        if _is_of_user(policy) and any(frame.name.startswith("_decide") for frame in frames):
            raise _failed(error, f"policy {policy.name}", system, reason) from error
        raise


def _is_of_user(policy: Policy) -> bool:
    return not type(policy).__module__.startswith("optsched.")


def _failed(error: Exception, who: str, system: System | None, reason: str) -> InputError:
    logging.getLogger("optsched").debug("in %s:", who, exc_info=error)
    when = "at the end of the run" if system is None else f"at {system.now:.15g} s"
    return InputError(f"{who} failed {when}: {reason}")


def _file_of(policy: Policy) -> str:
    return str(getattr(sys.modules.get(type(policy).__module__), "__file__", ""))
