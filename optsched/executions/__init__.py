"""Execution models: the speed of a job as a function of its allocation."""
