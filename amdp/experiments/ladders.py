"""Games that differ in one size: what regret and seconds grow like, each rung tuned for itself."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from amdp.arrays import Floats
from amdp.experiments.spec import Spec

DECADE = 10.0  # sizes below the last by more than this factor are not fitted
CHECKPOINTS = 2  # only the last one counts
TUNE = {"multipliers": [1, 4, 16, 64, 256], "seeds": 2, "rounds": 10_000}  # of rates, tried in each game
UNKNOWN = {"unknown": True, "radius": "jin-2020", "radius_scale": 0.1}  # of games: the learner must find out


@dataclass(frozen=True)
class Ladder:
    """One learner in a game whose size `along` takes the values `rungs`.

    `game` and `learner` are tables of a spec. `along` is a key of the game, or of its instance: `instance.n_states`.
    """

    name: str
    along: str
    rungs: tuple[int, ...]
    game: Mapping[str, Any] = field(repr=False)
    learner: Mapping[str, Any] = field(repr=False)
    proved: float | None = None  # the exponent of the whole bound over the rungs
    heading: str = ""  # of the panel of a figure in which it is drawn; the size that grows if it is empty

    def at(self, rung: int) -> dict[str, Any]:
        """The game of a rung, as a table of a spec."""
        game = {key: dict(value) if isinstance(value, Mapping) else value for key, value in self.game.items()}
        *outer, key = self.along.split(".")
        inner = game
        for part in outer:
            inner = inner[part]
        # A delay is a text; its size is the number in it.
        inner[key] = f"fixed:{rung}" if key == "delay" else rung
        return game

    @property
    def size(self) -> str:
        """The name of the size that grows."""
        return self.along.removeprefix("instance.")

    def label(self, rung: int) -> str:
        """The label of the game of a rung; ladders that share a game share its label."""
        return _words(self.at(rung))

    @property
    def player(self) -> str:
        """The label of the learner."""
        return _words(self.learner)


def spec_of(title: str, ladders: Sequence[Ladder], seeds: int, tuned: bool = False) -> Spec:
    """All rungs of all ladders as one spec, with uniform play beside them; `tuned`: also at the best rate of a grid."""
    learners = {ladder.player: ladder.learner for ladder in ladders}
    games = {ladder.label(rung): ladder.at(rung) for ladder in ladders for rung in ladder.rungs}
    players: dict[str, dict[str, None]] = {label: {} for label in games}  # in the order of the ladders
    for ladder in ladders:
        for rung in ladder.rungs:
            players[ladder.label(rung)][ladder.player] = None
    return Spec.from_dict(
        {
            "title": title,
            "seeds": seeds,
            "checkpoints": CHECKPOINTS,
            "learners": [{"label": label, **learner} for label, learner in learners.items()],
            "games": [{"label": label, "learners": list(players[label]), **game} for label, game in games.items()],
            **({"tune": TUNE} if tuned else {}),
        }
    )


def of_last_decade(sizes: Floats) -> NDArray[np.bool_]:
    """Which of the growing sizes are above a tenth of the last one: those that an exponent is fitted to."""
    late: NDArray[np.bool_] = sizes * DECADE >= sizes[-1]
    return late


def slope(x: Floats, y: Floats) -> float:
    """The exponent of a power law through the points; NaN if they are too few or not positive."""
    if len(x) < 2 or not (y > 0.0).all():
        return float("nan")
    return float(np.polyfit(np.log(x), np.log(y), 1)[0])


def _words(table: Mapping[str, Any]) -> str:
    """What a table says, on one line."""
    return ", ".join(
        str(value) if key == "name" else f"{key} ({_words(value)})" if isinstance(value, Mapping) else f"{key} {value}"
        for key, value in table.items()
    )
