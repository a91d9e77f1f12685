"""Cases of other projects, of a real Slurm and of attacks, each with the value that is right.

`make cases` runs them all and prints a table; the test runs those that take seconds. The inputs are
beside a checkout, in ``../shared/reviews``; without them there is nothing to run.
"""
