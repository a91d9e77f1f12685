from __future__ import annotations

import json
import re
from datetime import datetime, timedelta, timezone
from itertools import count
from types import SimpleNamespace

import pytest

from optsched.cli import run


@pytest.fixture
def explain(optsched, shared):
    """Return a function that explains a job of a captured cluster."""

    def run(job, *options, version="26.05.5"):
        folder = shared(f"slurm/fixtures/{version}")
        return optsched("slurm", "explain", job, "--from", folder, *options)

    return run


def test_a_blocked_job_is_explained(explain):
    done = explain(61)
    assert done.returncode == 0
    assert done.stderr == ""
    asks, lines = done.stdout.split("\n\n")[0], done.stdout.split("\n\n")[2].splitlines()
    for text in (
        "4 nodes, each with 1 core, 1,000 MB of memory, in one switch",
        "43 not drained",
        "room on 1 node in switch leaf1, which has most, and 4 needed",
        "so it cannot start",
        "in 4.97 min, if jobs end at their limits and no other job starts first",
        "19 jobs by priority, 3 of them by the tier of a partition: 24, 50, 11, ...",
        "requeue 1 job, to start now on c[05-07,12]",
        "proven by highs",
    ):
        assert text in asks
    assert lines[2] == "scontrol requeuehold 107"
    assert lines[3:5] == ["# once job 61 has started:", "scontrol release 107"]


def test_a_time_by_which_slurm_starts_it_needs_nothing(explain):
    done = explain(61, "--within", 298, "--json")
    answer = json.loads(done.stdout)
    assert answer["earliest"] == answer["by"] == answer["time"] + 298 == answer["slurm_start"]
    assert (answer["expected_by_then"], answer["least"]) == (True, None)
    assert answer["now"]["fits"] is False
    assert answer["idle"]["fits"] is True
    said = explain(61, "--within", 86400, "--actions", "requeue,hold,drain").stdout.splitlines()[-1]
    least = "nothing has to be done, as Slurm expects to start it in 4.97 min"
    assert said == f"least to do     at the latest in 1 d: {least}"
    same = json.loads(explain(61, "--by", answer["by"], "--json").stdout)
    assert same == answer
    date = datetime.fromtimestamp(answer["by"], timezone(timedelta(hours=-7))).isoformat()
    assert json.loads(explain(61, "--by", date, "--json").stdout) == answer


def test_more_time_costs_no_more(explain):
    """A start now is one of those by a time, and what it costs the least of all until then."""
    now = json.loads(explain(61, "--json").stdout)
    later = json.loads(explain(61, "--within", 200, "--json").stdout)
    assert (now["by"], later["by"]) == (now["time"], now["time"] + 200)
    for answer in (now, later):
        least = answer["least"]
        assert (least["start"], least["at_start"]) == (answer["time"], [])
        assert (least["proven"], least["proven_for_start"]) == (True, True)
        assert least["node_seconds"] == now["least"]["node_seconds"] > 0
    said = explain(61, "--within", 200).stdout
    assert "at the latest in 3.33 min: requeue 1 job, to start now on c[05-07,12]" in said


def test_of_starts_that_are_not_all_tried_none_is_proven_to_be_the_least(monkeypatch, shared):
    """The clock runs for hours during the first search."""
    clock = SimpleNamespace(monotonic=count(0, 10**4).__next__)
    monkeypatch.setattr("optsched.cli.slurm_explain_command.time", clock)
    printed = []
    monkeypatch.setattr("optsched.cli.slurm_explain_command.print_json", printed.append)
    folder = str(shared("slurm/fixtures/26.05.5"))
    words = ["--within", "297", "--actions", "requeue,hold", "--json"]
    assert run(["slurm", "explain", "61", "--from", folder, *words]) == 0
    least = printed[0]["least"]
    assert (least["status"], least["proven"]) == ("feasible", False)
    assert least["proven_for_start"]


def test_other_jobs_are_kept_away_until_the_start(explain):
    done = explain(57, "--within", 320, "--actions", "drain")
    assert done.returncode == 0
    said = "at the latest in 5.33 min: drain 4 nodes, to start in 4.97 min on c[34-36,39]"
    assert said in done.stdout
    lines = done.stdout.split("\n\n")[1].splitlines()
    drain, heading, *at_start = lines[1:5]
    assert drain == "scontrol update 'NodeName=c[34-36,39]' State=DRAIN Reason=optsched:57"
    assert re.fullmatch(r"# at 20\S+T\S+[+-]\d\d:\d\d:", heading)
    assert at_start == [
        "scontrol update JobId=57 Nice=-2080",
        "scontrol update 'NodeName=c[34-36,39]' State=UNDRAIN",
    ]
    least = json.loads(explain(57, "--within", 320, "--actions", "drain", "--json").stdout)["least"]
    assert (least["lifted"], least["drained"], least["at_start"]) == ([], least["nodes"], at_start)


def test_jobs_may_change_places(explain):
    done = explain(195, "--actions", "migrate", version="22.05.8")
    for text in (
        "migrate 2 jobs, to start now on g02",
        "migrate to g02     194",
        "# first migrate job 194 to g02: Slurm cannot, checkpoint and restart it by other means",
    ):
        assert text in done.stdout
    answer = json.loads(explain(195, "--actions", "migrate", "--json", version="22.05.8").stdout)
    assert {"job": "194", "nodes": ["g02"]} in answer["least"]["migrated"]


@pytest.mark.parametrize(
    ("job", "text"),
    [
        (2, "rule      its time limit, 12 h, exceeds the 4 h of partition whole"),
        (28, "nothing lets it start now: it may begin in 2 h"),
        (33, "left to Slurm  it may be in several of the leaf switches of fabric"),
        (149, "scontrol release 149"),
    ],
)
def test_rules_are_told(explain, job, text):
    done = explain(job)
    assert done.returncode == 0
    assert text in done.stdout


def test_a_job_that_something_lets_start_is_told_with_the_rule_without_it(explain):
    done = explain(2, "--what-if", "limit 2 = 60")
    assert done.returncode == 0
    assert "without it  its time limit, 12 h, exceeds the 4 h of partition" in done.stdout


def test_a_closed_partition_is_told_once(explain):
    answer = json.loads(explain(2, "--json").stdout)
    assert answer["rule"].startswith("its time limit, 12 h, exceeds")
    assert answer["left"] is None


def test_what_the_lines_do_is_said_where_no_job_is_stopped(explain):
    done = explain(57, "--within", 320, "--actions", "resume")
    said = "in 5.33 min: raise it above 12 jobs and pin it, to start in 4.97 min on"
    assert said in done.stdout
    assert "nothing has to be done" not in done.stdout
    held = explain(149, "--within", 3600).stdout
    assert "1 h: release it, raise it above 50 jobs and pin it, to start now on" in held


def test_a_rule_is_told_as_it_is_now(explain):
    said = "nothing lets it start at the latest in 1 h: it may begin in 2 h"
    assert said in explain(28, "--within", 3600).stdout


def test_a_rule_as_solver_proves_nothing(explain):
    answer = json.loads(explain(61, "--solver", "cheapest-first", "--json").stdout)
    assert answer["least"]["proven"] is False
    assert answer["least"]["lines"][-1].startswith("scontrol requeuehold")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--by", "noon"], "--by: 'noon'; expected a time such as 2026-11-25T18:00, or seconds"),
        (["--by", "2020-01-01T12:00:00+00:00"], "--by: 20"),
        (["--by", "17"], "expected a time from 2026-11-2"),
        (["--by", "999999999999"], "--by: '999999999999'; expected a time such as"),
        (["--by", "17", "--within", "3"], "--within: expected without --by"),
        (["--within", "-3"], "--within: -3; expected a number of seconds from 0 to 10^9"),
        (["--within", "9e9"], "--within: 9e+09; expected a number of seconds from 0 to 10^9"),
        (["--actions", "hold,hold"], "--actions: hold,hold; expected every action once"),
        (["--actions", "hold,requue"], "unknown action 'requue'; did you mean requeue"),
        (["--time-limit", "-1"], "--time-limit: -1.0 is not a time limit; expected a number"),
        (["--solver", "hihgs"], "unknown solver 'hihgs' of hold problems; did you mean highs"),
    ],
)
def test_wrong_options_are_named(explain, options, message):
    done = explain(61, *options)
    assert done.returncode == 1
    assert message in done.stderr


def test_a_time_with_a_unit_is_refused(explain):
    done = explain(61, "--within", "1h")
    assert done.returncode == 2
    assert "--within: '1h'; expected a number of seconds\n" in done.stderr


def test_the_solver_is_checked_where_none_is_needed(explain):
    done = explain(33, "--solver", "foo")
    assert (done.returncode, done.stdout) == (1, "")
    assert "unknown solver 'foo'" in done.stderr


def test_what_suffices_for_a_job_under_a_rule_is_said_so(explain):
    done = explain(28)
    assert "so it would fit, and the rule keeps it from starting" in done.stdout
    assert "waits for other jobs" not in done.stdout


def test_other_jobs_are_refused(explain):
    assert "job: 'abc' is not the number of a job; expected" in explain("abc").stderr
    assert "job: '6' is RUNNING; expected a pending job" in explain(6).stderr
    assert "job: '4444' is not in the queue; expected the number" in explain(4444).stderr
