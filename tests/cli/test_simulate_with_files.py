"""``optsched simulate`` of jobs with input files: wrong input gets one clear line."""

from __future__ import annotations

import pytest

FIRST = (
    "{ id: 1 subtime: 100 delay: 100 walltime: 200 cores: 2 user: ann data: 1 data_size: 12.8 "
    "workload: 0 start_time_from_history: -1 start_node_from_history: 0 }"
)
RUNNING = (
    "{ id: 2 subtime: 40 delay: 100 walltime: 200 cores: 2 user: ann data: 1 data_size: 12.8 "
    "workload: -2 start_time_from_history: 50 start_node_from_history: 99 }"
)


@pytest.mark.parametrize(
    ("old", "new", "machine", "said"),
    [
        ("subtime: 40", "subtime: 500", "cluster:2x20", "line 2, subtime: 500; expected a time"),
        ("walltime: 200", f"walltime: {'9' * 15}", "cluster:2x20", "line 2, walltime: 9999999999"),
        ("data_size: 12.8", "data_size: 12.8", "cluster:8x20:memory=1", "memory: 1 MB; expected"),
        ("cores: 2", "cores: 2", "cluster:2x20:kept=ever", "kept: 'ever'; expected users or next"),
        ("cores: 2", "cores: 21", "cluster:2x20", "line 2, cores: 21 in job 2; expected"),
        (
            "data: 1 data_size: 12.8",
            "data: 2 data_size: 10000000",
            "cluster:2x20:bandwidth=1",
            "line 2, data_size: 10000000000 s in job 2; expected at most 1,000,000 s of load",
        ),
    ],
)
def test_wrong_input_gets_one_clear_line(old, new, machine, said, optsched, tmp_path):
    file = tmp_path / "jobs.rackham"
    file.write_text(f"{FIRST}\n{RUNNING.replace(old, new)}\n")
    run = ("--policy", "locality", "--no-plots", "-o", tmp_path / "run")
    done = optsched("simulate", file, "--machine", machine, *run)
    assert done.returncode == 1
    assert said in done.stderr.splitlines()[-1]
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "run").exists()


def test_a_history_beyond_the_last_node_goes_on_from_the_first(optsched, tmp_path):
    file = tmp_path / "jobs.rackham"
    file.write_text(f"{FIRST}\n{RUNNING}\n")
    run = ("--policy", "locality", "--no-plots", "-o", tmp_path / "run")
    done = optsched("simulate", file, "--machine", "cluster:2x20:kept=next", *run)
    assert done.returncode == 0, done.stderr
    rows = (tmp_path / "run" / "jobs.csv").read_text().splitlines()
    assert '"0-1"' in next(row for row in rows if row.startswith("2,"))
