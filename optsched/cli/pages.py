"""Generated tables of the documentation: options, keys of sweep files, names, verdicts of studies.

``python -m optsched.cli.pages`` writes them to the folder ``docs`` and the README from the
declarations and the results of studies, see `write_pages`.
"""

from __future__ import annotations

import csv
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

from optsched import registry
from optsched.cli import build
from optsched.content import bundled
from optsched.documentation import between_marks, first_line, markdown_table
from optsched.files import write_text
from optsched.metrics.jobs import MEASURES
from optsched.metrics.measure import Group
from optsched.settings import settings_of
from optsched.simulator.scenario import described
from optsched.solvers.finding import classes_of
from optsched.solvers.solver import Heuristic
from optsched.studies.claims import FAILS, HOLDS, OPEN, UNJUDGED
from optsched.studies.folder import PAGE, PLAN, study_plans
from optsched.sweeps.sweep_file import KEYS

Rows = Iterator[tuple[str, ...]]


def options(command: str) -> Rows:
    """Yield the rows of the table of a command's options, the heading first."""
    yield "option", "meaning"
    for argument in build()[command].assemble_argument_collection(parse_docstring=True):
        default = argument.field_info.default
        names = argument.names[:1] if default is False else argument.names
        words = " ".join((argument.parameter.help or "").split())
        if choices := argument.get_choices():
            words += f" One of {', '.join(f'`{choice}`' for choice in choices)}."
        words += _default(names[0] if default is True else default)
        yield ", ".join(f"`{name}`" for name in names), words


def keys() -> Rows:
    """Yield the rows of the table of the keys of a sweep file, the heading first."""
    yield "key", "value", "meaning"
    helps = described()
    for name, option in KEYS.items():
        yield f"`{name}`", option.expected, helps[name] + _default(option.default)
    yield "`[settings]`", "a table", "The settings of the policy and of the execution model."


def solvers() -> Rows:
    """Yield the rows of the table of solvers by model, the heading first."""
    yield (
        *("model", "solver", "method", "exact", "options"),
        *("unit of work", "seconds per unit", "work limit in a simulation"),
    )
    classes = chain.from_iterable(map(classes_of, registry.solvers))
    for cls in sorted(classes, key=lambda cls: (sorted(cls.models or ()), cls.name)):
        models = ", ".join(map(_model_page, cls.models or ()))
        yield (
            models or ("all" if cls.models is None else "[one function](how-to/add-a-model.md)"),
            f"`{cls.name}`",
            first_line(cls),
            "yes" if cls.exact else "",
            ", ".join(f"`{option.name}={option.default}`" for option in settings_of(cls)),
            cls.work_unit,
            f"{cls.seconds_per_work:g}",
            "" if issubclass(cls, Heuristic) else f"{cls.default_work:,.10g}",
        )


def measures() -> Rows:
    """Yield the rows of the table of the measures of a summary, by group, the heading first."""
    yield "key", "name on pages", "unit", "meaning", "with"
    owners: dict[str, list[str]] = {}
    stated = dict(MEASURES)
    for noun, known in (
        ("metric", registry.metrics),
        ("policy", registry.policies),
        ("execution model", registry.executions),
    ):
        for name in known:
            for key, measure in known[name].measures.items():
                owners.setdefault(key, []).append(f"{noun} `{name}`")
                stated[key] = measure
    for group in Group:
        for key, measure in stated.items():
            if measure.group == group:
                unit = f"{measure.unit}, by {measure.by}" if measure.by else measure.unit
                yield (
                    f"`{key}`",
                    measure.name,
                    unit,
                    measure.meaning,
                    ", ".join(owners.get(key, ())),
                )


def policies() -> Rows:
    """Yield the rows of the table of policies, the heading first."""
    yield "policy", "what it does", "problems", "machines"
    for cls in registry.policies.values():
        problems = ", ".join(map(_model_page, cls.models))
        yield f"`{cls.name}`", first_line(cls), problems, ", ".join(sorted(cls.machines))


def models() -> Rows:
    """Yield the rows of the table of models, the heading first."""
    yield "model", "what it decides", "default solver"
    for cls in registry.models.values():
        yield _model_page(cls.name), first_line(cls), f"`{cls.default_solver}`"


def names(kind: registry.Registry[Any]) -> Rows:
    """Yield the rows of the table of what is registered as of one kind, the heading first."""
    yield "name", "what it is"
    for name in kind:
        yield f"`{name}`", first_line(kind[name])


def studies() -> Rows:
    """Yield the rows of the table of studies, the heading first."""
    yield "name", "what it is"
    for name, plan in sorted(study_plans().items()):
        yield f"`{name}`", plan.get("title", "")


def verdicts(folders: Path | None = None) -> Rows:
    """Yield a row for each study of a paper, by the main reading of each claim, the heading first.

    `folders` is the folder of the studies, by default that of the clone.
    """
    yield "study", "claims", "hold", "do not hold", "not decided", "not judgeable"
    for file in sorted((folders or bundled("studies")).glob("*/results/claims.csv")):
        study = file.parents[1]
        if "paper" not in tomllib.loads((study / PLAN).read_text("utf-8")):
            continue
        with file.open(newline="", encoding="utf-8") as lines:
            main = {row["key"]: row["verdict"] for row in reversed([*csv.DictReader(lines)])}
        counts = Counter(main.values())
        numbers = (counts.total(), *(counts[one] for one in (HOLDS, FAILS, OPEN, UNJUDGED)))
        yield f"[{study.name}](studies/{study.name}/{PAGE})", *map(str, numbers)


PAGES: Mapping[str, Mapping[str, Callable[[], Rows]]] = {
    "commands/simulate.md": {"options": partial(options, "simulate")},
    "commands/solve.md": {"options": partial(options, "solve")},
    "commands/study.md": {"options": partial(options, "study")},
    "commands/sweep.md": {"options": partial(options, "sweep")},
    "formats/run-folder.md": {"measures": measures},
    "formats/sweep-file.md": {"keys": keys},
    "included.md": {
        "policies": policies,
        "machines": partial(names, registry.machines),
        "executions": partial(names, registry.executions),
        "workloads": partial(names, registry.workloads),
        "formats": partial(names, registry.readers),
        "studies": studies,
    },
    "models.md": {"models": models},
    "solvers.md": {"solvers": solvers},
    "../README.md": {"verdicts": verdicts},
}
"""The names of the tables of each page, and the functions that yield their rows."""


def with_tables(page: str, text: str) -> str:
    """Return the text of one of `PAGES` with its tables between the marks."""
    for name, rows in PAGES[page].items():
        text = between_marks(text, name, markdown_table(rows()))
    return text


def write_pages(folder: Path) -> None:
    """Write the tables to the pages in `folder`."""
    for page in PAGES:
        file = folder / page
        text = with_tables(page, file.read_text(encoding="utf-8"))
        write_text(file, text)


def _default(value: object) -> str:
    """Return a sentence on the default value of an option; empty for None, False and no default."""
    return f" By default `{value}`." if isinstance(value, str | int) and value else ""


def _model_page(name: str) -> str:
    return f"[{name}](../models/{name}/README.md)"


if __name__ == "__main__":
    write_pages(Path("docs"))
