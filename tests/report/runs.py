"""Runs made by hand, of which everything is known: regret a power of the rounds, with noise by seed."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from amdp.experiments.record import Curve, Failure, Record
from amdp.experiments.settings import GameSettings, LearnerSettings, Named, RunSettings
from amdp.experiments.spec import Planned, Role
from amdp.experiments.tuning import Tuning
from amdp.game.regret import log_checkpoints
from amdp.game.rounds import Timing

EPISODES = 1000
VERSIONS = {"versions": {"amdp": "0.1.0", "numpy": "2.4.6"}, "python": "3.11.7", "git": "abc"}


def curve(
    seed: int,
    scale: float = 2.0,
    power: float = 0.5,
    noise: float = 0.1,
    gap: float | None = 0.0,
    bound: float | None = 40.0,
    pace: float = 1e-3,
    trials: int = 9,
    rounds: int = EPISODES,
) -> Curve:
    """Regret `scale (1 + noise z) k^power`, a comparator proved up to `gap` a round, and `pace` seconds a round."""
    k = log_checkpoints(rounds, 40)
    luck = float(np.random.default_rng(seed).normal())
    best = 0.3 * k + seed
    paid = best + scale * (1.0 + noise * luck) * k**power
    parts = dict(zip(Timing._fields, (0.5, 0.3, 0.2, 0.1), strict=True))
    seconds = {part: (1.0 + share * pace * (1.0 + 0.1 * luck) * k).tolist() for part, share in parts.items()}
    return Curve(
        k.tolist(),
        paid.tolist(),
        best.tolist(),
        [None if gap is None else float(value) for value in best - (gap or 0.0) * k],
        [0.0] * len(k),
        (trials * k).tolist(),
        ((trials + 1) * k).tolist(),
        [0] * len(k),
        [None if bound is None else float(bound * value**power) for value in k],
        seconds,
        seconds,
    )


def planned(game: str, learner: str, seed: int, role: Role = Role.THEORY, multiplier: float = 1.0) -> Planned:
    played = GameSettings(Named("tiny"), Named("bernoulli", {"game": game}), EPISODES)
    return Planned(RunSettings(played, LearnerSettings(learner, multiplier=multiplier), seed, 40), game, learner, role)


def finished(one: Planned, **shape: Any) -> Record:
    return Record(one.settings, curve(one.settings.seed, **shape), None, {"rate": 0.1}, VERSIONS)


def broken_off(one: Planned, message: str = "nothing to eat") -> Record:
    return Record(one.settings, None, Failure("Unsolved", message), {}, VERSIONS)


@dataclass
class Asked:
    """A spec of runs that are listed one by one."""

    plans: list[Planned]
    later: list[Planned] | None = field(default_factory=list)
    skipped: list[tuple[str, str, str]] = field(default_factory=list)
    title: str = "Made by hand"
    text: str = 'title = "Made by hand"\n'

    def plan(self, finished: Callable[[str], float | None]) -> "Listed":
        return Listed(self.plans, self.later)


@dataclass
class Listed:
    """A plan whose tuning is not shown: only its runs are."""

    plans: list[Planned]
    later: list[Planned] | None
    tunings: dict[tuple[str, str], Tuning] = field(default_factory=dict)

    @property
    def waiting(self) -> bool:
        return self.later is None

    def __iter__(self) -> Iterator[list[Planned]]:
        yield self.plans
        yield self.later or []


@dataclass
class Kept:
    """A store in memory."""

    kept: list[Record]
    broken: dict[Path, str] = field(default_factory=dict)
    folder: Path = Path("/nowhere")
    reads: int = 0

    def records(self) -> Iterator[Record]:
        self.reads += 1
        yield from self.kept
