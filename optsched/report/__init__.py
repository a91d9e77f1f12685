"""Pictures of runs and of comparisons, as SVG and PNG."""
