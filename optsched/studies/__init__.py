"""Studies: the evaluations of papers, run again, and one over all systems."""
