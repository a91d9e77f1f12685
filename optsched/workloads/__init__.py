"""Workload models: statistical descriptions of traces, fitted to them and generating them."""
