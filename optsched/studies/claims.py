"""Claims of a paper: each is one number of ours, and the region in which it has to lie.

``claims.toml`` states them, ``study.py`` has the functions that compute the numbers, and one rule
gives the verdict. File format: ``docs/formats/study-folder.md``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from math import inf, isnan, nan
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from optsched.documentation import markdown_row
from optsched.errors import InputError, UnknownNameError
from optsched.folders import Expected, checked
from optsched.numbers import decimals, written
from optsched.studies.intervals import Interval, Noise
from optsched.text_files import read_toml

if TYPE_CHECKING:
    import pandas as pd

FILE = "claims.toml"
HOLDS, OPEN, FAILS, UNJUDGED = "holds", "not decided", "does not hold", "not judged"
MARKS = {HOLDS: "●", OPEN: "○", FAILS: "■", UNJUDGED: "–"}  # shapes in tables and figures

BOUNDS = ("above", "at_least", "below", "at_most")
PUBLISHED = "published"
KEYS: Expected = {
    "key": str, "text": str, "group": str, "of": str, "unit": str, "not_judged": str,
    "panel": bool, "readings": list, PUBLISHED: (str, int, float),
    **dict.fromkeys(BOUNDS, (int, float)),
}  # fmt: skip
"""Keys of a claim with their types; all others are arguments of its functions."""

PARTS = ("low", "high", "half", "n", "smallest")  # of intervals and noise floors, with names

NOTHING = Interval(nan, nan, nan, 0, "none")


class NotRunError(Exception):
    """There are no runs of what is asked for, under a reading for instance."""


class Region(NamedTuple):
    """Where a number has to lie: the ends, and whether they belong to it."""

    low: float = -inf
    high: float = inf
    with_low: bool = False
    with_high: bool = False

    def verdict(self, found: Interval) -> str:
        """Judge a number: by an interval wholly inside or outside; all else is not decided."""
        ends = found[1:3]
        if isnan(found.low) or found.kind == "range":
            return OPEN
        if all(map(self.has, ends)):
            return HOLDS
        apart = found.high <= self.low or found.low >= self.high
        return FAILS if apart and not any(map(self.has, ends)) else OPEN

    def has(self, value: float) -> bool:
        """Return whether a value is in the region."""
        at_end = (self.with_low and value == self.low) or (self.with_high and value == self.high)
        return self.low < value < self.high or at_end


class Claim(NamedTuple):
    """A claim, with the paper's number and what is found under each reading, the main one first."""

    key: str
    group: str
    text: str
    region: Region
    published: float | None
    found: Mapping[str, Interval]
    unit: str = "%"
    not_judged: str = ""
    panel: bool = True

    def verdict(self, reading: str = "") -> str:
        """Return the verdict under a reading, by default the main one."""
        if not self.found:
            return UNJUDGED
        return self.region.verdict(self.found[reading] if reading else self.main)

    @property
    def main(self) -> Interval:
        """Our number under the main reading."""
        return next(iter(self.found.values()))


class Stated(NamedTuple):
    """The content of ``claims.toml``: readings with their words, and the claims as tables."""

    readings: Mapping[str, str]
    claims: Sequence[Mapping[str, Any]]


def read_claims(file: Path) -> Stated:
    """Read the claims of a study; there are none without the file."""
    if not file.is_file():
        return Stated({"": ""}, [])
    table = {"readings": {"main": "the main reading"}, "groups": []} | read_toml(file)
    whole: Expected = {"readings": dict, "groups": list}
    if unknown := sorted(table.keys() - whole):
        raise UnknownNameError("key", unknown[0], whole).within(file)
    readings = checked(table, whole, file)["readings"]
    checked(readings, dict.fromkeys(readings, str), file, "readings")
    claims, mistakes = dict[str, dict[str, Any]](), list[str]()
    for number, group in enumerate(table["groups"], 1):
        usual = {"unit": "%"} | checked(group, {"claims": list}, file, f"groups[{number}]")
        for place, own in enumerate(usual.pop("claims"), 1):
            at = f"groups[{number}].claims[{place}]"
            claim = usual | checked(own, {}, file, at)
            needed = ["key", "text", "group"] + ["of"] * ("not_judged" not in claim)
            by_paper = [k for k in BOUNDS if PUBLISHED in claim and claim.get(k) == PUBLISHED]
            stated = [key for key in KEYS if key in claim and key not in by_paper]
            checked(claim, {key: KEYS[key] for key in (*needed, *stated)}, file, at)
            if "not_judged" not in claim and not any(bound in claim for bound in BOUNDS):
                mistakes.append(f"{at}: no region; expected {', '.join(BOUNDS[:-1])} or at_most")
            if claim["key"] in claims:
                mistakes.append(f"{at}.key: {claim['key']!r} is that of another claim")
            strange = [str(name) for name in claim.get("readings", ()) if name not in [*readings]]
            mistakes += [f"{at}: {UnknownNameError('reading', one, readings)}" for one in strange]
            claims[claim["key"]] = claim
    if mistakes:
        raise InputError(*mistakes, file=file)
    return Stated(readings, [*claims.values()])


def judge(stated: Stated, call: Callable[..., Any]) -> dict[str, Claim]:
    """Compute the number of each claim under its readings, and return the claims by key.

    `call` calls a function of ``study.py`` by its name: with the reading and the arguments of the
    claim for our number, without the reading for a published one.
    """
    judged = {}
    for table in stated.claims:
        own = {key: value for key, value in table.items() if key not in KEYS}
        readings = () if "not_judged" in table else table.get("readings", stated.readings)
        found: dict[str, Interval] = {}
        for reading in readings:
            with suppress(NotRunError):
                found[reading] = one = call(table["of"], reading, **own)
                if not isinstance(one, Interval):
                    wrong = f"{table['of']} returned {one!r}; expected an Interval"
                    raise InputError(wrong, field=table["key"])
        published = table.get(PUBLISHED)
        if isinstance(published, str):
            published = float(call(published, **own))
        bounds = {key: table[key] for key in BOUNDS if key in table}
        bounds |= {key: published for key, bound in bounds.items() if bound == PUBLISHED}
        low = bounds.get("above", bounds.get("at_least", -inf))
        high = bounds.get("below", bounds.get("at_most", inf))
        region = Region(low, high, "at_least" in bounds, "at_most" in bounds)
        texts = (table["key"], table["group"], table["text"])
        why = table.get("not_judged", "" if found else "not run")
        more = (table["unit"], why, table.get("panel", True))
        judged[table["key"]] = Claim(*texts, region, published, found, *more)
    return judged


def named(values: Mapping[str, Any], claims: Mapping[str, Claim]) -> dict[str, Any]:
    """Return all values, also of claims, by the names that a page uses."""
    names = dict(values)
    for key, one in claims.items():
        names |= {f"{key}.verdict": one.verdict(), f"{key}.published": one.published}
        if one.found:
            names[key] = one.main
        for reading, found in one.found.items():
            names |= {f"{key}@{reading}": found, f"{key}@{reading}.verdict": one.verdict(reading)}
    if verdicts := [one.verdict() for one in claims.values()]:
        counts = {"hold": HOLDS, "fail": FAILS, "open": OPEN, "unjudged": UNJUDGED}
        names |= {f"claims.{name}": verdicts.count(one) for name, one in counts.items()}
        names["claims"] = len(verdicts)
    for name, one in list(names.items()):
        if isinstance(one, Interval | Noise):
            ends = (one.low, one.high)
            names |= {f"{name}.{part}": getattr(one, part) for part in PARTS if hasattr(one, part)}
            names |= {name: one.mean, f"{name}±": (one.mean, *ends)}
            names |= dict.fromkeys((f"{name}.interval", f"{name}.range"), ends)
        elif hasattr(one, "item"):
            names[name] = one.item()
    return names


def summary(claims: Mapping[str, Claim], readings: Mapping[str, str]) -> str:
    """Return the table of claims in Markdown: verdict, number, readings that would change it."""
    several = len(readings) > 1 or any(one.not_judged for one in claims.values())
    published = any(one.published is not None for one in claims.values())
    head = ["claim", "verdict", "here (paper)" if published else "here"]
    head += ["another verdict if"] * several
    rows, group = [head, ["---", "---", "---:", "---"][: len(head)]], ""
    for one in claims.values():
        if one.group != group:
            group = one.group
            rows.append([f"**{group}**", *[""] * (len(head) - 1)])
        unit = "" if one.unit[:1] == "%" or one.unit in ("points", "times") else f"&nbsp;{one.unit}"
        here = without_noise(one.main.mean, one.unit) + unit if one.found else "–"
        if one.published is not None:
            here += f" ({without_noise(one.published, one.unit)}{unit})"
        main = one.verdict()
        turned = [
            f"{MARKS[to]}&nbsp;{readings[name]}"
            for name in one.found
            if (to := one.verdict(name)) != main
        ]
        row = [one.text, f"{MARKS[main]}&nbsp;{main}", here]
        rows.append(row + [one.not_judged or ", ".join(turned)] * several)
    return "\n".join(markdown_row(*row) for row in rows)


def frame_of(claims: Mapping[str, Claim], readings: Mapping[str, str]) -> pd.DataFrame:
    """Return the claims as a table, a row for each claim and reading, the main reading first."""
    import pandas as pd

    return pd.DataFrame(
        {
            "key": key, "group": one.group, "claim": one.text, "reading": readings.get(name, name),
            "verdict": one.verdict(name), "published": one.published, "value": found.mean,
            "low": found.low, "high": found.high, "interval": found.how, "unit": one.unit,
            "from": one.region.low if one.region.low > -inf else None,
            "to": one.region.high if one.region.high < inf else None,
        }
        for key, one in claims.items()
        for name, found in (one.found or {"": NOTHING}).items()
    )  # fmt: skip


def without_noise(value: float | None, unit: str) -> str:
    """Write a number of a claim: times below 10 to a hundredth, others to a tenth at most."""
    return written(value, unit, decimals(value or 0.0, unit))


def with_interval(found: Interval, unit: str, edges: Sequence[float] = ()) -> str:
    """Write a number with its interval, if it has one: ``2.73 [−0.04, 5.44]``.

    It has as many digits as tell its ends from each other, and from the edges of a claim.
    """
    ends, more = found[1:3], 0
    if isnan(found.low) or found.low == found.high:
        return without_noise(found.mean, unit).rstrip("%")
    pairs = [ends, *((end, edge) for end in ends for edge in edges)]

    def digits(value: float) -> int:
        return decimals(value, unit) + more * (value != 0)

    while more < 2 and any(a != b and round(a, digits(a)) == round(b, digits(b)) for a, b in pairs):
        more += 1
    mean, low, high = (written(end, "", digits(end)) for end in found[:3])
    return f"{mean} [{low}, {high}]"
