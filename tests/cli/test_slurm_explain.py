"""What ``optsched slurm`` says of captured clusters, also of those that do not show all."""

import json
import re
from datetime import datetime, timedelta, timezone
from itertools import count
from pathlib import Path
from types import SimpleNamespace

import pytest

from optsched.cli import run
from optsched.sites.site_file import read_site_file

FORECAST = "slurm forecast --from sample-slurm --draws 0"


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
    clock = datetime.fromtimestamp(answer["by"]).replace(second=0) + timedelta(minutes=2)
    assert explain(61, f"--by {clock:%H:%M} --json")["by"] == clock.timestamp()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--actions requeue,foo", "--actions: unknown action 'foo'; known: drain, hold, migrate, "),
        ("--by noon", "--by: 'noon'; expected a time such as 18:00 or 2026-11-25T18:00"),
        ("--what-if 'add 0 like c01'", "--what-if: 'add 0 like c01': 0; expected a whole number"),
    ],
)
def test_a_mistake_names_its_option(optsched, words, message):
    done = optsched(f"slurm explain 431 --from sample-slurm {words}", code=1)
    assert done.err.startswith(f"optsched: {message}")


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
    assert "raising it" not in shown  # at its start, when no forecast can tell
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
        (149, "--within 3600", "1 h: release it, raise it above 4 jobs and pin it, to start now"),
        (16, "", "release it, raise it above 37 jobs and pin it, to start now"),
        (16, "", "scontrol update JobId=16 Nice=-2214"),  # from the priority that it gets
        (16, "", "forecast --from {} --what-if 'release 16' --what-if 'priority 16 = 2722'\n\n"),
        (148, "", "raising it may delay the jobs that it passes; this command says by how much:"),
        (148, "", "optsched slurm forecast --from {} --what-if 'priority 148 = 1626'\n\n"),
        (148, "", "room on 5 nodes, and 1 needed"),
        (29, "", "unknown, as it is unknown when the rule ends; see optsched slurm forecast 29 "),
    ],
)
def test_rules_and_what_the_lines_do_are_told(explain, shared, job, options, text):
    assert text.format(shared("slurm/fixtures/26.05.5")) in explain(job, options)


def test_a_closed_partition_is_told_once(explain):
    assert explain(2, "--json")["left"] is None


def test_a_rule_as_solver_proves_nothing(explain):
    least = explain(61, "--solver cheapest-first --json")["least"]
    assert least["proven"] is False
    assert least["lines"][-1].startswith("scontrol requeuehold")


def test_the_solver_is_checked_where_none_is_needed(optsched, shared):
    words = "slurm explain 33 --solver foo --from"
    done = optsched(words, shared("slurm/fixtures/26.05.5"), code=1)
    assert (done.out, "unknown solver 'foo'" in done.err) == ("", True)


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
    assert "1 of 1 job starts no more" in held
    assert ": it is held" in held
    assert re.search(r"job +user +by the limits +then +shift", held)
    new = "--what-if 'submit -C nothing -t 1' --what-if 'submit -t 1'"
    assert "it has no room even if no job runs: no node" in optsched(FORECAST, last, new).out
    two = json.loads(optsched(FORECAST, last, new, "--json").out)["what_if"]["jobs"]
    assert {one["user"] for one in two if one["job"] != last} == {"(new)"}
    sooner = rf"\njob {last} sooner +as the first by priority: \d{{4}}-\d\d-\d\d "
    assert re.search(sooner, optsched(FORECAST, last).out)
    nowhere = optsched(FORECAST, f"--what-if 'drain {','.join(nodes)}'").out
    assert "no node is in service, so no job can start: " in nowhere


def test_tables_of_a_what_if_add_up_to_its_sentence(optsched):
    """Of jobs that start earlier, later, only then and no more; the time has its date."""
    drain = "--what-if 'drain c[01-10] at 00:00' --what-if 'drain c[11-30]'"
    shown = optsched(FORECAST, drain, "--what-if 'hold account ai' --what-if 'release qos low'").out
    assert re.search(r"^what if  drain c\[01-10\] at \d{4}-\d\d-\d\dT00:00:00[+-]", shown)
    [sentence] = [line for line in shown.splitlines() if " jobs start" in line]
    said = {
        how: int(many)
        for many, how in re.findall(
            r"(\d+)(?: of \d+ jobs)? starts? (earlier|later|only then|no more)", sentence
        )
    }
    assert {"later", "no more"} <= {*said}
    ways = ("earlier", "later", "only then", "no more")
    for heading in ("user", "partition"):
        rows = shown.partition(f"\n{heading} ")[2].partition("\n\n")[0].splitlines()[1:]
        # of a row, the group and four numbers beside two durations
        counts = [re.split(r"  +", row.strip()) for row in rows]
        sums = [sum(int(row[at]) for row in counts) for at in (1, 3, 5, 6)]
        assert dict(zip(ways, sums)) == {way: said.get(way, 0) for way in ways}


def test_the_state_is_a_page_of_one_file(optsched, tmp_path):
    page = tmp_path / "state.html"
    assert "in service are idle" in optsched("slurm report --from sample-slurm -o", page).out
    text = page.read_text()
    for heading in ("What is free", "What could start now", "Who waits"):
        assert f">{heading}<" in text
    assert "optsched slurm report --from sample-slurm -o report.html" in text
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


NOW = 1_800_000_000
CONFIG = "ClusterName = made\nAccountingStorageEnforce = {}\nSelectTypeParameters = CR_CORE\n"
PARTITION = "PartitionName=batch Nodes=c[1-3] State=UP MaxTime=UNLIMITED {}\n"
CLAIMS = re.compile(r"\bproven\b|\bnever\b|\boptimal\b")


def job(job_id: int, cores: int = 16, **fields) -> dict:
    usual = {"job_id": job_id, "job_state": ["PENDING"], "partition": "batch", "qos": "normal"}
    usual |= {"user_name": "ada", "account": "ai", "priority": 100 - job_id, "time_limit": 60}
    usual |= {"node_count": 1, "max_nodes": 1, "tasks": 1, "cpus_per_task": cores}
    return usual | {"state_reason": "None"} | fields


def running(job_id: int, node: str, cores: int = 16, **fields) -> dict:
    core = {"status": ["ALLOCATED"]}
    there = {"name": node, "memory": {"allocated": 0}, "sockets": [{"cores": [core] * cores}]}
    usual = {"job_state": ["RUNNING"], "user_name": "bob", "requeue": True, "batch_flag": True}
    usual |= {"start_time": NOW - 600, "end_time": NOW + 3000}
    usual |= {"job_resources": {"nodes": {"allocation": [there]}}}
    return job(job_id, cores, **usual | fields)


@pytest.fixture
def write(tmp_path, monkeypatch):
    """Return a function that writes a captured state of nodes c1 to c3, of 16 cores each."""

    def make(*jobs: dict, used=(), states=(), enforced="none", partition="") -> None:
        usual = {"cpus": 16, "real_memory": 64000, "alloc_memory": 0, "threads": 1}
        usual |= {"partitions": ["batch"], "features": []}
        nodes = [{"name": name} | usual for name in ("c1", "c2", "c3")]
        for node in nodes:
            node["alloc_cpus"] = dict(used).get(node["name"], 0)
            node["state"] = [dict(states).get(node["name"], "IDLE")]
        monkeypatch.chdir(tmp_path)
        meta = {"plugin": {"data_parser": "data_parser/v0.0.42"}}
        Path("squeue.json").write_text(json.dumps({"meta": meta, "jobs": list(jobs)}))
        Path("nodes.json").write_text(json.dumps({"meta": meta, "nodes": nodes}))
        Path("now").write_text(f"{NOW}\n")
        Path("partitions.txt").write_text(PARTITION.format(partition))
        Path("config.txt").write_text(CONFIG.format(enforced))
        Path("reservations.txt").write_text("No reservations in the system\n")

    return make


@pytest.fixture
def slurm(optsched):
    """Return a function that runs a command on that state: what it prints, or as JSON."""

    def run(words):
        printed = optsched("slurm", words, "--from .").out
        return json.loads(printed) if "--json" in words else printed

    return run


FULL = dict.fromkeys(("c1", "c2", "c3"), 16)
ALL = [running(10 + place, name) for place, name in enumerate(FULL, 1)]


def test_where_all_is_seen_it_is_proven_unless_nothing_has_to_be_done(slurm, write):
    write(job(1), *ALL, used=FULL)
    shown = slurm("explain 1")
    assert "least to do     requeue 1 job, to start now on c" in shown
    assert "proven by highs" in shown
    assert "scontrol requeuehold 1" in shown
    assert "not known" not in shown
    write(job(1))
    shown = slurm("explain 1")
    assert "least to do     nothing has to be done to start now on c1" in shown
    assert "scontrol" not in shown


@pytest.mark.parametrize(
    "jobs", [ALL[:1], [], [each | {"job_resources": None} for each in ALL]], ids=len
)
def test_hidden_jobs_leave_nothing_proven(slurm, write, jobs):
    write(job(1), *jobs, used=FULL)
    shown = slurm("explain 1")
    assert "not known       which jobs hold" in shown
    assert "as far as is known" in shown
    assert not CLAIMS.search(shown)
    answer = slurm("explain 1 --json")
    assert answer["unseen"]
    assert answer["least"]["proven"] is False
    assert answer["least"]["status"] in ("feasible", "no-solution")


def test_no_running_job_is_touched_where_limits_are_not_known(slurm, write):
    write(job(1), *ALL, used=FULL, enforced="associations,limits")
    shown = slurm("explain 1")
    assert "not known       limits of QOS and associations, without assoc_mgr.txt" in shown
    assert "requeue 1 job" in shown
    assert "scontrol" not in shown
    assert "# no commands, as something about the job is unknown: --force prints them" in shown
    least = slurm("explain 1 --json")["least"]
    assert least["withheld"]
    assert [least[name] for name in ("lines", "at_start", "afterwards")] == [[], [], []]
    forced = slurm("explain 1 --force")
    assert "scontrol requeuehold 1" in forced
    assert not CLAIMS.search(forced)


def test_other_actions_need_no_force(slurm, write):
    write(job(1), *ALL[1:], used=FULL | {"c1": 0}, states={"c1": "DRAIN"}, enforced="limits")
    assert "scontrol update NodeName=c1 State=RESUME" in slurm("explain 1 --actions resume")


def test_a_job_that_its_partition_does_not_admit_gets_no_advice(slurm, write):
    chem = job(1, account="chem")
    write(chem, *ALL, used=FULL, partition="AllowAccounts=ai", enforced="associations")
    shown = slurm("explain 1 --force")
    assert "rule      partition batch admits the accounts ai, and not chem" in shown
    assert "scontrol" not in shown
    blocked = slurm("plan --json")["blocked"]
    assert blocked["1"].startswith("partition batch admits the accounts ai")


@pytest.mark.parametrize(
    ("state", "said"),
    [
        ("DRAIN", "not before nodes that are drained are resumed, see --actions resume"),
        ("DOWN", "not before nodes that are down come back"),
    ],
)
def test_resuming_nodes_is_hinted_at(slurm, write, state, said):
    write(job(1, required_nodes="c2"), states={"c2": state})
    shown = slurm("explain 1")
    assert said in shown
    assert ("it would fit if drained nodes were resumed: see" in shown) == (state == "DRAIN")
    assert "never" not in shown


def test_a_job_that_slurm_may_start_before_others_of_the_plan_is_named(slurm, write):
    wide = job(1, 2, node_count=2, max_nodes=2, shared=["none"], priority=110)
    others = job(2, 12, priority=100), job(3, 12, priority=90), running(9, "c3", 16)
    write(wide, *others, used={"c3": 16})
    said = "job 1, priority 110, age 0 s: it fits alone, but other jobs of the plan take its room; "
    [line] = [line.strip() for line in slurm("plan").splitlines() if said in line]
    assert line == f"{said}delayed by at most 1 h, see --order strict"
    assert said not in slurm("plan --order strict")
    write(job(1), job(2), job(3, 4), *ALL[1:2], running(9, "c3", 12), used={"c2": 16, "c3": 12})
    strict = slurm("plan --order strict")
    assert "job 2, priority 98, age 0 s: it fits alone, but other jobs of the plan" in strict
    assert "--order strict" not in strict


def test_a_start_that_slurm_planned_for_now_is_due(slurm, write):
    planned = {"required_switches": 0, "scheduled_nodes": "c1", "start_time": NOW}
    write(job(1, **planned), job(2, **planned | {"start_time": NOW + 60}), *ALL, used=FULL)
    assert "start due on c1" in slurm("explain 1")
    [row] = [line.split() for line in slurm("plan").splitlines() if line.startswith("1 ")]
    assert row[-2:] == ["c1", "due"]
    assert "jobs           0; by Slurm 0 now" in slurm("plan")


def test_of_a_job_that_starts_now_it_is_not_told_how_it_starts_sooner(slurm, write):
    write(job(1), job(2), *ALL[:2], used={"c1": 16, "c2": 16})
    shown = slurm("forecast 1 2")
    assert "job 1 sooner" not in shown
    assert "job 2 sooner" in shown


def test_jobs_that_are_not_placed_are_named_with_reasons(slurm, write, optsched):
    asks = [job(1, 12), job(2, 12), job(3, 12), job(4, 12), job(5, priority=500, cpus_per_task=17)]
    held = job(6, hold=True)
    write(*asks, held, running(9, "c3", 8), used={"c3": 8}, enforced="limits")
    lines = slurm("plan").splitlines()
    place = lines.index("not placed     3")
    assert [line.strip() for line in lines[place + 1 : place + 4]] == [
        "job 5, priority 500, age 0 s: room on 0 of 1 node, short of cores",
        "job 3, priority 97, age 0 s: it fits alone, but other jobs of the plan take its room",
        "job 4, priority 96, age 0 s: it fits alone, but other jobs of the plan take its room",
    ]
    assert "not known      limits of QOS and associations, without assoc_mgr.txt: 5 jobs" in lines
    assert "               1 job: it is held" in lines
    waits = "               Slurm may let them wait: it reserves nodes for jobs of higher priority"
    assert lines[lines.index("jobs           2; by Slurm 0 now") + 1] == waits
    found = slurm("plan --json")
    assert [each["job"] for each in found["not_placed"]] == ["5", "3", "4"]
    assert found["not_placed"][0]["reason"] == "room on 0 of 1 node, short of cores"
    assert found["unseen"] == {"limits of QOS and associations, without assoc_mgr.txt": 5}
    told = optsched("slurm apply --from .").err
    assert "not known of 5 jobs: limits of QOS and associations" in told
    write(job(1))
    assert "jobs           1; by Slurm 0 now\nweight" in slurm("plan")
