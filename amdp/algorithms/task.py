"""The task that a learner is built for: the policies, the length of the game, its delays, and the solvers to use."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from amdp.algorithms.base import Learner
from amdp.algorithms.bounds import RegretBound
from amdp.algorithms.streams.switching import PolicySwitching
from amdp.arrays import require_positive
from amdp.errors import InvalidInput
from amdp.model.domains import BudgetedPolicies, Domain, EpisodeDomain, MarkovPolicies, StationaryPolicies
from amdp.model.l1_ball import L1Ball
from amdp.oracles.base import PlanningOracle
from amdp.oracles.projection.base import ProjectionOracle

KEEP_BUDGETS = "ftpl and its kin, fpl, and those that project onto occupancy measures once a round, such as o-reps"
SOLVERS = ("oracle", "projection")  # fields of a task that few learners read
USUAL_ORACLES: dict[type, str] = {MarkovPolicies: "dp", StationaryPolicies: "auto", BudgetedPolicies: "lagrangian"}
WATCHED = (*SOLVERS, "total_delay")

Value = TypeVar("Value")


@dataclass(frozen=True)
class Task:
    """What a recipe knows when it builds a learner; no learner uses all of it."""

    domain: Domain
    rounds: int  # episodes, or steps of a stream
    total_delay: int = 0
    oracle: str | PlanningOracle | None = None  # None: the usual one of the domain, see `USUAL_ORACLES`
    projection: str | ProjectionOracle | None = None  # None: the usual one, see `projection_oracle`
    multiplier: float = 1.0  # scales the learning rate that theory gives
    learner: str = "this learner"  # its name, for messages

    @property
    def planning_oracle(self) -> str | PlanningOracle:
        """The oracle of a learner that plans: as asked for, or the usual one of the domain."""
        return USUAL_ORACLES.get(type(self.domain), "dp") if self.oracle is None else self.oracle

    @property
    def projection_oracle(self) -> str | ProjectionOracle:
        """The oracle of a learner that projects: as asked for, or `l1` for an L1 ball and `newton` for all else."""
        if self.projection is not None:
            return self.projection
        return "l1" if isinstance(self.domain.dynamics, L1Ball) else "newton"

    def setting(self, name: str, given: Value | None, theory: Value) -> Value:
        """The value of a setting: as it was given by hand, or theory's if that is None."""
        return theory if given is None else given

    def rate(self, given: float | None, theory: float) -> float:
        """The learning rate: as it was given by hand, or theory's, times the multiplier, which scales nothing else."""
        if given is not None:
            require_positive("rate", given)
        return self.multiplier * self.setting("rate", given, theory)

    def by_hand(self, theory: Value, rate: float | None, **given: Any) -> Value:
        """`theory`, a dataclass of parameters with a `rate`, with those that were given by hand in their places."""
        tuned: Any = theory
        values = {name: self.setting(name, value, getattr(tuned, name)) for name, value in given.items()}
        changed: Value = replace(tuned, rate=self.rate(rate, tuned.rate), **values)
        return changed

    def require_no_multiplier(self) -> None:
        """Refuse a multiplier, for a learner whose rate tunes itself."""
        if self.multiplier != 1.0:
            raise InvalidInput(f"{self.multiplier:g}; {self.learner} tunes its rate itself: leave it out", "multiplier")

    def episodes(self, instead: str = "") -> MarkovPolicies:
        """The domain, for a learner that plays episodes; refused with budgets, and in a stream, for `instead`."""
        domain = self.solved_episodes(instead)
        if isinstance(domain, BudgetedPolicies):
            raise InvalidInput(f"{self.learner} does not keep budgets; learners that do: {KEEP_BUDGETS}")
        return domain

    def solved_episodes(self, instead: str = "") -> EpisodeDomain:
        """The same for a learner whose policies all come from the oracle or the projection, which keep the budgets."""
        if not isinstance(self.domain, EpisodeDomain):
            remedy = "use Game(..., rounds=K), or --episodes K"
            remedy += f"; in a stream of steps use {instead}" if instead else ""
            raise InvalidInput(f"{self.learner} plays episodes, not one stream of steps: {remedy}")
        return self.domain

    def stream(self) -> StationaryPolicies:
        """The domain, for a learner that plays one stream of steps without delays; refused in episodes."""
        if not isinstance(self.domain, StationaryPolicies):
            remedy = "use Game(..., steps=N), or --steps N"
            raise InvalidInput(f"{self.learner} plays one stream of steps, not episodes: {remedy}")
        if self.total_delay:
            raise InvalidInput(f"total_delay = {self.total_delay}; {self.learner} takes losses without delay")
        return self.domain


class WatchedTask(Task):
    """A task that notes what a recipe reads of its solvers and delays, and the values of its settings."""

    def __getattribute__(self, name: str) -> Any:
        if name in WATCHED:
            self.__dict__.setdefault("_read", set()).add(name)
        return super().__getattribute__(name)

    def setting(self, name: str, given: Value | None, theory: Value) -> Value:
        return self._noted(name, super().setting(name, given, theory))

    def rate(self, given: float | None, theory: float) -> float:
        self.__dict__["_rate_is_theory"] = given is None
        return self._noted("rate", super().rate(given, theory))

    @property
    def settings(self) -> dict[str, Any]:
        """The settings of the learner with their values; the multiplier is in the rate."""
        return dict(self.__dict__.get("_settings", {}))

    @property
    def has_rate_without_delay(self) -> bool:
        """Whether the recipe took the rate that theory gives, and did not look at the total delay for it."""
        return self.__dict__.get("_rate_is_theory", False) and "total_delay" not in self.__dict__.get("_read", ())

    @property
    def read(self) -> set[str]:
        """The solvers that were read."""
        return set(self.__dict__.get("_read", ())) & set(SOLVERS)

    @property
    def unread(self) -> dict[str, Any]:
        """The solvers that were chosen, and that the recipe did not read."""
        values = {name: self.__dict__[name] for name in SOLVERS if name not in self.read}
        return {name: value for name, value in values.items() if value is not None}

    def _noted(self, name: str, value: Value) -> Value:
        self.__dict__.setdefault("_settings", {})[name] = value
        return value


@dataclass(frozen=True, eq=False)
class EpochSetup:
    """A learner for epochs of a stream, how its policies are entered, and the bound on its regret over the stream."""

    learner: Learner[Any]
    entry: PolicySwitching
    length: int  # steps of an epoch
    bound: RegretBound | None = None  # None where none is proved
    unproved: str = ""  # why none is


Recipe = Callable[..., Learner[Any] | EpochSetup]  # builds a learner from a `Task`, and settings by keyword
