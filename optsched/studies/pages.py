"""Generated table of the README: the verdicts on the claims of papers.

``python -m optsched.studies.pages`` counts them in the results of studies.
"""

from __future__ import annotations

import csv
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path

from optsched.files import write_text
from optsched.models.pages import between_marks
from optsched.models.schema import markdown_row
from optsched.report.page import Verdict
from optsched.studies.folder import PLAN
from optsched.studies.results import ALL
from optsched.text_files import read_toml

README = Path("README.md")
RESULTS, FOLDERS = Path("docs/results"), Path("studies")
HEADING = (
    "study",
    "claims",
    "hold",
    "hold partly or under one reading",
    "do not hold",
    "not decided",
    "not judgeable",
)


def verdicts(results: Path, folders: Path) -> Iterator[tuple[str, ...]]:
    """Yield a row for each study whose claims are judged, the heading first.

    `results` is the folder of the results of studies, `folders` that of studies in folders.
    """
    yield HEADING
    rows = [*_of_package(results), *_of_folders(folders)]
    yield from sorted(rows)


def _of_folders(folders: Path) -> Iterator[tuple[str, ...]]:
    """Yield the rows of studies of papers in folders, by the main reading of each claim."""
    for file in folders.glob("*/results/claims.csv"):
        if "paper" not in read_toml(file.parents[1] / PLAN):
            continue
        with file.open(newline="", encoding="utf-8") as lines:
            main = {row["key"]: row["verdict"] for row in reversed([*csv.DictReader(lines)])}
        yield _row(f"{file.parts[-3]}", file.parents[1] / "page.md", Counter(main.values()))


def _row(name: str, page: Path, counts: Counter[str]) -> tuple[str, ...]:
    numbers = (counts.total(), *(counts[one] for one in Verdict))
    return f"[{name}]({page})", *map(str, numbers)


def _of_package(results: Path) -> Iterator[tuple[str, ...]]:
    for file in results.glob("*/claims.csv"):
        found = defaultdict[str, dict[tuple[str, str], str]](dict)
        with file.open(newline="", encoding="utf-8") as lines:
            for row in csv.DictReader(lines):
                found[row["claim"]][row["where"], row["variant"]] = row["verdict"]
        counts = Counter(map(overall, found.values()))
        name = file.parent.name
        yield _row(name, RESULTS / name / "README.md", counts)


def overall(judged: Mapping[tuple[str, str], str]) -> str:
    """Return the verdict that all sets of runs and variants share, of `ALL` if there is one.

    Where verdicts differ, the claim holds in part if it holds somewhere, at least in part;
    otherwise it does not hold. `judged` has the verdicts by set of runs and variant.
    """
    of_all = {verdict for (_, variant), verdict in judged.items() if variant == ALL}
    different = of_all or set(judged.values())
    if len(different) > 1:
        different.discard(Verdict.NOT_JUDGED)
    if len(different) == 1:
        return different.pop()
    return Verdict.IN_PART if different & {Verdict.HELD, Verdict.IN_PART} else Verdict.NOT_HELD


def with_verdicts(text: str) -> str:
    """Return the text of the README with the table between its marks.

    Raises
    ------
    InputError
        If the text does not have each mark once.
    """
    heading, *rows = (markdown_row(*row) for row in verdicts(RESULTS, FOLDERS))
    return between_marks(text, "verdicts", "\n".join([heading, "|---" * len(HEADING) + "|", *rows]))


if __name__ == "__main__":
    write_text(README, with_verdicts(README.read_text(encoding="utf-8")))
