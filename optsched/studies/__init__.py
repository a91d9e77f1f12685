"""Studies: one per paper, with what to run, what was published, and what becomes of its claims."""
