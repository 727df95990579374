"""FTPL and mirror descent on one world, with the same seeds: regret with bands over seeds, and seconds an episode.

python examples/05_ftpl_or_omd.py [rounds] [seeds] [figure.svg]
"""

import sys
import tempfile
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

import amdp

K = int(sys.argv[1]) if len(sys.argv) > 1 else 40
SEEDS = int(sys.argv[2]) if len(sys.argv) > 2 else 2
FIGURE = Path(sys.argv[3]) if len(sys.argv) > 3 else Path(tempfile.gettempdir()) / "ftpl_or_omd.svg"

known = amdp.Game("tiny", losses="bernoulli", rounds=K)
unknown = amdp.Game("tiny", losses="bernoulli", rounds=K, unknown=True, radius="jin-2020", radius_scale=0.03)

contestants: dict[str, tuple[amdp.Game, str, dict[str, Any]]] = {
    "FTPL (dp)": (known, "ftpl-shared", {"oracle": "dp"}),
    "FTPL (lp)": (known, "ftpl-shared", {"oracle": "lp"}),
    "FTPL scaled": (known, "ftpl-scaled", {}),
    "FTPL adaptive": (known, "ftpl-adaptive", {}),
    "soft leader": (known, "soft-leader", {}),
    "O-REPS (newton)": (known, "o-reps", {"projection": "newton"}),
    "O-REPS (cvxpy)": (known, "o-reps", {"projection": "cvxpy"}),
    "O-REPS adaptive": (known, "o-reps-adaptive", {}),
    "Hedge": (known, "hedge", {}),
    "UOB-REPS": (unknown, "uob-reps", {}),
    "UOB-FTRL": (unknown, "delayed-uob-ftrl", {}),
}

figure = Figure(figsize=(11, 4.5), layout="constrained")
curves, bars = figure.subplots(1, 2)
print(f"{'':16} {'regret':>8} {'ms an episode':>14}")
for place, (label, (game, name, solver)) in enumerate(contestants.items()):
    list(islice(amdp.rounds(game, name, **solver), 2))  # compiles and loads code before the clock runs
    runs = [amdp.play(game, name, seed, **solver) for seed in range(1, SEEDS + 1)]
    regret = np.array([run.regret for run in runs])
    seconds = np.array([run.seconds for run in runs]) / K
    mean, error = regret.mean(axis=0), regret.std(axis=0) / np.sqrt(SEEDS)
    print(f"{label:16} {mean[-1]:8.1f} {1e3 * seconds.mean():14.3f}")
    color = f"C{place}" if place < 10 else ("black", "gold")[place - 10]
    curves.plot(runs[0].rounds, mean, color=color, linestyle="--" if game is unknown else "-")
    curves.fill_between(runs[0].rounds, mean - 2 * error, mean + 2 * error, color=color, alpha=0.2, linewidth=0)
    bars.barh(place, seconds.mean(), color=color)

curves.set(xlabel="rounds", ylabel="regret", title="colors as on the right; dashed: unknown transitions")
bars.set(xscale="log", xlabel="seconds an episode", yticks=range(len(contestants)), yticklabels=list(contestants))
bars.invert_yaxis()
figure.savefig(FIGURE)
print(f"drawn in {FIGURE}")
