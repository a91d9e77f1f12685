"""The numbers and tables of the page."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from optsched.models.problem import Choice
from optsched.report.page import Cell, cell, duration, share
from optsched.simulator.problem_solver import Ties
from optsched.studies.cells import improved, matched
from optsched.studies.judging import Claim
from optsched.studies.paired import percent
from optsched.studies.results import ALL, grouped
from optsched.studies.template import Record
from optsched.studies.yang_2014.claims import GAIN, KEPT, LITTLE
from optsched.studies.yang_2014.evaluation import (
    METRICS,
    PUBLISHED,
    SHARES,
    SIZES,
    by_size,
    cells,
    compared,
    control,
    gain,
    grid,
    noise,
    published,
    replaced,
    scattering,
    tied,
    usual,
    varied,
)
from optsched.studies.yang_2014.plan import (
    BLUE,
    CONTIGUOUS,
    EXACT,
    EXCHANGE,
    GENERIC,
    GREEDY,
    INTERVAL,
    INTREPID,
    LOGS,
    SEARCH,
    SHOWN,
    SOLVERS,
    VARIANTS,
    WINDOW,
)

if TYPE_CHECKING:
    import pandas as pd

PLACES: Mapping[str, tuple[str, Any]] = {
    "contiguous_share": ("contiguous jobs", share),
    "loss_of_capacity": ("loss of capacity", share),
    "external_fragmentation": ("external fragmentation", share),
    "mean_hops": ("mean hops", float),
    "mean_dispersal": ("dispersal", float),
    "large_mean_wait": ("mean wait of large jobs", duration),
    "large_max_wait": ("longest wait of large jobs", duration),
    "makespan": ("makespan", duration),
}
"""The headings of metrics of allocations and large jobs, and how they are shown."""

ANSWERS = {
    "greedy": ("Greedy", GREEDY, Ties.HEURISTIC),
    "better": ("B&B where better", EXACT, Ties.HEURISTIC),
    "own": ("B&B", EXACT, Ties.SOLVER),
    "search": ("B&B of Figure 3", SEARCH, Ties.SOLVER),
    "generic": ("cp-sat", GENERIC, Ties.SOLVER),
}
"""Whose answers are used: the heading in the table, solver and ties."""

_CHOICES = tuple(choice.name.lower() for choice in Choice)

PAPERS_SIZES = {1024, 2048, 4096}
"""Nodes of more than half of the jobs of Intrepid, according to section V.B."""

NUMBER_OF = {(one["log"], one["metric"]): number for number, one in PUBLISHED.items()}
"""The numbers of the published tables, by log and metric."""


def values(frame: pd.DataFrame, *, quick: bool) -> Mapping[str, Any]:
    """Return the names that the template uses."""
    own = grid(frame)
    middle, at_middle = varied(frame)
    blue = {"log": BLUE, "variant": SHOWN}
    measured = cells(own, "mean_wait", solver=EXACT, **blue)
    theirs = published(NUMBER_OF[BLUE, "mean_wait"])
    ends = {
        name: {"measured": measured[size, size], "published": theirs[size, size]}
        for name, size in (("least", SHARES[0]), ("most", SHARES[-1]))
    }
    other = cells(own, "mean_wait", solver=EXACT, log=BLUE, variant=CONTIGUOUS)
    ties = compared(tied(frame))
    pairs = compared(at_middle)
    same = pairs.merge(
        pairs.loc[pairs["solver"] == GENERIC, ["part", "draw", "window"]].drop_duplicates()
    )
    return {
        "variants": list(VARIANTS),
        "shown": SHOWN,
        "contiguous": CONTIGUOUS,
        "metrics": METRICS,
        "logs": [log for log in LOGS if log in set(own["log"])],
        "published": {key: PUBLISHED[number] for key, number in NUMBER_OF.items()},
        "middle": middle,
        "exact": exact_solver(own, **blue),
        "choices": by_choice(compared(own, solver=EXACT, **blue)),
        "choice_records": choice_records(compared(own, solver=EXACT, variant=SHOWN)),
        **ends,
        "other": {"least": other[SHARES[0], SHARES[0]], "most": other[SHARES[-1], SHARES[-1]]},
        "turned": turned,
        "least_gain": GAIN,
        "little": LITTLE,
        "kept": KEPT,
        "blue": BLUE,
        "intrepid": INTREPID,
        "utilization": lambda log: [
            gain(compared(runs, solver=EXACT, variant=SHOWN, log=log), "utilization")
            for runs in (own, control(frame))
        ],
        "noise": noise(ties, "mean_wait"),
        "by_answers": {
            name: gain(runs, "mean_wait").mean
            for name, runs in _by_answers(ties).items()
            if len(runs)
        },
        "greedy_delayed": delayed(pairs, GREEDY),
        "tie_records": tie_records(ties),
        "solver_records": [
            {"log": log, "variant": variant, **_solver_record(own, log=log, variant=variant)}
            for log in own["log"].unique()
            for variant in own.loc[own["solver"] == GREEDY, "variant"].unique()
        ],
        "part_records": part_records(frame),
        "improvements": partial(improvements, own),
        "means_of": lambda log, metric, variant: [
            100 * one.mean
            for one in cells(own, metric, log=log, solver=EXACT, variant=variant).values()
        ],
        "by_window": _by_window(pairs[pairs["solver"] != GENERIC]),
        "papers_sizes": sum(
            value
            for size, value in by_size(own[own["log"] == INTREPID], SIZES).items()
            if size in PAPERS_SIZES
        ),
        "by_window_of_one_part": _by_window(same[same["solver"].isin([EXACT, GREEDY, GENERIC])]),
        "places": [
            {"log": log, "variant": variant, **_places(pairs)}
            for log in own["log"].unique()
            for variant in VARIANTS
            for pairs in [compared(own, solver=EXACT, log=log, variant=variant)]
            if len(pairs)
        ],
        "run_records": [
            {
                "log": log,
                "machine": machine,
                "parts": ", ".join(sorted(set(runs["part"]), key=_first_job)),
                "draws": ", ".join(map(str, sorted(set(map(int, runs["draw"]))))),
                "runs": len(runs),
            }
            for (log, machine), runs in grouped(frame, ["log", "machine"])
        ],
        "solvers": frame["solver"].dropna().value_counts().sort_index().to_dict(),
    }


def exact_solver(own: pd.DataFrame, **wanted: str) -> dict[str, Any]:
    """Compare Greedy with branch and bound: decision by decision, and in the whole run."""
    runs = compared(own, solver=EXACT, **wanted)
    return {
        "problems": int(runs["problems"].sum()),
        "matched": matched(runs),
        "gap": runs["heuristic_gap"].mean(),
        "unproven": int(runs["unproven"].sum()),
        "change": replaced(own, "mean_wait", GREEDY, EXACT, **wanted),
        "response": replaced(own, "mean_response", GREEDY, EXACT, **wanted),
        "moves": scattering(own, "mean_wait", GREEDY, EXACT, **wanted),
    }


def delayed(pairs: pd.DataFrame, solver: str) -> dict[str, float]:
    """Return the improvement of the wait by a solver, with free and with charged decisions.

    ``seconds`` is the mean nominal time of a decision.
    """
    own = pairs[(pairs["solver"] == solver) & (pairs["window"] == WINDOW)]
    own = own[own["interval"] == INTERVAL]
    return {
        "free": gain(own[~own["charged"]], "mean_wait").mean,
        "charged": gain(own[own["charged"]], "mean_wait").mean,
        "seconds": own["nominal_seconds"].sum() / own["problems"].sum(),
    }


def by_choice(runs: pd.DataFrame) -> dict[str, Any]:
    """Count the decisions of runs by what there was to choose, and those in which Greedy fails."""
    counts = {name: int(runs[name].sum()) for name in ("problems", *_CHOICES)}
    as_good = float((runs["contested_matched"] * runs["contested"]).sum())
    failed = (1 - matched(runs)) * counts["problems"]
    in_contested = counts["contested"] - as_good
    return counts | {
        "contested_share": counts["contested"] / counts["problems"],
        "matched": as_good / counts["contested"] if counts["contested"] else None,
        "failed": round(in_contested),
        "failed_all_placed": round(failed - in_contested),
    }


def choice_records(own: pd.DataFrame) -> list[Record]:
    """Return the decisions of branch and bound on each log by what there was to choose."""
    found = {log: by_choice(runs) for (log,), runs in grouped(own, ["log"])}
    return [
        {
            "log": log,
            "decisions": found[log]["problems"],
            "one job": found[log]["one_job"],
            "all placed": found[log]["all_placed"],
            "of these not by Greedy": found[log]["failed_all_placed"],
            "contested": found[log]["contested"],
            "of these Greedy falls short in": found[log]["failed"],
            "Greedy optimal in contested ones": share(found[log]["matched"]),
        }
        for log in LOGS
        if log in found
    ]


def _solver_record(own: pd.DataFrame, **wanted: str) -> Record:
    found = exact_solver(own, **wanted)
    return {
        "problems": found["problems"],
        "Greedy optimal": share(found["matched"]),
        "gap otherwise": share(found["gap"]),
        "unproven": found["unproven"],
        "wait": improved(found["change"]),
        "response": improved(found["response"]),
        "wait differs by": share(found["moves"]),
    }


def part_records(frame: pd.DataFrame) -> list[Record]:
    """Return the improvement in each part and in all, at the corners and with alpha = 0."""
    alphas = sorted(set(grid(frame)["alpha"]))
    shown = dict.fromkeys([0.0, alphas[0], alphas[len(alphas) // 2], alphas[-1]])
    own = usual(frame)
    of_parts = sorted(grouped(own, ["log", "part"]), key=lambda item: _first_job(item[0][1]))
    of_logs = [((log, ALL), runs) for (log,), runs in grouped(own, ["log"])]
    rows = sorted([*of_parts, *of_logs], key=lambda item: LOGS.index(item[0][0]))
    return [
        {
            "log": log,
            "jobs": part,
            "variant": variant,
            "wait of Default": duration(pairs["mean_wait_default"].mean()),
            **{
                ("wait", f"alpha = beta = {100 * size:.0f}%"): _improved(at[size], "mean_wait")
                for size in shown
            },
            ("utilization", "alpha = 0%"): _improved(at[0.0], "utilization"),
        }
        for (log, part), runs in rows
        for variant in list(VARIANTS)[1:]
        for pairs in [compared(runs, solver=EXACT, variant=variant)]
        if len(pairs)
        for at in [
            {size: pairs[(pairs["alpha"] == size) & (pairs["beta"] == size)] for size in shown}
        ]
    ]


def improvements(own: pd.DataFrame, log: str, metric: str) -> list[Record]:
    """Return a table of the paper beside ours: rows are beta and algorithm, columns alpha.

    Branch and bound has a second row for the other reading of the run times of the log, on the logs
    of the paper.
    """
    number = NUMBER_OF.get((log, metric))
    found = {
        (solver, variant): cells(own, metric, log=log, solver=solver, variant=variant)
        for solver, variant in [*((solver, SHOWN) for solver in SOLVERS), (EXACT, CONTIGUOUS)]
    }

    def beside(row: tuple[str, str], key: tuple[float, float]) -> Cell:
        theirs = published(number, row[0].replace("-", "_"))[key] if number else None
        return improved(found[row][key], "" if theirs is None else f"paper {theirs:g}%")

    betas, alphas = (sorted(set(keys)) for keys in zip(*found[EXACT, SHOWN]))
    return [
        {"beta": f"{100 * beta:.0f}%", "algorithm": row[0], "variant": row[1]}
        | {f"alpha = {100 * alpha:.0f}%": beside(row, (beta, alpha)) for alpha in alphas}
        for beta in betas
        for row in found
        if found[row]
    ]


def turned(claims: list[Claim], one: str, other: str) -> list[str]:
    """Return the claims whose verdicts differ between two variants, with both verdicts."""
    found = [
        (claim.text, claim.judgements.get(one), claim.judgements.get(other)) for claim in claims
    ]
    return [
        f"{text} ({before.verdict}, then {after.verdict})"
        for text, before, after in found
        if before and after and before.verdict != after.verdict
    ]


def tie_records(pairs: pd.DataFrame) -> list[Record]:
    """Return the improvement of the wait by whose answers are used, in each part and in all."""
    by_part = {part: own for (part,), own in grouped(pairs, ["part"])}
    records: list[Record] = []
    for part, own in [*sorted(by_part.items(), key=lambda item: _first_job(item[0])), (ALL, pairs)]:
        answers = {
            ANSWERS[name][0]: _improved(runs, "mean_wait")
            for name, runs in _by_answers(own).items()
        }
        found = noise(own, "mean_wait")
        drawn = f"{percent(found.low)} to {percent(found.high)}%"
        records.append(
            {"jobs": part}
            | answers
            | {
                "random": Cell(f"{percent(found.mean)}%", found.mean, note=drawn),
                "standard deviation": Cell(f"{percent(found.deviation)} points", found.deviation),
            }
        )
    return records


def _by_answers(pairs: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Return the pairs by key of `ANSWERS`; none where not all parts were run."""
    found = {}
    for name, (_, solver, ties) in ANSWERS.items():
        own = pairs[(pairs["solver"] == solver) & (pairs["ties"] == ties)]
        found[name] = own if set(own["part"]) == set(pairs["part"]) else own.iloc[:0]
    return found


def _improved(pairs: pd.DataFrame, metric: str) -> Cell:
    return improved(gain(pairs, metric)) if len(pairs) else cell(None)


def _by_window(pairs: pd.DataFrame) -> list[Record]:
    by = ["window", "interval", "solver", "charged"]
    return [
        {
            "window": int(window),
            "decides": "every event" if interval == 0 else f"every {interval:.0f} s",
            "solver": solver,
            "time": "charged" if charged else "free",
            "runs": len(own),
            "wait": improved(gain(own, "mean_wait")),
            "response": improved(gain(own, "mean_response")),
            "Greedy as good": share(matched(own)) if exact else None,
            "unproven": int(own["unproven"].sum()) if exact else None,
            "fallbacks": int(own["fallbacks"].sum()),
        }
        for (window, interval, solver, charged), own in grouped(pairs, by)
        for exact in [solver not in (GREEDY, EXCHANGE)]
    ]


def _places(pairs: pd.DataFrame) -> Record:
    return {
        (head, whose): shown(pairs[f"{metric}{ending}"].mean())
        for metric, (head, shown) in PLACES.items()
        for whose, ending in (("Default", "_default"), ("window", ""))
    }


def _first_job(part: str) -> int:
    return int(part.split(":")[0])
