"""Studies: what to run, what was published, and what becomes of it; one per paper, one of all."""
