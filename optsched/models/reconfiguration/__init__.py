"""Reconfiguration: running jobs of a torus are moved, and waiting ones started, in one decision."""

from optsched.models.reconfiguration.problem import Arrangement, Reconfiguration

__all__ = ["Arrangement", "Reconfiguration"]
