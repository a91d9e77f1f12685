"""What users state in files of their own: a decision with its policy, and rules of a site."""

import json
import re
from collections import Counter

import pandas as pd
import pytest

from optsched import read_trace
from optsched.content import bundled

PAGE = bundled("models").parents[0] / "docs" / "how-to" / "pose-your-own-decision.md"
[CODE] = re.findall(r"```python\n(# capped.py\n.*?)```", PAGE.read_text(), re.DOTALL)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "capped.py").write_text(CODE)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_captured_snapshots_of_a_model_in_a_file_are_read_back(optsched, folder):
    words = "simulate sample-256 --policy capped.py --jobs 1:200 --check --no-plots"
    assert "proven" in optsched(words, "--capture posed --capture-every 10 -o run").out
    first = f"posed/{sorted(file.name for file in (folder / 'posed').glob('decision-*.json'))[0]}"
    origin = json.loads((folder / first).read_text())["origin"]
    assert (origin["model"]["file"], len(origin["model"]["sha256"])) == ("capped.py", 64)

    said = "model 'power-cap' is one of capped.py; expected --model capped.py, which runs it\n"
    assert optsched("solve", first, code=1).err == f"optsched: {first}: {said}"
    own = "--model capped.py"
    answer = json.loads(optsched("solve", first, own, "--solver highs --json").out)
    assert (answer["status"], answer["objective"]) == ("optimal", origin["objective"])
    optsched("compare posed", own, "--solvers cp-sat,in-order -o compared")
    for words in ("show", "export -o a.lp", "convert -o a.json", "check"):
        verb, _, options = words.partition(" ")
        optsched("snapshot", verb, first, options, own)
    assert " power: +" in (folder / "a.lp").read_text()
    schema = json.loads(optsched("snapshot schema capped.py").out)
    assert schema["title"] == "snapshot of power-cap"
    page = optsched("snapshot page capped.py").out
    assert r"| power | $\mathit{watts} \cdot \mathit{start} \le \mathit{cap}$ |" in page


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("model = power_cap", 'model = "power-gap"', "unknown model 'power-gap' of policy"),
        ("    model = power_cap", "", "missing; expected a model or its name"),
        ("watts @ start", "start * start", "a product of the decisions start and start"),
        ("Integers(1)", "Intejers(1)", "NameError: name 'Intejers' is not defined"),
        ('"watts": ', '"wats": ', "missing a required argument: 'watts'"),
        ('"start", len(nodes))', '"start", len(nodes), 2)[:, 0]', "first decisions 'start': "),
    ],
)
def test_a_mistake_in_a_model_is_one_line(optsched, folder, old, new, said):
    assert old in CODE
    (folder / "capped.py").write_text(CODE.replace(old, new, 1))
    words = "simulate sample-256 --policy capped.py --jobs 1:20 --no-plots -o run"
    assert said in optsched(words, code=1).err


def test_models_of_files_are_those_that_are_named(optsched, folder):
    (folder / "none.py").write_text("x = 1\n")
    (folder / "other.py").write_text(CODE)
    (folder / "taken.py").write_text(CODE.replace('"power-cap"', '"window-mkp"'))
    for options, said in (
        ("none.py", 'none.py: holds no model; expected a function with @optsched.model("NAME")'),
        ("capped.py:Nope", "capped.py: holds no model Nope; expected a function with"),
        (".5", "no module '.5' is installed; expected FILE.py:CLASS"),
        ("capped.py --model other.py", "--model: power-cap is a model of two files"),
        ("taken.py", "window-mkp is a model of optsched; expected another name"),
    ):
        [told] = optsched("solve yang-2014-example --model", options, code=1).err.splitlines()
        assert said in told
    optsched("solve yang-2014-example --model capped.py:power_cap")


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
def test_a_mistake_in_a_rule_is_one_line(optsched, rules, text, name, said):
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
