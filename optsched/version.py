"""The version of optsched that runs, and the moment from which on its sources are what runs."""

import time

__version__ = "0.1.0"

IMPORTED = time.time_ns()
"""When the package was imported, in nanoseconds: a source file that has changed since then may not
be what runs."""
