"""Regret against sequences of policies: DO-REPS, one rate for no change, one rate with restarts, and adaptive rates.

`python -m benchmarks.studies.moving_losses FOLDER [--workers 2] [--page FILE]`: losses that switch, swap and drift,
full information. Each learner is as theory tunes it; the restarts are told how many changes there are, the others are
not. Prints a table of mean regrets against at most 0, 1, 3, ... changes, ± one standard error, and writes it to
FOLDER/moving-losses.md and in its place on a page. Results are kept one by one in the folder: a study that was stopped
goes on.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise, product
from typing import Any

import numpy as np

from amdp import instances
from amdp.game.arenas import Episodic
from amdp.game.dynamic_regret import best_sequences, even_edges, interval_costs
from amdp.game.games import Game
from amdp.game.loop import ArenaGame
from amdp.game.match import play
from benchmarks.page import markdown
from benchmarks.studies.beyond_table_1 import THREE
from benchmarks.studies.no_tuning import Mean
from benchmarks.studies.tasks import study

NAME = "moving-losses"
PHASES = 8
ADVERSARIES = ("switching", "swap", "sinusoid")
RESTARTED = "o-reps-full, restarted"
LEARNERS = (
    "do-reps",
    "do-reps-optimistic",
    "o-reps-fixed-share",
    "o-reps-full",
    RESTARTED,
    "soft-leader-full",
    "fpl",
    "uniform",
)
CHANGES = (0, 1, 3, 7, 15)
INTERVALS = 64


@dataclass(frozen=True)
class Run:
    """One game of one learner."""

    world: str
    adversary: str
    learner: str
    rounds: int
    seed: int

    @property
    def file(self) -> str:
        """The name of its result."""
        return f"{self.learner}_{self.world}_{self.adversary}_{self.rounds}_{self.seed}.json".replace(", ", "-")

    @property
    def losses(self) -> dict[str, Any]:
        """The adversary, with `PHASES` phases; the wave of the last one has as many."""
        length = max(1, self.rounds // PHASES)
        settings: dict[str, dict[str, Any]] = {
            "switching": {"every": length},
            "swap": {"first": length, "growth": 1.0},
            "sinusoid": {"period": float(2 * length)},
        }
        return {"name": self.adversary, **settings[self.adversary]}

    def measured(self) -> dict[str, float]:
        """The regret by the number of changes that the comparator is allowed."""
        game = Game(instances.build(**THREE[self.world]), self.losses, self.rounds, seed=self.seed)
        played = ArenaGame(Episodic(game.world.kernel, game.world.initial), game.losses)
        best = best_sequences(interval_costs(played, even_edges(self.rounds, INTERVALS)))
        paid = sum(self._paid(part) for part in self._parts(game))
        return {str(changes): float(paid - best[min(changes, len(best) - 1)]) for changes in CHANGES}

    def _parts(self, game: Game) -> list[Game]:
        if self.learner != RESTARTED:
            return [game]
        edges = even_edges(self.rounds, PHASES)
        return [Game(game.world, game.losses.batch(low, high)) for low, high in pairwise(edges)]

    def _paid(self, game: Game) -> float:
        name = "o-reps-full" if self.learner == RESTARTED else self.learner
        return float(play(game, name, self.seed, checkpoints=[game.rounds], progress=False).loss[-1])


def runs(rounds: int, seeds: int) -> list[Run]:
    """All of them."""
    every = product(THREE, ADVERSARIES, LEARNERS, range(1, seeds + 1))
    return [Run(world, adversary, name, rounds, seed) for world, adversary, name, seed in every]


def table(found: dict[Run, dict[str, float]]) -> list[str]:
    """Mean regrets: a row for each game and learner."""
    return markdown(("world", "losses", "learner", *(f"{m} changes" for m in CHANGES)), _rows(found))


def _rows(found: dict[Run, dict[str, float]]) -> Iterator[list[str]]:
    for where in product(THREE, ADVERSARIES, LEARNERS):
        mine = [result for run, result in found.items() if (run.world, run.adversary, run.learner) == where]
        means = (Mean.of(np.array([result[str(changes)] for result in mine])) for changes in CHANGES)
        yield [*where, *(mean.shown(0) for mean in means)]


def main(arguments: Sequence[str] | None = None) -> None:
    """Play what is missing, and print the table."""
    study("moving_losses", __doc__, NAME, arguments, 400, 20, runs, table)


if __name__ == "__main__":
    main()
