"""Search with Lagrangian bounds, to which branch and bound resorts; compiled.

`strategy` is the entry: its cardinality search runs its destructive search on the window and, where
that helps, on the window with other profits. `tree_search` is the branch and bound under it, which
bounds a node by `knapsacks`, for the choice of jobs and for the contents of each slot, and so fixes
variables, too. `placements` finds placements. If few columns remain, `column_node` and
`column_search` enumerate and search them; of few jobs, the latter visits each set once.

In all of these, jobs are in the order of decreasing profit per weight, and slots in that of
increasing capacity, as `reduce` leaves them. A placement has the slot of each job, -1 for one that
is not placed. Work is counted in cells of tables, and of knapsacks in steps: partial solutions.
"""
