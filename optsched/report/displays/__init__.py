"""What notebooks show of runs, results, problems, comparisons and sweeps, one file each.

Each file has a function ``html``, which `optsched.display.html_of` finds by the name of the file.
"""
