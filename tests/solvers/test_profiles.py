from __future__ import annotations

import pytest

from optsched import Budget, registry, solve
from optsched.content import bundled
from optsched.errors import InputError
from optsched.models import WindowMKP
from optsched.solvers.finding import find_solver, load_profile, profile_names
from optsched.solvers.result import Status

PROBLEM = WindowMKP(weights=[6, 4, 3, 1, 2], capacities=[3, 6, 6])


@pytest.mark.parametrize("name", profile_names())
def test_bundled_profiles_are_good_and_answer(name):
    profile = load_profile(name)
    assert profile.description
    assert profile.budget != Budget(), "a profile is for use in a simulation too"
    if registry.solvers[profile.solver].installed_version() is None:
        pytest.skip(f"{profile.solver} is not installed")
    result = solve(PROBLEM, name)
    assert result.solver == name
    assert result.status in (Status.OPTIMAL, Status.FEASIBLE)


def test_the_page_of_the_profiles_lists_them_all():
    page = (bundled("solvers") / "README.md").read_text()
    for name in profile_names():
        assert f"| `{name}` | {load_profile(name).description} |" in page


def test_a_profile_gives_options_budget_and_seed(tmp_path):
    file = tmp_path / "mine.toml"
    file.write_text('solver = "cp-sat"\nseed = 5\n[options]\nworkers = 3\n[budget]\nseconds = 9\n')
    solver, profile = find_solver(str(file))
    assert (solver.workers, profile.seed, profile.budget) == (3, 5, Budget(seconds=9))
    assert profile.name == "mine"
    assert solve(PROBLEM, str(file)).seed == 5


CP_SAT = 'solver = "cp-sat"\n[options]\n'
BUDGET = 'solver = "highs"\n[budget]\n'


@pytest.mark.parametrize(
    ("text", "messages"),
    [
        (CP_SAT + "worker = 2", ["'worker' of solver 'cp-sat'; did you mean workers?"]),
        (CP_SAT + 'workers = "two"', ["workers", "expected a whole number"]),
        *(
            (CP_SAT + f"workers = {n}", [f"workers: {n}; expected at least 1 and at most 1,000"])
            for n in (0, 2**32)
        ),
        ('solver = "cpsat"', ["unknown solver 'cpsat'; did you mean cp-sat?"]),
        (BUDGET + "second = 1", ["unknown key 'second' of budget; did you mean seconds?"]),
        (BUDGET + "seconds = -1", ["-1 is not a time limit"]),
        ('solver = "greedy"\n[options]\nfast = true', ["'fast'"]),
        (
            "solver = 3\nseed = true\nspeed = 1\nbudget = 3",
            ["4 mistakes", "solver: 3", "seed: True", "'speed'", "budget: 3"],
        ),
        ("seed = 1", ["solver: missing"]),
        ("solver = ", ["not TOML"]),
        ("solver = " + "[" * 100_000, ["nested too deeply"]),
        ("seed = " + "9" * 5000, ["too many digits"]),
    ],
)
def test_mistakes_are_named_with_the_file(tmp_path, text, messages):
    file = tmp_path / "bad.toml"
    file.write_text(text)
    with pytest.raises(InputError) as raised:
        find_solver(str(file))
    for message in (str(file), *messages):
        assert message in str(raised.value)


def test_files_that_cannot_be_read(tmp_path):
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe\x00")
    for name, told in (("none.toml", "No such file"), ("binary.toml", "not text")):
        with pytest.raises(InputError, match=told):
            find_solver(str(tmp_path / name))
