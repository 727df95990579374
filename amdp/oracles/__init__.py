"""Oracles: who answers "which policy is cheapest for these costs?" and "which occupancy measure is nearest to this?".

The rooms: `markov` plans over policies that choose by step (backward induction, linear programs in HiGHS, PuLP and
cvxpy, enumeration; `lagrangian` within budgets), `stationary` over policies that choose by state alone (branch and
bound, cycles, local search, enumeration, mixed-integer programs, `auto`; for ever: policy iteration), `multi_model`
over one policy for several kernels, `projection` projects onto occupancy measures in relative entropy, `regularized`
finds the occupancy measure of least cost and regularizer (entropy, Tsallis entropy, log-barrier, sums).

A new planning oracle is a frozen dataclass of settings, in the room of its policies, with

    requires: ClassVar[tuple[str, ...]]           the packages that it imports, such as ("pulp",)
    supports(domain) -> bool                      whether `bind` accepts the domain
    bind(domain) -> Planner                       build the model of the domain once

and its planner, a subclass of `base.Planner`, has

    minimize(costs) -> Plans                      the cheapest policy for each of `costs` `[n, h, s, a]`

where the objective of a plan is the value of its policy, and no policy costs less than its bound. Most oracles write
less: a `solving.Solver` that returns the mass of its optimum (`solving.solver_planner` scales, checks and evaluates),
or over stationary policies a `stationary.search.Search` (`stationary.planning.StationaryPlanner` does the same). Plans
within budgets are those of `budgets`, and may be randomized.
An oracle with a model has `export(domain, cost, path)` too, and writes through `model_files`; options of its solver and
its log are the matter of `solver_options`.
`checked.Checked` holds an oracle against backward induction. A projection oracle has the same three members with
`base.Projector` in `projection`, one for regularized costs with `base.RegularizedSolver` in `regularized`. An entry
point in the group `amdp.oracles`, `amdp.projections` or `amdp.regularized` gives it a name.
"""
