"""The cases: where they come from, and the value that is right.

A to D are sections of ``public-cases.md``, S the findings of ``slurm.md``, R those of
``reliability.md``. Each value was worked out by hand, by brute force, or from what Slurm does.
"""

from public_cases.cases import Case
from public_cases.looks import (
    Look,
    answers,
    apart,
    every,
    lasts,
    legal,
    never,
    never_wrong,
    not_on,
    places,
    refuses,
    says,
    some,
    starts,
)
from public_cases.scripts import FUZZ_5293, LINK

PLAN = "slurm plan --json --from "
STOPS_OTHERS = r"^scontrol (requeue|requeuehold|suspend|scancel|hold) "
"""Lines to paste that touch jobs of others."""


def plan(name: str, folder: str, right: str, look: Look) -> Case:
    return Case(f"{name} {folder}", right, f"{PLAN}{folder}", look)


def explain(name: str, job: str, folder: str, right: str, look: Look) -> Case:
    command = f"slurm explain {job} --from {folder}"
    return Case(f"{name} explain {job} {folder}", right, command, look)


def solve(name: str, file: str, right: str, look: Look, *options: str) -> Case:
    command = ("solve", file, "--json", *options)
    return Case(" ".join((name, file, *options)), right, command, look)


def info(name: str, file: str, right: str, look: Look, *options: str) -> Case:
    return Case(f"{name} {file}", right, ("trace", "info", file, *options), look)


def simulate(name: str, file: str, policies: str, right: str, look: Look) -> Case:
    options = ("--policy", policies, "--no-plots", "-o", "run")
    return Case(f"{name} {file} {policies}", right, ("simulate", file, *options), look)


# fmt: off
PROOFS = (
    Case("A1 or-5293-fuzz 5365", "0 wrong of the problems from seed 5365 on", ("python", FUZZ_5293,
        "5365", "8"), says(r"[1-9]\d* problems 0 wrong")),
    *(solve("A10", f"cases/{file}", f"{bins} bins, proven", answers(bins), "--time-limit", "20")
        for file, bins in (("or-4529-binpack.txt", 11), ("or-4529b-binpack.txt", 10))),
    solve("A10", "cases/or-4529-as-mkp10.txt", "934", answers(934)),
    solve("A10", "cases/or-4529-as-mkp11.txt", "958: all items", answers(958)),
    solve("A11", "cases/or-knapsack-850.csv", "7534, by a dynamic program", answers(7534)),
    solve("A11", "cases/or-knapsack-850.txt", "7534", answers(7534)),
    solve("A8", "cases/mps-spaces.mps", "-6, or names with blanks need fixed columns",
        some(answers(-6), refuses("blank|space|fixed"))),
    solve("A8", "cases/mps-spaces-fixed.mps", "-6", answers(-6)),
    *(solve("B15", "cases/or-4599-mkp.csv", "395, as published", answers(395), *options)
        for options in ((), ("--solver", "cp-sat"))),
    solve("B16", "cases/or-3620.lp", "1", answers(1)),
    solve("B17", "cases/pulp-529.mps", "54", answers(54)),
    solve("B17", "cases/pulp-names2.lp", "20, by enumeration", answers(20)),
    solve("B17", "cases/pulp-names.lp", "a name with <= is refused", refuses()),
    solve("B17", "cases/pulp-names.mps", "sense in a comment alone: refused", refuses("SENSE")),
    solve("B19", "cases/qps-28.mps", "9 at x = 1, y = 3", answers(9)),
    solve("B20", "cases/highs-2152.mps", "no lower bound: refused", refuses("lower bound")),
    solve("B20", "cases/highs-2152b.mps", "-10", answers(-10)),
    solve("B20", "cases/mps-negup.mps", "UP -3 with lower 0: refused", refuses()),
    solve("B20", "cases/mps-negup2.mps", "-10 with the constant 7", answers(-10)),
    solve("B21", "cases/highs-402.mps", "-96", answers(-96)),
    *(Case(f"B25 lp-infeasible.lp {solver}", "infeasible, exit code 4",
        f"solve cases/lp-infeasible.lp --solver {solver}", says("infeasible", code=4))
        for solver in ("cp-sat", "highs", "scip", "cbc")),
    solve("B", "cases/lp-dup.lp", "a variable twice in a row: refused", refuses()),
    solve("B", "cases/gap99.txt", "15, by enumeration", answers(15)),
    solve("B", "cases/orlib-crlf.txt", "6, by enumeration", answers(6)),
    *(solve("R1", f"attack/found-{problem}-scip-1.json", str(best), look, *options) for problem,
        best, sense in (("window-mkp-wrong-optimal", 4999999999849, 1), ("window-mkp-wrong-bound",
        4999999999849, 1), ("window-mkp-error", 2000000000000, 1), ("node-placement-wrong-optimal",
        5010737418237, 1), ("node-placement-wrong-bound", 5010737418237, 1),
        ("reconfiguration-error", 0, -1), ("integer-program-error", 8000015, -1)) for options,
        look in (((), answers(best)), *((("--solver", solver), never_wrong(best, sense))
        for solver in ("scip", "highs", "cbc", "cp-sat")))),
    *(solve("R6", "attack/found-window-mkp-error-highs-1.json", "2000000000000", look, *options)
        for options, look in (((), answers(2000000000000)), (("--solver", "highs"),
        never_wrong(2000000000000)))),
    *(Case(f"R1 {script}", "no wrong optimum, no wrong bound", ("python", f"attack/{script}"),
        every(says("highs"), never("WRONG")), long=True) for script in ("objsize.py",
        "objsize2.py", "objmix.py")),
    Case("R6 rowsize.py", "no error below the stated limits", ("python", "attack/rowsize.py"),
        every(says("scip"), never("WRONG", "'error")), long=True),
    *(solve("R2", f"attack/lp-silent/{file}", f"{best}, or refused", some(answers(best), refuses()))
        for file, best in (("a.lp", 3), ("b.lp", 6), ("c.lp", 4))),
    Case("R2 mps_semantics.py", "29 of 29 as the formats say, or refused", ("python",
        "attack/mps_semantics.py"), every(says("objective coefficient"),
        never(r"^(?!integer without bounds.*got 1 ).*<<<"))),
    Case("R7 liars.py", "no lie is verified", ("python", "attack/liars.py"), every(
        says("true optimum"), never(r"(own bound|own solution): [\w.]*optimal True"))),
)

PLANS = (
    plan("A2", "cases/slurm-shard-a", "job 2 alone, or left to Slurm and said", every(places("",
        "2@g1"), some(places("2@g1"), says("shard")))),
    plan("A2", "cases/slurm-shard-b", "nothing: every GPU has a shard in use", places("")),
    plan("A3", "cases/slurm-cloud", "jobs 1, 2, and 7 on the booting c4",
        places("1@c1|c6 2@c1|c6 7@c4")),
    plan("A3", "cases/slurm-states", "3 jobs, on n4, n8 and the booting n11",
        places("1@n4|n8|n11 2@n4|n8|n11 3@n4|n8|n11")),
    plan("A3", "cases/slurm-text-states", "jobs 1, 2, 3 on n1, n2, n3",
        places("1@n1|n2|n3 2@n1|n2|n3 3@n1|n2|n3")),
    plan("A4", "cases/slurm-owner", "job 2 alone: c3 belongs to u4", places("2@c3")),
    plan("A4", "cases/slurm-excl-user", "job 1 on c1, with its user's job; job 2 on c2",
        places("1@c1 2@c2")),
    plan("A4", "cases/slurm-excl-part", "two users, two nodes", every(places("1@c1|c2 2@c1|c2"),
        apart("1", "2"))),
    explain("A4", "1", "cases/slurm-excl-user", "nothing has to be done; nobody is stopped",
        every(says(), never(STOPS_OTHERS))),
    explain("A4", "1", "cases/slurm-owner", "c3 is another user's", every(
        says("owned by another user"), never("so it fits"))),
    plan("A4", "cases/fx-owner", "nobody else on m1", not_on("283@m1", "274@m1", "338@m1")),
    plan("A5", "cases/slurm-suspended", "job 1: the memory is kept, the cores are free",
        places("1@c1")),
    explain("A5", "2", "cases/slurm-suspended", "no end is known of a suspended job",
        every(says(r"earliest start"), never(r"earliest start +in"))),
    plan("A5", "cases/fx-susp", "a plan", says()),
    plan("A6", "cases/slurm-gres-tmp", "100G and 700G on io01-13, 800G nowhere",
        places("1@io01-13 2@io01-13")),
    plan("A6", "cases/slurm-gres-bw", "job 1", places("1@c1")),
    plan("A6", "cases/fx-tmp", "a plan", says()),
    explain("A7", "1", "cases/slurm-private", "24 cores are held by jobs that are hidden",
        every(says("24"), never("proven", STOPS_OTHERS))),
    plan("A7", "cases/slurm-private", "nothing", places("")),
    Case("A8 cases/slurm-multiline", "asks for one node a line",
        "slurm plan --from cases/slurm-multiline", refuses("-o\\b")),
    plan("B4", "cases/slurm-kueue-4329", "4 x 2 GPUs, not 8 on one node", places("2@h1+h2+h3+h4")),
    plan("B6", "cases/slurm-skypilot-10319", "3 of 3 free GPUs", places("1@n1")),
    plan("B7", "cases/slurm-array", "one task more of %3", every(places("100_3@c1|c2",
        "206@c1|c2"))),
    plan("B9", "cases/slurm-het", "job 3; parts of 1 are left to Slurm", every(places("3@c1|c2"),
        says("heterogeneous"))),
    plan("B12", "cases/slurm-host-suffix", "x10, n02-ib", places("1@x10 2@n02-ib")),
    explain("B14", "1", "cases/slurm-aws-195", "resume the node is hinted at",
        every(says("resume"), never(r"\bnever\b"))),
    Case("B14 explain 1 cases/slurm-aws-195 --actions resume", "resume the node",
        "slurm explain 1 --from cases/slurm-aws-195 --actions resume",
        says(r"^scontrol update NodeName=gpu-dev-7 State=RESUME")),
    plan("B", "cases/slurm-base", "job 1", places("1@c1")),
    plan("B", "cases/slurm-lic", "3 and 4; the OR is left to Slurm", places("3@c1 4@c1")),
    plan("B", "cases/slurm-maint", "the job of 100 min, not that of 180 min", places("2@c1|c2")),
    explain("B", "1", "cases/slurm-maint", "in 6 h, after the maintenance",
        says(r"earliest start +in 6 h")),
    plan("B", "cases/slurm-mem0", "--mem=0 has c1 to itself", places("1@c1 2@c2")),
    plan("B", "cases/slurm-memgpu", "one job: 40,000 of 64,000 MB", places("1@g1")),
    plan("B", "cases/slurm-features", "[a|b] on one rack, (rack2&ib)|foo on c4",
        places("2@c1+c2|c3+c4 3@c4", "1@c1+c2+c3|c1+c2+c4 4@c1|c2|c3")),
    plan("B", "cases/slurm-gpus", "2 and 3; 1 as well if nothing is in the way",
        places("2@g2 3@g1|g2", "1@g1+g2")),
    explain("B", "1", "cases/slurm-switches", "3.33 min: two running jobs end later",
        says(r"earliest start +in 3.33 min")),
    plan("B", "cases/slurm-switches", "job 2", places("2@n3+n4|n7+n8")),
    plan("B14", "cases/slurm-prio-basic", "proven, and the first of the queue starts",
        every(places("1@c1|c2", "2@c1|c2 3@* 4@*"), says('"status": "optimal"'))),
    plan("D5", "cases/slurm-force4", "cores that jobs share are not shared, and this is said",
        every(places(""), says("share"))),
    explain("D5", "1", "cases/slurm-force4", "no proof where cores are shared", never("proven",
        STOPS_OTHERS)),
    plan("D5", "cases/fx-force", "both oddities are said", says("NEW_UNHEARD_STATE", "share")),
    plan("A", "cases/slurm-part-limits", "job 3; -N 2-4 waits at MaxNodes=2, as tried on Slurm",
        places("3@*", "2@c1|c4")),
    plan("A", "cases/slurm-part-null", "job 1: partition empty has no nodes", places("1@c1")),
    explain("S2", "69", "slurm-cases/cap-24.11-steady", "its account may not use the partition",
        every(says("account"), never(STOPS_OTHERS, "so it fits"))),
    plan("S2", "slurm-cases/cap-24.11-steady", "69 nowhere", not_on(*(f"69@a{node:02}"
        for node in range(9, 13)))),
    plan("S3", "slurm-cases/cap-24.11-focus", "136 is not on f08 of user news", not_on("136@f08")),
    explain("S3", "136", "slurm-cases/cap-24.11-focus", "f08 belongs to news",
        every(says("user|owne"), never("so it fits"))),
    plan("S4", "slurm-cases/cap-22.05-fresh", "nothing on nodes whose CPUs are all allocated",
        every(not_on("27@c016"), says())),
    plan("S5", "slurm-cases/cap-24.11-focus", "gpu:2 is not on s1, where a shard is in use",
        not_on("144@s1")),
    plan("S6", "slurm-cases/cap-24.11-defmempergpu", "300G each: 482 and 525 on two nodes",
        apart("482", "525")),
    explain("S6", "482", "slurm-cases/cap-24.11-defmempergpu", "it asks for 307,200 MB",
        says("307,200 MB")),
    plan("S8", "slurm-cases/cap-24.11-focus", "no GPU job beside 6 GPUs as 4 + 2",
        every(apart("148", "149"), apart("148", "150"))),
    plan("S9", "slurm-cases/cap-24.11-focus", "140 exceeds MaxCPUsPerNode on c001",
        not_on("140@c001")),
    explain("S9", "84", "slurm-cases/cap-24.11-steady", "abaqus is held by a reservation",
        never("so it fits", "nothing has to be done")),
    plan("S9", "slurm-cases/cap-22.05-fresh", "110 cannot end before its deadline",
        not_on(*(f"110@c{node:03}" for node in range(1, 61)))),
    plan("S10", "slurm-cases/gres-bytes", "a plan", says()),
    explain("S11", "96", "slurm-cases/cap-24.11-steady", "a floating reservation is no never",
        never(r"\bnever\b", "proven")),
    explain("S13", "50", "slurm-cases/cap-24.11-steady", "jobs of other partitions are before it",
        says("before it")),
    plan("S14", "slurm-cases/cap-24.11-fresh", "no job on a 1 TB node in vain", says()),
    explain("S15", "139", "slurm-cases/cap-24.11-focus", "FORCE:2: nobody is stopped",
        every(says("share"), never(STOPS_OTHERS, "proven"))),
    explain("S15", "147", "slurm-cases/cap-24.11-focus", "it may preempt: no proof",
        every(says("preempt"), never("proven"))),
    explain("S19", "31+1", "slurm-cases/cap-24.11-fresh", "a part of a heterogeneous job",
        says("heterogeneous")),
    plan("S19", "slurm-cases/cap-22.05-fresh", "reservations are not called left out",
        never(r"reservations .*left out, as its times")),
    Case("S19 not placed slurm-cases/cap-24.11-fresh", "jobs not placed are named",
        "slurm plan --from slurm-cases/cap-24.11-fresh", says(r"^ *not placed.*\n(.*\n)+? +\d+ ")),
)

TRACES = (
    info("A8", "cases/sacct-delim.txt", "read, or the delimiter is named", some(says(r"jobs +4"),
        refuses("delimiter"))),
    info("A8", "cases/sacct-noheader.txt", "no line of names: leave out -n",
        refuses("-n\\b|--noheader|field names|header")),
    info("A8", "cases/sacct-fixed.txt", "columns without -P", refuses("-P\\b|--parsable")),
    info("A8", "cases/sacct-errors.json", "Slurm's error is quoted", refuses("Unable to query")),
    info("A8", "cases/sacct-empty.json", "no jobs", refuses("no jobs")),
    *(info("A9", f"cases/{file}", "the record is dropped and counted", says(r"^jobs +\d",
        "dropped|left out|without a (job)?number")) for file in ("sacct-nojobid.json",
        "sacct-jobid0.json")),
    simulate("A12", "cases/swf-checkpoint.swf", "fcfs", "job 2 at 5; parts dropped and counted",
        every(starts("", j2=5), says("part"))),
    info("A13", "cases/swf-negative.swf", "refused, with the way to read it", refuses("line 7",
        "-3590", "unknown")),
    info("A13", "cases/swf-negative.swf", "read on request, 2 counted", says("unknown"),
        "--unknown-negative"),
    *(simulate("B1", "cases/flux-572.swf", "fcfs,easy,conservative", right, look) for right,
        look in (("easy: 140 s", every(lasts("easy", 140), starts("easy", j2=20, j8=20, j3=40,
        j9=40))), ("conservative: 140 s", lasts("conservative", 140)), ("fcfs: 160 s", lasts("fcfs",
        160)))),
    info("B7", "cases/sacct-odd.txt", "8 jobs", says(r"^jobs +8 ")),
    info("B7", "cases/sacct-odd.json", "9 jobs", says(r"^jobs +9 ")),
    info("B7", "cases/sacct-jobid-only.txt", "4 jobs", says(r"^jobs +4 ")),
    info("B8", "cases/sacct-p.txt", "3 jobs ran", says(r"^jobs +3 ")),
    info("B11", "cases/sacct-mem0.txt", "6 jobs", says(r"^jobs +6 ")),
    info("B11", "cases/sacct-pipe.txt", "refused, with its line", refuses("line 2")),
    info("B11", "cases/sacct-multiline.txt", "refused, with its line", refuses("line 3")),
    info("B11", "cases/sacct-latin1.txt", "refused, with its line", refuses("line 2", "UTF-8")),
    simulate("B24", "cases/batsim-51.json", "fcfs", "raised, and counted", says("raised")),
    info("C2", "cases/swf-midnight.swf", "read in order, reported", says("ordered", "above: 1")),
    simulate("C3", "cases/swf-minus1.swf", "fcfs", "2 + 1 dropped, 1 raised, 1 rejected",
        says("2 dropped", "1 dropped", "1 with the requested time raised", "1 rejected")),
    simulate("C4", "cases/swf-bom-crlf.swf", "fcfs", "asks for a machine", refuses("--machine")),
    info("C5", "cases/swf-trailing.swf", "20 columns; expected 18", refuses("line 6", "20")),
    info("C5", "cases/swf-decimal.swf", "4.0 processors are refused", refuses("line 6", "4.0")),
    simulate("C5", "cases/swf-preceding.swf", "fcfs", "dependencies are kept, or said",
        some(says("depend|preceding"), starts("", j2=630))),
)

HOSTILE = (
    Case("R3 host-list-bomb", "read or refused, in little memory", ("simulate", "sample-256",
        "--jobs", "1:5", "--policy", "easy", "--no-plots", "-o", "run", "--machine",
        "site:attack/host-list-bomb/slurm.conf"), every(some(refuses("slurm.conf|gres.conf"),
        says("5 finished")), never("out of memory"))),
    Case("R4 symlink_race.py", "the file behind the link is left alone", ("python", LINK),
        says("victim untouched")),
    Case("R9 gangcheck.py", "no false alarm", ("python", "attack/gangcheck.py"),
        every(says("of 48"), never(r" [1-9]\d* of 48")), long=True),
)

# fmt: on
PLANNED = dict.fromkeys(
    str(case.command).removeprefix(PLAN) for case in PLANS if PLAN in case.command
)
CHECKED = tuple(
    Case(f"legal {folder}", "Slurm would make each start", f"{PLAN}{folder}", legal(folder))
    for folder in PLANNED
)
CASES = PROOFS + PLANS + CHECKED + TRACES + HOSTILE
