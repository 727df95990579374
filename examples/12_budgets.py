"""Budgets: what an hour of the crew is worth, a plan that has to be randomized, and learners that keep to the hours."""

import numpy as np

import amdp

print("hours\tcost\tan hour more saves\tplaces with a draw")
for hours in (0.0, 1.0, 2.0, 3.0, 4.0, 5.0):
    world = amdp.instances.maintenance(hours=hours)
    plan = amdp.plan("lp", world, world.costs)
    assert isinstance(plan, amdp.BudgetedPlan)
    visited = world.kernel.occupancy(plan.policy[None], world.initial)[0].sum(axis=-1) > 1e-9
    drawn = int(((plan.policy.max(axis=-1) < 1.0 - 1e-9) & visited).sum())
    print(f"{hours:g}\t{plan.objective:.4f}\t{plan.prices[0]:.4f}\t\t\t{drawn}")

world = amdp.instances.maintenance(hours=3.0)
plans = [amdp.plan(oracle, world, world.costs) for oracle in ("lagrangian", "lp", "cvxpy", "pulp")]
assert np.ptp([plan.objective for plan in plans]) < 1e-8
print(*plans, sep="\n")

game = amdp.Game(world, losses="bernoulli", rounds=100)
for name in ("ftpl-adaptive", "o-reps", "o-reps-full", "uniform"):
    run = amdp.play(game, name, seed=1)
    used = run.spending["hours"][-1] / run.rounds[-1]
    print(f"{name}: regret {run.regret[-1]:.1f}, {used:.3f} of 3 hours a round")
