"""What is run: in each world the systems that can run there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from optsched.studies.systems.site import Site
from optsched.studies.systems.worlds import worlds


def plan(site: Site, inputs: Path) -> dict[str, Any]:
    """Return what is run, as a sweep reads it; the jobs of each run are kept.

    Parameters
    ----------
    site : Site
        The log, and its machine.
    inputs : path
        The folder that will have the traces, as seen from that of the study.
    """
    runs = []
    for world in worlds(site):
        for system in world.systems.values():
            run: dict[str, Any] = {
                "trace": str(inputs / world.trace),
                "machine": world.machine,
                "policy": system.policy,
                "large_from": world.large_from,
            }
            chosen = {
                "execution": world.execution,
                "solver": system.solver,
                "settings": {**world.settings, **system.settings},
            }
            runs.append(run | {key: value for key, value in chosen.items() if value})
    return {"keep": "jobs", "runs": runs}
