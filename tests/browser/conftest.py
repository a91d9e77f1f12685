"""Pages to open."""

from types import SimpleNamespace

import numpy as np
import pytest

from optsched import compare, save, simulate
from optsched.content import bundled
from optsched.report.page import LONG, Cell, Facts, Figure, Page, Section, Table, write_page
from optsched.report.pictures.gantt import chart_data
from optsched.solvers.result import Budget
from optsched.studies import effects
from optsched.studies.effects import Effect, Effects
from optsched.studies.intervals import Interval

CHANGES = {"easy-sjbf": (-20, -30, -10), "conservative": (5, -5, 15), "sjf": (90, 40, 140)}
EFFECTS = [
    Effect(figure, of, run, 3600.0, 4000.0, Interval(*change, 8, "t"))
    for figure in ("mean_wait", "p95_wait")
    for of in ("all", "SDSC-BLUE-2000-4.2-cln", "SDSC-SP2-1998-4.2-cln")
    for run, change in CHANGES.items()
]
SVG = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 90 30" width="900" height="300">'
    '<rect id="one" width="90" height="30"/><script>document.title = "run"</script></svg>'
)


TWO_JOBS = {
    "job_id": np.array([11, 12]),
    "user": np.array([3, -1]),
    "submission_time": np.array([100.0, 100.0]),
    "requested_number_of_resources": np.array([4, 2]),
    "starting_time": np.array([100.0, 3700.0]),
    "finish_time": np.array([3700.0, 7300.5]),
    "allocated_resources": np.array(["0-3", "4 6"], dtype=object),
}
"""A table of jobs, one after the other."""


@pytest.fixture
def visit(browser):
    """Return the function that opens a page; complaints and requests elsewhere fail the test."""
    contexts, complaints, requests = [], [], []

    def show(home, path="", **options):
        contexts.append(browser.new_context(**options))
        page = contexts[-1].new_page()
        page.on("console", lambda message: complaints.append(f"{message.text} {message.location}"))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("request", lambda request: requests.append((request.url, home)))
        page.goto(home + path)
        return page

    yield show
    for context in contexts:
        context.close()
    assert complaints == []
    assert [url for url, home in requests if not url.startswith((home, "data:"))] == []


@pytest.fixture(scope="session")
def reports(tmp_path_factory):
    """Return the pages of a run, of comparisons, and one that holds all that a page can."""
    folder = tmp_path_factory.mktemp("reports")
    run = simulate(bundled("traces") / "samples" / "sample-256.swf", policy="window", jobs=(1, 300))
    comparison = compare(
        [bundled("models") / "window-mkp" / "yang-2014-example.json"],
        ["branch-and-bound", "greedy", "greedy-exchange"],
        budget=Budget(seconds=5),
    )
    columns = ["name", "size", *((a, w) for a in ("5%", "10%") for w in ("measured", "published"))]
    rows = [
        ["beta", 900, -40, 2, None, 3, "holds"],
        ["Alpha", 1000, -4, 2, 7, 3, "does not hold"],
        ["gamma-10", 20, Cell("2.5 h", 9000.0, note="published 2 h"), 2, 1e-5, 3, "holds in part"],
        ["gamma-9", None, 1e6, 2, 12, 3, "holds"],
    ]
    named = [7, "u" * 300, "p" * 300, 1, 2, 3]
    chart = chart_data(TWO_JOBS)
    charts = [{"name": name, **chart} for name in ("first", "second")]
    long = [[f"snapshot-{k}", k] for k in range(LONG + 1)]
    parts = {
        "Tables": [Table("A table.", [*columns, "verdict"], rows)],
        "Pictures": [Figure("1", SVG, "One box.", "A box."), Figure("2", SVG, "Two.", "Again.")],
        "Names": [Table("Names.", ["job", "user", "partition", *"abc"], [named])],
        "Long": [Table("Many.", ["snapshot", "number"], long)],
        "Charts": [Figure("a", SVG, "a", "a", [chart]), Figure("b", SVG, "b", "b", charts)],
        "Facts": ["x" * 300, Facts([("long", "y" * 300), ("verdict", "holds")])],
    }
    sections = [Section(title, of) for title, of in parts.items()]
    repeat = "optsched " + "z" * 300
    page = Page("Everything", "It held in part.", sections, repeat, {"optsched": "0"})
    for name in ("everything", "effects"):
        (folder / name).mkdir()
    effects.fill(Effects("jobs", 8, "easy", EFFECTS, []), folder / "effects", folder)
    return SimpleNamespace(
        run=save(run, folder / "run") / "report.html",
        comparison=save(comparison, folder / "comparison") / "report.html",
        effects=folder / "effects" / "report.html",
        everything=write_page(page, folder / "everything"),
    )
