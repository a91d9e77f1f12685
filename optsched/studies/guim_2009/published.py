"""What Guim, Rodero and Corbalan 2009 report."""

from __future__ import annotations

from typing import NamedTuple

from optsched.traces.bandwidth import MIXES

FF, LC, RUA = "FF", "LC", "RUA"
LCT_1, LCT_15, LCT_25, LCT_50 = "LCT=1", "LCT=1.15", "LCT=1.25", "LCT=1.5"
LCT = (LCT_1, LCT_15, LCT_25, LCT_50)
"""By threshold, from the least on."""

TABULATED = (FF, LC, *LCT)
"""The columns of Tables 1 to 7."""

CTC, BLUE = "CTC", "SDSC"
LOGS = (CTC, BLUE)
HIGH, MED, LOW = PRESSURES = tuple(MIXES)
"""Mixes of demands, as the tables name them."""

KILLED = "killed"

Row = tuple[float | None, ...]
Rows = tuple[Row, Row, Row]


class Published(NamedTuple):
    """A table.

    Parameters
    ----------
    number : int
        Its number in the paper.
    title : str
        What it shows.
    metric : str
        The same, by its name in a summary.
    ctc, blue : tuple of tuples of float or None
        By mix (rows: HIGH, MED, LOW) and policy (`TABULATED`); none where the number is lost.
    """

    number: int
    title: str
    metric: str
    ctc: Rows
    blue: Rows

    def value(self, centre: str, mix: str, policy: str) -> float | None:
        """Return what was published; none if it is lost."""
        rows = self.ctc if centre == CTC else self.blue
        return rows[PRESSURES.index(mix)][TABULATED.index(policy)]


TABLES = (
    Published(
        1,
        "Bounded slowdown, 95th percentile",
        "p95_bounded_slowdown",
        (
            (4.2, 5.94, 7.92, 6.12, 5.32, 5.23),
            (2.8, 3.55, 4.22, 3.82, 3.65, 3.52),
            (2.2, 3.12, 3.62, 3.82, 3.45, 3.52),
        ),
        (
            (99.3, 110.21, 128.08, 115.28, 109.51, 106.23),
            (55.4, 68.06, 74.32, 72.83, 71.37, 68.52),
            (37.8, 45.37, 57.27, 52.86, 42.28, 42.28),
        ),
    ),
    Published(
        2,
        "Bounded slowdown, mean",
        "mean_bounded_slowdown",
        (
            (8.2, 10.44, 18.02, 12.38, 11.32, 13.54),
            (5.3, 6.65, 7.52, 8.05, 6.85, 7.75),
            (3.2, 5.62, 5.92, 5.82, 8.84, 8.56),
        ),
        (
            (22.56, 24.41, 27.37, 25.54, 24.26, 23.53),
            (11.32, 12.51, 14.76, 14.46, 14.17, 13.6),
            (7.54, 7.8, 9.08, 9.5, 8.47, 8.27),
        ),
    ),
    Published(
        3,
        "Wait time in seconds, 95th percentile",
        "p95_wait",
        (
            (10286, 12588, 17945, 15612, 14555, 10188),
            (8962, 9565, 13391, 13123, 9186, 9094),
            (4898, 5034, 6544, 7198, 5235, 5759),
        ),
        (
            (55667, 63293, 70964, 69632, 59978, 41779),
            (44346, 45164, 58713, 59300, 47440, 45616),
            (32730, 35092, 38265, 37499, 33374, 33785),
        ),
    ),
    Published(
        4,
        "Wait time in seconds, mean",
        "mean_wait",
        (
            (20082, 24576, 35035, 30480, 28416, 19890),
            (13443, 14347, 20086, 19684, 13779, 13641),
            (7124, 7322, 9518, 10469, 7614, 8376),
        ),
        (
            (12647, 14379, 16122, 15819, 13626, 9491),
            (9061, 9228, 11996, 12116, 9693, 9320),
            (3931, 4214, 4595, 4503, 4008, 4057),
        ),
    ),
    Published(
        5,
        "Percentage of penalised runtime, 95th percentile",
        "p95_penalised_percent",
        (
            (8.8, 8.01, 7.69, 7.87, 7.91, 8.1),
            (4.8, 3.81, 3.01, 3.52, 4.06, 3.90),
            (0.92, 0.78, 0.51, 0.72, 0.62, 0.80),
        ),
        (
            (11.8, 11.33, 8.31, 10.37, 11.58, 11.64),
            (6.7, 6.01, 4.70, 4.85, 5.64, 5.96),
            (1.4, 1.03, 0.75, 0.81, 0.94, 1.19),
        ),
    ),
    Published(
        6,
        "Percentage of penalised runtime, mean",
        "mean_penalised_percent",
        (
            (7.8, 6.81, 6.98, 7.17, 7.39, 7.34),
            (3.8, 2.54, 2.93, 3.02, 3.1, 3.20),
            (0.72, 0.7, 0.21, 0.42, 0.33, 0.64),
        ),
        (
            (15.1, 10.32, 7.41, 11.73, 10.85, 12.32),
            (10.2, 7.2, 4.70, 4.85, 5.64, 5.96),
            (5.2, 4.53, 2.56, 3.11, 4.58, 4.23),
        ),
    ),
    Published(
        7,
        "Killed jobs",
        KILLED,
        (
            (428, None, 70, 70, 87, 97),
            (247, 101, 76, 77, 102, 99),
            (64, 45, 36, 38, 58, 52),
        ),
        (
            (None, None, None, 130, 127, 130),
            (255, 89, 76, 79, 103, 145),
            (51, 34, 22, 27, 33, 41),
        ),
    ),
)
"""Of the row High in Table 7, the text names two numbers that the table has lost: 428 and 70."""
