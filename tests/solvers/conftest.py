"""The installed solvers, and those that answer any program."""

from typing import Any

import pytest

from optsched import registry
from optsched.models import WindowMKP
from optsched.models.program import formulations


def make_solver(name: str, **options: Any):
    """Return a solver, or skip the test with the reason why there is none."""
    cls = registry.solvers[name]
    if cls.installed_version() is None:
        pytest.skip(f"{cls.requires} is not installed")
    return cls(**options)


@pytest.fixture
def solver_named():
    """Return the function that makes an installed solver, or skips."""
    return make_solver


@pytest.fixture(params=[n for n in registry.solvers if registry.solvers[n].models is None])
def generic(request):
    """Each solver in turn that answers any problem."""
    return make_solver(request.param)


@pytest.fixture(scope="session")
def hard() -> WindowMKP:
    """Return a window that every generic solver leaves open for minutes."""
    sizes = range(101, 301, 2)
    return WindowMKP([*sizes], [641] * 9, [size + size * size % 17 for size in sizes])


@pytest.fixture
def own_models():
    """Forget the models that a test states."""
    holders = registry.models._classes, formulations
    kept = [*map(dict, holders)]
    yield
    for classes, before in zip(holders, kept):
        classes.clear()
        classes.update(before)
