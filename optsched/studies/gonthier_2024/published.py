"""What Gonthier et al. 2024 report, and what their published result files say."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from optsched.studies.gonthier_2024.improvement import Improvement

NODES, CORES = 486, 20
"""The cluster (section V.A)."""

THROTTLE = 30
"""Seconds between two plans in the program of the published weekly results."""

FINAL = ", final code"
"""What is added to the names of schedulers in the authors' final program without its throttle."""


class DayResult(NamedTuple):
    """What the authors' program gave on the published day, as printed.

    Parameters
    ----------
    mean_stretch, mean_bounded_stretch : str
        Means over the evaluated jobs, with six digits behind the point.
    transfer_time, waiting_for_a_load, data_reuse : str
        Seconds, seconds and jobs.
    mean_queue_time, mean_flow, core_time : str
        Seconds. These sums, and those of the stretches, were kept in single precision.
    """

    mean_stretch: str
    mean_bounded_stretch: str
    transfer_time: str
    waiting_for_a_load: str
    data_reuse: str
    mean_queue_time: str
    mean_flow: str
    core_time: str


SINGLE_PRECISION = 1e-5
"""By how much such sums may differ, relatively: they depend on the order of the jobs. For 1,511
jobs the error is at most 9e-5."""

DAY_RESULTS: Mapping[str, DayResult] = {
    "FCFS": DayResult(
        "2.293481", "2.246649", "336704", "25109", "788", "4553.683105", "12041.257812", "133422560"
    ),
    "FCFS-BF": DayResult(
        "2.067908", "2.020067", "342336", "26709", "746", "3869.600830", "11361.963867", "133477568"
    ),
    "LEA": DayResult(
        "1.502268",
        "1.448586",
        "212096",
        "25328",
        "1055",
        "3301.146973",
        "10709.645508",
        "132176304",
    ),
    "LEM (80 %)": DayResult(
        "1.493319",
        "1.439636",
        "227456",
        "25328",
        "1043",
        "2834.170654",
        "10251.140625",
        "132432304",
    ),
    "LEA, final code": DayResult(
        "1.523209",
        "1.470258",
        "211456",
        "22014",
        "1057",
        "3280.060303",
        "10685.941406",
        "132148736",
    ),
    "LEM (80 %), final code": DayResult(
        "1.514327",
        "1.461376",
        "226816",
        "22014",
        "1045",
        "2816.764404",
        "10231.117188",
        "132404736",
    ),
    "LEM, final code": DayResult(
        "2.322831", "2.264302", "259456", "9822", "993", "3182.238281", "10608.575195", "132827024"
    ),
}
"""Rescheduling at every event (code of November 2022), and with the final code without its
throttle, of which FCFS is the same."""

WEEKS = 12
LOWEST, HIGHEST = "40", "43"
"""The weeks of low and of high utilisation."""


class Reductions(NamedTuple):
    """Shares by which a scheduler lowers something, relative to FCFS with the same backfilling."""

    eft: float
    lea: float
    leo: float
    lem: float


TABLE_I = Reductions(0.0, 0.148, 0.008, 0.038)
TABLE_II = Reductions(0.009, 0.171, 0.009, 0.071)
TABLE_III = Reductions(0.0001, 0.0037, 0.0002, 0.0010)
"""Transfer time in week 40, on all weeks; core time on all weeks."""

SATURATED = Reductions(float("nan"), 0.21, 0.01, 0.11)
"""Transfer time in week 43 (section V.E)."""

BACKFILLED_TRANSFER = Reductions(0.0082, 0.1592, 0.0117, 0.0540)
BACKFILLED_CORE_TIME = Reductions(0.0001, 0.0035, 0.0002, 0.0008)
"""Of the schedulers with backfilling, relative to FCFS-BF, by the weekly result files; LEA-BF
without week 06, for which it has none."""

PER_JOB: Mapping[str, Mapping[str, Improvement]] = {
    "06": {
        "EFT": Improvement(
            7632, 0.954, 1.000, 1.006, 1.011, 1.017, 4.006, 0.754, 0.273, 0.167, 12.100, 0.870
        ),
        "LEA": Improvement(
            7632, 1.291, 1.444, 1.609, 3.245, 9.061, 7.135, 0.962, 0.927, 0.036, 7.630, 0.609
        ),
        "LEO": Improvement(
            7632, 1.022, 1.049, 1.088, 1.383, 1.721, 4.416, 0.970, 0.911, 0.023, 4.752, 0.832
        ),
        "LEM": Improvement(
            7632, 1.018, 1.043, 1.091, 1.411, 1.869, 4.003, 0.976, 0.898, 0.020, 4.349, 0.685
        ),
        "EFT-BF": Improvement(
            7632, 0.962, 0.985, 1.000, 1.003, 1.098, 1.087, 0.703, 0.192, 0.260, 1.656, 0.849
        ),
        "LEA-BF": Improvement(
            7632, 0.900, 1.000, 1.000, 1.417, 2.130, 1.761, 0.829, 0.452, 0.164, 2.808, 0.654
        ),
        "LEO-BF": Improvement(
            7632, 0.897, 0.978, 1.000, 1.000, 1.053, 1.059, 0.658, 0.183, 0.304, 1.664, 0.795
        ),
        "LEM-BF": Improvement(
            7632, 0.931, 0.980, 1.000, 1.002, 1.141, 1.130, 0.676, 0.207, 0.300, 1.885, 0.822
        ),
    },
    "08": {
        "EFT": Improvement(
            7202, 0.990, 1.000, 1.000, 1.000, 1.013, 1.019, 0.856, 0.131, 0.125, 1.275, 0.867
        ),
        "LEA": Improvement(
            7202, 0.708, 0.980, 1.000, 1.116, 2.485, 1.836, 0.729, 0.300, 0.259, 4.074, 0.671
        ),
        "LEO": Improvement(
            7202, 1.000, 1.000, 1.000, 1.000, 1.058, 1.050, 0.885, 0.181, 0.101, 1.361, 0.849
        ),
        "LEM": Improvement(
            7202, 1.000, 1.000, 1.000, 1.000, 1.281, 1.143, 0.898, 0.222, 0.090, 1.721, 0.808
        ),
        "EFT-BF": Improvement(
            7202, 1.000, 1.000, 1.000, 1.000, 1.030, 1.049, 0.891, 0.166, 0.086, 1.386, 0.824
        ),
        "LEA-BF": Improvement(
            7202, 0.658, 0.936, 1.000, 1.025, 1.880, 1.575, 0.699, 0.261, 0.289, 3.567, 0.667
        ),
        "LEO-BF": Improvement(
            7202, 1.000, 1.000, 1.000, 1.000, 1.029, 1.041, 0.902, 0.171, 0.079, 1.317, 0.839
        ),
        "LEM-BF": Improvement(
            7202, 1.000, 1.000, 1.000, 1.000, 1.191, 1.385, 0.892, 0.189, 0.094, 3.127, 0.819
        ),
    },
    "36": {
        "EFT": Improvement(
            2576, 1.000, 1.000, 1.000, 1.000, 1.000, 1.003, 0.974, 0.031, 0.017, 1.175, 0.863
        ),
        "LEA": Improvement(
            2576, 0.568, 0.919, 1.000, 1.000, 1.000, 0.957, 0.677, 0.078, 0.303, 1.951, 0.616
        ),
        "LEO": Improvement(
            2576, 1.000, 1.000, 1.000, 1.000, 1.000, 1.003, 0.977, 0.031, 0.015, 1.178, 0.859
        ),
        "LEM": Improvement(
            2576, 1.000, 1.000, 1.000, 1.000, 1.000, 1.005, 0.969, 0.033, 0.019, 1.246, 0.850
        ),
        "EFT-BF": Improvement(
            2576, 1.000, 1.000, 1.000, 1.000, 1.000, 0.997, 0.946, 0.026, 0.040, 1.193, 0.807
        ),
        "LEA-BF": Improvement(
            2576, 0.521, 0.858, 1.000, 1.000, 1.000, 0.948, 0.649, 0.075, 0.331, 2.064, 0.602
        ),
        "LEO-BF": Improvement(
            2576, 1.000, 1.000, 1.000, 1.000, 1.000, 1.008, 0.977, 0.031, 0.014, 1.311, 0.864
        ),
        "LEM-BF": Improvement(
            2576, 1.000, 1.000, 1.000, 1.000, 1.000, 1.010, 0.971, 0.036, 0.020, 1.373, 0.809
        ),
    },
}
"""By week and scheduler, what the authors' results of single jobs say of their sessions (jobs of
one user that follow each other): three of the twelve weeks have such files."""
