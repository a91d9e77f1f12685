"""What rests on the results of a study: claims, tables, figures, and the numbers of its page.

Folder format: ``docs/formats/study-folder.md``.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from optsched.errors import InputError
from optsched.files import FolderKind, write_json, write_text, written_folder
from optsched.report import style
from optsched.report.folder_files import Expected, read_object
from optsched.studies import page
from optsched.studies.claims import DIGITS, NotRunError, frame_of, judge, markdown, named, summary
from optsched.studies.figures import claims_panel, save
from optsched.studies.folder import CODE, PAGE, PLAN, RESULTS, StudyFolder

if TYPE_CHECKING:
    import pandas as pd

FRAME, ABOUT, DATA = "results.parquet", "about.json", "data.md"
"""Files of results: a row per run, what they rest on, and all tables."""

KEPT = FolderKind("results of a study", ABOUT, (FRAME, DATA, "*.csv", "*.svg"))
PLANNED: Expected = {"plan": str, "versions": dict}
"""What results rest on: the SHA-256 of the plan, and packages."""

MOST_ROWS = 60
"""Rows of a table from which on `DATA` names its CSV file alone."""


class Evaluation(NamedTuple):
    """The outcome of a study: its folder, its page, and the tables that are kept as CSV, by name.

    `claims` has a row for each claim and reading. `mistakes` are the places where the page of the
    study differs. A quick look has none of these.
    """

    folder: Path
    page: Path
    tables: Mapping[str, pd.DataFrame]
    claims: pd.DataFrame
    mistakes: Sequence[str]


class Evaluated:
    """The claims, values and tables of a study by name; tables in Markdown alone are texts."""

    def __init__(self, study: StudyFolder, results: pd.DataFrame) -> None:
        self._study = study
        self._runs = runs = study.call_with("load", results, results)
        stated = study.stated
        self.claims = judge(stated, lambda of, *one, **own: study.call(of, runs, *one, **own))
        self.values: dict[str, Any] = named(self._own("values"), self.claims)
        self.tables: dict[str, pd.DataFrame | str] = dict(self._own("tables"))
        if self.claims:
            self.tables = {"claims": frame_of(self.claims, stated.readings), **self.tables}

    def figures(self, *, narrow: bool) -> dict[str, Any]:
        """Draw the figures by name, for a wide page or for a phone."""
        figures = dict(self._own("figures", narrow=narrow))
        if any(one.found and one.panel for one in self.claims.values()):
            figures.setdefault("claims", claims_panel(self.claims, narrow=narrow))
        return figures

    def blocks(self) -> dict[str, str]:
        """Return the tables in Markdown by name, as the page shows them."""
        tables = self.tables.items()
        shown = {name: one if isinstance(one, str) else markdown(one) for name, one in tables}
        if self.claims:
            shown["claims"] = summary(self.claims, self._study.stated.readings)
        return shown

    def frames(self) -> dict[str, pd.DataFrame]:
        """Return the tables that are kept as CSV."""
        return {name: one for name, one in self.tables.items() if not isinstance(one, str)}

    def write(self, folder: Path) -> None:
        """Write tables and figures, and the page of all tables, into a folder."""
        for narrow in (False, True):
            with style.applied():
                figures = self.figures(narrow=narrow)
            save(figures, folder, "-narrow" if narrow else "")
        name, shown = self._study.name, self.blocks()
        data = [f"# Data of {name}", "The tables of [the study](../page.md), all computed."]
        for name, table in self.frames().items():
            index = table.index.names != [None]
            text = table.to_csv(index=index, lineterminator="\n", float_format=DIGITS)
            write_text(folder / f"{name}.csv", text)
            rows = f"{len(table):,} rows in [{name}.csv]({name}.csv)."
            data += [f"## {name}", rows, *([shown[name]] if len(table) <= MOST_ROWS else [])]
        write_text(folder / DATA, "\n\n".join(data) + "\n")

    def mistakes(self, text: str) -> list[str]:
        """Return where a text of the page differs from what is computed, each with its line."""
        wrong = page.mistakes(text, self.values, self.blocks())
        return [f"{self._study.path / PAGE}:{one}" for one in wrong]

    def _own(self, function: str, **options: Any) -> Mapping[str, Any]:
        try:
            found = self._study.call_with(function, {}, self._runs, self.claims, **options)
        except NotRunError:
            wrong = f"{function} asks for runs that are not there"
            raise InputError(wrong, file=self._study.path / CODE) from None
        if not isinstance(found, Mapping):
            wrong = f"{function} returned {type(found).__name__}; expected a dict by name"
            raise InputError(wrong, file=self._study.path / CODE)
        return found


def evaluate(
    study: StudyFolder, place: Path, *, own: bool = True, write: bool = False
) -> Evaluation:
    """Evaluate the results in a folder: write tables and figures beside them, and the page.

    There is no page if the logs are not the study's `own`: its words are about these. To `write`
    is to put the same into the folder of the study.
    """
    results = place / RESULTS
    found, about = Evaluated(study, read_results(results)), read_object(results / ABOUT, PLANNED)
    with written_folder(results, KEPT) as folder:
        shutil.copyfile(results / FRAME, folder / FRAME)
        write_json(folder / ABOUT, about)
        found.write(folder)
    if write:
        with written_folder(study.path / RESULTS, KEPT) as folder:
            for file in results.iterdir():
                shutil.copyfile(file, folder / file.name)
    shown, mistakes = results / DATA, list[str]()
    if own and (study.path / PAGE).is_file():
        shown, text = place / PAGE, (study.path / PAGE).read_text(encoding="utf-8")
        whole = page.with_tables(text, found.blocks())
        places = {place, study.path} if write else {place}
        for one in places:
            write_text(one / PAGE, whole)
        mistakes = found.mistakes(whole if study.path in places else text)
    claims = frame_of(found.claims, study.stated.readings)
    return Evaluation(place, shown, found.frames(), claims, mistakes)


def check(study: StudyFolder) -> tuple[list[str], int]:
    """Compare the page of a study with its stored results.

    Returns the mistakes, each with file and line, and how many names there are.
    """
    file, results = study.path / PAGE, study.path / RESULTS
    if not file.is_file():
        raise InputError(f"no {PAGE}; expected a page whose numbers have names", file=study.path)
    text = file.read_text(encoding="utf-8")
    mistakes = Evaluated(study, read_results(results)).mistakes(text)
    mistakes += [
        f"{file}: no {shown}; optsched study {study.path} --write draws it"
        for shown in page.pictures(text)
        if not (study.path / shown).is_file()
    ]
    if read_object(results / ABOUT, PLANNED)["plan"] != study.plan_sha256:
        mistakes.append(f"{results / ABOUT}: {PLAN} has changed since these results")
    return mistakes, len(page.NAME.findall(page.FREE.sub(" ", page.BLOCK.sub("", text))))


def read_results(folder: Path) -> pd.DataFrame:
    """Return the stored results of a study."""
    import pandas as pd

    file = folder / FRAME
    if not file.is_file():
        raise InputError("missing; expected the results of the study's runs", file=file)
    try:
        return pd.read_parquet(file)
    except (OSError, ValueError):
        raise InputError("damaged; expected results in a Parquet file", file=file) from None
