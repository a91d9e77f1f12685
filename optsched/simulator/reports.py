"""What policies and execution models report when a run is over, checked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from optsched.errors import InputError, brief
from optsched.json_text import json_text
from optsched.schedule import Schedule
from optsched.simulator.execution import ExecutionModel, ExecutionReport
from optsched.simulator.policy import Policy
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
