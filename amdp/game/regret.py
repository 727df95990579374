"""The loss that a learner incurred, and that of the best policy in hindsight.

In episodes all losses are expected ones: the exact value of each played policy under the losses of its round. In a
stream of steps the learner is charged with the losses that it met, those of switches included: from one epoch to the
next no expectation but that of the whole stream is free of what happened before.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from amdp.arrays import Bools, Floats
from amdp.errors import InvalidInput
from amdp.game.arenas import Arena
from amdp.game.blocks import BLOCK_NUMBERS, Block, CompiledBlock, in_blocks
from amdp.game.loop import ArenaGame
from amdp.game.rounds import Round
from amdp.losses.base import LossSequence, RecentLosses
from amdp.oracles.base import Planner, PlanningOracle, Status, bind

# Columns of `Regret` that sum an attribute of `Round`.
SUMMED = {name: name for name in ("trials", "paid_entering", "spent", "cpu")} | {"oracle_calls": "plans"}
_Sums = dict[str, NDArray[Any]]


@dataclass(frozen=True, eq=False)
class Regret:
    """Sums up to each checkpoint; where the oracle proved only a bound, the regret is an interval."""

    rounds: NDArray[np.int64]  # [c], how many rounds were played by then
    paid: Floats  # [c], incurred loss: expected over the played policies; in a stream of steps the losses met
    best: Floats  # [c], of the best policy in hindsight
    best_bound: Floats  # [c], no policy has a smaller loss
    trials: NDArray[np.int64]  # [c]
    oracle_calls: NDArray[np.int64]  # [c], questions to a planning oracle
    paid_entering: Floats  # [c], the part of `paid` that was met in switches
    rebuilds: NDArray[np.int64]  # [c], rounds in which what is known of the dynamics changed
    spent: Floats = field(repr=False)  # [c, 4], seconds of the clock by `Timing`
    cpu: Floats = field(repr=False)  # [c, 4], seconds of the processor by `Timing`
    used: Floats = field(default_factory=lambda: np.empty((0, 0)), repr=False)  # [c, i], expected use of each budget

    @property
    def learner_seconds(self) -> Floats:
        """The learner's time `[c]`, of the clock."""
        seconds: Floats = self.spent[:, :3].sum(axis=1)
        return seconds

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
    played: Iterable[Round] | Iterable[Block],
    oracle: str | PlanningOracle | None = None,
    checkpoints: Sequence[int] | NDArray[np.int64] | None = None,
) -> Regret:
    """Play on, and measure at the checkpoints (all rounds if None); memory does not grow with the rounds.

    The oracle finds the best policy in hindsight: Markov by backward induction, within budgets by `lagrangian`, or
    stationary by `auto`, if None.
    """
    measurement = Measurement(game, oracle, checkpoints)
    for block in in_blocks(iter(played), game.arena.round_shape):
        measurement.add(block)
    return measurement.regret


class Measurement:
    """The regret of a game, measured block by block; its state can be kept and taken up again."""

    def __init__(
        self,
        game: ArenaGame,
        oracle: str | PlanningOracle | None = None,
        checkpoints: Sequence[int] | NDArray[np.int64] | None = None,
    ) -> None:
        self._arena, self._losses = game.arena, RecentLosses(game.losses)
        self._wanted = None if checkpoints is None else _checkpoints(checkpoints, game.rounds)
        self._planner = bind(game.arena.oracle if oracle is None else oracle, game.arena.domain)
        self._total_losses = np.zeros(game.arena.domain.shape)
        self._played = 0
        self._sums: _Sums | None = None  # up to the end of the last block
        self._rows: list[_Sums] = []

    def add(self, block: Block) -> None:
        """Measure the next block."""
        ks = block.column("k")
        if not np.array_equal(ks, self._played + np.arange(len(ks))):
            raise InvalidInput(
                f"rounds {ks[0]} .. {ks[-1]} do not follow the {self._played} before them; give all, once"
            )
        self._played += len(ks)
        if isinstance(block, CompiledBlock):
            self._losses.hold(block.first, block.tables)
        sums = {"paid": self._arena.charged(block, self._losses), "used": self._arena.used(block)}
        running = _running_sums(block, sums, self._sums)
        keep = np.ones(len(block), dtype=bool) if self._wanted is None else _is_in(ks + 1, self._wanted)
        hindsight = _best(self._arena, self._planner, self._total_losses, self._losses, block.first, keep)
        if keep.any():
            best = {"rounds": ks[keep] + 1, "best": hindsight[:, 0], "best_bound": hindsight[:, 1]}
            self._rows.append(best | {name: column[keep] for name, column in running.items()})
        self._sums = {name: column[-1] for name, column in running.items()}

    @property
    def regret(self) -> Regret:
        """What was measured so far."""
        if not self._rows:
            raise InvalidInput("no round was played at a checkpoint")
        return Regret(**self._columns())

    def _columns(self) -> _Sums:
        return {name: np.concatenate([row[name] for row in self._rows]) for name in self._rows[0]}

    def state(self) -> dict[str, NDArray[Any]]:
        """All that `resume` needs."""
        state = {"losses": self._total_losses.copy(), "played": np.array(self._played)}
        state |= {f"sum {name}": np.asarray(value) for name, value in (self._sums or {}).items()}
        return state | {f"row {name}": column for name, column in (self._columns() if self._rows else {}).items()}

    def resume(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Go on from where another measurement of the same game was."""
        self._total_losses, self._played = state["losses"].copy(), int(state["played"])
        self._sums = _with_prefix(state, "sum ") or None
        rows = _with_prefix(state, "row ")
        self._rows = [rows] if rows else []
        if rows:  # planners may answer by a table from the second question on, which differs in the last bits
            self._planner.minimize(self._total_losses[None])


def _with_prefix(state: Mapping[str, NDArray[Any]], prefix: str) -> _Sums:
    return {name.removeprefix(prefix): value for name, value in state.items() if name.startswith(prefix)}


def _running_sums(block: Block, measured: _Sums, before: _Sums | None) -> _Sums:
    """What is summed over the rounds, by its name in `Regret`: the sums after each round of a block."""
    of_rounds: _Sums = {**measured, "rebuilds": block.column("rebuilt").astype(np.int64)}
    for name, of_round in SUMMED.items():
        of_rounds[name] = block.column(of_round)
    sums = {name: np.cumsum(column, axis=0) for name, column in of_rounds.items()}
    return sums if before is None else {name: before[name] + column for name, column in sums.items()}


def _best(
    arena: Arena, planner: Planner, total_losses: Floats, losses: LossSequence, first: int, keep: Bools
) -> Floats:
    """The least cost and its bound `[c, 2]` after each round to keep; `total_losses` grows by those of the block."""
    kept, low = (first + np.flatnonzero(keep) + 1).tolist(), first
    at_once = max(1, BLOCK_NUMBERS // total_losses.size)
    found = [np.empty((0, 2))]
    for part in (kept[i : i + at_once] for i in range(0, len(kept), at_once)):
        totals = np.empty((len(part), *total_losses.shape))
        for total, high in zip(totals, part, strict=True):
            arena.gather(total_losses, losses, low, high)
            low = high
            total[:] = total_losses
        plans = planner.minimize(totals).require(Status.OPTIMAL, Status.FEASIBLE)
        found.append(np.column_stack([plans.objective, plans.bound]))
    arena.gather(total_losses, losses, low, first + len(keep))  # the rest of the block
    return np.concatenate(found)


def _is_in(rounds: NDArray[np.int64], wanted: NDArray[np.int64]) -> Bools:
    """Which of the rounds are wanted; both ascend."""
    places = np.minimum(np.searchsorted(wanted, rounds), len(wanted) - 1)
    found: Bools = wanted[places] == rounds
    return found


def _checkpoints(wanted: Sequence[int] | NDArray[np.int64], rounds: int) -> NDArray[np.int64]:
    checkpoints = np.asarray(wanted)
    if checkpoints.ndim != 1 or len(checkpoints) == 0 or checkpoints.dtype.kind not in "iu":
        raise InvalidInput("checkpoints must be a list of whole numbers")
    if checkpoints[0] < 1 or checkpoints[-1] > rounds or (np.diff(checkpoints) <= 0).any():
        raise InvalidInput(f"checkpoints must increase, within 1 .. {rounds}, the number of rounds")
    return checkpoints.astype(np.int64)
