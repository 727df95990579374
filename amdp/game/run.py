"""Play a game and measure it: what `amdp.play` and `amdp.rounds` do."""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from amdp import registry
from amdp.arrays import Floats, require_whole
from amdp.game.games import Game
from amdp.game.match import Match, Player, enter
from amdp.game.regret import Regret, log_checkpoints
from amdp.game.rounds import Round
from amdp.oracles.base import PlanningOracle
from amdp.oracles.projection.base import ProjectionOracle

if TYPE_CHECKING:
    from matplotlib.axes import Axes

CHECKPOINTS = 50


@dataclass(frozen=True, eq=False, repr=False)
class Run:
    """One learner's play of a game, measured at checkpoints; all arrays have one entry `[c]` for each of them."""

    match: Match
    measured: Regret
    learner: str
    seed: int

    def __repr__(self) -> str:
        bound = "" if self.bound is None else f", bound {self.bound:.6g}"
        rounds, calls = self.rounds[-1], self.oracle_calls[-1]
        return f"Run({self.learner}, {rounds} rounds, regret {self.regret[-1]:.6g}{bound}, {calls} oracle calls)"

    @property
    def rounds(self) -> NDArray[np.int64]:
        """How many rounds were played by each checkpoint: episodes, epochs or steps."""
        return self.measured.rounds

    @property
    def regret(self) -> Floats:
        """The learner's loss minus that of the best policy in hindsight that was found."""
        return self.measured.low

    @property
    def regret_high(self) -> Floats:
        """The regret is proved not to be above this; it is `regret` where the comparator is optimal."""
        return self.measured.high

    @property
    def loss(self) -> Floats:
        """The learner's loss so far: expected over the policies it drew; in a stream the losses that it met."""
        return self.measured.paid

    @property
    def best(self) -> Floats:
        """The loss so far of the best policy in hindsight."""
        return self.measured.best

    @property
    def oracle_calls(self) -> NDArray[np.int64]:
        """How many problems were put to the planning oracle so far."""
        return self.measured.oracle_calls

    @property
    def trials(self) -> NDArray[np.int64]:
        """How many policies were sampled for loss estimates so far."""
        return self.measured.trials

    @property
    def seconds(self) -> float:
        """What the learner took, of the clock; the arena and the measuring are not in it."""
        return float(self.measured.seconds[-1])

    @property
    def bound(self) -> float | None:
        """What theory allows as expected regret at the last checkpoint; None where nothing explicit is proved."""
        bound = self.match.bound(int(self.rounds[-1]))
        return None if bound is None else float(bound.total)

    @property
    def parameters(self) -> dict[str, float | int]:
        """Learning rate, trials and exploration that were used."""
        return self.match.parameters

    def frame(self) -> Any:
        """The curve as a `pandas.DataFrame`, a row for each checkpoint."""
        registry.require("a data frame", ("pandas",))
        import pandas as pd  # type: ignore[import-untyped]

        columns = ("rounds", "regret", "regret_high", "loss", "best", "oracle_calls", "trials")
        table = {name: getattr(self, name) for name in columns} | {"seconds": self.measured.seconds}
        return pd.DataFrame({"learner": self.learner, "seed": self.seed} | table)

    def plot(self, axes: "Axes | None" = None, **style: Any) -> "Axes":
        """Draw the regret over the rounds; with `axes` into a figure that is there already."""
        registry.require("a plot", ("matplotlib",))
        if axes is None:
            import matplotlib.pyplot as plt

            axes = plt.figure().add_subplot()
            axes.set(xlabel="rounds", ylabel="regret", title=self.match.world.name)
        (line,) = axes.plot(self.rounds, self.regret, **({"label": self.learner} | style))
        if (self.regret_high > self.regret).any():
            axes.fill_between(self.rounds, self.regret, self.regret_high, alpha=0.2, color=line.get_color())
        axes.legend()
        return axes


def play(
    game: Game,
    learner: Player,
    seed: int = 1,
    *,
    oracle: str | PlanningOracle | None = None,
    projection: str | ProjectionOracle | None = None,
    multiplier: float = 1.0,
    checkpoints: int | Sequence[int] | NDArray[np.int64] = CHECKPOINTS,
    progress: bool | None = None,
    **settings: Any,
) -> Run:
    """Play all rounds of a game and measure the regret.

    Parameters
    ----------
    game
        See `amdp.Game`.
    learner
        A name of `amdp learners`, tuned for the game as its paper says, or a learner of your own.
    seed
        Of the learner and of the transitions: the same seed, the same run.
    oracle, projection
        The solvers of a learner by name; by default the fastest exact ones.
    multiplier
        Scales the learning rate that theory gives.
    checkpoints
        About how many, evenly spaced in the logarithm of the rounds, or the rounds themselves.
    progress
        Whether to show a progress bar; None: in a terminal.
    settings
        Further settings of the learner: `amdp learners` lists them.
    """
    match = enter(game, learner, oracle=oracle, projection=projection, multiplier=multiplier, **settings).require_used()
    at = _checkpoints(checkpoints, match.rounds)
    name = learner if isinstance(learner, str) else type(match.learner).__name__
    played = match.play(seed)
    shown = sys.stderr.isatty() if progress is None else progress
    return Run(match, match.measure(_with_bar(played, match.rounds, name) if shown else played, at), name, seed)


def rounds(
    game: Game,
    learner: Player,
    seed: int = 1,
    *,
    oracle: str | PlanningOracle | None = None,
    projection: str | ProjectionOracle | None = None,
    multiplier: float = 1.0,
    **settings: Any,
) -> Iterator[Round]:
    """Play a game one round at a time: policy, trajectory, loss and timing of each; arguments as for `amdp.play`."""
    match = enter(game, learner, oracle=oracle, projection=projection, multiplier=multiplier, **settings)
    return match.require_used().play(seed)


def _checkpoints(wanted: int | Sequence[int] | NDArray[np.int64], rounds: int) -> Sequence[int] | NDArray[np.int64]:
    if not isinstance(wanted, int | np.integer):
        return wanted
    require_whole("checkpoints", wanted, 2)
    return log_checkpoints(rounds, int(wanted))


def _with_bar(played: Iterator[Round], total: int, name: str) -> Iterator[Round]:
    from rich.console import Console
    from rich.progress import track

    return iter(track(played, name, total=total, console=Console(stderr=True), transient=True))
