"""Fair shares beside those of a real Slurm, and the order in which jobs start as they change."""

from pathlib import Path

import numpy as np
import pytest

from optsched.policies.multifactor import used_after
from optsched.slurm.capture import TEXT_FILES
from optsched.slurm.limits import Limits, read_limits
from optsched.slurm.order import FairTree

from .real_slurm import PROGRAMS, SETTINGS, AccountedSlurm, forecast, marks, real_starts, starts

pytestmark = marks(PROGRAMS)

OF_ACCOUNTS = (
    "add account ai",
    "add account bio fairshare=2",
    "add account lab parent=ai",
    "add account guests fairshare=parent",
    "add user games account=ai",
    "add user man account=ai fairshare=parent",
    "add user backup account=lab",
    "add user news account=bio",
    "add user mail account=guests",
    "add qos half UsageFactor=0.5",
    "modify user games set qos+=half",
)

SHARED = """\
PriorityWeightFairShare=10000
PriorityCalcPeriod=1
PriorityDecayHalfLife=00:10:00
PartitionName=pair Nodes=n[63-64] MaxTime=60
"""


def limits_of(slurm: AccountedSlurm, path: Path) -> Limits:
    path.write_text(slurm.call(*TEXT_FILES["assoc_mgr.txt"]))
    return read_limits(path, safe=False)


def both(slurm: AccountedSlurm, path: Path) -> tuple[dict[str, float], dict[str, float]]:
    """Return the fair shares of users: ours, by the usage that Slurm shows, and those of Slurm."""
    limits = limits_of(slurm, path)
    tree = FairTree(limits)
    found = tree.factors(np.array([each.usage for each in limits.shares.values()]))
    ours = {user: float(found[at]) for (_, user, _), at in tree.number.items() if user}
    lines = slurm.call("sshare", "-a", "-P", "-n", "-o", "User,FairShare").splitlines()
    shown = dict(line.strip().split("|") for line in lines)
    theirs = {user: float(factor) for user, factor in shown.items() if user}
    # what is calculated meanwhile is asked for again
    is_same = limits.shares == limits_of(slurm, path).shares
    return (ours, theirs) if is_same else both(slurm, path)


def points(slurm: AccountedSlurm) -> dict[str, int]:
    """Return the points for the fair share of each user with a waiting job."""
    lines = slurm.call("sprio", "-h", "-o", "%u %F").splitlines()
    return {user: int(points) for user, points in map(str.split, lines)}


def test_users_have_the_fair_shares_of_slurm_and_jobs_overtake_by_them(tmp_path):
    path = tmp_path / "assoc_mgr.txt"
    with AccountedSlurm(tmp_path / "slurm", OF_ACCOUNTS, settings=SETTINGS + SHARED) as slurm:

        def submit(user: str, seconds: int, options: str) -> str:
            return slurm.submit(*f"--uid={user} {options}".split(), seconds=seconds)

        def agree() -> bool:
            ours, theirs = both(slurm, path)
            return ours == pytest.approx(theirs, abs=1e-6)

        def used() -> float:
            return limits_of(slurm, path).shares["ai", "games", ""].usage

        assert agree()
        for user, nodes in (("backup", 2), ("mail", 3), ("news", 8)):
            submit(user, 5, f"-t1 --exclusive -N{nodes}")
        slurm.wait(lambda: not slurm.call("squeue", "-h"))
        assert not agree()  # jobs that have ended count at once, and are ranked by later
        slurm.wait(agree)
        ours, _ = both(slurm, path)
        assert ours["games"] > ours["backup"] > ours["news"]
        runs = submit("games", 175, "-t3 -p pair --exclusive -N2 -q half")
        slurm.wait(lambda: runs in real_starts(slurm))
        first, second = (
            submit(user, 3, "-t1 -p pair --exclusive -N2") for user in ("backup", "news")
        )
        slurm.wait(lambda: len(points(slurm)) == 2)
        assert points(slurm) == {each: round(1e4 * ours[each]) for each in ("backup", "news")}
        assert "\nhalf||cluster|0.500000\n" in slurm.call(*TEXT_FILES["qos.txt"])
        will = starts(forecast(slurm))
        assert will[second] < will[first]
        slurm.wait(lambda: both(slurm, path)[0] != ours)  # as the job of games counts
        later, theirs = both(slurm, path)
        assert later == pytest.approx(theirs, abs=1e-6)
        assert later["news"] > later["backup"]
        first_used = used()
        slurm.wait(lambda: used() != first_used)
        # the QOS counts half of 16 cores; Slurm takes decay in steps of a tenth of the half-life
        after = used_after(60, np.array([first_used]), np.array([8.0]), 600)
        assert used() == pytest.approx(after[0], rel=0.05)
        slurm.wait(lambda: {first, second} <= {*real_starts(slurm)})
        real = real_starts(slurm)
        assert real[second] < real[first]
        assert abs(will[second] - real[second]) <= 15
