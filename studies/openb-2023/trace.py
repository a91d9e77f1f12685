"""Nodes and pods of Alibaba's GPU cluster "openb": the CSV files of ``cluster-trace-gpu-v2023``."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from io import StringIO
from itertools import accumulate
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from optsched.errors import InputError
from optsched.files import read_bytes
from optsched.models.node_placement.fields import WHOLE
from optsched.numbers import LARGEST

Ints = NDArray[np.int64]

RESOURCES = ("cpu_milli", "memory_mib")
"""The countable resources: thousandths of a processor, and MiB."""


class Table:
    """The columns of a CSV file, plain or gzipped, among them those that are needed."""

    def __init__(self, path: Path, columns: Sequence[str]) -> None:
        data, _ = read_bytes(path)
        try:
            names, *rows = csv.reader(StringIO(data.decode("utf-8-sig")), strict=True)
        except (UnicodeDecodeError, csv.Error, ValueError):
            raise InputError("not CSV; expected a line of column names", file=path) from None
        for name in columns:
            if name not in names:
                raise InputError(f"no column {name}; expected one", file=path, line=1)
        if not rows:
            raise InputError("no rows; expected one at least", file=path)
        for line, row in enumerate(rows, 2):
            if len(row) != len(names):
                wrong = f"{len(row)} columns; expected {len(names)}, as in line 1"
                raise InputError(wrong, file=path, line=line)
        self._path = path
        self.texts = dict(zip(names, zip(*rows)))

    def numbers(self, name: str, most: int = LARGEST) -> Ints:
        """Return a column of whole numbers from 0 to `most`."""
        texts = self.texts[name]
        right = [text.isdecimal() and int(text) <= most for text in texts]
        self.check(name, right, f"a whole number from 0 to {most}")
        return np.array(list(map(int, texts)), dtype=np.int64)

    def check(self, name: str, right: Iterable[bool], expected: str) -> None:
        """Refuse the first value of a column that is not right."""
        for place, fine in enumerate(right):
            if not fine:
                wrong = f"{self.texts[name][place]!r}; expected {expected}"
                raise InputError(wrong, file=self._path, line=place + 2, field=name)


class Nodes(NamedTuple):
    """Nodes: what each has of the resources, its number of GPUs, and their model."""

    total: Ints
    gpus: Ints
    models: tuple[str, ...]

    def chosen(self, rows: Sequence[int] | Ints) -> Nodes:
        """Return the nodes of these numbers, from 0, in this order."""
        return Nodes(self.total[rows], self.gpus[rows], tuple(self.models[row] for row in rows))


class Pods(NamedTuple):
    """Pods in the order of their arrival.

    A `share` below 1000 is a part of one GPU, from 1000 whole ones. No models: all may be used.
    """

    demand: Ints
    share: Ints
    models: tuple[frozenset[str], ...]
    created: Ints
    deleted: Ints

    def chosen(self, rows: Sequence[int] | Ints) -> Pods:
        """Return the pods of these numbers, from 0, in this order."""
        models = tuple(self.models[row] for row in rows)
        demand, share, _, *times = self
        return Pods(demand[rows], share[rows], models, *(time[rows] for time in times))

    def joined(self, others: Pods) -> Pods:
        """Return these pods, then others."""
        demand, share, created, deleted = (
            np.concatenate((getattr(self, name), getattr(others, name)))
            for name in ("demand", "share", "created", "deleted")
        )
        return Pods(demand, share, self.models + others.models, created, deleted)

    def until(self, shares: int) -> Pods:
        """Return the first pods that together ask for this many thousandths of GPUs, or all."""
        sums = list(accumulate(self.share.tolist()))
        return self.chosen(range(sum(asked < shares for asked in sums[:-1]) + 1))


def read_nodes(path: Path) -> Nodes:
    """Read a list of nodes."""
    table = Table(path, (*RESOURCES, "gpu", "model"))
    total = np.stack([table.numbers(name) for name in RESOURCES], axis=1)
    models = tuple(model or "none" for model in table.texts["model"])
    return Nodes(total, table.numbers("gpu", most=64), models)


def read_pods(path: Path) -> Pods:
    """Read a list of pods."""
    needed = (*RESOURCES, "num_gpu", "gpu_milli", "gpu_spec", "creation_time", "deletion_time")
    table = Table(path, needed)
    demand = np.stack([table.numbers(name) for name in RESOURCES], axis=1)
    gpus, milli = table.numbers("num_gpu", most=64), table.numbers("gpu_milli", most=WHOLE)
    whole = np.where(gpus > 1, WHOLE, milli)
    right = (gpus == 0) | ((milli == whole) & (milli > 0))
    table.check("gpu_milli", right, f"1 to {WHOLE}, and {WHOLE} for several GPUs")
    created, deleted = table.numbers("creation_time"), table.numbers("deletion_time")
    table.check("deletion_time", deleted >= created, "a time not before creation_time")
    models = tuple(frozenset(filter(None, text.split("|"))) for text in table.texts["gpu_spec"])
    return Pods(demand, gpus * whole, models, created, deleted)
