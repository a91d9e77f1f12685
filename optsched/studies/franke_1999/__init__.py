"""The study of Franke et al. 1999."""

from optsched.registry import studies
from optsched.studies.study import PaperStudy


@studies.register("franke-1999")
class Franke1999(PaperStudy):
    """Gang scheduling against backfilling: Figures 3 to 9, 81 modeled workloads, six variants."""

    paper = (
        'H. Franke, J. Jann, J. E. Moreira, P. Pattnaik, M. A. Jette, "An evaluation of parallel '
        'job scheduling for ASCI Blue-Pacific", Supercomputing 1999'
    )
    table = "strategies"
    logs = "always"
