"""The study of Yang et al. 2014."""

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


@studies.register("yang-2014")
class Yang2014(Study):
    """Window-based locality-aware scheduling: Tables I to VI, windows, solvers, three variants."""

    paper: ClassVar[str] = (
        'X. Yang, Z. Zhou, W. Tang, X. Zheng, J. Wang, Z. Lan, "Balancing job performance with '
        'system performance via locality-aware scheduling on torus-connected systems", '
        "IEEE Cluster 2014"
    )

    def plan(self, folders: Sequence[Path], inputs: Path, *, quick: bool) -> dict[str, Any]:
        """Return what is run: parts of logs, policies, shares, draws."""
        from optsched.studies.yang_2014.plan import plan

        return plan(folders, quick=quick)

    def prepare(self, results: pd.DataFrame, inputs: Path) -> pd.DataFrame:
        """Return the results with the columns that the evaluation goes by."""
        from optsched.studies.yang_2014.evaluation import prepare

        return prepare(results)

    def figures(self, frame: pd.DataFrame) -> Mapping[str, Figure]:
        """Draw the six tables as curves, and window and solver."""
        from optsched.studies.yang_2014.evaluation import grid
        from optsched.studies.yang_2014.figures import figures

        return figures(frame, grid(frame))

    def tables(self, frame: pd.DataFrame) -> Mapping[str, pd.DataFrame]:
        """Return every cell of the tables, of all variants and solvers."""
        from optsched.studies.yang_2014.evaluation import all_cells

        return {"improvements": all_cells(frame)}

    def page(
        self,
        frame: pd.DataFrame,
        pictures: Mapping[str, str],
        versions: Mapping[str, str],
        *,
        quick: bool,
    ) -> Page:
        """Return the page, with the verdicts on the claims."""
        from optsched.studies.yang_2014.page import page

        return page(frame, pictures, versions, quick=quick)
