"""Traces of jobs: reading, cleaning, describing, writing."""
