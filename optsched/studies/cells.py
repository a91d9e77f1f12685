"""Numbers over several runs as cells of a table, with their range or interval beside them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from optsched.report.page import Cell, cell
from optsched.studies.paired import Improvement, percent

if TYPE_CHECKING:
    import pandas as pd


def span(values: pd.Series[float], form: str) -> str:
    """Write the least and the largest value in a format of Python; nothing if there is but one."""
    return f"{values.min():{form}} to {values.max():{form}}" if len(values) > 1 else ""


def spread(values: pd.Series[float], form: str, middle: str = "mean") -> Cell:
    """Show the mean or median of finite values with their span; a dash if there are none."""
    known = values[np.isfinite(values)]
    if known.empty:
        return cell(None)
    centre = float(known.agg(middle))
    return Cell(f"{centre:{form}}", centre, note=span(known, form))


def improved(found: Improvement, note: str = "") -> Cell:
    """Show an improvement in percent, with its interval and a note."""
    notes = ", ".join(filter(None, (found.interval, note)))
    return Cell(f"{percent(found.mean)}%", found.mean, note=notes)


def matched(runs: pd.DataFrame) -> float:
    """Return the share of problems in which the heuristic is as good as the solution used."""
    problems = runs["problems"].sum()
    return float((runs["heuristic_matched"] * runs["problems"]).sum() / problems)
