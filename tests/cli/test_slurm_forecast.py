"""``optsched slurm forecast``, ``report`` and ``site``, and what if, on the bundled sample."""

from __future__ import annotations

import json
import re

import pytest

from optsched.sites.site_file import read_site_file

FROM = ("--from", "sample-slurm")
BRIEFLY = (*FROM, "--time-limit", "1")


def test_a_forecast_says_when_each_job_starts(optsched):
    done = optsched("slurm", "forecast", *FROM, "--draws", "0", "--json")
    found = json.loads(done.stdout)
    assert found["draws"] == 0
    assert found["jobs"]
    for job in found["jobs"]:
        assert job["by_limits"] is None or job["by_limits"] >= found["time"]
        assert job["median"] is None
    again = optsched("slurm", "forecast", *FROM, "--draws", "0", "--json")
    assert again.stdout == done.stdout
    text = optsched("slurm", "forecast", *FROM, "--draws", "0").stdout
    assert "by the limits" in text
    assert re.search(r"now +\d{4}-\d\d-\d\d \d\d:\d\d[+-]\d\d:\d\d\n", text)


def test_what_if_tells_the_difference(optsched, tmp_path):
    words = ("slurm", "forecast", *FROM, "--draws", "0")
    listed = json.loads(optsched(*words, "--json").stdout)
    now = listed["time"]
    waiting = [job["job"] for job in listed["jobs"] if (job["by_limits"] or now) > now]
    assert waiting
    path = tmp_path / "site.toml"
    assert optsched("slurm", "site", *FROM, "-o", path).returncode == 0
    site = read_site_file(path)
    drained = optsched(*words, "--what-if", f"drain {site.nodes[0]}").stdout
    assert f"drain {site.nodes[0]}" in drained
    changed = optsched(*words, "--what-if", f"priority {waiting[-1]} = 4000000000", "--json").stdout
    shifts = {each["job"]: each["seconds"] for each in json.loads(changed)["shifts"]}
    assert shifts.get(waiting[-1], 0) <= 0
    submitted = optsched(*words, "--what-if", "submit -N 1 -t 10:00").stdout
    assert "what-if" in submitted or re.search(r"submit -N 1", submitted)
    plan = optsched("slurm", "plan", *BRIEFLY, "--what-if", f"drain {site.nodes[0]}").stdout
    assert re.search(r"now \d+ starts?, and then \d+", plan)
    explained = optsched("slurm", "explain", waiting[0], *FROM, "--what-if", "add 100 like c01")
    assert "what if" in explained.stdout
    assert "without it" in explained.stdout
    assert "scontrol" not in explained.stdout  # of what is not so
    held = optsched(*words[:2], waiting[-1], *words[2:], "--what-if", f"hold {waiting[-1]}").stdout
    assert "of 1 job start: 1 no more" in held
    assert ": it is held" in held
    nodes = f"drain {','.join(site.nodes)}"
    nowhere = optsched(*words, "--what-if", nodes)
    assert nowhere.returncode == 0
    assert "no node is in service, so no job can start: " in nowhere.stdout
    new = str(max(int(job["job"].partition("_")[0]) for job in listed["jobs"]) + 1000)
    assert optsched("slurm", "explain", new, *FROM).returncode == 1


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("forecast", "--draws", "-1"), "--draws: -1; expected a number from 0 to 10,000"),
        (("forecast", "777777"), "job: '777777' is not in the queue"),
        (("forecast", "--what-if", "paint it"), "what if: 'paint it'; expected drain NODES"),
        (("plan", "--reserve", "-1"), "--reserve: -1; expected a number from 0 to 100"),
        (("report", "-o", "state.pdf"), "state.pdf: unknown suffix; expected .html"),
        (("site", "-o", "site.json"), "site.json: unknown suffix; expected .toml"),
    ],
)
def test_wrong_words_are_one_line(optsched, words, message):
    command, *rest = words
    done = optsched("slurm", command, *rest, *FROM)
    assert done.returncode == 1
    assert message in done.stderr.replace("\n", " ")


def test_the_state_is_a_page_of_one_file(optsched, tmp_path):
    page = tmp_path / "state.html"
    done = optsched("slurm", "report", *FROM, "-o", page)
    text = page.read_text()
    assert "in service are idle" in done.stdout
    for heading in ("What is free", "What could start now", "Who waits"):
        assert f">{heading}<" in text
    assert not re.search(r"(?:src|href)=\"https?:", text)


def test_strict_order_and_reservations_are_said(optsched):
    strict = json.loads(optsched("slurm", "plan", *BRIEFLY, "--order", "strict", "--json").stdout)
    assert strict["order"] == "strict"
    one = json.loads(optsched("slurm", "plan", *BRIEFLY, "--reserve", "1", "--json").stdout)
    none = json.loads(optsched("slurm", "plan", *BRIEFLY, "--json").stdout)
    assert none["reserved"] == []
    [kept] = one["reserved"]
    assert {"job", "start", "nodes"} == {*kept}
    assert kept["start"] > one["time"]
    text = optsched("slurm", "plan", *BRIEFLY, "--reserve", "1").stdout
    assert f"job {kept['job']} starts in" in text


@pytest.mark.parametrize(
    "words", [["forecast"], ["report", "-o", "x.html"], ["site", "-o", "x.toml"]]
)
def test_a_folder_that_is_not_there_is_named(optsched, tmp_path, words):
    done = optsched("slurm", *words, "--from", tmp_path / "none", cwd=tmp_path)
    assert done.returncode == 1
    assert "none: is not there; expected a folder with the output of Slurm's" in done.stderr
