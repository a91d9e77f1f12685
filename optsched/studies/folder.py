"""The folder of a study: its plan, its code and its claims.

Folder format: ``docs/formats/study-folder.md``.
"""

from __future__ import annotations

import inspect
import sys
from contextlib import AbstractContextManager
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from types import ModuleType
from typing import Any

from optsched.content import bundled
from optsched.errors import InputError, UnknownNameError
from optsched.files import sha256_of
from optsched.registry import one_line_errors
from optsched.studies.claims import FILE as CLAIMS
from optsched.studies.claims import NotRunError, Stated, read_claims
from optsched.text_files import read_toml

PLAN, CODE, PAGE, RESULTS = "plan.toml", "study.py", "page.md", "results"
EXPECTED = f"expected a study, with {PLAN}, {CODE} and {PAGE}"


class StudyFolder:
    """A study in its folder.

    Raises `InputError` if there is no ``plan.toml`` or ``study.py``, or the latter fails.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.name = path.resolve().name
        for file in (PLAN, CODE):
            if not (path / file).is_file():
                raise InputError(f"no {file}; {EXPECTED}", file=path)
        with self._guarded():
            self._module = self._executed()

    @cached_property
    def plan(self) -> dict[str, Any]:
        """The content of ``plan.toml``."""
        return read_toml(self.path / PLAN)

    @property
    def plan_sha256(self) -> str:
        """The SHA-256 of ``plan.toml``."""
        return sha256_of(self.path / PLAN)

    @cached_property
    def stated(self) -> Stated:
        """The claims of ``claims.toml``."""
        return read_claims(self.path / CLAIMS)

    def has(self, function: str) -> bool:
        """Return whether ``study.py`` has a function."""
        return callable(getattr(self._module, function, None))

    def call(self, function: str, *arguments: Any, **options: Any) -> Any:
        """Call a function of ``study.py``.

        Raises `InputError` if there is none, or it fails: the message has the line of the file.
        """
        if not self.has(function):
            own = [name for name, one in vars(self._module).items() if inspect.isfunction(one)]
            raise UnknownNameError("function", function, own).within(self.path / CODE)
        with self._guarded():
            return getattr(self._module, function)(*arguments, **options)

    def call_with(self, function: str, default: Any, *arguments: Any, **options: Any) -> Any:
        """Call a function that a study may have; without it, return a default."""
        return self.call(function, *arguments, **options) if self.has(function) else default

    def _executed(self) -> ModuleType:
        """Execute ``study.py`` as a package, so that it imports files beside it as ``.other``."""
        file = self.path / CODE
        name = f"optsched-study-{sha256(str(self.path.resolve()).encode()).hexdigest()[:12]}"
        for stale in [one for one in sys.modules if one.partition(".")[0] == name]:
            del sys.modules[stale]
        module = sys.modules[name] = ModuleType(name)
        own = {"__file__": str(file), "__package__": name, "__path__": [str(self.path)]}
        vars(module).update(own)
        exec(compile(file.read_bytes(), str(file), "exec", dont_inherit=True), vars(module))
        return module

    def _guarded(self) -> AbstractContextManager[None]:
        return one_line_errors(self.path / CODE, self.path, NotRunError, InputError)


def study_plans() -> dict[str, dict[str, Any]]:
    """Return the content of ``plan.toml`` of the studies in ``studies/``, by name."""
    places = (Path("studies"), bundled("studies"))
    files = [file for place in places for file in sorted(place.glob(f"*/{CODE}"))]
    return {file.parent.name: read_toml(file.with_name(PLAN)) for file in reversed(files)}


def find_study(text: str) -> StudyFolder:
    """Find a study by its folder, or by name in ``studies/`` here or in the clone of optsched."""
    path = Path(text)
    places = [Path("studies") / text, bundled("studies") / text] if path.name == text else []
    for place in (path, *places):
        if (place / CODE).is_file():
            return StudyFolder(place)
    if (path / PLAN if places else path).exists():
        return StudyFolder(path)
    if places:  # also the folder of its runs may have its name
        raise UnknownNameError("study", text, study_plans())
    raise InputError(f"no such folder; {EXPECTED}", file=text)
