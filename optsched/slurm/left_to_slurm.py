"""Jobs on which Slurm alone decides."""


class LeftToSlurmError(Exception):
    """A job that the model cannot state; the text says why."""
