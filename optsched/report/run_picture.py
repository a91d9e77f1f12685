"""What a picture of a run is, and all pictures of a run: drawn, and captioned for its page."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from optsched import registry
from optsched.report import style
from optsched.report.page import Figure

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure as Drawing

    from optsched.simulator.run import Run


class RunFacts(NamedTuple):
    """The files of a run folder that captions are made of.

    Parameters
    ----------
    config, summary : mapping
        ``run.json`` and ``summary.json``.
    jobs : pandas.DataFrame
        The table of jobs.
    """

    config: Mapping[str, Any]
    summary: Mapping[str, Any]
    jobs: pd.DataFrame

    @property
    def time_shared(self) -> bool:
        """Whether jobs may share processors in time."""
        kind = self.config["machine"].partition(":")[0]
        return kind in registry.machines and registry.machines[kind].time_shared


class RunPicture(ABC):
    """A picture of a run, written as ``<name>.svg`` and ``<name>.png``.

    Attributes
    ----------
    name : str
        Set by the registry.
    rank : int
        Place among the pictures of a page, the lowest first.
    """

    name: ClassVar[str]
    rank: ClassVar[int] = 100

    @abstractmethod
    def figure(self, run: Run) -> Drawing | None:
        """Draw the picture; None for a run that has nothing to show in it."""

    @abstractmethod
    def caption(self, facts: RunFacts) -> str:
        """State what the picture shows."""

    @abstractmethod
    def words(self, facts: RunFacts) -> str:
        """State the numbers of the picture, for readers who cannot see it."""


def run_pictures() -> list[RunPicture]:
    """Return all pictures in the order of the page."""
    found = [registry.pictures[name]() for name in registry.pictures]
    return sorted(found, key=lambda picture: (picture.rank, picture.name))


def draw(run: Run, folder: Path) -> list[Path]:
    """Write the pictures of a run to `folder`, each as SVG and PNG; the same run, the same bytes.

    Returns
    -------
    list of pathlib.Path
        The files written.

    Raises
    ------
    InputError
        If the folder cannot be written to.
    """
    drawn = [(picture.name, picture.figure(run)) for picture in run_pictures()]
    return [
        path
        for name, figure in drawn
        if figure is not None
        for path in style.save(figure, folder, name)
    ]


def captioned(pictures: Mapping[str, str], facts: RunFacts) -> list[Figure]:
    """Return the pictures of a run folder for its page.

    Parameters
    ----------
    pictures : mapping of str to str
        The SVG of each, by name. One that no picture of this version is called has its name alone.
    facts : RunFacts
        What the captions are made of.
    """
    known = {picture.name: picture for picture in run_pictures()}
    return [
        Figure(svg, caption=known[name].caption(facts), alt=known[name].words(facts))
        if name in known
        else Figure(svg, caption=f"{name}.", alt=f"Picture of the run: {name}.")
        for name, svg in pictures.items()
    ]
