"""What does it cost to be told only the total loss of an episode? Each learner beside its form for single losses.

`python -m benchmarks.studies.aggregate_feedback FOLDER [--workers 2] [--full]`: three worlds, Bernoulli losses, known
transitions. Rates are theory's times a multiplier; the best multiplier of a learner is the one of the least mean regret
over the very seeds that are reported, for both forms. Adaptive rates have none. Prints a table of mean regrets and
standard errors, and writes it to FOLDER/aggregate-feedback.md. Results are kept one by one in the folder: a study that
was stopped goes on.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from math import sqrt

import numpy as np

from amdp.arrays import Floats
from amdp.game.games import Game
from amdp.game.match import play
from benchmarks.studies.tasks import study

NAME = "aggregate-feedback"
WORLDS = ("tiny", "river-swim", "random-dense")
TUNED = (("o-reps", "o-reps-aggregate"), ("ftpl-scaled", "ftpl-aggregate"))
ADAPTIVE = (("soft-leader", "soft-leader-aggregate"),)
MULTIPLIERS = (1.0, 4.0, 16.0, 64.0)
OWN = 0.0  # instead of a multiplier: a rate that tunes itself


@dataclass(frozen=True)
class Run:
    """One game of one learner."""

    world: str
    learner: str
    multiplier: float
    rounds: int
    seed: int

    @property
    def file(self) -> str:
        """The name of its result."""
        return f"{self.learner}_x{self.multiplier:g}_{self.world}_{self.rounds}_{self.seed}.json"

    def measured(self) -> dict[str, float]:
        """The regret, and the learner's seconds."""
        game = Game(self.world, "bernoulli", self.rounds, seed=self.seed)
        factor = self.multiplier or 1.0
        run = play(game, self.learner, self.seed, multiplier=factor, checkpoints=[self.rounds], progress=False)
        return {"regret": float(run.regret[-1]), "seconds": run.seconds}


def runs(rounds: int, seeds: int, multipliers: Sequence[float] = MULTIPLIERS) -> list[Run]:
    """All of them."""
    pairs = [(name, factor) for names in TUNED for name in names for factor in multipliers]
    pairs += [(name, OWN) for names in ADAPTIVE for name in names] + [("uniform", OWN)]
    every = product(WORLDS, pairs, range(1, seeds + 1))
    return [Run(world, name, factor, rounds, seed) for world, (name, factor), seed in every]


def table(found: dict[Run, dict[str, float]]) -> str:
    """Mean regrets at the best multiplier: a row for each world and pair of learners."""
    lines = ["| world | single losses | regret | total loss | regret | ratio | uniform |", "|---" * 7 + "|"]
    for world, (single, total) in product(WORLDS, TUNED + ADAPTIVE):
        (one, factor), (many, larger), (base, _) = (_best(found, world, name) for name in (single, total, "uniform"))
        cells = (world, _named(single, factor), _mean(one), _named(total, larger), _mean(many))
        lines.append("| " + " | ".join((*cells, f"{many.mean() / one.mean():.1f}", _mean(base))) + " |")
    return "\n".join(lines)


def _best(found: dict[Run, dict[str, float]], world: str, name: str) -> tuple[Floats, float]:
    """The regrets of a learner at its best multiplier, and the multiplier."""
    by_factor: dict[float, list[float]] = {}
    for run, result in found.items():
        if (run.world, run.learner) == (world, name):
            by_factor.setdefault(run.multiplier, []).append(result["regret"])
    factor = min(by_factor, key=lambda each: float(np.mean(by_factor[each])))
    return np.array(by_factor[factor]), factor


def _named(name: str, factor: float) -> str:
    return name if factor == OWN else f"{name} x{factor:g}"


def _mean(regrets: Floats) -> str:
    error = regrets.std(ddof=1) / sqrt(len(regrets)) if len(regrets) > 1 else float("nan")
    return f"{regrets.mean():,.1f} ± {error:,.1f}"


def main(arguments: Sequence[str] | None = None) -> None:
    """Play what is missing, and print the table."""
    study("aggregate_feedback", __doc__, NAME, arguments, ((500, 3), (10_000, 10)), runs, table)


if __name__ == "__main__":
    main()
