"""Errors in the user's policies and execution models, as one line: who, when, which job, where."""

from __future__ import annotations

import logging
import sys
import traceback
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from numbers import Integral
from pathlib import Path
from types import FrameType

from optsched.class_file import place_of
from optsched.errors import InputError
from optsched.numbers import counted
from optsched.simulator.actions import Action, Start
from optsched.simulator.execution import ExecutionModel
from optsched.simulator.policy import Policy
from optsched.simulator.system import System


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
    except Exception as error:
        found = _explained(error, policy, execution, system)
        if found is error:
            raise
        raise found from error


def _explained(
    error: Exception, policy: Policy, execution: ExecutionModel | None, system: System | None
) -> Exception:
    """Return the error of the user's code that raised an error, or the same error if none did."""
    if isinstance(error, InputError):
        return error
    for noun, part in (("execution model", execution), ("policy", policy)):
        if part is not None and (place := place_of(error, type(part))):
            reason = f"{type(error).__name__}: {error} ({place})"
            return _failed(error, f"{noun} {part.name}", system, reason)
    frames = traceback.extract_tb(error.__traceback__)
    if _is_of_user(policy) and any(frame.name.startswith("_decide") for frame in frames):
        return _failed(error, f"policy {policy.name}", system, f"{type(error).__name__}: {error}")
    return error


def _is_of_user(policy: Policy) -> bool:
    return not type(policy).__module__.startswith("optsched.")


def _failed(error: Exception, who: str, system: System | None, reason: str) -> InputError:
    logging.getLogger("optsched").debug("in %s:", who, exc_info=error)
    when = "at the end of the run" if system is None else f"at {system.now:.15g} s"
    return InputError(f"{who} failed {when}: {reason}")


def _file_of(policy: Policy) -> str:
    return str(getattr(sys.modules.get(type(policy).__module__), "__file__", ""))
