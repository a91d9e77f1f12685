"""Rows of CSV files with a line of column names."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from io import StringIO
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from optsched.binary_files import read_bytes
from optsched.errors import InputError
from optsched.numbers import LARGEST


class Table:
    """The rows of a CSV file, plain or gzipped.

    Parameters
    ----------
    path : path
        The file.
    columns : sequence of str
        The columns that are needed; others are ignored.

    Raises
    ------
    InputError
        If the file cannot be read, is not CSV, has no row or one of another length, or lacks a
        column.
    """

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
        self._columns = dict(zip(names, zip(*rows)))

    def texts(self, name: str) -> tuple[str, ...]:
        """Return a column."""
        return self._columns[name]

    def numbers(self, name: str, most: int = LARGEST) -> NDArray[np.int64]:
        """Return a column of whole numbers.

        Raises
        ------
        InputError
            If a value is not one from 0 to `most`.
        """
        texts = self.texts(name)
        right = (text.isdecimal() and int(text) <= most for text in texts)
        self.check(name, right, f"a whole number from 0 to {most}")
        return np.array(list(map(int, texts)), dtype=np.int64)

    def check(self, name: str, right: Iterable[bool], expected: str) -> None:
        """Refuse the first value of a column that is not right.

        Raises
        ------
        InputError
            Naming file, line, column and value.
        """
        for place, fine in enumerate(right):
            if not fine:
                wrong = f"{self.texts(name)[place]!r}; expected {expected}"
                raise InputError(wrong, file=self._path, line=place + 2, field=name)
