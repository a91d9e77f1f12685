"""Instances of the literature against their known optima."""

import csv
import tarfile
from functools import cache
from pathlib import Path

import pytest

from optsched import Budget
from optsched.models.snapshot_file import load_snapshot
from optsched.solvers.result import Status
from optsched.solvers.solving import solve

INSTANCES = Path(__file__).parents[3] / "../shared/instances/mkp"

pytestmark = pytest.mark.skipif(not INSTANCES.is_dir(), reason="needs ../shared/instances/mkp")


@cache
def known():
    with (INSTANCES / "known_values.csv").open(newline="") as stream:
        return {row["instance"]: row for row in csv.DictReader(stream)}


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory):
    folder = tmp_path_factory.mktemp("instances")
    for name in ("SMALL", "FK_1", "FK_3"):
        with tarfile.open(INSTANCES / f"{name}.tar.gz") as archive:
            archive.extractall(folder, filter="data")
    return folder


def check(path, work):
    """Solve within a budget; value and bound must not contradict what is known."""
    window = load_snapshot(path)
    result = solve(window, "branch-and-bound", budget=Budget(work=work))
    assert result.verified
    row = known()[path.stem]
    if row["upper_bound"]:
        assert result.objective <= float(row["upper_bound"])
    if row["lower_bound"]:
        assert result.bound >= float(row["lower_bound"])
    if result.status is Status.OPTIMAL and row["optimal"] == "yes":
        assert result.objective == float(row["lower_bound"])
    return result


@pytest.mark.parametrize(
    ("name", "number", "every", "least"),
    [
        ("SMALL", 180, 3, 30),  # of Kataoka and Yamada
        pytest.param("SMALL", 180, 1, 90, marks=pytest.mark.long),
        ("FK_1", 480, 24, 0),  # of Fukunaga
        ("FK_3", 480, 24, 0),
    ],
)
def test_known_values_hold_and_some_are_proven(unpacked, name, number, every, least):
    paths = sorted((unpacked / name).glob("*.txt"))
    assert len(paths) == number
    assert sum(check(path, 1e6).status is Status.OPTIMAL for path in paths[::every]) >= least
