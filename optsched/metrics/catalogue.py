"""The measures of the summary of a run, by key."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from optsched import registry
from optsched.metrics.jobs import MEASURES
from optsched.metrics.measure import Group, Measure


def measures_of(config: Mapping[str, Any]) -> dict[str, Measure]:
    """Return the measures of a run, by their keys in its summary.

    They are those of the jobs, of all metrics, and of the policy and the execution model that the
    config names, unless these are in no registry.
    """
    owners: list[Any] = [registry.metrics[name] for name in registry.metrics]
    for known, name in (
        (registry.policies, config["policy"]),
        (registry.executions, config.get("execution")),
    ):
        if name is not None and name in known:
            owners.append(known[name])
    return MEASURES | {key: one for owner in owners for key, one in owner.measures.items()}


def unstated(key: str) -> Measure:
    """Return the measure of a key that nobody states: its name is the key, its unit unknown."""
    return Measure(key.replace("_", " "), "", Group.OTHER, "")
