"""The study of all systems."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from optsched.registry import studies
from optsched.report.page import Page
from optsched.studies.study import Study

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from optsched.traces.trace import Trace


@studies.register("systems")
class Systems(Study):
    """One table over all systems: the same jobs under every policy that can run them."""

    paper: ClassVar[str] = "of no paper: the same jobs under all policies, in one table"

    def inputs(self, folders: Sequence[Path], *, quick: bool) -> Mapping[str, Trace]:
        """Return the first jobs of the log: as they are, with demands, in pieces with files."""
        from optsched.studies.systems.inputs import inputs
        from optsched.studies.systems.site import site_of

        return inputs(site_of(quick=quick), folders)

    def plan(self, folders: Sequence[Path], inputs: Path, *, quick: bool) -> dict[str, Any]:
        """Return what is run: in each world the policies that can run there."""
        from optsched.studies.systems.plan import plan
        from optsched.studies.systems.site import site_of

        return plan(site_of(quick=quick), inputs)

    def prepare(self, results: pd.DataFrame, inputs: Path) -> pd.DataFrame:
        """Return the results with world, system, baseline and gains."""
        from optsched.studies.systems.evaluation import prepare

        return prepare(results, inputs)

    def figures(self, frame: pd.DataFrame) -> Mapping[str, Figure]:
        """Draw waits and slowdowns beside those of the baselines."""
        from optsched.studies.systems.figures import figures

        return figures(frame)

    def tables(self, frame: pd.DataFrame) -> Mapping[str, pd.DataFrame]:
        """Return the figures of every system, and what it gains."""
        from optsched.studies.systems.evaluation import all_systems

        return {"systems": all_systems(frame)}

    def page(
        self,
        frame: pd.DataFrame,
        pictures: Mapping[str, str],
        versions: Mapping[str, str],
        *,
        quick: bool,
    ) -> Page:
        """Return the page: the table over all systems, and one for each world."""
        from optsched.studies.systems.page import page

        return page(frame, pictures, versions, quick=quick)
