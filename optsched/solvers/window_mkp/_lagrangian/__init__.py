"""Search with Lagrangian bounds, to which branch and bound resorts; compiled.

`strategy` is the entry: its cardinality search runs its destructive search on the window and, where
that helps, on the window with other profits. `tree_search` is the branch and bound under it, which
bounds a node by `knapsacks`, for the choice of jobs and for the contents of each slot, and so fixes
variables, too. `placements` finds placements. If few columns remain, `column_node` and
`column_search` enumerate and search them; of few jobs, the latter visits each set once.
"""
