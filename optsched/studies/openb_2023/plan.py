"""The parts of the study and the ways to answer, from ``plan.toml``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from optsched.studies.content import PLAN, content_of
from optsched.studies.plan import find_log
from optsched.text_files import read_toml

CONTENT = content_of("openb-2023")
TABLE = read_toml(CONTENT / PLAN)
PUBLISHED = read_toml(CONTENT / "published.toml")

BUSY, WHOLE, ARRIVALS, BATCHES, LEAVING, SWITCHES = PARTS = tuple(TABLE["full"])
"""The names of the parts."""


FILES = (TABLE["nodes"], TABLE["topology"], *TABLE["lists"].values())
"""The names of the files of the study."""


class Way(NamedTuple):
    """A way to place pods: a solver with options, asked where the way `after` leaves pods out."""

    name: str
    solver: str
    options: Mapping[str, Any] = {}
    after: Way | None = None


RULES = [Way(**rule) for rule in TABLE["rules"]]
"""FGD, and five more rules."""

IN_ORDER = [rule for rule in RULES if "order" not in rule.options]
"""Those that place the pods in the order of their arrival."""

FGD, FEW_TYPES, EXACT = RULES[0], Way(**TABLE["few_types"]), Way(**TABLE["exact"])
FORECAST = EXACT._replace(name="exact with a forecast")
LEFT_OUT = EXACT._replace(name="exact where FGD leaves pods out", after=FGD)
OF_SWITCHES = [Way(**way) for way in TABLE["switches"]]


def part(name: str, *, quick: bool) -> dict[str, Any]:
    """Return the settings of a part."""
    found: dict[str, Any] = TABLE["full"][name]
    return found | TABLE["quick"][name] if quick else found


def files(folders: Sequence[Path]) -> list[Path]:
    """Find the files of the study."""
    return [find_log(file, folders) for file in FILES]
