"""The contract of a study."""

from __future__ import annotations

from abc import ABC
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from optsched.studies.cases import Case
from optsched.studies.content import CLAIMS, PAGE, PLAN, content_of
from optsched.text_files import read_toml

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from optsched.report.page import Page
    from optsched.studies.judging import Claim
    from optsched.traces.trace import Trace


class Study(ABC):
    """An evaluation that can be repeated: a sweep, and the page made from its results.

    A study that simulates nothing has cases to solve in place of a sweep.

    A subclass is registered with ``@studies.register(name)``. Every method has a default, so that a
    study is its content and the methods that compute. ``docs/how-to/add-a-study.md`` makes one.

    In the methods, `folders` are those of the public logs, `inputs` is the folder of the traces
    that the study makes, and `quick` says whether it is the quick look: a small part that ends
    within a minute, from which nothing can be concluded. `frame` is the result of `prepare`.

    Attributes
    ----------
    name : str
        The registered name: that of the paper, if there is one.
    paper : str
        The citation; for a study of no paper, what it is instead.
    parts : tuple of str
        Metrics that are tables of their own; `prepare` gets each of their numbers as a column.
    logs : {"never", "in full", "always"}
        Whether the public logs are needed: in full only, or for a quick look too.
    takes_trace : bool
        Whether another trace can be named in the place of the logs. Then `inputs` and `plan` have
        the parameter `trace`, its file or its name in the catalogue.
    simulates : bool
        Whether the results are those of a sweep; otherwise they are those of `cases`.
    packages : tuple of str
        Further packages on whose versions the answers to `cases` depend.
    content : path
        The folder of ``plan.toml`` and ``page.md.j2``; ``studies/<name>`` unless a subclass says
        otherwise.
    """

    name: ClassVar[str]
    paper: ClassVar[str]
    parts: ClassVar[tuple[str, ...]] = ()
    logs: ClassVar[Literal["never", "in full", "always"]] = "never"
    takes_trace: ClassVar[bool] = False
    simulates: ClassVar[bool] = True
    packages: ClassVar[tuple[str, ...]] = ()

    @property
    def content(self) -> Path:
        """The folder of the study's content."""
        return content_of(self.name)

    def inputs(self, folders: Sequence[Path], *, quick: bool) -> Mapping[str, Trace]:
        """Make the traces that the study derives from logs and models, by the name of their file.

        Raises
        ------
        InputError
            If a log is missing or damaged.
        """
        return {}

    def plan(self, folders: Sequence[Path], inputs: Path, *, quick: bool) -> dict[str, Any]:
        """State the sweep, in the form that `optsched.sweep` reads.

        By default it is ``plan.toml``, a sweep file; a quick look overrides its keys by those of
        the table ``quick``. A trace is one of `inputs` (``inputs/NAME``), a file beside
        ``plan.toml``, a sample that comes with optsched (``samples/NAME``), or a public log.

        Raises
        ------
        InputError
            If a log is missing.
        """
        table = read_toml(self.content / PLAN)
        changed = table.pop("quick", {})
        table = table | changed if quick else table
        for block in (table, *table.get("runs", ())):
            if "trace" in block:
                stated = block["trace"]
                block["trace"] = [
                    self._trace(file, folders, inputs) if isinstance(file, str) else file
                    for file in (stated if isinstance(stated, list) else [stated])
                ]
        return table

    def _trace(self, file: str, folders: Sequence[Path], inputs: Path) -> str:
        if file.startswith(f"{inputs}/"):
            return file
        from optsched.studies.plan import find_log

        own = self.content / file
        return str(own.resolve() if own.is_file() else find_log(file, folders))

    def prepare(self, results: pd.DataFrame, inputs: Path) -> pd.DataFrame:
        """Add to the results of the sweep the columns on which the evaluation rests.

        There is one row per run; the column ``folder`` is the path of its folder.

        Raises
        ------
        InputError
            If runs have failed, or they are not those of this study.
        """
        from optsched.studies.results import check_results

        check_results(results, ())
        return results

    def files(self, folders: Sequence[Path]) -> Sequence[Path]:
        """Find the files on which the answers to `cases` rest.

        Raises
        ------
        InputError
            If a file is missing.
        """
        return ()

    def cases(self, folders: Sequence[Path], *, quick: bool) -> Mapping[str, Case]:
        """State what is to be solved, by name; in this order the answers are in the results.

        A case solves its problems when it is called, and returns a row of the results for each
        answer, JSON-able. The names are those of files. All rows have the number of ``jobs``, and
        ``wall_seconds``, which are kept apart because no two runs have the same.

        Raises
        ------
        InputError
            If a file is missing or damaged.
        """
        return {}

    def figures(self, frame: pd.DataFrame) -> Mapping[str, Figure]:
        """Draw the figures, by name."""
        return {}

    def tables(self, frame: pd.DataFrame) -> Mapping[str, pd.DataFrame]:
        """Collect the tables that are kept as CSV, by name; by default all runs."""
        return {"runs": frame.drop(columns="folder", errors="ignore")}

    def claims(self, frame: pd.DataFrame) -> Sequence[Claim]:
        """Judge the claims of the paper."""
        return ()

    def values(self, frame: pd.DataFrame, *, quick: bool) -> Mapping[str, Any]:
        """Compute the numbers and tables that the template of the page names."""
        return {}

    def page(
        self,
        frame: pd.DataFrame,
        claims: Sequence[Claim],
        pictures: Mapping[str, str],
        versions: Mapping[str, str],
        *,
        quick: bool,
        trace: str | None = None,
    ) -> Page:
        """Make the page: its template, the claims, SVG figures by name, versions of packages.

        The command that repeats the study names a `trace`, if the user did.

        Raises
        ------
        InputError
            If the template is wrong.
        """
        from optsched.studies.template import page_from

        common = {
            "quick": quick,
            "runs": len(frame),
            "jobs": int(frame["jobs"].sum()),
            "claims": claims,
        }
        values = common | dict(self.values(frame, quick=quick))
        from_logs = self.logs == "always" or (self.logs == "in full" and not quick)
        where = " --traces TRACES" * from_logs if trace is None else f" --trace {quote(trace)}"
        options = " --quick" * quick + where
        repeat = f"optsched study {self.name}{options} -o DIR"
        return page_from(self.content / PAGE, values, pictures, versions, repeat)


def _of(module: str, function: str) -> Any:
    """Make a method that calls a function in a module of the package of the study."""

    def call(self: Study, *arguments: Any, **options: Any) -> Any:
        found = import_module(f"{type(self).__module__}.{module}")
        return getattr(found, function)(*arguments, **options)

    return call


class PaperStudy(Study):
    """A study in a package of its own, whose modules are imported when they are used.

    Its methods are the functions of the same name in these modules, but for `tables`, the figures
    of every run by ``all_runs`` in ``evaluation``.

    Attributes
    ----------
    table : str
        Name of the CSV with the figures of every run.
    """

    table: ClassVar[str]
    logs: ClassVar[Literal["never", "in full", "always"]] = "in full"

    inputs = _of("plan", "inputs")
    plan = _of("plan", "plan")
    prepare = _of("evaluation", "prepare")
    files = _of("plan", "files")
    cases = _of("evaluation", "cases")
    figures = _of("figures", "figures")
    values = _of("page", "values")
    _all_runs = _of("evaluation", "all_runs")
    _claims = _of("claims", "claims")

    def tables(self, frame: pd.DataFrame) -> Mapping[str, pd.DataFrame]:
        """Collect the figures of every run."""
        return {self.table: self._all_runs(frame)}

    def claims(self, frame: pd.DataFrame) -> Sequence[Claim]:
        """Judge the claims of the paper; without ``claims.toml`` there are none."""
        claims: Sequence[Claim] = ()
        if (self.content / CLAIMS).is_file():
            claims = self._claims(frame)
        return claims
