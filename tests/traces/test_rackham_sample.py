"""The bundled sample of a workload with input files, and how it was generated."""

from math import exp, log
from random import Random

import numpy as np

from optsched.content import bundled
from optsched.traces.reading import write_trace
from optsched.traces.trace import Trace
from optsched.traces.transformations import evaluate, infer_files

SAMPLE = bundled("traces") / "samples" / "sample-8x20.rackham"
SEED = 20220910
NODES, CORES = 8, 20
DAY = 86_400
SIZES = (1, 1, 1, 1, 1, 2, 2, 4, 4, 8, 16, 20)
LIMITS = (900, 3_600, 14_400, 43_200, 86_400)


def generate() -> Trace:
    """Return three days of bursts of alike jobs, behind jobs that run or wait when they begin.

    Only `Random.random` is drawn from: its numbers stay the same from one Python to the next.
    """
    random = Random(SEED)
    rows = []

    def between(low: int, high: int) -> int:
        return low + int(random.random() * (high - low + 1))

    def burst(submit: int, category: int, most: int = 14) -> int:
        user, cores = between(1, 12), SIZES[between(0, len(SIZES) - 1)]
        typical = exp(log(600) + random.random() * log(60))
        for _ in range(between(1, most)):
            runtime = 120 + int(typical * (0.7 + 0.6 * random.random()))
            enough = next(limit for limit in LIMITS if limit > typical)
            limit = runtime - between(1, 100) if random.random() < 0.02 else max(enough, runtime)
            rows.append((submit, runtime, limit, cores, user, category, -1, -1))
            submit += between(0, 40)
        return submit

    free = [CORES] * NODES
    for number in range(16):
        cores = SIZES[between(0, len(SIZES) - 1)]
        node = max(range(NODES), key=free.__getitem__)
        cores = min(cores, free[node])
        free[node] -= cores
        began, left = DAY - between(600, 20_000), between(1, 9_000)
        submit = 10_000 + 3_000 * number
        limit, user = left + between(0, 9_000), number % 12 + 1
        rows.append((submit, left, limit, cores, user, -2, began, node))
    submit = 60_000
    while submit < DAY - 9_000:
        submit = burst(submit, -1, most=3) + between(3_000, 9_000)
    submit = DAY
    while submit < 4 * DAY:
        submit = burst(submit, 0) + int(-log(1 - random.random()) * 3_600)
    *columns, user, category, start, node = map(np.array, zip(*rows))
    notes = {"category": category, "history_start": start, "history_node": node}
    numbers = np.arange(1, len(rows) + 1)
    trace = Trace(numbers, *columns, user=user, annotations=notes, limits_hold=True)
    return evaluate(infer_files(trace), 2 * DAY, 3 * DAY)


def test_the_sample_is_what_its_generator_writes(tmp_path):
    write_trace(generate(), tmp_path / SAMPLE.name)
    assert (tmp_path / SAMPLE.name).read_text() == SAMPLE.read_text()
