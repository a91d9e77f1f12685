"""``optsched slurm explain``, ``forecast``, ``report`` and ``site`` on captured clusters."""

from __future__ import annotations

import json
import re
from datetime import datetime, timedelta, timezone
from itertools import count
from types import SimpleNamespace

import pytest

from optsched.cli import run
from optsched.sites.site_file import read_site_file


@pytest.fixture
def explain(optsched, shared):
    """Return a function that explains a job of a captured cluster: what it prints, or as JSON."""

    def run(job, options="", version="26.05.5"):
        folder = shared(f"slurm/fixtures/{version}")
        printed = optsched("slurm explain", job, options, "--from", folder).out
        return json.loads(printed) if "--json" in options else printed

    return run


def test_a_blocked_job_is_explained(explain):
    asks, _, lines, *_ = explain(61).split("\n\n")
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
    assert lines.splitlines()[2:5] == [
        *("scontrol requeuehold 107", "# once job 61 has started:", "scontrol release 107"),
    ]  # fmt: skip


def test_a_time_by_which_slurm_starts_it_needs_nothing(explain):
    answer = explain(61, "--within 298 --json")
    assert answer["earliest"] == answer["by"] == answer["time"] + 298 == answer["slurm_start"]
    assert (answer["expected_by_then"], answer["least"]) == (True, None)
    assert (answer["now"]["fits"], answer["idle"]["fits"]) == (False, True)
    said = explain(61, "--within 86400 --actions requeue,hold,drain").splitlines()[-1]
    least = "nothing has to be done, as Slurm expects to start it in 4.97 min"
    assert said == f"least to do     at the latest in 1 d: {least}"
    date = datetime.fromtimestamp(answer["by"], timezone(timedelta(hours=-7))).isoformat()
    for by in (answer["by"], date):
        assert explain(61, f"--by {by} --json") == answer


def test_more_time_costs_no_more(explain):
    """A start now is one of those by a time, and what it costs the least of all until then."""
    now, later = explain(61, "--json"), explain(61, "--within 200 --json")
    assert (now["by"], later["by"]) == (now["time"], now["time"] + 200)
    for answer in (now, later):
        least = answer["least"]
        assert (least["start"], least["at_start"]) == (answer["time"], [])
        assert (least["proven"], least["proven_for_start"]) == (True, True)
        assert least["node_seconds"] == now["least"]["node_seconds"] > 0
    said = "at the latest in 3.33 min: requeue 1 job, to start now on c[05-07,12]"
    assert said in explain(61, "--within 200")


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
    shown = explain(57, "--within 320 --actions drain")
    said = "at the latest in 5.33 min: drain 4 nodes, to start in 4.97 min on c[34-36,39]"
    assert said in shown
    _, drain, heading, *at_start = shown.split("\n\n")[1].splitlines()[:5]
    assert drain == "scontrol update 'NodeName=c[34-36,39]' State=DRAIN Reason=optsched:57"
    assert re.fullmatch(r"# at 20\S+T\S+[+-]\d\d:\d\d:", heading)
    assert at_start == [
        "scontrol update JobId=57 Nice=-2080",
        "scontrol update 'NodeName=c[34-36,39]' State=UNDRAIN",
    ]
    least = explain(57, "--within 320 --actions drain --json")["least"]
    assert (least["lifted"], least["drained"], least["at_start"]) == ([], least["nodes"], at_start)


def test_jobs_may_change_places(explain):
    shown = explain(195, "--actions migrate", version="22.05.8")
    for text in (
        "migrate 2 jobs, to start now on g02",
        "migrate to g02     194",
        "# first migrate job 194 to g02: Slurm cannot, checkpoint and restart it by other means",
    ):
        assert text in shown
    least = explain(195, "--actions migrate --json", version="22.05.8")["least"]
    assert {"job": "194", "nodes": ["g02"]} in least["migrated"]


@pytest.mark.parametrize(
    ("job", "options", "text"),
    [
        (2, "", "rule      its time limit, 12 h, exceeds the 4 h of partition whole"),
        (2, "--what-if 'limit 2 = 60'", "without it  its time limit, 12 h, exceeds the 4 h of"),
        (28, "", "nothing lets it start now: it may begin in 2 h"),
        (28, "", "so it would fit, and the rule keeps it from starting"),
        (28, "--within 3600", "nothing lets it start at the latest in 1 h: it may begin in 2 h"),
        (33, "", "left to Slurm  it may be in several of the leaf switches of fabric"),
        (57, "--within 320 --actions resume", "in 5.33 min: raise it above 12 jobs and pin it, to"),
        (149, "", "scontrol release 149"),
        (149, "--within 3600", "1 h: release it, raise it above 50 jobs and pin it, to start now"),
    ],
)
def test_rules_and_what_the_lines_do_are_told(explain, job, options, text):
    assert text in explain(job, options)


def test_a_closed_partition_is_told_once(explain):
    answer = explain(2, "--json")
    assert answer["rule"].startswith("its time limit, 12 h, exceeds")
    assert answer["left"] is None


def test_a_rule_as_solver_proves_nothing(explain):
    least = explain(61, "--solver cheapest-first --json")["least"]
    assert least["proven"] is False
    assert least["lines"][-1].startswith("scontrol requeuehold")


def test_the_solver_is_checked_where_none_is_needed(optsched, shared):
    words = "slurm explain 33 --solver foo --from"
    done = optsched(words, shared("slurm/fixtures/26.05.5"), code=1)
    assert (done.out, "unknown solver 'foo'" in done.err) == ("", True)


FORECAST = "slurm forecast --from sample-slurm --draws 0"
PLAN = "slurm plan --from sample-slurm --time-limit 1"


def test_a_forecast_says_when_each_job_starts(optsched):
    done = optsched(FORECAST, "--json")
    found = json.loads(done.out)
    assert found["draws"] == 0
    assert found["jobs"]
    for job in found["jobs"]:
        assert job["by_limits"] is None or job["by_limits"] >= found["time"]
        assert job["median"] is None
    assert optsched(FORECAST, "--json").out == done.out
    text = optsched(FORECAST).out
    assert "by the limits" in text
    assert re.search(r"now +\d{4}-\d\d-\d\d \d\d:\d\d[+-]\d\d:\d\d\n", text)


def test_what_if_tells_the_difference(optsched, tmp_path):
    listed = json.loads(optsched(FORECAST, "--json").out)
    now = listed["time"]
    first, *_, last = [job["job"] for job in listed["jobs"] if (job["by_limits"] or now) > now]
    path = tmp_path / "site.toml"
    optsched("slurm site --from sample-slurm -o", path)
    nodes = read_site_file(path).nodes
    drain = f"--what-if 'drain {nodes[0]}'"
    assert f"drain {nodes[0]}" in optsched(FORECAST, drain).out
    assert re.search(r"now \d+ starts?, and then \d+", optsched(PLAN, drain).out)
    words = f"slurm explain {first} --from sample-slurm --what-if 'add 100 like c01'"
    explained = optsched(words).out
    assert "shifts" in json.loads(optsched(FORECAST, drain, "--json").out)
    assert "what if" in explained
    assert "without it" in explained
    assert "scontrol" not in explained  # of what is not so
    held = optsched(FORECAST, last, f"--what-if 'hold {last}'").out
    assert "of 1 job start: 1 no more" in held
    assert ": it is held" in held
    nowhere = optsched(FORECAST, f"--what-if 'drain {','.join(nodes)}'").out
    assert "no node is in service, so no job can start: " in nowhere


def test_the_state_is_a_page_of_one_file(optsched, tmp_path):
    page = tmp_path / "state.html"
    assert "in service are idle" in optsched("slurm report --from sample-slurm -o", page).out
    text = page.read_text()
    for heading in ("What is free", "What could start now", "Who waits"):
        assert f">{heading}<" in text
    assert not re.search(r"(?:src|href)=\"https?:", text)


def test_strict_order_and_reservations_are_said(optsched):
    def plan(words):
        return json.loads(optsched(PLAN, words, "--json").out)

    assert plan("--order strict")["order"] == "strict"
    assert plan("")["reserved"] == []
    one = plan("--reserve 1")
    [kept] = one["reserved"]
    assert {*kept} == {"job", "start", "nodes"}
    assert kept["start"] > one["time"]
    assert f"job {kept['job']} starts in" in optsched(PLAN, "--reserve 1").out
