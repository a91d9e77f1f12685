"""The contract of a study."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from optsched.errors import InputError
from optsched.report.page import Page
from optsched.traces.catalogue import VARIABLE

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from optsched.traces.trace import Trace


class Study(ABC):
    """The evaluation of a paper, run again, or one over all systems.

    A subclass is registered with ``@studies.register(name)``.

    Attributes
    ----------
    name : str
        The registered name: that of the paper, if there is one.
    paper : str
        How it is cited; what the study is instead, if it is of none.
    parts : tuple of str
        Metrics that are tables of their own, of which `prepare` gets each number as a column.
    """

    name: ClassVar[str]
    paper: ClassVar[str]
    parts: ClassVar[tuple[str, ...]] = ()

    def inputs(self, folders: Sequence[Path], *, quick: bool) -> Mapping[str, Trace]:
        """Return the traces that the study makes for itself, by the name of their file.

        Parameters
        ----------
        folders : sequence of path
            Where the logs are looked for.
        quick : bool
            Whether only those of a small part are needed.

        Raises
        ------
        InputError
            If a log is not there.
        """
        return {}

    @abstractmethod
    def plan(self, folders: Sequence[Path], inputs: Path, *, quick: bool) -> dict[str, Any]:
        """Return what is run, as a table of the form that `optsched.sweep` reads.

        Parameters
        ----------
        folders : sequence of path
            Where the logs are looked for.
        inputs : path
            The folder that will have the traces which the study makes for itself, as seen from that
            of the study.
        quick : bool
            Whether to run a small part that ends within a minute.

        Raises
        ------
        InputError
            If a log is not there.
        """

    @abstractmethod
    def prepare(self, results: pd.DataFrame, inputs: Path) -> pd.DataFrame:
        """Return the results of the sweep in the form that the rest goes by.

        Parameters
        ----------
        results : pandas.DataFrame
            One row per run; the column ``folder`` is the path of its folder.
        inputs : path
            The folder of the traces that the study has made for itself.

        Raises
        ------
        InputError
            If runs have failed, or they are not those of this study.
        """

    @abstractmethod
    def figures(self, frame: pd.DataFrame) -> Mapping[str, Figure]:
        """Draw the pictures, by name."""

    @abstractmethod
    def tables(self, frame: pd.DataFrame) -> Mapping[str, pd.DataFrame]:
        """Return the tables that are kept as CSV, by name."""

    @abstractmethod
    def page(
        self,
        frame: pd.DataFrame,
        pictures: Mapping[str, str],
        versions: Mapping[str, str],
        *,
        quick: bool,
    ) -> Page:
        """Return the page.

        Parameters
        ----------
        frame : pandas.DataFrame
            What `prepare` returns.
        pictures : mapping of str to str
            The SVG of each picture.
        versions : mapping of str to str
            What the runs were made with.
        quick : bool
            Whether it is the small part, of which nothing can be concluded.
        """


def find_log(file: str, folders: Sequence[Path]) -> Path:
    """Return the path of a log in the first folder that has it.

    Raises
    ------
    InputError
        If none has.
    """
    for folder in folders:
        if (folder / file).is_file():
            return (folder / file).resolve()
    looked = f"not in {', '.join(map(str, folders))}" if folders else "no folder is named"
    expected = f"expected --traces, or {VARIABLE}, to name the folder of the public logs"
    raise InputError(f"{looked}; {expected}", file=file)
