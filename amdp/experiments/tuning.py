"""Tuning by tries: the same multipliers, on the same seeds and rounds, for every learner."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import inf, log
from typing import Any, Self

from amdp.experiments import reading
from amdp.experiments.match import build_delays
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

    def learns_nothing(self, game: GameSettings) -> bool:
        """Whether the losses of a try are told after its end, on average."""
        late = build_delays(self.shortened(game), self.seeds[0])
        return late is not None and late.total >= len(late) ** 2

    def require_products(self, learners: Mapping[str, float]) -> None:
        """Refuse a multiplier that together with a learner's own is no positive number."""
        for i, one in enumerate(self.multipliers):
            for label, own in learners.items():
                if not 0.0 < one * own < inf:
                    rule = f"times the multiplier {own:g} of {label!r} it must be above 0 and finite"
                    raise reading.wrong(f"tune.multipliers[{i}]", one, rule)

    def is_tie(self, regrets: Mapping[float, float]) -> bool:
        """Whether the tries did not tell the multipliers apart."""
        return len(regrets) > 1 and min(regrets.values()) == max(regrets.values())

    def best(self, paid: Mapping[float, float]) -> float:
        """The multiplier that paid least; of equal ones the nearest to what theory says."""
        return min(self.multipliers, key=lambda one: (paid[one], abs(log(one)), one))


def _multipliers(given: Any) -> tuple[float, ...]:
    path = "tune.multipliers"
    if not isinstance(given, list) or not given:
        raise reading.wrong(path, given, "it must be a list of numbers")
    reading.require_different(path, given)
    for i, one in enumerate(given):
        if type(one) not in (int, float) or not 0.0 < one < float("inf"):
            raise reading.wrong(f"{path}[{i}]", one, "it must be a number above 0 and finite")
    return tuple(map(float, given))
