"""Learners: each turns one distribution over policies into the next.

- `base`: the contract of a learner, and the distributions over policies that it plays.
- `named`: learners by short name, `learner("ftpl", domain, rounds=1000)`.
- `task`: what a recipe knows when it builds a learner; `settings`: what the settings of recipes are, in words.
- `ftpl`: follow the perturbed leader, the subject of this library, and its noise.
- `occupancy`: mirror descent and the regularized leader over occupancy measures (O-REPS, UOB-REPS, ...).
- `soft_leader`: the leader regularized by the entropy of its actions, by soft backward sweeps and without any oracle.
- `policy_optimization`: exponential weights in each step and state (POMD, dilated bonuses, Delayed OPPO, O-SSP).
- `hedge`: exponential weights over all deterministic policies.
- `streams`: learners for an infinite horizon, played as one stream of steps.
- `estimators`: loss estimates from feedback (geometric resampling, importance weighting), which all of them share.
- `doubling`: learners that guess the number of rounds or the total delay.
- `rates`: learning rates that are fixed, or tune themselves.
- `bounds`: tuned learning rates and regret bounds; `paper_table`: the table of the paper, row by row.

A new learner is a class that follows `base.Learner` and a recipe, a function of a `Task` that tunes it; the recipe gets
a short name in the entry points `amdp.learners` of pyproject.toml. docs/write-a-learner.md shows one.
"""
