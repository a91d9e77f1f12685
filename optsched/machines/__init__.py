"""Machines: the resources, and who holds them now."""
