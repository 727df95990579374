"""What a learner is made for: the domain, the length of the game, its delays, and the solvers to use."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from amdp.algorithms.base import Learner
from amdp.algorithms.streams.switching import PolicySwitching
from amdp.model.domains import Domain
from amdp.oracles.base import PlanningOracle
from amdp.oracles.projection.base import ProjectionOracle


@dataclass(frozen=True)
class Task:
    """What a recipe may use; no learner uses all of it."""

    domain: Domain
    rounds: int
    total_delay: int = 0
    oracle: str | PlanningOracle = "dp"
    projection: str | ProjectionOracle = "newton"
    multiplier: float = 1.0  # scales the rate that theory gives


@dataclass(frozen=True, eq=False)
class EpochSetup:
    """A learner for epochs of an unbroken stream, how its policies are entered, and what theory allows it in all."""

    learner: Learner[Any]
    entry: PolicySwitching
    length: int
    bound: Any = None  # with a `total`; None where none is proved
    unproved: str = ""  # why none is


Recipe = Callable[..., Learner[Any] | EpochSetup]  # of terms, and settings by keyword
