"""The page of a study from its template: Jinja2 for numbers, Markdown headings for the order.

Template format: ``docs/how-to/add-a-study.md``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from optsched.durations import short
from optsched.errors import InputError
from optsched.numbers import counted
from optsched.report.page import Figure, Page, Section, Table, cell
from optsched.studies.judging import Claim
from optsched.studies.paired import percent, signed
from optsched.studies.results import ALL

Record = dict[Any, Any]
"""A row of a table: a value by the heading of each column, which is a text or a pair of texts."""

PART = re.compile("\x02(\\d+)\x03")
"""The place of a table or figure in the text of a page."""


def page_from(
    template: Path,
    values: Mapping[str, Any],
    pictures: Mapping[str, str],
    versions: Mapping[str, str],
    repeat: str,
) -> Page:
    """Make a page from a template and the values of the names that it uses.

    Parameters
    ----------
    pictures : mapping of str to str
        The SVG of each figure; a figure without one is left out.
    versions : mapping of str to str
        The versions of the packages that the runs were made with.
    repeat : str
        The command that makes the page again.

    Raises
    ------
    InputError
        If the template is missing, cannot be parsed, or uses a name without a value.
    """
    from jinja2 import Environment, FileSystemLoader, StrictUndefined, TemplateError
    from jinja2.exceptions import TemplateNotFound

    parts: list[Table | Figure] = []

    def keep(part: Table | Figure) -> str:
        parts.append(part)
        return f"\n\n\x02{len(parts) - 1}\x03\n\n"

    def table(records: Sequence[Record], caller: Callable[[], str]) -> str:
        columns = list(records[0]) if records else []
        rows = [list(record.values()) for record in records]
        return keep(Table(" ".join(paragraphs(caller())), columns, rows))

    def figure(name: str, caller: Callable[[], str]) -> str:
        if name not in pictures:
            return ""
        caption, alternative = paragraphs(caller())
        return keep(Figure(name, pictures[name], alternative, caption))

    environment = Environment(
        loader=FileSystemLoader(template.parent),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "form": format,
        "number": lambda value: cell(value).text,
        "percent": percent,
        "signed": signed,
        "short": short,
        "sentence": sentence,
    }
    known = {"table": table, "figure": figure, "claims_table": claims_table, "counted": counted}
    try:
        text = environment.get_template(template.name).render(known | dict(values))
    except TemplateNotFound:
        raise InputError("missing; expected the template of the page", file=template) from None
    except TemplateError as error:
        line = getattr(error, "lineno", None)
        raise InputError(f"{error}; expected a Jinja2 template", file=template, line=line) from None
    title, lead, sections = "", [], list[Section]()
    for paragraph in paragraphs(text):
        place = PART.fullmatch(paragraph)
        if paragraph.startswith("# "):
            title = paragraph[2:]
        elif paragraph.startswith("## "):
            sections.append(Section(paragraph[3:], []))
        elif not sections:
            lead.append(paragraph)
        else:
            part = parts[int(place[1])] if place else paragraph
            sections[-1] = replace(sections[-1], parts=[*sections[-1].parts, part])
    whole = [section for section in sections if section.parts]
    first, *summary = lead or [""]
    return Page(title, first, whole, repeat=repeat, versions=versions, summary=summary)


def paragraphs(text: str) -> list[str]:
    """Split a text at blank lines, each paragraph on one line.

    A loop may leave blanks before its punctuation; these go.
    """
    blocks = (" ".join(block.split()) for block in re.split(r"\n\s*\n", text))
    return [re.sub(r" ([,;.:])(?= |$)", r"\1", block) for block in blocks if block]


def sentence(text: str, begin: bool = True) -> str:
    """Write the first letter in upper case, where a sentence begins."""
    return text[:1].upper() + text[1:] if begin else text


def claims_table(claims: Iterable[Claim], variants: Sequence[str]) -> list[Record]:
    """Make a record of each claim: its text, the published numbers, and a verdict per variant.

    A verdict on `ALL` alone, such as why a claim cannot be judged, stands in the first column.
    """
    records: list[Record] = []
    for claim in claims:
        found = claim.judgements
        if found.keys() == {ALL}:
            found = {variants[0]: found[ALL]}
        shown = {name: found[name].shown if name in found else None for name in variants}
        records.append({"claim": claim.text, "published": claim.published, **shown})
    return records
