"""Policies: one file each; what they share is in ``parts``."""
