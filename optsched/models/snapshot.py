"""Snapshots: problems with their origin and their known results."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from optsched.errors import InputError, UnknownNameError
from optsched.models.problem import Problem
from optsched.numbers import LARGEST
from optsched.registry import models

FORMAT = 1

SCALE = "objective_scale"
"""Entry of an origin: what the objective of the file was multiplied by, to be an integer."""

KNOWN = ("objective", "bound", "solution", "infeasible", "source")
"""Keys of the known results."""

DEEPEST = 20
"""Most levels of nested lists and objects in the free-form fields."""


@dataclass(frozen=True, slots=True, repr=False)
class Snapshot:
    """A problem with its origin and its known results.

    Parameters
    ----------
    problem : Problem
        The problem.
    origin : mapping
        Origin of the problem: trace, policy, simulated time, number of the decision; or a citation.
    known : mapping
        Known results: ``objective`` and ``bound`` (equal when the optimum is proven), ``solution``
        in the model's JSON form, ``infeasible`` (true when it is proven that no solution exists),
        ``source``.
    options : mapping
        Options of solvers by name, each for those solvers that have it: the settings of the policy
        that posed the problem.
    """

    problem: Problem[Any]
    origin: Mapping[str, Any] = field(default_factory=dict)
    known: Mapping[str, Any] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"<Snapshot {self.problem.name} {self.problem.size}>"

    @property
    def scale(self) -> int:
        """What the objective of the original file was multiplied by; 1 if it was not."""
        scale = self.origin.get(SCALE)
        return scale if type(scale) is int and 0 < scale <= LARGEST else 1

    def describe_origin(self) -> list[tuple[str, str]]:
        """Return the origin as lines for people."""
        lines = [(name, str(value)) for name, value in self.origin.items() if name != SCALE]
        if self.scale > 1:
            lines.append(("scaled", f"the objective is {self.scale} times that of the file"))
        return lines

    def to_json(self) -> dict[str, Any]:
        """Return the object that is written to file."""
        written: dict[str, Any] = {"kind": self.problem.name, "format": FORMAT}
        if self.origin:
            written["origin"] = dict(self.origin)
        if self.options:
            written["options"] = dict(self.options)
        written |= self.problem.to_json()
        if self.known:
            written["known"] = dict(self.known)
        return written

    @classmethod
    def from_json(cls, fields: Any) -> Snapshot:
        """Build a snapshot from the object on file.

        Raises
        ------
        InputError
            If there are mistakes; the message lists all of them.
        """
        if not isinstance(fields, dict):
            raise InputError("expected a JSON object with a kind and the fields of the problem")
        if not isinstance(fields.get("kind"), str):
            raise InputError("expected the kind of problem, a string", field="kind")
        if fields["kind"] not in models:
            origin = fields.get("origin")
            home = origin.get("model") if isinstance(origin, dict) else None
            file = home.get("file") if isinstance(home, dict) else None
            if not isinstance(file, str):
                raise models.unknown(fields["kind"])
            expected = f"expected --model {file}, which runs it"
            raise InputError(f"model {fields['kind']!r} is one of {file}; {expected}")
        mistakes = []
        version = fields.get("format", FORMAT)
        if type(version) is not int or version != FORMAT:
            mistakes.append(f"format: {fields['format']!r}; this version reads format {FORMAT}")
        about = {name: fields.get(name, {}) for name in ("origin", "known", "options")}
        mistakes += [
            f"{name}: expected an object" for name in about if not isinstance(about[name], dict)
        ]
        mistakes += [
            f"{name}: nested deeper than {DEEPEST} levels"
            for name, value in about.items()
            if _is_deeper(value, DEEPEST)
        ]
        if isinstance(about["known"], dict):
            mistakes += [
                f"known.{name}: {UnknownNameError('key', name, KNOWN)}"
                for name in about["known"]
                if name not in KNOWN
            ]
        outer = {"kind", "format", *about}
        inner = {name: value for name, value in fields.items() if name not in outer}
        former = {
            name: inner.pop(name) for name in models[fields["kind"]].former_options if name in inner
        }
        if isinstance(about["options"], dict):
            mistakes += [
                f"{name}: also among the options; expected once"
                for name in former
                if name in about["options"]
            ]
            about["options"] = former | about["options"]
        try:
            problem = models[fields["kind"]].from_json(inner)
        except InputError as error:
            mistakes += error.mistakes
        if mistakes:
            raise InputError(*mistakes)
        return cls(problem, **about)


def snapshot_schema(kind: str) -> dict[str, Any]:
    """Return the JSON Schema of the snapshots of a model, draft 2020-12.

    `Snapshot.from_json` refuses all that the schema refuses, and also mistakes that a schema cannot
    express: overlapping boxes, or lists of different lengths.
    """
    model = models[kind]
    if not has_schema(kind):
        raise InputError(f"model {kind!r} declares no fields, so it has no schema")
    fields = model.schema.json_schema()
    about = {
        "kind": {"description": "the model", "const": kind},
        "format": {"description": "version of the format", "const": FORMAT, "default": FORMAT},
        "origin": {"description": "where the snapshot came from", "type": "object"},
        "known": {"description": "known objective, bound and solution", "type": "object"},
        "options": {"description": "options of solvers, by name", "type": "object"},
    }
    for name in model.former_options:
        about[name] = {"description": "an option, as written by version 0.1.0", "deprecated": True}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"snapshot of {kind}",
        **fields,
        "properties": about | fields["properties"],
        "required": ["kind", *fields["required"]],
        "additionalProperties": False,
    }


def has_schema(kind: str) -> bool:
    """Return whether a model declares its fields; a plug-in need not."""
    return hasattr(models[kind], "schema")


def _is_deeper(value: Any, levels: int) -> bool:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return any(levels == 1 or _is_deeper(part, levels - 1) for part in inner)
