"""A game as a researcher describes it: a world, an adversary, and the rules. Everything but the learner.

Parts are given by name, as in a spec, or as objects:

    Game(amdp.instances.river_swim(n_states=6), losses="bernoulli", rounds=2000, delay="fixed:50", unknown=True)
    Game("tiny", losses=array)               # losses [k, h, s, a] of your own
    Game("tiny", losses=frame)               # recorded ones: columns round, step, state, action, loss
    Game("waiting-ring", steps=2000)         # infinite horizon: one stream of steps
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from os import PathLike, fspath
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from amdp import losses as adversaries
from amdp.algorithms.estimators.feedback import Aggregate, Bandit, Feedback, FullInformation
from amdp.algorithms.settings import OWN_SETS
from amdp.arrays import require_positive, require_whole
from amdp.errors import InvalidInput
from amdp.game import delays
from amdp.game.delays import Delays
from amdp.instances import EnteredInstance, Instance, build, load
from amdp.losses import EnteredLosses, FixedLosses, LossSequence
from amdp.model.confidence import BernsteinBox, Radius
from amdp.model.domains import Domain, MarkovPolicies
from amdp.model.dynamics import Dynamics
from amdp.model.l1_ball import L1Ball
from amdp.model.segments import Shape
from amdp.oracles.base import PlanningOracle, oracle
from amdp.text import suggestion

WORLD_FILES = (".npz", ".json")
LOSS_FILES = (".csv", ".parquet", ".npz")
ROUNDS = 1000  # of a game whose length nobody gives
MOST_ROUNDS = 2**62
OWN, PAPER = "own", "paper"  # confidence sets of each learner's own paper, and of the FTPL paper
RADII: dict[str, Callable[..., Radius]] = {
    PAPER: Radius.paper,
    "jin-2020": Radius.jin_2020,
    "luo-2021": Radius.luo_2021,
}
L1 = "l1"  # instead of boxes: L1 balls, as in UC-O-REPS
FEEDBACK_NAMES: dict[type[Feedback], str] = {Bandit: "bandit", FullInformation: "full", Aggregate: "aggregate"}

Losses = str | PathLike[str] | Mapping[str, Any] | LossSequence | ArrayLike
Delay = str | Delays | Sequence[int] | NDArray[np.int64]


class Game:
    """A world, an adversary's losses, when and how they are revealed, and what the learner knows.

    Parameters
    ----------
    world
        An `Instance`, the name of a built-in world, `"gym:FrozenLake-v1"`, or a `.npz` or `.json` file. Where it has
        budgets (`Instance.with_budgets`), learners have to keep them, and the best policy in hindsight does.
    losses
        The name of an adversary (`"bernoulli"`), a name with settings (`{"name": "swap", "first": 100}`), a `.csv`,
        `.parquet` or `.npz` file, a `LossSequence`, an array `[k, h, s, a]`, with `steps` also `[t, s, a]`, or a data
        frame with the columns round, step, state, action and loss. For a world behind an entrance (`with_start`) they
        are losses of the world inside.
    rounds
        The number of episodes; by default as many as the given losses have, or 1000.
    steps
        Instead of `rounds`: the steps of one stream (infinite horizon, stationary policies).
    seed
        Of the adversary and of random delays. The learner and the transitions have the seed of `amdp.play`.
    delay
        After how many rounds the losses of an episode are revealed: `"fixed:50"`, `"uniform:0:100"`,
        `"geometric:20"`, ..., or a number for each round.
    feedback
        `"bandit"` (the losses met), `"full"` (all losses), `"aggregate"` (the sum of the losses met), or None: what
        each learner is made for.
    unknown
        Whether the learner must estimate the transitions, in confidence sets of the given `radius`: `"paper"`,
        `"jin-2020"` or `"luo-2021"` of boxes, or `"l1"` of L1 balls, times `radius_scale`. By default, `"own"`, each
        learner has those of its own paper; a learner that is no name has those of the FTPL paper.
    comparator
        The oracle that finds the best policy in hindsight; by default an exact one: `dp`, `lagrangian` within budgets,
        or `auto` in a stream.
    """

    def __init__(
        self,
        world: Instance | str | PathLike[str],
        losses: Losses = "bernoulli",
        rounds: int | None = None,
        *,
        steps: int | None = None,
        seed: int = 1,
        delay: Delay = "none",
        feedback: str | None = None,
        unknown: bool = False,
        radius: str = OWN,
        radius_scale: float = 1.0,
        comparator: str | PlanningOracle | None = None,
    ) -> None:
        require_whole("seed", seed, 0, MOST_ROUNDS)
        require_feedback(feedback)
        if not isinstance(unknown, bool):
            raise InvalidInput(f"{unknown!r}; give True or False", "unknown")
        require_radius(radius, radius_scale)
        if not unknown:
            refuse_radius(radius, radius_scale)
        self.is_stream = steps is not None
        self.world = find_world(world, steps)
        table_shape = (1, *self.world.shape[1:]) if self.is_stream else self.world.shape
        recorded_shape = chosen_shape(self.world, stream=self.is_stream)
        if isinstance(losses, str | PathLike) and Path(losses).suffix in LOSS_FILES:
            losses = adversaries.load(fspath(losses), recorded_shape)
        elif adversaries.is_table(losses):
            losses = adversaries.from_columns(losses, recorded_shape)
        length = _length(losses, rounds, steps)
        self.losses = find_losses(losses, self.world, length, seed, stream=self.is_stream)
        self.delays = find_delays(delay, length, seed, stream=self.is_stream)
        self._told = partial(
            learner_domain, self.world, length, stream=self.is_stream, unknown=unknown, radius_scale=radius_scale
        )
        self.radius = radius
        self.domain = self._told(radius=PAPER if radius == OWN else radius)
        self.feedback = feedback
        if self.losses.shape != table_shape:
            raise InvalidInput(
                f"losses have shape {self.losses.shape}; a round of this game has {table_shape}: [h, s, a]"
            )
        self.comparator = oracle(comparator) if isinstance(comparator, str) else comparator

    def __repr__(self) -> str:
        length = f"{self.rounds} {'steps' if self.is_stream else 'episodes'}"
        known = "known" if self.domain.dynamics is self.world.kernel else "unknown"
        return f"Game({self.world.name}, {length}, {known} transitions, total delay {self.total_delay})"

    def domain_of(self, learner: str) -> Domain:
        """What a learner by name knows: over confidence sets of its own paper, unless the game says which."""
        radius = radius_of(self.radius, learner)
        is_other = self.radius == OWN and radius != PAPER and self.domain.dynamics is not self.world.kernel
        return self._told(radius=radius) if is_other else self.domain

    @property
    def rounds(self) -> int:
        """How many episodes are played, or steps of a stream."""
        return len(self.losses)

    @property
    def shape(self) -> Shape:
        """Steps, states, actions."""
        return self.world.shape

    @property
    def total_delay(self) -> int:
        """The rounds spent waiting for feedback within the game: a delay beyond its end does not add to the bounds."""
        return self.delays.total_within if self.delays else 0


def find_world(world: Instance | str | PathLike[str], steps: int | None = None) -> Instance:
    """The world itself, that of a name, or that of a file; in a stream of `steps` steps."""
    if isinstance(world, str | PathLike):
        name, settings = fspath(world), {} if steps is None else {"n_steps": steps}
        world = load(name) if Path(name).suffix in WORLD_FILES else build(name, **settings)
    if not isinstance(world, Instance):
        raise InvalidInput(
            f"world is {type(world).__name__}; give a name of amdp.instances, a file, or an amdp.instances.Instance"
        )
    if steps is not None and world.shape[0] != steps:
        raise InvalidInput(f"the world has {world.shape[0]} steps, the stream {steps}: build it with n_steps={steps}")
    return world


def chosen_shape(world: Instance, *, stream: bool) -> Shape:
    """The shape of the tables that an adversary chooses: those of the world inside, where there is an entrance."""
    if stream:
        return 1, *world.shape[1:]
    return world.inside.shape if isinstance(world, EnteredInstance) else world.shape


def find_losses(losses: Losses, world: Instance, length: int, seed: int, *, stream: bool) -> LossSequence:
    """The first `length` rounds of losses: a table `[h, s, a]` an episode, or `[1, s, a]` a step of a stream."""
    if not isinstance(world, EnteredInstance) or stream:
        return _chosen_losses(losses, world, length, seed, stream=stream)
    chosen = _chosen_losses(losses, world.inside, length, seed, stream=False)
    return EnteredLosses.of(chosen) if chosen.shape == world.inside.shape else chosen


def _chosen_losses(losses: Losses, world: Instance, length: int, seed: int, *, stream: bool) -> LossSequence:
    if isinstance(losses, str | Mapping):
        settings = {"name": losses} if isinstance(losses, str) else dict(losses)
        if "name" not in settings:
            raise InvalidInput(f"losses = {settings}; the name of an adversary is missing: {{'name': 'bernoulli'}}")
        shape = chosen_shape(world, stream=stream)
        return adversaries.named(settings.pop("name"), shape, length, seed, world.costs, **settings)
    if not isinstance(losses, LossSequence):
        tables = np.asarray(losses)
        losses = FixedLosses(tables[:, None] if stream and tables.ndim == 3 else tables)
    return shortened(losses, length, "the sequence of losses")


def find_delays(delay: Delay, length: int, seed: int, *, stream: bool) -> Delays | None:
    """The delay of each episode; None without any: nothing then grows with the number of rounds."""
    if isinstance(delay, str) and delay.strip() == "none":
        delays.require_rounds(length)
        return None
    if isinstance(delay, str):
        values = delays.parse(delay, length, np.random.default_rng(seed))
    else:
        values = delay if isinstance(delay, Delays) else delays.recorded(np.asarray(delay))
    if len(values) != length:
        raise InvalidInput(f"{len(values)} delays for {length} rounds; give one for each")
    if stream and values.total:
        raise InvalidInput(f"{delay!r}; a stream of steps is played without delays", "delay")
    return None if stream else values


def learner_domain(
    world: Instance, length: int, *, stream: bool, unknown: bool, radius: str = PAPER, radius_scale: float = 1.0
) -> Domain:
    """What the learner knows: the policies to choose from, over the kernel or a confidence set."""
    if stream:
        if unknown:
            raise InvalidInput("true; a stream of steps is played with known transitions", "unknown")
        return world.stationary
    if not unknown:
        return world.domain
    if world.budgets is not None:
        raise InvalidInput("true; budgets are kept by learners that know the transitions", "unknown")
    return MarkovPolicies(_confidence_set(world.shape, length, radius, radius_scale), world.initial)


def _confidence_set(shape: Shape, length: int, radius: str, scale: float) -> Dynamics:
    """All kernels, in sets that narrow as their transitions are seen."""
    if radius == L1:
        ball = L1Ball.vacuous(shape, length)
        assert ball.log_term is not None
        return replace(ball, log_term=scale**2 * ball.log_term)  # the radius is a multiple of its root
    return BernsteinBox.vacuous(shape, RADII[radius](shape, length, scale=scale))


def require_feedback(feedback: str | None) -> None:
    """Refuse what is no kind of feedback."""
    if feedback not in (None, *FEEDBACK_NAMES.values()):
        raise InvalidInput(
            f"{feedback!r}; give 'bandit', 'full' or 'aggregate', or leave it to the learners", "feedback"
        )


def require_radius(radius: str, scale: float) -> None:
    """Refuse an unknown radius of confidence sets, and a scale that is not positive."""
    known = (OWN, *RADII, L1)
    if radius not in known:
        raise InvalidInput(f"{radius!r}; {suggestion(str(radius), known)}known names: {', '.join(known)}", "radius")
    require_positive("radius_scale", scale)


def radius_of(radius: str, learner: str) -> str:
    """The radius by which a learner's confidence sets are made."""
    return OWN_SETS.get(learner, PAPER) if radius == OWN else radius


def refuse_radius(radius: str, scale: float) -> None:
    """Refuse a radius of confidence sets, or a factor of it, in a game whose transitions are known."""
    for name, value, usual in (("radius", radius, OWN), ("radius_scale", scale, 1.0)):
        if value != usual:
            raise InvalidInput(f"{value!r}; the transitions are known: use Game(..., unknown=True), or --unknown", name)


def _length(losses: Losses, rounds: int | None, steps: int | None) -> int:
    if rounds is not None and steps is not None:
        raise InvalidInput("give either rounds or steps: episodes that start anew, or one stream of steps")
    name, length = ("rounds", rounds) if steps is None else ("steps", steps)
    if length is None:
        named = isinstance(losses, str | Mapping) or not hasattr(losses, "__len__")
        length = ROUNDS if named else len(losses)  # type: ignore[arg-type]
    require_whole(name, length, 1, MOST_ROUNDS)
    return length


def shortened(losses: LossSequence, length: int, name: str) -> LossSequence:
    """The first `length` rounds of losses."""
    if length > len(losses):
        raise InvalidInput(f"{length} rounds; {name} has {len(losses)}")
    return losses if length == len(losses) else FixedLosses(losses.batch(0, length))
