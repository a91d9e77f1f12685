"""Pictures of runs and comparisons, as SVG and PNG, and their HTML pages."""
