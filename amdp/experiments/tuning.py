"""Tuning by tries: the same multipliers, on the same seeds and rounds, for every learner."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import inf, log
from typing import Any, Self

from amdp.experiments import reading
from amdp.experiments.settings import GameSettings
from amdp.game.games import find_delays

SEEDS_BEGIN = 2**32  # those of a spec are below: no game is both tried and evaluated
MOST_SEEDS = 100_000
SEEDS = 3
KEYS: dict[str, reading.Reader] = {
    "multipliers": reading.positive_numbers,
    "seeds": reading.whole(1, MOST_SEEDS),
    "rounds": reading.whole(1),
}


@dataclass(frozen=True)
class Tune:
    """Multipliers to try, seeds to try them on, and how many rounds a try has at most."""

    multipliers: tuple[float, ...]
    seeds: tuple[int, ...]
    rounds: int | None = None

    @classmethod
    def read(cls, path: str, value: Any) -> Self:
        """The block `[tune]` of a spec."""
        table = reading.table(path, value, KEYS, ["multipliers"])
        seeds = range(SEEDS_BEGIN, SEEDS_BEGIN + table.get("seeds", SEEDS))
        return cls(table["multipliers"], tuple(seeds), table.get("rounds"))

    def shortened(self, game: GameSettings) -> GameSettings:
        """The game of the tries."""
        if self.rounds is None or self.rounds >= game.length:
            return game
        return replace(game, steps=self.rounds) if game.episodes is None else replace(game, episodes=self.rounds)

    def learns_nothing(self, game: GameSettings) -> bool:
        """Whether the losses of a try are told after its end, on average."""
        delays = find_delays(game.delay, self.shortened(game).length, self.seeds[0], stream=game.steps is not None)
        return delays is not None and delays.total >= len(delays) ** 2

    def require_products(self, learners: Mapping[str, float]) -> None:
        """Refuse a multiplier that together with a learner's own is no positive number."""
        for i, multiplier in enumerate(self.multipliers):
            for label, own in learners.items():
                if not 0.0 < multiplier * own < inf:
                    rule = f"times the multiplier {own:g} of {label!r} it must be above 0 and finite"
                    raise reading.wrong(f"tune.multipliers[{i}]", multiplier, rule)

    def is_tie(self, losses: Mapping[float, float]) -> bool:
        """Whether all multipliers incurred the same loss in their tries."""
        return len(losses) > 1 and min(losses.values()) == max(losses.values())

    def best(self, losses: Mapping[float, float]) -> float:
        """The multiplier with the least loss; of equal ones the nearest to what theory says."""
        return min(self.multipliers, key=lambda multiplier: (losses[multiplier], abs(log(multiplier)), multiplier))
