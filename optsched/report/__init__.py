"""Pictures of runs and of comparisons, as SVG and PNG, and their pages, as HTML."""
