"""Every real trace of the shared folder, against the table in its README and the oracles."""

import csv
import gzip
import re

import numpy as np
import pytest

from optsched.traces.facts import facts
from optsched.traces.reading import read_trace, write_trace


def test_every_log_agrees_with_the_published_table(shared):
    folder = shared("traces")
    lines = (folder / "README.md").read_text(encoding="utf-8").splitlines()
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    table = [row for row in cells if row[0].endswith(".swf.gz") and len(row) == 8]
    assert sorted(path.name for path in folder.glob("*.swf.gz")) == sorted(row[0] for row in table)
    for name, jobs, size, days, load, stated, _, sha256 in table:
        raw = read_trace(folder / name, clean=False)
        assert len(raw) == int(jobs), name
        assert raw.sha256 == sha256, name
        procs, nodes = (re.match(r"\d+", part.strip()) for part in size.split(" / ", 1))
        assert raw.header.max_procs == (procs and int(procs[0])), name
        assert raw.header.max_nodes == (nodes and int(nodes[0])), name
        assert f"{(raw.requested_time > 0).mean():.0%}" == stated.replace(" ", ""), name
        span = int(raw.submit.max() - raw.submit.min()) / 86400
        assert f"{span:.1f}" == days, name
        known = facts(raw)
        expected = pytest.approx(float(load), abs=6e-4) if load else None
        assert known["offered_load"] == expected, name
        assert known["jobs"] + known["cleaning"]["dropped"] == int(jobs), name
        assert set(raw.oddities) <= {
            "lines with status 2 to 4, in SWF parts of checkpointed jobs",
            "jobs with a status that SWF does not define",
        }, name


@pytest.mark.parametrize(
    ("name", "counts"),
    [
        ("SDSC-SP2-1998-4.2-cln", {"dropped_runtime": 5681}),
        ("CTC-SP2-1996-3.1-cln", {"dropped_runtime": 17}),
        ("SDSC-BLUE-2000-4.2-cln", {"dropped_runtime": 10770, "requested_time_raised": 23434}),
        ("LANL-CM5-1994-4.1-cln", {"requested_time_raised": 40180}),
    ],
)
def test_cleaning_counts_what_others_counted(shared, name, counts):
    report = read_trace(shared(f"traces/{name}.swf.gz")).cleaning
    assert counts.items() <= report.to_json().items()


@pytest.mark.parametrize("name", ["SDSC-SP2-1998-4.2-cln", "CTC-SP2-1996-3.1-cln"])
def test_cleaned_jobs_are_those_that_the_other_simulators_were_given(shared, name):
    with gzip.open(shared(f"oracles/{name}.5000.input.csv.gz"), "rt") as stream:
        given = np.array(list(csv.reader(stream))[1:], dtype=np.int64)
    trace = read_trace(shared(f"traces/{name}.swf.gz"))
    trace = trace.select(trace.processors <= trace.header.max_procs).jobs(1, 5000)
    columns = ("job_id", "submit", "runtime", "requested_time", "processors")
    for place, column in enumerate(columns):
        np.testing.assert_array_equal(getattr(trace, column), given[:, place], err_msg=column)


@pytest.mark.parametrize(
    ("name", "jobs"), [("MIRA_2017June_withoutC", 3311), ("MIRA_2018March_withoutC", 4024)]
)
def test_real_batsim_workloads_are_read(shared, tmp_path, name, jobs):
    trace = read_trace(shared(f"traces/other/{name}.json.gz"))
    assert (len(trace), trace.cleaning.dropped) == (jobs, 0)
    assert (trace.header.max_procs, trace.label) == (49152, None)
    write_trace(trace, tmp_path / "again.json")
    assert read_trace(tmp_path / "again.json").frame.equals(trace.frame)
    write_trace(trace, tmp_path / "again.swf")
    again = read_trace(tmp_path / "again.swf")
    assert again.runtime.tolist() == trace.runtime.tolist()
