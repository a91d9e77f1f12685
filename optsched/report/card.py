"""Cards: what a notebook shows of an object, as HTML without scripts and styles of its own."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from optsched.report.page import Facts, Table, environment

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Card:
    """What a notebook shows of an object."""

    title: str  # the object in a few words
    lead: str = ""  # a sentence or two on it; may be empty
    parts: Sequence[Facts | Table] = ()  # names and values, and tables
    folded: Facts | None = None  # further names and values, to unfold
    picture: Figure | None = None

    @property
    def source(self) -> str:
        """The picture as a data URL; empty without one."""
        if self.picture is None:
            return ""
        from optsched.report.drawing import png

        return f"data:image/png;base64,{base64.b64encode(png(self.picture)).decode()}"

    def html(self) -> str:
        """Return the card as HTML, with all texts escaped."""
        return environment().get_template("card.html.j2").render(card=self)
