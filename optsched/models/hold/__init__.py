"""Hold: the claims to lift, at the least cost, so that a blocked job can start."""

from optsched.models.hold.problem import Hold, Release

__all__ = ["Hold", "Release"]
