"""Search with Lagrangian bounds, to which branch and bound resorts; compiled.

`cardinality_search` is the entry: it runs `destructive_search` on the window and, where that helps,
on the window with other profits. `destructive_search` is the strategy, `tree_search` the branch and
bound under it. `relaxation` bounds a search node by `knapsack` for the choice of jobs and by
`slots` for the contents of each slot, which fixes variables, too. `splitting` and `refilling` find
placements. If few columns remain, `column_node` and `column_search` enumerate and search them; of
few jobs, the latter visits each set once. `first_calls` compiles the kernels.
"""
