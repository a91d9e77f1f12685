"""Special solvers of threshold allocation."""
