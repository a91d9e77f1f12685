"""The study of exact placement on Alibaba's GPU cluster "openb"."""

from typing import ClassVar, Literal

from optsched.registry import studies
from optsched.studies.study import PaperStudy


@studies.register("openb-2023")
class Openb2023(PaperStudy):
    """Exact placement of pods with GPUs against FGD and five more rules."""

    paper = (
        "Q. Weng, L. Yang, Y. Yu, W. Wang, X. Tang, G. Yang, L. Zhang, "
        '"Beware of fragmentation: scheduling GPU-sharing workloads with fragmentation gradient '
        'descent", USENIX ATC 2023'
    )
    table = "answers"
    logs: ClassVar[Literal["never", "in full", "always"]] = "always"
    simulates = False
    packages = ("highspy", "ortools")
