"""The numbers and tables of the page."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from optsched.report.page import Cell, duration, share
from optsched.studies.cells import improved, matched
from optsched.studies.results import grouped
from optsched.studies.template import Record
from optsched.studies.yang_2014.evaluation import (
    METRICS,
    PUBLISHED,
    SHARES,
    cells,
    compared,
    gain,
    grid,
    published,
    replaced,
    scattering,
    varied,
)
from optsched.studies.yang_2014.plan import (
    BLUE,
    EXACT,
    EXCHANGE,
    GENERIC,
    GREEDY,
    INTERVAL,
    LOGS,
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
    pairs = compared(at_middle)
    same = pairs.merge(
        pairs.loc[pairs["solver"] == GENERIC, ["part", "draw", "window"]].drop_duplicates()
    )
    return {
        "variants": list(VARIANTS),
        "shown": SHOWN,
        "metrics": METRICS,
        "logs": [log for log in LOGS if log in set(own["log"])],
        "published": {key: PUBLISHED[number] for key, number in NUMBER_OF.items()},
        "middle": middle,
        "exact": exact_solver(own, **blue),
        "ties": scattering(
            at_middle, "mean_wait", EXACT, GENERIC, charged=False, interval=INTERVAL
        ),
        **ends,
        "solver_records": [
            {"log": log, "variant": variant, **_solver_record(own, log=log, variant=variant)}
            for log in own["log"].unique()
            for variant in VARIANTS
        ],
        "part_records": part_records(frame),
        "improvements": partial(improvements, own),
        "means_of": lambda log, metric, variant: [
            100 * one.mean
            for one in cells(own, metric, log=log, solver=EXACT, variant=variant).values()
        ],
        "by_window": _by_window(pairs[pairs["solver"] != GENERIC]),
        "by_window_of_one_part": _by_window(same[same["solver"].isin([EXACT, GREEDY, GENERIC])]),
        "places": [
            {"log": log, "variant": variant, **_places(own, log=log, variant=variant)}
            for log in own["log"].unique()
            for variant in VARIANTS
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
    """Return the improvement of the wait in each part, at the corners and with alpha = 0."""
    alphas = sorted(set(grid(frame)["alpha"]))
    shown = dict.fromkeys([0.0, alphas[0], alphas[len(alphas) // 2], alphas[-1]])
    usual = frame[(frame["window"].isin([WINDOW]) & ~frame["charged"]) | frame["window"].isna()]
    usual = usual[(usual["interval"] == INTERVAL) | usual["interval"].isna()]
    by_part = dict(grouped(usual, ["log", "part"]))
    parts = sorted(by_part, key=lambda key: (LOGS.index(key[0]), _first_job(key[1])))
    return [
        {
            "log": log,
            "jobs": part,
            "variant": variant,
            "wait of Default": duration(pairs["mean_wait_default"].mean()),
            **{
                f"alpha = beta = {100 * size:.0f}%": improved(gain(pairs[rows], "mean_wait"))
                for size in shown
                for rows in [(pairs["alpha"] == size) & (pairs["beta"] == size)]
            },
        }
        for log, part in parts
        for variant in list(VARIANTS)[1:]
        for pairs in [compared(by_part[log, part], solver=EXACT, variant=variant)]
    ]


def improvements(own: pd.DataFrame, log: str, metric: str) -> list[Record]:
    """Return a table of the paper beside ours: rows are beta and algorithm, columns alpha."""
    number = NUMBER_OF.get((log, metric))
    found = {
        solver: cells(own, metric, log=log, solver=solver, variant=SHOWN) for solver in SOLVERS
    }

    def beside(solver: str, key: tuple[float, float]) -> Cell:
        theirs = published(number, solver.replace("-", "_"))[key] if number else None
        return improved(found[solver][key], "" if theirs is None else f"paper {theirs:g}%")

    betas, alphas = (sorted(set(keys)) for keys in zip(*found[EXACT]))
    return [
        {"beta": f"{100 * beta:.0f}%", "algorithm": solver}
        | {f"alpha = {100 * alpha:.0f}%": beside(solver, (beta, alpha)) for alpha in alphas}
        for beta in betas
        for solver in SOLVERS
    ]


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


def _places(own: pd.DataFrame, **wanted: str) -> Record:
    pairs = compared(own, solver=EXACT, **wanted)
    return {
        (head, whose): shown(pairs[f"{metric}{ending}"].mean())
        for metric, (head, shown) in PLACES.items()
        for whose, ending in (("Default", "_default"), ("window", ""))
    }


def _first_job(part: str) -> int:
    return int(part.split(":")[0])
