"""The study of Guim, Rodero and Corbalan 2009."""

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


@studies.register("guim-2009")
class Guim2009(Study):
    """Jobs that share the memory bandwidth of nodes: Tables 1 to 7, Figures 4 to 9."""

    paper: ClassVar[str] = (
        'F. Guim, I. Rodero, J. Corbalan, "The resource usage aware backfilling", JSSPP 2009'
    )

    def inputs(self, folders: Sequence[Path], *, quick: bool) -> Mapping[str, Trace]:
        """Return the first jobs of the logs with drawn demands, for each mix and seed."""
        from optsched.studies.guim_2009.inputs import inputs

        return inputs(folders, quick=quick)

    def plan(self, folders: Sequence[Path], inputs: Path, *, quick: bool) -> dict[str, Any]:
        """Return what is run: the paper's policies, exact selection, limits as requested."""
        from optsched.studies.guim_2009.plan import plan

        return plan(folders, inputs, quick=quick)

    def prepare(self, results: pd.DataFrame, inputs: Path) -> pd.DataFrame:
        """Return the results with the columns that the evaluation goes by."""
        from optsched.studies.guim_2009.evaluation import prepare

        return prepare(results, inputs)

    def figures(self, frame: pd.DataFrame) -> Mapping[str, Figure]:
        """Draw Figures 4 to 9."""
        from optsched.studies.guim_2009.figures import figures

        return figures(frame)

    def tables(self, frame: pd.DataFrame) -> Mapping[str, pd.DataFrame]:
        """Return the figures of every run."""
        from optsched.studies.guim_2009.evaluation import all_runs

        return {"policies": all_runs(frame)}

    def page(
        self,
        frame: pd.DataFrame,
        pictures: Mapping[str, str],
        versions: Mapping[str, str],
        *,
        quick: bool,
    ) -> Page:
        """Return the page, with the verdicts on the claims."""
        from optsched.studies.guim_2009.page import page

        return page(frame, pictures, versions, quick=quick)
