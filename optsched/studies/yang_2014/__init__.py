"""The study of Yang et al. 2014."""

from optsched.registry import studies
from optsched.studies.study import PaperStudy


@studies.register("yang-2014")
class Yang2014(PaperStudy):
    """Window-based locality-aware scheduling: Tables I to VI, windows, solvers, three variants."""

    paper = (
        'X. Yang, Z. Zhou, W. Tang, X. Zheng, J. Wang, Z. Lan, "Balancing job performance with '
        'system performance via locality-aware scheduling on torus-connected systems", '
        "IEEE Cluster 2014"
    )
    parts = ("free_by_slot_size",)
    table = "improvements"
    logs = "always"
