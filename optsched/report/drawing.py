"""Figures that a notebook shows."""

from __future__ import annotations

from io import BytesIO

from matplotlib.figure import Figure

DOTS_PER_INCH = 100


class Drawing(Figure):
    """Figure that a notebook displays although pyplot does not manage it."""

    def _repr_png_(self) -> bytes:
        return png(self)


def png(figure: Figure) -> bytes:
    """Return a figure as PNG."""
    data = BytesIO()
    figure.savefig(data, format="png", dpi=DOTS_PER_INCH)
    return data.getvalue()
