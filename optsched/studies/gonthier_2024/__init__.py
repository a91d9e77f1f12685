"""The study of Gonthier et al. 2024."""

from optsched.registry import studies
from optsched.studies.study import PaperStudy


@studies.register("gonthier-2024")
class Gonthier2024(PaperStudy):
    """Locality-aware scheduling: the authors' day, Tables I to III, Figures 2 and 7 to 11."""

    paper = (
        "M. Gonthier, E. Larsson, L. Marchal, C. Nettelblad, S. Thibault, "
        '"Data-driven locality-aware batch scheduling", APDCM 2024'
    )
    table = "schedulers"
