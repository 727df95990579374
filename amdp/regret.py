"""What was paid, what the best policy in hindsight would have paid, and what the theorems allow.

All losses are expected ones: the exact value of each played policy under the losses of its round.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from math import e, log

import numpy as np
from numpy.typing import NDArray

from amdp.arrays import Floats
from amdp.dynamics import Shape
from amdp.errors import InvalidInput
from amdp.evaluation import values
from amdp.mdp import Domain, MarkovPolicies
from amdp.oracles.base import PlanningOracle, Status, bind
from amdp.simulation import Game, Round

BLOCK = 256  # rounds that are evaluated together


@dataclass(frozen=True, eq=False)
class Regret:
    """Sums up to each checkpoint; where the oracle proved only a bound, the regret is an interval."""

    rounds: NDArray[np.int64]  # [c], how many rounds were played by then
    paid: Floats  # [c], expected losses of the played policies
    best: Floats  # [c], of the best policy in hindsight
    best_bound: Floats  # [c], no policy pays less
    trials: NDArray[np.int64]  # [c]
    oracle_calls: NDArray[np.int64]  # [c]
    seconds: Floats  # [c], of the learner

    @property
    def low(self) -> Floats:
        """The regret against the best policy that was found."""
        return self.paid - self.best

    @property
    def high(self) -> Floats:
        """The regret is not above this."""
        return self.paid - self.best_bound


@dataclass(frozen=True)
class FtplBound:
    """The paper's bound on expected regret with known transitions, term by term (proofs of its Theorems 1 and 3)."""

    resampling: float  # HSAK / (e L)
    error: float  # 2 H (1 + ln SA) / rate
    stability: float  # 3 rate H^2 SA (K + D)

    @property
    def total(self) -> float:
        """The sum of the terms."""
        return self.resampling + self.error + self.stability


def ftpl_bound(shape: Shape, rounds: int, rate: float, limit: int, total_delay: int = 0) -> FtplBound:
    """The bound for any rate and limit, known transitions."""
    steps, states, actions = shape
    pairs = states * actions
    return FtplBound(
        steps * pairs * rounds / (e * limit),
        2.0 * steps * (1.0 + log(pairs)) / rate,
        3.0 * rate * steps**2 * pairs * (rounds + total_delay),
    )


def spaced(rounds: int, count: int = 50) -> NDArray[np.int64]:
    """About `count` checkpoints, evenly spaced in the logarithm, from 1 to `rounds`."""
    return np.unique(np.geomspace(1, rounds, count).round().astype(np.int64))


def measure(
    game: Game,
    played: Iterable[Round],
    oracle: str | PlanningOracle = "dp",
    checkpoints: Sequence[int] | NDArray[np.int64] | None = None,
) -> Regret:
    """Play on, and measure at the checkpoints (all rounds if None); memory does not grow with the rounds."""
    wanted = None if checkpoints is None else _checkpoints(checkpoints, len(game.losses))
    domain = MarkovPolicies(game.arena.kernel, game.arena.initial)
    planner = bind(oracle, domain)
    so_far = np.zeros(domain.shape)
    carried = np.zeros(5)
    rows: list[Floats] = []
    for block in _blocks(iter(played)):
        ks = np.array([one.k for one in block])
        losses = np.stack([game.losses[int(k)] for k in ks])
        spent = np.column_stack(
            [
                _expected(domain, block, losses),
                [one.trials for one in block],
                [one.trials + 1 for one in block],
                [one.seconds for one in block],
                np.ones(len(block)),
            ]
        )
        sums = carried + np.cumsum(spent, axis=0)
        keep = np.ones(len(block), dtype=bool) if wanted is None else np.isin(ks + 1, wanted)
        totals = so_far + np.cumsum(losses, axis=0)
        if keep.any():
            plans = planner.minimize(totals[keep]).require(Status.OPTIMAL, Status.FEASIBLE)
            rows.append(np.column_stack([ks[keep] + 1, sums[keep, :4], plans.objective, plans.bound]))
        so_far, carried = totals[-1], sums[-1]
    if not rows:
        raise InvalidInput("no round was played at a checkpoint")
    count, paid, trials, calls, seconds, best, bound = np.concatenate(rows).T
    return Regret(count.astype(np.int64), paid, best, bound, trials.astype(np.int64), calls.astype(np.int64), seconds)


def _checkpoints(wanted: Sequence[int] | NDArray[np.int64], rounds: int) -> NDArray[np.int64]:
    found = np.asarray(wanted)
    if found.ndim != 1 or len(found) == 0 or found.dtype.kind not in "iu":
        raise InvalidInput("checkpoints must be a list of whole numbers")
    if found[0] < 1 or found[-1] > rounds or (np.diff(found) <= 0).any():
        raise InvalidInput(f"checkpoints must increase, within 1 .. {rounds}, the number of rounds")
    return found.astype(np.int64)


def _blocks(played: Iterator[Round]) -> Iterator[list[Round]]:
    while block := list(islice(played, BLOCK)):
        yield block


def _expected(domain: Domain, block: list[Round], losses: Floats) -> Floats:
    policies = np.stack([one.policy for one in block])
    return values(domain.dynamics, policies, losses)[:, 0, domain.initial]
