"""A learner in a game: its arena and parameters, what theory promises it, and its play: `amdp.play`, `amdp.rounds`."""

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from amdp import registry
from amdp.algorithms.base import Learner
from amdp.algorithms.doubling import UnknownDelay
from amdp.algorithms.estimators.feedback import Feedback
from amdp.algorithms.ftpl.adaptive import AdaptiveFtpl
from amdp.algorithms.ftpl.perturbed_leader import Ftpl
from amdp.algorithms.hedge import Hedge, count_policies
from amdp.algorithms.named import from_task, require_read
from amdp.algorithms.rates import AdaptiveRate
from amdp.algorithms.task import SOLVERS, EpochSetup, WatchedTask
from amdp.arrays import Floats, require_positive, require_whole
from amdp.errors import InvalidInput
from amdp.game.arenas import Arena, Continuing, Episodic, Stepwise, WithinBudgets
from amdp.game.blocks import Block
from amdp.game.delays import recorded
from amdp.game.dynamic_regret import INTERVALS, DynamicRegret, against_sequences, even_edges
from amdp.game.games import FEEDBACK_NAMES, Game
from amdp.game.loop import ArenaGame, play_blocks, play_rounds
from amdp.game.regret import Measurement, Regret, log_checkpoints, measure
from amdp.game.rounds import Round
from amdp.game.seeding import Streams
from amdp.model.domains import Domain, StationaryPolicies
from amdp.notebook import NotebookBar, in_notebook
from amdp.oracles.base import GROUP as ORACLES
from amdp.oracles.base import Planner, PlanningOracle, oracle
from amdp.oracles.projection.base import GROUP as PROJECTIONS
from amdp.oracles.projection.base import ProjectionOracle, Projector, projection

if TYPE_CHECKING:
    from matplotlib.axes import Axes

CHECKPOINTS = 50
Player = str | Learner[Any] | EpochSetup  # a name of `amdp learners`, or a learner


@dataclass(frozen=True, eq=False, repr=False)
class Match:
    """A game and the learner that plays it, ready for the loop."""

    game: Game
    played: ArenaGame  # the game in the arena that the learner needs
    learner: Learner[Any]
    epochs: EpochSetup | None  # of a learner whose rounds are epochs of a stream
    task: WatchedTask | None = None  # what a learner by name was tuned for; None: the learner was given itself

    def __repr__(self) -> str:
        return f"Match({type(self.learner).__name__} in {self.game})"

    @property
    def domain(self) -> Domain:
        """The policies to choose from, over what the learner knows of the dynamics."""
        return self.game.domain if self.task is None else self.task.domain

    @property
    def rounds(self) -> int:
        """How many rounds are played: episodes, epochs or steps."""
        return self.played.rounds

    @property
    def epoch(self) -> int | None:
        """The steps of a round, where rounds are epochs of a stream."""
        return self.epochs.length if self.epochs else None

    def require_used(self, options: Iterable[str] = SOLVERS) -> Self:
        """The match itself; refused if a solver among `options` was chosen that the learner does not use."""
        if self.task is not None:
            require_read(self.task, options)
        return self

    def play(self, seed: int) -> Iterator[Round]:
        """Play all rounds, one by one; the same seed gives the same rounds."""
        return play_rounds(self.played, self.learner, self.domain, Streams.from_seed(seed))

    def blocks(self, seed: int, tick: Callable[[int], None] | None = None) -> Iterator[Block]:
        """The same rounds block by block, in machine code if the learner has a compiled form: see `play_blocks`."""
        return play_blocks(self.played, self.learner, self.domain, Streams.from_seed(seed), tick=tick)

    def measure(
        self, played: Iterable[Round] | Iterable[Block], checkpoints: Sequence[int] | NDArray[np.int64] | None = None
    ) -> Regret:
        """The regret at the checkpoints, or after every round, against the game's comparator."""
        return measure(self.played, played, self.game.comparator, checkpoints)

    def measurement(self, checkpoints: Sequence[int] | NDArray[np.int64]) -> Measurement:
        """The same, block by block."""
        return Measurement(self.played, self.game.comparator, checkpoints)

    def bound(self, rounds: int) -> Any:
        """The bound on the expected regret after so many rounds, with a `total`; None where nothing is proved."""
        if self.epochs:  # it is stated for the whole stream
            return self.epochs.bound if rounds * self.epochs.length >= self.domain.shape[0] else None
        state = getattr(self.learner, "bound", None)
        if not callable(state):
            return None
        delayed = self.game.delays
        waited = () if delayed is None else (recorded(delayed.values[:rounds]).total_within,)
        return state(self.domain, rounds, *waited)

    def unproved(self, rounds: int) -> str:
        """Why no bound is stated after so many rounds."""
        if not self.epochs:
            return "no explicit bound is known for this learner in this game"
        return self.epochs.unproved or f"stated for the whole stream, not for {rounds} of its epochs"

    @property
    def settings(self) -> dict[str, Any]:
        """The settings of a learner by name with their values, theory's where none were given; see `amdp.settings`."""
        return {} if self.task is None else self.task.settings

    @property
    def tuned_without_delay(self) -> bool:
        """Whether feedback is delayed, and the learner by name has theory's rate for feedback that comes at once."""
        if self.task is None or isinstance(self.learner, UnknownDelay):  # which guesses the delay
            return False
        return self.game.total_delay > 0 and self.task.has_rate_without_delay

    @property
    def parameters(self) -> dict[str, float | int]:
        """Learning rate (the first one if it falls), limit of trials, and exploration, where the learner has them."""
        perturbation, estimator = (getattr(self.learner, part, None) for part in ("perturbation", "estimator"))
        rate = getattr(perturbation or self.learner, "rate", None)
        values = {
            "rate": None if isinstance(rate, AdaptiveRate) else getattr(rate, "value", rate),
            "limit": getattr(estimator or self.learner, "limit", None),
            "gamma": getattr(estimator, "gamma", None),
            "exploration": getattr(self.learner, "exploration", None) or None,
        }
        return {name: value for name, value in values.items() if value is not None}

    @property
    def solvers(self) -> dict[str, str]:
        """The names of the oracle or projection that the learner works with."""
        parts = {"oracle": ORACLES, "projection": PROJECTIONS}
        chosen = {part: getattr(self.learner, part, None) for part in parts}
        return {part: _solver_name(parts[part], solver) for part, solver in chosen.items() if solver is not None}

    @property
    def used(self) -> dict[str, Any]:
        """What the game and the tuning made of the settings, for the record of a run."""
        facts = {
            "shape": list(self.domain.shape),
            "total_delay": self.game.total_delay,
            "rounds": self.rounds,
            "told": FEEDBACK_NAMES.get(self.played.feedback, self.played.feedback.__name__),
        }
        marks = {"tuned_without_delay": True} if self.tuned_without_delay else {}
        return facts | ({"epoch": self.epoch} if self.epoch else {}) | self.parameters | self.solvers | marks


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Run(Regret):
    """One learner's play of a game, measured at checkpoints; all arrays have one entry `[c]` for each of them."""

    match: Match
    learner: str
    seed: int

    def __repr__(self) -> str:
        bound = "" if self.bound is None else f", bound {self.bound:.6g}"
        rounds, calls = self.rounds[-1], self.oracle_calls[-1]
        return f"Run({self.learner}, {rounds} rounds, regret {self.regret[-1]:.6g}{bound}, {calls} oracle calls)"

    @property
    def regret(self) -> Floats:
        """The learner's loss minus that of the best policy in hindsight that was found."""
        return self.low

    @property
    def regret_high(self) -> Floats:
        """The regret is proved not to be above this; it is `regret` where the comparator is optimal."""
        return self.high

    @property
    def loss(self) -> Floats:
        """The learner's loss so far: expected over the policies it drew; in a stream the losses that it met."""
        return self.paid

    @property
    def seconds(self) -> float:
        """What the learner took, of the clock; the arena and the measuring are not in it."""
        return float(self.learner_seconds[-1])

    @property
    def spending(self) -> dict[str, Floats]:
        """The expected use of each budget by name, summed over the rounds `[c]`; limits are those of one round."""
        budgets = self.match.game.world.budgets
        return {} if budgets is None else dict(zip(budgets.names, self.used.T, strict=True))

    @property
    def bound(self) -> float | None:
        """What theory allows as expected regret at the last checkpoint; None where nothing explicit is proved."""
        bound = self.match.bound(int(self.rounds[-1]))
        return None if bound is None else float(bound.total)

    @property
    def parameters(self) -> dict[str, float | int]:
        """Learning rate, trials and exploration that were used."""
        return self.match.parameters

    def dynamic(self, edges: int | Sequence[int] = INTERVALS) -> DynamicRegret:
        """The regret against sequences of policies, in episodes: `.against[m]` is that with at most `m` changes.

        A comparator may change its policy at edges only: rounds, from 0 to the last one, or so many equal intervals.
        """
        played = self.match.played
        if self.rounds[-1] != played.rounds:
            raise InvalidInput(f"measured after {self.rounds[-1]} rounds; the comparators play all {played.rounds}")
        chosen = even_edges(played.rounds, edges) if isinstance(edges, int) else edges
        return against_sequences(played, float(self.paid[-1]), chosen)

    def frame(self) -> Any:
        """The curve as a `pandas.DataFrame`, a row for each checkpoint."""
        registry.require("a data frame", ("pandas",))
        import pandas as pd  # type: ignore[import-untyped]

        columns = ("rounds", "regret", "regret_high", "loss", "best", "oracle_calls", "trials")
        table = {name: getattr(self, name) for name in columns} | {"seconds": self.learner_seconds}
        return pd.DataFrame({"learner": self.learner, "seed": self.seed} | table)

    def plot(self, axes: "Axes | None" = None, **style: Any) -> "Axes":
        """Draw the regret over the rounds; with `axes` into a figure that is there already."""
        registry.require("a plot", ("matplotlib",))
        if axes is None:
            import matplotlib.pyplot as plt

            axes = plt.figure().add_subplot()
            axes.set(xlabel="rounds", ylabel="regret", title=self.match.game.world.name)
        (line,) = axes.plot(self.rounds, self.regret, **({"label": self.learner} | style))
        if (self.regret_high > self.regret).any():
            axes.fill_between(self.rounds, self.regret, self.regret_high, alpha=0.2, color=line.get_color())
        axes.legend()
        return axes


def enter(
    game: Game,
    player: Player,
    *,
    oracle: str | PlanningOracle | None = None,
    projection: str | ProjectionOracle | None = None,
    multiplier: float = 1.0,
    **settings: Any,
) -> Match:
    """The match of a learner in a game; a name is tuned for the game, as theory says, times `multiplier`.

    Solvers that the learner does not use are refused by `Match.require_used` only: a spec shares them among learners.
    """
    if not isinstance(game, Game):
        raise InvalidInput(f"game is {type(game).__name__}; give amdp.Game(world, ...)")
    if not isinstance(player, str | EpochSetup) and not callable(getattr(player, "start", None)):
        raise InvalidInput(f"learner is {type(player).__name__}; give a name of `amdp learners`, or a learner")
    require_positive("multiplier", multiplier)
    setup, task = _learner(game, player, oracle, projection, multiplier, settings)
    learner, epochs = (setup.learner, setup) if isinstance(setup, EpochSetup) else (setup, None)
    name = player if isinstance(player, str) else type(learner).__name__
    played = ArenaGame(_arena(game, setup), game.losses, game.delays, _feedback(game, name, learner))
    match = Match(game, played, learner, epochs, task)
    _require_ready(match)
    return match


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
        Scales the learning rate, theory's or one that is set, and nothing else.
    checkpoints
        About how many, evenly spaced in the logarithm of the rounds, or the rounds themselves.
    progress
        Whether to show a progress bar; None: in a terminal and in a notebook.
    settings
        Further settings of the learner, such as `rate` or `gamma`: `amdp.settings` has those of a learner in a game
        with their values, `amdp learners NAME` explains them.
    """
    match = enter(game, learner, oracle=oracle, projection=projection, multiplier=multiplier, **settings).require_used()
    if isinstance(checkpoints, int | np.integer):
        require_whole("checkpoints", checkpoints, 2)
        checkpoints = log_checkpoints(match.rounds, int(checkpoints))
    name = learner if isinstance(learner, str) else type(match.learner).__name__
    played = match.blocks(seed)
    shown = (sys.stderr.isatty() or in_notebook()) if progress is None else progress
    regret = match.measure(_with_bar(played, match.rounds, name) if shown else played, checkpoints)
    return Run(**vars(regret), match=match, learner=name, seed=seed)


def settings(game: Game, learner: str, *, multiplier: float = 1.0, **given: Any) -> dict[str, Any]:
    """The settings of a learner by name, with the values that it plays the game with: theory's where none are given.

    The multiplier is in the rate. None stands for what has no value before the game, such as a limit that grows.
    """
    return enter(game, learner, multiplier=multiplier, **given).settings


def rounds(game: Game, learner: Player, seed: int = 1, **settings: Any) -> Iterator[Round]:
    """Play a game one round at a time: policy, trajectory, loss and timing of each; settings as for `amdp.play`."""
    return enter(game, learner, **settings).require_used().play(seed)


def _with_bar(played: Iterator[Block], total: int, name: str) -> Iterator[Block]:
    return (_with_notebook_bar if in_notebook() else _with_terminal_bar)(played, total, name)


def _with_notebook_bar(played: Iterator[Block], total: int, name: str) -> Iterator[Block]:
    done = 0
    with NotebookBar() as bar:
        for block in played:
            yield block
            done += len(block)
            bar.show(done, total, f"{name}: {done} of {total} rounds")


def _with_terminal_bar(played: Iterator[Block], total: int, name: str) -> Iterator[Block]:
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(name, total=total)
        for block in played:
            yield block
            bar.advance(task, len(block))


def _learner(
    game: Game,
    player: Player,
    planner: str | PlanningOracle | None,
    projector: str | ProjectionOracle | None,
    multiplier: float,
    settings: dict[str, Any],
) -> tuple[Learner[Any] | EpochSetup, WatchedTask | None]:
    if not isinstance(player, str):
        if planner is not None or projector is not None or multiplier != 1.0 or settings:
            raise InvalidInput(f"{type(player).__name__} has its own parameters; settings are for learners by name")
        return player, None
    planner = oracle(planner) if isinstance(planner, str) else planner
    projector = projection(projector) if isinstance(projector, str) else projector
    task = WatchedTask(game.domain_of(player), game.rounds, game.total_delay, planner, projector, multiplier, player)
    return from_task(task, **settings), task


def _solver_name(group: str, solver: Any) -> str:
    kind: Any = type(solver)
    return solver if isinstance(solver, str) else registry.name_of(group, kind)


def _arena(game: Game, setup: Learner[Any] | EpochSetup) -> Arena:
    if isinstance(setup, EpochSetup):
        return Continuing(setup.entry, setup.length)
    if game.is_stream:
        if isinstance(setup, Ftpl | AdaptiveFtpl):
            raise InvalidInput("ftpl plays episodes: use Game(..., rounds=N), or ftpl-infinite for one stream of steps")
        return Stepwise(game.world.kernel, game.world.initial)
    if game.world.budgets is not None:
        return WithinBudgets(game.world.kernel, game.world.initial, budgets=game.world.budgets)
    return Episodic(game.world.kernel, game.world.initial)


def _feedback(game: Game, name: str, learner: Learner[Any]) -> type[Feedback]:
    kind: type[Feedback] = learner.feedback
    word = FEEDBACK_NAMES.get(kind, kind.__name__)
    if game.feedback not in (None, word):
        raise InvalidInput(f"{name} understands {word} feedback; the game tells {game.feedback}")
    return kind


def _require_ready(match: Match) -> None:
    """Refuse at once what would be refused when the game begins, or at its end."""
    oracles = (
        ("oracle", getattr(match.learner, "oracle", None), match.domain),
        ("comparator", match.game.comparator, match.played.arena.domain),
    )
    for part, chosen, domain in oracles:
        planner = oracle(chosen) if isinstance(chosen, str) else chosen
        if planner is not None:
            Planner.require_fit(planner, domain, part)
    chosen = getattr(match.learner, "projection", None)
    projector = projection(chosen) if isinstance(chosen, str) else chosen
    if projector is not None:
        remedy = "; give episodes instead of steps" if isinstance(match.domain, StationaryPolicies) else ""
        Projector.require_fit(projector, match.domain, remedy=remedy)
    if isinstance(match.learner, Hedge) and count_policies(match.domain) > match.learner.limit:
        count = f"{float(count_policies(match.domain)):.3g}"
        raise InvalidInput(f"Hedge would list {count} policies, more than its limit of {match.learner.limit}")
