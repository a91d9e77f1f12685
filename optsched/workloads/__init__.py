"""Workload models: statistical descriptions, fitted to traces, that generate traces."""
