"""Workloads: read, clean, describe, write."""
