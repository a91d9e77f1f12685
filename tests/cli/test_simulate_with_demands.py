"""``optsched simulate`` of jobs that share resources: wrong input gets one clear line."""

from __future__ import annotations

import pytest

JOB = "{number} 0 0 100 2 -1 -1 2 {seconds} -1 1 1 1 1 1 1 -1 -1\n"


@pytest.fixture
def simulated(optsched, tmp_path):
    """Return the function that runs two jobs, and says how it went."""

    def run(*options, demands="bandwidth\n1,2000\n2,500\n", seconds=200, policy="sjbf"):
        file = tmp_path / "jobs.swf"
        jobs = [JOB.format(number=number, seconds=seconds) for number in (1, 2)]
        file.write_text("; MaxProcs: 8\n" + "".join(jobs))
        (tmp_path / "jobs.swf.demands.csv").write_text(f"job_id,{demands}")
        words = ("--policy", policy, "--no-plots", "-o", tmp_path / "run")
        return optsched("simulate", file, *words, *options)

    return run


@pytest.mark.parametrize(
    ("machine", "changed", "said"),
    [
        ("smp:2x4:bandwith=6000", {}, "of bandwith, which smp:2x4:bandwith=6000 has; 'optsched"),
        ("smp:2x4:bandwidth=9999999999", {}, "bandwidth: 9999999999; expected at most 1,000"),
        ("smp:2x4", {"seconds": 2 * 10**9}, "jobs.swf, line 2, requested time: 2000000000 s in"),
        (
            "smp:2x4",
            {"demands": "bandwidth\n1,5\n2,9999999999\n"},
            "jobs.swf.demands.csv, line 3, bandwidth: 9999999999; expected a whole number from 0",
        ),
        (
            "smp:2x4:bandwidth=1",
            {"demands": "bandwidth\n1,5\n2,1000000000\n"},
            "demands of up to bandwidth 1000000000 and walltimes of up to 200 s make penalties",
        ),
    ],
)
def test_wrong_input_gets_one_clear_line(machine, changed, said, simulated, tmp_path):
    done = simulated("--machine", machine, **changed)
    assert done.returncode == 1
    assert said in done.stderr.splitlines()[-1]
    assert len(done.stderr.splitlines()) == 1
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("machine", "demands", "notes"),
    [
        ("smp:2x4", "bandwidth\n1,2000\n2,500\n", []),
        ("smp:2x4", "bandwidth,network\n1,2000,0\n2,500,0\n", []),
        (
            "smp:2x4:bandwidth=6000:netwrk=256",
            "bandwidth,network\n1,2000,1\n2,500,0\n",
            [
                "optsched: trace 'jobs' has no demands of netwrk, as "
                "smp:2x4:bandwidth=6000:netwrk=256 has it; it states bandwidth, network",
                "optsched: smp:2x4:bandwidth=6000:netwrk=256 has no network, "
                "which jobs of 'jobs' demand; not shared",
            ],
        ),
    ],
)
def test_resources_that_only_one_side_names_are_told(machine, demands, notes, simulated):
    done = simulated("--machine", machine, demands=demands)
    assert done.returncode == 0, done.stderr
    assert [line for line in done.stderr.splitlines() if line.startswith("optsched:")] == notes


@pytest.mark.parametrize(
    ("policy", "execution", "told"),
    [
        ("rua", "contiguity", True),
        ("sjbf", "contiguity", True),
        ("rua", "resource-sharing", False),
        ("easy", "resource-sharing", False),
    ],
)
def test_a_policy_that_decides_for_another_execution_is_told(policy, execution, told, simulated):
    done = simulated("--machine", "smp:2x4", "--execution", execution, policy=policy)
    assert done.returncode == 0, done.stderr
    note = (
        f"optsched: policy '{policy}' decides for execution model 'resource-sharing'; "
        f"the jobs run under '{execution}', so its estimates do not hold\n"
    )
    assert (note in done.stderr) == told
