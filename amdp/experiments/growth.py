"""Ladders along every size of the theorems: episodes, delay, steps of a stream, horizon, states, actions."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from amdp.algorithms.bounds import delayed_ftpl_order, delayed_uob_reps_order
from amdp.experiments.ladders import UNKNOWN, Ladder, of_last_decade, slope
from amdp.instances import build
from amdp.model.segments import Shape


class Sizes(NamedTuple):
    """How far the ladders go: minutes, or hours."""

    episodes: tuple[int, ...]
    unknown: tuple[int, ...]  # episodes where the transitions are unknown, which take several times as long
    delays: tuple[int, ...]
    steps: tuple[int, ...]
    shapes: tuple[int, ...]  # horizons and states
    actions: tuple[int, ...]
    fixed: int  # episodes, where another size grows
    seeds: int


SHORT = Sizes(
    episodes=(500, 1000, 2000, 4000),
    unknown=(500, 1000, 2000, 4000),
    delays=(10, 40, 160),
    steps=(500, 1000, 2000, 4000),
    shapes=(2, 4, 8),
    actions=(2, 4, 8),
    fixed=1000,
    seeds=4,
)
LONG = Sizes(
    episodes=(1000, 10_000, 100_000, 1_000_000),
    unknown=(1000, 10_000, 100_000),
    delays=(10, 100, 316, 1000),
    steps=(500, 1000, 2000, 4000),
    shapes=(2, 4, 8, 16),
    actions=(2, 4, 8, 16),
    fixed=20_000,
    seeds=4,
)
TRIAL = Sizes((20, 40), (20, 40), (2, 4), (60, 120), (2, 3), (2, 3), 20, 2)

EPISODIC: dict[str, dict[str, Any]] = {
    "random": {"name": "tiny", "n_steps": 3, "n_states": 2},
    "forest": {"name": "forest", "n_states": 3, "n_steps": 4},
    "lock": {"name": "lock", "code": [[1, 0]], "n_steps": 4},
}
STREAMS: dict[str, dict[str, Any]] = {
    "parked": {"name": "random-parked", "n_states": 3, "n_actions": 2},
    "ring": {"name": "waiting-ring", "n_states": 3},
    "farm": {"name": "server-farm", "n_servers": 1},
}
Order = Callable[[Shape, int, int], float]  # of a bound, in shape, episodes and total delay


def ladders(sizes: Sizes) -> list[Ladder]:
    """FTPL beside mirror descent and Hedge, on three families of worlds."""
    return [*_episodes(sizes), *_delays(sizes), *_streams(sizes), *_shapes(sizes)]


def _episodes(sizes: Sizes) -> list[Ladder]:
    players: list[tuple[str, str, dict[str, Any]]] = [
        ("FTPL", "ftpl-shared", {}),
        ("O-REPS", "o-reps", {}),
        ("FTPL, unknown", "ftpl-shared", UNKNOWN),
        ("UOB-REPS", "uob-reps", UNKNOWN),
    ]
    return [
        Ladder(
            f"{name}, {family}",
            "episodes",
            sizes.unknown if more else sizes.episodes,
            _game(world, **more),
            {"name": learner},
            1 / 2,
            f"Along episodes, {family}",
        )
        for family, world in EPISODIC.items()
        for name, learner, more in players
    ]


def _delays(sizes: Sizes) -> list[Ladder]:
    """The total delay is K times that of a round. It stands in one term of the bounds; the other one does not grow."""
    players: list[tuple[str, str, Order]] = [
        ("FTPL, late", "ftpl-shared", delayed_ftpl_order),
        ("Delayed UOB-REPS", "delayed-uob-reps", delayed_uob_reps_order),
    ]
    games = {family: _game(world, episodes=sizes.fixed, **UNKNOWN) for family, world in EPISODIC.items()}
    return [
        Ladder(f"{name}, {family}", "delay", sizes.delays, game, {"name": learner}, _power(order, game, sizes))
        for family, game in games.items()
        for name, learner, order in players
    ]


def _power(order: Order, game: dict[str, Any], sizes: Sizes) -> float:
    """What the whole bound grows like over the last decade of delays, that of the measured exponent."""
    # In a table of a spec a list is a grid; here each has one value.
    world = {key: value[0] if isinstance(value, list) else value for key, value in game["instance"].items()}
    shape = build(**world).shape
    delays = np.array(sizes.delays, dtype=np.float64)
    delays = delays[of_last_decade(delays)]
    whole = [order(shape, sizes.fixed, sizes.fixed * int(delay)) for delay in delays]
    return slope(delays, np.array(whole))


def _streams(sizes: Sizes) -> list[Ladder]:
    return [
        Ladder(f"{name}, {family}", "steps", sizes.steps, _game(world), {"name": learner}, proved)
        for family, world in STREAMS.items()
        for name, learner, proved in (
            ("FTPL, stream", "ftpl-infinite-renewed", 5 / 6),
            ("Hedge, stream", "hedge-infinite-renewed", 2 / 3),
        )
    ]


def _shapes(sizes: Sizes) -> list[Ladder]:
    """Horizon, states and actions of random worlds, beside the powers in the bounds for known transitions.

    A random world with more actions has better ones too, so that uniform play loses more to the best policy; with more
    copies of the same actions there is more to learn about, and nothing else changes.
    """
    powers = {"n_steps": (1.5, 1.0), "n_states": (0.5, 0.5), "n_actions": (0.5, 0.5), "copies": (0.5, 0.5)}
    return [
        Ladder(
            f"{name}, {size}",
            f"instance.{size}",
            sizes.actions if size in ("n_actions", "copies") else sizes.shapes,
            _game(EPISODIC["random"], episodes=sizes.fixed),
            {"name": learner},
            proved,
        )
        for size, both in powers.items()
        for (name, learner), proved in zip((("FTPL", "ftpl-shared"), ("O-REPS", "o-reps")), both, strict=True)
    ]


def _game(world: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"instance": world, "losses": "bernoulli", **more}
