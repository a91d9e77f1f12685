"""The command line: ``optsched COMMAND``."""

from __future__ import annotations

import io
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from cyclopts import App

DONE, BAD_INPUT, USAGE, NO_SOLUTION, INFEASIBLE, INTERRUPTED = 0, 1, 2, 3, 4, 130
"""Exit codes."""

COMMANDS = {
    "solve": "Answer one snapshot of a decision.",
    "compare": "Compare solvers on the same snapshots: quality against time.",
    "simulate": "Run a trace under a policy, with a solver behind it.",
    "sweep": "Run a sweep: many simulations from one file, none of them twice.",
    "study": "Run the evaluation of a paper again, and judge its claims.",
    "report": "Write the HTML pages of run and comparison folders anew.",
    "trace": "Look at traces, clean, convert, scale, annotate, find, fit and generate them.",
    "snapshot": "Look at snapshots, check them, export them.",
    "list": "List policies, solvers, profiles, models, machines, workloads or trace formats.",
    "doctor": "Say what is installed and whether it works.",
}
PATIENCE = 1.0
"""Seconds that threads have to finish after a command."""

TO_FOLDERS = ("compare", "simulate", "sweep", "study")
"""Commands whose ``-o`` is a folder; that of all others is a file."""

INCOMPLETE: tuple[list[str], ...] = ([], ["trace"], ["trace", "annotate"], ["snapshot"])
"""What names no command yet; it gets the help, as wrong usage."""

_interrupts: list[int] = []
"""The signals that asked to stop."""


def build() -> App:
    """Return the command-line application; a command is imported when it is run."""
    from cyclopts import App, Parameter

    from optsched.version import __version__

    app = App(
        name="optsched",
        help="Every decision of a batch scheduler as an optimisation model, any solver behind it.",
        version=__version__,
        suppress_keyboard_interrupt=False,
        # a name may begin with a bracket; no option is written as JSON
        default_parameter=Parameter(json_list=False, json_dict=False),
    )
    for name, summary in COMMANDS.items():
        app.command(f"optsched.cli.{name}_command:command", name=name, help=summary)
    if sys.flags.optimize > 1:
        _restore_help()
    return app


def _restore_help() -> None:
    """Give the commands the docstrings that help is made of; ``python -OO`` drops them."""
    import importlib
    import inspect

    from optsched.docstrings import docstring

    for name in (*COMMANDS, "annotate"):
        module = importlib.import_module(f"optsched.cli.{name}_command")
        for function in vars(module).values():
            if inspect.isfunction(function) and function.__module__ == module.__name__:
                function.__doc__ = docstring(function)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit.

    0 done, 1 bad input or a wrong answer of a solver, 2 usage, 3 no solution, 4 infeasible.
    """
    import signal

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _interrupt)
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed by the caller
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115 (to the end)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # any name can be printed anywhere
    _show_log()
    code = run(sys.argv[1:] if arguments is None else list(arguments))
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)  # all is done; it would only spoil the exit code
    _leave_threads(code)
    sys.exit(code)


def _leave_threads(code: int) -> None:
    """Exit at once if a solver left threads behind, which Python would wait for without end."""
    import threading
    from contextlib import suppress

    left = [one for one in threading.enumerate() if not one.daemon]
    left = [one for one in left if one is not threading.main_thread()]
    for thread in left:
        thread.join(PATIENCE / len(left))
    if any(thread.is_alive() for thread in left):
        with suppress(OSError):
            print("optsched: left behind threads of a solver, still at work", file=sys.stderr)
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError):
                stream.flush()
        os._exit(code)


def _show_log() -> None:
    """Show on stderr what the package has to say, and not that matplotlib has no home."""
    import logging

    from optsched.errors import one_line

    class OneLine(logging.Formatter):
        def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802
            return one_line(super().formatMessage(record))

    handler = logging.StreamHandler()
    handler.setFormatter(OneLine("optsched: %(message)s"))
    log = logging.getLogger("optsched")
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    logging.getLogger("matplotlib").setLevel(logging.ERROR)


def _interrupt(number: int, _frame: object) -> None:
    """Treat a polite kill, such as a batch system's, like Ctrl-C: what is half done is removed."""
    _interrupts.append(number)
    raise KeyboardInterrupt


def run(arguments: list[str]) -> int:
    """Run a command and return the exit code."""
    try:
        return _run(arguments)
    except KeyboardInterrupt:
        return _interrupted()
    except OSError as error:
        if isinstance(error, BrokenPipeError) and _nobody_reads():
            # the reader of our output, ``head`` for instance, has seen enough
            _drop_output()
            return DONE
        _drop_output()
        from optsched.errors import one_line

        told = f"{error.filename or 'output'}: {error.strerror or error}"
        print(f"optsched: {one_line(told)}", file=sys.stderr)
        return BAD_INPUT
    except MemoryError as error:
        told = " ".join(str(error).split())
        print(f"optsched: out of memory{told and ': '}{told}", file=sys.stderr)
        return BAD_INPUT
    except Exception:
        # a compiled module that is interrupted while it loads fails with an error of its own
        if _interrupts:
            return _interrupted()
        raise


def _interrupted() -> int:
    print("optsched: interrupted; nothing was written", file=sys.stderr)
    return INTERRUPTED


def _run(arguments: list[str]) -> int:
    # imported here, so that Ctrl-C is in good hands while they load
    from cyclopts import CycloptsError, MissingArgumentError

    from optsched.errors import InputError, one_line

    app = build()
    try:
        if arguments in INCOMPLETE:
            app.help_print(arguments)
            code = USAGE
        else:
            code = app(
                arguments, exit_on_error=False, print_error=False, result_action="return_value"
            )
        sys.stdout.flush()
    except CycloptsError as error:
        told = one_line(" ".join(str(error).split()))
        if isinstance(error, MissingArgumentError) and "--output" in told:
            chain = error.command_chain or ()
            what = "DIR" if chain[:1] and chain[0] in TO_FOLDERS else "FILE"
            told = f"{' '.join(chain)} needs -o {what}, where to write"
        print(f"optsched: {told}", file=sys.stderr)
        return USAGE
    except InputError as error:
        print(f"optsched: {error}", file=sys.stderr)
        return BAD_INPUT
    return code if isinstance(code, int) else DONE


def _nobody_reads() -> bool:
    """Return whether the reader of stdout or stderr is gone."""
    import select
    from contextlib import suppress

    poll = select.poll()
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):  # it is no file
            poll.register(stream.fileno(), 0)
    return any(event & (select.POLLERR | select.POLLHUP) for _, event in poll.poll(0))


def _drop_output() -> None:
    """Let what is left in the buffer of stdout go nowhere, instead of failing once more at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
