"""The search with strong bounds that branch and bound goes on with; compiled.

`counted_search` leads: it lets `band_search` answer the window and, where that helps, the same
window with other profits. `band_search` is the strategy, `tree_search` what it searches with: a
node is bounded by `relaxation`; `knapsack` chooses jobs, `slots` says what each slot would take,
and `dominance` narrows the choices with both. Placements come from `surrogate` and `splitting`. In
a narrow band the search goes on over listed sets of jobs: `columns`, `column_search`,
`column_node`.
"""
