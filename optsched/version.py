"""Version of optsched, and the time of its import."""

import time

__version__ = "1.0.0"

IMPORTED = time.time_ns()
"""Time of the import of the package, in nanoseconds; a source file that has changed since may
differ from the running code."""
