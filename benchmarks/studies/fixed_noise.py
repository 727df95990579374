"""Fresh noise against noise drawn once: regret over K. Draws docs/figures/fixed-noise.svg and prints the numbers.

python -m benchmarks.studies.fixed_noise
"""

from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from itertools import product
from multiprocessing import get_context
from pathlib import Path
from typing import NamedTuple

import matplotlib
import numpy as np
from matplotlib import pyplot
from matplotlib.axes import Axes
from numpy.typing import NDArray

from amdp import Kernel, losses
from amdp.algorithms.recipes import learner
from amdp.instances import Instance, build
from amdp.losses import LossSequence
from amdp.regret import measure
from amdp.seeding import Streams
from amdp.simulation import Episodic, Game, play

FIGURE = Path(__file__).parents[2] / "docs" / "figures" / "fixed-noise.svg"
ROUNDS = (300, 1_000, 3_000, 10_000)
LEARNERS = {"ftpl": "fresh noise each round", "ftpl-literal": "noise drawn once"}


class World(NamedTuple):
    """A world, its adversary, and how many seeds are averaged."""

    title: str
    instance: Callable[[], Instance]
    adversary: str
    seeds: int


def two_arms() -> Instance:
    """One step, one state, two actions that cost 0.6 and 0.4."""
    return Instance("two arms", Kernel.homogeneous(np.ones((1, 2, 1)), 1), np.array([[[0.6, 0.4]]]))


def tiny() -> Instance:
    return build("tiny")


WORLDS = (
    World("two arms, constant losses 0.6 and 0.4", two_arms, "nominal", 24),
    World("random world, H = 3, S = 3, A = 2, Bernoulli losses", tiny, "bernoulli", 12),
)


def final_regret(world: World, name: str, rounds: int, seed: int) -> float:
    instance = world.instance()
    adversary: LossSequence = losses.named(world.adversary, instance.shape, rounds, seed, instance.costs)
    game = Game(Episodic(instance.kernel, instance.initial), adversary)
    chosen = learner(name, instance.domain, rounds)
    played = play(game, chosen, instance.domain, Streams.from_seed(seed))
    return float(measure(game, played, checkpoints=[rounds]).low[-1])


def study(world: World, pool: ProcessPoolExecutor) -> Iterator[tuple[str, NDArray[np.float64]]]:
    """Regret `[K, seed]` of each learner."""
    for name in LEARNERS:
        runs = list(product(ROUNDS, range(world.seeds)))
        regrets = pool.map(final_regret, *zip(*((world, name, rounds, seed) for rounds, seed in runs), strict=True))
        yield name, np.array(list(regrets)).reshape(len(ROUNDS), -1)


def draw(axes: Axes, world: World, name: str, regrets: NDArray[np.float64]) -> None:
    mean, error = regrets.mean(axis=1), regrets.std(axis=1, ddof=1) / np.sqrt(world.seeds)
    slope = np.polyfit(np.log(ROUNDS), np.log(mean), 1)[0]
    last = np.log(mean[-1] / mean[-2]) / np.log(ROUNDS[-1] / ROUNDS[-2])
    axes.errorbar(ROUNDS, mean, 2 * error, marker="o", capsize=3, label=f"{LEARNERS[name]}: slope {slope:.2f}")
    print(f"{world.title}; {name}: slope {slope:.2f}, of the last two {last:.2f}, seeds {world.seeds}")
    for rounds, value, spread in zip(ROUNDS, mean, error, strict=True):
        print(f"  K = {rounds:>6}: regret {value:8.1f} +- {spread:.1f}, regret / K {value / rounds:.4f}")


def main() -> None:
    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "amdp"  # the same numbers give the same file
    figure, panels = pyplot.subplots(1, len(WORLDS), figsize=(10, 4), layout="constrained")
    with ProcessPoolExecutor(2, get_context("spawn")) as pool:
        for axes, world in zip(panels, WORLDS, strict=True):
            for name, regrets in study(world, pool):
                draw(axes, world, name, regrets)
            axes.set(xscale="log", yscale="log", title=world.title, xlabel="rounds K", ylabel="regret after K rounds")
            axes.title.set_fontsize(10)
            axes.grid(alpha=0.3, which="both")
            axes.legend(loc="upper left")
    FIGURE.parent.mkdir(exist_ok=True)
    figure.savefig(FIGURE, metadata={"Date": None})
    print(f"drawn: {FIGURE.name}")


if __name__ == "__main__":
    main()
