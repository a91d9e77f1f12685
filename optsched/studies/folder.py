"""The folder of a study: its plan, its code, its claims, its page and its results.

Folder format: ``docs/formats/study-folder.md``.
"""

from __future__ import annotations

import hashlib
import importlib.util
import inspect
import sys
import traceback
from collections.abc import Callable, Mapping
from contextlib import redirect_stdout
from functools import cached_property
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from optsched.class_file import told
from optsched.content import bundled
from optsched.errors import InputError, UnknownNameError
from optsched.studies.claims import FILE as CLAIMS
from optsched.studies.claims import (
    Claim,
    NotRunError,
    Stated,
    frame_of,
    judge,
    markdown,
    named,
    read_claims,
    summary,
)
from optsched.text_files import read_toml

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

PLAN, CODE, PAGE, RESULTS = "plan.toml", "study.py", "page.md", "results"

FUNCTIONS = ["prepare", "load", "values", "tables", "figures", "runs", "inputs", "files", "cases"]
"""The functions that ``study.py`` may have; each has a default."""


class StudyFolder:
    """A study in its folder.

    Parameters
    ----------
    path : path
        The folder.

    Raises
    ------
    InputError
        If it has no ``plan.toml`` or ``study.py``, or the latter cannot be executed.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.name = path.resolve().name
        for file in (PLAN, CODE):
            if not (path / file).is_file():
                expected = f"expected a study, with {PLAN}, {CODE} and {PAGE}"
                raise InputError(f"no {file}; {expected}", file=path)
        self._module: ModuleType = self._guarded(self._executed)

    @cached_property
    def plan(self) -> dict[str, Any]:
        """The content of ``plan.toml``."""
        return read_toml(self.path / PLAN)

    @property
    def plan_sha256(self) -> str:
        """The SHA-256 of ``plan.toml``."""
        return hashlib.sha256((self.path / PLAN).read_bytes()).hexdigest()

    @cached_property
    def stated(self) -> Stated:
        """The claims of ``claims.toml``."""
        return read_claims(self.path / CLAIMS)

    def has(self, function: str) -> bool:
        """Return whether ``study.py`` has a function."""
        return callable(getattr(self._module, function, None))

    def call(self, function: str, *arguments: Any, **options: Any) -> Any:
        """Call a function of ``study.py``.

        Raises
        ------
        InputError
            If there is no such function, or it fails: the message has the line of the file.
        """
        if not self.has(function):
            own = [name for name, one in vars(self._module).items() if inspect.isfunction(one)]
            error = UnknownNameError("function", function, own)
            raise InputError(f"{error}", file=self.path / CODE)
        return self._guarded(getattr(self._module, function), *arguments, **options)

    def call_with(self, function: str, default: Any, *arguments: Any, **options: Any) -> Any:
        """Call a function that a study may have, with those of the options that it takes.

        An option that is not None has to be taken, or an `InputError` is raised.
        """
        if not self.has(function):
            return default
        taken = inspect.signature(getattr(self._module, function)).parameters
        own = {name: value for name, value in options.items() if name in taken}
        return self.call(function, *arguments, **own)

    def takes(self, option: str) -> bool:
        """Return whether a function of the study takes an option, such as ``trace``."""
        own = (getattr(self._module, name) for name in FUNCTIONS if self.has(name))
        return any(option in inspect.signature(one).parameters for one in own)

    def evaluated(self, results: pd.DataFrame) -> Evaluated:
        """Compute everything that rests on the results."""
        return Evaluated(self, results)

    def _executed(self) -> ModuleType:
        # a package, so that `from .clusters import Cluster` finds a file beside study.py
        place = hashlib.sha256(str(self.path.resolve()).encode()).hexdigest()
        name, file = f"optsched-study-{place[:12]}", self.path / CODE
        for stale in [one for one in sys.modules if one.partition(".")[0] == name]:
            del sys.modules[stale]
        places = [str(self.path)]
        spec = importlib.util.spec_from_file_location(name, file, submodule_search_locations=places)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        spec.loader.exec_module(module)
        return module

    def _guarded(self, function: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        """Call something of the user; what it raises becomes one line."""
        try:
            with redirect_stdout(sys.stderr):  # stdout is for the answer
                return function(*arguments, **options)
        except (NotRunError, InputError):
            raise
        except (Exception, SystemExit) as error:  # whatever the file does
            frames = traceback.extract_tb(error.__traceback__)
            own = [one for one in frames if one.filename.startswith(str(self.path))]
            file, line = (own[-1].filename, own[-1].lineno) if own else (self.path / CODE, None)
            if isinstance(error, SyntaxError):
                file = error.filename or file
            raise told(error, line).within(file) from None


class Evaluated:
    """What a study computes from its results.

    Parameters
    ----------
    study : StudyFolder
        The study.
    results : pandas.DataFrame
        The content of ``results.parquet``.

    Attributes
    ----------
    claims : dict of str to Claim
        The claims by key.
    values : dict of str to object
        The values by the names that the page may use.
    tables : dict of str to DataFrame or str
        The tables by name; those in Markdown alone are texts.
    """

    def __init__(self, study: StudyFolder, results: pd.DataFrame) -> None:
        self._study = study
        self._runs = runs = study.call_with("load", results, results)

        def call(function: str, *arguments: Any, **options: Any) -> Any:
            return study.call(function, runs, *arguments, **options)

        self.claims: dict[str, Claim] = judge(study.stated, call)
        self.values: dict[str, Any] = named(self._own("values"), self.claims)
        self.tables: dict[str, pd.DataFrame | str] = dict(self._own("tables"))
        if self.claims:
            self.tables = {"claims": frame_of(self.claims, study.stated.readings), **self.tables}

    def figures(self, *, narrow: bool) -> Mapping[str, Figure]:
        """Draw the figures by name, for a wide page or for a phone."""
        figures: Mapping[str, Figure] = self._own("figures", narrow=narrow)
        return figures

    def blocks(self) -> dict[str, str]:
        """Return the tables in Markdown by name, as the page shows them."""
        shown = {
            name: one if isinstance(one, str) else markdown(one)
            for name, one in self.tables.items()
        }
        if self.claims:
            shown["claims"] = summary(self.claims, self._study.stated.readings)
        return shown

    def frames(self) -> dict[str, pd.DataFrame]:
        """Return the tables that are kept as CSV."""
        return {name: one for name, one in self.tables.items() if not isinstance(one, str)}

    def _own(self, function: str, **options: Any) -> Any:
        try:
            found = self._study.call_with(function, {}, self._runs, self.claims, **options)
        except NotRunError:
            wrong = f"{function} asks for runs that are not there"
            raise InputError(wrong, file=self._study.path / CODE) from None
        if not isinstance(found, Mapping):
            wrong = f"{function} returned {type(found).__name__}; expected a dict by name"
            raise InputError(wrong, file=self._study.path / CODE)
        return found


def study_plans() -> dict[str, dict[str, Any]]:
    """Return the content of ``plan.toml`` of the studies in ``studies/``, by name."""
    places = (Path("studies"), bundled("studies"))
    files = [file for place in places for file in sorted(place.glob(f"*/{CODE}"))]
    return {file.parent.name: read_toml(file.with_name(PLAN)) for file in reversed(files)}


def find_study(text: str) -> StudyFolder:
    """Find a study by its folder, or by name in ``studies/`` here or in the clone of optsched.

    Raises
    ------
    InputError
        If there is no such folder, or it is no study.
    """
    path = Path(text)
    places = [Path("studies") / text, bundled("studies") / text] if path.name == text else []
    for place in (path, *places):
        if (place / CODE).is_file():
            return StudyFolder(place)
    if (path / PLAN if places else path).exists():
        return StudyFolder(path)
    if places:  # also the folder of its runs may have its name
        raise UnknownNameError("study", text, study_plans())
    raise InputError(f"no such folder; expected a study, with {PLAN}, {CODE} and {PAGE}", file=text)
