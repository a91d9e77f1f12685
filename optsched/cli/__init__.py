"""The command line: ``optsched COMMAND``."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence

from cyclopts import App, CycloptsError

from optsched import __version__
from optsched.errors import InputError

DONE, BAD_INPUT, USAGE, NO_SOLUTION, INFEASIBLE, INTERRUPTED = 0, 1, 2, 3, 4, 130
"""Exit codes."""

COMMANDS = {
    "solve": "Answer one snapshot of a decision.",
    "compare": "Compare solvers on the same snapshots: quality against time.",
    "simulate": "Run a trace under a policy, with a solver behind it.",
    "trace": "Look at traces, clean them, convert them, find them.",
    "snapshot": "Look at snapshots, check them, export them.",
    "list": "List policies, solvers, profiles, models, machines or trace formats.",
    "doctor": "Say what is installed and whether it works.",
}


def build() -> App:
    """Return the command-line application; a command is imported when it is run."""
    app = App(
        name="optsched",
        help="Every decision of a batch scheduler as an optimisation model, any solver behind it.",
        version=__version__,
        suppress_keyboard_interrupt=False,
    )
    for name, summary in COMMANDS.items():
        app.command(f"optsched.cli.{name}_command:command", name=name, help=summary)
    return app


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit: 0 done, 1 bad input, 2 usage, 3 no solution, 4 infeasible."""
    signal.signal(signal.SIGTERM, _interrupt)
    sys.exit(run(sys.argv[1:] if arguments is None else list(arguments)))


def _interrupt(_number: int, _frame: object) -> None:
    """Treat a polite kill, such as a batch system's, like Ctrl-C: what is half done is removed."""
    raise KeyboardInterrupt


def run(arguments: list[str]) -> int:
    """Run a command and return the exit code."""
    app = build()
    try:
        if not arguments:
            app.help_print([])
            return USAGE
        code = app(arguments, exit_on_error=False, print_error=False, result_action="return_value")
        sys.stdout.flush()
        return code if isinstance(code, int) else DONE
    except CycloptsError as error:
        print(f"optsched: {' '.join(str(error).split())}", file=sys.stderr)
        return USAGE
    except InputError as error:
        print(f"optsched: {error}", file=sys.stderr)
        return BAD_INPUT
    except KeyboardInterrupt:
        print("optsched: interrupted; nothing was written", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:
        # the reader of our output, ``head`` for instance, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return DONE
    except OSError as error:
        print(f"optsched: {error}", file=sys.stderr)
        return BAD_INPUT
