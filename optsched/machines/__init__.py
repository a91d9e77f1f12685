"""Machines: resources, and the jobs that hold them."""
