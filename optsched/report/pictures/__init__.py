"""Pictures of a run: their interface, drawing and captioning; the modules have the pictures."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from numpy.typing import NDArray

from optsched import registry
from optsched.errors import InputError, UnknownNameError
from optsched.report import style
from optsched.report.page import Figure, figures

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing

    from optsched.simulator.run import Run


class RunFacts(NamedTuple):
    """Files of a run folder that captions are made from.

    These are ``run.json`` (`config`), ``summary.json`` and columns of the table of jobs, as arrays
    by name, with nan for times that a job does not have.
    """

    config: Mapping[str, Any]
    summary: Mapping[str, Any]
    jobs: Mapping[str, NDArray[Any]]

    @property
    def time_shared(self) -> bool:
        """Whether jobs may share processors in time."""
        kind = self.config["machine"].partition(":")[0]
        return kind in registry.machines and registry.machines[kind].time_shared


class RunPicture(ABC):
    """Picture of a run, written as ``<name>.svg`` and ``<name>.png``.

    Attributes
    ----------
    name : str
        The registered name.
    rank : int
        Position among the pictures of a page, the lowest first.
    """

    name: ClassVar[str]
    rank: ClassVar[int] = 100

    def why_not(self, run: Run) -> str:
        """Return why there is no such picture of the run; empty, the default, if there is."""
        return ""

    @abstractmethod
    def figure(self, run: Run) -> Drawing:
        """Return the picture of a run that has one.

        Further arguments, all with a default, are those of ``run.plot.<name>``.
        """

    def drawn(
        self, run: Run, *args: Any, size: Any = None, title: bool = True, **options: Any
    ) -> Drawing:
        """Return the picture for ``run.plot``, of a size in inches and without titles if asked.

        Raises
        ------
        InputError
            If there is no such picture of the run, or an argument of `figure` is unknown or
            cannot be used.
        """
        if reason := self.why_not(run):
            raise InputError(f"no picture {self.name!r} of this run: {reason}")
        taken = inspect.signature(self.figure).parameters
        if all(one.kind is not one.VAR_KEYWORD for one in taken.values()):
            known = [*list(taken)[1:], "size", "title"]
            for name in options:
                if name not in known:
                    raise UnknownNameError(f"argument of run.plot.{self.name}", name, known)
        with style.asked(size, title):
            return style.finished(self.figure(run, *args, **options))

    @abstractmethod
    def caption(self, facts: RunFacts) -> str:
        """Return the caption."""

    @abstractmethod
    def words(self, facts: RunFacts) -> str:
        """Return the numbers of the picture in words, for readers who cannot see it."""

    def chart(self, facts: RunFacts) -> Mapping[str, Any] | None:
        """Return the data of a chart to zoom, see `report/pictures/gantt.py`; None without."""
        return None


def run_pictures() -> list[RunPicture]:
    """Return all pictures in the order of the page."""
    found = [registry.pictures[name]() for name in registry.pictures]
    return sorted(found, key=lambda picture: (picture.rank, picture.name))


def draw(run: Run, folder: Path) -> list[Path]:
    """Write the pictures of a run to `folder`, as SVG and PNG, and return the files.

    They are reproducible to the byte.
    """
    shown = [picture for picture in run_pictures() if not picture.why_not(run)]
    drawn = {picture.name: picture.figure(run) for picture in shown}
    return [file for name, one in drawn.items() for file in style.save(one, folder, name)]


def captioned(pictures: Mapping[str, str], facts: RunFacts) -> list[Figure]:
    """Return the pictures of a run folder for its page, from the SVG of each, by name."""
    known = {one.name: one for one in run_pictures() if one.name in pictures}
    about = {name: (one.caption(facts), one.words(facts)) for name, one in known.items()}
    charts = {name: [chart] for name, one in known.items() if (chart := one.chart(facts))}
    return figures(pictures, about, "run", charts)
