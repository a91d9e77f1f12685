"""The options of all commands: how much they say."""

from __future__ import annotations

import logging
from typing import Annotated, Any

from cyclopts import App, Group, Parameter

from optsched.cli import terminal
from optsched.errors import InputError

Words = Annotated[str, Parameter(show=False, allow_leading_hyphen=True)]
VERBOSE = "Say what is read, which solvers run, and which kernels are compiled."
QUIET = "Print only errors and warnings: no notes, no progress."
GROUP = Group("Options of all commands", sort_key=9)


def add_options(app: App) -> None:
    """Add ``-v`` and ``-q`` to an application; they are parsed before its command is."""

    def launch(
        *words: Words,
        verbose: Annotated[
            bool, Parameter(alias="-v", negative=(), group=GROUP, help=VERBOSE)
        ] = False,
        quiet: Annotated[bool, Parameter(alias="-q", negative=(), group=GROUP, help=QUIET)] = False,
    ) -> Any:
        if verbose and quiet:
            raise InputError("excludes --quiet", field="--verbose")
        level = logging.DEBUG if verbose else logging.WARNING if quiet else logging.INFO
        logging.getLogger("optsched").setLevel(level)
        terminal.set_quiet(quiet)
        if not quiet:
            terminal.show_compilation()
        return app(words, exit_on_error=False, print_error=False, result_action="return_value")

    app.meta.suppress_keyboard_interrupt = app.suppress_keyboard_interrupt
    app.meta.default(launch)
