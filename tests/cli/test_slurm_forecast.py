"""``optsched slurm forecast``, ``report`` and ``site``, and what if, on the bundled sample."""

from __future__ import annotations

import json
import re

from optsched.sites.site_file import read_site_file

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
    changed = optsched(FORECAST, f"--what-if 'priority {last} = 4000000000' --json").out
    shifts = {each["job"]: each["seconds"] for each in json.loads(changed)["shifts"]}
    assert shifts.get(last, 0) <= 0
    assert "submit -N 1" in optsched(FORECAST, "--what-if 'submit -N 1 -t 10:00'").out
    words = f"slurm explain {first} --from sample-slurm --what-if 'add 100 like c01'"
    explained = optsched(words).out
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
