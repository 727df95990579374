"""What was paid, what the best policy in hindsight would have paid, and what the theorems allow.

In episodes all losses are expected ones: the exact value of each played policy under the losses of its round. In an
unbroken stream the learner is charged with the losses that it met, those of switches included: from one epoch to the
next no expectation but that of the whole stream is free of what happened before.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from amdp.arrays import Floats
from amdp.errors import InvalidInput
from amdp.game.loop import ArenaGame
from amdp.game.rounds import Round
from amdp.oracles.base import Planner, PlanningOracle, Status, bind

BLOCK = 256  # rounds that are evaluated together
BLOCK_NUMBERS = 8_000_000  # losses that are held together
COLUMNS = 13  # sums over the rounds: see `_columns`


@dataclass(frozen=True, eq=False)
class Regret:
    """Sums up to each checkpoint; where the oracle proved only a bound, the regret is an interval."""

    rounds: NDArray[np.int64]  # [c], how many rounds were played by then
    paid: Floats  # [c], expected losses of the played policies; in an unbroken stream the losses met
    best: Floats  # [c], of the best policy in hindsight
    best_bound: Floats  # [c], no policy pays less
    trials: NDArray[np.int64]  # [c]
    oracle_calls: NDArray[np.int64]  # [c], questions to a planning oracle
    paid_entering: Floats  # [c], what of `paid` was met in switches
    rebuilds: NDArray[np.int64]  # [c], rounds in which what is known of the dynamics changed
    spent: Floats = field(repr=False)  # [c, 4], seconds of the clock by `Timing`
    cpu: Floats = field(repr=False)  # [c, 4], seconds of the processor by `Timing`

    @property
    def seconds(self) -> Floats:
        """Of the learner, `[c]`."""
        of_learner: Floats = self.spent[:, :3].sum(axis=1)
        return of_learner

    @property
    def low(self) -> Floats:
        """The regret against the best policy that was found."""
        return self.paid - self.best

    @property
    def high(self) -> Floats:
        """The regret is not above this."""
        return self.paid - self.best_bound


def log_checkpoints(rounds: int, count: int = 50) -> NDArray[np.int64]:
    """About `count` checkpoints, evenly spaced in the logarithm, from 1 to `rounds`."""
    return np.unique(np.geomspace(1, rounds, count).round().astype(np.int64))


def measure(
    game: ArenaGame,
    played: Iterable[Round],
    oracle: str | PlanningOracle | None = None,
    checkpoints: Sequence[int] | NDArray[np.int64] | None = None,
) -> Regret:
    """Play on, and measure at the checkpoints (all rounds if None); memory does not grow with the rounds.

    The oracle finds the best policy in hindsight: Markov by backward induction, or stationary by `auto`, if None.
    """
    wanted = None if checkpoints is None else _checkpoints(checkpoints, game.rounds)
    planner = bind(game.arena.oracle if oracle is None else oracle, game.arena.domain)
    so_far = np.zeros(game.arena.domain.shape)
    played_so_far = 0
    carried = np.zeros(COLUMNS)
    rows: list[Floats] = []
    for block in _blocks(iter(played), so_far.size):
        ks = np.array([one.k for one in block])
        if not np.array_equal(ks, played_so_far + np.arange(len(ks))):
            raise InvalidInput(
                f"rounds {ks[0]} .. {ks[-1]} do not follow the {played_so_far} before them; give all, once"
            )
        played_so_far += len(ks)
        tables = [game.table(int(k)) for k in ks]
        sums = carried + np.cumsum(_columns(block, game.arena.charged(block, tables)), axis=0)
        keep = np.ones(len(block), dtype=bool) if wanted is None else np.isin(ks + 1, wanted)
        hindsight = _best(game, planner, so_far, zip(ks, tables, keep, strict=True))
        if keep.any():
            rows.append(np.column_stack([ks[keep] + 1, hindsight, sums[keep]]))
        carried = sums[-1]
    if not rows:
        raise InvalidInput("no round was played at a checkpoint")
    found = np.concatenate(rows)
    count, trials, calls, rebuilds = found[:, [0, 4, 5, 7]].T.astype(np.int64)
    best, bound, paid, entering = found[:, [1, 2, 3, 6]].T
    return Regret(count, paid, best, bound, trials, calls, entering, rebuilds, found[:, 8:12], found[:, 12:])


def _columns(block: list[Round], charged: Floats) -> Floats:
    """What is summed over the rounds, `[k, COLUMNS]`."""
    rest = [
        (
            one.trials,
            one.plans,
            one.paid_entering,
            one.rebuilt,
            *one.spent,
            *one.cpu,
        )
        for one in block
    ]
    return np.column_stack([charged, np.array(rest, dtype=np.float64)])


def _best(game: ArenaGame, planner: Planner, so_far: Floats, block: Iterable[tuple[int, Floats, bool]]) -> Floats:
    """The least cost and its bound `[c, 2]` after each round to keep; `so_far` grows by all tables."""
    totals = []
    for k, table, kept in block:
        game.arena.gather(so_far, table, int(k))
        if kept:
            totals.append(so_far.copy())
    if not totals:
        return np.empty((0, 2))
    plans = planner.minimize(np.stack(totals)).require(Status.OPTIMAL, Status.FEASIBLE)
    return np.column_stack([plans.objective, plans.bound])


def _checkpoints(wanted: Sequence[int] | NDArray[np.int64], rounds: int) -> NDArray[np.int64]:
    found = np.asarray(wanted)
    if found.ndim != 1 or len(found) == 0 or found.dtype.kind not in "iu":
        raise InvalidInput("checkpoints must be a list of whole numbers")
    if found[0] < 1 or found[-1] > rounds or (np.diff(found) <= 0).any():
        raise InvalidInput(f"checkpoints must increase, within 1 .. {rounds}, the number of rounds")
    return found.astype(np.int64)


def _blocks(played: Iterator[Round], size: int) -> Iterator[list[Round]]:
    together = min(BLOCK, max(1, BLOCK_NUMBERS // size))
    while block := list(islice(played, together)):
        yield block
