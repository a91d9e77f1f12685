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


@pytest.fixture
def rules(tmp_path):
    file = tmp_path / "rules.py"
    file.write_text(RULES)
    return file


def test_a_plan_and_a_snapshot_keep_rules(optsched, rules, tmp_path):
    words = ("slurm", "plan", "--from", "sample-slurm", "--solver", "first-fit")
    plain = json.loads(optsched(*words, "--json").stdout)
    assert max(Counter(job["user"] for job in plain["jobs"] if job["nodes"]).values()) > 1
    found = json.loads(optsched(*words, "--rule", rules, "--json").stdout)
    assert found["rules"] == ["per_user", "memory"]
    assert {*Counter(job["user"] for job in found["jobs"] if job["nodes"]).values()} == {1}
    reasons = {job["reason"] for job in found["not_placed"]}
    first = "on the first room left it would break rule per_user jobs["
    assert any(reason.startswith(first) for reason in reasons)
    printed = optsched(*words, "--rule", rules)
    assert "rules          per_user, memory\n" in printed.stdout

    file = tmp_path / "queue.json"
    optsched("slurm", "snapshot", "--from", "sample-slurm", "-o", file)
    solve = ("solve", file, "--solver", "first-fit", "--json")
    free = json.loads(optsched(*solve).stdout)
    held = json.loads(optsched(*solve, "--rule", f"{rules}:per_user").stdout)
    assert (held["kind"], held["verified"]) == ("node-placement", True)
    assert held["objective"] < free["objective"]


def test_an_explanation_names_the_rule_that_blocks_a_job(optsched, rules):
    words = ("slurm", "explain", "291", "--from", "sample-slurm", "--rule", rules)
    assert "rule of the site" not in optsched(*words).stdout
    rules.write_text(RULES.replace("<= 1", "<= 0"))
    done = optsched(*words)
    assert done.stdout.startswith("rule of the site  together impossible: ")
    assert "per_user_jobs_" in done.stdout.splitlines()[0]
    assert "per_user" in json.loads(optsched(*words, "--json").stdout)["site_rule"]


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
    done = optsched("slurm", "plan", "--from", "sample-slurm", "--rule", f"{rules}{name}")
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert said in done.stderr


def test_rules_are_for_placements(optsched, rules):
    done = optsched("solve", "yang-2014-example", "--rule", rules)
    expected = "--rule: is for node-placement problems, not for window-mkp"
    assert (done.returncode, done.stderr) == (1, f"optsched: {expected}\n")


def test_a_simulation_keeps_rules(optsched, tmp_path):
    (tmp_path / "two.py").write_text(
        'from optsched.rules import limit\ntwo = limit("jobs", 2, by="user")\n'
    )
    words = ("simulate", "sample-256", "--machine", "site:sample-site", "--policy", "placement")
    words += ("--jobs", "1:60", "--no-plots", "--check", "-o", "run")
    most = {}
    for name, rule in (("free", ()), ("held", ("--rule", "two.py:two"))):
        done = optsched(*words, *rule, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        jobs = pd.read_csv(tmp_path / "run" / "jobs.csv")
        trace = read_trace("sample-256")
        user = dict(zip(trace.job_id.tolist(), trace.user.tolist()))
        jobs["user"] = [user[job] for job in jobs["job_id"]]
        most[name] = max(
            int(((own["starting_time"] <= at) & (own["finish_time"] > at)).sum())
            for _, own in jobs.groupby("user")
            for at in own["starting_time"]
        )
    assert (most["held"], most["free"] > 2) == (2, True)
    repeat = json.loads((tmp_path / "run" / "run.json").read_text())["repeat"]
    assert "--set rules=two.py:two" in repeat
