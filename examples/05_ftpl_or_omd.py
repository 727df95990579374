"""FTPL and mirror descent on one world, with the same luck: regret with bands over seeds, and seconds an episode.

python examples/05_ftpl_or_omd.py [rounds] [seeds] [figure.svg]
"""

import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from amdp import BernsteinBox, MarkovPolicies, Radius, instances, losses
from amdp.algorithms.named import learner
from amdp.game.arenas import Episodic
from amdp.game.loop import ArenaGame, play
from amdp.game.regret import Regret, log_checkpoints, measure
from amdp.game.seeding import Streams
from amdp.model.domains import Domain

K = int(sys.argv[1]) if len(sys.argv) > 1 else 40
SEEDS = int(sys.argv[2]) if len(sys.argv) > 2 else 2
FIGURE = Path(sys.argv[3]) if len(sys.argv) > 3 else Path(tempfile.gettempdir()) / "ftpl_or_omd.svg"

world = instances.build("tiny")
known = world.domain
unknown = MarkovPolicies(BernsteinBox.vacuous(world.shape, Radius.jin_2020(world.shape, K, scale=0.03)), world.initial)
game = ArenaGame(Episodic(world.kernel, world.initial), losses.named("bernoulli", world.shape, K, 1, world.costs))

contestants: dict[str, tuple[str, Domain, dict[str, Any]]] = {
    "FTPL (dp)": ("ftpl-shared", known, {"oracle": "dp"}),
    "FTPL (lp)": ("ftpl-shared", known, {"oracle": "lp"}),
    "O-REPS (newton)": ("o-reps", known, {"projection": "newton"}),
    "O-REPS (cvxpy)": ("o-reps", known, {"projection": "cvxpy"}),
    "Hedge": ("hedge", known, {}),
    "UOB-REPS": ("uob-reps", unknown, {}),
    "UOB-FTRL": ("delayed-uob-ftrl", unknown, {}),
}


def run(name: str, domain: Domain, backend: dict[str, Any], seed: int) -> Regret:
    """One game; before the first one two rounds are played uncounted, in which code is compiled and loaded."""
    player = learner(name, domain, K, **backend)
    if seed == 1:
        list(play(game, player, domain, Streams.from_seed(seed), rounds=2))
    return measure(game, play(game, player, domain, Streams.from_seed(seed)), checkpoints=log_checkpoints(K))


figure = Figure(figsize=(11, 4.5), layout="constrained")
curves, bars = figure.subplots(1, 2)
print(f"{'':16} {'regret':>8} {'ms an episode':>14}")
for place, (label, (name, domain, backend)) in enumerate(contestants.items()):
    runs = [run(name, domain, backend, seed) for seed in range(1, SEEDS + 1)]
    low = np.array([one.low for one in runs])
    seconds = np.array([one.seconds[-1] for one in runs]) / K
    mean, error = low.mean(axis=0), low.std(axis=0) / np.sqrt(SEEDS)
    print(f"{label:16} {mean[-1]:8.1f} {1e3 * seconds.mean():14.3f}")
    curves.plot(runs[0].rounds, mean, label=label, linestyle="--" if domain is unknown else "-")
    curves.fill_between(runs[0].rounds, mean - 2 * error, mean + 2 * error, alpha=0.2)
    bars.barh(place, seconds.mean())

curves.set(xlabel="rounds", ylabel="regret", title="mean, two standard errors; dashed: unknown transitions")
curves.legend()
bars.set(xscale="log", xlabel="seconds an episode", yticks=range(len(contestants)), yticklabels=list(contestants))
bars.invert_yaxis()
figure.savefig(FIGURE)
print(f"drawn in {FIGURE}")
