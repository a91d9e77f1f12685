"""Martello and Toth's MTM on one window: JSON from standard input, JSON to standard output.

The package ``mknapsack`` wraps their Fortran program and needs NumPy 1, so this file runs in an
environment of its own and imports nothing of optsched. MTM takes at most 10 knapsacks, and has no
time limit: the caller ends the process.
"""

import json
import sys
import time

from mknapsack import FortranInputCheckError, solve_multiple_knapsack


def main() -> None:
    window = json.load(sys.stdin)
    profits, weights = window["profits"], window["weights"]
    began = time.perf_counter()
    try:
        slots = solve_multiple_knapsack(profits, weights, window["capacities"], method="mtm")
    except (FortranInputCheckError, ValueError) as error:
        json.dump({"refused": str(error)}, sys.stdout)
        return
    seconds = time.perf_counter() - began
    placement = [int(slot) - 1 for slot in slots]
    json.dump({"placement": placement, "seconds": seconds}, sys.stdout)


if __name__ == "__main__":
    main()
