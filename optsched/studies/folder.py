"""The folder of a study: its plan, code and page, and what rests on the results of its runs.

The page is written by hand, and its numbers compared with those that are computed. The name of its
value follows a number as a comment of HTML, which no reader sees, and computed tables stand between
marks. Folder format: ``docs/formats/study-folder.md``.
"""

from __future__ import annotations

import inspect
import math
import re
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from functools import cached_property
from hashlib import sha256
from itertools import chain
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

from optsched.content import bundled
from optsched.documentation import markdown
from optsched.errors import InputError, UnknownNameError
from optsched.files import FolderKind, sha256_of, write_json, write_text, written_folder
from optsched.folders import read_object, read_table
from optsched.numbers import numbers_in, on_file
from optsched.registry import one_line_errors
from optsched.report import style
from optsched.report.style import with_dark_variant
from optsched.studies.claims import FILE as CLAIMS
from optsched.studies.claims import (
    NotRunError,
    Stated,
    frame_of,
    judge,
    named,
    read_claims,
    summary,
)
from optsched.studies.figures import claims_panel
from optsched.text_files import read_toml

if TYPE_CHECKING:
    import pandas as pd


PLAN, CODE, PAGE, RESULTS = "plan.toml", "study.py", "page.md", "results"
EXPECTED = f"expected a study, with {PLAN}, {CODE} and {PAGE}"


class StudyFolder:
    """A study in its folder.

    Raises `InputError` if there is no ``plan.toml`` or ``study.py``, or the latter fails.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.name = path.resolve().name
        for file in (PLAN, CODE):
            if not (path / file).is_file():
                raise InputError(f"no {file}; {EXPECTED}", file=path)
        with self._guarded():
            self._module = self._executed()

    @cached_property
    def plan(self) -> dict[str, Any]:
        """The content of ``plan.toml``."""
        return read_toml(self.path / PLAN)

    @property
    def plan_sha256(self) -> str:
        """The SHA-256 of ``plan.toml``."""
        return sha256_of(self.path / PLAN)

    @cached_property
    def stated(self) -> Stated:
        """The claims of ``claims.toml``."""
        return read_claims(self.path / CLAIMS)

    def has(self, function: str) -> bool:
        """Return whether ``study.py`` has a function."""
        return callable(getattr(self._module, function, None))

    def call(self, function: str, *arguments: Any, **options: Any) -> Any:
        """Call a function of ``study.py``.

        Raises `InputError` if there is none, or it fails: the message has the line of the file.
        """
        if not self.has(function):
            own = [name for name, one in vars(self._module).items() if inspect.isfunction(one)]
            raise UnknownNameError("function", function, own).within(self.path / CODE)
        with self._guarded():
            return getattr(self._module, function)(*arguments, **options)

    def call_with(self, function: str, default: Any, *arguments: Any, **options: Any) -> Any:
        """Call a function that a study may have; without it, return a default."""
        return self.call(function, *arguments, **options) if self.has(function) else default

    def _executed(self) -> ModuleType:
        """Execute ``study.py`` as a package, so that it imports files beside it as ``.other``."""
        file = self.path / CODE
        name = f"optsched-study-{sha256(str(self.path.resolve()).encode()).hexdigest()[:12]}"
        for stale in [one for one in sys.modules if one.partition(".")[0] == name]:
            del sys.modules[stale]
        module = sys.modules[name] = ModuleType(name)
        own = {"__file__": str(file), "__package__": name, "__path__": [str(self.path)]}
        vars(module).update(own)
        exec(compile(file.read_bytes(), str(file), "exec", dont_inherit=True), vars(module))
        return module

    def _guarded(self) -> AbstractContextManager[None]:
        return one_line_errors(self.path / CODE, self.path, NotRunError, InputError)


def study_plans() -> dict[str, dict[str, Any]]:
    """Return the content of ``plan.toml`` of the studies in ``studies/``, by name."""
    places = (Path("studies"), bundled("studies"))
    files = [file for place in places for file in sorted(place.glob(f"*/{CODE}"))]
    return {file.parent.name: read_toml(file.with_name(PLAN)) for file in reversed(files)}


def find_study(text: str) -> StudyFolder:
    """Find a study by its folder, or by name in ``studies/`` here or in the clone of optsched."""
    path = Path(text)
    places = [Path("studies") / text, bundled("studies") / text] if path.name == text else []
    for place in (path, *places):
        if (place / CODE).is_file():
            return StudyFolder(place)
    if (path / PLAN if places else path).exists():
        return StudyFolder(path)
    if places:  # also the folder of its runs may have its name
        raise UnknownNameError("study", text, study_plans())
    raise InputError(f"no such folder; {EXPECTED}", file=text)


NAME = re.compile(r"(?<=\S)<!--(?! )(.+?)-->")
BLOCK = re.compile(r"<!-- begin (\S+) -->\n(.*?)<!-- end -->", re.DOTALL)
PICTURE = re.compile(r"""(?:src|srcset)="([^":]+)"|!\[[^\]]*\]\(([^):]+)\)""")
FREE = re.compile(
    r"```.*?```|`[^`\n]*`|<!-- .*?-->|<(?!!--)[^>]*>|\]\([^)]*\)"  # code, tags, links
    r"|\b(?:19|20)\d\d(?:/\d\d)?\b|\b95%"  # years, and the confidence of all intervals
    r"|\b(?:tables?|figures?|sections?|equations?|algorithms?)\s\(?[\dIVX]+\)?"
    r"|^\s*\d+\.\s",  # items of a list
    re.DOTALL | re.MULTILINE | re.IGNORECASE,
)
"""Text whose numbers are no results, or name what they number."""


def page_mistakes(page: str, values: Mapping[str, Any], tables: Mapping[str, str]) -> Iterator[str]:
    """Yield what is wrong with a page, each with its line: ``12: 16%: wait is 17.4``."""

    def at(place: int, wrong: object) -> str:
        return f"{page[:place].count(chr(10)) + 1}: {wrong}"

    for block in BLOCK.finditer(page):
        if block[1] not in tables:
            yield at(block.start(), UnknownNameError("table", block[1], tables))
        elif block[2].strip() != tables[block[1]].strip():
            yield at(block.start(), f"table {block[1]} differs (--write puts it there)")
    prose = BLOCK.sub(_blank, page)
    if unpaired := re.search(r"<!-- (begin \S+|end) -->", prose):
        yield at(unpaired.start(), f"{unpaired[0]} alone; expected begin NAME and end")
    prose, start = FREE.sub(_blank, prose), 0
    for name in [*NAME.finditer(prose), None]:
        text, taken = prose[start : name.start() if name else None], 0
        if name:
            wrong, taken = _compared(text, name[1], values)
            if wrong:
                yield at(name.start(), wrong)
        for one in numbers_in(text)[: -taken or None]:
            if one.half:
                yield at(start + one.place, f"{one.text} has no name")
        start = name.end() if name else 0


def _compared(text: str, name: str, values: Mapping[str, Any]) -> tuple[str, int]:
    """Return in what the end of a text differs from a value, and how many numbers it states."""
    key, said = name.removeprefix("abs "), numbers_in(text)
    if key == "fixed":
        return "" if said else "fixed, but there is no number before it", 1
    if key not in values:
        return str(UnknownNameError("value", key, values)), 1
    value = values[key]
    if value is None:
        return f"{name} has no value", 1
    if isinstance(value, bool):
        return "" if value else f"{name} is not true", 0
    if isinstance(value, str):
        plain = " ".join(text.replace("*", "").lower().split())
        return "" if plain.endswith(value.lower()) else f"expected {value!r} before {name}", 0
    wanted = [float(one) for one in (value if isinstance(value, Sequence) else (value,))]
    exact = ", ".join("no number" if math.isnan(one) else f"{one:.6g}" for one in wanted)
    if len(said) < len(wanted):
        return f"no number before {name}, which is {exact}", len(wanted)
    pairs = [*zip(said[-len(wanted) :], wanted)]
    right = all(by.says(one if key == name else abs(one)) for by, one in pairs)
    wrong = f"{', '.join(by.text for by, _ in pairs)}: {name} is {exact}"
    return "" if right else wrong, len(wanted)


def with_tables(page: str, tables: Mapping[str, str]) -> str:
    """Return a page with its computed tables between their marks."""

    def block(found: re.Match[str]) -> str:
        table = tables.get(found[1])
        whole = f"<!-- begin {found[1]} -->\n\n{(table or '').strip()}\n\n<!-- end -->"
        return found[0] if table is None else whole

    return BLOCK.sub(block, page)


def _blank(found: re.Match[str]) -> str:
    """Blank a text out, so that places and lines of the rest stay as they are."""
    return re.sub(r"\S", " ", found[0])


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
        wrong = page_mistakes(text, self.values, self.blocks())
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
        whole = with_tables(text, found.blocks())
        places = {place, study.path} if write else {place}
        for one in places:
            write_text(one / PAGE, whole)
        mistakes = found.mistakes(whole if study.path in places else text)
    claims = frame_of(found.claims, study.stated.readings)
    return Evaluation(place, shown, found.frames(), claims, mistakes)


def check_page(study: StudyFolder) -> tuple[list[str], int]:
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
        for shown in filter(None, chain.from_iterable(PICTURE.findall(text)))
        if not (study.path / shown).is_file()
    ]
    if read_about(results)["plan"] != study.plan_sha256:
        mistakes.append(f"{results / ABOUT}: {PLAN} has changed since these results")
    return mistakes, len(NAME.findall(FREE.sub(" ", BLOCK.sub("", text))))


def read_about(folder: Path) -> dict[str, Any]:
    """Return what stored results rest on: the SHA-256 of the plan, and versions of packages."""
    return read_object(folder / ABOUT, {"plan": str, "versions": dict})


def read_results(folder: Path) -> pd.DataFrame:
    """Return the stored results of a study."""
    file = folder / FRAME
    if not file.is_file():
        raise InputError("missing; expected the results of the study's runs", file=file)
    return read_table(file, (), None).to_pandas()  # type: ignore[no-any-return]
