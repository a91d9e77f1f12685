"""The contract of a study."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from optsched.report.page import Page

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


class Study(ABC):
    """The evaluation of a paper, run again.

    A subclass is registered with ``@studies.register(name)``.

    Attributes
    ----------
    name : str
        The registered name: that of the paper.
    paper : str
        How it is cited.
    """

    name: ClassVar[str]
    paper: ClassVar[str]

    @abstractmethod
    def plan(self, traces: Path, *, quick: bool) -> dict[str, Any]:
        """Return what is run, as a table of the form that `optsched.sweep` reads.

        Parameters
        ----------
        traces : path
            Folder of the logs.
        quick : bool
            Whether to run a small part that ends within a minute.

        Raises
        ------
        InputError
            If a log is not there.
        """

    @abstractmethod
    def figures(self, results: pd.DataFrame) -> Mapping[str, Figure]:
        """Draw the pictures, by name."""

    @abstractmethod
    def tables(self, results: pd.DataFrame) -> Mapping[str, pd.DataFrame]:
        """Return the tables that are kept as CSV, by name."""

    @abstractmethod
    def page(self, results: pd.DataFrame, pictures: Mapping[str, str]) -> Page:
        """Return the page.

        Parameters
        ----------
        results : pandas.DataFrame
            One row per run, as a sweep leaves it.
        pictures : mapping of str to str
            The SVG of each picture.
        """
