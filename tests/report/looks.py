"""What pages and pictures show, and files of folders that are changed."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd

from optsched.report.page import Table


def section(page, title):
    """Return the parts of a section of a page."""
    [found] = [one for one in (*page.sections, *page.appendix) if one.title == title]
    return found.parts


def tables(page, title):
    return [part for part in section(page, title) if isinstance(part, Table)]


def texts(artists):
    return [artist.get_text() for artist in artists]


def heading(figure):
    """Return the sentence above the first panel."""
    return figure.axes[0].get_title(loc="left")


def legend(figure):
    return [text for found in figure.legends for text in texts(found.get_texts())]


def unstarted(run, *rows, state="WAITING"):
    """Return a run as if some of its jobs had never started."""
    start, end, states = run.start.copy(), run.end.copy(), run.state.astype("<U30")
    resources = [*run.resources]
    for row in rows:
        start[row], end[row], states[row], resources[row] = np.nan, np.nan, state, ""
    changed = {"start": start, "end": end, "state": states, "resources": resources}
    return replace(run, schedule=run.schedule._replace(**changed))


def contents(folder):
    """Return the bytes of all files whose bytes are the same in each run."""
    return {file.name: file.read_bytes() for file in folder.iterdir() if file.name != "timing.json"}


def change_json(file, change=None, **fields):
    """Change the object in a file by a function, and set fields of it."""
    record = json.loads(file.read_text())
    if change:
        change(record)
    file.write_text(json.dumps(record | fields))


def change_table(file, change):
    """Write what a function makes of a table in its place."""
    change(pd.read_parquet(file)).to_parquet(file)
