"""The task that a learner is built for: the policies, the length of the game, its delays, and the solvers to use."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from amdp.algorithms.base import Learner
from amdp.algorithms.bounds import RegretBound
from amdp.algorithms.streams.switching import PolicySwitching
from amdp.model.domains import Domain, StationaryPolicies
from amdp.model.l1_ball import L1Ball
from amdp.oracles.base import PlanningOracle
from amdp.oracles.projection.base import ProjectionOracle


@dataclass(frozen=True)
class Task:
    """What a recipe knows when it builds a learner; no learner uses all of it."""

    domain: Domain
    rounds: int  # episodes, or steps of a stream
    total_delay: int = 0
    oracle: str | PlanningOracle | None = None  # None: the usual one of the domain, see `planning_oracle`
    projection: str | ProjectionOracle | None = None  # None: the usual one, see `projection_oracle`
    multiplier: float = 1.0  # scales the learning rate that theory gives

    @property
    def planning_oracle(self) -> str | PlanningOracle:
        """The oracle of a learner that plans: as asked for, or `dp` for Markov and `auto` for stationary policies."""
        if self.oracle is not None:
            return self.oracle
        return "auto" if isinstance(self.domain, StationaryPolicies) else "dp"

    @property
    def projection_oracle(self) -> str | ProjectionOracle:
        """The oracle of a learner that projects: as asked for, or `l1` for an L1 ball and `newton` for all else."""
        if self.projection is not None:
            return self.projection
        return "l1" if isinstance(self.domain.dynamics, L1Ball) else "newton"


@dataclass(frozen=True, eq=False)
class EpochSetup:
    """A learner for epochs of a stream, how its policies are entered, and the bound on its regret over the stream."""

    learner: Learner[Any]
    entry: PolicySwitching
    length: int  # steps of an epoch
    bound: RegretBound | None = None  # None where none is proved
    unproved: str = ""  # why none is


Recipe = Callable[..., Learner[Any] | EpochSetup]  # builds a learner from a `Task`, and settings by keyword
