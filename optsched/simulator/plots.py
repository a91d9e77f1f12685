"""The registered pictures of a run, as methods that draw them."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any

from optsched.docstrings import first_line
from optsched.errors import InputError
from optsched.registry import pictures

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Plots:
    """The pictures of a run, each a method that returns a figure of matplotlib.

    ``run.plot`` in a notebook and ``dir(run.plot)`` list the pictures that the run has,
    ``help(run.plot.gantt)`` shows the arguments of one. Most take a period: ``days=(10, 12)``. All
    take ``size=(3.5, 2.4)``, width and height in inches, and ``title=False``.
    """

    def __init__(self, run: Any) -> None:
        self._run = run

    def __dir__(self) -> list[str]:
        return [name for name in pictures if not pictures[name]().why_not(self._run)]

    def __repr__(self) -> str:
        lines = [f"  {name}(): {first_line(pictures[name])}" for name in dir(self)]
        return "\n".join([f"<pictures of {self._run!r}>", *lines])

    def __getattr__(self, name: str) -> Callable[..., Figure]:
        if name.startswith("_"):
            raise AttributeError(name)
        try:
            picture = pictures[name]()
        except InputError as error:
            raise AttributeError(str(error)) from None
        run = self._run

        @wraps(picture.figure)
        def draw(*args: Any, **options: Any) -> Figure:
            return picture.drawn(run, *args, **options)  # type: ignore[no-any-return]

        _, *own = inspect.signature(picture.figure).parameters.values()
        drawn = inspect.signature(picture.drawn).parameters
        own += [drawn["size"], drawn["title"]]
        returned = "matplotlib.figure.Figure"
        draw.__signature__ = inspect.Signature(own, return_annotation=returned)  # type: ignore[attr-defined]
        draw.__name__ = draw.__qualname__ = name
        return draw
