"""Looks at how a command ended: each returns what is wrong, or an empty text."""

import csv
import io
import re
from collections.abc import Callable

from slurm.plan_checker import illegal_starts, needless_weights

from public_cases.cases import REVIEWS, Outcome

Look = Callable[[Outcome], str]


def every(*looks: Look) -> Look:
    """Return a look that says the first thing that is wrong."""
    return lambda seen: next(filter(None, (look(seen) for look in looks)), "")


def some(*looks: Look) -> Look:
    """Return a look that is content if one of these is."""

    def look(seen: Outcome) -> str:
        wrong = [each(seen) for each in looks]
        return "" if "" in wrong else "; nor: ".join(wrong)

    return look


def places(must: str, may: str = "") -> Look:
    """Look for a plan: jobs that must start, as ``1@c1|c2``, those that may, and no others.

    Nodes after ``@`` are alternatives, each of them a list with ``+``; ``@*`` is any node.
    """

    def look(seen: Outcome) -> str:
        if seen.code:
            return f"exit code {seen.code}"
        got = {each["job"]: "+".join(each["nodes"]) for each in seen.json["jobs"] if each["nodes"]}
        for word, needed in [(w, True) for w in must.split()] + [(w, False) for w in may.split()]:
            job, _, nodes = word.partition("@")
            at = got.pop(job, None)
            if at is None:
                if needed:
                    return f"job {job} is not placed"
            elif nodes != "*" and at not in nodes.split("|"):
                return f"job {job} is on {at}; expected {nodes}"
        return f"placed, but must not start: {', '.join(got)}" if got else ""

    return look


def legal(folder: str) -> Look:
    """Look for a plan that the independent checker has nothing against."""

    def look(seen: Outcome) -> str:
        if seen.code:
            return f"exit code {seen.code}"
        there, plan = REVIEWS / folder, seen.json
        wrong = illegal_starts(there, plan) or illegal_starts(there, plan, in_any_order=True)
        return "; ".join(wrong or needless_weights(there, plan))

    return look


def not_on(*forbidden: str) -> Look:
    """Look for a plan that keeps jobs off nodes, as ``136@f08``."""

    def look(seen: Outcome) -> str:
        if seen.code:
            return f"exit code {seen.code}"
        at = {(each["job"], node) for each in seen.json["jobs"] for node in each["nodes"]}
        wrong = [word for word in forbidden if tuple(word.split("@")) in at]
        return f"placed on nodes that are not for it: {' '.join(wrong)}" if wrong else ""

    return look


def apart(*jobs: str) -> Look:
    """Look for a plan in which no two of these jobs share a node."""

    def look(seen: Outcome) -> str:
        if seen.code:
            return f"exit code {seen.code}"
        nodes = [n for each in seen.json["jobs"] if each["job"] in jobs for n in each["nodes"]]
        return f"they share {nodes}" if len(set(nodes)) < len(nodes) else ""

    return look


def says(*patterns: str, code: int = 0) -> Look:
    """Look for an exit code, and for text that matches, wherever it is printed."""

    def look(seen: Outcome) -> str:
        if seen.code != code:
            return f"exit code {seen.code}; expected {code}"
        lacking = [each for each in patterns if not re.search(each, seen.text, re.I | re.M)]
        return f"not said: {lacking}" if lacking else ""

    return look


def never(*patterns: str) -> Look:
    """Look for text that must not be there."""

    def look(seen: Outcome) -> str:
        found = [each for each in patterns if re.search(each, seen.text, re.I | re.M)]
        return f"said, and must not be: {found}" if found else ""

    return look


def refuses(*patterns: str) -> Look:
    """Look for a refusal in one line, or in one line and a list."""

    def look(seen: Outcome) -> str:
        lines = [line for line in seen.err.splitlines() if not line.startswith("  - ")]
        if "Traceback" in seen.err or seen.code != 1 or not lines:
            return f"exit code {seen.code}, {len(lines)} lines; expected a refusal"
        return says(*patterns, code=1)(seen)

    return look


def answers(objective: int, status: str = "optimal") -> Look:
    """Look for a verified answer to ``solve --json``."""

    def look(seen: Outcome) -> str:
        if seen.code:
            return f"exit code {seen.code}"
        got = seen.json
        if (got["status"], got["objective"]) != (status, objective) or not got["verified"]:
            return f"{got['status']} {got['objective']}; expected {status} {objective}, verified"
        return ""

    return look


def never_wrong(optimum: int, sense: int = 1) -> Look:
    """Look for a refusal, or for an answer whose claims the optimum does not refute."""

    def look(seen: Outcome) -> str:
        if seen.code not in (0, 1, 3) or "Traceback" in seen.err:
            return f"exit code {seen.code}"
        if seen.code == 1 and not seen.out.strip():
            return ""
        got = seen.json
        if got["status"] == "no-solution" and got["bound"] is None and got["message"]:
            return ""
        if got["status"] == "optimal" and got["objective"] == optimum:
            return ""
        bounded = got["bound"] is None or sense * (got["bound"] - optimum) >= 0
        if got["status"] == "feasible" and bounded:
            return ""
        return f"{got['status']} {got['objective']}, bound {got['bound']}; the optimum is {optimum}"

    return look


def starts(run: str, **when: float) -> Look:
    """Look for starts of jobs in the jobs.csv of a run, as ``j2=20``."""

    def look(seen: Outcome) -> str:
        if seen.code:
            return f"exit code {seen.code}"
        text = next((t for n, t in seen.files.items() if run in n and "jobs.csv" in n), "")
        rows = {r["job_id"]: float(r["starting_time"]) for r in csv.DictReader(io.StringIO(text))}
        got = {name: rows.get(name[1:]) for name in when}
        return "" if got == when else f"starts {got}; expected {when}"

    return look


def lasts(run: str, seconds: float) -> Look:
    """Look for the last end of a job in the jobs.csv of a run."""

    def look(seen: Outcome) -> str:
        text = next((t for n, t in seen.files.items() if run in n and "jobs.csv" in n), "")
        ends = [float(row["finish_time"]) for row in csv.DictReader(io.StringIO(text))]
        return "" if max(ends, default=None) == seconds else f"it lasts {max(ends, default=None)}"

    return look
