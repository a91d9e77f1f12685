"""The study of Li et al. 2015."""

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


@studies.register("li-2015")
class Li2015(Study):
    """Boxes on a torus: Figures 5 to 7, migration and backfilling, exact models, EASY on boxes."""

    paper: ClassVar[str] = (
        'K. Li, M. Malawski, J. Nabrzyski, "Topology-aware scheduling on Blue Waters with '
        'proactive queue scanning and migration-based job placement", JSSPP 2015'
    )
    parts: ClassVar[tuple[str, ...]] = ("recorded_node_time", "recorded_held", "recorded_running")

    def inputs(self, folders: Sequence[Path], *, quick: bool) -> Mapping[str, Trace]:
        """Return the workloads: modelled ones, and of the logs that are there."""
        from optsched.studies.li_2015.inputs import inputs

        return inputs(folders, quick=quick)

    def plan(self, folders: Sequence[Path], inputs: Path, *, quick: bool) -> dict[str, Any]:
        """Return what is run: the paper's system and its parts, EASY, single changes."""
        from optsched.studies.li_2015.plan import plan

        return plan(folders, inputs, quick=quick)

    def prepare(self, results: pd.DataFrame, inputs: Path) -> pd.DataFrame:
        """Return the results with the columns that the evaluation goes by."""
        from optsched.studies.li_2015.evaluation import prepare

        return prepare(results, inputs)

    def figures(self, frame: pd.DataFrame) -> Mapping[str, Figure]:
        """Draw Figures 5 to 7, where the node time goes, and the waits."""
        from optsched.studies.li_2015.figures import figures

        return figures(frame)

    def tables(self, frame: pd.DataFrame) -> Mapping[str, pd.DataFrame]:
        """Return the figures of every run."""
        from optsched.studies.li_2015.evaluation import all_runs

        return {"variants": all_runs(frame)}

    def page(
        self,
        frame: pd.DataFrame,
        pictures: Mapping[str, str],
        versions: Mapping[str, str],
        *,
        quick: bool,
    ) -> Page:
        """Return the page, with the verdicts on the claims."""
        from optsched.studies.li_2015.page import page

        return page(frame, pictures, versions, quick=quick)
