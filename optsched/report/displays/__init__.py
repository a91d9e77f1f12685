"""What notebooks show of runs, results, problems, comparisons and sweeps, one file each.

Each file has a function ``html``, and `optsched.display.display_of` finds the file by its name.
"""
