"""The pictures of a run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from optsched.report import gantt, histogram, layers, slots, style, utilization, waits

if TYPE_CHECKING:
    from collections.abc import Callable

    from matplotlib.figure import Figure

    from optsched.simulator.run import Run

PICTURES: dict[str, Callable[[Run], Figure | None]] = {
    "gantt": gantt.figure,
    "utilization": utilization.figure,
    "waits": waits.figure,
    "slots": slots.figure,
    "layers": layers.figure,
    "histogram": histogram.figure,
}


def draw(run: Run, folder: Path) -> list[Path]:
    """Write the pictures of a run to `folder`, each as SVG and PNG.

    ``gantt``: who held which processors when; of a long run the busiest part. ``utilization``:
    processors in use, waiting jobs and waiting work over time. ``waits``: distribution of the
    waiting times. ``slots``: free nodes by the size of their slot over time, on a line of nodes.
    Of jobs in boxes of a torus there is no ``gantt``, but ``layers``: the torus before and after a
    migration, and ``histogram``: for how long how much of it was in use.
    The same run gives the same bytes.

    Returns
    -------
    list of pathlib.Path
        The files written.

    Raises
    ------
    InputError
        If the folder cannot be written to.
    """
    drawn = {name: picture(run) for name, picture in PICTURES.items()}
    return [
        path
        for name, figure in drawn.items()
        if figure is not None
        for path in style.save(figure, folder, name)
    ]
