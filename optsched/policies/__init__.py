"""Policies, one file each; the parts that several policies share are in ``parts``."""
