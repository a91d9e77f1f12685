"""Fair shares against a textbook of Fair Tree, and forecasts in which they change."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from optsched.slurm.fair_share import OF_PARENT, FairTree, fair_shares
from optsched.slurm.future import Future
from optsched.slurm.limits import read_limits
from optsched.slurm.supply import read_supply

from .conftest import NODES, NOW, ONE_NODE, job, left_by, queue_of, running, supply
from .test_future import POLICIES, WHOLE, started, with_settings

RECORD = (
    "ClusterName=here Account={} UserName={} Partition= Priority=0 ID={} "
    "SharesRaw/Norm/Level/Factor={}/0.50/2/{:.2f} UsageRaw/Norm/Efctv={:.2f}/1.00/1.00 "
    "ParentAccount={} Lineage=/ DefAssoc=No GrpJobs=N(0) GrpTRES=cpu=N(0)"
)


@pytest.fixture(scope="session")
def limits_of(tmp_path_factory):
    """Return a function that reads records of account, user, parent, shares, factor and usage."""
    path = tmp_path_factory.mktemp("limits") / "assoc_mgr.txt"

    def read(*records):
        lines = [
            RECORD.format(account, user and f"{user}(7)", at, shares, factor, usage, parent)
            for at, (account, user, parent, shares, factor, usage) in enumerate(records, 1)
        ]
        path.write_text("\n".join(["Current Association Manager state", *lines]) + "\n")
        return replace(read_limits(path, safe=False), qos=None)

    return read


def textbook(records) -> dict[tuple[str, str], float]:
    """Rank users as the source of Slurm does, in depth first by level fair share."""
    users = sum(bool(user) for _, user, *_ in records)
    found, rank, left = {}, users, users

    def children(account):
        for each in records:
            name, user, parent, shares, *_ = each
            if account == (name if user else parent):
                if shares == OF_PARENT and not user:  # its own are children of the account above
                    yield from children(name)
                else:
                    yield each

    def visit(account, usage_of_account, is_tied):
        nonlocal rank, left
        siblings = [*children(account)]
        total = sum(shares for *_, shares, _, _ in siblings if shares != OF_PARENT)

        def level(each):
            _, _, _, shares, _, usage = each
            if shares == OF_PARENT:
                return np.inf
            used = usage / usage_of_account if usage_of_account else 0
            share = shares / total if total else 0
            return 0 if not share else np.inf if not used else share / used

        before = None
        for each in sorted(siblings, key=lambda each: (-level(each), not each[1])):
            name, user, *_, usage = each
            is_tied = is_tied if before is None else level(each) == level(before)
            if user:
                rank = rank if is_tied else left
                found[name, user] = rank / users
                left -= 1
            else:
                visit(name, usage, is_tied)
            before = each

    visit("root", records[0][-1], False)
    return found


@st.composite
def trees(draw):
    """Records of accounts below others, and of users in them, root first."""
    shares, usage = st.sampled_from([0, 1, 1, 2, 3, OF_PARENT]), st.sampled_from([0, 0, 1, 2, 6])
    accounts, records = ["root"], []
    for name in "abcd"[: draw(st.integers(0, 4))]:
        records.append([name, "", draw(st.sampled_from(accounts)), draw(shares), 0.0, 0])
        accounts.append(name)
    users = st.tuples(st.sampled_from(accounts), st.sampled_from(["u", "v", "w"]))
    for account, user in draw(st.lists(users, min_size=1, max_size=8, unique=True)):
        records.append([account, user, "", draw(shares), 0.0, draw(usage)])
    records.insert(0, ["root", "", "", 1, 0.0, draw(usage)])  # of users who are gone
    for each in records[::-1]:  # those below come later
        above = each[0] if each[1] else each[2]
        for other in records:
            if other[:2] == [above, ""]:
                other[-1] += each[-1]
    return [tuple(each) for each in records]


@settings(max_examples=300, deadline=None)
@given(trees())
@example(  # two accounts alike: the first user of the second one ties with the last of the first
    [("root", "", "", 1, 0.0, 8), ("a", "", "root", 1, 0.0, 4), ("b", "", "root", 1, 0.0, 4)]
    + [(account, user, "", 1, 0.0, used) for account in "ab" for user, used in (("u", 1), ("v", 3))]
)
def test_users_are_ranked_as_in_the_textbook(limits_of, records):
    tree = FairTree(limits_of(*records))
    factors = tree.factors(np.array([each[-1] for each in records], dtype=float))
    found = {key[:2]: factors[at] for key, at in tree.number.items()}
    accounts = {(name, ""): 0 for name, user, *_ in records if not user}
    assert found == pytest.approx(textbook(records) | accounts)


FAIR = {
    "prioritytype": "priority/multifactor",
    "priorityweightfairshare": "1000",
    "prioritydecayhalflife": "00:00:00",
    "prioritycalcperiod": "00:00:10",
}

HALF_LIFE = {"prioritydecayhalflife": "00:00:50"}


@pytest.fixture
def waiting(limits_of):
    """Return a function that makes a job of ada until 50 s from now, and one each of ada and bob.

    All jobs take all 64 cores. Ada has used nothing, and is the first with 1,000 points; bob has
    600 points, 500 of them for his fair share.
    """

    def make(used_by_bob, **changes):
        its = {"account": "root", "tres": {"cpu": 1, "billing": 64}}
        whole = WHOLE | its | {"submit": NOW, "eligible": NOW}
        runs = running(99, *NODES[:4], end=NOW + 50, user="ada", **its)
        # so that the forecast has two rows of it
        parts = (*runs.allocations[1:], replace(runs.allocations[0], cores=15))
        runs = replace(runs, allocations=parts)
        first = job(job_id=1, priority=1000, user="ada", **whole)
        second = job(job_id=2, priority=600, user="bob", **whole)
        limits = limits_of(
            ("root", "", "", 1, 0, used_by_bob),
            ("root", "ada", "", 1, 1, 0),
            ("root", "bob", "", 1, 0.5, used_by_bob),
        )
        supply = with_settings(replace(left_by(runs), limits=limits), **FAIR | changes)
        return queue_of(runs, first, second), supply

    return make


BOB_FIRST, ADA_FIRST = {"1": 60, "2": 50}, {"1": 50, "2": 60}


@pytest.mark.parametrize(
    ("used", "changes", "expected"),
    [
        # ada will have used 64 * 50, with which both are first if bob has used as much
        (64 * 50, {}, BOB_FIRST),
        (64 * 50 + 1, {}, ADA_FIRST),
        # calculated after 30 s for the last time
        (64 * 30, {"prioritycalcperiod": "00:00:30"}, BOB_FIRST),
        (64 * 30 + 1, {"prioritycalcperiod": "00:00:30"}, ADA_FIRST),
        # bob has half of his after 50 s, and ada 64 * 50 * (1 - 1/2) / ln 2 = 2308.3
        (2 * 2308, HALF_LIFE, BOB_FIRST),
        (2 * 2309, HALF_LIFE, ADA_FIRST),
        # the fair shares stay as they are
        (64, {"priorityweightfairshare": "0"}, ADA_FIRST),
        (64, {"prioritytype": "priority/basic"}, ADA_FIRST),
        (64, {"priorityflags": "ACCRUE_ALWAYS,NO_FAIR_TREE"}, ADA_FIRST),
        (64, {"priorityflags": "INCR_ONLY"}, ADA_FIRST),
        (64, {"priorityusageresetperiod": "WEEKLY"}, ADA_FIRST),
    ],
)
@pytest.mark.parametrize("policy", POLICIES)
def test_a_job_overtakes_another_as_the_other_user_uses_more(
    waiting, policy, used, changes, expected
):
    assert started(Future(*waiting(used, **changes), policy)) == expected


@pytest.mark.parametrize("policy", POLICIES)
def test_what_starts_counts(waiting, policy):
    queue, supply = waiting(64 * 60)
    runs, first, second = queue.jobs
    # ada will have used 64 * 50 when her first job starts, and 64 * 60 when it ends
    later = (replace(first, job_id=3), replace(second, job_id=4))
    future = Future(queue_of(runs, first, *later), supply, policy)
    assert started(future) == {"1": 50, "3": 70, "4": 60}


def test_what_has_ended_does_not_count(waiting):
    for used, expected in ((64 * 4, BOB_FIRST), (64 * 6, ADA_FIRST)):
        queue, supply = waiting(used)
        runs, first, second = queue.jobs
        # ada uses 64 * 5, and then eve, whose share is not known, has all nodes
        other = replace(first, job_id=3, user="eve", priority=9999, limit=45.0)
        queue = queue_of(replace(runs, end=NOW + 5), first, second, other)
        assert started(Future(queue, supply)) == {"3": 5} | expected


def test_the_fair_share_of_an_unknown_user_stays(waiting):
    queue, supply = waiting(64)
    runs, first, second = queue.jobs
    assert started(Future(queue_of(runs, first, replace(second, user="eve")), supply)) == BOB_FIRST
    # bob has used nothing either, and eve's job counts for nobody
    _, unused = waiting(0)
    jobs = (replace(runs, user="eve"), first, second)
    assert started(Future(queue_of(*jobs), unused)) == BOB_FIRST
    second = replace(second, user="eve", priority=499)  # ada will have 500
    assert started(Future(queue_of(runs, first, second), supply)) == ADA_FIRST
    assert started(Future(queue_of(replace(runs, user="eve"), first, second), supply)) == ADA_FIRST


def test_usage_counts_by_the_factor_of_the_qos(waiting):
    queue, supply = waiting(64 * 25)
    runs, *others = queue.jobs
    for factor, expected in ((0.51, BOB_FIRST), (0.49, ADA_FIRST), (0.0, ADA_FIRST)):
        there = replace(supply, qos_usage={"some": factor})
        jobs = (replace(runs, qos="some"), *others)
        assert started(Future(queue_of(*jobs), there)) == expected, factor


def test_of_the_ranks_that_two_decimals_may_mean_the_nearest_is_taken(limits_of):
    """Slurm last ranked three users when the usage of the first was the least."""
    users = (("", 0, 9), ("u", 1, 4), ("v", 0.67, 3), ("w", 0.33, 2))
    records = [("root", user, "", 1, factor, usage) for user, factor, usage in users]
    there = with_settings(supply(limits=limits_of(*records)), **FAIR)
    assert fair_shares(there).factors.tolist() == pytest.approx([0, 1, 2 / 3, 1 / 3])
    many = [("root", f"u{at}", "", 1, 0.5, at) for at in range(1, 401)]  # 1 to 1/400, but 0.5 shown
    there = with_settings(supply(limits=limits_of(records[0], *many)), **FAIR)
    found = fair_shares(there).factors[[1, 201, 202, 400]]
    assert (found * 400).tolist() == pytest.approx([202, 200, 199, 198])


def test_fair_shares_stay_where_the_tree_or_a_share_is_not_known(waiting, limits_of):
    ada = ("a", "ada", "", 1, 1, 1)
    for records in (
        [],
        [("root", "", "", 1, 0, 1)],
        [ada],  # private data: what is above is not shown
        [("root", "", "", 1, 0, 1), ada],
        [("a", "", "b", 1, 0, 1), ("b", "", "a", 1, 0, 1), ada],
    ):
        assert fair_shares(with_settings(supply(limits=limits_of(*records)), **FAIR)) is None
    _, known = waiting(64)
    shares = dict([*known.limits.shares.items()][1:])
    lacking = replace(known, limits=replace(known.limits, shares=shares))
    assert (fair_shares(known) is None, fair_shares(lacking)) == (False, None)


def test_shares_are_read_where_no_limits_are_enforced(tmp_path):
    (tmp_path / "nodes.txt").write_text(ONE_NODE)
    told = FAIR | {"prioritydecayhalflife": "7-0", "accountingstorageenforce": "associations,qos"}
    config = "".join(f"{name} = {text}\n" for name, text in told.items())
    (tmp_path / "config.txt").write_text(config)
    records = ("root", "", 1, 1, 0, 5, ""), ("root", "ada(7)", 2, OF_PARENT, 1, 5, "")
    told = "\n".join(RECORD.format(*each) for each in records)
    (tmp_path / "assoc_mgr.txt").write_text(told)
    supply = read_supply(tmp_path, NOW)
    assert not supply.limits.known
    found = fair_shares(supply)
    assert (found.weight, found.half_life, found.period) == (1000, 7 * 86_400, 10)
    assert found.usage.tolist() == [5, 5]
    assert found.factors.tolist() == [0, 1]
