"""Settings chosen on seeds of their own: what is reported of a choice comes from seeds on which nothing was chosen."""

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path

import numpy as np

from amdp.arrays import Floats
from benchmarks.studies.runs import Result, Run, collected

APART = 1_000_000  # tries have the seeds from here on; seeds that are reported are below
MULTIPLIERS = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0)  # of the theorem's rate
TRIES = 8  # seeds of each
QUICK_MULTIPLIERS, QUICK_TRIES = (1.0, 8.0), 1
Choice = Callable[[Run], Run]  # the same run at the rate that its tries chose


def seeds_apart(count: int) -> range:
    """Seeds for tries."""
    return range(APART, APART + count)


def least(tried: Mapping[float, Floats]) -> float:
    """The setting of the least mean over its tries; the first of equal ones."""
    return min(tried, key=lambda setting: float(tried[setting].mean()))


def choice(folder: Path, quick: bool) -> Choice:
    """How a study chooses; tries leave files in its folder like other runs."""
    multipliers, tries = (QUICK_MULTIPLIERS, QUICK_TRIES) if quick else (MULTIPLIERS, TRIES)
    return partial(chosen, multipliers=multipliers, seeds=seeds_apart(tries), play=partial(collected, folder=folder))


def chosen(
    run: Run,
    multipliers: Iterable[float],
    seeds: Iterable[int],
    play: Callable[[list[Run]], Mapping[Run, Result]],
) -> Run:
    """The run at the multiple of the theorem's rate that has the least mean regret in games of its length."""
    tries = {factor: [run._replace(multiplier=factor, seed=seed) for seed in seeds] for factor in multipliers}
    results = play([one for several in tries.values() for one in several])
    regrets = {factor: np.array([results[one].regret for one in several]) for factor, several in tries.items()}
    best = least(regrets)
    shown = ", ".join(f"x{factor:g} {float(regret.mean()):,.1f}" for factor, regret in regrets.items())
    print(f"rate x{best:g} chosen for {run.world}, {run.losses}, K = {run.rounds:,}: {shown}")
    return run._replace(multiplier=best)
