"""The study that the tests of a module are about, which it names, with its stored results."""

import pytest

from optsched.content import bundled
from optsched.studies.folder import Evaluated, StudyFolder, read_results


@pytest.fixture(scope="module")
def study(request):
    return StudyFolder(bundled("studies") / request.module.STUDIED)


@pytest.fixture(scope="module")
def frame(study):
    """The stored results of its runs, as they are on file."""
    return read_results(study.path / "results")


@pytest.fixture(scope="module")
def runs(study, frame):
    """The same as the functions of the study take them."""
    return study.call("load", frame)


@pytest.fixture(scope="module")
def found(study, frame):
    """What the study says of them."""
    return Evaluated(study, frame)
