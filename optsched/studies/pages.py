"""Generated table of the README: the verdicts on the claims of papers.

``python -m optsched.studies.pages`` counts them in the results of studies.
"""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from optsched.files import write_text
from optsched.markdown import between_marks, markdown_table
from optsched.studies.claims import FAILS, HOLDS, OPEN, UNJUDGED
from optsched.studies.folder import PAGE, PLAN
from optsched.text_files import read_toml

README, FOLDERS = Path("README.md"), Path("studies")
HEADING = ("study", "claims", "hold", "do not hold", "not decided", "not judgeable")


def verdicts(folders: Path) -> Iterator[tuple[str, ...]]:
    """Yield a row for each study of a paper, by the main reading of each claim, the heading first.

    `folders` is the folder of the studies.
    """
    yield HEADING
    for file in sorted(folders.glob("*/results/claims.csv")):
        study = file.parents[1]
        if "paper" not in read_toml(study / PLAN):
            continue
        with file.open(newline="", encoding="utf-8") as lines:
            main = {row["key"]: row["verdict"] for row in reversed([*csv.DictReader(lines)])}
        counts = Counter(main.values())
        numbers = (counts.total(), *(counts[one] for one in (HOLDS, FAILS, OPEN, UNJUDGED)))
        yield f"[{study.name}]({study / PAGE})", *map(str, numbers)


def with_verdicts(text: str) -> str:
    """Return the text of the README with the table between its marks.

    Raises
    ------
    InputError
        If the text does not have each mark once.
    """
    return between_marks(text, "verdicts", markdown_table(verdicts(FOLDERS)))


if __name__ == "__main__":
    write_text(README, with_verdicts(README.read_text(encoding="utf-8")))
