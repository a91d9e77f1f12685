"""The command line: ``optsched COMMAND``."""

from __future__ import annotations

import io
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path
    from typing import Any

    from cyclopts import App

DONE, BAD_INPUT, USAGE, NO_SOLUTION, INFEASIBLE, INTERRUPTED = 0, 1, 2, 3, 4, 130  # exit codes

COMMANDS = {
    "solve": "Solve one snapshot of a decision.",
    "compare": (
        "Compare solvers on the same snapshots, or policies by their runs of the same jobs."
    ),
    "simulate": (
        "Simulate a trace under a policy, with any solver for its decisions, or under several."
    ),
    "sweep": "Run a sweep: many simulations from one file, each of them once.",
    "study": "Run a study, judge its claims, and check the numbers on its page.",
    "report": "Write the HTML pages of folders that optsched wrote, from their files.",
    "trace": "Inspect, clean, convert, scale, annotate, find, fit and generate traces.",
    "snapshot": "Inspect, check, convert and export snapshots.",
    "slurm": "Plan the pending jobs of Slurm, and let Slurm follow the plan.",
    "list": "List policies, solvers and all else that the command line takes by name.",
    "doctor": "Check the installation: versions, and a small problem for each solver.",
}
"""Commands, each with the first line of its docstring, so that help imports no command."""

JOIN_SECONDS = 1.0  # time limit in seconds for threads to finish after a command
SOON = 0.1  # delay in seconds of an interrupt that is raised again: the hook has returned by then

TO_FOLDERS = ("compare", "simulate", "sweep", "study")
"""Commands whose ``-o`` is a folder; that of all others is a file."""

INCOMPLETE: tuple[list[str], ...] = ([], ["trace"], ["trace", "annotate"], ["snapshot"], ["slurm"])
"""Arguments that name no command yet; they get the help, as wrong usage."""

COMPLETE = "__complete"  # the word with which the completion of a shell asks for names

COMMAS = ("""printf -v _q '%q' "$_x";""", """printf -v _q '%q' "$_x"; _q="${_q//\\\\,/,}";""")
"""What the script for bash does with a name, and what it does so that commas have no backslash."""

AT_ONCE = 0.5
"""Seconds within which two signals are one interrupt: to a process and to its group, say."""

_interrupts: list[float] = []  # the times of the interrupts so far


def build() -> App:
    """Return the command-line application, which imports a command when the command is run."""
    from cyclopts import App, Parameter
    from cyclopts.completion.install import create_install_completion_command

    from optsched.cli.terminal import add_options
    from optsched.version import __version__

    app = App(
        name="optsched",
        help="Model each decision of a batch scheduler, solve it with any solver, and simulate the "
        "effect.",
        version=__version__,
        suppress_keyboard_interrupt=False,
        # a name may begin with a bracket; no option is written as JSON
        default_parameter=Parameter(json_list=False, json_dict=False),
    )
    app.command(
        create_install_completion_command(installer(app), True),
        name="--install-completion",
        help="Install the completion of commands, options and names in a shell.",
    )
    add_options(app)
    for name, summary in COMMANDS.items():
        app.command(f"optsched.cli.{name}_command:command", name=name, help=summary)
    if sys.flags.optimize > 1:
        _restore_help()
    return app


def installer(app: App) -> Callable[..., Path]:
    """Return a function that installs the completion of an application."""

    def install(**given: Any) -> Path:
        script = app.install_completion(**given)
        script.write_text(script.read_text().replace(*COMMAS))
        return script

    return install


def _restore_help() -> None:
    """Restore the docstrings of commands, which ``python -OO`` drops and the help needs."""
    import importlib
    import inspect

    from optsched.documentation import docstring

    for name in (*COMMANDS, "slurm_explain"):
        module = importlib.import_module(f"optsched.cli.{name}_command")
        for function in vars(module).values():
            if inspect.isfunction(function) and function.__module__ == module.__name__:
                function.__doc__ = docstring(function)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit.

    The exit code is 0 for success, 1 for bad input or a wrong answer of a solver, 2 for wrong
    usage, 3 for no solution, 4 for infeasible and 130 for an interrupt.
    """
    import signal

    _handle_signals(_interrupt)
    sys.unraisablehook = _raise_again
    from contextlib import suppress  # while Ctrl-C is handled

    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed by the caller
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115 (open until exit)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # print any name in any encoding
    _show_log()
    code = INTERRUPTED
    with suppress(KeyboardInterrupt):  # raised again, once the first is reported
        with suppress(KeyboardInterrupt):  # raised again, while the first is reported
            code = run(sys.argv[1:] if arguments is None else list(arguments))
        _handle_signals(signal.SIG_IGN)
    _handle_signals(signal.SIG_IGN)  # all is done; keep the exit code
    _join_threads(code)
    sys.exit(code)


def _handle_signals(handler: Any) -> None:
    import signal

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGALRM):
        signal.signal(number, handler)


def _join_threads(code: int) -> None:
    """Wait for the threads of solvers, and exit the process if some do not end."""
    import threading
    from contextlib import suppress

    threads = [one for one in threading.enumerate() if not one.daemon]
    threads = [one for one in threads if one is not threading.main_thread()]
    for thread in threads:
        with suppress(RuntimeError):  # interrupted before it was started
            thread.join(JOIN_SECONDS / len(threads))
    if any(thread.is_alive() for thread in threads):
        with suppress(OSError):
            print("optsched: threads of a solver are still running", file=sys.stderr)
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError):
                stream.flush()
        os._exit(code)


def _show_log() -> None:
    """Show log messages of the package on stderr, and silence warnings of matplotlib."""
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
    """Treat SIGTERM, which batch systems send, like Ctrl-C: unfinished outputs are removed."""
    import signal
    import time

    now = time.monotonic()
    again = number == signal.SIGALRM  # of one that Python has dropped
    if not again and _interrupts and now - _interrupts[-1] < AT_ONCE:
        return
    _interrupts.append(now)
    raise KeyboardInterrupt


def _raise_again(unraisable: sys.UnraisableHookArgs) -> None:
    """Interrupt again where Python drops the exception, in a destructor for instance."""
    import signal

    if issubclass(unraisable.exc_type, KeyboardInterrupt):
        signal.setitimer(signal.ITIMER_REAL, SOON)
    else:
        sys.__unraisablehook__(unraisable)


def run(arguments: list[str]) -> int:
    """Run a command and return the exit code."""
    try:
        return _run(arguments)
    except KeyboardInterrupt:
        return _interrupted()
    except OSError as error:
        is_read = not isinstance(error, BrokenPipeError) or not _reader_is_gone()
        # discard the buffer of stdout, which would raise the error again at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if not is_read:  # by ``head`` for instance, which has closed the output
            return DONE
        from optsched.errors import one_line

        message = f"{error.filename or 'output'}: {error.strerror or error}"
        print(f"optsched: {one_line(message)}", file=sys.stderr)
        return BAD_INPUT
    except MemoryError as error:
        detail = " ".join(str(error).split())
        print(f"optsched: out of memory{detail and ': '}{detail}", file=sys.stderr)
        return BAD_INPUT
    except Exception:
        # a compiled module that is interrupted while loading raises another exception
        if _interrupts:
            return _interrupted()
        raise


def _interrupted() -> int:
    print("optsched: interrupted; nothing was written", file=sys.stderr)
    return INTERRUPTED


def _run(arguments: list[str]) -> int:
    # imported here, so that Ctrl-C is handled during these imports
    import re

    from cyclopts import CycloptsError, MissingArgumentError, UnusedCliTokensError

    from optsched.errors import InputError, one_line

    app = build()
    if arguments[:1] == [COMPLETE]:
        app(arguments, result_action="return_value")
        return DONE
    if arguments[:1] == ["help"]:
        arguments = [*arguments[1:], "--help"]
    if arguments and not arguments[0].startswith("-") and arguments[0] not in COMMANDS:
        arguments = arguments[:1]  # an error, even with --help
    if not arguments or arguments[0].startswith("-"):  # the list of commands, without Markdown
        app.help_format = "plaintext"  # whose import is a quarter of the time
    code = DONE
    try:
        if arguments in INCOMPLETE:
            arguments, code = [*arguments, "--help"], USAGE
        returned = app.meta(
            arguments, exit_on_error=False, print_error=False, result_action="return_value"
        )
        sys.stdout.flush()
    except CycloptsError as error:
        message = one_line(" ".join(str(error).split()))
        chain = error.command_chain or ()
        if isinstance(error, UnusedCliTokensError) and chain[:1] == ("solve",):
            message = "solve expects one snapshot; compare takes several"
        elif isinstance(error, MissingArgumentError) and "--output" in message:
            place = "DIR, the folder" if chain[:1] and chain[0] in TO_FOLDERS else "FILE, the file"
            message = f"{' '.join(chain)} needs -o {place} to write"
        elif isinstance(error, UnusedCliTokensError) and error.unused_tokens:
            first = one_line(repr(error.unused_tokens[0]))
            message = f"{first} is one word too many; see `optsched {' '.join(chain)} --help`"
        elif found := re.search(r"parameter ([A-Z]+) requires an argument", message):
            message = f"{' '.join(chain)} needs {found[1]}; see `optsched {' '.join(chain)} --help`"
        print(f"optsched: {message}", file=sys.stderr)
        return USAGE
    except InputError as error:
        if _interrupts:  # by an interrupt while a module was loaded, for instance
            raise
        print(f"optsched: {error}", file=sys.stderr)
        return BAD_INPUT
    return code or (returned if isinstance(returned, int) else DONE)


def _reader_is_gone() -> bool:
    import select
    from contextlib import suppress

    poll = select.poll()
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):  # the stream is not a file
            poll.register(stream.fileno(), 0)
    return any(event & (select.POLLERR | select.POLLHUP) for _, event in poll.poll(0))
