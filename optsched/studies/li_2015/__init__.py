"""The study of Li et al. 2015."""

from optsched.registry import studies
from optsched.studies.study import PaperStudy


@studies.register("li-2015")
class Li2015(PaperStudy):
    """Boxes on a torus: Figures 5 to 7, migration and backfilling, exact models, EASY on boxes."""

    paper = (
        'K. Li, M. Malawski, J. Nabrzyski, "Topology-aware scheduling on Blue Waters with '
        'proactive queue scanning and migration-based job placement", JSSPP 2015'
    )
    parts = ("recorded_node_time", "recorded_held", "recorded_running")
    table = "variants"
    logs = "always"
