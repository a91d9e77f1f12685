"""The study of Gonthier et al. 2024."""

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


@studies.register("gonthier-2024")
class Gonthier2024(Study):
    """Locality-aware scheduling: the authors' day, Tables I to III, Figures 2 and 7 to 11."""

    paper: ClassVar[str] = (
        "M. Gonthier, E. Larsson, L. Marchal, C. Nettelblad, S. Thibault, "
        '"Data-driven locality-aware batch scheduling", APDCM 2024'
    )

    def inputs(self, folders: Sequence[Path], *, quick: bool) -> Mapping[str, Trace]:
        """Return the workloads: the authors' day, and weeks of the logs that are there."""
        from optsched.studies.gonthier_2024.inputs import inputs

        return inputs(folders, quick=quick)

    def plan(self, folders: Sequence[Path], inputs: Path, *, quick: bool) -> dict[str, Any]:
        """Return what is run: ten schedulers, and on the day what the authors' code leaves open."""
        from optsched.studies.gonthier_2024.plan import plan

        return plan(folders, inputs, quick=quick)

    def prepare(self, results: pd.DataFrame, inputs: Path) -> pd.DataFrame:
        """Return the results with the columns that the evaluation goes by."""
        from optsched.studies.gonthier_2024.evaluation import prepare

        return prepare(results, inputs)

    def figures(self, frame: pd.DataFrame) -> Mapping[str, Figure]:
        """Draw Figures 2 and 7, 8, 9, 10 and 11."""
        from optsched.studies.gonthier_2024.figures import figures

        return figures(frame)

    def tables(self, frame: pd.DataFrame) -> Mapping[str, pd.DataFrame]:
        """Return the figures of every run."""
        from optsched.studies.gonthier_2024.evaluation import all_runs

        return {"schedulers": all_runs(frame)}

    def page(
        self,
        frame: pd.DataFrame,
        pictures: Mapping[str, str],
        versions: Mapping[str, str],
        *,
        quick: bool,
    ) -> Page:
        """Return the page, with the verdicts on the claims."""
        from optsched.studies.gonthier_2024.page import page

        return page(frame, pictures, versions, quick=quick)
