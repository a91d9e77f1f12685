"""The runs: parts of logs under Default and the window, in the blocks of ``plan.toml``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from optsched.studies.content import PLAN, content_of
from optsched.studies.plan import find_log
from optsched.text_files import read_toml
from optsched.traces.trace import Trace

CONTENT = content_of("yang-2014")
TABLE = read_toml(CONTENT / PLAN)

BLUE, INTREPID, MIRA = LOGS = list(TABLE["logs"])
UNITS = {BLUE: "processors", INTREPID: "cores", MIRA: "nodes"}
"""What the nodes of the simulated machine stand for, by log."""

EXACT, GREEDY = SOLVERS = ("branch-and-bound", "greedy")
"""The paper's two algorithms."""

EXCHANGE, GENERIC = "greedy-exchange", "cp-sat"
SEARCH = "depth-first"
"""Branch and bound as in Figure 3 of the paper."""

VARIANTS: Mapping[str, Mapping[str, str]] = TABLE["variants"]
"""Variants that the paper leaves open."""

SHOWN = "backfill"
"""The variant that the tables show: contiguous always, and backfilled as the Default is."""

CONTIGUOUS = "backfill, stated contiguous"
"""The same variant, with the other reading of the run times of the log."""

SCATTERED = "scattered"
"""The allocations whose run times the log states, unless a variant says otherwise."""

WINDOW, INTERVAL = 5, 30.0
"""Jobs of the window, and seconds between two decisions (section V)."""


def plan(folders: Sequence[Path], inputs: Path, *, quick: bool) -> dict[str, Any]:
    """State the sweep."""
    return {"keep": TABLE["keep"], "runs": list(_blocks(folders, quick=quick))}


def _blocks(folders: Sequence[Path], *, quick: bool) -> Iterator[dict[str, Any]]:
    values = TABLE["quick"]["values"] if quick else TABLE["values"]
    parts = (
        TABLE["quick"]["logs"] if quick else {name: TABLE["logs"][name]["jobs"] for name in LOGS}
    )
    sweep = TABLE["sweep"]
    for name, jobs in parts.items():
        log = TABLE["logs"][name]
        where = {
            "trace": str(find_log(log["file"], folders)),
            "machine": log["machine"],
            "jobs": jobs,
            "execution": sweep["execution"],
        }
        of_paper = sweep["read_otherwise"] if name in (BLUE, INTREPID) else ()
        for stated in [*sweep["runs"], *of_paper, *(sweep["varied"] if name == BLUE else ())]:
            block = where | stated
            if block.pop("one_part", False):
                block["jobs"] = jobs[0]
            variant = VARIANTS.get(block.pop("variant", ""), {})
            own = values | {"draws": log.get("draws", values["draws"])}
            settings = _listed(block.pop("settings"), own) | dict(variant)
            yield _listed(block, own) | {"settings": settings}


def _listed(stated: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """Put the lists of `values` in the place of their names."""
    return {
        key: values.get(value, value) if isinstance(value, str) else value
        for key, value in stated.items()
    }


def inputs(folders: Sequence[Path], *, quick: bool) -> Mapping[str, Trace]:
    """Make no traces: the logs are run as they are."""
    return {}
