"""The study of Guim, Rodero and Corbalan 2009."""

from optsched.registry import studies
from optsched.studies.study import PaperStudy


@studies.register("guim-2009")
class Guim2009(PaperStudy):
    """Jobs that share the memory bandwidth of nodes: Tables 1 to 7, Figures 4 to 9."""

    paper = 'F. Guim, I. Rodero, J. Corbalan, "The resource usage aware backfilling", JSSPP 2009'
    table = "policies"
