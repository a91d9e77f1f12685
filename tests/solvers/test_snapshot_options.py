"""Options in a snapshot: settings of the policy that posed the problem, for the solvers."""

import json

import pytest

from optsched import compare, simulate, solve
from optsched.content import bundled
from optsched.errors import InputError
from optsched.models import DataPlacement, WindowMKP
from optsched.models.snapshot import Snapshot
from optsched.models.snapshot_file import read_snapshot, save_snapshot
from optsched.registry import solvers

BEHIND_A_WIDE_JOB = DataPlacement([[0, 50]], [2, 1, 1], [10, 50, 51], [-1] * 3, [0] * 3)
IN_ORDER, BACKFILLED = [50, 60, 60], [50, 0, 60]


def starts(result):
    assert result.status == "feasible", result.message
    return result.solution.start.tolist()


@pytest.fixture
def snapshot(tmp_path):
    path = tmp_path / "queue.json"
    options = {"backfill": "holes", "weight": 3, "threshold": 7}
    save_snapshot(Snapshot(BEHIND_A_WIDE_JOB, options=options), path)
    return path


def test_a_rule_takes_the_options_that_it_has(snapshot):
    assert starts(solve(BEHIND_A_WIDE_JOB, "fcfs")) == IN_ORDER
    assert starts(solve(snapshot, "fcfs")) == BACKFILLED
    assert starts(solve(read_snapshot(snapshot), "fcfs")) == BACKFILLED
    assert solve(snapshot, "interval-search").status == "optimal"


def test_the_solver_of_a_hint_takes_them_too(snapshot, monkeypatch):
    hints = []
    original = solvers["eft"].solve

    def noting(self, problem, **given):
        hints.append(given["hint"])
        return original(self, problem, **given)

    monkeypatch.setattr(solvers["eft"], "solve", noting)
    solve(snapshot, "eft", hint="fcfs")
    assert [hint.start.tolist() for hint in hints] == [BACKFILLED]


def test_a_solver_object_and_a_profile_keep_their_own_options(snapshot, tmp_path):
    assert starts(solve(snapshot, solvers["fcfs"]())) == IN_ORDER
    profile = tmp_path / "plain.toml"
    profile.write_text('solver = "fcfs"\n[options]\nbackfill = "none"\n')
    assert starts(solve(snapshot, str(profile))) == IN_ORDER


def test_each_snapshot_of_a_comparison_has_its_own(snapshot):
    found = compare([Snapshot(BEHIND_A_WIDE_JOB), snapshot], ["fcfs"])
    answers = [answer["solution"]["place_of_job"] for answer in found.answers]
    assert [[place["start"] for place in one] for one in answers] == [IN_ORDER, BACKFILLED]


def test_fields_of_earlier_versions_become_options(snapshot):
    written = json.loads(snapshot.read_text())
    earlier = {**written, **written.pop("options")}
    del earlier["options"]
    read = Snapshot.from_json(earlier)
    assert read.options == {"backfill": "holes", "weight": 3, "threshold": 7}
    assert read.to_json() == {**written, "options": read.options}
    both = earlier | {"options": {"weight": 4}}
    with pytest.raises(InputError, match="weight: also among the options; expected once"):
        Snapshot.from_json(both)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"weigth": 1}, "options: unknown option 'weigth'; did you mean weight"),
        ({"weight": "W"}, "options: weight of solver 'lea': 'W'; expected a whole number"),
        ({"backfill": "easy"}, "options: backfill of solver '.*': 'easy'; expected one of none, "),
        ([1], "options: expected an object"),
    ],
)
@pytest.mark.parametrize("use", [solve, compare])
def test_wrong_options_are_refused_with_the_file(snapshot, options, expected, use):
    written = json.loads(snapshot.read_text()) | {"options": options}
    snapshot.write_text(json.dumps(written))
    with pytest.raises(InputError, match=f"queue.json.*{expected}"):
        use(snapshot)


def test_an_option_of_solvers_of_other_models_is_unknown():
    problem = WindowMKP(weights=[3, 2], capacities=[4])
    with pytest.raises(InputError, match="options: unknown option 'backfill'; known: "):
        solve(Snapshot(problem, options={"backfill": "holes"}))


@pytest.mark.parametrize("rule", ["lea", "leo", "lem"])
def test_a_captured_decision_is_repeated_with_the_settings_of_its_run(tmp_path, rule):
    settings = {"backfill": "holes", "weight": 3, "threshold": 20, "stop": "short"}
    settings |= {"loads": "start", "evicted": "memory", "opportune": "node"}
    trace = bundled("traces") / "samples" / "sample-8x20.rackham"
    (tmp_path / "captured").mkdir()
    captured = {"capture": tmp_path / "captured", "capture_every": 20, "jobs": "1:400"}
    simulate(trace, "cluster:8x20", "locality", solver=rule, settings=settings, **captured)
    files = sorted((tmp_path / "captured").glob("decision-*.json"))
    assert len(files) > 5
    for file in files:
        read = read_snapshot(file)
        assert read.options == settings
        assert solve(file, rule).objective == read.origin["objective"]
