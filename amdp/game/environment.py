"""A game as a Gymnasium environment: any agent can play our adversaries, and its regret is measured like a learner's.

    env = AdversaryEnv(ArenaGame(Episodic(kernel), losses))         # or
    env = gymnasium.make("amdp.game.environment:amdp/Adversary-v0", instance="tiny", losses="bernoulli", rounds=1000)

This module needs Gymnasium, `pip install "amdp[gym]"`; nothing else in the library loads it. The other way round, from
an environment's table to a world, is `amdp.instances.from_gymnasium`.
"""

from collections.abc import Sequence
from itertools import count
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from amdp.arrays import floats, require_finite, require_index
from amdp.errors import InvalidInput, MissingDependency
from amdp.game.arenas import Episodic, RoundByRound
from amdp.game.delays import none
from amdp.game.games import Game
from amdp.game.loop import ArenaGame
from amdp.game.regret import Regret, measure
from amdp.game.rounds import Round, Timing
from amdp.game.seeding import Streams
from amdp.model.segments import NOWHERE
from amdp.model.transitions import SingleKernel
from amdp.oracles.base import PlanningOracle

try:
    import gymnasium
except ModuleNotFoundError as problem:
    raise MissingDependency('amdp.game.environment needs gymnasium: pip install "amdp[gym]"') from problem

ID = "amdp/Adversary-v0"
NO_TIME = Timing(0.0, 0.0, 0.0, 0.0)


class AdversaryEnv(gymnasium.Env[int, int]):  # type: ignore[misc]  # follow_imports = "skip"
    """An episode is a round of a game; the reward of a step is minus its loss, revealed at once.

    An observation is one whole number, `step * states + state`, and `steps * states` when the episode is over: there
    is no state after the last step. `place` takes it apart. The info holds `round`, `step`, `state`, the loss incurred
    so far in the round (`paid`), and after a step its `loss`.

    `reset()` goes on to the next round, after the last one to round 0; `reset(options={"round": k})` goes to round `k`.
    `reset(seed=...)` begins again, with round 0 and the random numbers of the arena in `amdp.play` with this seed:
    two uniform numbers a step, the second of which decides the move.
    """

    metadata: ClassVar[dict[str, Any]] = {"render_modes": []}

    def __init__(self, game: ArenaGame) -> None:
        if not isinstance(game.arena, Episodic):
            raise InvalidInput(f"{type(game.arena).__name__}: an environment plays the episodes of an Episodic arena")
        if game.delays is not None and game.delays.total > 0:
            raise InvalidInput(f"{game.delays}: an environment tells the reward at once; leave the delays out")
        steps, states, actions = game.arena.kernel.shape
        self.game = game
        self.observation_space = gymnasium.spaces.Discrete(steps * states + 1)
        self.action_space = gymnasium.spaces.Discrete(actions)
        self._round = -1  # before the first
        self._step = steps

    @property
    def kernel(self) -> SingleKernel:
        """The transition kernel of the environment."""
        return self.game.arena.kernel

    def place(self, observation: int) -> tuple[int, int]:
        """Step and state of an observation before the end."""
        steps, states, _ = self.kernel.shape
        require_index("observation", observation, steps * states)
        step, state = divmod(int(observation), states)
        return step, state

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[int, dict[str, Any]]:
        super().reset(seed=seed)
        if seed is not None:
            self.np_random = Streams.from_seed(seed).arena
            self._np_random_seed = seed
            self._round = -1
        self._round = self._chosen(options or {})
        self._losses = self.game.table(self._round)
        self._moves = self.np_random.random((self.kernel.shape[0], 2))[:, 1]
        self._step, self._state, self._paid = 0, self.game.arena.initial, 0.0
        return self._observation, self._info

    def step(self, action: int) -> tuple[int, float, bool, bool, dict[str, Any]]:
        """One step: observation, minus the loss, whether the round is over, False (nothing cuts it short), info."""
        steps, _, actions = self.kernel.shape
        if self._step >= steps:
            raise InvalidInput("the round is over; call reset")
        require_index("action", action, actions)
        loss = float(self._losses[self._step, self._state, action])
        if self._step + 1 < steps:
            self._state = _moved(self.kernel, self._step, self._state, int(action), self._moves[self._step])
        self._step += 1
        self._paid += loss
        return self._observation, -loss, self._step == steps, False, self._info | {"loss": loss}

    def _chosen(self, options: dict[str, Any]) -> int:
        for option in options.keys() - {"round"}:
            raise InvalidInput(f"no option {option!r} of reset; its option: round")
        chosen = options.get("round", (self._round + 1) % self.game.rounds)
        require_index("round", chosen, self.game.rounds)
        return int(chosen)

    @property
    def _observation(self) -> int:
        steps, states, _ = self.kernel.shape
        return self._step * states + (self._state if self._step < steps else 0)

    @property
    def _info(self) -> dict[str, Any]:
        return {"round": self._round, "step": self._step, "state": self._state, "paid": self._paid}


def make(instance: str = "tiny", losses: str = "bernoulli", rounds: int = 10_000, seed: int = 1) -> AdversaryEnv:
    """The environment of a built-in world and adversary, by their names; the seed is the adversary's."""
    game = Game(instance, losses, rounds, seed=seed)
    return AdversaryEnv(ArenaGame(Episodic(game.world.kernel, game.world.initial), game.losses))


def regret_of(
    game: ArenaGame,
    paid: ArrayLike,
    oracle: str | PlanningOracle | None = None,
    checkpoints: Sequence[int] | NDArray[np.int64] | None = None,
) -> Regret:
    """The regret of an agent with the loss `paid[k]` in round `k`, against the certified best policy in hindsight.

    The policies of an outside agent are not known, so it is charged with the losses that it met, not with their
    expectation: the regret is the same on average, and noisier. Trials, oracle calls and seconds are not known either,
    and stay 0.
    """
    sums = floats("paid", paid, "k")
    require_finite("paid", sums, "k")
    if not 1 <= len(sums) <= game.rounds:
        raise InvalidInput(f"{len(sums)} sums of losses; give one for each round played, of {game.rounds}")
    if not isinstance(game.arena, Episodic):
        raise InvalidInput(f"{type(game.arena).__name__}: rounds of an outside agent are episodes")
    as_met = ArenaGame(_AsMet(game.arena.kernel, game.arena.initial), game.losses, none(game.rounds), game.feedback)
    return measure(as_met, map(_round, count(), sums.tolist()), oracle, checkpoints)


class _AsMet(Episodic):
    """Charges the losses that were met."""

    charged = RoundByRound.charged


def _round(k: int, loss: float) -> Round:
    """A round of which nothing is known but the loss."""
    return Round(k, np.empty((0, 0, 0)), NOWHERE, loss, 0, NO_TIME, NO_TIME, rebuilt=False, arrived=0)


def _moved(kernel: SingleKernel, h: int, state: int, action: int, uniform: float) -> int:
    """The next state, by the rule of `amdp.kernels.paths`: the first whose cumulative chance exceeds its share."""
    row = kernel.matrix(h)[[state * kernel.shape[2] + action]]
    below = np.cumsum(row if isinstance(row, np.ndarray) else row.toarray())
    return min(int(np.searchsorted(below, uniform * below[-1], side="right")), len(below) - 1)


gymnasium.register(ID, entry_point=f"{__name__}:make")
