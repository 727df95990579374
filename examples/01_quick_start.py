"""Plan, play and compare in a few lines; draws the figure of the README with `--save FILE`.

The world is a forest: cut it for wood now, or let it grow, which fire may end. An adversary chooses the losses of each
episode. FTPL and O-REPS see the losses on their own way only; uniform play learns nothing.
"""

import sys

import amdp

world = amdp.instances.forest()
print(amdp.plan("lp", world, world.costs))  # the best policy if losses did not change, with its proof

game = amdp.Game(world, losses="bernoulli", rounds=2000, seed=1)
runs = {
    "uniform play": amdp.play(game, "uniform"),
    "FTPL, rate of theory": amdp.play(game, "ftpl-shared"),
    "FTPL, 10 times that": amdp.play(game, "ftpl-shared", multiplier=10),
    "O-REPS, 10 times theory": amdp.play(game, "o-reps", multiplier=10),
}
for name, run in runs.items():
    print(f"{name:24} regret {run.regret[-1]:7.0f}   oracle calls {run.oracle_calls[-1]:6}   {run.seconds:.2f} s")

if "--save" in sys.argv:
    import matplotlib.pyplot as plt

    axes = plt.figure(figsize=(6, 3.5)).add_subplot(title=f"{game.rounds} episodes", xlabel="rounds", ylabel="regret")
    for name, run in runs.items():
        run.plot(axes, label=name)
    plt.savefig(sys.argv[sys.argv.index("--save") + 1], bbox_inches="tight")
