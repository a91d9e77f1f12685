"""The event simulator: engine, execution models, journal, metrics and run folders."""
