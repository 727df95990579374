"""Tuning by tries: the same multipliers, on the same seeds and rounds, for every learner."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import log
from typing import Any, Self

from amdp.experiments import reading
from amdp.experiments.settings import GameSettings

SEEDS_BEGIN = 2**32  # those of a spec are below: no game is both tried and evaluated
MOST_SEEDS = 100_000
SEEDS = 3


@dataclass(frozen=True)
class Tune:
    """Multipliers to try, seeds to try them on, and how many rounds a try has at most."""

    multipliers: tuple[float, ...]
    seeds: tuple[int, ...]
    rounds: int | None = None

    @classmethod
    def read(cls, given: Any) -> Self:
        """The block `[tune]` of a spec."""
        reading.table("tune", given, ("multipliers", "seeds", "rounds"), ("multipliers",))
        count = reading.whole("tune.seeds", given.get("seeds", SEEDS), 1, MOST_SEEDS)
        rounds = reading.whole("tune.rounds", given["rounds"], 1) if "rounds" in given else None
        return cls(_multipliers(given["multipliers"]), tuple(range(SEEDS_BEGIN, SEEDS_BEGIN + count)), rounds)

    def shortened(self, game: GameSettings) -> GameSettings:
        """The game of the tries."""
        if self.rounds is None or self.rounds >= game.length:
            return game
        return replace(game, steps=self.rounds) if game.episodes is None else replace(game, episodes=self.rounds)

    def best(self, regrets: Mapping[float, float]) -> float:
        """The multiplier of the least mean regret; of equal ones the nearest to what theory says."""
        return min(self.multipliers, key=lambda one: (regrets[one], abs(log(one)), one))


def _multipliers(given: Any) -> tuple[float, ...]:
    path = "tune.multipliers"
    if not isinstance(given, list) or not given:
        raise reading.wrong(path, given, "it must be a list of numbers")
    reading.require_different(path, given)
    for i, one in enumerate(given):
        if type(one) not in (int, float) or not 0.0 < one < float("inf"):
            raise reading.wrong(f"{path}[{i}]", one, "it must be a number above 0 and finite")
    return tuple(map(float, given))
