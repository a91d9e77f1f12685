"""The table of jobs that is written without pandas, against the one that pandas makes."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pandas as pd
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from optsched.machines.texts import Texts
from optsched.simulator.job_table import (
    Optional,
    constant,
    empty,
    repeated,
    spread,
    to_arrow,
    to_pandas,
    whole,
)

ROWS = 5
FLOATS = st.lists(
    st.one_of(st.floats(-10, 10), st.integers(-9, 9).map(float), st.just(np.nan)),
    min_size=ROWS,
    max_size=ROWS,
).map(np.array)
STRINGS = st.lists(st.text("ab- ", max_size=4), min_size=ROWS, max_size=ROWS)
MASKS = st.lists(st.booleans(), min_size=ROWS, max_size=ROWS).map(np.array)


@given(FLOATS, STRINGS, MASKS)
def test_columns_are_stored_as_pandas_stores_them(floats, strings, mask):
    columns = {
        "whole": whole(floats),
        "float": floats,
        "integer": np.arange(ROWS),
        "constant": constant("é", ROWS),
        "repeated": repeated(np.array(strings)),
        "texts": Texts.of(strings),
        "strings": strings,
        "spread floats": spread(floats[mask], mask),
        "spread integers": spread(np.arange(ROWS)[mask], mask),
        "spread texts": spread(np.array(strings, dtype=object)[mask], mask),
    }
    table, frame = to_arrow(columns), to_pandas(columns)
    assert table.equals(pa.Table.from_pandas(frame, preserve_index=False), check_metadata=True)
    assert table.to_pandas().dtypes.to_dict() == frame.dtypes.to_dict()


def test_times_are_integers_only_if_all_are_whole():
    assert isinstance(whole(np.array([1.0, np.nan])), Optional)
    assert whole(np.array([1.5, np.nan])).dtype == float


def test_an_empty_table_has_its_columns():
    frame = pd.DataFrame(columns=["a", "b"], dtype=object)
    table = pa.Table.from_pandas(frame, preserve_index=False)
    assert empty(["a", "b"]).equals(table, check_metadata=True)


def test_a_run_without_pictures_and_problems_does_without_pandas(tmp_path):
    command = ["simulate", "sample-256", "--no-plots", "-o", str(tmp_path / "run")]
    code = (
        f"import sys; from optsched.cli import run; code = run({command})\n"
        "assert (code, {'pandas', 'matplotlib', 'scipy.linalg'} & set(sys.modules)) == (0, set())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
