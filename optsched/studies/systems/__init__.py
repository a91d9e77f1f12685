"""The study of all systems."""

from optsched.registry import studies
from optsched.studies.study import PaperStudy


@studies.register("systems")
class Systems(PaperStudy):
    """One table over all systems: the same jobs under every policy that can run them."""

    paper = "of no paper: the same jobs under all policies, in one table"
    table = "systems"
    takes_trace = True
