"""Saving of a run or a comparison to a folder."""

from __future__ import annotations

from pathlib import Path

from optsched.errors import InputError, brief
from optsched.files import written_folder
from optsched.report import comparison_folder, run_folder
from optsched.simulator.run import Run
from optsched.solvers.comparison import Comparison


def save(result: Run | Comparison, folder: str | Path, *, plots: bool = True) -> Path:
    """Write a run or a comparison to a folder, completely or not at all, and return the folder.

    Parameters
    ----------
    result : Run or Comparison
        Result of `optsched.simulate` or `optsched.compare`.
    folder : path
        The folder; an earlier result of the same kind is replaced.
    plots : bool
        Whether to draw the pictures and write the page, ``report.html``.

    Raises
    ------
    InputError
        If the result is neither, or the folder cannot be written or holds something else.
    """
    if not isinstance(result, Run | Comparison):
        expected = "expected a run or a comparison, of optsched.simulate or optsched.compare"
        raise InputError(f"{brief(result)}; {expected}", field="result")
    kind = run_folder if isinstance(result, Run) else comparison_folder
    with written_folder(Path(folder), kind.FOLDER) as temporary:
        kind.fill(result, temporary, plots=plots)
    return Path(folder)
