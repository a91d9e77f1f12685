"""Pages of reports as Markdown, for a repository or a website that renders it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from optsched.report.page import (
    REPEAT,
    Cell,
    Facts,
    Figure,
    Fold,
    Heading,
    Page,
    Part,
    Section,
    Table,
)

SPECIAL = re.compile(r"[\\`*<>~$\[\]|]")
"""Characters of a text that would be markup."""


def markdown(page: Page) -> str:
    """Return a page as Markdown with tables, as GitHub has them.

    A figure is a link to the file of its name, with the suffix ``.svg``, in the same folder.
    """
    return "\n\n".join(_blocks(page)) + "\n"


def _blocks(page: Page) -> Iterator[str]:
    yield f"# {_literal(page.title)}"
    yield from map(_literal, (page.lead, *page.summary))
    yield from _sections(page.sections)
    yield f"## {REPEAT}"
    yield f"```\n{page.repeat}\n```" if page.repeat else "No command repeats this."
    yield ", ".join(f"{name} {version}" for name, version in page.versions.items())
    yield from _sections(page.appendix)


def _sections(sections: Iterable[Section]) -> Iterator[str]:
    for section in sections:
        yield f"## {_literal(section.title)}"
        yield from _parts(section.parts)


def _parts(parts: Iterable[Part]) -> Iterator[str]:
    for part in parts:
        if isinstance(part, str):
            yield _literal(part)
        elif isinstance(part, Facts):
            yield "\n".join(f"- {_literal(name)}: {_shown(value)}" for name, value in part.cells)
        elif isinstance(part, Figure):
            yield f"![{_literal(part.alt)}]({part.name}.svg)"
            yield f"*{_literal(part.caption)}*"
        elif isinstance(part, Heading):
            yield f"### {_literal(part.title)}"
        elif isinstance(part, Fold):
            yield f"*{_literal(part.label)}*"
            yield from _parts(part.parts)
        else:
            yield f"*{_literal(part.caption)}*"
            yield _table(part)


def _table(table: Table) -> str:
    labels = [
        f"{group}: {one.label}".removeprefix(": ") for group, of in table.header for one in of
    ]
    rules = ["---:" if numeric else "---" for numeric in table.numeric]
    rows = [[_shown(cell) for cell in row] for row in table.cells]
    lines = ([_literal(label) for label in labels], rules, *rows)
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _shown(cell: Cell) -> str:
    """Return the text of a cell, a verdict in bold type, and its note."""
    text = f"**{_literal(cell.text)}**" if cell.verdict else _literal(cell.text)
    return f"{text} ({_literal(cell.note)})" if cell.note else text


def _literal(text: str) -> str:
    """Escape what would be markup."""
    return SPECIAL.sub(r"\\\g<0>", text)
