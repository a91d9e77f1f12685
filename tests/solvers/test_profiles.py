"""Profiles, and options of solvers themselves: passed on, checked, and heard of in logs."""

import subprocess
import sys
from importlib.util import find_spec

import pytest

import optsched
from optsched import Budget, registry
from optsched.cli import run
from optsched.content import bundled
from optsched.errors import InputError
from optsched.models import WindowMKP
from optsched.solvers.finding import find_solver, load_profile, profile_names, solver_with
from optsched.solvers.result import Status

HARDER = WindowMKP(weights=[7, 5, 4, 3, 3, 2], capacities=[9, 8])

PACKAGES = {"highs": "highspy", "cp-sat": "ortools", "scip": "pyscipopt"}
PACKAGES |= {"cbc": "pulp", "gurobi": "gurobipy"}

OPTIONS = {
    "highs": ("presolve", "off", "maybe", "presolv", "time_limit"),
    "cp-sat": ("search_branching", "FIXED_SEARCH", "NONE_SUCH", "search_branchin", "num_workers"),
    "scip": ("presolving/maxrounds", 0, "many", "presolving/maxround", "limits/time"),
    "cbc": ("heuristicsOnOff", "off", "maybe", "heuristicsOnOf", "preprocess"),
    "gurobi": ("Presolve", 0, "many", "Presolv", "TimeLimit"),
}
"""An option, a value, a value that the solver refuses, a name that it has not, and one taken."""


def each(*kinds):
    """Return the solver and entries of its row, where it is installed."""
    rows = []
    for name, row in OPTIONS.items():
        missing = pytest.mark.skipif(find_spec(PACKAGES[name]) is None, reason="not installed")
        rows.append(pytest.param(name, *(row[kind] for kind in kinds), marks=missing, id=name))
    return rows


@pytest.mark.parametrize(("name", "option", "value"), each(0, 1))
def test_a_profile_passes_options_on(name, option, value, tmp_path):
    stated = f'"{value}"' if isinstance(value, str) else value
    file = tmp_path / "mine.toml"
    file.write_text(f'solver = "{name}"\n[options]\nrelative_gap = 0\n"{option}" = {stated}\n')
    assert load_profile(file).options == {"relative_gap": 0, option: value}
    result = optsched.solve(HARDER, str(file), time_limit=20)
    assert (result.status, result.objective) == ("optimal", 17)


@pytest.mark.parametrize(("name", "option", "refused"), each(0, 2))
def test_a_value_that_the_solver_refuses_is_one_line(name, option, refused):
    with pytest.raises(InputError, match=f"'{option}' of solver '{name}': '{refused}'; expected"):
        solver_with(registry.solvers[name], {option: refused})


@pytest.mark.parametrize(("name", "unknown", "taken"), each(3, 4))
def test_unknown_options_and_those_that_optsched_sets_are_named(name, unknown, taken):
    for option, told in (
        (unknown, f"unknown option of solver '{name}'.*{unknown}|{unknown}"),
        (taken, f"'{taken}' of {name} is set by"),
    ):
        with pytest.raises(InputError, match=told):
            solver_with(registry.solvers[name], {option: 1})


@pytest.mark.parametrize("name", each())
def test_its_log_is_shown_where_it_is_asked_for(name):
    words = ["solve", "gpu-queue" if name == "cp-sat" else "yang-2014-example", "--solver", name]
    command = [sys.executable, "-m", "optsched", *words]
    quiet, loud = (
        subprocess.run([*command, *more], capture_output=True, text=True, check=True)
        for more in ([], ["-v"])
    )
    assert f"optsched: {name}: " not in quiet.stderr
    said = [line for line in loud.stderr.splitlines() if line.startswith(f"optsched: {name}: ")]
    assert len(said) > 5
    assert loud.stdout.partition("time")[0] == quiet.stdout.partition("time")[0]


def test_options_change_what_a_solver_does(caplog):
    """Its log tells what it was given."""
    caplog.set_level("DEBUG", logger="optsched")
    for options, presolves in (({}, True), ({"native": {"presolve": "off"}}, False)):
        caplog.clear()
        assert optsched.solve(HARDER, registry.solvers["highs"](**options)).objective == 17
        assert ("Presolving" in caplog.text) == presolves


@pytest.mark.skipif(find_spec("gurobipy") is None, reason="not installed")
def test_a_program_beyond_a_licence_is_refused():
    large = WindowMKP(weights=[1] * 1500, capacities=[700, 600])
    result = optsched.solve(large, "gurobi", time_limit=20)
    assert result.status in ("no-solution", "optimal")  # with a licence
    if result.status == "no-solution":
        assert result.message.startswith("gurobi: Gurobi: ")


def test_a_hint_is_read_from_a_file(tmp_path, capsys):
    file = tmp_path / "answer.json"
    words = ["solve", "yang-2014-example"]
    assert run([*words, "--solver", "greedy", "-o", str(file)]) == 0
    assert run([*words, "--solver", "highs", "--hint", str(file)]) == 0
    file.write_text(file.read_text().replace("window-mkp", "migration"))
    capsys.readouterr()
    assert run([*words, "--solver", "highs", "--hint", str(file)]) == 1
    [said] = capsys.readouterr().err.splitlines()
    assert "expected window-mkp" in said


def test_several_seeds_are_several_problems():
    comparison = optsched.compare([HARDER], ["greedy", "highs"], seed=[1, 2, 3])
    found = comparison.results
    assert found["snapshot"].tolist()[::2] == [f"window-mkp-1, seed {one}" for one in (1, 2, 3)]
    assert len(found) == 6
    assert found["best_objective"].nunique() == 1
    assert comparison.table["snapshots"].tolist() == [3, 3]
    assert {one["seed"] for one in comparison.config["solvers"]} == {"1,2,3"}
    for seeds in ([], [1, 1]):
        with pytest.raises(InputError, match="expected different integers"):
            optsched.compare([HARDER], ["greedy"], seed=seeds)


PROBLEM = WindowMKP(weights=[6, 4, 3, 1, 2], capacities=[3, 6, 6])


@pytest.mark.parametrize("name", profile_names())
def test_bundled_profiles_are_good_and_answer(name):
    profile = load_profile(name)
    assert profile.description
    assert profile.budget != Budget(), "a profile is for use in a simulation too"
    if registry.solvers[profile.solver].installed_version() is None:
        pytest.skip(f"{profile.solver} is not installed")
    result = optsched.solve(PROBLEM, name)
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
    assert optsched.solve(PROBLEM, str(file)).seed == 5


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
