"""Execution models: how fast jobs run where they were placed."""
