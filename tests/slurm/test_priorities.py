"""Which jobs are before others: priorities, fair shares against a textbook, and preemption."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from optsched.errors import InputError
from optsched.slurm.access import users_of_limit
from optsched.slurm.explain import explain
from optsched.slurm.forecast import forecast
from optsched.slurm.future import Future
from optsched.slurm.limits import Limit, Limits, read_limits
from optsched.slurm.order import OF_PARENT, FairTree, fair_shares, tasks
from optsched.slurm.queue import behind_by, read_factors, set_by_operator
from optsched.slurm.running import may_preempt
from optsched.slurm.supply import read_supply

from .conftest import NODES, NOW, ONE_NODE, job, left_by, queue_of, running, supply
from .test_explain import answer
from .test_future import ALL, POLICIES, WHOLE, started, with_settings


def test_captured_factors_add_up_to_the_priorities(captured):
    folder, queue, _ = captured
    factors = read_factors(folder)
    told = [(job, factors[job.job_id]) for job in queue.pending if job.job_id in factors]
    told = [(job, own) for job, own in told if own.get("TRES") is None]
    for one, own in told:
        assert sum(own.values()) == pytest.approx(one.priority, abs=2)
    assert len(told) > 20
    assert not any(set_by_operator(job, factors) for job in queue.pending)


def test_what_puts_a_job_behind_others_is_the_mean_difference():
    factors = {
        1: {"age": 10, "fair share": 5, "QOS": 0},
        2: {"age": 10, "fair share": 105, "QOS": 1000},
        3: {"age": 0, "fair share": 55, "QOS": 0},
    }
    jobs = [job(job_id=number, priority=10 + number) for number in (1, 2, 3)]
    assert behind_by(jobs[0], jobs[1:], factors) == [("QOS", 500), ("fair share", 75)]
    assert behind_by(jobs[0], jobs[1:], {}) == []
    found = explain(queue_of(*jobs), supply(), "1", factors=factors)
    assert found.behind == [("QOS", 500), ("fair share", 75)]


def test_a_priority_without_factors_is_set_by_an_operator(tmp_path):
    header = "JOBID PARTITION USER PRIORITY AGE PARTITION QOS NICE TRES"
    rows = ("1 p ada 1007 0 0 0 0", "2 p ada 1000 0 1000 0 0", "3 p ada 900 0 0 0 0 cpu=900")
    (tmp_path / "sprio.txt").write_text("\n".join((header, *rows, "4 p ada 1 0 0 0 0")) + "\n")
    factors = read_factors(tmp_path)
    assert factors[3]["TRES"] == 900
    found = {
        n: set_by_operator(job(job_id=n, priority=p), factors)
        for n, p in ((1, 1007), (2, 1000), (3, 900), (4, 1), (5, 7))
    }
    assert found == {1: True, 2: False, 3: False, 4: False, 5: False}


def test_a_job_whose_priority_is_set_is_raised_by_it_and_not_by_its_nice():
    runs = running(9, "c1", "c2", "c3", "c4", end=NOW + 900)
    first = job(job_id=2, priority=30, **ALL)
    for is_set, line, back in ((True, "Priority=52", "Priority=10"), (False, "Nice=-42", "Nice=0")):
        asks = job(job_id=1, priority=10, priority_by_operator=is_set, **ALL)
        found = answer(explain(queue_of(asks, first, runs), left_by(runs), "1"))
        assert found.lines[0] == f"scontrol update JobId=1 {line}"
        assert found.afterwards[-1] == f"scontrol update JobId=1 {back}"


def test_wrong_factors_are_refused_with_their_line(tmp_path):
    assert read_factors(tmp_path) == {}
    for text, message in (
        ("A B\n1 2\n", "line 1: no JOBID and PRIORITY; expected what sprio -l writes"),
        ("JOBID PRIORITY AGE\nx 1 2\n", "line 2, JOBID: 'x'; expected the number of a job"),
        (f"JOBID PRIORITY AGE\n{'9' * 5000} 1 2\n", "expected the number of a job"),
    ):
        (tmp_path / "sprio.txt").write_text(text)
        with pytest.raises(InputError, match=message):
            read_factors(tmp_path)


def test_who_has_how_much_of_a_limit_is_named():
    limit = Limit("QOS two", "GrpJobs", "", 3, 3)
    of = (("ada", "two"), ("ada", "two"), ("bob", "two"), ("eve", "other"))
    runs = [running(n, "c1", user=user, qos=qos, cores=1) for n, (user, qos) in enumerate(of, 10)]
    waits = job(job_id=1, qos="two", user="bob")
    supply = replace(left_by(*runs), limits=Limits({"two": (limit,), "other": ()}))
    assert users_of_limit(waits, runs, supply) == (("ada", 2), ("bob", 1))
    assert explain(queue_of(*runs, waits), supply, "1").limit_users == (("ada", 2), ("bob", 1))
    assert users_of_limit(replace(waits, qos="other"), runs, supply) == ()


def test_jobs_preempt_those_that_their_qos_may_preempt_and_within_it_by_priority():
    """With PreemptMode=WITHIN of the QOS, or of all, those of their own of a lower priority."""
    running_qos = {10: "low", 11: "normal", 21: "self", 22: "self", 23: "self"}
    runs = [running(n, "c1", cores=1, qos=q, priority=n - 20) for n, q in running_qos.items()]
    by_qos = {"preempttype": "preempt/qos"}
    within = by_qos | {"preemptmode": "REQUEUE,WITHIN"}
    for own, rules, said, expected in (
        ("high", {"high": ("low",)}, by_qos, [10]),
        ("high", {"high": ()}, by_qos, []),
        ("high", {"high": ("high",)}, by_qos, []),
        ("high", None, by_qos, [*running_qos]),  # not known: any other
        ("self", {"self": ()}, by_qos, []),
        ("self", {"self": ("self",)}, by_qos, [21]),
        ("self", {"self": ()}, within, [21]),
        ("self", None, within, [10, 11, 21]),
    ):
        there = replace(left_by(*runs), qos_preempts=rules, settings=said)
        found = may_preempt(job(qos=own, priority=2), runs, there)
        assert [each.job_id for each in found] == expected, (own, rules)


def test_which_qos_may_preempt_and_how_much_of_its_usage_counts_is_read(tmp_path):
    (tmp_path / "nodes.txt").write_text(ONE_NODE)
    assert read_supply(tmp_path, NOW).qos_preempts is None
    path, header = tmp_path / "qos.txt", "Name|Preempt|PreemptMode|UsageFactor\n"
    for text, preempts, usage in (
        ("high|low,normal|requeue|\nlow|||\n", {"high": ("low", "normal"), "low": ()}, {}),
        ("self||requeue,within|\n", {"self": ("self",)}, {}),
        ("free||off|0.500000\n", {"free": ()}, {"free": 0.5}),
    ):
        path.write_text(header + text)
        found = read_supply(tmp_path, NOW)
        assert (found.qos_preempts, found.qos_usage) == (preempts, usage)
    for wrong, said in (
        ("free|||half\n", r"qos.txt, line 2, UsageFactor: 'half'; expected a number"),
        ("high|low|x\n", r"qos.txt, line 2: 3 fields; expected 4, as in line 1"),
    ):
        path.write_text(header + wrong)
        with pytest.raises(InputError, match=said):
            read_supply(tmp_path, NOW)


def test_jobs_before_it_are_those_of_its_nodes_and_of_higher_tiers():
    tiers, parts = {"rest": 9, "short": 1}, supply().site.partitions
    parts = [replace(each, priority_tier=tiers.get(each.name, 5)) for each in parts]
    there = supply(partitions=tuple(parts))
    jobs = (
        job(job_id=1, priority=50, partitions=("own",)),  # c1 to c4
        job(job_id=2, priority=60, partitions=("all",)),
        job(job_id=3, priority=10, partitions=("rest",)),  # c3, c4 and m1, of a higher tier
        job(job_id=4, priority=70, partitions=("block",)),  # g1 and g2
        job(job_id=5, priority=90, partitions=("short",), limit=60.0),  # c1 and c2, a lower tier
        job(job_id=6, priority=40, partitions=("all",)),
    )
    found = explain(queue_of(*jobs), there, "1")
    assert [each.job_id for each in found.ahead] == [3, 2]
    assert [each.job_id for each in found.ahead_by_priority] == [2]
    starts = forecast(Future(queue_of(*jobs), there), None, draws=0).starts
    assert {one.label: one.ahead for one in starts}["1"] == 2


def test_of_arrays_those_tasks_count_that_may_start_now():
    array = job(job_id=2, array_id=2, array_tasks=(0, 1, 2, 3), array_limit=3, priority=9)
    runs = running(7, "c1", array_id=2, array_tasks=(9,), cores=1)
    held = job(job_id=3, array_id=3, array_tasks=(0, 1), priority=9, held=True)
    late = job(job_id=4, priority=9, eligible=NOW + 60)
    queue = queue_of(job(job_id=1), array, held, late, runs)
    found = explain(queue, supply(), "1")
    assert [each.label for each in found.ahead] == ["2_[0-1]"]
    assert tasks(found.ahead) == 2
    assert [each.label for each in explain(queue, supply(), "2_1").ahead] == ["2_0"]
    assert explain(queue, supply(), "2").ahead == ()
    starts = forecast(Future(queue, supply()), None, draws=0).starts
    assert {one.label: one.ahead for one in starts} == {
        "1": 2, "2_0": 0, "2_1": 1, "2_2": 2, "2_3": 2, "4": 2,
    }  # fmt: skip


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
