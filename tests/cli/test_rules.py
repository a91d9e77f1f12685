"""Rules of a site from the command line: plans, snapshots and explanations."""

from __future__ import annotations

import json
from collections import Counter

import pandas as pd
import pytest

from optsched import read_trace

RULES = """
import optsched
from optsched.rules import limit

@optsched.rule
def per_user(state, jobs, nodes, started, chunks):
    state.require("jobs", ((1 - jobs.running) * started).sum_by(jobs.user) <= 1)

memory = limit("memory", 10**9, by="account")
"""
PLAN = "slurm plan --from sample-slurm --solver first-fit"


@pytest.fixture
def rules(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rules.py").write_text(RULES)
    return tmp_path / "rules.py"


def test_a_plan_and_a_snapshot_keep_rules(optsched, rules):
    plain = json.loads(optsched(PLAN, "--json").out)
    assert max(Counter(job["user"] for job in plain["jobs"] if job["nodes"]).values()) > 1
    found = json.loads(optsched(PLAN, "--rule rules.py --json").out)
    assert found["rules"] == ["per_user", "memory"]
    assert {*Counter(job["user"] for job in found["jobs"] if job["nodes"]).values()} == {1}
    reasons = {job["reason"] for job in found["not_placed"]}
    first = "on the first room left it would break rule per_user jobs["
    assert any(reason.startswith(first) for reason in reasons)
    assert "rules          per_user, memory\n" in optsched(PLAN, "--rule rules.py").out

    optsched("slurm snapshot --from sample-slurm -o queue.json")
    solve = "solve queue.json --solver first-fit --json"
    free = json.loads(optsched(solve).out)
    held = json.loads(optsched(solve, "--rule rules.py:per_user").out)
    assert (held["kind"], held["verified"]) == ("node-placement", True)
    assert held["objective"] < free["objective"]


def test_an_explanation_names_the_rule_that_blocks_a_job(optsched, rules):
    words = "slurm explain 291 --from sample-slurm --rule rules.py"
    assert "rule of the site" not in optsched(words).out
    rules.write_text(RULES.replace("<= 1", "<= 0"))
    first = optsched(words).out.splitlines()[0]
    assert first.startswith("rule of the site  together impossible: ")
    assert "per_user_jobs_" in first
    assert "per_user" in json.loads(optsched(words, "--json").out)["site_rule"]


@pytest.mark.parametrize(
    ("text", "name", "said"),
    [
        ("x = 1", "", "rules.py: holds no rule; expected a function with @optsched.rule"),
        (RULES, ":per_users", "rules.py: unknown rule 'per_users'; did you mean per_user?"),
        (RULES.replace("jobs.user", "jobs.owner"), "", "rules.py, line 7: unknown column 'owner'"),
        (RULES.replace("sum_by(", "sum_by)"), "", "rules.py, line 7: SyntaxError"),
    ],
)
def test_a_mistake_is_one_line(optsched, rules, text, name, said):
    rules.write_text(text)
    [told] = optsched(PLAN, f"--rule rules.py{name}", code=1).err.splitlines()
    assert said in told


def test_rules_are_for_placements(optsched, rules):
    told = optsched("solve yang-2014-example --rule rules.py", code=1).err
    assert told == "optsched: --rule: is for node-placement problems, not for window-mkp\n"


def test_a_simulation_keeps_rules(optsched, tmp_path):
    (tmp_path / "two.py").write_text(
        'from optsched.rules import limit\ntwo = limit("jobs", 2, by="user")\n'
    )
    words = "simulate sample-256 --machine site:sample-site --policy placement --jobs 1:60 --check"
    trace = read_trace("sample-256")
    user = dict(zip(trace.job_id.tolist(), trace.user.tolist()))
    most = {}
    for rule in ("", "--rule two.py:two"):
        optsched(words, "--no-plots -o run", rule, cwd=tmp_path)
        jobs = pd.read_csv(tmp_path / "run" / "jobs.csv")
        most[rule] = max(
            int(((own["starting_time"] <= at) & (own["finish_time"] > at)).sum())
            for _, own in jobs.groupby(jobs["job_id"].map(user))
            for at in own["starting_time"]
        )
    assert (most["--rule two.py:two"], most[""] > 2) == (2, True)
    repeat = json.loads((tmp_path / "run" / "run.json").read_text())["repeat"]
    assert "--set rules=two.py:two" in repeat
