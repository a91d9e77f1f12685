"""Errors that a user can fix, with the place of the mistake and what was expected."""

from __future__ import annotations

import difflib
import importlib
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

LONGEST = 2_000
"""Most characters of a mistake or of a name in a message, but for what stands for the others."""

MANY = 40
"""Most known names in a message; of more, the first half as many are shown."""


def one_line(text: str) -> str:
    r"""Return a text with line breaks, control characters and directional marks escaped.

    Visible characters, including the letters of all scripts, are kept.

    >>> print(one_line("日本 \x1b[2J.swf\n"))
    日本 \x1b[2J.swf\n
    """
    if text.isprintable():
        return text
    import unicodedata

    return "".join(
        sign if sign.isprintable() or unicodedata.category(sign) == "Zs" else repr(sign)[1:-1]
        for sign in text
    )


def _shortened(text: str) -> str:
    """Return a text in one line, without its middle if it is very long."""
    if len(text) > LONGEST:
        text = f"{text[: LONGEST // 2]} ... {text[-LONGEST // 2 :]}"
    return one_line(text)


def brief(value: object) -> str:
    """Return a value for a message: as Python writes it if that is short, else its type.

    >>> brief(5), brief([0] * 100), brief(dict)
    ('5', 'a list', 'the class dict, not dict()')
    """
    if isinstance(value, type):
        return f"the class {value.__name__}, not {value.__name__}()"
    text = repr(value)
    return text if len(text) <= 60 and text.isprintable() else f"a {type(value).__name__}"


def path_of(given: object, field: str, expected: str) -> Path:
    """Return the path that a user gave."""
    if not isinstance(given, str | Path):
        raise InputError(f"{brief(given)}; {expected}", field=field)
    return Path(given)


class InputError(ValueError):
    """Input that cannot be used, reported in one line per mistake.

    Characters that would break the line, in a file name for instance, are escaped.

    Parameters
    ----------
    *mistakes : str
        Mistakes, each with what was expected, in one short sentence.
    file : path, optional
        The file with the mistakes.
    line : int, optional
        The line of the file, from 1.
    field : str, optional
        The name of the field on that line or in that object.
    """

    def __init__(
        self,
        *mistakes: str,
        file: str | Path | None = None,
        line: int | None = None,
        field: str | None = None,
    ) -> None:
        self.mistakes = mistakes
        self.file = None if file is None else str(file)
        self.line = line
        self.field = field
        super().__init__(str(self))

    def __str__(self) -> str:
        line = "" if self.line is None else f"line {self.line}"
        place = ", ".join(
            filter(None, (one_line(self.file or ""), line, _shortened(self.field or "")))
        )
        prefix = f"{place}: " if place else ""
        if len(self.mistakes) == 1:
            return prefix + _shortened(self.mistakes[0])
        listed = "".join(f"\n  - {_shortened(mistake)}" for mistake in self.mistakes)
        return f"{prefix}{len(self.mistakes)} mistakes{listed}"

    def lines(self) -> list[str]:
        """Return the mistakes one by one, each with its place."""
        return [
            str(InputError(mistake, file=self.file, line=self.line, field=self.field))
            for mistake in self.mistakes
        ]

    def within(self, file: str | Path) -> InputError:
        """Return the same mistakes, placed in `file`."""
        return InputError(*self.mistakes, file=file, line=self.line, field=self.field)


class StatementError(InputError):
    """Mistake in a function that states a model or a rule; a solver that meets it has failed."""


class NoJobsError(InputError):
    """A file that is right but for having no jobs, as accounting has at first."""


class UnknownNameError(InputError):
    """Name of some kind, a solver for instance, that is not among the known ones.

    The noun may name an owner: of ``setting of policy 'easy'`` the message makes ``unknown setting
    'x' of policy 'easy'``. What to do `otherwise` ends the message where no known name is close.

    >>> print(UnknownNameError("node", "z", [f"c{n:02}" for n in range(99)]))  # doctest: +ELLIPSIS
    unknown node 'z'; known: c00, ... c19, and 79 more
    """

    def __init__(self, noun: str, name: str, known: Iterable[str], otherwise: str = "") -> None:
        self.noun = noun
        self.name = name
        self.known: Sequence[str] = sorted(known)
        close = difflib.get_close_matches(name, self.known, n=3, cutoff=0.51)
        close = close or [one for one in self.known if name and one.startswith(name)][:3]
        shown = [*self.known]
        if len(shown) > MANY:
            shown[MANY // 2 :] = [f"and {len(shown) - MANY // 2:,} more"]
        known_names = f"known: {', '.join(shown)}" if shown else "there is none"
        hint = f"did you mean {' or '.join(close)}?" if close else f"{known_names}{otherwise}"
        kind, of, owner = noun.partition(" of ")
        super().__init__(f"unknown {kind} {name!r}{of}{owner}; {hint}")


def no_such_file(path: Path, names: Iterable[str], what: str = "no such file") -> InputError:
    """Return the error of a missing file, with files beside it, or `names`, that look alike."""
    files: list[str] = []
    with suppress(OSError, ValueError):  # the folder cannot be read, or has no valid name
        files = [file.name for file in path.parent.iterdir()]
    known = {name.lower(): name for name in (*files, *names)}
    close = difflib.get_close_matches(path.name.lower(), known, n=3)
    hint = f"; did you mean {' or '.join(known[name] for name in close)}?" if close else ""
    return InputError(what + hint, file=path)


class MissingDependencyError(InputError):
    """Missing optional package, which a chosen solver or study for instance needs."""


def optional_module(name: str, what: str, extra: str) -> Any:
    """Return a module of an optional package, imported for `what`."""
    try:
        return importlib.import_module(name)
    except ImportError:
        package = name.partition(".")[0]
        raise MissingDependencyError(
            f"{what} needs the package {package!r}, which is not installed; "
            f"pip install 'optsched[{extra}]'"
        ) from None
