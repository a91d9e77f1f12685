"""The study of Franke et al. 1999."""

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


@studies.register("franke-1999")
class Franke1999(Study):
    """Gang scheduling against backfilling: Figures 3 to 9, 81 modelled workloads, six variants."""

    paper: ClassVar[str] = (
        'H. Franke, J. Jann, J. E. Moreira, P. Pattnaik, M. A. Jette, "An evaluation of parallel '
        'job scheduling for ASCI Blue-Pacific", Supercomputing 1999'
    )

    def inputs(self, folders: Sequence[Path], *, quick: bool) -> Mapping[str, Trace]:
        """Return the workloads: of the paper's model, and of SDSC-BLUE."""
        from optsched.studies.franke_1999.inputs import inputs

        return inputs(folders, quick=quick)

    def plan(self, folders: Sequence[Path], inputs: Path, *, quick: bool) -> dict[str, Any]:
        """Return what is run: workloads, strategies, variants, packings, costs."""
        from optsched.studies.franke_1999.plan import plan

        return plan(inputs, quick=quick)

    def prepare(self, results: pd.DataFrame, inputs: Path) -> pd.DataFrame:
        """Return the results with the columns that the evaluation goes by."""
        from optsched.studies.franke_1999.evaluation import prepare

        return prepare(results, inputs)

    def figures(self, frame: pd.DataFrame) -> Mapping[str, Figure]:
        """Draw Figures 3 to 8."""
        from optsched.studies.franke_1999.figures import figures

        return figures(frame)

    def tables(self, frame: pd.DataFrame) -> Mapping[str, pd.DataFrame]:
        """Return the means of every run."""
        from optsched.studies.franke_1999.evaluation import all_runs

        return {"strategies": all_runs(frame)}

    def page(
        self,
        frame: pd.DataFrame,
        pictures: Mapping[str, str],
        versions: Mapping[str, str],
        *,
        quick: bool,
    ) -> Page:
        """Return the page, with the verdicts on the claims."""
        from optsched.studies.franke_1999.page import page

        return page(frame, pictures, versions, quick=quick)
