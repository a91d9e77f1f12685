"""What rests on the results of a study: claims, tables, figures, and the numbers of its page.

Folder format: ``docs/formats/study-folder.md``.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from optsched.documentation import markdown
from optsched.errors import InputError
from optsched.files import FolderKind, write_json, write_text, written_folder
from optsched.folders import read_object, read_table
from optsched.numbers import on_file
from optsched.report import style
from optsched.report.style import with_dark_variant
from optsched.studies import page
from optsched.studies.claims import NotRunError, frame_of, judge, named, summary
from optsched.studies.figures import claims_panel
from optsched.studies.folder import CODE, PAGE, PLAN, RESULTS, StudyFolder

if TYPE_CHECKING:
    import pandas as pd

FRAME, ABOUT, DATA = "results.parquet", "about.json", "data.md"
"""Files of results: a row per run, what they rest on, and all tables."""

KEPT = FolderKind("results of a study", ABOUT, (FRAME, DATA, "*.csv", "*.svg"))
MOST_ROWS = 60  # of a table in `DATA`; of longer ones it only names the CSV file


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
        self.claims = judge(study.stated, lambda of, *one, **own: study.call(of, runs, *one, **own))
        self.values: dict[str, Any] = named(self._own("values"), self.claims)
        self.tables: dict[str, pd.DataFrame | str] = dict(self._own("tables"))
        if self.claims:
            self.tables = {"claims": frame_of(self.claims, study.stated.readings), **self.tables}

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
        drawn = any(one.found and one.panel for one in self.claims.values())
        for suffix, narrow in (("", False), ("-narrow", True)):
            with style.applied():
                figures = dict(self._own("figures", narrow=narrow))
                figures |= {"claims": claims_panel(self.claims, narrow=narrow)} if drawn else {}
            for name, figure in figures.items():
                file = folder / f"{name}{suffix}.svg"
                style.save_as(figure, file)  # and dark where the reader's desktop is
                write_text(file, with_dark_variant(file.read_text(encoding="utf-8")))
        lead, shown = "The tables of [the study](../page.md), all computed.", self.blocks()
        data = [f"# Data of {self._study.name}", lead]
        for name, table in self.frames().items():
            index = table.index.names != [None]
            text = table.to_csv(index=index, lineterminator="\n", float_format=on_file)
            write_text(folder / f"{name}.csv", text)
            data += [f"## {name}", f"{len(table):,} rows in [{name}.csv]({name}.csv)."]
            data += [shown[name]] * (len(table) <= MOST_ROWS)
        write_text(folder / DATA, "\n\n".join(data) + "\n")

    def mistakes(self, text: str) -> list[str]:
        """Return where a text of the page differs from what is computed, each with its line."""
        wrong = page.mistakes(text, self.values, self.blocks())
        return [f"{self._study.path / PAGE}:{one}" for one in wrong]

    def _own(self, function: str, **options: Any) -> Mapping[str, Any]:
        wrong = "asks for runs that are not there"
        with suppress(NotRunError):
            found = self._study.call_with(function, {}, self._runs, self.claims, **options)
            if isinstance(found, Mapping):
                return found
            wrong = f"returned {type(found).__name__}; expected a dict by name"
        raise InputError(f"{function} {wrong}", file=self._study.path / CODE)


def write_results(frame: pd.DataFrame, about: Mapping[str, Any], folder: Path) -> None:
    """Write the results of runs, and what they rest on, into a folder with nothing else."""
    with written_folder(folder, KEPT) as place:
        frame.to_parquet(place / FRAME, index=False, compression="zstd")
        write_json(place / ABOUT, about)


def evaluate(
    study: StudyFolder, place: Path, *, own: bool = True, write: bool = False
) -> Evaluation:
    """Evaluate the results in a folder: write tables and figures beside them, and the page.

    There is no page if the logs are not the study's `own`: its words are about these. To `write`
    is to put the same into the folder of the study.
    """
    results = place / RESULTS
    found = Evaluated(study, read_results(results))
    with written_folder(results, KEPT) as folder:
        for kept in (FRAME, ABOUT):
            shutil.copyfile(results / kept, folder / kept)
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
    if read_about(results)["plan"] != study.plan_sha256:
        mistakes.append(f"{results / ABOUT}: {PLAN} has changed since these results")
    return mistakes, len(page.NAME.findall(page.FREE.sub(" ", page.BLOCK.sub("", text))))


def read_about(folder: Path) -> dict[str, Any]:
    """Return what stored results rest on: the SHA-256 of the plan, and versions of packages."""
    return read_object(folder / ABOUT, {"plan": str, "versions": dict})


def read_results(folder: Path) -> pd.DataFrame:
    """Return the stored results of a study."""
    file = folder / FRAME
    if not file.is_file():
        raise InputError("missing; expected the results of the study's runs", file=file)
    frame: pd.DataFrame = read_table(file, (), None).to_pandas()
    return frame
